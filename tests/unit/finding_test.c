/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The judge on facts alone. cell_<row>_<column>: one test for each cell of the
 * table, with the finding and the severity of the design typed in. After them
 * one test for each rule that picks a row or a column, or lowers or raises a
 * cell. An argument is a pattern of test names.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "finding.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

#define BEGAN (10 * SECOND)	    /* first byte of the earlier attempt */
#define ENDED (BEGAN + 100 * MS)    /* when it ended, where it did */
#define AGAIN (BEGAN + 1000 * MS)   /* first byte of the later attempt */
#define MUCH_LATER (BEGAN + MINUTE) /* after both */

static const struct finding_options lax = {.strict = false};
static const struct finding_options strict = {.strict = true};

/* ---- attempts ---- */

static struct attempt_facts attempt(uint64_t first_ns)
{
	return (struct attempt_facts){
		.first_ns = first_ns,
		.process_start_ns = 7,
		.tgid = 4711,
		.class = CLASS_MUTATING,
		.class_source = CLASS_BY_METHOD,
		.idem_state = IDEM_ABSENT,
		.request_complete = true,
		.body = 0xb0d1,
	};
}

static struct attempt_facts again(void)
{
	return attempt(AGAIN);
}

static struct attempt_facts still_open(void)
{
	return attempt(BEGAN);
}

static struct attempt_facts closed_by(enum call_closer closer)
{
	struct attempt_facts facts = attempt(BEGAN);

	facts.closed_first = closer;
	facts.closed_ns = ENDED;
	return facts;
}

static struct attempt_facts client_gave_up(void)
{
	return closed_by(CLOSER_CLIENT);
}

static struct attempt_facts server_ended(void)
{
	return closed_by(CLOSER_SERVER);
}

static struct attempt_facts never_read(void)
{
	struct attempt_facts facts = server_ended();

	facts.server_read_known = true;
	return facts;
}

static struct attempt_facts answered(unsigned int status)
{
	struct attempt_facts facts = attempt(BEGAN);

	facts.status = (uint16_t)status;
	facts.status_ns = ENDED - MS;
	facts.status_in_time = true;
	facts.complete_ns = ENDED;
	facts.delivered = DELIVERED_ALL;
	return facts;
}

static struct attempt_facts success_cut(void)
{
	struct attempt_facts facts = answered(200);

	facts.complete_ns = 0;
	facts.delivered = DELIVERED_PART;
	facts.closed_first = CLOSER_SERVER;
	facts.closed_ns = ENDED;
	return facts;
}

static struct attempt_facts success(void)
{
	return answered(200);
}

static struct attempt_facts replayed(void)
{
	struct attempt_facts facts = answered(200);

	facts.replayed = true;
	return facts;
}

static struct attempt_facts undecidable(void)
{
	struct attempt_facts facts = success();

	facts.undecidable = true;
	return facts;
}

static struct attempt_facts conflict(void)
{
	return answered(409);
}

static struct attempt_facts overloaded(void)
{
	return answered(503);
}

static struct attempt_facts server_error(void)
{
	return answered(500);
}

static struct attempt_facts asked_again(void)
{
	return answered(304);
}

static struct attempt_facts refused(void)
{
	return answered(422);
}

/* The client gave up at ENDED; the status came at late_ns all the same. */
static struct attempt_facts answered_late(unsigned int status, uint64_t late_ns)
{
	struct attempt_facts facts = client_gave_up();

	facts.status = (uint16_t)status;
	facts.status_ns = late_ns;
	facts.complete_ns = late_ns + MS;
	facts.status_in_time = false;
	facts.delivered = DELIVERED_NONE;
	return facts;
}

static void set_key(struct attempt_facts *facts, uint64_t key)
{
	facts->idem_state = IDEM_PRESENT;
	facts->key = key;
}

static void set_column(struct attempt_facts *earlier, struct attempt_facts *later, enum finding_column column)
{
	if (column == COLUMN_NO_KEY)
		return;
	set_key(earlier, 0xaaaa);
	set_key(later, column == COLUMN_NEW_KEY ? 0xbbbb : 0xaaaa);
	if (column == COLUMN_SAME_KEY_OTHER_BODY)
		later->body = 0x07e4;
}

/* ---- what is expected ---- */

static void expect(struct verdict verdict, const char *finding, const char *severity)
{
	assert_string_equal(finding_name(verdict.finding), finding);
	if (severity)
		assert_string_equal(severity_name(verdict.severity), severity);
	else
		assert_int_equal(verdict.severity, SEVERITY_NULL);
	assert_non_null(verdict.rule);
}

static void expect_pair(struct attempt_facts earlier, struct attempt_facts later, const char *finding, const char *severity)
{
	expect(finding_judge(&earlier, &later, &lax), finding, severity);
}

static void expect_strict(struct attempt_facts earlier, struct attempt_facts later, const char *finding, const char *severity)
{
	expect(finding_judge(&earlier, &later, &strict), finding, severity);
}

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

#define BIT(column) (1U << (column))

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

/* ---- what changes a cell ---- */

static void a_late_2xx_makes_a_timeout_high(void **state)
{
	struct attempt_facts earlier = answered_late(201, MUCH_LATER), later = again();
	struct verdict verdict = finding_judge(&earlier, &later, &lax);

	(void)state;
	expect(verdict, "dup_after_timeout", "high");
	assert_string_equal(verdict.rule, "a late 2xx shows that it was applied");
	expect_pair(answered_late(303, MUCH_LATER), later, "dup_after_timeout", "high");
	expect_pair(answered_late(302, MUCH_LATER), later, "dup_after_timeout", "medium");
	expect_pair(answered_late(500, MUCH_LATER), later, "dup_after_timeout", "medium");
	expect_pair(answered_late(422, MUCH_LATER), later, "dup_after_timeout", "medium");
}

static void a_late_2xx_revokes_no_safe_retry(void **state)
{
	struct attempt_facts earlier = answered_late(201, MUCH_LATER), later = again();

	(void)state;
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	expect_pair(earlier, later, "safe_retry", "info");
}

static void a_late_2xx_of_one_that_was_open_changes_nothing(void **state)
{
	(void)state;
	expect_pair(answered_late(201, MUCH_LATER), attempt(ENDED - 1), "dup_in_flight", "medium");
}

static void a_replay_header_on_the_later_answer_withdraws(void **state)
{
	struct attempt_facts earlier = success(), later = again();

	(void)state;
	later.replayed = true;
	expect_pair(earlier, later, "none", NULL);
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	expect_pair(earlier, later, "safe_retry", "info");
}

static void a_replay_header_leaves_a_reused_key_as_its_status_has_it(void **state)
{
	struct attempt_facts earlier = overloaded(), later = again();
	struct verdict verdict;

	(void)state;
	set_column(&earlier, &later, COLUMN_SAME_KEY_OTHER_BODY);
	later.replayed = true;
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "key_reused_different_body", "medium");
	assert_int_equal(verdict.row, ROW_REPLAYED);
	earlier.status = 422;
	expect_pair(earlier, later, "key_reused_different_body", "info");
	earlier.status = 304;
	expect_pair(earlier, later, "none", NULL);
}

static void put_and_delete_are_at_most_low(void **state)
{
	struct attempt_facts earlier = success(), later = again();
	struct verdict verdict;

	(void)state;
	later.idempotent = true;
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "dup_after_success", "low");
	assert_string_equal(verdict.rule, "method is idempotent");
	expect_pair(answered_late(200, MUCH_LATER), later, "dup_after_timeout", "low");
	expect_pair(refused(), later, "retry_without_key", "info");
	expect_pair(undecidable(), later, "undecidable", NULL);
}

static struct attempt_facts again_as(enum call_class class, enum class_source source)
{
	struct attempt_facts facts = again();

	facts.class = class;
	facts.class_source = source;
	return facts;
}

static void auth_and_telemetry_are_at_most_info(void **state)
{
	(void)state;
	expect_pair(success(), again_as(CLASS_AUTH, CLASS_BY_PATH), "dup_after_success", "info");
	expect_pair(success(), again_as(CLASS_TELEMETRY, CLASS_BY_PATH), "dup_after_success", "info");
	expect_strict(success(), again_as(CLASS_AUTH, CLASS_BY_PATH), "dup_after_success", "info");
	expect_strict(success(), again_as(CLASS_TELEMETRY, CLASS_BY_PROTOCOL), "dup_after_success", "info");
	expect_pair(undecidable(), again_as(CLASS_AUTH, CLASS_BY_PATH), "undecidable", NULL);
}

static void a_read_known_by_its_path_or_tool_name_is_at_most_low(void **state)
{
	struct attempt_facts earlier = success(), later = again_as(CLASS_READ, CLASS_BY_PATH);
	struct verdict verdict = finding_judge(&earlier, &later, &lax);

	(void)state;
	expect(verdict, "dup_after_success", "low");
	assert_string_equal(verdict.rule, "path rule: known as a read by its path alone");
	later.class_source = CLASS_BY_TOOL_NAME;
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "dup_after_success", "low");
	assert_string_equal(verdict.rule, "tool name rule: known as a read by its name alone");
}

static void a_read_by_protocol_policy_or_safe_method_is_no_finding(void **state)
{
	(void)state;
	expect_pair(success(), again_as(CLASS_READ, CLASS_BY_PROTOCOL), "none", NULL);
	expect_pair(success(), again_as(CLASS_READ, CLASS_BY_POLICY), "none", NULL);
	expect_pair(success(), again_as(CLASS_READ, CLASS_BY_METHOD), "none", NULL);
	expect_pair(undecidable(), again_as(CLASS_READ, CLASS_BY_METHOD), "none", NULL);
	expect_strict(success(), again_as(CLASS_READ, CLASS_BY_PROTOCOL), "none", NULL);
}

static void a_later_request_that_was_never_whole_is_no_finding(void **state)
{
	struct attempt_facts earlier = success(), later = again();

	(void)state;
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	later.request_complete = false;
	later.body = 0;
	expect_pair(earlier, later, "none", NULL);
	later.undecidable = true; /* a hole, then: it may have been whole */
	expect_pair(earlier, later, "undecidable", NULL);
}

static void a_continuation_of_an_mcp_call_is_no_finding(void **state)
{
	struct attempt_facts earlier = success(), later = again();

	(void)state;
	later.continuation = true;
	expect_pair(earlier, later, "none", NULL);
	earlier.continuation = true; /* the same continuation twice */
	expect_pair(earlier, later, "dup_after_success", "high");
}

static void a_pair_of_two_processes_is_marked(void **state)
{
	struct attempt_facts earlier = success(), later = again();

	(void)state;
	assert_false(finding_judge(&earlier, &later, &lax).cross_process);
	later.process_start_ns = 8; /* the pid came round again */
	assert_true(finding_judge(&earlier, &later, &lax).cross_process);
}

/* ---- strict ---- */

static void strict_makes_every_finding_of_the_table_at_least_medium(void **state)
{
	static struct attempt_facts (*const rows[])(void) = {still_open,  client_gave_up, server_ended, success_cut,  success,
							     conflict,	  overloaded,	  server_error, asked_again,  refused,
							     never_read, replayed,	  undecidable};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (int column = 0; column < COLUMN_COUNT; column++) {
			struct attempt_facts earlier = rows[i](), later = again();
			struct verdict weak, strong;

			set_column(&earlier, &later, column);
			weak = finding_judge(&earlier, &later, &lax);
			strong = finding_judge(&earlier, &later, &strict);
			assert_int_equal(strong.finding, weak.finding);
			if (weak.finding == FINDING_NONE || weak.finding == FINDING_SAFE_RETRY ||
			    weak.finding == FINDING_UNDECIDABLE)
				assert_int_equal(strong.severity, weak.severity);
			else
				assert_int_equal(strong.severity,
						 weak.severity > SEVERITY_MEDIUM ? weak.severity : SEVERITY_MEDIUM);
		}
}

static void strict_counts_put_and_delete_too(void **state)
{
	struct attempt_facts later = again();

	(void)state;
	later.idempotent = true;
	expect_strict(success(), later, "dup_after_success", "high");
	expect_strict(refused(), later, "retry_without_key", "medium");
}

static void strict_leaves_reads_known_by_path_or_name_low(void **state)
{
	(void)state;
	expect_strict(success(), again_as(CLASS_READ, CLASS_BY_PATH), "dup_after_success", "low");
	expect_strict(refused(), again_as(CLASS_READ, CLASS_BY_TOOL_NAME), "retry_without_key", "low");
}

static void strict_wants_the_last_status_of_a_keyed_retry_in_the_list(void **state)
{
	static const unsigned int listed[] = {408, 409, 429, 500, 502, 503, 504};
	static const unsigned int unlisted[] = {302, 499, 501, 505, 520, 521, 522, 523, 524, 529};
	struct attempt_facts earlier, later = again();

	(void)state;
	for (size_t i = 0; i < sizeof(listed) / sizeof(listed[0]); i++) {
		earlier = answered(listed[i]);
		set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
		expect_strict(earlier, later, "safe_retry", "info");
	}
	for (size_t i = 0; i < sizeof(unlisted) / sizeof(unlisted[0]); i++) {
		earlier = answered(unlisted[i]);
		set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
		expect_strict(earlier, later, "retry_after_unlisted_status", "medium");
		expect_pair(earlier, later, "safe_retry", "info");
	}
	earlier = client_gave_up();
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	expect_strict(earlier, later, "safe_retry", "info");
	earlier = answered(524);
	earlier.replayed = true;
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	expect_strict(earlier, later, "safe_retry", "info");
}

/* ---- who calls ---- */

static struct attempt_facts as_principal(struct attempt_facts facts, uint64_t principal, bool bearer)
{
	facts.has_principal = true;
	facts.principal = principal;
	facts.bearer = bearer;
	return facts;
}

static void different_principals_do_not_match(void **state)
{
	(void)state;
	expect_pair(as_principal(success(), 1, false), as_principal(again(), 2, false), "none", NULL);
	expect_pair(as_principal(success(), 1, false), again(), "none", NULL);
	expect_pair(success(), as_principal(again(), 1, false), "none", NULL);
	expect_pair(as_principal(undecidable(), 1, false), as_principal(again(), 2, false), "none", NULL);
	expect_pair(as_principal(success(), 1, false), as_principal(again(), 1, false), "dup_after_success", "high");
}

static void different_principals_match_after_a_403(void **state)
{
	(void)state;
	expect_pair(as_principal(answered(403), 1, false), as_principal(again(), 2, false), "retry_without_key", "info");
	expect_pair(as_principal(answered(401), 1, false), as_principal(again(), 2, false), "none", NULL);
	expect_pair(as_principal(answered(401), 1, false), again(), "retry_without_key", "info");
	expect_pair(as_principal(answered(404), 1, false), as_principal(again(), 2, false), "none", NULL);
}

static void a_403_counts_for_principals_only_once_it_came(void **state)
{
	struct attempt_facts later = as_principal(attempt(ENDED - 1), 2, false);

	(void)state;
	expect_pair(as_principal(answered(403), 1, false), later, "none", NULL);
}

static void two_bearer_tokens_of_one_process_match_for_15_minutes(void **state)
{
	struct attempt_facts earlier = as_principal(success(), 1, true);
	struct attempt_facts later = as_principal(attempt(BEGAN + 15 * MINUTE), 2, true);
	struct verdict verdict = finding_judge(&earlier, &later, &lax);

	(void)state;
	expect(verdict, "dup_after_success", "high");
	assert_true(verdict.weaker);
	later.first_ns++;
	expect_pair(earlier, later, "none", NULL);
	later.first_ns--;
	later.tgid++;
	expect_pair(earlier, later, "none", NULL);
	later.tgid--;
	later.bearer = false;
	expect_pair(earlier, later, "none", NULL);
	later = as_principal(attempt(BEGAN + 16 * MINUTE), 1, true); /* one token: no window */
	verdict = finding_judge(&earlier, &later, &lax);
	expect(verdict, "dup_after_success", "high");
	assert_false(verdict.weaker);
}

/* ---- model calls ---- */

static struct attempt_facts prompt(struct attempt_facts facts)
{
	facts.class = CLASS_LLM;
	facts.class_source = CLASS_BY_PROTOCOL;
	return facts;
}

static void expect_prompt(struct attempt_facts earlier, const char *finding, const char *severity)
{
	expect_pair(prompt(earlier), prompt(again()), finding, severity);
}

static struct attempt_facts orphaned(struct attempt_facts facts)
{
	facts.owner_gone = true;
	facts.tgid = 4000;
	return facts;
}

static void llm_undecidable_comes_first(void **state)
{
	(void)state;
	expect_prompt(orphaned(undecidable()), "undecidable", NULL);
}

static void llm_unanswered_and_its_owner_gone_is_a_redispatched_job(void **state)
{
	struct attempt_facts same_process = orphaned(client_gave_up());

	(void)state;
	expect_prompt(orphaned(client_gave_up()), "llm_redispatched_job", "medium");
	expect_prompt(orphaned(server_ended()), "llm_redispatched_job", "medium");
	expect_prompt(orphaned(still_open()), "llm_redispatched_job", "medium");
	same_process.tgid = again().tgid;
	expect_prompt(same_process, "llm_maybe_billed_twice", "medium");
	expect_prompt(orphaned(answered(504)), "llm_maybe_billed_twice", "medium");
	expect_prompt(orphaned(success()), "llm_repeat", "info");
}

static void llm_an_owner_that_left_only_after_the_later_one_began_was_there(void **state)
{
	struct attempt_facts earlier = orphaned(client_gave_up());

	(void)state;
	earlier.closed_ns = AGAIN + 1;
	expect_prompt(earlier, "llm_identical_in_flight", "low");
}

static void llm_2xx_not_delivered_whole_is_billed_twice(void **state)
{
	(void)state;
	expect_prompt(success_cut(), "llm_billed_twice", "high");
	expect_prompt(answered_late(200, MUCH_LATER), "llm_billed_twice", "high");
	expect_prompt(orphaned(answered_late(200, MUCH_LATER)), "llm_billed_twice", "high");
}

static void llm_errors_and_no_answer_may_be_billed_twice(void **state)
{
	static const unsigned int statuses[] = {500, 501, 502, 504, 520, 524, 408, 409};

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		expect_prompt(answered(statuses[i]), "llm_maybe_billed_twice", "medium");
	expect_prompt(client_gave_up(), "llm_maybe_billed_twice", "medium");
	expect_prompt(server_ended(), "llm_maybe_billed_twice", "medium");
	expect_prompt(answered_late(500, MUCH_LATER), "llm_maybe_billed_twice", "medium");
}

static void llm_identical_in_flight_is_low(void **state)
{
	(void)state;
	expect_prompt(still_open(), "llm_identical_in_flight", "low");
}

static void llm_delivered_is_a_repeat(void **state)
{
	(void)state;
	expect_prompt(success(), "llm_repeat", "info");
}

static void llm_everything_else_is_none(void **state)
{
	static const unsigned int statuses[] = {503, 529, 429, 400, 401, 402, 403, 404, 422, 302, 307, 304, 499};

	(void)state;
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
		expect_prompt(answered(statuses[i]), "none", NULL);
	expect_prompt(never_read(), "none", NULL);
	expect_prompt(replayed(), "none", NULL);
}

static void llm_with_the_same_key_and_body_is_info(void **state)
{
	struct attempt_facts earlier = prompt(success_cut()), later = prompt(again());

	(void)state;
	set_column(&earlier, &later, COLUMN_SAME_KEY_SAME_BODY);
	expect_pair(earlier, later, "llm_billed_twice", "info");
	set_key(&later, 0xcccc);
	expect_pair(earlier, later, "llm_billed_twice", "high");
	later.idem_state = IDEM_UNKNOWN;
	expect_pair(earlier, later, "undecidable", NULL);
}

static void llm_is_not_changed_by_strict(void **state)
{
	(void)state;
	expect_strict(prompt(success()), prompt(again()), "llm_repeat", "info");
	expect_strict(prompt(still_open()), prompt(again()), "llm_identical_in_flight", "low");
}

static void llm_principals_differ_like_others(void **state)
{
	(void)state;
	expect_pair(prompt(as_principal(success_cut(), 1, false)), prompt(as_principal(again(), 2, false)), "none", NULL);
}

/* ---- polling ---- */

static struct attempt_facts polled(uint64_t first_ns)
{
	struct attempt_facts facts = success();

	facts.first_ns = first_ns;
	facts.status_ns = first_ns + MS;
	facts.complete_ns = first_ns + 2 * MS;
	return facts;
}

static bool is_poll(uint64_t first_gap_ns, uint64_t second_gap_ns)
{
	struct attempt_facts a = polled(BEGAN), b = polled(BEGAN + first_gap_ns);
	struct attempt_facts c = attempt(BEGAN + first_gap_ns + second_gap_ns);

	return finding_is_poll(&a, &b, &c);
}

static void three_equal_calls_at_even_gaps_are_polling(void **state)
{
	(void)state;
	assert_true(is_poll(2 * SECOND, 2 * SECOND));
	assert_true(is_poll(2000 * MS, 1800 * MS));
	assert_false(is_poll(2000 * MS, 1799 * MS));
	assert_true(is_poll(1800 * MS, 2000 * MS));
	assert_false(is_poll(1799 * MS, 2000 * MS));
	assert_true(is_poll(FINDING_POLL_GAP_NS, FINDING_POLL_GAP_NS));
	assert_false(is_poll(FINDING_POLL_GAP_NS - 1, FINDING_POLL_GAP_NS - 1));
}

static void a_loop_that_never_waits_is_no_polling(void **state)
{
	struct attempt_facts a = polled(BEGAN), b = polled(BEGAN + 2 * SECOND), c = attempt(BEGAN + 4 * SECOND);

	(void)state;
	a.complete_ns = a.first_ns + SECOND;
	assert_false(finding_is_poll(&a, &b, &c));
	a.complete_ns--;
	assert_true(finding_is_poll(&a, &b, &c));
}

static void polls_have_no_key_one_principal_and_answers(void **state)
{
	struct attempt_facts a = polled(BEGAN), b = polled(BEGAN + 2 * SECOND), c = attempt(BEGAN + 4 * SECOND);
	struct attempt_facts other;

	(void)state;
	assert_true(finding_is_poll(&a, &b, &c));
	other = c;
	other.known_write = true;
	assert_false(finding_is_poll(&a, &b, &other));
	other = c;
	set_key(&other, 5);
	assert_false(finding_is_poll(&a, &b, &other));
	other = as_principal(c, 1, false);
	assert_false(finding_is_poll(&a, &b, &other));
	other = b;
	other.status = 500;
	assert_false(finding_is_poll(&a, &other, &c));
	other = a;
	other.delivered = DELIVERED_PART;
	assert_false(finding_is_poll(&other, &b, &c));
	other = b;
	other.complete_ns = c.first_ns + MS;
	assert_false(finding_is_poll(&a, &other, &c));
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
		cmocka_unit_test(a_late_2xx_makes_a_timeout_high),
		cmocka_unit_test(a_late_2xx_revokes_no_safe_retry),
		cmocka_unit_test(a_late_2xx_of_one_that_was_open_changes_nothing),
		cmocka_unit_test(a_replay_header_on_the_later_answer_withdraws),
		cmocka_unit_test(a_replay_header_leaves_a_reused_key_as_its_status_has_it),
		cmocka_unit_test(put_and_delete_are_at_most_low),
		cmocka_unit_test(auth_and_telemetry_are_at_most_info),
		cmocka_unit_test(a_read_known_by_its_path_or_tool_name_is_at_most_low),
		cmocka_unit_test(a_read_by_protocol_policy_or_safe_method_is_no_finding),
		cmocka_unit_test(a_later_request_that_was_never_whole_is_no_finding),
		cmocka_unit_test(a_continuation_of_an_mcp_call_is_no_finding),
		cmocka_unit_test(a_pair_of_two_processes_is_marked),
		cmocka_unit_test(strict_makes_every_finding_of_the_table_at_least_medium),
		cmocka_unit_test(strict_counts_put_and_delete_too),
		cmocka_unit_test(strict_leaves_reads_known_by_path_or_name_low),
		cmocka_unit_test(strict_wants_the_last_status_of_a_keyed_retry_in_the_list),
		cmocka_unit_test(different_principals_do_not_match),
		cmocka_unit_test(different_principals_match_after_a_403),
		cmocka_unit_test(a_403_counts_for_principals_only_once_it_came),
		cmocka_unit_test(two_bearer_tokens_of_one_process_match_for_15_minutes),
		cmocka_unit_test(llm_undecidable_comes_first),
		cmocka_unit_test(llm_unanswered_and_its_owner_gone_is_a_redispatched_job),
		cmocka_unit_test(llm_an_owner_that_left_only_after_the_later_one_began_was_there),
		cmocka_unit_test(llm_2xx_not_delivered_whole_is_billed_twice),
		cmocka_unit_test(llm_errors_and_no_answer_may_be_billed_twice),
		cmocka_unit_test(llm_identical_in_flight_is_low),
		cmocka_unit_test(llm_delivered_is_a_repeat),
		cmocka_unit_test(llm_everything_else_is_none),
		cmocka_unit_test(llm_with_the_same_key_and_body_is_info),
		cmocka_unit_test(llm_is_not_changed_by_strict),
		cmocka_unit_test(llm_principals_differ_like_others),
		cmocka_unit_test(three_equal_calls_at_even_gaps_are_polling),
		cmocka_unit_test(a_loop_that_never_waits_is_no_polling),
		cmocka_unit_test(polls_have_no_key_one_principal_and_answers),
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
