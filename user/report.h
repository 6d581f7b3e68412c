/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bank statement: rows of the store summed up in total and by model,
 * process, path and day (UTC), and what a test asserts of a call. Pure.
 *
 * input, output and cached tokens are those of recorded results; wasted ones
 * are what the other billed attempts cost beside them. A call counts where its
 * first attempt does.
 */
#ifndef NIGHTCLERK_REPORT_H
#define NIGHTCLERK_REPORT_H

#include "prices.h"
#include "store.h"

/* ---- asserting ---- */

struct assertion {
	int field;
	int operation;
	int64_t value;
};

/* "billed<=1", blanks allowed. 0 or -EINVAL. */
int assertion_parse(const char *text, struct assertion *ret_assertion);
#define ASSERTION_WANTED \
	"NAME is attempts, billed, wasted_tokens, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, " \
	"tokens, pending, done or abandoned"
/* Of one call. What is not known holds nothing. */
bool assertion_holds(const struct assertion *assertion, const struct store_call_row *row);
/* It is about tokens, or about what was billed: an answer without usage may be more of either. */
bool assertion_needs_usage(const struct assertion *assertion);

/* ---- summing up ---- */

struct report;

/* prices may be NULL; borrowed. NULL when out of memory. */
struct report *report_new(const struct prices *prices);
void report_free(struct report *report); /* accepts NULL */

/* Each 0 or -ENOMEM. */
int report_call(struct report *report, const struct store_call_row *row);
int report_attempt(struct report *report, const struct store_attempt_row *row);
int report_blind(struct report *report, const struct store_blind_row *row);
/* Of whole runs: bytes that were not seen, and runs without an end. */
void report_runs(struct report *report, uint64_t hole_bytes, uint64_t unclean_runs);

/* Appended; 0 or -ENOMEM. */
int report_text(const struct report *report, struct buffer *out);
int report_json(const struct report *report, struct buffer *out);
int report_csv(const struct report *report, struct buffer *out);

#endif
