/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a model's answer has said so far, member by member, and the normal form
 * of its counts. Private to usage.c, which knows where answers and events end.
 */
#ifndef NIGHTCLERK_USAGE_READING_H
#define NIGHTCLERK_USAGE_READING_H

#include "call.h"
#include "json_stream.h"

/* What is counted, under the names of whoever reports it. */
enum usage_count {
	COUNT_PROMPT,	      /* the whole prompt, cache included */
	COUNT_TOOL_PROMPT,    /* what a built-in tool added to it */
	COUNT_INPUT,	      /* the prompt, without what the two cache counts below hold */
	COUNT_CACHE_READ,
	COUNT_CACHE_CREATION,
	COUNT_CACHE_5M, /* how COUNT_CACHE_CREATION splits up */
	COUNT_CACHE_1H,
	COUNT_CACHED, /* of COUNT_PROMPT */
	COUNT_CACHE_WRITE,
	COUNT_TOTAL,  /* COUNT_PROMPT and COUNT_OUTPUT */
	COUNT_OUTPUT, /* the whole answer */
	COUNT_REASONING,
	COUNT_VISIBLE,	/* the answer without thoughts */
	COUNT_THOUGHTS,
	COUNT_TIMED_PROMPT, /* llama.cpp's timings: evaluated now */
	COUNT_TIMED_CACHED,
	COUNT_TIMED_OUTPUT,
	COUNT_SLOT_CACHED, /* llama.cpp's slot: may hold more than the prompt */
	COUNT_COUNT,
};

struct usage_text {
	uint8_t size;
	uint8_t text[JSON_STREAM_TEXT_BYTES];
};

/* All that the answer has said so far. */
struct usage_reading {
	int64_t counts[COUNT_COUNT];
	unsigned int refused;
	bool counted;	    /* a count came, whatever it said */
	bool known;	    /* a member came that tells an API of which we know how its answers end */
	bool terminal;	    /* its marker came */
	bool stopped;	    /* the reason came, and the marker is to follow: counts are final */
	bool marker_due;    /* a marker was there and says: not yet */
	bool failed;	    /* an error stands in place of an answer, or of the rest of it */
	uint64_t choices, finished_choices;
	unsigned int choice; /* the one being read */
	bool choice_finished;
	struct usage_text finish_reason, id, model;
	struct usage_text background; /* "queued", "in_progress": where it stays so, the answer is to be fetched later */
};

/* Nothing was said. */
void usage_reading_init(struct usage_reading *reading);
/* A step of the JSON text, but for JSON_STREAM_END and JSON_STREAM_BROKEN. */
void usage_reading_take(struct usage_reading *reading, enum json_stream_step step, const struct json_stream *json);
/* In the normal form of usage.h; final is false. */
struct usage usage_reading_counts(const struct usage_reading *reading);

#endif
