/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON into a buffer (RFC 8259). Every value goes out in as few appends as it
 * can: one ledger line is some hundred of them, for every request seen.
 *
 * Numbers are written by hand: no locale, and no printf on the way of a call.
 */
#include "json_text.h"

#include "eight_bytes.h"
#include "utf8.h"

#include <errno.h>

static const char hex_digits[] = "0123456789abcdef";

/* Two digits for one look: 00 to 99, and 00 to ff. */
#define TEN(tens) tens "0" tens "1" tens "2" tens "3" tens "4" tens "5" tens "6" tens "7" tens "8" tens "9"
#define SIXTEEN(high) TEN(high) high "a" high "b" high "c" high "d" high "e" high "f"
static const char decimal_pairs[] = TEN("0") TEN("1") TEN("2") TEN("3") TEN("4") TEN("5") TEN("6") TEN("7") TEN("8")
				    TEN("9");
static const char hex_pairs[] = SIXTEEN("0") SIXTEEN("1") SIXTEEN("2") SIXTEEN("3") SIXTEEN("4") SIXTEEN("5")
				SIXTEEN("6") SIXTEEN("7") SIXTEEN("8") SIXTEEN("9") SIXTEEN("a") SIXTEEN("b")
				SIXTEEN("c") SIXTEEN("d") SIXTEEN("e") SIXTEEN("f");

/* Longest number: sign, 20 digits, point, 6 decimals. */
#define NUMBER_MAX 32

void json_writer_init(struct json_writer *writer, struct buffer *out)
{
	*writer = (struct json_writer){.out = out};
}

int json_writer_error(const struct json_writer *writer)
{
	return writer->error;
}

uint8_t *json_make_room(struct json_writer *writer, size_t size)
{
	struct buffer *out = writer->out;

	if (!writer->error)
		writer->error = buffer_reserve(out, size);
	return writer->error ? NULL : out->data + out->size;
}

/* Room for size bytes at the end of the buffer, or NULL once an error sticks. */
static uint8_t *room_for(struct json_writer *writer, size_t size)
{
	const struct buffer *out = writer->out;

	if (writer->error || out->capacity - out->size < size)
		return json_make_room(writer, size);
	return out->data + out->size;
}

static void append(struct json_writer *writer, const void *data, size_t size)
{
	uint8_t *room = room_for(writer, size);

	if (!room)
		return;
	memcpy(room, data, size);
	writer->out->size += size;
}

static void append_byte(struct json_writer *writer, char byte)
{
	append(writer, &byte, 1);
}

/* Before every value. */
static void begin_value(struct json_writer *writer)
{
	if (writer->comma)
		append_byte(writer, ',');
	writer->comma = true;
}

/* The same, with room for a value of that size; NULL once an error sticks. */
static uint8_t *room_for_value(struct json_writer *writer, size_t size)
{
	uint8_t *room = room_for(writer, size + 1);

	if (room && writer->comma)
		*room++ = ',';
	writer->comma = true;
	return room;
}

/* Behind what was put into that room. */
static void end_value(struct json_writer *writer, const uint8_t *end)
{
	writer->out->size = (size_t)(end - writer->out->data);
}

static void append_value(struct json_writer *writer, const void *text, size_t size)
{
	uint8_t *room = room_for_value(writer, size);

	if (!room)
		return;
	memcpy(room, text, size);
	end_value(writer, room + size);
}

void json_object_open(struct json_writer *writer)
{
	begin_value(writer);
	append_byte(writer, '{');
	writer->comma = false;
}

void json_object_close(struct json_writer *writer)
{
	append_byte(writer, '}');
	writer->comma = true;
}

void json_array_open(struct json_writer *writer)
{
	begin_value(writer);
	append_byte(writer, '[');
	writer->comma = false;
}

void json_array_close(struct json_writer *writer)
{
	append_byte(writer, ']');
	writer->comma = true;
}

static void append_escape(struct json_writer *writer, uint8_t byte)
{
	char escape[6] = {'\\', 'u', '0', '0', hex_digits[byte >> 4], hex_digits[byte & 15]};

	append(writer, escape, sizeof(escape));
}

/* Printable ASCII but the quote and the backslash. */
static bool is_plain(uint8_t byte)
{
	return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

/* Not zero where one of eight bytes is zero; a byte over 0x7f may be taken for one. */
static uint64_t zero_byte(uint64_t eight)
{
	return (eight - EACH_BYTE(1)) & EACH_BYTE(0x80);
}

/* Are they plain for certain? Looks at all eight at once. */
static bool eight_are_plain(const uint8_t *bytes)
{
	uint64_t eight;

	memcpy(&eight, bytes, sizeof(eight));
	return !((eight & EACH_BYTE(0x80)) | ((eight - EACH_BYTE(0x20)) & EACH_BYTE(0x80)) |
		 zero_byte(eight ^ EACH_BYTE('"')) | zero_byte(eight ^ EACH_BYTE('\\')) |
		 zero_byte(eight ^ EACH_BYTE(0x7f)));
}

static size_t plain_ascii(struct bytes text)
{
	size_t n = 0;

	while (text.size - n >= 8 && eight_are_plain(text.data + n))
		n += 8;
	while (n < text.size && is_plain(text.data[n]))
		n++;
	return n;
}

/*
 * One code point, or one byte that belongs to none, that is no plain ASCII. Returns how many bytes
 * it took.
 */
static size_t append_special(struct json_writer *writer, struct bytes text)
{
	uint32_t code_point;
	size_t length = utf8_next(text, &code_point);

	if (length == 0) {
		writer->escaped = true;
		append_escape(writer, text.data[0]);
		return 1;
	}
	if (utf8_is_control(code_point)) {
		append_escape(writer, (uint8_t)code_point);
	} else {
		if (code_point == '"' || code_point == '\\')
			append_byte(writer, '\\');
		append(writer, text.data, length);
	}
	return length;
}

static void append_escaped(struct json_writer *writer, struct bytes text)
{
	append_byte(writer, '"');
	while (text.size) {
		struct bytes plain = bytes_take(&text, plain_ascii(text));

		if (plain.size)
			append(writer, plain.data, plain.size);
		if (text.size)
			bytes_take(&text, append_special(writer, text));
	}
	append_byte(writer, '"');
}

void json_string(struct json_writer *writer, struct bytes text)
{
	uint8_t *room;

	if (plain_ascii(text) < text.size) {
		begin_value(writer);
		append_escaped(writer, text);
		return;
	}
	room = room_for_value(writer, text.size + 2);
	if (!room)
		return;
	*room++ = '"';
	if (text.size)
		memcpy(room, text.data, text.size);
	room[text.size] = '"';
	end_value(writer, room + text.size + 1);
}

void json_text(struct json_writer *writer, const char *text)
{
	if (text)
		json_string(writer, bytes_of_string(text));
	else
		json_null(writer);
}

/* Writes the digits in front of end, at least min_digits of them; returns where they start. */
static char *digits_before(char *end, uint64_t value, int min_digits)
{
	for (; value >= 100; value /= 100, min_digits -= 2) {
		end -= 2;
		memcpy(end, decimal_pairs + 2 * (value % 100), 2);
	}
	while (value || min_digits > 0) {
		*--end = (char)('0' + value % 10);
		value /= 10;
		min_digits--;
	}
	return end;
}

static void append_number(struct json_writer *writer, bool negative, char *start, const char *end)
{
	if (negative)
		*--start = '-';
	append_value(writer, start, (size_t)(end - start));
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

void json_unsigned(struct json_writer *writer, uint64_t value)
{
	char text[NUMBER_MAX];
	char *end = text + sizeof(text);

	append_number(writer, false, digits_before(end, value, 1), end);
}

void json_signed(struct json_writer *writer, int64_t value)
{
	char text[NUMBER_MAX];
	char *end = text + sizeof(text);

	append_number(writer, value < 0, digits_before(end, magnitude(value), 1), end);
}

/*
 * value / scale with so many decimals; scale is ten to the power of decimals. Nothing is rounded:
 * the caller cut it.
 */
static void append_fixed(struct json_writer *writer, bool negative, uint64_t value, uint64_t scale,
			 int decimals)
{
	char text[NUMBER_MAX];
	char *end = text + sizeof(text), *start;

	start = digits_before(end, value % scale, decimals);
	*--start = '.';
	start = digits_before(start, value / scale, 1);
	append_number(writer, negative && value, start, end);
}

void json_seconds(struct json_writer *writer, int64_t nanoseconds)
{
	append_fixed(writer, nanoseconds < 0, magnitude(nanoseconds) / 1000, 1000000, 6);
}

void json_milliseconds(struct json_writer *writer, int64_t nanoseconds)
{
	append_fixed(writer, nanoseconds < 0, magnitude(nanoseconds) / 1000, 1000, 3);
}

void json_boolean(struct json_writer *writer, bool value)
{
	append_value(writer, value ? "true" : "false", value ? 4 : 5);
}

void json_null(struct json_writer *writer)
{
	append_value(writer, "null", 4);
}

void json_hex(struct json_writer *writer, const uint8_t *bytes, size_t byte_count)
{
	uint8_t *room = room_for_value(writer, 2 * byte_count + 2);

	if (!room)
		return;
	*room++ = '"';
	for (size_t i = 0; i < byte_count; i++, room += 2)
		memcpy(room, hex_pairs + 2 * (size_t)bytes[i], 2);
	*room++ = '"';
	end_value(writer, room);
}

void json_raw(struct json_writer *writer, struct bytes text)
{
	begin_value(writer);
	if (text.size)
		append(writer, text.data, text.size);
}
