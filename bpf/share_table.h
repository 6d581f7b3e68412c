/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fair shares of the two rings and of the flow table: what each tenant holds.
 *
 * A tenant may hold as much of a ring as is still free (dynamic thresholds,
 * Choudhury and Hahne 1998): one alone gets half of it, n that flood get
 * 1/(n + 1) each, and there is always room for one that comes later. Bodies stop
 * earlier: past half of that share only the first SHARE_HEAD_BYTES of a send are
 * captured. What a share refused is a hole with WIRE_CAUSE_SHARE. Events of flows
 * have the same share of their ring, but the ends, of which one belongs to each
 * beginning, may take twice what is free.
 *
 * The tenant of a connection is its client's cgroup or uid; both of its flows
 * are charged to it. The probe adds to what was produced, the collector to what
 * was consumed; neither waits for the other.
 */
#ifndef NIGHTCLERK_SHARE_TABLE_H
#define NIGHTCLERK_SHARE_TABLE_H

#include "wire_event.h"

#define SHARE_BITS 12
#define SHARE_SLOTS (1U << SHARE_BITS)
#define SHARE_HEAD_BYTES (WIRE_CLASS_5 - sizeof(struct wire_event)) /* of a send: a record of 4 KiB */
#define SHARE_UID (1ULL << 32)

enum share_by { SHARE_BY_NONE, SHARE_BY_CGROUP, SHARE_BY_UID };
enum share_ring { SHARE_DATA, SHARE_LIFECYCLE, SHARE_RINGS };

/*
 * One slot; all numbers but `flows` only grow. Tenants whose ids meet in one slot
 * share its share and its sums: `changes` tells.
 */
struct share {
	/* by the probe */
	__u64 produced_bytes[SHARE_RINGS]; /* put into the rings, headers of records included */
	__u64 tenant;			   /* share_key() of the one that came last */
	__u64 changes;			   /* how often another one came */
	__u64 accepted_bytes;		   /* as WIRE_COUNTER_ACCEPTED_BYTES */
	__u64 flows;			   /* in the flow table now */
	__u64 flows_refused;
	__u64 lifecycle_lost;
	__u64 lost_bytes[16]; /* by enum wire_cause */
	/* by the collector */
	__u64 consumed_bytes[SHARE_RINGS];
	__u64 reserved[6];
};

/* Of a tenant: its cgroup id or its uid. 0 = a connection whose client was not seen. */
static inline __u64 share_key(enum share_by by, __u64 cgroup_id, __u32 uid)
{
	return by == SHARE_BY_UID ? SHARE_UID | uid : cgroup_id;
}

static inline __u32 share_slot(__u64 key)
{
	return (__u32)(key * 0x9E3779B97F4A7C15ULL >> (64 - SHARE_BITS)); /* Fibonacci hashing */
}

#endif
