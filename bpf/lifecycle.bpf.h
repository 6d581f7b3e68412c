/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Connections and processes that come and go.
 *
 * State events run in whatever context moved the socket, most often a softirq
 * that interrupted a stranger: only a step into SYN_SENT or LISTEN is made by
 * the process that asked for it.
 */
#ifndef NIGHTCLERK_LIFECYCLE_BPF_H
#define NIGHTCLERK_LIFECYCLE_BPF_H

#include "call.bpf.h"

#define LISTENER_TRIES 4
#define E2BIG 7 /* a hash table is full */

/* ---- connections ---- */

static __noinline int say_connect(const struct tuple *tuple, u16 flags)
{
	struct wire_event *event;

	if (!tuple)
		return 0;
	event = lifecycle_reserve(WIRE_CONNECT);
	if (!event)
		return 0;
	current_identity(event, false);
	event->flags = flags;
	event->netns = tuple->netns;
	event->local_port = tuple->local_port;
	event->remote_port = tuple->remote_port;
	__builtin_memcpy(event->local_address, tuple->local_address, WIRE_ADDRESS_BYTES);
	__builtin_memcpy(event->remote_address, tuple->remote_address, WIRE_ADDRESS_BYTES);
	event->old_state = WIRE_TCP_CLOSE;
	event->new_state = WIRE_TCP_SYN_SENT;
	lifecycle_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline u16 current_scope(struct sock *sk)
{
	u32 tgid = bpf_get_current_pid_tgid() >> 32;

	return scope_flags((struct task_struct *)bpf_get_current_task(), tgid, sk);
}

/* The socket has another life before it: connect(AF_UNSPEC) ended that. Nothing of it stays in the table. */
static __always_inline void flow_leave(struct flow *flow, struct sock *sk)
{
	u64 key = (u64)sk;

	if (!flow)
		return;
	if (flow->stage >= FLOW_OPEN)
		flow_end(flow, sk);
	else if (flow->late)
		flow_leave_tuples(flow, sk);
	share_release_flow(flow);
	bpf_map_delete_elem(&flows, &key);
}

/* For IPv4 the route is not stored yet: this decides by address, and ESTABLISHED looks again. */
static __always_inline void on_connect(struct sock *sk)
{
	u16 flags = current_scope(sk);
	struct flow *flow = flow_find(sk);
	u64 id = bpf_get_current_pid_tgid();
	struct tuple tuple;
	struct call *call;

	flow_leave(flow, sk);
	if (!flags || !share_admits_current(flags))
		return;
	flags |= WIRE_CLIENT;
	sock_tuple(sk, &tuple);
	if (!tuple_is_loopback(&tuple))
		say_connect(&tuple, flags);
	flow = flow_new(sk, &tuple, flags, FLOW_CONNECTING);
	if (flow) {
		flow_owner_is_current(flow);
		share_charge_owner(flow);
	}
	call = bpf_map_lookup_elem(&calls, &id);
	if (flow && call && call->sk == (u64)sk && !call->flow)
		call_of_flow(call, flow); /* a send connects it: call_start_connecting() */
}

/*
 * In a network namespace that is not looked into. Where the scope is processes
 * that were named, one may have made it, or entered it: then what it does there
 * is not passed over. A uid or a name means those of the loader's namespace only.
 */
static __always_inline void on_connect_elsewhere(struct sock *sk)
{
	struct tuple tuple;
	u16 flags;

	if (scope_mode != SCOPE_TREE && scope_mode != SCOPE_PID && scope_mode != SCOPE_CGROUP)
		return;
	flags = current_scope(sk);
	if (!flags)
		return;
	sock_tuple(sk, &tuple);
	say_connect(&tuple, flags | WIRE_CLIENT | (tuple_is_loopback(&tuple) ? WIRE_OTHER_NETNS : 0));
}

static __always_inline void listener_key(const struct tuple *tuple, struct listener_key *key)
{
	key->netns = tuple->netns;
	key->port = tuple->local_port;
	__builtin_memcpy(key->address, tuple->local_address, WIRE_ADDRESS_BYTES);
}

/*
 * Sockets may come and go in one place at once, and a count that is changed
 * cannot be read in the same step before 5.12. Who adds looks whether the entry
 * that was counted is still there; who removes, whether somebody counted in it
 * meanwhile.
 */
static __noinline int listener_add(const struct listener_key *key, u32 flags)
{
	struct listener fresh = {.count = 1, .flags = flags};

	if (!key)
		return 0;
	fresh.port = key->port;
	for (int i = 0; i < LISTENER_TRIES; i++) {
		struct listener *listener = bpf_map_lookup_elem(&listeners, key);

		if (!listener) {
			if (!bpf_map_update_elem(&listeners, key, &fresh, BPF_NOEXIST))
				return 0;
			continue;
		}
		__sync_fetch_and_add(&listener->count, 1);
		if (bpf_map_lookup_elem(&listeners, key) == listener)
			return 0;
	}
	counter_add(WIRE_COUNTER_NO_FLOW, 1); /* what it accepts will not be known */
	return 0;
}

static __noinline int listener_remove(const struct listener_key *key)
{
	struct listener *listener;
	struct listener late = {};

	if (!key)
		return 0;
	listener = bpf_map_lookup_elem(&listeners, key);
	if (!listener)
		return 0;
	__sync_fetch_and_add(&listener->count, -1);
	if (*(volatile u32 *)&listener->count)
		return 0;
	bpf_map_delete_elem(&listeners, key);
	late.count = *(volatile u32 *)&listener->count;
	late.flags = listener->flags;
	late.port = listener->port;
	if (late.count && late.port == key->port &&
	    bpf_map_update_elem(&listeners, key, &late, BPF_NOEXIST) == -E2BIG)
		counter_add(WIRE_COUNTER_NO_FLOW, 1);
	return 0;
}

static __always_inline void on_listen(struct sock *sk, u16 flags)
{
	struct listener_key key;
	struct tuple tuple;

	flow_leave(flow_find(sk), sk);
	sock_tuple(sk, &tuple);
	if (!flow_new(sk, &tuple, flags, FLOW_LISTENING))
		return;
	listener_key(&tuple, &key);
	listener_add(&key, flags & WIRE_CANARY);
}

static __always_inline void on_listen_end(struct flow *flow, struct sock *sk)
{
	struct listener_key key;
	u64 flow_key = (u64)sk;

	listener_key(&flow->tuple, &key);
	listener_remove(&key);
	bpf_map_delete_elem(&flows, &flow_key);
}

/*
 * A socket that the scope did not connect: one that it accepted, or the other
 * end of one of its own. 0 = neither.
 */
static __always_inline u16 stranger_flags(struct sock *sk, const struct tuple *tuple, u8 old_state)
{
	u16 role = old_state == WIRE_TCP_SYN_SENT ? WIRE_CLIENT : WIRE_SERVER;
	struct listener *listener;
	struct tuple reverse;
	struct flow *peer;
	u16 own = scope_of_sock(sk);

	listener = role == WIRE_SERVER
			   ? listener_at(tuple->netns, tuple->local_port, tuple->local_address)
			   : listener_at(tuple->netns, tuple->remote_port, tuple->remote_address);
	if (listener) /* also where the scope is everybody: whose canary it is says the one who listens */
		return own | role | listener->flags | (role == WIRE_SERVER ? WIRE_IN_TREE : 0);
	tuple_reverse(tuple, &reverse);
	peer = tuple_holder(&reverse);
	return own || peer ? own | role | (peer ? peer->flags & WIRE_CANARY : 0) : 0;
}

static __always_inline void on_established(struct sock *sk, u8 old_state)
{
	struct flow *flow = flow_find(sk);
	struct tuple tuple;
	u16 flags;

	if (flow && flow->stage >= FLOW_OPEN) {
		if (flow_is_of(flow, (struct tcp_sock *)sk)) /* fast open: it has sent already */
			return;
		flow_leave(flow, sk);
		flow = NULL;
	}
	if (flow && flow->stage != FLOW_CONNECTING)
		return;
	sock_tuple(sk, &tuple);
	if (!sock_is_loopback(sk, &tuple)) {
		flow_leave(flow, sk);
		return;
	}
	if (flow) {
		flow->tuple = tuple;
	} else {
		flags = stranger_flags(sk, &tuple, old_state);
		if (!flags)
			return;
		if (!share_admits_stranger(sk, &tuple, flags))
			return;
		flow = flow_new(sk, &tuple, flags, FLOW_CONNECTING);
	}
	if (flow)
		flow_open(flow, sk);
}

static __always_inline void say_state(struct flow *flow, struct sock *sk, u8 kind, u8 old_state,
				      u8 new_state)
{
	struct wire_event *event = flow_reserve(flow, kind);
	bool urgent = kind == WIRE_RESET || old_state == WIRE_TCP_ESTABLISHED;
	unsigned long dead = 1UL << bpf_core_enum_value(enum sock_flags, SOCK_DEAD);

	if (!event)
		return;
	flow_describe(flow, event);
	flow_position(flow, event);
	event->old_state = old_state;
	event->new_state = new_state;
	event->shutdown = BPF_CORE_READ(sk, sk_shutdown);
	event->flags |= transport_flags(sk, false);
	if (BPF_CORE_READ(sk, __sk_common.skc_flags) & dead)
		event->flags |= WIRE_ORPHANED;
	/* what ends a connection is waited for; the further steps of its end are not */
	lifecycle_submit(event, urgent ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline bool state_ends_sending(u8 state)
{
	return state == WIRE_TCP_FIN_WAIT1 || state == WIRE_TCP_LAST_ACK || state == WIRE_TCP_CLOSE;
}

/* Of an older connection: it did not send since then, but its peer did. */
static __always_inline void flow_open_expected(struct flow *flow, struct sock *sk)
{
	struct tuple reverse;

	if (!flow->late)
		return;
	tuple_reverse(&flow->tuple, &reverse);
	if (tuple_holder(&reverse))
		flow_open(flow, sk);
}

static __always_inline void on_change(struct sock *sk, u8 old_state, u8 new_state)
{
	struct flow *flow = flow_find(sk);

	if (flow && flow->stage == FLOW_CONNECTING && old_state == WIRE_TCP_ESTABLISHED)
		flow_open_expected(flow, sk);
	if (!flow || flow->stage < FLOW_OPEN)
		return;
	flow_sync(flow, (struct tcp_sock *)sk, false);
	flow_is_muted(flow);
	if (flow->stage == FLOW_OPEN && state_ends_sending(new_state)) {
		flow->stage =
			FLOW_SHUT; /* the FIN comes after this event, and takes one of write_seq */
		flow_find_gap(flow, flow->written, WIRE_CAUSE_MISSED);
	}
	say_state(flow, sk, WIRE_STATE, old_state, new_state);
	if (new_state == WIRE_TCP_CLOSE)
		flow->stage = FLOW_CLOSED;
}

static __always_inline void on_state(struct sock *sk, u8 old_state, u8 new_state)
{
	struct flow *flow;
	u16 flags;

	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP)
		return;
	if (!netns_fits(sk, false)) {
		if (new_state == WIRE_TCP_SYN_SENT)
			on_connect_elsewhere(sk);
		return;
	}
	if (new_state == WIRE_TCP_SYN_SENT) {
		on_connect(sk);
	} else if (new_state == WIRE_TCP_LISTEN) {
		flags = current_scope(sk);
		if (flags)
			on_listen(sk, flags);
	} else if (new_state == WIRE_TCP_ESTABLISHED) {
		on_established(sk, old_state);
	} else if (old_state == WIRE_TCP_LISTEN) {
		flow = flow_find(sk); /* none when this is a child, cloned from its listener */
		if (flow && flow->stage == FLOW_LISTENING)
			on_listen_end(flow, sk);
	} else {
		on_change(sk, old_state, new_state);
	}
}

/* A RST came. TIME_WAIT and request sockets are no full sockets: their fields are other fields. */
static __always_inline void on_reset(struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct flow *flow;

	if (state == WIRE_TCP_TIME_WAIT || state > WIRE_TCP_CLOSING)
		return;
	flow = flow_find(sk);
	if (!flow || flow->stage < FLOW_OPEN)
		return;
	flow_sync(flow, (struct tcp_sock *)sk, false);
	say_state(flow, sk, WIRE_RESET, state, state);
}

/*
 * What was read after the last state change still counts, unless the socket
 * was disconnected: that sets copied_seq to rcv_nxt, and moves write_seq far.
 */
static __always_inline void flow_sync_last(struct flow *flow, struct tcp_sock *tp)
{
	u32 moved = BPF_CORE_READ(tp, write_seq) - flow->write_seq;

	if (flow->stage == FLOW_OPEN)
		flow_sync(flow, tp, false);
	else if (moved <= 1)
		flow_sync_received(flow, tp, false);
}

static __always_inline void on_destroy(struct sock *sk)
{
	struct flow *flow = flow_find(sk);

	if (!flow)
		return;
	if (flow->stage == FLOW_LISTENING) {
		on_listen_end(flow, sk);
		return;
	}
	if (flow->stage >= FLOW_OPEN) {
		flow_sync_last(flow, (struct tcp_sock *)sk);
		flow_is_muted(flow);
	}
	flow_leave(flow, sk);
}

/* ---- processes ---- */

/* In the tree there is no question of namespaces: a child that leaves ours is still a child. */
static __always_inline bool process_fits(struct task_struct *task, u32 tgid)
{
	if (tgid == own_tgid)
		return false;
	if (scope_mode == SCOPE_TREE || scope_mode == SCOPE_PID)
		return task_fits(task, tgid);
	if (!scope_host_wide && BPF_CORE_READ(task, nsproxy, net_ns, ns.inum) != scope_netns)
		return false;
	return task_fits(task, tgid);
}

static __always_inline void say_process(struct task_struct *task, u8 kind, u32 parent_tgid)
{
	struct wire_event *event = lifecycle_reserve(kind);

	if (!event)
		return;
	task_identity(task, event, false);
	event->cgroup_id = bpf_get_current_cgroup_id(); /* a child starts in its parent's */
	event->parent_tgid = parent_tgid;
	event->flags = WIRE_IN_TREE;
	lifecycle_submit(event, BPF_RB_NO_WAKEUP);
}

static __always_inline void on_fork(struct task_struct *parent, struct task_struct *child)
{
	u32 tgid = BPF_CORE_READ(child, tgid), parent_tgid = BPF_CORE_READ(parent, tgid);
	struct tree_entry entry = {};

	if ((u32)BPF_CORE_READ(child, pid) != tgid) /* a thread */
		return;
	if (!process_fits(parent, parent_tgid))
		return;
	if (scope_mode == SCOPE_PID)
		return;
	if (scope_mode == SCOPE_TREE) {
		entry.ns_tgid = task_ns_tgid(child);
		entry.process_start_ns = BPF_CORE_READ(child, start_boottime);
		if (bpf_map_update_elem(&tree, &tgid, &entry, BPF_ANY))
			counter_add(WIRE_COUNTER_NO_FLOW, 1); /* nor what it does */
	}
	say_process(child, WIRE_FORK, parent_tgid);
}

static __always_inline void on_exec(struct task_struct *task)
{
	if (process_fits(task, BPF_CORE_READ(task, tgid)))
		say_process(task, WIRE_EXEC, 0);
}

/* Of every thread; the process is over with the last one, which may be any of them. */
static __always_inline void on_exit(struct task_struct *task)
{
	u32 tgid = BPF_CORE_READ(task, tgid);
	u64 id = (u64)tgid << 32 | (u32)BPF_CORE_READ(task, pid);
	struct call *call = bpf_map_lookup_elem(&calls, &id);

	if (call) {
		call_drop(call);
		bpf_map_delete_elem(&calls, &id);
	}
	if (BPF_CORE_READ(task, signal, live.counter) > 0 || !process_fits(task, tgid))
		return;
	/* two threads that end at once may both see zero */
	if ((scope_mode == SCOPE_TREE || scope_mode == SCOPE_PID) &&
	    bpf_map_delete_elem(&tree, &tgid))
		return;
	say_process(task, WIRE_EXIT, 0);
}

#endif
