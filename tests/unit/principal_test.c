/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Principals: which credentials are one caller and which are two.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "call_build.h"
#include "principal.h"

#define JWT_HEAD "eyJhbGciOiAiSFMyNTYifQ."
/* {"iss": "https://id.example", "sub": "user-1", "exp": 1} */
#define JWT_USER_1 "eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIiwgInN1YiI6ICJ1c2VyLTEiLCAiZXhwIjogMX0"
/* {"exp": 2, "sub": "user-1", "iss": "https://id.example", "x": "??>>"} */
#define JWT_USER_1_LATER                                                                           \
	"eyJleHAiOiAyLCAic3ViIjogInVzZXItMSIsICJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIiwgIngiOiAiPz8-PiJ9"
/* {"iss": "https://id.example", "sub": "user-2"} */
#define JWT_USER_2 "eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIiwgInN1YiI6ICJ1c2VyLTIifQ"
/* {"iss": "https://other.example", "sub": "user-1"} */
#define JWT_OTHER_ISSUER "eyJpc3MiOiAiaHR0cHM6Ly9vdGhlci5leGFtcGxlIiwgInN1YiI6ICJ1c2VyLTEifQ"
/* {"iss": "https://id.example"} */
#define JWT_NO_SUBJECT "eyJpc3MiOiAiaHR0cHM6Ly9pZC5leGFtcGxlIn0"

#define SIGV4(id, date, signature)                                                                 \
	"AWS4-HMAC-SHA256 Credential=" id "/" date                                                 \
	"/eu-central-1/lambda/aws4_request, SignedHeaders=host;x-amz-date, Signature=" signature

static struct bytes salt = BYTES("0123456789abcdef0123456789abcdef");

static void principal_with(const char *name, const char *value, struct call *ret_call)
{
	struct digest_state *hash = digest_state_new();
	struct call_build build;

	call_build_init(&build);
	if (name)
		call_build_add(&build, name, value);
	build.call.has_principal = true;
	build.call.principal_is_bearer = true;
	assert_non_null(hash);
	assert_int_equal(principal_of(hash, salt, &build.call), 0);
	*ret_call = build.call;
	digest_state_free(hash);
}

static void principal_by(const char *authorization, struct digest *ret_principal)
{
	struct call call;

	principal_with("Authorization", authorization, &call);
	assert_true(call.has_principal);
	*ret_principal = call.principal;
}

static void assert_one_caller(const char *a, const char *b)
{
	struct digest first, second;

	principal_by(a, &first);
	principal_by(b, &second);
	assert_true(digest_equal(&first, &second));
}

static void assert_two_callers(const char *a, const char *b)
{
	struct digest first, second;

	principal_by(a, &first);
	principal_by(b, &second);
	assert_false(digest_equal(&first, &second));
}

static void takes_the_access_key_id_of_sigv4(void **state)
{
	(void)state;
	assert_one_caller(SIGV4("AKIDEXAMPLE", "20260101", "aaaa"),
			  SIGV4("AKIDEXAMPLE", "20260102", "bbbb"));
	assert_two_callers(SIGV4("AKIDEXAMPLE", "20260101", "aaaa"),
			   SIGV4("AKIDOTHER", "20260101", "aaaa"));
	assert_two_callers("AWS4-HMAC-SHA256 Signature=a", "AWS4-HMAC-SHA256 Signature=b");
}

static void takes_the_user_of_basic(void **state)
{
	(void)state;
	/* alice:secret1, alice:another-secret, bob:secret1 */
	assert_one_caller("Basic YWxpY2U6c2VjcmV0MQ==", "basic YWxpY2U6YW5vdGhlci1zZWNyZXQ=");
	assert_two_callers("Basic YWxpY2U6c2VjcmV0MQ==", "Basic Ym9iOnNlY3JldDE=");
	/* no colon, no base64: as a whole */
	assert_two_callers("Basic YWxpY2U=", "Basic YWxpY2U6c2VjcmV0MQ==");
	assert_two_callers("Basic !a", "Basic !b");
}

static void takes_issuer_and_subject_of_a_readable_jwt(void **state)
{
	(void)state;
	assert_one_caller("Bearer " JWT_HEAD JWT_USER_1 ".sig1",
			  "bearer " JWT_HEAD JWT_USER_1_LATER ".sig2");
	assert_two_callers("Bearer " JWT_HEAD JWT_USER_1 ".sig",
			   "Bearer " JWT_HEAD JWT_USER_2 ".sig");
	assert_two_callers("Bearer " JWT_HEAD JWT_USER_1 ".sig",
			   "Bearer " JWT_HEAD JWT_OTHER_ISSUER ".sig");
}

/* {"sub":"~~?>>?~"} in both alphabets, and with a space more, where it has other letters. */
static void reads_both_alphabets_of_base64(void **state)
{
	(void)state;
	assert_one_caller("Bearer a.eyJzdWIiOiJ+fj8+Pj9+In0.sig", "Bearer a.eyJzdWIiOiJ-fj8-Pj9-In0.sig");
	assert_one_caller("Bearer a.eyAic3ViIjoifn4/Pj4/fiJ9.sig", "Bearer a.eyAic3ViIjoifn4_Pj4_fiJ9.sig");
	assert_one_caller("Bearer a.eyJzdWIiOiJ-fj8-Pj9-In0.sig", "Bearer a.eyAic3ViIjoifn4_Pj4_fiJ9.sig");
}

static void takes_any_other_token_as_a_whole(void **state)
{
	(void)state;
	assert_one_caller("Bearer sk_test_1", "Bearer sk_test_1");
	assert_two_callers("Bearer sk_test_1", "Bearer sk_test_2");
	assert_two_callers("Bearer " JWT_HEAD JWT_NO_SUBJECT ".sig1",
			   "Bearer " JWT_HEAD JWT_NO_SUBJECT ".sig2");
	assert_two_callers("Bearer " JWT_HEAD JWT_USER_1, "Bearer other." JWT_USER_1);
	assert_two_callers("Bearer " JWT_HEAD JWT_USER_1 ".a.b",
			   "Bearer " JWT_HEAD JWT_USER_1 ".c.d");
	assert_two_callers("Bearer a.not-json.sig1", "Bearer a.not-json.sig2");
	assert_two_callers("Token a", "Token b");
	assert_two_callers("raw-key-1", "raw-key-2");
}

/* A user "user-1" is not the token "user-1" nor the subject "user-1". */
static void does_not_mix_up_kinds(void **state)
{
	(void)state;
	assert_two_callers("Basic dXNlci0xOg==", "user-1");
	assert_two_callers("Basic dXNlci0xOg==", "Bearer " JWT_HEAD "eyJzdWIiOiAidXNlci0xIn0.sig");
}

static void tells_a_bearer(void **state)
{
	struct call call;

	(void)state;
	principal_with("Authorization", "Bearer sk_test_1", &call);
	assert_true(call.principal_is_bearer);
	principal_with("authorization", "BEARER " JWT_HEAD JWT_USER_1 ".sig", &call);
	assert_true(call.principal_is_bearer);
	principal_with("Authorization", "Basic YWxpY2U6c2VjcmV0MQ==", &call);
	assert_false(call.principal_is_bearer);
	principal_with("Authorization", SIGV4("AKIDEXAMPLE", "20260101", "aaaa"), &call);
	assert_false(call.principal_is_bearer);
	principal_with("Authorization", "Bearer", &call);
	assert_false(call.principal_is_bearer);
	principal_with("x-api-key", "Bearer x", &call);
	assert_false(call.principal_is_bearer);
}

static void takes_an_api_key_where_there_is_no_authorization(void **state)
{
	static const char *const names[] = {"x-api-key", "api-key", "x-goog-api-key"};
	struct call first, same, other;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		principal_with(names[i], "key-1", &first);
		principal_with(names[i], "key-1", &same);
		principal_with(names[i], "key-2", &other);
		assert_true(first.has_principal);
		assert_true(digest_equal(&first.principal, &same.principal));
		assert_false(digest_equal(&first.principal, &other.principal));
	}
}

static void prefers_authorization_to_an_api_key(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct call_build build;
	struct digest expected;

	(void)state;
	assert_non_null(hash);
	principal_by("Bearer sk_test_1", &expected);
	call_build_init(&build);
	call_build_add(&build, "x-api-key", "key-1");
	call_build_add(&build, "Authorization", "Bearer sk_test_1");
	assert_int_equal(principal_of(hash, salt, &build.call), 0);
	assert_true(digest_equal(&build.call.principal, &expected));
	digest_state_free(hash);
}

static void knows_nobody_by_other_headers(void **state)
{
	static const char *const names[] = {"Cookie", "Proxy-Authorization", "X-Amz-Security-Token",
					    "From", NULL};
	struct call call;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		principal_with(names[i], "session=1", &call);
		assert_false(call.has_principal);
		assert_false(call.principal_is_bearer);
	}
	principal_with("Authorization", "", &call);
	assert_false(call.has_principal);
}

static void knows_nobody_without_a_head(void **state)
{
	struct digest_state *hash = digest_state_new();
	struct call_build build;

	(void)state;
	assert_non_null(hash);
	call_build_init(&build);
	build.call.head = NULL;
	assert_int_equal(principal_of(hash, salt, &build.call), 0);
	assert_false(build.call.has_principal);
	digest_state_free(hash);
}

static void hashes_with_the_salt(void **state)
{
	struct bytes kept = salt;
	struct digest first, second;

	(void)state;
	principal_by("Bearer sk_test_1", &first);
	salt = BYTES("another salt of this run, 32 byte");
	principal_by("Bearer sk_test_1", &second);
	salt = kept;
	assert_false(digest_equal(&first, &second));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_access_key_id_of_sigv4),
		cmocka_unit_test(takes_the_user_of_basic),
		cmocka_unit_test(takes_issuer_and_subject_of_a_readable_jwt),
		cmocka_unit_test(reads_both_alphabets_of_base64),
		cmocka_unit_test(takes_any_other_token_as_a_whole),
		cmocka_unit_test(does_not_mix_up_kinds),
		cmocka_unit_test(tells_a_bearer),
		cmocka_unit_test(takes_an_api_key_where_there_is_no_authorization),
		cmocka_unit_test(prefers_authorization_to_an_api_key),
		cmocka_unit_test(knows_nobody_by_other_headers),
		cmocka_unit_test(knows_nobody_without_a_head),
		cmocka_unit_test(hashes_with_the_salt),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
