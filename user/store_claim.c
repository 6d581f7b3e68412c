/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asking first: who may do a piece of work, and what it gave. Each function is
 * one transaction, so of all who ask at once one is told to go on.
 */
#include "store_private.h"

#include <errno.h>

#define TICK_NS 10000000ULL /* /proc counts the start of a process in these */

/* ---- whose row is it ---- */

static bool is_observed(const struct call_row *row)
{
	return strcmp(row->owner, "observed") == 0;
}

/* Its owner is the caller, or a process that it belongs to. */
static bool is_of_claimant(const struct call_row *row, const struct store_claim *claim)
{
	if (strcmp(row->owner_boot, claim->world->boot) != 0)
		return false;
	for (size_t i = 0; i < claim->process_count; i++) {
		const struct store_process *process = &claim->process[i];

		if ((row->owner_pid == process->pid || row->owner_ns_pid == process->pid) &&
		    row->owner_start_ns / TICK_NS == process->start_ns / TICK_NS)
			return true;
	}
	return false;
}

/* A call of the caller's own, seen on the wire. */
static bool is_own(const struct call_row *row, const struct store_claim *claim)
{
	return is_observed(row) && is_of_claimant(row, claim);
}

/* What the caller reserved itself. An owner that could not be told (pid 0) is taken at its word. */
static bool is_held(const struct call_row *row, const struct store_claim *claim)
{
	return row->exists && row->status == CALL_PENDING && strcmp(row->owner, claim->owner) == 0 &&
	       (row->owner_pid == 0 || is_of_claimant(row, claim));
}

static bool is_owner_gone(const struct call_row *row, const struct store_world *world)
{
	return strcmp(row->owner_boot, world->boot) != 0 ||
	       (world->is_gone && world->is_gone(row->owner_pid, row->owner_start_ns));
}

/* Why nobody is at it any more; NULL: somebody is. Only the lease ends what was asked for by name. */
static const char *why_left(const struct call_row *row, const struct store_world *world)
{
	if (is_observed(row) && is_owner_gone(row, world))
		return "owner_exited";
	return row->lease_ns <= world->now_ns ? "lease_over" : NULL;
}

static bool is_expired(const struct call_row *row, const struct store_claim *claim)
{
	return claim->ttl_ns > 0 && row->updated_ns + claim->ttl_ns <= claim->world->now_ns;
}

/* It was asked for by name and never committed; but the wire saw its answer, and that was read whole. */
static bool is_answered(const struct call_row *row)
{
	return row->exists && row->status == CALL_PENDING && row->result_attempt[0];
}

static enum store_answer answer_of(const struct call_row *row, const struct store_claim *claim)
{
	if (!row->exists || row->status == CALL_ABANDONED)
		return STORE_RESERVED;
	if (row->status == CALL_DONE || (is_answered(row) && why_left(row, claim->world)))
		return is_expired(row, claim) ? STORE_RESERVED : STORE_DONE;
	return is_own(row, claim) || why_left(row, claim->world) ? STORE_RESERVED : STORE_PENDING;
}

/* ---- results ---- */

static int read_result(struct store *store, const char *key, struct buffer *result, bool *ret_has_result)
{
	sqlite3_stmt *statement = store_prepare(store, "SELECT result FROM calls WHERE key = ?1 AND result IS NOT NULL");
	int err = 0;

	*ret_has_result = false;
	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, key);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		struct bytes bytes = {sqlite3_column_blob(statement, 0), (size_t)sqlite3_column_bytes(statement, 0)};

		*ret_has_result = true;
		err = buffer_append(result, bytes);
	}
	if (err)
		snprintf(store->reason, sizeof(store->reason), "out of memory");
	sqlite3_reset(statement);
	return err ? (sqlite3_finalize(statement), err) : store_finish(store, statement, "read");
}

static int write_result(struct store *store, const char *key, struct bytes result, bool there)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_KEEP_RESULT);
	struct digest digest;
	char sha[STORE_KEY_TEXT];

	if (!statement)
		return -EIO;
	if (digest_of(result, &digest))
		return -ENOMEM;
	hex_of(digest.byte, DIGEST_BYTES, sha);
	store_bind_text(statement, 1, key);
	if (there) {
		sqlite3_bind_blob64(statement, 2, result.size ? (const void *)result.data : "", result.size, SQLITE_STATIC);
		store_bind_text(statement, 3, sha);
	}
	return store_run(store, statement);
}

/* ---- reserve ---- */

static void begin_row(struct call_row *row, const struct store_claim *claim)
{
	if (!row->exists) {
		row->created_ns = claim->world->now_ns;
		snprintf(row->schema_version, sizeof(row->schema_version), "%s", claim->schema_version);
	}
	if (claim->model && !row->model[0])
		snprintf(row->model, sizeof(row->model), "%s", claim->model);
	row->updated_ns = claim->world->now_ns;
}

static int take(struct store *store, const struct store_claim *claim, struct call_row *row)
{
	int err = 0;

	begin_row(row, claim);
	if (row->has_result)
		err = write_result(store, claim->key, (struct bytes){0}, false);
	if (!err)
		err = call_row_forget(store, row);
	row->status = CALL_PENDING;
	row->reason[0] = '\0';
	call_row_let_go(row);
	snprintf(row->owner, sizeof(row->owner), "%s", claim->owner);
	snprintf(row->owner_boot, sizeof(row->owner_boot), "%s", claim->world->boot);
	if (claim->process_count) {
		row->owner_pid = claim->process[0].pid;
		row->owner_start_ns = claim->process[0].start_ns;
	}
	row->lease_ns = claim->world->now_ns + claim->lease_ns;
	return err ? err : call_row_write(store, row);
}

int store_reserve(struct store *store, const struct store_claim *claim, enum store_answer *ret_answer,
		  struct buffer *result, bool *ret_has_result)
{
	struct call_row row;
	int err = call_row_read(store, claim->key, &row); /* most who ask are told that it is done: no lock for that */

	*ret_has_result = false;
	if (!err && answer_of(&row, claim) == STORE_RESERVED) {
		err = store_begin(store);
		if (err)
			return err;
		err = call_row_read(store, claim->key, &row);
		if (!err && answer_of(&row, claim) == STORE_RESERVED) {
			*ret_answer = STORE_RESERVED;
			return store_end(store, take(store, claim, &row));
		}
		err = store_end(store, err);
	}
	if (err)
		return err;
	*ret_answer = answer_of(&row, claim);
	return *ret_answer == STORE_DONE && row.has_result ? read_result(store, claim->key, result, ret_has_result) : 0;
}

int store_renew(struct store *store, const struct store_claim *claim, bool *ret_held)
{
	struct call_row row;
	int err = store_begin(store);

	if (err)
		return err;
	err = call_row_read(store, claim->key, &row);
	*ret_held = !err && is_held(&row, claim);
	if (*ret_held) {
		row.lease_ns = claim->world->now_ns + claim->lease_ns;
		err = call_row_write(store, &row);
	}
	return store_end(store, err);
}

/* ---- commit, release, get ---- */

static int finish_row(struct store *store, const struct store_claim *claim, struct call_row *row, struct bytes result,
		      bool has_result)
{
	int err;

	begin_row(row, claim);
	row->status = CALL_DONE;
	row->reason[0] = '\0';
	call_row_let_go(row);
	err = call_row_write(store, row);
	return err || !has_result ? err : write_result(store, claim->key, result, true);
}

int store_commit(struct store *store, const struct store_claim *claim, struct bytes result, bool has_result,
		 bool *ret_first)
{
	struct call_row row;
	int err = store_begin(store);

	if (err)
		return err;
	err = call_row_read(store, claim->key, &row);
	*ret_first = !err && !(row.exists && row.status == CALL_DONE && (row.has_result || !has_result));
	if (*ret_first)
		err = finish_row(store, claim, &row, result, has_result);
	return store_end(store, err);
}

static enum store_release release_of(const struct call_row *row, const struct store_claim *claim)
{
	if (!row->exists || row->status != CALL_PENDING || is_observed(row))
		return STORE_NOT_RESERVED;
	return is_held(row, claim) || is_owner_gone(row, claim->world) ? STORE_GIVEN_BACK : STORE_HELD_BY_ANOTHER;
}

int store_release(struct store *store, const struct store_claim *claim, const char *reason, enum store_release *ret_release)
{
	struct call_row row;
	int err = store_begin(store);

	if (err)
		return err;
	err = call_row_read(store, claim->key, &row);
	*ret_release = err ? STORE_NOT_RESERVED : release_of(&row, claim);
	if (*ret_release == STORE_GIVEN_BACK) {
		call_row_abandon(&row, reason);
		row.updated_ns = claim->world->now_ns;
		err = call_row_write(store, &row);
	}
	return store_end(store, err);
}

int store_get(struct store *store, const char *key, enum store_answer *ret_answer, struct buffer *result,
	      bool *ret_has_result)
{
	struct call_row row;
	int err = call_row_read(store, key, &row);

	*ret_has_result = false;
	if (err)
		return err;
	*ret_answer = !row.exists || row.status == CALL_ABANDONED ? STORE_ABSENT
		      : row.status == CALL_DONE			  ? STORE_DONE
								  : STORE_PENDING;
	return *ret_answer == STORE_DONE ? read_result(store, key, result, ret_has_result) : 0;
}

/* ---- sweep ---- */

static int close_attempts(struct store *store, const char *key, const char *reason)
{
	sqlite3_stmt *statement =
		store_prepare(store, "UPDATE attempts SET outcome = ?2 WHERE key = ?1 AND outcome IS NULL");

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, key);
	store_bind_text(statement, 2, reason);
	sqlite3_step(statement);
	return store_finish(store, statement, "write to");
}

/* Nobody is at it any more. */
static int close_call(struct store *store, struct call_row *row, const struct store_world *world, const char *reason)
{
	int err = close_attempts(store, row->key, reason);

	if (is_answered(row)) {
		row->status = CALL_DONE;
		call_row_let_go(row);
	} else {
		call_row_abandon(row, reason);
		row->updated_ns = world->now_ns;
	}
	return err ? err : call_row_write(store, row);
}

static int pending_keys(struct store *store, struct buffer *keys)
{
	sqlite3_stmt *statement = store_prepare(store, "SELECT key FROM calls WHERE status = 'pending'");
	int err = 0;

	if (!statement)
		return -EIO;
	while (!err && sqlite3_step(statement) == SQLITE_ROW)
		err = buffer_append(keys, (struct bytes){sqlite3_column_text(statement, 0),
							 (size_t)sqlite3_column_bytes(statement, 0) + 1});
	if (err) {
		snprintf(store->reason, sizeof(store->reason), "out of memory");
		sqlite3_finalize(statement);
		return err;
	}
	return store_finish(store, statement, "read");
}

static int abandon_what_was_left(struct store *store, const struct store_world *world, uint64_t *ret_count)
{
	struct buffer keys = {0};
	struct bytes rest;
	int err = pending_keys(store, &keys);

	for (rest = buffer_bytes(&keys); !err && rest.size;) {
		struct bytes key = bytes_take(&rest, bytes_find(rest, '\0') + 1);
		struct call_row row;
		const char *reason;

		err = call_row_read(store, (const char *)key.data, &row);
		reason = err || !row.exists ? NULL : why_left(&row, world);
		if (!reason)
			continue;
		err = close_call(store, &row, world, reason);
		*ret_count += !err && row.status == CALL_ABANDONED;
	}
	buffer_done(&keys);
	return err;
}

static int remove_before(struct store *store, const char *sql, int64_t before_ns, uint64_t *count)
{
	sqlite3_stmt *statement = store_prepare(store, sql);

	if (!statement)
		return -EIO;
	sqlite3_bind_double(statement, 1, (double)before_ns / 1e9);
	if (sqlite3_step(statement) == SQLITE_DONE)
		*count += (uint64_t)sqlite3_changes(store->db);
	return store_finish(store, statement, "write to");
}

/* Attempts stay as long as the call whose sums they are. */
static int remove_old(struct store *store, int64_t before_ns, uint64_t *ret_calls)
{
	static const char *const rows[] = {
		"DELETE FROM attempts WHERE t < ?1 AND NOT EXISTS (SELECT 1 FROM calls WHERE calls.key = attempts.key)",
		"DELETE FROM findings WHERE t < ?1 AND NOT EXISTS (SELECT 1 FROM attempts WHERE seq = attempt_seq)",
		"DELETE FROM blind WHERE t < ?1",
		"DELETE FROM runs WHERE coalesce(ended_at, started_at) < ?1",
	};
	uint64_t ignored = 0;
	int err = remove_before(store, "DELETE FROM calls WHERE updated_at < ?1 AND status != 'pending'", before_ns, ret_calls);

	for (size_t i = 0; !err && i < sizeof(rows) / sizeof(rows[0]); i++)
		err = remove_before(store, rows[i], before_ns, &ignored);
	return err;
}

int store_sweep(struct store *store, const struct store_world *world, int64_t ttl_ns, struct store_swept *ret_swept)
{
	struct store_swept swept = {0};
	int err = store_begin(store);

	if (err)
		return err;
	err = abandon_what_was_left(store, world, &swept.abandoned);
	if (!err && ttl_ns > 0)
		err = remove_old(store, world->now_ns - ttl_ns, &swept.removed);
	err = store_end(store, err);
	if (!err && ttl_ns > 0)
		err = store_execute(store, "PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)");
	if (!err)
		*ret_swept = swept;
	return err;
}
