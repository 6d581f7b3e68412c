/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembered attempts in order of arrival, and the memory that they and all
 * that is built on them take. Private to attempts.c and its parts.
 *
 * A million of them have to fit, so everything here is as small as it can be:
 * digests are cut to 128 bits, attempts lie in blocks one behind the other
 * (they leave in the order in which they came), families are named by a number.
 *
 * An attempt is named by its ref, a number in order of arrival that wraps around
 * and is never 0. Refs are compared by their distance.
 */
#ifndef NIGHTCLERK_REMEMBERED_H
#define NIGHTCLERK_REMEMBERED_H

#include "finding.h"

/* What two attempts may have in common. */
enum bond { BY_FINGERPRINT, BY_KEY, BOND_COUNT };

/* The front of a SHA-256: enough to tell a million from each other, for whoever does not look for collisions by 2^64. */
struct short_digest {
	uint8_t byte[16];
};

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
	bool has_fingerprint : 1; /* of the attempt, not of the verdict: here is room */
	bool has_key_scope : 1;
};

struct attempt {
	struct attempt_facts facts;
	uint8_t id[CALL_ID_BYTES];
	uint64_t number;	     /* of the call */
	uint32_t family[BOND_COUNT]; /* numbers, see family_pool.h; 0: nobody else shares that */
	uint32_t ref;
	uint32_t earlier; /* the pair that said is about; 0 = none */
	struct said said;
	struct short_digest digest[]; /* fingerprint and key scope, those that it has */
};

/* The digest by which it may be bound, or NULL. */
static inline const struct short_digest *attempt_digest(const struct attempt *attempt, enum bond bond)
{
	if (bond == BY_FINGERPRINT)
		return attempt->said.has_fingerprint ? &attempt->digest[0] : NULL;
	return attempt->said.has_key_scope ? &attempt->digest[attempt->said.has_fingerprint] : NULL;
}

static inline bool ref_before(uint32_t a, uint32_t b)
{
	return (int32_t)(a - b) < 0;
}

struct attempt_block;

struct remembered {
	struct attempt **slot; /* ref modulo capacity */
	uint32_t capacity;     /* a power of two, or 0 */
	uint32_t first;	       /* the oldest that is remembered */
	uint32_t next;	       /* the ref that the next one gets */
	uint32_t count;
	struct attempt_block *oldest, *newest; /* where the attempts lie */
	size_t bytes; /* of memory, of all that is remembered */
};

/* NULL when it has been forgotten. */
static inline struct attempt *remembered_at(const struct remembered *remembered, uint32_t ref)
{
	if (ref == 0 || ref_before(ref, remembered->first) || !ref_before(ref, remembered->next))
		return NULL;
	return remembered->slot[ref & (remembered->capacity - 1)];
}

/* realloc() that keeps remembered->bytes; size 0 frees. The sizes are the caller's to know. */
void *remembered_resize(struct remembered *remembered, void *memory, size_t old_size, size_t size);

/* Room for one more, and a ref for it that is not 0. 0 or -ENOMEM. */
int remembered_reserve(struct remembered *remembered);
/* A zeroed attempt of that many digests behind all others; NULL when out of memory. */
struct attempt *remembered_make(struct remembered *remembered, size_t digests);
/* Gives back the attempt that was made last, and not added. */
void remembered_unmake(struct remembered *remembered, struct attempt *attempt);
/* It gets its ref. remembered_reserve() was called. */
void remembered_add(struct remembered *remembered, struct attempt *attempt);
/* Frees the oldest; there is one, and nothing refers to it any more. */
void remembered_drop_oldest(struct remembered *remembered);
/* Everything. */
void remembered_done(struct remembered *remembered);

#endif
