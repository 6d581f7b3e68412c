/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fingerprints: what makes two calls the same and what does not; key scopes,
 * retry hints, call ids, hashes of secrets.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "call_build.h"
#include "fingerprint.h"

static struct fingerprinter *fingerprinter;

static const uint8_t salt_a[32] = {1}, salt_b[32] = {2};

static int set_up(void **state)
{
	(void)state;
	fingerprinter = fingerprinter_new(salt_a);
	return fingerprinter ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	fingerprinter_free(fingerprinter);
	return 0;
}

static void print(struct call_build *build, const char *text)
{
	assert_int_equal(fingerprint_call(fingerprinter, &build->call, bytes_of_string(text), false), 0);
}

/* A JSON call with that one header; both may be NULL. */
static void print_with(const char *name, const char *value, struct call_build *build)
{
	call_build_init(build);
	if (name)
		call_build_add(build, name, value);
	call_build_body(build, CANONICAL_JSON, "{\"amount\":1900}");
	print(build, "{\"amount\":1900}");
	assert_true(build->call.has_fingerprint);
}

static void print_body(enum canonical_kind kind, const char *text, struct digest *ret_fingerprint)
{
	struct call_build build;

	call_build_init(&build);
	call_build_body(&build, kind, text);
	print(&build, text);
	assert_true(build.call.has_fingerprint);
	*ret_fingerprint = build.call.fingerprint;
}

static void assert_same(const struct call_build *a, const struct call_build *b)
{
	assert_true(digest_equal(&a->call.fingerprint, &b->call.fingerprint));
}

static void assert_differ(const struct call_build *a, const struct call_build *b)
{
	assert_false(digest_equal(&a->call.fingerprint, &b->call.fingerprint));
}

/* ---- headers ---- */

static void counts_every_tenant_header(void **state)
{
	static const char *const names[] = {
		"Stripe-Account", "OpenAI-Organization", "OpenAI-Project", "anthropic-workspace",
		"X-Amz-Target",	  "Mcp-Method",		 "Mcp-Name",	   "X-HTTP-Method-Override",
		"X-HTTP-Method",  "X-Method-Override",
		"SOAPAction",	  "Destination",	 "Depth",	   "Content-Range",
		"Upload-Offset",  "Upload-Length",	 "Upload-Metadata", "X-Goog-Upload-Command",
		"X-Goog-Upload-Offset", "x-amz-copy-source", "x-amz-copy-source-range", "x-ms-copy-source",
		"x-ms-range",	  "Dropbox-API-Arg",
	};
	struct call_build without, with, same, other;

	(void)state;
	print_with(NULL, NULL, &without);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		print_with(names[i], "acct_1", &with);
		print_with(names[i], "acct_1", &same);
		print_with(names[i], "acct_2", &other);
		assert_same(&with, &same);
		assert_differ(&with, &other);
		assert_differ(&with, &without);
	}
}

static void does_not_mix_up_tenant_headers(void **state)
{
	struct call_build organization, project;

	(void)state;
	print_with("OpenAI-Organization", "x", &organization);
	print_with("OpenAI-Project", "x", &project);
	assert_differ(&organization, &project);
}

static void does_not_care_how_tenant_headers_are_spelled_or_placed(void **state)
{
	struct call_build a, b;

	(void)state;
	call_build_init(&a);
	call_build_add(&a, "Stripe-Account", "acct_1");
	call_build_add(&a, "X-HTTP-Method-Override", "PATCH");
	call_build_init(&b);
	call_build_add(&b, "x-http-method-override", "PATCH");
	call_build_add(&b, "STRIPE-ACCOUNT", "acct_1");
	call_build_body(&a, CANONICAL_NONE, "");
	call_build_body(&b, CANONICAL_NONE, "");
	print(&a, "");
	print(&b, "");
	assert_same(&a, &b);
}

static void ignores_every_header_that_changes_between_attempts(void **state)
{
	static const char *const names[] = {
		"x-stainless-retry-count",
		"x-stainless-timeout",
		"x-stainless-read-timeout",
		"x-stainless-helper-method",
		"amz-sdk-request",
		"amz-sdk-invocation-id",
		"x-amz-date",
		"x-amz-security-token",
		"Authorization",
		"Date",
		"traceparent",
		"tracestate",
		"baggage",
		"b3",
		"x-b3-traceid",
		"x-b3-spanid",
		"sentry-trace",
		"x-datadog-trace-id",
		"x-cloud-trace-context",
		"x-amzn-trace-id",
		"x-request-id",
		"x-correlation-id",
		"x-client-request-id",
		"X-Stripe-Client-Telemetry",
		"X-Slack-Retry-Num",
		"X-Slack-Retry-Reason",
		"X-Server-Timeout",
		"Connection",
		"Content-Length",
		"Content-Type",
		"Content-Encoding",
		"Accept-Encoding",
		"User-Agent",
		"Cookie",
		"Expect",
		"Host",
		"Mcp-Session-Id",
		"last-event-id",
		"If-Match",
		"x-api-key",
		"Idempotency-Key",
		"X-GitHub-Delivery",
		"Transfer-Encoding",
	};
	struct call_build without, first, second;

	(void)state;
	print_with(NULL, NULL, &without);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		print_with(names[i], "1", &first);
		print_with(names[i], "2", &second);
		assert_same(&first, &without);
		assert_same(&second, &without);
	}
}

/* ---- server ---- */

static void print_host(const char *host, struct call_build *build)
{
	call_build_init(build);
	build->call.host = bytes_of_string(host);
	build->call.has_host = host != NULL;
	call_build_body(build, CANONICAL_NONE, "");
	print(build, "");
}

static void folds_every_spelling_of_loopback(void **state)
{
	static const char *const hosts[] = {
		"127.0.0.1",	   "127.0.0.1:80",	 "127.0.0.2:8080",
		"127.255.255.255", "localhost",		 "localhost:8080",
		"LocalHost",	   "localhost.",	 "localhost.:8080",
		"api.localhost",   "A.B.LOCALHOST:8080", "[::1]",
		"[::1]:8080",	   "[0:0:0:0:0:0:0:1]",	 "[::ffff:127.0.0.1]:8080",
		"[::FFFF:7F00:1]",
	};
	struct call_build expected, build;

	(void)state;
	print_host("127.0.0.1:8080", &expected);
	for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
		print_host(hosts[i], &build);
		assert_same(&build, &expected);
	}
}

static void keeps_other_hosts_apart(void **state)
{
	static const char *const hosts[] = {
		"",
		"128.0.0.1",
		"10.0.0.1",
		"example.com",
		"example.com:8080",
		"localhost.example.com",
		"notlocalhost",
		"127.0.0.1.nip.io",
		"127.0.0",
		"[::2]",
		"[::ffff:128.0.0.1]",
		"[fe80::1]",
		"[",
		"::1",
		"loop.back",
	};
	struct call_build builds[sizeof(hosts) / sizeof(hosts[0]) + 1];
	const size_t count = sizeof(hosts) / sizeof(hosts[0]);

	(void)state;
	for (size_t i = 0; i < count; i++)
		print_host(hosts[i], &builds[i]);
	print_host("localhost", &builds[count]);
	for (size_t i = 0; i <= count; i++)
		for (size_t j = 0; j < i; j++)
			assert_differ(&builds[i], &builds[j]);
}

static void folds_the_case_of_a_host(void **state)
{
	struct call_build a, b;

	(void)state;
	print_host("API.Example.com:8080", &a);
	print_host("api.example.com:8080", &b);
	assert_same(&a, &b);
}

static void takes_a_host_of_any_length(void **state)
{
	struct call_build a, b;
	char host[600];

	(void)state;
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	print_host(host, &a);
	host[sizeof(host) - 2] = 'i';
	print_host(host, &b);
	assert_differ(&a, &b);
}

static void counts_port_and_network_namespace(void **state)
{
	struct call_build first, port, netns;

	(void)state;
	call_build_init(&first);
	call_build_body(&first, CANONICAL_NONE, "");
	port = netns = first;
	port.call.server.port = 8081;
	netns.call.netns++;
	print(&first, "");
	print(&port, "");
	print(&netns, "");
	assert_differ(&first, &port);
	assert_differ(&first, &netns);
}

static void leaves_the_namespace_out_for_model_calls(void **state)
{
	struct call_build first, netns, port;

	(void)state;
	call_build_init(&first);
	call_build_body(&first, CANONICAL_NONE, "");
	first.call.class = CLASS_LLM;
	netns = port = first;
	netns.call.netns++;
	port.call.server.port++;
	print(&first, "");
	print(&netns, "");
	print(&port, "");
	assert_same(&first, &netns);
	assert_differ(&first, &port);
}

static void does_not_count_who_sent_it_from_where(void **state)
{
	struct call_build first, other;

	(void)state;
	call_build_init(&first);
	call_build_body(&first, CANONICAL_NONE, "");
	other = first;
	other.call.client.port = 40001;
	other.call.server.address[15] = 1;
	other.call.process.tgid = 4711;
	print(&first, "");
	print(&other, "");
	assert_same(&first, &other);
}

/* ---- target ---- */

static void print_target(const char *method, const char *path, const char *query,
			 struct call_build *build)
{
	call_build_init(build);
	build->call.method = bytes_of_string(method);
	build->call.path = bytes_of_string(path);
	build->call.query = bytes_of_string(query);
	build->call.has_query = query != NULL;
	call_build_body(build, CANONICAL_NONE, "");
	print(build, "");
}

static void counts_method_path_and_query(void **state)
{
	struct call_build builds[6];

	(void)state;
	print_target("POST", "/a", NULL, &builds[0]);
	print_target("PUT", "/a", NULL, &builds[1]);
	print_target("POST", "/b", NULL, &builds[2]);
	print_target("POST", "/A", NULL, &builds[3]);
	print_target("POST", "/a", "x=1", &builds[4]);
	print_target("POST", "/a", "x=2", &builds[5]);
	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < i; j++)
			assert_differ(&builds[i], &builds[j]);
}

static void does_not_care_how_a_query_is_ordered_or_spelled(void **state)
{
	struct call_build a, b, none, empty;

	(void)state;
	print_target("POST", "/a", "b=2&a=x+y", &a);
	print_target("POST", "/a", "%61=x%20y&b=2", &b);
	assert_same(&a, &b);
	print_target("POST", "/a", NULL, &none);
	print_target("POST", "/a", "", &empty);
	assert_same(&none, &empty);
}

/* ---- body ---- */

static void counts_the_body(void **state)
{
	struct digest digests[6];

	(void)state;
	print_body(CANONICAL_JSON, "{\"a\":1}", &digests[0]);
	print_body(CANONICAL_JSON, "{\"a\":2}", &digests[1]);
	print_body(CANONICAL_FORM, "a=1", &digests[2]);
	print_body(CANONICAL_FORM, "a=2", &digests[3]);
	print_body(CANONICAL_RAW, "raw", &digests[4]);
	print_body(CANONICAL_NONE, "", &digests[5]);
	for (size_t i = 0; i < 6; i++)
		for (size_t j = 0; j < i; j++)
			assert_false(digest_equal(&digests[i], &digests[j]));
}

static void gives_the_same_body_the_same_fingerprint(void **state)
{
	static const enum canonical_kind kinds[] = {CANONICAL_JSON,	 CANONICAL_FORM,
						    CANONICAL_MULTIPART, CANONICAL_NDJSON,
						    CANONICAL_RAW,	 CANONICAL_NONE};
	struct digest first, second;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		print_body(kinds[i], "{}", &first);
		print_body(kinds[i], "{}", &second);
		assert_true(digest_equal(&first, &second));
	}
}

/* classify.h takes volatile members out of JSON: the text that is handed in counts, not call->sha. */
static void compares_json_by_the_text_it_is_given(void **state)
{
	struct call_build a, b;

	(void)state;
	call_build_init(&a);
	b = a;
	call_build_body(&a, CANONICAL_JSON, "{\"id\":1,\"method\":\"x\"}");
	call_build_body(&b, CANONICAL_JSON, "{\"id\":2,\"method\":\"x\"}");
	print(&a, "{\"method\":\"x\"}");
	print(&b, "{\"method\":\"x\"}");
	assert_same(&a, &b);
}

/* The hash of a whole text is taken over, and a key in it is taken out all the same. */
static void knows_the_hash_of_a_whole_text(void **state)
{
	static const char *const texts[] = {"{\"amount\":1}", "{\"amount\":1,\"requestId\":\"one\"}"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct call_build a, b;

		call_build_init(&a);
		call_build_body(&a, CANONICAL_JSON, texts[i]);
		b = a;
		print(&a, texts[i]);
		assert_int_equal(fingerprint_call(fingerprinter, &b.call, bytes_of_string(texts[i]), true), 0);
		assert_same(&a, &b);
		b.call.sha.byte[0] ^= 1;
		assert_int_equal(fingerprint_call(fingerprinter, &b.call, bytes_of_string(texts[i]), true), 0);
		if (i == 0) /* it was not hashed again */
			assert_differ(&a, &b);
		else
			assert_same(&a, &b);
	}
}

/* A body over the cap is not held: its raw hash is all there is. */
static void compares_a_body_that_is_not_held_by_its_hash(void **state)
{
	struct call_build a, b, c;

	(void)state;
	call_build_init(&a);
	b = c = a;
	call_build_body(&a, CANONICAL_RAW, "first");
	call_build_body(&b, CANONICAL_RAW, "first");
	call_build_body(&c, CANONICAL_RAW, "second");
	print(&a, "");
	print(&b, "");
	print(&c, "");
	assert_same(&a, &b);
	assert_differ(&a, &c);
}

static void makes_no_fingerprint_of_what_was_not_seen(void **state)
{
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_body(&build, CANONICAL_RAW, "x");
	build.call.has_sha = false;
	build.call.has_fingerprint = true;
	print(&build, "");
	assert_false(build.call.has_fingerprint);
	call_build_init(&build);
	call_build_body(&build, CANONICAL_RAW, "x");
	build.call.head = NULL;
	print(&build, "");
	assert_false(build.call.has_fingerprint);
	assert_int_equal(build.call.idem_state, IDEM_UNKNOWN);
}

/* ---- keys ---- */

static void print_key(const char *authorization, const char *key, const char *json,
		      struct call_build *build)
{
	call_build_init(build);
	if (authorization)
		call_build_add(build, "Authorization", authorization);
	if (key)
		call_build_add(build, "Idempotency-Key", key);
	call_build_body(build, CANONICAL_JSON, json);
	print(build, json);
}

static void never_counts_a_header_key(void **state)
{
	struct call_build none, a, b;

	(void)state;
	print_key(NULL, NULL, "{\"a\":1}", &none);
	print_key(NULL, "\"one\"", "{\"a\":1}", &a);
	print_key(NULL, "\"two\"", "{\"a\":1}", &b);
	assert_same(&none, &a);
	assert_same(&a, &b);
	assert_true(digest_equal(&none.call.sha, &a.call.sha));
}

static void never_counts_a_body_key(void **state)
{
	struct call_build none, a, b, other;

	(void)state;
	print_key(NULL, NULL, "{\"amount\":1,\"z\":0}", &none);
	print_key(NULL, NULL, "{\"amount\":1,\"requestId\":\"one\",\"z\":0}", &a);
	print_key(NULL, NULL, "{\"amount\":1,\"requestId\":\"two\",\"z\":0}", &b);
	print_key(NULL, NULL, "{\"amount\":2,\"requestId\":\"one\",\"z\":0}", &other);
	assert_string_equal(a.call.idem_from, "body.requestId");
	assert_same(&none, &a);
	assert_same(&a, &b);
	assert_differ(&a, &other);
}

static void leaves_the_hash_of_the_body_alone(void **state)
{
	struct call_build build;
	struct digest expected;

	(void)state;
	assert_int_equal(digest_of(BYTES("{\"requestId\":\"one\"}"), &expected), 0);
	print_key(NULL, NULL, "{\"requestId\":\"one\"}", &build);
	assert_true(digest_equal(&build.call.sha, &expected));
}

static void counts_a_body_member_where_a_header_holds_the_key(void **state)
{
	struct call_build a, b;

	(void)state;
	print_key(NULL, "k", "{\"requestId\":\"one\"}", &a);
	print_key(NULL, "k", "{\"requestId\":\"two\"}", &b);
	assert_differ(&a, &b);
}

static void lends_a_body_key_until_the_next_call(void **state)
{
	struct call_build build;
	char json[] = "{\"requestId\":\"one\"}";

	(void)state;
	print_key(NULL, NULL, json, &build);
	memset(json, 'x', sizeof(json) - 1);
	assert_true(bytes_equal(build.call.idem, BYTES("one")));
}

static void makes_one_key_scope_for_one_key(void **state)
{
	struct call_build a, quoted, other_body, in_body;

	(void)state;
	print_key(NULL, "one", "{\"a\":1}", &a);
	print_key(NULL, "\"one\"", "{\"a\":1}", &quoted);
	print_key(NULL, "one", "{\"a\":2}", &other_body);
	print_key(NULL, NULL, "{\"requestId\":\"one\"}", &in_body);
	assert_true(digest_equal(&a.call.key_scope, &quoted.call.key_scope));
	assert_true(digest_equal(&a.call.key_scope, &other_body.call.key_scope));
	assert_true(digest_equal(&a.call.key_scope, &in_body.call.key_scope));
	assert_false(digest_equal(&a.call.key_scope, &a.call.fingerprint));
}

static void scopes_a_key_by_server_target_and_principal(void **state)
{
	struct call_build builds[8];

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		call_build_init(&builds[i]);
		call_build_body(&builds[i], CANONICAL_NONE, "");
	}
	builds[1].call.server.port = 1;
	builds[2].call.netns = 1;
	builds[3].call.host = BYTES("example.com");
	builds[4].call.method = BYTES("PATCH");
	builds[5].call.path = BYTES("/v1/refunds");
	call_build_add(&builds[6], "Authorization", "Bearer sk_test_1");
	for (size_t i = 0; i < 8; i++) {
		call_build_add(&builds[i], "Idempotency-Key", i == 7 ? "two" : "one");
		print(&builds[i], "");
		for (size_t j = 0; j < i; j++)
			assert_false(
				digest_equal(&builds[i].call.key_scope, &builds[j].call.key_scope));
	}
}

static void does_not_scope_a_key_by_its_query(void **state)
{
	struct call_build a, b;

	(void)state;
	call_build_init(&a);
	call_build_add(&a, "Idempotency-Key", "one");
	call_build_body(&a, CANONICAL_NONE, "");
	b = a;
	b.call.head = &b.head;
	b.head.fields = b.fields;
	b.call.query = BYTES("x=1");
	print(&a, "");
	print(&b, "");
	assert_true(digest_equal(&a.call.key_scope, &b.call.key_scope));
	assert_differ(&a, &b);
}

static void makes_no_key_scope_without_a_key(void **state)
{
	struct digest untouched = {{0}};
	struct call_build build;

	(void)state;
	print_key(NULL, NULL, "{}", &build);
	assert_true(digest_equal(&build.call.key_scope, &untouched));
	print_key(NULL, "a, b", "{}", &build);
	assert_int_equal(build.call.idem_state, IDEM_INVALID);
	assert_true(digest_equal(&build.call.key_scope, &untouched));
}

static void keeps_the_principal_beside_the_fingerprint(void **state)
{
	struct call_build a, b, none;

	(void)state;
	print_key("Bearer sk_test_1", NULL, "{}", &a);
	print_key("Bearer sk_test_2", NULL, "{}", &b);
	print_key(NULL, NULL, "{}", &none);
	assert_same(&a, &b);
	assert_true(a.call.has_principal && a.call.principal_is_bearer);
	assert_false(none.call.has_principal);
	assert_false(digest_equal(&a.call.principal, &b.call.principal));
}

static void salts_principals_but_not_fingerprints(void **state)
{
	struct fingerprinter *other = fingerprinter_new(salt_b);
	struct call_build a, b;

	(void)state;
	assert_non_null(other);
	print_key("Bearer sk_test_1", NULL, "{}", &a);
	b = a;
	assert_int_equal(fingerprint_call(other, &b.call, BYTES("{}"), false), 0);
	assert_same(&a, &b);
	assert_false(digest_equal(&a.call.principal, &b.call.principal));
	fingerprinter_free(other);
	fingerprinter_free(NULL);
}

/* ---- retry hints ---- */

static void assert_hint(const struct call_build *build, const char *expected)
{
	assert_true(bytes_equal(build->call.retry_hint, bytes_of_string(expected)));
}

static void shows_every_retry_marker(void **state)
{
	static const char *const cases[][2] = {
		{"X-Stainless-Retry-Count", "{\"x-stainless-retry-count\":\"1\"}"},
		{"Amz-Sdk-Invocation-Id", "{\"amz-sdk-invocation-id\":\"1\"}"},
		{"Amz-Sdk-Request", "{\"amz-sdk-request\":\"1\"}"},
		{"X-Slack-Retry-Num", "{\"x-slack-retry-num\":\"1\"}"},
		{"X-Slack-Retry-Reason", "{\"x-slack-retry-reason\":\"1\"}"},
		{"X-GitHub-Delivery", "{\"x-github-delivery\":\"1\"}"},
	};
	struct call_build build;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		print_with(cases[i][0], "1", &build);
		assert_hint(&build, cases[i][1]);
	}
}

static void shows_retry_markers_in_a_fixed_order_and_escaped(void **state)
{
	struct call_build build;

	(void)state;
	call_build_init(&build);
	call_build_add(&build, "amz-sdk-request", "attempt=2; max=\"3\"\x01");
	call_build_add(&build, "x-stainless-retry-count", "0");
	call_build_body(&build, CANONICAL_NONE, "");
	print(&build, "");
	assert_hint(
		&build,
		"{\"x-stainless-retry-count\":\"0\",\"amz-sdk-request\":\"attempt=2; max=\\\"3\\\"\\u0001\"}");
}

static void shows_no_hint_where_there_is_no_marker(void **state)
{
	struct call_build build;

	(void)state;
	print_with("traceparent", "00-1-1-01", &build);
	assert_int_equal(build.call.retry_hint.size, 0);
	build.call.head = NULL;
	build.call.retry_hint = BYTES("left over");
	print(&build, "{}");
	assert_int_equal(build.call.retry_hint.size, 0);
}

/* ---- other hashes ---- */

static const uint8_t boot_id[16] = {0xb0, 0x07};

/* Kept as bytes, so that recordings made by one version are read by the next. */
static void makes_the_id_of_a_call_from_these_bytes(void **state)
{
	struct call_build build;
	uint8_t id[CALL_ID_BYTES];
	struct digest expected;
	uint8_t input[16 + 8 + 24 + 24 + 8] = {0xb0, 0x07};

	(void)state;
	call_build_init(&build);
	build.call.netns = 0x04030201;
	memset(build.call.client.address, 0xaa, 16);
	build.call.client.port = 0x1234;
	memset(build.call.server.address, 0xbb, 16);
	build.call.server.port = 0x5678;
	memcpy(input + 16, "\x01\x02\x03\x04", 4);
	memset(input + 24, 0xaa, 16);
	memcpy(input + 40, "\x34\x12", 2);
	memset(input + 48, 0xbb, 16);
	memcpy(input + 64, "\x78\x56", 2);
	memcpy(input + 72, "\xef\xbe\xad\xde", 4);
	assert_int_equal(digest_of((struct bytes){input, sizeof(input)}, &expected), 0);
	assert_int_equal(call_id(fingerprinter, boot_id, &build.call, 0xdeadbeef, id), 0);
	assert_memory_equal(id, expected.byte, CALL_ID_BYTES);
}

static void counts_every_part_of_an_id(void **state)
{
	const uint8_t other_boot[16] = {1};
	uint8_t ids[7][CALL_ID_BYTES];
	struct call_build build, first;

	(void)state;
	call_build_init(&first);
	assert_int_equal(call_id(fingerprinter, boot_id, &first.call, 1, ids[0]), 0);
	assert_int_equal(call_id(fingerprinter, other_boot, &first.call, 1, ids[1]), 0);
	assert_int_equal(call_id(fingerprinter, boot_id, &first.call, 2, ids[2]), 0);
	build = first;
	build.call.netns++;
	assert_int_equal(call_id(fingerprinter, boot_id, &build.call, 1, ids[3]), 0);
	build = first;
	build.call.client.port++;
	assert_int_equal(call_id(fingerprinter, boot_id, &build.call, 1, ids[4]), 0);
	build = first;
	build.call.server.port++;
	assert_int_equal(call_id(fingerprinter, boot_id, &build.call, 1, ids[5]), 0);
	build = first;
	build.call.server.address[15]++;
	assert_int_equal(call_id(fingerprinter, boot_id, &build.call, 1, ids[6]), 0);
	for (size_t i = 0; i < 7; i++)
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(ids[i], ids[j], CALL_ID_BYTES);
}

static void hides_a_secret_behind_a_salted_hash(void **state)
{
	struct fingerprinter *other = fingerprinter_new(salt_b);
	char a[18], same[18], b[18], salted[18];

	(void)state;
	assert_non_null(other);
	secret_text(fingerprinter, BYTES("sk_live_1"), a);
	secret_text(fingerprinter, BYTES("sk_live_1"), same);
	secret_text(fingerprinter, BYTES("sk_live_2"), b);
	secret_text(other, BYTES("sk_live_1"), salted);
	assert_int_equal(strlen(a), 17);
	assert_int_equal(a[0], '~');
	assert_int_equal(strspn(a + 1, "0123456789abcdef"), 16);
	assert_string_not_equal(a, "~0000000000000000");
	assert_string_equal(a, same);
	assert_string_not_equal(a, b);
	assert_string_not_equal(a, salted);
	fingerprinter_free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_every_tenant_header),
		cmocka_unit_test(does_not_mix_up_tenant_headers),
		cmocka_unit_test(does_not_care_how_tenant_headers_are_spelled_or_placed),
		cmocka_unit_test(ignores_every_header_that_changes_between_attempts),
		cmocka_unit_test(folds_every_spelling_of_loopback),
		cmocka_unit_test(keeps_other_hosts_apart),
		cmocka_unit_test(folds_the_case_of_a_host),
		cmocka_unit_test(takes_a_host_of_any_length),
		cmocka_unit_test(counts_port_and_network_namespace),
		cmocka_unit_test(leaves_the_namespace_out_for_model_calls),
		cmocka_unit_test(does_not_count_who_sent_it_from_where),
		cmocka_unit_test(counts_method_path_and_query),
		cmocka_unit_test(does_not_care_how_a_query_is_ordered_or_spelled),
		cmocka_unit_test(counts_the_body),
		cmocka_unit_test(gives_the_same_body_the_same_fingerprint),
		cmocka_unit_test(compares_json_by_the_text_it_is_given),
		cmocka_unit_test(knows_the_hash_of_a_whole_text),
		cmocka_unit_test(compares_a_body_that_is_not_held_by_its_hash),
		cmocka_unit_test(makes_no_fingerprint_of_what_was_not_seen),
		cmocka_unit_test(never_counts_a_header_key),
		cmocka_unit_test(never_counts_a_body_key),
		cmocka_unit_test(leaves_the_hash_of_the_body_alone),
		cmocka_unit_test(counts_a_body_member_where_a_header_holds_the_key),
		cmocka_unit_test(lends_a_body_key_until_the_next_call),
		cmocka_unit_test(makes_one_key_scope_for_one_key),
		cmocka_unit_test(scopes_a_key_by_server_target_and_principal),
		cmocka_unit_test(does_not_scope_a_key_by_its_query),
		cmocka_unit_test(makes_no_key_scope_without_a_key),
		cmocka_unit_test(keeps_the_principal_beside_the_fingerprint),
		cmocka_unit_test(salts_principals_but_not_fingerprints),
		cmocka_unit_test(shows_every_retry_marker),
		cmocka_unit_test(shows_retry_markers_in_a_fixed_order_and_escaped),
		cmocka_unit_test(shows_no_hint_where_there_is_no_marker),
		cmocka_unit_test(makes_the_id_of_a_call_from_these_bytes),
		cmocka_unit_test(counts_every_part_of_an_id),
		cmocka_unit_test(hides_a_secret_behind_a_salted_hash),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
