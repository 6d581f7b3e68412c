/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the pipeline has to say to the store: one booking for each thing that a
 * row is made of. A booking is a snapshot, complete in itself: a later one of
 * the same attempt replaces an earlier one, and the same one twice changes
 * nothing. So a recording that is replayed into its store counts once.
 *
 * Pure. No text of a prompt and no secret enters; an answer does only where
 * booking_context.keep_results asks for it.
 */
#ifndef NIGHTCLERK_BOOKING_H
#define NIGHTCLERK_BOOKING_H

#include "attempts.h"
#include "fingerprint.h"
#include "input.h"
#include "options.h"

/* How an attempt stands. Only ANSWERED is a result that somebody can use. */
enum attempt_outcome {
	OUTCOME_OPEN,	       /* its answer may still come */
	OUTCOME_ANSWERED,      /* 2xx, whole, and its client read it */
	OUTCOME_STATUS,	       /* any other final status */
	OUTCOME_FAILED,	       /* 2xx, whole, and no answer: an error, a page for people, nothing at all */
	OUTCOME_CUT,	       /* 2xx, but the answer ended before its end */
	OUTCOME_NOT_DELIVERED, /* 2xx, whole, but the client did not read all of it */
	OUTCOME_NO_ANSWER,     /* the server closed */
	OUTCOME_GAVE_UP,       /* the client closed */
	OUTCOME_OWNER_EXITED,  /* the client's process is gone */
	OUTCOME_UNKNOWN,       /* bytes are missing that would say it */
	OUTCOME_COUNT,
};
/* NULL for OUTCOME_OPEN, else "answered", "status", "failed", "cut", "not_delivered", "no_answer", ... */
const char *attempt_outcome_name(enum attempt_outcome outcome);

#define BOOKING_PATH_MAX 256

struct booked_attempt {
	struct past_attempt facts; /* what a later run judges by */
	bool has_key;		   /* false: the body was not seen whole, so it belongs to no call */
	struct digest key;
	int64_t at_ns;	 /* when this was so; CLOCK_REALTIME, like every time in a booking */
	int64_t sent_ns; /* 0 = never whole */
	enum attempt_outcome outcome;
	bool over; /* nothing more will come of it */
	bool answer_complete;
	bool response_complete;
	bool billed; /* 2xx, and usage was reported or seen before the cut */
	struct usage usage;
	uint64_t holes; /* bytes of request and answer that were not seen */
	uint32_t uid;
	uint32_t ns_tgid;
	char comm[WIRE_COMM_BYTES + 1];
	char server[ENDPOINT_TEXT_MAX];
	char model[CALL_NAME_BYTES + 1];
	char path[BOOKING_PATH_MAX]; /* as the ledger prints it, without query */
	uint8_t *result;	     /* the answer, where it is kept; owned */
	size_t result_size;
};

struct booked_finding {
	uint8_t id[CALL_ID_BYTES];	/* of the attempt that it is about */
	uint8_t earlier[CALL_ID_BYTES]; /* the other one of the pair; zeros = none */
	bool alone;			/* truncated_response, abandoned_call */
	const char *finding;		/* static; NULL: what was said of the pair is taken back */
	const char *severity;		/* static; NULL = undecidable */
	const char *rule;		/* static */
	uint64_t attempt, attempts;
	bool cross_process;
	int64_t at_ns;
};

struct booked_blind {
	uint32_t pid;
	char comm[WIRE_COMM_BYTES + 1];
	const char *kind; /* static */
	uint64_t bytes_out, bytes_in;
	int64_t at_ns;
};

struct booked_hop { /* a gateway passed parent on as id */
	uint8_t id[CALL_ID_BYTES];
	uint8_t parent[CALL_ID_BYTES];
	int64_t at_ns;
};

struct booked_run {
	int64_t started_ns;
	int64_t ended_ns; /* 0 = it goes on */
	uint8_t boot_id[16];
	uint64_t blind_streams; /* so far, of every kind */
	uint64_t hole_bytes;
};

enum booking_kind { BOOKING_ATTEMPT, BOOKING_FINDING, BOOKING_BLIND, BOOKING_HOP, BOOKING_RUN };

struct booking {
	enum booking_kind kind;
	union {
		struct booked_attempt attempt;
		struct booked_finding finding;
		struct booked_blind blind;
		struct booked_hop hop;
		struct booked_run run;
	};
};

struct booking_context {
	struct fingerprinter *fingerprinter; /* for secrets in paths */
	int64_t wall_offset_ns;		     /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool keep_results;
	struct buffer *scratch; /* work space */
};

/* How it stands, as far as the call says. */
enum attempt_outcome attempt_outcome_of(const struct call *call);

/*
 * Each appends one struct booking to out, which holds nothing else: 0 or
 * -ENOMEM with out as it was. bookings_done() frees what they own.
 */
/* Where its last booking is still in out, that is replaced: nothing is appended then. */
int book_attempt(const struct booking_context *context, struct call *call, uint64_t now_ns, struct buffer *out);
int book_judgement(const struct booking_context *context, const struct judgement *judgement, uint64_t now_ns,
		   struct buffer *out);
int book_call_finding(const struct booking_context *context, const struct call *call, enum finding finding,
		      uint64_t now_ns, struct buffer *out);
int book_blind(const struct booking_context *context, const struct process *process, enum blind_kind kind,
	       uint64_t bytes_out, uint64_t bytes_in, uint64_t now_ns, struct buffer *out);
int book_hop(const struct booking_context *context, const uint8_t id[CALL_ID_BYTES],
	     const uint8_t parent[CALL_ID_BYTES], uint64_t now_ns, struct buffer *out);
int book_run(const struct booked_run *run, struct buffer *out);

/* Rows that they are about: several snapshots of one attempt count once. */
size_t bookings_rows(const struct buffer *bookings);
size_t bookings_count(const struct buffer *bookings);
struct booking *bookings_at(const struct buffer *bookings, size_t i);
/* Frees what the bookings own and empties the buffer; its memory stays. */
void bookings_clear(struct buffer *bookings);

/* A call that says what an attempt of an earlier run was, for attempts_add(). Borrows past. */
void past_attempt_call(const struct past_attempt *past, int64_t wall_offset_ns, struct call *ret_call);

#endif
