/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Three copies of each program that a softirq may need while a process is in it.
 *
 * The kernel does not enter a program that already runs on this CPU: it counts
 * a recursion miss and goes on (kernel/trace/bpf_trace.c __bpf_trace_run, 6.18;
 * for classic tracepoints, trace_call_bpf, any program at all keeps it out). A
 * connection that changes its state in a process is interrupted by the softirq
 * that changes another's, and that second change would be lost.
 *
 * So the work is divided by who holds the socket (sk_lock.owned):
 *
 *   first    acts where a process holds it. Such an event never comes from a
 *            softirq, which puts its packet on the backlog instead.
 *   softirq  acts where nobody does: bottom halves are off then, so such events
 *            do not interrupt each other.
 *   spare    acts where the second could not, because it was just looking at a
 *            process's event when the softirq came.
 *
 * They are attached in this order. A miss that another copy made good is
 * counted, and taken off the kernel's count (user/capture_tables.c); what
 * remains was lost. Where programs are preempted, the second also misses events
 * that were the first's: as many as only the first has seen.
 */
#ifndef NIGHTCLERK_COPIES_BPF_H
#define NIGHTCLERK_COPIES_BPF_H

#include "tables.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, COPIES_COUNT);
	__type(key, u32);
	__type(value, struct copies_seen);
} copies SEC(".maps");

/* TIME_WAIT and request sockets are no full sockets: nobody can hold them. */
static __always_inline bool sock_is_held(const struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	if (state == WIRE_TCP_TIME_WAIT || state > WIRE_TCP_CLOSING)
		return false;
	return BPF_CORE_READ(sk, sk_lock.owned) != 0;
}

static __always_inline struct copies_seen *copies_seen(u32 copies_of)
{
	return bpf_map_lookup_elem(&copies, &copies_of);
}

/* Does the first copy act? */
static __always_inline bool copy_for_held(const struct sock *sk, u32 copies_of, u8 detail)
{
	struct copies_seen *seen = copies_seen(copies_of);
	bool held = sock_is_held(sk);

	if (seen && held) {
		if (copies_attached)
			__sync_fetch_and_add(&seen->held_first, 1);
	} else if (seen) {
		seen->first = (u64)sk;
		seen->first_detail = detail;
	}
	return held;
}

/* The first copy was busy with another event, and had no part in this one. */
static __always_inline void copies_excuse_first(struct copies_seen *seen, const struct sock *sk, u8 detail)
{
	if (seen->first != (u64)sk || seen->first_detail != detail)
		counter_add(WIRE_COUNTER_HARMLESS_MISSES, 1);
	seen->first = 0;
}

/* Does the second? */
static __always_inline bool copy_for_softirq(const struct sock *sk, u32 copies_of, u8 detail)
{
	struct copies_seen *seen = copies_seen(copies_of);

	if (sock_is_held(sk)) {
		if (seen && copies_attached)
			__sync_fetch_and_add(&seen->held_softirq, 1);
		return false;
	}
	if (!seen)
		return true;
	copies_excuse_first(seen, sk, detail);
	seen->softirq = (u64)sk;
	seen->softirq_detail = detail;
	return true;
}

/* Does the third? */
static __always_inline bool copy_to_spare(const struct sock *sk, u32 copies_of, u8 detail)
{
	struct copies_seen *seen;

	if (sock_is_held(sk))
		return false;
	seen = copies_seen(copies_of);
	if (!seen)
		return false;
	if (seen->softirq == (u64)sk && seen->softirq_detail == detail) {
		seen->softirq = 0;
		return false;
	}
	counter_add(WIRE_COUNTER_HARMLESS_MISSES, 1);
	copies_excuse_first(seen, sk, detail);
	return true;
}

#endif
