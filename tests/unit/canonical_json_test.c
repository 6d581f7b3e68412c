/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON -> canonical text: layout, order, exact numbers, strings, and what is
 * refused. Texts are compared byte for byte.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "canonical.h"
#include "limits.h"

static struct bytes text_of(const char *text)
{
	return bytes_of_string(text);
}

/* Also that canonical text is its own canonical text. */
static void assert_bytes(struct bytes input, struct bytes expected, struct canonical *flags)
{
	struct buffer out = {0}, again = {0};

	assert_null(canonical_json(input, flags, &out));
	assert_int_equal(out.size, expected.size);
	assert_memory_equal(out.data, expected.data, expected.size);
	assert_null(canonical_json(buffer_bytes(&out), flags, &again));
	assert_true(bytes_equal(buffer_bytes(&again), buffer_bytes(&out)));
	buffer_done(&out);
	buffer_done(&again);
	canonical_done(flags);
}

static void assert_text(const char *input, const char *expected)
{
	struct canonical flags = {0};

	assert_bytes(text_of(input), text_of(expected), &flags);
	assert_false(flags.duplicate_key);
	assert_false(flags.lone_surrogate);
}

static void assert_refused_bytes(struct bytes input, const char *expected_reason)
{
	struct canonical flags = {0};
	struct buffer out = {0};
	const char *reason;

	assert_int_equal(buffer_append(&out, BYTES("before")), 0);
	reason = canonical_json(input, &flags, &out);
	assert_non_null(reason);
	assert_string_equal(reason, expected_reason);
	assert_true(bytes_equal(buffer_bytes(&out), BYTES("before")));
	buffer_done(&out);
	canonical_done(&flags);
}

static void assert_refused(const char *input, const char *expected_reason)
{
	assert_refused_bytes(text_of(input), expected_reason);
}

/* ---- layout ---- */

static void takes_space_out_between_tokens_only(void **state)
{
	(void)state;
	assert_text(" \t\r\n{ \"a b\" : [ 1 , 2 ] , \"c\" : { } , \"d\" : [ ] } \n",
		    "{\"a b\":[1,2],\"c\":{},\"d\":[]}");
}

static void keeps_every_kind_of_value(void **state)
{
	(void)state;
	assert_text("[true,false,null,\"\",0,{},[]]", "[true,false,null,\"\",0,{},[]]");
	assert_text(" \"text\" ", "\"text\"");
	assert_text("7", "7");
	assert_text("null", "null");
}

static void does_not_mix_up_types(void **state)
{
	(void)state;
	assert_text("[\"1\",1,true,\"true\",null,\"null\"]",
		    "[\"1\",1,true,\"true\",null,\"null\"]");
}

static void keeps_the_order_of_arrays(void **state)
{
	(void)state;
	assert_text("[3,1,2]", "[3,1,2]");
}

static void appends_to_what_the_buffer_holds(void **state)
{
	struct canonical flags = {0};
	struct buffer out = {0};

	(void)state;
	assert_int_equal(buffer_append(&out, BYTES("before ")), 0);
	assert_null(canonical_json(BYTES("{\"b\":1,\"a\":{\"d\":2,\"c\":3}}"), &flags, &out));
	assert_true(
		bytes_equal(buffer_bytes(&out), BYTES("before {\"a\":{\"c\":3,\"d\":2},\"b\":1}")));
	buffer_done(&out);
	canonical_done(&flags);
}

/* ---- order of members ---- */

static void sorts_members_at_every_level(void **state)
{
	(void)state;
	assert_text(
		"{\"order\":{\"price\":1,\"note\":[{\"z\":1,\"y\":{\"b\":0,\"a\":0}},{\"x\":2,\"w\":3}]},\"client\":0}",
		"{\"client\":0,\"order\":{\"note\":[{\"y\":{\"a\":0,\"b\":0},\"z\":1},{\"w\":3,\"x\":2}],\"price\":1}}");
}

static void sorts_inside_an_object_that_is_in_order(void **state)
{
	(void)state;
	assert_text("{\"a\":{\"y\":1,\"x\":2},\"b\":[{\"y\":1,\"x\":2},{\"y\":3,\"x\":4}]}",
		    "{\"a\":{\"x\":2,\"y\":1},\"b\":[{\"x\":2,\"y\":1},{\"x\":4,\"y\":3}]}");
}

static void sorts_a_prefix_before_what_it_begins(void **state)
{
	(void)state;
	assert_text("{\"ab\":1,\"\":2,\"a\":3}", "{\"\":2,\"a\":3,\"ab\":1}");
}

/* The example of RFC 8785 section 3.2.3. */
static void sorts_members_by_utf16_code_units(void **state)
{
	(void)state;
	assert_text(
		"{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\","
		"\"1\":\"One\",\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\","
		"\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
		"{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\","
		"\"\xc3\xb6\":\"Latin Small Letter O With Diaeresis\",\"\xe2\x82\xac\":\"Euro Sign\","
		"\"\xf0\x9f\x98\x80\":\"Emoji: Grinning Face\",\"\xef\xac\xb3\":\"Hebrew Letter Dalet With Dagesh\"}");
}

static void sorts_escaped_names_by_what_they_stand_for(void **state)
{
	(void)state;
	/* U+0001 < TAB < U+001F < quote < backslash < "a" */
	assert_text("{\"a\":6,\"\\\\\":5,\"\\\"\":4,\"\\u001f\":3,\"\\t\":2,\"\\u0001\":1}",
		    "{\"\\u0001\":1,\"\\t\":2,\"\\u001f\":3,\"\\\"\":4,\"\\\\\":5,\"a\":6}");
	assert_text("{\"\\u0061b\":2,\"a\\u0061\":1}", "{\"aa\":1,\"ab\":2}");
	assert_text("{\"k\\\\b\":2,\"k\\\\a\":1}", "{\"k\\\\a\":1,\"k\\\\b\":2}");
}

static void sorts_a_lone_surrogate_where_its_code_unit_belongs(void **state)
{
	struct canonical flags = {0};

	(void)state;
	assert_bytes(
		BYTES("{\"\\ue000\":3,\"\\udfff\":2,\"\\ud83d\\ude00\":1,\"\\uD7FF\":0}"),
		BYTES("{\"\xed\x9f\xbf\":0,\"\xf0\x9f\x98\x80\":1,\"\\udfff\":2,\"\xee\x80\x80\":3}"),
		&flags);
	assert_true(flags.lone_surrogate);
}

static void keeps_all_members_of_one_name_in_their_order(void **state)
{
	struct canonical flags = {0};

	(void)state;
	assert_bytes(BYTES("{\"a\":1,\"a\":2}"), BYTES("{\"a\":1,\"a\":2}"), &flags);
	assert_true(flags.duplicate_key);
	flags = (struct canonical){0};
	assert_bytes(BYTES("{\"b\":0,\"a\":2,\"c\":9,\"\\u0061\":1}"),
		     BYTES("{\"a\":2,\"a\":1,\"b\":0,\"c\":9}"), &flags);
	assert_true(flags.duplicate_key);
}

static void does_not_call_a_name_on_two_levels_a_duplicate(void **state)
{
	(void)state;
	assert_text("{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]}}",
		    "{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]}}");
}

static void append_text(struct buffer *out, const char *text)
{
	assert_int_equal(buffer_append(out, text_of(text)), 0);
}

static void append_times(struct buffer *out, const char *text, size_t count)
{
	while (count--)
		append_text(out, text);
}

static void sorts_objects_of_any_size(void **state)
{
	(void)state;
	/* below, at and above the size where the way of sorting changes, and one that is large */
	for (unsigned int count = 2; count <= 3000; count += count < 40 ? 1 : 740) {
		struct buffer input = {0}, expected = {0};
		struct canonical flags = {0};
		char member[64];

		for (unsigned int i = 0; i < count; i++) {
			snprintf(member, sizeof(member), "%c\"k%05u\":[%u]", i ? ',' : '{',
				 (i * 7919 + 1) % count, i);
			append_text(&input, member);
		}
		for (unsigned int key = 0; key < count; key++)
			for (unsigned int i = 0; i < count; i++)
				if ((i * 7919 + 1) % count == key) {
					snprintf(member, sizeof(member), "%c\"k%05u\":[%u]",
						 key ? ',' : '{', key, i);
					append_text(&expected, member);
				}
		append_text(&input, "}");
		append_text(&expected, "}");
		assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
		buffer_done(&input);
		buffer_done(&expected);
	}
}

static void keeps_members_of_one_name_in_order_in_large_objects(void **state)
{
	struct buffer input = {0}, expected = {0};
	struct canonical flags = {0};
	char member[64];

	(void)state;
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(member, sizeof(member), "%c\"%c\":%u", i ? ',' : '{', 'b' - (int)(i % 2),
			 i);
		append_text(&input, member);
	}
	for (unsigned int i = 0; i < 200; i++) {
		snprintf(member, sizeof(member), "%c\"%c\":%u", i ? ',' : '{', i < 100 ? 'a' : 'b',
			 i < 100 ? 2 * i + 1 : 2 * (i - 100));
		append_text(&expected, member);
	}
	append_text(&input, "}");
	append_text(&expected, "}");
	assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
	assert_true(flags.duplicate_key);
	buffer_done(&input);
	buffer_done(&expected);
}

static void sorts_a_million_members_that_stand_backwards(void **state)
{
	struct buffer input = {0}, out = {0};
	struct canonical flags = {0};
	const unsigned int count = 1000000;
	char member[32];

	(void)state;
	for (unsigned int i = 0; i < count; i++) {
		snprintf(member, sizeof(member), "%c\"%06u\":0", i ? ',' : '{', count - 1 - i);
		append_text(&input, member);
	}
	append_text(&input, "}");
	assert_null(canonical_json(buffer_bytes(&input), &flags, &out));
	assert_int_equal(out.size, input.size);
	assert_true(bytes_starts_with(buffer_bytes(&out), BYTES("{\"000000\":0,\"000001\":0,")));
	for (unsigned int i = 0; i < count; i++) {
		snprintf(member, sizeof(member), "\"%06u\":0", i);
		assert_memory_equal(out.data + 1 + 11 * (size_t)i, member, 10);
	}
	buffer_done(&input);
	buffer_done(&out);
	canonical_done(&flags);
}

static void sorts_objects_that_nest_to_the_limit(void **state)
{
	struct buffer input = {0}, expected = {0};
	struct canonical flags = {0};

	(void)state;
	append_times(&input, "{\"z\":1,\"m\":", LIMIT_JSON_DEPTH);
	append_text(&input, "0");
	append_times(&input, ",\"a\":2}", LIMIT_JSON_DEPTH);
	append_times(&expected, "{\"a\":2,\"m\":", LIMIT_JSON_DEPTH);
	append_text(&expected, "0");
	append_times(&expected, ",\"z\":1}", LIMIT_JSON_DEPTH);
	assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
	buffer_done(&input);
	buffer_done(&expected);
}

/* ---- numbers: the table ---- */

static void tells_neighbours_of_2_53_apart(void **state)
{
	(void)state;
	assert_text("9007199254740992", "9007199254740992");
	assert_text("9007199254740993", "9007199254740993");
	assert_text("-9007199254740993", "-9007199254740993");
}

static void keeps_all_digits_of_a_long_integer(void **state)
{
	(void)state;
	assert_text("12345678901234567890", "12345678901234567890");
	assert_text("123456789012345678901", "123456789012345678901");
	assert_text("1234567890123456789012", "1.234567890123456789012e+21");
}

static void spells_1900_one_way(void **state)
{
	(void)state;
	assert_text("1900", "1900");
	assert_text("1900.0", "1900");
	assert_text("1.9e3", "1900");
	assert_text("19E+2", "1900");
	assert_text("19000000e-4", "1900");
	assert_text("0.0019e6", "1900");
}

static void spells_zero_one_way(void **state)
{
	(void)state;
	assert_text("0", "0");
	assert_text("-0", "0");
	assert_text("0.0", "0");
	assert_text("-0e5", "0");
	assert_text("-0.000E-7", "0");
	assert_text("0e9999999999999999999", "0");
}

static void keeps_all_digits_of_a_fraction(void **state)
{
	(void)state;
	assert_text("333333333.33333329", "333333333.33333329");
	assert_text("0.1000000000000000055511151231257827", "0.1000000000000000055511151231257827");
}

static void keeps_exponents_beyond_a_double(void **state)
{
	(void)state;
	assert_text("1e400", "1e+400");
	assert_text("1e999999999", "1e+999999999");
	assert_text("1E-400", "1e-400");
	assert_text("-12.50e500", "-1.25e+501");
}

static void keeps_the_literal_of_an_exponent_over_12_digits(void **state)
{
	(void)state;
	assert_text("1e999999999999", "1e+999999999999");
	assert_text("10e1000000000000", "10e1000000000000");
	assert_text("1.50E-1000000000000", "1.50E-1000000000000");
	assert_text("1e0000000000000000003", "1000");
}

static void lays_numbers_out_like_ecmascript(void **state)
{
	(void)state;
	assert_text("100000000000000000000", "100000000000000000000"); /* point at 21 */
	assert_text("1e20", "100000000000000000000");
	assert_text("1e21", "1e+21");
	assert_text("123e19", "1.23e+21");
	assert_text("0.000001", "0.000001"); /* point at -5 */
	assert_text("1e-6", "0.000001");
	assert_text("0.0000001", "1e-7");
	assert_text("123e-10", "1.23e-8");
	assert_text("-1.5", "-1.5");
	assert_text("1.5e1", "15");
	assert_text("1.25e1", "12.5");
	assert_text("0.5", "0.5");
	assert_text("0.50", "0.5");
	assert_text("10.10", "10.1");
	assert_text("123456789012345678901.5", "123456789012345678901.5");
	assert_text("-0.1e1", "-1");
}

/* Number samples of RFC 8785 appendix B, as shortest literals: they are canonical. */
static void agrees_with_jcs_on_shortest_literals(void **state)
{
	static const char *const literals[] = {
		"5e-324",
		"-5e-324",
		"1.7976931348623157e+308",
		"-1.7976931348623157e+308",
		"9007199254740992",
		"-9007199254740992",
		"295147905179352830000",
		"9.999999999999997e+22",
		"1e+23",
		"1.0000000000000001e+23",
		"999999999999999700000",
		"999999999999999900000",
		"1e+21",
		"9.999999999999997e-7",
		"0.000001",
		"333333333.3333332",
		"333333333.33333325",
		"333333333.3333333",
		"333333333.3333334",
		"333333333.33333343",
		"-0.0000033333333333333333",
		"1424953923781206.2",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
		assert_text(literals[i], literals[i]);
}

static void grows_the_output_for_numbers_that_grow(void **state)
{
	struct buffer input = {0}, expected = {0};
	struct canonical flags = {0};

	(void)state;
	append_text(&input, "[");
	append_times(&input, "1e20,", 5000);
	append_text(&input, "\"end\"]");
	append_text(&expected, "[");
	append_times(&expected, "100000000000000000000,", 5000);
	append_text(&expected, "\"end\"]");
	assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
	buffer_done(&input);
	buffer_done(&expected);
}

static void takes_a_number_of_a_hundred_thousand_digits(void **state)
{
	struct buffer input = {0}, expected = {0};
	struct canonical flags = {0};

	(void)state;
	append_text(&input, "0.");
	append_times(&input, "0", 100000);
	append_times(&input, "7", 100000);
	append_text(&expected, "7.");
	append_times(&expected, "7", 99999);
	append_text(&expected, "e-100001");
	assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
	buffer_done(&input);
	buffer_done(&expected);
}

static void refuses_what_is_not_a_json_number(void **state)
{
	static const char *const literals[] = {"01",  "-",   "-a", "1.",    "1.e5", "1e",
					       "1e+", "-01", "00", "1.5e-", "[-]"};

	(void)state;
	for (size_t i = 0; i < sizeof(literals) / sizeof(literals[0]); i++)
		assert_refused(literals[i], "bad number");
	assert_refused("+1", "not a JSON value");
	assert_refused(".5", "not a JSON value");
	assert_refused("0x10", "text after the value");
	assert_refused("1_000", "text after the value");
}

/* ---- strings ---- */

static void writes_minimal_escapes(void **state)
{
	(void)state;
	assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
	assert_text("\"\\u0022\\u005c\\u002F\\u0008\\u000C\\u000a\\u000d\\u0009\"",
		    "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
	assert_text("\"\\u0000\\u000B\\u000e\\u001F\\u0020\\u007f\"",
		    "\"\\u0000\\u000b\\u000e\\u001f \x7f\"");
}

static void writes_escaped_characters_as_utf8(void **state)
{
	(void)state;
	assert_text("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00\\uffff\"",
		    "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbf\"");
	assert_text("\"\\ud800\\udc00\\udbff\\udfff\"", "\"\xf0\x90\x80\x80\xf4\x8f\xbf\xbf\"");
}

static void does_not_normalise_unicode(void **state)
{
	(void)state;
	assert_text("[\"e\xcc\x81\",\"\xc3\xa9\"]", "[\"e\xcc\x81\",\"\xc3\xa9\"]");
}

static void keeps_a_lone_surrogate_as_an_escape(void **state)
{
	static const struct {
		const char *input, *expected;
	} cases[] = {
		{"\"\\ud800\"", "\"\\ud800\""},
		{"\"\\uDFFF\"", "\"\\udfff\""},
		{"\"\\uD83Dx\"", "\"\\ud83dx\""},
		{"\"\\ud83d\\ud83d\\ude00\"", "\"\\ud83d\xf0\x9f\x98\x80\""},
		{"\"\\ude00\\ud83d\"", "\"\\ude00\\ud83d\""},
		{"\"\\ud83d\\n\"", "\"\\ud83d\\n\""},
		{"\"\\ud83d\\ue000\"", "\"\\ud83d\xee\x80\x80\""},
		{"\"\\udc00\\udc00\"", "\"\\udc00\\udc00\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct canonical flags = {0};

		assert_bytes(text_of(cases[i].input), text_of(cases[i].expected), &flags);
		assert_true(flags.lone_surrogate);
	}
}

/* Escapes, quotes and foreign letters at each place of the eight bytes that are looked at together. */
static void finds_special_bytes_at_every_place(void **state)
{
	(void)state;
	for (size_t before = 0; before < 20; before++) {
		struct buffer input = {0}, expected = {0};
		struct canonical flags = {0};

		append_text(&input, "\"");
		append_times(&input, "x", before);
		append_text(&input, "\\u0041\xc3\xbf\\n!#[]\x7f~\"");
		append_text(&expected, "\"");
		append_times(&expected, "x", before);
		append_text(&expected, "A\xc3\xbf\\n!#[]\x7f~\"");
		assert_bytes(buffer_bytes(&input), buffer_bytes(&expected), &flags);
		buffer_clear(&input);
		append_text(&input, "\"");
		append_times(&input, "x", before);
		append_text(&input, "\x1f and then more text\"");
		assert_refused_bytes(buffer_bytes(&input), "control character in a string");
		buffer_done(&input);
		buffer_done(&expected);
	}
}

static void refuses_bad_escapes(void **state)
{
	(void)state;
	assert_refused("\"\\x41\"", "bad escape");
	assert_refused("\"\\'\"", "bad escape");
	assert_refused("\"\\u12g4\"", "bad escape");
	assert_refused("\"\\u12", "bad escape");
	assert_refused("\"\\U0041\"", "bad escape");
	assert_refused("\"\\", "string not closed");
}

static void refuses_strings_that_do_not_end(void **state)
{
	(void)state;
	assert_refused("\"", "string not closed");
	assert_refused("\"abcdefgh", "string not closed");
	assert_refused("{\"abc", "string not closed");
	assert_refused("\"line\nbreak\"", "control character in a string");
	assert_refused_bytes(BYTES("\"nul\0nul\""), "control character in a string");
}

static void refuses_what_is_not_utf8(void **state)
{
	static const char *const texts[] = {
		"\"\xff\"",
		"\"\x80\"",
		"\"\xc3\"",
		"\"\xc3(\"",
		"\"\xc0\xaf\"",
		"\"\xe0\x80\xaf\"",
		"\"\xed\xa0\x80\"",
		"\"\xf4\x90\x80\x80\"",
		"\"\xf8\x88\x80\x80\x80\"",
		"\"\xe2\x82",
		"\"plain text before\xe2\x28\xa1\"",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_refused(texts[i], "not UTF-8");
}

static void refuses_utf16_and_utf32_texts(void **state)
{
	(void)state;
	assert_refused_bytes(BYTES("\xff\xfe{\0}\0"), "not a JSON value");
	assert_refused_bytes(BYTES("{\0}\0"), "member name missing");
	assert_refused_bytes(BYTES("\0{\0}"), "not a JSON value");
	assert_refused_bytes(BYTES("\0\0\0{\0\0\0}"), "not a JSON value");
}

static void drops_a_byte_order_mark(void **state)
{
	(void)state;
	assert_text("\xef\xbb\xbf{\"a\":1}", "{\"a\":1}");
	assert_refused("\xef\xbb\xbf\xef\xbb\xbf{}", "not a JSON value");
	assert_refused("\xef\xbb\xbf", "not a JSON value");
}

/* ---- what is no JSON text ---- */

static void refuses_nan_infinity_and_other_words(void **state)
{
	static const char *const texts[] = {"NaN", "Infinity",	"[NaN]", "'x'", "True", "nul",
					    "tru", "undefined", "",	 " ",	"[,1]", "]"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_refused(texts[i], "not a JSON value");
	assert_refused("-Infinity", "bad number");
	assert_refused("nullx", "text after the value");
	assert_refused_bytes((struct bytes){0}, "not a JSON value");
}

static void refuses_trailing_commas(void **state)
{
	(void)state;
	assert_refused("[1,]", "not a JSON value");
	assert_refused("{\"a\":1,}", "member name missing");
}

static void refuses_comments(void **state)
{
	(void)state;
	assert_refused("/* c */{}", "not a JSON value");
	assert_refused("{}// c", "text after the value");
	assert_refused("[1,# c\n2]", "not a JSON value");
}

static void refuses_two_values(void **state)
{
	(void)state;
	assert_refused("{}{}", "text after the value");
	assert_refused("{}\n{}", "text after the value");
	assert_refused("1 2", "text after the value");
	assert_refused_bytes(BYTES("{}\0"), "text after the value");
}

static void refuses_broken_objects_and_arrays(void **state)
{
	(void)state;
	assert_refused("{", "member name missing");
	assert_refused("{a:1}", "member name missing");
	assert_refused("{1:1}", "member name missing");
	assert_refused("{\"a\"}", "colon missing");
	assert_refused("{\"a\" 1}", "colon missing");
	assert_refused("{\"a\":}", "not a JSON value");
	assert_refused("{\"a\":1", "comma or end missing");
	assert_refused("{\"a\":1]", "comma or end missing");
	assert_refused("[1}", "comma or end missing");
	assert_refused("[1 2]", "comma or end missing");
	assert_refused("[", "not a JSON value");
	assert_refused("[[]", "comma or end missing");
}

static void takes_nesting_up_to_the_limit_only(void **state)
{
	struct buffer input = {0};
	struct canonical flags = {0};

	(void)state;
	append_times(&input, "[", LIMIT_JSON_DEPTH);
	append_times(&input, "]", LIMIT_JSON_DEPTH);
	assert_bytes(buffer_bytes(&input), buffer_bytes(&input), &flags);
	buffer_clear(&input);
	append_times(&input, "[", LIMIT_JSON_DEPTH + 1);
	append_times(&input, "]", LIMIT_JSON_DEPTH + 1);
	assert_refused_bytes(buffer_bytes(&input), "nesting too deep");
	buffer_clear(&input);
	append_times(&input, "{\"a\":", LIMIT_JSON_DEPTH + 1);
	assert_refused_bytes(buffer_bytes(&input), "nesting too deep");
	buffer_done(&input);
}

static void refuses_eight_mebibytes_of_open_brackets(void **state)
{
	struct bytes input = {malloc(LIMIT_BODY_BYTES), LIMIT_BODY_BYTES};

	(void)state;
	assert_non_null(input.data);
	memset((void *)input.data, '[', input.size);
	assert_refused_bytes(input, "nesting too deep");
	free((void *)input.data);
}

/* Memory that a cut text would be read beyond is a valgrind or ASan error: each prefix lies in a block of its own. */
static void reads_no_byte_beyond_a_cut_text(void **state)
{
	const struct bytes whole = BYTES(
		"{\"k\\n\xc3\xa9\":[1.50,-2e+3,true,false,null,\"\\ud83d\\ude00\xf0\x9f\x98\x80 text of some length\"],\"b\":{}}");

	(void)state;
	for (size_t size = 1; size < whole.size; size++) {
		struct canonical flags = {0};
		struct buffer out = {0};
		uint8_t *cut = malloc(size);

		assert_non_null(cut);
		memcpy(cut, whole.data, size);
		assert_non_null(canonical_json((struct bytes){cut, size}, &flags, &out));
		assert_int_equal(out.size, 0);
		buffer_done(&out);
		canonical_done(&flags);
		free(cut);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_space_out_between_tokens_only),
		cmocka_unit_test(keeps_every_kind_of_value),
		cmocka_unit_test(does_not_mix_up_types),
		cmocka_unit_test(keeps_the_order_of_arrays),
		cmocka_unit_test(appends_to_what_the_buffer_holds),
		cmocka_unit_test(sorts_members_at_every_level),
		cmocka_unit_test(sorts_inside_an_object_that_is_in_order),
		cmocka_unit_test(sorts_a_prefix_before_what_it_begins),
		cmocka_unit_test(sorts_members_by_utf16_code_units),
		cmocka_unit_test(sorts_escaped_names_by_what_they_stand_for),
		cmocka_unit_test(sorts_a_lone_surrogate_where_its_code_unit_belongs),
		cmocka_unit_test(keeps_all_members_of_one_name_in_their_order),
		cmocka_unit_test(does_not_call_a_name_on_two_levels_a_duplicate),
		cmocka_unit_test(sorts_objects_of_any_size),
		cmocka_unit_test(keeps_members_of_one_name_in_order_in_large_objects),
		cmocka_unit_test(sorts_a_million_members_that_stand_backwards),
		cmocka_unit_test(sorts_objects_that_nest_to_the_limit),
		cmocka_unit_test(tells_neighbours_of_2_53_apart),
		cmocka_unit_test(keeps_all_digits_of_a_long_integer),
		cmocka_unit_test(spells_1900_one_way),
		cmocka_unit_test(spells_zero_one_way),
		cmocka_unit_test(keeps_all_digits_of_a_fraction),
		cmocka_unit_test(keeps_exponents_beyond_a_double),
		cmocka_unit_test(keeps_the_literal_of_an_exponent_over_12_digits),
		cmocka_unit_test(lays_numbers_out_like_ecmascript),
		cmocka_unit_test(agrees_with_jcs_on_shortest_literals),
		cmocka_unit_test(grows_the_output_for_numbers_that_grow),
		cmocka_unit_test(takes_a_number_of_a_hundred_thousand_digits),
		cmocka_unit_test(refuses_what_is_not_a_json_number),
		cmocka_unit_test(writes_minimal_escapes),
		cmocka_unit_test(writes_escaped_characters_as_utf8),
		cmocka_unit_test(does_not_normalise_unicode),
		cmocka_unit_test(keeps_a_lone_surrogate_as_an_escape),
		cmocka_unit_test(finds_special_bytes_at_every_place),
		cmocka_unit_test(refuses_bad_escapes),
		cmocka_unit_test(refuses_strings_that_do_not_end),
		cmocka_unit_test(refuses_what_is_not_utf8),
		cmocka_unit_test(refuses_utf16_and_utf32_texts),
		cmocka_unit_test(drops_a_byte_order_mark),
		cmocka_unit_test(refuses_nan_infinity_and_other_words),
		cmocka_unit_test(refuses_trailing_commas),
		cmocka_unit_test(refuses_comments),
		cmocka_unit_test(refuses_two_values),
		cmocka_unit_test(refuses_broken_objects_and_arrays),
		cmocka_unit_test(takes_nesting_up_to_the_limit_only),
		cmocka_unit_test(refuses_eight_mebibytes_of_open_brackets),
		cmocka_unit_test(reads_no_byte_beyond_a_cut_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
