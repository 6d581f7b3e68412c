/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What capture.c, capture_event.c and capture_tables.c share.
 */
#ifndef NIGHTCLERK_CAPTURE_PRIVATE_H
#define NIGHTCLERK_CAPTURE_PRIVATE_H

#include "capture.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdatomic.h>

#define CAPTURE_EVENT_GROUP "nightclerk"

/*
 * A kretprobe event of tcp_sendmsg_locked in tracefs, for kernels without
 * sock_send_length. Unlike the kretprobe that perf makes, it has room for
 * every sender that may sleep in there, but it outlives its maker.
 */
struct capture_event {
	int fd; /* of kprobe_events; -1 = no event was made */
	char name[48];
};

bool capture_event_needed(void);
/* Makes it, and removes those of runs that were killed. 0 or -errno. */
int capture_event_add(struct capture_event *event);
/* Only once nothing is attached to it. */
void capture_event_remove(struct capture_event *event);

struct capture {
	struct capture_bpf *skeleton; /* capture.c only */
	struct bpf_object *object;
	enum capture_door door;
	struct ring_buffer *data;
	struct ring_buffer *lifecycle;
	int epoll_fd;					/* of both; -1 = none */
	struct bpf_link *resolve_link;			/* only in a pid namespace of its own */
	struct capture_event return_event;
	struct bpf_link *return_link;			/* only where return_event is needed */
	int tree_fd, flows_fd, counters_fd, refresh_fd; /* owned by skeleton */
	size_t data_ring_bytes;
	/* data ring: the kernel's own pages, see kernel/bpf/ringbuf.c */
	const volatile unsigned long *consumed;
	const volatile unsigned long *produced;
	_Atomic uint64_t *muted;
	bool own_pid_namespace;
	uint32_t pid_namespace;

	/* of the drain in progress */
	struct sequencer *sequencer;
	unsigned long stop_at; /* position in the data ring */
	int drained;
	int error;
};

/* Of either door: bpf/copies.bpf.h. */
bool capture_is_copy(const char *program_name);

/* What the kernel calls the process that the caller's pid namespace numbers tgid. 0 or -errno. */
int capture_resolve_tgid(const struct capture *capture, uint32_t tgid, uint32_t *ret_tgid);

#endif
