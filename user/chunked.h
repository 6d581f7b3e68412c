/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The chunked transfer coding (RFC 9112 section 7.1): bytes as sent in, data
 * out. Used by http.c and decode_aws_chunked.c; on its own because llhttp 8 as
 * Debian 12 builds it skips the two bytes after a chunk unseen, where a bad CRLF
 * must break.
 *
 * Strict where a lax reader and a strict one would see different messages: only
 * hex digits make a size, and every line ends in CRLF. Extensions and trailer
 * fields are passed over; a size line has at most LIMIT_HEAD_BYTES bytes.
 * Keeps no byte. A zeroed struct is at the start of a body.
 */
#ifndef NIGHTCLERK_CHUNKED_H
#define NIGHTCLERK_CHUNKED_H

#include "bytes.h"

enum chunked_step {
	CHUNKED_NEED_MORE, /* all of *input was taken */
	CHUNKED_DATA,	   /* *ret_data: a slice of input, never empty */
	CHUNKED_END,	   /* zero chunk, trailer and last line were read */
	CHUNKED_BROKEN,	   /* chunked->reason; stop feeding */
};

struct chunked {
	int state;
	size_t line_bytes; /* of the size line in progress */
	uint64_t left;	   /* data bytes still to come in this chunk */
	const char *reason; /* static text */
};

enum chunked_step chunked_next(struct chunked *chunked, struct bytes *input, struct bytes *ret_data);

#endif
