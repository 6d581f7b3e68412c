/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The store: what bookings make of its rows, who may do a piece of work, what
 * is left when a holder is gone, and what it says of files that are no store.
 */
#include "store_build.h"

#include <errno.h>
#include <sys/stat.h>

/* ---- files ---- */

static void a_new_store_is_for_its_owner_alone(void **state)
{
	struct fixture *f = *state;
	static const char *const files[] = {"", "-wal", "-shm"};
	char path[PATH_MAX];
	struct stat stat_of;

	for (size_t i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s%s", f->path, files[i]);
		assert_int_equal(stat(path, &stat_of), 0);
		assert_int_equal(stat_of.st_mode & 0777, 0600);
	}
	assert_string_equal(ask(f, "PRAGMA journal_mode"), "wal");
	assert_string_equal(ask(f, "PRAGMA user_version"), "1");
}

static void opens_again_with_what_was_in_it(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	reopen(f);
	assert_string_equal(ask(f, THE_SUM), "done|1|853");
}

/* says: an @ stands for the path. */
static void open_fails(struct fixture *f, const char *path, bool create, int err, const char *says)
{
	struct store_options options = {.path = path, .owner = NOBODY_ELSE, .create = create, .busy_ms = 50};
	struct store *store = NULL;
	char reason[STORE_REASON_MAX] = "", want[2 * PATH_MAX + STORE_REASON_MAX];
	const char *at;

	(void)f;
	want[0] = '\0';
	for (at = says; *at;) {
		size_t n = strcspn(at, "@"), size = strlen(want);

		snprintf(want + size, sizeof(want) - size, "%.*s%s", (int)n, at, at[n] ? path : "");
		at += n + (at[n] != '\0');
	}
	assert_int_equal(store_open(&options, &store, reason), err);
	assert_null(store);
	assert_string_equal(reason, want);
}

static void says_what_is_wrong_with_a_file(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];

	open_fails(f, in_directory(f, "none", path), false, -ENOENT,
		   "there is no store at @; `nightclerk run --db @ -- COMMAND` makes one");
	open_fails(f, in_directory(f, "none/none", path), true, -ENOENT,
		   "cannot open @: No such file or directory; its directory does not exist: create it");
	open_fails(f, f->directory, true, -EISDIR, "cannot open @: Is a directory; it is a directory: give a file");
	write_file(in_directory(f, "text", path), "this is no database, and long enough to be looked at as one: "
						  "a header has a hundred bytes, so here are some more of them");
	open_fails(f, path, true, -EBADMSG,
		   "cannot read @: file is not a database; it is no store or is damaged: keep a copy and try "
		   "`sqlite3 FILE .recover`, or give another file");
	assert_int_equal(symlink(f->path, in_directory(f, "link", path)), 0);
	open_fails(f, path, true, -ELOOP,
		   "cannot open @: Too many levels of symbolic links; it is a symbolic link: give the real path");
}

static void a_database_of_another_program_is_left_alone(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	sqlite3 *db;

	assert_int_equal(sqlite3_open(in_directory(f, "other", path), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "CREATE TABLE calls (x)", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	open_fails(f, path, true, -EBADMSG,
		   "@ is a database of another program; give another file, nothing was changed in it");
}

static void a_newer_schema_is_refused_and_left_as_it_is(void **state)
{
	struct fixture *f = *state;

	ask(f, "PRAGMA user_version = 2");
	store_close(f->store);
	f->store = NULL;
	open_fails(f, f->path, true, -EPROTONOSUPPORT,
		   "@ was written by a newer nightclerk: its schema is 2, this one knows 1; use the newer nightclerk, or "
		   "give another file");
	assert_string_equal(ask(f, "PRAGMA user_version"), "2");
}

static void an_older_schema_is_brought_to_this_one_step_by_step(void **state)
{
	static const char *const steps[] = {"", "CREATE TABLE second (x); INSERT INTO second VALUES (2)",
					    "INSERT INTO second VALUES (3)"};
	struct fixture *f = *state;

	assert_int_equal(store_migrate(f->store, steps, 3), 0);
	assert_string_equal(ask(f, "SELECT group_concat(x) FROM second"), "2,3");
	assert_string_equal(ask(f, "PRAGMA user_version"), "3");
	assert_int_equal(store_migrate(f->store, steps, 3), 0);
	assert_string_equal(ask(f, "SELECT group_concat(x) FROM second"), "2,3");
}

static void a_step_that_fails_leaves_the_older_schema(void **state)
{
	static const char *const steps[] = {"", "CREATE TABLE second (x)", "no SQL at all"};
	struct fixture *f = *state;

	assert_int_equal(store_migrate(f->store, steps, 3), -EINVAL);
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM sqlite_schema WHERE name = 'second'"), "0");
	assert_string_equal(ask(f, "PRAGMA user_version"), "1");
}

static void the_salt_is_made_once_and_read_ever_after(void **state)
{
	struct fixture *f = *state;
	struct output_owner nobody = NOBODY_ELSE;
	uint8_t first[32], second[32], zero[32] = {0};
	char reason[STORE_REASON_MAX], path[PATH_MAX], want[PATH_MAX + STORE_REASON_MAX];
	struct stat stat_of;

	assert_int_equal(store_salt(f->path, &nobody, first, reason), 0);
	assert_int_equal(store_salt(f->path, &nobody, second, reason), 0);
	assert_memory_equal(first, second, 32);
	assert_memory_not_equal(first, zero, 32);
	snprintf(path, sizeof(path), "%s.salt", f->path);
	assert_int_equal(stat(path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	assert_int_equal(stat_of.st_size, 32);
	write_file(path, "short");
	assert_int_equal(store_salt(f->path, &nobody, first, reason), -EBADMSG);
	snprintf(want, sizeof(want),
		 "%s does not hold the 32 bytes of a salt; remove it: principals of earlier runs then match no more", path);
	assert_string_equal(reason, want);
}

/* ---- one key, many attempts ---- */

static void two_gateway_errors_and_an_answer_are_one_call(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	assert_string_equal(ask(f, CALL_ROW), "pending||1|0|0||");
	book_ended(f, 1, 1, OUTCOME_STATUS, 504, -1, -1);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|status_504|1|0|0||");
	book_ended(f, 2, 1, OUTCOME_STATUS, 504, -1, -1);
	book_open(f, 3, 1);
	assert_string_equal(ask(f, CALL_ROW), "pending||3|0|0||");
	book_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "done||3|1|0|812|41");
	assert_string_equal(ask(f, THE_SUM), "done|1|853");
	assert_string_equal(ask(f, "SELECT status FROM attempts WHERE seq = 1"), "504");
}

static void a_repeat_after_the_answer_is_billed_and_wasted(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	book_open(f, 2, 1);
	assert_string_equal(ask(f, CALL_ROW), "done||2|1|0|812|41");
	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 50);
	assert_string_equal(ask(f, CALL_ROW), "done||2|2|862|812|41");
	assert_string_equal(ask(f, "SELECT group_concat(used) FROM attempts"), "1,0");
	assert_string_equal(ask(f, THE_SUM), "done|1|853");
}

static void an_answer_that_was_cut_is_billed_and_recorded_nowhere(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_CUT, 200, 812, 7);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|cut|1|1|819||");
	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "done||2|2|819|812|41");
}

static void a_snapshot_that_comes_again_counts_once(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 3; round++) {
		book_open(f, 1, 1);
		book_ended(f, 1, 1, OUTCOME_CUT, 200, 10, 2);
		book_open(f, 2, 1);
		book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 10, 5);
		book_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 10, 6);
	}
	assert_string_equal(ask(f, CALL_ROW), "done||3|3|28|10|5");
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM attempts"), "3");
}

static void snapshots_of_one_batch_are_written_as_the_last_one_says(void **state)
{
	struct fixture *f = *state;

	add_open(f, 1, 1);
	add_finding(f, 1, "llm_repeat", "info", false);
	add_open(f, 2, 1);
	add_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 3, 4);
	add_ended(f, 1, 1, OUTCOME_STATUS, 500, -1, -1);
	assert_int_equal(bookings_rows(&f->bookings), 3);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||2|1|0|3|4");
	assert_string_equal(ask(f, "SELECT outcome, status, finding, severity FROM attempts WHERE seq = 1"),
			    "status|500|llm_repeat|info");
}

static void usage_that_is_missing_stays_missing_and_spoils_no_sum(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 7, -1); /* its output was no number */
	assert_string_equal(ask(f, "SELECT prompt_tokens, output_tokens, usage FROM calls"), "7||partial");
	assert_string_equal(ask(f, "SELECT prompt_tokens, output_tokens FROM attempts"), "7|");
	book_ended(f, 2, 2, OUTCOME_ANSWERED, 200, -1, -1);
	assert_string_equal(ask(f, "SELECT prompt_tokens, output_tokens, usage, billed FROM calls WHERE usage IS NULL"), "|||0");
	book_ended(f, 3, 3, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, THE_SUM), "done|3|853");
}

static void an_answer_that_proves_unread_is_not_the_result(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 10, 5);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|10|5");
	book_ended(f, 1, 1, OUTCOME_NOT_DELIVERED, 200, 10, 5);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|not_delivered|1|1|15||");
}

static void another_answer_takes_the_place_of_one_that_proves_unread(void **state)
{
	struct fixture *f = *state;

	for (int round = 0; round < 2; round++) { /* what was said already changes nothing */
		book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 800, 1);
		book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
		assert_string_equal(ask(f, CALL_ROW), round ? "done||2|2|801|812|41" : "done||2|2|853|800|1");
		book_ended(f, 1, 1, OUTCOME_NOT_DELIVERED, 200, 800, 1);
		assert_string_equal(ask(f, CALL_ROW), "done||2|2|801|812|41");
		assert_string_equal(ask(f, "SELECT group_concat(used) FROM attempts"), "0,1");
		assert_string_equal(ask(f, "SELECT substr(result_attempt, 1, 2) FROM calls"), "02");
	}
	assert_int_equal(reserve(f, key_text(1), 100), STORE_DONE);
	book_ended(f, 2, 1, OUTCOME_NOT_DELIVERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|not_delivered|2|2|1654||");
}

static void a_call_is_pending_while_any_attempt_is_open(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	book_open(f, 2, 1);
	book_ended(f, 2, 1, OUTCOME_STATUS, 504, -1, -1);
	assert_string_equal(ask(f, "SELECT status, owner, owner_pid, lease FROM calls"), "pending|observed|1001|1902.0");
	book_ended(f, 1, 1, OUTCOME_GAVE_UP, 0, -1, -1);
	assert_string_equal(ask(f, "SELECT status, reason, owner, owner_pid, lease FROM calls"), "abandoned|client_gave_up|||");
}

static void an_attempt_whose_body_was_not_seen_has_a_row_and_no_call(void **state)
{
	struct fixture *f = *state;

	add_ended(f, 1, 0, OUTCOME_ANSWERED, 200, 1, 2);
	book_all(f);
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM attempts WHERE key IS NULL"), "1");
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM calls"), "0");
}

static void a_finding_follows_what_is_said_and_goes_when_it_is_taken_back(void **state)
{
	struct fixture *f = *state;

	add_ended(f, 1, 1, OUTCOME_CUT, 200, -1, -1);
	add_finding(f, 1, "llm_maybe_billed_twice", "medium", false);
	add_finding(f, 1, "llm_billed_twice", "high", false);
	add_finding(f, 1, "truncated_response", "info", true);
	book_all(f);
	assert_string_equal(ask(f, "SELECT group_concat(finding || ' ' || severity) FROM findings"),
			    "llm_billed_twice high,truncated_response info");
	add_finding(f, 1, NULL, NULL, false);
	book_all(f);
	assert_string_equal(ask(f, "SELECT group_concat(finding) FROM findings"), "truncated_response");
	assert_string_equal(ask(f, "SELECT finding FROM attempts"), "");
}

static void an_answer_is_kept_only_where_the_booking_brings_it(void **state)
{
	struct fixture *f = *state;
	struct buffer result = {0};
	enum store_answer answer;
	bool has_result;

	add_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 1, 2);
	bookings_at(&f->bookings, 0)->attempt.result = (uint8_t *)strdup("an answer");
	bookings_at(&f->bookings, 0)->attempt.result_size = 9;
	add_ended(f, 2, 2, OUTCOME_ANSWERED, 200, 1, 2);
	book_all(f);
	assert_int_equal(store_get(f->store, key_text(1), &answer, &result, &has_result), 0);
	assert_int_equal(answer, STORE_DONE);
	assert_true(has_result);
	assert_true(bytes_equal(buffer_bytes(&result), BYTES("an answer")));
	assert_string_equal(ask(f, "SELECT result_sha FROM calls WHERE result IS NOT NULL"),
			    "ee9555184346cf42bc9ef6619d764c88f4c193f8fabbbffc0cceacfa44a9dd35");
	assert_int_equal(store_get(f->store, key_text(2), &answer, &result, &has_result), 0);
	assert_int_equal(answer, STORE_DONE);
	assert_false(has_result);
	buffer_done(&result);
}

/* ---- behind a gateway ---- */

static void a_call_that_was_passed_on_is_one_attempt_and_one_bill(void **state)
{
	struct fixture *f = *state;

	add_open(f, 1, 1);
	add_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41); /* the gateway is answered first */
	add_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 812, 41);
	book_all(f);
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "done||3|3|1706|812|41");
	for (int round = 0; round < 2; round++) { /* what was said already changes nothing */
		add_hop(f, 2, 1);
		add_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
		book_all(f);
		assert_string_equal(ask(f, CALL_ROW), "done||2|2|853|812|41");
	}
	assert_string_equal(ask(f, "SELECT substr(id, 1, 2), billed, used, substr(parent, 1, 2) FROM attempts ORDER BY id"),
			    "01|1|1|\n02|0|0|01\n03|1|0|");
	assert_string_equal(ask(f, "SELECT substr(result_attempt, 1, 2) FROM calls"), "01");
}

static void what_a_gateway_asks_again_is_billed_again(void **state)
{
	struct fixture *f = *state;

	add_open(f, 1, 1);
	add_ended(f, 2, 1, OUTCOME_CUT, 200, 812, 41);
	add_ended(f, 3, 1, OUTCOME_CUT, 200, 812, 40);
	add_ended(f, 4, 1, OUTCOME_ANSWERED, 200, 812, 41);
	book_all(f);
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	for (int round = 0; round < 2; round++) { /* what was said already changes nothing */
		add_hop(f, 2, 1);
		add_hop(f, 3, 1);
		add_hop(f, 4, 1);
		book_all(f);
		assert_string_equal(ask(f, CALL_ROW), "done||1|3|1705|812|41");
		assert_string_equal(ask(f, "SELECT substr(id, 1, 2), billed, used, substr(parent, 1, 2) FROM attempts ORDER BY id"),
				    "01|1|1|\n02|1|0|01\n03|1|0|01\n04|0|0|01");
	}
}

static int say_hop(void *context, const struct store_attempt_row *row)
{
	return buffer_append_byte(context, row->again ? 'a' : row->is_hop ? 'h' : '-');
}

static void the_second_hop_of_a_call_was_asked_again(void **state)
{
	struct fixture *f = *state;
	struct buffer said = {0};

	for (unsigned int n = 1; n <= 5; n++)
		add_ended(f, n, 1, OUTCOME_STATUS, 504, -1, -1);
	add_hop(f, 2, 1);
	add_hop(f, 3, 1);
	add_hop(f, 5, 4);
	book_all(f);
	assert_int_equal(store_each_attempt(f->store, 0, NULL, say_hop, &said), 0);
	assert_true(bytes_equal(buffer_bytes(&said), BYTES("-ha-h")));
	buffer_done(&said);
}

static void of_two_answers_to_a_gateway_one_is_the_bill_of_its_caller(void **state)
{
	struct fixture *f = *state;

	add_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 812, 40);
	add_hop(f, 2, 1);
	add_hop(f, 3, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||1|2|852|812|41");
	assert_string_equal(ask(f, "SELECT group_concat(billed) FROM attempts"), "1,0,1");
}

static void what_only_the_gateway_was_told_is_billed_and_nobodys_result(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 1, 1, OUTCOME_STATUS, 504, -1, -1);
	add_hop(f, 2, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|status_504|1|1|853||");
	book_ended(f, 4, 1, OUTCOME_ANSWERED, 200, 812, 40);
	assert_string_equal(ask(f, CALL_ROW), "done||2|2|853|812|40");
}

static void another_answer_takes_the_place_of_one_that_only_the_gateway_got(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 1, 1, OUTCOME_STATUS, 504, -1, -1);
	add_ended(f, 4, 1, OUTCOME_ANSWERED, 200, 812, 40);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||3|2|852|812|41");
	add_hop(f, 2, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||2|2|853|812|40");
}

static void an_answer_that_the_gateway_gave_without_its_cost_is_the_result(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1);
	add_hop(f, 2, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|812|41");
	assert_string_equal(ask(f, "SELECT substr(result_attempt, 1, 2) FROM calls"), "01");
}

static void what_only_the_hop_says_of_the_cost_is_no_waste(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1); /* recorded first */
	add_ended(f, 2, 1, OUTCOME_CUT, 200, 812, 7);
	add_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 812, 41);
	for (int round = 0; round < 2; round++) { /* what was said already changes nothing */
		add_hop(f, 2, 1);
		add_hop(f, 3, 1);
		book_all(f);
		assert_string_equal(ask(f, CALL_ROW), "done||1|2|819|812|41");
		assert_string_equal(ask(f, "SELECT substr(result_attempt, 1, 2) FROM calls"), "01");
		assert_string_equal(ask(f, "SELECT SUM(prompt_tokens + output_tokens) FROM attempts WHERE billed AND NOT used"), "819");
		book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1);
	}
	book_ended(f, 1, 1, OUTCOME_NOT_DELIVERED, 200, -1, -1);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|not_delivered|1|2|1672||");
	assert_string_equal(ask(f, "SELECT SUM(used) FROM attempts"), "0");
}

static void a_kept_result_lends_its_cost_too(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1);
	assert_true(commit(f, key_text(1), "kept"));
	add_ended(f, 2, 1, OUTCOME_CUT, 200, 812, 7);
	add_ended(f, 3, 1, OUTCOME_ANSWERED, 200, 812, 41);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||3|2|1672||");
	add_hop(f, 2, 1);
	add_hop(f, 3, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||1|2|819|812|41");
}

static void a_hop_without_cost_leaves_the_result_to_its_caller(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, -1, -1);
	assert_true(commit(f, key_text(1), "kept"));
	add_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_hop(f, 2, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|812|41");
}

static void an_answer_that_says_its_cost_takes_the_place_of_one_that_does_not(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1);
	assert_string_equal(ask(f, CALL_ROW), "done||1|0|0||");
	for (int round = 0; round < 2; round++) { /* what was said already changes nothing */
		book_open(f, 2, 1);
		book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
		book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, -1, -1);
		assert_string_equal(ask(f, CALL_ROW), "done||2|1|0|812|41");
		assert_string_equal(ask(f, "SELECT group_concat(used) FROM attempts"), "0,1");
	}
}

static void a_gateway_that_asks_for_something_else_is_a_caller_like_any(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 2, 2, OUTCOME_ANSWERED, 200, 5, 5);
	add_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 5, 5);
	add_hop(f, 2, 1);
	add_hop(f, 9, 1);
	book_all(f);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|5|5\ndone||1|1|0|5|5");
}

static void sweep(struct fixture *f, int64_t ttl_ns, uint64_t abandoned, uint64_t removed)
{
	struct store_swept swept;

	assert_int_equal(store_sweep(f->store, &f->world, ttl_ns, &swept), 0);
	assert_int_equal(swept.abandoned, abandoned);
	assert_int_equal(swept.removed, removed);
}

/* ---- asking first ---- */

static void of_two_who_ask_one_is_told_to_go_on(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	assert_int_equal(reserve(f, "k", 100), STORE_PENDING);
	assert_string_equal(ask(f, "SELECT status, owner, lease, attempts FROM calls"), "pending|reserve|1100.0|0");
	assert_true(commit(f, "k", "the result"));
	assert_int_equal(reserve(f, "k", 100), STORE_DONE);
	assert_string_equal(f->result_text, "the result");
}

static void a_reservation_ends_with_its_lease(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	f->world.now_ns += 100 * SECOND - 1;
	assert_int_equal(reserve(f, "k", 100), STORE_PENDING);
	f->world.now_ns += 1;
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	assert_string_equal(ask(f, "SELECT lease FROM calls"), "1200.0");
}

static void a_longer_lease_keeps_it(void **state)
{
	struct fixture *f = *state;
	struct store_claim claim = claim_of(f, "k", 100);
	bool held;

	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	f->world.now_ns += 60 * SECOND;
	assert_int_equal(store_renew(f->store, &claim, &held), 0);
	assert_true(held);
	f->world.now_ns += 99 * SECOND;
	assert_int_equal(reserve(f, "k", 100), STORE_PENDING);
}

static void the_first_result_stays(void **state)
{
	struct fixture *f = *state;

	assert_true(commit(f, "k", "first"));
	assert_false(commit(f, "k", "second"));
	assert_int_equal(reserve(f, "k", 100), STORE_DONE);
	assert_string_equal(f->result_text, "first");
}

static void a_result_may_follow_what_the_wire_called_done(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_int_equal(reserve(f, key_text(1), 100), STORE_DONE);
	assert_string_equal(f->result_text, "(none)");
	assert_true(commit(f, key_text(1), "said later"));
	assert_int_equal(reserve(f, key_text(1), 100), STORE_DONE);
	assert_string_equal(f->result_text, "said later");
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|812|41");
}

static bool nobody_is_gone(uint32_t pid, uint64_t start_ns)
{
	(void)pid;
	(void)start_ns;
	return false;
}

static bool all_are_gone(uint32_t pid, uint64_t start_ns)
{
	return pid == 8 && start_ns == 80 * SECOND;
}

/* The lease of pid 7 was over, pid 8 went on. */
static void what_another_one_has_taken_is_neither_renewed_nor_given_back(void **state)
{
	struct fixture *f = *state;
	struct store_claim first;
	enum store_release release;
	bool held;

	f->world.is_gone = nobody_is_gone;
	f->process = (struct store_process){7, 70 * SECOND};
	first = claim_of(f, "k", 100);
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	f->world.now_ns += 100 * SECOND;
	f->process = (struct store_process){8, 80 * SECOND};
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);

	assert_int_equal(store_renew(f->store, &first, &held), 0);
	assert_false(held);
	assert_int_equal(store_release(f->store, &first, "exit_1", &release), 0);
	assert_int_equal(release, STORE_HELD_BY_ANOTHER);
	first.process[0] = (struct store_process){8, 81 * SECOND}; /* the pid was used again */
	assert_int_equal(store_release(f->store, &first, "exit_1", &release), 0);
	assert_int_equal(release, STORE_HELD_BY_ANOTHER);
	assert_string_equal(ask(f, "SELECT status, owner_pid, lease FROM calls"), "pending|8|1200.0");

	f->world.is_gone = all_are_gone;
	assert_int_equal(store_release(f->store, &first, "released", &release), 0);
	assert_int_equal(release, STORE_GIVEN_BACK);
}

static void what_a_command_of_ours_holds_is_not_for_reserve_to_give_back(void **state)
{
	struct fixture *f = *state;
	struct store_claim claim;
	enum store_release release;

	f->process = (struct store_process){7, 70 * SECOND};
	claim = claim_of(f, "k", 100);
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	claim.owner = "once";
	assert_int_equal(store_release(f->store, &claim, "exit_1", &release), 0);
	assert_int_equal(release, STORE_HELD_BY_ANOTHER);
}

static void what_is_given_back_can_be_taken_at_once(void **state)
{
	struct fixture *f = *state;
	struct store_claim claim = claim_of(f, "k", 100);
	enum store_release release;

	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	assert_int_equal(store_release(f->store, &claim, "released", &release), 0);
	assert_int_equal(release, STORE_GIVEN_BACK);
	assert_string_equal(ask(f, "SELECT status, reason, lease FROM calls"), "abandoned|released|");
	assert_int_equal(store_release(f->store, &claim, "released", &release), 0);
	assert_int_equal(release, STORE_NOT_RESERVED);
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
}

static void a_call_of_ones_own_does_not_block(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	assert_int_equal(reserve(f, key_text(1), 100), STORE_PENDING);
	f->process = (struct store_process){1001, 70000000};
	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	assert_string_equal(ask(f, "SELECT status, owner, attempts FROM calls"), "pending|reserve|1");
}

static void a_process_with_the_same_pid_and_another_start_is_another(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	f->process = (struct store_process){1001, 90000000};
	assert_int_equal(reserve(f, key_text(1), 100), STORE_PENDING);
}

static void the_wire_leaves_a_reservation_to_its_holder(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	book_open(f, 1, 1);
	book_ended(f, 1, 1, OUTCOME_STATUS, 504, -1, -1);
	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, "SELECT status, owner, lease, attempts, prompt_tokens FROM calls"),
			    "pending|reserve|1100.0|2|812");
	assert_true(commit(f, key_text(1), "x"));
	assert_string_equal(ask(f, THE_SUM), "done|1|853");
}

static void what_was_answered_is_done_though_its_holder_never_said_so(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_int_equal(reserve(f, key_text(1), 100), STORE_PENDING);
	f->world.now_ns += 100 * SECOND;
	assert_int_equal(reserve(f, key_text(1), 100), STORE_DONE);
	sweep(f, 0, 0, 0);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|812|41");
	assert_string_equal(ask(f, "SELECT owner, lease FROM calls"), "|");
	assert_int_equal(reserve(f, key_text(1), 100), STORE_DONE);
}

static void what_is_older_than_its_time_is_done_anew(void **state)
{
	struct fixture *f = *state;

	assert_true(commit(f, "k", "old"));
	f->ttl_ns = 50 * SECOND;
	f->world.now_ns += 49 * SECOND;
	assert_int_equal(reserve(f, "k", 100), STORE_DONE);
	f->world.now_ns += SECOND;
	assert_int_equal(reserve(f, "k", 100), STORE_RESERVED);
	assert_true(commit(f, "k", "new"));
	assert_int_equal(reserve(f, "k", 100), STORE_DONE);
	assert_string_equal(f->result_text, "new");
}

static void what_is_done_anew_makes_the_old_answer_waste(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 800, 1);
	assert_true(commit(f, key_text(1), "old"));
	f->ttl_ns = 50 * SECOND;
	f->world.now_ns += 60 * SECOND;
	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	assert_string_equal(ask(f, CALL_ROW), "pending||1|1|801||");
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 800, 1); /* what was said already changes nothing */
	assert_string_equal(ask(f, CALL_ROW), "pending||1|1|801||");
	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "pending||2|2|801|812|41");
	assert_string_equal(ask(f, "SELECT group_concat(used) FROM attempts"), "0,1");
	assert_true(commit(f, key_text(1), "new"));
	assert_string_equal(ask(f, THE_SUM), "done|1|853");
}

static void what_was_begun_anew_and_left_is_not_done(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 800, 1);
	f->ttl_ns = 50 * SECOND;
	f->world.now_ns += 60 * SECOND;
	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	f->world.now_ns += 100 * SECOND;
	book_ended(f, 200, 1, OUTCOME_STATUS, 504, -1, -1);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|status_504|2|1|801||");
	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
}

/* ---- what was left ---- */

static bool is_1001(uint32_t pid, uint64_t start_ns)
{
	return pid == 1001 && start_ns == 70000000;
}

static void a_call_whose_lease_is_over_is_abandoned_and_taken_over(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	f->world.now_ns = 1901 * SECOND - 1;
	sweep(f, 0, 0, 0);
	f->world.now_ns++;
	sweep(f, 0, 1, 0);
	assert_string_equal(ask(f, CALL_ROW), "abandoned|lease_over|1|0|0||");
	assert_string_equal(ask(f, "SELECT outcome, over FROM attempts"), "lease_over|0");
	book_ended(f, 2, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "done||2|1|0|812|41");
}

static void a_call_whose_owner_is_gone_is_abandoned_before_its_lease(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	book_open(f, 2, 2);
	f->world.is_gone = is_1001;
	sweep(f, 0, 1, 0);
	assert_string_equal(ask(f, "SELECT group_concat(status || coalesce(' ' || reason, ''), ', ') FROM calls"),
			    "abandoned owner_exited, pending");
	assert_int_equal(reserve(f, key_text(1), 100), STORE_RESERVED);
	assert_int_equal(reserve(f, key_text(2), 100), STORE_PENDING);
	snprintf(f->world.boot, sizeof(f->world.boot), "another");
	assert_int_equal(reserve(f, key_text(2), 100), STORE_RESERVED);
}

static void an_answer_after_the_lease_still_counts(void **state)
{
	struct fixture *f = *state;

	book_open(f, 1, 1);
	f->world.now_ns = 5000 * SECOND;
	sweep(f, 0, 1, 0);
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	assert_string_equal(ask(f, CALL_ROW), "done||1|1|0|812|41");
}

static void what_is_old_is_removed_but_for_what_is_pending(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 1, 1);
	add_finding(f, 1, "llm_repeat", "info", false);
	book_all(f);
	f->world.now_ns = 2000 * SECOND;
	assert_int_equal(reserve(f, "k", 100000), STORE_RESERVED);
	f->world.now_ns = 20000 * SECOND;
	sweep(f, 18500 * SECOND, 0, 1);
	assert_string_equal(ask(f, "SELECT group_concat(key) FROM calls"), "k");
	assert_string_equal(ask(f, "SELECT (SELECT COUNT(*) FROM attempts) + (SELECT COUNT(*) FROM findings)"), "0");
}

static void the_attempts_of_a_call_that_stays_stay_with_it(void **state)
{
	struct fixture *f = *state;

	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41);
	add_ended(f, 2, 2, OUTCOME_ANSWERED, 200, 1, 1);
	add_ended(f, 3, 0, OUTCOME_ANSWERED, 200, 1, 1);
	add_ended(f, 500, 1, OUTCOME_ANSWERED, 200, 812, 40);
	add_finding(f, 1, "truncated_response", "info", true);
	add_finding(f, 2, "truncated_response", "info", true);
	book_all(f);
	f->world.now_ns = 2000 * SECOND;
	sweep(f, 900 * SECOND, 0, 1);
	assert_string_equal(ask(f, "SELECT substr(id, 1, 4) FROM attempts ORDER BY t"), "0100\nf401");
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM findings"), "1");
	book_ended(f, 1, 1, OUTCOME_ANSWERED, 200, 812, 41); /* replayed */
	assert_string_equal(ask(f, CALL_ROW), "done||2|2|852|812|41");
}

static void a_store_that_is_swept_gives_room_back(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 1; i <= 3000; i++)
		add_ended(f, i, i, OUTCOME_ANSWERED, 200, 1, 1);
	book_all(f);
	store_tidy(f->store);
	assert_true(file_bytes(f->path) > 1000000);
	f->world.now_ns = 100000 * SECOND;
	sweep(f, SECOND, 0, 3000);
	assert_true(file_bytes(f->path) < 150000);
}

/* ---- earlier runs ---- */

static void keep_past(void *context, const struct past_attempt *past)
{
	struct fixture *f = context;

	if (f->past_count < 4)
		f->past[f->past_count] = *past;
	f->past_count++;
}

static void an_attempt_comes_back_as_it_was_booked(void **state)
{
	struct fixture *f = *state;
	struct past_attempt *facts;

	add_ended(f, 1, 1, OUTCOME_STATUS, 504, -1, -1);
	facts = &bookings_at(&f->bookings, 0)->attempt.facts;
	facts->flags = PAST_FINGERPRINT | PAST_PROMPT_FINGERPRINT | PAST_PRINCIPAL | PAST_REQUEST_COMPLETE | PAST_STATUS_IN_TIME;
	memset(facts->fingerprint, 1, 32);
	memset(facts->prompt_fingerprint, 2, 32);
	memset(facts->principal, 3, 32);
	memset(facts->key_scope, 4, 32);
	facts->idem_state = IDEM_PRESENT;
	facts->idem_size = 3;
	memcpy(facts->idem, "a-b", 3);
	facts->delivered = DELIVERED_ALL;
	facts->closed_first = CLOSER_SERVER;
	facts->closed_ns = 1008 * SECOND;
	f->past[3] = *facts;
	book_all(f);
	assert_int_equal(store_past_attempts(f->store, 0, 10, keep_past, f), 0);
	assert_int_equal(f->past_count, 1);
	assert_memory_equal(&f->past[0], &f->past[3], sizeof(f->past[0]));
}

static void only_the_newest_attempts_within_the_time_come_back_oldest_first(void **state)
{
	struct fixture *f = *state;

	for (unsigned int i = 1; i <= 5; i++)
		book_open(f, i, i);
	assert_int_equal(store_past_attempts(f->store, 1002 * SECOND, 3, keep_past, f), 0);
	assert_int_equal(f->past_count, 3);
	assert_int_equal(f->past[0].first_ns, 1003 * SECOND);
	assert_int_equal(f->past[2].first_ns, 1005 * SECOND);
	f->past_count = 0;
	assert_int_equal(store_past_attempts(f->store, 1005 * SECOND, 3, keep_past, f), 0);
	assert_int_equal(f->past_count, 1);
}

static void nothing_of_a_batch_is_there_when_it_fails(void **state)
{
	struct fixture *f = *state;
	uint64_t rows;

	ask(f, "CREATE TRIGGER no BEFORE INSERT ON calls WHEN (SELECT COUNT(*) FROM calls) = 1 BEGIN SELECT raise(ABORT, 'no'); END");
	add_open(f, 1, 1);
	add_open(f, 2, 2);
	assert_int_equal(store_book(f->store, &f->run, &f->bookings, &rows), -EINVAL);
	assert_int_equal(bookings_count(&f->bookings), 2);
	assert_string_equal(ask(f, "SELECT (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM attempts)"), "0");
	ask(f, "DROP TRIGGER no");
	book_all(f);
	assert_string_equal(ask(f, "SELECT (SELECT COUNT(*) FROM calls) + (SELECT COUNT(*) FROM attempts)"), "4");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(a_new_store_is_for_its_owner_alone),
		FIXTURE_TEST(opens_again_with_what_was_in_it),
		FIXTURE_TEST(says_what_is_wrong_with_a_file),
		FIXTURE_TEST(a_database_of_another_program_is_left_alone),
		FIXTURE_TEST(a_newer_schema_is_refused_and_left_as_it_is),
		FIXTURE_TEST(an_older_schema_is_brought_to_this_one_step_by_step),
		FIXTURE_TEST(a_step_that_fails_leaves_the_older_schema),
		FIXTURE_TEST(the_salt_is_made_once_and_read_ever_after),
		FIXTURE_TEST(two_gateway_errors_and_an_answer_are_one_call),
		FIXTURE_TEST(a_repeat_after_the_answer_is_billed_and_wasted),
		FIXTURE_TEST(an_answer_that_was_cut_is_billed_and_recorded_nowhere),
		FIXTURE_TEST(a_snapshot_that_comes_again_counts_once),
		FIXTURE_TEST(snapshots_of_one_batch_are_written_as_the_last_one_says),
		FIXTURE_TEST(usage_that_is_missing_stays_missing_and_spoils_no_sum),
		FIXTURE_TEST(an_answer_that_proves_unread_is_not_the_result),
		FIXTURE_TEST(another_answer_takes_the_place_of_one_that_proves_unread),
		FIXTURE_TEST(a_call_is_pending_while_any_attempt_is_open),
		FIXTURE_TEST(an_attempt_whose_body_was_not_seen_has_a_row_and_no_call),
		FIXTURE_TEST(a_finding_follows_what_is_said_and_goes_when_it_is_taken_back),
		FIXTURE_TEST(an_answer_is_kept_only_where_the_booking_brings_it),
		FIXTURE_TEST(a_call_that_was_passed_on_is_one_attempt_and_one_bill),
		FIXTURE_TEST(what_a_gateway_asks_again_is_billed_again),
		FIXTURE_TEST(the_second_hop_of_a_call_was_asked_again),
		FIXTURE_TEST(of_two_answers_to_a_gateway_one_is_the_bill_of_its_caller),
		FIXTURE_TEST(what_only_the_gateway_was_told_is_billed_and_nobodys_result),
		FIXTURE_TEST(another_answer_takes_the_place_of_one_that_only_the_gateway_got),
		FIXTURE_TEST(an_answer_that_the_gateway_gave_without_its_cost_is_the_result),
		FIXTURE_TEST(what_only_the_hop_says_of_the_cost_is_no_waste),
		FIXTURE_TEST(a_kept_result_lends_its_cost_too),
		FIXTURE_TEST(a_hop_without_cost_leaves_the_result_to_its_caller),
		FIXTURE_TEST(an_answer_that_says_its_cost_takes_the_place_of_one_that_does_not),
		FIXTURE_TEST(a_gateway_that_asks_for_something_else_is_a_caller_like_any),
		FIXTURE_TEST(of_two_who_ask_one_is_told_to_go_on),
		FIXTURE_TEST(a_reservation_ends_with_its_lease),
		FIXTURE_TEST(a_longer_lease_keeps_it),
		FIXTURE_TEST(the_first_result_stays),
		FIXTURE_TEST(a_result_may_follow_what_the_wire_called_done),
		FIXTURE_TEST(what_another_one_has_taken_is_neither_renewed_nor_given_back),
		FIXTURE_TEST(what_a_command_of_ours_holds_is_not_for_reserve_to_give_back),
		FIXTURE_TEST(what_is_given_back_can_be_taken_at_once),
		FIXTURE_TEST(a_call_of_ones_own_does_not_block),
		FIXTURE_TEST(a_process_with_the_same_pid_and_another_start_is_another),
		FIXTURE_TEST(the_wire_leaves_a_reservation_to_its_holder),
		FIXTURE_TEST(what_was_answered_is_done_though_its_holder_never_said_so),
		FIXTURE_TEST(what_is_older_than_its_time_is_done_anew),
		FIXTURE_TEST(what_is_done_anew_makes_the_old_answer_waste),
		FIXTURE_TEST(what_was_begun_anew_and_left_is_not_done),
		FIXTURE_TEST(a_call_whose_lease_is_over_is_abandoned_and_taken_over),
		FIXTURE_TEST(a_call_whose_owner_is_gone_is_abandoned_before_its_lease),
		FIXTURE_TEST(an_answer_after_the_lease_still_counts),
		FIXTURE_TEST(what_is_old_is_removed_but_for_what_is_pending),
		FIXTURE_TEST(the_attempts_of_a_call_that_stays_stay_with_it),
		FIXTURE_TEST(a_store_that_is_swept_gives_room_back),
		FIXTURE_TEST(an_attempt_comes_back_as_it_was_booked),
		FIXTURE_TEST(only_the_newest_attempts_within_the_time_come_back_oldest_first),
		FIXTURE_TEST(nothing_of_a_batch_is_there_when_it_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
