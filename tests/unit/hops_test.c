/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proxy hops, played through the whole pipeline: which calls are linked to
 * which, and that no link is a finding.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene_findings.h"

#define AGENT 5000
#define PROXY 5001
#define SECOND_PROXY 5002
#define SERVER 5003
#define STRANGER 5004

#define PROXY_PORT 9000
#define SECOND_PROXY_PORT 9001
#define SERVER_PORT 9002

#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

static void ask(struct scene *scene, uint32_t c, const char *path, const char *body)
{
	char text[512];

	scene_wait(scene, 1);
	snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 path, strlen(body), body);
	scene_send(scene, c, WIRE_BUILD_CLIENT, text);
}

static void answer(struct scene *scene, uint32_t c)
{
	scene_wait(scene, 1);
	scene_send(scene, c, WIRE_BUILD_SERVER, ANSWER);
}

static void begin(struct scene *scene)
{
	scene_start(scene);
	scene_open(scene);
}

/* "2<1; 3<2": call 2 is a hop of call 1, ... */
static void expect_hops(struct scene *scene, int status, const char *hops, const char *findings)
{
	char text[512] = "", standing[512];
	json_object *event;
	size_t used = 0;

	assert_int_equal(scene_finish(scene, 0), status);
	for (size_t n = 0; (event = scene_event(scene, "hop", n)); n++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d<%d", used ? "; " : "",
					 scene_row_of(scene, scene_field(event, "of")),
					 scene_row_of(scene, scene_field(event, "parent")));
	assert_string_equal(text, hops);
	scene_standing(scene, standing, sizeof(standing));
	assert_string_equal(standing, findings);
	scene_done(scene);
}

static void a_call_that_is_passed_on_is_linked_and_no_finding(void **state)
{
	struct scene scene;
	uint32_t front, back;

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	back = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	ask(&scene, front, "/v1/orders", "{\"a\":1}");
	ask(&scene, back, "/v1/orders", "{\"a\":1}");
	answer(&scene, back);
	answer(&scene, front);
	expect_hops(&scene, 0, "2<1", "");
}

static void a_proxy_may_write_path_and_body_in_its_own_way(void **state)
{
	struct scene scene;
	uint32_t front, back;

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	back = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	ask(&scene, front, "/api/v1/orders", "{\"a\":1,\"b\":2}");
	ask(&scene, back, "/v1/orders", "{ \"b\": 2.0, \"a\": 1 }");
	answer(&scene, back);
	answer(&scene, front);
	expect_hops(&scene, 0, "2<1", "");
}

static void hops_of_hops_are_linked_one_by_one(void **state)
{
	struct scene scene;
	uint32_t first, second, third;

	(void)state;
	begin(&scene);
	first = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	second = scene_connect_to(&scene, PROXY, SECOND_PROXY_PORT, SECOND_PROXY);
	third = scene_connect_to(&scene, SECOND_PROXY, SERVER_PORT, SERVER);
	ask(&scene, first, "/v1/orders", "{}");
	ask(&scene, second, "/v1/orders", "{}");
	ask(&scene, third, "/v1/orders", "{}");
	answer(&scene, third);
	answer(&scene, second);
	answer(&scene, first);
	expect_hops(&scene, 0, "2<1; 3<2", "");
}

/* The same pair of connections carries call after call, as a pool does. */
static void a_kept_alive_pool_links_each_call_to_its_own(void **state)
{
	struct scene scene;
	uint32_t front, back;

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	back = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	for (int i = 0; i < 3; i++) {
		char body[32];

		snprintf(body, sizeof(body), "{\"order\":%d}", i);
		ask(&scene, front, "/v1/orders", body);
		ask(&scene, back, "/v1/orders", body);
		answer(&scene, back);
		answer(&scene, front);
	}
	expect_hops(&scene, 0, "2<1; 4<3; 6<5", "");
}

static void two_equal_calls_at_once_have_a_hop_each(void **state)
{
	struct scene scene;
	uint32_t front[2], back[2];

	(void)state;
	begin(&scene);
	for (int i = 0; i < 2; i++) {
		front[i] = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
		back[i] = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	}
	ask(&scene, front[0], "/v1/orders", "{}");
	ask(&scene, front[1], "/v1/orders", "{}");
	ask(&scene, back[0], "/v1/orders", "{}");
	ask(&scene, back[1], "/v1/orders", "{}");
	for (int i = 0; i < 2; i++)
		answer(&scene, back[i]);
	for (int i = 0; i < 2; i++)
		answer(&scene, front[i]);
	/* Which of two equal calls was passed on first cannot be known. Both knocked twice, at both doors. */
	expect_hops(&scene, 10, "4<1; 3<2", "dup_in_flight medium 1-2; dup_in_flight medium 3-4");
}

static void a_proxy_that_retries_is_found_and_both_are_hops(void **state)
{
	struct scene scene;
	uint32_t front, back[2];

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	back[0] = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	back[1] = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	ask(&scene, front, "/v1/orders", "{}");
	ask(&scene, back[0], "/v1/orders", "{}");
	scene_wait(&scene, 5);
	scene_close(&scene, back[0], WIRE_BUILD_CLIENT);
	ask(&scene, back[1], "/v1/orders", "{}");
	answer(&scene, back[1]);
	answer(&scene, front);
	expect_hops(&scene, 10, "2<1; 3<1", "dup_after_timeout medium 2-3");
}

static void a_proxy_in_the_agents_own_process_is_one_too(void **state)
{
	struct scene scene;
	uint32_t front, back;

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, AGENT);
	back = scene_connect_to(&scene, AGENT, SERVER_PORT, SERVER);
	ask(&scene, front, "/v1/orders", "{}");
	ask(&scene, back, "/v1/orders", "{}");
	answer(&scene, back);
	answer(&scene, front);
	expect_hops(&scene, 0, "2<1", "");
}

/* What differs in one thing from a hop is none. */
struct no_hop {
	const char *what;
	uint32_t sender;
	uint16_t port;
	const char *body;
	bool after;	     /* the first call had been answered */
	const char *finding;
};

static void what_is_no_hop_is_not_linked(void **state)
{
	static const struct no_hop cases[] = {
		{"sent by another process", STRANGER, SERVER_PORT, "{\"a\":1}", false, ""},
		{"to the same port", PROXY, PROXY_PORT, "{\"a\":1}", false, "dup_in_flight medium 1-2"},
		{"another body", PROXY, SERVER_PORT, "{\"a\":2}", false, ""},
		{"after the answer", PROXY, SERVER_PORT, "{\"a\":1}", true, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct scene scene;
		uint32_t front, back;

		begin(&scene);
		front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
		back = scene_connect_to(&scene, cases[i].sender, cases[i].port, SERVER);
		ask(&scene, front, "/v1/orders", "{\"a\":1}");
		if (cases[i].after)
			answer(&scene, front);
		ask(&scene, back, "/v1/orders", cases[i].body);
		answer(&scene, back);
		if (!cases[i].after)
			answer(&scene, front);
		expect_hops(&scene, cases[i].finding[0] ? 10 : 0, "", cases[i].finding);
	}
}

static void without_a_body_the_target_must_be_the_same(void **state)
{
	(void)state;
	for (int same = 0; same < 2; same++) {
		struct scene scene;
		uint32_t front, back;

		begin(&scene);
		front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
		back = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
		scene_send(&scene, front, WIRE_BUILD_CLIENT, "GET /v1/a?q=1 HTTP/1.1\r\nHost: a\r\n\r\n");
		scene_wait(&scene, 1);
		scene_send(&scene, back, WIRE_BUILD_CLIENT,
			   same ? "GET /v1/a?q=1 HTTP/1.1\r\nHost: b\r\n\r\n" : "GET /v1/a?q=2 HTTP/1.1\r\nHost: b\r\n\r\n");
		answer(&scene, back);
		answer(&scene, front);
		expect_hops(&scene, 0, same ? "2<1" : "", "");
	}
}

/* Nobody knows who received it. */
static void a_parent_that_is_never_answered_has_no_hops(void **state)
{
	struct scene scene;
	uint32_t front, back;

	(void)state;
	begin(&scene);
	front = scene_connect_to(&scene, AGENT, PROXY_PORT, PROXY);
	back = scene_connect_to(&scene, PROXY, SERVER_PORT, SERVER);
	ask(&scene, front, "/v1/orders", "{}");
	ask(&scene, back, "/v1/orders", "{}");
	answer(&scene, back);
	scene_wait(&scene, 1);
	scene_close(&scene, front, WIRE_BUILD_SERVER);
	expect_hops(&scene, 0, "", "");
}

/* ---- the module alone ---- */

static void links_no_more_than_its_limit_and_forgets_what_is_closed(void **state)
{
	struct hops *hops = hops_new();
	struct call parent = {.method = BYTES("POST"), .has_sha = true, .request_complete = true, .body_bytes = 2,
			      .process = {.tgid = AGENT}, .server = {.port = PROXY_PORT}};
	struct call child = parent, children[HOPS_PER_CALL + 1];
	struct hop hop;
	size_t linked = 0;

	(void)state;
	child.process.tgid = PROXY;
	child.server.port = SERVER_PORT;
	child.response_complete = true; /* so that it is nobody's parent */
	assert_int_equal(hops_request(hops, &parent), 0);
	for (size_t i = 0; i <= HOPS_PER_CALL; i++) {
		children[i] = child;
		assert_int_equal(hops_request(hops, &children[i]), 0);
	}
	assert_int_equal(hops_open(hops), HOPS_PER_CALL + 2);
	assert_false(hops_next(hops, &parent, &hop));
	parent.server_process.tgid = PROXY;
	while (hops_next(hops, &parent, &hop))
		linked++;
	assert_int_equal(linked, HOPS_PER_CALL);
	hops_close(hops, &parent);
	for (size_t i = 0; i <= HOPS_PER_CALL; i++)
		hops_close(hops, &children[i]);
	hops_close(hops, &parent);
	assert_int_equal(hops_open(hops), 0);
	hops_free(hops);
	hops_free(NULL);
}

static void a_request_that_was_not_seen_whole_is_no_parent_and_no_hop(void **state)
{
	struct hops *hops = hops_new();
	struct call call = {.method = BYTES("POST"), .has_sha = true, .request_complete = true, .process = {.tgid = AGENT}};

	(void)state;
	call.has_sha = false;
	assert_int_equal(hops_request(hops, &call), 0);
	call.has_sha = true;
	call.request_complete = false;
	assert_int_equal(hops_request(hops, &call), 0);
	call.request_complete = true;
	call.process.tgid = 0;
	assert_int_equal(hops_request(hops, &call), 0);
	assert_int_equal(hops_open(hops), 0);
	hops_free(hops);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_is_passed_on_is_linked_and_no_finding),
		cmocka_unit_test(a_proxy_may_write_path_and_body_in_its_own_way),
		cmocka_unit_test(hops_of_hops_are_linked_one_by_one),
		cmocka_unit_test(a_kept_alive_pool_links_each_call_to_its_own),
		cmocka_unit_test(two_equal_calls_at_once_have_a_hop_each),
		cmocka_unit_test(a_proxy_that_retries_is_found_and_both_are_hops),
		cmocka_unit_test(a_proxy_in_the_agents_own_process_is_one_too),
		cmocka_unit_test(what_is_no_hop_is_not_linked),
		cmocka_unit_test(without_a_body_the_target_must_be_the_same),
		cmocka_unit_test(a_parent_that_is_never_answered_has_no_hops),
		cmocka_unit_test(links_no_more_than_its_limit_and_forgets_what_is_closed),
		cmocka_unit_test(a_request_that_was_not_seen_whole_is_no_parent_and_no_hop),
	};

	return cmocka_run_group_tests_name("hops", tests, NULL, NULL);
}
