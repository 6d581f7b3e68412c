/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many stores in one directory, NAME.db each, and one thread that writes them
 * all. One is enough: they share a disk, and a transaction of one is over in
 * milliseconds; a thread and an open file for each of hundreds of tenants would
 * be paid for by tenants that rest. A store is opened at its first model call;
 * at most STORES_OPEN_MAX are open, the one that was used longest ago is
 * closed for another.
 *
 * What cannot be written now (a full disk, a lock) is kept and tried again, by
 * turns: a store that is stuck holds up no other. It may wait while it takes no
 * more of STORES_WAITING_BYTES than is left free, so that one that waits with
 * all it has leaves room to the others; what comes beyond is lost, and counted. So is what
 * goes to a store that is damaged, a newer one, or none.
 */
#ifndef NIGHTCLERK_STORES_H
#define NIGHTCLERK_STORES_H

#include "store.h"

#define STORES_OPEN_MAX 32
#define STORES_WAITING_BYTES (64 * 1024 * 1024)

struct stores;
struct stored; /* one of them */

struct stores_options {
	const char *directory; /* "" = the root; borrowed */
	int64_t ttl_ns;	       /* of store_sweep(), which is done at the first row and every hour */
	char boot[33];	       /* as in struct store_world. No process is known to be gone */
};

struct stored_counts {
	uint64_t rows; /* written; a row that was written twice counts twice */
	uint64_t lost;
};

/* Starts the thread. 0 or -errno. */
int stores_new(const struct stores_options *options, struct stores **ret_stores);
/* Tries once more what waits, else it is lost; ends the thread, closes all, frees. Accepts NULL. */
void stores_free(struct stores *stores);

/* NULL when out of memory. name: a file name; of two that have one name the first was left before. */
struct stored *stores_add(struct stores *stores, const char *name, const struct store_run *run);
/* Nothing follows. It is freed when what it was given is written, or lost. */
void stores_leave(struct stores *stores, struct stored *stored);
/* store_past_attempts() of the file, if there is one. Waits for the batch that is being written. 0, or -errno with reason filled. */
int stores_past_attempts(struct stores *stores, struct stored *stored, int64_t since_ns, size_t max,
			 void (*each)(void *context, const struct past_attempt *past), void *context, char *reason);
/* Takes over what the bookings hold and empties them. Never waits. */
void stores_put(struct stores *stores, struct stored *stored, struct buffer *bookings);
/* Each file is closed, and opened by its name at its next row; those that failed are tried again at once. */
void stores_reopen(struct stores *stores);
/*
 * True once after a failure, with a line for people that says what happens now
 * (STORE_REASON_MAX bytes), and once when it is over.
 */
bool stores_notice(struct stores *stores, struct stored *stored, char *text);
struct stored_counts stores_counts(struct stores *stores, const struct stored *stored);
/* Everything that was put is written, or lost. */
bool stores_is_idle(struct stores *stores, const struct stored *stored);
/* Waits until everything is written, at most wait_ms; what is not by then is lost. */
void stores_settle(struct stores *stores, int wait_ms);

#endif
