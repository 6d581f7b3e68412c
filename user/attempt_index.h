/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a digest to the newest attempt that has it, in the current window. An
 * open table of refs, 5 bytes a slot, since a million attempts with two digests
 * each have to fit: a table of chained handles would take more memory than the
 * attempts do. Private to attempts.c.
 */
#ifndef NIGHTCLERK_ATTEMPT_INDEX_H
#define NIGHTCLERK_ATTEMPT_INDEX_H

#include "remembered.h"

struct attempt_index {
	struct remembered *remembered; /* lent */
	enum bond bond;
	bool across_processes; /* false: the digests of two processes are two */
	uint32_t *slot;	       /* refs; 0 = empty */
	uint8_t *tag;	       /* behind them, one a slot: which attempts are not worth a look */
	uint32_t mask;	       /* slots - 1 */
	uint32_t count;
};

/*
 * The slot of that digest, or the empty one where it would be; valid until the
 * next change. The index must have been reserved once.
 */
uint32_t *attempt_index_find(const struct attempt_index *index, const struct short_digest *digest,
			     const struct attempt_facts *facts);
/* Room for one more. 0 or -ENOMEM. */
int attempt_index_reserve(struct attempt_index *index);
/* slot came from attempt_index_find(). */
void attempt_index_set(struct attempt_index *index, uint32_t *slot, const struct attempt *attempt);
void attempt_index_clear(struct attempt_index *index, const uint32_t *slot);
/* Forgets all: a new window. */
void attempt_index_empty(struct attempt_index *index);
void attempt_index_done(struct attempt_index *index);

#endif
