/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line of a ledger or of an events file -> what it says. The reverse of
 * lines.c and lines_run.c. Pure; nothing of a line is trusted.
 *
 * Times become nanoseconds of wall time, cut to microseconds as in the line.
 */
#ifndef NIGHTCLERK_CHECK_ROW_H
#define NIGHTCLERK_CHECK_ROW_H

#include "call.h"
#include "finding.h"
#include "options.h"

enum check_kind {
	CHECK_LEDGER,	/* a ledger line */
	CHECK_REQUEST,	/* the same as an event */
	CHECK_RESPONSE,
	CHECK_FINDING,
	CHECK_UPGRADE,
	CHECK_START,
	CHECK_MARK,
	CHECK_BLIND,
	CHECK_OFF_LOOPBACK,
	CHECK_SUMMARY,
	CHECK_OTHER, /* a known kind that judging does without */
};

#define CHECK_RUN_BYTES 16

/*
 * Which line is it? NULL, or what is wrong with it: static text. ret_run: the
 * id of its run.
 */
const char *check_row_kind(struct bytes line, enum check_kind *ret_kind, char ret_run[CHECK_RUN_BYTES + 1]);

/* What of a call a line of a request says. */
struct check_request {
	struct call call; /* its slices point into texts */
	bool has_mark;
	struct bytes mark;
	struct http_head head;
	struct buffer texts;
};
/* NULL or what is wrong. *request must be zeroed or used before; check_request_done() frees. */
const char *check_row_request(struct bytes line, struct check_request *request);
void check_request_done(struct check_request *request);

struct check_response {
	uint8_t of[CALL_ID_BYTES];
	bool unseen; /* how it went is "unknown" */
	unsigned int status;
	bool complete;
	enum call_ended ended;
	uint64_t ended_ns; /* last byte of the answer, else the first close */
	uint64_t first_ns; /* first byte of the answer; 0 = none */
	enum call_delivered delivered;
	uint64_t delivered_bytes;
	uint64_t body_bytes;
	enum call_closer closed_first;
	uint64_t closed_ns; /* when that was; 0 = not said */
	bool request_read_known, request_read_all; /* by the server's application */
	bool replayed;
	struct usage usage;
	uint64_t usage_refused;
	bool answer_complete, answer_unfinished;
};
const char *check_row_response(struct bytes line, struct check_response *ret_response);

/* finding and upgrade events */
struct check_finding {
	enum finding finding; /* of an upgrade: what it became */
	uint8_t of[CALL_ID_BYTES];
	bool has_earlier;
	uint8_t earlier[CALL_ID_BYTES];
	bool row_open;	      /* the earlier one was open when the later one came */
	bool row_refused;     /* the earlier one was never applied */
	bool row_undecidable; /* it could not be seen how the earlier one went */
	bool is_upgrade;
	bool masked; /* the two are equal but for what the policy masked */
};
const char *check_row_finding(struct bytes line, struct check_finding *ret_finding);

struct check_start {
	bool has_policy;
	struct digest policy_sha;
	char version[32];
	struct bytes options; /* JSON text */
};
const char *check_row_start(struct bytes line, struct check_start *ret_start);

/* The process and the bytes are 0 where the line does not tell. */
struct check_blind {
	enum blind_kind kind;
	struct process process;
	uint64_t bytes_out, bytes_in;
};
const char *check_row_blind(struct bytes line, struct check_blind *ret_blind);
const char *check_row_off_loopback(struct bytes line, bool *ret_refused);

struct check_summary {
	uint64_t accepted_bytes, message_bytes, hole_bytes, blind_bytes;
	uint64_t no_flow, no_call, lifecycle_lost, recursion_misses;
	uint64_t evicted;
	uint64_t requests;
	uint64_t wall_ms;
	struct bytes incomplete; /* JSON array of texts */
};
const char *check_row_summary(struct bytes line, struct check_summary *ret_summary);

#endif
