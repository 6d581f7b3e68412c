/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One state per place in the grammar, one byte at a time but for chunk data,
 * which is lent in runs. What a byte means never depends on how the input was
 * cut.
 */
#include "chunked.h"
#include "ascii.h"
#include "limits.h"

enum state {
	SIZE_FIRST, /* 0: a zeroed struct starts here */
	SIZE,
	EXTENSION,
	SIZE_LF,
	DATA,
	DATA_CR,
	DATA_LF,
	TRAILER_START,
	TRAILER_NAME,
	TRAILER_VALUE,
	TRAILER_LF,
	LAST_LF,
	ENDED,
	BROKEN,
};

static int broken(struct chunked *chunked, const char *reason)
{
	chunked->reason = reason;
	return BROKEN;
}

/* The next state after one byte of a size line. */
static int size_line(struct chunked *chunked, uint8_t c)
{
	int digit = chunked->state == EXTENSION ? -1 : ascii_hex_value(c);

	if (++chunked->line_bytes > LIMIT_HEAD_BYTES)
		return broken(chunked, "chunk size line too long");
	if (digit >= 0) {
		if (chunked->left > UINT64_MAX >> 4)
			return broken(chunked, "chunk size over 64 bits");
		chunked->left = chunked->left << 4 | (uint64_t)digit;
		return SIZE;
	}
	if (c == '\n')
		return broken(chunked, "bare LF in chunk framing");
	if (chunked->state == EXTENSION)
		return c == '\r' ? SIZE_LF : EXTENSION;
	if (chunked->state == SIZE && c == '\r')
		return SIZE_LF;
	if (chunked->state == SIZE && c == ';')
		return EXTENSION;
	return broken(chunked, "bad chunk size");
}

/*
 * The next state after one byte of the trailer. A name is checked so far that a
 * start line cannot pass for one: where the last CRLF was left out, the next
 * message must not vanish in here.
 */
static int trailer(struct chunked *chunked, uint8_t c)
{
	switch (chunked->state) {
	case TRAILER_START:
		if (c == '\r')
			return LAST_LF;
		if (c == '\n')
			return broken(chunked, "bare LF in chunk framing");
		if (c == ' ' || c == '\t' || c == ':')
			return broken(chunked, "bad trailer");
		return TRAILER_NAME;
	case TRAILER_NAME:
		if (c == ':')
			return TRAILER_VALUE;
		if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
			return broken(chunked, "bad trailer");
		return TRAILER_NAME;
	default:
		if (c == '\n')
			return broken(chunked, "bare LF in chunk framing");
		return c == '\r' ? TRAILER_LF : TRAILER_VALUE;
	}
}

/* The next state after one byte that can only be c = wanted. */
static int expect(struct chunked *chunked, uint8_t c, uint8_t wanted, int next)
{
	if (c == wanted)
		return next;
	return broken(chunked, chunked->state == DATA_CR || chunked->state == DATA_LF ?
				       "no CRLF after chunk data" : "bare CR in chunk framing");
}

static int after_byte(struct chunked *chunked, uint8_t c)
{
	switch (chunked->state) {
	case SIZE_FIRST:
	case SIZE:
	case EXTENSION:
		return size_line(chunked, c);
	case SIZE_LF:
		chunked->line_bytes = 0;
		return expect(chunked, c, '\n', chunked->left ? DATA : TRAILER_START);
	case DATA_CR:
		return expect(chunked, c, '\r', DATA_LF);
	case DATA_LF:
		return expect(chunked, c, '\n', SIZE_FIRST);
	case TRAILER_LF:
		return expect(chunked, c, '\n', TRAILER_START);
	case LAST_LF:
		return expect(chunked, c, '\n', ENDED);
	default:
		return trailer(chunked, c);
	}
}

enum chunked_step chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_data)
{
	while (chunked->state != ENDED && chunked->state != BROKEN) {
		if (!input->size)
			return CHUNKED_NEED_MORE;
		if (chunked->state == DATA) {
			*ret_data = bytes_take(input, chunked->left < input->size ?
							      (size_t)chunked->left : input->size);
			chunked->left -= ret_data->size;
			if (!chunked->left)
				chunked->state = DATA_CR;
			return CHUNKED_DATA;
		}
		chunked->state = after_byte(chunked, bytes_take(input, 1).data[0]);
	}
	return chunked->state == ENDED ? CHUNKED_END : CHUNKED_BROKEN;
}
