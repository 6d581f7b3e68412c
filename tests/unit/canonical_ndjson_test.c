/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON lines: each line by itself, in order; one bad line spoils all.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "canonical.h"

static void assert_lines(const char *input, const char *expected)
{
	struct canonical flags = {0};
	struct buffer out = {0};

	assert_null(canonical_ndjson(bytes_of_string(input), &flags, &out));
	assert_true(bytes_equal(buffer_bytes(&out), bytes_of_string(expected)));
	buffer_done(&out);
	canonical_done(&flags);
}

static void assert_refused(const char *input, const char *expected_reason)
{
	struct canonical flags = {0};
	struct buffer out = {0};
	const char *reason;

	assert_int_equal(buffer_append(&out, BYTES("before")), 0);
	reason = canonical_ndjson(bytes_of_string(input), &flags, &out);
	assert_non_null(reason);
	assert_string_equal(reason, expected_reason);
	assert_true(bytes_equal(buffer_bytes(&out), BYTES("before")));
	buffer_done(&out);
	canonical_done(&flags);
}

static void makes_each_line_canonical_and_keeps_their_order(void **state)
{
	(void)state;
	assert_lines("{\"index\": {\"_id\": \"2\", \"_a\": 1.0}}\n{\"b\": 2, \"a\": 1}\n",
		     "{\"index\":{\"_a\":1,\"_id\":\"2\"}}\n{\"a\":1,\"b\":2}");
	assert_lines("2\n1\n", "2\n1");
}

static void does_not_care_how_lines_end(void **state)
{
	(void)state;
	assert_lines("1\r\n2\r\n", "1\n2");
	assert_lines("1\n2", "1\n2");
}

static void skips_empty_lines(void **state)
{
	(void)state;
	assert_lines("\n\n1\n\r\n \t\n2\n\n", "1\n2");
	assert_lines("\n", "");
	assert_lines("", "");
}

static void keeps_a_newline_inside_a_string_escaped(void **state)
{
	(void)state;
	assert_lines("\"a\\nb\"\n\"c\"", "\"a\\nb\"\n\"c\"");
}

static void refuses_all_for_one_bad_line(void **state)
{
	(void)state;
	assert_refused("{\"a\":1}\n{\"a\":01}\n{}\n", "bad number");
	assert_refused("{}\n{} {}\n", "text after the value");
	assert_refused("{\n}\n", "member name missing");
}

static void gathers_the_flags_of_all_lines(void **state)
{
	struct canonical flags = {0};
	struct buffer out = {0};

	(void)state;
	assert_null(canonical_ndjson(BYTES("{\"a\":1,\"a\":2}\n\"\\ud800\"\n{}"), &flags, &out));
	assert_true(flags.duplicate_key);
	assert_true(flags.lone_surrogate);
	canonical_done(&flags);
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(makes_each_line_canonical_and_keeps_their_order),
		cmocka_unit_test(does_not_care_how_lines_end),
		cmocka_unit_test(skips_empty_lines),
		cmocka_unit_test(keeps_a_newline_inside_a_string_escaped),
		cmocka_unit_test(refuses_all_for_one_bad_line),
		cmocka_unit_test(gathers_the_flags_of_all_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
