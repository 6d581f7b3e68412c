/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The lifecycle ring and the counters: what every object of ours writes to.
 * The probe's object makes both maps; confine.bpf.c is given them (user/confine.c).
 */
#ifndef NIGHTCLERK_RING_BPF_H
#define NIGHTCLERK_RING_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "cast.h"
#include "wire_event.h"

/*
 * One member of a kernel structure. direct: a load, which the verifier guards;
 * for the programs of the tracepoint door, whose kernels (6.16 and later) have
 * bpf_rdonly_cast() of 6.2. Else a call of a helper, several times as long.
 *
 * The number stands for that function and is no helper's; user space puts its BTF
 * id there (user/capture_cast.c). A weak __ksym would make libbpf before 1.5 look
 * through the BTF of all modules where a kernel lacks it, which takes CAP_SYS_ADMIN.
 */
static void *(*const rdonly_cast)(const void *object, __u32 type) = (void *)RDONLY_CAST_PLACEHOLDER;

#define PEEK(direct, object, member)                                                               \
	((direct) ? ((typeof(object))rdonly_cast(                                                  \
			     object, bpf_core_type_id_kernel(typeof(*(object)))))->member          \
		  : BPF_CORE_READ(object, member))

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
} lifecycle_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, WIRE_COUNTER_COUNT);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

/* A program may be preempted, or interrupted by a softirq, in the middle of an addition. */
static __always_inline void counter_add(u32 counter, u64 n)
{
	u64 *value = bpf_map_lookup_elem(&counters, &counter);

	if (value)
		__sync_fetch_and_add(value, n);
}

/* ---- the lifecycle ring ---- */

static __always_inline void lifecycle_begin(struct wire_event *event, u8 kind)
{
	__builtin_memset(event, 0, sizeof(*event));
	event->version = WIRE_EVENT_VERSION;
	event->kind = kind;
	event->when_ns = bpf_ktime_get_ns();
	event->start_ns = event->when_ns;
}

/* For an event that is of no flow. */
static __always_inline struct wire_event *lifecycle_reserve(u8 kind)
{
	struct wire_event *event = bpf_ringbuf_reserve(&lifecycle_ring, sizeof(*event), 0);

	if (!event) {
		counter_add(WIRE_COUNTER_LIFECYCLE_LOST, 1);
		return NULL;
	}
	lifecycle_begin(event, kind);
	return event;
}

/* wake = BPF_RB_NO_WAKEUP, or BPF_RB_FORCE_WAKEUP for what somebody waits for. */
static __always_inline void lifecycle_submit(struct wire_event *event, u64 wake)
{
	counter_add(WIRE_COUNTER_RECORDS, 1);
	bpf_ringbuf_submit(event, wake);
}

#endif
