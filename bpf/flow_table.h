/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Tables that both sides of the probe touch: the flow table, which the
 * collector walks at the end of a run, the process tree, and what the copies of
 * a program have seen.
 */
#ifndef NIGHTCLERK_FLOW_TABLE_H
#define NIGHTCLERK_FLOW_TABLE_H

#include "wire_event.h"

#define FLOW_TABLE_ENTRIES 131072
#define CALL_TABLE_ENTRIES 32768
#define TREE_ENTRIES 65536
#define LISTENER_ENTRIES 8192

/* What the loader writes into a page, for the probe to find: bpf/pages.bpf.h. */
#define PAGES_MARK_WORDS 8

static inline __u64 pages_mark(__u64 seed, __u32 word)
{
	return (seed + word) * 0x9E3779B97F4A7C15ULL;
}

enum scope_mode {
	SCOPE_TREE, /* the tree table, which forks extend */
	SCOPE_PID,  /* the tree table, which forks leave alone */
	SCOPE_CGROUP,
	SCOPE_UID,
	SCOPE_COMM,
	SCOPE_PORT,
	SCOPE_ALL,
};

/* Network namespace and both ends, this one first: the key of the tuple table. */
struct tuple {
	__u32 netns;
	__u16 local_port;
	__u16 remote_port;
	__u8 local_address[WIRE_ADDRESS_BYTES];
	__u8 remote_address[WIRE_ADDRESS_BYTES];
};

enum flow_stage {
	FLOW_CONNECTING, /* SYN_SENT by the scope, or older than we are: nothing said about it yet */
	FLOW_LISTENING,	 /* a listener of the scope */
	FLOW_OPEN,	 /* WIRE_OPEN was made */
	FLOW_SHUT,	 /* a FIN was queued: written does not move any more */
	FLOW_CLOSED,	 /* TCP_CLOSE: no number of the socket can be trusted any more */
};

/*
 * One end of a connection, keyed by its struct sock, from the first sight to
 * tcp_destroy_sock. Offsets are of this end's stream (written, accounted) or
 * of the peer's (received, read); each pair (offset, seq) moves only under the
 * socket lock, which is how 32-bit sequence numbers become 64-bit offsets.
 */
struct flow {
	__u64 id;
	__u64 peer_id;	 /* 0 until the other end is known */
	__u64 written;	 /* offset of write_seq */
	__u64 accounted; /* bytes that stand in a record or a hole; = written while calls is 0 */
	__u64 received;	 /* offset of rcv_nxt */
	__u64 read;	 /* offset of copied_seq */
	__u64 tail;	 /* offset of write_seq when the run ended */
	__u32 write_seq;
	__u32 send_base_seq;
	__u32 receive_base_seq;
	__u32 calls; /* sends on their way */
	__u32 lost_records;
	__u16 flags; /* wire_event.flags that hold for every event of the flow */
	__u8 stage;  /* enum flow_stage */
	__u8 muted;
	__u8 late; /* counted in late_tuples */
	__u8 owned; /* the two owners are set */
	__u8 reserved[6];
	__u64 owner_cgroup; /* cgroup v2 id, 0 = cannot be told */
	__u32 owner_uid;    /* as the initial user namespace sees it */
	__u32 share;	    /* bpf/shares.bpf.h: charged for it; 0 = nobody */
	struct tuple tuple;
};

/*
 * Of each CPU, for the copies of a program: copies.bpf.h. Which event each last
 * had in a softirq, and how many of sockets that a process holds.
 */
enum copies { COPIES_STATE, COPIES_RESET, COPIES_DESTROY, COPIES_COUNT };

struct copies_seen {
	__u64 first, softirq; /* address of the struct sock; 0 = none */
	__u64 held_first, held_softirq;
	__u8 first_detail, softirq_detail;
	__u8 reserved[6];
};

/* Value of the tree table; the key is the tgid as the kernel has it. */
struct tree_entry {
	__u64 process_start_ns; /* 0 until the process was seen to act */
	__u32 ns_tgid;		/* in its own pid namespace; 0 = as the key */
	__u32 reserved;
};

#endif
