/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256 (FIPS 180-4). The only file that knows libcrypto.
 */
#ifndef NIGHTCLERK_DIGEST_H
#define NIGHTCLERK_DIGEST_H

#include "bytes.h"

#define DIGEST_BYTES 32

struct digest {
	uint8_t byte[DIGEST_BYTES];
};

struct digest_state; /* an incremental hash; used again and again */

/* NULL when out of memory. */
struct digest_state *digest_state_new(void);
void digest_state_free(struct digest_state *state); /* accepts NULL */
/* Each returns 0 or -ENOMEM (libcrypto failed). */
int digest_start(struct digest_state *state);
int digest_add(struct digest_state *state, struct bytes bytes);
/* 8 bytes, little endian. */
int digest_add_number(struct digest_state *state, uint64_t number);
/* The length by digest_add_number(), then the bytes: no two lists of fields give one input. */
int digest_add_field(struct digest_state *state, struct bytes bytes);
int digest_finish(struct digest_state *state, struct digest *ret_digest);
/* One call for one slice. */
int digest_of(struct bytes bytes, struct digest *ret_digest);

bool digest_equal(const struct digest *a, const struct digest *b);
/* Lower-case hex of the first byte_count bytes and a NUL; text holds 2 * byte_count + 1. */
void hex_of(const uint8_t *bytes, size_t byte_count, char *text);
/* The way back: true when text is so many bytes in lower-case hex and nothing else. */
bool hex_read(struct bytes text, uint8_t *bytes, size_t byte_count);

#endif
