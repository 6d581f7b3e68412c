/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One send from its start to its end: each byte that the kernel accepted, once.
 *
 * Start: tcp_sendmsg_locked, with the socket lock held, so write_seq says
 * where the bytes will go. The tracepoint of that name fires once per pass of
 * the copy loop, the kprobe once per call. End: sock_send_length, after the
 * lock was given back, in the same thread, or the return of
 * tcp_sendmsg_locked; either says what was accepted, and the memory is copied
 * only then, or when much of it is known to be.
 *
 * A send that waits for memory gives the lock away, and another thread may
 * write to the socket meanwhile. Then the bytes so far are emitted, and the
 * rest has another place: the next pass tells it, or, for the kprobe, the
 * return of the function that waits.
 *
 * Whatever write_seq says beyond the calls that we saw becomes a hole.
 */
#ifndef NIGHTCLERK_CALL_BPF_H
#define NIGHTCLERK_CALL_BPF_H

#include "payload.bpf.h"

#define CALL_EMIT_BYTES (1U << 20) /* so much of a long send is not held back until its end */
#define MSG_OOB 1
#define MSG_FASTOPEN 0x20000000

static const struct call empty_call;

/* ---- the iterator, in all its layouts ---- */

static __always_inline u32 position_kind(struct iov_iter *iter, const bool direct)
{
	struct iov_iter___before_5_14 *old = (void *)iter;
	u32 type;

	if (bpf_core_field_exists(old->type))
		type = BPF_CORE_READ(old, type) & ~1U;
	else
		type = PEEK(direct, iter, iter_type);
	if (bpf_core_enum_value_exists(enum iter_type, ITER_UBUF) &&
	    type == bpf_core_enum_value(enum iter_type, ITER_UBUF))
		return CALL_UBUF;
	if (type == bpf_core_enum_value(enum iter_type, ITER_IOVEC))
		return CALL_IOVEC;
	return type == bpf_core_enum_value(enum iter_type, ITER_BVEC) ? CALL_BVEC : CALL_OTHER;
}

/*
 * May the pages of a send be read at its end? kTLS and sockmaps send pages of
 * their own, which are gone by then; either, and whoever else in the kernel
 * uses a socket, leaves a mark on it.
 */
static __always_inline bool pages_stay(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	return pages_known() && !BPF_CORE_READ(sk, sk_user_data) &&
	       !BPF_CORE_READ(tp, inet_conn.icsk_ulp_ops);
}

static __always_inline void position_read(struct msghdr *message, struct sock *sk,
					  struct position *ret_position, const bool direct)
{
	struct iov_iter *iter = (void *)message + bpf_core_field_offset(struct msghdr, msg_iter);
	struct iov_iter___since_6_4 *new = (void *)iter;

	__builtin_memset(ret_position, 0, sizeof(*ret_position));
	ret_position->kind = position_kind(iter, direct);
	if (ret_position->kind == CALL_BVEC && !pages_stay(sk))
		ret_position->kind = CALL_OTHER;
	ret_position->offset = PEEK(direct, iter, iov_offset);
	ret_position->count = PEEK(direct, iter, count);
	if (bpf_core_field_exists(iter->ubuf) && ret_position->kind == CALL_UBUF) {
		ret_position->base = (u64)PEEK(direct, iter, ubuf);
		return;
	}
	ret_position->segments = PEEK(direct, iter, nr_segs);
	if (bpf_core_field_exists(new->__iov))
		ret_position->base = (u64)PEEK(direct, new, __iov);
	else
		ret_position->base = (u64)BPF_CORE_READ(iter, iov);
}

/*
 * Can `now` be what became of `then` in the same call? If not, the end of a
 * former call was missed, and its numbers must not be used: count - now.count
 * would underflow and flush megabytes of foreign memory.
 */
static __always_inline bool position_follows(const struct position *then,
					     const struct position *now)
{
	if (now->kind != then->kind || now->count > then->count)
		return false;
	if (now->kind == CALL_UBUF)
		return now->base == then->base &&
		       now->offset == then->offset + (then->count - now->count);
	if (now->kind == CALL_IOVEC || now->kind == CALL_BVEC)
		return now->base >= then->base && now->segments <= then->segments &&
		       now->base - then->base ==
			       (then->segments - now->segments) * sizeof(struct iovec);
	return true;
}

/* ---- start ---- */

static __always_inline void call_begin(struct call *call, struct sock *sk, u32 tgid, const bool direct)
{
	u64 process_start_ns = call->event.process_start_ns;
	u32 ns_tgid = call->event.ns_tgid;

	__builtin_memset(&call->event, 0, sizeof(call->event));
	call->event.process_start_ns = process_start_ns;
	call->event.tgid = tgid;
	call->event.ns_tgid = ns_tgid;
	call->event.version = WIRE_EVENT_VERSION;
	call->event.kind = WIRE_DATA;
	call->event.flags = scope_flags((struct task_struct *)bpf_get_current_task(), tgid, sk);
	call->event.start_ns = bpf_ktime_get_ns();
	current_identity(&call->event, direct);
	call->done = 0;
	call->hole_length = 0;
	call->asleep = 0;
}

/* Where the next byte goes, and what had been received by now. */
static __always_inline void call_anchor(struct call *call, struct flow *flow, struct sock *sk,
					const bool direct)
{
	call->seq = PEEK(direct, (struct tcp_sock *)sk, write_seq);
	call->placed = flow->stage >= FLOW_OPEN;
	call->offset = flow->written;
	call->event.received_bytes = flow->received;
	call->event.read_bytes = flow->read;
}

/* Where the end of a call was missed: what it wrote shows as a gap at the next start. */
static __noinline int call_drop(struct call *call)
{
	struct flow *flow;

	if (!call || !call->sk)
		return 0;
	/* kTLS and sockmap call several times in one send; without a flow it never connected */
	if (call->at.kind != CALL_OTHER && call->flow)
		counter_add(WIRE_COUNTER_STALE_CALLS, 1);
	flow = bpf_map_lookup_elem(&flows, &call->sk);
	call->sk = 0;
	if (flow && flow->id == call->flow && flow->calls)
		__sync_fetch_and_add(&flow->calls, -1);
	return 0;
}

/* Not of an urgent send: its last byte, which is not of the stream, is known at its end. */
static __always_inline bool call_is_long(const struct call *call, u64 used)
{
	return used >= CALL_EMIT_BYTES && !(call->message_flags & MSG_OOB);
}

/* Another pass of the same call: little to do, unless somebody else wrote while it slept. */
static __always_inline void call_continue(struct call *call, struct flow *flow, struct sock *sk,
					  const struct position *now, const bool direct)
{
	u64 used = call->at.count - now->count;
	u32 moved = PEEK(direct, (struct tcp_sock *)sk, write_seq) - call->seq;

	if (used == moved && !call_is_long(call, used))
		return;
	if (used > moved)
		used = moved;
	if (used)
		call_emit(call, flow, used, 0);
	call->at = *now;
	call_anchor(call, flow, sk, direct);
}

static __always_inline struct call *call_new(u64 id)
{
	if (bpf_map_update_elem(&calls, &id, &empty_call, BPF_ANY)) {
		counter_add(WIRE_COUNTER_NO_CALL, 1);
		return NULL;
	}
	return bpf_map_lookup_elem(&calls, &id);
}

/* A send may also be what connects the socket (MSG_FASTOPEN): then there is no stream yet. */
static __always_inline bool sock_can_send(struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	return state == WIRE_TCP_ESTABLISHED || state == WIRE_TCP_CLOSE_WAIT ||
	       state == WIRE_TCP_SYN_RECV;
}

/* The flow that a send belongs to, or NULL when it is none of our business. */
static __always_inline struct flow *call_flow(struct sock *sk, u32 tgid)
{
	struct flow *flow = flow_find(sk);
	u16 flags;

	if (!flow) {
		flags = scope_flags((struct task_struct *)bpf_get_current_task(), tgid, sk);
		if (!flags && !late_tuples)
			return NULL;
		return sock_can_send(sk) ? flow_join(sk, flags) : NULL;
	}
	if (flow->stage == FLOW_LISTENING)
		return NULL;
	if (flow->stage == FLOW_CONNECTING &&
	    BPF_CORE_READ(sk, __sk_common.skc_state) == WIRE_TCP_ESTABLISHED) {
		sock_tuple(sk, &flow->tuple); /* the event that says so was missed */
		flow_open(flow, sk);
	}
	return flow;
}

/* The current thread's entry, if it has one, for a send that begins. */
static __always_inline struct call *call_enter(struct call *call, struct sock *sk, u32 message_flags, u64 id,
						const bool direct)
{
	if (call)
		call_drop(call);
	else
		call = call_new(id);
	if (!call)
		return NULL;
	call->sk = (u64)sk;
	call->flow = 0;
	call->message_flags = message_flags;
	call->placed = 0;
	call_begin(call, sk, id >> 32, direct);
	return call;
}

static __always_inline void call_of_flow(struct call *call, struct flow *flow)
{
	call->flow = flow->id;
	__sync_fetch_and_add(&flow->calls, 1);
}

/* The flow that the current thread sends in, brought up to date. NULL: nothing to note. */
static __always_inline struct flow *call_prepare(struct sock *sk, u64 id, const bool direct)
{
	struct flow *flow;

	if (id >> 32 == own_tgid || !netns_fits(sk, direct))
		return NULL;
	flow = call_flow(sk, id >> 32);
	if (!flow)
		return NULL;
	flow_sync(flow, (struct tcp_sock *)sk, direct);
	if (!flow_is_muted(flow))
		return flow;
	flow_find_gap(flow, flow->written, WIRE_CAUSE_MUTED);
	return NULL;
}

/* call: the current thread's, or NULL */
static __always_inline void call_start_at(struct call *call, struct flow *flow, struct sock *sk, u64 id,
					  u32 message_flags, const struct position *now, const bool direct)
{
	call = call_enter(call, sk, message_flags, id, direct);
	if (!call)
		return;
	if (flow->stage >= FLOW_OPEN)
		flow_find_gap(flow, flow->written, WIRE_CAUSE_MISSED);
	flow->flags |= transport_flags(sk, direct);
	call_of_flow(call, flow);
	call->at = *now;
	call_anchor(call, flow, sk, direct);
}

/* kprobe door: a send that will connect its socket first. on_connect() makes its flow. */
static __always_inline void call_start_connecting(struct sock *sk, struct msghdr *message, u64 id)
{
	u32 flags = BPF_CORE_READ(message, msg_flags);
	struct call *call;

	if (!(flags & MSG_FASTOPEN) || flow_find(sk) || !netns_fits(sk, false) ||
	    !scope_flags((struct task_struct *)bpf_get_current_task(), id >> 32, sk))
		return;
	call = call_enter(bpf_map_lookup_elem(&calls, &id), sk, flags, id, false);
	if (call)
		position_read(message, sk, &call->at, false);
}

/* of_tracepoint: that door also reports every further pass of a call's copy loop, and may look directly. */
static __always_inline void call_start(struct sock *sk, struct msghdr *message, const bool of_tracepoint)
{
	u64 id = bpf_get_current_pid_tgid();
	struct flow *flow = call_prepare(sk, id, of_tracepoint);
	struct position now;
	struct call *call;

	if (!flow) {
		if (!of_tracepoint)
			call_start_connecting(sk, message, id);
		return;
	}
	position_read(message, sk, &now, of_tracepoint);
	call = bpf_map_lookup_elem(&calls, &id);
	if (of_tracepoint && call && call->sk == (u64)sk && call->flow == flow->id &&
	    position_follows(&call->at, &now))
		call_continue(call, flow, sk, &now, of_tracepoint);
	else
		call_start_at(call, flow, sk, id, PEEK(of_tracepoint, message, msg_flags), &now, of_tracepoint);
}

/* sendfile and splice before 6.5: one page, or neighbours. */
static __always_inline void call_start_pages(struct sock *sk, u64 page, u32 offset, u64 size,
					     u32 message_flags)
{
	u64 id = bpf_get_current_pid_tgid();
	struct flow *flow = call_prepare(sk, id, false);
	struct position now = {.base = page, .offset = offset, .count = size};

	if (!flow)
		return;
	now.kind = pages_stay(sk) ? CALL_PAGES : CALL_OTHER;
	call_start_at(bpf_map_lookup_elem(&calls, &id), flow, sk, id, message_flags, &now, false);
}

/*
 * A call that began before its connection: the first byte of the stream is its
 * own, in the SYN or behind it, unless it waited, and another wrote. False while
 * there is no connection.
 */
static __always_inline bool call_place(struct call *call, const struct flow *flow)
{
	if (call->placed)
		return true;
	if (flow->stage < FLOW_OPEN)
		return false;
	call->placed = 1;
	call->offset = 0;
	call->seq = flow->send_base_seq;
	return true;
}

/* ---- in between: kprobe door ---- */

/* The thread is about to give the socket lock away, until there is memory or a connection. */
static __always_inline void call_sleep(struct sock *sk)
{
	u64 id = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &id);
	struct flow *flow;

	if (!call || call->sk != (u64)sk)
		return;
	flow = flow_find(sk);
	if (flow)
		call_place(call, flow);
	call->slept_at = BPF_CORE_READ((struct tcp_sock *)sk, write_seq);
	call->asleep = 1;
}

/* It has the lock again. A return knows no socket: the start does. */
static __always_inline void call_wake(void)
{
	u64 id = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &id);
	struct flow *flow;
	struct sock *sk;
	u32 used;

	if (!call || !call->sk || !call->asleep)
		return;
	call->asleep = 0;
	sk = (struct sock *)call->sk;
	flow = flow_find(sk);
	if (!flow || flow->id != call->flow || flow->stage != FLOW_OPEN)
		return;
	flow_sync(flow, (struct tcp_sock *)sk, false);
	used = call->placed ? call->slept_at - call->seq : 0;
	if (call->placed && flow->write_seq == call->slept_at && !call_is_long(call, used))
		return;
	if (used)
		call_emit(call, flow, used, 0);
	call_anchor(call, flow, sk, false);
}

/* ---- end ---- */

/* Accepted, and no start was seen: data in a SYN, or a start that was missed. */
static __always_inline void call_end_unseen(struct flow *flow, struct sock *sk)
{
	u64 written;

	if (flow->stage == FLOW_LISTENING)
		return;
	counter_add(WIRE_COUNTER_CALLS, 1);
	if (flow->muted)
		return; /* the next start or flow_end() counts its bytes */
	if (flow->stage != FLOW_OPEN)
		return; /* flow_open() or flow_end() finds its length */
	/* in this order a send that starts meanwhile can only make the gap smaller */
	written = flow->written +
		  (u32)(BPF_CORE_READ((struct tcp_sock *)sk, write_seq) - flow->write_seq);
	barrier();
	flow_find_gap(flow, written, WIRE_CAUSE_MISSED);
}

static __always_inline void call_account(struct call *call, struct flow *flow, struct sock *sk,
					 u64 accepted, const bool direct)
{
	u64 rest = accepted > call->done ? accepted - call->done : 0;
	u64 urgent;
	u32 moved;

	counter_add(WIRE_COUNTER_CALLS, 1);
	if (!call_place(call, flow))
		return; /* flow_open() finds its length */
	moved = PEEK(direct, (struct tcp_sock *)sk, write_seq) - call->seq;
	if (rest > moved) /* kTLS, sockmap: several starts, one end */
		rest = moved;
	urgent = rest && (call->message_flags & MSG_OOB);
	if (rest)
		call_emit(call, flow, rest, urgent);
}

/*
 * Of every socket of the machine, whatever its protocol: only a TCP socket that
 * is followed is in the flow table. No test of ports or state: a RST that
 * arrived inside the send has already cleared them.
 */
static __always_inline void call_end(struct sock *sk, int accepted, const bool direct)
{
	u64 id = bpf_get_current_pid_tgid(), key = (u64)sk;
	struct flow *flow = flow_find(sk);
	struct call *call;

	if (!flow)
		return;
	call = bpf_map_lookup_elem(&calls, &id);
	if (!call || call->sk != key) {
		if (accepted > 0)
			call_end_unseen(flow, sk);
		return;
	}
	if (accepted > 0)
		call_account(call, flow, sk, accepted, direct);
	call->sk = 0;
	if (call->flow == flow->id && flow->calls)
		__sync_fetch_and_add(&flow->calls, -1);
}

/* A return knows no socket: the start does. Where none was seen, the bytes show as a gap. */
static __always_inline void call_return(int accepted)
{
	u64 id = bpf_get_current_pid_tgid();
	struct call *call = bpf_map_lookup_elem(&calls, &id);

	if (call && call->sk)
		call_end((struct sock *)call->sk, accepted, false);
}

#endif
