/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Linear probing, at most two thirds full. The digests are SHA-256, so their
 * first bytes spread by themselves; nobody can choose them to collide. What is
 * removed leaves no mark: those that it pushed on move up.
 */
#include "attempt_index.h"

#include <errno.h>

static uint32_t home_of(const struct attempt_index *index, const struct short_digest *digest,
			const struct attempt_facts *facts)
{
	uint64_t hash;

	memcpy(&hash, digest->byte, sizeof(hash));
	if (!index->across_processes)
		hash ^= (((uint64_t)facts->process << 32) ^ facts->tgid) * 0x9e3779b97f4a7c15ULL;
	return (uint32_t)(hash ^ (hash >> 32)) & index->mask;
}

uint32_t *attempt_index_find(const struct attempt_index *index, const struct short_digest *digest,
			     const struct attempt_facts *facts)
{
	for (uint32_t i = home_of(index, digest, facts);; i = (i + 1) & index->mask) {
		const struct attempt *there;

		if (index->slot[i] == 0)
			return &index->slot[i];
		there = remembered_at(index->remembered, index->slot[i]);
		if (memcmp(attempt_digest(there, index->bond), digest, sizeof(*digest)) == 0 &&
		    (index->across_processes || attempts_share_process(&there->facts, facts)))
			return &index->slot[i];
	}
}

int attempt_index_reserve(struct attempt_index *index)
{
	struct attempt_index old = *index;
	uint32_t slots = old.slot ? 2 * (old.mask + 1) : 64;

	if (old.slot && old.count < (old.mask + 1) / 3 * 2)
		return 0;
	index->slot = calloc(slots, sizeof(*index->slot));
	if (!index->slot) {
		*index = old;
		return -ENOMEM;
	}
	index->mask = slots - 1;
	for (uint32_t i = 0; old.slot && i <= old.mask; i++) {
		const struct attempt *there = remembered_at(index->remembered, old.slot[i]);

		if (there)
			*attempt_index_find(index, attempt_digest(there, index->bond), &there->facts) = old.slot[i];
	}
	free(old.slot);
	index->remembered->bytes += (slots - (old.slot ? old.mask + 1 : 0)) * sizeof(*index->slot);
	return 0;
}

void attempt_index_set(struct attempt_index *index, uint32_t *slot, uint32_t ref)
{
	index->count += *slot == 0;
	*slot = ref;
}

void attempt_index_clear(struct attempt_index *index, const uint32_t *slot)
{
	uint32_t hole = (uint32_t)(slot - index->slot);

	index->count--;
	for (uint32_t i = (hole + 1) & index->mask; index->slot[i]; i = (i + 1) & index->mask) {
		const struct attempt *there = remembered_at(index->remembered, index->slot[i]);
		uint32_t home = home_of(index, attempt_digest(there, index->bond), &there->facts);

		/* It stays if its home lies behind the hole. */
		if (((i - home) & index->mask) < ((i - hole) & index->mask))
			continue;
		index->slot[hole] = index->slot[i];
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
