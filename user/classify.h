/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of call is it: mutating, read, llm, auth, telemetry.
 *
 * Ordered rules: policy file > protocol knowledge > tool names > path > method.
 * What cannot be told is mutating. Pure: no I/O, no clock; it remembers what
 * MCP servers said about their tools and nothing else.
 */
#ifndef NIGHTCLERK_CLASSIFY_H
#define NIGHTCLERK_CLASSIFY_H

#include "call.h"

struct classifier;
struct policy;

struct classifier *classifier_new(void);             /* NULL when out of memory */
void classifier_free(struct classifier *classifier); /* accepts NULL */

/* Its rules outrank every rule here. Borrowed; NULL = none. */
void classifier_set_policy(struct classifier *classifier, const struct policy *policy);

/*
 * Fills rule, class, class_source, class_by, idempotent_hint, tool, model, protocol,
 * known_write and the mcp fields of a call whose request is
 * whole. The body, where it is held, is the plain entity: content codings are
 * undone. class_by is static text or the policy's; tool and model point into the call itself,
 * so a call that is copied must be classified again.
 *
 * class CLASS_READ by CLASS_BY_METHOD means a safe method. 0, or -ENOMEM: then
 * all is filled, and the class is the cautious one.
 */
int classify_call(struct classifier *classifier, struct call *call);

/*
 * True for a call whose answer classify_answer() wants: a tools/list, and a
 * JSON-RPC call that may have an effect.
 */
bool classify_wants_answer(const struct call *call);
/*
 * The whole body of that answer, plain, JSON or SSE framed. Learns from a
 * tools/list; sets call->not_run where an answer says that nothing was run.
 * 0 or -ENOMEM.
 */
int classify_answer(struct classifier *classifier, struct call *call, struct bytes response_body);

/* Tools whose annotations were forgotten for want of room. */
uint64_t classify_forgotten_tools(const struct classifier *classifier);

/*
 * The text that two attempts are compared by: the canonical JSON text without
 * the volatile members of the protocol that was recognised (a JSON-RPC id, MCP
 * params._meta, stream of a model call, ...). Call it after classify_call().
 *
 * 1: the text is in out, which was cleared first; 0: use canonical_text as it
 * is; -ENOMEM. A text that is not canonical JSON gives 0.
 */
int classify_comparable_text(const struct call *call, struct bytes canonical_text,
			     struct buffer *out);
/* The same for the prompt-level fingerprint: the budget of output tokens goes too. */
int classify_prompt_text(const struct call *call, struct bytes canonical_text, struct buffer *out);

/*
 * The path and the sorted query of a model call, for the same: what only says
 * how the answer is brought goes (stream in a method's name, alt=sse). Appended
 * to out. 0 or -ENOMEM.
 */
int classify_prompt_path(const struct call *call, struct buffer *out);
int classify_prompt_query(const struct call *call, struct bytes sorted_query, struct buffer *out);

#endif
