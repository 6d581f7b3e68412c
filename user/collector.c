/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of the collector: poll of two descriptors, drain, let through, write.
 */
#include "collector_parts.h"
#include "clock.h"
#include "metrics.h"
#include "observer.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define TICK_NS (100 * 1000 * 1000ULL)
#define COUNTERS_NS (1000 * 1000 * 1000ULL)
#define METRICS_NS (5 * 1000 * 1000 * 1000ULL)
#define FINISH_NS (100 * 1000 * 1000ULL) /* longest wait for rings that are filled again and again */

/* ---- inputs ---- */

static void feed_tick(struct collector *collector, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_TICK, .now_ns = now_ns};

	input.tick.wall_offset_ns = clock_wall_offset_ns();
	collector->next_tick_ns = now_ns + TICK_NS;
	tenants_feed(collector->tenants, &input);
}

static int feed_counters(struct collector *collector, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = now_ns};
	int err = capture_counters(collector->capture, &input.counters);

	collector->counters_unread = err != 0;
	input.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] += collector->drain_failures;
	collector->next_counters_ns = now_ns + COUNTERS_NS;
	if (err)
		return err;
	metrics_grow(&collector->counters, &input.counters);
	tenants_feed(collector->tenants, &input);
	return 0;
}

/* The path of its cgroup, before the first input that rests on it. */
static void name_cgroup(struct collector *collector, const struct wire_event *event, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_CGROUP, .now_ns = now_ns, .cgroup = {.id = event->cgroup_id}};

	if (!event->cgroup_id || !cgroups_told_is_due(collector->cgroups, event->cgroup_id, event->tgid != 0))
		return;
	if (collector_ask_cgroup(collector, event->cgroup_id, event->tgid, &input.cgroup.path))
		return;
	cgroups_told_note(collector->cgroups, event->cgroup_id, input.cgroup.path.size);
	tenants_feed(collector->tenants, &input);
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

static bool is_canary(struct collector *collector, const struct wire_event *event)
{
	size_t i = 0;

	while (i < CANARY_FLOWS && collector->canary_flows[i] && collector->canary_flows[i] != event->flow)
		i++;
	if (event->flags & WIRE_CANARY && event->flow && i < CANARY_FLOWS)
		collector->canary_flows[i] = event->flow;
	return event->flags & WIRE_CANARY || (event->flow && i < CANARY_FLOWS && collector->canary_flows[i]);
}

static void write_all(struct collector *collector, uint64_t now_ns)
{
	uint64_t oldest_ns = sequencer_oldest_ns(collector->sequencer);

	if (collector_write(collector, now_ns))
		collector->written_ns = oldest_ns && oldest_ns < now_ns ? oldest_ns : now_ns;
}

/* Everything that may leave at until_ns. */
static void let_through(struct collector *collector, uint64_t until_ns, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = now_ns};
	unsigned int count = 0;
	uint64_t flow;

	while (sequencer_pull(collector->sequencer, until_ns, &input.wire.event, &input.wire.payload)) {
		if (is_canary(collector, input.wire.event)) {
			feed_canary(collector, &input);
			continue;
		}
		flow_census_see(collector->census, input.wire.event);
		name_cgroup(collector, input.wire.event, now_ns);
		collector->lag_ns = now_ns > input.wire.event->when_ns ? now_ns - input.wire.event->when_ns : 0;
		tenants_feed(collector->tenants, &input);
		while ((flow = tenants_next_muted(collector->tenants))) {
			capture_mute(collector->capture, flow);
			sequencer_mute(collector->sequencer, flow);
		}
		if (++count % OBSERVER_WRITE_EVENTS == 0)
			write_all(collector, now_ns);
	}
}

static int drain_rings(struct collector *collector)
{
	int n = capture_drain(collector->capture, collector->sequencer);

	if (n < 0)
		collector->drain_failures++;
	return n;
}

/* ---- the loop ---- */

/*
 * The monitor has looked at it, and says what is wrong with one. Each that is
 * taken stays, so one that is in force is not: logrotate asks for it every day.
 */
static void take_policy(struct collector *collector)
{
	struct judge_options judge = collector->options->pipeline.judge;
	struct policy *policy = NULL;
	struct policy_error error;
	int err;

	collector->policy_due = false;
	if (collector->policy && bytes_equal(policy_text(collector->policy), buffer_bytes(&collector->policy_text)))
		return;
	err = policy_parse(buffer_bytes(&collector->policy_text), &policy, &error);
	if (!err && collector->policy)
		err = policy_follow(policy, collector->policy);
	if (err) {
		policy_free(policy);
		fprintf(stderr, "nightclerk: the new policy cannot be used: %s; the one before it stays until a restart\n", strerror(-err));
		return;
	}
	judge.strict = collector->options->strict;
	policy_apply(policy, &judge);
	tenants_set_policy(collector->tenants, policy, judge.strict || collector->options->strict);
	collector->policy = policy;
}

static void obey(struct collector *collector)
{
	collector_take_orders(collector);
	if (collector->policy_due)
		take_policy(collector);
	if (collector->reopen)
		collector_reopen(collector);
	collector->reopen = false;
}

static void turn(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns(); /* before the drain: all that is older than the watermark is then in */

	obey(collector);
	drain_rings(collector);
	let_through(collector, capture_settled(collector->capture, now_ns), now_ns);
	if (now_ns >= collector->next_tick_ns)
		feed_tick(collector, now_ns);
	if (now_ns >= collector->next_counters_ns) {
		feed_counters(collector, now_ns);
		collector_look_at_files(collector, now_ns);
		collector_take_census(collector, now_ns);
		heap_tend(&collector->heap, now_ns);
	}
	write_all(collector, now_ns);
	if (collector->options->metrics && now_ns >= collector->next_metrics_ns) {
		collector_tell_metrics(collector);
		collector->next_metrics_ns = now_ns + METRICS_NS;
	}
}

/* ---- the end ---- */

static void drain_to_the_end(struct collector *collector)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + FINISH_NS;
	int n;

	do {
		n = drain_rings(collector);
		let_through(collector, capture_settled(collector->capture, now_ns), now_ns);
		now_ns = clock_monotonic_ns();
	} while (n > 0 && now_ns < deadline_ns);
	/* Without a monitor nobody can say what lives: a loss at its tail does not show, so all may have lost. */
	if (capture_flush_flows(collector->capture, collector->sequencer))
		collector->drain_failures++;
	sequencer_drain(collector->sequencer);
	now_ns = clock_monotonic_ns();
	let_through(collector, now_ns, now_ns);
}

static void finish(struct collector *collector)
{
	struct input drain = {.kind = INPUT_DRAIN}, closing = {.kind = INPUT_CLOSING};

	drain_to_the_end(collector);
	drain.now_ns = clock_monotonic_ns();
	feed_tick(collector, drain.now_ns);
	feed_counters(collector, drain.now_ns);
	tenants_feed(collector->tenants, &drain);
	collector_write(collector, drain.now_ns);
	collector_settle_stores(collector);
	closing.closing = (struct closing){
		.command_status = -1,
		.ring_size_bytes = capture_ring_size(collector->capture),
		.ring_peak_bytes = capture_ring_peak(collector->capture),
		.counters_unread = collector->counters_unread,
		.unwritten_bytes = collector_flush(collector),
		.cpu_ms = clock_process_ns() / 1000000,
	};
	closing.now_ns = clock_monotonic_ns();
	closing.closing.wall_ms = (closing.now_ns - collector->options->facts.start_ns) / 1000000;
	tenants_feed(collector->tenants, &closing);
	if (collector->options->metrics)
		collector_tell_metrics(collector);
	collector_write(collector, closing.now_ns);
	collector_settle_stores(collector);
	collector_close(collector);
	collector_close_stores(collector);
}

int collector_run(const struct collector_options *options)
{
	struct collector collector = {
		.options = options, .capture = options->capture, .wire = options->wire, .canary = options->canary,
		.policy = options->pipeline.policy, .facts = options->facts};
	struct pollfd fds[] = {{.fd = capture_fd(options->capture), .events = POLLIN}, {.fd = options->wire->fd, .events = POLLIN}};
	char reason[DROP_RIGHTS_REASON_MAX];

	if (collector_prepare(&collector, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return 1;
	}
	/* What an earlier life left in the rings is written when this one has written it. */
	collector.written_ns = options->gap.until_ns ? options->gap.from_ns : clock_monotonic_ns();
	feed_counters(&collector, clock_monotonic_ns()); /* before the first record: what that one had counted is none of this one's */
	collector_say(&collector, MONITOR_READY, (struct bytes){});
	while (!collector.finish && !collector.monitor_gone) {
		poll(fds, sizeof(fds) / sizeof(fds[0]), OBSERVER_PERIOD_MS);
		turn(&collector);
	}
	if (collector.monitor_gone)
		fprintf(stderr, "nightclerk: the monitor is gone: the collector writes what it has and ends\n");
	finish(&collector);
	return 0;
}
