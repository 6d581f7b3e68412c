/* SPDX-License-Identifier: BSD-2-Clause */
/* Every byte: what it is in ASCII, and texts of hex digits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "ascii.h"
#include "digest.h"

static void a_byte_is_what_the_standards_call_it(void **state)
{
	static const char tokens[] = "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~";
	static const char digits[] = "0123456789abcdef", capitals[] = "0123456789ABCDEF";

	(void)state;
	for (int c = 0; c < 256; c++) {
		const char *digit = c ? strchr(digits, c) : NULL, *capital = c ? strchr(capitals, c) : NULL;
		int value = digit ? (int)(digit - digits) : capital ? (int)(capital - capitals) : -1;

		assert_int_equal(ascii_hex_value((uint8_t)c), value);
		assert_int_equal(ascii_is_token((uint8_t)c), c && strchr(tokens, c));
		assert_int_equal(ascii_is_ows((uint8_t)c), c && strchr(" \t", c));
		assert_int_equal(ascii_is_json_space((uint8_t)c), c && strchr(" \t\r\n", c));
		assert_int_equal(ascii_lower((uint8_t)c), c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
}

static void hex_comes_back_and_nothing_else_does(void **state)
{
	static const char *const wrong[] = {"00ffA0", "00ff", "00ffa", "00ffa00", "00ffg0", "00ff 0", "+0ffa0"};
	uint8_t bytes[3] = {0};
	char text[7];

	(void)state;
	assert_true(hex_read(BYTES("00ffa0"), bytes, 3));
	hex_of(bytes, 3, text);
	assert_string_equal(text, "00ffa0");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_false(hex_read(bytes_of_string(wrong[i]), bytes, 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_byte_is_what_the_standards_call_it),
		cmocka_unit_test(hex_comes_back_and_nothing_else_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
