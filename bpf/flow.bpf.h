/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The flow table: who is followed, how far each stream has come, and what is
 * missing of it.
 *
 * Whoever calls these holds the socket lock or is the last user of the socket,
 * unless said otherwise: only then is write_seq the true position.
 */
#ifndef NIGHTCLERK_FLOW_BPF_H
#define NIGHTCLERK_FLOW_BPF_H

#include "scope.bpf.h"
#include "shares.bpf.h"

static const struct flow empty_flow;

static __always_inline struct flow *flow_find(const void *sk)
{
	u64 key = (u64)sk;

	return bpf_map_lookup_elem(&flows, &key);
}

/* Everything of an event that its flow knows. */
static __always_inline void flow_describe(const struct flow *flow, struct wire_event *event)
{
	event->flags |= flow->flags;
	event->flow = flow->id;
	event->send_base_seq = flow->send_base_seq;
	event->receive_base_seq = flow->receive_base_seq;
	event->lost_records = flow->lost_records;
	event->netns = flow->tuple.netns;
	event->local_port = flow->tuple.local_port;
	event->remote_port = flow->tuple.remote_port;
	__builtin_memcpy(event->local_address, flow->tuple.local_address, WIRE_ADDRESS_BYTES);
	__builtin_memcpy(event->remote_address, flow->tuple.remote_address, WIRE_ADDRESS_BYTES);
}

/* Where the streams of both directions stand. */
static __always_inline void flow_position(const struct flow *flow, struct wire_event *event)
{
	event->offset = flow->written;
	event->seq = flow->send_base_seq + (u32)flow->written;
	event->received_bytes = flow->received;
	event->read_bytes = flow->read;
}

static __always_inline bool slot_is_muted(u64 id)
{
	u32 slot = wire_muted_slot(id);
	u64 *holder = bpf_map_lookup_elem(&muted, &slot);

	return id && holder && *holder == id;
}

/* Sticks: a slot that another flow takes over must not open a gap here. */
static __always_inline bool flow_is_muted(struct flow *flow)
{
	if (!flow->muted && (slot_is_muted(flow->id) || slot_is_muted(flow->peer_id)))
		flow->muted = 1;
	return flow->muted;
}

/* ---- position ---- */

/*
 * The kernel counts what it received in 64 bits (RFC 4898, since 4.1), and
 * that count is the offset of rcv_nxt; a FIN's one is in both.
 */
static __always_inline void flow_sync_received(struct flow *flow, struct tcp_sock *tp, const bool direct)
{
	u32 unread = PEEK(direct, tp, rcv_nxt) - PEEK(direct, tp, copied_seq);

	flow->received = PEEK(direct, tp, bytes_received);
	flow->read = unread < flow->received ? flow->received - unread : 0;
}

static __always_inline void flow_sync(struct flow *flow, struct tcp_sock *tp, const bool direct)
{
	if (flow->stage < FLOW_OPEN)
		return;
	if (flow->stage == FLOW_OPEN) {
		u32 write_seq = PEEK(direct, tp, write_seq);

		flow->written += write_seq - flow->write_seq;
		flow->write_seq = write_seq;
	}
	if (flow->stage != FLOW_CLOSED)
		flow_sync_received(flow, tp, direct);
}

static __always_inline u64 sock_sent(struct tcp_sock *tp)
{
	return BPF_CORE_READ(tp, bytes_sent) - BPF_CORE_READ(tp, bytes_retrans);
}

/* A struct sock may be a new connection's while the flow of its last one still stands, its end unseen. */
static __always_inline bool flow_is_of(const struct flow *flow, struct tcp_sock *tp)
{
	return flow->send_base_seq == BPF_CORE_READ(tp, snd_nxt) - (u32)sock_sent(tp);
}

/*
 * Both bases are the sequence numbers after the SYNs, also when we came late
 * or when the SYN held data: both ends then name the same two numbers.
 */
static __always_inline void flow_anchor(struct flow *flow, struct tcp_sock *tp)
{
	u64 sent = sock_sent(tp);
	u32 snd_nxt = BPF_CORE_READ(tp, snd_nxt);

	flow->write_seq = BPF_CORE_READ(tp, write_seq);
	flow->written = sent + (flow->write_seq - snd_nxt);
	flow->send_base_seq = snd_nxt - (u32)sent;
	flow_sync_received(flow, tp, false);
	flow->receive_base_seq = BPF_CORE_READ(tp, rcv_nxt) - (u32)flow->received;
}

/* For an event of the flow: flow_describe() says the rest. */
static __always_inline struct wire_event *flow_reserve(const struct flow *flow, u8 kind)
{
	u32 share = flow->share;
	struct wire_event *event = share_reserve_event(share, kind);

	if (!event)
		return NULL;
	lifecycle_begin(event, kind);
	event->share = share;
	return event;
}

/* ---- holes ---- */

/* A hole that no call of ours explains. */
static __always_inline void flow_hole(struct flow *flow, u64 offset, u64 length, u8 cause)
{
	struct wire_event *event;

	counter_add(WIRE_COUNTER_LOST_BYTES + cause, length);
	share_lost(flow->share, cause, length);
	event = flow_reserve(flow, WIRE_HOLE);
	if (!event)
		return;
	flow_describe(flow, event);
	flow_position(flow, event);
	event->cause = cause;
	event->offset = offset;
	event->seq = flow->send_base_seq + (u32)offset;
	event->length_bytes = length;
	lifecycle_submit(event, BPF_RB_NO_WAKEUP);
}

/* The canary's bytes are nobody's: they stand in no sum. */
static __always_inline void flow_count_accepted(const struct flow *flow, u64 length)
{
	if (flow->flags & WIRE_CANARY)
		return;
	counter_add(WIRE_COUNTER_ACCEPTED_BYTES, length);
	share_accepted(flow->share, length);
}

/* Bytes were accepted up to `written` that no call has accounted for. */
static __always_inline void flow_account_gap(struct flow *flow, u64 written, u8 cause)
{
	u64 accounted = flow->accounted;

	if (written <= accounted)
		return;
	flow_count_accepted(flow, written - accounted);
	__sync_fetch_and_add(&flow->accounted, written - accounted);
	if (!flow->muted)
		flow_hole(flow, accounted, written - accounted, cause);
}

/* The same, unless a call on its way may yet account for them. Needs no lock: see flow_refresh(). */
static __always_inline void flow_find_gap(struct flow *flow, u64 written, u8 cause)
{
	if (!flow->calls)
		flow_account_gap(flow, written, cause);
}

/* ---- coming and going ---- */

/*
 * The time, and the CPU, of which no two flows begin in one nanosecond: before
 * 5.12 a program can count, but not learn what it counted.
 */
static __always_inline u64 flow_id(void)
{
	return bpf_ktime_get_ns() << 12 | (bpf_get_smp_processor_id() & 0xfff);
}

static __noinline struct flow *flow_new(struct sock *sk, const struct tuple *tuple, u16 flags,
					u8 stage)
{
	u64 key = (u64)sk;
	struct flow *flow;

	if (bpf_map_update_elem(&flows, &key, &empty_flow, BPF_ANY)) {
		counter_add(WIRE_COUNTER_NO_FLOW, 1);
		return NULL;
	}
	flow = bpf_map_lookup_elem(&flows, &key);
	if (!flow)
		return NULL;
	flow->id = flow_id();
	flow->flags = flags;
	flow->stage = stage;
	flow->tuple = *tuple;
	return flow;
}

static __always_inline struct flow *tuple_holder(const struct tuple *tuple)
{
	u64 *sk = bpf_map_lookup_elem(&tuples, tuple);

	return sk ? bpf_map_lookup_elem(&flows, sk) : NULL;
}

/* A 4-tuple may be in use again while its former owner lives: the sequence numbers tell. */
static __always_inline struct flow *flow_meet_peer(struct flow *flow)
{
	struct tuple reverse;
	struct flow *peer;

	tuple_reverse(&flow->tuple, &reverse);
	peer = tuple_holder(&reverse);
	if (!peer || peer->send_base_seq != flow->receive_base_seq ||
	    peer->receive_base_seq != flow->send_base_seq)
		return NULL;
	flow->peer_id = peer->id;
	peer->peer_id = flow->id;
	flow->muted = peer->muted;
	return peer;
}

/* Does its tenant's share of the table have room for a flow that the scope did not begin? share_open_flow() charges it. */
static __always_inline bool share_admits_stranger(struct sock *sk, const struct tuple *tuple, u16 flags)
{
	struct flow owned = {}, *peer;
	struct tuple reverse;
	u32 number;

	if (!share_by || flags & WIRE_CANARY)
		return true;
	if (flags & WIRE_SERVER) {
		tuple_reverse(tuple, &reverse);
		peer = tuple_holder(&reverse);
		number = peer ? peer->share : share_slot(0) + 1;
	} else {
		flow_owner_of_sock(&owned, sk);
		number = share_of_owner(&owned);
	}
	return share_admits_flow(number);
}

static __always_inline u16 transport_flags(struct sock *sk, const bool direct)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	const struct tcp_ulp_ops *ulp;
	u32 name = 0;

	if (bpf_core_field_exists(tp->is_mptcp) && PEEK(direct, tp, is_mptcp))
		return WIRE_MPTCP;
	ulp = PEEK(direct, tp, inet_conn.icsk_ulp_ops);
	if (!ulp)
		return 0;
	BPF_CORE_READ_INTO(&name, ulp, name);
	return name == bpf_htonl(0x746c7300) ? WIRE_KTLS : 0; /* "tls" */
}

/* The scope's listener at that place, on that address or on any. */
static __noinline struct listener *listener_at(u32 netns, u16 port, const u8 *address)
{
	struct listener_key key = {.netns = netns, .port = port};
	struct listener *listener;

	if (!address)
		return NULL;
	__builtin_memcpy(key.address, address, WIRE_ADDRESS_BYTES);
	listener = bpf_map_lookup_elem(&listeners, &key);
	if (listener)
		return listener;
	__builtin_memset(key.address, 0, WIRE_ADDRESS_BYTES);
	listener = bpf_map_lookup_elem(&listeners, &key);
	if (listener)
		return listener;
	address_map_ipv4(key.address, 0);
	return bpf_map_lookup_elem(&listeners, &key);
}

static __always_inline bool port_is_old(u32 netns, u16 port)
{
	struct listener_key key = {.netns = netns, .port = port};

	return bpf_map_lookup_elem(&old_ports, &key) != NULL;
}

static __always_inline u16 port_role(const struct tuple *tuple)
{
	bool local = port_is_old(tuple->netns, tuple->local_port);

	if (listener_at(tuple->netns, tuple->local_port, tuple->local_address))
		return WIRE_SERVER;
	if (listener_at(tuple->netns, tuple->remote_port, tuple->remote_address))
		return WIRE_CLIENT;
	if (local == port_is_old(tuple->netns, tuple->remote_port))
		return 0;
	return local ? WIRE_SERVER : WIRE_CLIENT;
}

static __always_inline bool flow_is_whole(const struct flow *flow)
{
	return flow && !(flow->flags & WIRE_JOINED_LATE);
}

/*
 * From here on the flow is said to exist. Of a flow that joins, bytes may have
 * crossed before we looked: then it is late, and its own are not accounted for.
 */
static __noinline int flow_open(struct flow *flow, struct sock *sk)
{
	u64 key = (u64)sk;
	struct wire_event *event;
	struct flow *peer;

	if (!flow)
		return 0;
	flow_anchor(flow, (struct tcp_sock *)sk);
	flow->stage = FLOW_OPEN;
	flow->flags |= transport_flags(sk, false);
	flow_owner_of_sock(flow, sk);
	if (!(flow->flags & (WIRE_CLIENT | WIRE_SERVER)))
		flow->flags |= port_role(&flow->tuple);
	peer = flow_meet_peer(flow);
	share_open_flow(flow, peer);
	if (flow->late && (flow->written || (flow->received && !flow_is_whole(peer)))) {
		flow->flags |= WIRE_JOINED_LATE;
		flow->accounted = flow->written;
	}
	if (bpf_map_update_elem(&tuples, &flow->tuple, &key, BPF_ANY))
		counter_add(WIRE_COUNTER_NO_FLOW, 1); /* its peer will not find it */
	event = flow_reserve(flow, WIRE_OPEN);
	if (event) {
		flow_describe(flow, event);
		flow_position(flow, event);
		if (!(flow->flags & WIRE_JOINED_LATE)) {
			event->offset = 0;
			event->seq = flow->send_base_seq;
		}
		event->new_state = WIRE_TCP_ESTABLISHED;
		event->cgroup_id = flow->owner_cgroup;
		event->uid = flow->owner_uid;
		lifecycle_submit(event, BPF_RB_NO_WAKEUP);
	}
	flow_find_gap(flow, flow->written, WIRE_CAUSE_FASTOPEN);
	return 0;
}

static __always_inline u16 opposite_role(u16 flags)
{
	return flags & WIRE_CLIENT ? WIRE_SERVER : flags & WIRE_SERVER ? WIRE_CLIENT : 0;
}

/* A socket that is not in the table sends, in the context of the sender. */
static __noinline struct flow *flow_join(struct sock *sk, u16 flags)
{
	struct tuple tuple, reverse;
	struct flow *peer, *flow;

	sock_tuple(sk, &tuple);
	tuple_reverse(&tuple, &reverse);
	peer = tuple_holder(&reverse);
	if (!flags && !peer)
		return NULL;
	if (!sock_is_loopback(sk, &tuple))
		return NULL;
	flags |= peer && opposite_role(peer->flags) ? opposite_role(peer->flags) : port_role(&tuple);
	if (peer)
		flags |= peer->flags & WIRE_CANARY;
	flow = flow_new(sk, &tuple, flags, FLOW_OPEN);
	if (!flow)
		return NULL;
	flow->late = 1;
	__sync_fetch_and_add(&late_tuples, 1);
	flow_open(flow, sk);
	return flow;
}

/*
 * A connected socket of the scope, older than we are, and not held by us: it is
 * left alone until it sends, but a peer that sends to it is known by now.
 */
static __noinline int flow_expect(struct sock *sk, u16 flags)
{
	struct flow flow = {.flags = flags, .stage = FLOW_CONNECTING, .late = 1};
	u64 key = (u64)sk;

	sock_tuple(sk, &flow.tuple);
	if (!sock_is_loopback(sk, &flow.tuple))
		return 0;
	flow.id = flow_id();
	if (bpf_map_update_elem(&flows, &key, &flow, BPF_NOEXIST) ||
	    bpf_map_update_elem(&tuples, &flow.tuple, &key, BPF_ANY)) {
		counter_add(WIRE_COUNTER_NO_FLOW, 1);
		return 0;
	}
	__sync_fetch_and_add(&late_tuples, 1);
	return 0;
}

static __always_inline void flow_leave_tuples(struct flow *flow, struct sock *sk)
{
	u64 *holder = bpf_map_lookup_elem(&tuples, &flow->tuple);

	if (holder && *holder == (u64)sk)
		bpf_map_delete_elem(&tuples, &flow->tuple);
	if (flow->late)
		__sync_fetch_and_add(&late_tuples, -1);
}

/* WIRE_END, and nothing of the flow is left. Whatever was accepted and not seen shows here. */
static __noinline int flow_end(struct flow *flow, struct sock *sk)
{
	struct wire_event *event;

	if (!flow)
		return 0;
	flow_account_gap(flow, flow->written, WIRE_CAUSE_MISSED);
	flow_leave_tuples(flow, sk);
	event = flow_reserve(flow, WIRE_END);
	if (event) {
		flow_describe(flow, event);
		flow_position(flow, event);
		lifecycle_submit(event, BPF_RB_NO_WAKEUP);
	}
	return 0;
}

#endif
