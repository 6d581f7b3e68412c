/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The values of a policy file: texts, numbers, lists, objects, each taken
 * strictly, and what is said where one is not as it should be.
 */
#include "policy_parts.h"
#include "ascii.h"

#include "json_scan.h"
#include "json_syntax.h"
#include "utf8.h"

#include <errno.h>
#include <stdarg.h>

#define SHOWN_MAX 48 /* of a text in a message */

/* ---- what is wrong, and where ---- */

void policy_place(const struct policy_parser *parser, const uint8_t *at, unsigned int *ret_line, unsigned int *ret_column)
{
	json_place(parser->start, at, ret_line, ret_column);
}

int policy_fail(struct policy_parser *parser, const uint8_t *at, const char *format, ...)
{
	struct policy_error *error = parser->error;
	va_list arguments;

	policy_place(parser, at, &error->line, &error->column);
	va_start(arguments, format);
	vsnprintf(error->text, sizeof(error->text), format, arguments);
	va_end(arguments);
	return -EINVAL;
}

/* A text of the file, safe to print, in quotes; cut where it is long. */
static const char *shown(struct bytes text, char room[4 * SHOWN_MAX + 8])
{
	struct buffer harmless = {0};

	if (text_harmless(text, SHOWN_MAX, &harmless))
		harmless.size = 0;
	snprintf(room, 4 * SHOWN_MAX + 8, "\"%.*s\"", (int)harmless.size, (const char *)harmless.data);
	buffer_done(&harmless);
	return room;
}

/* ---- texts ---- */

/* Room for size bytes and a NUL. There is always enough: see policy_new(). */
char *policy_room(struct policy *policy, size_t size)
{
	char *room = policy->strings + policy->strings_used;

	if (policy->strings_size - policy->strings_used <= size)
		return NULL;
	policy->strings_used += size + 1;
	room[size] = '\0';
	return room;
}

/* The text a, b, c one after the other; NULL when there is no room. */
const char *policy_join(struct policy *policy, const char *a, struct bytes b, const char *c)
{
	size_t a_size = strlen(a), c_size = strlen(c);
	char *room = policy_room(policy, a_size + b.size + c_size);

	if (!room)
		return NULL;
	memcpy(room, a, a_size);
	if (b.size)
		memcpy(room + a_size, b.data, b.size);
	memcpy(room + a_size + b.size, c, c_size);
	return room;
}

/* A string without control characters, of 1 to max bytes; decoded. */
int policy_text_of(struct policy_parser *parser, struct bytes value, const char *what, size_t max, struct bytes *ret_text)
{
	char *room;
	size_t size;

	if (!json_scan_is_string(value))
		return policy_fail(parser, value.data, "%s is a text in quotes", what);
	room = policy_room(parser->policy, value.size);
	if (!room)
		return -ENOMEM;
	size = json_scan_text(value, (uint8_t *)room, value.size, NULL);
	room[size] = '\0';
	if (size == 0)
		return policy_fail(parser, value.data, "%s is empty", what);
	if (size > max)
		return policy_fail(parser, value.data, "%s is longer than %zu bytes", what, max);
	for (size_t i = 0; i < size; i++)
		if ((uint8_t)room[i] < 0x20 || room[i] == 0x7f)
			return policy_fail(parser, value.data, "%s holds a control character", what);
	*ret_text = (struct bytes){(const uint8_t *)room, size};
	return 0;
}

bool policy_is_token(struct bytes text) /* RFC 9110 section 5.6.2 */
{
	for (size_t i = 0; i < text.size; i++)
		if (!ascii_is_token(text.data[i]))
			return false;
	return text.size != 0;
}

/* ---- other values ---- */

int policy_bool_of(struct policy_parser *parser, struct bytes value, const char *what, bool *ret_value)
{
	*ret_value = json_scan_is_true(value);
	if (*ret_value || bytes_equal(value, BYTES("false")))
		return 0;
	return policy_fail(parser, value.data, "%s is true or false", what);
}

int policy_number_of(struct policy_parser *parser, struct bytes value, const char *what, uint64_t max, uint64_t *ret_number)
{
	uint64_t number = 0;
	size_t i = 0;

	while (i < value.size && i < 18 && value.data[i] >= '0' && value.data[i] <= '9')
		number = 10 * number + (uint64_t)(value.data[i++] - '0');
	if (i == 0 || i < value.size || number < 1 || number > max)
		return policy_fail(parser, value.data, "%s is a whole number from 1 to %llu", what, (unsigned long long)max);
	*ret_number = number;
	return 0;
}

/* The place of value in a list of count names, given by name_of; -EINVAL: none of them. */
int policy_name_of(struct policy_parser *parser, struct bytes value, const char *what, const char *const *names, size_t count,
		     size_t *ret_index)
{
	char list[160] = "";
	size_t size = 0;

	for (size_t i = 0; i < count; i++) {
		if (json_scan_says(value, names[i])) {
			*ret_index = i;
			return 0;
		}
		size += (size_t)snprintf(list + size, sizeof(list) - size, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ",
					 names[i]);
	}
	return policy_fail(parser, value.data, "%s is %s, in quotes", what, list);
}

/* json-c takes 'a' and NaN even when it is strict. */
static int no_json(struct policy_parser *parser, const struct json_scan *scan)
{
	const uint8_t *at = scan->at;

	while (at < scan->end && (*at == ',' || *at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	return policy_fail(parser, at, "this is no JSON");
}

/* Calls take for each element of an array of at most max. */
int policy_each(struct policy_parser *parser, struct bytes value, const char *what, size_t max, struct policy_rule *rule,
		      int (*take)(struct policy_parser *parser, struct bytes value, struct policy_rule *rule))
{
	struct bytes name, element;
	struct json_scan scan;
	size_t count = 0;
	int err = 0;

	if (!json_scan_is_array(value))
		return policy_fail(parser, value.data, "%s is a list in square brackets", what);
	json_scan_open(&scan, value);
	while (!err && json_scan_next(&scan, &name, &element)) {
		if (++count > max)
			return policy_fail(parser, element.data, "%s holds at most %zu", what, max);
		err = take(parser, element, rule);
	}
	return !err && scan.broken ? no_json(parser, &scan) : err;
}

static int unknown_field(struct policy_parser *parser, struct bytes name, const char *what, const struct policy_field *fields,
			 size_t count)
{
	char room[4 * SHOWN_MAX + 8], list[160] = "";
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += (size_t)snprintf(list + size, sizeof(list) - size, "%s%s", i ? ", " : "", fields[i].name);
	return policy_fail(parser, name.data, "%s has no field %s; it has %s", what, shown(json_inside(name), room), list);
}

/* Every field of an object, each at most once. */
int policy_fields(struct policy_parser *parser, struct bytes value, const char *what, const struct policy_field *fields,
		       size_t count, struct policy_rule *rule)
{
	struct bytes name, member;
	struct json_scan scan;
	unsigned int seen = 0;
	int err = 0;

	if (!json_scan_is_object(value))
		return policy_fail(parser, value.data, "%s is an object in braces", what);
	json_scan_open(&scan, value);
	while (!err && json_scan_next(&scan, &name, &member)) {
		size_t i = 0;

		while (i < count && !json_scan_says(name, fields[i].name))
			i++;
		if (i == count)
			return unknown_field(parser, name, what, fields, count);
		if (seen & 1u << i)
			return policy_fail(parser, name.data, "%s has the field %s twice", what, fields[i].name);
		seen |= 1u << i;
		err = fields[i].take(parser, member, rule);
	}
	return !err && scan.broken ? no_json(parser, &scan) : err;
}
