/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Slices and growing buffers. Growth doubles, so appending n bytes one by one
 * costs O(n); a failed growth leaves the buffer as it was.
 */
#include "bytes.h"
#include "ascii.h"

#include <errno.h>

bool bytes_same_letters(const uint8_t *a, const uint8_t *b, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (a[i] != b[i] && ascii_lower(a[i]) != ascii_lower(b[i]))
			return false;
	return true;
}

bool bytes_starts_with(struct bytes whole, struct bytes start)
{
	return whole.size >= start.size && (start.size == 0 || memcmp(whole.data, start.data, start.size) == 0);
}

bool bytes_ends_with(struct bytes whole, struct bytes end)
{
	return whole.size >= end.size && bytes_equal((struct bytes){whole.data + whole.size - end.size, end.size}, end);
}

struct bytes bytes_trim(struct bytes b)
{
	while (b.size && ascii_is_ows(b.data[0]))
		bytes_take(&b, 1);
	while (b.size && ascii_is_ows(b.data[b.size - 1]))
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
