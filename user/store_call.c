/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One row of calls, read whole, changed in memory, written whole.
 */
#include "store_private.h"

#include <errno.h>

const char *call_status_name(enum call_status status)
{
	static const char *const names[] = {"pending", "done", "abandoned"};

	return names[status];
}

static enum call_status status_of(const char *name)
{
	if (name && strcmp(name, "done") == 0)
		return CALL_DONE;
	return name && strcmp(name, "pending") == 0 ? CALL_PENDING : CALL_ABANDONED;
}

static void take_text(sqlite3_stmt *statement, int index, char *to, size_t size)
{
	const char *text = store_column_text(statement, index);

	snprintf(to, size, "%s", text ? text : "");
}

static void read_columns(sqlite3_stmt *statement, struct call_row *row)
{
	const char *usage;

	row->exists = true;
	row->status = status_of(store_column_text(statement, 0));
	take_text(statement, 1, row->reason, sizeof(row->reason));
	take_text(statement, 2, row->model, sizeof(row->model));
	take_text(statement, 3, row->schema_version, sizeof(row->schema_version));
	take_text(statement, 4, row->process, sizeof(row->process));
	take_text(statement, 5, row->path, sizeof(row->path));
	row->tokens = (struct store_tokens){store_column_count(statement, 6), store_column_count(statement, 7),
					    store_column_count(statement, 8), store_column_count(statement, 9)};
	usage = store_column_text(statement, 10);
	row->usage_whole = usage && strcmp(usage, "whole") == 0;
	row->attempts = sqlite3_column_int64(statement, 11);
	row->billed = sqlite3_column_int64(statement, 12);
	row->wasted = sqlite3_column_int64(statement, 13);
	take_text(statement, 14, row->result_attempt, sizeof(row->result_attempt));
	take_text(statement, 15, row->owner, sizeof(row->owner));
	row->owner_pid = (uint32_t)sqlite3_column_int64(statement, 16);
	row->owner_ns_pid = (uint32_t)sqlite3_column_int64(statement, 17);
	row->owner_start_ns = (uint64_t)sqlite3_column_int64(statement, 18);
	take_text(statement, 19, row->owner_boot, sizeof(row->owner_boot));
	row->lease_ns = store_column_time(statement, 20);
	row->created_ns = store_column_time(statement, 21);
	row->updated_ns = store_column_time(statement, 22);
	row->has_result = sqlite3_column_int(statement, 23);
	row->rowid = sqlite3_column_int64(statement, 24);
}

int call_row_read(struct store *store, const char *key, struct call_row *ret_row)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_FIND_CALL);
	int code;

	memset(ret_row, 0, sizeof(*ret_row));
	if (!statement)
		return -EIO;
	snprintf(ret_row->key, sizeof(ret_row->key), "%s", key);
	ret_row->tokens = (struct store_tokens){-1, -1, -1, -1};
	store_bind_text(statement, 1, key);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		read_columns(statement, ret_row);
	else if (code != SQLITE_DONE)
		return store_failed(store, "read");
	sqlite3_reset(statement);
	return 0;
}

static void bind_owner(sqlite3_stmt *statement, const struct call_row *row)
{
	if (!row->owner[0])
		return;
	store_bind_text(statement, 16, row->owner);
	store_bind_count(statement, 17, row->owner_pid ? (int64_t)row->owner_pid : -1);
	store_bind_count(statement, 18, row->owner_ns_pid ? (int64_t)row->owner_ns_pid : -1);
	store_bind_count(statement, 19, row->owner_start_ns ? (int64_t)row->owner_start_ns : -1);
	store_bind_text(statement, 20, row->owner_boot);
}

int call_row_write(struct store *store, const struct call_row *row)
{
	sqlite3_stmt *statement = store_statement(store, row->exists ? STATEMENT_CHANGE_CALL : STATEMENT_ADD_CALL);
	const struct store_tokens *tokens = &row->tokens;
	bool any = tokens->input >= 0 || tokens->output >= 0;

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, call_status_name(row->status));
	store_bind_text(statement, 2, row->reason);
	store_bind_text(statement, 3, row->model);
	store_bind_text(statement, 5, row->process);
	store_bind_text(statement, 6, row->path);
	store_bind_count(statement, 7, tokens->input);
	store_bind_count(statement, 8, tokens->output);
	store_bind_count(statement, 9, tokens->cached);
	store_bind_count(statement, 10, tokens->reasoning);
	store_bind_text(statement, 11, !any ? NULL : row->usage_whole ? "whole" : "partial");
	store_bind_count(statement, 12, row->attempts);
	store_bind_count(statement, 13, row->billed);
	store_bind_count(statement, 14, row->wasted);
	store_bind_text(statement, 15, row->result_attempt);
	bind_owner(statement, row);
	store_bind_time(statement, 21, row->lease_ns);
	store_bind_time(statement, 23, row->updated_ns);
	if (row->exists) {
		sqlite3_bind_int64(statement, 25, row->rowid);
	} else {
		store_bind_text(statement, 4, row->schema_version);
		store_bind_time(statement, 22, row->created_ns);
		store_bind_text(statement, 24, row->key);
	}
	return store_run(store, statement);
}

bool call_row_is_reserved(const struct call_row *row, int64_t now_ns)
{
	return row->exists && row->status == CALL_PENDING && row->owner[0] && strcmp(row->owner, "observed") != 0 &&
	       row->lease_ns > now_ns;
}

void call_row_let_go(struct call_row *row)
{
	row->owner[0] = row->owner_boot[0] = '\0';
	row->owner_pid = row->owner_ns_pid = 0;
	row->owner_start_ns = 0;
	row->lease_ns = 0;
}

void call_row_abandon(struct call_row *row, const char *reason)
{
	row->status = CALL_ABANDONED;
	snprintf(row->reason, sizeof(row->reason), "%s", reason);
	call_row_let_go(row);
}

/* ---- its recorded answer ---- */

static int64_t known(int64_t tokens)
{
	return tokens > 0 ? tokens : 0;
}

static int64_t number_of(const char *id)
{
	uint8_t bytes[CALL_ID_BYTES] = {0};
	unsigned int byte;
	int64_t number;

	for (size_t i = 0; i < sizeof(bytes) && sscanf(id + 2 * i, "%2x", &byte) == 1; i++)
		bytes[i] = (uint8_t)byte;
	memcpy(&number, bytes, sizeof(number));
	return number;
}

int call_row_forget(struct store *store, struct call_row *row)
{
	sqlite3_stmt *statement;

	if (!row->result_attempt[0])
		return 0;
	statement = store_prepare(store, "UPDATE attempts SET used = 0 WHERE id_number = ?1 OR parent = ?2");
	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, number_of(row->result_attempt));
	sqlite3_bind_text(statement, 2, row->result_attempt, -1, SQLITE_TRANSIENT);
	sqlite3_step(statement);
	row->wasted += known(row->tokens.input) + known(row->tokens.output);
	row->result_attempt[0] = '\0';
	row->tokens = (struct store_tokens){-1, -1, -1, -1};
	return store_finish(store, statement, "write to");
}

static int take_spare(struct store *store, struct call_row *row, int64_t *ret_seq)
{
	sqlite3_stmt *statement = store_statement(store, STATEMENT_SPARE_ATTEMPT);
	int code;

	if (!statement)
		return -EIO;
	store_bind_text(statement, 1, row->key);
	code = sqlite3_step(statement);
	if (code != SQLITE_ROW)
		return code == SQLITE_DONE ? (sqlite3_reset(statement), 0) : store_failed(store, "read");
	*ret_seq = sqlite3_column_int64(statement, 0);
	take_text(statement, 1, row->result_attempt, sizeof(row->result_attempt));
	if (sqlite3_column_int(statement, 2)) {
		row->tokens = (struct store_tokens){store_column_count(statement, 3), store_column_count(statement, 4),
						    store_column_count(statement, 5), store_column_count(statement, 6)};
		row->usage_whole = sqlite3_column_int(statement, 7) && row->tokens.input >= 0 && row->tokens.output >= 0;
		row->wasted -= known(row->tokens.input) + known(row->tokens.output);
	}
	sqlite3_reset(statement);
	return 0;
}

int call_row_fall_back(struct store *store, struct call_row *row)
{
	sqlite3_stmt *statement;
	int64_t seq = 0;
	int err;

	err = take_spare(store, row, &seq);
	if (err || seq == 0)
		return err;
	statement = store_statement(store, STATEMENT_USE_ATTEMPT);
	if (!statement)
		return -EIO;
	sqlite3_bind_int64(statement, 1, seq);
	sqlite3_bind_int(statement, 2, true);
	return store_run(store, statement);
}
