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

/* What the judge may know of one attempt. Kept small: attempts.c remembers a million. */
struct attempt_facts {
	uint64_t first_ns;	  /* first byte of the request */
	uint64_t status_ns;	  /* send that completed the final head; 0 = none yet */
	uint64_t closed_ns;	  /* whoever closed first; 0 = open */
	uint64_t complete_ns;	  /* the response became complete; 0 = not */
	uint64_t process_start_ns;
	uint32_t tgid;
	uint16_t status;	  /* final status, 0 = none */
	uint8_t class;		  /* enum call_class */
	uint8_t class_source;	  /* enum class_source */
	uint8_t delivered;	  /* enum call_delivered */
	uint8_t closed_first;	  /* enum call_closer */
	uint8_t idem_state;	  /* enum idem_state */
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
	uint64_t principal;	  /* first 8 bytes of the salted hash */
	uint64_t key;		  /* first 8 bytes of a hash of the key; 0 = none */
	uint64_t body;		  /* first 8 bytes of sha; 0 = not known */
};

/* Copies what the judge needs out of a call. */
void attempt_facts_of(const struct call *call, struct attempt_facts *ret_facts);

/* The rows of the table, in the order in which they are tried. */
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
	ROW_ASKED_AGAIN,	/* 401 407 417 3xx and the request they ask for; 300 304 */
	ROW_REFUSED,		/* every other 4xx; 301 307 308 to the same target */
	ROW_COUNT,
};
enum finding_column { COLUMN_NO_KEY, COLUMN_SAME_KEY_SAME_BODY, COLUMN_SAME_KEY_OTHER_BODY, COLUMN_NEW_KEY, COLUMN_COUNT };
const char *finding_row_name(enum finding_row row);
const char *finding_column_name(enum finding_column column);

struct verdict {
	enum finding finding;
	enum severity severity;
	enum finding_row row;
	enum finding_column column;
	const char *rule;   /* static: the rule that decided or lowered it ("table", "method is idempotent", ...) */
	bool cross_process; /* the two are of different processes */
	bool weaker;	    /* matched across two bearer tokens */
};

struct finding_options {
	bool strict;
};

/*
 * Judges `later` against one earlier attempt with an equal fingerprint or an
 * equal key scope. Only what had happened to `earlier` by later->first_ns
 * counts, but for its late 2xx and its replay header.
 */
struct verdict finding_judge(const struct attempt_facts *earlier, const struct attempt_facts *later,
			     const struct finding_options *options);

/* True when a ranks above b: severity first (undecidable below medium, above low), then the later one wins. */
bool verdict_worse(const struct verdict *a, const struct verdict *b);

#endif
