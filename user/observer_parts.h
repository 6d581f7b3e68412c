/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside an observer. Private to observer*.c: observer.c lets inputs
 * through, observer_files.c writes what comes of them, observer_store.c does so
 * for the account book, observer_open.c is the start and the end of it all.
 */
#ifndef NIGHTCLERK_OBSERVER_PARTS_H
#define NIGHTCLERK_OBSERVER_PARTS_H

#include "observer.h"
#include "canary.h"
#include "cgroup_names.h"
#include "control.h"
#include "heap.h"
#include "store_writer.h"

#define WAITING_REQUESTS_MAX 64

/* A mark or sync that waits until everything sent before it has gone through. */
struct waiting_request {
	struct control_request request;
	uint64_t asked_ns;
};

struct observer {
	struct observer_options options;
	struct run_facts facts;
	struct capture *capture;
	struct sequencer *sequencer;
	struct pipeline *pipeline;
	struct pipeline_output out;
	struct recording_writer *recording;
	struct output *ledger;
	struct output *events;
	struct output *junit;
	struct output *recording_file; /* observer->recording writes to a copy of its descriptor */
	bool begun;		       /* observer_begin(): what was in the files may be gone */
	struct store *store; /* until the writer takes it over */
	struct store_writer *store_writer; /* NULL = none was asked for */
	struct canary *canary; /* while it is being proved */
	struct control *control; /* NULL = mark and sync are not answered */
	struct waiting_request waiting[WAITING_REQUESTS_MAX];
	size_t waiting_count;
	struct cgroup_names *cgroups;
	bool counters_unread;	 /* the last time they should have been */
	uint64_t drain_failures; /* events may be gone without a hole to show it */
	uint64_t next_tick_ns;
	uint64_t next_counters_ns;
	bool write_failed; /* said once, as is what follows */
	bool lines_lost;
	int64_t wall_offset_ns;
	struct heap heap;
};

/* ---- observer.c ---- */

/* The one door: recorded, then into the pipeline. 0 or -errno. */
int observer_feed(struct observer *observer, const struct input *input);
/* Everything that may leave the sequencer at until_ns. */
void observer_let_through(struct observer *observer, uint64_t until_ns, uint64_t now_ns);
/* May that process mark and sync? context: the observer. */
bool observer_admits(void *context, pid_t pid);

/* ---- observer_files.c ---- */

/* No two of them are one file, nor one that belongs to the store. 0, or -EINVAL with reason filled. */
int observer_keep_files_apart(const struct observer_options *options, char *reason);
/* Opens what is asked for and changes nothing in it. 0, or -errno with reason filled. */
int observer_open_files(struct observer *observer, char *reason);
/* What the pipeline made, bookings too; what cannot be written is kept. */
void observer_write_out(struct observer *observer);
/* At the end: bytes that could not be written all the same. */
uint64_t observer_wait_for_readers(struct observer *observer);
/* What was not begun is abandoned. */
void observer_close_files(struct observer *observer);

/* ---- observer_store.c ---- */

/* All of them do nothing where no store was asked for. */

/* Where it cannot be opened the run goes on, and its rows are counted as lost. */
void observer_open_store(struct observer *observer);
/* Attempts of earlier runs go through observer_feed(). */
void observer_load_past(struct observer *observer);
/* Starts a thread. 0, or -errno with reason filled. */
int observer_start_store_writer(struct observer *observer, char *reason);
/* Hands the rows over. */
void observer_write_store(struct observer *observer);
/* Everything up to here is in the store, or it is counted as lost: closing says which. */
void observer_settle_store(struct observer *observer, struct closing *closing);
/* For a sync that was asked for: are the rows before it written? */
bool observer_store_has_all(struct observer *observer, uint64_t now_ns);
/* After the last booking. */
void observer_close_store(struct observer *observer);

#endif
