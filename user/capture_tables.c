/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The probe's tables, read from outside: counters, the process tree, and the
 * flows that still live when a run ends.
 */
#include "capture_private.h"
#include "clock.h"
#include "../bpf/flow_table.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BATCH_ENTRIES 512

/* ---- counters ---- */

static bool is_spare(const char *program_name)
{
	return !strncmp(program_name, "spare_", strlen("spare_"));
}

bool capture_is_copy(const char *program_name)
{
	return !strncmp(program_name, "softirq_", strlen("softirq_")) || is_spare(program_name);
}

/* A spare that was kept out had nothing to do, or the copy before it was kept out too, and counts. */
static uint64_t kernel_misses(const struct capture *capture)
{
	struct bpf_program *program;
	uint64_t misses = 0;

	bpf_object__for_each_program (program, capture->object) {
		struct bpf_prog_info info = {};
		uint32_t size = sizeof(info);
		int fd = bpf_program__fd(program);

		if (fd < 0 || is_spare(bpf_program__name(program)))
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &size))
			misses += info.recursion_misses;
	}
	return misses;
}

/* Events that were the first copy's, and that the second missed. */
static int misses_while_held(const struct capture *capture, int cpus, uint64_t *ret_misses)
{
	struct copies_seen *seen = calloc((size_t)cpus, sizeof(*seen));
	uint64_t first = 0, softirq = 0;
	int error = seen ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < COPIES_COUNT && !error; i++) {
		error = bpf_map_lookup_elem(capture->copies_fd, &i, seen);
		for (int cpu = 0; cpu < cpus && !error; cpu++) {
			first += seen[cpu].held_first;
			softirq += seen[cpu].held_softirq;
		}
	}
	free(seen);
	if (!error)
		*ret_misses = first > softirq ? first - softirq : 0;
	return error;
}

static int count(const struct capture *capture, struct counters *ret_counters)
{
	int cpus = libbpf_num_possible_cpus(), error = 0;
	uint64_t *values, misses, harmless = 0;
	struct counters sum = {};

	if (cpus < 0)
		return cpus;
	values = calloc((size_t)cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	misses = kernel_misses(capture); /* first: whatever of them was harmless has been called so by then */
	for (uint32_t i = 0; i < WIRE_COUNTER_COUNT && !error; i++) {
		error = bpf_map_lookup_elem(capture->counters_fd, &i, values);
		for (int cpu = 0; cpu < cpus && !error; cpu++)
			sum.value[i] += values[cpu];
	}
	free(values);
	if (!error)
		error = misses_while_held(capture, cpus, &harmless);
	if (error)
		return error;
	harmless += sum.value[WIRE_COUNTER_HARMLESS_MISSES];
	if (misses > harmless)
		sum.recursion_misses = misses - harmless;
	*ret_counters = sum;
	return 0;
}

int capture_counters(struct capture *capture, struct counters *ret_counters)
{
	if (capture->rights)
		return capture->rights->counters(capture->rights->context, ret_counters, &capture->rights_ring_peak);
	return count(capture, ret_counters);
}

/* ---- tables ---- */

/* One batch after the other: unlike key after key it stays whole while entries come and go. */
struct table_walk {
	int fd;
	uint32_t bucket; /* opaque: where the kernel goes on */
	bool started;
	bool over;
};

/* How many entries were read, 0 at the end, or -errno. */
static int table_next(struct table_walk *walk, void *keys, void *values)
{
	uint32_t count = BATCH_ENTRIES;
	int error;

	if (walk->over)
		return 0;
	error = bpf_map_lookup_batch(walk->fd, walk->started ? &walk->bucket : NULL, &walk->bucket,
				     keys, values, &count, NULL);
	walk->started = true;
	if (error && error != -ENOENT)
		return error;
	walk->over = error == -ENOENT;
	return (int)count;
}

/* Of the processes that /proc shows here, the one that the kernel calls tgid; 0 = none. */
static uint32_t search_here(struct capture *capture, uint32_t tgid)
{
	DIR *processes = opendir("/proc");
	struct dirent *entry;
	uint32_t found = 0, theirs;

	while (processes && !found && (entry = readdir(processes))) {
		uint32_t here = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (here && capture_resolve_tgid(capture, here, &theirs) == 0 && theirs == tgid)
			found = here;
	}
	if (processes)
		closedir(processes);
	return found;
}

/* As the caller's pid namespace numbers it. Its own may lie further inside, where it has another number. */
static uint32_t number_here(struct capture *capture, uint32_t tgid, const struct tree_entry *entry)
{
	uint32_t found;

	if (!capture->own_pid_namespace)
		return tgid;
	if (entry->ns_tgid && capture_resolve_tgid(capture, entry->ns_tgid, &found) == 0 && found == tgid)
		return entry->ns_tgid;
	return search_here(capture, tgid);
}

int capture_tree(struct capture *capture, uint32_t *tgids, size_t max)
{
	struct table_walk walk = {.fd = capture->tree_fd};
	struct tree_entry entries[BATCH_ENTRIES];
	uint32_t keys[BATCH_ENTRIES];
	size_t found = 0;
	int count;

	while ((count = table_next(&walk, keys, entries)) > 0) {
		for (int i = 0; i < count; i++, found++)
			if (found < max)
				tgids[found] = number_here(capture, keys[i], &entries[i]);
	}
	return count < 0 ? count : (int)found;
}

static int tell_living(const struct flow *flow, capture_take_living *take, void *context)
{
	struct wire_event event = {
		.version = WIRE_EVENT_VERSION,
		.kind = WIRE_END,
		.flags = flow->flags | WIRE_STILL_OPEN,
		.flow = flow->id,
		.start_ns = clock_monotonic_ns(),
		.received_bytes = flow->received,
		.read_bytes = flow->read,
		.send_base_seq = flow->send_base_seq,
		.receive_base_seq = flow->receive_base_seq,
		.netns = flow->tuple.netns,
		.local_port = flow->tuple.local_port,
		.remote_port = flow->tuple.remote_port,
		.lost_records = flow->lost_records,
	};

	event.when_ns = event.start_ns;
	event.offset = flow->tail > flow->accounted ? flow->tail : flow->accounted;
	event.seq = flow->send_base_seq + (uint32_t)event.offset;
	memcpy(event.local_address, flow->tuple.local_address, WIRE_ADDRESS_BYTES);
	memcpy(event.remote_address, flow->tuple.remote_address, WIRE_ADDRESS_BYTES);
	return take(context, &event);
}

/* Calls each for every flow that lives, until that returns an error. 0 or -errno. */
static int each_living(struct capture *capture, int (*each)(struct capture *capture, uint64_t key, const struct flow *flow, void *context),
		       void *context)
{
	struct table_walk walk = {.fd = capture->flows_fd};
	struct flow *table = calloc(BATCH_ENTRIES, sizeof(*table));
	uint64_t keys[BATCH_ENTRIES];
	int error = 0, count;

	if (!table)
		return -ENOMEM;
	while ((count = table_next(&walk, keys, table)) > 0)
		for (int i = 0; i < count && !error; i++)
			if (table[i].stage >= FLOW_OPEN)
				error = each(capture, keys[i], &table[i], context);
	free(table);
	return count < 0 ? count : error;
}

static int refresh(struct capture *capture, uint64_t key, const struct flow *flow, void *context)
{
	(void)flow, (void)context;
	return capture_refresh_flow(capture, key);
}

/* Flow after flow: an iterator over the table (iter/bpf_map_elem) would be one call, but some kernels refuse it. */
int capture_refresh_flows(struct capture *capture)
{
	if (capture->rights)
		return capture->rights->refresh(capture->rights->context);
	return each_living(capture, refresh, NULL);
}

struct teller {
	capture_take_living *take;
	void *context;
};

static int tell(struct capture *capture, uint64_t key, const struct flow *flow, void *context)
{
	const struct teller *teller = context;

	(void)capture, (void)key;
	return tell_living(flow, teller->take, teller->context);
}

int capture_living_flows(struct capture *capture, capture_take_living *take, void *context)
{
	struct teller teller = {take, context};

	if (capture->rights)
		return capture->rights->living(capture->rights->context, take, context);
	return each_living(capture, tell, &teller);
}

static int push_living(void *context, const struct wire_event *event)
{
	return sequencer_push(context, event, (struct bytes){});
}

int capture_flush_flows(struct capture *capture, struct sequencer *sequencer)
{
	int error = capture_refresh_flows(capture);

	if (!error)
		error = capture_drain(capture, sequencer); /* the holes that it found */
	return error < 0 ? error : capture_living_flows(capture, push_living, sequencer);
}

bool capture_in_scope(const struct capture *capture, uint32_t tgid)
{
	struct tree_entry entry;
	uint32_t key;

	return capture_resolve_tgid(capture, tgid, &key) == 0 &&
	       bpf_map_lookup_elem(capture->tree_fd, &key, &entry) == 0;
}
