/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The contract between the kernel side (bpf/) and the collector (user/).
 *
 * Every record in either ring is one struct wire_event, followed in the data
 * ring by captured_bytes bytes of payload. One struct serves every kind, so
 * there is one layout to check and one thing to record and to replay.
 *
 * A "flow" is one end of one TCP connection: a struct sock. A loopback
 * connection therefore has two flows, and each flow sends one stream. Stream
 * offset 0 is the first byte after the SYN; offsets are 64-bit and never wrap.
 *
 * The two ends of one connection carry the same netns, swapped endpoints, and
 * swapped send_base_seq / receive_base_seq. That match is exact even when a
 * 4-tuple is used again while an old answer is still due.
 *
 * The owner of a flow is who connected it, as far as that was seen; else who made
 * its socket, and of one that was accepted, who made the listener. WIRE_OPEN has
 * its cgroup_id and uid, and names no process; older recordings have zeros there.
 *
 * All integers are in host order. Reserved bytes are zero. Records are 8-byte aligned.
 */
#ifndef NIGHTCLERK_WIRE_EVENT_H
#define NIGHTCLERK_WIRE_EVENT_H

#ifndef __bpf__
#include <assert.h>
#include <linux/types.h>
#include <stddef.h>
#endif

#define WIRE_EVENT_VERSION 1

enum wire_kind {
	WIRE_DATA = 1,	/* data ring: bytes that the kernel accepted in one send */
	WIRE_HOLE,	/* lifecycle ring: length_bytes at offset were accepted but not captured; cause says why */
	WIRE_OPEN,	/* the flow reached ESTABLISHED, or was first seen later (WIRE_JOINED_LATE) */
	WIRE_STATE,	/* a TCP state change of the flow: old_state, new_state, shutdown */
	WIRE_RESET,	/* the flow received a RST */
	WIRE_END,	/* the socket is gone; offset = bytes it ever accepted, hole-free or not */
	WIRE_FORK,	/* process: tgid is the child, parent_tgid the parent */
	WIRE_EXEC,	/* process: comm is the new name */
	WIRE_EXIT,	/* process: its last thread ended */
	WIRE_CONNECT,	/* a process in scope turned to where nothing is captured: off loopback, or WIRE_OTHER_NETNS;
			   local_port 0: none chosen yet */
};

/* Why bytes are missing. The names printed for them are in user/lines_run.c. */
enum wire_cause {
	WIRE_CAUSE_NONE = 0,
	WIRE_CAUSE_RING_FULL,	/* a reservation failed */
	WIRE_CAUSE_FAULT,	/* the sender's memory could not be read */
	WIRE_CAUSE_PAGES,	/* page-backed send (sendfile, splice, fixed buffers): content not read */
	WIRE_CAUSE_TRUNCATED,	/* one send was longer than the probe can walk */
	WIRE_CAUSE_MISSED,	/* write_seq moved without a call that we saw */
	WIRE_CAUSE_FASTOPEN,	/* data in a SYN */
	WIRE_CAUSE_URGENT,	/* MSG_OOB byte, cut out of the stream */
	WIRE_CAUSE_MUTED,	/* the stream was given up as not HTTP; not a loss */
	WIRE_CAUSE_SHARE,	/* its tenant holds its whole share of the ring: bpf/share_table.h */
	WIRE_CAUSE_COUNT,
};

/* wire_event.flags */
#define WIRE_CLIENT 0x0001	/* this end connected */
#define WIRE_SERVER 0x0002	/* this end accepted */
#define WIRE_JOINED_LATE 0x0004 /* bytes crossed before it was seen; of its own, up to WIRE_OPEN's offset */
#define WIRE_STILL_OPEN 0x0008	/* WIRE_END made by the collector at the end of a run for a live socket */
#define WIRE_MPTCP 0x0010
#define WIRE_KTLS 0x0020
#define WIRE_IN_TREE 0x0040 /* the sender itself is in scope (unset: it is the peer of one that is) */
#define WIRE_CANARY 0x0080  /* sent by nightclerk's own self-test */
#define WIRE_ORPHANED 0x0100 /* WIRE_STATE: no process holds the socket any more */
#define WIRE_REFUSED 0x0200  /* WIRE_CONNECT: `run --confine` did not let it */
#define WIRE_DATAGRAM 0x0400 /* WIRE_CONNECT: UDP, a connect or a send */
#define WIRE_OTHER_NETNS 0x0800 /* WIRE_CONNECT: on the loopback of a network namespace that is not looked into */
#define WIRE_END_UNSEEN 0x1000 /* with WIRE_STILL_OPEN: it lives no more, and its end was lost (user/flow_census.h) */

/* wire_event.shutdown, as sk_shutdown in include/net/sock.h (5.10 to 7.x) */
#define WIRE_SHUTDOWN_RECEIVE 1
#define WIRE_SHUTDOWN_SEND 2 /* alone: half close; with RECEIVE: close() */

/* Values of old_state and new_state: include/net/tcp_states.h, stable since 2.6. */
enum wire_tcp_state {
	WIRE_TCP_ESTABLISHED = 1,
	WIRE_TCP_SYN_SENT = 2,
	WIRE_TCP_SYN_RECV = 3,
	WIRE_TCP_FIN_WAIT1 = 4,
	WIRE_TCP_FIN_WAIT2 = 5,
	WIRE_TCP_TIME_WAIT = 6,
	WIRE_TCP_CLOSE = 7,
	WIRE_TCP_CLOSE_WAIT = 8,
	WIRE_TCP_LAST_ACK = 9,
	WIRE_TCP_LISTEN = 10,
	WIRE_TCP_CLOSING = 11,
};

#define WIRE_COMM_BYTES 16    /* TASK_COMM_LEN */
#define WIRE_ADDRESS_BYTES 16 /* IPv4 is held v4-mapped: ::ffff:a.b.c.d */

struct wire_event {
	__u8 version; /* WIRE_EVENT_VERSION; another value is fatal to the reader */
	__u8 kind;    /* enum wire_kind */
	__u16 flags;
	__u8 cause; /* enum wire_cause: why captured_bytes < length_bytes */
	__u8 old_state;
	__u8 new_state;
	__u8 shutdown;

	__u32 captured_bytes; /* payload bytes that follow this struct */
	__u32 seq;	      /* raw TCP sequence number of the byte at offset */

	__u64 flow;	    /* assigned by us at first sight, never reused in one run; 0 for process events */
	__u64 offset;	    /* stream offset of the first byte; for STATE and END: bytes accepted so far */
	__u64 length_bytes; /* bytes accepted by the kernel that this event stands for */

	__u64 start_ns; /* CLOCK_MONOTONIC when the send call began */
	__u64 when_ns;	/* CLOCK_MONOTONIC when this record was made; never before start_ns */

	/*
	 * Of the peer's stream; where a send is told about, as it was when the send
	 * began. Both count the peer's FIN as one byte once it came or was read.
	 */
	__u64 received_bytes; /* what this end's kernel had received: rcv_nxt */
	__u64 read_bytes;     /* what this end's application had read: copied_seq */

	__u32 send_base_seq;	/* raw sequence number of stream offset 0 */
	__u32 receive_base_seq; /* the same for the peer's stream */

	__u32 netns; /* inode of the network namespace */
	__u32 uid;   /* as the initial user namespace sees it; of the sender, the process or, in WIRE_OPEN, the socket's owner */
	__u32 tgid;  /* 0 where no process may be named: only sends, WIRE_CONNECT and processes have one */
	__u32 tid;
	__u32 ns_tgid;	   /* tgid inside the process's own pid namespace */
	union {
		__u32 parent_tgid; /* WIRE_FORK only */
		__u32 share;	   /* of a flow, inside a ring: bpf/shares.bpf.h; 0 once it was taken out */
	};

	__u64 process_start_ns; /* start_boottime of the group leader: (tgid, this) is the process */
	__u64 cgroup_id;	/* cgroup v2 id, of whom uid is; 0 = cannot be told */

	__u8 local_address[WIRE_ADDRESS_BYTES];
	__u8 remote_address[WIRE_ADDRESS_BYTES];
	__u16 local_port;
	__u16 remote_port;
	__u32 lost_records; /* records of this flow lost so far */

	char comm[WIRE_COMM_BYTES]; /* NUL-padded; hostile bytes possible */
};

#ifndef __bpf__
static_assert(sizeof(struct wire_event) == 176, "wire_event layout: bump WIRE_EVENT_VERSION when it changes");
static_assert(offsetof(struct wire_event, flow) == 16, "no hidden padding");
static_assert(offsetof(struct wire_event, process_start_ns) == 104, "no hidden padding");
#endif

/*
 * Record sizes of the data ring, struct wire_event included.
 * bpf_ringbuf_reserve() wants a constant, so the smallest class that fits is taken.
 */
#define WIRE_CLASS_0 512
#define WIRE_CLASS_1 1024
#define WIRE_CLASS_2 1536
#define WIRE_CLASS_3 2048
#define WIRE_CLASS_4 3072
#define WIRE_CLASS_5 4096
#define WIRE_CLASS_6 6144
#define WIRE_CLASS_7 8192
#define WIRE_CLASS_8 16384
#define WIRE_CLASS_9 32768
#define WIRE_CLASS_10 65536
#define WIRE_PAYLOAD_MAX (WIRE_CLASS_10 - sizeof(struct wire_event))

/*
 * Counters of the kernel side: a per-CPU array that only grows. Index = enum
 * wire_counter; loss by cause follows at WIRE_COUNTER_LOST_BYTES + cause.
 */
enum wire_counter {
	WIRE_COUNTER_ACCEPTED_BYTES, /* of flows in scope; added before anything is reserved, and for MISSED gaps when they show */
	WIRE_COUNTER_CALLS,	     /* sends that returned > 0 */
	WIRE_COUNTER_RECORDS,	     /* records submitted to either ring */
	WIRE_COUNTER_STALE_CALLS,    /* an exit was missed: the same-call test started a call afresh */
	WIRE_COUNTER_NO_FLOW,	     /* a table was full: of flows, 4-tuples, listeners or processes */
	WIRE_COUNTER_NO_CALL,	     /* the call table was full */
	WIRE_COUNTER_LIFECYCLE_LOST, /* a lifecycle record could not be reserved */
	WIRE_COUNTER_HARMLESS_MISSES, /* recursion misses that another copy made good: copies.bpf.h */
	WIRE_COUNTER_LOST_BYTES = 8, /* + enum wire_cause */
	WIRE_COUNTER_COUNT = WIRE_COUNTER_LOST_BYTES + 16,
};

/*
 * Direct-mapped table of flows that the collector has given up: the slot of a
 * flow holds its id. The kernel side then only counts. A collision un-mutes a
 * flow, which costs copies, never truth.
 */
#define WIRE_MUTED_BITS 16
#define WIRE_MUTED_SLOTS (1U << WIRE_MUTED_BITS)

static inline __u32 wire_muted_slot(__u64 flow)
{
	return (__u32)(flow * 0x9E3779B97F4A7C15ULL >> (64 - WIRE_MUTED_BITS)); /* Fibonacci hashing */
}

#endif
