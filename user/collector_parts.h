/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside a collector. Private to collector*.c: collector.c is the loop,
 * collector_ask.c talks with the monitor, collector_files.c writes.
 */
#ifndef NIGHTCLERK_COLLECTOR_PARTS_H
#define NIGHTCLERK_COLLECTOR_PARTS_H

#include "collector.h"
#include "output.h"

#define ASKED_CGROUPS 1024

/* One output of one tenant. */
struct book_file {
	struct output *output; /* NULL = not opened yet, or it cannot be */
	bool reopen;	       /* as soon as nothing waits for the one that is open */
	bool said;	       /* that it cannot be opened or written */
	uint64_t retry_ns;     /* opened again from then on */
	uint64_t lost_bytes;   /* of lines that found no room to wait for it */
};

struct book {
	char name[MONITOR_NAME_MAX + 1];
	struct pipeline_output *out; /* what is to be written */
	struct book_file files[MONITOR_FILE_COUNT];
};

struct collector {
	const struct collector_options *options;
	struct capture *capture;
	struct monitor_wire *wire;
	struct capture_rights rights;
	struct sequencer *sequencer;
	struct canary *canary;
	struct pipeline *pipeline;
	struct pipeline_output out;
	struct book book;
	/* what the monitor ordered */
	bool monitor_gone, finish, reopen;
	struct buffer policy_text;
	bool policy_due;
	/* of the loop */
	uint64_t asked_cgroups[ASKED_CGROUPS]; /* each where its id puts it: who is there was asked for already */
	uint64_t next_tick_ns, next_counters_ns;
	uint64_t settled_ns;	 /* everything before it has left the sequencer */
	uint64_t drain_failures; /* events may be gone without a hole to show it */
	bool counters_unread;
	int64_t wall_offset_ns;
};

/* ---- collector_ask.c; each returns 0 or -errno (-ECONNRESET: the monitor is gone) ---- */

/* What has come from the monitor, without waiting. */
void collector_take_orders(struct collector *collector);
int collector_say(struct collector *collector, enum monitor_kind kind, struct bytes body);
/* The path of a cgroup; lent until the next question. */
int collector_ask_cgroup(struct collector *collector, uint64_t id, uint32_t tgid, struct bytes *ret_path);
/* kind: MONITOR_OPEN or MONITOR_ROTATE. The descriptor is the caller's. */
int collector_ask_file(struct collector *collector, enum monitor_kind kind, const struct book *book, enum monitor_file file,
		       int *ret_fd);
/* capture's way to the monitor. */
struct capture_rights collector_rights(struct collector *collector);

/* ---- collector_files.c ---- */

/* Writes what the pipeline made; what cannot be written is kept. */
void collector_write(struct collector *collector, struct book *book, uint64_t now_ns);
/* Every line so far is written. */
bool collector_is_written(const struct book *book);
/* At the end: bytes that could not be written all the same. */
uint64_t collector_flush(struct book *book);
void collector_close(struct book *book);

#endif
