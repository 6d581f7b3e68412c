/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between the parts of the classifier; only the classify files include it.
 * Each rule looks at one kind of knowledge and either gives its verdict or
 * returns false and leaves it alone.
 */
#ifndef NIGHTCLERK_CLASSIFY_RULES_H
#define NIGHTCLERK_CLASSIFY_RULES_H

#include "call.h"
#include "json_scan.h"
#include "tool_memory.h"

struct class_verdict {
	enum call_class class;
	enum class_source source;
	const char *by; /* static */
	bool idempotent;
	bool known_write;
	bool out_of_memory; /* something could not be read: the class is the cautious one */
};

/* The last segments of a path; empty where there is none. A trailing slash does not count. */
struct path_tail {
	struct bytes last;
	struct bytes second; /* before the last */
	struct bytes third;
};

/* A word of a table with its length: a call is held against some two hundred of them. */
struct word {
	const char *text; /* NULL = any word will do */
	size_t size;
};

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))
#define WORD(literal) {literal, sizeof(literal) - 1}
#define ANY {NULL, 0}

static inline bool word_is(const struct word *word, struct bytes text)
{
	return !word->text ||
	       (word->size == text.size && memcmp(word->text, text.data, text.size) == 0);
}

/* ASCII letters without case. No word of a table is empty; the first letter turns most away. */
static inline bool word_is_nocase(const struct word *word, struct bytes text)
{
	return !word->text ||
	       (word->size == text.size && ((word->text[0] ^ text.data[0]) & 0xdf) == 0 &&
		bytes_equal_nocase(text, (struct bytes){(const uint8_t *)word->text, word->size}));
}

/* ---- classify_body.c: the request as the rules see it ---- */

/* The fields that a rule asks for, from one pass over the head; empty = not there. */
struct class_fields {
	struct bytes method_override;
	bool override_unclear; /* several that differ */
	struct bytes aws_target;
	struct bytes mcp_method;
	struct bytes mcp_name;
	bool mcp; /* a field that only MCP has */
	bool resumes; /* the rest of a stream of events is asked for */
};
struct class_fields classify_body_fields(const struct http_head *head); /* head may be NULL */

enum body_view {
	BODY_NOT_SEEN, /* there is one, and it is not held */
	BODY_OTHER,    /* empty, or no JSON object or array */
	BODY_JSON,
};
/*
 * Looks at the body whatever its content type says: curl sends JSON as a form.
 * Only its ends are looked at: whoever scans the value finds out whether it is
 * broken, and then it was no JSON.
 */
enum body_view classify_body_json(const struct call *call, struct bytes *ret_value);
/* Does the word stand in the first or last 4 KiB of a body that looks like JSON? Cheap. */
bool classify_body_mentions(const struct call *call, struct bytes word);
/* Sets call->tool or call->model from plain bytes or from a JSON string. */
void classify_body_tool(struct call *call, struct bytes name);
void classify_body_model(struct call *call, struct bytes name);
void classify_body_model_json(struct call *call, struct bytes value);

/* ---- classify_names.c: what a name says that a tool does ---- */

/* An MCP tool, a JSON-RPC method or a GraphQL operation. */
bool classify_names_tool(struct bytes name, struct class_verdict *ret_verdict);
/* The last path segment: a reading verb alone ("search", "docs:get") is left to the path rules. */
bool classify_names_segment(struct bytes segment, struct class_verdict *ret_verdict);

/* ---- classify_paths.c ---- */

struct path_tail classify_paths_tail(struct bytes path);
/* A segment's ":verb", without the colon; empty where there is none. */
struct bytes classify_paths_verb(struct bytes segment);
/* Is name the word, or the word and a capital after it (testIamPermissions)? Case counts. */
bool classify_paths_hump(struct bytes name, const struct word *word);
bool classify_paths_rule(const struct path_tail *tail, struct class_verdict *ret_verdict);

/* ---- protocols ---- */

bool classify_llm(struct call *call, const struct path_tail *tail,
		  struct class_verdict *ret_verdict);
bool classify_aws(struct call *call, const struct class_fields *fields,
		  struct class_verdict *ret_verdict);
/* MCP, A2A over either binding, and any other JSON-RPC. */
bool classify_jsonrpc(struct call *call, const struct path_tail *tail,
		      const struct class_fields *fields, const struct tool_memory *memory,
		      struct class_verdict *ret_verdict);
bool classify_a2a_path(struct call *call, const struct path_tail *tail,
		       struct class_verdict *ret_verdict);
/* scratch is used and left with some memory. */
bool classify_graphql(struct call *call, const struct path_tail *tail, struct buffer *scratch,
		      struct class_verdict *ret_verdict);

#endif
