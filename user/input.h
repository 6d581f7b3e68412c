/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What goes into the pipeline, in order: the sequencer makes these, the
 * recording holds these, and nothing else reaches a later stage. So a replay
 * gives the same ledger, events and alerts, byte for byte.
 *
 * Slices inside an input are borrowed and valid during the call that takes it.
 */
#ifndef NIGHTCLERK_INPUT_H
#define NIGHTCLERK_INPUT_H

#include "../bpf/wire_event.h"
#include "bytes.h"

enum input_kind {
	INPUT_WIRE = 1, /* one wire event with its payload */
	INPUT_TICK,	/* time passed */
	INPUT_CGROUP,	/* the path of a cgroup id, before its first use */
	INPUT_COUNTERS, /* a snapshot of the kernel's counters */
	INPUT_MARK,	/* `nightclerk mark` */
	INPUT_DRAIN,	/* the command is over, both rings are empty, the linger is done */
	INPUT_CLOSING,	/* last of all */
};

/* Sums over all CPUs; they only grow. */
struct counters {
	uint64_t value[WIRE_COUNTER_COUNT];
	uint64_t recursion_misses; /* of all programs, without WIRE_COUNTER_HARMLESS_MISSES */
};

struct survivor { /* a process of the tree that outlives the command */
	uint32_t pid;
	char comm[WIRE_COMM_BYTES + 1];
};

#define CLOSING_SURVIVORS_MAX 32

struct closing {
	int32_t command_status; /* as a shell reports it: exit code, or 128 + signal; -1 where no command was run */
	uint32_t survivor_count; /* all of them; survivors[] holds the first CLOSING_SURVIVORS_MAX */
	struct survivor survivors[CLOSING_SURVIVORS_MAX];
	uint64_t ring_size_bytes;
	uint64_t ring_peak_bytes;
	uint64_t wall_ms; /* of the run */
	uint64_t cpu_ms;  /* of nightclerk itself */
};

struct input {
	enum input_kind kind;
	uint64_t now_ns; /* CLOCK_MONOTONIC; never runs backwards between inputs of a run */
	union {
		struct {
			const struct wire_event *event;
			struct bytes payload; /* event->captured_bytes of it */
		} wire;
		struct {
			int64_t wall_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
		} tick;
		struct {
			uint64_t id;
			struct bytes path;
		} cgroup;
		struct counters counters;
		struct {
			struct bytes label; /* may be empty */
		} mark;
		struct closing closing;
	};
};

#endif
