/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between attempts.c, which adds and judges, and attempt_changes.c, which
 * follows what becomes of an attempt later. Nobody else includes it.
 */
#ifndef NIGHTCLERK_ATTEMPTS_PRIVATE_H
#define NIGHTCLERK_ATTEMPTS_PRIVATE_H

#include "attempt_index.h"
#include "attempts.h"
#include "family_pool.h"

#define RULES_MAX 64

/* What attempts_next_change() has still to look at. */
struct changes {
	uint32_t ref; /* the attempt that changed; 0 = nothing is pending */
	struct attempt_facts before;
	bool own;	   /* its own verdict is to be looked at */
	bool poll;	   /* the one before it may be a poll */
	bool walking;	   /* position and end are set for this bond */
	int bond;	   /* the family that is walked over */
	uint32_t position; /* the member to look at next */
	uint32_t end;
	uint32_t restless; /* the last one seen that is not quiet; 0 = none */
};

struct attempts {
	struct attempts_options options;
	struct remembered remembered;
	struct family_pool families;
	struct attempt_index index[BOND_COUNT];
	struct changes changes;
	const char *rule[RULES_MAX]; /* the static texts that verdicts came with */
	uint8_t rule_count;
	uint32_t window_from; /* ref: what came before can meet no later attempt any more */
	uint64_t evicted;
	uint64_t looked_at;
};

static inline struct attempt *attempts_at(const struct attempts *attempts, uint32_t ref)
{
	return remembered_at(&attempts->remembered, ref);
}

/* NULL: nobody else shares that with it. */
static inline struct family *attempts_family(const struct attempts *attempts, const struct attempt *attempt, int bond)
{
	return family_pool_at(&attempts->families, attempt->family[bond]);
}

static inline bool attempts_share(const struct attempt *a, const struct attempt *b, enum bond bond)
{
	return a->family[bond] && a->family[bond] == b->family[bond];
}

/* What was said about an attempt. */
struct verdict attempts_said(const struct attempts *attempts, const struct attempt *attempt);
/* Says it; earlier is the other one of the pair, or NULL. */
void attempts_say(struct attempts *attempts, struct attempt *attempt, const struct verdict *verdict,
		  const struct attempt *earlier);
/* A late 2xx cannot make its verdict worse. */
bool attempts_is_quiet(const struct attempts *attempts, const struct attempt *attempt);

/* The worst pair of an attempt with any that came before it. */
struct worst attempts_judge(struct attempts *attempts, const struct attempt *attempt);
/* The one so many steps before it with its fingerprint, or NULL. */
struct attempt *attempts_before(const struct attempts *attempts, const struct attempt *attempt, uint32_t steps);
/* Lowers what is said of a poll. */
void attempts_be_poll(struct verdict *verdict);
/* What was said, for the caller. */
void attempts_fill(const struct attempts *attempts, const struct attempt *attempt, const struct attempt *earlier,
		   struct judgement *ret_judgement);

#endif
