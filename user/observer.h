/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live side of the house: capture -> sequencer -> recording and pipeline ->
 * files. `run` and `watch` each drive one. Here are the clock and the
 * writes that the stages do without.
 */
#ifndef NIGHTCLERK_OBSERVER_H
#define NIGHTCLERK_OBSERVER_H

#include "capture.h"
#include "output.h"
#include "pipeline.h"
#include "recording.h"

#define OBSERVER_PERIOD_MS 5
/* Events after which is written what they made: the lines of a backlog must not all be in memory at once. */
#define OBSERVER_WRITE_EVENTS 1024

struct observer_options {
	struct capture_options capture;
	struct pipeline_options pipeline;
	const char *ledger;    /* path; NULL = none */
	const char *events;    /* path, "-", "fd:N"; NULL = none */
	const char *recording; /* path; NULL = none */
	const char *junit;     /* path; NULL = none */
	const char *db;	       /* path of the store; NULL = none */
	const char *output;    /* path of the file that the caller writes what the command prints to; NULL = none */
	int64_t lease_ns;      /* of a pending row in it */
	int64_t ttl_ns;	       /* > 0: what is older is removed from it */
	bool append_mark;      /* mark the ledger as in use (`run`) */
	bool canary;	       /* prove that the probe fires before anything else */
	bool control;	       /* answer `mark` and `sync` */
	struct output_owner owner;
	char scope[64];
	const char *command; /* argv[0]; NULL = none */
	int argument_count;
};

struct observer;

/*
 * Loads and attaches the probes, opens the files, proves that the probes fire.
 * 0, or -errno with one line in reason (OUTPUT_REASON_MAX bytes); nothing is
 * left behind then, and what was in the files still is.
 */
int observer_open(const struct observer_options *options, struct observer **ret_observer, char *reason);
/*
 * The run begins: empties the files that it replaces (recording, JUnit), marks
 * the ledger. Without it observer_close() leaves the files as they were. 0, or
 * -errno with reason filled.
 */
int observer_begin(struct observer *observer, char *reason);
/* Readable when a ring wants to be drained. */
int observer_fd(const struct observer *observer);
/* Readable when `mark` or `sync` knocks; -1 where they are not answered. */
int observer_control_fd(const struct observer *observer);
struct capture *observer_capture(struct observer *observer);

/* One turn: drain the rings, let what is due go through, write. Call it at least every OBSERVER_PERIOD_MS. 0 or -errno. */
int observer_turn(struct observer *observer);
size_t observer_open_calls(const struct observer *observer);

/*
 * The end: both rings until they are empty, everything held, the flows that
 * live on, the counters, the closing input. 0 or -errno.
 */
int observer_finish(struct observer *observer, int command_status);
/* After observer_finish(): the probes go, what was seen stays. */
void observer_detach(struct observer *observer);
/* After observer_finish(): not every line is written, be it only the summary, which cannot say so then. */
bool observer_is_short(const struct observer *observer);
/* The same: design's order, with 11 where observer_is_short(). */
int observer_exit_status(const struct observer *observer);
/* Text for people: alerts so far (cleared by observer_take_alerts) and the summary line. */
struct bytes observer_alerts(const struct observer *observer);
void observer_take_alerts(struct observer *observer);
/* The lines of calls that completed (options.pipeline.live_calls), until observer_take_calls(). */
struct bytes observer_calls(const struct observer *observer);
void observer_take_calls(struct observer *observer);
void observer_set_style(struct observer *observer, struct alert_style style);
const char *observer_summary_line(const struct observer *observer);

/* Detaches, closes the files, frees. Accepts NULL. */
void observer_close(struct observer *observer);

/* Rows that are not in the store, up to now; 0 where none was asked for, and after observer_finish(). */
uint64_t observer_store_lost(const struct observer *observer);

#endif
