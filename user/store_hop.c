/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call that a gateway passed on was seen twice and is one attempt: that of
 * whoever asked the gateway. What the model says that it cost counts once, where
 * the asker was told of it, else where the gateway was. What a gateway asks
 * again it pays again: one hop of a call is that call's bill, others are their own.
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

/*
 * The hop of this parent whose bill is the parent's, of those that were told
 * before: a gateway that asks again pays again, so there is one at most. seq 0 =
 * none.
 */
static int find_billed_once(struct store *store, const struct end *parent, struct end *ret_hop)
{
	sqlite3_stmt *statement = store_prepare(
		store, "SELECT seq, id, coalesce(outcome, ''), prompt_tokens, output_tokens FROM attempts WHERE parent = ?1"
		       " AND billed = 0 AND status BETWEEN 200 AND 299"
		       " AND coalesce(prompt_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens) IS NOT NULL");

	memset(ret_hop, 0, sizeof(*ret_hop));
	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, parent->id);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		ret_hop->exists = true;
		ret_hop->seq = sqlite3_column_int64(statement, 0);
		snprintf(ret_hop->id, sizeof(ret_hop->id), "%s", store_column_text(statement, 1));
		snprintf(ret_hop->outcome, sizeof(ret_hop->outcome), "%s", store_column_text(statement, 2));
		ret_hop->tokens = (struct store_tokens){store_column_count(statement, 3), store_column_count(statement, 4), -1, -1};
	}
	return store_finish(store, statement, "read");
}

static bool was_answered(const struct end *end)
{
	return strcmp(end->outcome, "answered") == 0;
}

/* Its answer is not what the parent passed on after all: it is a bill of its own. */
static int bill_again(struct store *store, struct call_row *row, struct end *hop, const char *parent)
{
	hop->billed = true;
	row->billed++;
	row->wasted += sum_of(hop);
	return write_end(store, hop, parent);
}

/* Both ends say what it cost: the hop's word is taken back. */
static void take_bill(struct call_row *row, struct end *hop, struct end *parent)
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

/* Of several hops, the one that was answered whole is the parent's bill. */
static int bill_once(struct store *store, struct call_row *row, struct end *hop, struct end *parent)
{
	struct end other;
	int err = find_billed_once(store, parent, &other);

	if (err || (other.exists && (!was_answered(hop) || was_answered(&other)) && !hop->used))
		return err;
	if (other.exists)
		err = bill_again(store, row, &other, parent->id);
	if (!err)
		take_bill(row, hop, parent);
	return err;
}

/* The gateway was answered, whoever asked it was not. Another answer may have been. */
static int take_back(struct store *store, struct call_row *row, struct end *hop, const struct end *parent, int64_t now_ns)
{
	char reason[64];
	int err;

	hop->used = false;
	row->wasted += hop->billed ? sum_of(hop) : 0;
	row->result_attempt[0] = '\0';
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	err = call_row_fall_back(store, row);
	if (err || row->result_attempt[0] || row->has_result || call_row_is_reserved(row, now_ns) || row->status != CALL_DONE)
		return err;
	if (strcmp(parent->outcome, "status") == 0)
		snprintf(reason, sizeof(reason), "status_%u", parent->status);
	else
		snprintf(reason, sizeof(reason), "%s", parent->outcome);
	call_row_abandon(row, reason);
	return 0;
}

/* What is recorded came through the gateway without its cost. The hop says it, and is not the parent's bill but its own. */
static void lend_cost(struct call_row *row, struct end *hop, struct end *parent)
{
	if (!hop->used)
		row->wasted -= sum_of(hop);
	hop->used = parent->used = true;
	snprintf(row->result_attempt, sizeof(row->result_attempt), "%s", parent->id);
	row->tokens = hop->tokens;
	row->usage_whole = hop->final && row->tokens.input >= 0 && row->tokens.output >= 0;
}

static bool has_cost(const struct call_row *row)
{
	return row->tokens.input >= 0 || row->tokens.output >= 0;
}

/* The hop said nothing of its cost: its place is the parent's. */
static void hand_over(struct call_row *row, struct end *hop, struct end *parent)
{
	hop->used = false;
	parent->used = true;
	snprintf(row->result_attempt, sizeof(row->result_attempt), "%s", parent->id);
	if (!parent->billed)
		return;
	row->wasted -= sum_of(parent);
	row->tokens = parent->tokens;
	row->usage_whole = parent->final && row->tokens.input >= 0 && row->tokens.output >= 0;
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
		bool answered = was_answered(&parent);

		row.attempts--;
		if (hop.billed && parent.billed && (answered || !hop.used))
			err = bill_once(store, &row, &hop, &parent);
		else if (hop.billed && answered && (hop.used || (parent.used && was_answered(&hop) && !has_cost(&row))))
			lend_cost(&row, &hop, &parent);
		else if (hop.used && answered)
			hand_over(&row, &hop, &parent);
		else if (hop.used)
			err = take_back(store, &row, &hop, &parent, booked->at_ns);
		if (!err)
			err = call_row_write(store, &row);
	}
	if (!err)
		err = write_end(store, &hop, parent.id);
	return err ? err : write_end(store, &parent, NULL);
}
