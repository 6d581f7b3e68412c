/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Forms and queries: order, spelling, and what stays apart.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "canonical.h"

/* Also that canonical text is its own canonical text. */
static void assert_bytes(struct bytes input, const char *expected)
{
	struct buffer out = {0}, again = {0};

	assert_null(canonical_form(input, &out));
	assert_true(bytes_equal(buffer_bytes(&out), bytes_of_string(expected)));
	assert_null(canonical_form(buffer_bytes(&out), &again));
	assert_true(bytes_equal(buffer_bytes(&again), buffer_bytes(&out)));
	buffer_done(&out);
	buffer_done(&again);
}

static void assert_form(const char *input, const char *expected)
{
	assert_bytes(bytes_of_string(input), expected);
}

static void sorts_parameters_by_name(void **state)
{
	(void)state;
	assert_form("b=2&a=1&c=3", "a=1&b=2&c=3");
	assert_form("aa=1&a=2&=3", "=3&a=2&aa=1");
}

static void keeps_the_order_of_equal_names(void **state)
{
	(void)state;
	assert_form("a[]=1&b=0&a[]=2", "a%5B%5D=1&a%5B%5D=2&b=0");
	assert_form("a[]=2&b=0&a[]=1", "a%5B%5D=2&a%5B%5D=1&b=0");
	assert_form("x=9&%78=1&x=5", "x=9&x=1&x=5");
}

/* In what they stand for, "!" (0x21) comes before "a" (0x61) and "~" (0x7e) before 0xc3. */
static void sorts_names_by_decoded_bytes(void **state)
{
	(void)state;
	assert_form("a=1&%21=2&%C3%A9=3&~=4", "%21=2&a=1&~=4&%C3%A9=3");
	assert_form("b=1&%61=2", "a=2&b=1");
}

static void splits_at_the_first_equals_sign(void **state)
{
	(void)state;
	assert_form("a=b=c", "a=b%3Dc");
	assert_form("a==", "a=%3D");
}

static void takes_a_missing_value_for_an_empty_one(void **state)
{
	(void)state;
	assert_form("a", "a=");
	assert_form("a=", "a=");
	assert_form("b&a", "a=&b=");
}

static void skips_empty_pieces(void **state)
{
	(void)state;
	assert_form("&&a=1&&b=2&", "a=1&b=2");
	assert_form("&", "");
	assert_form("", "");
	assert_form("=", "=");
}

static void reads_plus_as_a_space(void **state)
{
	(void)state;
	assert_form("a=x+y", "a=x%20y");
	assert_form("a=x%20y", "a=x%20y");
	assert_form("a=x%2By", "a=x%2By");
}

static void spells_every_byte_one_way(void **state)
{
	(void)state;
	assert_form("a=%7e%2D%2e%5F%41", "a=~-._A");
	assert_form("a=%c3%a9/:@", "a=%C3%A9%2F%3A%40");
	assert_form("a=\xc3\xa9", "a=%C3%A9");
	assert_bytes(BYTES("a=\0\xff"), "a=%00%FF");
	assert_form("a=%00", "a=%00");
}

static void keeps_bad_escapes_as_they_are(void **state)
{
	(void)state;
	assert_form("a=%zz", "a=%25zz");
	assert_form("a=%4", "a=%254");
	assert_form("a=%", "a=%25");
	assert_form("a=100%&b=%+1", "a=100%25&b=%25%201");
}

static void keeps_an_encoded_separator_inside_its_value(void **state)
{
	(void)state;
	assert_form("a=1%26b=2", "a=1%26b%3D2");
}

static void sorts_many_parameters(void **state)
{
	struct buffer input = {0}, out = {0};
	char pair[32];

	(void)state;
	for (unsigned int i = 0; i < 5000; i++) {
		snprintf(pair, sizeof(pair), "%sk%04u=%u", i ? "&" : "", 4999 - i, i);
		assert_int_equal(buffer_append(&input, bytes_of_string(pair)), 0);
	}
	assert_null(canonical_form(buffer_bytes(&input), &out));
	assert_int_equal(out.size, input.size);
	assert_true(
		bytes_starts_with(buffer_bytes(&out), BYTES("k0000=4999&k0001=4998&k0002=4997&")));
	buffer_done(&input);
	buffer_done(&out);
}

static void appends_to_what_the_buffer_holds(void **state)
{
	struct buffer out = {0};

	(void)state;
	assert_int_equal(buffer_append(&out, BYTES("before ")), 0);
	assert_null(canonical_form(BYTES("b=1&a=2"), &out));
	assert_true(bytes_equal(buffer_bytes(&out), BYTES("before a=2&b=1")));
	buffer_done(&out);
}

static void treats_a_query_like_a_form(void **state)
{
	struct buffer out = {0};

	(void)state;
	assert_null(canonical_query(BYTES("to=b+c&from=%61"), &out));
	assert_true(bytes_equal(buffer_bytes(&out), BYTES("from=a&to=b%20c")));
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sorts_parameters_by_name),
		cmocka_unit_test(keeps_the_order_of_equal_names),
		cmocka_unit_test(sorts_names_by_decoded_bytes),
		cmocka_unit_test(splits_at_the_first_equals_sign),
		cmocka_unit_test(takes_a_missing_value_for_an_empty_one),
		cmocka_unit_test(skips_empty_pieces),
		cmocka_unit_test(reads_plus_as_a_space),
		cmocka_unit_test(spells_every_byte_one_way),
		cmocka_unit_test(keeps_bad_escapes_as_they_are),
		cmocka_unit_test(keeps_an_encoded_separator_inside_its_value),
		cmocka_unit_test(sorts_many_parameters),
		cmocka_unit_test(appends_to_what_the_buffer_holds),
		cmocka_unit_test(treats_a_query_like_a_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
