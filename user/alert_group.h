/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What alert.c keeps of a group of attempts and alert_text.c makes words of.
 */
#ifndef NIGHTCLERK_ALERT_GROUP_H
#define NIGHTCLERK_ALERT_GROUP_H

#include "alert.h"

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define ALERT_NAME_MAX 48 /* printed of a method, comm, key, tool or model */
#define ALERT_KEY_KEPT 64

/* Two attempts, and what a judgement does not hold of the later one. */
struct pair {
	struct judgement judgement;
	char comm[WIRE_COMM_BYTES + 1]; /* empty = not known */
	char earlier_comm[WIRE_COMM_BYTES + 1];
	uint8_t key[ALERT_KEY_KEPT];
	size_t key_size;
};

struct group {
	struct digest id;
	struct pair pair[2]; /* worst first */
	unsigned int pair_count;
	uint64_t attempts;
	uint64_t shown_attempts; /* at the last renewal; 0 = never shown */
	unsigned int shown_rank;
	struct buffer method; /* both harmless; empty = not known */
	struct buffer call;
	UT_hash_handle hh;
};

/*
 * The block of one group; nothing when its finding was taken back. 0, or -ENOMEM with out as it
 * was.
 */
int alert_group_block(const struct group *group, int64_t wall_offset_ns,
		      const struct alert_style *style, struct buffer *out);

#endif
