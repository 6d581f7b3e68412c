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
#include <assert.h>

enum input_kind {
	INPUT_WIRE = 1, /* one wire event with its payload */
	INPUT_TICK,	/* time passed */
	INPUT_CGROUP,	/* the path of a cgroup id, before its first use */
	INPUT_COUNTERS, /* a snapshot of the kernel's counters */
	INPUT_MARK,	/* `nightclerk mark` */
	INPUT_DRAIN,	/* the command is over, both rings are empty, the linger is done */
	INPUT_CLOSING,	/* last of all */
	INPUT_PAST,	/* an attempt of an earlier run, from the store; before every wire event */
};

/* Sums over all CPUs; they only grow. */
struct counters {
	uint64_t value[WIRE_COUNTER_COUNT];
	uint64_t recursion_misses; /* of all programs, without WIRE_COUNTER_HARMLESS_MISSES */
};

#define PAST_KEY_MAX 255

/* A model call of an earlier run, as far as a later one may be judged against it. Times: CLOCK_REALTIME ns, 0 = never. */
struct past_attempt {
	uint8_t id[16];
	uint8_t fingerprint[32];
	uint8_t prompt_fingerprint[32];
	uint8_t principal[32];
	uint8_t key_scope[32];
	int64_t first_ns;
	int64_t status_ns;
	int64_t complete_ns;
	int64_t closed_ns;
	uint64_t process_start_ns; /* boot clock */
	uint32_t tgid;
	uint16_t status;
	uint8_t delivered;    /* enum call_delivered */
	uint8_t closed_first; /* enum call_closer */
	uint8_t idem_state;   /* enum idem_state */
	uint8_t idem_size;
	uint16_t flags; /* PAST_* */
	char idem[PAST_KEY_MAX + 1];
	uint8_t padding[4];
};

static_assert(sizeof(struct past_attempt) == 456, "no hidden padding: it is written into recordings");

enum past_flag {
	PAST_FINGERPRINT = 1 << 0, /* it is there */
	PAST_PROMPT_FINGERPRINT = 1 << 1,
	PAST_PRINCIPAL = 1 << 2,
	PAST_BEARER = 1 << 3,
	PAST_REQUEST_COMPLETE = 1 << 4,
	PAST_UNDECIDABLE = 1 << 5,
	PAST_REPLAYED = 1 << 6,
	PAST_STATUS_IN_TIME = 1 << 7,
	PAST_SERVER_READ_KNOWN = 1 << 8,
	PAST_SERVER_READ_ALL = 1 << 9,
	PAST_OWNER_GONE = 1 << 10,
	PAST_ANSWER_CUT = 1 << 11, /* the HTTP message was whole, the model's answer in it was not */
	PAST_FLAGS_ALL = (1 << 12) - 1,
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
	bool has_store;
	uint64_t store_rows; /* committed to the store */
	uint64_t store_lost; /* and those that could not be */
	uint64_t unwritten_bytes; /* of ledger, events and JUnit, before the lines that the closing input leads to */
	uint32_t counters_unread; /* 1: the last INPUT_COUNTERS is not of the end */
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
		const struct past_attempt *past;
	};
};

#endif
