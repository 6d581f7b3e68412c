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

/* All but the cgroup; works for any task. */
static __always_inline void task_identity(struct task_struct *task, struct wire_event *event)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);

	event->tgid = BPF_CORE_READ(task, tgid);
	event->tid = BPF_CORE_READ(task, pid);
	event->uid = BPF_CORE_READ(task, cred, uid.val);
	event->ns_tgid = task_ns_tgid(leader);
	event->process_start_ns = BPF_CORE_READ(leader, start_boottime);
	BPF_CORE_READ_INTO(&event->comm, leader, comm);
}

static __always_inline void current_identity(struct wire_event *event)
{
	task_identity((struct task_struct *)bpf_get_current_task(), event);
	event->cgroup_id = bpf_get_current_cgroup_id();
}

#endif
