/* SPDX-License-Identifier: BSD-2-Clause */
/* The judging options: defaults, their JSON form both ways, and the kinds of blind streams. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "options.h"

static void assert_options(const struct judge_options *a, const struct judge_options *b)
{
	assert_int_equal(a->fail_on, b->fail_on);
	assert_int_equal(a->strict, b->strict);
	assert_int_equal(a->allow_incomplete, b->allow_incomplete);
	assert_int_equal(a->allow_blind, b->allow_blind);
	assert_int_equal(a->max_findings_per_call, b->max_findings_per_call);
	assert_int_equal(a->across_processes, b->across_processes);
	assert_string_equal(a->schema_version, b->schema_version);
}

static void defaults_are_those_of_the_contract(void **state)
{
	struct judge_options options;

	(void)state;
	memset(&options, 0xff, sizeof(options));
	judge_options_defaults(&options);
	assert_int_equal(options.fail_on, SEVERITY_MEDIUM);
	assert_false(options.strict);
	assert_false(options.allow_incomplete);
	assert_int_equal(options.allow_blind, 0);
	assert_int_equal(options.max_findings_per_call, 1000);
	assert_true(options.across_processes);
	assert_string_equal(options.schema_version, "v1");
}

static void writes_the_defaults_as_one_json_object(void **state)
{
	struct judge_options options;
	char text[1024];

	(void)state;
	judge_options_defaults(&options);
	assert_int_equal(judge_options_to_json(&options, text, sizeof(text)), 0);
	assert_string_equal(text, "{\"fail_on\":\"medium\",\"strict\":false,\"allow_incomplete\":"
				  "false,\"allow_blind\":[],"
				  "\"max_findings_per_call\":1000,\"across_processes\":true,\"schema_version\":\"v1\"}");
}

static void reads_back_what_it_wrote(void **state)
{
	const struct judge_options options = {
		.fail_on = SEVERITY_HIGH,
		.strict = true,
		.allow_incomplete = true,
		.allow_blind = (1U << BLIND_COUNT) - 1,
		.max_findings_per_call = 7,
		.across_processes = false,
		.schema_version = "2026-11/b.7",
	};
	struct judge_options read;
	char text[1024];

	(void)state;
	judge_options_defaults(&read);
	assert_int_equal(judge_options_to_json(&options, text, sizeof(text)), 0);
	assert_string_equal(text, "{\"fail_on\":\"high\",\"strict\":true,\"allow_incomplete\":true,"
				  "\"allow_blind\":[\"tls\","
				  "\"h2\",\"websocket\",\"connect\",\"mptcp\",\"joined_late\","
				  "\"ktls\",\"netns\",\"other\"],"
				  "\"max_findings_per_call\":7,\"across_processes\":false,\"schema_version\":\"2026-11/b.7\"}");
	assert_int_equal(judge_options_of_json(text, &read), 0);
	assert_options(&read, &options);
}

static void says_when_the_text_does_not_fit(void **state)
{
	struct judge_options options;
	char text[1024];
	size_t size;

	(void)state;
	judge_options_defaults(&options);
	assert_int_equal(judge_options_to_json(&options, text, sizeof(text)), 0);
	size = strlen(text);
	assert_int_equal(judge_options_to_json(&options, text, size), -ENOSPC);
	assert_int_equal(judge_options_to_json(&options, text, size + 1), 0);
	assert_int_equal(strlen(text), size);
}

static void a_missing_member_keeps_its_value_and_a_foreign_one_is_passed_over(void **state)
{
	struct judge_options options, expected;

	(void)state;
	judge_options_defaults(&options);
	options.allow_blind = 1U << BLIND_TLS;
	expected = options;
	expected.strict = true;
	assert_int_equal(
		judge_options_of_json(" {\"strict\": true, \"later_invention\": 3} ", &options), 0);
	assert_options(&options, &expected);
	assert_int_equal(judge_options_of_json("{}", &options), 0);
	assert_options(&options, &expected);
}

static void refuses_what_is_not_such_an_object_and_changes_nothing(void **state)
{
	static const char *const bad[] = {
		"",
		"null",
		"[]",
		"{",
		"{\"strict\":true",
		"{\"strict\":true} x",
		"{\"strict\":true}{}",
		"{\"strict\":1}",
		"{\"strict\":\"true\"}",
		"{\"strict\":null}",
		"{\"allow_incomplete\":0}",
		"{\"across_processes\":[]}",
		"{\"fail_on\":3}",
		"{\"fail_on\":\"loud\"}",
		"{\"fail_on\":\"high\\u0000\"}",
		"{\"allow_blind\":\"tls\"}",
		"{\"allow_blind\":[\"tls\",7]}",
		"{\"allow_blind\":[\"tls\",\"quic\"]}",
		"{\"allow_blind\":[[\"tls\"]]}",
		"{\"max_findings_per_call\":0}",
		"{\"max_findings_per_call\":-1}",
		"{\"max_findings_per_call\":1.5}",
		"{\"max_findings_per_call\":99999999999999999999}",
		"{\"strict\":true,\"fail_on\":false}",
		"{\"x\":[[[[[[]]]]]]}",
		"{\"schema_version\":7}",
		"{\"schema_version\":\"\"}",
		"{\"schema_version\":\"a b\"}",
		"{\"schema_version\":\"v1\\u0000\"}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct judge_options options, before;

		judge_options_defaults(&options);
		before = options;
		if (judge_options_of_json(bad[i], &options) != -EINVAL)
			fail_msg("took %s", bad[i]);
		assert_options(&options, &before);
	}
}

static void names_and_parses_every_kind_of_blind_stream(void **state)
{
	static const char *const names[BLIND_COUNT] = {
		"tls", "h2", "websocket", "connect", "mptcp", "joined_late", "ktls", "netns", "other"};

	(void)state;
	for (unsigned int kind = 0; kind < BLIND_COUNT; kind++) {
		unsigned int kinds = 0;

		assert_string_equal(blind_kind_name(kind), names[kind]);
		assert_int_equal(blind_kinds_parse(names[kind], &kinds), 0);
		assert_int_equal(kinds, 1U << kind);
	}
	assert_null(blind_kind_name(BLIND_COUNT));
}

static void parses_a_list_of_kinds_and_refuses_anything_else(void **state)
{
	static const char *const bad[] = {"",	    ",",   "tls,",    ",tls", "tls,,h2",
					  "tls h2", "TLS", "tls, h2", "http", "tl"};
	unsigned int kinds = 0;

	(void)state;
	assert_int_equal(blind_kinds_parse("tls,joined_late,tls", &kinds), 0);
	assert_int_equal(kinds, 1U << BLIND_TLS | 1U << BLIND_JOINED_LATE);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		kinds = 42;
		if (blind_kinds_parse(bad[i], &kinds) != -EINVAL)
			fail_msg("took \"%s\"", bad[i]);
		assert_int_equal(kinds, 42);
	}
}

static void a_schema_version_is_a_short_plain_word(void **state)
{
	static const char *const bad[] = {"", "v 1", "v1\n", "\"v1\"", "v1\\", "\xc3\xa9",
					  "0123456789012345678901234567890123456789012345678901234567890123"};
	static const char *const good[] = {"v1", "2026-11-30", "a/b.c_d+e:f@g", "Z",
					   "012345678901234567890123456789012345678901234567890123456789012"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char text[SCHEMA_VERSION_MAX + 1] = "kept";

		if (schema_version_parse(bytes_of_string(bad[i]), text) != -EINVAL)
			fail_msg("took \"%s\"", bad[i]);
		assert_string_equal(text, "kept");
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		char text[SCHEMA_VERSION_MAX + 1];

		assert_int_equal(schema_version_parse(bytes_of_string(good[i]), text), 0);
		assert_string_equal(text, good[i]);
	}
}

static void windows_are_written_where_they_are_set(void **state)
{
	struct judge_options options, again;
	char text[1024];

	(void)state;
	judge_options_defaults(&options);
	options.window_s = 900;
	options.window_across_s = 86400;
	options.fresh_s = 901;
	assert_int_equal(judge_options_to_json(&options, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "\"window_s\":900,\"window_across_s\":86400,\"fresh_s\":901,"));
	judge_options_defaults(&again);
	assert_int_equal(judge_options_of_json(text, &again), 0);
	assert_int_equal(again.window_s, 900);
	assert_int_equal(again.window_across_s, 86400);
	assert_int_equal(again.fresh_s, 901);
	assert_int_equal(judge_options_of_json("{\"window_s\":0}", &again), -EINVAL);
	assert_int_equal(judge_options_of_json("{\"window_s\":-1}", &again), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(windows_are_written_where_they_are_set),
		cmocka_unit_test(defaults_are_those_of_the_contract),
		cmocka_unit_test(writes_the_defaults_as_one_json_object),
		cmocka_unit_test(reads_back_what_it_wrote),
		cmocka_unit_test(says_when_the_text_does_not_fit),
		cmocka_unit_test(a_missing_member_keeps_its_value_and_a_foreign_one_is_passed_over),
		cmocka_unit_test(refuses_what_is_not_such_an_object_and_changes_nothing),
		cmocka_unit_test(names_and_parses_every_kind_of_blind_stream),
		cmocka_unit_test(parses_a_list_of_kinds_and_refuses_anything_else),
		cmocka_unit_test(a_schema_version_is_a_short_plain_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
