/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SHA-256 against published vectors, and that fields cannot run together.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "digest.h"

static void assert_hex(const struct digest *digest, const char *expected)
{
	char hex[2 * DIGEST_BYTES + 1];

	hex_of(digest->byte, DIGEST_BYTES, hex);
	assert_string_equal(hex, expected);
}

/* NIST FIPS 180-4 examples. */
static void agrees_with_published_vectors(void **state)
{
	struct digest digest;

	(void)state;
	assert_int_equal(digest_of((struct bytes){0}, &digest), 0);
	assert_hex(&digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	assert_int_equal(digest_of(BYTES("abc"), &digest), 0);
	assert_hex(&digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_int_equal(
		digest_of(BYTES("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
			  &digest),
		0);
	assert_hex(&digest, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

static void gives_one_hash_however_the_bytes_are_cut(void **state)
{
	const struct bytes whole = BYTES("a body that arrives in two pieces");
	struct digest_state *hash = digest_state_new();
	struct digest expected, digest;

	(void)state;
	assert_non_null(hash);
	assert_int_equal(digest_of(whole, &expected), 0);
	for (size_t cut = 0; cut <= whole.size; cut++) {
		struct bytes rest = whole, front = bytes_take(&rest, cut);

		assert_int_equal(digest_start(hash), 0);
		assert_int_equal(digest_add(hash, front), 0);
		assert_int_equal(digest_add(hash, rest), 0);
		assert_int_equal(digest_finish(hash, &digest), 0);
		assert_true(digest_equal(&digest, &expected));
	}
	digest_state_free(hash);
}

static void forgets_what_was_added_before_a_start(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct digest digest;

	(void)state;
	assert_non_null(hash);
	assert_int_equal(digest_add(hash, BYTES("left over")), 0);
	assert_int_equal(digest_start(hash), 0);
	assert_int_equal(digest_add(hash, BYTES("abc")), 0);
	assert_int_equal(digest_finish(hash, &digest), 0);
	assert_hex(&digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	digest_state_free(hash);
}

static void is_ready_without_a_first_start(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct digest digest;

	(void)state;
	assert_non_null(hash);
	assert_int_equal(digest_finish(hash, &digest), 0);
	assert_hex(&digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	digest_state_free(hash);
	digest_state_free(NULL);
}

static void writes_a_number_as_eight_bytes_little_endian(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct digest digest, expected;

	(void)state;
	assert_int_equal(digest_start(hash), 0);
	assert_int_equal(digest_add_number(hash, 0x0102030405060708), 0);
	assert_int_equal(digest_finish(hash, &digest), 0);
	assert_int_equal(digest_of(BYTES("\x08\x07\x06\x05\x04\x03\x02\x01"), &expected), 0);
	assert_true(digest_equal(&digest, &expected));
	digest_state_free(hash);
}

static void fields_of(struct digest_state *hash, const char *first, const char *second,
		      struct digest *ret_digest)
{
	assert_int_equal(digest_start(hash), 0);
	assert_int_equal(digest_add_field(hash, bytes_of_string(first)), 0);
	assert_int_equal(digest_add_field(hash, bytes_of_string(second)), 0);
	assert_int_equal(digest_finish(hash, ret_digest), 0);
}

static void tells_where_a_field_ends(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct digest a, b, c;

	(void)state;
	assert_non_null(hash);
	fields_of(hash, "ab", "c", &a);
	fields_of(hash, "a", "bc", &b);
	fields_of(hash, "abc", "", &c);
	assert_false(digest_equal(&a, &b));
	assert_false(digest_equal(&a, &c));
	assert_false(digest_equal(&b, &c));
	assert_int_equal(digest_of(BYTES("\2\0\0\0\0\0\0\0ab\1\0\0\0\0\0\0\0c"), &b), 0);
	assert_true(digest_equal(&a, &b));
	digest_state_free(hash);
}

static void compares_every_byte(void **state)
{
	struct digest a = {0}, b = {0};

	(void)state;
	assert_true(digest_equal(&a, &b));
	b.byte[DIGEST_BYTES - 1] = 1;
	assert_false(digest_equal(&a, &b));
}

static void writes_hex_in_lower_case(void **state)
{
	const uint8_t bytes[] = {0x00, 0x9a, 0xff, 0x10};
	char text[9];

	(void)state;
	hex_of(bytes, 4, text);
	assert_string_equal(text, "009aff10");
	hex_of(bytes, 0, text);
	assert_string_equal(text, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_published_vectors),
		cmocka_unit_test(gives_one_hash_however_the_bytes_are_cut),
		cmocka_unit_test(forgets_what_was_added_before_a_start),
		cmocka_unit_test(is_ready_without_a_first_start),
		cmocka_unit_test(writes_a_number_as_eight_bytes_little_endian),
		cmocka_unit_test(tells_where_a_field_ends),
		cmocka_unit_test(compares_every_byte),
		cmocka_unit_test(writes_hex_in_lower_case),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
