/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes JSON into a buffer without building a tree. Knows no schema: the
 * caller brings keys in order and balances what it opens.
 *
 * Errors stick in the writer: check json_writer_error() once, at the end.
 */
#ifndef NIGHTCLERK_JSON_TEXT_H
#define NIGHTCLERK_JSON_TEXT_H

#include "bytes.h"

struct json_writer {
	struct buffer *out;
	bool comma;   /* the next value wants a comma before it */
	bool escaped; /* a byte that is not UTF-8 was written as \u00XX */
	int error;    /* 0 or -ENOMEM */
};

void json_writer_init(struct json_writer *writer, struct buffer *out);
int json_writer_error(const struct json_writer *writer);

void json_object_open(struct json_writer *writer);
void json_object_close(struct json_writer *writer);
void json_array_open(struct json_writer *writer);
void json_array_close(struct json_writer *writer);
/* Room for size more bytes, or NULL: then the error sticks. */
uint8_t *json_make_room(struct json_writer *writer, size_t size);

/* key needs no escapes. Inline, as json_key() is, so that a literal is copied by a few stores of known size. */
static inline void json_name(struct json_writer *writer, const char *key, size_t size)
{
	struct buffer *out = writer->out;
	uint8_t *room = out->data + out->size;

	if (writer->error || out->capacity - out->size < size + 4)
		room = json_make_room(writer, size + 4);
	if (!room)
		return;
	*room = ',';
	room += writer->comma;
	room[0] = '"';
	memcpy(room + 1, key, size);
	room[size + 1] = '"';
	room[size + 2] = ':';
	out->size = (size_t)(room + size + 3 - out->data);
	writer->comma = false;
}

static inline void json_key(struct json_writer *writer, const char *key)
{
	json_name(writer, key, strlen(key));
}
/*
 * Valid UTF-8 stays as it is; control characters (U+0000-1F, 7F, 80-9F) become \u00XX; a byte that
 * is not UTF-8 becomes \u00XX of that byte.
 */
void json_string(struct json_writer *writer, struct bytes text);
void json_text(struct json_writer *writer, const char *text); /* NULL gives null */
void json_unsigned(struct json_writer *writer, uint64_t value);
void json_signed(struct json_writer *writer, int64_t value);
void json_boolean(struct json_writer *writer, bool value);
void json_null(struct json_writer *writer);
void json_hex(struct json_writer *writer, const uint8_t *bytes, size_t byte_count);
/* nanoseconds as seconds with six decimals, truncated: 1790000000.123456 */
void json_seconds(struct json_writer *writer, int64_t nanoseconds);
/* nanoseconds as milliseconds with three decimals. */
void json_milliseconds(struct json_writer *writer, int64_t nanoseconds);
/* JSON text that is known to be valid. */
void json_raw(struct json_writer *writer, struct bytes text);

#endif
