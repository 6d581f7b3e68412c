/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Idempotency keys: every header and body member that carries one, how a key
 * is spelled, and when it is not known whether there is one.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "call_build.h"
#include "idempotency.h"

static void assert_key(const struct call *call, enum idem_state state, const char *key,
		       const char *from)
{
	assert_int_equal(call->idem_state, state);
	assert_true(bytes_equal(call->idem, bytes_of_string(key)));
	if (from)
		assert_string_equal(call->idem_from, from);
	else
		assert_null(call->idem_from);
}

/* One header. */
static void assert_header(const char *name, const char *value, enum idem_state state,
			  const char *key, const char *from)
{
	struct buffer text = {0};
	struct call_build build;

	call_build_init(&build);
	call_build_add(&build, name, value);
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, state, key, from);
	buffer_done(&text);
}

static void assert_idempotency_key(const char *value, enum idem_state state, const char *key)
{
	assert_header("Idempotency-Key", value, state, key,
		      state == IDEM_ABSENT ? NULL : "Idempotency-Key");
}

/* ---- Idempotency-Key ---- */

static void takes_the_quotes_off(void **state)
{
	(void)state;
	assert_idempotency_key("\"7f6f2a1e\"", IDEM_PRESENT, "7f6f2a1e");
	assert_idempotency_key("\"with space, and comma\"", IDEM_PRESENT, "with space, and comma");
	assert_idempotency_key("\"\\\"\"", IDEM_PRESENT, "\"");
	assert_idempotency_key("\"a\\\\b\\\"c\"", IDEM_PRESENT, "a\\b\"c");
	assert_idempotency_key("\"a\\nb\"", IDEM_PRESENT, "a\\nb");
}

static void takes_a_bare_key(void **state)
{
	(void)state;
	assert_idempotency_key("order-2041-charge", IDEM_PRESENT, "order-2041-charge");
	assert_idempotency_key("stripe-node-retry-1b", IDEM_PRESENT, "stripe-node-retry-1b");
}

static void never_folds_case(void **state)
{
	(void)state;
	assert_idempotency_key("AbC", IDEM_PRESENT, "AbC");
	assert_header("IDEMPOTENCY-KEY", "AbC", IDEM_PRESENT, "AbC", "Idempotency-Key");
}

static void ignores_parameters(void **state)
{
	(void)state;
	assert_idempotency_key("\"abc\";v=1", IDEM_PRESENT, "abc");
	assert_idempotency_key("\"abc\" ; v=1, 2", IDEM_PRESENT, "abc");
}

static void takes_broken_quoting_as_it_is(void **state)
{
	(void)state;
	assert_idempotency_key("\"abc", IDEM_PRESENT, "\"abc");
	assert_idempotency_key("abc\"", IDEM_PRESENT, "abc\"");
	assert_idempotency_key("\"abc\"def", IDEM_PRESENT, "\"abc\"def");
	assert_idempotency_key("\"abc\\\"", IDEM_PRESENT, "\"abc\\\"");
	assert_idempotency_key("\"", IDEM_PRESENT, "\"");
}

static void calls_a_list_invalid(void **state)
{
	(void)state;
	assert_idempotency_key("\"a\", \"b\"", IDEM_INVALID, "\"a\", \"b\"");
	assert_idempotency_key("a, b", IDEM_INVALID, "a, b");
	assert_idempotency_key("\"a\",", IDEM_INVALID, "\"a\",");
}

static void calls_two_lines_invalid_and_keeps_both(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_add(&build, "Idempotency-Key", "\"a\"");
	call_build_add(&build, "Accept", "*/*");
	call_build_add(&build, "idempotency-key", "\"a\"");
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_INVALID, "\"a\", \"a\"", "Idempotency-Key");
	buffer_done(&text);
}

static void takes_an_empty_key_for_none(void **state)
{
	(void)state;
	assert_idempotency_key("", IDEM_ABSENT, "");
	assert_idempotency_key("\"\"", IDEM_ABSENT, "");
}

/* ---- other headers ---- */

static void knows_every_header_that_carries_a_key(void **state)
{
	static const char *const names[] = {
		"X-Idempotency-Key",
		"Idempotency-Token",
		"PayPal-Request-Id",
		"Chargebee-Idempotency-Key",
		"Cko-Idempotency-Key",
		"Request-Idempotency-Key",
		"X-Payout-Idempotency",
		"X-Unique-Transaction-ID",
		"Repeatability-Request-ID",
		"X-GitHub-Delivery",
		"Webhook-Id",
		"Svix-Id",
		"I-Twilio-Idempotency-Token",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_header(names[i], "key-1", IDEM_PRESENT, "key-1", names[i]);
}

static void takes_other_headers_as_bare_strings(void **state)
{
	(void)state;
	assert_header("x-idempotency-key", "\"a, b\"", IDEM_PRESENT, "\"a, b\"",
		      "X-Idempotency-Key");
}

static void calls_two_lines_of_another_header_invalid(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_add(&build, "Webhook-Id", "a");
	call_build_add(&build, "Webhook-Id", "b");
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_INVALID, "a, b", "Webhook-Id");
	buffer_done(&text);
}

static void prefers_the_standard_header(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_add(&build, "X-Idempotency-Key", "other");
	call_build_add(&build, "Idempotency-Key", "\"standard\"");
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_PRESENT, "standard", "Idempotency-Key");
	buffer_done(&text);
}

static void goes_on_behind_an_empty_header(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_add(&build, "Idempotency-Key", "");
	call_build_add(&build, "Webhook-Id", "w");
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_PRESENT, "w", "Webhook-Id");
	buffer_done(&text);
}

static void does_not_take_retry_markers_for_keys(void **state)
{
	(void)state;
	assert_header("amz-sdk-invocation-id", "1", IDEM_ABSENT, "", NULL);
	assert_header("X-Request-Id", "1", IDEM_ABSENT, "", NULL);
	assert_header("traceparent", "1", IDEM_ABSENT, "", NULL);
}

/* ---- not known ---- */

static void does_not_know_without_a_head(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	build.call.head = NULL;
	build.call.idem_from = "left over";
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_UNKNOWN, "", NULL);
}

static void does_not_know_where_the_head_was_cut(void **state)
{
	struct buffer text = {0};
	struct call_build build;

	(void)state;
	call_build_init(&build);
	build.head.cut = true;
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_UNKNOWN, "", NULL);
	build.head.cut = false;
	build.head.fields_dropped = 1;
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_UNKNOWN, "", NULL);
	call_build_add(&build, "Idempotency-Key", "k");
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_key(&build.call, IDEM_PRESENT, "k", "Idempotency-Key");
	buffer_done(&text);
}

/* ---- in the body ---- */

/* rest = what is compared when the key's member is taken out; NULL: no key is found. */
static void assert_body_of(enum call_protocol protocol, const char *json, const char *key, const char *from, const char *rest)
{
	struct buffer text = {0}, left = {0};
	struct bytes whole = bytes_of_string(json), member, before, after;
	struct call_build build;

	call_build_init(&build);
	build.call.canon = CANONICAL_JSON;
	build.call.protocol = protocol;
	assert_int_equal(idempotency_key(&build.call, &text), 0);
	assert_int_equal(idempotency_body_key(&build.call, whole, &text, &member), 0);
	if (!rest) {
		assert_key(&build.call, IDEM_ABSENT, "", NULL);
		assert_int_equal(member.size, 0);
		buffer_done(&text);
		return;
	}
	assert_key(&build.call, IDEM_PRESENT, key, from);
	after = whole;
	before = bytes_take(&after, (size_t)(member.data - whole.data));
	bytes_take(&after, member.size);
	assert_int_equal(buffer_append(&left, before), 0);
	assert_int_equal(buffer_append(&left, after), 0);
	assert_true(bytes_equal(buffer_bytes(&left), bytes_of_string(rest)));
	buffer_done(&left);
	buffer_done(&text);
}

static void assert_body(const char *json, const char *key, const char *from, const char *rest)
{
	assert_body_of(PROTOCOL_NONE, json, key, from, rest);
}

static void knows_every_member_that_carries_a_key(void **state)
{
	static const struct {
		const char *name, *from;
	} cases[] = {
		{"idempotency_key", "body.idempotency_key"},
		{"requestId", "body.requestId"},
		{"ClientToken", "body.ClientToken"},
		{"clientToken", "body.clientToken"},
		{"ClientRequestToken", "body.ClientRequestToken"},
		{"clientRequestToken", "body.clientRequestToken"},
		{"messageId", "body.messageId"},
		{"event_id", "body.event_id"},
	};
	char json[128];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(json, sizeof(json), "{\"A\":1,\"%s\":\"key-1\",\"z\":2}", cases[i].name);
		assert_body(json, "key-1", cases[i].from, "{\"A\":1,\"z\":2}");
	}
	assert_body("{\"id\":\"evt_1Abc\",\"z\":2}", "evt_1Abc", "body.id", "{\"z\":2}");
}

static void takes_the_member_out_with_one_comma(void **state)
{
	(void)state;
	assert_body("{\"requestId\":\"k\"}", "k", "body.requestId", "{}");
	assert_body("{\"requestId\":\"k\",\"s\":1}", "k", "body.requestId", "{\"s\":1}");
	assert_body("{\"a\":1,\"requestId\":\"k\"}", "k", "body.requestId", "{\"a\":1}");
	assert_body("{\"a\":1,\"requestId\":\"k\",\"s\":1}", "k", "body.requestId",
		    "{\"a\":1,\"s\":1}");
}

static void undoes_escapes_of_a_body_key(void **state)
{
	(void)state;
	assert_body("{\"requestId\":\"a\\\"b\\\\c\\n\\u0001\"}", "a\"b\\c\n\x01", "body.requestId",
		    "{}");
}

static void takes_only_event_ids_from_the_member_id(void **state)
{
	(void)state;
	assert_body("{\"id\":\"order-1\"}", NULL, NULL, NULL);
	assert_body("{\"id\":7}", NULL, NULL, NULL);
}

static void takes_only_strings_that_say_something(void **state)
{
	(void)state;
	assert_body("{\"requestId\":7}", NULL, NULL, NULL);
	assert_body("{\"requestId\":\"\"}", NULL, NULL, NULL);
	assert_body("{\"requestId\":null}", NULL, NULL, NULL);
	assert_body("{\"requestId\":{\"requestId\":\"k\"}}", NULL, NULL, NULL);
}

static void takes_only_top_level_members_of_an_object(void **state)
{
	(void)state;
	assert_body("{\"params\":{\"messageId\":\"k\"}}", NULL, NULL, NULL);
	assert_body("[{\"requestId\":\"k\"}]", NULL, NULL, NULL);
	assert_body("\"requestId\"", NULL, NULL, NULL);
	assert_body("{}", NULL, NULL, NULL);
	assert_body("{\"requestid\":\"k\"}", NULL, NULL, NULL);
}

/* Which of the two a server takes is not known. */
static void an_a2a_call_has_its_key_in_the_message(void **state)
{
	static const struct {
		const char *json, *key, *from, *rest;
	} cases[] = {
		{"{\"params\":{\"message\":{\"messageId\":\"m-1\",\"parts\":[]}}}", "m-1", "body.params.message.messageId",
		 "{\"params\":{\"message\":{\"parts\":[]}}}"},
		{"{\"message\":{\"messageId\":\"m\\u00e9\"}}", "m\xc3\xa9", "body.message.messageId", "{\"message\":{}}"},
		{"{\"params\":{\"message\":{\"kind\":\"message\",\"messageId\":\"m\"}}}", "m", "body.params.message.messageId",
		 "{\"params\":{\"message\":{\"kind\":\"message\"}}}"},
		{"{\"params\":{\"message\":{\"messageId\":7}}}", NULL, NULL, NULL},
		{"{\"params\":{\"message\":{\"messageId\":\"\"}}}", NULL, NULL, NULL},
		{"{\"params\":{\"message\":{\"messageId\":\"a\",\"messageId\":\"b\"}}}", NULL, NULL, NULL},
		{"{\"params\":{\"message\":\"text\"}}", NULL, NULL, NULL},
		{"{\"params\":{\"messageId\":\"m\"}}", NULL, NULL, NULL},
		{"{\"params\":[{\"message\":{\"messageId\":\"m\"}}]}", NULL, NULL, NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_body_of(PROTOCOL_A2A, cases[i].json, cases[i].key, cases[i].from, cases[i].rest);
		assert_body_of(PROTOCOL_MCP, cases[i].json, NULL, NULL, NULL);
	}
}

static void takes_no_name_that_comes_twice(void **state)
{
	(void)state;
	assert_body("{\"requestId\":\"a\",\"requestId\":\"b\"}", NULL, NULL, NULL);
	assert_body("{\"requestId\":\"a\",\"requestId\":\"b\",\"requestId\":\"c\"}", NULL, NULL,
		    NULL);
}

static void prefers_members_in_the_order_of_the_table(void **state)
{
	(void)state;
	assert_body("{\"event_id\":\"Ev1\",\"id\":\"evt_2\"}", "Ev1", "body.event_id",
		    "{\"id\":\"evt_2\"}");
	assert_body("{\"ClientToken\":\"c\",\"idempotency_key\":\"i\"}", "i",
		    "body.idempotency_key", "{\"ClientToken\":\"c\"}");
}

static void takes_body_keys_up_to_1024_bytes(void **state)
{
	char key[1026], json[1100];

	(void)state;
	memset(key, 'k', sizeof(key) - 1);
	key[1025] = '\0';
	snprintf(json, sizeof(json), "{\"requestId\":\"%s\"}", key);
	assert_body(json, NULL, NULL, NULL);
	key[1024] = '\0';
	snprintf(json, sizeof(json), "{\"requestId\":\"%s\"}", key);
	assert_body(json, key, "body.requestId", "{}");
}

static void assert_body_is_not_asked(struct call_build *build, enum canonical_kind kind,
				     enum idem_state state)
{
	struct buffer text = {0};
	struct bytes member;

	build->call.canon = kind;
	assert_int_equal(idempotency_key(&build->call, &text), 0);
	assert_int_equal(idempotency_body_key(&build->call, BYTES("{\"requestId\":\"k\"}"), &text,
					      &member),
			 0);
	assert_int_equal(build->call.idem_state, state);
	assert_int_equal(member.size, 0);
	buffer_done(&text);
}

static void asks_the_body_only_where_the_head_carries_none(void **state)
{
	struct call_build build;

	(void)state;
	call_build_init(&build);
	assert_body_is_not_asked(&build, CANONICAL_RAW, IDEM_ABSENT);
	assert_body_is_not_asked(&build, CANONICAL_NDJSON, IDEM_ABSENT);
	build.head.cut = true;
	assert_body_is_not_asked(&build, CANONICAL_JSON, IDEM_UNKNOWN);
	call_build_add(&build, "Idempotency-Key", "a, b");
	assert_body_is_not_asked(&build, CANONICAL_JSON, IDEM_INVALID);
	call_build_init(&build);
	call_build_add(&build, "Idempotency-Key", "k");
	assert_body_is_not_asked(&build, CANONICAL_JSON, IDEM_PRESENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_the_quotes_off),
		cmocka_unit_test(takes_a_bare_key),
		cmocka_unit_test(never_folds_case),
		cmocka_unit_test(ignores_parameters),
		cmocka_unit_test(takes_broken_quoting_as_it_is),
		cmocka_unit_test(calls_a_list_invalid),
		cmocka_unit_test(calls_two_lines_invalid_and_keeps_both),
		cmocka_unit_test(takes_an_empty_key_for_none),
		cmocka_unit_test(knows_every_header_that_carries_a_key),
		cmocka_unit_test(takes_other_headers_as_bare_strings),
		cmocka_unit_test(calls_two_lines_of_another_header_invalid),
		cmocka_unit_test(prefers_the_standard_header),
		cmocka_unit_test(goes_on_behind_an_empty_header),
		cmocka_unit_test(does_not_take_retry_markers_for_keys),
		cmocka_unit_test(does_not_know_without_a_head),
		cmocka_unit_test(does_not_know_where_the_head_was_cut),
		cmocka_unit_test(knows_every_member_that_carries_a_key),
		cmocka_unit_test(takes_the_member_out_with_one_comma),
		cmocka_unit_test(undoes_escapes_of_a_body_key),
		cmocka_unit_test(takes_only_event_ids_from_the_member_id),
		cmocka_unit_test(takes_only_strings_that_say_something),
		cmocka_unit_test(takes_only_top_level_members_of_an_object),
		cmocka_unit_test(an_a2a_call_has_its_key_in_the_message),
		cmocka_unit_test(takes_no_name_that_comes_twice),
		cmocka_unit_test(prefers_members_in_the_order_of_the_table),
		cmocka_unit_test(takes_body_keys_up_to_1024_bytes),
		cmocka_unit_test(asks_the_body_only_where_the_head_carries_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
