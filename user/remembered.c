/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of attempts: the newest is filled, the oldest is freed when the last
 * attempt in it is forgotten.
 */
#include "remembered.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK_BYTES (64 * 1024 - 64)

struct attempt_block {
	struct attempt_block *next;
	uint32_t used; /* bytes */
	uint32_t live; /* attempts that are remembered */
	_Alignas(8) uint8_t memory[];
};

/* What the C library takes for that much: a header, and whole units of 16. */
static size_t with_header(size_t size)
{
	size_t bytes = (size + sizeof(size_t) + 15) & ~(size_t)15;

	return size == 0 ? 0 : bytes < 32 ? 32 : bytes;
}

void *remembered_resize(struct remembered *remembered, void *memory, size_t old_size, size_t size)
{
	void *changed;

	if (size == 0) {
		remembered->bytes -= with_header(old_size);
		free(memory);
		return NULL;
	}
	changed = realloc(memory, size);
	if (changed)
		remembered->bytes += with_header(size) - with_header(old_size);
	return changed;
}

int remembered_reserve(struct remembered *remembered)
{
	uint32_t capacity = remembered->capacity ? 2 * remembered->capacity : 64;
	struct attempt **slot;

	if (remembered->next == 0)
		remembered->next++;
	if (remembered->next - remembered->first < remembered->capacity)
		return 0;
	slot = calloc(capacity, sizeof(struct attempt *));
	if (!slot)
		return -ENOMEM;
	for (uint32_t ref = remembered->first; ref != remembered->next; ref++)
		slot[ref & (capacity - 1)] = remembered->slot[ref & (remembered->capacity - 1)];
	free(remembered->slot);
	remembered->bytes += (capacity - remembered->capacity) * sizeof(struct attempt *);
	remembered->slot = slot;
	remembered->capacity = capacity;
	return 0;
}

static size_t bytes_of(size_t digests)
{
	size_t bytes = sizeof(struct attempt) + digests * sizeof(struct short_digest);

	return (bytes + 7) & ~(size_t)7;
}

/*
 * Every page of a block is going to be written: one call maps them all (Linux 5.14; madvise(2)), where each would
 * cost a fault of its own. An older kernel refuses, and the faults come.
 */
static void map_now(void *memory, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), start = ((uintptr_t)memory + page - 1) & ~(page - 1);
	uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);

	if (end > start)
		madvise((void *)start, end - start, MADV_POPULATE_WRITE);
}

static int add_block(struct remembered *remembered)
{
	struct attempt_block *block = remembered_resize(remembered, NULL, 0, BLOCK_BYTES);

	if (!block)
		return -ENOMEM;
	map_now(block, BLOCK_BYTES);
	*block = (struct attempt_block){0};
	if (remembered->newest)
		remembered->newest->next = block;
	else
		remembered->oldest = block;
	remembered->newest = block;
	return 0;
}

struct attempt *remembered_make(struct remembered *remembered, size_t digests)
{
	struct attempt_block *block = remembered->newest;
	struct attempt *attempt;

	if (!block || block->used + bytes_of(digests) > BLOCK_BYTES - sizeof(*block)) {
		if (add_block(remembered))
			return NULL;
		block = remembered->newest;
	}
	attempt = (struct attempt *)(block->memory + block->used);
	memset(attempt, 0, bytes_of(digests));
	block->used += bytes_of(digests);
	block->live++;
	return attempt;
}

void remembered_unmake(struct remembered *remembered, struct attempt *attempt)
{
	if (!attempt)
		return;
	remembered->newest->used = (uint32_t)((uint8_t *)attempt - remembered->newest->memory);
	remembered->newest->live--;
}

void remembered_add(struct remembered *remembered, struct attempt *attempt)
{
	attempt->ref = remembered->next++;
	remembered->count++;
	remembered->slot[attempt->ref & (remembered->capacity - 1)] = attempt;
}

/* A block that nothing is in any more goes, but for the one that is being filled. */
static void free_empty_blocks(struct remembered *remembered)
{
	while (remembered->oldest != remembered->newest && remembered->oldest->live == 0) {
		struct attempt_block *block = remembered->oldest;

		remembered->oldest = block->next;
		remembered_resize(remembered, block, BLOCK_BYTES, 0);
	}
}

void remembered_drop_oldest(struct remembered *remembered)
{
	free_empty_blocks(remembered);
	remembered->oldest->live--;
	free_empty_blocks(remembered);
	remembered->count--;
	remembered->first++;
	if (remembered->first == 0)
		remembered->first++;
}

void remembered_done(struct remembered *remembered)
{
	while (remembered->oldest) {
		struct attempt_block *block = remembered->oldest;

		remembered->oldest = block->next;
		free(block);
	}
	free(remembered->slot);
	*remembered = (struct remembered){0};
}
