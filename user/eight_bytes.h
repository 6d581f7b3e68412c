/* SPDX-License-Identifier: BSD-2-Clause */
/* Eight bytes of text looked at in one register. */
#ifndef NIGHTCLERK_EIGHT_BYTES_H
#define NIGHTCLERK_EIGHT_BYTES_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define EACH_BYTE(byte) (0x0101010101010101ULL * (byte))

/* The first byte of text is the lowest one. */
static inline uint64_t eight_bytes(const uint8_t *text)
{
	uint64_t eight;

	memcpy(&eight, text, sizeof(eight));
	return le64toh(eight);
}

/* The top bit of each byte that is c. The lowest bit is exact; a borrow can only make false ones above it. */
static inline uint64_t eight_equal(uint64_t eight, uint8_t c)
{
	uint64_t differs = eight ^ EACH_BYTE(c);

	return (differs - EACH_BYTE(1)) & ~differs & EACH_BYTE(0x80);
}

/* Position of the lowest of such bits; 8 = none. */
static inline size_t eight_first(uint64_t top_bits)
{
	return top_bits ? (size_t)__builtin_ctzll(top_bits) / 8 : 8;
}

#endif
