/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Is this network namespace, this task, this socket in scope; is this socket
 * on loopback.
 */
#ifndef NIGHTCLERK_SCOPE_BPF_H
#define NIGHTCLERK_SCOPE_BPF_H

#include "address.bpf.h"
#include "identity.bpf.h"
#include "tables.bpf.h"

#define AF_INET 2
#define IPPROTO_TCP 6
#define IFF_LOOPBACK 0x8
#define CGROUP_DEPTH_MAX 16

static __always_inline u32 sock_netns(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
}

static __always_inline bool netns_fits(struct sock *sk, const bool direct)
{
	struct net *net;

	if (scope_host_wide)
		return true;
	net = PEEK(direct, sk, __sk_common.skc_net.net);
	return PEEK(direct, net, ns.inum) == scope_netns;
}

static __always_inline bool in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);

	for (int depth = 0; depth < CGROUP_DEPTH_MAX && cgroup; depth++) {
		if (BPF_CORE_READ(cgroup, kn, id) == scope_cgroup)
			return true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
}

/* The process's name is its first thread's: worker threads often have their own. */
static __always_inline bool has_comm(struct task_struct *task)
{
	char comm[WIRE_COMM_BYTES] = {};

	BPF_CORE_READ_INTO(&comm, task, group_leader, comm);
	for (int i = 0; i < WIRE_COMM_BYTES; i++) {
		if (comm[i] != scope_comm[i])
			return false;
		if (!comm[i])
			break;
	}
	return true;
}

static __always_inline bool has_port(struct sock *sk)
{
	return sk && (BPF_CORE_READ(sk, __sk_common.skc_num) == scope_port ||
		      bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport)) == scope_port);
}

static __always_inline bool is_canary(u32 tgid)
{
	return canary_tgids[0] && (tgid == canary_tgids[0] || tgid == canary_tgids[1]);
}

/* The part of the scope that asks for a process. */
static __always_inline bool task_fits(struct task_struct *task, u32 tgid)
{
	switch (scope_mode) {
	case SCOPE_TREE:
	case SCOPE_PID:
		return bpf_map_lookup_elem(&tree, &tgid) != NULL;
	case SCOPE_CGROUP:
		return in_cgroup(task);
	case SCOPE_UID:
		return BPF_CORE_READ(task, cred, uid.val) == scope_uid;
	case SCOPE_COMM:
		return has_comm(task);
	case SCOPE_ALL:
		return true;
	default:
		return false;
	}
}

/*
 * 0 = out of scope, else WIRE_IN_TREE and perhaps WIRE_CANARY. The task acts
 * on sk at this moment; never ask for the current task of a softirq.
 */
static __always_inline u16 scope_flags(struct task_struct *task, u32 tgid, struct sock *sk)
{
	if (tgid == own_tgid)
		return 0;
	if (is_canary(tgid))
		return WIRE_IN_TREE | WIRE_CANARY;
	if (scope_mode == SCOPE_PORT)
		return has_port(sk) ? WIRE_IN_TREE : 0;
	return task_fits(task, tgid) ? WIRE_IN_TREE : 0;
}

/* Scopes that do not ask who it is: the socket alone decides. */
static __always_inline u16 scope_of_sock(struct sock *sk)
{
	if (scope_mode == SCOPE_ALL)
		return WIRE_IN_TREE;
	return scope_mode == SCOPE_PORT && has_port(sk) ? WIRE_IN_TREE : 0;
}

/* ---- addresses ---- */

static __always_inline void sock_tuple(struct sock *sk, struct tuple *tuple)
{
	__builtin_memset(tuple, 0, sizeof(*tuple));
	tuple->netns = sock_netns(sk);
	tuple->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	tuple->remote_port = bpf_ntohs(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		address_map_ipv4(tuple->local_address,
				 BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr));
		address_map_ipv4(tuple->remote_address, BPF_CORE_READ(sk, __sk_common.skc_daddr));
	} else {
		BPF_CORE_READ_INTO(&tuple->local_address, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&tuple->remote_address, sk, __sk_common.skc_v6_daddr);
	}
}

static __always_inline void tuple_reverse(const struct tuple *tuple, struct tuple *reverse)
{
	reverse->netns = tuple->netns;
	reverse->local_port = tuple->remote_port;
	reverse->remote_port = tuple->local_port;
	__builtin_memcpy(reverse->local_address, tuple->remote_address, WIRE_ADDRESS_BYTES);
	__builtin_memcpy(reverse->remote_address, tuple->local_address, WIRE_ADDRESS_BYTES);
}

static __always_inline bool tuple_is_loopback(const struct tuple *tuple)
{
	const u64 *local = (const u64 *)tuple->local_address;
	const u64 *remote = (const u64 *)tuple->remote_address;

	return address_is_loopback(tuple->remote_address) ||
	       address_is_loopback(tuple->local_address) ||
	       (local[0] == remote[0] && local[1] == remote[1]);
}

/* Any address of this machine is routed over lo, not only the socket's own: the route says so. */
static __always_inline bool sock_is_loopback(struct sock *sk, const struct tuple *tuple)
{
	return tuple_is_loopback(tuple) ||
	       (BPF_CORE_READ(sk, sk_dst_cache, dev, flags) & IFF_LOOPBACK);
}

#endif
