/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON in slices: which members are told, under which path, however it is cut. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "json_stream.h"
#include "say.h"

/* "{}" "{usage:}" "a=s:text" "a=n:12" ... one word a step, with spaces between. */
static void tell(struct json_stream *stream, enum json_stream_step step, struct buffer *out)
{
	static const char *const kinds[] = {[JSON_STREAM_STRING] = "s", [JSON_STREAM_NUMBER] = "n", [JSON_STREAM_TRUE] = "true",
					    [JSON_STREAM_FALSE] = "false", [JSON_STREAM_NULL] = "null"};
	struct bytes path = json_stream_path(stream), text = json_stream_text(stream);
	const char *space = out->size ? " " : "";
	int err = 0;

	if (step == JSON_STREAM_OPEN)
		err = say(out, "%s<%.*s", space, (int)path.size, (const char *)path.data);
	else if (step == JSON_STREAM_CLOSE)
		err = say(out, "%s%.*s>", space, (int)path.size, (const char *)path.data);
	else if (step == JSON_STREAM_END)
		err = say(out, "%send", space);
	else if (step == JSON_STREAM_BROKEN)
		err = say(out, "%sbroken", space);
	else if (step == JSON_STREAM_STRING || step == JSON_STREAM_NUMBER)
		err = say(out, "%s%.*s=%s:%.*s%s", space, (int)path.size, (const char *)path.data, kinds[step], (int)text.size,
			  (const char *)text.data, json_stream_text_cut(stream) ? "~" : "");
	else
		err = say(out, "%s%.*s=%s", space, (int)path.size, (const char *)path.data, kinds[step]);
	assert_int_equal(err, 0);
}

static void feed(struct json_stream *stream, struct bytes input, struct buffer *out)
{
	enum json_stream_step step;

	while ((step = json_stream_next(stream, &input)) != JSON_STREAM_MORE) {
		tell(stream, step, out);
		if (step == JSON_STREAM_BROKEN)
			return;
	}
}

static void assert_told(const char *text, size_t cut, const char *expected)
{
	struct json_stream stream = {0};
	struct bytes input = bytes_of_string(text);
	struct buffer out = {0};

	feed(&stream, bytes_take(&input, cut), &out);
	if (!stream.broken)
		feed(&stream, input, &out);
	assert_int_equal(buffer_append_byte(&out, '\0'), 0);
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void assert_tells(const char *text, const char *expected)
{
	for (size_t cut = 0; cut <= strlen(text); cut++)
		assert_told(text, cut, expected);
}

static void members_are_told_with_their_path(void **state)
{
	(void)state;
	assert_tells("{\"a\":1,\"b\":{\"c\":\"x\",\"d\":true},\"e\":null,\"f\":false}", "< a=n:1 <b b.c=s:x b.d=true b> e=null f=false > end");
	assert_tells(" {\n} ", "< > end");
	assert_tells("{\"a\":[]}", "< <a a> > end");
	assert_tells("{\"\":1}", "< =n:1 > end");
}

static void elements_of_arrays_are_told_only_when_they_hold_members(void **state)
{
	(void)state;
	assert_tells("{\"a\":[1,\"x\",null,[2,3],{\"b\":4}],\"c\":5}", "< <a <a[] a[]> <a[] a[].b=n:4 a[]> a> c=n:5 > end");
	assert_tells("[{\"a\":1},\n{\"a\":2}]", "< <[] [].a=n:1 []> <[] [].a=n:2 []> > end");
	assert_tells("[[{\"a\":1}]]", "< <[] <[][] [][].a=n:1 [][]> []> > end");
}

static void texts_follow_one_another(void **state)
{
	(void)state;
	assert_tells("{\"a\":1}\n{\"b\":2}\r\n[]", "< a=n:1 > end < b=n:2 > end < > end");
	assert_tells("{}{}", "< > end < > end");
}

static void strings_are_told_without_escapes(void **state)
{
	(void)state;
	assert_tells("{\"\\u0061\\n\":\"\\\"\\\\\\/\\b\\f\\r\\t\\u00e9\\uD83D\\uDE00\"}", "< a\n=s:\"\\/\b\f\r\t\xc3\xa9\xf0\x9f\x98\x80 > end");
	assert_tells("{\"a\":\"\\ud83dx\\ude00\\ud83d\"}", "< a=s:\xef\xbf\xbdx\xef\xbf\xbd\xef\xbf\xbd > end");
}

static void a_name_that_looks_like_a_path_is_none(void **state)
{
	(void)state;
	assert_tells("{\"a.b\":1,\"a\":{\"b\":2}}", "< =n:1 <a a.b=n:2 a> > end");
	assert_tells("{\"a\\u002eb\":{\"c\":1},\"d\":2}", "< < =n:1 > d=n:2 > end");
	assert_tells("{\"\":{\"a\":1},\"[]\":{\"a\":2},\"a\":3}", "< < =n:1 > < =n:2 > a=n:3 > end");
}

static void long_texts_are_cut_and_long_names_have_no_path(void **state)
{
	char text[600], expected[300], longest[JSON_STREAM_TEXT_BYTES + 2];

	(void)state;
	memset(longest, 'x', sizeof(longest));
	longest[JSON_STREAM_TEXT_BYTES] = '\0';
	snprintf(text, sizeof(text), "{\"a\":\"%s\"}", longest);
	snprintf(expected, sizeof(expected), "< a=s:%s > end", longest);
	assert_tells(text, expected);
	snprintf(text, sizeof(text), "{\"a\":\"%sy\"}", longest);
	snprintf(expected, sizeof(expected), "< a=s:%s~ > end", longest);
	assert_tells(text, expected);
	snprintf(text, sizeof(text), "{\"%s\":{\"b\":1},\"c\":2}", longest); /* over JSON_STREAM_PATH_BYTES */
	assert_tells(text, "< < =n:1 > c=n:2 > end");
}

static void deep_members_have_no_path_and_those_behind_them_do(void **state)
{
	(void)state;
	assert_tells("{\"1\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":8,\"9\":{\"a\":9}}}}}}}},\"b\":1}",
		     "< <1 <1.2 <1.2.3 <1.2.3.4 <1.2.3.4.5 <1.2.3.4.5.6 <1.2.3.4.5.6.7 1.2.3.4.5.6.7.8=n:8 "
		     "<1.2.3.4.5.6.7.9 =n:9 1.2.3.4.5.6.7.9> 1.2.3.4.5.6.7> 1.2.3.4.5.6> 1.2.3.4.5> 1.2.3.4> 1.2.3> 1.2> 1> b=n:1 > end");
}

static void what_is_no_json_is_broken(void **state)
{
	static const struct {
		const char *text;
		const char *told;
	} rows[] = {
		{"x", "broken"},
		{"1", "broken"},
		{"\"a\"", "broken"},
		{"]", "broken"},
		{"{]", "< broken"},
		{"[}", "< broken"},
		{"{\"a\"}", "< broken"},
		{"{\"a\":}", "< broken"},
		{"{\"a\":1,}", "< a=n:1 broken"},
		{"{\"a\":1 \"b\":2}", "< a=n:1 broken"},
		{"{\"a\":tru}", "< broken"},
		{"{\"a\":nullx}", "< broken"},
		{"{\"a\":+1}", "< broken"},
		{"{a:1}", "< broken"},
		{"{\"a\":\"\\x\"}", "< broken"},
		{"{\"a\":\"\\u12g4\"}", "< broken"},
		{"{},{}", "< > end broken"},
		{"{\"a\":[1}", "< <a broken"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_tells(rows[i].text, rows[i].told);
}

static void a_reset_begins_anew(void **state)
{
	struct json_stream stream = {0};
	struct bytes input = BYTES("{\"a\":{\"b\":[\"x");
	struct buffer out = {0};

	(void)state;
	feed(&stream, input, &out);
	assert_false(json_stream_is_outside(&stream));
	json_stream_reset(&stream);
	assert_true(json_stream_is_outside(&stream));
	buffer_clear(&out);
	feed(&stream, BYTES("{\"c\":1}"), &out);
	assert_int_equal(buffer_append_byte(&out, '\0'), 0);
	assert_string_equal((const char *)out.data, "< c=n:1 > end");
	assert_true(json_stream_is_outside(&stream));
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_are_told_with_their_path),
		cmocka_unit_test(elements_of_arrays_are_told_only_when_they_hold_members),
		cmocka_unit_test(texts_follow_one_another),
		cmocka_unit_test(strings_are_told_without_escapes),
		cmocka_unit_test(a_name_that_looks_like_a_path_is_none),
		cmocka_unit_test(long_texts_are_cut_and_long_names_have_no_path),
		cmocka_unit_test(deep_members_have_no_path_and_those_behind_them_do),
		cmocka_unit_test(what_is_no_json_is_broken),
		cmocka_unit_test(a_reset_begins_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
