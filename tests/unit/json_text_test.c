/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The JSON writer: commas, escapes, numbers at their ends, and what happens
 * when there is no memory.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "json_text.h"
#include "utf8.h"

static void assert_text(struct buffer *out, const char *expected)
{
	assert_int_equal(buffer_append_byte(out, 0), 0);
	assert_string_equal((char *)out->data, expected);
	buffer_done(out);
}

static void puts_commas_between_members_and_elements_only(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_object_open(&writer);
	json_key(&writer, "a");
	json_array_open(&writer);
	json_array_close(&writer);
	json_key(&writer, "b");
	json_object_open(&writer);
	json_object_close(&writer);
	json_key(&writer, "c");
	json_array_open(&writer);
	json_unsigned(&writer, 1);
	json_array_open(&writer);
	json_null(&writer);
	json_array_close(&writer);
	json_boolean(&writer, true);
	json_boolean(&writer, false);
	json_object_open(&writer);
	json_key(&writer, "d");
	json_text(&writer, "e");
	json_object_close(&writer);
	json_array_close(&writer);
	json_object_close(&writer);
	assert_int_equal(json_writer_error(&writer), 0);
	assert_text(&out, "{\"a\":[],\"b\":{},\"c\":[1,[null],true,false,{\"d\":\"e\"}]}");
}

static void appends_to_what_the_buffer_holds(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	assert_int_equal(buffer_append(&out, BYTES("{}\n")), 0);
	json_writer_init(&writer, &out);
	json_object_open(&writer);
	json_object_close(&writer);
	assert_text(&out, "{}\n{}");
}

struct string_case {
	struct bytes text;
	const char *expected;
	bool escaped;
};

static const struct string_case string_cases[] = {
	{BYTES(""), "\"\"", false},
	{BYTES("plain / text~"), "\"plain / text~\"", false},
	{BYTES("a\"b\\c"), "\"a\\\"b\\\\c\"", false},
	{BYTES("\"\""), "\"\\\"\\\"\"", false},
	/* control characters, C1 ones too, are escaped without being called damaged */
	{BYTES("\0\n\t\x1b[2J\x7f"), "\"\\u0000\\u000a\\u0009\\u001b[2J\\u007f\"", false},
	{BYTES("\xc2\x80\xc2\x9f\xc2\xa0"), "\"\\u0080\\u009f\xc2\xa0\"", false},
	/* valid text of 2, 3 and 4 bytes */
	{BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb8"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb8\"",
	 false},
	{BYTES("\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf"),
	 "\"\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\"", false},
	/* not UTF-8: a lone continuation, overlong, a surrogate, beyond U+10FFFF, cut short */
	{BYTES("a\x80z"), "\"a\\u0080z\"", true},
	{BYTES("\xc0\xaf"), "\"\\u00c0\\u00af\"", true},
	{BYTES("\xc1\xbf"), "\"\\u00c1\\u00bf\"", true},
	{BYTES("\xe0\x9f\xbf"), "\"\\u00e0\\u009f\\u00bf\"", true},
	{BYTES("\xf0\x8f\xbf\xbf"), "\"\\u00f0\\u008f\\u00bf\\u00bf\"", true},
	{BYTES("\xed\xa0\x80"), "\"\\u00ed\\u00a0\\u0080\"", true},
	{BYTES("\xf4\x90\x80\x80"), "\"\\u00f4\\u0090\\u0080\\u0080\"", true},
	{BYTES("\xff\xfe"), "\"\\u00ff\\u00fe\"", true},
	{BYTES("x\xe2\x82"), "\"x\\u00e2\\u0082\"", true},
	{BYTES("\xe2\x82\x22"), "\"\\u00e2\\u0082\\\"\"", true},
};

static void escapes_what_json_and_terminals_cannot_take(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(string_cases) / sizeof(string_cases[0]); i++) {
		struct buffer out = {0};
		struct json_writer writer;

		json_writer_init(&writer, &out);
		json_string(&writer, string_cases[i].text);
		assert_int_equal(json_writer_error(&writer), 0);
		assert_int_equal(writer.escaped, string_cases[i].escaped);
		assert_text(&out, string_cases[i].expected);
	}
}

static void keeps_the_escaped_mark_over_later_strings(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_array_open(&writer);
	json_string(&writer, BYTES("\xff"));
	json_string(&writer, BYTES("fine"));
	json_array_close(&writer);
	assert_true(writer.escaped);
	assert_text(&out, "[\"\\u00ff\",\"fine\"]");
}

static void writes_null_for_no_text(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_array_open(&writer);
	json_text(&writer, NULL);
	json_text(&writer, "");
	json_array_close(&writer);
	assert_text(&out, "[null,\"\"]");
}

static void writes_whole_numbers_to_their_ends(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_array_open(&writer);
	json_unsigned(&writer, 0);
	json_unsigned(&writer, 10);
	json_unsigned(&writer, UINT64_MAX);
	json_signed(&writer, 0);
	json_signed(&writer, -1);
	json_signed(&writer, INT64_MAX);
	json_signed(&writer, INT64_MIN);
	json_array_close(&writer);
	assert_text(&out, "[0,10,18446744073709551615,0,-1,9223372036854775807,-"
			  "9223372036854775808]");
}

static void cuts_times_and_never_rounds_them(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_array_open(&writer);
	json_seconds(&writer, 1790000000123456789);
	json_seconds(&writer, 999999999);
	json_seconds(&writer, 0);
	json_seconds(&writer, -1500000000);
	json_seconds(&writer, -999);
	json_seconds(&writer, INT64_MAX);
	json_milliseconds(&writer, 101234999);
	json_milliseconds(&writer, 5000);
	json_milliseconds(&writer, 0);
	json_milliseconds(&writer, -2500000);
	json_array_close(&writer);
	assert_text(&out,
		    "[1790000000.123456,0.999999,0.000000,-1.500000,0.000000,9223372036.854775,"
		    "101.234,0.005,0.000,-2.500]");
}

/* Both go out by two digits at a time: each pair, and each count of digits, against printf. */
static void writes_each_byte_and_each_number_as_printf_does(void **state)
{
	struct buffer out = {0};
	struct json_writer writer;
	char expected[64];
	uint64_t value = 1;

	(void)state;
	for (unsigned int i = 0; i < 256 + 20 * 3; i++) {
		uint8_t byte = (uint8_t)i;
		uint64_t number = i < 256 ? i : value + i % 3 - 1;

		buffer_clear(&out);
		json_writer_init(&writer, &out);
		json_hex(&writer, &byte, 1);
		json_unsigned(&writer, number);
		json_milliseconds(&writer, (int64_t)(number % 10000000) * 1000);
		assert_int_equal(json_writer_error(&writer), 0);
		snprintf(expected, sizeof(expected), "\"%02x\",%" PRIu64 ",%" PRIu64 ".%03" PRIu64, byte, number,
			 number % 10000000 / 1000, number % 1000);
		assert_int_equal(out.size, strlen(expected));
		assert_memory_equal(out.data, expected, out.size);
		if (i >= 256 && i % 3 == 0)
			value *= 10;
	}
	buffer_done(&out);
}

static void writes_hex_and_raw_text_as_values(void **state)
{
	static const uint8_t bytes[] = {0x00, 0x0f, 0xa0, 0xff};
	struct buffer out = {0};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_array_open(&writer);
	json_hex(&writer, bytes, sizeof(bytes));
	json_raw(&writer, BYTES("{\"x\":1}"));
	json_hex(&writer, bytes, 0);
	json_array_close(&writer);
	assert_text(&out, "[\"000fa0ff\",{\"x\":1},\"\"]");
}

static void keeps_the_first_error_and_writes_nothing_after_it(void **state)
{
	/*
	 * A buffer so large that no growth can succeed: buffer_reserve() refuses before it touches
	 * data.
	 */
	struct buffer out = {.size = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};
	struct json_writer writer;

	(void)state;
	json_writer_init(&writer, &out);
	json_object_open(&writer);
	json_key(&writer, "a");
	json_string(&writer, BYTES("text\xff\n"));
	json_hex(&writer, (const uint8_t *)"ab", 2);
	json_milliseconds(&writer, 1);
	json_object_close(&writer);
	assert_int_equal(json_writer_error(&writer), -ENOMEM);
	assert_int_equal(out.size, SIZE_MAX / 2);
	assert_null(out.data);
}

static void decodes_code_points_with_their_length(void **state)
{
	uint32_t code_point = 0;

	(void)state;
	assert_int_equal(utf8_next(BYTES(""), &code_point), 0);
	assert_int_equal(utf8_next(BYTES("A!"), &code_point), 1);
	assert_int_equal(code_point, 'A');
	assert_int_equal(utf8_next(BYTES("\xc3\xa9!"), &code_point), 2);
	assert_int_equal(code_point, 0xe9);
	assert_int_equal(utf8_next(BYTES("\xe2\x82\xac!"), &code_point), 3);
	assert_int_equal(code_point, 0x20ac);
	assert_int_equal(utf8_next(BYTES("\xf4\x8f\xbf\xbf"), &code_point), 4);
	assert_int_equal(code_point, 0x10ffff);
	assert_int_equal(utf8_next(BYTES("\xf8\x88\x80\x80\x80"), &code_point), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(puts_commas_between_members_and_elements_only),
		cmocka_unit_test(appends_to_what_the_buffer_holds),
		cmocka_unit_test(escapes_what_json_and_terminals_cannot_take),
		cmocka_unit_test(keeps_the_escaped_mark_over_later_strings),
		cmocka_unit_test(writes_null_for_no_text),
		cmocka_unit_test(writes_whole_numbers_to_their_ends),
		cmocka_unit_test(cuts_times_and_never_rounds_them),
		cmocka_unit_test(writes_each_byte_and_each_number_as_printf_does),
		cmocka_unit_test(writes_hex_and_raw_text_as_values),
		cmocka_unit_test(keeps_the_first_error_and_writes_nothing_after_it),
		cmocka_unit_test(decodes_code_points_with_their_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
