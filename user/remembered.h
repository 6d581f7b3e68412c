/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One remembered attempt, and the row of all of them in order of arrival.
 * Private to attempts.c, family.c and shelf.c.
 *
 * An attempt is named by its ref, a number in order of arrival that wraps around
 * and is never 0. Refs are compared by their distance.
 */
#ifndef NIGHTCLERK_REMEMBERED_H
#define NIGHTCLERK_REMEMBERED_H

#include "finding.h"

struct family;

/* What two attempts may have in common. */
enum bond { BY_FINGERPRINT, BY_KEY, BOND_COUNT };

/* A verdict without what is the same for all: see attempts.c. */
struct said {
	uint8_t finding;
	uint8_t severity;
	uint8_t row;
	uint8_t column;
	uint8_t rule;
	bool cross_process : 1;
	bool weaker : 1;
	bool masked : 1;
};

struct attempt {
	struct attempt_facts facts;
	uint8_t id[CALL_ID_BYTES];
	struct family *family[BOND_COUNT]; /* NULL: nobody else shares that */
	uint64_t number;		   /* of the call */
	uint32_t ref;
	uint32_t earlier; /* the pair that said is about; 0 = none */
	struct said said;
	bool has_fingerprint : 1;
	bool has_key_scope : 1;
	struct digest digest[]; /* fingerprint and key scope, those that it has */
};

/* The digest by which it may be bound, or NULL. */
static inline const struct digest *attempt_digest(const struct attempt *attempt, enum bond bond)
{
	if (bond == BY_FINGERPRINT)
		return attempt->has_fingerprint ? &attempt->digest[0] : NULL;
	return attempt->has_key_scope ? &attempt->digest[attempt->has_fingerprint] : NULL;
}

static inline bool ref_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

struct remembered {
	struct attempt **slot; /* ref modulo capacity */
	uint32_t capacity;     /* a power of two, or 0 */
	uint32_t first;	       /* the oldest that is remembered */
	uint32_t next;	       /* the ref that the next one gets */
	uint32_t count;
};

/* NULL when it has been forgotten. */
static inline struct attempt *remembered_at(const struct remembered *remembered, uint32_t ref)
{
	if (ref == 0 || ref_before(ref, remembered->first) || !ref_before(ref, remembered->next))
		return NULL;
	return remembered->slot[ref & (remembered->capacity - 1)];
}

#endif
