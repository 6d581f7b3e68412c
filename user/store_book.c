/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bookings into rows. Of several snapshots of one attempt in a batch only the
 * last is written. What an attempt adds to its call (attempts, billed, wasted)
 * is the difference to what its own row says, so that a snapshot that comes
 * again adds nothing.
 */
#include "store_private.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

/* What the row of an attempt says now. */
struct stored {
	bool is_new;
	int64_t seq;
	bool over;
	bool billed;
	bool used;
	int64_t tokens; /* input and output, where it is billed */
};

struct booker {
	struct store *store;
	const struct store_run *run;
	char boot[33];
};

static int64_t known(int64_t tokens)
{
	return tokens > 0 ? tokens : 0;
}

static int64_t tokens_of(const struct booked_attempt *attempt)
{
	return attempt->billed ? known(attempt->usage.input_tokens) + known(attempt->usage.output_tokens) : 0;
}

/* ---- the row of an attempt ---- */

static void bind_usage(sqlite3_stmt *statement, const struct booked_attempt *attempt)
{
	const struct usage *usage = &attempt->usage;

	if (usage->seen) {
		store_bind_count(statement, 24, usage->input_tokens);
		store_bind_count(statement, 25, usage->output_tokens);
		store_bind_count(statement, 26, usage->cached_tokens);
		store_bind_count(statement, 27, usage->cache_write_tokens);
		store_bind_count(statement, 28, usage->reasoning_tokens);
		sqlite3_bind_int(statement, 29, usage->final);
	}
	sqlite3_bind_int(statement, 30, attempt->billed);
	sqlite3_bind_int64(statement, 31, (int64_t)attempt->holes);
}

static void bind_course(sqlite3_stmt *statement, const struct booked_attempt *attempt)
{
	const struct past_attempt *facts = &attempt->facts;
	static const char *const closers[] = {NULL, "client", "server"};

	store_bind_time(statement, 5, attempt->sent_ns);
	store_bind_time(statement, 6, facts->status_ns);
	store_bind_time(statement, 7, facts->complete_ns);
	store_bind_time(statement, 8, facts->closed_ns);
	store_bind_text(statement, 9, attempt_outcome_name(attempt->outcome));
	sqlite3_bind_int(statement, 10, attempt->over);
	store_bind_count(statement, 11, facts->status ? facts->status : -1);
	store_bind_text(statement, 12, facts->delivered == DELIVERED_UNKNOWN ? NULL : call_delivered_name(facts->delivered));
	store_bind_text(statement, 13, closers[facts->closed_first]);
	sqlite3_bind_int(statement, 14, attempt->response_complete);
	sqlite3_bind_int(statement, 15, attempt->answer_complete);
	sqlite3_bind_int(statement, 32, facts->flags);
}

static void bind_origin(sqlite3_stmt *statement, const struct booked_attempt *attempt)
{
	const struct past_attempt *facts = &attempt->facts;

	store_bind_time(statement, 4, facts->first_ns);
	store_bind_text(statement, 16, attempt->model);
	store_bind_text(statement, 17, attempt->path);
	store_bind_text(statement, 18, attempt->server);
	sqlite3_bind_int64(statement, 19, facts->tgid);
	sqlite3_bind_int64(statement, 20, attempt->ns_tgid);
	sqlite3_bind_int64(statement, 21, (int64_t)facts->process_start_ns);
	store_bind_text(statement, 22, attempt->comm);
	sqlite3_bind_int64(statement, 23, attempt->uid);
	if (facts->idem_state == IDEM_PRESENT)
		sqlite3_bind_text(statement, 33, facts->idem, facts->idem_size, SQLITE_STATIC);
	sqlite3_bind_int(statement, 34, facts->idem_state);
	store_bind_blob(statement, 35, facts->fingerprint, facts->flags & PAST_FINGERPRINT);
	store_bind_blob(statement, 36, facts->prompt_fingerprint, facts->flags & PAST_PROMPT_FINGERPRINT);
	store_bind_blob(statement, 37, facts->principal, facts->flags & PAST_PRINCIPAL);
	store_bind_blob(statement, 38, facts->key_scope, facts->idem_state == IDEM_PRESENT);
}

static int find_attempt(struct store *store, const char *id, struct stored *ret_stored)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_FIND_ATTEMPT);
	int code;

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, id);
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -ENOENT : store_failed(store, "read");
	ret_stored->seq = sqlite3_column_int64(statement, 0);
	ret_stored->over = sqlite3_column_int(statement, 1);
	ret_stored->billed = sqlite3_column_int(statement, 2);
	ret_stored->used = sqlite3_column_int(statement, 3);
	if (ret_stored->billed)
		ret_stored->tokens = known(store_column_count(statement, 4)) + known(store_column_count(statement, 5));
	sqlite3_reset(statement);
	return 0;
}

/* Adds the row, or says what it was before. -EALREADY: nothing that is said here is news. */
static int put_attempt(struct booker *booker, const struct booked_attempt *attempt, const char *id, const char *key,
		       struct stored *ret_stored)
{
	struct store *store = booker->store;
	sqlite3_stmt *statement = store_statement(store, STATEMENT_ADD_ATTEMPT);
	int err;

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, id);
	store_bind_text(statement, 2, key);
	store_bind_text(statement, 3, booker->run->id);
	bind_origin(statement, attempt);
	bind_course(statement, attempt);
	bind_usage(statement, attempt);
	err = store_run(store, statement);
	if (err)
		return err;
	if (sqlite3_changes(store->db)) {
		*ret_stored = (struct stored){.is_new = true, .seq = sqlite3_last_insert_rowid(store->db)};
		return 0;
	}
	err = find_attempt(store, id, ret_stored);
	if (err || (ret_stored->over && !attempt->over))
		return err ? err : -EALREADY;
	statement = store_statement(store, STATEMENT_CHANGE_ATTEMPT);
	if (!statement)
		return -EIO;
	bind_course(statement, attempt);
	bind_usage(statement, attempt);
	sqlite3_bind_int64(statement, 39, ret_stored->seq);
	return store_run(store, statement);
}

/* ---- the row of its call ---- */

static void reason_of(const struct booked_attempt *attempt, char *text, size_t size)
{
	if (attempt->outcome == OUTCOME_STATUS)
		snprintf(text, size, "status_%u", attempt->facts.status);
	else
		snprintf(text, size, "%s", attempt_outcome_name(attempt->outcome));
}

static int mark_used(struct store *store, int64_t seq, bool used)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_USE_ATTEMPT);

	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, seq);
	sqlite3_bind_int(statement, 2, used);
	return store_run(store, statement);
}

static int keep_result(struct store *store, const char *key, const struct booked_attempt *attempt)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_KEEP_RESULT);
	struct digest digest;
	char sha[STORE_KEY_TEXT];

	if (!statement || digest_of((struct bytes){attempt->result, attempt->result_size}, &digest))
		return -ENOMEM;
	hex_of(digest.byte, DIGEST_BYTES, sha);
	store_bind_text(statement, 1, key);
	sqlite3_bind_blob64(statement, 2, attempt->result, attempt->result_size, SQLITE_STATIC);
	store_bind_text(statement, 3, sha);
	return store_run(store, statement);
}

/* Its answer becomes the recorded one. */
static int record(struct booker *booker, struct call_row *row, const struct booked_attempt *attempt, const char *id,
		  struct stored *stored)
{
	snprintf(row->result_attempt, sizeof(row->result_attempt), "%s", id);
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	if (attempt->billed)
		row->tokens = (struct store_tokens){attempt->usage.input_tokens, attempt->usage.output_tokens,
						    attempt->usage.cached_tokens, attempt->usage.reasoning_tokens};
	row->usage_whole = attempt->usage.final && row->tokens.input >= 0 && row->tokens.output >= 0;
	stored->used = true;
	return mark_used(booker->store, stored->seq, true);
}

/* It turned out that its client had not read all of it. */
static int unrecord(struct booker *booker, struct call_row *row, struct stored *stored)
{
	row->result_attempt[0] = '\0';
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	if (row->status == CALL_DONE && !row->has_result)
		call_row_abandon(row, "not_delivered");
	stored->used = false;
	return mark_used(booker->store, stored->seq, false);
}

static void own(struct booker *booker, struct call_row *row, uint32_t pid, uint32_t ns_pid, uint64_t start_ns)
{
	row->status = CALL_PENDING;
	row->reason[0] = '\0';
	snprintf(row->owner, sizeof(row->owner), "observed");
	snprintf(row->owner_boot, sizeof(row->owner_boot), "%s", booker->boot);
	row->owner_pid = pid;
	row->owner_ns_pid = ns_pid;
	row->owner_start_ns = start_ns;
}

/* Pending while any attempt is open: another one may still be at it when this one has ended. */
static int settle_pending(struct booker *booker, struct call_row *row, const struct booked_attempt *attempt)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_OPEN_ATTEMPT);
	char reason[32];
	int code;

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, row->key);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW) {
		own(booker, row, (uint32_t)sqlite3_column_int64(statement, 0),
		    (uint32_t)sqlite3_column_int64(statement, 1), (uint64_t)sqlite3_column_int64(statement, 2));
	} else if (code == SQLITE_DONE) {
		reason_of(attempt, reason, sizeof(reason));
		call_row_abandon(row, reason);
	}
	sqlite3_reset(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? 0 : store_failed(booker->store, "read");
}

static int settle_status(struct booker *booker, struct call_row *row, const struct booked_attempt *attempt)
{
	if (call_row_is_reserved(row, attempt->at_ns) || (row->exists && row->status == CALL_DONE))
		return 0;
	if (row->result_attempt[0]) {
		row->status = CALL_DONE;
		row->reason[0] = '\0';
		call_row_let_go(row);
		return 0;
	}
	if (attempt->outcome != OUTCOME_OPEN)
		return settle_pending(booker, row, attempt);
	own(booker, row, attempt->facts.tgid, attempt->ns_tgid, attempt->facts.process_start_ns);
	row->lease_ns = attempt->facts.first_ns + booker->run->lease_ns;
	return 0;
}

static void describe(struct booker *booker, struct call_row *row, const struct booked_attempt *attempt)
{
	if (!row->exists) {
		row->created_ns = attempt->facts.first_ns;
		snprintf(row->schema_version, sizeof(row->schema_version), "%s", booker->run->schema_version);
	}
	if (row->attempts == 0) {
		snprintf(row->process, sizeof(row->process), "%s", attempt->comm);
		snprintf(row->path, sizeof(row->path), "%s", attempt->path);
		snprintf(row->model, sizeof(row->model), "%s", attempt->model);
	}
	if (attempt->at_ns > row->updated_ns)
		row->updated_ns = attempt->at_ns;
}

static int book_call(struct booker *booker, const struct booked_attempt *attempt, const char *id, const char *key,
		     struct stored *stored)
{
	int64_t wasted_before = stored->used ? 0 : stored->tokens;
	struct call_row row;
	bool keep = false;
	int err = call_row_read(booker->store, key, &row);

	if (err)
		return err;
	describe(booker, &row, attempt);
	row.attempts += stored->is_new;
	row.billed += attempt->billed - stored->billed;
	if (attempt->outcome == OUTCOME_ANSWERED && (stored->used || !row.result_attempt[0])) {
		keep = attempt->result && !row.has_result;
		err = record(booker, &row, attempt, id, stored);
	} else if (stored->used && attempt->outcome != OUTCOME_ANSWERED) {
		err = unrecord(booker, &row, stored);
	}
	row.wasted += (stored->used ? 0 : tokens_of(attempt)) - wasted_before;
	if (!err)
		err = settle_status(booker, &row, attempt);
	if (!err)
		err = call_row_write(booker->store, &row);
	return !err && keep ? keep_result(booker->store, key, attempt) : err;
}

static int book_one_attempt(struct booker *booker, const struct booked_attempt *attempt)
{
	char id[2 * CALL_ID_BYTES + 1], key[STORE_KEY_TEXT];
	struct stored stored = {0};
	int err;

	hex_of(attempt->facts.id, CALL_ID_BYTES, id);
	hex_of(attempt->key.byte, DIGEST_BYTES, key);
	err = put_attempt(booker, attempt, id, attempt->has_key ? key : NULL, &stored);
	if (err == -EALREADY)
		return 0;
	return err || !attempt->has_key ? err : book_call(booker, attempt, id, key, &stored);
}

/* ---- findings, blind streams, runs ---- */

static int note_finding(struct booker *booker, const struct booked_finding *finding, const char *id)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_NOTE_FINDING);

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, id);
	store_bind_text(statement, 2, finding->finding);
	store_bind_text(statement, 3, finding->severity);
	return store_run(booker->store, statement);
}

static int drop_finding(struct booker *booker, const char *id)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_DROP_FINDING);

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, id);
	return store_run(booker->store, statement);
}

static int put_finding(struct booker *booker, const struct booked_finding *finding, const char *id)
{
	static const uint8_t nobody[CALL_ID_BYTES];
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_PUT_FINDING);
	char earlier[2 * CALL_ID_BYTES + 1];

	if (!statement)
		return -EIO;
	hex_of(finding->earlier, CALL_ID_BYTES, earlier);
	store_bind_text(statement, 1, id);
	sqlite3_bind_int(statement, 2, finding->alone);
	store_bind_text(statement, 3, finding->finding);
	store_bind_text(statement, 4, finding->severity);
	store_bind_text(statement, 5, memcmp(finding->earlier, nobody, sizeof(nobody)) ? earlier : NULL);
	if (!finding->alone) {
		sqlite3_bind_int64(statement, 6, (int64_t)finding->attempt);
		sqlite3_bind_int64(statement, 7, (int64_t)finding->attempts);
	}
	sqlite3_bind_int(statement, 8, finding->cross_process);
	store_bind_text(statement, 9, finding->rule);
	store_bind_time(statement, 10, finding->at_ns);
	return store_run(booker->store, statement);
}

static int book_finding(struct booker *booker, const struct booked_finding *finding)
{
	char id[2 * CALL_ID_BYTES + 1];
	int err;

	hex_of(finding->id, CALL_ID_BYTES, id);
	err = finding->finding ? put_finding(booker, finding, id) : drop_finding(booker, id);
	return err || finding->alone ? err : note_finding(booker, finding, id);
}

static int put_blind(struct booker *booker, const struct booked_blind *blind)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_PUT_BLIND);

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, booker->run->id);
	store_bind_time(statement, 2, blind->at_ns);
	store_bind_text(statement, 3, blind->kind);
	sqlite3_bind_int64(statement, 4, blind->pid);
	store_bind_text(statement, 5, blind->comm);
	sqlite3_bind_int64(statement, 6, (int64_t)blind->bytes_out);
	sqlite3_bind_int64(statement, 7, (int64_t)blind->bytes_in);
	return store_run(booker->store, statement);
}

static int put_run(struct booker *booker, const struct booked_run *run)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_PUT_RUN);

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, booker->run->id);
	store_bind_time(statement, 2, run->started_ns);
	store_bind_time(statement, 3, run->ended_ns);
	store_bind_text(statement, 4, booker->boot);
	sqlite3_bind_int64(statement, 5, (int64_t)run->blind_streams);
	sqlite3_bind_int64(statement, 6, (int64_t)run->hole_bytes);
	return store_run(booker->store, statement);
}

/* ---- a batch ---- */

static int book(struct booker *booker, const struct booking *booking)
{
	switch (booking->kind) {
	case BOOKING_ATTEMPT:
		return book_one_attempt(booker, &booking->attempt);
	case BOOKING_FINDING:
		return book_finding(booker, &booking->finding);
	case BOOKING_BLIND:
		return put_blind(booker, &booking->blind);
	case BOOKING_RUN:
		return put_run(booker, &booking->run);
	}
	return 0;
}

struct latest { /* the last snapshot of an attempt in a batch */
	const uint8_t *id;
	size_t i;
	UT_hash_handle hh;
};

/*
 * An attempt is written where it was first mentioned, as it was last, so that
 * its row is there before its findings: write[i] is the booking to write in
 * place i, SIZE_MAX for none. NULL when out of memory: then all are written.
 */
static size_t *choose(const struct buffer *bookings)
{
	size_t count = bookings_count(bookings);
	size_t *write = calloc(count + 1, sizeof(*write));
	struct latest *entries = calloc(count + 1, sizeof(*entries)), *table = NULL, *entry;

	for (size_t i = 0; write && entries && i < count; i++) {
		const struct booking *booking = bookings_at(bookings, i);

		write[i] = i;
		if (booking->kind != BOOKING_ATTEMPT)
			continue;
		HASH_FIND(hh, table, booking->attempt.facts.id, CALL_ID_BYTES, entry);
		if (entry) {
			write[entry->i] = i;
			write[i] = SIZE_MAX;
			continue;
		}
		entries[i].id = booking->attempt.facts.id;
		entries[i].i = i;
		HASH_ADD_KEYPTR(hh, table, entries[i].id, CALL_ID_BYTES, &entries[i]);
	}
	HASH_CLEAR(hh, table);
	if (!entries) {
		free(write);
		write = NULL;
	}
	free(entries);
	return write;
}

int store_book(struct store *store, const struct store_run *run, struct buffer *bookings)
{
	struct booker booker = {.store = store, .run = run};
	size_t *write = choose(bookings);
	int err = store_begin(store);

	hex_of(run->boot_id, sizeof(run->boot_id), booker.boot);
	if (err) {
		free(write);
		return err;
	}
	for (size_t i = 0; !err && i < bookings_count(bookings); i++) {
		size_t chosen = write ? write[i] : i;

		if (chosen != SIZE_MAX)
			err = book(&booker, bookings_at(bookings, chosen));
	}
	free(write);
	err = store_end(store, err);
	if (!err)
		bookings_clear(bookings);
	return err;
}
