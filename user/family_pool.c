/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of families; those given back are a list through their latest_first_ns.
 * Number 0 is never given out.
 */
#include "family_pool.h"

#define IN_BLOCK 1024
#define BLOCK_BYTES (IN_BLOCK * sizeof(struct family))

struct family *family_pool_at(const struct family_pool *pool, uint32_t number)
{
	return number ? &pool->block[number / IN_BLOCK][number % IN_BLOCK] : NULL;
}

static bool add_block(struct family_pool *pool)
{
	uint32_t first = pool->block_count * IN_BLOCK;

	if (pool->block_count == pool->block_capacity) {
		uint32_t capacity = pool->block_capacity ? 2 * pool->block_capacity : 16;
		struct family **block = remembered_resize(pool->remembered, pool->block, pool->block_capacity * sizeof(*block),
							  capacity * sizeof(*block));

		if (!block)
			return false;
		pool->block = block;
		pool->block_capacity = capacity;
	}
	pool->block[pool->block_count] = remembered_resize(pool->remembered, NULL, 0, BLOCK_BYTES);
	if (!pool->block[pool->block_count])
		return false;
	pool->block_count++;
	for (uint32_t number = first + IN_BLOCK - 1; number > first; number--)
		family_pool_give_back(pool, number);
	if (first)
		family_pool_give_back(pool, first);
	return true;
}

uint32_t family_pool_new(struct family_pool *pool, enum bond bond)
{
	uint32_t number;

	if (!pool->free && !add_block(pool))
		return 0;
	number = pool->free;
	pool->free = (uint32_t)family_pool_at(pool, number)->latest_first_ns;
	*family_pool_at(pool, number) = (struct family){.bond = (uint8_t)bond};
	return number;
}

void family_pool_give_back(struct family_pool *pool, uint32_t number)
{
	*family_pool_at(pool, number) = (struct family){.latest_first_ns = pool->free};
	pool->free = number;
}

void family_pool_done(struct family_pool *pool)
{
	for (uint32_t i = 0; i < pool->block_count; i++)
		free(pool->block[i]);
	free(pool->block);
	*pool = (struct family_pool){0};
}
