/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which connection a flow is an end of, and what waits until its client is
 * known. A connection leaves as it leaves connections.c: when each of its ends
 * that was seen has ended.
 */
#include "tenants_private.h"

#include <errno.h>
#include <utlist.h>

static struct tenant_connection *add_connection(struct tenant_flows *flows, const struct connection_key *key)
{
	struct tenant_connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->key = *key;
	HASH_ADD(hh, flows->connections, key, sizeof(connection->key), connection);
	if (connection->hh.tbl)
		return connection;
	free(connection);
	return NULL;
}

/* One that nobody finds: of a flow that claims an end which another has. */
static struct tenant_connection *double_of(const struct tenant_connection *claimed)
{
	struct tenant_connection *connection = calloc(1, sizeof(*connection));

	if (connection && claimed->tenant) {
		connection->tenant = claimed->tenant;
		connection->tenant->connections++;
	}
	return connection;
}

static void free_waiting(struct tenant_flows *flows, struct tenant_connection *connection)
{
	struct waiting_event *waiting = tenant_flows_take(flows, connection), *next;

	for (; waiting; waiting = next) {
		next = waiting->next;
		free(waiting);
	}
}

static void remove_connection(struct tenant_flows *flows, struct tenant_connection *connection)
{
	free_waiting(flows, connection);
	for (int side = 0; side < 2; side++)
		if (connection->flow[side]) {
			HASH_DEL(flows->flows, connection->flow[side]);
			free(connection->flow[side]);
		}
	if (connection->hh.tbl)
		HASH_DEL(flows->connections, connection);
	if (connection->tenant)
		connection->tenant->connections--;
	free(connection);
}

struct tenant_flow *tenant_flows_find(struct tenant_flows *flows, const struct wire_event *event)
{
	struct tenant_connection *connection;
	struct connection_key key;
	struct tenant_flow *flow;
	enum connection_side side;

	HASH_FIND(hh, flows->flows, &event->flow, sizeof(event->flow), flow);
	if (flow)
		return flow;
	side = connection_side_of(event);
	connection_key_of(event, side, &key);
	HASH_FIND(hh, flows->connections, &key, sizeof(key), connection);
	if (!connection)
		connection = add_connection(flows, &key);
	else if (connection->flow[side])
		connection = double_of(connection);
	flow = connection ? calloc(1, sizeof(*flow)) : NULL;
	if (flow) {
		*flow = (struct tenant_flow){.id = event->flow, .connection = connection, .side = side};
		flow->bytes = event->flags & WIRE_JOINED_LATE ? event->offset : 0;
		HASH_ADD(hh, flows->flows, id, sizeof(flow->id), flow);
	}
	if (flow && flow->hh.tbl) {
		connection->flow[side] = flow;
		return flow;
	}
	free(flow);
	if (connection && !connection->flow[SIDE_CLIENT] && !connection->flow[SIDE_SERVER])
		remove_connection(flows, connection);
	return NULL;
}

/* The end of what the event counts; bytes beyond 2^64 are none. */
static uint64_t end_of(const struct wire_event *event)
{
	switch (event->kind) {
	case WIRE_DATA:
	case WIRE_HOLE:
		return event->length_bytes > UINT64_MAX - event->offset ? event->offset : event->offset + event->length_bytes;
	case WIRE_STATE:
	case WIRE_END:
		return event->offset;
	default:
		return 0;
	}
}

void tenant_flow_count(struct tenant_flow *flow, const struct wire_event *event, struct counters *counters)
{
	enum wire_cause cause = event->cause && event->cause < WIRE_CAUSE_COUNT ? event->cause : WIRE_CAUSE_MISSED;
	uint64_t end = end_of(event), more, seen;

	if (end <= flow->bytes)
		return;
	more = end - flow->bytes;
	seen = event->kind == WIRE_DATA && event->captured_bytes < more ? event->captured_bytes
	     : event->kind == WIRE_DATA					? more
									: 0;
	flow->bytes = end;
	counters->value[WIRE_COUNTER_ACCEPTED_BYTES] += more;
	counters->value[WIRE_COUNTER_LOST_BYTES + cause] += more - seen;
}

/* ---- waiting ---- */

int tenant_flows_wait(struct tenant_flows *flows, struct tenant_connection *connection, const struct input *input)
{
	struct bytes payload = input->wire.payload;
	struct waiting_event *waiting = malloc(sizeof(*waiting) + payload.size);

	if (!waiting)
		return -ENOMEM;
	waiting->event = *input->wire.event;
	waiting->size = payload.size;
	if (payload.size)
		memcpy(waiting->payload, payload.data, payload.size);
	if (!connection->first) {
		connection->since_ns = input->now_ns;
		connection->last = &connection->first;
		DL_APPEND(flows->waiting, connection);
	}
	waiting->next = NULL;
	*connection->last = waiting;
	connection->last = &waiting->next;
	connection->waiting_count++;
	connection->waiting_bytes += sizeof(*waiting) + payload.size;
	flows->waiting_bytes += sizeof(*waiting) + payload.size;
	return 0;
}

struct waiting_event *tenant_flows_take(struct tenant_flows *flows, struct tenant_connection *connection)
{
	struct waiting_event *first = connection->first;

	if (!first)
		return NULL;
	DL_DELETE(flows->waiting, connection);
	flows->waiting_bytes -= connection->waiting_bytes;
	connection->waiting_count = connection->waiting_bytes = 0;
	connection->first = NULL;
	return first;
}

/* ---- the end ---- */

bool tenant_flows_settle(struct tenant_flows *flows, struct tenant_flow *flow, const struct wire_event *event)
{
	struct tenant_connection *connection = flow->connection;
	const struct tenant_flow *other = connection->flow[!flow->side];

	if (event->kind != WIRE_END)
		return false;
	flow->ended = true;
	if (other && !other->ended)
		return false;
	remove_connection(flows, connection);
	return true;
}

void tenant_flows_done(struct tenant_flows *flows)
{
	while (flows->flows)
		remove_connection(flows, flows->flows->connection);
}
