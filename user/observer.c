/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every input passes one door here (observer_feed), where it is recorded before the
 * pipeline sees it. What the pipeline made is written at the end of each turn.
 */
#include "observer_parts.h"
#include "clock.h"
#include "gate.h"

#include <errno.h>
#include <linux/limits.h>
#include <signal.h>

#define TICK_NS (100 * 1000 * 1000ULL)
#define COUNTERS_NS (1000 * 1000 * 1000ULL)
#define FINISH_NS (100 * 1000 * 1000ULL) /* longest wait for rings that are filled again and again */

/* ---- inputs ---- */

int observer_feed(struct observer *observer, const struct input *input)
{
	if (observer->recording) {
		int err = recording_write(observer->recording, input);

		if (err) {
			fprintf(stderr, "nightclerk: the recording stops here: %s; the run goes on\n", strerror(-err));
			recording_writer_free(observer->recording);
			observer->recording = NULL;
		}
	}
	return pipeline_feed(observer->pipeline, input);
}

/* The path of its cgroup, before the first input that rests on it. */
static void name_cgroup(struct observer *observer, const struct wire_event *event, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_CGROUP, .now_ns = now_ns, .cgroup = {.id = event->cgroup_id}};
	char path[PATH_MAX];

	if (!cgroup_names_find(observer->cgroups, event->cgroup_id, event->tgid, path, sizeof(path)))
		return;
	input.cgroup.path = bytes_of_string(path);
	observer_feed(observer, &input);
}

static int feed_tick(struct observer *observer, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_TICK, .now_ns = now_ns};

	observer->wall_offset_ns = clock_wall_offset_ns();
	input.tick.wall_offset_ns = observer->wall_offset_ns;
	observer->next_tick_ns = now_ns + TICK_NS;
	return observer_feed(observer, &input);
}

static int drain_rings(struct observer *observer)
{
	int n = capture_drain(observer->capture, observer->sequencer);

	if (n < 0)
		observer->drain_failures++;
	return n;
}

static int feed_counters(struct observer *observer, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = now_ns};
	int err = capture_counters(observer->capture, &input.counters);

	observer->counters_unread = err != 0;
	input.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] += observer->drain_failures;
	observer->next_counters_ns = now_ns + COUNTERS_NS;
	return err ? err : observer_feed(observer, &input);
}

/* Everything that may leave at until_ns. */
void observer_let_through(struct observer *observer, uint64_t until_ns, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = now_ns};
	unsigned int count = 0;
	uint64_t flow;

	until_ns = capture_settled(observer->capture, until_ns);
	while (sequencer_pull(observer->sequencer, until_ns, &input.wire.event, &input.wire.payload)) {
		if (input.wire.event->flags & WIRE_CANARY) {
			if (observer->canary)
				canary_feed(observer->canary, &input);
			continue;
		}
		name_cgroup(observer, input.wire.event, now_ns);
		observer_feed(observer, &input);
		while ((flow = pipeline_next_muted(observer->pipeline))) {
			capture_mute(observer->capture, flow);
			sequencer_mute(observer->sequencer, flow);
		}
		if (++count % OBSERVER_WRITE_EVENTS == 0)
			observer_write_out(observer);
	}
}

/* ---- mark and sync ---- */

bool observer_admits(void *context, pid_t pid)
{
	const struct observer *observer = context;

	return capture_in_scope(observer->capture, (uint32_t)pid);
}

static void take_requests(struct observer *observer, uint64_t now_ns)
{
	struct control_request request;

	while (observer->control && control_next(observer->control, now_ns, &request) > 0) {
		if (observer->waiting_count == WAITING_REQUESTS_MAX)
			control_answer(&request, CONTROL_BUSY);
		else
			observer->waiting[observer->waiting_count++] = (struct waiting_request){request, now_ns};
	}
}

static void grant_first(struct observer *observer, uint64_t now_ns)
{
	struct control_request request = observer->waiting[0].request;
	struct input mark = {.kind = INPUT_MARK, .now_ns = now_ns, .mark = {buffer_bytes(&request.label)}};

	if (request.verb == CONTROL_MARK)
		observer_feed(observer, &mark);
	observer_write_out(observer);
	control_answer(&request, observer_is_short(observer) ? CONTROL_UNWRITTEN : CONTROL_DONE);
	observer->waiting_count--;
	memmove(observer->waiting, observer->waiting + 1, observer->waiting_count * sizeof(observer->waiting[0]));
}

/*
 * Up to each request that waits, then the request, then the rest: a mark stands
 * between the calls before it and the calls after it, and a sync is answered
 * when all before it is judged and written.
 */
static void go_through(struct observer *observer, uint64_t now_ns, bool at_end)
{
	while (observer->waiting_count) {
		uint64_t asked_ns = observer->waiting[0].asked_ns;
		uint64_t until_ns = asked_ns + SEQUENCER_WATERMARK_NS;
		uint64_t oldest_ns;

		if (now_ns < until_ns && !at_end) {
			observer_let_through(observer, now_ns, now_ns);
			return;
		}
		observer_let_through(observer, until_ns, now_ns);
		oldest_ns = sequencer_oldest_ns(observer->sequencer);
		if (oldest_ns && oldest_ns <= asked_ns && now_ns < asked_ns + SEQUENCER_HOLD_NS && !at_end)
			return;
		if (!at_end && !observer_store_has_all(observer, now_ns))
			return;
		grant_first(observer, now_ns);
	}
	observer_let_through(observer, now_ns, now_ns);
}

int observer_turn(struct observer *observer)
{
	uint64_t now_ns;
	int n;

	now_ns = clock_monotonic_ns(); /* before the drain: all that is older than the watermark is then in */
	take_requests(observer, now_ns);
	n = drain_rings(observer);
	go_through(observer, now_ns, false);
	if (now_ns >= observer->next_tick_ns)
		feed_tick(observer, now_ns);
	if (now_ns >= observer->next_counters_ns) {
		feed_counters(observer, now_ns);
		heap_tend(&observer->heap, now_ns);
	}
	if (observer->recording)
		recording_flush(observer->recording);
	observer_write_out(observer);
	return n < 0 ? n : 0;
}

size_t observer_open_calls(const struct observer *observer)
{
	return pipeline_open_calls(observer->pipeline) + sequencer_held_count(observer->sequencer);
}

/* In the table of the tree; one that ended before the probes were on stays there. */
static bool is_gone(uint32_t pid)
{
	return pid && kill((pid_t)pid, 0) && errno == ESRCH;
}

static void name_survivor(uint32_t pid, struct survivor *survivor)
{
	char path[64];
	FILE *file;

	survivor->pid = pid;
	snprintf(path, sizeof(path), "/proc/%u/comm", pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fgets(survivor->comm, sizeof(survivor->comm), file))
		survivor->comm[strcspn(survivor->comm, "\n")] = '\0';
	fclose(file);
}

static void find_survivors(struct observer *observer, struct closing *closing)
{
	uint32_t tgids[CLOSING_SURVIVORS_MAX], kept = 0;
	int count = observer->options.capture.scope == CAPTURE_TREE
			    ? capture_tree(observer->capture, tgids, CLOSING_SURVIVORS_MAX) : 0;

	bool more = count > CLOSING_SURVIVORS_MAX; /* then every place is taken, be it by one that is gone */

	for (int i = 0; i < count && i < CLOSING_SURVIVORS_MAX; i++)
		if (more || !is_gone(tgids[i]))
			name_survivor(tgids[i], &closing->survivors[kept++]);
	closing->survivor_count = more ? (uint32_t)count : kept;
}

/* Until both rings are empty; where what lives on fills them without end, what was in them at the start. */
static int drain_to_the_end(struct observer *observer)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + FINISH_NS;
	int n;

	do {
		n = drain_rings(observer);
		go_through(observer, now_ns, false);
		now_ns = clock_monotonic_ns();
	} while (n > 0 && now_ns < deadline_ns);
	return n < 0 ? n : 0;
}

int observer_finish(struct observer *observer, int command_status)
{
	struct input closing = {.kind = INPUT_CLOSING};
	struct input drain = {.kind = INPUT_DRAIN};
	int err, n;

	err = drain_to_the_end(observer);
	n = capture_flush_flows(observer->capture, observer->sequencer);
	if (n < 0) {
		observer->drain_failures++;
		err = n;
	}
	sequencer_drain(observer->sequencer);
	go_through(observer, clock_monotonic_ns(), true);
	drain.now_ns = clock_monotonic_ns();
	feed_tick(observer, drain.now_ns);
	n = feed_counters(observer, drain.now_ns);
	closing.closing.counters_unread = observer->counters_unread;
	err = n < 0 ? n : err;
	observer_feed(observer, &drain);
	closing.closing.command_status = command_status;
	find_survivors(observer, &closing.closing);
	closing.closing.ring_size_bytes = capture_ring_size(observer->capture);
	closing.closing.ring_peak_bytes = capture_ring_peak(observer->capture);
	observer_settle_store(observer, &closing.closing);
	observer_write_out(observer);
	closing.closing.unwritten_bytes = observer_wait_for_readers(observer);
	closing.now_ns = clock_monotonic_ns();
	closing.closing.wall_ms = (closing.now_ns - observer->facts.start_ns) / 1000000;
	closing.closing.cpu_ms = clock_process_ns() / 1000000;
	observer_feed(observer, &closing);
	observer_write_out(observer);
	observer_close_store(observer);
	observer_wait_for_readers(observer);
	return err;
}

void observer_detach(struct observer *observer)
{
	capture_close(observer->capture);
	observer->capture = NULL;
}

int observer_exit_status(const struct observer *observer)
{
	int status = pipeline_exit_status(observer->pipeline);

	if (observer_is_short(observer) && status != GATE_EXIT_FINDING &&
	    !observer->options.pipeline.judge.allow_incomplete)
		return GATE_EXIT_INCOMPLETE;
	return status;
}

struct bytes observer_alerts(const struct observer *observer)
{
	return buffer_bytes(&observer->out.alerts);
}

void observer_take_alerts(struct observer *observer)
{
	buffer_clear(&observer->out.alerts);
}

struct bytes observer_calls(const struct observer *observer)
{
	return buffer_bytes(&observer->out.calls);
}

void observer_take_calls(struct observer *observer)
{
	buffer_clear(&observer->out.calls);
}

void observer_set_style(struct observer *observer, struct alert_style style)
{
	pipeline_set_style(observer->pipeline, style);
}

const char *observer_summary_line(const struct observer *observer)
{
	return pipeline_summary_line(observer->pipeline);
}

int observer_fd(const struct observer *observer)
{
	return capture_fd(observer->capture);
}

int observer_control_fd(const struct observer *observer)
{
	return observer->control ? control_fd(observer->control) : -1;
}

struct capture *observer_capture(struct observer *observer)
{
	return observer->capture;
}
