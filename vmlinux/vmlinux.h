/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel types that the probe reads, and of those only the fields it
 * reads. Offsets do not matter here: CO-RE relocates every access against the
 * running kernel's BTF, so one object file serves 5.10 to 7.x. Where a layout
 * or a name differs between kernels, a flavour (___suffix) says since when.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* ---- registers: bpf_tracing.h takes a kprobe's arguments from here ---- */

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long di, si, dx, cx, r8, sp, bp, ax, ip;
};
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	u64 regs[31], sp, pc, pstate;
};
struct pt_regs {
	struct user_pt_regs user_regs;
};
#endif

struct bpf_map;

/* ---- processes ---- */

typedef struct {
	int counter;
} atomic_t;

typedef struct {
	u32 val;
} kuid_t;

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

struct cred {
	kuid_t uid;
};

struct kernfs_node {
	u64 id; /* a plain u64 since 5.5 */
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self; /* the first member: a parent's css is its cgroup */
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct signal_struct {
	atomic_t live;
};

struct net {
	struct ns_common ns;
};

struct nsproxy {
	struct net *net_ns;
};

struct file;

struct fdtable {
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	int pid;
	int tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	u64 start_boottime; /* real_start_time before 5.5 */
	const struct cred *cred;
	char comm[16];
	struct nsproxy *nsproxy;
	struct signal_struct *signal;
	struct css_set *cgroups;
	struct files_struct *files;
};

/* ---- sockets ---- */

struct in6_addr {
	union {
		u8 u6_addr8[16];
	} in6_u;
};

typedef struct {
	struct net *net;
} possible_net_t;

struct sock_common {
	u32 skc_daddr;
	u32 skc_rcv_saddr;
	u16 skc_dport;
	u16 skc_num;
	unsigned short skc_family;
	volatile unsigned char skc_state;
	possible_net_t skc_net;
	struct in6_addr skc_v6_daddr;
	struct in6_addr skc_v6_rcv_saddr;
	unsigned long skc_flags;
};

enum sock_flags {
	SOCK_DEAD,
};

struct net_device {
	unsigned int flags;
};

struct dst_entry {
	struct net_device *dev;
};

typedef struct {
	int owned; /* by a process, as against a softirq */
} socket_lock_t;

struct sock_cgroup_data {
	struct cgroup *cgroup; /* since 5.15 */
};

struct sock_cgroup_data___before_5_15 {
	u64 val; /* the same, or, where one of the low two bits is set, something else */
};

struct sock {
	struct sock_common __sk_common;
	socket_lock_t sk_lock;
	struct dst_entry *sk_dst_cache;
	void *sk_user_data;
	kuid_t sk_uid;
	struct sock_cgroup_data sk_cgrp_data; /* absent without CONFIG_SOCK_CGROUP_DATA */
	u16 sk_protocol; /* 16 bits since 5.6 */
	u8 sk_shutdown;
};

struct tcp_ulp_ops {
	char name[16];
};

struct inet_connection_sock {
	const struct tcp_ulp_ops *icsk_ulp_ops;
};

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 copied_seq;
	u32 rcv_nxt;
	u32 snd_nxt;
	u32 write_seq;
	u64 bytes_sent;
	u64 bytes_retrans;
	u64 bytes_received;
	bool is_mptcp; /* absent without CONFIG_MPTCP */
};

struct inode {
	unsigned short i_mode;
};

struct file {
	void *private_data;
	struct inode *f_inode;
};

struct socket {
	struct file *file;
	struct sock *sk;
};

/* ---- what a send hands over ---- */

struct iovec {
	void *iov_base;
	u64 iov_len;
};

struct page {
	unsigned long flags;
};

struct bio_vec {
	struct page *bv_page;
	unsigned int bv_len;
	unsigned int bv_offset;
};

struct pipe_buffer {
	struct page *page;
};

struct pipe_inode_info {
	struct pipe_buffer *bufs;
};

enum iter_type {
	ITER_IOVEC,
	ITER_BVEC,
	ITER_UBUF, /* since 6.0; the numbers differ by kernel */
};

struct iov_iter {
	u8 iter_type; /* since 5.14 */
	size_t iov_offset;
	size_t count;
	const struct iovec *iov; /* until 6.3 */
	void *ubuf;		 /* since 6.0 */
	unsigned long nr_segs;
};

struct iov_iter___before_5_14 {
	unsigned int type; /* ITER_IOVEC is 4 there; bit 0 is the direction */
};

struct iov_iter___since_6_4 {
	const struct iovec *__iov;
};

struct msghdr {
	struct iov_iter msg_iter;
	unsigned int msg_flags;
};

/* ---- tracepoints: contexts of the classic ones ---- */

struct trace_event_raw_sock_msg_length { /* since 6.3 */
	void *sk;
	int ret;
};

struct trace_event_raw_inet_sock_set_state {
	const void *skaddr;
	int oldstate;
	int newstate;
};

struct trace_event_raw_tcp_event_sk {
	const void *skaddr;
};

/* ---- iterators ---- */

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
};

struct bpf_iter__tcp { /* since 5.9 */
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

#endif
