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
#include <string.h>

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
static inline struct bytes bytes_of_string(const char *string)
{
	return string ? (struct bytes){(const uint8_t *)string, strlen(string)} : (struct bytes){0};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
	return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* ASCII letters compare without case; every other byte as it is (RFC 9110 section 5.1). */
bool bytes_same_letters(const uint8_t *a, const uint8_t *b, size_t size);
/* The same for slices. Inline, since the length tells most names apart. */
static inline bool bytes_equal_nocase(struct bytes a, struct bytes b)
{
	return a.size == b.size && bytes_same_letters(a.data, b.data, a.size);
}

bool bytes_starts_with(struct bytes whole, struct bytes start);
bool bytes_ends_with(struct bytes whole, struct bytes end);
/* Without leading and trailing SP and HT (OWS, RFC 9110 section 5.6.3). */
struct bytes bytes_trim(struct bytes b);
/* Position of the first c, or b.size. */
size_t bytes_find(struct bytes b, uint8_t c);
/* The first n bytes are cut off *b and returned; n is clamped to b->size. */
static inline struct bytes bytes_take(struct bytes *b, size_t n)
{
	struct bytes front = {b->data, n < b->size ? n : b->size};

	if (front.size) {
		b->data += front.size;
		b->size -= front.size;
	}
	return front;
}

void buffer_done(struct buffer *buffer);
/* Keeps the memory, forgets the content. */
static inline void buffer_clear(struct buffer *buffer)
{
	buffer->size = 0;
}

/* 0, or -ENOMEM with the buffer as it was. */
int buffer_reserve(struct buffer *buffer, size_t more);

static inline int buffer_append(struct buffer *buffer, struct bytes more)
{
	int err = more.size > buffer->capacity - buffer->size ? buffer_reserve(buffer, more.size) : 0;

	if (err || !more.size)
		return err;
	memcpy(buffer->data + buffer->size, more.data, more.size);
	buffer->size += more.size;
	return 0;
}

static inline int buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
	return buffer_append(buffer, (struct bytes){&byte, 1});
}

static inline struct bytes buffer_bytes(const struct buffer *buffer)
{
	return (struct bytes){buffer->data, buffer->size};
}

#endif
