/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stop rule: a pure table over an earlier and a later attempt.
 *
 *   Reads may retry. Without an Idempotency-Key a second attempt is not
 *   allowed. With one it is allowed only if the body is unchanged and the last
 *   status is in {none, 408, 409, 429, 500, 502, 503, 504}.
 *
 * No state, no memory, no clock: the same facts give the same verdict.
 */
#ifndef NIGHTCLERK_FINDING_H
#define NIGHTCLERK_FINDING_H

#include "call.h"

enum finding {
	FINDING_NONE,
	FINDING_UNDECIDABLE,
	FINDING_DUP_IN_FLIGHT,
	FINDING_DUP_AFTER_TIMEOUT,
	FINDING_DUP_AFTER_NO_RESPONSE,
	FINDING_DUP_AFTER_TRUNCATED_SUCCESS,
	FINDING_DUP_AFTER_SUCCESS,
	FINDING_DUP_AFTER_GATEWAY_ERROR,
	FINDING_RETRY_WITHOUT_KEY,
	FINDING_SAFE_RETRY,
	FINDING_RETRY_AFTER_SUCCESS,
	FINDING_RETRY_AFTER_REFUSAL,
	FINDING_RETRY_AFTER_UNLISTED_STATUS,
	FINDING_KEY_REUSED_DIFFERENT_BODY,
	FINDING_KEY_CHANGED_ON_RETRY,
	FINDING_LLM_BILLED_TWICE,
	FINDING_LLM_MAYBE_BILLED_TWICE,
	FINDING_LLM_REDISPATCHED_JOB,
	FINDING_LLM_IDENTICAL_IN_FLIGHT,
	FINDING_LLM_REPEAT,
	FINDING_TRUNCATED_RESPONSE, /* of one call alone */
	FINDING_ABANDONED_CALL,	    /* of one call alone */
	FINDING_OFF_LOOPBACK,	    /* of one connection */
	FINDING_COUNT,
};
/* "dup_after_timeout", ... */
const char *finding_name(enum finding finding);

enum severity { SEVERITY_NULL /* undecidable */, SEVERITY_INFO, SEVERITY_LOW, SEVERITY_MEDIUM, SEVERITY_HIGH };
/* "info", "low", "medium", "high"; NULL for SEVERITY_NULL */
const char *severity_name(enum severity severity);
/* 0, or -EINVAL for any other text. */
int severity_parse(struct bytes text, enum severity *ret_severity);

/* A header in which a client counts its own attempts: evidence, never needed for a verdict. */
enum retry_marker { RETRY_UNMARKED, RETRY_STAINLESS, RETRY_AMZ, RETRY_SLACK };

/* What the judge may know of one attempt. Kept small: attempts.c remembers a million. */
struct attempt_facts {
	uint64_t first_ns;	  /* first byte of the request */
	uint64_t status_ns;	  /* send that completed the final head; 0 = none yet */
	uint64_t closed_ns;	  /* whoever closed first; 0 = open */
	uint64_t complete_ns;	  /* the response became complete; 0 = not */
	uint32_t tgid;
	uint32_t process;	  /* a hash of when that process started: both together are the process */
	uint32_t cgroup;	  /* a hash of its cgroup */
	uint32_t masked;	  /* a hash of what the policy masks in its body; 0 = nothing is masked */
	uint16_t status;	  /* final status, 0 = none */
	uint16_t policy_rule;	  /* number of the policy's rule about it; 0 = none */
	uint8_t class;		  /* enum call_class */
	uint8_t class_source;	  /* enum class_source */
	uint8_t delivered;	  /* enum call_delivered */
	uint8_t closed_first;	  /* enum call_closer */
	uint8_t idem_state;	  /* enum idem_state */
	uint8_t retry_marker;	  /* enum retry_marker */
	uint8_t retry_count;	  /* what it says, at most 255 */
	bool request_complete : 1;
	bool undecidable : 1;
	bool replayed : 1;
	bool status_in_time : 1;  /* the client was still there when the final head was sent */
	bool server_read_known : 1;
	bool server_read_all : 1;
	bool owner_gone : 1;	  /* its process has exited */
	bool idempotent : 1;	  /* PUT, DELETE, or a tool with idempotentHint */
	bool form : 1;		  /* a form POST (302 then counts as applied) */
	bool expects : 1;	  /* Expect: 100-continue */
	bool has_principal : 1;
	bool bearer : 1;
	bool known_write : 1;	  /* by policy, protocol or tool name */
	bool continuation : 1;	  /* an MCP call again, with the input that the server asked for */
	bool not_run : 1;	  /* the answer, whatever its status, says that nothing was run */
	bool no_outcome : 1;	  /* from a ledger line: nothing is known of how it went */
	bool answer_cut : 1;	  /* a model's answer: HTTP had it whole, and it has no end */
	bool usage_seen : 1;	  /* a model said what its answer cost */
	bool usage_final : 1;	  /* and said so to its end: else these are lower bounds */
	uint64_t principal;	  /* first 8 bytes of the salted hash */
	uint32_t key;		  /* a hash of the key; 0 = none */
	uint32_t body;		  /* a hash of its hash; 0 = not known */
	uint32_t input_tokens;	  /* where usage_seen; TOKENS_NOT_SAID = not reported. For people: no verdict rests on them */
	uint32_t output_tokens;
};

#define TOKENS_NOT_SAID UINT32_MAX

/*
 * Copies what the judge needs out of a call; every other byte is 0, so that
 * facts can be compared with memcmp. body is of sha, or of the fingerprint
 * where the protocol has volatile members (a JSON-RPC id, stream of a model
 * call) or the policy masks some: those are no other body.
 */
void attempt_facts_of(const struct call *call, struct attempt_facts *ret_facts);
/* attempt_facts.process of that process. */
uint32_t attempt_process_of(const struct process *process);

/*
 * The rows of the table, in the order in which they are tried. The first two
 * do not depend on time. All others are about what had happened by at_ns, the
 * first byte of the later attempt:
 *
 * - a final status counts if its send began while the client was still there;
 *   1xx and 101 are no final status;
 * - an attempt is open, whatever its status, until its response was complete
 *   or one side had closed;
 * - a request that was never whole and got no final status was never read,
 *   whoever closed, and at all times;
 * - a success is cut if it was not complete, if the client did not read all of
 *   it, or if it became complete only after the client had closed; delivered
 *   "unknown" counts as read;
 * - a success whose body says that nothing was run (JSON-RPC) is refused;
 * - a status of 600 and more is a server error; 305, 306 and unassigned 3xx
 *   are refused.
 */
enum finding_row {
	ROW_UNDECIDABLE,
	ROW_REPLAYED,
	ROW_OPEN,
	ROW_CLIENT_GAVE_UP,
	ROW_SERVER_ENDED,	/* and its application had read the request, or that is unknown */
	ROW_NEVER_READ,		/* never read to the end, never whole, or connect failed */
	ROW_SUCCESS_CUT,	/* 2xx, 303, 302 after a form POST; cut or not read to its end */
	ROW_SUCCESS,
	ROW_CONFLICT,		/* 408 409; 302 otherwise */
	ROW_OVERLOADED,		/* 429 503 529 */
	ROW_SERVER_ERROR,	/* every other 5xx, and 499 */
	ROW_ASKED_AGAIN,	/* 401 407 and other credentials, 417 and no Expect; 300 304 */
	ROW_REFUSED,		/* every other 4xx; 301 307 308 to the same target; a success that says nothing was run */
	ROW_COUNT,
};

/*
 * The columns. A later attempt without a key, or with an invalid one, is
 * COLUMN_NO_KEY whatever the earlier one had. One with a key is
 * COLUMN_NEW_KEY unless the earlier one had the same: an absent or invalid key
 * equals nothing. A key that may not have been seen, and a body that is not
 * known where the keys are equal, leave several columns: if all of them say
 * the same, that is the verdict, else it is undecidable.
 */
enum finding_column { COLUMN_NO_KEY, COLUMN_SAME_KEY_SAME_BODY, COLUMN_SAME_KEY_OTHER_BODY, COLUMN_NEW_KEY, COLUMN_COUNT };

/* "undecidable", "client_gave_up", ... and "no_key", "same_key_same_body", ... */
const char *finding_row_name(enum finding_row row);
const char *finding_column_name(enum finding_column column);

/* The row of earlier, judged for later, at later->first_ns. */
enum finding_row finding_row_of(const struct attempt_facts *earlier, const struct attempt_facts *later);
/* One bit (1 << column) for every column that the pair may be in; at least one. */
unsigned int finding_columns_of(const struct attempt_facts *earlier, const struct attempt_facts *later);

/*
 * When an attempt stopped being open: before this time its row is ROW_OPEN for
 * any later one, from then on it is one and the same. UINT64_MAX: still open.
 * 0: its row never depends on time.
 */
uint64_t attempt_ended_ns(const struct attempt_facts *facts);

/* Two attempts of one process. */
bool attempts_share_process(const struct attempt_facts *a, const struct attempt_facts *b);

struct verdict {
	enum finding finding;
	enum severity severity;
	enum finding_row row;
	enum finding_column column;
	const char *rule;   /* static: the rule that decided or lowered it ("table", "method is idempotent", ...) */
	bool cross_process; /* the two are of different processes */
	bool weaker;	    /* matched across two bearer tokens */
	bool masked;	    /* the two bodies are equal but for what the policy masks */
};

/* What a rule of the policy allows to be said about its calls. */
struct finding_limits {
	bool capped;
	enum severity at_most;	 /* where capped; SEVERITY_NULL: nothing at all */
	uint64_t window_ns;	 /* longest time between two attempts of one process; 0 = any */
	uint64_t across_ns;	 /* the same across processes, and where the later one has a key */
	bool same_process;	 /* attempts of other processes do not count */
	bool same_cgroup;	 /* attempts of other cgroups do not count */
	const char *equal_except; /* "nonce": what is masked, for people; NULL = nothing */
};

struct finding_options {
	bool strict;
	const struct finding_limits *limits; /* of the policy's rules, by their number - 1; NULL = no policy */
	/* Where the policy's rule sets no window; 0 = any. Across: between processes, and where the later one has a key. */
	uint64_t window_ns, across_ns;
	/* A repeat by another process that comes so long after a delivered 2xx is info: a job that runs each day. 0 = never. */
	uint64_t fresh_ns;
};

/* Of the rule about an attempt; NULL = no rule. */
const struct finding_limits *finding_limits_of(const struct attempt_facts *facts,
					       const struct finding_options *options);
/* The longest time between the first bytes of two attempts of which facts is the later; UINT64_MAX = any. */
uint64_t finding_window_ns(const struct attempt_facts *facts, const struct finding_options *options,
			   bool cross_process);

#define FINDING_BEARER_WINDOW_NS (15 * 60 * 1000000000ULL) /* between the first bytes of two bearer tokens' attempts */

/*
 * Judges `later` against one earlier attempt with an equal fingerprint or an
 * equal key scope. Only what had happened to `earlier` by later->first_ns
 * counts, but for its late 2xx (2xx, 303, 302 after a form POST), its replay
 * header, a hole, and the exit of its process while it is open. An earlier one
 * whose first byte came after that of the later one is open.
 *
 * No finding, whatever the table says:
 * - different principals, but for a 401, 403 or 407 answered before, or two
 *   bearer tokens of one process within FINDING_BEARER_WINDOW_NS;
 * - a read by protocol, policy or safe method; the later request was never
 *   whole (a hole in it aside); an MCP continuation of a call that was none;
 * - the policy's rule about the later one says so: severity none, the earlier
 *   one out of its window or its scope.
 *
 * Then, in this order: a late 2xx makes dup_after_timeout high; strict turns
 * safe_retry after a status outside of the stop rule's list into
 * retry_after_unlisted_status and raises every finding but none, safe_retry
 * and undecidable to medium; a read by path or tool name is at most low, an
 * idempotent method at most low (not when strict), auth and telemetry at most
 * info (strict or not); the policy's cap comes last. Undecidable has no
 * severity and is never lowered.
 *
 * no_outcome on either makes the pair undecidable, but for the same key and the
 * same body: whatever the outcome was, that is a safe_retry or, when not
 * strict, a retry_after_success or retry_after_refusal, low at most.
 *
 * Class llm (of the later one) never uses the table, and strict does not change it:
 * undecidable; none where either answer is a replay; no final status, its
 * owner gone and another process asks: llm_redispatched_job; 2xx cut, without the
 * end that the model's own protocol has, or late: llm_billed_twice; 5xx but 503
 * and 529, 408, 409, no answer:
 * llm_maybe_billed_twice; open: llm_identical_in_flight; delivered:
 * llm_repeat; else none. With the same key and body each is at most info, and a
 * model call that is known by its path alone (embeddings) is at most low.
 */
struct verdict finding_judge(const struct attempt_facts *earlier, const struct attempt_facts *later,
			     const struct finding_options *options);

/*
 * A verdict that no attempt can exceed which ended as `earlier` did, whatever
 * its key, body, principal or process. by_key: they share the key scope, else
 * the fingerprint.
 */
struct verdict finding_worst_like(const struct attempt_facts *earlier, const struct attempt_facts *later,
				  const struct finding_options *options, bool by_key);
/* The highest severity that any verdict about later can have. */
enum severity finding_highest(const struct attempt_facts *later, const struct finding_options *options);

/*
 * Three equal attempts in a row, a, b, c: is c a poll? No key and one
 * principal on all, no known write, a and b answered by a delivered 2xx before
 * the next began, gaps of FINDING_POLL_GAP_NS or more that differ by a tenth
 * at most, and in each more waiting than answering. The caller then lowers
 * dup_after_success to info, with finding_poll_rule.
 */
#define FINDING_POLL_GAP_NS 900000000ULL
bool finding_is_poll(const struct attempt_facts *a, const struct attempt_facts *b, const struct attempt_facts *c);
extern const char finding_poll_rule[];

/* True when a ranks above b: none, info, low, undecidable, medium, high. False for equals: the later pair wins then. */
bool verdict_worse(const struct verdict *a, const struct verdict *b);

#endif
