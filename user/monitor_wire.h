/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the two processes of `audit` say to each other, over a pair of
 * SOCK_SEQPACKET sockets: the monitor, which has rights and reads no captured
 * byte, and the collector, which reads them and has none.
 *
 * Neither trusts the other's lengths: a message that is not what its kind says
 * is -EPROTO. The collector asks, one question at a time, and the monitor
 * answers with the same kind; orders of the monitor may come in between.
 */
#ifndef NIGHTCLERK_MONITOR_WIRE_H
#define NIGHTCLERK_MONITOR_WIRE_H

#include "audit_files.h"
#include "bytes.h"
#include "input.h"

#include <linux/limits.h>

#define MONITOR_CHUNK_BYTES (32 * 1024)	      /* of one message: room in the socket is 200 KiB */
#define MONITOR_TEXT_MAX (4 * 1024 * 1024)    /* of a text that comes in many */
#define MONITOR_NAME_MAX 64		      /* of a tenant */
#define MONITOR_EVENTS_MAX 128		      /* of living flows in one message */

enum monitor_kind {
	/* the collector says; no answer */
	MONITOR_READY = 1,   /* its rights are gone; what comes next are captured bytes */
	MONITOR_CANARY_SEEN,
	MONITOR_METRICS,     /* a text for the metrics file */
	MONITOR_CLOSED,	     /* a tenant's files are of no use any more: struct monitor_open */
	/* the collector asks; the answer has the same kind */
	MONITOR_COUNTERS,    /* struct monitor_written -> struct monitor_counters */
	MONITOR_REFRESH,     /* account for the flows that live: nothing -> nothing */
	MONITOR_LIVING,	     /* nothing -> struct wire_event[], until a message without any */
	MONITOR_CGROUP,	     /* struct monitor_cgroup -> its path; -ENOENT: not known */
	MONITOR_OPEN,	     /* struct monitor_open -> a descriptor */
	MONITOR_ROTATE,	     /* struct monitor_open -> a descriptor; -EAGAIN: it need not be */
	/* the monitor orders; no answer */
	MONITOR_POLICY,	     /* a text: the policy from now on */
	MONITOR_REOPEN,	     /* ask for every file once more */
	MONITOR_FINISH,	     /* write all that there is, and end */
	MONITOR_KIND_END,
};

/* "COUNTERS", ..., for messages; NULL for a number that is no kind. */
const char *monitor_kind_name(uint32_t kind);

struct monitor_written {
	uint64_t until_ns; /* CLOCK_MONOTONIC: every line of what was captured before it has been written */
};

struct monitor_counters {
	struct counters counters;
	uint64_t ring_peak_bytes;
};

struct monitor_cgroup {
	uint64_t id;
	uint32_t tgid; /* a process that was in it; 0 = none known */
	uint32_t reserved;
};

struct monitor_open {
	char tenant[MONITOR_NAME_MAX + 1]; /* a file name (tenant_name.h); the rest are zeros */
	uint8_t file;			   /* enum audit_file */
	uint8_t has_owner;		   /* the tenant is a user: uid */
	uint8_t reserved;
	uint32_t uid;
};

struct monitor_message {
	enum monitor_kind kind;
	int result;	   /* of an answer: 0 or -errno */
	struct bytes body; /* lent until the next receive */
	int fd;		   /* -1 = none; who receives it owns it */
};

struct monitor_wire {
	int fd;
	/* the message that is being received */
	struct buffer text;
	bool in_parts; /* more of it is due */
	uint32_t kind;
	int32_t result;
	int with_fd;
};

/* Two ends; both are closed on exec. 0 or -errno. */
int monitor_wire_pair(struct monitor_wire *ret_monitor, struct monitor_wire *ret_collector);
void monitor_wire_done(struct monitor_wire *wire); /* closes; accepts a zeroed one with fd -1 */

/*
 * Sends; a body that is longer than a chunk goes in several. Waits for room at most two
 * seconds. message->fd stays the caller's. 0, or -errno (-EPIPE: the other end is gone; -EMSGSIZE).
 */
int monitor_wire_send(struct monitor_wire *wire, const struct monitor_message *message);
/*
 * The next whole message. 1: *ret_message is filled; 0: none is whole yet and wait was false;
 * -ECONNRESET: the other end is gone; -EPROTO: no message of ours; -errno.
 */
int monitor_wire_receive(struct monitor_wire *wire, bool wait, struct monitor_message *ret_message);

/* Is body a struct monitor_open that can be trusted as a file name? */
bool monitor_open_is_valid(struct bytes body, struct monitor_open *ret_open);

#endif
