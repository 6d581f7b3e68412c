/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call: one HTTP request with its response, who made it and when. Made by
 * connection*.c, read by every later stage; only they write it, but for
 * the fields under "filled by", which pipeline.c fills from the named stage.
 *
 * Slices point into memory that the call owns and live as long as the call.
 * Times are CLOCK_MONOTONIC nanoseconds; 0 = it has not happened.
 */
#ifndef NIGHTCLERK_CALL_H
#define NIGHTCLERK_CALL_H

#include "../bpf/wire_event.h"
#include "bytes.h"
#include "canonical.h"
#include "digest.h"
#include "http.h"

#define CALL_ID_BYTES 16

struct process {
	uint32_t tgid; /* 0 = not known */
	uint32_t tid;
	uint32_t ns_tgid;
	uint32_t uid;
	uint64_t start_ns; /* boot clock; (tgid, start_ns) is the process */
	uint64_t cgroup_id;
	char comm[WIRE_COMM_BYTES + 1];
};

struct endpoint {
	uint8_t address[WIRE_ADDRESS_BYTES]; /* IPv4 is v4-mapped */
	uint16_t port;
};

/* "127.0.0.1:8080" or "[::1]:8080" and a NUL. */
#define ENDPOINT_TEXT_MAX 56
void endpoint_text(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_MAX]);

enum call_class { CLASS_MUTATING, CLASS_READ, CLASS_LLM, CLASS_AUTH, CLASS_TELEMETRY };
/* "mutating", "read", "llm", "auth", "telemetry" */
const char *call_class_name(enum call_class class);

/* What the class rests on, weakest first; design: policy > protocol > tool name > path > method. */
enum class_source { CLASS_BY_METHOD, CLASS_BY_PATH, CLASS_BY_TOOL_NAME, CLASS_BY_PROTOCOL, CLASS_BY_POLICY };

/* What the request's body was recognised as; it says which of its members are volatile. */
enum call_protocol {
	PROTOCOL_NONE,
	PROTOCOL_JSON_RPC, /* of nobody we know */
	PROTOCOL_MCP,
	PROTOCOL_A2A,
	PROTOCOL_GRAPHQL,
	PROTOCOL_OPENAI, /* and what speaks like it: vLLM, llama.cpp */
	PROTOCOL_ANTHROPIC,
	PROTOCOL_GEMINI,
	PROTOCOL_OLLAMA,
	PROTOCOL_LLAMA_CPP,
	PROTOCOL_LLM, /* another model API */
	PROTOCOL_AWS,
};

/* Longer names of tools and models are cut. MCP allows 128 for a tool. */
#define CALL_NAME_BYTES 128

enum call_ended {
	CALL_ENDED_NONE, /* no final status line came */
	CALL_ENDED_LENGTH,
	CALL_ENDED_CHUNKED,
	CALL_ENDED_CLOSE, /* close-delimited and complete */
	CALL_ENDED_RESET, /* cut by a RST */
	CALL_ENDED_CUT,	  /* cut by a FIN, or by the end of the run */
};
/* "none", "length", "chunked", "close", "reset", "cut" */
const char *call_ended_name(enum call_ended ended);

enum call_delivered { DELIVERED_UNKNOWN, DELIVERED_ALL, DELIVERED_PART, DELIVERED_NONE };
/* "unknown", "all", "part", "none" */
const char *call_delivered_name(enum call_delivered delivered);

/* What is done with the entity of the answer. */
enum call_answer_use {
	ANSWER_UNREAD,
	ANSWER_KEPT,	 /* call.answer: a tools/list */
	ANSWER_FOLLOWED, /* usage.h, slice by slice: a model's answer */
};

enum call_closer { CLOSER_NOBODY, CLOSER_CLIENT, CLOSER_SERVER };

enum idem_state { IDEM_ABSENT, IDEM_PRESENT, IDEM_INVALID /* a list or several lines */, IDEM_UNKNOWN /* may not have been seen */ };

/* What a model's answer says it cost, in the normal form of usage.h. */
struct usage { /* -1 = not reported: missing is never 0 */
	int64_t input_tokens;	    /* with what came from a cache and what was written to one */
	int64_t output_tokens;	    /* with reasoning */
	int64_t cached_tokens;	    /* read from a cache */
	int64_t cache_write_tokens; /* written to one */
	int64_t reasoning_tokens;
	bool final; /* false: the answer was cut, so these are lower bounds */
	bool seen;
};

/* Does the request ask for the same answer every time? */
enum call_temperature { TEMPERATURE_ABSENT, TEMPERATURE_ZERO, TEMPERATURE_ABOVE_ZERO };

struct policy_rule;

struct call {
	uint8_t id[CALL_ID_BYTES];
	uint32_t netns;
	struct endpoint client;
	struct endpoint server;
	struct process process;	       /* who sent the request */
	struct process server_process; /* tgid 0 until it is known */
	uint64_t number;	       /* 1, 2, 3 ... in order of first byte in this run */

	/* the request */
	uint64_t first_ns; /* its first byte */
	uint64_t seen_ns;  /* the last byte of it that was seen so far */
	uint64_t sent_ns;  /* its last byte; 0 while it is not whole */
	bool request_complete;
	uint64_t request_holes; /* bytes of it that were not seen */
	const struct http_head *head; /* NULL when not even the head could be seen */
	struct bytes method;
	struct bytes path;  /* of the target, without query */
	struct bytes query; /* without "?" */
	bool has_query;
	struct bytes host; /* Host, or the authority of an absolute-form target; without userinfo */
	bool has_host;
	struct bytes content_type;
	uint64_t body_bytes;	/* entity: after transfer decoding, before content decoding */
	bool has_raw_sha;	/* false only when body bytes are missing */
	struct digest raw_sha;	/* of the entity as sent */
	struct bytes body;	/* the entity, while it is held: whole, at most LIMIT_BODY_BYTES; plain from make_canonical() on */
	bool body_held;
	const char *body_why; /* static: why body is not held or hashed ("body over 8 MiB", "hole", ...) */

	/* filled by canonical.c, classify.c, fingerprint.c */
	enum canonical_kind canon;
	const char *canon_why;
	bool has_sha;
	struct digest sha; /* of the canonical body; where canon is CANONICAL_RAW, of the plain entity, or raw_sha if it was not made plain */
	enum idem_state idem_state;
	struct buffer kept;    /* owns what idem and retry_hint lend */
	struct bytes idem;     /* normalised key */
	const char *idem_from; /* "Idempotency-Key", "body.requestId", ... */
	enum call_class class;
	enum class_source class_source;
	const char *class_by; /* the rule that decided, static or owned by the policy */
	const struct policy_rule *rule; /* of the policy, about this call; NULL = none */
	uint64_t masked;      /* a hash of what that rule masks in the body; 0 = it masks nothing */
	bool idempotent_hint; /* PUT, DELETE, or a tool that says idempotentHint */
	struct bytes tool;    /* MCP tool or JSON-RPC method; empty = none */
	struct bytes model;
	struct bytes retry_hint; /* JSON object text, or empty */
	bool has_fingerprint;
	struct digest fingerprint;
	bool has_prompt_fingerprint;
	struct digest prompt_fingerprint; /* server, method, path and model_key */
	bool has_model_key; /* class llm, and the body or its hash is known */
	struct digest model_key;
	enum call_temperature temperature;
	struct digest key_scope; /* server, method, path, principal, key: where idem_state is IDEM_PRESENT */
	bool has_principal;
	bool principal_is_bearer;
	struct digest principal; /* salted */
	enum call_protocol protocol;
	bool known_write;      /* a rule names it a write: more than "no rule calls it a read" */
	bool mcp_continuation; /* an MCP call again, with the input that the server asked for */
	bool not_run;	       /* the answer says that it never was: a JSON-RPC error from before the method */
	bool mcp_tool_guessed; /* a tools/call, and its server said nothing of that tool */
	bool mcp_lists_tools;  /* a tools/list, or the rest of its answer: worth learning from */
	uint8_t tool_text[CALL_NAME_BYTES]; /* what tool and model point at: the body goes before the call does */
	uint8_t model_text[CALL_NAME_BYTES];

	/* the response */
	unsigned int status;	 /* final status; 0 = none */
	uint64_t status_ns;	 /* the send that completed its head began */
	bool status_in_time;	 /* the client had not closed when that send began: it was received */
	bool interim_seen;	 /* a 1xx came */
	uint64_t response_first_ns;
	uint64_t response_last_ns;
	uint64_t response_body_bytes;
	bool response_complete;
	uint64_t complete_ns; /* the send that completed it began */
	enum call_ended ended;
	enum call_delivered delivered;
	uint64_t response_wire_bytes; /* head and body, as sent, without interim responses */
	uint64_t delivered_bytes;     /* of response_wire_bytes that the client's application read; valid unless UNKNOWN */
	bool replayed;		      /* Idempotent-Replayed: true and kin */
	enum call_answer_use answer_use; /* set by pipeline.c before the answer comes */
	bool keep_answer;		 /* a followed one is kept as well; false where it proved too long */
	struct bytes answer;	      /* the entity so far, where it is kept; transfer and content codings undone */
	int64_t retry_after_s;	      /* Retry-After as seconds; -1 = none or a date */
	/* what a model's answer says (usage.h); response_complete is about HTTP alone */
	bool answer_complete;	/* its terminal marker was seen */
	bool answer_unfinished; /* it began as we know them, and has no end yet */
	bool answer_failed;	/* it is none: it says that it failed, or is a page for people to read */
	struct usage usage;
	unsigned int usage_refused;  /* counts that were strings, negative or beyond 2^53: not in usage */
	struct bytes finish_reason;  /* as the model said it; empty = it said none */
	struct bytes response_id;    /* the model's own id of its answer */
	struct bytes response_model; /* which model says that it answered */
	uint64_t response_holes;

	/* the connection, as far as it concerns this call */
	uint64_t client_closed_ns;
	uint64_t server_closed_ns;
	bool client_died; /* its process is gone, or it reset */
	enum call_closer closed_first;
	bool server_read_known;
	bool server_read_all; /* its application read the request to its last byte */
	bool no_outcome;      /* read from a ledger line: how it went is not known at all */
	bool undecidable;     /* a hole, a blind stream or a late join keeps us from saying how it went */
	const char *why;      /* static text: reasons for every "unknown" and null hash; NULL = none */
	bool open;	      /* neither answered whole nor given up by anyone */
	void *attempt;	      /* pipeline.c: its entry in attempts.c, or NULL */
	void *hop;	      /* the same in hops.c */
	size_t booking;	      /* booking.c: 1 + the place of its last booking; 0 = none */
};

/* Heads, bodies and what waits, of all connections together. */
struct call_memory {
	size_t bytes;
	size_t limit; /* what would go beyond is not kept, and the call says so; it may be lowered at any time */
};

#endif
