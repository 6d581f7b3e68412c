/* SPDX-License-Identifier: BSD-2-Clause */
/* Which parts of a path, a query and an authority are hidden, and that nothing else is. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "limits.h"
#include "secret.h"

static struct fingerprinter *fingerprinter;

static int set_up(void **state)
{
	static const uint8_t salt[32] = {1, 2, 3};

	(void)state;
	fingerprinter = fingerprinter_new(salt);
	return fingerprinter ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	fingerprinter_free(fingerprinter);
	return 0;
}

typedef int mask_function(struct fingerprinter *masker, struct bytes text, struct buffer *out);

/* In expected, {x} stands for the mask of x. */
static void assert_masked(mask_function *mask, const char *text, const char *expected)
{
	struct buffer out = {0}, wanted = {0};

	while (*expected) {
		const char *end = *expected == '{' ? strchr(expected, '}') : NULL;
		char masked[18];

		if (!end) {
			assert_int_equal(buffer_append_byte(&wanted, (uint8_t)*expected++), 0);
			continue;
		}
		secret_text(
			fingerprinter,
			(struct bytes){(const uint8_t *)expected + 1, (size_t)(end - expected - 1)},
			masked);
		assert_int_equal(masked[0], '~');
		assert_int_equal(buffer_append(&wanted, bytes_of_string(masked)), 0);
		expected = end + 1;
	}
	assert_int_equal(buffer_append_byte(&wanted, 0), 0);
	assert_int_equal(mask(fingerprinter, bytes_of_string(text), &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, (char *)wanted.data);
	buffer_done(&out);
	buffer_done(&wanted);
}

static void masks_the_value_of_every_secret_name_and_no_other(void **state)
{
	(void)state;
	assert_masked(secret_mask_query, "", "");
	assert_masked(secret_mask_query, "limit=10&after=x%20y", "limit=10&after=x%20y");
	assert_masked(secret_mask_query, "key=AIza", "key={AIza}");
	assert_masked(secret_mask_query, "api_key=s1&limit=2", "api_key={s1}&limit=2");
	assert_masked(secret_mask_query, "a=1&access_token=s2&b=2", "a=1&access_token={s2}&b=2");
	assert_masked(secret_mask_query, "token=s3&token=s3", "token={s3}&token={s3}");
	assert_masked(secret_mask_query, "sig=s4&signature=s5", "sig={s4}&signature={s5}");
	assert_masked(secret_mask_query, "X-Amz-Signature=s6&X-Amz-Date=d",
		      "X-Amz-Signature={s6}&X-Amz-Date=d");
	assert_masked(secret_mask_query, "X-Amz-Credential=s7/a", "X-Amz-Credential={s7/a}");
	assert_masked(secret_mask_query,
		      "X-Amz-Security-Token=s8==", "X-Amz-Security-Token={s8==}");
	assert_masked(secret_mask_query, "code=s9&password=s10", "code={s9}&password={s10}");
	assert_masked(secret_mask_query, "keys=1&monkey=2&key2=3&tokens=4&keyword=5",
		      "keys=1&monkey=2&key2=3&tokens=4&keyword=5");
}

static void compares_names_decoded_and_without_case(void **state)
{
	(void)state;
	assert_masked(secret_mask_query, "TOKEN=a&Api_Key=b&x-amz-signature=c",
		      "TOKEN={a}&Api_Key={b}&x-amz-signature={c}");
	assert_masked(secret_mask_query, "t%6Fken=a&%4BEY=b&api%5fkey=c",
		      "t%6Fken={a}&%4BEY={b}&api%5fkey={c}");
	assert_masked(secret_mask_query, "t%6ken=a&tok%65=b&%=c", "t%6ken=a&tok%65=b&%=c");
}

static void masks_every_name_that_is_known_to_hold_a_credential(void **state)
{
	static const char *const names[] = {
		"key", "apikey", "api-key", "access_key", "secret_key", "private_key", "subscription-key",
		"token", "access_token", "refresh_token", "id_token", "auth_token", "session_token",
		"sig", "signature", "X-Amz-Signature", "X-Amz-Credential", "X-Amz-Security-Token",
		"X-Goog-Signature", "X-Goog-Credential", "code", "code_verifier", "password", "passwd", "pwd",
		"secret", "client_secret", "client_assertion", "auth", "authorization", "jwt", "session",
		"session_id", "sessionid",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char text[64], expected[64];

		snprintf(text, sizeof(text), "a=1&%s=s&b=2", names[i]);
		snprintf(expected, sizeof(expected), "a=1&%s={s}&b=2", names[i]);
		assert_masked(secret_mask_query, text, expected);
	}
}

static void masks_a_credential_of_something(void **state)
{
	(void)state;
	assert_masked(secret_mask_query, "token[]=a&token[0]=b&user[token]=c&user.token=d",
		      "token[]={a}&token[0]={b}&user[token]={c}&user.token={d}");
	assert_masked(secret_mask_query, "user%5Btoken%5D=a&?%20token=b&+token+=c", "user%5Btoken%5D={a}&?%20token={b}&+token+={c}");
	assert_masked(secret_mask_query, "user[name]=a&.=b&[]=c&a_token_that_is_longer_than_any=d&tokens.max=e",
		      "user[name]=a&.=b&[]=c&a_token_that_is_longer_than_any=d&tokens.max=e");
}

static void hides_the_whole_value_whatever_it_holds(void **state)
{
	(void)state;
	assert_masked(secret_mask_query, "token=a=b;c?d/e&x=1", "token={a=b;c?d/e}&x=1");
	assert_masked(secret_mask_query, "x=1;token=a;y=2&z=3", "x=1;token={a;y=2}&z=3");
	assert_masked(secret_mask_query, "token=&key&=x&&", "token=&key&=x&&");
}

static void masks_bot_segments_that_another_segment_follows(void **state)
{
	(void)state;
	assert_masked(secret_mask_path, "/bot123:ABC/sendMessage", "/{bot123:ABC}/sendMessage");
	assert_masked(secret_mask_path, "/file/bot123:ABC/a.txt", "/file/{bot123:ABC}/a.txt");
	assert_masked(secret_mask_path, "/%62ot123:ABC/x", "/{%62ot123:ABC}/x");
	assert_masked(secret_mask_path, "/bot123", "/bot123");
	assert_masked(secret_mask_path, "/robot/x", "/robot/x");
}

static void masks_the_three_segments_after_services(void **state)
{
	(void)state;
	assert_masked(secret_mask_path, "/services/T0/B1/x2", "/services/{T0}/{B1}/{x2}");
	assert_masked(secret_mask_path, "/services/T0/B1/x2/", "/services/{T0}/{B1}/{x2}/");
	assert_masked(secret_mask_path, "/hooks/services/T0/B1/x2/more",
		      "/hooks/services/{T0}/{B1}/{x2}/more");
	assert_masked(secret_mask_path, "/services//T0//B1/x2", "/services//{T0}//{B1}/{x2}");
	assert_masked(secret_mask_path, "/services/T0/B1", "/services/T0/B1");
	assert_masked(secret_mask_path, "/services/T0/B1/", "/services/T0/B1/");
	assert_masked(secret_mask_path, "/services2/a/b/c", "/services2/a/b/c");
}

static void leaves_other_paths_as_they_are(void **state)
{
	(void)state;
	assert_masked(secret_mask_path, "", "");
	assert_masked(secret_mask_path, "*", "*");
	assert_masked(secret_mask_path, "/", "/");
	assert_masked(secret_mask_path, "/v1/charges//x/", "/v1/charges//x/");
}

static void cuts_a_long_target_after_it_was_masked(void **state)
{
	struct buffer text = {0}, out = {0};

	(void)state;
	while (text.size < LIMIT_PATH_BYTES - 1)
		assert_int_equal(buffer_append_byte(&text, 'a'), 0);
	assert_int_equal(buffer_append(&text, BYTES("\xc3\xa9")), 0);
	assert_int_equal(buffer_append(&out, BYTES("before ")), 0);
	assert_int_equal(secret_mask_path(fingerprinter, buffer_bytes(&text), &out), 0);
	assert_int_equal(out.size, 7 + LIMIT_PATH_BYTES - 1 + 3);
	assert_memory_equal(out.data + out.size - 5, "aa...", 5);

	buffer_clear(&out);
	text.size--;
	assert_int_equal(secret_mask_query(fingerprinter, buffer_bytes(&text), &out), 0);
	assert_int_equal(out.size, LIMIT_PATH_BYTES);
	buffer_done(&text);
	buffer_done(&out);
}

static void strips_userinfo_from_an_authority(void **state)
{
	(void)state;
	assert_true(bytes_equal(secret_strip_userinfo(BYTES("user:pw@host:80")), BYTES("host:80")));
	assert_true(bytes_equal(secret_strip_userinfo(BYTES("user:p@w@host")), BYTES("host")));
	assert_true(bytes_equal(secret_strip_userinfo(BYTES("host:80")), BYTES("host:80")));
	assert_true(bytes_equal(secret_strip_userinfo(BYTES("")), BYTES("")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(masks_the_value_of_every_secret_name_and_no_other),
		cmocka_unit_test(compares_names_decoded_and_without_case),
		cmocka_unit_test(masks_every_name_that_is_known_to_hold_a_credential),
		cmocka_unit_test(masks_a_credential_of_something),
		cmocka_unit_test(hides_the_whole_value_whatever_it_holds),
		cmocka_unit_test(masks_bot_segments_that_another_segment_follows),
		cmocka_unit_test(masks_the_three_segments_after_services),
		cmocka_unit_test(leaves_other_paths_as_they_are),
		cmocka_unit_test(cuts_a_long_target_after_it_was_masked),
		cmocka_unit_test(strips_userinfo_from_an_authority),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
