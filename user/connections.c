/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two hash tables over the same connections: by flow id, one entry per end,
 * and by what both ends share. A connection leaves both when its ends are gone.
 */
#include "connections.h"

#include <assert.h>
#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

struct entry;

struct flow {
	uint64_t id;
	enum connection_side side;
	struct entry *entry;
	UT_hash_handle hh;
};

struct entry {
	struct connection_key key;
	struct connection *connection;
	struct flow *flow[2];
	UT_hash_handle hh;
};

struct connections {
	struct connection_shared shared;
	struct flow *flows;
	struct flow *last_used; /* of them; NULL = none, or it is gone */
	struct entry *entries;
	struct connection_result current;
	bool lent;
	uint64_t now_ns; /* of the last input */
};

struct connections *connections_new(const uint8_t boot_id[16], struct fingerprinter *fingerprinter)
{
	struct connections *connections = calloc(1, sizeof(*connections));

	if (!connections)
		return NULL;
	connections->shared.boot_id = boot_id;
	connections->shared.fingerprinter = fingerprinter;
	connections->shared.memory.limit = LIMIT_HELD_CALLS_BYTES;
	return connections;
}

static void remove_flow(struct connections *connections, struct flow *flow)
{
	if (!flow)
		return;
	if (connections->last_used == flow)
		connections->last_used = NULL;
	HASH_DEL(connections->flows, flow);
	free(flow);
}

static void remove_entry(struct connections *connections, struct entry *entry)
{
	remove_flow(connections, entry->flow[SIDE_CLIENT]);
	remove_flow(connections, entry->flow[SIDE_SERVER]);
	HASH_DEL(connections->entries, entry);
	connection_free(entry->connection);
	free(entry);
}

void connections_free(struct connections *connections)
{
	struct entry *entry, *next;
	struct flow *flow, *next_flow;
	struct connection_result result;

	if (!connections)
		return;
	while (connections_next(connections, &result) != CONNECTION_NOTHING)
		;
	HASH_ITER(hh, connections->entries, entry, next)
		remove_entry(connections, entry);
	HASH_ITER(hh, connections->flows, flow, next_flow) /* those without a connection */
		remove_flow(connections, flow);
	assert(connections->shared.memory.bytes == 0);
	connection_shared_done(&connections->shared);
	free(connections);
}

static void name_ends(const struct connection_key *key, struct connection_name *name)
{
	memcpy(name->client.address, key->client_address, WIRE_ADDRESS_BYTES);
	memcpy(name->server.address, key->server_address, WIRE_ADDRESS_BYTES);
	name->client.port = key->client_port;
	name->server.port = key->server_port;
}

static struct entry *add_entry(struct connections *connections, const struct connection_key *key)
{
	struct entry *entry = calloc(1, sizeof(*entry));
	struct connection_name name = {0};

	if (!entry)
		return NULL;
	entry->key = *key;
	name_ends(key, &name);
	entry->connection = connection_new(&connections->shared, &name, key->netns);
	if (!entry->connection) {
		free(entry);
		return NULL;
	}
	HASH_ADD(hh, connections->entries, key, sizeof(entry->key), entry);
	if (entry->hh.tbl)
		return entry;
	connection_free(entry->connection);
	free(entry);
	return NULL;
}

/*
 * Two flows that claim one end of a connection, as only a recording can say:
 * nothing of the second is read, and it is said once.
 */
static void note_double(struct connections *connections, const struct flow *flow, const struct connection_key *key,
			uint64_t now_ns)
{
	struct connection_result result = {
		.step = CONNECTION_BROKEN,
		.from_client = flow->side == SIDE_CLIENT,
		.matters = true,
		.reason = "two flows claim one end of a connection",
		.now_ns = now_ns,
	};

	name_ends(key, &result.name);
	result.flow[flow->side] = flow->id;
	connection_push(&connections->shared, &result);
}

/*
 * The flow of an event; on first sight it is added, with its connection, or
 * without one where another flow is that end of it. NULL when out of memory.
 */
static struct flow *find_flow(struct connections *connections, const struct wire_event *event)
{
	struct flow *flow = connections->last_used;
	struct entry *entry;
	struct connection_key key;
	bool is_double;

	if (flow && flow->id == event->flow) /* the next piece of one body, or of one stream of events */
		return flow;
	HASH_FIND(hh, connections->flows, &event->flow, sizeof(event->flow), flow);
	if (flow) {
		connections->last_used = flow;
		return flow;
	}
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->id = event->flow;
	flow->side = connection_side_of(event);
	connection_key_of(event, flow->side, &key);
	HASH_FIND(hh, connections->entries, &key, sizeof(key), entry);
	is_double = entry && entry->flow[flow->side];
	flow->entry = is_double ? NULL : entry ? entry : add_entry(connections, &key);
	if (!flow->entry && !is_double) {
		free(flow);
		return NULL;
	}
	entry = flow->entry;
	HASH_ADD(hh, connections->flows, id, sizeof(flow->id), flow);
	if (!flow->hh.tbl) {
		free(flow);
		if (entry && !entry->flow[SIDE_CLIENT] && !entry->flow[SIDE_SERVER])
			remove_entry(connections, entry);
		return NULL;
	}
	if (is_double) {
		note_double(connections, flow, &key, event->when_ns);
		return flow;
	}
	entry->flow[flow->side] = flow;
	connection_open(entry->connection, flow->side, event);
	return flow;
}

/* A connection of which there will be nothing else: it is off loopback, or in a network namespace not looked into. */
static void feed_unseen(struct connections *connections, const struct wire_event *event)
{
	struct connection_shared *shared = &connections->shared;
	struct connection_result result = {.step = CONNECTION_OFF_LOOPBACK, .now_ns = event->when_ns};

	memcpy(result.name.client.address, event->local_address, WIRE_ADDRESS_BYTES);
	memcpy(result.name.server.address, event->remote_address, WIRE_ADDRESS_BYTES);
	result.name.client.port = event->local_port;
	result.name.server.port = event->remote_port;
	result.refused = event->flags & WIRE_REFUSED;
	result.datagram = event->flags & WIRE_DATAGRAM;
	result.name.process.tgid = event->tgid;
	memcpy(result.name.process.comm, event->comm, WIRE_COMM_BYTES);
	if (!(event->flags & WIRE_OTHER_NETNS)) {
		connection_push(shared, &result);
		return;
	}
	result.name.process.start_ns = event->process_start_ns;
	result.blind = BLIND_NETNS;
	result.step = CONNECTION_BLIND;
	connection_push(shared, &result);
	result.step = CONNECTION_BLIND_END;
	connection_push(shared, &result);
}

static int feed_wire(struct connections *connections, const struct wire_event *event, struct bytes payload)
{
	struct flow *flow;

	switch (event->kind) {
	case WIRE_FORK:
	case WIRE_EXEC:
		return 0;
	case WIRE_EXIT:
		connection_process_exited(&connections->shared, event->tgid, event->process_start_ns);
		return 0;
	case WIRE_CONNECT:
		feed_unseen(connections, event);
		return 0;
	default:
		break;
	}
	flow = find_flow(connections, event);
	if (!flow)
		return -ENOMEM;
	if (!flow->entry) {
		if (event->kind == WIRE_END)
			remove_flow(connections, flow);
		return 0;
	}
	switch (event->kind) {
	case WIRE_DATA:
	case WIRE_HOLE:
		connection_data(flow->entry->connection, flow->side, event, payload);
		break;
	case WIRE_STATE:
		connection_state(flow->entry->connection, flow->side, event);
		break;
	case WIRE_END:
		if (connection_end(flow->entry->connection, flow->side, event)) {
			connection_finish(flow->entry->connection, event->when_ns);
			remove_entry(connections, flow->entry);
		}
		break;
	default:
		break;
	}
	return 0;
}

int connections_feed(struct connections *connections, const struct input *input)
{
	struct entry *entry, *next;
	int err = 0;

	connections->now_ns = input->now_ns;
	if (input->kind == INPUT_WIRE)
		err = feed_wire(connections, input->wire.event, input->wire.payload);
	else if (input->kind == INPUT_TICK)
		connection_tick(&connections->shared, input->now_ns);
	else if (input->kind == INPUT_DRAIN)
		HASH_ITER(hh, connections->entries, entry, next) {
			connection_finish(entry->connection, input->now_ns);
			remove_entry(connections, entry);
		}
	if (connections->shared.out_of_memory)
		err = -ENOMEM;
	connections->shared.out_of_memory = false;
	return err;
}

enum connection_step connections_next(struct connections *connections, struct connection_result *ret_result)
{
	struct connection_shared *shared = &connections->shared;

	if (connections->lent)
		connection_result_done(shared, &connections->current);
	connections->lent = shared->queue_head < shared->queue_size;
	if (connections->lent) {
		connections->current = shared->queue[shared->queue_head++];
	} else {
		shared->queue_head = shared->queue_size = 0;
		connections->lent = connection_next_overdue(shared, connections->now_ns, &connections->current);
		if (!connections->lent)
			return CONNECTION_NOTHING;
	}
	*ret_result = connections->current;
	return ret_result->step;
}

struct call_memory *connections_memory(struct connections *connections)
{
	return &connections->shared.memory;
}

size_t connections_open_calls(const struct connections *connections)
{
	return connections->shared.open_count;
}

struct connection_totals connections_totals(const struct connections *connections)
{
	return connections->shared.totals;
}
