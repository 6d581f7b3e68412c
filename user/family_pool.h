/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Families by number: half the size of a pointer, and no bytes of malloc's own.
 * They stay where they are. Private to attempts.c and its parts.
 */
#ifndef NIGHTCLERK_FAMILY_POOL_H
#define NIGHTCLERK_FAMILY_POOL_H

#include "family.h"

struct family_pool {
	struct remembered *remembered; /* lent: it counts the bytes */
	struct family **block;
	uint32_t block_count, block_capacity;
	uint32_t free; /* the first of those given back; 0 = none */
};

/* The number of a new family, never 0. 0: out of memory. */
uint32_t family_pool_new(struct family_pool *pool, enum bond bond);
void family_pool_give_back(struct family_pool *pool, uint32_t number);
/* NULL for 0. */
struct family *family_pool_at(const struct family_pool *pool, uint32_t number);
void family_pool_done(struct family_pool *pool);

#endif
