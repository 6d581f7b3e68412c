/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ends, two streams, one queue of exchanges between them. The client's
 * stream appends exchanges, the server's stream answers them in order. Closes
 * and what each application has read are laid beside them as they become known.
 *
 * Every byte is counted once: as part of a message, as a hole, or as blind.
 */
#include "connection.h"
#include "exchange.h"

#include <errno.h>

#define PENDING_BYTES_MAX (64 * 1024)
#define DELIVERY_WAIT_NS (1000 * 1000 * 1000ULL)

struct end {
	uint64_t flow; /* 0 = not seen */
	bool ended;    /* its WIRE_END came */
	bool finished; /* it will send nothing more: FIN or RST */
	bool decided;  /* client: its first bytes were an HTTP request line */
	struct stream stream;
	struct http_reader *reader;
	struct buffer pending;	 /* bytes that cannot be read yet: too few to tell, or no request to answer */
	uint64_t pending_offset; /* of pending.data[0] */
	uint64_t read_bytes;	 /* of the other end's stream, by this end's application */
	uint64_t closed_ns;	 /* nobody holds it any more; a half close does not count */
	uint64_t message_offset; /* first byte of the message in progress */
	uint64_t message_ns;
	uint64_t blind_bytes;
};

struct connection {
	struct connection_shared *shared;
	struct connection_name name;
	struct process server_process;
	uint32_t netns;
	struct end end[2];
	struct exchange *first, *last; /* in order of request */
	size_t count;
	struct exchange *requesting; /* its body is being read */
	struct exchange *answering;  /* its response is being read */
	bool interim;		     /* the response in progress is a 1xx */
	bool given_up;		     /* blind or broken: bytes are only counted */
	bool blind;
	bool spoke_http;
	enum blind_kind blind_kind;
	enum call_closer closed_first;
};

/* ---- results ---- */

/* Room for so many more. */
static bool reserve(struct connection_shared *shared, size_t more)
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
	if (!reserve(shared, 1))
		return false;
	shared->queue[shared->queue_size++] = *result;
	return true;
}

static struct connection_result *push(struct connection_shared *shared, enum connection_step step, struct exchange *exchange,
				      uint64_t now_ns)
{
	struct connection_result result = {
		.step = step, .call = exchange ? &exchange->call : NULL, .now_ns = now_ns};

	return connection_push(shared, &result) ? &shared->queue[shared->queue_size - 1] : NULL;
}

static struct connection_result *push_about(struct connection *connection, enum connection_step step, uint64_t now_ns)
{
	struct connection_result *result = push(connection->shared, step, NULL, now_ns);

	if (!result)
		return NULL;
	result->name = connection->name;
	result->flow[SIDE_CLIENT] = connection->end[SIDE_CLIENT].flow;
	result->flow[SIDE_SERVER] = connection->end[SIDE_SERVER].flow;
	result->bytes_out = connection->end[SIDE_CLIENT].blind_bytes;
	result->bytes_in = connection->end[SIDE_SERVER].blind_bytes;
	result->blind = connection->blind_kind;
	return result;
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
		buffer_done(&exchange->body);
		exchange->call.body = (struct bytes){0};
		exchange->call.body_held = false;
		if (!shared->spare_digest) {
			shared->spare_digest = exchange->hash;
			exchange->hash = NULL;
		}
	}
}

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

static void leave_lists(struct connection_shared *shared, struct exchange *exchange)
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
	leave_lists(shared, exchange);
	shared_link(&shared->waiting, exchange);
	exchange->in_waiting = true;
	exchange->call.open = false;
	exchange->dirty = true;
}

/* ---- life ---- */

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
		http_reader_free(connection->end[side].reader);
		buffer_done(&connection->end[side].pending);
	}
	while (connection->first) {
		struct exchange *exchange = connection->first;

		connection->first = exchange->next;
		leave_lists(connection->shared, exchange);
		exchange_free(exchange);
	}
	free(connection);
}

static struct process process_of(const struct wire_event *event)
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

/* ---- giving up ---- */

static void count_blind(struct connection *connection, enum connection_side side, uint64_t length)
{
	connection->end[side].blind_bytes += length;
	connection->shared->totals.blind_bytes += length;
}

/* From here on bytes are only counted; calls without an answer stay without one that we know. */
static void give_up(struct connection *connection, const char *why)
{
	connection->given_up = true;
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (x->call.response_complete)
			continue;
		x->call.undecidable = true;
		if (!x->given_out) /* what happens after a request says nothing about its own line */
			exchange_why(x, why);
		move_to_waiting(connection->shared, x);
		x->dirty = true;
	}
	for (int side = 0; side < 2; side++) {
		struct end *end = &connection->end[side];

		count_blind(connection, side, end->pending.size);
		buffer_done(&end->pending);
		http_reader_free(end->reader);
		end->reader = NULL;
	}
}

static void go_blind(struct connection *connection, enum blind_kind kind, uint64_t now_ns)
{
	connection->blind = true;
	connection->blind_kind = kind;
	give_up(connection, "the stream cannot be read");
	push_about(connection, CONNECTION_BLIND, now_ns);
}

static void break_off(struct connection *connection, enum connection_side side, uint64_t offset, const char *reason,
		      uint64_t now_ns)
{
	struct connection_result *result;

	if (strcmp(reason, "out of memory") == 0) /* so says http.h */
		connection->shared->out_of_memory = true;
	give_up(connection, reason);
	result = push_about(connection, CONNECTION_BROKEN, now_ns);
	if (!result)
		return;
	result->from_client = side == SIDE_CLIENT;
	result->offset = offset;
	result->reason = reason;
	result->matters = connection->spoke_http;
}

/* ---- requests ---- */

static void give_out(struct connection *connection, struct exchange *exchange, bool complete, uint64_t now_ns)
{
	exchange_request_end(exchange, complete, now_ns);
	if (!complete && connection->given_up)
		exchange->call.undecidable = true;
	exchange->given_out = true;
	exchange->dirty = false;
	connection->requesting = NULL;
	push(connection->shared, CONNECTION_REQUEST, exchange, now_ns);
}

static bool start_hash(struct connection_shared *shared, struct exchange *exchange)
{
	exchange->hash = shared->spare_digest ? shared->spare_digest : digest_state_new();
	shared->spare_digest = NULL;
	return exchange->hash && digest_start(exchange->hash) == 0;
}

static struct exchange *add_exchange(struct connection *connection, const struct http_head *head,
				     const struct wire_event *event)
{
	struct connection_shared *shared = connection->shared;
	struct end *client = &connection->end[SIDE_CLIENT];
	struct exchange *exchange = exchange_new(head);
	struct call *call;

	if (!exchange || !start_hash(shared, exchange)) {
		exchange_free(exchange);
		shared->out_of_memory = true;
		return NULL;
	}
	call = &exchange->call;
	call->netns = connection->netns;
	call->client = connection->name.client;
	call->server = connection->name.server;
	call->process = process_of(event);
	call->server_process = connection->server_process;
	call->number = ++shared->next_number;
	call->first_ns = client->message_ns;
	exchange->request_offset = client->message_offset;
	if (call_id(shared->fingerprinter, shared->boot_id, call,
		    event->send_base_seq + (uint32_t)client->message_offset, call->id))
		shared->out_of_memory = true;
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
	connection->spoke_http = true;
	connection->requesting = exchange;
	return exchange;
}

static void take_response(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event);

/* Server bytes that came before the request that they answer. */
static void take_pending_response(struct connection *connection, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	struct buffer pending = server->pending;

	if (pending.size == 0 || connection->given_up)
		return;
	server->pending = (struct buffer){0};
	take_response(connection, buffer_bytes(&pending), server->pending_offset, event);
	buffer_done(&pending);
}

static void take_request(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *client = &connection->end[SIDE_CLIENT];
	uint64_t end_offset = offset + input.size;
	uint64_t counted = offset;
	enum http_step step = HTTP_BODY;
	struct http_part part;

	while (step != HTTP_NEED_MORE && !connection->given_up) {
		if (http_reader_idle(client->reader)) {
			client->message_offset = end_offset - input.size;
			client->message_ns = event->start_ns;
		}
		step = http_next(client->reader, &input, &part);
		offset = end_offset - input.size;
		connection->shared->totals.message_bytes += offset - counted;
		counted = offset;
		if (step == HTTP_HEAD) {
			if (connection->count >= LIMIT_OPEN_CALLS_PER_CONNECTION || !add_exchange(connection, part.head, event))
				break_off(connection, SIDE_CLIENT, offset, "too many requests wait for an answer", event->when_ns);
		} else if (step == HTTP_BODY) {
			if (exchange_body(connection->requesting, part.body))
				connection->shared->out_of_memory = true;
		} else if (step == HTTP_END) {
			connection->requesting->request_end = offset;
			give_out(connection, connection->requesting, true, event->when_ns);
		} else if (step == HTTP_BROKEN) {
			break_off(connection, SIDE_CLIENT, offset, part.reason, event->when_ns);
		}
		if (step == HTTP_HEAD)
			take_pending_response(connection, event);
	}
	if (connection->requesting) {
		connection->requesting->request_end = offset;
		connection->requesting->call.seen_ns = event->when_ns;
	}
	count_blind(connection, SIDE_CLIENT, input.size);
}

/* ---- responses ---- */

static struct exchange *next_unanswered(const struct connection *connection)
{
	for (struct exchange *x = connection->first; x; x = x->next)
		if (!x->call.response_complete)
			return x;
	return NULL;
}

static void hold_back(struct connection *connection, enum connection_side side, struct bytes input, uint64_t offset,
		      uint64_t now_ns)
{
	const char *reason = side == SIDE_SERVER ? "an answer without a request" : "no request line";
	struct end *end = &connection->end[side];

	if (end->pending.size == 0)
		end->pending_offset = offset;
	if (end->pending.size + input.size <= PENDING_BYTES_MAX) {
		if (buffer_append(&end->pending, input) == 0)
			return;
		reason = "out of memory";
	}
	count_blind(connection, side, input.size);
	break_off(connection, side, offset, reason, now_ns);
}

static void response_head(struct connection *connection, const struct http_head *head, const struct wire_event *event)
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

/* began_ns: when the send that completed it began; the client may act on it before that send returns. */
static void response_complete(struct connection *connection, enum http_ended ended, uint64_t began_ns)
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

static bool start_answering(struct connection *connection)
{
	struct end *server = &connection->end[SIDE_SERVER];

	if (connection->answering)
		return true;
	connection->answering = next_unanswered(connection);
	if (!connection->answering)
		return false;
	http_reader_expect(server->reader, connection->answering->call.method);
	return true;
}

static void take_response(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	uint64_t end_offset = offset + input.size;
	enum http_step step = HTTP_BODY;
	struct http_part part;

	while (step != HTTP_NEED_MORE && !connection->given_up) {
		struct exchange *exchange;
		uint64_t before = end_offset - input.size;

		if (!start_answering(connection)) {
			if (input.size)
				hold_back(connection, SIDE_SERVER, input, before, event->when_ns);
			return;
		}
		exchange = connection->answering;
		if (http_reader_idle(server->reader)) {
			server->message_offset = before;
			server->message_ns = event->start_ns;
		}
		step = http_next(server->reader, &input, &part);
		offset = end_offset - input.size;
		connection->shared->totals.message_bytes += offset - before;
		if (step == HTTP_HEAD)
			response_head(connection, part.head, event);
		else if (step == HTTP_BODY && exchange_answer(exchange, part.body))
			connection->shared->out_of_memory = true;
		if (exchange->response_started && !connection->interim) {
			exchange->response_end = offset;
			exchange->call.response_last_ns = event->when_ns;
			exchange->call.server_process = connection->server_process;
		}
		if (step == HTTP_END)
			response_complete(connection, part.ended, event->start_ns);
		else if (step == HTTP_BROKEN)
			break_off(connection, SIDE_SERVER, offset, part.reason, event->when_ns);
		if (step == HTTP_TUNNEL) {
			bool upgraded = exchange->call.status == 101;

			response_complete(connection, HTTP_ENDED_NO_BODY, event->start_ns);
			go_blind(connection, upgraded ? BLIND_WEBSOCKET : BLIND_CONNECT, event->when_ns);
		}
	}
	count_blind(connection, SIDE_SERVER, input.size);
}

/* ---- bytes and holes ---- */

static bool have_reader(struct connection *connection, enum connection_side side)
{
	struct end *end = &connection->end[side];

	if (!end->reader)
		end->reader = http_reader_new(side == SIDE_CLIENT ? HTTP_REQUEST : HTTP_RESPONSE);
	return end->reader != NULL;
}

/* The first bytes of the client decide what the connection speaks. */
static void decide(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *client = &connection->end[SIDE_CLIENT];
	struct buffer first;

	hold_back(connection, SIDE_CLIENT, input, offset, event->when_ns);
	if (connection->given_up)
		return;
	switch (stream_sniff(buffer_bytes(&client->pending), true)) {
	case STREAM_UNDECIDED:
		return;
	case STREAM_HTTP1:
		break;
	case STREAM_TLS:
		go_blind(connection, BLIND_TLS, event->when_ns);
		return;
	case STREAM_HTTP2:
		go_blind(connection, BLIND_H2, event->when_ns);
		return;
	case STREAM_OTHER:
		go_blind(connection, BLIND_OTHER, event->when_ns);
		return;
	}
	client->decided = true;
	first = client->pending;
	client->pending = (struct buffer){0};
	take_request(connection, buffer_bytes(&first), client->pending_offset, event);
	buffer_done(&first);
}

/* A server that speaks before any request: its first words tell whether an answer may still find its request. */
static void speak_first(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	enum stream_protocol protocol;

	hold_back(connection, SIDE_SERVER, input, offset, event->when_ns);
	if (connection->given_up)
		return;
	protocol = stream_sniff(buffer_bytes(&server->pending), false);
	if (protocol == STREAM_HTTP1 || protocol == STREAM_UNDECIDED)
		return;
	go_blind(connection, protocol == STREAM_HTTP2 ? BLIND_H2 : protocol == STREAM_TLS ? BLIND_TLS : BLIND_OTHER,
		 event->when_ns);
}

static void take_bytes(struct connection *connection, enum connection_side side, const struct stream_piece *piece,
		       const struct wire_event *event)
{
	struct end *end = &connection->end[side];

	if (connection->given_up) {
		count_blind(connection, side, piece->length);
	} else if (!have_reader(connection, side)) {
		count_blind(connection, side, piece->length);
		break_off(connection, side, piece->offset, "out of memory", event->when_ns);
	} else if (side == SIDE_CLIENT && !end->decided) {
		decide(connection, piece->bytes, piece->offset, event);
	} else if (side == SIDE_CLIENT) {
		take_request(connection, piece->bytes, piece->offset, event);
	} else if (!connection->spoke_http) {
		speak_first(connection, piece->bytes, piece->offset, event);
	} else {
		take_response(connection, piece->bytes, piece->offset, event);
	}
}

static void hole_in_request(struct connection *connection, const struct stream_piece *piece, uint64_t now_ns)
{
	struct exchange *exchange = connection->requesting;
	struct end *client = &connection->end[SIDE_CLIENT];
	struct http_part part;
	struct bytes nothing = {0};

	if (!exchange || !client->reader || !http_skip(client->reader, piece->length)) {
		break_off(connection, SIDE_CLIENT, piece->offset, "bytes are missing here, what follows cannot be placed", now_ns);
		return;
	}
	exchange_body_hole(exchange, piece->length);
	exchange->request_end = piece->offset + piece->length;
	if (http_next(client->reader, &nothing, &part) == HTTP_END)
		give_out(connection, exchange, true, now_ns);
}

static void hole_in_response(struct connection *connection, const struct stream_piece *piece, uint64_t now_ns)
{
	struct exchange *exchange = connection->answering;
	struct end *server = &connection->end[SIDE_SERVER];
	struct http_part part;
	struct bytes nothing = {0};

	if (!exchange || !server->reader || !http_skip(server->reader, piece->length)) {
		break_off(connection, SIDE_SERVER, piece->offset, "bytes are missing here, what follows cannot be placed", now_ns);
		return;
	}
	exchange->call.response_holes += piece->length;
	exchange->call.response_body_bytes += piece->length;
	exchange->call.response_last_ns = now_ns;
	exchange->response_end = piece->offset + piece->length;
	if (http_next(server->reader, &nothing, &part) == HTTP_END)
		response_complete(connection, part.ended, now_ns);
}

static void take_hole(struct connection *connection, enum connection_side side, const struct stream_piece *piece, uint64_t now_ns)
{
	struct connection_result *result;

	if (connection->given_up) {
		count_blind(connection, side, piece->length);
		return;
	}
	connection->shared->totals.hole_bytes += piece->length;
	result = push_about(connection, CONNECTION_HOLE, now_ns);
	if (result) {
		result->from_client = side == SIDE_CLIENT;
		result->offset = piece->offset;
		result->length = piece->length;
		result->cause = piece->cause;
	}
	if (side == SIDE_CLIENT)
		hole_in_request(connection, piece, now_ns);
	else
		hole_in_response(connection, piece, now_ns);
}

static void take_event(struct connection *connection, enum connection_side side, const struct wire_event *event,
		       struct bytes payload)
{
	struct end *end = &connection->end[side];
	struct stream_piece piece;
	enum stream_step step;

	stream_feed(&end->stream, event, payload);
	while ((step = stream_next(&end->stream, &piece)) != STREAM_NOTHING) {
		if (step == STREAM_BYTES)
			take_bytes(connection, side, &piece, event);
		else
			take_hole(connection, side, &piece, event->when_ns);
	}
}

/* ---- what became of the calls ---- */

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

static void unlink_exchange(struct connection *connection, struct exchange *exchange)
{
	leave_lists(connection->shared, exchange);
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
static void close_exchange(struct connection *connection, struct exchange *exchange, uint64_t now_ns)
{
	struct connection_shared *shared = connection->shared;

	exchange->call.open = false;
	unlink_exchange(connection, exchange);
	if (!reserve(shared, 2)) {
		exchange->next = shared->overdue;
		shared->overdue = exchange;
		return;
	}
	if (!exchange->answered_out)
		push(shared, CONNECTION_ANSWERED, exchange, now_ns);
	else if (exchange->dirty)
		push(shared, CONNECTION_CHANGED, exchange, now_ns);
	push(shared, CONNECTION_CLOSED, exchange, now_ns);
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

/* Looks at every call that the last event may have touched, oldest first. */
static void settle(struct connection *connection, uint64_t now_ns)
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
			close_exchange(connection, x, now_ns);
		} else if (x->given_out && x->dirty) {
			push(connection->shared, CONNECTION_CHANGED, x, now_ns);
			x->dirty = false;
		}
	}
}

/* ---- events ---- */

void connection_open(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];

	end->flow = event->flow;
	end->read_bytes = event->read_bytes;
	stream_init(&end->stream, event->flags & WIRE_JOINED_LATE ? event->offset : 0);
	if (side == SIDE_CLIENT && event->tgid)
		connection->name.process = process_of(event);
	if (connection->given_up)
		return;
	if (event->flags & (WIRE_JOINED_LATE | WIRE_MPTCP | WIRE_KTLS)) {
		go_blind(connection,
			 event->flags & WIRE_MPTCP  ? BLIND_MPTCP
			 : event->flags & WIRE_KTLS ? BLIND_KTLS
						    : BLIND_JOINED_LATE,
			 event->when_ns);
	}
}

/*
 * The client had received more than we have seen of the server, and the
 * sequencer waited for it in vain: what is not answered here may well be. One
 * byte more may be the FIN.
 */
static void doubt_what_is_open(struct connection *connection, const struct wire_event *event)
{
	if (connection->given_up || event->received_bytes <= connection->end[SIDE_SERVER].stream.next_offset + 1)
		return;
	for (struct exchange *x = connection->first; x; x = x->next) {
		if (x->call.response_complete || x->call.undecidable)
			continue;
		x->call.undecidable = true;
		exchange_why(x, "the client received bytes that were not seen");
		if (x->given_out)
			push(connection->shared, CONNECTION_CHANGED, x, event->when_ns);
	}
}

void connection_data(struct connection *connection, enum connection_side side, const struct wire_event *event, struct bytes payload)
{
	struct end *end = &connection->end[side];

	if (side == SIDE_CLIENT)
		doubt_what_is_open(connection, event);
	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	if (side == SIDE_SERVER && event->tgid)
		connection->server_process = process_of(event);
	else if (side == SIDE_CLIENT && event->tgid)
		connection->name.process = process_of(event);
	take_event(connection, side, event, payload);
	settle(connection, event->when_ns);
}

/* The server will send no more: what is being answered ends here, what is not answered never will be. */
static void server_finished(struct connection *connection, bool clean, uint64_t now_ns)
{
	struct end *server = &connection->end[SIDE_SERVER];
	struct exchange *exchange = connection->answering;
	struct http_part part;

	if (server->finished)
		return;
	server->finished = true;
	if (exchange && server->reader && exchange->response_started) {
		if (http_finish(server->reader, clean, &part) == HTTP_END)
			response_complete(connection, part.ended, now_ns);
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

/* The client will send no more: a request that is not whole never will be. */
static void client_finished(struct connection *connection, uint64_t now_ns)
{
	struct end *client = &connection->end[SIDE_CLIENT];

	if (client->finished)
		return;
	client->finished = true;
	if (connection->requesting)
		give_out(connection, connection->requesting, false, now_ns);
}

/* Nobody holds that end any more. */
static void end_closed(struct connection *connection, enum connection_side side, uint64_t now_ns)
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

static bool leaves_sending(const struct wire_event *event)
{
	bool sent = event->old_state == WIRE_TCP_ESTABLISHED || event->old_state == WIRE_TCP_CLOSE_WAIT ||
		    event->old_state == WIRE_TCP_SYN_RECV;

	return sent && (event->new_state == WIRE_TCP_FIN_WAIT1 || event->new_state == WIRE_TCP_LAST_ACK ||
			event->new_state == WIRE_TCP_CLOSE);
}

void connection_state(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];
	/*
	 * __tcp_close() sets both bits of sk_shutdown before the state (5.10 to 7.x). To CLOSE
	 * without them the peer's RST or FIN did it: the application may still read what is queued.
	 */
	bool closed = (event->flags & WIRE_ORPHANED) ||
		      event->shutdown == (WIRE_SHUTDOWN_SEND | WIRE_SHUTDOWN_RECEIVE);

	if (event->kind != WIRE_STATE)
		return;
	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	/* It left the sequencer, so what it counts and we have not seen will not come: no close hides a hole. */
	if (event->offset > end->stream.next_offset) {
		struct wire_event seen_to_here = *event;

		seen_to_here.kind = WIRE_END;
		take_event(connection, side, &seen_to_here, (struct bytes){0});
	}
	/* A FIN follows every byte; straight to CLOSE is a RST, sent or received. */
	if (leaves_sending(event)) {
		if (side == SIDE_SERVER)
			server_finished(connection, event->new_state != WIRE_TCP_CLOSE, event->when_ns);
		else
			client_finished(connection, event->when_ns);
	}
	if (closed && (leaves_sending(event) || end->finished))
		end_closed(connection, side, event->when_ns);
	settle(connection, event->when_ns);
}

bool connection_end(struct connection *connection, enum connection_side side, const struct wire_event *event)
{
	struct end *end = &connection->end[side];
	struct end *other = &connection->end[!side];

	if (event->read_bytes > end->read_bytes)
		end->read_bytes = event->read_bytes;
	take_event(connection, side, event, (struct bytes){0});
	end->ended = true;
	if (!(event->flags & WIRE_STILL_OPEN)) {
		if (side == SIDE_SERVER)
			server_finished(connection, false, event->when_ns);
		else
			client_finished(connection, event->when_ns);
		end_closed(connection, side, event->when_ns);
	}
	settle(connection, event->when_ns);
	return other->ended || other->flow == 0;
}

void connection_finish(struct connection *connection, uint64_t now_ns)
{
	bool server_unseen = connection->end[SIDE_SERVER].flow == 0;

	if (connection->requesting)
		give_out(connection, connection->requesting, false, now_ns);
	while (connection->first) {
		struct exchange *exchange = connection->first;
		struct call *call = &exchange->call;

		if (!call->response_complete && call->status && call->ended == CALL_ENDED_NONE)
			call->ended = CALL_ENDED_CUT;
		if (server_unseen) {
			call->undecidable = true;
			exchange_why(exchange, "the server's end was not seen");
		}
		close_exchange(connection, exchange, now_ns);
	}
	if (!connection->given_up) {
		bool unread = connection->end[SIDE_CLIENT].pending.size || connection->end[SIDE_SERVER].pending.size;

		connection->blind = unread;
		connection->blind_kind = BLIND_OTHER;
		give_up(connection, "the stream cannot be read");
		if (unread)
			push_about(connection, CONNECTION_BLIND, now_ns);
	}
	if (connection->blind)
		push_about(connection, CONNECTION_BLIND_END, now_ns);
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
		leave_lists(shared, x);
		push(shared, CONNECTION_ANSWERED, x, now_ns);
		x->answered_out = true;
		x->dirty = false;
	}
}
