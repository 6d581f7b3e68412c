/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A family: two or more remembered attempts with one fingerprint or one key
 * scope, in one window. Small ones are searched one by one; large ones are
 * put on shelves (shelf.h), by principal where that can differ.
 *
 * Memory that cannot be had for shelves only costs time: the family is then
 * searched one by one.
 *
 * Most families are two or four attempts, and there may be a million families:
 * up to FAMILY_INLINE members lie in the family itself.
 */
#ifndef NIGHTCLERK_FAMILY_H
#define NIGHTCLERK_FAMILY_H

#include "shelf.h"

#define FAMILY_SMALL 96 /* members that are searched one by one */
#define FAMILY_INLINE 4

struct member_list; /* more members than that, and their lanes */

struct family {
	union {
		uint32_t few[FAMILY_INLINE]; /* refs, in order of arrival */
		struct member_list *many;
	};
	uint32_t count;
	uint32_t gone;	     /* members that have been forgotten */
	uint32_t quiet_from; /* a late 2xx makes no verdict about a member from this ref on worse */
	uint8_t bond;	     /* enum bond */
	bool is_many : 1;
	bool large : 1;	       /* lanes are in use */
	bool no_memory : 1;    /* lanes cannot be used */
	bool late_matters : 1; /* a late 2xx may change the verdict about a member */
	uint64_t latest_first_ns;
};

/* Frees what it holds, not itself. */
void family_done(struct family *family, struct remembered *remembered);

/* Room for one more. 0 or -ENOMEM. */
int family_reserve(struct family *family, struct remembered *remembered);
/* attempt is the newest of all, and there is room. */
void family_add(struct family *family, struct remembered *remembered, const struct attempt *attempt);
/* The oldest member leaves. True when the family is empty now. */
bool family_remove(struct family *family, struct remembered *remembered, const struct attempt *attempt);

/* Before the facts of a member change, and after that. */
void family_take_out(struct family *family, struct remembered *remembered, const struct attempt *attempt);
void family_put_back(struct family *family, struct remembered *remembered, const struct attempt *attempt);

/* The ref at that position, 0 to count - 1. */
uint32_t family_member(const struct family *family, uint32_t position);
/* Position of the first member whose ref is not before ref, 0 to count. */
uint32_t family_position(const struct family *family, uint32_t ref);

/* The worst pair of search->later with any member before it. */
void family_search(const struct family *family, struct search *search);

#endif
