/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model's answer, slice by slice -> what it says that it cost, and whether it
 * has an end. Follows a stream to its end in a few KiB, however long it is.
 *
 * The API is known by the members themselves, wherever they came from: OpenAI
 * chat, responses and embeddings (vLLM, llama.cpp and others speak so too),
 * Anthropic messages, Gemini generateContent and interactions, Ollama,
 * llama.cpp. Framings: one JSON text, a JSON array that grows, NDJSON,
 * server-sent events.
 *
 * Normal form (struct usage): input with what came from and went to a cache,
 * output with reasoning. So an Anthropic input is input_tokens +
 * cache_read_input_tokens + cache_creation_input_tokens, and a Gemini output
 * candidates + thoughts; a sum is made of the parts that were reported. An output
 * that is not reported is what a total leaves of it: 0 for embeddings. A count
 * that comes again replaces the one before: they are cumulative.
 *
 * Pure: no clock, no I/O.
 */
#ifndef NIGHTCLERK_USAGE_H
#define NIGHTCLERK_USAGE_H

#include "call.h"

struct usage_reader;

struct model_answer {
	struct usage usage;
	unsigned int refused; /* counts that were strings, negative, fractions, or beyond USAGE_TOKENS_MAX: they are -1 */
	bool complete;	      /* its terminal marker came; or it was one whole JSON text of a kind that needs none */
	bool unfinished;      /* it began in a form that we know, and has no end yet; never after a gap, which may hold it */
	bool failed;	      /* it is none: it says that it failed, or is a page for people to read */
	/* "queued" and "in_progress" where the caller is to fetch the answer later. */
	struct bytes finish_reason, id, model; /* empty = not said; they live as long as the reader */
};

#define USAGE_TOKENS_MAX (1LL << 53)

struct usage_reader *usage_reader_new(void); /* NULL when out of memory */
void usage_reader_free(struct usage_reader *reader); /* accepts NULL */

/* The next bytes of the entity, transfer and content codings undone. */
void usage_reader_feed(struct usage_reader *reader, struct bytes entity);
/* Bytes are missing here: what was reported stays, as lower bounds; events are followed from the next one on. */
void usage_reader_gap(struct usage_reader *reader);
/* What is known so far. An event that is not whole says nothing. */
void usage_reader_answer(const struct usage_reader *reader, struct model_answer *ret_answer);

#endif
