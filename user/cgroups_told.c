/* SPDX-License-Identifier: BSD-2-Clause */
/* A hash table that keeps the order in which its entries were added (uthash does). */
#include "cgroups_told.h"

#include <stdlib.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

struct known {
	uint64_t id;
	size_t path_bytes;
	unsigned int tries; /* with a process to ask; CGROUPS_TOLD_TRIES: told, or given up */
	UT_hash_handle hh;
};

struct cgroups_told {
	struct known *known; /* the one told longest ago first */
	size_t path_bytes;
};

struct cgroups_told *cgroups_told_new(void)
{
	return calloc(1, sizeof(struct cgroups_told));
}

static void forget(struct cgroups_told *told, struct known *known)
{
	HASH_DEL(told->known, known);
	told->path_bytes -= known->path_bytes;
	free(known);
}

void cgroups_told_free(struct cgroups_told *told)
{
	while (told && told->known)
		forget(told, told->known);
	free(told);
}

/* NULL when out of memory. */
static struct known *add(struct cgroups_told *told, uint64_t id)
{
	struct known *known = calloc(1, sizeof(*known));

	if (!known)
		return NULL;
	known->id = id;
	HASH_ADD(hh, told->known, id, sizeof(known->id), known);
	if (!known->hh.tbl) {
		free(known);
		return NULL;
	}
	if (HASH_COUNT(told->known) > CGROUPS_TOLD_MAX)
		forget(told, told->known);
	return known;
}

bool cgroups_told_is_due(struct cgroups_told *told, uint64_t id, bool by_process)
{
	struct known *known;

	HASH_FIND(hh, told->known, &id, sizeof(id), known);
	if (!known)
		known = add(told, id);
	if (!known)
		return true; /* at each of its events, then: that costs time alone */
	if (known->tries >= CGROUPS_TOLD_TRIES)
		return false;
	known->tries += by_process;
	return true;
}

void cgroups_told_note(struct cgroups_told *told, uint64_t id, size_t path_bytes)
{
	struct known *known;

	HASH_FIND(hh, told->known, &id, sizeof(id), known);
	if (known)
		forget(told, known);
	known = add(told, id); /* behind all others: it may have been tried for long */
	if (!known)
		return;
	known->tries = CGROUPS_TOLD_TRIES;
	known->path_bytes = path_bytes;
	told->path_bytes += path_bytes;
	while (told->path_bytes > CGROUPS_TOLD_BYTES && told->known != known)
		forget(told, told->known);
}
