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
	bool is_hop;
	bool answered;
	int64_t tokens; /* input and output, where it is billed */
};

/* An attempt of a batch, with what the batch says of it and an earlier one. */
struct placed {
	const struct booked_attempt *attempt;
	const struct booked_finding *finding; /* NULL = nothing */
};

struct booker {
	struct store *store;
	const struct store_run *run;
	char boot[33];
};

static int64_t number_of(const uint8_t id[CALL_ID_BYTES])
{
	int64_t number;

	memcpy(&number, id, sizeof(number));
	return number;
}

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

/* -ENOENT: there is none. */
static int find_attempt(struct store *store, const uint8_t id[CALL_ID_BYTES], struct stored *ret_stored)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_FIND_ATTEMPT);
	int code;

	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, number_of(id));
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? -ENOENT : store_failed(store, "read");
	ret_stored->seq = sqlite3_column_int64(statement, 0);
	ret_stored->over = sqlite3_column_int(statement, 1);
	ret_stored->billed = sqlite3_column_int(statement, 2);
	ret_stored->used = sqlite3_column_int(statement, 3);
	ret_stored->is_hop = sqlite3_column_int(statement, 6);
	ret_stored->answered = sqlite3_column_int(statement, 7);
	if (ret_stored->billed)
		ret_stored->tokens = known(store_column_count(statement, 4)) + known(store_column_count(statement, 5));
	sqlite3_reset(statement);
	return 0;
}

static int add_attempt(struct booker *booker, const struct placed *placed, const char *key, bool used)
{
	const struct booked_finding *finding = placed->finding;
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_ADD_ATTEMPT);
	char id[2 * CALL_ID_BYTES + 1];

	if (!statement)
		return -EIO;
	hex_of(placed->attempt->facts.id, CALL_ID_BYTES, id);
	store_bind_text(statement, 1, id);
	store_bind_text(statement, 2, key);
	store_bind_text(statement, 3, booker->run->id);
	bind_origin(statement, placed->attempt);
	bind_course(statement, placed->attempt);
	bind_usage(statement, placed->attempt);
	sqlite3_bind_int(statement, 39, used);
	store_bind_text(statement, 40, finding ? finding->finding : NULL);
	store_bind_text(statement, 41, finding ? finding->severity : NULL);
	sqlite3_bind_int64(statement, 42, number_of(placed->attempt->facts.id));
	return store_run(booker->store, statement);
}

static int change_attempt(struct store *store, const struct booked_attempt *attempt, int64_t seq)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_CHANGE_ATTEMPT);

	if (!statement)
		return -EIO;
	bind_course(statement, attempt);
	bind_usage(statement, attempt);
	sqlite3_bind_int64(statement, 39, seq);
	return store_run(store, statement);
}

static int note_finding(struct store *store, const struct booked_finding *finding, int64_t seq);

/* Adds the row, or says what it was before. -EALREADY: nothing that is said here is news. */
static int put_attempt(struct booker *booker, const struct placed *placed, const char *key, bool used,
		       struct stored *ret_stored)
{
	struct store *store = booker->store;
	int err = add_attempt(booker, placed, key, used);

	if (err)
		return err;
	if (sqlite3_changes(store->db)) {
		*ret_stored = (struct stored){.is_new = true, .seq = sqlite3_last_insert_rowid(store->db), .used = used};
		return 0;
	}
	err = find_attempt(store, placed->attempt->facts.id, ret_stored);
	if (!err && placed->finding)
		err = note_finding(store, placed->finding, ret_stored->seq);
	if (err || ret_stored->is_hop || (ret_stored->over && !placed->attempt->over))
		return err ? err : -EALREADY;
	return change_attempt(store, placed->attempt, ret_stored->seq);
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
static int record(struct booker *booker, struct call_row *row, const struct booked_attempt *attempt, struct stored *stored)
{
	hex_of(attempt->facts.id, CALL_ID_BYTES, row->result_attempt);
	if (stored->used && !attempt->billed)
		return 0; /* what a gateway was told of its cost stays */
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	if (attempt->billed)
		row->tokens = (struct store_tokens){attempt->usage.input_tokens, attempt->usage.output_tokens,
						    attempt->usage.cached_tokens, attempt->usage.reasoning_tokens};
	row->usage_whole = attempt->usage.final && row->tokens.input >= 0 && row->tokens.output >= 0;
	if (stored->used)
		return 0;
	stored->used = true;
	return mark_used(booker->store, stored->seq, true);
}

/* What was recorded says nothing that we can read of its cost, and is kept nowhere: a better one takes its place. */
static bool is_without_cost(const struct call_row *row)
{
	return row->result_attempt[0] && row->tokens.input < 0 && row->tokens.output < 0 && !row->has_result;
}

/* It turned out that its client had not read all of it. */
static int unrecord(struct booker *booker, struct call_row *row, struct stored *stored)
{
	int64_t wasted = row->wasted;
	int err = call_row_forget(booker->store, row);

	stored->used = false;
	if (stored->billed)
		row->wasted = wasted; /* the caller adds it */
	if (!err)
		err = call_row_fall_back(booker->store, row);
	if (!err && !row->result_attempt[0] && row->status == CALL_DONE && !row->has_result)
		call_row_abandon(row, "not_delivered");
	return err;
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

static int book_call(struct booker *booker, const struct booked_attempt *attempt, struct call_row *row,
		     struct stored *stored)
{
	int64_t wasted_before = stored->is_new || stored->used ? 0 : stored->tokens;
	bool keep = false;
	/* What was answered before, and is not used, was put aside by then: it is no news that comes again. */
	bool answered = attempt->outcome == OUTCOME_ANSWERED && (stored->used || !stored->answered);
	int err = 0;

	describe(booker, row, attempt);
	row->attempts += stored->is_new;
	row->billed += attempt->billed - stored->billed;
	if (answered && !stored->used && attempt->billed && is_without_cost(row))
		err = call_row_forget(booker->store, row);
	if (!err && answered && (stored->used || !row->result_attempt[0])) {
		keep = attempt->result && !row->has_result;
		err = record(booker, row, attempt, stored);
	} else if (!err && stored->used && attempt->outcome != OUTCOME_ANSWERED) {
		err = unrecord(booker, row, stored);
	}
	row->wasted += (stored->used ? 0 : tokens_of(attempt)) - wasted_before;
	if (!err)
		err = settle_status(booker, row, attempt);
	if (!err)
		err = call_row_write(booker->store, row);
	return !err && keep ? keep_result(booker->store, row->key, attempt) : err;
}

static int book_one_attempt(struct booker *booker, const struct placed *placed, int64_t *ret_seq)
{
	const struct booked_attempt *attempt = placed->attempt;
	struct stored stored = {0};
	char key[STORE_KEY_TEXT];
	struct call_row row;
	int err = 0;

	hex_of(attempt->key.byte, DIGEST_BYTES, key);
	memset(&row, 0, sizeof(row));
	if (attempt->has_key)
		err = call_row_read(booker->store, key, &row);
	if (!err)
		err = put_attempt(booker, placed, attempt->has_key ? key : NULL,
				  attempt->has_key && attempt->outcome == OUTCOME_ANSWERED && !row.result_attempt[0], &stored);
	*ret_seq = stored.seq;
	if (err == -EALREADY)
		return 0;
	return err || !attempt->has_key ? err : book_call(booker, attempt, &row, &stored);
}

/* ---- findings, blind streams, runs ---- */

static int note_finding(struct store *store, const struct booked_finding *finding, int64_t seq)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_NOTE_FINDING);

	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, seq);
	store_bind_text(statement, 2, finding->finding);
	store_bind_text(statement, 3, finding->severity);
	return store_run(store, statement);
}

static int drop_finding(struct booker *booker, int64_t seq)
{
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_DROP_FINDING);

	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, seq);
	return store_run(booker->store, statement);
}

static int put_finding(struct booker *booker, const struct booked_finding *finding, int64_t seq)
{
	static const uint8_t nobody[CALL_ID_BYTES];
	sqlite3_stmt *statement = store_statement(booker->store, STATEMENT_PUT_FINDING);
	char earlier[2 * CALL_ID_BYTES + 1];

	if (!statement)
		return -EIO;
	hex_of(finding->earlier, CALL_ID_BYTES, earlier);
	sqlite3_bind_int64(statement, 1, seq);
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

/* seq 0: its attempt is in no earlier place of the batch. noted: the attempt's own row says it already. */
static int book_finding(struct booker *booker, const struct booked_finding *finding, int64_t seq, bool noted)
{
	struct stored stored;
	int err = 0;

	if (seq == 0) {
		err = find_attempt(booker->store, finding->id, &stored);
		if (err)
			return err == -ENOENT ? 0 : err;
		seq = stored.seq;
	}
	err = finding->finding ? put_finding(booker, finding, seq) : drop_finding(booker, seq);
	return err || finding->alone || noted ? err : note_finding(booker->store, finding, seq);
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
	store_bind_time(statement, 3, booker->run->rows_lost ? 0 : run->ended_ns);
	store_bind_text(statement, 4, booker->boot);
	sqlite3_bind_int64(statement, 5, (int64_t)run->blind_streams);
	sqlite3_bind_int64(statement, 6, (int64_t)run->hole_bytes);
	return store_run(booker->store, statement);
}

/* ---- a batch ---- */

#define NOWHERE UINT32_MAX

/* What is to be written in the place of a booking. */
struct place {
	uint32_t attempt; /* the booking of the attempt's last snapshot; NOWHERE: it is written in an earlier place */
	uint32_t finding; /* the last booking that says something of it and an earlier one; NOWHERE = none */
	uint32_t of;	  /* a finding: the place of its attempt; NOWHERE = not in this batch */
	int64_t seq;	  /* an attempt: its row, once it is written */
	UT_hash_handle hh;
};

static struct place *place_of(struct place *table, const uint8_t id[CALL_ID_BYTES])
{
	struct place *place;

	HASH_FIND(hh, table, id, CALL_ID_BYTES, place);
	return place;
}

/*
 * An attempt is written where it was first mentioned, as it was last, with what
 * was said of it last; its findings follow. Returns NULL when out of memory.
 */
static struct place *find_places(const struct buffer *bookings, uint64_t *ret_rows)
{
	size_t count = bookings_count(bookings);
	struct place *places = calloc(count + 1, sizeof(*places)), *table = NULL, *place;

	for (size_t i = 0; places && i < count; i++) {
		const struct booking *booking = bookings_at(bookings, i);

		places[i].attempt = (uint32_t)i;
		places[i].finding = places[i].of = NOWHERE;
		*ret_rows += 1;
		if (booking->kind == BOOKING_FINDING && (place = place_of(table, booking->finding.id))) {
			places[i].of = (uint32_t)(place - places);
			if (!booking->finding.alone)
				place->finding = (uint32_t)i;
		}
		if (booking->kind != BOOKING_ATTEMPT)
			continue;
		place = place_of(table, booking->attempt.facts.id);
		if (place) {
			place->attempt = (uint32_t)i;
			places[i].attempt = NOWHERE;
			*ret_rows -= 1;
			continue;
		}
		HASH_ADD_KEYPTR(hh, table, booking->attempt.facts.id, CALL_ID_BYTES, &places[i]);
	}
	HASH_CLEAR(hh, table);
	return places;
}

static int book(struct booker *booker, const struct buffer *bookings, struct place *places, size_t i)
{
	struct place *place = &places[i];
	const struct booking *booking = bookings_at(bookings, place->attempt);
	struct placed placed = {.attempt = &booking->attempt};

	switch (booking->kind) {
	case BOOKING_ATTEMPT:
		if (place->finding != NOWHERE)
			placed.finding = &bookings_at(bookings, place->finding)->finding;
		return book_one_attempt(booker, &placed, &place->seq);
	case BOOKING_FINDING:
		return book_finding(booker, &booking->finding, place->of == NOWHERE ? 0 : places[place->of].seq,
				    place->of != NOWHERE);
	case BOOKING_BLIND:
		return put_blind(booker, &booking->blind);
	case BOOKING_HOP:
		return store_book_hop(booker->store, &booking->hop);
	case BOOKING_RUN:
		return put_run(booker, &booking->run);
	}
	return 0;
}

int store_book(struct store *store, const struct store_run *run, struct buffer *bookings, uint64_t *ret_rows)
{
	struct booker booker = {.store = store, .run = run};
	uint64_t rows = 0;
	struct place *places = find_places(bookings, &rows);
	int err;

	if (!places) {
		snprintf(store->reason, sizeof(store->reason), "cannot write to %s: out of memory", store->path);
		return -ENOMEM;
	}
	hex_of(run->boot_id, sizeof(run->boot_id), booker.boot);
	err = store_begin(store);
	if (!err) {
		for (size_t i = 0; !err && i < bookings_count(bookings); i++)
			if (places[i].attempt != NOWHERE)
				err = book(&booker, bookings, places, i);
		err = store_end(store, err);
	}
	free(places);
	if (err)
		return err;
	bookings_clear(bookings);
	*ret_rows = rows;
	return 0;
}
