/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of ledgers and events files -> judgements, without the bytes that were
 * on the wire. Pure.
 *
 * An events file says how every call went, so its calls are judged as in their
 * run. What a run saw and no line holds (when a client gave up that was
 * answered later, whether a server read a request it never answered, whether
 * two credentials are bearer tokens, whether a process was gone) is taken from
 * the findings that the run made of it. A ledger knows no outcomes: a repeat is
 * undecidable there, but for the same key with the same body. Each run is
 * judged by itself, each window between two marks too.
 */
#ifndef NIGHTCLERK_CHECK_LINES_H
#define NIGHTCLERK_CHECK_LINES_H

#include "alert.h"
#include "lines.h"
#include "policy.h"

/* What the command line of `check` says beside the policy. */
struct check_overrides {
	bool has_fail_on;
	enum severity fail_on;
	bool strict;
	bool allow_incomplete;
};

/* Puts the policy's settings over the options, and the command line over them. policy may be NULL. */
void check_options(const struct check_overrides *overrides, const struct policy *policy,
		   struct judge_options *options);

struct check_lines;

/* Both are borrowed; policy may be NULL. NULL when out of memory. */
struct check_lines *check_lines_new(const struct check_overrides *overrides, const struct policy *policy);
void check_lines_free(struct check_lines *check); /* accepts NULL */

/*
 * Takes one line, without its LF, which must stay where it is until
 * check_lines_free(). NULL, or what is wrong with it: static text. The line is
 * then skipped, and the gate cannot tell.
 */
const char *check_lines_add(struct check_lines *check, struct bytes line);

/* A file had no line at all: what it should hold is lost, and the gate cannot tell. */
void check_lines_empty(struct check_lines *check);

/* Once, after the last line. 0 or -ENOMEM. */
int check_lines_judge(struct check_lines *check);

/* After that: */
int check_lines_exit_status(const struct check_lines *check); /* 0, 10 or 11 */
const struct summary *check_lines_summary(const struct check_lines *check);
const struct judge_options *check_lines_options(const struct check_lines *check);
const struct alerts *check_lines_alerts(const struct check_lines *check);
const struct run_facts *check_lines_run(const struct check_lines *check); /* of the first run */
/* What a reader must know of this judgement; NULL after the last. */
const char *check_lines_notice(const struct check_lines *check, size_t i);
/* The summary as one line for people. */
void check_lines_sentence(const struct check_lines *check, char *text, size_t size);

#endif
