/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembered attempts: which earlier calls had this fingerprint or this key
 * scope, and what the table says about the new one.
 *
 * An attempt is judged against EVERY earlier one in the window; the pair with
 * the highest severity is reported, ties go to the latest. Earlier and later
 * are by order of attempts_add(), which is that in which requests became
 * whole. The cost of one attempt does not grow with the size of its group
 * (family.h, shelf.h).
 *
 * Fingerprint here means the prompt-level one for class llm, where there is
 * one. Memory: 177 bytes an attempt, 193 with a key, and up to 36 more for each
 * bond (fingerprint, key scope) that it shares with others. Only families of
 * hundreds in which each attempt is of another principal or ended in another
 * way take more: max_bytes then makes room.
 *
 * Pure: time comes in with the facts.
 */
#ifndef NIGHTCLERK_ATTEMPTS_H
#define NIGHTCLERK_ATTEMPTS_H

#include "finding.h"

struct attempts;

struct attempts_options {
	struct finding_options finding;
	bool across_processes; /* `run`: the whole tree. false: only attempts of one process match */
	bool within_cgroups;   /* only attempts of one cgroup match; where it is not known, of one process */
	size_t max_remembered; /* then the oldest go, and attempts_evicted() counts; at most 2^30 */
	size_t max_bytes;      /* the same for the memory that they take; 0 = any */
};

struct judgement {
	struct verdict verdict;		      /* FINDING_NONE: nothing to say */
	uint8_t call_id[CALL_ID_BYTES];	      /* the attempt that is judged */
	uint8_t earlier_id[CALL_ID_BYTES];    /* the other one of the worst pair; of the pair taken back */
	uint64_t call_number, earlier_number; /* call.number of both; 0 = there is no pair, or it is forgotten */
	uint64_t attempt;		      /* this is attempt n ... */
	uint64_t attempts;		      /* ... of m so far, with that fingerprint (or key scope) in the window */
	struct digest group;		      /* attempts_group() of fingerprint or key scope: what alerts fold by */
	bool by_key;			      /* group is a key scope: the two have different fingerprints */
	const char *equal_except;	      /* "nonce": where verdict.masked, what the policy took out; else NULL */
	struct verdict before;		      /* in changes: what was said before */
	struct attempt_facts later_facts, earlier_facts; /* zeroed where there is no pair */
};

/* Of two digests the same exactly where it is for attempts: their first 128 bits, and zeros. */
struct digest attempts_group(const struct digest *digest);

struct attempts *attempts_new(const struct attempts_options *options); /* NULL when out of memory */
void attempts_free(struct attempts *attempts);			      /* accepts NULL */

/*
 * Remembers a call whose request is complete (or known to be all there will
 * be) and judges it. Sets call->attempt, which is a ticket, not a pointer: the
 * attempt may be forgotten before the call is over. A call with neither
 * fingerprint nor key has nothing to be remembered by: FINDING_NONE. 0 or
 * -ENOMEM; with -ENOMEM nothing is remembered and ret_judgement is
 * FINDING_UNDECIDABLE.
 *
 * The third of three equal calls in a row that finding_is_poll() takes for
 * polling is lowered to info.
 */
int attempts_add(struct attempts *attempts, struct call *call, struct judgement *ret_judgement);

/*
 * The facts of a remembered call changed (a status, a close, a replay header).
 * Every judgement that this changes, its own and those of later attempts,
 * comes from attempts_next_change() until that returns false; what is not
 * taken before the next call of attempts_add() or attempts_update() is lost,
 * though it is still so.
 *
 * A verdict gets worse where a pair did, but a pair that was a safe_retry
 * stays one. Two things take a finding back: a replay header on either answer
 * (then the attempt is judged anew), and the third of a series of polls being
 * answered (then the second one is lowered to info as the third was). That a
 * process has exited counts for attempts that come after.
 */
void attempts_update(struct attempts *attempts, struct call *call);
bool attempts_next_change(struct attempts *attempts, struct judgement *ret_judgement);

/* The call is over: its attempt is kept, call->attempt is cleared. */
void attempts_close(struct attempts *attempts, struct call *call);

/*
 * Attempts are judged by these limits from now on; what is remembered keeps the number of its rule, so what stood at
 * a number before stands there still (policy_follow()).
 */
void attempts_set_policy(struct attempts *attempts, const struct finding_limits *limits, bool strict);

/* `mark`: no attempt from now on is judged against one from before. Changes go on within each window. */
void attempts_mark(struct attempts *attempts);

size_t attempts_count(const struct attempts *attempts);	    /* remembered now */
uint64_t attempts_evicted(const struct attempts *attempts); /* forgotten for want of room, within their window */
size_t attempts_bytes(const struct attempts *attempts); /* of memory that they take */
uint64_t attempts_looked_at(const struct attempts *attempts); /* pairs judged so far: the cost, for tests */

#endif
