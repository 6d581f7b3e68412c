/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The call side of a connection: requests and the answers that belong to them,
 * and what is learnt of both later: closes, what each application has read.
 */
#include "connection_parts.h"

#define DELIVERY_WAIT_NS (1000 * 1000 * 1000ULL)

/* ---- the two shared lists ---- */

static void shared_link(struct exchange **list, struct exchange *exchange)
{
	exchange->shared_next = *list;
	exchange->shared_prev = NULL;
	if (*list)
		(*list)->shared_prev = exchange;
	*list = exchange;
}

static void shared_unlink(struct exchange **list, struct exchange *exchange)
{
	if (exchange->shared_prev)
		exchange->shared_prev->shared_next = exchange->shared_next;
	else
		*list = exchange->shared_next;
	if (exchange->shared_next)
		exchange->shared_next->shared_prev = exchange->shared_prev;
}

void connection_leave_lists(struct connection_shared *shared, struct exchange *exchange)
{
	if (exchange->in_open) {
		shared_unlink(&shared->open, exchange);
		shared->open_count--;
	} else if (exchange->in_waiting) {
		shared_unlink(&shared->waiting, exchange);
	}
	exchange->in_open = exchange->in_waiting = false;
}

/* The server is done with it: what is left to learn is what the client read. */
static void move_to_waiting(struct connection_shared *shared, struct exchange *exchange)
{
	if (!exchange->in_open)
		return;
	connection_leave_lists(shared, exchange);
	shared_link(&shared->waiting, exchange);
	exchange->in_waiting = true;
	exchange->call.open = false;
	exchange->dirty = true;
}

/* ---- requests ---- */

struct process connection_process_of(const struct wire_event *event)
{
	struct process process = {
		.tgid = event->tgid,
		.tid = event->tid,
		.ns_tgid = event->ns_tgid,
		.uid = event->uid,
		.start_ns = event->process_start_ns,
		.cgroup_id = event->cgroup_id,
	};

	memcpy(process.comm, event->comm, WIRE_COMM_BYTES);
	return process;
}

void connection_give_out(struct connection *connection, bool complete, uint64_t now_ns)
{
	struct exchange *exchange = connection->requesting;

	exchange_request_end(exchange, complete, now_ns);
	if (!complete && connection->given_up)
		exchange->call.undecidable = true;
	exchange->given_out = true;
	exchange->dirty = false;
	connection->requesting = NULL;
	connection_push_call(connection->shared, CONNECTION_REQUEST, exchange, now_ns);
}

static bool start_hash(struct connection_shared *shared, struct exchange *exchange)
{
	exchange->hash = shared->spare_digest ? shared->spare_digest : digest_state_new();
	shared->spare_digest = NULL;
	return exchange->hash && digest_start(exchange->hash) == 0;
}

/* A request on a connection that the server had ended already: no answer can follow. */
static void be_too_late(struct connection *connection, struct exchange *exchange)
{
	exchange->call.server_closed_ns = connection->end[SIDE_SERVER].finished_ns;
	exchange->call.closed_first = connection->closed_first;
	move_to_waiting(connection->shared, exchange);
}

const char *connection_add_call(struct connection *connection, const struct http_head *head,
				const struct wire_event *event)
{
	struct connection_shared *shared = connection->shared;
	struct end *client = &connection->end[SIDE_CLIENT];
	struct exchange *exchange;
	struct call *call;

	if (connection->count >= LIMIT_OPEN_CALLS_PER_CONNECTION)
		return "too many requests wait for an answer";
	exchange = exchange_new(head, &shared->memory);
	if (!exchange || !start_hash(shared, exchange)) {
		exchange_free(exchange);
		return OUT_OF_MEMORY;
	}
	if (shared->memory.bytes > shared->memory.limit) {
		exchange_free(exchange);
		return TOO_MUCH_HELD;
	}
	call = &exchange->call;
	call->netns = connection->netns;
	call->client = connection->name.client;
	call->server = connection->name.server;
	call->process = connection_process_of(event);
	call->server_process = connection->server_process;
	call->number = ++shared->next_number;
	call->first_ns = client->message_ns;
	exchange->request_offset = client->message_offset;
	if (call_id(shared->fingerprinter, shared->boot_id, call,
		    event->send_base_seq + (uint32_t)client->message_offset, call->id))
		shared->out_of_memory = true;
	if (connection->search.resumed)
		exchange_why(exchange, connection->search.resumed);
	connection->search.resumed = NULL;
	exchange->prev = connection->last;
	if (connection->last)
		connection->last->next = exchange;
	else
		connection->first = exchange;
	connection->last = exchange;
	connection->count++;
	shared_link(&shared->open, exchange);
	exchange->in_open = true;
	shared->open_count++;
	if (connection->end[SIDE_SERVER].finished)
		be_too_late(connection, exchange);
	connection->spoke_http = true;
	connection->requesting = exchange;
	return NULL;
}

/* ---- responses ---- */

struct exchange *connection_next_unanswered(const struct connection *connection)
{
	for (struct exchange *x = connection->first; x; x = x->next)
		if (!x->call.response_complete)
			return x;
	return NULL;
}

void connection_response_head(struct connection *connection, const struct http_head *head,
			      const struct wire_event *event)
{
	struct exchange *exchange = connection->answering;
	struct call *call = &exchange->call;
	const struct end *client = &connection->end[SIDE_CLIENT];

	connection->interim = head->status < 200 && head->status != 101;
	if (connection->interim) {
		call->interim_seen = true;
		return;
	}
	exchange->response_started = true;
	exchange->response_offset = connection->end[SIDE_SERVER].message_offset;
	call->response_first_ns = connection->end[SIDE_SERVER].message_ns;
	call->status_ns = event->start_ns;
	call->status_in_time = client->closed_ns == 0 || client->closed_ns > event->start_ns;
	if (exchange_response_head(exchange, head))
		connection->shared->out_of_memory = true;
}

static enum call_ended ended_of(enum http_ended ended)
{
	switch (ended) {
	case HTTP_ENDED_CHUNKED:
		return CALL_ENDED_CHUNKED;
	case HTTP_ENDED_CLOSE:
		return CALL_ENDED_CLOSE;
	case HTTP_ENDED_NO_BODY:
	case HTTP_ENDED_LENGTH:
		return CALL_ENDED_LENGTH;
	case HTTP_ENDED_NONE:
		break;
	}
	return CALL_ENDED_NONE;
}

void connection_response_complete(struct connection *connection, enum http_ended ended, uint64_t began_ns)
{
	struct exchange *exchange = connection->answering;

	if (connection->interim) {
		connection->interim = false;
		return;
	}
	exchange->call.response_complete = true;
	exchange->call.complete_ns = began_ns;
	exchange->call.ended = ended_of(ended);
	connection->answering = NULL;
	move_to_waiting(connection->shared, exchange);
}

/* ---- what became of the calls ---- */

void connection_leave_unanswered(struct connection *connection, const char *why)
{
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (x->call.response_complete)
			continue;
		x->call.undecidable = true;
		if (!x->given_out) /* what happens after a request says nothing about its own line */
			exchange_why(x, why);
		move_to_waiting(connection->shared, x);
		x->dirty = true;
	}
}

void connection_doubt(struct connection *connection, const struct wire_event *event)
{
	uint64_t seen = connection->end[SIDE_SERVER].stream.next_offset;

	if (connection->search.answer_at > seen)
		seen = connection->search.answer_at;
	if (connection->given_up || event->received_bytes <= seen + 1) /* one byte more may be the FIN */
		return;
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (x->call.response_complete || x->call.undecidable)
			continue;
		x->call.undecidable = true;
		exchange_why(x, "the client received bytes that were not seen");
		if (x->given_out)
			connection_push_call(connection->shared, CONNECTION_CHANGED, x, event->when_ns);
	}
}

static void learn_server_read(struct connection *connection, struct exchange *exchange)
{
	const struct end *server = &connection->end[SIDE_SERVER];
	bool all = exchange->call.request_complete && server->read_bytes >= exchange->request_end;

	if (!exchange->given_out || exchange->call.server_read_all)
		return;
	if (!all && server->closed_ns == 0)
		return;
	if (!exchange->call.server_read_known)
		exchange->dirty = true;
	exchange->call.server_read_known = true;
	exchange->call.server_read_all = all;
}

/* The caller frees it, so nothing of the connection may name it afterwards. */
static void unlink_exchange(struct connection *connection, struct exchange *exchange)
{
	connection_leave_lists(connection->shared, exchange);
	if (connection->requesting == exchange)
		connection->requesting = NULL;
	if (connection->answering == exchange)
		connection->answering = NULL;
	if (exchange->prev)
		exchange->prev->next = exchange->next;
	else
		connection->first = exchange->next;
	if (exchange->next)
		exchange->next->prev = exchange->prev;
	else
		connection->last = exchange->prev;
	connection->count--;
}

/* A call whose end the queue has no room for waits in a list, since its memory must be given back. */
void connection_close_call(struct connection *connection, struct exchange *exchange, uint64_t now_ns)
{
	struct connection_shared *shared = connection->shared;

	exchange->call.open = false;
	unlink_exchange(connection, exchange);
	if (!connection_reserve(shared, 2)) {
		exchange->next = shared->overdue;
		shared->overdue = exchange;
		return;
	}
	if (!exchange->answered_out)
		connection_push_call(shared, CONNECTION_ANSWERED, exchange, now_ns);
	else if (exchange->dirty)
		connection_push_call(shared, CONNECTION_CHANGED, exchange, now_ns);
	connection_push_call(shared, CONNECTION_CLOSED, exchange, now_ns);
}

void connection_settle(struct connection *connection, uint64_t now_ns)
{
	const struct end *client = &connection->end[SIDE_CLIENT];
	const struct end *server = &connection->end[SIDE_SERVER];
	struct exchange *next;

	for (struct exchange *x = connection->first; x; x = next) {
		bool server_done = x->call.response_complete || server->finished || connection->given_up;
		bool delivery_known;

		next = x->next;
		if (!server_done && !x->response_started && !x->dirty && x != connection->first)
			return;
		learn_server_read(connection, x);
		delivery_known = exchange_delivered(x, client->read_bytes, client->closed_ns != 0 && server_done);
		if (x->given_out && server_done && delivery_known) {
			connection_close_call(connection, x, now_ns);
		} else if (x->given_out && x->dirty) {
			connection_push_call(connection->shared, CONNECTION_CHANGED, x, now_ns);
			x->dirty = false;
		}
	}
}

/* ---- ends ---- */

void connection_server_finished(struct connection *connection, bool clean, uint64_t now_ns)
{
	struct end *server = &connection->end[SIDE_SERVER];
	struct exchange *exchange = connection->answering;
	struct http_part part;

	if (server->finished)
		return;
	server->finished = true;
	server->finished_ns = now_ns;
	if (exchange && server->reader && exchange->response_started) {
		if (http_finish(server->reader, clean, &part) == HTTP_END)
			connection_response_complete(connection, part.ended, now_ns);
		else
			exchange->call.ended = clean ? CALL_ENDED_CUT : CALL_ENDED_RESET;
	}
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (x->call.response_complete)
			continue;
		x->call.server_closed_ns = now_ns;
		move_to_waiting(connection->shared, x);
		x->dirty = true;
	}
}

void connection_client_finished(struct connection *connection, uint64_t now_ns)
{
	struct end *client = &connection->end[SIDE_CLIENT];

	if (client->finished)
		return;
	client->finished = true;
	client->finished_ns = now_ns;
	if (connection->requesting)
		connection_give_out(connection, false, now_ns);
}

void connection_end_closed(struct connection *connection, enum connection_side side, uint64_t now_ns)
{
	struct end *end = &connection->end[side];

	if (end->closed_ns)
		return;
	end->closed_ns = now_ns;
	if (connection->closed_first == CLOSER_NOBODY)
		connection->closed_first = side == SIDE_CLIENT ? CLOSER_CLIENT : CLOSER_SERVER;
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (side == SIDE_CLIENT)
			x->call.client_closed_ns = now_ns;
		if (x->call.closed_first == CLOSER_NOBODY)
			x->call.closed_first = connection->closed_first;
		x->dirty = true;
	}
}

void connection_process_exited(struct connection_shared *shared, uint32_t tgid, uint64_t process_start_ns)
{
	for (struct exchange *x = shared->open; x; x = x->shared_next) {
		if (x->call.process.tgid != tgid || x->call.process.start_ns != process_start_ns || x->call.client_died)
			continue;
		x->call.client_died = true;
		x->dirty = true;
	}
}

void connection_tick(struct connection_shared *shared, uint64_t now_ns)
{
	struct exchange *next;

	for (struct exchange *x = shared->waiting; x; x = next) {
		next = x->shared_next;
		if (!x->given_out || x->call.response_last_ns + DELIVERY_WAIT_NS > now_ns)
			continue;
		connection_leave_lists(shared, x);
		connection_push_call(shared, CONNECTION_ANSWERED, x, now_ns);
		x->answered_out = true;
		x->dirty = false;
	}
}
