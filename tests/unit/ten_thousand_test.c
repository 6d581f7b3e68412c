/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ten thousand calls that are no duplicate of each other, of every class and
 * protocol, and a hundred true duplicates strewn among them, all made up from
 * one seed and played as wire events through the whole pipeline: exactly the
 * hundred must be found, each under its name.
 *
 * Each operation has a number of its own in its query, "n=17"; the second
 * attempt of a duplicate has that of the first, and is written differently
 * wherever its protocol allows.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SCENE_CONNECTIONS 512
#include "scene.h"

#define SEED 20261001
#define CALLS 10000
#define DUPLICATES 100
#define AGENTS 8
#define FIRST_AGENT 6000
#define PROXY 7000
#define PROXY_PORT 9000

enum kind {
	/* writes that a duplicate may be made of */
	ORDER, PATCH, FORM, MULTIPART, NDJSON, CHUNKED, RPC, RPC_BATCH, MCP_WRITE, GRAPHQL_MUTATION, AWS_PUT, A2A, CHAT, KEY_REUSED,
	WRITES,
	/* what is none, however often it comes */
	PUT = WRITES, DELETE, PAGE, GET, HEAD, OVERRIDDEN_GET, MCP_READ, MCP_LIST, MCP_NOTIFICATION, GRAPHQL_QUERY, AWS_GET,
	EMBEDDING, TOKEN, TRACES, POLLS, CHALLENGE, REDIRECT, KEYED_RETRY, PROXIED,
	KINDS,
};

/* How the first attempt of a duplicate ends. */
enum ending { ANSWERED, CUT, UNANSWERED, TIMED_OUT, FAILED, STILL_OPEN, ENDINGS };

struct duplicate {
	enum kind kind;
	enum ending ending;
	unsigned int number;
	uint32_t connection; /* of the first attempt */
	size_t due;	     /* the call before which the second one comes */
	bool found;
};

struct play {
	struct scene scene;
	uint64_t random;
	uint32_t kept[AGENTS]; /* one kept-alive connection of each agent */
	uint32_t to_proxy, from_proxy;
	unsigned int number;
	size_t calls; /* that are no second attempt */
	struct duplicate duplicates[DUPLICATES];
};

static struct play play;

static uint32_t random_below(uint32_t limit)
{
	play.random ^= play.random << 13;
	play.random ^= play.random >> 7;
	play.random ^= play.random << 17;
	return (uint32_t)((play.random * 0x2545f4914f6cdd1dULL) >> 33) % limit;
}

/* ---- what is sent ---- */

#define JSON "Content-Type: application/json\r\n"

/* Everything that no two attempts have in common. */
static int volatile_headers(char *text, size_t size)
{
	return snprintf(text, size, "Host: %s\r\ntraceparent: 00-%08x-%08x-01\r\nX-Request-Id: %u\r\nUser-Agent: a/%u\r\n",
			random_below(2) ? "localhost:8080" : "127.0.0.1:8080", random_below(1U << 31), random_below(1U << 31),
			random_below(1U << 31), random_below(9));
}

static void send_text(uint32_t c, const char *method, const char *path, unsigned int n, const char *headers, const char *body)
{
	char text[4096], common[256];
	int size;

	volatile_headers(common, sizeof(common));
	size = snprintf(text, sizeof(text), "%s %s?n=%u HTTP/1.1\r\n%s%s", method, path, n, common, headers);
	if (!strstr(headers, "Transfer-Encoding"))
		size += snprintf(text + size, sizeof(text) - (size_t)size, "Content-Length: %zu\r\n", strlen(body));
	size += snprintf(text + size, sizeof(text) - (size_t)size, "\r\n%s", body);
	assert_true(size < (int)sizeof(text));
	scene_wait(&play.scene, 1 + random_below(20));
	scene_send(&play.scene, c, WIRE_BUILD_CLIENT, text);
}

#define FORMAT(...) snprintf(body, sizeof(body), __VA_ARGS__)

/* The same operation for the same number, in one of its spellings. again: the second attempt. */
static void send_write(uint32_t c, enum kind kind, unsigned int n, bool again)
{
	unsigned int id = random_below(1U << 31);
	char body[1024], headers[256] = JSON;

	switch (kind) {
	case ORDER:
		FORMAT(random_below(2) ? "{\"order\":{\"sku\":\"b-%u\",\"price\":1900},\"note\":\"\\u00e9\"}"
				       : "{ \"note\": \"é\", \"order\": {\"price\": 1.9e3, \"sku\": \"b-%u\"} }", n);
		send_text(c, "POST", "/v1/orders", n, headers, body);
		return;
	case PATCH:
		FORMAT("{\"state\":\"paid\",\"by\":%u}", n);
		send_text(c, "PATCH", "/v1/orders/7", n, headers, body);
		return;
	case FORM:
		FORMAT(random_below(2) ? "amount=%u&note=a+b&currency=eur" : "currency=eur&amount=%u&note=a%%20b", n);
		send_text(c, "POST", "/v1/charges", n, "Content-Type: application/x-www-form-urlencoded\r\n", body);
		return;
	case MULTIPART:
		snprintf(headers, sizeof(headers), "Content-Type: multipart/form-data; boundary=b%u\r\n", id);
		FORMAT("--b%u\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nfile %u\r\n--b%u--\r\n", id, n, id);
		send_text(c, "POST", "/v1/files", n, headers, body);
		return;
	case NDJSON:
		FORMAT(random_below(2) ? "{\"index\":{}}\n{\"order\":%u}\n" : "{ \"index\" : {} }\n{\"order\": %u}\n", n);
		send_text(c, "POST", "/orders/_bulk", n, "Content-Type: application/x-ndjson\r\n", body);
		return;
	case CHUNKED:
		FORMAT(random_below(2) ? "14\r\n{\"counter\":%08u}\r\n0\r\n\r\n" : "5\r\n{\"cou\r\nf\r\nnter\":%08u}\r\n0\r\n\r\n",
		       10000000 + n);
		send_text(c, "POST", "/v1/counters", n, JSON "Transfer-Encoding: chunked\r\n", body);
		return;
	case RPC:
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"orders.place\",\"params\":{\"n\":%u}}", id, n);
		send_text(c, "POST", "/rpc", n, headers, body);
		return;
	case RPC_BATCH:
		FORMAT("[{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"orders.get\",\"params\":[1]},"
		       "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"orders.place\",\"params\":[%u]}]", id, id + 1, n);
		send_text(c, "POST", "/rpc", n, headers, body);
		return;
	case MCP_WRITE:
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"create_ticket\","
		       "\"arguments\":{\"title\":\"t-%u\"},\"_meta\":{\"progressToken\":%u}}}", id, n, id);
		snprintf(headers, sizeof(headers), JSON "Mcp-Session-Id: s-%u\r\n", id);
		send_text(c, "POST", "/mcp", n, headers, body);
		return;
	case GRAPHQL_MUTATION:
		FORMAT("{\"query\":\"# query\\nmutation Buy($n: Int!) { buy(n: $n) { id } }\",\"variables\":{\"n\":%u}}", n);
		send_text(c, "POST", "/graphql", n, headers, body);
		return;
	case AWS_PUT:
		FORMAT("{\"TableName\":\"orders\",\"Item\":{\"id\":{\"N\":\"%u\"}}}", n);
		snprintf(headers, sizeof(headers), "Content-Type: application/x-amz-json-1.0\r\nX-Amz-Target: DynamoDB_20120810.PutItem\r\n"
			 "X-Amz-Date: 20261001T%06uZ\r\namz-sdk-request: attempt=%d\r\n", id % 240000, again + 1);
		send_text(c, "POST", "/", n, headers, body);
		return;
	case A2A:
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"message/send\",\"params\":{\"message\":{\"messageId\":\"m-%u-%d\","
		       "\"role\":\"user\",\"parts\":[{\"text\":\"book %u\"}]}}}", id, n, again, n);
		send_text(c, "POST", "/a2a", n, headers, body);
		return;
	case CHAT:
		FORMAT("{\"model\":\"m\",\"stream\":%s,\"messages\":[{\"role\":\"user\",\"content\":\"question %u\"}]}",
		       random_below(2) ? "true" : "false", n);
		snprintf(headers, sizeof(headers), JSON "x-stainless-retry-count: %d\r\n", again);
		send_text(c, "POST", "/v1/chat/completions", n, headers, body);
		return;
	default: /* KEY_REUSED */
		FORMAT("{\"amount\":%u}", again ? n + 1 : n);
		snprintf(headers, sizeof(headers), JSON "Idempotency-Key: \"k-%u\"\r\n", n);
		send_text(c, "POST", "/v1/payments", n, headers, body);
	}
}

/* ---- what comes back ---- */

static void send_answer(uint32_t c, const char *status, const char *headers, const char *body)
{
	char text[2048];

	scene_wait(&play.scene, 1 + random_below(5));
	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", status, headers,
		 strlen(body), body);
	scene_send(&play.scene, c, WIRE_BUILD_SERVER, text);
}

static void say_ok(uint32_t c)
{
	send_answer(c, random_below(2) ? "200 OK" : "201 Created", "", "{\"ok\":true}");
}

/* ---- what is no duplicate ---- */

static void exchange(uint32_t c, const char *method, const char *path, unsigned int n, const char *headers, const char *body)
{
	send_text(c, method, path, n, headers, body);
	if (strcmp(method, "HEAD") == 0)
		scene_send(&play.scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	else
		say_ok(c);
}

/* Equal calls at even gaps, each answered: a poll. */
static void poll_a_job(uint32_t c, unsigned int n)
{
	for (int i = 0; i < 5; i++) {
		scene_wait(&play.scene, 1500);
		exchange(c, "POST", "/v1/jobs/status", n, JSON, "{\"job\":1}");
	}
}

static void challenge(uint32_t c, unsigned int n)
{
	char body[64];

	FORMAT("{\"order\":%u}", n);
	send_text(c, "POST", "/v1/orders", n, JSON, body);
	send_answer(c, "401 Unauthorized", "WWW-Authenticate: Bearer\r\n", "{}");
	exchange(c, "POST", "/v1/orders", n, JSON "Authorization: Bearer t\r\n", body);
}

static void redirect(uint32_t c, unsigned int n)
{
	char body[64];

	FORMAT("{\"order\":%u}", n);
	send_text(c, "POST", "/old/orders", n, JSON, body);
	send_answer(c, random_below(2) ? "307 Temporary Redirect" : "308 Permanent Redirect", "Location: /new/orders\r\n", "");
	exchange(c, "POST", "/new/orders", n, JSON, body);
}

static void retry_under_one_key(uint32_t c, unsigned int n)
{
	char body[64], headers[128];

	FORMAT("{\"order\":%u}", n);
	snprintf(headers, sizeof(headers), JSON "Idempotency-Key: r-%u\r\n", n);
	send_text(c, "POST", "/v1/orders", n, headers, body);
	send_answer(c, "503 Service Unavailable", "Retry-After: 1\r\n", "{}");
	snprintf(headers, sizeof(headers), JSON "Idempotency-Key: \"r-%u\"\r\n", n);
	exchange(c, "POST", "/v1/orders", n, headers, body);
}

static void pass_through_proxy(unsigned int n)
{
	send_write(play.to_proxy, ORDER, n, false);
	send_write(play.from_proxy, ORDER, n, false);
	say_ok(play.from_proxy);
	say_ok(play.to_proxy);
}

/* How many calls it was. Where a class may repeat at will, only few different ones are sent. */
static unsigned int send_harmless(uint32_t c, enum kind kind, unsigned int n)
{
	unsigned int few = n % 20, id = random_below(1U << 31);
	char body[512];

	switch (kind) {
	case PUT:
		FORMAT("{\"order\":%u}", n);
		exchange(c, "PUT", "/v1/orders/9", n, JSON, body);
		return 1;
	case DELETE:
		exchange(c, "DELETE", "/v1/orders/9", n, "", "");
		return 1;
	case PAGE:
		FORMAT("{\"query\":\"open\",\"cursor\":\"c%u\"}", n);
		exchange(c, "POST", "/v1/tickets/search", 0, JSON, body);
		return 1;
	case GET:
		exchange(c, "GET", "/v1/orders", few, "", "");
		return 1;
	case HEAD:
		exchange(c, "HEAD", "/v1/orders", few, "", "");
		return 1;
	case OVERRIDDEN_GET:
		exchange(c, "POST", "/v1/orders", few, "X-HTTP-Method-Override: GET\r\n", "");
		return 1;
	case MCP_READ:
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/call\",\"params\":{\"name\":\"gauge\",\"arguments\":{\"g\":%u}}}", id, few);
		exchange(c, "POST", "/mcp", 0, JSON, body);
		return 1;
	case MCP_LIST:
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"tools/list\"}", id);
		send_text(c, "POST", "/mcp", 0, JSON, body);
		FORMAT("{\"jsonrpc\":\"2.0\",\"id\":%u,\"result\":{\"tools\":[{\"name\":\"gauge\",\"annotations\":{\"readOnlyHint\":true}}]}}", id);
		send_answer(c, "200 OK", "", body);
		return 1;
	case MCP_NOTIFICATION:
		send_text(c, "POST", "/mcp", 0, JSON, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
		send_answer(c, "202 Accepted", "", "");
		return 1;
	case GRAPHQL_QUERY:
		FORMAT("{\"query\":\"query Q($n: Int!) { part(n: $n, note: \\\"mutation\\\") { id } }\",\"variables\":{\"n\":%u}}", few);
		exchange(c, "POST", "/graphql", 0, JSON, body);
		return 1;
	case AWS_GET:
		FORMAT("{\"TableName\":\"orders\",\"Key\":{\"id\":{\"N\":\"%u\"}}}", few);
		exchange(c, "POST", "/", 0, "X-Amz-Target: DynamoDB_20120810.GetItem\r\nContent-Type: application/x-amz-json-1.0\r\n", body);
		return 1;
	case EMBEDDING:
		FORMAT("{\"model\":\"e\",\"input\":\"text %u\"}", n);
		exchange(c, "POST", "/v1/embeddings", 0, JSON, body);
		return 1;
	case TOKEN:
		exchange(c, "POST", "/oauth/token", 0, "Content-Type: application/x-www-form-urlencoded\r\n", "grant_type=client_credentials");
		return 1;
	case TRACES:
		exchange(c, "POST", "/v1/traces", 0, JSON, "{\"resourceSpans\":[]}");
		return 1;
	case POLLS:
		poll_a_job(c, n);
		return 5;
	case CHALLENGE:
		challenge(c, n);
		return 2;
	case REDIRECT:
		redirect(c, n);
		return 2;
	case KEYED_RETRY:
		retry_under_one_key(c, n);
		return 2;
	case PROXIED:
		pass_through_proxy(n);
		return 2;
	default:
		send_write(c, kind, n, false);
		say_ok(c);
		return 1;
	}
}

/* ---- what is one ---- */

static void send_first(struct duplicate *duplicate)
{
	uint32_t c = scene_connect(&play.scene, FIRST_AGENT);

	duplicate->connection = c;
	duplicate->number = ++play.number;
	send_write(c, duplicate->kind, duplicate->number, false);
	switch (duplicate->ending) {
	case ANSWERED:
		say_ok(c);
		break;
	case CUT:
		scene_send(&play.scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"id\":");
		scene_wait(&play.scene, 1);
		scene_close(&play.scene, c, WIRE_BUILD_SERVER);
		break;
	case UNANSWERED:
		scene_wait(&play.scene, 1);
		scene_close(&play.scene, c, WIRE_BUILD_SERVER);
		break;
	case TIMED_OUT:
		scene_wait(&play.scene, 1000);
		scene_close(&play.scene, c, WIRE_BUILD_CLIENT);
		break;
	case FAILED:
		send_answer(c, "500 Internal Server Error", "", "{}");
		break;
	default:
		break;
	}
	scene_wait(&play.scene, 1);
}

static void send_second(struct duplicate *duplicate)
{
	send_write(play.kept[0], duplicate->kind, duplicate->number, true);
	say_ok(play.kept[0]);
	if (duplicate->ending == STILL_OPEN)
		say_ok(duplicate->connection);
}

static const char *name_of(const struct duplicate *duplicate)
{
	static const char *const plain[ENDINGS] = {
		"dup_after_success high", "dup_after_truncated_success high", "dup_after_no_response medium",
		"dup_after_timeout medium", "dup_after_gateway_error medium", "dup_in_flight medium",
	};
	static const char *const new_key[ENDINGS] = {
		"dup_after_success low", "key_changed_on_retry high", "key_changed_on_retry high",
		"key_changed_on_retry high", "key_changed_on_retry medium", "dup_in_flight medium",
	};
	static const char *const model[ENDINGS] = {
		NULL, "llm_billed_twice high", "llm_maybe_billed_twice medium", "llm_maybe_billed_twice medium",
		"llm_maybe_billed_twice medium", "llm_identical_in_flight low",
	};

	if (duplicate->kind == KEY_REUSED)
		return "key_reused_different_body high";
	if (duplicate->kind == A2A)
		return new_key[duplicate->ending];
	return duplicate->kind == CHAT ? model[duplicate->ending] : plain[duplicate->ending];
}

/* Every kind and every ending comes; a model call that is asked again after its answer is a repeat, and no more. */
static void plan(void)
{
	for (size_t i = 0; i < DUPLICATES; i++) {
		struct duplicate *duplicate = &play.duplicates[i];

		duplicate->kind = i % WRITES;
		duplicate->ending = i / WRITES % ENDINGS;
		if (duplicate->kind == CHAT && duplicate->ending == ANSWERED)
			duplicate->ending = CUT;
		duplicate->due = SIZE_MAX;
	}
}

static void play_all(void)
{
	size_t begun = 0;

	for (unsigned int i = 0; i < AGENTS; i++)
		play.kept[i] = scene_connect(&play.scene, FIRST_AGENT + i);
	play.to_proxy = scene_connect_to(&play.scene, FIRST_AGENT, PROXY_PORT, PROXY);
	play.from_proxy = scene_connect(&play.scene, PROXY);
	send_harmless(play.kept[0], MCP_LIST, 0);
	play.calls = 1;
	while (play.calls < CALLS || begun < DUPLICATES) {
		for (size_t i = 0; i < begun; i++)
			if (play.duplicates[i].due <= play.calls) {
				play.duplicates[i].due = SIZE_MAX;
				send_second(&play.duplicates[i]);
			}
		if (begun < DUPLICATES && play.calls >= begun * (CALLS / DUPLICATES)) {
			send_first(&play.duplicates[begun]);
			play.duplicates[begun++].due = play.calls + random_below(60);
			play.calls++;
			continue;
		}
		play.calls += send_harmless(play.kept[random_below(AGENTS)], random_below(KINDS), ++play.number);
	}
	for (size_t i = 0; i < DUPLICATES; i++)
		if (play.duplicates[i].due != SIZE_MAX)
			send_second(&play.duplicates[i]);
}

/* ---- what was found ---- */

/* id -> its ledger line */
static json_object *lines_by_id(void)
{
	json_object *by_id = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(play.scene.ledger); i++) {
		json_object *line = json_object_array_get_idx(play.scene.ledger, i);

		json_object_object_add(by_id, scene_field(line, "id"), json_object_get(line));
	}
	return by_id;
}

/* of -> what stands about it: the finding event, or the last upgrade. */
static json_object *standing_by_id(void)
{
	json_object *standing = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(play.scene.events); i++) {
		json_object *event = json_object_array_get_idx(play.scene.events, i);
		const char *kind = scene_field(event, "kind");
		bool pair = (strcmp(kind, "finding") == 0 && scene_field(event, "earlier")) || strcmp(kind, "upgrade") == 0;

		if (pair)
			json_object_object_add(standing, scene_field(event, "of"), json_object_get(event));
	}
	return standing;
}

static void said_of(json_object *event, char *text, size_t size)
{
	if (strcmp(scene_field(event, "kind"), "upgrade") == 0)
		snprintf(text, size, "%s", scene_field(event, "to"));
	else
		snprintf(text, size, "%s %s", scene_field(event, "finding"),
			 scene_field(event, "severity") ? scene_field(event, "severity") : "null");
}

static struct duplicate *duplicate_of(json_object *line)
{
	const char *query = scene_field(line, "query");

	for (size_t i = 0; query && i < DUPLICATES; i++)
		if ((unsigned int)strtoul(query + 2, NULL, 10) == play.duplicates[i].number)
			return &play.duplicates[i];
	return NULL;
}

static void a_hundred_are_found_and_nothing_else(void **state)
{
	json_object *lines, *standing;
	size_t found = 0;

	(void)state;
	scene_start(&play.scene);
	scene_open(&play.scene);
	play.random = SEED;
	plan();
	play_all();
	assert_int_equal(scene_finish(&play.scene, 0), 10);
	assert_int_equal(json_object_array_length(play.scene.ledger), play.calls + DUPLICATES);
	assert_true(play.calls >= CALLS);

	lines = lines_by_id();
	standing = standing_by_id();
	json_object_object_foreach(standing, of, event) {
		json_object *line = NULL, *earlier = NULL;
		struct duplicate *duplicate;
		char said[96];

		said_of(event, said, sizeof(said));
		if (strcmp(said, "none") == 0 || strstr(said, " info"))
			continue;
		json_object_object_get_ex(lines, of, &line);
		json_object_object_get_ex(lines, scene_field(event, "earlier"), &earlier);
		duplicate = duplicate_of(line);
		if (!duplicate || duplicate->found)
			fail_msg("false: %s about %s", said, json_object_to_json_string(line));
		assert_ptr_equal(duplicate_of(earlier), duplicate);
		assert_string_equal(said, name_of(duplicate));
		duplicate->found = true;
		found++;
	}
	for (size_t i = 0; i < DUPLICATES; i++)
		if (!play.duplicates[i].found)
			print_error("not found: kind %d, ending %d, n=%u\n", play.duplicates[i].kind, play.duplicates[i].ending,
				    play.duplicates[i].number);
	assert_int_equal(found, DUPLICATES);
	json_object_put(standing);
	json_object_put(lines);
	scene_done(&play.scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(a_hundred_are_found_and_nothing_else)};

	return cmocka_run_group_tests_name("ten thousand", tests, NULL, NULL);
}
