/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the judge may know of a call: every fact, where it comes from.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "finding.h"

#define BEGAN 10000000000ULL

static struct call sent_call(void)
{
	struct call call = {
		.process = {.tgid = 4711, .start_ns = 99},
		.first_ns = BEGAN,
		.sent_ns = BEGAN + 1,
		.request_complete = true,
		.method = BYTES("POST"),
		.content_type = BYTES("application/json"),
		.has_sha = true,
		.has_fingerprint = true,
		.class = CLASS_MUTATING,
	};

	memset(call.sha.byte, 0x11, sizeof(call.sha.byte));
	memset(call.fingerprint.byte, 0x22, sizeof(call.fingerprint.byte));
	memset(call.principal.byte, 0x33, sizeof(call.principal.byte));
	return call;
}

static struct attempt_facts facts_of(const struct call *call)
{
	struct attempt_facts facts;

	memset(&facts, 0xff, sizeof(facts));
	attempt_facts_of(call, &facts);
	return facts;
}

static void facts_say_what_the_call_says(void **state)
{
	const struct http_head head = {.expects_continue = true};
	struct call call = sent_call();
	struct attempt_facts facts;

	(void)state;
	call.head = &head;
	call.status = 200;
	call.status_ns = BEGAN + 5;
	call.status_in_time = true;
	call.response_complete = true;
	call.response_last_ns = BEGAN + 9;
	call.delivered = DELIVERED_PART;
	call.replayed = true;
	call.undecidable = true;
	call.server_read_known = true;
	call.server_read_all = true;
	call.client_died = true;
	call.idempotent_hint = true;
	call.known_write = true;
	call.mcp_continuation = true;
	call.class_source = CLASS_BY_PATH;
	call.has_principal = true;
	call.principal_is_bearer = true;
	facts = facts_of(&call);
	assert_true(facts.first_ns == BEGAN && facts.status_ns == BEGAN + 5 && facts.complete_ns == BEGAN + 9);
	assert_int_equal(facts.status, 200);
	assert_int_equal(facts.tgid, 4711);
	assert_true(facts.process != 0);
	assert_int_equal(facts.class, CLASS_MUTATING);
	assert_int_equal(facts.class_source, CLASS_BY_PATH);
	assert_int_equal(facts.delivered, DELIVERED_PART);
	assert_true(facts.request_complete && facts.undecidable && facts.replayed && facts.status_in_time);
	assert_true(facts.server_read_known && facts.server_read_all && facts.owner_gone && facts.idempotent);
	assert_true(facts.expects && facts.has_principal && facts.bearer && facts.known_write && facts.continuation);
	assert_true(facts.principal == 0x3333333333333333ULL);
	assert_true(facts.body != 0);
	assert_false(facts.form);
}

static void the_clients_own_count_comes_from_the_retry_hint(void **state)
{
	static const struct {
		const char *hint;
		enum retry_marker marker;
		uint8_t count;
	} cases[] = {
		{"", RETRY_UNMARKED, 0},
		{"{\"x-stainless-retry-count\":\"0\"}", RETRY_STAINLESS, 0},
		{"{\"x-stainless-retry-count\":\"12\"}", RETRY_STAINLESS, 12},
		{"{\"x-stainless-retry-count\":\"99999999999\"}", RETRY_STAINLESS, 255},
		{"{\"x-stainless-retry-count\":\"256\"}", RETRY_STAINLESS, 255},
		{"{\"x-stainless-retry-count\":\"many\"}", RETRY_UNMARKED, 0},
		{"{\"amz-sdk-invocation-id\":\"7\",\"amz-sdk-request\":\"ttl=20261001T0Z; attempt=2; max=3\"}", RETRY_AMZ, 2},
		{"{\"amz-sdk-request\":\"max=3\"}", RETRY_UNMARKED, 0},
		{"{\"x-slack-retry-num\":\"1\",\"x-slack-retry-reason\":\"http_timeout\"}", RETRY_SLACK, 1},
		{"{\"x-github-delivery\":\"1\"}", RETRY_UNMARKED, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct call call = sent_call();
		struct attempt_facts facts;

		call.retry_hint = bytes_of_string(cases[i].hint);
		facts = facts_of(&call);
		assert_int_equal(facts.retry_marker, cases[i].marker);
		assert_int_equal(facts.retry_count, cases[i].count);
	}
}

static void facts_of_equal_calls_are_equal_bytes(void **state)
{
	struct call call = sent_call();
	struct attempt_facts a, b;

	(void)state;
	memset(&a, 0xff, sizeof(a));
	memset(&b, 0, sizeof(b));
	attempt_facts_of(&call, &a);
	attempt_facts_of(&call, &b);
	assert_memory_equal(&a, &b, sizeof(a));
}

static void a_response_that_is_not_complete_has_no_time_of_completion(void **state)
{
	struct call call = sent_call();

	(void)state;
	call.response_last_ns = BEGAN + 9;
	assert_true(facts_of(&call).complete_ns == 0);
}

static void whoever_ended_it_first_closed_it(void **state)
{
	struct call call = sent_call();

	(void)state;
	assert_int_equal(facts_of(&call).closed_first, CLOSER_NOBODY);
	call.client_closed_ns = 20;
	assert_int_equal(facts_of(&call).closed_first, CLOSER_CLIENT);
	assert_true(facts_of(&call).closed_ns == 20);
	call.server_closed_ns = 10; /* a half close by the server is enough */
	assert_int_equal(facts_of(&call).closed_first, CLOSER_SERVER);
	assert_true(facts_of(&call).closed_ns == 10);
	call.client_closed_ns = 10;
	call.closed_first = CLOSER_CLIENT;
	assert_int_equal(facts_of(&call).closed_first, CLOSER_CLIENT);
	call.closed_first = CLOSER_SERVER;
	assert_int_equal(facts_of(&call).closed_first, CLOSER_SERVER);
	call.client_closed_ns = 0;
	assert_int_equal(facts_of(&call).closed_first, CLOSER_SERVER);
}

static void a_form_post_is_known_by_its_content_type(void **state)
{
	struct call call = sent_call();

	(void)state;
	call.content_type = BYTES("application/x-www-form-urlencoded; charset=utf-8");
	assert_true(facts_of(&call).form);
	call.content_type = BYTES("multipart/form-data; boundary=x");
	assert_true(facts_of(&call).form);
	call.method = BYTES("PUT");
	assert_false(facts_of(&call).form);
}

static void volatile_members_make_no_other_body(void **state)
{
	struct call call = sent_call();
	uint32_t by_sha = facts_of(&call).body, by_fingerprint;

	(void)state;
	call.sha = call.fingerprint;
	by_fingerprint = facts_of(&call).body;
	assert_int_not_equal(by_sha, by_fingerprint);
	call = sent_call();
	call.protocol = PROTOCOL_MCP;
	assert_int_equal(facts_of(&call).body, by_fingerprint);
	call.protocol = PROTOCOL_GRAPHQL;
	assert_int_equal(facts_of(&call).body, by_sha);
	call.protocol = PROTOCOL_MCP;
	call.has_fingerprint = false;
	assert_int_equal(facts_of(&call).body, by_sha);
	call.has_sha = false;
	assert_int_equal(facts_of(&call).body, 0);
}

static void keys_are_equal_when_their_bytes_are(void **state)
{
	struct call call = sent_call();
	uint64_t key;

	(void)state;
	assert_true(facts_of(&call).key == 0);
	call.idem_state = IDEM_PRESENT;
	call.idem = BYTES("order-1");
	key = facts_of(&call).key;
	assert_true(key != 0);
	call.idem = BYTES("order-2");
	assert_true(facts_of(&call).key != key);
	call.idem = BYTES("Order-1");
	assert_true(facts_of(&call).key != key);
	call.idem = BYTES("order-1");
	assert_true(facts_of(&call).key == key);
	call.idem_state = IDEM_INVALID;
	assert_true(facts_of(&call).key == 0);
}

static void bearer_needs_a_principal(void **state)
{
	struct call call = sent_call();

	(void)state;
	call.principal_is_bearer = true;
	assert_false(facts_of(&call).bearer);
	assert_true(facts_of(&call).principal == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_say_what_the_call_says),
		cmocka_unit_test(the_clients_own_count_comes_from_the_retry_hint),
		cmocka_unit_test(facts_of_equal_calls_are_equal_bytes),
		cmocka_unit_test(a_response_that_is_not_complete_has_no_time_of_completion),
		cmocka_unit_test(whoever_ended_it_first_closed_it),
		cmocka_unit_test(a_form_post_is_known_by_its_content_type),
		cmocka_unit_test(volatile_members_make_no_other_body),
		cmocka_unit_test(keys_are_equal_when_their_bytes_are),
		cmocka_unit_test(bearer_needs_a_principal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
