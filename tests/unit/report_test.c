/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bank statement of rows, what a test may assert of a call, prices, and
 * times as people write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>

#include "duration.h"
#include "report.h"
#include "report_parts.h"

#define DAY 86400.0
#define NONE {-1, -1, -1, -1}

/* ---- asserting ---- */

static const struct store_call_row billed_twice = {
	.key = "k", .status = "done", .attempts = 3, .billed = 2, .wasted = 853, .tokens = {812, 41, -1, 0}};

static bool holds(const char *text)
{
	struct assertion assertion;

	assert_int_equal(assertion_parse(text, &assertion), 0);
	return assertion_holds(&assertion, &billed_twice);
}

static void each_operation_holds_where_it_should(void **state)
{
	static const struct {
		const char *text;
		bool holds;
	} cases[] = {
		{"billed<=1", false},	{"billed<=2", true},   {"billed>=2", true},	   {"billed>=3", false},
		{"billed==2", true},	{"billed=2", true},    {"billed==1", false},	   {"billed!=2", false},
		{"billed!=1", true},	{"billed<2", false},   {"billed<3", true},	   {"billed>1", true},
		{"billed>2", false},	{"attempts==3", true}, {"wasted_tokens==853", true}, {"prompt_tokens==812", true},
		{"output_tokens==41", true}, {"tokens==853", true}, {"reasoning_tokens==0", true}, {"done==1", true},
		{"pending==0", true},	{"abandoned==1", false}, {"  billed \t<= 2 ", true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (holds(cases[i].text) != cases[i].holds)
			fail_msg("%s", cases[i].text);
}

static void what_is_not_known_holds_nothing(void **state)
{
	(void)state;
	assert_false(holds("cached_tokens==0"));
	assert_false(holds("cached_tokens!=0"));
	assert_false(holds("cached_tokens>=0"));
}

static void what_is_no_assertion_is_refused(void **state)
{
	static const char *const texts[] = {"", "billed", "billed<=", "billed<=x", "billed=>1", "bill<=1", "billed<=1x", "<=1",
					    "billed<=-1", "billed<=99999999999999999999", "billed<<1", "billed 1"};
	struct assertion assertion;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (assertion_parse(texts[i], &assertion) != -EINVAL)
			fail_msg("%s", texts[i]);
}

/* ---- summing up ---- */

static char *text_of(struct report *report, int (*form)(const struct report *report, struct buffer *out))
{
	struct buffer out = {0};

	assert_int_equal(form(report, &out), 0);
	assert_int_equal(buffer_append_byte(&out, '\0'), 0);
	return (char *)out.data;
}

static void add(struct report *report)
{
	const struct store_attempt_row used = {
		.model = "m", .process = "agent", .path = "/p", .billed = true, .used = true, .tokens = {812, 41, 12, -1}, .at_s = DAY};
	const struct store_attempt_row repeat = {.model = "m",
						 .process = "job",
						 .path = "/p",
						 .finding = "llm_repeat",
						 .billed = true,
						 .tokens = {812, -1, -1, -1},
						 .holes = 3,
						 .at_s = 2 * DAY};
	const struct store_attempt_row hop = {
		.model = "m", .process = "gateway", .path = "/p", .finding = "llm_repeat", .is_hop = true, .tokens = NONE, .at_s = DAY};
	const struct store_attempt_row unpriced = {
		.process = "job", .billed = true, .used = true, .tokens = {1, 2, -1, -1}, .at_s = DAY};

	assert_int_equal(report_call(report, &(struct store_call_row){.status = "done", .model = "m", .process = "agent",
								      .path = "/p", .created_s = DAY}), 0);
	assert_int_equal(report_call(report, &(struct store_call_row){.status = "pending", .created_s = 2 * DAY}), 0);
	assert_int_equal(report_attempt(report, &used), 0);
	assert_int_equal(report_attempt(report, &repeat), 0);
	assert_int_equal(report_attempt(report, &hop), 0);
	assert_int_equal(report_attempt(report, &unpriced), 0);
	assert_int_equal(report_blind(report, &(struct store_blind_row){.process = "agent", .kind = "tls", .at_s = DAY}), 0);
	report_runs(report, 7, 1);
}

static uint64_t duplicates_of(const struct store_attempt_row *row)
{
	struct report *report = report_new(NULL);
	uint64_t duplicates;

	assert_int_equal(report_attempt(report, row), 0);
	duplicates = report_total(report)->duplicates;
	report_free(report);
	return duplicates;
}

static void a_hop_is_a_duplicate_of_its_own_only_where_it_was_asked_again(void **state)
{
	struct store_attempt_row row = {.finding = "llm_billed_twice", .is_hop = true, .tokens = NONE, .at_s = DAY};

	(void)state;
	assert_int_equal(duplicates_of(&row), 0);
	row.again = true;
	assert_int_equal(duplicates_of(&row), 1);
	row = (struct store_attempt_row){.finding = "llm_billed_twice", .tokens = NONE, .at_s = DAY};
	assert_int_equal(duplicates_of(&row), 1);
}

static void every_row_counts_where_it_belongs(void **state)
{
	struct report *report = report_new(NULL);
	char *text;

	(void)state;
	add(report);
	text = text_of(report, report_csv);
	assert_string_equal(
		text,
		"by,name,calls,attempts,billed,input_tokens,output_tokens,cached_tokens,wasted_tokens,duplicates,pending,abandoned,"
		"blind,hole_bytes\r\n"
		"total,\"\",2,3,3,813,43,12,812,1,1,0,1,3\r\n"
		"model,\"\",1,1,1,1,2,0,0,0,1,0,0,0\r\n"
		"model,\"m\",1,2,2,812,41,12,812,1,0,0,0,3\r\n"
		"process,\"\",1,0,0,0,0,0,0,0,1,0,0,0\r\n"
		"process,\"agent\",1,1,1,812,41,12,0,0,0,0,1,0\r\n"
		"process,\"gateway\",0,0,0,0,0,0,0,0,0,0,0,0\r\n"
		"process,\"job\",0,2,2,1,2,0,812,1,0,0,0,3\r\n"
		"path,\"\",1,1,1,1,2,0,0,0,1,0,0,0\r\n"
		"path,\"/p\",1,2,2,812,41,12,812,1,0,0,0,3\r\n"
		"day,\"1970-01-02\",1,2,2,813,43,12,0,0,0,0,1,0\r\n"
		"day,\"1970-01-03\",1,1,1,0,0,0,812,1,1,0,0,3\r\n");
	free(text);
	report_free(report);
}

static void an_empty_store_has_an_empty_report(void **state)
{
	struct report *report = report_new(NULL);
	char *text = text_of(report, report_json);

	(void)state;
	assert_string_equal(text, "{\"total\":{\"calls\":0,\"attempts\":0,\"billed\":0,\"input_tokens\":0,\"output_tokens\":0,"
				  "\"cached_tokens\":0,\"wasted_tokens\":0,\"duplicates\":0,\"pending\":0,\"abandoned\":0,"
				  "\"blind\":0,\"hole_bytes\":0},\"by_model\":[],\"by_process\":[],\"by_path\":[],\"by_day\":[],"
				  "\"run_hole_bytes\":0,\"unclean_runs\":0}\n");
	free(text);
	report_free(report);
}

static void names_of_others_are_harmless_in_every_form(void **state)
{
	const struct store_call_row row = {.status = "done", .model = "a\"b\x1b[31m", .process = "p", .path = "/", .created_s = DAY};
	struct report *report = report_new(NULL);
	char *text;

	(void)state;
	assert_int_equal(report_call(report, &row), 0);
	text = text_of(report, report_text);
	assert_null(strchr(text, '\x1b'));
	assert_non_null(strstr(text, "model   a\"b\\x1b[31m"));
	free(text);
	text = text_of(report, report_json);
	assert_non_null(strstr(text, "{\"model\":\"a\\\"b\\u001b[31m\","));
	free(text);
	text = text_of(report, report_csv);
	assert_non_null(strstr(text, "model,\"a\"\"b\x1b[31m\",1,"));
	free(text);
	report_free(report);
}

/* ---- prices ---- */

static long millionths(double cost_1e6)
{
	return (long)(cost_1e6 + 0.5);
}

static void tokens_cost_what_the_file_says(void **state)
{
	struct prices *prices = NULL;
	char reason[PRICES_REASON_MAX];
	double cost = -1;

	(void)state;
	assert_int_equal(prices_parse(BYTES("{\"m\": {\"input\": 2, \"cached\": 1, \"output\": 10}, \"n\": {\"input\": 2.5, \"output\": 0}}"),
				      &prices, reason), 0);
	assert_true(prices_cost(prices, "m", &(struct store_tokens){1000000, 100000, 400000, -1}, &cost));
	assert_int_equal(millionths(cost * 1e6), millionths((0.6 * 2 + 0.4 * 1 + 0.1 * 10) * 1e6));
	assert_true(prices_cost(prices, "n", &(struct store_tokens){1000000, 5, 400000, -1}, &cost));
	assert_int_equal(millionths(cost * 1e6), millionths((2.5) * 1e6));
	assert_true(prices_cost(prices, "m", &(struct store_tokens)NONE, &cost));
	assert_int_equal(millionths(cost * 1e6), millionths((0) * 1e6));
	assert_false(prices_cost(prices, "o", &(struct store_tokens)NONE, &cost));
	assert_false(prices_cost(prices, NULL, &(struct store_tokens)NONE, &cost));
	assert_false(prices_cost(NULL, "m", &(struct store_tokens)NONE, &cost));
	prices_free(prices);
}

static void a_group_with_something_unpriced_has_no_cost(void **state)
{
	struct prices *prices = NULL;
	char reason[PRICES_REASON_MAX];
	struct report *report;
	char *text;

	(void)state;
	assert_int_equal(prices_parse(BYTES("{\"m\": {\"input\": 1000, \"output\": 0}}"), &prices, reason), 0);
	report = report_new(prices);
	add(report);
	text = text_of(report, report_csv);
	assert_non_null(strstr(text, "total,\"\",2,3,3,813,43,12,812,1,1,0,1,3,,\r\n"));
	assert_non_null(strstr(text, "model,\"m\",1,2,2,812,41,12,812,1,0,0,0,3,1.624000,0.812000\r\n"));
	free(text);
	report_free(report);
	prices_free(prices);
}

static void prices_that_are_none_are_refused(void **state)
{
	static const char *const texts[] = {"", "{", "[]", "1", "{\"m\": 1}", "{\"m\": {}}", "{\"m\": {\"input\": 1}}",
					    "{\"m\": {\"input\": \"1\", \"output\": 1}}", "{\"m\": {\"input\": -1, \"output\": 1}}",
					    "{\"m\": {\"input\": 1, \"output\": 1, \"x\": 1}}", "{\"m\": {\"input\": {\"a\": {}}, \"output\": 1}}"};
	char reason[PRICES_REASON_MAX];
	struct prices *prices;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (prices_parse(bytes_of_string(texts[i]), &prices, reason) != -EINVAL)
			fail_msg("%s", texts[i]);
}

/* ---- times ---- */

static void spans_are_numbers_with_a_unit(void **state)
{
	static const char *const refused[] = {"", "0", "-1", "x", "1y", "1mm", "nan", "inf", "1e99", "11y", "5000d", "1 h"};
	int64_t ns;

	(void)state;
	assert_int_equal(duration_parse("90", &ns), 0);
	assert_int_equal(ns, 90000000000LL);
	assert_int_equal(duration_parse("1.5s", &ns), 0);
	assert_int_equal(ns, 1500000000LL);
	assert_int_equal(duration_parse("15m", &ns), 0);
	assert_int_equal(ns, 900000000000LL);
	assert_int_equal(duration_parse("2h", &ns), 0);
	assert_int_equal(ns, 7200000000000LL);
	assert_int_equal(duration_parse("7d", &ns), 0);
	assert_int_equal(ns, 604800000000000LL);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (duration_parse(refused[i], &ns) != -EINVAL)
			fail_msg("%s", refused[i]);
}

static void points_in_time_are_spans_back_or_dates(void **state)
{
	static const char *const refused[] = {"", "yesterday", "2026-13-01", "2026-12-01T", "2026-12-01T08:30:00+01:00"};
	int64_t ns;

	(void)state;
	assert_int_equal(since_parse("1h", 7200000000000LL, &ns), 0);
	assert_int_equal(ns, 3600000000000LL);
	assert_int_equal(since_parse("1970-01-02", 0, &ns), 0);
	assert_int_equal(ns, 86400000000000LL);
	assert_int_equal(since_parse("1970-01-02T00:00:01Z", 0, &ns), 0);
	assert_int_equal(ns, 86401000000000LL);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		if (since_parse(refused[i], 0, &ns) != -EINVAL)
			fail_msg("%s", refused[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_holds_where_it_should),
		cmocka_unit_test(what_is_not_known_holds_nothing),
		cmocka_unit_test(what_is_no_assertion_is_refused),
		cmocka_unit_test(a_hop_is_a_duplicate_of_its_own_only_where_it_was_asked_again),
		cmocka_unit_test(every_row_counts_where_it_belongs),
		cmocka_unit_test(an_empty_store_has_an_empty_report),
		cmocka_unit_test(names_of_others_are_harmless_in_every_form),
		cmocka_unit_test(tokens_cost_what_the_file_says),
		cmocka_unit_test(a_group_with_something_unpriced_has_no_cost),
		cmocka_unit_test(prices_that_are_none_are_refused),
		cmocka_unit_test(spans_are_numbers_with_a_unit),
		cmocka_unit_test(points_in_time_are_spans_back_or_dates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
