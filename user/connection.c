/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends, two streams, one queue of exchanges between them: the results that
 * events lead to, the life of a connection, and the events themselves. What
 * bytes mean is in connection_bytes.c, what becomes of calls in connection_calls.c.
 */
#include "connection_parts.h"
#include "limits.h"

#include <errno.h>

/* ---- results ---- */

bool connection_reserve(struct connection_shared *shared, size_t more)
{
	size_t capacity = shared->queue_capacity ? shared->queue_capacity : 64;
	struct connection_result *queue;

	while (capacity < shared->queue_size + more)
		capacity *= 2;
	if (capacity == shared->queue_capacity)
		return true;
	queue = realloc(shared->queue, capacity * sizeof(*queue));
	if (!queue) {
		shared->out_of_memory = true;
		return false;
	}
	shared->queue = queue;
	shared->queue_capacity = capacity;
	return true;
}

bool connection_push(struct connection_shared *shared, const struct connection_result *result)
{
	if (!connection_reserve(shared, 1))
		return false;
	shared->queue[shared->queue_size++] = *result;
	return true;
}

void connection_push_call(struct connection_shared *shared, enum connection_step step, struct exchange *exchange,
			  uint64_t now_ns)
{
	struct connection_result result = {.step = step, .call = &exchange->call, .now_ns = now_ns};

	connection_push(shared, &result);
}

struct connection_result *connection_push_about(struct connection *connection, enum connection_step step,
						uint64_t now_ns)
{
	const struct connection_result result = {
		.step = step,
		.name = connection->name,
		.flow = {connection->end[SIDE_CLIENT].flow, connection->end[SIDE_SERVER].flow},
		.bytes_out = connection->end[SIDE_CLIENT].blind_bytes,
		.bytes_in = connection->end[SIDE_SERVER].blind_bytes,
		.blind = connection->blind_kind,
		.now_ns = now_ns,
	};
	struct connection_shared *shared = connection->shared;

	return connection_push(shared, &result) ? &shared->queue[shared->queue_size - 1] : NULL;
}

static struct exchange *exchange_of(struct call *call)
{
	return (struct exchange *)((char *)call - offsetof(struct exchange, call));
}

void connection_result_done(struct connection_shared *shared, const struct connection_result *result)
{
	struct exchange *exchange = result->call ? exchange_of(result->call) : NULL;

	if (result->step == CONNECTION_CLOSED) {
		exchange_free(exchange);
	} else if (result->step == CONNECTION_REQUEST) {
		exchange_body_done(exchange);
		if (!shared->spare_digest) {
			shared->spare_digest = exchange->hash;
			exchange->hash = NULL;
		}
	}
}

bool connection_next_overdue(struct connection_shared *shared, uint64_t now_ns, struct connection_result *ret_result)
{
	struct exchange *exchange = shared->overdue;

	if (!exchange)
		return false;
	*ret_result = (struct connection_result){
		.step = exchange->answered_out ? CONNECTION_CLOSED : CONNECTION_ANSWERED,
		.call = &exchange->call,
		.now_ns = now_ns,
	};
	if (exchange->answered_out)
		shared->overdue = exchange->next;
	exchange->answered_out = true;
	return true;
}

/* ---- memory ---- */

int connection_pending_add(struct connection *connection, enum connection_side side, struct bytes bytes)
{
	struct connection_shared *shared = connection->shared;
	struct buffer *pending = &connection->end[side].pending;

	if (shared->memory.bytes + bytes.size > shared->memory.limit)
		return -ENOSPC;
	if (buffer_append(pending, bytes))
		return -ENOMEM;
	shared->memory.bytes += bytes.size;
	return 0;
}

struct buffer connection_pending_take(struct connection *connection, enum connection_side side)
{
	struct buffer taken = connection->end[side].pending;

	connection->end[side].pending = (struct buffer){0};
	connection->shared->memory.bytes -= taken.size;
	return taken;
}

bool connection_count_reader(struct connection *connection, enum connection_side side)
{
	struct end *end = &connection->end[side];
	struct call_memory *memory = &connection->shared->memory;
	size_t bytes = end->reader ? http_reader_held(end->reader) : 0;

	memory->bytes += bytes - end->reader_bytes;
	end->reader_bytes = bytes;
	return memory->bytes <= memory->limit;
}

void connection_free_reader(struct connection *connection, enum connection_side side)
{
	struct end *end = &connection->end[side];

	http_reader_free(end->reader);
	end->reader = NULL;
	connection_count_reader(connection, side);
}

/* ---- life ---- */

void connection_shared_done(struct connection_shared *shared)
{
	free(shared->queue);
	digest_state_free(shared->spare_digest);
	for (int side = 0; side < 2; side++)
		for (size_t i = 0; i < shared->spare_reader_count[side]; i++)
			http_reader_free(shared->spare_readers[side][i]);
}

struct connection *connection_new(struct connection_shared *shared, const struct connection_name *name, uint32_t netns)
{
	struct connection *connection = calloc(1, sizeof(*connection));

	if (!connection)
		return NULL;
	connection->shared = shared;
	connection->name = *name;
	connection->netns = netns;
	return connection;
}

void connection_free(struct connection *connection)
{
	if (!connection)
		return;
	for (int side = 0; side < 2; side++) {
		struct buffer pending = connection_pending_take(connection, side);

		buffer_done(&pending);
		connection_free_reader(connection, side);
	}
	connection_proof_stop(connection);
	while (connection->first) {
		struct exchange *exchange = connection->first;

		connection->first = exchange->next;
		connection_leave_lists(connection->shared, exchange);
		exchange_free(exchange);
	}
	free(connection);
}

/* ---- events ---- */

void connection_open(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];
	uint16_t unreadable = event->flags & (WIRE_JOINED_LATE | WIRE_MPTCP | WIRE_KTLS);

	if (connection->spoke_http) /* its client was joined already: the answer's place is known */
		unreadable &= ~WIRE_JOINED_LATE;
	end->flow = event->flow;
	end->read_bytes = event->read_bytes;
	stream_init(&end->stream, event->flags & WIRE_JOINED_LATE ? event->offset : 0);
	if (side == SIDE_CLIENT && event->tgid)
		connection->name.process = connection_process_of(event);
	if (!connection->given_up && unreadable) {
		connection_go_blind(connection,
			 event->flags & WIRE_MPTCP  ? BLIND_MPTCP
			 : event->flags & WIRE_KTLS ? BLIND_KTLS
						    : BLIND_JOINED_LATE,
			 event->when_ns);
	}
}

void connection_data(struct connection *connection, enum connection_side side, const struct wire_event *event,
		     struct bytes payload)
{
	struct end *end = &connection->end[side];

	if (side == SIDE_CLIENT)
		connection_doubt(connection, event);
	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	if (side == SIDE_SERVER && event->tgid)
		connection->server_process = connection_process_of(event);
	else if (side == SIDE_CLIENT && event->tgid)
		connection->name.process = connection_process_of(event);
	connection_take(connection, side, event, payload);
	connection_settle(connection, event->when_ns);
}

static bool leaves_sending(const struct wire_event *event)
{
	bool sent = event->old_state == WIRE_TCP_ESTABLISHED || event->old_state == WIRE_TCP_CLOSE_WAIT ||
		    event->old_state == WIRE_TCP_SYN_RECV;

	return sent && (event->new_state == WIRE_TCP_FIN_WAIT1 || event->new_state == WIRE_TCP_LAST_ACK ||
			event->new_state == WIRE_TCP_CLOSE);
}

/* From here on, or by this step, the peer's FIN shut the receiving direction as well: tcp_fin(), 5.10 to 7.x. */
static bool peer_finished(const struct wire_event *event)
{
	switch (event->old_state) {
	case WIRE_TCP_CLOSE_WAIT:
	case WIRE_TCP_LAST_ACK:
	case WIRE_TCP_CLOSING:
		return true;
	case WIRE_TCP_FIN_WAIT1:
		return event->new_state == WIRE_TCP_CLOSING;
	case WIRE_TCP_FIN_WAIT2:
		return event->new_state == WIRE_TCP_CLOSE;
	default:
		return false;
	}
}

/*
 * Does nobody hold that end any more? __tcp_close() sets both bits of sk_shutdown before the
 * state, but once the peer's FIN has set one of them, shutdown(SHUT_WR) gives both as well:
 * then only the orphan, or WIRE_END, tells. Whoever holds it may still read what is queued.
 */
static bool nobody_holds(const struct wire_event *event)
{
	return (event->flags & WIRE_ORPHANED) ||
	       (event->shutdown == (WIRE_SHUTDOWN_SEND | WIRE_SHUTDOWN_RECEIVE) && !peer_finished(event));
}

void connection_state(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];

	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	/* It left the sequencer, so what it counts and we have not seen will not come: no close hides a hole. */
	if (event->offset > end->stream.next_offset) {
		struct wire_event seen_to_here = *event;

		seen_to_here.kind = WIRE_END;
		connection_take(connection, side, &seen_to_here, (struct bytes){0});
	}
	/* A FIN follows every byte; straight to CLOSE is a RST, sent or received. */
	if (leaves_sending(event)) {
		if (side == SIDE_SERVER)
			connection_server_finished(connection, event->new_state != WIRE_TCP_CLOSE, event->when_ns);
		else
			connection_client_finished(connection, event->when_ns);
	}
	if (nobody_holds(event) && (leaves_sending(event) || end->finished))
		connection_end_closed(connection, side, event->when_ns);
	connection_settle(connection, event->when_ns);
}

bool connection_end(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];
	struct end *other = &connection->end[!side];

	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	connection_take(connection, side, event, (struct bytes){0});
	end->ended = true;
	if (!(event->flags & WIRE_STILL_OPEN)) {
		if (side == SIDE_SERVER)
			connection_server_finished(connection, false, event->when_ns);
		else
			connection_client_finished(connection, event->when_ns);
		connection_end_closed(connection, side, event->when_ns);
	}
	connection->end_unseen |= (event->flags & WIRE_END_UNSEEN) != 0;
	connection_settle(connection, event->when_ns);
	return other->ended || other->flow == 0;
}

void connection_finish(struct connection *connection, uint64_t now_ns)
{
	bool server_unseen = connection->end[SIDE_SERVER].flow == 0;

	if (connection->requesting)
		connection_give_out(connection, false, now_ns);
	while (connection->first) {
		struct exchange *exchange = connection->first;
		struct call *call = &exchange->call;

		if (!call->response_complete && call->status && call->ended == CALL_ENDED_NONE)
			call->ended = CALL_ENDED_CUT;
		if (server_unseen) {
			call->undecidable = true;
			exchange_why(exchange, "the server's end was not seen");
		}
		if (connection->end_unseen && !call->response_complete) {
			call->undecidable = true;
			exchange_why(exchange, "the end of its connection was lost");
		}
		connection_close_call(connection, exchange, now_ns);
	}
	connection_search_drop(connection);
	if (!connection->given_up) {
		bool unread = connection->end[SIDE_CLIENT].pending.size || connection->end[SIDE_SERVER].pending.size;

		connection->blind = unread;
		connection->blind_kind = BLIND_OTHER;
		connection_give_up(connection, "the stream cannot be read");
		if (unread)
			connection_push_about(connection, CONNECTION_BLIND, now_ns);
	}
	if (connection->blind)
		connection_push_about(connection, CONNECTION_BLIND_END, now_ns);
}
