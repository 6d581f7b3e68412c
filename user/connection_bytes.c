/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The byte side of a connection: the client's stream appends calls, the
 * server's stream answers them in order.
 *
 * Every byte is counted once: as part of a message, as a hole, or as blind.
 */
#include "connection_parts.h"

#include <errno.h>

#define PENDING_BYTES_MAX (64 * 1024)

static const char bytes_missing[] = "bytes are missing here, what follows cannot be placed";

/* ---- giving up ---- */

void connection_count_blind(struct connection *connection, enum connection_side side, uint64_t length)
{
	connection->end[side].blind_bytes += length;
	connection->shared->totals.blind_bytes += length;
}

void connection_give_up(struct connection *connection, const char *why)
{
	connection->given_up = true;
	connection_leave_unanswered(connection, why);
	for (int side = 0; side < 2; side++) {
		struct buffer pending = connection_pending_take(connection, side);

		connection_count_blind(connection, side, pending.size);
		buffer_done(&pending);
		connection_free_reader(connection, side);
	}
}

/* What gave it up; while something of it is still looked for, the kernel goes on copying. */
static struct connection_result *push_given_up(struct connection *connection, enum connection_step step, uint64_t now_ns)
{
	struct connection_result *result = connection_push_about(connection, step, now_ns);

	if (result && (connection->search.on || connection->proof.on))
		result->flow[SIDE_CLIENT] = result->flow[SIDE_SERVER] = 0;
	return result;
}

static void push_broken(struct connection *connection, enum connection_side side, uint64_t offset, const char *reason,
			bool matters, uint64_t now_ns)
{
	struct connection_result *result = push_given_up(connection, CONNECTION_BROKEN, now_ns);

	if (!result)
		return;
	result->from_client = side == SIDE_CLIENT;
	result->offset = offset;
	result->reason = reason;
	result->matters = matters;
}

void connection_go_blind(struct connection *connection, enum blind_kind kind, uint64_t now_ns)
{
	bool http = kind == BLIND_OTHER && connection_proof_start(connection);

	connection->blind = true;
	connection->blind_kind = kind;
	connection_give_up(connection, "the stream cannot be read");
	if (kind == BLIND_JOINED_LATE)
		connection_search_start(connection);
	push_given_up(connection, CONNECTION_BLIND, now_ns);
	if (http)
		push_broken(connection, SIDE_CLIENT, 0, "no request line, and an answer to it", true, now_ns);
}

static void break_off(struct connection *connection, enum connection_side side, uint64_t offset, const char *reason,
		      uint64_t now_ns)
{
	/* A hole keeps the run from being clean by itself. */
	bool http = reason == bytes_missing ? connection->spoke_http : connection_proof_start(connection);

	if (strcmp(reason, OUT_OF_MEMORY) == 0) /* so says http.h */
		connection->shared->out_of_memory = true;
	connection_give_up(connection, reason);
	if (reason == bytes_missing)
		connection_search_start(connection);
	push_broken(connection, side, offset, reason, http, now_ns);
}

/* ---- readers ---- */

static bool have_reader(struct connection *connection, enum connection_side side)
{
	struct connection_shared *shared = connection->shared;
	struct end *end = &connection->end[side];

	if (end->reader)
		return true;
	if (shared->spare_reader_count[side])
		end->reader = shared->spare_readers[side][--shared->spare_reader_count[side]];
	else
		end->reader = http_reader_new(side == SIDE_CLIENT ? HTTP_REQUEST : HTTP_RESPONSE);
	return end->reader != NULL;
}

/* Between two messages another connection may use it: most are idle most of the time. */
static void leave_reader(struct connection *connection, enum connection_side side)
{
	struct connection_shared *shared = connection->shared;
	struct end *end = &connection->end[side];

	if (!end->reader || !http_reader_fresh(end->reader) || (side == SIDE_SERVER && connection->answering))
		return;
	if (shared->spare_reader_count[side] < SPARE_READERS_MAX)
		shared->spare_readers[side][shared->spare_reader_count[side]++] = end->reader;
	else
		http_reader_free(end->reader);
	end->reader = NULL;
	connection_count_reader(connection, side);
}

/* ---- requests ---- */

static void take_response(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event);

/*
 * Server bytes that came before the request that they answer. What a server said
 * before it ended the connection, a 408 to an idle one say, answers no later request.
 */
static void take_pending_response(struct connection *connection, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	struct buffer pending;

	if (server->pending.size == 0 || connection->given_up || server->finished)
		return;
	if (!have_reader(connection, SIDE_SERVER)) {
		break_off(connection, SIDE_SERVER, server->pending_offset, OUT_OF_MEMORY, event->when_ns);
		return;
	}
	pending = connection_pending_take(connection, SIDE_SERVER);
	take_response(connection, buffer_bytes(&pending), server->pending_offset, event);
	buffer_done(&pending);
}

/* The first bytes of a stream may have waited for those that tell what it speaks. */
static uint64_t began_ns(const struct end *client, const struct wire_event *event)
{
	return client->pending_ns && client->message_offset == client->pending_offset ? client->pending_ns : event->start_ns;
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
			client->message_ns = began_ns(client, event);
		}
		step = http_next(client->reader, &input, &part);
		offset = end_offset - input.size;
		connection->shared->totals.message_bytes += offset - counted;
		counted = offset;
		if (step == HTTP_HEAD) {
			const char *why = connection_add_call(connection, part.head, event);

			if (why)
				break_off(connection, SIDE_CLIENT, offset, why, event->when_ns);
		} else if (step == HTTP_BODY) {
			if (exchange_body(connection->requesting, part.body))
				connection->shared->out_of_memory = true;
		} else if (step == HTTP_END) {
			connection->requesting->request_end = offset;
			connection_give_out(connection, true, event->when_ns);
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
	connection_count_blind(connection, SIDE_CLIENT, input.size);
	if (!connection_count_reader(connection, SIDE_CLIENT) && !connection->given_up)
		break_off(connection, SIDE_CLIENT, offset, TOO_MUCH_HELD, event->when_ns);
}

/* ---- responses ---- */

static void hold_back(struct connection *connection, enum connection_side side, struct bytes input, uint64_t offset,
		      const struct wire_event *event)
{
	const char *reason = side == SIDE_SERVER ? "an answer without a request" : "no request line";
	struct end *end = &connection->end[side];

	if (end->pending.size == 0) {
		end->pending_offset = offset;
		end->pending_ns = event->start_ns;
	}
	if (end->pending.size + input.size <= PENDING_BYTES_MAX) {
		int err = connection_pending_add(connection, side, input);

		if (!err)
			return;
		reason = err == -ENOSPC ? TOO_MUCH_HELD : OUT_OF_MEMORY;
	}
	connection_count_blind(connection, side, input.size);
	break_off(connection, side, offset, reason, event->when_ns);
}

static bool start_answering(struct connection *connection)
{
	struct end *server = &connection->end[SIDE_SERVER];

	if (connection->answering)
		return true;
	connection->answering = connection_next_unanswered(connection);
	if (!connection->answering)
		return false;
	http_reader_expect(server->reader, connection->answering->call.method);
	return true;
}

/* What a stream speaks once this head made something else of it: CONNECT, or what Upgrade names (RFC 9110 section 7.8). */
static enum blind_kind kind_of_tunnel(const struct http_head *head)
{
	const struct http_field *upgrade = head->status == 101 ? http_head_find(head, BYTES("Upgrade")) : NULL;
	struct bytes protocol;

	if (!upgrade)
		return BLIND_CONNECT;
	protocol = (struct bytes){upgrade->value.data, bytes_find(upgrade->value, ',')};
	protocol = bytes_trim((struct bytes){protocol.data, bytes_find(protocol, '/')});
	if (bytes_equal_nocase(protocol, BYTES("websocket")))
		return BLIND_WEBSOCKET;
	if (bytes_equal_nocase(protocol, BYTES("h2c")) || bytes_equal_nocase(protocol, BYTES("HTTP")))
		return BLIND_H2;
	if (bytes_equal_nocase(protocol, BYTES("TLS"))) /* RFC 2817 */
		return BLIND_TLS;
	return BLIND_CONNECT;
}

static void take_response(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	uint64_t end_offset = offset + input.size;
	enum blind_kind tunnel = BLIND_CONNECT;
	enum http_step step = HTTP_BODY;
	struct http_part part;

	while (step != HTTP_NEED_MORE && !connection->given_up) {
		struct exchange *exchange;
		uint64_t before = end_offset - input.size;

		if (!start_answering(connection)) {
			if (input.size)
				hold_back(connection, SIDE_SERVER, input, before, event);
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
		if (step == HTTP_HEAD) {
			tunnel = kind_of_tunnel(part.head);
			connection_response_head(connection, part.head, event);
		} else if (step == HTTP_BODY && exchange_answer(exchange, part.body))
			connection->shared->out_of_memory = true;
		if (exchange->response_started && !connection->interim) {
			exchange->response_end = offset;
			exchange->call.response_last_ns = event->when_ns;
			exchange->call.server_process = connection->server_process;
		}
		if (step == HTTP_END)
			connection_response_complete(connection, part.ended, event->start_ns);
		else if (step == HTTP_BROKEN)
			break_off(connection, SIDE_SERVER, offset, part.reason, event->when_ns);
		if (step == HTTP_TUNNEL) {
			connection_response_complete(connection, HTTP_ENDED_NO_BODY, event->start_ns);
			connection_go_blind(connection, tunnel, event->when_ns);
		}
	}
	connection_count_blind(connection, SIDE_SERVER, input.size);
	if (!connection_count_reader(connection, SIDE_SERVER) && !connection->given_up)
		break_off(connection, SIDE_SERVER, offset, TOO_MUCH_HELD, event->when_ns);
}

/* ---- bytes and holes ---- */

/* No kernel says so: a FIN and a RST count every byte before them. */
#define AFTER_THE_END "bytes after the end of the stream"

/* Does the first line name a version of HTTP, if only one that nobody speaks? */
static bool names_http(struct bytes first)
{
	struct bytes line;

	while (first.size && (first.data[0] == '\r' || first.data[0] == '\n'))
		bytes_take(&first, 1);
	line = bytes_take(&first, bytes_find(first, '\n'));
	while (line.size) {
		bytes_take(&line, bytes_find(line, ' '));
		bytes_take(&line, 1);
		if (line.size >= 5 && bytes_equal_nocase((struct bytes){line.data, 5}, BYTES("HTTP/")))
			return true;
	}
	return false;
}

/* The first bytes of the client decide what the connection speaks. */
static void decide(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *client = &connection->end[SIDE_CLIENT];
	struct buffer first;

	hold_back(connection, SIDE_CLIENT, input, offset, event);
	if (connection->given_up)
		return;
	switch (stream_sniff(buffer_bytes(&client->pending), true)) {
	case STREAM_UNDECIDED:
		return;
	case STREAM_HTTP1:
		break;
	case STREAM_TLS:
		connection_go_blind(connection, BLIND_TLS, event->when_ns);
		return;
	case STREAM_HTTP2:
		connection_go_blind(connection, BLIND_H2, event->when_ns);
		return;
	case STREAM_OTHER:
		connection_go_blind(connection, BLIND_OTHER, event->when_ns);
		return;
	}
	first = connection_pending_take(connection, SIDE_CLIENT);
	client->says_http = names_http(buffer_bytes(&first));
	connection_read_on(connection, buffer_bytes(&first), client->pending_offset, event);
	buffer_done(&first);
}

void connection_read_on(struct connection *connection, struct bytes first, uint64_t offset, const struct wire_event *event)
{
	connection->end[SIDE_CLIENT].decided = true;
	if (have_reader(connection, SIDE_CLIENT))
		take_request(connection, first, offset, event);
	else
		break_off(connection, SIDE_CLIENT, offset, OUT_OF_MEMORY, event->when_ns);
}

/* A server that speaks before any request: its first words tell whether an answer may still find its request. */
static void speak_first(struct connection *connection, struct bytes input, uint64_t offset, const struct wire_event *event)
{
	struct end *server = &connection->end[SIDE_SERVER];
	enum stream_protocol protocol;

	hold_back(connection, SIDE_SERVER, input, offset, event);
	if (connection->given_up)
		return;
	protocol = stream_sniff(buffer_bytes(&server->pending), false);
	if (protocol == STREAM_HTTP1 || protocol == STREAM_UNDECIDED)
		return;
	connection_go_blind(connection, protocol == STREAM_HTTP2 ? BLIND_H2 : protocol == STREAM_TLS ? BLIND_TLS : BLIND_OTHER,
		 event->when_ns);
}

static void take_bytes(struct connection *connection, enum connection_side side, const struct stream_piece *piece,
		       const struct wire_event *event)
{
	struct end *end = &connection->end[side];

	if (connection->proof.on)
		connection_proof_in(connection, side, piece, event->when_ns);
	if (connection->given_up && side == SIDE_CLIENT && !end->finished) {
		connection_search_in(connection, piece, event);
	} else if (connection->given_up) {
		connection_count_blind(connection, side, piece->length);
	} else if (end->finished) {
		connection_count_blind(connection, side, piece->length);
		break_off(connection, side, piece->offset, AFTER_THE_END, event->when_ns);
	} else if (!have_reader(connection, side)) {
		connection_count_blind(connection, side, piece->length);
		break_off(connection, side, piece->offset, OUT_OF_MEMORY, event->when_ns);
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
		break_off(connection, SIDE_CLIENT, piece->offset, bytes_missing, now_ns);
		return;
	}
	exchange_body_hole(exchange, piece->length);
	exchange->request_end = piece->offset + piece->length;
	if (http_next(client->reader, &nothing, &part) == HTTP_END)
		connection_give_out(connection, true, now_ns);
}

static void hole_in_response(struct connection *connection, const struct stream_piece *piece, uint64_t now_ns)
{
	struct exchange *exchange = connection->answering;
	struct end *server = &connection->end[SIDE_SERVER];
	struct http_part part;
	struct bytes nothing = {0};

	if (!exchange || !server->reader || !http_skip(server->reader, piece->length)) {
		break_off(connection, SIDE_SERVER, piece->offset, bytes_missing, now_ns);
		return;
	}
	exchange_answer_hole(exchange, piece->length);
	exchange->call.response_last_ns = now_ns;
	exchange->response_end = piece->offset + piece->length;
	if (http_next(server->reader, &nothing, &part) == HTTP_END)
		connection_response_complete(connection, part.ended, now_ns);
}

static void take_hole(struct connection *connection, enum connection_side side, const struct stream_piece *piece, uint64_t now_ns)
{
	struct connection_result *result;

	if (connection->given_up) {
		if (connection->proof.on)
			connection_proof_in(connection, side, piece, now_ns);
		connection_count_blind(connection, side, piece->length);
		if (side == SIDE_CLIENT)
			connection_search_drop(connection);
		return;
	}
	connection->shared->totals.hole_bytes += piece->length;
	result = connection_push_about(connection, CONNECTION_HOLE, now_ns);
	if (result) {
		result->from_client = side == SIDE_CLIENT;
		result->offset = piece->offset;
		result->length = piece->length;
		result->cause = piece->cause;
	}
	if (connection->end[side].finished)
		break_off(connection, side, piece->offset, AFTER_THE_END, now_ns);
	else if (side == SIDE_CLIENT)
		hole_in_request(connection, piece, now_ns);
	else
		hole_in_response(connection, piece, now_ns);
}

/* What the server sent before the request that was found answers others, which were not. */
static void skip_former_answers(struct connection *connection, struct stream_piece *piece)
{
	uint64_t answer_at = connection->search.answer_at;
	uint64_t before = piece->offset < answer_at ? answer_at - piece->offset : 0;

	if (before > piece->length)
		before = piece->length;
	connection_count_blind(connection, SIDE_SERVER, before);
	piece->offset += before;
	piece->length -= before;
	bytes_take(&piece->bytes, (size_t)before);
}

void connection_take(struct connection *connection, enum connection_side side, const struct wire_event *event,
		     struct bytes payload)
{
	struct end *end = &connection->end[side];
	struct stream_piece piece;
	enum stream_step step;

	if (side == SIDE_CLIENT)
		connection_search_note(connection, event);
	stream_feed(&end->stream, event, payload);
	while ((step = stream_next(&end->stream, &piece)) != STREAM_NOTHING) {
		if (side == SIDE_SERVER)
			skip_former_answers(connection, &piece);
		if (piece.length == 0)
			continue;
		if (step == STREAM_BYTES)
			take_bytes(connection, side, &piece, event);
		else
			take_hole(connection, side, &piece, event->when_ns);
	}
	/* A request may have let an answer be read that had waited for it. */
	leave_reader(connection, SIDE_CLIENT);
	leave_reader(connection, SIDE_SERVER);
}
