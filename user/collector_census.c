/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A walk over the kernel's table of flows, by the monitor. An end can be lost
 * without being counted (a probe that was skipped), so from time to time there
 * is a count without any other reason.
 */
#include "collector_parts.h"

#include <stdio.h>

#define CENSUS_NS (60 * 1000000000ULL)
#define WHOLE_CENSUS_NS (10 * CENSUS_NS)

static uint64_t losses(const struct counters *counters)
{
	return counters->value[WIRE_COUNTER_LIFECYCLE_LOST] + counters->value[WIRE_COUNTER_NO_FLOW] + counters->recursion_misses;
}

static int note_living(void *context, const struct wire_event *event)
{
	flow_census_lives(context, event->flow);
	return 0;
}

/* Through the sequencer, which may remember the flow as well. */
static void end_lost(struct collector *collector, uint64_t now_ns)
{
	struct wire_event end;
	size_t count = 0;

	for (; flow_census_next_lost(collector->census, now_ns, &end); count++)
		if (sequencer_push(collector->sequencer, &end, (struct bytes){}))
			collector->drain_failures++;
	if (count)
		fprintf(stderr, "nightclerk: %zu ends of connections were lost: they are closed now, and their open calls cannot be judged\n",
			count);
}

void collector_take_census(struct collector *collector, uint64_t now_ns)
{
	bool reason = losses(&collector->counters) != collector->losses || flow_census_doubts(collector->census) ||
		      now_ns >= collector->whole_census_ns;

	if (now_ns < collector->next_census_ns || !reason || flow_census_size(collector->census) == 0)
		return;
	collector->next_census_ns = now_ns + CENSUS_NS;
	collector->whole_census_ns = now_ns + WHOLE_CENSUS_NS;
	collector->losses = losses(&collector->counters);
	flow_census_begin(collector->census);
	if (capture_living_flows(collector->capture, note_living, collector->census))
		flow_census_cancel(collector->census);
	else
		end_lost(collector, now_ns);
}
