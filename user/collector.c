/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of the collector: poll of two descriptors, drain, let through, write.
 * The order of the start matters: what opens files of its own accord (time
 * zones, libcrypto, the C library) does it while it still may.
 */
#include "collector_parts.h"
#include "clock.h"
#include "observer.h"
#include "policy_file.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define TICK_NS (100 * 1000 * 1000ULL)
#define COUNTERS_NS (1000 * 1000 * 1000ULL)
#define FINISH_NS (100 * 1000 * 1000ULL) /* longest wait for rings that are filled again and again */

static int64_t wall_offset(void)
{
	return clock_wall_ns() - (int64_t)clock_monotonic_ns();
}

/* ---- inputs ---- */

static void feed(struct collector *collector, const struct input *input)
{
	pipeline_feed(collector->pipeline, input);
}

static void feed_tick(struct collector *collector, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_TICK, .now_ns = now_ns};

	collector->wall_offset_ns = input.tick.wall_offset_ns = wall_offset();
	collector->next_tick_ns = now_ns + TICK_NS;
	feed(collector, &input);
}

static int feed_counters(struct collector *collector, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = now_ns};
	int err = capture_counters(collector->capture, &input.counters);

	collector->counters_unread = err != 0;
	input.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] += collector->drain_failures;
	collector->next_counters_ns = now_ns + COUNTERS_NS;
	if (!err)
		feed(collector, &input);
	return err;
}

static void name_cgroup(struct collector *collector, const struct wire_event *event, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_CGROUP, .now_ns = now_ns, .cgroup = {.id = event->cgroup_id}};
	uint64_t *asked = &collector->asked_cgroups[event->cgroup_id % ASKED_CGROUPS];

	if (!event->cgroup_id || *asked == event->cgroup_id)
		return;
	*asked = event->cgroup_id;
	if (collector_ask_cgroup(collector, event->cgroup_id, event->tgid, &input.cgroup.path) == 0)
		feed(collector, &input);
}

static void feed_canary(struct collector *collector, const struct input *input)
{
	if (!collector->canary)
		return;
	canary_feed(collector->canary, input);
	if (canary_seen(collector->canary)) {
		collector->canary = NULL;
		collector_say(collector, MONITOR_CANARY_SEEN, (struct bytes){});
	}
}

/* Everything that may leave at until_ns. */
static void let_through(struct collector *collector, uint64_t until_ns, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = now_ns};
	uint64_t flow;

	while (sequencer_pull(collector->sequencer, until_ns, &input.wire.event, &input.wire.payload)) {
		if (input.wire.event->flags & WIRE_CANARY) {
			feed_canary(collector, &input);
			continue;
		}
		name_cgroup(collector, input.wire.event, now_ns);
		feed(collector, &input);
		while ((flow = pipeline_next_muted(collector->pipeline))) {
			capture_mute(collector->capture, flow);
			sequencer_mute(collector->sequencer, flow);
		}
	}
}

static int drain_rings(struct collector *collector)
{
	int n = capture_drain(collector->capture, collector->sequencer);

	if (n < 0)
		collector->drain_failures++;
	return n;
}

/* ---- orders ---- */

static void reopen_files(struct collector *collector)
{
	for (int file = 0; file < MONITOR_FILE_COUNT; file++)
		collector->book.files[file].reopen = collector->book.files[file].output != NULL;
	collector->reopen = false;
}

static void obey(struct collector *collector)
{
	collector_take_orders(collector);
	if (collector->reopen)
		reopen_files(collector);
}

/* ---- the loop ---- */

static void write_all(struct collector *collector, uint64_t now_ns)
{
	uint64_t oldest_ns = sequencer_oldest_ns(collector->sequencer);

	collector_write(collector, &collector->book, now_ns);
	if (collector_is_written(&collector->book))
		collector->settled_ns = oldest_ns && oldest_ns < now_ns ? oldest_ns : now_ns;
}

static void turn(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns(); /* before the drain: all that is older than the watermark is then in */

	obey(collector);
	drain_rings(collector);
	let_through(collector, capture_settled(collector->capture, now_ns), now_ns);
	if (now_ns >= collector->next_tick_ns)
		feed_tick(collector, now_ns);
	if (now_ns >= collector->next_counters_ns)
		feed_counters(collector, now_ns);
	write_all(collector, now_ns);
}

static void drain_to_the_end(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + FINISH_NS;
	int n;

	do {
		n = drain_rings(collector);
		let_through(collector, capture_settled(collector->capture, now_ns), now_ns);
		now_ns = clock_monotonic_ns();
	} while (n > 0 && now_ns < deadline_ns);
	/* Without a monitor nobody can say what lives: its tail then shows as a hole, or not at all. */
	if (capture_flush_flows(collector->capture, collector->sequencer))
		collector->drain_failures++;
	sequencer_drain(collector->sequencer);
	now_ns = clock_monotonic_ns();
	let_through(collector, now_ns, now_ns);
}

static uint64_t own_cpu_ms(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

static void finish(struct collector *collector)
{
	struct input drain = {.kind = INPUT_DRAIN}, closing = {.kind = INPUT_CLOSING};

	drain_to_the_end(collector);
	drain.now_ns = clock_monotonic_ns();
	feed_tick(collector, drain.now_ns);
	feed_counters(collector, drain.now_ns);
	feed(collector, &drain);
	collector_write(collector, &collector->book, drain.now_ns);
	closing.closing = (struct closing){
		.command_status = -1,
		.ring_size_bytes = capture_ring_size(collector->capture),
		.ring_peak_bytes = capture_ring_peak(collector->capture),
		.counters_unread = collector->counters_unread,
		.unwritten_bytes = collector_flush(&collector->book),
		.cpu_ms = own_cpu_ms(),
	};
	closing.now_ns = clock_monotonic_ns();
	closing.closing.wall_ms = (closing.now_ns - collector->options->facts.start_ns) / 1000000;
	feed(collector, &closing);
	collector_write(collector, &collector->book, closing.now_ns);
	collector_close(&collector->book);
}

/* ---- the start ---- */

static int open_stages(struct collector *collector)
{
	collector->sequencer = sequencer_new();
	collector->pipeline = pipeline_new(&collector->options->facts, &collector->options->pipeline, &collector->out);
	return collector->sequencer && collector->pipeline ? 0 : -ENOMEM;
}

/* What opens something at its first use does so now. */
static int warm_up(struct collector *collector, char *reason)
{
	int err = open_stages(collector);

	tzset();
	if (err)
		snprintf(reason, DROP_RIGHTS_REASON_MAX, "the collector cannot start: %s", strerror(-err));
	return err;
}

static int become_unprivileged(struct collector *collector, char *reason)
{
	const int keep[] = {collector->wire->fd, capture_fd(collector->capture)};
	int err = drop_rights_close_all_but(keep, sizeof(keep) / sizeof(keep[0]));

	prctl(PR_SET_NAME, COLLECTOR_NAME);
	collector->rights = collector_rights(collector);
	capture_without_rights(collector->capture, &collector->rights);
	if (err)
		snprintf(reason, DROP_RIGHTS_REASON_MAX, "the collector cannot close its descriptors: %s", strerror(-err));
	return err ? err : drop_rights(&collector->options->account, reason);
}

static void work(struct collector *collector)
{
	struct pollfd fds[] = {{.fd = capture_fd(collector->capture), .events = POLLIN}, {.fd = collector->wire->fd, .events = POLLIN}};

	collector_say(collector, MONITOR_READY, (struct bytes){});
	while (!collector->finish && !collector->monitor_gone) {
		poll(fds, sizeof(fds) / sizeof(fds[0]), OBSERVER_PERIOD_MS);
		turn(collector);
	}
}

int collector_run(const struct collector_options *options)
{
	struct collector collector = {
		.options = options,
		.capture = options->capture,
		.wire = options->wire,
		.canary = options->canary,
		.wall_offset_ns = options->facts.wall_offset_ns,
		.settled_ns = clock_monotonic_ns(),
	};
	char reason[DROP_RIGHTS_REASON_MAX];

	collector.book = (struct book){.name = "all", .out = &collector.out};
	if (warm_up(&collector, reason) || become_unprivileged(&collector, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return 1;
	}
	work(&collector);
	if (collector.monitor_gone)
		fprintf(stderr, "nightclerk: the monitor is gone: the collector writes what it has and ends\n");
	finish(&collector);
	return 0;
}
