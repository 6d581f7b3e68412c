/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A family: two or more remembered attempts with one fingerprint or one key
 * scope, in one window. Small ones are searched one by one; large ones are
 * put on shelves (shelf.h), by principal where that can differ.
 *
 * Memory that cannot be had for shelves only costs time: the family is then
 * searched one by one.
 */
#ifndef NIGHTCLERK_FAMILY_H
#define NIGHTCLERK_FAMILY_H

#include "shelf.h"

#define FAMILY_SMALL 16 /* members that are searched one by one */

struct lane; /* shelves of those who may match one principal */

struct family {
	uint32_t *member; /* refs, in order of arrival */
	uint32_t begin, end, capacity;
	uint32_t gone;	      /* members that have been forgotten */
	uint32_t quiet_from;  /* a late 2xx makes no verdict about a member from this ref on worse */
	uint64_t latest_first_ns;
	struct lane *lanes;   /* NULL while small, or for want of memory */
	uint8_t bond;	      /* enum bond */
	bool large : 1;	      /* lanes are in use */
	bool no_memory : 1;   /* lanes cannot be used */
	bool late_matters : 1; /* a late 2xx may change the verdict about a member */
};

/* NULL when out of memory. */
struct family *family_new(enum bond bond);
void family_free(struct family *family); /* accepts NULL */

/* Room for one more. 0 or -ENOMEM. */
int family_reserve(struct family *family);
/* attempt is the newest of all, and there is room. */
void family_add(struct family *family, const struct remembered *remembered, const struct attempt *attempt);
/* True when the family is empty now. */
bool family_remove(struct family *family, const struct remembered *remembered, const struct attempt *attempt);

/* Before the facts of a member change, and after that. */
void family_take_out(struct family *family, const struct remembered *remembered, const struct attempt *attempt);
void family_put_back(struct family *family, const struct remembered *remembered, const struct attempt *attempt);

static inline uint32_t family_size(const struct family *family)
{
	return family->end - family->begin;
}
/* Position of the first member whose ref is not before ref, from begin to end. */
uint32_t family_position(const struct family *family, uint32_t ref);

/* The worst pair of search->later with any member before it. */
void family_search(const struct family *family, struct search *search);

#endif
