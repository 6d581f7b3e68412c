/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lowers, raises or replaces a cell of the table: late answers, replay
 * headers, classes, strict, who calls; the order of model calls; polling.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attempt_build.h"

/* ---- what changes a cell ---- */

static void a_late_2xx_makes_a_timeout_high(void **state)
{
	struct attempt_facts earlier = answered_late(201, MUCH_LATER), later = again();
	struct verdict verdict = finding_judge(&earlier, &later, &lax);

	(void)state;
	expect(verdict, "dup_after_timeout", "high");
	assert_string_equal(verdict.rule, "the earlier attempt got a late 2xx");
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
	later.process = 8; /* the pid came round again */
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

/* ---- the windows of `audit` ---- */

static const struct finding_options audited = {
	.window_ns = 15 * MINUTE, .across_ns = 24 * 60 * MINUTE, .fresh_ns = 15 * MINUTE};

static void expect_audited(struct attempt_facts earlier, struct attempt_facts later, const char *finding, const char *severity)
{
	struct verdict verdict = finding_judge(&earlier, &later, &audited);

	expect(verdict, finding, severity);
}

static void attempts_of_one_process_count_for_the_window(void **state)
{
	(void)state;
	expect_audited(success(), attempt(BEGAN + 15 * MINUTE), "dup_after_success", "high");
	expect_audited(success(), attempt(BEGAN + 15 * MINUTE + 1), "none", NULL);
}

static void attempts_of_another_process_are_info_when_a_success_is_old(void **state)
{
	struct attempt_facts later = attempt(BEGAN + 15 * MINUTE);

	(void)state;
	later.tgid++;
	expect_audited(success(), later, "dup_after_success", "high");
	later.first_ns++;
	expect_audited(success(), later, "dup_after_success", "info");
	expect_audited(answered(500), later, "dup_after_gateway_error", "medium");
	later.first_ns = BEGAN + 24 * 60 * MINUTE;
	expect_audited(success(), later, "dup_after_success", "info");
	later.first_ns++;
	expect_audited(success(), later, "none", NULL);
}

static void a_key_makes_the_window_of_one_process_long(void **state)
{
	struct attempt_facts earlier = success(), later = attempt(BEGAN + 23 * 60 * MINUTE);

	(void)state;
	set_column(&earlier, &later, COLUMN_SAME_KEY_OTHER_BODY);
	expect_audited(earlier, later, "key_reused_different_body", "high");
	later.first_ns = BEGAN + 24 * 60 * MINUTE + 1;
	expect_audited(earlier, later, "none", NULL);
}

/* ---- model calls ---- */

static void expect_prompt(struct attempt_facts earlier, const char *finding, const char *severity)
{
	expect_pair(prompt(earlier), prompt(again()), finding, severity);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attempts_of_one_process_count_for_the_window),
		cmocka_unit_test(attempts_of_another_process_are_info_when_a_success_is_old),
		cmocka_unit_test(a_key_makes_the_window_of_one_process_long),
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
