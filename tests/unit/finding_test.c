/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table on facts alone. cell_<row>_<column>: one test for each cell, with
 * the finding and the severity of the design typed in; then one test for each
 * rule that picks a row or a column. An argument is a pattern of test names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attempt_build.h"

static void expect_cell(struct attempt_facts earlier, const char *row, const char *column, const char *finding,
			const char *severity)
{
	struct attempt_facts later = again();
	struct verdict verdict;
	int i = 0;

	while (strcmp(finding_column_name(i), column) != 0)
		i++;
	set_column(&earlier, &later, i);
	verdict = finding_judge(&earlier, &later, &lax);
	assert_string_equal(finding_row_name(verdict.row), row);
	assert_string_equal(finding_column_name(verdict.column), column);
	expect(verdict, finding, severity);
	assert_false(verdict.cross_process);
	assert_false(verdict.weaker);
}

#define CELL(row, column, finding, severity)                                      \
	static void cell_##row##_##column(void **state)                           \
	{                                                                         \
		(void)state;                                                      \
		expect_cell(row(), #row, #column, finding, severity);             \
	}
#define open still_open

CELL(undecidable, no_key, "undecidable", NULL)
CELL(undecidable, same_key_same_body, "undecidable", NULL)
CELL(undecidable, same_key_other_body, "undecidable", NULL)
CELL(undecidable, new_key, "undecidable", NULL)

CELL(replayed, no_key, "none", NULL)
CELL(replayed, same_key_same_body, "safe_retry", "info")
CELL(replayed, same_key_other_body, "key_reused_different_body", "high")
CELL(replayed, new_key, "none", NULL)

CELL(open, no_key, "dup_in_flight", "medium")
CELL(open, same_key_same_body, "safe_retry", "info")
CELL(open, same_key_other_body, "key_reused_different_body", "high")
CELL(open, new_key, "dup_in_flight", "medium")

CELL(client_gave_up, no_key, "dup_after_timeout", "medium")
CELL(client_gave_up, same_key_same_body, "safe_retry", "info")
CELL(client_gave_up, same_key_other_body, "key_reused_different_body", "high")
CELL(client_gave_up, new_key, "key_changed_on_retry", "high")

CELL(server_ended, no_key, "dup_after_no_response", "medium")
CELL(server_ended, same_key_same_body, "safe_retry", "info")
CELL(server_ended, same_key_other_body, "key_reused_different_body", "high")
CELL(server_ended, new_key, "key_changed_on_retry", "high")

CELL(never_read, no_key, "none", NULL)
CELL(never_read, same_key_same_body, "none", NULL)
CELL(never_read, same_key_other_body, "none", NULL)
CELL(never_read, new_key, "none", NULL)

CELL(success_cut, no_key, "dup_after_truncated_success", "high")
CELL(success_cut, same_key_same_body, "retry_after_success", "low")
CELL(success_cut, same_key_other_body, "key_reused_different_body", "high")
CELL(success_cut, new_key, "key_changed_on_retry", "high")

CELL(success, no_key, "dup_after_success", "high")
CELL(success, same_key_same_body, "retry_after_success", "low")
CELL(success, same_key_other_body, "key_reused_different_body", "high")
CELL(success, new_key, "dup_after_success", "low")

CELL(conflict, no_key, "dup_after_gateway_error", "low")
CELL(conflict, same_key_same_body, "safe_retry", "info")
CELL(conflict, same_key_other_body, "key_reused_different_body", "high")
CELL(conflict, new_key, "key_changed_on_retry", "low")

CELL(overloaded, no_key, "retry_without_key", "low")
CELL(overloaded, same_key_same_body, "safe_retry", "info")
CELL(overloaded, same_key_other_body, "key_reused_different_body", "medium")
CELL(overloaded, new_key, "key_changed_on_retry", "low")

CELL(server_error, no_key, "dup_after_gateway_error", "medium")
CELL(server_error, same_key_same_body, "safe_retry", "info")
CELL(server_error, same_key_other_body, "key_reused_different_body", "high")
CELL(server_error, new_key, "key_changed_on_retry", "medium")

CELL(asked_again, no_key, "none", NULL)
CELL(asked_again, same_key_same_body, "none", NULL)
CELL(asked_again, same_key_other_body, "none", NULL)
CELL(asked_again, new_key, "none", NULL)

CELL(refused, no_key, "retry_without_key", "info")
CELL(refused, same_key_same_body, "retry_after_refusal", "info")
CELL(refused, same_key_other_body, "key_reused_different_body", "info")
CELL(refused, new_key, "none", NULL)

/* ---- which row ---- */

static void expect_row(struct attempt_facts earlier, struct attempt_facts later, const char *row)
{
	assert_string_equal(finding_row_name(finding_row_of(&earlier, &later)), row);
}

static void expect_row_of_statuses(const unsigned int *statuses, const char *row)
{
	for (; *statuses; statuses++)
		expect_row(answered(*statuses), again(), row);
}

static void every_2xx_and_303_is_a_success(void **state)
{
	(void)state;
	expect_row_of_statuses((const unsigned int[]){200, 201, 202, 203, 204, 205, 206, 226, 299, 303, 0}, "success");
}

static void a_302_is_a_success_after_a_form_post_and_a_conflict_otherwise(void **state)
{
	struct attempt_facts form = answered(302);

	(void)state;
	form.form = true;
	expect_row(form, again(), "success");
	expect_row(answered(302), again(), "conflict");
}

static void rows_hold_the_statuses_of_the_design(void **state)
{
	(void)state;
	expect_row_of_statuses((const unsigned int[]){408, 409, 302, 0}, "conflict");
	expect_row_of_statuses((const unsigned int[]){429, 503, 529, 0}, "overloaded");
	expect_row_of_statuses((const unsigned int[]){499, 500, 501, 502, 504, 505, 520, 524, 599, 600, 999, 0}, "server_error");
	expect_row_of_statuses((const unsigned int[]){300, 304, 0}, "asked_again");
	expect_row_of_statuses((const unsigned int[]){400, 402, 403, 404, 405, 410, 412, 413, 415, 421, 422, 425, 426, 428,
						      431, 451, 498, 301, 307, 308, 305, 0},
			       "refused");
}

static void an_informational_status_is_no_final_status(void **state)
{
	struct attempt_facts earlier = server_ended();

	(void)state;
	earlier.status = 101;
	earlier.status_ns = ENDED - MS;
	earlier.status_in_time = true;
	expect_row(earlier, again(), "server_ended");
}

static void what_happened_after_the_later_one_began_does_not_count(void **state)
{
	struct attempt_facts later = attempt(ENDED - 1);

	(void)state;
	expect_row(success(), later, "open");
	expect_row(client_gave_up(), later, "open");
	expect_row(server_ended(), later, "open");
	expect_row(overloaded(), later, "open");
	later.first_ns = ENDED;
	expect_row(success(), later, "success");
	expect_row(client_gave_up(), later, "client_gave_up");
	expect_row(server_ended(), later, "server_ended");
	expect_row(overloaded(), later, "overloaded");
}

static void an_earlier_one_that_began_after_the_later_one_is_open(void **state)
{
	(void)state;
	expect_row(success(), attempt(BEGAN - SECOND), "open");
}

static void a_response_that_still_streams_is_open(void **state)
{
	struct attempt_facts earlier = success();

	(void)state;
	earlier.complete_ns = 0;
	earlier.delivered = DELIVERED_UNKNOWN;
	expect_row(earlier, again(), "open");
	earlier.status = 500;
	expect_row(earlier, again(), "open");
	assert_true(attempt_ended_ns(&earlier) == UINT64_MAX);
}

static void a_success_is_cut_where_it_was_not_read_to_its_end(void **state)
{
	struct attempt_facts earlier = success();

	(void)state;
	earlier.delivered = DELIVERED_PART;
	expect_row(earlier, again(), "success_cut");
	earlier.delivered = DELIVERED_NONE;
	expect_row(earlier, again(), "success_cut");
	earlier.delivered = DELIVERED_UNKNOWN;
	expect_row(earlier, again(), "success");
}

static void a_success_that_became_complete_after_the_client_closed_is_cut(void **state)
{
	struct attempt_facts earlier = success();

	(void)state;
	earlier.closed_first = CLOSER_CLIENT;
	earlier.closed_ns = ENDED - MS / 2;
	earlier.delivered = DELIVERED_UNKNOWN;
	expect_row(earlier, again(), "success_cut");
	earlier.delivered = DELIVERED_ALL;
	expect_row(earlier, again(), "success");
	earlier.delivered = DELIVERED_UNKNOWN;
	earlier.closed_first = CLOSER_SERVER;
	expect_row(earlier, again(), "success");
}

static void a_status_sent_when_the_client_had_gone_is_not_the_last_status(void **state)
{
	(void)state;
	expect_row(answered_late(200, ENDED + MS), again(), "client_gave_up");
	expect_row(answered_late(503, ENDED + MS), again(), "client_gave_up");
}

static void unread_counts_only_where_it_is_known(void **state)
{
	struct attempt_facts earlier = server_ended();

	(void)state;
	expect_row(earlier, again(), "server_ended");
	earlier.server_read_known = true;
	earlier.server_read_all = true;
	expect_row(earlier, again(), "server_ended");
	earlier.server_read_all = false;
	expect_row(earlier, again(), "never_read");
	earlier.closed_first = CLOSER_CLIENT;
	expect_row(earlier, again(), "client_gave_up");
}

static void a_request_that_was_never_whole_was_never_read(void **state)
{
	struct attempt_facts earlier = client_gave_up();

	(void)state;
	earlier.request_complete = false;
	expect_row(earlier, again(), "never_read");
	earlier.closed_first = CLOSER_SERVER;
	expect_row(earlier, again(), "never_read");
	earlier.closed_ns = AGAIN + SECOND;
	expect_row(earlier, again(), "never_read");
	assert_true(attempt_ended_ns(&earlier) == 0);
	earlier = refused();
	earlier.request_complete = false;
	expect_row(earlier, again(), "refused");
}

static void a_401_or_407_asks_for_other_credentials(void **state)
{
	struct attempt_facts earlier = answered(401), later = again();

	(void)state;
	expect_row(earlier, later, "refused");
	later.has_principal = true;
	later.principal = 1;
	expect_row(earlier, later, "asked_again");
	expect_pair(earlier, later, "none", NULL);
	earlier.has_principal = true;
	earlier.principal = 2;
	expect_row(earlier, later, "asked_again");
	earlier.principal = 1;
	expect_row(earlier, later, "refused");
	earlier.status = 407;
	expect_row(earlier, later, "refused");
	later.principal = 3;
	expect_row(earlier, later, "asked_again");
	earlier.status = 403;
	expect_row(earlier, later, "refused");
}

static void a_417_asks_for_the_request_without_expect(void **state)
{
	struct attempt_facts earlier = answered(417), later = again();

	(void)state;
	earlier.expects = true;
	expect_row(earlier, later, "asked_again");
	later.expects = true;
	expect_row(earlier, later, "refused");
}

static void undecidable_comes_before_every_other_row(void **state)
{
	struct attempt_facts earlier = replayed();

	(void)state;
	earlier.undecidable = true;
	expect_row(earlier, again(), "undecidable");
	earlier = still_open();
	earlier.undecidable = true;
	expect_row(earlier, again(), "undecidable");
}

/* ---- which column ---- */

static unsigned int columns(enum idem_state earlier_state, uint64_t earlier_key, enum idem_state later_state,
			    uint64_t later_key)
{
	struct attempt_facts earlier = success(), later = again();

	earlier.idem_state = earlier_state;
	earlier.key = earlier_key;
	later.idem_state = later_state;
	later.key = later_key;
	return finding_columns_of(&earlier, &later);
}

static void a_later_one_without_a_key_has_no_key_whatever_came_before(void **state)
{
	(void)state;
	assert_int_equal(columns(IDEM_ABSENT, 0, IDEM_ABSENT, 0), BIT(COLUMN_NO_KEY));
	assert_int_equal(columns(IDEM_PRESENT, 5, IDEM_ABSENT, 0), BIT(COLUMN_NO_KEY));
	assert_int_equal(columns(IDEM_UNKNOWN, 0, IDEM_ABSENT, 0), BIT(COLUMN_NO_KEY));
}

static void an_invalid_key_equals_nothing(void **state)
{
	(void)state;
	assert_int_equal(columns(IDEM_PRESENT, 5, IDEM_INVALID, 0), BIT(COLUMN_NO_KEY));
	assert_int_equal(columns(IDEM_INVALID, 0, IDEM_INVALID, 0), BIT(COLUMN_NO_KEY));
	assert_int_equal(columns(IDEM_INVALID, 0, IDEM_PRESENT, 5), BIT(COLUMN_NEW_KEY));
}

static void a_key_that_the_earlier_one_lacked_is_new(void **state)
{
	(void)state;
	assert_int_equal(columns(IDEM_ABSENT, 0, IDEM_PRESENT, 5), BIT(COLUMN_NEW_KEY));
	assert_int_equal(columns(IDEM_PRESENT, 4, IDEM_PRESENT, 5), BIT(COLUMN_NEW_KEY));
	assert_int_equal(columns(IDEM_PRESENT, 5, IDEM_PRESENT, 5), BIT(COLUMN_SAME_KEY_SAME_BODY));
}

static void a_key_that_may_not_have_been_seen_leaves_columns_open(void **state)
{
	(void)state;
	assert_int_equal(columns(IDEM_UNKNOWN, 0, IDEM_PRESENT, 5),
			 BIT(COLUMN_SAME_KEY_SAME_BODY) | BIT(COLUMN_NEW_KEY));
	assert_int_equal(columns(IDEM_PRESENT, 5, IDEM_UNKNOWN, 0),
			 BIT(COLUMN_NO_KEY) | BIT(COLUMN_SAME_KEY_SAME_BODY) | BIT(COLUMN_NEW_KEY));
	assert_int_equal(columns(IDEM_ABSENT, 0, IDEM_UNKNOWN, 0), BIT(COLUMN_NO_KEY) | BIT(COLUMN_NEW_KEY));
}

static void an_unknown_key_is_undecidable_only_where_it_matters(void **state)
{
	struct attempt_facts later = again(), earlier = success();
	struct verdict verdict;

	(void)state;
	later.idem_state = IDEM_UNKNOWN;
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "undecidable", NULL);
	assert_string_equal(verdict.rule, "the key may not have been seen");
	expect_pair(still_open(), later, "dup_in_flight", "medium"); /* no key and new key say the same */
	expect_pair(never_read(), later, "none", NULL);
	earlier = still_open();
	set_key(&earlier, 5);
	expect_pair(earlier, later, "undecidable", NULL); /* it may be the same key */
}

static void an_unknown_body_is_undecidable_only_under_the_same_key(void **state)
{
	struct attempt_facts earlier = success(), later = again();
	struct verdict verdict;

	(void)state;
	later.body = 0;
	expect_pair(earlier, later, "dup_after_success", "high");
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	later.body = 0;
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "undecidable", NULL);
	assert_string_equal(verdict.rule, "the body of one of them is not known");
	later.body = 1;
	earlier.body = 0;
	expect_pair(earlier, later, "undecidable", NULL);
	set_key(&later, 0xcccc);
	expect_pair(earlier, later, "dup_after_success", "low");
	later = again();
	earlier = never_read();
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	later.body = 0;
	expect_pair(earlier, later, "none", NULL);
}

/* ---- order, bounds, names ---- */

static void undecidable_ranks_between_low_and_medium(void **state)
{
	const struct verdict order[] = {
		{.finding = FINDING_NONE},
		{.finding = FINDING_SAFE_RETRY, .severity = SEVERITY_INFO},
		{.finding = FINDING_RETRY_WITHOUT_KEY, .severity = SEVERITY_LOW},
		{.finding = FINDING_UNDECIDABLE},
		{.finding = FINDING_DUP_IN_FLIGHT, .severity = SEVERITY_MEDIUM},
		{.finding = FINDING_DUP_AFTER_SUCCESS, .severity = SEVERITY_HIGH},
	};

	(void)state;
	for (size_t a = 0; a < 6; a++)
		for (size_t b = 0; b < 6; b++)
			assert_int_equal(verdict_worse(&order[a], &order[b]), a > b);
}

static void the_highest_severity_is_known_beforehand(void **state)
{
	struct attempt_facts later = again();

	(void)state;
	assert_int_equal(finding_highest(&later, &lax), SEVERITY_HIGH);
	later.idempotent = true;
	assert_int_equal(finding_highest(&later, &lax), SEVERITY_LOW);
	assert_int_equal(finding_highest(&later, &strict), SEVERITY_HIGH);
	later = again_as(CLASS_READ, CLASS_BY_PATH);
	assert_int_equal(finding_highest(&later, &strict), SEVERITY_LOW);
	later = again_as(CLASS_AUTH, CLASS_BY_PATH);
	assert_int_equal(finding_highest(&later, &lax), SEVERITY_INFO);
	later = again_as(CLASS_READ, CLASS_BY_METHOD);
	assert_int_equal(finding_highest(&later, &lax), SEVERITY_NULL);
	later = prompt(again());
	assert_int_equal(finding_highest(&later, &lax), SEVERITY_HIGH);
}

static void the_worst_like_an_attempt_depends_on_how_it_ended_alone(void **state)
{
	struct attempt_facts earlier = overloaded(), later = again();
	struct verdict worst = finding_worst_like(&earlier, &later, &lax, false);

	(void)state;
	expect(worst, "retry_without_key", "low");
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	worst = finding_worst_like(&earlier, &later, &lax, false);
	expect(worst, "key_changed_on_retry", "low");
	worst = finding_worst_like(&earlier, &later, &lax, true);
	expect(worst, "key_reused_different_body", "medium");
	earlier = prompt(orphaned(still_open()));
	later = prompt(again());
	later.tgid = earlier.tgid;
	worst = finding_worst_like(&earlier, &later, &lax, false);
	expect(worst, "llm_redispatched_job", "medium");
}

static void severities_are_parsed_by_their_names_alone(void **state)
{
	enum severity severity = SEVERITY_NULL;

	(void)state;
	assert_int_equal(severity_parse(BYTES("info"), &severity), 0);
	assert_int_equal(severity, SEVERITY_INFO);
	assert_int_equal(severity_parse(BYTES("high"), &severity), 0);
	assert_int_equal(severity, SEVERITY_HIGH);
	assert_int_equal(severity_parse(BYTES("High"), &severity), -EINVAL);
	assert_int_equal(severity_parse(BYTES(""), &severity), -EINVAL);
	assert_int_equal(severity_parse(BYTES("highest"), &severity), -EINVAL);
	assert_int_equal(severity, SEVERITY_HIGH);
}

static void everything_has_a_name(void **state)
{
	(void)state;
	for (int i = 0; i < FINDING_COUNT; i++)
		assert_non_null(finding_name(i));
	for (int i = 0; i < ROW_COUNT; i++)
		assert_non_null(finding_row_name(i));
	for (int i = 0; i < COLUMN_COUNT; i++)
		assert_non_null(finding_column_name(i));
	assert_string_equal(finding_name(FINDING_LLM_MAYBE_BILLED_TWICE), "llm_maybe_billed_twice");
	assert_null(finding_name(FINDING_COUNT));
	assert_null(finding_row_name(ROW_COUNT));
	assert_null(finding_column_name(COLUMN_COUNT));
	assert_null(severity_name(SEVERITY_NULL));
	assert_string_equal(severity_name(SEVERITY_MEDIUM), "medium");
}

#define ROW(row)                                                                                  \
	cmocka_unit_test(cell_##row##_no_key), cmocka_unit_test(cell_##row##_same_key_same_body), \
		cmocka_unit_test(cell_##row##_same_key_other_body), cmocka_unit_test(cell_##row##_new_key)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ROW(undecidable), ROW(replayed), ROW(open), ROW(client_gave_up), ROW(server_ended), ROW(never_read),
		ROW(success_cut), ROW(success), ROW(conflict), ROW(overloaded), ROW(server_error), ROW(asked_again),
		ROW(refused),
		cmocka_unit_test(every_2xx_and_303_is_a_success),
		cmocka_unit_test(a_302_is_a_success_after_a_form_post_and_a_conflict_otherwise),
		cmocka_unit_test(rows_hold_the_statuses_of_the_design),
		cmocka_unit_test(an_informational_status_is_no_final_status),
		cmocka_unit_test(what_happened_after_the_later_one_began_does_not_count),
		cmocka_unit_test(an_earlier_one_that_began_after_the_later_one_is_open),
		cmocka_unit_test(a_response_that_still_streams_is_open),
		cmocka_unit_test(a_success_is_cut_where_it_was_not_read_to_its_end),
		cmocka_unit_test(a_success_that_became_complete_after_the_client_closed_is_cut),
		cmocka_unit_test(a_status_sent_when_the_client_had_gone_is_not_the_last_status),
		cmocka_unit_test(unread_counts_only_where_it_is_known),
		cmocka_unit_test(a_request_that_was_never_whole_was_never_read),
		cmocka_unit_test(a_401_or_407_asks_for_other_credentials),
		cmocka_unit_test(a_417_asks_for_the_request_without_expect),
		cmocka_unit_test(undecidable_comes_before_every_other_row),
		cmocka_unit_test(a_later_one_without_a_key_has_no_key_whatever_came_before),
		cmocka_unit_test(an_invalid_key_equals_nothing),
		cmocka_unit_test(a_key_that_the_earlier_one_lacked_is_new),
		cmocka_unit_test(a_key_that_may_not_have_been_seen_leaves_columns_open),
		cmocka_unit_test(an_unknown_key_is_undecidable_only_where_it_matters),
		cmocka_unit_test(an_unknown_body_is_undecidable_only_under_the_same_key),
		cmocka_unit_test(undecidable_ranks_between_low_and_medium),
		cmocka_unit_test(the_highest_severity_is_known_beforehand),
		cmocka_unit_test(the_worst_like_an_attempt_depends_on_how_it_ended_alone),
		cmocka_unit_test(severities_are_parsed_by_their_names_alone),
		cmocka_unit_test(everything_has_a_name),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
