/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Content codings undone (RFC 9110 section 8.4): coded bytes in, slices of the
 * plain entity out, so that two bodies are compared by what they say and not by
 * how a compressor put it. gzip, deflate, br, zstd, aws-chunked, several in a
 * row, identity.
 *
 * What comes out is bounded twice against bombs: by limit_bytes, and from
 * DECODE_FREE_BYTES on by DECODE_RATIO times what went in. Both hold for every
 * coding of a row. A decoder takes at most 16 KiB and one window a coding: 8 MiB
 * of zstd (a larger one is refused, RFC 9659), 16 MiB of br (RFC 7932), 32 KiB of
 * the others.
 *
 * Pure: no clock, no I/O, no logging.
 */
#ifndef NIGHTCLERK_DECODE_H
#define NIGHTCLERK_DECODE_H

#include "bytes.h"
#include "http.h"

#define DECODE_CODINGS_MAX 4
#define DECODE_RATIO 1000
#define DECODE_FREE_BYTES (64 * 1024)

enum decode_result {
	DECODE_WHOLE,
	DECODE_UNKNOWN_CODING,
	DECODE_DAMAGED,
	DECODE_TOO_LARGE,
	DECODE_TRUNCATED, /* it ends inside a coding; what came out up to there is good */
	DECODE_OUT_OF_MEMORY,
};

enum decode_step {
	DECODE_NEED_MORE, /* all of *input was taken */
	DECODE_BYTES,	  /* *ret_output: lent until the next call, never empty */
	DECODE_FAILED,	  /* decode_end() says how */
};

struct decoder;

/*
 * A decoder for every coding that the head's Content-Encoding lines name.
 * *ret_decoder is NULL where there is none to undo. A coding that is not known
 * shows as DECODE_FAILED at the first call. 0 or -ENOMEM.
 */
int decode_new(const struct http_head *head, uint64_t limit_bytes, struct decoder **ret_decoder);
void decode_free(struct decoder *decoder); /* accepts NULL */

/*
 *	while ((step = decode_next(decoder, &input, &output)) == DECODE_BYTES)
 *		...
 */
enum decode_step decode_next(struct decoder *decoder, struct bytes *input, struct bytes *ret_output);
/* No more input. */
enum decode_result decode_end(const struct decoder *decoder);
/* Static text for the result of decode_end(); NULL for DECODE_WHOLE. */
const char *decode_reason(const struct decoder *decoder);

/* All of the input at once; what comes out is appended to out. */
enum decode_result decode_all(struct decoder *decoder, struct bytes input, struct buffer *out);

#endif
