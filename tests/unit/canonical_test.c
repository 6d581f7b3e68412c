/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which form a body gets, by its content type alone, and how it falls back to
 * raw. The forms have tests of their own.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "canonical.h"

static void assert_made(struct canonical *canonical, const char *content_type, const char *body,
			enum canonical_kind kind, const char *text)
{
	assert_int_equal(
		canonical_make(bytes_of_string(content_type), bytes_of_string(body), canonical), 0);
	assert_int_equal(canonical->kind, kind);
	assert_true(bytes_equal(buffer_bytes(&canonical->text), bytes_of_string(text)));
	assert_null(canonical->why);
}

static void assert_kind(const char *content_type, const char *body, enum canonical_kind kind,
			const char *text)
{
	struct canonical canonical = {0};

	assert_made(&canonical, content_type, body, kind, text);
	canonical_done(&canonical);
}

static void assert_fell_back(const char *content_type, const char *body, const char *why)
{
	struct canonical canonical = {0};

	assert_int_equal(canonical_make(bytes_of_string(content_type), bytes_of_string(body),
					&canonical),
			 0);
	assert_int_equal(canonical.kind, CANONICAL_RAW);
	assert_int_equal(canonical.text.size, 0);
	assert_non_null(canonical.why);
	assert_string_equal(canonical.why, why);
	assert_false(canonical.duplicate_key);
	assert_false(canonical.lone_surrogate);
	canonical_done(&canonical);
}

static void names_every_kind(void **state)
{
	(void)state;
	assert_string_equal(canonical_kind_name(CANONICAL_NONE), "none");
	assert_string_equal(canonical_kind_name(CANONICAL_JSON), "json");
	assert_string_equal(canonical_kind_name(CANONICAL_FORM), "form");
	assert_string_equal(canonical_kind_name(CANONICAL_MULTIPART), "multipart");
	assert_string_equal(canonical_kind_name(CANONICAL_NDJSON), "ndjson");
	assert_string_equal(canonical_kind_name(CANONICAL_RAW), "raw");
}

static void takes_these_types_for_json(void **state)
{
	static const char *const types[] = {
		"application/json",
		"text/json",
		"application/json-rpc",
		"application/x-amz-json-1.0",
		"application/x-amz-json-1.1",
		"application/vnd.api+json",
		"application/problem+JSON",
		"APPLICATION/JSON",
		" application/json ",
		"application/json;charset=utf-8",
		"application/json; charset=\"UTF-8\"",
		"application/json ; charset = utf8",
		"application/json; charset=us-ascii",
		"application/json; profile=\"a;charset=latin1\"",
		"application/json;",
		"application/json; odata",
		"application/json; charset=",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_kind(types[i], "{\"b\": 1, \"a\": 2}", CANONICAL_JSON, "{\"a\":2,\"b\":1}");
}

static void takes_this_type_for_a_form(void **state)
{
	(void)state;
	assert_kind("application/x-www-form-urlencoded", "b=1&a=2", CANONICAL_FORM, "a=2&b=1");
	assert_kind("application/x-www-form-urlencoded; charset=UTF-8", "b=1&a=2", CANONICAL_FORM,
		    "a=2&b=1");
}

static void takes_these_types_for_ndjson(void **state)
{
	(void)state;
	assert_kind("application/x-ndjson", "{ }\n[ ]\n", CANONICAL_NDJSON, "{}\n[]");
	assert_kind("application/ndjson", "{ }\n[ ]\n", CANONICAL_NDJSON, "{}\n[]");
	assert_kind("application/jsonl; charset=utf-8", "{ }\n[ ]\n", CANONICAL_NDJSON, "{}\n[]");
}

static void finds_the_boundary_of_multipart(void **state)
{
	const char *body = "--x y\r\nContent-Disposition: form-data; name=a\r\n\r\n\r\n--x y--\r\n";
	const char *text =
		"a\t\t\t0\te3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855\n";

	(void)state;
	assert_kind("multipart/form-data; boundary=\"x y\"", body, CANONICAL_MULTIPART, text);
	assert_kind("Multipart/Form-Data; charset=utf-8; Boundary=\"x y\"; q=1", body,
		    CANONICAL_MULTIPART, text);
	assert_kind("multipart/form-data;boundary=x y", body, CANONICAL_MULTIPART, text);
	assert_fell_back("multipart/form-data", body, "multipart boundary missing");
	assert_fell_back("multipart/form-data; boundary=\"\"", body, "multipart boundary missing");
	assert_fell_back("multipart/form-data; boundary=x", body, "multipart not closed");
}

static void keeps_everything_else_raw_without_a_reason(void **state)
{
	static const char *const types[] = {
		"",
		"text/plain",
		"application/octet-stream",
		"application/protobuf",
		"application/grpc",
		"json",
		"application/jsonp",
		"multipart/mixed; boundary=b",
		"+json",
		"application/json+xml",
		"text/plain; x=application/json",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		assert_kind(types[i], "{\"b\": 1}", CANONICAL_RAW, "");
}

static void calls_an_empty_body_none_whatever_its_type(void **state)
{
	(void)state;
	assert_kind("application/json", "", CANONICAL_NONE, "");
	assert_kind("application/json; charset=latin1", "", CANONICAL_NONE, "");
	assert_kind("", "", CANONICAL_NONE, "");
}

static void falls_back_on_another_charset(void **state)
{
	(void)state;
	assert_fell_back("application/json; charset=iso-8859-1", "{}", "charset is not UTF-8");
	assert_fell_back("application/x-www-form-urlencoded; charset=windows-1252", "a=1",
			 "charset is not UTF-8");
	assert_fell_back("application/x-ndjson; CHARSET=utf-16", "{}", "charset is not UTF-8");
}

static void falls_back_with_the_reason_of_the_form(void **state)
{
	(void)state;
	assert_fell_back("application/json", "{\"a\":1,\"a\":2,\"b\":\"\\ud800\",}",
			 "member name missing");
	assert_fell_back("application/json", " ", "not a JSON value");
	assert_fell_back("application/jsonl", "{}\nNaN", "not a JSON value");
}

static void forgets_the_body_before(void **state)
{
	struct canonical canonical = {0};

	(void)state;
	assert_made(&canonical, "application/json", "{\"b\":\"\\ud800\",\"a\":0,\"a\":0}",
		    CANONICAL_JSON, "{\"a\":0,\"a\":0,\"b\":\"\\ud800\"}");
	assert_true(canonical.duplicate_key);
	assert_true(canonical.lone_surrogate);
	assert_made(&canonical, "application/json", "[1 ]", CANONICAL_JSON, "[1]");
	assert_false(canonical.duplicate_key);
	assert_false(canonical.lone_surrogate);
	assert_int_equal(canonical_make(BYTES("application/json"), BYTES("[1"), &canonical), 0);
	assert_string_equal(canonical.why, "comma or end missing");
	assert_made(&canonical, "text/plain", "x", CANONICAL_RAW, "");
	assert_made(&canonical, "application/json", "{\"b\":1,\"a\":2}", CANONICAL_JSON,
		    "{\"a\":2,\"b\":1}");
	assert_made(&canonical, "", "", CANONICAL_NONE, "");
	canonical_done(&canonical);
	canonical_done(NULL);
}

static void gives_back_the_memory_of_a_huge_body(void **state)
{
	struct canonical canonical = {0};
	struct bytes body = {malloc(6 << 20), 6 << 20};

	(void)state;
	assert_non_null(body.data);
	memset((void *)body.data, ' ', body.size);
	memcpy((void *)body.data, "{\"b\":1,\"a\":2}", 13);
	assert_int_equal(canonical_make(BYTES("application/json"), body, &canonical), 0);
	assert_int_equal(canonical.kind, CANONICAL_JSON);
	assert_made(&canonical, "application/json", "{\"b\":1,\"a\":2}", CANONICAL_JSON,
		    "{\"a\":2,\"b\":1}");
	assert_true(canonical.text.capacity + canonical.spare.capacity < 1 << 20);
	canonical_done(&canonical);
	free((void *)body.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_every_kind),
		cmocka_unit_test(takes_these_types_for_json),
		cmocka_unit_test(takes_this_type_for_a_form),
		cmocka_unit_test(takes_these_types_for_ndjson),
		cmocka_unit_test(finds_the_boundary_of_multipart),
		cmocka_unit_test(keeps_everything_else_raw_without_a_reason),
		cmocka_unit_test(calls_an_empty_body_none_whatever_its_type),
		cmocka_unit_test(falls_back_on_another_charset),
		cmocka_unit_test(falls_back_with_the_reason_of_the_form),
		cmocka_unit_test(forgets_the_body_before),
		cmocka_unit_test(gives_back_the_memory_of_a_huge_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
