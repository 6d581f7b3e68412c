/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What check_lines.c gathers and check_judge.c judges. Private to the two.
 */
#ifndef NIGHTCLERK_CHECK_PARTS_H
#define NIGHTCLERK_CHECK_PARTS_H

#include "check_lines.h"
#include "check_row.h"
#include "classify.h"
#include "gate.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define CHECK_NOTICES_MAX 8

/* One request, with what other lines say of it. */
struct check_call {
	struct bytes line;
	uint8_t id[CALL_ID_BYTES];
	uint64_t first_ns;
	uint64_t principal;
	uint64_t masked; /* differs where the policy's masks made two bodies equal that are not */
	uint32_t window;
	bool in_events;
	bool has_response;
	bool abandoned; /* the client had closed before a final status was sent */
	bool truncated;
	bool owner_gone;
	bool refused; /* never applied, whatever its status says */
	bool bearer;
	bool undecidable;
	bool is_earlier;       /* of a finding */
	uint64_t open_until_ns; /* it was open at least until then; 0 = not known */
	struct check_response response;
	struct check_call *next; /* of the run */
	UT_hash_handle hh;
};

struct check_run {
	char id[CHECK_RUN_BYTES + 1];
	struct check_call *first, *last;
	uint32_t window;
	uint64_t mark;	/* a hash of the label in the last ledger line; 0 = none */
	bool has_marks;	   /* as events: then the lines' own labels do not count */
	bool has_events, has_start, has_summary;
	uint64_t requests; /* as events */
	struct check_start start;
	struct check_summary summary;
	UT_hash_handle hh;
};

struct check_lines {
	const struct check_overrides *overrides;
	const struct policy *policy;
	struct judge_options options;
	struct check_call *rows;
	struct check_run *runs;
	struct check_run *run; /* of the last line */
	struct run_facts facts;
	uint64_t broken_lines;
	uint64_t orphans; /* lines about a request that no line holds */
	bool has_empty_file;
	struct secret_rules secrets;
	struct fingerprinter *fingerprinter;
	struct classifier *classifier;
	struct alerts *alerts;
	struct gate gate;
	struct closing closing;
	struct summary summary;
	const char *notices[CHECK_NOTICES_MAX + 1];
	size_t notice_count;
	uint64_t number;
	bool unsure; /* a rule asks for what lines do not hold */
	bool memory_lost;
	int exit_status;
	struct check_request request; /* used again for every line */
};

#endif
