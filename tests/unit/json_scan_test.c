/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The treeless JSON reader: what it finds, what it calls broken, and that no
 * text, however deep or cut, leads it astray.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "json_scan.h"
#include "limits.h"

static struct bytes text_of(const char *text)
{
	return bytes_of_string(text);
}

/* The members of a text as "name=value;" in one string. */
static bool members(const char *text, struct buffer *out)
{
	struct bytes whole, name, value;
	struct json_scan scan;

	buffer_clear(out);
	if (!json_scan_whole(text_of(text), &whole))
		return false;
	json_scan_open(&scan, whole);
	while (json_scan_next(&scan, &name, &value)) {
		buffer_append(out, name);
		buffer_append_byte(out, '=');
		buffer_append(out, value);
		buffer_append_byte(out, ';');
	}
	buffer_append_byte(out, 0);
	return !scan.broken;
}

static void member_is(const char *object, const char *wanted, const char *value)
{
	struct bytes found = json_scan_member(text_of(object), wanted);

	assert_int_equal(found.size, strlen(value));
	assert_memory_equal(found.data ? found.data : (const uint8_t *)"", value, found.size);
}

static void finds_the_last_member_of_a_name(void **state)
{
	(void)state;
	member_is("{\"a\":1,\"b\":[2],\"a\":3}", "a", "3");
	member_is("{\"\\u0061\":{\"b\":1}}", "a", "{\"b\":1}");
	member_is("{\"a\":1}", "b", "");
	member_is("[\"a\"]", "a", "");
	member_is("{\"a\":1", "a", "");
	member_is("", "a", "");
}

static void lists_members_and_elements_in_order(void **state)
{
	static const struct {
		const char *text;
		const char *expected;
	} rows[] = {
		{"{}", ""},
		{"[]", ""},
		{"[ ]", ""},
		{"{\"a\":1}", "\"a\"=1;"},
		{" {\t\"a\" : 1 ,\r\n\"b\":[1,{\"c\":2}]\n} ", "\"a\"=1;\"b\"=[1,{\"c\":2}];"},
		{"[1,-2.5e+3,true,null,\"x\"]", "=1;=-2.5e+3;=true;=null;=\"x\";"},
		{"{\"a\":\"}\",\"b\":\"\\\"]\"}", "\"a\"=\"}\";\"b\"=\"\\\"]\";"},
		{"{\"a\":\"\\\\\",\"b\":\"\\\\\\\"\"}", "\"a\"=\"\\\\\";\"b\"=\"\\\\\\\"\";"},
		{"{\"a\":1,\"a\":2}", "\"a\"=1;\"a\"=2;"},
		{"\xef\xbb\xbf{\"a\":1}", "\"a\"=1;"},
		{"7", ""},
		{"\"text\"", ""},
	};
	struct buffer out = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(members(rows[i].text, &out));
		assert_string_equal((char *)out.data, rows[i].expected);
	}
	buffer_done(&out);
}

static void finds_no_whole_value_in_a_cut_or_doubled_text(void **state)
{
	static const char *const rows[] = {
		"",
		" ",
		"{",
		"[",
		"{\"a\":1",
		"{\"a",
		"{\"a\":\"b\\\"}",
		"[1,2",
		"{]",
		"[}",
		"{}{}",
		"1 2",
		"[[}]",
		"]",
		"}",
		",",
		"\"",
		"\"\\\"",
		"\xef\xbb\xbf",
		"'a'",
		"{\"a\":[}",
		"[{\"a\":]}]",
	};
	struct bytes whole;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(json_scan_whole(text_of(rows[i]), &whole));
}

static void calls_members_without_their_marks_broken(void **state)
{
	static const char *const rows[] = {
		"{\"a\" 1}", "{\"a\":}", "{a:1}", "{\"a\":1 \"b\":2}", "{\"a\":1,}", "{,}",
		"[1 2]",     "[1,]",     "[,1]",  "{\"a\"}",           "{1:2}",      "[:]",
	};
	struct buffer out = {0};
	struct bytes whole;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(json_scan_whole(text_of(rows[i]), &whole));
		assert_false(members(rows[i], &out));
	}
	buffer_done(&out);
}

static void stays_broken_after_the_end(void **state)
{
	struct bytes name, value;
	struct json_scan scan;

	(void)state;
	json_scan_open(&scan, BYTES("[1 2]"));
	assert_true(json_scan_next(&scan, &name, &value));
	assert_false(json_scan_next(&scan, &name, &value));
	assert_false(json_scan_next(&scan, &name, &value));
	assert_true(scan.broken);
	json_scan_open(&scan, (struct bytes){0});
	assert_false(json_scan_next(&scan, &name, &value));
	assert_false(scan.broken);
}

static void goes_as_deep_as_the_limit_and_no_deeper(void **state)
{
	struct buffer text = {0};
	struct bytes whole;

	(void)state;
	for (size_t depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
		buffer_clear(&text);
		for (size_t i = 0; i < depth; i++)
			buffer_append(&text, i % 2 ? BYTES("[") : BYTES("{\"a\":"));
		buffer_append(&text, BYTES("0"));
		for (size_t i = depth; i > 0; i--)
			buffer_append_byte(&text, (i - 1) % 2 ? ']' : '}');
		assert_int_equal(json_scan_whole(buffer_bytes(&text), &whole),
				 depth == LIMIT_JSON_DEPTH);
	}
	buffer_done(&text);
}

static void compares_what_strings_say_not_how_they_are_spelt(void **state)
{
	static const struct {
		const char *value;
		const char *text;
		bool same;
	} rows[] = {
		{"\"method\"", "method", true},
		{"\"m\\u0065thod\"", "method", true},
		{"\"m\\u0045thod\"", "method", false},
		{"\"tools\\/call\"", "tools/call", true},
		{"\"a\\\"b\\\\c\\n\\t\\b\\f\\r\"", "a\"b\\c\n\t\b\f\r", true},
		{"\"\\u00e9\"", "\xc3\xa9", true},
		{"\"\\u20AC\"", "\xe2\x82\xac", true},
		{"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80", true},
		{"\"\\ud83d\"", "\xf0\x9f\x98\x80", false},
		{"\"metho\"", "method", false},
		{"\"methods\"", "method", false},
		{"\"\"", "", true},
		{"\"\\u006d\"", "mm", false},
		{"\"a\\u\"", "a", false},
		{"method", "method", false},
		{"1", "1", false},
		{"", "", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(json_scan_says(text_of(rows[i].value), rows[i].text),
				 rows[i].same);
}

static void cuts_a_long_string_at_a_whole_character(void **state)
{
	static const struct {
		const char *value;
		size_t size;
		const char *text;
		bool cut;
	} rows[] = {
		{"\"abcd\"", 4, "abcd", false},
		{"\"abcde\"", 4, "abcd", true},
		{"\"abc\xc3\xa9\"", 4, "abc", true},
		{"\"ab\xe2\x82\xac\"", 4, "ab", true},
		{"\"a\xe2\x82\xac\"", 4, "a\xe2\x82\xac", false},
		{"\"abc\\u20ac\"", 4, "abc", true},
		{"\"\x80\x80\x80\x80\x80\"", 4, "", true},
		{"7", 4, "", false},
	};
	uint8_t text[8];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool cut = !rows[i].cut;
		size_t size = json_scan_text(text_of(rows[i].value), text, rows[i].size, &cut);

		assert_int_equal(cut, rows[i].cut);
		assert_int_equal(size, strlen(rows[i].text));
		assert_memory_equal(text, rows[i].text, size);
	}
}

static void reads_no_byte_past_a_text_that_is_cut_anywhere(void **state)
{
	static const char text[] = "{\"a\":[1,{\"b\":\"\\u00e9\\\"x\"}],\"c\":null}";

	(void)state;
	for (size_t size = 0; size < sizeof(text); size++) {
		uint8_t *copy =
			malloc(size ? size : 1); /* exactly as long: a sanitizer sees the rest */
		struct bytes cut = {copy, size}, whole, name, value;
		struct json_scan scan;

		memcpy(copy, text, size);
		assert_int_equal(json_scan_whole(cut, &whole), size == sizeof(text) - 1);
		json_scan_open(&scan, cut);
		while (json_scan_next(&scan, &name, &value))
			json_scan_says(value, "x");
		assert_int_equal(scan.broken, size > 0 && size != sizeof(text) - 1);
		free(copy);
	}
}

/* Strings are skipped by eight bytes, then by memchr(): a quote is told from an escaped one wherever it stands. */
static void ends_a_string_at_its_own_quote_wherever_that_stands(void **state)
{
	static const char *const middles[] = {"", "\\\"", "\\\\", "\\\\\\\"", "\"\xa2\xdc" + 1};
	char text[128];

	(void)state;
	for (size_t m = 0; m < sizeof(middles) / sizeof(middles[0]); m++)
		for (int before = 0; before < 44; before++)
			for (int after = 0; after < 12; after++) {
				size_t size = 2 + strlen(middles[m]) + (size_t)(before + after);
				struct bytes found;

				snprintf(text, sizeof(text), "{\"a\":\"%.*s%s%.*s\",\"b\":\"\"}", before,
					 "!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#!!#", middles[m], after,
					 "[[[[[[[[[[[[");
				found = json_scan_member(text_of(text), "a");
				assert_int_equal(found.size, size);
				assert_ptr_equal(found.data, text + 5);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_members_and_elements_in_order),
		cmocka_unit_test(finds_no_whole_value_in_a_cut_or_doubled_text),
		cmocka_unit_test(finds_the_last_member_of_a_name),
		cmocka_unit_test(calls_members_without_their_marks_broken),
		cmocka_unit_test(stays_broken_after_the_end),
		cmocka_unit_test(goes_as_deep_as_the_limit_and_no_deeper),
		cmocka_unit_test(compares_what_strings_say_not_how_they_are_spelt),
		cmocka_unit_test(cuts_a_long_string_at_a_whole_character),
		cmocka_unit_test(ends_a_string_at_its_own_quote_wherever_that_stands),
		cmocka_unit_test(reads_no_byte_past_a_text_that_is_cut_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
