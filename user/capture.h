/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel side as the collector sees it. The only file that knows libbpf.
 * Loads, attaches, drains both rings, reads counters, takes everything down.
 */
#ifndef NIGHTCLERK_CAPTURE_H
#define NIGHTCLERK_CAPTURE_H

#include "input.h"
#include "sequencer.h"

enum capture_scope {
	CAPTURE_TREE, /* processes given with capture_add_process() and all their descendants */
	CAPTURE_PID,  /* one process, given as (pid namespace, pid): capture_options.pid in the caller's namespace */
	CAPTURE_CGROUP,
	CAPTURE_UID,
	CAPTURE_COMM,
	CAPTURE_PORT, /* a local or remote port */
	CAPTURE_ALL,
};

enum capture_door { CAPTURE_DOOR_AUTO, CAPTURE_DOOR_KPROBE, CAPTURE_DOOR_TRACEPOINT };
const char *capture_door_name(enum capture_door door);

/* Whose share of the rings is whose: bpf/share_table.h. */
enum capture_fair { CAPTURE_FAIR_NONE, CAPTURE_FAIR_CGROUP, CAPTURE_FAIR_UID };

struct capture_options {
	enum capture_scope scope;
	enum capture_door door;
	uint32_t pid;
	uint64_t cgroup_id;
	uint32_t uid;
	char comm[WIRE_COMM_BYTES];
	uint16_t port;
	bool host_wide;		 /* false: only the caller's network namespace, compared before anything else */
	size_t data_ring_bytes;	 /* power of two, a page at least; 0 = 64 MiB */
	size_t lifecycle_ring_bytes; /* 0 = 4 MiB */
	enum capture_fair fair;	     /* NONE: who comes first gets it */
};

#define CAPTURE_REASON_MAX 512
#define CAPTURE_CAPABILITIES_MAX 64

/* Which of the capabilities that it takes are missing: "CAP_BPF and CAP_PERFMON"; false: none. */
bool capture_missing_capabilities(char *names);

struct capture;

/*
 * Loads and attaches. 0 or -errno; on failure reason (CAPTURE_REASON_MAX
 * bytes) holds one line that names the missing thing and the remedy
 * ("needs CAP_BPF and CAP_PERFMON: run as root", "kernel has no BTF ...").
 * Nothing stays attached after a failure.
 */
int capture_open(const struct capture_options *options, struct capture **ret_capture, char *reason);
/* Detaches and frees everything; removes tracefs events. Accepts NULL. */
void capture_close(struct capture *capture);

enum capture_door capture_door(const struct capture *capture);

/* Can it read the content of a send of pages (sendfile, splice)? Else it is a hole. */
bool capture_reads_pages(const struct capture *capture);

/* Puts a process, numbered as the caller's pid namespace numbers it, into the tree. 0 or -errno (-ESRCH: there is none). */
int capture_add_process(struct capture *capture, uint32_t tgid);
/*
 * The processes of the tree that live now: up to max tgids, numbered as above (0:
 * cannot be told); returns how many there are, or -errno.
 */
int capture_tree(struct capture *capture, uint32_t *tgids, size_t max);
/* Is that process, numbered as above, in the tree (CAPTURE_TREE) or the one that is watched (CAPTURE_PID)? */
bool capture_in_scope(const struct capture *capture, uint32_t tgid);
/*
 * Two processes are in scope whatever the scope is, and their flows carry
 * WIRE_CANARY; 0, 0 ends it. Numbered as above. 0 or -errno.
 */
int capture_set_canary(struct capture *capture, uint32_t client_tgid, uint32_t server_tgid);

/* An epoll descriptor that becomes readable when a ring wants to be drained. Owned by capture. */
int capture_fd(const struct capture *capture);
/*
 * Moves what the rings hold at this moment into the sequencer. Returns how
 * many events, or -errno (-EPROTO: a record of another version). Call it at
 * least every 5 ms: records are submitted without a wake-up below a fill level.
 * Read the clock before this call, not after, for the capture_settled() that
 * follows: what came in meanwhile may still sit in one ring and not in the other.
 */
int capture_drain(struct capture *capture, struct sequencer *sequencer);
/*
 * The time for sequencer_pull(): everything older was moved. That is now_ns,
 * read before the last drain, unless that one met a record which its program
 * has not finished, because it, or its whole CPU, was stopped in the middle: no
 * later record can be read before that one.
 */
uint64_t capture_settled(struct capture *capture, uint64_t now_ns);
/* Bytes waiting in the data ring now. */
size_t capture_ring_fill(const struct capture *capture);
size_t capture_ring_size(const struct capture *capture);
/* The most that ever waited there. */
size_t capture_ring_peak(const struct capture *capture);

int capture_counters(struct capture *capture, struct counters *ret_counters);

/*
 * At the end of a run, after the rings are empty: one WIRE_END with
 * WIRE_STILL_OPEN per flow that lives, so that a loss at its tail shows.
 */
int capture_flush_flows(struct capture *capture, struct sequencer *sequencer);

/*
 * The two halves of that, for who serves a process without rights: every flow
 * that lives accounts for what it has sent (those records are in the rings
 * then); and one such WIRE_END for each, until take returns an error. 0 or -errno.
 */
typedef int capture_take_living(void *context, const struct wire_event *event);
int capture_refresh_flows(struct capture *capture);
int capture_living_flows(struct capture *capture, capture_take_living *take, void *context);

/* What a process without rights asks another to do. Each returns 0 or -errno. */
struct capture_rights {
	void *context;
	int (*counters)(void *context, struct counters *ret_counters, size_t *ret_ring_peak);
	int (*refresh)(void *context);
	int (*living)(void *context, capture_take_living *take, void *take_context);
};

/*
 * In a forked child of the process that opened it, which goes on to hold the
 * probes: from here on the rings are read here, by what is mapped, and rights
 * (borrowed) does what needs a descriptor. Everything else that was mapped goes. The
 * descriptors are the caller's to close, but for capture_fd(); capture_close() is not called.
 */
void capture_without_rights(struct capture *capture, const struct capture_rights *rights);

/*
 * What a tenant had and holds. All but the last three only grow, from the start of
 * the probe. A tenant's numbers are its own while `changes` stands still: then no
 * other one came to its slot (one of 4096).
 */
struct capture_share {
	uint64_t accepted_bytes; /* of its connections, both ends */
	uint64_t lost_bytes[WIRE_CAUSE_COUNT];
	uint64_t flows_refused;	 /* not followed: its part of the flow table was full */
	uint64_t lifecycle_lost; /* events of its flows that found no room */
	uint64_t changes;	 /* how often the slot got another tenant; 1: its only one */
	uint64_t flows;		 /* in the flow table now */
	uint64_t data_bytes;	 /* in the data ring now, headers of records included */
	uint64_t lifecycle_bytes;
};

/*
 * Without a system call. tenant: the id of its cgroup, or its uid, as
 * capture_options.fair says; the tenant of a connection is its client's.
 * CAPTURE_NOBODY: connections whose client was not seen. False: there are no shares.
 */
#define CAPTURE_NOBODY UINT64_MAX
bool capture_share(const struct capture *capture, uint64_t tenant, struct capture_share *ret_share);
/*
 * In a process that takes over from one that drained and is no more: what that one
 * took out of a ring and did not write down would be held for ever. Settled by
 * the first capture_drain() that finds the rings empty.
 */
void capture_shares_take_over(struct capture *capture);

/* The collector has given the flow up (blind, broken): the kernel stops copying it and its peer's. */
void capture_mute(struct capture *capture, uint64_t flow);

/*
 * Descriptors of the lifecycle ring and of the counters, for another object of
 * ours that writes to them (confine.c). Owned by capture.
 */
int capture_lifecycle_ring(const struct capture *capture);
int capture_counter_map(const struct capture *capture);

#endif
