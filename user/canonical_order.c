/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names are compared as they stand in the canonical text. UTF-8 sorts like
 * UTF-16 but for U+E000 to U+FFFF against everything above, and but for
 * escapes; only names with a backslash are taken apart into code units.
 *
 * The text is rewritten from its end to its start: objects are noted when they
 * close, so the one noted last is the outermost of those that end there.
 */
#include "canonical_order.h"
#include "ascii.h"
#include "limits.h"
#include "utf8.h"

#include <errno.h>

#define INSERTED_MEMBERS_MAX 16

struct member {
	uint32_t start; /* of the name's quote */
	uint32_t name_size;
	uint32_t end;	      /* of its value */
	uint32_t objects_end; /* how many objects had been noted by then */
};

struct object {
	uint32_t start;
	uint32_t end;
	uint32_t first_object; /* how many had been noted when it began: the rest lie inside it */
	uint32_t first_member; /* in kept */
	uint32_t member_count;
};

static struct member *members_of(const struct buffer *buffer)
{
	return (struct member *)buffer->data;
}

static uint32_t member_count(const struct buffer *buffer)
{
	return (uint32_t)(buffer->size / sizeof(struct member));
}

static uint32_t object_count(const struct order *order)
{
	return (uint32_t)(order->objects.size / sizeof(struct object));
}

/* ---- names ---- */

struct code_units {
	struct bytes rest;
	int32_t low; /* second half of a pair that is due, else 0 */
};

/* In canonical text \uxxxx is lower-case and stands for one code unit. */
static int32_t escaped_unit(struct bytes *rest)
{
	static const char letters[] = "btnfr\"\\";
	static const char values[] = "\b\t\n\f\r\"\\";
	uint8_t letter = rest->data[1];
	int32_t unit = 0;

	if (letter != 'u') {
		bytes_take(rest, 2);
		return values[strchr(letters, letter) - letters];
	}
	for (unsigned int i = 2; i < 6; i++)
		unit = unit << 4 | ascii_hex_value(rest->data[i]);
	bytes_take(rest, 6);
	return unit;
}

/* The next UTF-16 code unit of a canonical name, or -1. */
static int32_t next_unit(struct code_units *units)
{
	uint32_t code_point = 0;
	int32_t low = units->low;

	if (low) {
		units->low = 0;
		return low;
	}
	if (units->rest.size == 0)
		return -1;
	if (units->rest.data[0] == '\\')
		return escaped_unit(&units->rest);
	bytes_take(&units->rest, utf8_next(units->rest, &code_point));
	if (code_point < 0x10000)
		return (int32_t)code_point;
	code_point -= 0x10000;
	units->low = (int32_t)(0xdc00 | (code_point & 0x3ff));
	return (int32_t)(0xd800 | code_point >> 10);
}

static int compare_units(struct bytes a, struct bytes b)
{
	struct code_units left = {a, 0}, right = {b, 0};
	int32_t x, y;

	do {
		x = next_unit(&left);
		y = next_unit(&right);
	} while (x == y && x != -1);
	return x < y ? -1 : x > y;
}

static int compare_names(struct bytes a, struct bytes b)
{
	size_t shorter = a.size < b.size ? a.size : b.size, same = 0;
	bool escapes = false;
	uint8_t x, y;

	while (same < shorter && a.data[same] == b.data[same])
		escapes |= a.data[same++] == '\\';
	if (same == shorter)
		return a.size < b.size ? -1 : a.size > b.size;
	x = a.data[same];
	y = b.data[same];
	if (escapes || x == '\\' || y == '\\')
		return compare_units(a, b);
	if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0)) /* surrogates sort below U+E000 */
		return x >= 0xf0 ? -1 : 1;
	return x < y ? -1 : 1;
}

static struct bytes member_name(const uint8_t *text, const struct member *member)
{
	return (struct bytes){text + member->start + 1, member->name_size};
}

static int compare_members(const void *a, const void *b, void *text) /* for qsort_r() */
{
	const struct member *left = a, *right = b;
	int order = compare_names(member_name(text, left), member_name(text, right));

	if (order)
		return order;
	return left->start < right->start ? -1 : left->start > right->start;
}

/* Most objects have few members: then inserting costs half of what qsort_r() does. */
static void sort_members(struct member *members, uint32_t count, const uint8_t *text)
{
	void *argument = (void *)text;
	struct member moved;
	uint32_t to;

	if (count > INSERTED_MEMBERS_MAX) {
		qsort_r(members, count, sizeof(*members), compare_members, argument);
		return;
	}
	for (uint32_t i = 1; i < count; i++) {
		moved = members[i];
		for (to = i; to && compare_members(&members[to - 1], &moved, argument) > 0; to--)
			members[to] = members[to - 1];
		members[to] = moved;
	}
}

/* ---- notes ---- */

void order_open(const struct order *order, uint32_t start, struct order_object *ret_object)
{
	*ret_object = (struct order_object){
		.start = start,
		.first_member = member_count(&order->open),
		.first_object = object_count(order),
	};
}

int order_member(struct order *order, const uint8_t *text, struct order_object *object,
		 uint32_t start, uint32_t name_size)
{
	const struct member member = {.start = start, .name_size = name_size};
	uint32_t count = member_count(&order->open);
	int err, step;

	err = buffer_append(&order->open, (struct bytes){(const uint8_t *)&member, sizeof(member)});
	if (err || count == object->first_member || object->out_of_order)
		return err;
	step = compare_names(member_name(text, &members_of(&order->open)[count - 1]),
			     member_name(text, &member));
	object->out_of_order = step > 0;
	order->duplicate |= step == 0;
	return 0;
}

void order_member_end(struct order *order, uint32_t end)
{
	struct member *last = members_of(&order->open) + member_count(&order->open) - 1;

	last->end = end;
	last->objects_end = object_count(order);
}

static int keep_sorted(struct order *order, const uint8_t *text, const struct order_object *object,
		       uint32_t end)
{
	struct member *members = members_of(&order->open) + object->first_member;
	uint32_t count = member_count(&order->open) - object->first_member;
	const struct object noted = {
		.start = object->start,
		.end = end,
		.first_object = object->first_object,
		.first_member = member_count(&order->kept),
		.member_count = count,
	};
	int err;

	sort_members(members, count, text);
	for (uint32_t i = 1; i < count && !order->duplicate; i++)
		order->duplicate = bytes_equal(member_name(text, &members[i - 1]),
					       member_name(text, &members[i]));
	err = buffer_append(&order->kept,
			    (struct bytes){(const uint8_t *)members, count * sizeof(*members)});
	if (err)
		return err;
	return buffer_append(&order->objects,
			     (struct bytes){(const uint8_t *)&noted, sizeof(noted)});
}

int order_close(struct order *order, const uint8_t *text, const struct order_object *object,
		uint32_t end)
{
	int err = object->out_of_order ? keep_sorted(order, text, object, end) : 0;

	order->open.size = object->first_member * sizeof(struct member);
	return err;
}

/* ---- the rewrite ---- */

/* An object whose members are being written, the last one first. */
struct level {
	const struct object *object;
	uint32_t members_left;
	uint32_t outer_start; /* where the run began that the object lies in */
};

struct rewrite {
	const uint8_t *from;
	uint8_t *to; /* moves down */
	struct level levels[LIMIT_JSON_DEPTH];
	unsigned int depth;
};

static void write_back(struct rewrite *rewrite, uint32_t start, uint32_t end)
{
	rewrite->to -= end - start;
	memcpy(rewrite->to, rewrite->from + start, end - start);
}

/* One run is [start, end); objects noted before objects_end lie in it if they begin in it. */
static void rewrite_backwards(const struct order *order, struct rewrite *rewrite, uint32_t end)
{
	const struct object *objects = (const struct object *)order->objects.data;
	const struct member *kept = members_of(&order->kept), *member;
	uint32_t start = 0, objects_end = object_count(order);
	struct level *level;

	for (;;) {
		if (objects_end && objects[objects_end - 1].start >= start) {
			const struct object *object = &objects[objects_end - 1];

			write_back(rewrite, object->end - 1, end);
			rewrite->levels[rewrite->depth++] =
				(struct level){object, object->member_count, start};
		} else {
			write_back(rewrite, start, end);
			if (!rewrite->depth)
				return;
		}
		level = &rewrite->levels[rewrite->depth - 1];
		if (level->members_left) {
			if (level->members_left < level->object->member_count)
				*--rewrite->to = ',';
			member = &kept[level->object->first_member + --level->members_left];
			start = member->start;
			end = member->end;
			objects_end = member->objects_end;
		} else { /* what is left is the run before the first member, from the brace down */
			start = level->outer_start;
			end = level->object->start + 1;
			objects_end = level->object->first_object;
			rewrite->depth--;
		}
	}
}

int order_apply(struct order *order, struct buffer *out, size_t base, struct buffer *spare)
{
	struct buffer swapped;
	struct rewrite rewrite; /* its levels are 8 KiB: not cleared for each body */
	size_t size = out->size - base;

	if (!object_count(order))
		return 0;
	buffer_clear(spare);
	if (buffer_reserve(spare, size))
		return -ENOMEM;
	rewrite.from = out->data + base;
	rewrite.to = spare->data + size;
	rewrite.depth = 0;
	rewrite_backwards(order, &rewrite, (uint32_t)size);
	if (base) {
		memcpy(out->data + base, spare->data, size);
		return 0;
	}
	swapped = *out;
	*out = *spare;
	out->size = size;
	*spare = swapped;
	return 0;
}

void order_clear(struct order *order)
{
	buffer_clear(&order->open);
	buffer_clear(&order->kept);
	buffer_clear(&order->objects);
	order->duplicate = false;
}

void order_done(struct order *order)
{
	buffer_done(&order->open);
	buffer_done(&order->kept);
	buffer_done(&order->objects);
}
