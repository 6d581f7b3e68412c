/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A shelf holds the attempts of a large family that ended alike, in order of
 * arrival. Its point: the worst pair that any of them makes with a later
 * attempt is found by looking at a few, from the latest one back, and it is the
 * same that looking at all of them would give.
 *
 * Two things make that so. Attempts that ended alike get a verdict that only
 * depends on whether they had ended by then and on their identity (key, body,
 * principal, process), and neighbours of one identity are skipped as a run;
 * where the principal is the later one's own, process and, in a family by
 * fingerprint, key do not matter: the same key is then found in the family by
 * key. And no verdict is worse than finding_worst_like() says, so the first
 * that is as bad is the one.
 */
#ifndef NIGHTCLERK_SHELF_H
#define NIGHTCLERK_SHELF_H

#include "remembered.h"

/* All facts but times and identity, and the row; of open attempts the few that matter. */
struct shelf_kind {
	struct attempt_facts facts;
	bool open;
};

struct shelf_entry {
	uint32_t ref;
	uint32_t run;	     /* the first entry of the run of one identity that this one is in */
	uint32_t wide_run;   /* the same for one principal, and one body in a family by key */
	uint32_t key_run;    /* the same for one principal and one key */
	uint64_t latest_end; /* no attempt from the first entry to this one began or ended later */
};

struct shelf {
	struct shelf_kind kind;
	enum bond bond; /* of its family */
	struct shelf_entry *entry;
	uint32_t begin, end, capacity;
};

/* The worst pair found so far. */
struct worst {
	struct verdict verdict; /* FINDING_NONE: no pair */
	const struct attempt *earlier;
	uint64_t looked_at; /* pairs judged */
};

struct search {
	const struct remembered *remembered;
	const struct attempt *later;
	const struct finding_options *options;
	struct worst *worst;
};

/* Judges one pair; the worst stays, of equals the latest. */
struct verdict search_judge(struct search *search, const struct attempt *earlier);

void shelf_kind_of(const struct attempt_facts *facts, struct shelf_kind *ret_kind);
bool shelf_kind_equal(const struct shelf_kind *a, const struct shelf_kind *b);

/* 0 or -ENOMEM. An attempt may come late: it finds its place by its ref. */
int shelf_add(struct shelf *shelf, struct remembered *remembered, const struct attempt *attempt);
/* The attempt must be there, with facts as they were when it was added. */
void shelf_remove(struct shelf *shelf, const struct remembered *remembered, const struct attempt *attempt);
bool shelf_is_empty(const struct shelf *shelf);
void shelf_done(struct shelf *shelf, struct remembered *remembered);

/* The next larger capacity of an array: 4, 12, 28, 60, then by an eighth, since there may be many of them. */
static inline uint32_t shelf_grown(uint32_t capacity)
{
	return capacity < 32 ? 2 * capacity + 4 : capacity + capacity / 8 + 4;
}

/* Judges what is needed of the entries before search->later. */
void shelf_search(const struct shelf *shelf, struct search *search);

#endif
