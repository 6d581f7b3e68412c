/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds members in JSON text without building a tree: no memory, no recursion,
 * one pass. A tree of 8 MiB of "{}," takes 2 GiB; this takes nothing.
 *
 * It reads just enough to find its way: strings, commas, brackets (a member is
 * at most LIMIT_JSON_DEPTH deep). Whether every number is well-formed is
 * canonical.c's business.
 *
 *	json_scan_open(&scan, object);
 *	while (json_scan_next(&scan, &name, &value))
 *		...
 *	if (scan.broken)
 *		...
 *
 * A value is a slice of the text with its quotes or brackets; so is a name.
 */
#ifndef NIGHTCLERK_JSON_SCAN_H
#define NIGHTCLERK_JSON_SCAN_H

#include "bytes.h"
#include "ascii.h"

struct json_scan {
	const uint8_t *at;
	const uint8_t *end;
	uint8_t closer; /* ']' or '}'; 0 = nothing to read */
	bool started;   /* a member was read */
	bool done;
	bool broken; /* the text is not JSON, is cut, or is nested too deep */
};

/*
 * The one value of a whole text, without the white space around it and a UTF-8
 * byte order mark. False when there is none, or more than one.
 */
bool json_scan_whole(struct bytes text, struct bytes *ret_value);

/* Starts at an object or an array; any other value has no members and is not broken. */
void json_scan_open(struct json_scan *scan, struct bytes value);
/* The next member or element; *ret_name is empty in an array. False at the end. */
bool json_scan_next(struct json_scan *scan, struct bytes *ret_name, struct bytes *ret_value);

bool json_scan_is_object(struct bytes value);
bool json_scan_is_array(struct bytes value);
bool json_scan_is_string(struct bytes value);
bool json_scan_is_true(struct bytes value);
bool json_scan_is_null(struct bytes value);

/* Is value a string that says exactly text? Escapes are undone. */
bool json_scan_says(struct bytes value, const char *text);
/*
 * The value of that name in an object; of several the last, as most parsers
 * have it. Empty when there is none, when object is no object, or is broken.
 */
struct bytes json_scan_member(struct bytes object, const char *wanted);
/*
 * Writes what a string says to text, at most size bytes of it, whole
 * characters only. Returns the bytes written; *ret_cut (may be NULL) tells
 * whether there were more. 0 for a value that is no string.
 */
size_t json_scan_text(struct bytes value, uint8_t *text, size_t size, bool *ret_cut);

/* The first byte from at on that is none between values; end when there is none. */
static inline const uint8_t *json_skip_space(const uint8_t *at, const uint8_t *end)
{
	while (at < end && ascii_is_json_space(*at))
		at++;
	return at;
}

/* What stands between the quotes of a string, escapes as they are. */
static inline struct bytes json_inside(struct bytes string)
{
	return (struct bytes){string.data + 1, string.size - 2};
}

#endif
