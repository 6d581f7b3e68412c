/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by store*.c alone. */
#ifndef NIGHTCLERK_STORE_PRIVATE_H
#define NIGHTCLERK_STORE_PRIVATE_H

#include "store.h"

#include <sqlite3.h>

#define STORE_APPLICATION_ID 0x4e434c4b /* "NCLK" in the file's header */
#define STORE_PAST_SECONDS 86400

/* Statements that are used again and again; made at first use. */
enum store_statement {
	STATEMENT_ADD_ATTEMPT,
	STATEMENT_FIND_ATTEMPT,
	STATEMENT_CHANGE_ATTEMPT,
	STATEMENT_USE_ATTEMPT,
	STATEMENT_OPEN_ATTEMPT,
	STATEMENT_SPARE_ATTEMPT,
	STATEMENT_FIND_CALL,
	STATEMENT_ADD_CALL,
	STATEMENT_CHANGE_CALL,
	STATEMENT_KEEP_RESULT,
	STATEMENT_PUT_FINDING,
	STATEMENT_DROP_FINDING,
	STATEMENT_NOTE_FINDING,
	STATEMENT_PUT_BLIND,
	STATEMENT_PUT_RUN,
	STATEMENT_COUNT,
};

struct store {
	sqlite3 *db;
	char *path;
	sqlite3_stmt *statement[STATEMENT_COUNT];
	char reason[STORE_REASON_MAX];
};

extern const char *const store_migrations[STORE_VERSION];
extern const char *const store_statements[STATEMENT_COUNT];

/* ---- store.c ---- */

/* The last error of SQLite in words; doing = "open", "write to". -errno. */
int store_failed(struct store *store, const char *doing);
/* Of statements that return nothing. 0 or -errno. */
int store_execute(struct store *store, const char *sql);
/* A statement of its own, for store_finish(); NULL after store_failed(). */
sqlite3_stmt *store_prepare(struct store *store, const char *sql);
int store_finish(struct store *store, sqlite3_stmt *statement, const char *doing);
/* One of the table, with nothing bound. NULL after store_failed(). */
sqlite3_stmt *store_statement(struct store *store, enum store_statement which);
/* Steps a statement that returns no row, and resets it. 0 or -errno. */
int store_run(struct store *store, sqlite3_stmt *statement);
int store_begin(struct store *store);
/* Commits where err is 0, else rolls back. err, or that of the commit. */
int store_end(struct store *store, int err);
int store_migrate(struct store *store, const char *const *steps, int count);

/* Binding. */
void store_bind_time(sqlite3_stmt *statement, int index, int64_t ns); /* 0 = NULL */
void store_bind_count(sqlite3_stmt *statement, int index, int64_t value); /* -1 = NULL */
void store_bind_text(sqlite3_stmt *statement, int index, const char *text); /* NULL or "" = NULL; borrowed */
void store_bind_blob(sqlite3_stmt *statement, int index, const uint8_t *bytes, bool there);
int64_t store_column_time(sqlite3_stmt *statement, int index);
int64_t store_column_count(sqlite3_stmt *statement, int index); /* NULL = -1 */
const char *store_column_text(sqlite3_stmt *statement, int index);

/* ---- store_call.c: one row of calls ---- */

enum call_status { CALL_PENDING, CALL_DONE, CALL_ABANDONED };
const char *call_status_name(enum call_status status);

struct call_row {
	char key[256];
	bool exists;
	int64_t rowid; /* where it exists, within this transaction */
	enum call_status status;
	char reason[64];
	char model[CALL_NAME_BYTES + 1];
	char schema_version[SCHEMA_VERSION_MAX + 1];
	char process[WIRE_COMM_BYTES + 1];
	char path[BOOKING_PATH_MAX];
	struct store_tokens tokens;
	bool usage_whole;
	int64_t attempts, billed, wasted;
	bool has_result;
	char result_attempt[2 * CALL_ID_BYTES + 1]; /* "" = none */
	char owner[16];				    /* "observed", "reserve", "once"; "" = nobody */
	uint32_t owner_pid, owner_ns_pid;
	uint64_t owner_start_ns;
	char owner_boot[33];
	int64_t lease_ns; /* until then */
	int64_t created_ns, updated_ns;
};

/* exists is false where there is none; then all is zero but for the key. */
int call_row_read(struct store *store, const char *key, struct call_row *ret_row);
/* Where it was read: inside one transaction. */
int call_row_write(struct store *store, const struct call_row *row);
/* Somebody asked for it by name and is still within the lease. */
bool call_row_is_reserved(const struct call_row *row, int64_t now_ns);
/* Nobody owns it any more. */
void call_row_let_go(struct call_row *row);
void call_row_abandon(struct call_row *row, const char *reason);
/*
 * Its recorded answer is recorded no more: what it cost is waste. A kept result
 * stays where it is. The caller writes the row.
 */
int call_row_forget(struct store *store, struct call_row *row);
/*
 * No answer is recorded: one of this call that was read whole takes its place,
 * and what it cost is no waste any more. Where there is none, result_attempt
 * stays empty. The caller writes the row.
 */
int call_row_fall_back(struct store *store, struct call_row *row);

/* ---- store_hop.c ---- */

/* Inside a transaction. What is not there, or is a hop already, changes nothing. */
int store_book_hop(struct store *store, const struct booked_hop *booked);

#endif
