/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places bytes by offset. next_offset is the only state: where it stands in
 * relation to the event says which piece is next (the gap before the event, its
 * bytes, or the tail that was accepted but not captured), so an event that
 * repeats bytes, wholly or in part, needs no case of its own.
 *
 * Offsets and lengths may come from a hostile recording: sums saturate.
 */
#include "stream.h"
#include "ascii.h"

#define REQUEST_METHOD_CONNECT BYTES("CONNECT")

void stream_init(struct stream *stream, uint64_t first_offset)
{
	*stream = (struct stream){.next_offset = first_offset};
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void stream_feed(struct stream *stream, const struct wire_event *event, struct bytes payload)
{
	bool places_bytes = event->kind == WIRE_DATA || event->kind == WIRE_HOLE ||
			    event->kind == WIRE_END;

	stream->event = places_bytes ? event : NULL;
	stream->payload = payload;
}

/* Bytes of the event that can be lent; what is beyond them is a hole. */
static uint64_t lendable(const struct wire_event *event, struct bytes payload)
{
	if (event->kind != WIRE_DATA)
		return 0;
	return min(min(event->captured_bytes, payload.size),
		   min(event->length_bytes, UINT64_MAX - event->offset));
}

static enum stream_step hole_to(struct stream *stream, uint64_t end, enum wire_cause cause,
				struct stream_piece *ret_piece)
{
	*ret_piece = (struct stream_piece){
		.offset = stream->next_offset,
		.length = end - stream->next_offset,
		.cause = cause != WIRE_CAUSE_NONE ? cause : WIRE_CAUSE_MISSED,
	};
	stream->hole_bytes = add(stream->hole_bytes, ret_piece->length);
	stream->next_offset = end;
	return STREAM_HOLE;
}

static enum stream_step bytes_to(struct stream *stream, uint64_t end,
				 struct stream_piece *ret_piece)
{
	uint64_t skipped = stream->next_offset - stream->event->offset;
	uint64_t length = end - stream->next_offset;

	*ret_piece = (struct stream_piece){
		.offset = stream->next_offset,
		.length = length,
		.bytes = {stream->payload.data + skipped, (size_t)length},
	};
	stream->next_offset = end;
	return STREAM_BYTES;
}

enum stream_step stream_next(struct stream *stream, struct stream_piece *ret_piece)
{
	const struct wire_event *event = stream->event;
	uint64_t bytes_end, end;
	bool own_tail;

	if (!event)
		return STREAM_NOTHING;
	bytes_end = event->offset + lendable(event, stream->payload);
	/* The offset of an END is where the stream ends, whatever its length field holds. */
	end = event->kind == WIRE_END ? event->offset : add(event->offset, event->length_bytes);
	own_tail = event->kind == WIRE_DATA && bytes_end < end;

	/* The gap before a HOLE has the cause of the HOLE, so both are one piece. */
	if (event->kind != WIRE_DATA && stream->next_offset < end)
		return hole_to(stream, end, event->cause, ret_piece);
	if (stream->next_offset < event->offset)
		return hole_to(stream, event->offset,
			       own_tail ? WIRE_CAUSE_MISSED : event->cause, ret_piece);
	if (stream->next_offset < bytes_end)
		return bytes_to(stream, bytes_end, ret_piece);
	if (stream->next_offset < end)
		return hole_to(stream, end, event->cause, ret_piece);
	stream->event = NULL;
	stream->payload = (struct bytes){0};
	return STREAM_NOTHING;
}

/* Is one of the two the beginning of the other? *ret_whole: all of word is there. */
static bool agrees(struct bytes text, struct bytes word, bool *ret_whole)
{
	*ret_whole = text.size >= word.size;
	return *ret_whole ? bytes_starts_with(text, word) : bytes_starts_with(word, text);
}

static bool holds(struct bytes text, struct bytes word)
{
	return text.size && memmem(text.data, text.size, word.data, word.size);
}

/*
 * What follows the method and its SP: the rest of the first line as far as it
 * is known. RFC 9112 section 3.2 names the four forms of a target.
 */
static enum stream_protocol sniff_target(struct bytes rest, bool is_connect)
{
	size_t newline = bytes_find(rest, '\n');
	struct bytes line = {rest.data, newline};
	struct bytes target;

	while (line.size && line.data[0] == ' ')
		bytes_take(&line, 1);
	target = (struct bytes){line.data, bytes_find(line, ' ')};
	if (target.size && target.data[0] > ' ' && target.data[0] != 0x7f) {
		if (is_connect || target.data[0] == '/' || target.data[0] == '*')
			return STREAM_HTTP1;
		if (holds(target, BYTES("://")) || holds(line, BYTES(" HTTP/1.")))
			return STREAM_HTTP1;
	} else if (target.size) {
		return STREAM_OTHER;
	}
	return newline < rest.size ? STREAM_OTHER : STREAM_UNDECIDED;
}

static enum stream_protocol sniff_request(struct bytes first)
{
	struct bytes method;
	bool whole;

	if (agrees(first, BYTES("PRI * HTTP/2.0"), &whole))
		return whole ? STREAM_HTTP2 : STREAM_UNDECIDED;
	/* Empty lines before a request line are to be ignored: RFC 9112 section 2.2. */
	while (first.size && (first.data[0] == '\r' || first.data[0] == '\n'))
		bytes_take(&first, 1);
	method = (struct bytes){first.data, 0};
	while (method.size < first.size && ascii_is_token(first.data[method.size]))
		method.size++;
	if (method.size == first.size)
		return STREAM_UNDECIDED;
	if (method.size == 0 || first.data[method.size] != ' ')
		return STREAM_OTHER;
	bytes_take(&first, method.size + 1);
	return sniff_target(first, bytes_equal(method, REQUEST_METHOD_CONNECT));
}

/* A SETTINGS frame on stream 0 without ACK: RFC 9113 sections 4.1 and 6.5. */
static bool agrees_with_settings(struct bytes first)
{
	static const uint8_t frame[9] = {[3] = 4};

	for (size_t i = 0; i < sizeof(frame) && i < first.size; i++) {
		bool good = i == 2 ? first.data[i] % 6 == 0 : first.data[i] == frame[i];

		if (!good)
			return false;
	}
	return true;
}

static enum stream_protocol sniff_answer(struct bytes first)
{
	bool whole;

	if (agrees(first, BYTES("HTTP/1."), &whole))
		return whole ? STREAM_HTTP1 : STREAM_UNDECIDED;
	if (agrees_with_settings(first))
		return first.size >= 9 ? STREAM_HTTP2 : STREAM_UNDECIDED;
	return STREAM_OTHER;
}

enum stream_protocol stream_sniff(struct bytes first, bool from_client)
{
	struct bytes looked_at = bytes_take(&first, STREAM_SNIFF_BYTES);
	enum stream_protocol protocol;
	bool whole;

	if (looked_at.size == 0)
		return STREAM_UNDECIDED;
	if (agrees(looked_at, BYTES("\x16\x03"), &whole))
		return whole ? STREAM_TLS : STREAM_UNDECIDED;
	protocol = from_client ? sniff_request(looked_at) : sniff_answer(looked_at);
	if (protocol == STREAM_UNDECIDED && looked_at.size == STREAM_SNIFF_BYTES)
		return STREAM_OTHER;
	return protocol;
}
