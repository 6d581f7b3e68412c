/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Borrowed and owned runs of bytes.
 *
 * struct bytes is a slice: it borrows, never owns, and is valid until the next
 * call on whatever owns the memory (said once, here, for the whole tree).
 * struct buffer owns: buffer_done() frees. Both are valid when zeroed.
 */
#ifndef NIGHTCLERK_BYTES_H
#define NIGHTCLERK_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bytes {
	const uint8_t *data; /* may be NULL when size is 0 */
	size_t size;
};

struct buffer {
	uint8_t *data;
	size_t size;
	size_t capacity;
};

/* The slice of a string literal. */
#define BYTES(literal) ((struct bytes){(const uint8_t *)(literal), sizeof(literal) - 1})

/* NULL gives the empty slice. */
struct bytes bytes_of_string(const char *string);
bool bytes_equal(struct bytes a, struct bytes b);
/* ASCII letters compare without case; every other byte as it is (RFC 9110 section 5.1). */
bool bytes_equal_nocase(struct bytes a, struct bytes b);
bool bytes_starts_with(struct bytes whole, struct bytes start);
/* Without leading and trailing SP and HT (OWS, RFC 9110 section 5.6.3). */
struct bytes bytes_trim(struct bytes b);
/* Position of the first c, or b.size. */
size_t bytes_find(struct bytes b, uint8_t c);
/* The first n bytes are cut off *b and returned; n is clamped to b->size. */
struct bytes bytes_take(struct bytes *b, size_t n);

void buffer_done(struct buffer *buffer);
/* Keeps the memory, forgets the content. */
void buffer_clear(struct buffer *buffer);
/* 0, or -ENOMEM with the buffer as it was. */
int buffer_reserve(struct buffer *buffer, size_t more);
int buffer_append(struct buffer *buffer, struct bytes more);
int buffer_append_byte(struct buffer *buffer, uint8_t byte);
struct bytes buffer_bytes(const struct buffer *buffer);

#endif
