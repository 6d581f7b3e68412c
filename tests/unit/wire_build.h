/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire events for unit tests: the two ends of one loopback connection, and two
 * processes. Every function returns a whole event by value; a test changes
 * whatever field it is about. wire_build_on() moves an event to another
 * connection.
 *
 *	client: 127.0.0.1:40000, flow 101, process 4711 "agent"
 *	server: 127.0.0.1:8080,  flow 102, process 4712 "server"
 */
#ifndef NIGHTCLERK_WIRE_BUILD_H
#define NIGHTCLERK_WIRE_BUILD_H

#include "../../bpf/wire_event.h"

#include <stdbool.h>
#include <string.h>

enum wire_build_end {
	WIRE_BUILD_CLIENT,
	WIRE_BUILD_SERVER,
};

#define WIRE_BUILD_CLIENT_FLOW 101
#define WIRE_BUILD_SERVER_FLOW 102
#define WIRE_BUILD_CLIENT_PORT 40000
#define WIRE_BUILD_SERVER_PORT 8080
#define WIRE_BUILD_CLIENT_BASE 1000000
#define WIRE_BUILD_SERVER_BASE 5000000
#define WIRE_BUILD_CLIENT_TGID 4711
#define WIRE_BUILD_SERVER_TGID 4712
#define WIRE_BUILD_NETNS 4026531840

/* Any kind of event of one end: everything that all events of a flow share. */
static inline struct wire_event wire_build(enum wire_build_end end, enum wire_kind kind,
					   __u64 when_ns)
{
	static const __u8 loopback[WIRE_ADDRESS_BYTES] = {
		[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1};
	bool client = end == WIRE_BUILD_CLIENT;
	struct wire_event event = {
		.version = WIRE_EVENT_VERSION,
		.kind = kind,
		.flags = WIRE_IN_TREE | (client ? WIRE_CLIENT : WIRE_SERVER),
		.flow = client ? WIRE_BUILD_CLIENT_FLOW : WIRE_BUILD_SERVER_FLOW,
		.start_ns = when_ns,
		.when_ns = when_ns,
		.send_base_seq = client ? WIRE_BUILD_CLIENT_BASE : WIRE_BUILD_SERVER_BASE,
		.receive_base_seq = client ? WIRE_BUILD_SERVER_BASE : WIRE_BUILD_CLIENT_BASE,
		.netns = WIRE_BUILD_NETNS,
		.local_port = client ? WIRE_BUILD_CLIENT_PORT : WIRE_BUILD_SERVER_PORT,
		.remote_port = client ? WIRE_BUILD_SERVER_PORT : WIRE_BUILD_CLIENT_PORT,
	};

	event.seq = event.send_base_seq;
	memcpy(event.local_address, loopback, sizeof(loopback));
	memcpy(event.remote_address, loopback, sizeof(loopback));
	return event;
}

/* Names the process that the event happened in; STATE, RESET and END name none. */
static inline void wire_build_process(struct wire_event *event, __u32 tgid, const char *comm)
{
	size_t length = strlen(comm);

	if (length > WIRE_COMM_BYTES - 1)
		length = WIRE_COMM_BYTES - 1;
	event->tgid = event->tid = event->ns_tgid = tgid;
	event->process_start_ns = tgid * 1000ULL;
	event->uid = 1000;
	event->cgroup_id = 77;
	memset(event->comm, 0, sizeof(event->comm));
	memcpy(event->comm, comm, length);
}

static inline void wire_build_process_of(struct wire_event *event, enum wire_build_end end)
{
	if (end == WIRE_BUILD_CLIENT)
		wire_build_process(event, WIRE_BUILD_CLIENT_TGID, "agent");
	else
		wire_build_process(event, WIRE_BUILD_SERVER_TGID, "server");
}

static inline struct wire_event wire_build_open(enum wire_build_end end, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_OPEN, when_ns);

	wire_build_process_of(&event, end);
	return event;
}

/* size bytes at offset, all captured: the test brings them. received: bytes of the peer so far. */
static inline struct wire_event wire_build_data(enum wire_build_end end, __u64 offset, __u32 size,
						__u64 received, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_DATA, when_ns);

	event.offset = offset;
	event.seq = event.send_base_seq + (__u32)offset;
	event.length_bytes = event.captured_bytes = size;
	event.received_bytes = event.read_bytes = received;
	wire_build_process_of(&event, end);
	return event;
}

static inline struct wire_event wire_build_hole(enum wire_build_end end, __u64 offset,
						__u64 length, enum wire_cause cause, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_HOLE, when_ns);

	event.offset = offset;
	event.seq = event.send_base_seq + (__u32)offset;
	event.length_bytes = length;
	event.cause = cause;
	event.lost_records = 1;
	wire_build_process_of(&event, end);
	return event;
}

/* accepted, received: bytes of this end and of its peer so far; a received FIN counts as one. */
static inline struct wire_event wire_build_state(enum wire_build_end end,
						 enum wire_tcp_state new_state, __u64 accepted,
						 __u64 received, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_STATE, when_ns);

	event.old_state = WIRE_TCP_ESTABLISHED;
	event.new_state = new_state;
	event.offset = accepted;
	event.received_bytes = event.read_bytes = received;
	return event;
}

/* close(): ESTABLISHED -> FIN_WAIT1 with both directions shut. */
static inline struct wire_event wire_build_close(enum wire_build_end end, __u64 accepted,
						 __u64 received, __u64 when_ns)
{
	struct wire_event event =
		wire_build_state(end, WIRE_TCP_FIN_WAIT1, accepted, received, when_ns);

	event.shutdown = WIRE_SHUTDOWN_SEND | WIRE_SHUTDOWN_RECEIVE;
	return event;
}

static inline struct wire_event wire_build_reset(enum wire_build_end end, __u64 accepted,
						 __u64 received, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_RESET, when_ns);

	event.offset = accepted;
	event.received_bytes = event.read_bytes = received;
	return event;
}

static inline struct wire_event wire_build_end(enum wire_build_end end, __u64 accepted,
					       __u64 received, __u64 when_ns)
{
	struct wire_event event = wire_build(end, WIRE_END, when_ns);

	event.offset = accepted;
	event.received_bytes = event.read_bytes = received;
	return event;
}

static inline struct wire_event wire_build_process_event(enum wire_kind kind, __u32 tgid,
							 const char *comm, __u64 when_ns)
{
	struct wire_event event = {
		.version = WIRE_EVENT_VERSION,
		.kind = kind,
		.flags = WIRE_IN_TREE,
		.start_ns = when_ns,
		.when_ns = when_ns,
		.netns = WIRE_BUILD_NETNS,
	};

	wire_build_process(&event, tgid, comm);
	return event;
}

static inline struct wire_event wire_build_fork(__u32 parent_tgid, __u32 tgid, const char *comm,
						__u64 when_ns)
{
	struct wire_event event = wire_build_process_event(WIRE_FORK, tgid, comm, when_ns);

	event.parent_tgid = parent_tgid;
	return event;
}

static inline struct wire_event wire_build_exec(__u32 tgid, const char *comm, __u64 when_ns)
{
	return wire_build_process_event(WIRE_EXEC, tgid, comm, when_ns);
}

static inline struct wire_event wire_build_exit(__u32 tgid, const char *comm, __u64 when_ns)
{
	return wire_build_process_event(WIRE_EXIT, tgid, comm, when_ns);
}

/* The same event on connection number n: other flows, client port and bases. 0 changes nothing. */
static inline struct wire_event wire_build_on(struct wire_event event, __u32 n)
{
	bool client = event.flags & WIRE_CLIENT;

	event.flow += 2ULL * n;
	event.seq += n * 10000019u;
	event.send_base_seq += n * 10000019u;
	event.receive_base_seq += n * 10000019u;
	if (client)
		event.local_port += n;
	else
		event.remote_port += n;
	return event;
}

#endif
