/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whose is a socket: the process's that connects it, where we see that, or what
 * the socket itself remembers: who made it. A socket that was accepted has its
 * listener's (kernel/cgroup/cgroup.c cgroup_sk_clone, net/core/sock.c sk_clone_lock).
 */
#ifndef NIGHTCLERK_OWNER_BPF_H
#define NIGHTCLERK_OWNER_BPF_H

#include "identity.bpf.h"
#include "flow_table.h"

#define SOCK_CGROUP_DATA_OTHER 3ULL /* is_data, no_refcnt: include/linux/cgroup-defs.h before 5.15 */

/* 0 = it cannot be told: the kernel keeps none, or net_cls or net_prio took its place. */
static __always_inline u64 sock_cgroup_id(struct sock *sk)
{
	struct cgroup *cgroup;
	u64 value;

	if (!bpf_core_field_exists(sk->sk_cgrp_data))
		return 0;
	if (bpf_core_field_exists(struct sock_cgroup_data, cgroup)) {
		cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	} else {
		struct sock_cgroup_data___before_5_15 *old =
			(void *)sk + bpf_core_field_offset(struct sock, sk_cgrp_data);

		value = BPF_CORE_READ(old, val);
		cgroup = value & SOCK_CGROUP_DATA_OTHER ? NULL : (struct cgroup *)value;
	}
	return cgroup ? BPF_CORE_READ(cgroup, kn, id) : 0;
}

/* In the context of who connects. */
static __always_inline void flow_owner_is_current(struct flow *flow)
{
	flow->owner_cgroup = bpf_get_current_cgroup_id();
	flow->owner_uid = BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), cred, uid.val);
	flow->owned = 1;
}

/* In any context; a flow that has an owner keeps it. */
static __always_inline void flow_owner_of_sock(struct flow *flow, struct sock *sk)
{
	if (flow->owned)
		return;
	flow->owner_cgroup = sock_cgroup_id(sk);
	flow->owner_uid = BPF_CORE_READ(sk, sk_uid.val);
	flow->owned = 1;
}

#endif
