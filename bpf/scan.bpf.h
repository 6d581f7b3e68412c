/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the loader asks once and no event tells: iterators over tasks and
 * open files, and a pass over the flow table.
 */
#ifndef NIGHTCLERK_SCAN_BPF_H
#define NIGHTCLERK_SCAN_BPF_H

#include "lifecycle.bpf.h"

#define S_IFMT 0170000
#define S_IFSOCK 0140000
#define PID_LEVELS_MAX 32 /* MAX_PID_NS_LEVEL in kernel/pid_namespace.c */

/* A process has one number in each pid namespace around it. */
static __always_inline bool task_is(struct task_struct *task, u32 number, u32 namespace)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	u32 level = BPF_CORE_READ(pid, level);

	if (BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid))
		return false;
	for (u32 i = 0; i <= PID_LEVELS_MAX && i <= level; i++) {
		struct upid *upid = pid_number(pid, i);

		if ((u32)BPF_CORE_READ(upid, nr) == number &&
		    BPF_CORE_READ(upid, ns, ns.inum) == namespace)
			return true;
	}
	return false;
}

/*
 * The socket of an open file, without bpf_sock_from_file() of 5.11. A path that
 * was opened with O_PATH has a socket's inode, too, and no private_data.
 */
static __always_inline struct sock *file_sock(struct file *file)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);

	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK || !socket)
		return NULL;
	return BPF_CORE_READ(socket, file) == file ? BPF_CORE_READ(socket, sk) : NULL;
}

static __always_inline void on_old_port(struct sock_common *common)
{
	struct listener_key key = {};
	u8 there = 1;

	if (BPF_CORE_READ(common, skc_state) != WIRE_TCP_LISTEN)
		return;
	key.netns = BPF_CORE_READ(common, skc_net.net, ns.inum);
	key.port = BPF_CORE_READ(common, skc_num);
	if (bpf_map_update_elem(&old_ports, &key, &there, BPF_ANY))
		counter_add(WIRE_COUNTER_NO_FLOW, 1);
}

/* A socket of the scope that is older than the probe. */
static __always_inline void on_open_sock(struct task_struct *task, struct sock *sk)
{
	u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	u16 flags;

	if (BPF_CORE_READ(sk, sk_protocol) != IPPROTO_TCP || !netns_fits(sk, false) || flow_find(sk))
		return;
	if (state != WIRE_TCP_LISTEN && state != WIRE_TCP_ESTABLISHED && state != WIRE_TCP_CLOSE_WAIT)
		return;
	flags = scope_flags(task, BPF_CORE_READ(task, tgid), sk);
	if (!flags)
		return;
	if (state == WIRE_TCP_LISTEN)
		on_listen(sk, flags);
	else
		flow_expect(sk, flags);
}

/*
 * Nobody holds the lock: the pair (written, write_seq) is taken as it stands
 * when both of its halves belong together. Position first, then the calls on
 * their way, then what is accounted for: a send that starts meanwhile can only
 * make the gap smaller.
 */
static __always_inline void flow_refresh(struct tcp_sock *tp)
{
	struct flow *flow = flow_find(tp);
	u32 write_seq;
	u64 written;

	if (!flow || flow->stage < FLOW_OPEN)
		return;
	write_seq = *(volatile u32 *)&flow->write_seq;
	written = *(volatile u64 *)&flow->written;
	if (flow->stage == FLOW_OPEN)
		written += (u32)(BPF_CORE_READ(tp, write_seq) - write_seq);
	if (*(volatile u32 *)&flow->write_seq != write_seq)
		return; /* it moves: then it is in use, and its calls tell */
	flow_is_muted(flow);
	flow->tail = written;
	flow_find_gap(flow, written, WIRE_CAUSE_MISSED);
}

#endif
