/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linear probing, at most two thirds full. The digests are SHA-256, so their
 * first bytes spread by themselves; nobody can choose them to collide. What is
 * removed leaves no mark: those that it pushed on move up.
 */
#include "attempt_index.h"

#include <errno.h>

#define SLOT_BYTES (sizeof(uint32_t) + sizeof(uint8_t))

static uint64_t hash_of(const struct attempt_index *index, const struct short_digest *digest,
			const struct attempt_facts *facts)
{
	uint64_t hash;

	memcpy(&hash, digest->byte, sizeof(hash));
	if (!index->across_processes)
		hash ^= (((uint64_t)facts->process << 32) ^ facts->tgid) * 0x9e3779b97f4a7c15ULL;
	return hash ^ (hash >> 32);
}

static uint32_t home_of(const struct attempt_index *index, uint64_t hash)
{
	return (uint32_t)hash & index->mask;
}

/* Of the half of the hash that says nothing of the home. */
static uint8_t tag_of(uint64_t hash)
{
	return (uint8_t)(hash >> 32);
}

uint32_t *attempt_index_find(const struct attempt_index *index, const struct short_digest *digest,
			     const struct attempt_facts *facts)
{
	uint64_t hash = hash_of(index, digest, facts);

	for (uint32_t i = home_of(index, hash);; i = (i + 1) & index->mask) {
		const struct attempt *there;

		if (index->slot[i] == 0)
			return &index->slot[i];
		if (index->tag[i] != tag_of(hash)) /* 255 of 256 others: its memory is far away */
			continue;
		there = remembered_at(index->remembered, index->slot[i]);
		if (memcmp(attempt_digest(there, index->bond), digest, sizeof(*digest)) == 0 &&
		    (index->across_processes || attempts_share_process(&there->facts, facts)))
			return &index->slot[i];
	}
}

static void put(struct attempt_index *index, uint32_t *slot, const struct attempt *attempt)
{
	*slot = attempt->ref;
	index->tag[slot - index->slot] = tag_of(hash_of(index, attempt_digest(attempt, index->bond), &attempt->facts));
}

int attempt_index_reserve(struct attempt_index *index)
{
	struct attempt_index old = *index;
	uint32_t slots = old.slot ? 2 * (old.mask + 1) : 64;

	if (old.slot && old.count < (old.mask + 1) / 3 * 2)
		return 0;
	index->slot = calloc(slots, SLOT_BYTES);
	if (!index->slot) {
		*index = old;
		return -ENOMEM;
	}
	index->tag = (uint8_t *)(index->slot + slots);
	index->mask = slots - 1;
	for (uint32_t i = 0; old.slot && i <= old.mask; i++) {
		const struct attempt *there = remembered_at(index->remembered, old.slot[i]);

		if (there)
			put(index, attempt_index_find(index, attempt_digest(there, index->bond), &there->facts), there);
	}
	free(old.slot);
	index->remembered->bytes += (slots - (old.slot ? old.mask + 1 : 0)) * SLOT_BYTES;
	return 0;
}

void attempt_index_set(struct attempt_index *index, uint32_t *slot, const struct attempt *attempt)
{
	index->count += *slot == 0;
	put(index, slot, attempt);
}

void attempt_index_clear(struct attempt_index *index, const uint32_t *slot)
{
	uint32_t hole = (uint32_t)(slot - index->slot);

	index->count--;
	for (uint32_t i = (hole + 1) & index->mask; index->slot[i]; i = (i + 1) & index->mask) {
		const struct attempt *there = remembered_at(index->remembered, index->slot[i]);
		uint32_t home = home_of(index, hash_of(index, attempt_digest(there, index->bond), &there->facts));

		/* It stays if its home lies behind the hole. */
		if (((i - home) & index->mask) < ((i - hole) & index->mask))
			continue;
		index->slot[hole] = index->slot[i];
		index->tag[hole] = index->tag[i];
		hole = i;
	}
	index->slot[hole] = 0;
}

void attempt_index_empty(struct attempt_index *index)
{
	if (index->slot)
		memset(index->slot, 0, ((size_t)index->mask + 1) * sizeof(*index->slot));
	index->count = 0;
}

void attempt_index_done(struct attempt_index *index)
{
	free(index->slot);
	index->slot = NULL;
}
