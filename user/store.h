/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account book of model calls: an SQLite file. store*.c are the only files
 * that know SQLite.
 *
 * calls: one row a key (model_key.h), attempts: one row a request, findings,
 * blind, runs. store_schema.c says what each column means. Every function
 * takes the time as an argument (CLOCK_REALTIME ns); every change is one
 * transaction that either is in the file or is not.
 *
 * Many programs may use one file at once: a writer waits for another one, a
 * reader for nobody. Functions return 0 or -errno, and store_reason() says what
 * was wrong and what to do: -EBUSY another program holds the lock, -ENOSPC the
 * disk is full, -EROFS not writable, -EBADMSG no store or a damaged one,
 * -EPROTONOSUPPORT written by a newer nightclerk, -EINVAL the row itself was
 * refused, -EIO the rest.
 */
#ifndef NIGHTCLERK_STORE_H
#define NIGHTCLERK_STORE_H

#include "booking.h"
#include "output.h"

#define STORE_VERSION 1
#define STORE_LEASE_NS (900 * 1000000000LL)
#define STORE_KEY_TEXT (2 * DIGEST_BYTES + 1)
#define STORE_RESULT_MAX (64 * 1024 * 1024)
#define STORE_REASON_MAX OUTPUT_REASON_MAX

struct store;

struct store_options {
	const char *path;
	struct output_owner owner; /* whose rights open it */
	bool create;		   /* make it where there is none */
	bool durable;		   /* a change is on the disk, not only in the system's memory, when it is acknowledged */
	bool bulk;		   /* a great many rows at once, as in a replay: the disk is waited for less often */
	bool small;		   /* one of many: 2 MiB of memory; no file but its own (see store_files_of()) is touched */
	int busy_ms;		   /* longest wait for another writer; 0 = 20 s */
};

/*
 * Opens it, 0600 where it is made, and brings an older schema to this one. 0,
 * or -errno with one line in reason (STORE_REASON_MAX bytes) that names the
 * file, the cause and the remedy. -ENOENT: there is none, and create is false.
 */
int store_open(const struct store_options *options, struct store **ret_store, char *reason);
void store_close(struct store *store); /* accepts NULL */
/* What the library opens once for all of the process, before that may be too late. */
void store_warm_up(void);
/* Brings what is in FILE-wal into FILE, so that a copy of that alone is whole. What is in use just now stays there. */
void store_tidy(struct store *store);
/* Its file was removed, renamed or replaced since it was opened: what is written goes nowhere. */
bool store_has_moved(struct store *store);
/* Of the last function that failed. Valid until the next one. */
const char *store_reason(const struct store *store);

/* What lies beside it, or does so for a while: nobody else may write there. */
#define STORE_FILES 5
struct store_files {
	char path[STORE_FILES][4096]; /* the store itself first; "" = its name is too long for it */
};
void store_files_of(const char *path, struct store_files *ret_files);

/*
 * The salt of fingerprints, in FILE.salt: principals and secrets then have the
 * same hash in every run that shares the store. Made where there is none,
 * 0600. 0, or -errno with reason filled.
 */
int store_salt(const char *path, const struct output_owner *owner, uint8_t salt[32], char *reason);

/* ---- what the wire says ---- */

struct store_run {
	char id[17];
	int64_t lease_ns; /* of a pending row from the begin of its latest attempt */
	uint8_t boot_id[16];
	char schema_version[SCHEMA_VERSION_MAX + 1];
	bool rows_lost; /* some of its rows are not in the file: it has no end then, as after a kill */
};

/*
 * All of them in one transaction. 0, with bookings emptied and the number of
 * rows that they were about; or -errno: none of them is in the file.
 */
int store_book(struct store *store, const struct store_run *run, struct buffer *bookings, uint64_t *ret_rows);

/* ---- asking first ---- */

struct store_process { /* as whoever asks sees it */
	uint32_t pid;
	uint64_t start_ns; /* boot clock, whole ticks of 10 ms */
};

#define STORE_ANCESTORS_MAX 32

/* What the store cannot know by itself. */
struct store_world {
	int64_t now_ns;
	char boot[33]; /* id of this boot, hex; owners of another one are gone */
	/* True when a process of this boot has exited; NULL = nobody is known to have. */
	bool (*is_gone)(uint32_t pid, uint64_t start_ns);
};

struct store_claim {
	const char *key;   /* as printed by `nightclerk key`, or any text that a job calls its own; at most 255 bytes */
	const char *owner; /* static: "reserve", "once" */
	const char *model; /* NULL = not known */
	const char *schema_version;
	const struct store_world *world;
	int64_t lease_ns;
	int64_t ttl_ns; /* > 0: a result older than this is none */
	/* The one that owns what is reserved, then its ancestors: their own calls do not block it. */
	struct store_process process[STORE_ANCESTORS_MAX];
	size_t process_count;
};

enum store_answer {
	STORE_RESERVED, /* the row is the caller's, until its lease is over */
	STORE_DONE,
	STORE_PENDING, /* somebody else is at it */
	STORE_ABSENT,  /* no row, or abandoned: store_get() alone */
};

/* Atomic: of all who ask, one is told STORE_RESERVED. STORE_DONE: a kept result is appended to result. */
int store_reserve(struct store *store, const struct store_claim *claim, enum store_answer *ret_answer,
		  struct buffer *result, bool *ret_has_result);
/* A longer lease, while the row is still the caller's: *ret_held is false when somebody else took it, or it is over. */
int store_renew(struct store *store, const struct store_claim *claim, bool *ret_held);
/*
 * Makes it done, with a result where has_result. The first result stays:
 * *ret_first is false when there was one already.
 */
int store_commit(struct store *store, const struct store_claim *claim, struct bytes result, bool has_result,
		 bool *ret_first);

enum store_release {
	STORE_GIVEN_BACK,     /* abandoned, with the reason */
	STORE_NOT_RESERVED,   /* nothing changed, as below */
	STORE_HELD_BY_ANOTHER,
};
/* Gives back what the caller or one of its ancestors reserved, or a process that is known to be gone. */
int store_release(struct store *store, const struct store_claim *claim, const char *reason, enum store_release *ret_release);
int store_get(struct store *store, const char *key, enum store_answer *ret_answer, struct buffer *result,
	      bool *ret_has_result);

struct store_swept {
	uint64_t abandoned; /* pending rows whose lease was over or whose owner is gone */
	uint64_t removed;   /* calls older than ttl_ns */
};
/* ttl_ns 0: nothing is removed. What is removed gives its room back to the file system. */
int store_sweep(struct store *store, const struct store_world *world, int64_t ttl_ns, struct store_swept *ret_swept);

/* ---- reading ---- */

/* Attempts that began after since_ns, the newest max of them, oldest first; each is lent during each(). */
int store_past_attempts(struct store *store, int64_t since_ns, size_t max,
			void (*each)(void *context, const struct past_attempt *past), void *context);

struct store_tokens { /* -1 = not known */
	int64_t input, output, cached, reasoning;
};

/* Text is lent during each(); NULL where there is none. */
struct store_call_row {
	const char *key, *status, *reason, *model, *process, *path;
	struct store_tokens tokens; /* of the recorded result */
	int64_t attempts, billed, wasted;
	double created_s, updated_s;
};
struct store_attempt_row {
	const char *model, *process, *path, *finding;
	struct store_tokens tokens;
	bool billed, used, keyed;
	bool is_hop; /* the same attempt as its parent, seen behind a gateway */
	bool again;  /* a hop, and not the first one of its parent */
	int64_t holes;
	double at_s;
};
struct store_blind_row {
	const char *process, *kind;
	double at_s;
};

/* since_ns: by created_at, or the begin of the attempt. key NULL = all. */
int store_each_call(struct store *store, int64_t since_ns, const char *key,
		    int (*each)(void *context, const struct store_call_row *row), void *context);
/* Those that began since, and those that were sent again since: what is asserted is about both. */
int store_each_active_call(struct store *store, int64_t since_ns, const char *key,
			   int (*each)(void *context, const struct store_call_row *row), void *context);
int store_each_attempt(struct store *store, int64_t since_ns, const char *key,
		       int (*each)(void *context, const struct store_attempt_row *row), void *context);
int store_each_blind(struct store *store, int64_t since_ns,
		     int (*each)(void *context, const struct store_blind_row *row), void *context);
/* Bytes that were not seen, of the runs that ended since, and runs that never ended and asked something since. */
int store_holes(struct store *store, int64_t since_ns, uint64_t *ret_hole_bytes, uint64_t *ret_unclean_runs);

/* Why what the calls say may be less than what was. */
struct store_unseen {
	uint64_t hole_bytes, unclean_runs;
	uint64_t blind;		/* streams */
	uint64_t unkeyed;	/* attempts whose request was not seen whole: nobody knows of which call */
	uint64_t without_usage; /* answers of a 2xx whose tokens are not known, so nor is whether they were billed */
};
/* key NULL = all; else attempts count of that key alone. */
int store_what_was_unseen(struct store *store, int64_t since_ns, const char *key, struct store_unseen *ret_unseen);

#endif
