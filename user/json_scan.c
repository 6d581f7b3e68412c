/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks JSON text member by member (RFC 8259). A skipped value costs one look
 * at each byte outside of strings and one memchr() through each string, since
 * a prompt is mostly one long string.
 */
#include "json_scan.h"
#include "ascii.h"
#include "eight_bytes.h"
#include "utf8.h"

#include "limits.h"

/* Most strings end within a few bytes, where a call of memchr() costs more than it saves. */
#define SHORT_STRING_BYTES 32

/* Where neither a quote nor a backslash has been met, at the latest where eight bytes are no longer left. */
static const uint8_t *plain_end(const uint8_t *at, const uint8_t *stop)
{
	size_t plain = 8;

	while (plain == 8 && stop - at >= 8) {
		uint64_t eight = eight_bytes(at);

		plain = eight_first(eight_equal(eight, '"') | eight_equal(eight, '\\'));
		at += plain;
	}
	return at;
}

/* at is the opening quote; gives the byte after the closing one, or NULL. */
static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *stop, *quote, *before;

	at++;
	while (at < end) {
		stop = end - at > SHORT_STRING_BYTES ? at + SHORT_STRING_BYTES : end;
		at = plain_end(at, stop);
		while (at < stop && *at != '"')
			at = plain_end(at + (*at == '\\' ? 2 : 1), stop);
		if (at >= end)
			break;
		if (at < stop)
			return at + 1;
		quote = memchr(at, '"', (size_t)(end - at));
		if (!quote)
			break;
		/* An odd run of backslashes before it: the quote belongs to the text. */
		for (before = quote; before > at && before[-1] == '\\'; before--)
			;
		if ((quote - before) % 2 == 0)
			return quote + 1;
		at = quote + 1;
	}
	return NULL;
}

/* Which brackets are open, one bit each: set = an object. */
struct nesting {
	uint64_t object[LIMIT_JSON_DEPTH / 64];
	size_t depth;
};

static bool nesting_open(struct nesting *nesting, uint8_t c)
{
	size_t word = nesting->depth / 64;
	uint64_t bit = UINT64_C(1) << nesting->depth % 64;

	if (nesting->depth == LIMIT_JSON_DEPTH)
		return false;
	if (c == '{')
		nesting->object[word] |= bit;
	else
		nesting->object[word] &= ~bit;
	nesting->depth++;
	return true;
}

static bool nesting_close(struct nesting *nesting, uint8_t c)
{
	bool object;

	nesting->depth--;
	object = nesting->object[nesting->depth / 64] >> nesting->depth % 64 & 1;
	return object == (c == '}');
}

static const bool is_mark[256] = {
	['"'] = true, ['{'] = true, ['['] = true, ['}'] = true, [']'] = true};

/* at is the opening bracket; gives the byte after the one that closes it, or NULL. */
static const uint8_t *skip_brackets(const uint8_t *at, const uint8_t *end)
{
	struct nesting nesting = {.depth = 0};

	while (at < end) {
		while (!is_mark[*at])
			if (++at == end)
				return NULL;
		switch (*at) {
		case '"':
			at = skip_string(at, end);
			if (!at)
				return NULL;
			continue;
		case '{':
		case '[':
			if (!nesting_open(&nesting, *at))
				return NULL;
			break;
		case '}':
		case ']':
			if (!nesting_close(&nesting, *at))
				return NULL;
			if (nesting.depth == 0)
				return at + 1;
			break;
		}
		at++;
	}
	return NULL;
}

/* A number, true, false or null: every byte that such a word may hold. */
static const uint8_t *skip_word(const uint8_t *at, const uint8_t *end)
{
	const uint8_t *start = at;

	while (at < end && ((*at >= '0' && *at <= '9') || (*at >= 'a' && *at <= 'z') ||
			    *at == 'E' || *at == '-' || *at == '+' || *at == '.'))
		at++;
	return at > start ? at : NULL;
}

static const uint8_t *skip_value(const uint8_t *at, const uint8_t *end)
{
	if (at == end)
		return NULL;
	if (*at == '"')
		return skip_string(at, end);
	if (*at == '{' || *at == '[')
		return skip_brackets(at, end);
	return skip_word(at, end);
}

bool json_scan_whole(struct bytes text, struct bytes *ret_value)
{
	const uint8_t *end, *start, *after;

	if (bytes_starts_with(text, BYTES("\xef\xbb\xbf")))
		bytes_take(&text, 3);
	if (text.size == 0)
		return false;
	end = text.data + text.size;
	start = json_skip_space(text.data, end);
	after = skip_value(start, end);
	if (!after || json_skip_space(after, end) != end)
		return false;
	*ret_value = (struct bytes){start, (size_t)(after - start)};
	return true;
}

void json_scan_open(struct json_scan *scan, struct bytes value)
{
	*scan = (struct json_scan){.done = true};
	if (value.size == 0 || (value.data[0] != '{' && value.data[0] != '['))
		return;
	scan->at = value.data + 1;
	scan->end = value.data + value.size;
	scan->closer = value.data[0] == '{' ? '}' : ']';
	scan->done = false;
}

static bool stop(struct json_scan *scan, bool broken)
{
	scan->done = true;
	scan->broken = broken;
	return false;
}

/* From the start of a name to the start of its value; NULL when it is no name. */
static const uint8_t *take_name(struct json_scan *scan, const uint8_t *at, struct bytes *ret_name)
{
	const uint8_t *after;

	if (at == scan->end || *at != '"')
		return NULL;
	after = skip_string(at, scan->end);
	if (!after)
		return NULL;
	*ret_name = (struct bytes){at, (size_t)(after - at)};
	after = json_skip_space(after, scan->end);
	if (after == scan->end || *after != ':')
		return NULL;
	return json_skip_space(after + 1, scan->end);
}

bool json_scan_next(struct json_scan *scan, struct bytes *ret_name, struct bytes *ret_value)
{
	struct bytes name = {0};
	const uint8_t *at, *after;

	if (scan->done)
		return false;
	at = json_skip_space(scan->at, scan->end);
	if (at < scan->end && *at == scan->closer)
		return stop(scan, at + 1 != scan->end);
	if (scan->started) {
		if (at == scan->end || *at != ',')
			return stop(scan, true);
		at = json_skip_space(at + 1, scan->end);
	}
	if (scan->closer == '}') {
		at = take_name(scan, at, &name);
		if (!at)
			return stop(scan, true);
	}
	after = skip_value(at, scan->end);
	if (!after)
		return stop(scan, true);
	scan->started = true;
	scan->at = after;
	*ret_name = name;
	*ret_value = (struct bytes){at, (size_t)(after - at)};
	return true;
}

bool json_scan_is_object(struct bytes value)
{
	return value.size && value.data[0] == '{';
}

bool json_scan_is_array(struct bytes value)
{
	return value.size && value.data[0] == '[';
}

bool json_scan_is_string(struct bytes value)
{
	return value.size >= 2 && value.data[0] == '"';
}

bool json_scan_is_true(struct bytes value)
{
	return bytes_equal(value, BYTES("true"));
}

bool json_scan_is_null(struct bytes value)
{
	return bytes_equal(value, BYTES("null"));
}

/* The four digits after \u, or -1. */
static int32_t hex_quad(struct bytes text)
{
	int32_t value = 0;

	if (text.size < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int digit = ascii_hex_value(text.data[i]);

		if (digit < 0)
			return -1;
		value = value << 4 | digit;
	}
	return value;
}

/* \uXXXX, the X's in front of *rest: a pair makes one code point, a lone surrogate stays one. */
static size_t take_unicode(struct bytes *rest, uint8_t text[4])
{
	int32_t first = hex_quad(*rest), second;

	if (first < 0) {
		text[0] = 'u'; /* no JSON; read as an unknown escape */
		return 1;
	}
	bytes_take(rest, 4);
	if (first >= 0xd800 && first < 0xdc00 && bytes_starts_with(*rest, BYTES("\\u"))) {
		second = hex_quad((struct bytes){rest->data + 2, rest->size - 2});
		if (second >= 0xdc00 && second < 0xe000) {
			bytes_take(rest, 6);
			return utf8_put(0x10000U + ((uint32_t)(first - 0xd800) << 10) +
						      (uint32_t)(second - 0xdc00),
					      text);
		}
	}
	return utf8_put((uint32_t)first, text);
}

/* The next character of what a string says: its bytes, 0 at the end. */
static size_t take_character(struct bytes *rest, uint8_t text[4])
{
	static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
	const char *at;
	uint8_t c;

	if (rest->size == 0)
		return 0;
	c = bytes_take(rest, 1).data[0];
	if (c != '\\') {
		text[0] = c;
		return 1;
	}
	if (rest->size == 0)
		return 0;
	c = bytes_take(rest, 1).data[0];
	if (c == 'u')
		return take_unicode(rest, text);
	at = c ? strchr(from, c) : NULL;
	text[0] = at ? (uint8_t)to[at - from] : c;
	return 1;
}

bool json_scan_says(struct bytes value, const char *text)
{
	struct bytes rest, wanted = bytes_of_string(text);
	uint8_t character[4];
	size_t size;

	if (!json_scan_is_string(value))
		return false;
	rest = json_inside(value);
	if (rest.size < wanted.size)
		return false; /* an escape is never shorter than what it stands for */
	if (rest.size == wanted.size)
		return bytes_equal(rest, wanted);
	if (memchr(rest.data, '\\', rest.size) == NULL)
		return false;
	while ((size = take_character(&rest, character)) != 0) {
		struct bytes next = bytes_take(&wanted, size);

		if (!bytes_equal(next, (struct bytes){character, size}))
			return false;
	}
	return rest.size == 0 && wanted.size == 0;
}

struct bytes json_scan_member(struct bytes object, const char *wanted)
{
	struct bytes name, value, found = {0};
	struct json_scan scan;

	if (!json_scan_is_object(object))
		return found;
	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value))
		if (json_scan_says(name, wanted))
			found = value;
	return scan.broken ? (struct bytes){0} : found;
}

static bool is_continuation(uint8_t c)
{
	return (c & 0xc0) == 0x80;
}

size_t json_scan_text(struct bytes value, uint8_t *text, size_t size, bool *ret_cut)
{
	struct bytes rest;
	uint8_t character[4];
	size_t used = 0, length;
	bool cut = false;

	if (!json_scan_is_string(value)) {
		if (ret_cut)
			*ret_cut = false;
		return 0;
	}
	rest = json_inside(value);
	while ((length = take_character(&rest, character)) != 0) {
		if (size - used < length) {
			cut = true;
			break;
		}
		memcpy(text + used, character, length);
		used += length;
	}
	/* The cut went through a character: its first bytes go too. */
	if (cut && is_continuation(character[0])) {
		while (used && is_continuation(text[used - 1]))
			used--;
		if (used && text[used - 1] >= 0xc0)
			used--;
	}
	if (ret_cut)
		*ret_cut = cut;
	return used;
}
