/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between stores.c, the queues and the thread, and stores_files.c, which files are
 * open. Nobody else includes it.
 *
 * Two locks. `lock` is of the queues, and is held for moments. `files` is of the
 * open stores, and is held while one is written: by the thread, or by who reads
 * earlier attempts. Who holds one never takes the other.
 */
#ifndef NIGHTCLERK_STORES_PRIVATE_H
#define NIGHTCLERK_STORES_PRIVATE_H

#include "stores.h"

#include <pthread.h>

struct stored {
	char *path;
	struct store_run run;
	/* under lock */
	struct buffer queue;
	struct buffer batch; /* the thread's own while busy */
	bool busy, left;
	bool has_calls;	   /* something else than that there is a run: worth a file */
	uint64_t retry_ns; /* no sooner; CLOCK_MONOTONIC */
	int err;	   /* of the last batch */
	int said_err;
	struct stored_counts counts;
	char reason[STORE_REASON_MAX];
	struct stored *prev, *next;
	/* under files */
	struct store *store; /* NULL = not open */
	/* the thread's */
	int64_t next_sweep_ns; /* 0 = there was no row yet */
};

struct stores {
	struct stores_options options;
	pthread_t thread;
	pthread_mutex_t lock, files;
	pthread_cond_t work, progress;
	struct stored *list; /* the one whose turn it is first */
	size_t waiting_bytes;
	bool give_up; /* what cannot be written at once is lost */
	bool reopen, over;
	struct stored *open[STORES_OPEN_MAX]; /* the one used longest ago first */
	size_t open_count;
};

/* ---- stores_files.c; `files` is held ---- */

/*
 * Opens it if it is not, and makes it the one used last. 0, or -errno with reason filled (-ENOENT: there is none, and
 * create is false).
 */
int stores_open_file(struct stores *stores, struct stored *stored, bool create, char *reason);
void stores_close_file(struct stores *stores, struct stored *stored); /* where it is open */
void stores_close_all(struct stores *stores);
/* stored->batch goes into its file. 0, with its rows, or -errno with reason filled. */
int stores_write_file(struct stores *stores, struct stored *stored, uint64_t *ret_rows, char *reason);
/* store_sweep(); when it is due again stands in next_sweep_ns. What goes wrong is tried again an hour later. */
void stores_sweep_file(struct stores *stores, struct stored *stored);

#endif
