/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slices and growing buffers. Growth doubles, so appending n bytes one by one
 * costs O(n); a failed growth leaves the buffer as it was.
 */
#include "bytes.h"

#include <errno.h>

static uint8_t lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

bool bytes_equal_nocase(struct bytes a, struct bytes b)
{
	if (a.size != b.size)
		return false;
	for (size_t i = 0; i < a.size; i++)
		if (lower(a.data[i]) != lower(b.data[i]))
			return false;
	return true;
}

bool bytes_starts_with(struct bytes whole, struct bytes start)
{
	return whole.size >= start.size && (start.size == 0 || memcmp(whole.data, start.data, start.size) == 0);
}

static bool is_ows(uint8_t c)
{
	return c == ' ' || c == '\t';
}

struct bytes bytes_trim(struct bytes b)
{
	while (b.size && is_ows(b.data[0]))
		bytes_take(&b, 1);
	while (b.size && is_ows(b.data[b.size - 1]))
		b.size--;
	return b;
}

size_t bytes_find(struct bytes b, uint8_t c)
{
	const uint8_t *at = b.size ? memchr(b.data, c, b.size) : NULL;

	return at ? (size_t)(at - b.data) : b.size;
}

void buffer_done(struct buffer *buffer)
{
	if (!buffer)
		return;
	free(buffer->data);
	*buffer = (struct buffer){0};
}

int buffer_reserve(struct buffer *buffer, size_t more)
{
	size_t capacity = buffer->capacity ? buffer->capacity : 256;
	uint8_t *data;

	if (more > SIZE_MAX / 4 || buffer->size > SIZE_MAX / 4)
		return -ENOMEM;
	if (buffer->size + more <= buffer->capacity)
		return 0;
	while (capacity < buffer->size + more)
		capacity *= 2;
	data = realloc(buffer->data, capacity);
	if (!data)
		return -ENOMEM;
	buffer->data = data;
	buffer->capacity = capacity;
	return 0;
}
