/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembered attempts: which earlier calls had this fingerprint or this key
 * scope, and what the table says about the new one. Uses uthash.
 *
 * An attempt is judged against EVERY earlier one in the window; the pair with
 * the highest severity is reported, ties go to the latest. The cost of one
 * attempt does not grow with the size of its group.
 *
 * Pure: time comes in with the facts.
 */
#ifndef NIGHTCLERK_ATTEMPTS_H
#define NIGHTCLERK_ATTEMPTS_H

#include "finding.h"

struct attempts;
struct attempt; /* one remembered call */

struct attempts_options {
	struct finding_options finding;
	bool across_processes; /* `run`: the whole tree. false: per process */
	size_t max_remembered; /* then the oldest go, and attempts_evicted() counts */
};

struct judgement {
	struct verdict verdict;		      /* FINDING_NONE: nothing to say */
	uint8_t call_id[CALL_ID_BYTES];	      /* the attempt that is judged */
	uint8_t earlier_id[CALL_ID_BYTES];    /* the other one of the worst pair */
	uint64_t call_number, earlier_number; /* call.number of both */
	uint64_t attempt;		      /* this is attempt n ... */
	uint64_t attempts;		      /* ... of m so far, with that fingerprint (or key scope) */
	struct digest group;		      /* fingerprint or key scope: what alerts fold by */
	bool by_key;			      /* group is a key scope */
	struct verdict before;		      /* in changes: what was said before */
	struct attempt_facts later_facts, earlier_facts;
};

struct attempts *attempts_new(const struct attempts_options *options); /* NULL when out of memory */
void attempts_free(struct attempts *attempts);			      /* accepts NULL */

/*
 * Remembers a call whose request is complete (or known to be all there will
 * be) and judges it. Sets call->attempt. 0 or -ENOMEM; with -ENOMEM nothing is
 * remembered and ret_judgement is FINDING_UNDECIDABLE.
 */
int attempts_add(struct attempts *attempts, struct call *call, struct judgement *ret_judgement);

/*
 * The facts of a remembered call changed (a status, a close, a replay header).
 * Every judgement that this changes, its own and those of later attempts,
 * comes from attempts_next_change() until that returns false. An upgrade never
 * revokes a safe_retry; only a replay header takes a finding back.
 */
void attempts_update(struct attempts *attempts, struct call *call);
bool attempts_next_change(struct attempts *attempts, struct judgement *ret_judgement);

/* The call is over: its attempt is kept, call->attempt is cleared. */
void attempts_close(struct attempts *attempts, struct call *call);

/* `mark`: no attempt from now on is judged against one from before. */
void attempts_mark(struct attempts *attempts);

size_t attempts_count(const struct attempts *attempts);   /* remembered now */
uint64_t attempts_evicted(const struct attempts *attempts); /* forgotten for want of room */

#endif
