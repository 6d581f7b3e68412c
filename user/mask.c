/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One walk over the text with a stack of open objects and arrays, as deep as
 * the longest mask. Each level knows which masks have matched down to it, one
 * bit a mask; a value that no mask leads into is skipped whole. What stays is
 * copied in runs.
 */
#include "mask.h"

#include "json_scan.h"
#include "json_text.h"

#include <errno.h>

/* ---- the text of a mask ---- */

struct reader {
	struct bytes text;
	size_t at;
	const char *wrong;
	struct mask *mask;
};

static bool at_end(const struct reader *reader)
{
	return reader->at == reader->text.size;
}

static uint8_t peek(const struct reader *reader)
{
	return at_end(reader) ? 0 : reader->text.data[reader->at];
}

static int wrong(struct reader *reader, const char *what)
{
	reader->wrong = what;
	return -EINVAL;
}

/* The name as canonical JSON writes it, without quotes; *ret_size of it, at the end of names. */
static int keep_name(struct reader *reader, struct bytes name, size_t *ret_size)
{
	struct buffer *names = &reader->mask->names;
	size_t start = names->size;
	struct json_writer writer;

	json_writer_init(&writer, names);
	json_string(&writer, name);
	if (json_writer_error(&writer))
		return json_writer_error(&writer);
	if (writer.escaped)
		return wrong(reader, "the name is not UTF-8");
	names->size--;
	memmove(names->data + start, names->data + start + 1, names->size - start - 1);
	names->size--;
	*ret_size = names->size - start;
	return 0;
}

static int add_step(struct reader *reader, struct mask_step step)
{
	if (reader->mask->step_count == MASK_STEPS_MAX)
		return wrong(reader, "a mask has at most 16 steps");
	reader->mask->steps[reader->mask->step_count++] = step;
	return 0;
}

static int add_member(struct reader *reader, struct bytes name)
{
	struct mask_step step = {.kind = MASK_MEMBER};
	int err;

	if (name.size == 0)
		return wrong(reader, "a name is missing here");
	if (name.size == 1 && name.data[0] == '*')
		return add_step(reader, (struct mask_step){.kind = MASK_ANY_MEMBER});
	err = keep_name(reader, name, &step.name.size);
	return err ? err : add_step(reader, step);
}

static bool is_name_byte(uint8_t c)
{
	return c >= 0x80 || c == '_' || c == '-' || c == '*' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* .name or .* */
static int take_dotted(struct reader *reader)
{
	struct bytes name;
	size_t start = ++reader->at;

	if (peek(reader) == '.')
		return wrong(reader, "a mask names every step: there is no ..");
	while (!at_end(reader) && is_name_byte(peek(reader)))
		reader->at++;
	name = (struct bytes){reader->text.data + start, reader->at - start};
	if (name.size > 1 && bytes_find(name, '*') < name.size) {
		reader->at = start;
		return wrong(reader, "* stands for a whole name");
	}
	return add_member(reader, name);
}

/* 'name' or "name", and the bracket after it. */
static int take_quoted(struct reader *reader)
{
	uint8_t quote = peek(reader);
	size_t start = ++reader->at, size;
	int err;

	while (!at_end(reader) && peek(reader) != quote)
		reader->at++;
	size = reader->at - start;
	if (at_end(reader))
		return wrong(reader, "the quote is not closed");
	reader->at++;
	if (size == 1 && reader->text.data[start] == '*') { /* in quotes it is a name like any other */
		struct mask_step step = {.kind = MASK_MEMBER};

		err = keep_name(reader, (struct bytes){reader->text.data + start, size}, &step.name.size);
		return err ? err : add_step(reader, step);
	}
	return add_member(reader, (struct bytes){reader->text.data + start, size});
}

static int take_index(struct reader *reader)
{
	struct mask_step step = {.kind = MASK_ELEMENT};
	size_t start = reader->at;

	while (peek(reader) >= '0' && peek(reader) <= '9' && reader->at - start < 9)
		step.index = 10 * step.index + (size_t)(reader->text.data[reader->at++] - '0');
	if (reader->at == start)
		return wrong(reader, "brackets hold *, a number from 0 or a quoted name");
	return add_step(reader, step);
}

static int take_bracketed(struct reader *reader)
{
	int err;

	reader->at++;
	if (peek(reader) == '*') {
		reader->at++;
		err = add_step(reader, (struct mask_step){.kind = MASK_ANY_ELEMENT});
	} else if (peek(reader) == '\'' || peek(reader) == '"') {
		err = take_quoted(reader);
	} else {
		err = take_index(reader);
	}
	if (!err && peek(reader) != ']')
		err = wrong(reader, "a ] is missing here");
	reader->at += !err;
	return err;
}

static int take_steps(struct reader *reader)
{
	int err = 0;

	if (reader->text.size > MASK_BYTES_MAX)
		return wrong(reader, "it is longer than 256 bytes");
	if (peek(reader) != '$')
		return wrong(reader, "a mask starts with $, as in $.nonce");
	reader->at++;
	while (!err && !at_end(reader)) {
		if (peek(reader) == '.')
			err = take_dotted(reader);
		else if (peek(reader) == '[')
			err = take_bracketed(reader);
		else
			err = wrong(reader, "here a . or a [ is expected");
	}
	if (!err && reader->mask->step_count == 0)
		err = wrong(reader, "$ alone is the whole body");
	return err;
}

int mask_parse(struct bytes text, struct mask *ret_mask, const char **ret_wrong, size_t *ret_at)
{
	struct reader reader = {.text = text, .mask = ret_mask};
	int err = take_steps(&reader);
	size_t at = 0;

	*ret_wrong = reader.wrong;
	*ret_at = reader.at;
	/* Only now does the memory of the names stay where it is. */
	for (size_t i = 0; !err && i < ret_mask->step_count; i++) {
		if (ret_mask->steps[i].kind != MASK_MEMBER)
			continue;
		ret_mask->steps[i].name.data = ret_mask->names.data + at;
		at += ret_mask->steps[i].name.size;
	}
	return err;
}

void mask_done(struct mask *mask)
{
	buffer_done(&mask->names);
	mask->step_count = 0;
}

/* ---- the walk ---- */

struct level {
	struct json_scan scan;
	uint32_t active;	    /* masks that matched down to here */
	const uint8_t *end_of_last; /* the bracket, or the end of the value before */
	size_t index;		    /* of the next value */
	bool is_object;
	bool kept; /* a member before this one stayed */
};

struct walk {
	const struct mask *masks;
	size_t count;
	struct level levels[MASK_STEPS_MAX];
	size_t depth; /* levels in use */
	const uint8_t *pending; /* stays, but was not copied yet, from here on */
	struct buffer *out;
	struct buffer *removed;
	bool found;
	int error;
};

static void push(struct walk *walk, struct bytes value, uint32_t active)
{
	struct level *level = &walk->levels[walk->depth++];

	*level = (struct level){
		.active = active, .end_of_last = value.data + 1, .is_object = json_scan_is_object(value)};
	json_scan_open(&level->scan, value);
}

static bool step_matches(const struct mask_step *step, const struct level *level, struct bytes name)
{
	switch (step->kind) {
	case MASK_MEMBER:
		return level->is_object && name.size == step->name.size + 2 &&
		       memcmp(name.data + 1, step->name.data, step->name.size) == 0;
	case MASK_ANY_MEMBER:
		return level->is_object;
	case MASK_ELEMENT:
		return !level->is_object && level->index == step->index;
	case MASK_ANY_ELEMENT:
		break;
	}
	return !level->is_object;
}

/* Masks that lead further down; *ret_ends: one of them ends at this value. */
static uint32_t masks_into(const struct walk *walk, const struct level *level, struct bytes name, bool *ret_ends)
{
	uint32_t into = 0;

	*ret_ends = false;
	for (size_t i = 0; i < walk->count; i++) {
		const struct mask *mask = &walk->masks[i];

		if (!(level->active & 1u << i) || !step_matches(&mask->steps[walk->depth - 1], level, name))
			continue;
		if (mask->step_count == walk->depth)
			*ret_ends = true;
		else
			into |= 1u << i;
	}
	return into;
}

static void put_until(struct walk *walk, const uint8_t *end)
{
	if (!walk->error)
		walk->error = buffer_append(walk->out, (struct bytes){walk->pending, (size_t)(end - walk->pending)});
}

static void skip(struct walk *walk, const uint8_t *start, const uint8_t *end)
{
	put_until(walk, start);
	walk->pending = end;
}

static void note_removed(struct walk *walk, const uint8_t *start, const uint8_t *end)
{
	walk->found = true;
	if (!walk->error)
		walk->error = buffer_append(walk->removed, (struct bytes){start, (size_t)(end - start)});
	if (!walk->error)
		walk->error = buffer_append_byte(walk->removed, '\n');
}

/* With the comma before it; where it was the first, the next one that stays loses its comma (stay()). */
static void remove_value(struct walk *walk, struct level *level, struct bytes name, struct bytes value)
{
	const uint8_t *end = value.data + value.size;

	note_removed(walk, level->is_object ? name.data : value.data, end);
	if (level->is_object) {
		skip(walk, level->end_of_last, end);
		return;
	}
	skip(walk, value.data, end);
	if (!walk->error)
		walk->error = buffer_append(walk->out, BYTES("null"));
}

static void stay(struct walk *walk, struct level *level, struct bytes name)
{
	if (level->is_object && !level->kept && level->index)
		skip(walk, level->end_of_last, name.data);
	level->kept = true;
}

/* One value of the innermost level. */
static void visit(struct walk *walk, struct level *level, struct bytes name, struct bytes value)
{
	bool ends;
	uint32_t into = masks_into(walk, level, name, &ends);

	if (ends)
		remove_value(walk, level, name, value);
	else
		stay(walk, level, name);
	level->index++;
	level->end_of_last = value.data + value.size;
	if (!ends && into && (json_scan_is_object(value) || json_scan_is_array(value)))
		push(walk, value, into);
}

int mask_text(const struct mask *masks, size_t count, struct bytes text, struct buffer *out,
	      struct buffer *removed)
{
	struct walk walk = {.masks = masks, .count = count, .pending = text.data, .out = out, .removed = removed};
	struct bytes name, value;
	bool broken = false;

	buffer_clear(out);
	if (count == 0 || (!json_scan_is_object(text) && !json_scan_is_array(text)))
		return 0;
	push(&walk, text, count >= 32 ? UINT32_MAX : (1u << count) - 1);
	while (walk.depth && !walk.error && !broken) {
		struct level *level = &walk.levels[walk.depth - 1];

		if (json_scan_next(&level->scan, &name, &value)) {
			visit(&walk, level, name, value);
		} else {
			broken = level->scan.broken;
			walk.depth--;
		}
	}
	if (walk.found && !broken)
		put_until(&walk, text.data + text.size);
	if (walk.error)
		return walk.error;
	return walk.found && !broken;
}
