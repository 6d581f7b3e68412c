/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection was given up before a request could be read: was it HTTP all
 * the same? Its own first line may say so, or the first words of the other end:
 * a status line answers a request, whatever came before it or was wrong with
 * it. Then a call may hide in what was not read, and the run cannot tell.
 *
 * Until the other end has spoken, or need not be waited for any more, the
 * kernel goes on copying.
 */
#include "connection_parts.h"

/* A stream that is not answered after so much, a log say, is no HTTP. */
#define UNANSWERED_BYTES_MAX (64 * 1024)

static bool has_spoken(const struct end *end)
{
	return end->stream.next_offset > 0;
}

bool connection_proof_start(struct connection *connection)
{
	const struct end *client = &connection->end[SIDE_CLIENT], *server = &connection->end[SIDE_SERVER];
	struct proof *proof = &connection->proof;

	if (connection->spoke_http || client->says_http || (client->reader && http_reader_saw_version(client->reader)) ||
	    stream_sniff(buffer_bytes(&server->pending), false) == STREAM_HTTP1)
		return true;
	proof->of = has_spoken(client) ? SIDE_SERVER : SIDE_CLIENT;
	proof->on = !has_spoken(&connection->end[proof->of]);
	return false;
}

void connection_proof_stop(struct connection *connection)
{
	connection->proof.on = false;
	buffer_done(&connection->proof.first);
}

static void give_up_waiting(struct connection *connection, uint64_t now_ns)
{
	connection_proof_stop(connection);
	connection_push_about(connection, CONNECTION_SILENT, now_ns);
}

static void proven(struct connection *connection, enum connection_side side, uint64_t now_ns)
{
	struct connection_result *result;

	connection_proof_stop(connection);
	result = connection_push_about(connection, CONNECTION_BROKEN, now_ns);
	if (!result)
		return;
	result->from_client = side == SIDE_CLIENT;
	result->reason = side == SIDE_CLIENT ? "a request to a server that spoke something else first"
					     : "an answer to a request that could not be read";
	result->matters = true;
}

void connection_proof_in(struct connection *connection, enum connection_side side, const struct stream_piece *piece,
			 uint64_t now_ns)
{
	struct proof *proof = &connection->proof;
	struct bytes front = piece->bytes;

	if (side != proof->of) {
		proof->unanswered += piece->length;
		if (proof->unanswered > UNANSWERED_BYTES_MAX)
			give_up_waiting(connection, now_ns);
		return;
	}
	front = bytes_take(&front, STREAM_SNIFF_BYTES - proof->first.size);
	if (!front.size || buffer_append(&proof->first, front)) { /* a hole, or no memory */
		connection->shared->out_of_memory |= front.size > 0;
		give_up_waiting(connection, now_ns);
		return;
	}
	switch (stream_sniff(buffer_bytes(&proof->first), side == SIDE_CLIENT)) {
	case STREAM_UNDECIDED:
		break;
	case STREAM_HTTP1:
		proven(connection, side, now_ns);
		break;
	default:
		give_up_waiting(connection, now_ns);
		break;
	}
}
