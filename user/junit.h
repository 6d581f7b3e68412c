/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The judgement of a run as JUnit XML, for what CI systems show: one testcase a
 * finding (folded as alerts are), one a refusal of --confine, one a reason why the
 * gate cannot tell, one a kind of blind stream. Pure; whatever a client sent, the XML stays valid.
 */
#ifndef NIGHTCLERK_JUNIT_H
#define NIGHTCLERK_JUNIT_H

#include "attempts.h"
#include "options.h"
#include "recording.h"
#include "refusals.h"

struct junit_finding {
	const struct judgement *judgement; /* as it stands at the end */
	struct bytes call;		   /* "POST /v1/charges at 127.0.0.1:8765" */
};

struct junit_report {
	const struct run_facts *run;
	const struct judge_options
		*options; /* fail_on: failures; allow_incomplete: what cannot be told is skipped */
	const struct junit_finding *findings;
	size_t finding_count;
	const char *const *incomplete; /* static texts */
	size_t incomplete_count;
	const uint64_t *blind_streams; /* BLIND_COUNT of them */
	const struct refusals *refusals; /* NULL = none */
	uint64_t wall_ms;
};

/*
 * Appends the whole document. A finding at or above fail_on is a failure, one
 * below it passes with its text in system-out; undecidable and incomplete are
 * errors, or skipped where allowed. A refusal is always a failure. Blind kinds are always skipped: where one
 * makes the run undecidable, a reason in incomplete says so. With nothing to
 * say there is one testcase that passes. 0, or -ENOMEM with out as it was.
 */
int junit_text(const struct junit_report *report, struct buffer *out);

#endif
