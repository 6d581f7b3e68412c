/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Findings for people: who, what, when, both attempts side by side, the
 * evidence, the fix, in about six lines. Folded: one block per fingerprint (or
 * key scope), renewed at attempts 2, 3, 10, 100, ...
 *
 * Hostile bytes are made harmless: nothing a client sent can move the cursor.
 * Pure: text goes into a buffer.
 */
#ifndef NIGHTCLERK_ALERT_H
#define NIGHTCLERK_ALERT_H

#include "attempts.h"

struct alert_style {
	bool colour;
	unsigned int width; /* columns; 0 = do not fold */
};

struct alerts;

struct alerts *alerts_new(void);
void alerts_free(struct alerts *alerts);

/*
 * Takes note of a finding or of its change. call is the later attempt while it
 * is known, else NULL. 0 or -ENOMEM. *ret_renew: the block should be shown now
 * (first sight, a renewal step, or a higher severity).
 */
int alerts_note(struct alerts *alerts, const struct judgement *judgement, const struct call *call, bool *ret_renew);

/* One block, for the group of that judgement. */
int alerts_block(const struct alerts *alerts, const struct digest *group, int64_t wall_offset_ns,
		 const struct alert_style *style, struct buffer *out);
/* Every block of at least that severity, worst first, then in order of time; undecidable ones count as medium. */
int alerts_all(const struct alerts *alerts, enum severity at_least, int64_t wall_offset_ns, const struct alert_style *style,
	       struct buffer *out);

/* The next step in words for a finding: "send one Idempotency-Key on both attempts". Static. */
const char *finding_next_step(enum finding finding);
/* One sentence of evidence: "second identical POST after a complete 200". Appended. */
int finding_evidence(const struct judgement *judgement, struct buffer *out);

/* Printable text: control, escape and non-UTF-8 bytes become \xNN. Appended, at most max_bytes of output, then "...". */
int text_harmless(struct bytes text, size_t max_bytes, struct buffer *out);

#endif
