/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The next request of a client whose thread was lost, because bytes are missing
 * or because the connection is older than we are.
 *
 * It is looked for where a send begins, once the client received something
 * since its last send: on a connection that is used one request at a time
 * (RFC 9112 section 9.3) that is where one begins, and a body that reads like a
 * request line does not stand there. A whole request line must follow. Its
 * answer begins where the server's stream stood when the client sent it.
 *
 * A client that pipelined is not followed again: which answer is whose cannot
 * be told.
 */
#include "connection_parts.h"
#include "ascii.h"

#define LINE_BYTES_MAX 8192
#define IN_VAIN_BYTES_MAX (1024 * 1024) /* then it is taken for no HTTP, and need not be copied */

void connection_search_note(struct connection *connection, const struct wire_event *event)
{
	struct search *search = &connection->search;

	if (event->kind != WIRE_DATA && event->kind != WIRE_HOLE)
		return;
	search->begins = event->kind == WIRE_DATA && event->start_ns != search->send_ns &&
			 (search->first || event->received_bytes > search->received);
	search->first = false;
	search->send_ns = event->start_ns;
	search->received = event->received_bytes;
}

void connection_search_start(struct connection *connection)
{
	size_t unanswered = 0;

	for (const struct exchange *x = connection->first; x; x = x->next)
		unanswered += !x->call.response_complete;
	connection->search.on = unanswered <= 1;
	connection->search.bytes = 0;
	connection->search.first = connection->blind && connection->search.send_ns == 0;
}

/* ---- the request line: RFC 9112 section 3 ---- */

enum likeness { LIKE_NO_REQUEST, LIKE_A_REQUEST, LIKE_MORE /* so far */ };

static bool is_target(uint8_t c)
{
	return c > ' ' && c != 0x7f;
}

static size_t count_while(struct bytes text, bool (*fits)(uint8_t))
{
	size_t n = 0;

	while (n < text.size && fits(text.data[n]))
		n++;
	return n;
}

static enum likeness likeness_of(struct bytes text)
{
	struct bytes method = bytes_take(&text, count_while(text, ascii_is_token)), target, version;

	if (!method.size || (text.size && text.data[0] != ' '))
		return LIKE_NO_REQUEST;
	bytes_take(&text, 1);
	target = bytes_take(&text, count_while(text, is_target));
	if (!text.size)
		return LIKE_MORE;
	if (!target.size || text.data[0] != ' ')
		return LIKE_NO_REQUEST;
	bytes_take(&text, 1);
	version = bytes_take(&text, strlen("HTTP/1."));
	if (memcmp(version.data, "HTTP/1.", version.size) != 0)
		return LIKE_NO_REQUEST;
	if (text.size < strlen("1\r\n"))
		return LIKE_MORE;
	if (text.data[0] != '0' && text.data[0] != '1')
		return LIKE_NO_REQUEST;
	return (text.data[1] == '\r' && text.data[2] == '\n') || text.data[1] == '\n' ? LIKE_A_REQUEST : LIKE_NO_REQUEST;
}

/* ---- found ---- */

/* Of what was lost nothing more will be learnt. */
static void close_former_calls(struct connection *connection, uint64_t now_ns)
{
	if (connection->requesting)
		connection_give_out(connection, false, now_ns);
	while (connection->first)
		connection_close_call(connection, connection->first, now_ns);
	connection->interim = false;
}

static void read_on(struct connection *connection, const struct wire_event *event)
{
	struct end *client = &connection->end[SIDE_CLIENT];
	struct buffer found = connection_pending_take(connection, SIDE_CLIENT);

	close_former_calls(connection, event->when_ns);
	connection->search.resumed = connection->blind ? "the connection is older than the observer"
						       : "what the connection carried just before was not seen";
	if (connection->blind)
		connection_push_about(connection, CONNECTION_BLIND_END, event->when_ns);
	client->blind_bytes = connection->end[SIDE_SERVER].blind_bytes = 0;
	connection->blind = connection->given_up = false;
	connection->search.on = false;
	connection_read_on(connection, buffer_bytes(&found), client->pending_offset, event);
	buffer_done(&found);
}

/* ---- looking ---- */

void connection_search_drop(struct connection *connection)
{
	struct buffer pending;

	if (!connection->given_up)
		return;
	pending = connection_pending_take(connection, SIDE_CLIENT);
	connection_count_blind(connection, SIDE_CLIENT, pending.size);
	connection->search.bytes += pending.size;
	buffer_done(&pending);
}

static void search_in_vain(struct connection *connection, const struct stream_piece *piece, uint64_t now_ns)
{
	connection_count_blind(connection, SIDE_CLIENT, piece->length);
	connection->search.bytes += piece->length;
	if (connection->search.on && connection->search.bytes > IN_VAIN_BYTES_MAX) {
		connection->search.on = false;
		connection_push_about(connection, CONNECTION_SILENT, now_ns);
	}
}

void connection_search_in(struct connection *connection, const struct stream_piece *piece, const struct wire_event *event)
{
	struct end *client = &connection->end[SIDE_CLIENT];
	struct search *search = &connection->search;

	if (search->begins && piece->offset == event->offset) {
		connection_search_drop(connection);
		client->pending_offset = piece->offset;
		client->pending_ns = event->start_ns;
		search->answer_at = event->received_bytes;
	} else if (client->pending.size == 0) {
		search_in_vain(connection, piece, event->when_ns);
		return;
	}
	if (!search->on || client->finished || client->pending.size + piece->length > LINE_BYTES_MAX + WIRE_PAYLOAD_MAX ||
	    connection_pending_add(connection, SIDE_CLIENT, piece->bytes)) {
		connection_search_drop(connection);
		search_in_vain(connection, piece, event->when_ns);
		return;
	}
	switch (likeness_of(buffer_bytes(&client->pending))) {
	case LIKE_A_REQUEST:
		read_on(connection, event);
		break;
	case LIKE_NO_REQUEST:
		connection_search_drop(connection);
		break;
	case LIKE_MORE:
		break;
	}
}
