/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON that comes in slices -> the members in it, one by one, without keeping
 * the text: json_scan.h needs all of it, this needs a few hundred bytes however
 * long the text and its strings are.
 *
 *	while ((step = json_stream_next(&stream, &input)) != JSON_STREAM_MORE)
 *		...
 *
 * A member is told with its path: "usage.prompt_tokens", "choices[].index", in
 * an array at the top "[].usage". Scalars that are elements of an array are not
 * told: an embedding has thousands. An empty name, or one with "." or "[" in it, has no path. One text may follow another, with white
 * space between (NDJSON); the top of each is an object or an array.
 *
 * It reads just enough to find its way, as json_scan.h does.
 */
#ifndef NIGHTCLERK_JSON_STREAM_H
#define NIGHTCLERK_JSON_STREAM_H

#include "bytes.h"
#include "limits.h"

#define JSON_STREAM_TEXT_BYTES 128 /* kept of a scalar or a name */
#define JSON_STREAM_PATH_BYTES 80
#define JSON_STREAM_PATH_LEVELS 8

enum json_stream_step {
	JSON_STREAM_MORE,   /* all of *input was taken */
	JSON_STREAM_STRING, /* a member: json_stream_path(), json_stream_text() */
	JSON_STREAM_NUMBER,
	JSON_STREAM_TRUE,
	JSON_STREAM_FALSE,
	JSON_STREAM_NULL,
	JSON_STREAM_OPEN,   /* an object or array begins: json_stream_path() */
	JSON_STREAM_CLOSE,  /* it ended */
	JSON_STREAM_END,    /* after the last JSON_STREAM_CLOSE of a text */
	JSON_STREAM_BROKEN, /* no JSON, or nested too deep: stays so until json_stream_reset() */
};

/* Valid when zeroed. All of it is private. */
struct json_stream {
	uint8_t state;
	bool broken;
	bool is_name;  /* the string in progress */
	bool told;     /* the member just told is over: the path goes up at the next call */
	bool opened;   /* a container was just told: the path goes down at the next call */
	bool ended;    /* JSON_STREAM_END is due */
	bool text_cut; /* there was more of it than is kept */
	uint8_t hex_digits; /* of a \u escape, still to come */
	uint16_t code_unit;
	uint16_t high_surrogate; /* 0 = none */
	unsigned int depth;
	uint8_t arrays[LIMIT_JSON_DEPTH / 8]; /* a bit a level: is it an array? */
	unsigned int lost_levels; /* of the path, below those that are kept */
	uint8_t path_levels;
	uint8_t path_size;
	uint8_t path_ends[JSON_STREAM_PATH_LEVELS]; /* size of the path above each level */
	char path[JSON_STREAM_PATH_BYTES];
	uint8_t text_size;
	uint8_t text[JSON_STREAM_TEXT_BYTES];
};

/* The next byte begins another text. */
void json_stream_reset(struct json_stream *stream);
enum json_stream_step json_stream_next(struct json_stream *stream, struct bytes *input);

/* Of the member or container just told; empty at the top, and where it is too long, too deep or no plain name. */
struct bytes json_stream_path(const struct json_stream *stream);
/* Of the scalar just told: a string without its escapes; its first bytes, where json_stream_text_cut(). */
struct bytes json_stream_text(const struct json_stream *stream);
bool json_stream_text_cut(const struct json_stream *stream);
/* Between two texts, or before the first. */
bool json_stream_is_outside(const struct json_stream *stream);

#endif
