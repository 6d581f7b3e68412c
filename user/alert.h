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
#include "evidence.h"
#include "fingerprint.h"
#include "utf8.h"

#define ALERT_GROUPS_MAX                                                                           \
	10000 /* blocks kept, half of them for info at most; findings of further groups are only   \
		 counted */

struct alert_style {
	bool colour;
	unsigned int width; /* columns; 0 = do not fold */
	bool live;	    /* what is not known yet of an attempt comes in a line of its own (call_line.h) */
};

struct alerts;

/* Borrows the fingerprinter (secrets in paths) for its lifetime. NULL when out of memory. */
struct alerts *alerts_new(struct fingerprinter *fingerprinter);
void alerts_free(struct alerts *alerts); /* accepts NULL */

/* A call came: its process is known by name from here on, until too many others are. */
void alerts_meet(struct alerts *alerts, const struct call *call);

/*
 * Takes note of a finding or of its change; FINDING_NONE takes one back. call
 * is the later attempt while it is known, else NULL. 0 or -ENOMEM.
 * *ret_renew: the block should be shown now (first sight, a renewal step, or a
 * higher severity).
 */
int alerts_note(struct alerts *alerts, const struct judgement *judgement, const struct call *call,
		bool *ret_renew);

/*
 * Something more is known of a call (CONNECTION_CHANGED, CONNECTION_ANSWERED):
 * blocks that show it as one of their two attempts say how it went. Never
 * renews. Costs one look-up.
 */
void alerts_update(struct alerts *alerts, const struct call *call);

/*
 * One block, for the group of that judgement. Nothing when the group is not kept or its finding was
 * taken back.
 */
int alerts_block(const struct alerts *alerts, const struct digest *group, int64_t wall_offset_ns,
		 const struct alert_style *style, struct buffer *out);
/*
 * Every block of at least that severity, worst first, then in order of time; undecidable ones count
 * as medium.
 */
int alerts_all(const struct alerts *alerts, enum severity at_least, int64_t wall_offset_ns,
	       const struct alert_style *style, struct buffer *out);

/*
 * The groups in order of first sight, each with the judgement of its worst pair,
 * for reports in other forms. Start with *position NULL. NULL after the last.
 * *ret_call: "POST /v1/charges at 127.0.0.1:8765", harmless and without
 * secrets; empty when it is not known.
 */
const struct judgement *alerts_next(const struct alerts *alerts, const void **position,
				    struct bytes *ret_call);

#endif
