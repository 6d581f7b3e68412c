/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that a gateway passed on was seen twice and is one attempt: that of
 * whoever asked the gateway. What the model says that it cost counts once, where
 * the asker was told of it, else where the gateway was.
 */
#include "store_private.h"

#include <errno.h>

struct end { /* of a hop: the attempt that was passed on, or the one that passed it on */
	bool exists;
	int64_t seq;
	char id[2 * CALL_ID_BYTES + 1];
	char key[STORE_KEY_TEXT];
	char outcome[32];
	unsigned int status;
	bool billed, used, is_hop;
	struct store_tokens tokens;
	bool final;
};

static int64_t sum_of(const struct end *end)
{
	return (end->tokens.input > 0 ? end->tokens.input : 0) + (end->tokens.output > 0 ? end->tokens.output : 0);
}

static int read_end(struct store *store, const uint8_t id[CALL_ID_BYTES], struct end *ret_end)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT seq, coalesce(key, ''), coalesce(outcome, ''), status, billed, used, parent IS NOT NULL,"
		       " prompt_tokens, output_tokens, cached_tokens, reasoning_tokens, usage_final FROM attempts"
		       " WHERE id_number = ?1");
	int64_t number;

	memset(ret_end, 0, sizeof(*ret_end));
	memcpy(&number, id, sizeof(number));
	hex_of(id, CALL_ID_BYTES, ret_end->id);
	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, number);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		ret_end->exists = true;
		ret_end->seq = sqlite3_column_int64(statement, 0);
		snprintf(ret_end->key, sizeof(ret_end->key), "%s", store_column_text(statement, 1));
		snprintf(ret_end->outcome, sizeof(ret_end->outcome), "%s", store_column_text(statement, 2));
		ret_end->status = (unsigned int)sqlite3_column_int(statement, 3);
		ret_end->billed = sqlite3_column_int(statement, 4);
		ret_end->used = sqlite3_column_int(statement, 5);
		ret_end->is_hop = sqlite3_column_int(statement, 6);
		ret_end->tokens = (struct store_tokens){store_column_count(statement, 7), store_column_count(statement, 8),
							store_column_count(statement, 9), store_column_count(statement, 10)};
		ret_end->final = sqlite3_column_int(statement, 11);
	}
	return store_finish(store, statement, "read");
}

static int write_end(struct store *store, const struct end *end, const char *parent)
{
	sqlite3_stmt *statement =
		store_prepare(store, "UPDATE attempts SET billed = ?2, used = ?3, parent = ?4 WHERE seq = ?1");

	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, end->seq);
	sqlite3_bind_int(statement, 2, end->billed);
	sqlite3_bind_int(statement, 3, end->used);
	store_bind_text(statement, 4, parent);
	sqlite3_step(statement);
	return store_finish(store, statement, "write to");
}

/* Both ends say what it cost: the hop's word is taken back. */
static void bill_once(struct call_row *row, struct end *hop, struct end *parent)
{
	row->billed--;
	hop->billed = false;
	if (!hop->used) {
		row->wasted -= sum_of(hop);
		return;
	}
	hop->used = false;
	parent->used = true;
	row->wasted -= sum_of(parent);
	snprintf(row->result_attempt, sizeof(row->result_attempt), "%s", parent->id);
	row->tokens = parent->tokens;
	row->usage_whole = parent->final && row->tokens.input >= 0 && row->tokens.output >= 0;
}

/* The gateway was answered, whoever asked it was not. */
static void take_back(struct call_row *row, struct end *hop, const struct end *parent, int64_t now_ns)
{
	char reason[64];

	hop->used = false;
	row->wasted += hop->billed ? sum_of(hop) : 0;
	row->result_attempt[0] = '\0';
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	if (row->has_result || call_row_is_reserved(row, now_ns) || row->status != CALL_DONE)
		return;
	if (strcmp(parent->outcome, "status") == 0)
		snprintf(reason, sizeof(reason), "status_%u", parent->status);
	else
		snprintf(reason, sizeof(reason), "%s", parent->outcome);
	call_row_abandon(row, reason);
}

int store_book_hop(struct store *store, const struct booked_hop *booked)
{
	struct end hop, parent;
	struct call_row row;
	int err = read_end(store, booked->id, &hop);

	if (!err)
		err = read_end(store, booked->parent, &parent);
	if (err || !hop.exists || !parent.exists || hop.is_hop || strcmp(hop.key, parent.key) != 0)
		return err; /* a gateway that asks another model does another piece of work */
	err = call_row_read(store, hop.key, &row);
	if (!err && row.exists) {
		bool answered = strcmp(parent.outcome, "answered") == 0;

		row.attempts--;
		if (hop.billed && parent.billed && (answered || !hop.used))
			bill_once(&row, &hop, &parent);
		else if (hop.used && answered) {
			hop.used = false; /* nobody said what it cost */
			parent.used = true;
			snprintf(row.result_attempt, sizeof(row.result_attempt), "%s", parent.id);
		} else if (hop.used)
			take_back(&row, &hop, &parent, booked->at_ns);
		err = call_row_write(store, &row);
	}
	if (!err)
		err = write_end(store, &hop, parent.id);
	return err ? err : write_end(store, &parent, NULL);
}
