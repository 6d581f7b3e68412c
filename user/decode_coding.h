/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What decode.c needs of one coding. Private to decode*.c; each of the others
 * knows one library.
 */
#ifndef NIGHTCLERK_DECODE_CODING_H
#define NIGHTCLERK_DECODE_CODING_H

#include "bytes.h"

enum coding_step {
	CODING_MORE,  /* all of *input was taken, or all of the space was filled */
	CODING_WHOLE, /* the same, and the coding may end here */
	CODING_DAMAGED,
	CODING_TOO_LARGE, /* it asks for more memory than a decoder gets */
	CODING_OUT_OF_MEMORY,
};

/* Where a coding writes. */
struct coding_space {
	uint8_t *data;
	size_t size; /* written so far */
	size_t capacity;
};

struct coding {
	const char *name;
	const char *other_name;
	const char *damaged; /* why, in words */
	void *(*start)(void); /* NULL when out of memory */
	enum coding_step (*run)(void *state, struct bytes *input, struct coding_space *space);
	void (*done)(void *state); /* accepts NULL */
};

extern const struct coding coding_gzip;
extern const struct coding coding_deflate;
extern const struct coding coding_br;
extern const struct coding coding_zstd;
extern const struct coding coding_aws_chunked;

#endif
