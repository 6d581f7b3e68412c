/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forms and query strings: parameters are decoded, sorted by name and written
 * with one spelling. The order of equal names is kept, since a[]=1&a[]=2 means
 * a list. Decoding is on bytes; no charset is assumed.
 */
#include "canonical.h"
#include "ascii.h"

#include <errno.h>

/* Positions are 32 bits wide, and a byte may become three. */
#define TEXT_BYTES_MAX (UINT32_MAX / 4)

struct parameter {
	uint32_t start; /* in the text as written */
	uint32_t name_size;
	uint32_t size;
};

/* Takes one byte off an encoded text that is not empty. A "%" without two hex digits is itself. */
static uint8_t take_decoded(struct bytes *text)
{
	uint8_t c = bytes_take(text, 1).data[0];
	int high, low;

	if (c == '+')
		return ' ';
	if (c != '%' || text->size < 2)
		return c;
	high = ascii_hex_value(text->data[0]);
	low = ascii_hex_value(text->data[1]);
	if (high < 0 || low < 0)
		return c;
	bytes_take(text, 2);
	return (uint8_t)(high << 4 | low);
}

/* RFC 3986 section 2.3. */
static bool is_unreserved(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '.' || c == '_' || c == '~';
}

/* Room must have been reserved: three bytes for each of text. */
static void put_spelled(struct buffer *out, struct bytes text)
{
	static const char digits[] = "0123456789ABCDEF";
	uint8_t c;

	while (text.size) {
		c = take_decoded(&text);
		if (is_unreserved(c)) {
			out->data[out->size++] = c;
			continue;
		}
		out->data[out->size++] = '%';
		out->data[out->size++] = (uint8_t)digits[c >> 4];
		out->data[out->size++] = (uint8_t)digits[c & 0xf];
	}
}

/* By the bytes that the names stand for. */
static int compare_names(struct bytes a, struct bytes b)
{
	uint8_t x, y;

	while (a.size && b.size) {
		x = take_decoded(&a);
		y = take_decoded(&b);
		if (x != y)
			return x < y ? -1 : 1;
	}
	return a.size ? 1 : b.size ? -1 : 0;
}

static int compare_parameters(const void *a, const void *b, void *text)
{
	const struct parameter *left = a, *right = b;
	const uint8_t *data = text;
	int order = compare_names((struct bytes){data + left->start, left->name_size},
				  (struct bytes){data + right->start, right->name_size});

	if (order)
		return order;
	return left->start < right->start ? -1 : left->start > right->start;
}

/* "name=value" behind what is in spelled, noted in parameters. 0 or -ENOMEM. */
static int add_parameter(struct bytes pair, struct buffer *spelled, struct buffer *parameters)
{
	struct parameter parameter = {.start = (uint32_t)spelled->size};
	struct bytes name = bytes_take(&pair, bytes_find(pair, '='));
	int err;

	err = buffer_reserve(spelled, 3 * (name.size + pair.size) + 1);
	if (err)
		return err;
	bytes_take(&pair, 1);
	put_spelled(spelled, name);
	parameter.name_size = (uint32_t)spelled->size - parameter.start;
	spelled->data[spelled->size++] = '=';
	put_spelled(spelled, pair);
	parameter.size = (uint32_t)spelled->size - parameter.start;
	return buffer_append(parameters,
			     (struct bytes){(const uint8_t *)&parameter, sizeof(parameter)});
}

static int join_sorted(struct buffer *spelled, struct buffer *parameters, struct buffer *out)
{
	struct parameter *all = (struct parameter *)parameters->data;
	size_t count = parameters->size / sizeof(*all);

	if (buffer_reserve(out, spelled->size + count))
		return -ENOMEM;
	if (count)
		qsort_r(all, count, sizeof(*all), compare_parameters, spelled->data);
	for (size_t i = 0; i < count; i++) {
		if (i)
			out->data[out->size++] = '&';
		memcpy(out->data + out->size, spelled->data + all[i].start, all[i].size);
		out->size += all[i].size;
	}
	return 0;
}

const char *canonical_form(struct bytes text, struct buffer *out)
{
	struct buffer spelled = {0}, parameters = {0};
	struct bytes pair;
	int err = 0;

	if (text.size > TEXT_BYTES_MAX)
		return "too long";
	while (text.size && !err) {
		pair = bytes_take(&text, bytes_find(text, '&'));
		bytes_take(&text, 1);
		if (pair.size) /* "a=1&&b=2" has two parameters */
			err = add_parameter(pair, &spelled, &parameters);
	}
	if (!err)
		err = join_sorted(&spelled, &parameters, out);
	buffer_done(&spelled);
	buffer_done(&parameters);
	return err ? canonical_out_of_memory : NULL;
}

const char *canonical_query(struct bytes query, struct buffer *out)
{
	return canonical_form(query, out);
}
