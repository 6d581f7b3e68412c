/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Attach points only. Two doors lead to the same capture; the loader picks one
 * (user/capture.c) and loads only its programs:
 *
 * tracepoint: BTF tracepoints throughout. For kernels without kprobes.
 * kprobe:     a kprobe and classic tracepoints, which do not lose a call when
 *             the program is preempted by another thread that enters it.
 *
 * What a softirq may do comes in three copies, in this order: copies.bpf.h.
 */
#include "copies.bpf.h"
#include "scan.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* ---- door: tracepoint ---- */

SEC("tp_btf/tcp_sendmsg_locked")
int BPF_PROG(tracepoint_send_start, struct sock *sk, struct msghdr *message)
{
	call_start(sk, message, true);
	return 0;
}

SEC("tp_btf/sock_send_length")
int BPF_PROG(tracepoint_send_end, struct sock *sk, int accepted)
{
	call_end(sk, accepted, true);
	return 0;
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(tracepoint_state, struct sock *sk, int old_state, int new_state)
{
	if (copy_for_held(sk, COPIES_STATE, new_state))
		on_state(sk, old_state, new_state);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int BPF_PROG(tracepoint_reset, struct sock *sk)
{
	if (copy_for_held(sk, COPIES_RESET, 0))
		on_reset(sk);
	return 0;
}

SEC("tp_btf/tcp_destroy_sock")
int BPF_PROG(tracepoint_destroy, struct sock *sk)
{
	if (copy_for_held(sk, COPIES_DESTROY, 0))
		on_destroy(sk);
	return 0;
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(tracepoint_fork, struct task_struct *parent, struct task_struct *child)
{
	on_fork(parent, child);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(tracepoint_exec, struct task_struct *task)
{
	on_exec(task);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(tracepoint_exit, struct task_struct *task)
{
	on_exit(task);
	return 0;
}

/* ---- door: kprobe ---- */

SEC("kprobe/tcp_sendmsg_locked")
int BPF_KPROBE(kprobe_send_start, struct sock *sk, struct msghdr *message)
{
	call_start(sk, message, false);
	return 0;
}

SEC("tp/sock/sock_send_length")
int kprobe_send_end(struct trace_event_raw_sock_msg_length *event)
{
	call_end(event->sk, event->ret, false);
	return 0;
}

/* sendfile and splice before 6.5. Its return is told as that of a send. */
SEC("kprobe")
int BPF_KPROBE(kprobe_pages_start, struct sock *sk, struct page *page, int offset, size_t size,
	       int flags)
{
	call_start_pages(sk, (u64)page, offset, size, flags);
	return 0;
}

/* A send that waits, for memory or for its connection. */
SEC("kprobe")
int BPF_KPROBE(kprobe_send_sleep, struct sock *sk)
{
	call_sleep(sk);
	return 0;
}

/*
 * Returns: the loader attaches these to events of its own, which are not missed
 * however many threads sleep in the function (user/capture_event.c).
 */
SEC("kretprobe")
int BPF_KRETPROBE(kprobe_send_wake)
{
	call_wake();
	return 0;
}

/* The end of a send of pages before 6.5, and of any other before 6.3, which has no sock_send_length. */
SEC("kretprobe")
int BPF_KRETPROBE(kprobe_send_return, int accepted)
{
	call_return(accepted);
	return 0;
}

SEC("tp/sock/inet_sock_set_state")
int kprobe_state(struct trace_event_raw_inet_sock_set_state *event)
{
	struct sock *sk = (struct sock *)event->skaddr;

	if (copy_for_held(sk, COPIES_STATE, event->newstate))
		on_state(sk, event->oldstate, event->newstate);
	return 0;
}

SEC("tp/tcp/tcp_receive_reset")
int kprobe_reset(struct trace_event_raw_tcp_event_sk *event)
{
	struct sock *sk = (struct sock *)event->skaddr;

	if (copy_for_held(sk, COPIES_RESET, 0))
		on_reset(sk);
	return 0;
}

SEC("tp/tcp/tcp_destroy_sock")
int kprobe_destroy(struct trace_event_raw_tcp_event_sk *event)
{
	struct sock *sk = (struct sock *)event->skaddr;

	if (copy_for_held(sk, COPIES_DESTROY, 0))
		on_destroy(sk);
	return 0;
}

/* The classic tracepoint of a fork only gives the child's number; this comes right after it. */
SEC("kprobe/wake_up_new_task")
int BPF_KPROBE(kprobe_fork, struct task_struct *child)
{
	on_fork((struct task_struct *)bpf_get_current_task(), child);
	return 0;
}

SEC("tp/sched/sched_process_exec")
int kprobe_exec(void *event)
{
	on_exec((struct task_struct *)bpf_get_current_task());
	return 0;
}

SEC("tp/sched/sched_process_exit")
int kprobe_exit(void *event)
{
	on_exit((struct task_struct *)bpf_get_current_task());
	return 0;
}

/* ---- either door: the copies for sockets that no process holds ---- */

SEC("raw_tp/inet_sock_set_state")
int BPF_PROG(softirq_state, struct sock *sk, int old_state, int new_state)
{
	if (copy_for_softirq(sk, COPIES_STATE, new_state))
		on_state(sk, old_state, new_state);
	return 0;
}

SEC("raw_tp/inet_sock_set_state")
int BPF_PROG(spare_state, struct sock *sk, int old_state, int new_state)
{
	if (copy_to_spare(sk, COPIES_STATE, new_state))
		on_state(sk, old_state, new_state);
	return 0;
}

SEC("raw_tp/tcp_receive_reset")
int BPF_PROG(softirq_reset, struct sock *sk)
{
	if (copy_for_softirq(sk, COPIES_RESET, 0))
		on_reset(sk);
	return 0;
}

SEC("raw_tp/tcp_receive_reset")
int BPF_PROG(spare_reset, struct sock *sk)
{
	if (copy_to_spare(sk, COPIES_RESET, 0))
		on_reset(sk);
	return 0;
}

SEC("raw_tp/tcp_destroy_sock")
int BPF_PROG(softirq_destroy, struct sock *sk)
{
	if (copy_for_softirq(sk, COPIES_DESTROY, 0))
		on_destroy(sk);
	return 0;
}

SEC("raw_tp/tcp_destroy_sock")
int BPF_PROG(spare_destroy, struct sock *sk)
{
	if (copy_to_spare(sk, COPIES_DESTROY, 0))
		on_destroy(sk);
	return 0;
}

/* ---- run once, on demand ---- */

/* Which process is pid resolve_pid of pid namespace resolve_pid_namespace? */
SEC("iter/task")
int iter_resolve(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;

	if (task && task_is(task, resolve_pid, resolve_pid_namespace))
		resolved_tgid = BPF_CORE_READ(task, tgid);
	return 0;
}

/*
 * Sockets of the scope that listen already: what they accept is then known from
 * its first byte. Those that are connected: their peers are known by then.
 */
SEC("iter/task_file")
int iter_sockets(struct bpf_iter__task_file *context)
{
	struct task_struct *task = context->task;
	struct file *file = context->file;
	struct sock *sk = file ? file_sock(file) : NULL;

	if (task && sk)
		on_open_sock(task, sk);
	return 0;
}

/* Everybody's listening sockets, of the loader's network namespace. */
SEC("iter/tcp")
int iter_ports(struct bpf_iter__tcp *context)
{
	struct sock_common *common = context->sk_common;

	if (common)
		on_old_port(common);
	return 0;
}

/* For BPF_PROG_TEST_RUN, in the loader's own context. */
SEC("raw_tp")
int run_find_pages(void *context)
{
	pages_find((struct task_struct *)bpf_get_current_task());
	return 0;
}

/* At the end of a run, for each living flow: how far has it come? By BPF_PROG_TEST_RUN, too. */
SEC("raw_tp")
int run_refresh(void *context)
{
	flow_refresh((struct tcp_sock *)refresh_sk);
	return 0;
}
