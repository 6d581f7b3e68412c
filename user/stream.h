/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of one connection: wire events in, bytes in stream order out,
 * with the holes known. Bytes are placed by offset, never by arrival; what was
 * already passed on is dropped, so no byte comes out twice.
 *
 * Pure and without buffering: it lends the payload it was given.
 */
#ifndef NIGHTCLERK_STREAM_H
#define NIGHTCLERK_STREAM_H

#include "../bpf/wire_event.h"
#include "bytes.h"

enum stream_step {
	STREAM_NOTHING, /* no further piece in this event */
	STREAM_BYTES,	/* piece->bytes at piece->offset */
	STREAM_HOLE,	/* piece->length bytes at piece->offset are missing; piece->cause */
};

struct stream_piece {
	uint64_t offset;
	uint64_t length;
	struct bytes bytes;	/* STREAM_BYTES: length bytes of it */
	enum wire_cause cause;	/* STREAM_HOLE */
};

struct stream {
	uint64_t next_offset;	/* the first byte not passed on yet */
	uint64_t hole_bytes;	/* so far */
	/* private: the event in progress */
	const struct wire_event *event;
	struct bytes payload;
};

/* The stream starts at the given offset (0, or where a late join begins). */
void stream_init(struct stream *stream, uint64_t first_offset);

/*
 * Hands in one WIRE_DATA, WIRE_HOLE or WIRE_END event of this flow; event and
 * payload must live until stream_next() has returned STREAM_NOTHING.
 * Bytes between next_offset and the event become a hole with cause
 * WIRE_CAUSE_MISSED, unless the event names a better one: a HOLE or END with a
 * cause, or a DATA event with a cause that it does not need for its own bytes.
 * Any other kind leads to nothing.
 */
void stream_feed(struct stream *stream, const struct wire_event *event, struct bytes payload);
enum stream_step stream_next(struct stream *stream, struct stream_piece *ret_piece);

/* What the first bytes of a stream say it is. */
enum stream_protocol {
	STREAM_UNDECIDED, /* a prefix that may still become any of these */
	STREAM_HTTP1,
	STREAM_TLS,   /* a TLS record: 0x16 0x03 (RFC 8446 section 5.1) */
	STREAM_HTTP2, /* the preface: "PRI * HTTP/2.0", or a SETTINGS frame (RFC 9113 section 3.4) */
	STREAM_OTHER, /* no HTTP token or status line */
};

/* Only so many bytes are looked at; with as many at hand the answer is never STREAM_UNDECIDED. */
#define STREAM_SNIFF_BYTES 128

/*
 * first = the first bytes from offset 0; from_client: a request line is due,
 * else a status line. An answer other than STREAM_UNDECIDED stays the same
 * however many bytes follow.
 *
 * Every method token is HTTP, known or not. What a line protocol may send too
 * ("EHLO name", "SET key value") is HTTP only with a target that begins with
 * "/" or "*" or holds "://", with CONNECT, or with " HTTP/1." on the line.
 */
enum stream_protocol stream_sniff(struct bytes first, bool from_client);

#endif
