/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Maps and settings: with the ring and the counters of ring.bpf.h, all state of the kernel side.
 */
#ifndef NIGHTCLERK_TABLES_BPF_H
#define NIGHTCLERK_TABLES_BPF_H

#include "ring.bpf.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_tracing.h>

#include "flow_table.h"

/* ---- settings: fixed before load ---- */

const volatile __u32 scope_mode;
const volatile bool scope_host_wide;
const volatile __u32 scope_netns;
const volatile __u64 scope_cgroup;
const volatile __u32 scope_uid;
const volatile __u16 scope_port;
const volatile char scope_comm[WIRE_COMM_BYTES];
const volatile __u64 data_ring_quarter;
const volatile __u64 front_ring_full; /* as much as calls its reader; 0 = there is no such ring */

/* ---- settings that the loader learns after load, and state ---- */

__u32 own_tgid; /* nightclerk itself, as the kernel numbers it */
__u32 canary_tgids[2];
bool copies_attached; /* all of them: copies.bpf.h */
__u64 late_tuples;    /* live flows that joined late: their peers have yet to be found */
__u64 data_ring_peak; /* highest fill seen at a reservation */
__u64 data_woken, front_woken; /* 1 + how far the ring had been read when its reader was last woken */

/* iter_resolve: asked for and answered */
__u32 resolve_pid;
__u32 resolve_pid_namespace;
__u32 resolved_tgid;

__u64 refresh_sk; /* run_refresh: key of the flow */

/* run_find_pages: asked for and answered */
__u64 pages_seed;
__u32 pages_pipe;   /* descriptor of ours */
__u64 pages_memory; /* where memory is mapped; 0 = not found: pages cannot be read */
__u64 pages_array;  /* where the struct page of its first page is */

/* ---- tables ---- */

/*
 * Records go to the front ring while it has room, and else to the data ring. A
 * ring walks through all of its memory however little is in it, and 64 MiB of
 * it are never in a cache: a record costs several times as much there. The
 * sequencer puts both in one order.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
} front_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
} data_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOW_TABLE_ENTRIES);
	__type(key, u64); /* address of the struct sock */
	__type(value, struct flow);
} flows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FLOW_TABLE_ENTRIES);
	__type(key, struct tuple);
	__type(value, u64); /* address of the struct sock of the end that comes first */
} tuples SEC(".maps");

struct listener_key {
	u32 netns;
	u32 port;
	u8 address[WIRE_ADDRESS_BYTES]; /* :: and ::ffff:0.0.0.0 are any address */
};

struct listener {
	u32 count; /* sockets that listen there: SO_REUSEPORT, or one per family */
	u32 flags; /* WIRE_CANARY */
	u32 port;  /* of its key */
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LISTENER_ENTRIES);
	__type(key, struct listener_key);
	__type(value, struct listener);
} listeners SEC(".maps");

/* Where anybody listened when we began: it tells the ends of older connections apart. No address. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, LISTENER_ENTRIES);
	__type(key, struct listener_key);
	__type(value, u8);
} old_ports SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TREE_ENTRIES);
	__type(key, u32); /* tgid */
	__type(value, struct tree_entry);
} tree SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, WIRE_MUTED_SLOTS);
	__type(key, u32);
	__type(value, u64);
} muted SEC(".maps");

#endif
