/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every cap of the collector in one place. Reaching one evicts or truncates,
 * sets a flag in the result and bumps a counter; it never aborts.
 */
#ifndef NIGHTCLERK_LIMITS_H
#define NIGHTCLERK_LIMITS_H

#define LIMIT_HEAD_BYTES (64 * 1024)		/* start line and fields of one message */
#define LIMIT_HEAD_FIELDS 256			/* fields kept of one message; the rest are parsed and counted */
#define LIMIT_BODY_BYTES (8 * 1024 * 1024)	/* body text kept for its canonical form */
#define LIMIT_HELD_CALLS_BYTES (128 * 1024 * 1024) /* heads, bodies and what waits, of all connections together */
#define LIMIT_ANSWER_BYTES (1024 * 1024)	/* of an answer that a later stage reads (tools/list) */
#define LIMIT_JSON_DEPTH 512			/* nesting; deeper bodies are hashed raw */
#define LIMIT_OPEN_CALLS_PER_CONNECTION 4096	/* pipelined requests that wait for an answer */
#define LIMIT_PATH_BYTES 8192			/* printed of a path or a query */
#define LIMIT_HELD_BYTES (64 * 1024 * 1024)	/* out-of-order events that the sequencer holds */
#define LIMIT_UNWRITTEN_BYTES (64 * 1024 * 1024) /* lines that wait for a full disk or a slow reader, of one output */
#define LIMIT_FINDINGS_PER_CALL 1000		/* events per fingerprint; then counts */
#define LIMIT_REMEMBERED_ATTEMPTS 1000000
#define LIMIT_REMEMBERED_BYTES (240 * 1024 * 1024) /* of memory for them; then the oldest go, too */
#define LIMIT_REMEMBERED_TOOLS 4096		/* MCP tools whose annotations are kept; then the oldest go */
#define LIMIT_TOOL_PATH_BYTES 1024		/* of an MCP endpoint; tools behind a longer path are not remembered */
#define LIMIT_CGROUPS 65536
#define LIMIT_TENANTS 256			/* alive at once, of `audit` */
#define LIMIT_TENANTS_BYTES (256 * 1024 * 1024)	/* remembered calls of all tenants; each has an equal share */
#define LIMIT_TENANTS_CALLS_BYTES (256 * 1024 * 1024) /* heads, bodies and what waits: a tenant may hold as much as is free */
#define LIMIT_CGROUP_PATHS_BYTES (16 * 1024 * 1024) /* then those used longest ago go */
#define LIMIT_REFUSALS 1000			/* (name, destination) pairs that --confine tells people of; then counts */

#define SEQUENCER_WATERMARK_NS (5 * 1000 * 1000ULL)
#define SEQUENCER_HOLD_NS (1000 * 1000 * 1000ULL) /* longest wait for bytes that an event rests on */

#endif
