/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON (RFC 8259) -> canonical text, in one pass over the input. A lexer of
 * our own, because a parser into values loses what we must tell apart: digits
 * beyond a double, names that come twice, lone surrogates.
 *
 * Room in the output is kept for the rest of the input plus some slack, so
 * only a number that grows has to ask for more. Open objects and arrays are
 * on a stack of fixed depth: nothing here recurses.
 */
#include "canonical.h"
#include "ascii.h"
#include "canonical_order.h"
#include "eight_bytes.h"
#include "limits.h"
#include "utf8.h"

#include <limits.h>

#define SLACK_BYTES 64
#define EXPONENT_DIGITS_MAX 12 /* longer exponents are kept as they are written */
/* Positions are 32 bits wide, and a number may grow more than fourfold. */
#define TEXT_BYTES_MAX (UINT32_MAX / 8)

struct level {
	bool is_object;
	struct order_object object;
};

struct reading {
	const uint8_t *at, *end; /* input that is left */
	uint8_t *to;		 /* where the next byte of output goes */
	struct buffer *out;
	size_t base; /* where our text starts in out */
	struct canonical *flags;
	struct order *order;
	unsigned int depth;
	struct level levels[LIMIT_JSON_DEPTH];
};

static uint8_t peek(const struct reading *r)
{
	return r->at < r->end ? *r->at : 0; /* a NUL byte is an error wherever this is asked */
}

static void put(struct reading *r, uint8_t c)
{
	*r->to++ = c;
}

static void put_run(struct reading *r, const uint8_t *from, size_t size)
{
	memcpy(r->to, from, size);
	r->to += size;
}

static const uint8_t *text_start(const struct reading *r)
{
	return r->out->data + r->base;
}

static uint32_t position(const struct reading *r)
{
	return (uint32_t)(r->to - text_start(r));
}

/* Room for all that is left, and more bytes besides. */
static const char *make_room(struct reading *r, size_t more)
{
	r->out->size = (size_t)(r->to - r->out->data);
	if (buffer_reserve(r->out, (size_t)(r->end - r->at) + SLACK_BYTES + more))
		return canonical_out_of_memory;
	r->to = r->out->data + r->out->size;
	return NULL;
}

static void skip_space(struct reading *r)
{
	const uint8_t *at = r->at;

	while (at < r->end && *at <= ' ' && ascii_is_json_space(*at)) /* mostly there is none */
		at++;
	r->at = at;
}

/* ---- strings ---- */

/* How many of the first eight bytes mean themselves: ASCII without quote, backslash, controls. */
static size_t plain_bytes(uint64_t eight)
{
	uint64_t controls = (eight - EACH_BYTE(0x20)) & ~eight;

	return eight_first(eight_equal(eight, '"') | eight_equal(eight, '\\') |
			   ((controls | eight) & EACH_BYTE(0x80)));
}

/* Copies plain bytes; the eight that are stored always fit into the slack. */
static void take_plain(struct reading *r)
{
	const uint8_t *at = r->at, *end = r->end;
	uint8_t *to = r->to;
	uint64_t eight;
	size_t plain = 8;

	while (plain == 8 && end - at >= 8) {
		memcpy(&eight, at, 8);
		memcpy(to, &eight, 8);
		plain = plain_bytes(le64toh(eight));
		at += plain;
		to += plain;
	}
	r->at = at;
	r->to = to;
}

/* The code unit of a \uXXXX at at, or -1. */
static int32_t escaped_unit(const uint8_t *at, const uint8_t *end)
{
	int32_t unit = 0;
	int digit;

	if (end - at < 6 || at[0] != '\\' || at[1] != 'u')
		return -1;
	for (unsigned int i = 2; i < 6; i++) {
		digit = ascii_hex_value(at[i]);
		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

static void put_unicode_escape(struct reading *r, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";

	put(r, '\\');
	put(r, 'u');
	for (int shift = 12; shift >= 0; shift -= 4)
		put(r, (uint8_t)digits[unit >> shift & 0xf]);
}

static void put_utf8(struct reading *r, uint32_t code_point)
{
	uint8_t text[4];
	size_t size = utf8_put(code_point, text);

	for (size_t i = 0; i < size; i++)
		put(r, text[i]);
}

/* A character that was escaped, as RFC 8785 section 3.2.2.2 writes it. */
static void put_character(struct reading *r, uint32_t code_point)
{
	static const char short_escapes[] = "btn\0fr"; /* from U+0008 on */

	if (code_point >= 0x80) {
		put_utf8(r, code_point);
	} else if (code_point == '"' || code_point == '\\') {
		put(r, '\\');
		put(r, (uint8_t)code_point);
	} else if (code_point >= 0x20) {
		put(r, (uint8_t)code_point);
	} else if (code_point >= 8 && code_point <= 13 && short_escapes[code_point - 8]) {
		put(r, '\\');
		put(r, (uint8_t)short_escapes[code_point - 8]);
	} else {
		put_unicode_escape(r, code_point);
	}
}

static const char *take_unicode_escape(struct reading *r)
{
	int32_t unit = escaped_unit(r->at, r->end), low;

	if (unit < 0)
		return "bad escape";
	r->at += 6;
	if (unit < 0xd800 || unit > 0xdfff) {
		put_character(r, (uint32_t)unit);
		return NULL;
	}
	low = unit <= 0xdbff ? escaped_unit(r->at, r->end) : -1;
	if (low >= 0xdc00 && low <= 0xdfff) {
		r->at += 6;
		put_utf8(r, 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
	} else {
		r->flags->lone_surrogate = true;
		put_unicode_escape(r, (uint32_t)unit);
	}
	return NULL;
}

static const char *take_escape(struct reading *r)
{
	if (r->end - r->at < 2)
		return "string not closed";
	switch (r->at[1]) {
	case 'u':
		return take_unicode_escape(r);
	case '/':
		put(r, '/');
		break;
	case '"': case '\\': case 'b': case 'f': case 'n': case 'r': case 't':
		put_run(r, r->at, 2);
		break;
	default:
		return "bad escape";
	}
	r->at += 2;
	return NULL;
}

static const char *take_utf8(struct reading *r)
{
	uint32_t code_point;
	size_t size;

	do {
		size = utf8_next((struct bytes){r->at, (size_t)(r->end - r->at)}, &code_point);
		if (!size)
			return "not UTF-8";
		put_run(r, r->at, size);
		r->at += size;
	} while (peek(r) >= 0x80);
	return NULL;
}

/* The input stands at the opening quote. */
static const char *take_string(struct reading *r)
{
	const char *why = NULL;
	uint8_t c;

	put(r, *r->at++);
	while (!why) {
		take_plain(r);
		if (r->at == r->end)
			return "string not closed";
		c = *r->at;
		if (c == '"')
			break;
		if (c == '\\')
			why = take_escape(r);
		else if (c >= 0x80)
			why = take_utf8(r);
		else if (c < 0x20)
			why = "control character in a string";
		else
			put(r, *r->at++);
	}
	if (!why)
		put(r, *r->at++);
	return why;
}

/* ---- numbers ---- */

struct number {
	const uint8_t *start, *end; /* the literal */
	const uint8_t *integer, *fraction;
	size_t integer_size, fraction_size; /* digits */
	bool negative;
	bool has_exponent;
	bool exponent_too_long;
	int64_t exponent;
};

static const uint8_t *skip_digits(const uint8_t *at, const uint8_t *end)
{
	while (at < end && *at >= '0' && *at <= '9')
		at++;
	return at;
}

/* at = behind the "e". NULL if there are no digits. */
static const uint8_t *scan_exponent(struct number *number, const uint8_t *at, const uint8_t *end)
{
	bool negative = at < end && *at == '-';
	const uint8_t *digits, *first;

	if (at < end && (*at == '-' || *at == '+'))
		at++;
	first = at;
	at = skip_digits(first, end);
	if (at == first)
		return NULL;
	for (digits = first; digits < at && *digits == '0'; digits++)
		;
	number->has_exponent = true;
	number->exponent_too_long = at - digits > EXPONENT_DIGITS_MAX;
	if (!number->exponent_too_long)
		for (; digits < at; digits++)
			number->exponent = number->exponent * 10 + (*digits - '0');
	if (negative)
		number->exponent = -number->exponent;
	return at;
}

/* RFC 8259 section 6. */
static bool scan_number(struct number *number, const uint8_t *at, const uint8_t *end)
{
	number->start = at;
	number->negative = *at == '-';
	number->integer = at + number->negative;
	at = skip_digits(number->integer, end);
	number->integer_size = (size_t)(at - number->integer);
	if (!number->integer_size || (number->integer_size > 1 && number->integer[0] == '0'))
		return false;
	if (at < end && *at == '.') {
		number->fraction = at + 1;
		at = skip_digits(number->fraction, end);
		number->fraction_size = (size_t)(at - number->fraction);
		if (!number->fraction_size)
			return false;
	}
	if (at < end && (*at == 'e' || *at == 'E'))
		at = scan_exponent(number, at + 1, end);
	number->end = at;
	return at != NULL;
}

/* Canonical as it stands. Says no to some that are; put_decimal() then writes the same. */
static bool number_is_canonical(const struct number *number)
{
	if (number->has_exponent || number->integer_size > 21)
		return false;
	if (number->fraction_size)
		return number->integer[0] != '0' &&
		       number->fraction[number->fraction_size - 1] != '0';
	return !number->negative || number->integer[0] != '0';
}

static uint8_t digit(const struct number *number, size_t i)
{
	return i < number->integer_size ? number->integer[i]
					: number->fraction[i - number->integer_size];
}

static void put_digits(struct reading *r, const struct number *number, size_t from, size_t count)
{
	for (size_t i = from; i < from + count; i++)
		put(r, digit(number, i));
}

static void put_zeros(struct reading *r, int64_t count)
{
	while (count-- > 0)
		put(r, '0');
}

static void put_exponent(struct reading *r, int64_t exponent)
{
	char text[24];
	int size = snprintf(text, sizeof(text), "e%+lld", (long long)exponent);

	put_run(r, (const uint8_t *)text, (size_t)size);
}

/*
 * The exact value 0.d * 10^point, laid out like ECMAScript's Number::toString
 * (ECMA-262 section 6.1.6.1.20) but without ever being a double.
 * d = the count digits from first on, without zeros at either end.
 */
static void put_decimal(struct reading *r, const struct number *number, size_t first, size_t count)
{
	int64_t point = (int64_t)number->integer_size - (int64_t)first + number->exponent;
	int64_t digits = (int64_t)count;

	if (number->negative)
		put(r, '-');
	if (digits <= point && point <= 21) {
		put_digits(r, number, first, count);
		put_zeros(r, point - digits);
	} else if (0 < point && point <= 21) {
		put_digits(r, number, first, (size_t)point);
		put(r, '.');
		put_digits(r, number, first + (size_t)point, count - (size_t)point);
	} else if (-6 < point && point <= 0) {
		put_run(r, (const uint8_t *)"0.", 2);
		put_zeros(r, -point);
		put_digits(r, number, first, count);
	} else {
		put_digits(r, number, first, 1);
		if (count > 1)
			put(r, '.');
		put_digits(r, number, first + 1, count - 1);
		put_exponent(r, point - 1);
	}
}

static const char *take_number(struct reading *r)
{
	struct number number = {0};
	size_t first = 0, last;
	const char *why;

	if (!scan_number(&number, r->at, r->end))
		return "bad number";
	r->at = number.end;
	if (number_is_canonical(&number)) {
		put_run(r, number.start, (size_t)(number.end - number.start));
		return NULL;
	}
	last = number.integer_size + number.fraction_size;
	while (first < last && digit(&number, first) == '0')
		first++;
	while (last > first && digit(&number, last - 1) == '0')
		last--;
	why = make_room(r, (size_t)(number.end - number.start));
	if (why)
		return why;
	if (first == last)
		put(r, '0');
	else if (number.exponent_too_long)
		put_run(r, number.start, (size_t)(number.end - number.start));
	else
		put_decimal(r, &number, first, last - first);
	return NULL;
}

/* ---- objects and arrays ---- */

static const char *take_word(struct reading *r, const char *word)
{
	size_t size = strlen(word);

	if ((size_t)(r->end - r->at) < size || memcmp(r->at, word, size) != 0)
		return "not a JSON value";
	put_run(r, r->at, size);
	r->at += size;
	return NULL;
}

/* A name and its colon. */
static const char *take_name(struct reading *r)
{
	struct order_object *object = &r->levels[r->depth - 1].object;
	uint32_t start = position(r);
	const char *why;

	skip_space(r);
	if (peek(r) != '"')
		return "member name missing";
	why = take_string(r);
	if (why)
		return why;
	if (order_member(r->order, text_start(r), object, start, position(r) - start - 2))
		return canonical_out_of_memory;
	skip_space(r);
	if (peek(r) != ':')
		return "colon missing";
	put(r, *r->at++);
	return NULL;
}

static const char *close_level(struct reading *r)
{
	struct level *level = &r->levels[--r->depth];

	put(r, *r->at++);
	if (level->is_object && order_close(r->order, text_start(r), &level->object, position(r)))
		return canonical_out_of_memory;
	return NULL;
}

/* *ret_open: a value is due inside it. */
static const char *open_level(struct reading *r, bool *ret_open)
{
	bool is_object = *r->at == '{';
	struct level *level;

	if (r->depth == LIMIT_JSON_DEPTH)
		return "nesting too deep";
	level = &r->levels[r->depth++];
	level->is_object = is_object;
	if (is_object)
		order_open(r->order, position(r), &level->object);
	put(r, *r->at++);
	skip_space(r);
	if (peek(r) == (is_object ? '}' : ']'))
		return close_level(r);
	*ret_open = true;
	return is_object ? take_name(r) : NULL;
}

static const char *take_value(struct reading *r, bool *ret_open)
{
	*ret_open = false;
	skip_space(r);
	switch (peek(r)) {
	case '"':
		return take_string(r);
	case '{': case '[':
		return open_level(r, ret_open);
	case 't':
		return take_word(r, "true");
	case 'f':
		return take_word(r, "false");
	case 'n':
		return take_word(r, "null");
	case '-': case '0': case '1': case '2': case '3': case '4':
	case '5': case '6': case '7': case '8': case '9':
		return take_number(r);
	default:
		return "not a JSON value";
	}
}

/* Behind a value: closes what ends here. *ret_more: a comma came, a value is due. */
static const char *take_ends(struct reading *r, bool *ret_more)
{
	struct level *level;
	const char *why = NULL;
	uint8_t c;

	*ret_more = false;
	while (!why && r->depth) {
		skip_space(r);
		level = &r->levels[r->depth - 1];
		c = peek(r);
		if (c != ',' && c != (level->is_object ? '}' : ']'))
			return "comma or end missing";
		if (level->is_object)
			order_member_end(r->order, position(r));
		if (c == ',') {
			*ret_more = true;
			put(r, *r->at++);
			return level->is_object ? take_name(r) : NULL;
		}
		why = close_level(r);
	}
	return why;
}

static const char *take_text(struct reading *r)
{
	const char *why;
	bool open, more;

	do {
		why = take_value(r, &open);
		more = open;
		if (!why && !open)
			why = take_ends(r, &more);
	} while (!why && more);
	if (why)
		return why;
	skip_space(r);
	return r->at == r->end ? NULL : "text after the value";
}

const char *canonical_json(struct bytes text, struct canonical *flags, struct buffer *out)
{
	struct reading r;
	const char *why;

	if (text.size > TEXT_BYTES_MAX)
		return "too long";
	if (bytes_starts_with(text, BYTES("\xef\xbb\xbf")))
		bytes_take(&text, 3);
	if (text.size == 0)
		return "not a JSON value";
	if (buffer_reserve(out, text.size + SLACK_BYTES))
		return canonical_out_of_memory;
	r.at = text.data;
	r.end = text.data + text.size;
	r.out = out;
	r.base = out->size;
	r.to = out->data + out->size;
	r.flags = flags;
	r.order = &flags->order;
	order_clear(r.order);
	r.depth = 0;
	why = take_text(&r);
	out->size = (size_t)(r.to - out->data);
	if (!why && order_apply(r.order, out, r.base, &flags->spare))
		why = canonical_out_of_memory;
	if (why)
		out->size = r.base;
	flags->duplicate_key |= r.order->duplicate;
	return why;
}
