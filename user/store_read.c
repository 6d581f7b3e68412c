/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading: rows for `report`, and the attempts of earlier runs. A reader waits
 * for no writer.
 */
#include "store_private.h"

#include <errno.h>

static void bind_since(sqlite3_stmt *statement, int64_t since_ns)
{
	sqlite3_bind_double(statement, 1, (double)since_ns / 1e9);
}

/* ---- attempts of earlier runs ---- */

static void take_digest(sqlite3_stmt *statement, int index, uint8_t to[DIGEST_BYTES])
{
	if (sqlite3_column_bytes(statement, index) == DIGEST_BYTES)
		memcpy(to, sqlite3_column_blob(statement, index), DIGEST_BYTES);
}

static void take_id(const char *hex, uint8_t id[CALL_ID_BYTES])
{
	unsigned int byte;

	for (size_t i = 0; hex && i < CALL_ID_BYTES && sscanf(hex + 2 * i, "%2x", &byte) == 1; i++)
		id[i] = (uint8_t)byte;
}

static enum call_delivered delivered_of(const char *name)
{
	for (int delivered = DELIVERED_ALL; name && delivered <= DELIVERED_NONE; delivered++)
		if (strcmp(name, call_delivered_name(delivered)) == 0)
			return delivered;
	return DELIVERED_UNKNOWN;
}

static void take_past(sqlite3_stmt *statement, struct past_attempt *past)
{
	const char *closer = store_column_text(statement, 8);
	int idem_bytes = sqlite3_column_bytes(statement, 14);

	memset(past, 0, sizeof(*past));
	take_id(store_column_text(statement, 0), past->id);
	past->first_ns = store_column_time(statement, 1);
	past->status_ns = store_column_time(statement, 2);
	past->complete_ns = store_column_time(statement, 3);
	past->closed_ns = store_column_time(statement, 4);
	past->status = (uint16_t)sqlite3_column_int(statement, 5);
	past->tgid = (uint32_t)sqlite3_column_int64(statement, 6);
	past->process_start_ns = (uint64_t)sqlite3_column_int64(statement, 7);
	past->closed_first = !closer ? CLOSER_NOBODY : strcmp(closer, "client") == 0 ? CLOSER_CLIENT : CLOSER_SERVER;
	past->delivered = delivered_of(store_column_text(statement, 9));
	past->flags = (uint16_t)(sqlite3_column_int(statement, 10) & PAST_FLAGS_ALL);
	take_digest(statement, 11, past->fingerprint);
	take_digest(statement, 12, past->prompt_fingerprint);
	take_digest(statement, 13, past->principal);
	past->idem_state = (uint8_t)(sqlite3_column_int(statement, 15) & 3);
	if (idem_bytes > 0 && idem_bytes <= PAST_KEY_MAX) {
		memcpy(past->idem, sqlite3_column_text(statement, 14), (size_t)idem_bytes);
		past->idem_size = (uint8_t)idem_bytes;
	}
	take_digest(statement, 16, past->key_scope);
}

int store_past_attempts(struct store *store, int64_t since_ns, size_t max,
			void (*each)(void *context, const struct past_attempt *past), void *context)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT * FROM (SELECT id, t, status_at, complete_at, closed_at, status, pid, start_ns, closed_first,"
		       " delivered, flags, fingerprint, prompt_fingerprint, principal, idem, idem_state, key_scope, seq"
		       " FROM attempts WHERE t >= ?1 ORDER BY t DESC LIMIT ?2) ORDER BY t, seq");
	struct past_attempt past;

	if (!statement)
		return -EIO;
	bind_since(statement, since_ns);
	sqlite3_bind_int64(statement, 2, (int64_t)max);
	while (sqlite3_step(statement) == SQLITE_ROW) {
		take_past(statement, &past);
		each(context, &past);
	}
	return store_finish(store, statement, "read");
}

/* ---- rows for `report` ---- */

static void take_tokens(sqlite3_stmt *statement, int first, struct store_tokens *tokens)
{
	tokens->input = store_column_count(statement, first);
	tokens->output = store_column_count(statement, first + 1);
	tokens->cached = store_column_count(statement, first + 2);
	tokens->reasoning = store_column_count(statement, first + 3);
}

#define SELECT_CALLS \
	"SELECT key, status, reason, model, process, path, prompt_tokens, output_tokens, cached_tokens," \
	" reasoning_tokens, attempts, billed, wasted_tokens, created_at, updated_at FROM calls" \
	" WHERE (?2 IS NULL OR key = ?2) AND "

static int each_call(struct store *store, const char *sql, int64_t since_ns, const char *key,
		     int (*each)(void *context, const struct store_call_row *row), void *context)
{
	sqlite3_stmt *statement = store_prepare(store, sql);
	struct store_call_row row;
	int err = 0;

	if (!statement)
		return -EIO;
	bind_since(statement, since_ns);
	store_bind_text(statement, 2, key);
	while (!err && sqlite3_step(statement) == SQLITE_ROW) {
		row = (struct store_call_row){
			.key = store_column_text(statement, 0),
			.status = store_column_text(statement, 1),
			.reason = store_column_text(statement, 2),
			.model = store_column_text(statement, 3),
			.process = store_column_text(statement, 4),
			.path = store_column_text(statement, 5),
			.attempts = sqlite3_column_int64(statement, 10),
			.billed = sqlite3_column_int64(statement, 11),
			.wasted = sqlite3_column_int64(statement, 12),
			.created_s = sqlite3_column_double(statement, 13),
			.updated_s = sqlite3_column_double(statement, 14),
		};
		take_tokens(statement, 6, &row.tokens);
		err = each(context, &row);
	}
	return err ? (sqlite3_finalize(statement), err) : store_finish(store, statement, "read");
}

int store_each_call(struct store *store, int64_t since_ns, const char *key,
		    int (*each)(void *context, const struct store_call_row *row), void *context)
{
	return each_call(store, SELECT_CALLS "created_at >= ?1", since_ns, key, each, context);
}

int store_each_active_call(struct store *store, int64_t since_ns, const char *key,
			   int (*each)(void *context, const struct store_call_row *row), void *context)
{
	return each_call(store, SELECT_CALLS "(created_at >= ?1 OR key IN (SELECT key FROM attempts WHERE t >= ?1))", since_ns,
			 key, each, context);
}

int store_each_attempt(struct store *store, int64_t since_ns, const char *key,
		       int (*each)(void *context, const struct store_attempt_row *row), void *context)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT model, comm, path, finding, prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, billed,"
		       " used, key IS NOT NULL, holes, t, parent IS NOT NULL, parent IS NOT NULL AND EXISTS (SELECT 1 FROM"
		       " attempts AS other WHERE other.parent = attempts.parent AND other.seq < attempts.seq)"
		       " FROM attempts WHERE t >= ?1 AND (?2 IS NULL OR key = ?2)");
	struct store_attempt_row row;
	int err = 0;

	if (!statement)
		return -EIO;
	bind_since(statement, since_ns);
	store_bind_text(statement, 2, key);
	while (!err && sqlite3_step(statement) == SQLITE_ROW) {
		row = (struct store_attempt_row){
			.model = store_column_text(statement, 0),
			.process = store_column_text(statement, 1),
			.path = store_column_text(statement, 2),
			.finding = store_column_text(statement, 3),
			.billed = sqlite3_column_int(statement, 8),
			.used = sqlite3_column_int(statement, 9),
			.keyed = sqlite3_column_int(statement, 10),
			.holes = sqlite3_column_int64(statement, 11),
			.at_s = sqlite3_column_double(statement, 12),
			.is_hop = sqlite3_column_int(statement, 13),
			.again = sqlite3_column_int(statement, 14),
		};
		take_tokens(statement, 4, &row.tokens);
		err = each(context, &row);
	}
	return err ? (sqlite3_finalize(statement), err) : store_finish(store, statement, "read");
}

int store_each_blind(struct store *store, int64_t since_ns,
		     int (*each)(void *context, const struct store_blind_row *row), void *context)
{
	sqlite3_stmt *statement = store_prepare(store, "SELECT comm, kind, t FROM blind WHERE t >= ?1");
	int err = 0;

	if (!statement)
		return -EIO;
	bind_since(statement, since_ns);
	while (!err && sqlite3_step(statement) == SQLITE_ROW)
		err = each(context, &(struct store_blind_row){.process = store_column_text(statement, 0),
							      .kind = store_column_text(statement, 1),
							      .at_s = sqlite3_column_double(statement, 2)});
	return err ? (sqlite3_finalize(statement), err) : store_finish(store, statement, "read");
}

int store_holes(struct store *store, int64_t since_ns, uint64_t *ret_hole_bytes, uint64_t *ret_unclean_runs)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT coalesce(SUM(hole_bytes), 0), COUNT(*) FILTER (WHERE ended_at IS NULL) FROM runs"
		       " WHERE coalesce(ended_at, started_at) >= ?1 OR (ended_at IS NULL AND run IN (SELECT run FROM attempts WHERE t >= ?1))");

	if (!statement)
		return -EIO;
	bind_since(statement, since_ns);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		*ret_hole_bytes = (uint64_t)sqlite3_column_int64(statement, 0);
		*ret_unclean_runs = (uint64_t)sqlite3_column_int64(statement, 1);
	}
	return store_finish(store, statement, "read");
}

/* A hop is the attempt of its parent: it is the parent that was billed. */
int store_what_was_unseen(struct store *store, int64_t since_ns, const char *key, struct store_unseen *ret_unseen)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT (SELECT COUNT(*) FROM blind WHERE t >= ?1),"
		       " COUNT(*) FILTER (WHERE key IS NULL),"
		       " COUNT(*) FILTER (WHERE key IS NOT NULL AND (?2 IS NULL OR key = ?2) AND status BETWEEN 200 AND 299"
		       "  AND prompt_tokens IS NULL AND output_tokens IS NULL) FROM attempts WHERE t >= ?1 AND parent IS NULL");
	int err;

	if (!statement)
		return -EIO;
	memset(ret_unseen, 0, sizeof(*ret_unseen));
	bind_since(statement, since_ns);
	store_bind_text(statement, 2, key);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		ret_unseen->blind = (uint64_t)sqlite3_column_int64(statement, 0);
		ret_unseen->unkeyed = (uint64_t)sqlite3_column_int64(statement, 1);
		ret_unseen->without_usage = (uint64_t)sqlite3_column_int64(statement, 2);
	}
	err = store_finish(store, statement, "read");
	return err ? err : store_holes(store, since_ns, &ret_unseen->hole_bytes, &ret_unseen->unclean_runs);
}
