/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table by flow id, and a number to each: counts in a row that did not find it. */
#include "flow_census.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

#define COUNTS_MISSED 2

struct watched {
	uint64_t id;
	uint64_t end; /* of its stream, as far as it was seen */
	unsigned int missed;
	UT_hash_handle hh;
};

struct flow_census {
	struct watched *flows;
	struct watched *last; /* found; NULL = none, or it is gone */
};

struct flow_census *flow_census_new(void)
{
	return calloc(1, sizeof(struct flow_census));
}

static void forget(struct flow_census *census, struct watched *flow)
{
	HASH_DEL(census->flows, flow);
	if (census->last == flow)
		census->last = NULL;
	free(flow);
}

void flow_census_free(struct flow_census *census)
{
	while (census && census->flows)
		forget(census, census->flows);
	free(census);
}

static struct watched *find(struct flow_census *census, uint64_t id)
{
	struct watched *flow = census->last;

	if (flow && flow->id == id)
		return flow;
	HASH_FIND(hh, census->flows, &id, sizeof(id), flow);
	census->last = flow;
	return flow;
}

static struct watched *add(struct flow_census *census, uint64_t id)
{
	struct watched *flow = calloc(1, sizeof(*flow));

	if (!flow)
		return NULL;
	flow->id = id;
	HASH_ADD(hh, census->flows, id, sizeof(flow->id), flow);
	if (flow->hh.tbl)
		return flow;
	free(flow);
	return NULL;
}

static uint64_t end_of(const struct wire_event *event)
{
	uint64_t more = event->kind == WIRE_DATA || event->kind == WIRE_HOLE ? event->length_bytes : 0, end;

	return __builtin_add_overflow(event->offset, more, &end) ? UINT64_MAX : end;
}

void flow_census_see(struct flow_census *census, const struct wire_event *event)
{
	struct watched *flow;

	if (!event->flow || event->kind == WIRE_CONNECT)
		return;
	flow = find(census, event->flow);
	if (event->kind == WIRE_END) {
		if (flow)
			forget(census, flow);
		return;
	}
	if (!flow)
		flow = add(census, event->flow);
	if (!flow)
		return;
	flow->missed = 0;
	if (end_of(event) > flow->end)
		flow->end = end_of(event);
}

size_t flow_census_size(const struct flow_census *census)
{
	return HASH_COUNT(census->flows);
}

void flow_census_begin(struct flow_census *census)
{
	for (struct watched *flow = census->flows; flow; flow = flow->hh.next)
		flow->missed++;
}

void flow_census_lives(struct flow_census *census, uint64_t id)
{
	struct watched *flow = find(census, id);

	if (flow)
		flow->missed = 0;
}

bool flow_census_next_lost(struct flow_census *census, uint64_t now_ns, struct wire_event *ret_end)
{
	struct watched *flow = census->flows;

	while (flow && flow->missed < COUNTS_MISSED)
		flow = flow->hh.next;
	if (!flow)
		return false;
	*ret_end = (struct wire_event){
		.version = WIRE_EVENT_VERSION,
		.kind = WIRE_END,
		.flags = WIRE_STILL_OPEN | WIRE_END_UNSEEN,
		.flow = flow->id,
		.offset = flow->end,
		.start_ns = now_ns,
		.when_ns = now_ns,
	};
	forget(census, flow);
	return true;
}

void flow_census_cancel(struct flow_census *census)
{
	for (struct watched *flow = census->flows; flow; flow = flow->hh.next)
		flow->missed = 0;
}

bool flow_census_doubts(const struct flow_census *census)
{
	for (const struct watched *flow = census->flows; flow; flow = flow->hh.next)
		if (flow->missed)
			return true;
	return false;
}
