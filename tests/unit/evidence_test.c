/* SPDX-License-Identifier: BSD-2-Clause */
/* Every sentence about a finding, by exact text. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "evidence.h"

#define MS 1000000ULL

static void assert_said(int result, struct buffer *out, const char *expected)
{
	assert_int_equal(result, 0);
	assert_int_equal(buffer_append_byte(out, 0), 0);
	assert_string_equal((char *)out->data, expected);
	buffer_done(out);
}

/* ---- evidence ---- */

struct evidence_case {
	enum finding finding;
	enum finding_row row;
	enum finding_column column;
	uint16_t status; /* of the earlier attempt */
	bool complete;	 /* its answer */
	uint64_t attempt;
	const char *expected;
};

static const struct evidence_case evidence_cases[] = {
	{FINDING_UNDECIDABLE, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 2,
	 "a hole, a blind stream or a late join hides how one of the two attempts went"},
	{FINDING_UNDECIDABLE, ROW_SUCCESS, COLUMN_NO_KEY, 0, false, 2,
	 "bytes that were not seen keep the two attempts from being compared"},
	{FINDING_DUP_IN_FLIGHT, ROW_OPEN, COLUMN_NO_KEY, 0, false, 2,
	 "second identical POST while the earlier one was still open, no Idempotency-Key"},
	{FINDING_DUP_IN_FLIGHT, ROW_OPEN, COLUMN_NEW_KEY, 0, false, 3,
	 "third identical POST while the earlier one was still open, another Idempotency-Key"},
	{FINDING_DUP_AFTER_TIMEOUT, ROW_CLIENT_GAVE_UP, COLUMN_NO_KEY, 0, false, 2,
	 "second identical POST after the client gave up on the earlier one without an answer, no "
	 "Idempotency-Key"},
	{FINDING_DUP_AFTER_TIMEOUT, ROW_CLIENT_GAVE_UP, COLUMN_NO_KEY, 201, true, 2,
	 "second identical POST after the client gave up on the earlier one, which was answered "
	 "201 all the same, "
	 "no Idempotency-Key"},
	{FINDING_DUP_AFTER_NO_RESPONSE, ROW_SERVER_ENDED, COLUMN_NO_KEY, 0, false, 4,
	 "fourth identical POST after the server ended the connection of the earlier one without a "
	 "final status, "
	 "no Idempotency-Key"},
	{FINDING_DUP_AFTER_TRUNCATED_SUCCESS, ROW_SUCCESS_CUT, COLUMN_NO_KEY, 200, false, 2,
	 "second identical POST after a 200 that was cut short, no Idempotency-Key"},
	{FINDING_DUP_AFTER_TRUNCATED_SUCCESS, ROW_SUCCESS_CUT, COLUMN_NO_KEY, 200, true, 2,
	 "second identical POST after a 200 that the client had not read to its end, no "
	 "Idempotency-Key"},
	{FINDING_DUP_AFTER_SUCCESS, ROW_SUCCESS, COLUMN_NO_KEY, 200, true, 5,
	 "fifth identical POST after a complete 200, no Idempotency-Key"},
	{FINDING_DUP_AFTER_SUCCESS, ROW_SUCCESS, COLUMN_NEW_KEY, 201, true, 11,
	 "11th identical POST after a complete 201, another Idempotency-Key: the server cannot "
	 "deduplicate"},
	{FINDING_DUP_AFTER_GATEWAY_ERROR, ROW_SERVER_ERROR, COLUMN_NO_KEY, 502, true, 21,
	 "21st identical POST after a 502, no Idempotency-Key"},
	{FINDING_DUP_AFTER_GATEWAY_ERROR, ROW_CONFLICT, COLUMN_NO_KEY, 409, true, 112,
	 "112th identical POST after a 409, no Idempotency-Key"},
	{FINDING_RETRY_WITHOUT_KEY, ROW_OVERLOADED, COLUMN_NO_KEY, 503, true, 6,
	 "6th identical POST after a 503, no Idempotency-Key"},
	{FINDING_SAFE_RETRY, ROW_SERVER_ENDED, COLUMN_SAME_KEY_SAME_BODY, 0, false, 2,
	 "same Idempotency-Key and same body again after the server ended the connection of the "
	 "earlier one without a "
	 "final status"},
	{FINDING_SAFE_RETRY, ROW_REPLAYED, COLUMN_SAME_KEY_SAME_BODY, 200, true, 2,
	 "same Idempotency-Key and same body again after a 200"},
	{FINDING_RETRY_AFTER_SUCCESS, ROW_SUCCESS, COLUMN_SAME_KEY_SAME_BODY, 200, true, 2,
	 "same Idempotency-Key and same body again after a complete 200"},
	{FINDING_RETRY_AFTER_REFUSAL, ROW_REFUSED, COLUMN_SAME_KEY_SAME_BODY, 404, true, 2,
	 "same Idempotency-Key and same body again after a 404"},
	{FINDING_RETRY_AFTER_UNLISTED_STATUS, ROW_OVERLOADED, COLUMN_SAME_KEY_SAME_BODY, 529, true,
	 2,
	 "same Idempotency-Key and same body again after a 529, which is no status to retry after"},
	{FINDING_KEY_REUSED_DIFFERENT_BODY, ROW_NEVER_READ, COLUMN_SAME_KEY_OTHER_BODY, 0, false, 2,
	 "same Idempotency-Key and another body after the earlier one, which the server had never "
	 "read whole"},
	{FINDING_KEY_CHANGED_ON_RETRY, ROW_SERVER_ERROR, COLUMN_NEW_KEY, 500, true, 2,
	 "second identical POST after a 500, another Idempotency-Key"},
	{FINDING_KEY_REUSED_DIFFERENT_BODY, ROW_UNDECIDABLE, COLUMN_SAME_KEY_OTHER_BODY, 0, false,
	 2, "same Idempotency-Key and another body after one that was not seen whole"},
	{FINDING_RETRY_WITHOUT_KEY, ROW_REFUSED, COLUMN_NO_KEY, 0, false, 2,
	 "second identical POST after one that got no final status, no Idempotency-Key"},
	{FINDING_LLM_BILLED_TWICE, ROW_UNDECIDABLE, COLUMN_NO_KEY, 200, false, 2,
	 "same prompt again after a 200 that was cut short"},
	{FINDING_LLM_BILLED_TWICE, ROW_CLIENT_GAVE_UP, COLUMN_NO_KEY, 200, true, 2,
	 "same prompt again after the client gave up on the earlier one, which was answered 200 "
	 "all the same"},
	{FINDING_LLM_MAYBE_BILLED_TWICE, ROW_UNDECIDABLE, COLUMN_NO_KEY, 504, true, 2,
	 "same prompt again after a 504"},
	{FINDING_LLM_MAYBE_BILLED_TWICE, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 2,
	 "same prompt again after a call that the client got no answer to"},
	{FINDING_LLM_REDISPATCHED_JOB, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 2,
	 "same prompt again by another process, the one that asked before having ended without an "
	 "answer"},
	{FINDING_LLM_IDENTICAL_IN_FLIGHT, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 2,
	 "same prompt again while the earlier call was still open"},
	{FINDING_LLM_REPEAT, ROW_UNDECIDABLE, COLUMN_NO_KEY, 200, true, 2,
	 "same prompt again after a complete 200"},
	{FINDING_TRUNCATED_RESPONSE, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 1,
	 "the body of the answer ended before its framing said so"},
	{FINDING_ABANDONED_CALL, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 1,
	 "the request was sent whole, and no final status came before its connection closed"},
	{FINDING_OFF_LOOPBACK, ROW_UNDECIDABLE, COLUMN_NO_KEY, 0, false, 1,
	 "a connection to an address that is not on loopback"},
	{FINDING_NONE, ROW_SUCCESS, COLUMN_NO_KEY, 0, false, 1, "no finding"},
};

static struct judgement judgement_of(const struct evidence_case *evidence)
{
	return (struct judgement){
		.verdict = {.finding = evidence->finding,
			    .row = evidence->row,
			    .column = evidence->column},
		.attempt = evidence->attempt,
		.earlier_facts = {.status = evidence->status,
				  .status_in_time = evidence->row != ROW_CLIENT_GAVE_UP,
				  .complete_ns = evidence->complete},
	};
}

static void says_what_was_seen_for_every_finding(void **state)
{
	bool said[FINDING_COUNT] = {false};

	(void)state;
	for (size_t i = 0; i < sizeof(evidence_cases) / sizeof(evidence_cases[0]); i++) {
		struct judgement judgement = judgement_of(&evidence_cases[i]);
		struct buffer out = {0};

		said[evidence_cases[i].finding] = true;
		assert_said(finding_evidence_of(&judgement, BYTES("POST"), &out), &out,
			    evidence_cases[i].expected);
	}
	for (int finding = 0; finding < FINDING_COUNT; finding++)
		assert_true(said[finding]);
}

static void says_request_where_the_method_is_not_known(void **state)
{
	struct judgement judgement = judgement_of(&evidence_cases[2]);
	struct buffer out = {0};

	(void)state;
	assert_said(finding_evidence(&judgement, &out), &out,
		    "second identical request while the earlier one was still open, no "
		    "Idempotency-Key");
}

static void a_key_that_is_no_single_key_is_said_to_be_none(void **state)
{
	struct judgement judgement = judgement_of(&evidence_cases[2]);
	struct buffer out = {0};

	(void)state;
	judgement.later_facts.idem_state = IDEM_INVALID;
	assert_said(finding_evidence(&judgement, &out), &out,
		    "second identical request while the earlier one was still open, no valid "
		    "Idempotency-Key");
}

static void adds_what_weakens_or_widens_the_evidence(void **state)
{
	struct judgement judgement = judgement_of(&evidence_cases[9]);
	struct buffer out = {0};

	(void)state;
	judgement.attempt = 2;
	judgement.verdict.cross_process = true;
	judgement.verdict.weaker = true;
	assert_said(finding_evidence_of(&judgement, BYTES("PUT"), &out), &out,
		    "second identical PUT after a complete 200, no Idempotency-Key, from another "
		    "process "
		    "(weaker: the two carry different bearer tokens)");
}

/* What a model said that the two calls cost; a lower bound is called one. */
static void says_the_tokens_of_both_model_calls(void **state)
{
	static const struct {
		struct attempt_facts earlier, later;
		const char *said;
	} cases[] = {
		{{.usage_seen = true, .input_tokens = 4908, .output_tokens = 2}, {0}, "; the earlier one took at least 4908 tokens in, 2 out"},
		{{.usage_seen = true, .usage_final = true, .input_tokens = 8, .output_tokens = TOKENS_NOT_SAID},
		 {.usage_seen = true, .usage_final = true, .input_tokens = TOKENS_NOT_SAID, .output_tokens = 0},
		 "; the earlier one took 8 tokens in, this one 0 tokens out"},
		{{0}, {.usage_seen = true, .usage_final = true, .input_tokens = 1, .output_tokens = 2}, "; this one took 1 tokens in, 2 out"},
		{{.usage_seen = true, .input_tokens = TOKENS_NOT_SAID, .output_tokens = TOKENS_NOT_SAID}, {0}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judgement judgement = {.verdict = {.finding = FINDING_LLM_REPEAT},
					      .attempt = 2,
					      .earlier_facts = cases[i].earlier,
					      .later_facts = cases[i].later};
		char expected[256];
		struct buffer out = {0};

		judgement.earlier_facts.status = 200;
		snprintf(expected, sizeof(expected), "same prompt again after a complete 200%s", cases[i].said);
		assert_said(finding_evidence_of(&judgement, BYTES("POST"), &out), &out, expected);
	}
}

static void says_that_an_answer_has_no_end(void **state)
{
	struct judgement judgement = {.verdict = {.finding = FINDING_LLM_BILLED_TWICE, .row = ROW_SUCCESS}, .attempt = 2,
				      .earlier_facts = {.status = 200, .status_in_time = true, .complete_ns = 9, .answer_cut = true}};
	struct buffer out = {0};

	(void)state;
	assert_said(finding_evidence_of(&judgement, BYTES("POST"), &out), &out,
		    "same prompt again after a 200 whose answer has no end");
	judgement.earlier_facts.request_complete = true;
	judgement.earlier_facts.delivered = DELIVERED_ALL;
	judgement.earlier_facts.usage_seen = true;
	judgement.earlier_facts.input_tokens = 9;
	judgement.earlier_facts.output_tokens = TOKENS_NOT_SAID;
	assert_said(attempt_outcome(&judgement.earlier_facts, &out), &out,
		    "200 after under 1 ms, without the end of its answer, at least 9 tokens in");
}

static void says_how_the_client_itself_counts_its_attempts(void **state)
{
	static const struct {
		enum retry_marker earlier, later;
		uint8_t earlier_count, later_count;
		const char *said;
	} cases[] = {
		{RETRY_STAINLESS, RETRY_STAINLESS, 0, 1, "; the SDK retried: x-stainless-retry-count 0 then 1"},
		{RETRY_AMZ, RETRY_AMZ, 1, 3, "; the SDK retried: amz-sdk-request attempt 1 then 3"},
		{RETRY_SLACK, RETRY_SLACK, 1, 2, "; the sender says that it repeats: x-slack-retry-num 1 then 2"},
		{RETRY_UNMARKED, RETRY_SLACK, 0, 1, "; the sender says that it repeats: x-slack-retry-num 1"},
		{RETRY_STAINLESS, RETRY_STAINLESS, 0, 0, ""}, /* a loop above the SDK */
		{RETRY_STAINLESS, RETRY_STAINLESS, 2, 1, ""},
		{RETRY_UNMARKED, RETRY_STAINLESS, 0, 1, ""},
		{RETRY_AMZ, RETRY_STAINLESS, 1, 2, ""},
		{RETRY_STAINLESS, RETRY_UNMARKED, 1, 0, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judgement judgement = judgement_of(&evidence_cases[2]);
		struct buffer out = {0};
		char expected[200];

		judgement.earlier_facts.retry_marker = cases[i].earlier;
		judgement.earlier_facts.retry_count = cases[i].earlier_count;
		judgement.later_facts.retry_marker = cases[i].later;
		judgement.later_facts.retry_count = cases[i].later_count;
		snprintf(expected, sizeof(expected), "%s%s", evidence_cases[2].expected, cases[i].said);
		assert_said(finding_evidence_of(&judgement, BYTES("POST"), &out), &out, expected);
	}
}

static void never_accuses(void **state)
{
	static const char *const accusing[] = {"charged", "billed", "paid", "fault",
					       "bug",	  "wrong",  "twice"};

	(void)state;
	for (size_t i = 0; i < sizeof(evidence_cases) / sizeof(evidence_cases[0]); i++)
		for (size_t j = 0; j < sizeof(accusing) / sizeof(accusing[0]); j++)
			assert_null(strstr(evidence_cases[i].expected, accusing[j]));
}

static void names_a_next_step_for_every_finding(void **state)
{
	static const char *const expected[FINDING_COUNT] = {
		"nothing to do",
		"look up the hole and blind events of the run, remove their cause, and run again",
		"wait for the answer to the earlier one, or send one Idempotency-Key on both "
		"attempts",
		"send one Idempotency-Key on both attempts, or ask the server what became of the "
		"earlier one before "
		"sending again",
		"send one Idempotency-Key on both attempts, or keep the HTTP client from resending "
		"by itself when a "
		"connection ends",
		"take a 2xx status as done although its body was cut, or send one Idempotency-Key "
		"on both attempts",
		"do not send again after a 2xx; where the same call is meant twice, give each its "
		"own Idempotency-Key",
		"send one Idempotency-Key on both attempts: the error does not say that nothing "
		"was done",
		"send one Idempotency-Key on every attempt",
		"nothing to do: one key, one body",
		"stop retrying after a 2xx: the key protects only as long as the server remembers "
		"it",
		"do not repeat a refused request unchanged",
		"retry only after no answer, 408, 409, 429, 500, 502, 503 or 504",
		"make a new Idempotency-Key for every new body, and keep it for retries of that "
		"body",
		"make the Idempotency-Key once for each operation, outside of the retry loop, and "
		"send it on every attempt",
		"keep what was delivered or repair what cuts the answer before asking again, and "
		"count the tokens of both "
		"calls",
		"make the time limits of client and gateway longer than the model's answer, and "
		"count both calls",
		"make the job's lease longer than the model call, or look up the earlier answer "
		"before asking again",
		"let callers that ask the same share one pending call",
		"keep the answer where the repeat is not meant",
		"check that an answer is whole before using it, and find out who ended the "
		"connection",
		"make the client's time limit longer than the server's, and ask the server what "
		"became of the call",
		"point the program at a local server",
	};

	(void)state;
	for (unsigned int finding = 0; finding < FINDING_COUNT; finding++)
		assert_string_equal(finding_next_step(finding), expected[finding]);
	assert_null(finding_next_step(FINDING_COUNT));
}

/* ---- outcomes ---- */

struct outcome_case {
	struct attempt_facts facts;
	const char *expected;
};

static const struct outcome_case outcome_cases[] = {
	{{.undecidable = true, .request_complete = true, .status = 200}, "not seen whole"},
	{{.first_ns = 1}, "request never whole"},
	{{.request_complete = true}, "no answer yet"},
	{{.request_complete = true, .owner_gone = true}, "no answer when its process ended"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 51 * MS,
	  .closed_first = CLOSER_CLIENT},
	 "client gave up after 50 ms"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 51 * MS,
	  .closed_first = CLOSER_CLIENT,
	  .owner_gone = true},
	 "client died or reset after 50 ms"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 61001 * MS,
	  .closed_first = CLOSER_SERVER},
	 "server closed after 61 s without an answer"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 2 * MS,
	  .closed_first = CLOSER_SERVER,
	  .server_read_known = true},
	 "server closed after 1 ms, request unread"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 2 * MS,
	  .closed_first = CLOSER_SERVER,
	  .server_read_known = true,
	  .server_read_all = true},
	 "server closed after 1 ms without an answer"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .closed_ns = 51 * MS,
	  .closed_first = CLOSER_CLIENT,
	  .status = 200,
	  .status_ns = 102 * MS},
	 "client gave up after 50 ms; the server answered 200 at 101 ms, to nobody"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 2 * MS - 1,
	  .status_in_time = true,
	  .complete_ns = 3 * MS,
	  .delivered = DELIVERED_ALL},
	 "200 after under 1 ms"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 10000 * MS,
	  .status_in_time = true,
	  .complete_ns = 3 * MS,
	  .delivered = DELIVERED_UNKNOWN},
	 "200 after 9999 ms"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 10001 * MS,
	  .status_in_time = true,
	  .complete_ns = 3 * MS,
	  .delivered = DELIVERED_PART},
	 "200 after 10 s, not read to its end"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 2 * MS,
	  .status_in_time = true,
	  .complete_ns = 3 * MS,
	  .delivered = DELIVERED_NONE},
	 "200 after 1 ms, not read to its end"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 2 * MS,
	  .status_in_time = true,
	  .closed_ns = 3 * MS},
	 "200 after 1 ms, cut short"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 200,
	  .status_ns = 2 * MS,
	  .status_in_time = true},
	 "200 after 1 ms, not whole yet"},
	{{.request_complete = true,
	  .first_ns = MS,
	  .status = 201,
	  .status_ns = 2 * MS,
	  .status_in_time = true,
	  .complete_ns = 3 * MS,
	  .replayed = true},
	 "201 after 1 ms, a replay of an earlier answer"},
};

static void says_how_an_attempt_went(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(outcome_cases) / sizeof(outcome_cases[0]); i++) {
		struct buffer out = {0};

		assert_said(attempt_outcome(&outcome_cases[i].facts, &out), &out,
			    outcome_cases[i].expected);
	}
}

/* ---- because ---- */

static void says_why_a_finding_changed(void **state)
{
	struct judgement judgement = {.verdict = {.row = ROW_SUCCESS}};
	struct buffer out = {0};

	(void)state;
	judgement.earlier_facts.replayed = true;
	assert_said(finding_because(&judgement, &out), &out,
		    "the earlier answer is a replay of another one");
	judgement.later_facts.replayed = true;
	assert_said(finding_because(&judgement, &out), &out,
		    "the later answer is a replay of an earlier one");
	judgement.verdict.finding = FINDING_DUP_AFTER_TIMEOUT;
	judgement.verdict.row = ROW_CLIENT_GAVE_UP;
	judgement.verdict.rule = "model call";
	assert_said(finding_because(&judgement, &out), &out,
		    "more is known of how the two attempts went");
	judgement.verdict.rule = "table";
	assert_said(finding_because(&judgement, &out), &out,
		    "more is known of how the two attempts went");
	judgement.verdict.rule = "polling: equal calls";
	assert_said(finding_because(&judgement, &out), &out, "polling: equal calls");
	judgement.earlier_facts.status = 201;
	assert_said(finding_because(&judgement, &out), &out,
		    "the earlier attempt was answered 201 after the client had given up");
	judgement.later_facts.undecidable = true;
	assert_said(finding_because(&judgement, &out), &out,
		    "one of the two attempts was not seen whole");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(says_what_was_seen_for_every_finding),
		cmocka_unit_test(says_request_where_the_method_is_not_known),
		cmocka_unit_test(a_key_that_is_no_single_key_is_said_to_be_none),
		cmocka_unit_test(adds_what_weakens_or_widens_the_evidence),
		cmocka_unit_test(says_the_tokens_of_both_model_calls),
		cmocka_unit_test(says_that_an_answer_has_no_end),
		cmocka_unit_test(says_how_the_client_itself_counts_its_attempts),
		cmocka_unit_test(never_accuses),
		cmocka_unit_test(names_a_next_step_for_every_finding),
		cmocka_unit_test(says_how_an_attempt_went),
		cmocka_unit_test(says_why_a_finding_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
