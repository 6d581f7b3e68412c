/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A state for each place where a slice may end. Names build the path as the
 * text descends; a level that does not fit has no path, and neither has what is
 * below it.
 */
#include "json_stream.h"
#include "ascii.h"

#define STRING_STEP 256

enum {
	AT_TOP, /* white space, or the first bracket */
	AT_VALUE,
	AT_ELEMENT_OR_END, /* behind "[" */
	AT_NAME,
	AT_NAME_OR_END, /* behind "{" */
	AT_COLON,
	AT_COMMA_OR_END,
	IN_STRING,
	IN_ESCAPE,
	IN_HEX,
	IN_WORD, /* a number, true, false, null */
};

void json_stream_reset(struct json_stream *stream)
{
	*stream = (struct json_stream){.state = AT_TOP};
}

struct bytes json_stream_path(const struct json_stream *stream)
{
	if (stream->lost_levels)
		return (struct bytes){0};
	return (struct bytes){(const uint8_t *)stream->path, stream->path_size};
}

struct bytes json_stream_text(const struct json_stream *stream)
{
	return (struct bytes){stream->text, stream->text_size};
}

bool json_stream_text_cut(const struct json_stream *stream)
{
	return stream->text_cut;
}

bool json_stream_is_outside(const struct json_stream *stream)
{
	return stream->depth == 0 && !stream->broken;
}

static enum json_stream_step breaks(struct json_stream *stream)
{
	stream->broken = true;
	return JSON_STREAM_BROKEN;
}

/* ---- the path ---- */

static void path_push(struct json_stream *stream, const char *separator, struct bytes name, bool whole)
{
	size_t gap = stream->path_size ? strlen(separator) : 0;
	size_t size = stream->path_size + gap + name.size;

	if (stream->lost_levels || !whole || stream->path_levels == JSON_STREAM_PATH_LEVELS ||
	    size > JSON_STREAM_PATH_BYTES) {
		stream->lost_levels++;
		return;
	}
	stream->path_ends[stream->path_levels++] = stream->path_size;
	memcpy(stream->path + stream->path_size, separator, gap);
	if (name.size)
		memcpy(stream->path + stream->path_size + gap, name.data, name.size);
	stream->path_size = (uint8_t)size;
}

static void path_pop(struct json_stream *stream)
{
	if (stream->lost_levels)
		stream->lost_levels--;
	else
		stream->path_size = stream->path_ends[--stream->path_levels];
}

/* ---- containers ---- */

static bool in_array(const struct json_stream *stream)
{
	unsigned int level = stream->depth - 1;

	return stream->arrays[level / 8] & 1U << level % 8;
}

static enum json_stream_step open_container(struct json_stream *stream, bool array)
{
	unsigned int level = stream->depth;

	if (level == LIMIT_JSON_DEPTH)
		return breaks(stream);
	stream->depth++;
	stream->opened = true;
	stream->arrays[level / 8] = (uint8_t)((stream->arrays[level / 8] & ~(1U << level % 8)) | (unsigned int)array << level % 8);
	stream->state = array ? AT_ELEMENT_OR_END : AT_NAME_OR_END;
	return JSON_STREAM_OPEN;
}

/* A value is over: the path stays until the caller has seen it. */
static void end_value(struct json_stream *stream)
{
	stream->ended = stream->depth == 0;
	stream->told = !stream->ended && !in_array(stream);
	stream->state = stream->ended ? AT_TOP : AT_COMMA_OR_END;
}

static enum json_stream_step close_container(struct json_stream *stream, uint8_t bracket)
{
	if (bracket != (in_array(stream) ? ']' : '}'))
		return breaks(stream);
	if (in_array(stream))
		path_pop(stream);
	stream->depth--;
	end_value(stream);
	return JSON_STREAM_CLOSE;
}

/* ---- scalars ---- */

static void start_text(struct json_stream *stream, uint8_t state)
{
	stream->state = state;
	stream->text_size = 0;
	stream->text_cut = false;
	stream->high_surrogate = 0;
}

static void keep_text(struct json_stream *stream, const uint8_t *data, size_t size)
{
	size_t room = JSON_STREAM_TEXT_BYTES - stream->text_size;

	stream->text_cut = stream->text_cut || size > room;
	if (size > room)
		size = room;
	memcpy(stream->text + stream->text_size, data, size);
	stream->text_size = (uint8_t)(stream->text_size + size);
}

static void keep_code_point(struct json_stream *stream, uint32_t c)
{
	uint8_t text[4];
	size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	static const uint8_t marks[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = size; i > 1; i--, c >>= 6)
		text[i - 1] = (uint8_t)(0x80 | (c & 0x3f));
	text[0] = (uint8_t)(marks[size] | c);
	keep_text(stream, text, size);
}

/* UTF-16 as the escapes have it; half a pair becomes U+FFFD. */
static void keep_code_unit(struct json_stream *stream, uint16_t unit)
{
	uint16_t high = stream->high_surrogate;

	stream->high_surrogate = 0;
	if (high && (unit & 0xfc00) == 0xdc00) {
		keep_code_point(stream, 0x10000U + ((high & 0x3ffU) << 10) + (unit & 0x3ffU));
		return;
	}
	if (high)
		keep_code_point(stream, 0xfffd);
	if ((unit & 0xfc00) == 0xd800)
		stream->high_surrogate = unit;
	else
		keep_code_point(stream, (unit & 0xfc00) == 0xdc00 ? 0xfffd : unit);
}

static void end_surrogate(struct json_stream *stream)
{
	if (stream->high_surrogate)
		keep_code_point(stream, 0xfffd);
	stream->high_surrogate = 0;
}

/* Others would read as a path of several names, or of one less. */
static bool is_plain_name(struct bytes name)
{
	return name.size && bytes_find(name, '.') == name.size && bytes_find(name, '[') == name.size;
}

static enum json_stream_step end_string(struct json_stream *stream)
{
	end_surrogate(stream);
	if (stream->is_name) {
		path_push(stream, ".", json_stream_text(stream), !stream->text_cut && is_plain_name(json_stream_text(stream)));
		stream->state = AT_COLON;
		return JSON_STREAM_MORE;
	}
	end_value(stream);
	return stream->told ? JSON_STREAM_STRING : JSON_STREAM_MORE;
}

/* Up to its quote or to the next escape, in steps: what lies behind an escape is not looked at twice. */
static enum json_stream_step take_string(struct json_stream *stream, struct bytes *input)
{
	struct bytes run = {input->data, input->size < STRING_STEP ? input->size : STRING_STEP};
	size_t whole = run.size;

	run.size = bytes_find(run, '"');
	run.size = bytes_find(run, '\\');
	if (run.size) {
		end_surrogate(stream);
		keep_text(stream, run.data, run.size);
	}
	bytes_take(input, run.size);
	if (run.size == whole)
		return JSON_STREAM_MORE;
	if (bytes_take(input, 1).data[0] == '"')
		return end_string(stream);
	stream->state = IN_ESCAPE;
	return JSON_STREAM_MORE;
}

static enum json_stream_step take_escape(struct json_stream *stream, uint8_t c)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	const char *letter = memchr(letters, c, sizeof(letters) - 1);

	stream->state = IN_STRING;
	if (letter) {
		end_surrogate(stream);
		keep_text(stream, (const uint8_t *)&meanings[letter - letters], 1);
	} else if (c == 'u') {
		stream->state = IN_HEX;
		stream->hex_digits = 4;
		stream->code_unit = 0;
	} else {
		return breaks(stream);
	}
	return JSON_STREAM_MORE;
}

static enum json_stream_step take_hex(struct json_stream *stream, uint8_t c)
{
	int digit = ascii_hex_value(c);

	if (digit < 0)
		return breaks(stream);
	stream->code_unit = (uint16_t)(stream->code_unit << 4 | digit);
	if (--stream->hex_digits == 0) {
		keep_code_unit(stream, stream->code_unit);
		stream->state = IN_STRING;
	}
	return JSON_STREAM_MORE;
}

static bool is_word_byte(uint8_t c)
{
	uint8_t letter = c | 0x20;

	return (letter >= 'a' && letter <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.';
}

static enum json_stream_step end_word(struct json_stream *stream)
{
	struct bytes word = json_stream_text(stream);
	enum json_stream_step step;

	if (bytes_equal(word, BYTES("true")))
		step = JSON_STREAM_TRUE;
	else if (bytes_equal(word, BYTES("false")))
		step = JSON_STREAM_FALSE;
	else if (bytes_equal(word, BYTES("null")))
		step = JSON_STREAM_NULL;
	else if (word.data[0] == '-' || (word.data[0] >= '0' && word.data[0] <= '9'))
		step = JSON_STREAM_NUMBER;
	else
		return breaks(stream);
	end_value(stream);
	return stream->told ? step : JSON_STREAM_MORE;
}

/* The byte behind it ends it, and is still to be read. */
static enum json_stream_step take_word(struct json_stream *stream, struct bytes *input)
{
	size_t size = 0;

	while (size < input->size && is_word_byte(input->data[size]))
		size++;
	keep_text(stream, input->data, size);
	bytes_take(input, size);
	return input->size ? end_word(stream) : JSON_STREAM_MORE;
}

/* ---- between ---- */

static enum json_stream_step start_value(struct json_stream *stream, uint8_t c)
{
	if (c == '{' || c == '[')
		return open_container(stream, c == '[');
	if (stream->state == AT_TOP)
		return breaks(stream);
	if (c == '"') {
		stream->is_name = false;
		start_text(stream, IN_STRING);
		return JSON_STREAM_MORE;
	}
	if (!is_word_byte(c))
		return breaks(stream);
	start_text(stream, IN_WORD);
	keep_text(stream, &c, 1);
	return JSON_STREAM_MORE;
}

static enum json_stream_step start_name(struct json_stream *stream, uint8_t c)
{
	if (c != '"')
		return breaks(stream);
	stream->is_name = true;
	start_text(stream, IN_STRING);
	return JSON_STREAM_MORE;
}

static enum json_stream_step take_separator(struct json_stream *stream, uint8_t c)
{
	switch (stream->state) {
	case AT_COLON:
		if (c != ':')
			return breaks(stream);
		stream->state = AT_VALUE;
		return JSON_STREAM_MORE;
	case AT_COMMA_OR_END:
		if (c != ',')
			return close_container(stream, c);
		stream->state = in_array(stream) ? AT_VALUE : AT_NAME;
		return JSON_STREAM_MORE;
	case AT_NAME:
		return start_name(stream, c);
	case AT_NAME_OR_END:
		return c == '}' ? close_container(stream, c) : start_name(stream, c);
	case AT_ELEMENT_OR_END:
		return c == ']' ? close_container(stream, c) : start_value(stream, c);
	default:
		return start_value(stream, c);
	}
}

static enum json_stream_step take(struct json_stream *stream, struct bytes *input)
{
	switch (stream->state) {
	case IN_STRING:
		return take_string(stream, input);
	case IN_WORD:
		return take_word(stream, input);
	case IN_ESCAPE:
		return take_escape(stream, bytes_take(input, 1).data[0]);
	case IN_HEX:
		return take_hex(stream, bytes_take(input, 1).data[0]);
	default:
		if (ascii_is_json_space(input->data[0])) {
			bytes_take(input, 1);
			return JSON_STREAM_MORE;
		}
		return take_separator(stream, bytes_take(input, 1).data[0]);
	}
}

/* What was told last is known by now. */
static void go_on(struct json_stream *stream)
{
	if (stream->told)
		path_pop(stream);
	stream->told = false;
	if (stream->state == AT_ELEMENT_OR_END && stream->opened)
		path_push(stream, "", BYTES("[]"), true);
	stream->opened = false;
}

enum json_stream_step json_stream_next(struct json_stream *stream, struct bytes *input)
{
	enum json_stream_step step = JSON_STREAM_MORE;

	if (stream->broken)
		return JSON_STREAM_BROKEN;
	if (stream->ended) {
		stream->ended = false;
		return JSON_STREAM_END;
	}
	while (step == JSON_STREAM_MORE && input->size) {
		go_on(stream);
		step = take(stream, input);
	}
	return step;
}
