/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What MCP servers said about their tools: the annotations of every tools/list
 * answer, by network namespace, server endpoint, path and tool name. At most
 * LIMIT_REMEMBERED_TOOLS; then the ones learnt longest ago go. Uses uthash.
 *
 * They are hints (MCP 2025-11-25, ToolAnnotations): a server may lie.
 */
#ifndef NIGHTCLERK_TOOL_MEMORY_H
#define NIGHTCLERK_TOOL_MEMORY_H

#include "call.h"

enum tool_hint { TOOL_HINT_UNKNOWN, TOOL_HINT_FALSE, TOOL_HINT_TRUE };

struct tool_hints {
	enum tool_hint read_only;
	enum tool_hint idempotent;
	enum tool_hint destructive;
};

struct tool_memory;

struct tool_memory *tool_memory_new(void);         /* NULL when out of memory */
void tool_memory_free(struct tool_memory *memory); /* accepts NULL */

/*
 * Learns from the whole answer to a tools/list call, JSON or SSE framed, after
 * transfer and content decoding. What is no such answer teaches nothing; a
 * tool that is listed again is learnt anew. 0 or -ENOMEM.
 */
int tool_memory_learn(struct tool_memory *memory, const struct call *call,
		      struct bytes response_body);

/* False when the tool was never listed at the call's endpoint and path. */
bool tool_memory_find(const struct tool_memory *memory, const struct call *call, struct bytes tool,
		      struct tool_hints *ret_hints);

size_t tool_memory_count(const struct tool_memory *memory);
uint64_t tool_memory_forgotten(const struct tool_memory *memory); /* so far, for want of room */

#endif
