/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Fair shares, the probe's side: share_table.h says what they are. Where they
 * are off, the verifier takes all of this out.
 *
 * flow->share and wire_event.share are the slot + 1; 0 = charged to nobody.
 */
#ifndef NIGHTCLERK_SHARES_BPF_H
#define NIGHTCLERK_SHARES_BPF_H

#include "owner.bpf.h"
#include "tables.bpf.h"
#include "share_table.h"

const volatile __u32 share_by; /* enum share_by; fixed before load */
__u64 share_flows;	       /* that are charged to anybody */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, SHARE_SLOTS);
	__type(key, u32);
	__type(value, struct share);
} shares SEC(".maps");

static __always_inline struct share *share_find(u32 share)
{
	u32 slot = share - 1;

	return share_by && share ? bpf_map_lookup_elem(&shares, &slot) : NULL;
}

/* ---- sums ---- */

static __always_inline void share_accepted(u32 number, u64 length)
{
	struct share *share = share_find(number);

	if (share)
		__sync_fetch_and_add(&share->accepted_bytes, length);
}

static __always_inline void share_lost(u32 number, u32 cause, u64 length)
{
	struct share *share = share_find(number);

	if (share)
		__sync_fetch_and_add(&share->lost_bytes[cause & 15], length);
}

/* A record of so many bytes was reserved, or is discarded: then nobody will consume it. */
static __always_inline void share_produced(u32 number, enum share_ring ring, u64 length)
{
	struct share *share = share_find(number);

	if (share)
		__sync_fetch_and_add(&share->produced_bytes[ring], length + BPF_RINGBUF_HDR_SZ);
}

static __always_inline void share_discarded(u32 number, enum share_ring ring, u64 length)
{
	struct share *share = share_find(number);

	if (share)
		__sync_fetch_and_add(&share->produced_bytes[ring], -(length + BPF_RINGBUF_HDR_SZ));
}

/* ---- may it? ---- */

static __always_inline u64 share_held(const struct share *share, enum share_ring ring)
{
	s64 held = share->produced_bytes[ring] - share->consumed_bytes[ring];

	return held > 0 ? held : 0;
}

static __always_inline u64 ring_free(void *ring)
{
	return bpf_ringbuf_query(ring, BPF_RB_RING_SIZE) - bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
}

/* parts 1: its share; 2: half of it. With the new record in the ring. */
static __always_inline bool share_has_room(u64 held, u64 free, u64 size, u32 parts)
{
	return (held + size) * parts + size <= free;
}

/*
 * May `*length` bytes be captured, after `sent` of the same send? Less, perhaps.
 * False: none of them.
 */
static __always_inline bool share_admits(u32 number, u64 sent, u64 *length)
{
	struct share *share = share_find(number);
	u64 held, free;

	if (!share)
		return true;
	held = share_held(share, SHARE_DATA);
	free = ring_free(&data_ring);
	if (share_has_room(held, free, *length + sizeof(struct wire_event), 2))
		return true;
	if (sent >= SHARE_HEAD_BYTES)
		return false;
	if (*length > SHARE_HEAD_BYTES - sent)
		*length = SHARE_HEAD_BYTES - sent;
	return share_has_room(held, free, *length + sizeof(struct wire_event), 1);
}

static __always_inline bool share_admits_event(u32 number, u8 kind)
{
	struct share *share = share_find(number);
	u64 held;

	if (!share)
		return true;
	held = share_held(share, SHARE_LIFECYCLE);
	return share_has_room(kind == WIRE_END ? held / 2 : held, ring_free(&lifecycle_ring),
			      sizeof(struct wire_event), 1);
}

/* A record of the lifecycle ring for an event of a flow that is charged to `number`. */
static __always_inline struct wire_event *share_reserve_event(u32 number, u8 kind)
{
	struct wire_event *event = NULL;
	struct share *share;

	if (share_admits_event(number, kind))
		event = bpf_ringbuf_reserve(&lifecycle_ring, sizeof(*event), 0);
	if (event) {
		share_produced(number, SHARE_LIFECYCLE, sizeof(*event));
		return event;
	}
	counter_add(WIRE_COUNTER_LIFECYCLE_LOST, 1);
	share = share_find(number);
	if (share)
		__sync_fetch_and_add(&share->lifecycle_lost, 1);
	return NULL;
}

/* ---- flows ---- */

static __always_inline u32 share_of_owner(const struct flow *flow)
{
	return share_slot(share_key(share_by, flow->owner_cgroup, flow->owner_uid)) + 1;
}

static __always_inline bool share_admits_flow(u32 number)
{
	struct share *share = share_find(number);

	if (!share || share->flows < FLOW_TABLE_ENTRIES - share_flows)
		return true;
	__sync_fetch_and_add(&share->flows_refused, 1);
	counter_add(WIRE_COUNTER_NO_FLOW, 1);
	return false;
}

static __always_inline void share_release_flow(struct flow *flow)
{
	struct share *share = share_find(flow->share);

	if (!share)
		return;
	__sync_fetch_and_add(&share->flows, -1);
	__sync_fetch_and_add(&share_flows, -1);
	flow->share = 0;
}

static __always_inline void share_charge_flow(struct flow *flow, u32 number)
{
	struct share *share = share_find(number);

	if (!share || flow->share == number)
		return;
	share_release_flow(flow);
	flow->share = number;
	__sync_fetch_and_add(&share->flows, 1);
	__sync_fetch_and_add(&share_flows, 1);
}

static __always_inline void share_name_tenant(u32 number, u64 key)
{
	struct share *share = share_find(number);

	if (!share || share->tenant == key)
		return;
	share->tenant = key;
	__sync_fetch_and_add(&share->changes, 1);
}

/* Of a flow that has an owner, and is not the canary's. */
static __always_inline void share_charge_owner(struct flow *flow)
{
	if (!share_by || flow->flags & WIRE_CANARY)
		return;
	share_charge_flow(flow, share_of_owner(flow));
	share_name_tenant(flow->share, share_key(share_by, flow->owner_cgroup, flow->owner_uid));
}

/* May the current process have one more, for a socket that it connects? */
static __always_inline bool share_admits_current(u16 flags)
{
	u32 uid;

	if (!share_by || flags & WIRE_CANARY)
		return true;
	uid = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), cred, uid.val);
	return share_admits_flow(share_slot(share_key(share_by, bpf_get_current_cgroup_id(), uid)) + 1);
}

/*
 * The flow is about to be said to exist: the client pays for both ends. An end
 * that accepted and has no peer is nobody's (its client may have been refused),
 * unless we came late.
 */
static __always_inline void share_open_flow(struct flow *flow, struct flow *peer)
{
	if (!share_by || flow->flags & WIRE_CANARY)
		return;
	if (flow->flags & WIRE_SERVER && peer && peer->share) {
		share_charge_flow(flow, peer->share);
	} else if (flow->flags & WIRE_SERVER && !peer && !flow->late) {
		share_charge_flow(flow, share_slot(0) + 1);
	} else {
		share_charge_owner(flow);
		if (peer && peer->share)
			share_charge_flow(peer, flow->share);
	}
}

#endif
