/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of a model call: its bytes as documented, what it does not depend on,
 * and what it does. The hex below was made by another program from the
 * documented encoding.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "limits.h"
#include "model_key.h"
#include "policy.h"

#define CHAT "/v1/chat/completions"
#define MESSAGES "\"messages\":[{\"role\":\"user\",\"content\":\"Grade bolt M8.\"}]"
#define BODY "{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0}"
#define KEY "bf573c227998093d07be988051b68faeba89b65d3ada01a1670702250866f31f"

static struct model_request_key key_of(const char *path, const char *body)
{
	struct model_request request = {.path = bytes_of_string(path), .body = bytes_of_string(body)};
	struct model_request_key key = {0};

	if (model_key_of_request(&request, &key))
		fail_msg("no key for POST %s %s", path, body);
	return key;
}

static void assert_hex(const struct digest *digest, const char *hex)
{
	char text[2 * DIGEST_BYTES + 1];

	hex_of(digest->byte, DIGEST_BYTES, text);
	assert_string_equal(text, hex);
}

static void is_the_documented_hash(void **state)
{
	struct model_key_parts parts = {
		.schema_version = BYTES("v1"),
		.model = BYTES("demo-large"),
	};
	struct digest key;

	(void)state;
	assert_int_equal(digest_of(BYTES("{\"messages\":[{\"content\":\"Grade bolt M8.\",\"role\":\"user\"}],"
					 "\"model\":\"demo-large\",\"temperature\":0}"),
				   &parts.prompt_hash),
			 0);
	assert_int_equal(model_key(&parts, &key), 0);
	assert_hex(&key, KEY);
	parts.extra = BYTES("0c55b75");
	assert_int_equal(model_key(&parts, &key), 0);
	assert_hex(&key, "fd941d875155a6e3f53ec517a6df2c276d8391dd6f25db70af21d6c057856b06");
}

static void of_a_request_is_that_hash_of_its_prompt_level_form(void **state)
{
	struct model_request request = {.path = BYTES("/v1beta/models/gemini-demo:streamGenerateContent?alt=sse"),
					.content_type = BYTES("application/json; charset=utf-8"),
					.body = BYTES("{\"contents\":[{\"parts\":[{\"text\":\"Grade bolt M8.\"}]}],"
						      "\"generationConfig\":{\"maxOutputTokens\":9}}"),
					.schema_version = "v2"};
	struct model_request_key key;

	(void)state;
	key = key_of(CHAT, BODY);
	assert_hex(&key.key, KEY);
	assert_int_equal(key.model_size, 10);
	assert_memory_equal(key.model, "demo-large", 10);
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, "456de83895ea0c5bca4a226fe694e9e3129d135a2b81d19157dca812ba8bd6e3");
	assert_int_equal(key.model_size, 11);
	assert_memory_equal(key.model, "gemini-demo", 11);
}

static void does_not_depend_on_where_how_long_or_how_the_answer_is_brought(void **state)
{
	static const struct {
		const char *path;
		const char *body;
	} same[] = {
		{"/api/v7" CHAT, BODY},
		{CHAT "?trace=1", BODY},
		{CHAT, "{ \"temperature\": 0.0, " MESSAGES ",\n\"model\": \"demo-\\u006carge\"}"},
		{CHAT, "{\"model\":\"demo-large\",\"stream\":true,\"stream_options\":{\"include_usage\":true}," MESSAGES
		       ",\"temperature\":0}"},
		{CHAT, "{\"model\":\"demo-large\",\"max_tokens\":5," MESSAGES ",\"temperature\":0}"},
		{CHAT, "{\"model\":\"demo-large\",\"max_completion_tokens\":5," MESSAGES ",\"temperature\":0}"},
		{CHAT, "{\"model\":\"demo-large\",\"user\":\"u1\",\"metadata\":{\"a\":1}," MESSAGES ",\"temperature\":0}"},
		{CHAT, "{\"model\":\"demo-large\",\"idempotency_key\":\"k-1\"," MESSAGES ",\"temperature\":0}"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++) {
		struct model_request_key key = key_of(same[i].path, same[i].body);

		assert_hex(&key.key, KEY);
	}
}

static void other_work_has_another_key(void **state)
{
	static const char *const bodies[] = {
		BODY,
		"{\"model\":\"demo-mini\"," MESSAGES ",\"temperature\":0}",
		"{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0.2}",
		"{\"model\":\"demo-large\"," MESSAGES "}",
		"{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0,\"seed\":1}",
		"{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0,\"seed\":2}",
		"{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0,\"n\":2}",
		"{\"model\":\"demo-large\"," MESSAGES ",\"temperature\":0,\"tools\":[]}",
		"{\"model\":\"demo-large\",\"messages\":[{\"role\":\"user\",\"content\":\"Grade bolt M9.\"}],\"temperature\":0}",
	};
	const size_t count = sizeof(bodies) / sizeof(bodies[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++) {
			struct model_request_key a = key_of(CHAT, bodies[i]), b = key_of(CHAT, bodies[j]);

			if (digest_equal(&a.key, &b.key))
				fail_msg("one key for %s and %s", bodies[i], bodies[j]);
		}
}

static void schema_version_and_extra_are_part_of_it(void **state)
{
	struct model_request request = {.path = BYTES(CHAT), .body = BYTES(BODY), .schema_version = "v1"};
	struct model_request_key key;

	(void)state;
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, KEY);
	request.extra = BYTES("0c55b75");
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, "fd941d875155a6e3f53ec517a6df2c276d8391dd6f25db70af21d6c057856b06");
	request.extra = (struct bytes){0};
	request.schema_version = "v2";
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, "bb3cdc3c7b553f084ec2d697bbeec5141496c1528896d66fa4260f075ff92dec");
}

static void what_a_policy_masks_is_no_part_of_it(void **state)
{
	static const char text[] = "{\"rules\":[{\"match\":{\"path\":\"" CHAT "\"},"
				   "\"masks\":[\"$.nonce\"],\"key\":{\"members\":[\"job\"]}}]}";
	struct model_request request = {
		.path = BYTES(CHAT),
		.body = BYTES("{\"model\":\"demo-large\",\"nonce\":\"x1\",\"job\":77," MESSAGES ",\"temperature\":0}")};
	struct model_request_key key;
	struct policy_error error;
	struct policy *policy;

	(void)state;
	assert_int_equal(policy_parse(BYTES(text), &policy, &error), 0);
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, "de247f71e2fced742deae7c02094f00c0df1cdf4b4c08ba8dfcb26596d76ab61");
	request.policy = policy;
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, KEY);
	policy_free(policy);
}

static void a_path_that_is_no_model_call_has_none(void **state)
{
	static const char *const paths[] = {"/v1/charges", "/", "", "/v1/models", "/v1/messages/search"};

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct model_request request = {.path = bytes_of_string(paths[i]), .body = BYTES("{\"amount\":1}")};
		struct model_request_key key;

		assert_int_equal(model_key_of_request(&request, &key), -EINVAL);
	}
}

static void a_body_without_canonical_form_counts_as_it_was_sent(void **state)
{
	struct model_key_parts parts = {.schema_version = BYTES("v1")};
	struct model_request request = {.path = BYTES(CHAT), .body = BYTES("{\"model\":\"demo\",")};
	struct model_request_key key;
	struct digest expected;
	uint8_t *large = malloc(LIMIT_BODY_BYTES + 1);

	(void)state;
	assert_int_equal(digest_of(request.body, &parts.prompt_hash), 0);
	assert_int_equal(model_key(&parts, &expected), 0);
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_true(digest_equal(&key.key, &expected));
	assert_int_equal(key.model_size, 0);

	assert_non_null(large);
	memset(large, ' ', LIMIT_BODY_BYTES + 1);
	memcpy(large, BODY, sizeof(BODY) - 1);
	request.body = (struct bytes){large, LIMIT_BODY_BYTES};
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_hex(&key.key, KEY);
	request.body.size++;
	assert_int_equal(digest_of(request.body, &parts.prompt_hash), 0);
	assert_int_equal(model_key(&parts, &expected), 0);
	assert_int_equal(model_key_of_request(&request, &key), 0);
	assert_true(digest_equal(&key.key, &expected));
	free(large);
}

static void tells_the_temperature(void **state)
{
	static const struct {
		const char *path;
		const char *body;
		enum call_temperature temperature;
	} rows[] = {
		{CHAT, BODY, TEMPERATURE_ZERO},
		{CHAT, "{\"model\":\"m\",\"temperature\":0.0e3}", TEMPERATURE_ZERO},
		{CHAT, "{\"model\":\"m\",\"temperature\":-0}", TEMPERATURE_ZERO},
		{CHAT, "{\"model\":\"m\"}", TEMPERATURE_ABSENT},
		{CHAT, "{\"model\":\"m\",\"temperature\":1e-9}", TEMPERATURE_ABOVE_ZERO},
		{CHAT, "{\"model\":\"m\",\"temperature\":\"0\"}", TEMPERATURE_ABOVE_ZERO},
		{CHAT, "{\"model\":\"m\",\"temperature\":null}", TEMPERATURE_ABSENT},
		{CHAT, "no json", TEMPERATURE_ABSENT},
		{"/v1beta/models/g:generateContent", "{\"generationConfig\":{\"temperature\":0}}", TEMPERATURE_ZERO},
		{"/v1beta/models/g:generateContent", "{\"generationConfig\":{\"temperature\":0.7}}", TEMPERATURE_ABOVE_ZERO},
		{"/api/chat", "{\"model\":\"m\",\"messages\":[],\"options\":{\"temperature\":0}}", TEMPERATURE_ZERO},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(key_of(rows[i].path, rows[i].body).temperature, rows[i].temperature);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_the_documented_hash),
		cmocka_unit_test(of_a_request_is_that_hash_of_its_prompt_level_form),
		cmocka_unit_test(does_not_depend_on_where_how_long_or_how_the_answer_is_brought),
		cmocka_unit_test(other_work_has_another_key),
		cmocka_unit_test(schema_version_and_extra_are_part_of_it),
		cmocka_unit_test(what_a_policy_masks_is_no_part_of_it),
		cmocka_unit_test(a_path_that_is_no_model_call_has_none),
		cmocka_unit_test(a_body_without_canonical_form_counts_as_it_was_sent),
		cmocka_unit_test(tells_the_temperature),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
