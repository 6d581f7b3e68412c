/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of capture share.
 */
#ifndef NIGHTCLERK_CAPTURE_PRIVATE_H
#define NIGHTCLERK_CAPTURE_PRIVATE_H

#include "capture.h"
#include "ring.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdatomic.h>

#define CAPTURE_EVENTS 4 /* the returns of: a send, its two waits, a send of pages */

/*
 * An event in tracefs: the return of a function of the kernel. Unlike the
 * kretprobe that perf makes, it has room for every thread that may sleep in
 * there, but it outlives its maker.
 */
struct capture_event {
	int fd; /* of kprobe_events; -1 = no event was made */
	char name[64];
	struct bpf_link *link;
};

/* Has the kernel a classic tracepoint where a send ends? Else its return must tell. */
bool capture_event_of_send_end(void);
/* Attaches to the return of that function, by an event of this run. 0 or -errno. */
int capture_event_attach(struct capture_event *event, const struct bpf_program *program,
			 const char *function);
void capture_event_detach(struct capture_event *event);
/* Removes the events of runs that were killed. */
void capture_event_remove_leftovers(void);

struct capture {
	struct capture_bpf *skeleton; /* capture.c only */
	struct bpf_object *object;
	enum capture_door door;
	struct ring front, data, lifecycle;		/* front: open where front_ring_bytes says so */
	int epoll_fd;					/* of all rings; -1 = none */
	struct bpf_link *resolve_link;			/* only in a pid namespace of its own */
	struct capture_event events[CAPTURE_EVENTS];	/* kprobe door */
	struct bpf_link *entry_links[CAPTURE_EVENTS];
	size_t event_count, entry_count;
	int tree_fd, flows_fd, counters_fd, copies_fd; /* owned by skeleton */
	size_t data_ring_bytes, lifecycle_ring_bytes;
	size_t front_ring_bytes; /* 0 = not used */
	_Atomic uint64_t *muted;
	struct share *shares; /* NULL: none */
	enum capture_fair fair;
	bool shares_unsettled; /* capture_shares_take_over() */
	bool own_pid_namespace;
	uint32_t pid_namespace;

	const struct capture_rights *rights; /* NULL = we have them ourselves */
	size_t rights_ring_peak;	     /* what they last said */

	/* of the drain in progress */
	struct sequencer *sequencer;
	int drained;
	bool emptied;	     /* the last drain moved all that the rings held when it began */
	uint64_t settled_ns; /* capture_settled() */
	int error;
};

/*
 * Before the load: puts bpf_rdonly_cast() (Linux 6.2) where the programs that are to be loaded left room for it.
 * 0, or -errno: -ENOENT where one needs it and this kernel has none.
 */
int capture_put_casts(struct bpf_object *object);

struct share;

/* Maps the table; map_fd is owned by the caller. 0 or -errno. */
int capture_shares_map(struct capture *capture, enum capture_fair fair, int map_fd);
void capture_shares_unmap(struct capture *capture);
/* A record of size bytes leaves the ring (enum share_ring). */
void capture_shares_consume(struct capture *capture, const struct wire_event *event, int ring, size_t size);
/* Before a drain: settles what capture_shares_take_over() asked for, if the rings are empty. */
void capture_shares_settle(struct capture *capture);

/* Of either door: bpf/copies.bpf.h. */
bool capture_is_copy(const char *program_name);

/* From here on, libbpf's first warning is the one that counts. */
void capture_reason_begin(void);
/* Into reason, of CAPTURE_REASON_MAX bytes: one line. */
__attribute__((format(printf, 2, 3))) void capture_reason_say(char *reason, const char *format, ...);
void capture_reason_load(enum capture_door door, int error, char *reason);
void capture_reason_attach(enum capture_door door, int error, char *reason);

/* Runs an iterator to its end. 0 or -errno. */
int capture_iterator_run(const struct bpf_link *link);

/* Brings the flow with that key of the flow table up to date, if it lives. 0 or -errno. */
int capture_refresh_flow(struct capture *capture, uint64_t key);

/* What the kernel calls the process that the caller's pid namespace numbers tgid. 0 or -errno. */
int capture_resolve_tgid(const struct capture *capture, uint32_t tgid, uint32_t *ret_tgid);

#endif
