/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is this task.
 */
#ifndef NIGHTCLERK_IDENTITY_BPF_H
#define NIGHTCLERK_IDENTITY_BPF_H

#include "ring.bpf.h"

static __always_inline struct upid *pid_number(struct pid *pid, u32 level)
{
	return (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	       level * bpf_core_type_size(struct upid);
}

static __always_inline u32 task_ns_tgid(struct task_struct *leader)
{
	struct pid *pid = BPF_CORE_READ(leader, thread_pid);
	struct upid *upid = pid_number(pid, BPF_CORE_READ(pid, level));

	return BPF_CORE_READ(upid, nr);
}

/* All but the cgroup; works for any task. The event may be one that was the same process's. */
static __always_inline void task_identity(struct task_struct *task, struct wire_event *event, const bool direct)
{
	struct task_struct *leader = PEEK(direct, task, group_leader);
	const struct cred *cred = PEEK(direct, task, cred);
	u64 start_ns = PEEK(direct, leader, start_boottime);
	u32 tgid = PEEK(direct, task, tgid);

	if (event->tgid != tgid || event->process_start_ns != start_ns || !event->ns_tgid)
		event->ns_tgid = task_ns_tgid(leader);
	event->tgid = tgid;
	event->tid = PEEK(direct, task, pid);
	event->uid = PEEK(direct, cred, uid.val);
	event->process_start_ns = start_ns;
	BPF_CORE_READ_INTO(&event->comm, leader, comm);
}

static __always_inline void current_identity(struct wire_event *event, const bool direct)
{
	task_identity((struct task_struct *)bpf_get_current_task(), event, direct);
	event->cgroup_id = bpf_get_current_cgroup_id();
}

#endif
