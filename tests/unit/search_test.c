/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the thread was lost, because bytes are missing or because the
 * connection is older than the observer, the next request is read again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER
#define AGENT 4711

#define GET_A "GET /a HTTP/1.1\r\nHost: h\r\n\r\n"
#define POST_B "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"
#define OK_2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"

#define SENT_BEFORE 1000
#define ANSWERED_BEFORE 500

static void begin(struct scene *scene)
{
	scene_start(scene);
	scene_open(scene);
}

/* The next send, by a clock that has moved. */
static void then_send(struct scene *scene, uint32_t c, int side, const char *text)
{
	scene_wait(scene, 1);
	scene_send(scene, c, side, text);
}

/* A connection that had carried bytes both ways before anybody looked. */
static uint32_t join_late(struct scene *scene)
{
	uint32_t c = scene->connections++;

	scene->ends[c][CLIENT].tgid = AGENT;
	scene->ends[c][SERVER].tgid = WIRE_BUILD_SERVER_TGID;
	scene->ends[c][CLIENT].sent = scene->ends[c][SERVER].read = SENT_BEFORE;
	scene->ends[c][SERVER].sent = scene->ends[c][CLIENT].read = ANSWERED_BEFORE;
	for (int side = 0; side < 2; side++) {
		struct wire_event open = scene_on(scene, wire_build_open(side, scene->now_ns), c, side);

		open.flags |= WIRE_JOINED_LATE;
		open.offset = scene->ends[c][side].sent;
		scene_feed(scene, &open, (struct bytes){0});
	}
	return c;
}

static const char *ledger_field(const struct scene *scene, size_t n, const char *name)
{
	return scene_field(json_object_array_get_idx(scene->ledger, n), name);
}

static const char *response_field(const struct scene *scene, size_t n, const char *name)
{
	return scene_field(scene_event(scene, "response", n), name);
}

static int64_t summary_bytes(const struct scene *scene, const char *name)
{
	json_object *bytes = NULL, *value = NULL;

	json_object_object_get_ex(scene_event(scene, "summary", 0), "bytes", &bytes);
	json_object_object_get_ex(bytes, name, &value);
	return json_object_get_int64(value);
}

static void bytes_are(const struct scene *scene, int64_t in_messages, int64_t in_holes, int64_t in_blind)
{
	assert_int_equal(summary_bytes(scene, "in_messages"), in_messages);
	assert_int_equal(summary_bytes(scene, "in_holes"), in_holes);
	assert_int_equal(summary_bytes(scene, "in_blind"), in_blind);
	assert_int_equal(summary_bytes(scene, "accepted"), in_messages + in_holes + in_blind);
}

static void the_request_after_a_hole_is_read_with_its_answer(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /a HTT");
	scene_lose(&scene, c, CLIENT, 20);
	then_send(&scene, c, SERVER, OK_2);
	then_send(&scene, c, CLIENT, POST_B);
	then_send(&scene, c, SERVER, CREATED);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(ledger_field(&scene, 0, "path"), "/b");
	assert_string_equal(ledger_field(&scene, 0, "why"), "what the connection carried just before was not seen");
	assert_string_equal(response_field(&scene, 0, "status"), "201");
	assert_string_equal(response_field(&scene, 0, "delivered"), "all");
	assert_int_equal(scene_count(&scene, "broken"), 1);
	bytes_are(&scene, strlen("POST /a HTT") + strlen(POST_B) + strlen(CREATED), 20, strlen(OK_2));
	scene_done(&scene);
}

static void a_call_without_an_answer_before_the_hole_stays_undecidable(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, POST_B);
	scene_lose(&scene, c, SERVER, 70); /* its whole answer */
	then_send(&scene, c, CLIENT, POST_B);
	then_send(&scene, c, SERVER, CREATED);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(response_field(&scene, 0, "status"), "unknown");
	assert_string_equal(response_field(&scene, 1, "status"), "201");
	assert_string_equal(scene_field(scene_event(&scene, "finding", 0), "finding"), "undecidable");
	assert_int_equal(scene_count(&scene, "finding"), 1);
	scene_done(&scene);
}

static void what_reads_like_a_request_inside_a_body_is_none(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_lose(&scene, c, CLIENT, 90); /* a head; its body comes in a send of its own */
	then_send(&scene, c, CLIENT, POST_B);
	then_send(&scene, c, SERVER, CREATED);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 0);
	bytes_are(&scene, 0, 90, strlen(POST_B) + strlen(CREATED));
	scene_done(&scene);
}

static void after_pipelined_requests_nobody_knows_whose_the_answer_is(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A GET_A);
	scene_lose(&scene, c, CLIENT, 20);
	then_send(&scene, c, SERVER, OK_2);
	then_send(&scene, c, CLIENT, POST_B);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(ledger_field(&scene, 1, "path"), "/a");
	scene_done(&scene);
}

static void an_older_connection_is_joined_at_its_next_request(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = join_late(&scene);
	then_send(&scene, c, CLIENT, POST_B);
	then_send(&scene, c, SERVER, CREATED);
	then_send(&scene, c, CLIENT, GET_A);
	then_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(ledger_field(&scene, 0, "path"), "/b");
	assert_string_equal(ledger_field(&scene, 0, "why"), "the connection is older than the observer");
	assert_string_equal(ledger_field(&scene, 1, "path"), "/a");
	assert_null(ledger_field(&scene, 1, "why"));
	assert_string_equal(response_field(&scene, 0, "status"), "201");
	assert_string_equal(response_field(&scene, 0, "delivered"), "all");
	assert_string_equal(response_field(&scene, 1, "status"), "200");
	assert_int_equal(scene_count(&scene, "blind"), 1);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "joined_late");
	bytes_are(&scene, strlen(POST_B CREATED GET_A OK_2), 0, 0);
	scene_done(&scene);
}

/* The rest of a body, and of an answer, that began before: not the join, and counted. */
static void an_older_connection_in_the_middle_of_a_message_is_joined_after_it(void **state)
{
	static const char rest[] = "rest of a body\n", answer[] = "rest of an answer";
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = join_late(&scene);
	then_send(&scene, c, CLIENT, rest);
	then_send(&scene, c, SERVER, answer);
	then_send(&scene, c, CLIENT, POST_B);
	then_send(&scene, c, SERVER, CREATED);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(response_field(&scene, 0, "status"), "201");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "bytes_out"), "15");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "bytes_in"), "17");
	bytes_are(&scene, strlen(POST_B CREATED), 0, strlen(rest) + strlen(answer));
	scene_done(&scene);
}

static void a_request_line_is_found_however_its_send_was_cut(void **state)
{
	static const char text[] = "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi";

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		struct scene scene;
		uint32_t c;

		begin(&scene);
		c = join_late(&scene);
		scene.cut = cut;
		then_send(&scene, c, CLIENT, text);
		then_send(&scene, c, SERVER, CREATED);
		assert_int_equal(scene_finish(&scene, 0), 11);
		assert_int_equal(json_object_array_length(scene.ledger), 1);
		assert_string_equal(ledger_field(&scene, 0, "sha_raw"),
				    "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4");
		assert_string_equal(response_field(&scene, 0, "status"), "201");
		scene_done(&scene);
	}
}

static void what_is_no_whole_request_line_is_not_joined(void **state)
{
	static const char *const lines[] = {
		"GET /a HTTP/2.0\r\nx", "GET /a HTTP/1.7\r\nx", "GET  HTTP/1.1\r\nx", "GET /a b HTTP/1.1\r\n",
		"HTTP/1.1 200 OK\r\n\r\n", " GET /a HTTP/1.1\r\n", "{\"a\":1}", "GET /a\r\n\r\n", "GET /a HTTP/1.1x\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct scene scene;
		uint32_t c;

		begin(&scene);
		c = join_late(&scene);
		then_send(&scene, c, CLIENT, lines[i]);
		assert_int_equal(scene_finish(&scene, 0), 11);
		assert_int_equal(json_object_array_length(scene.ledger), 0);
		bytes_are(&scene, 0, 0, (int64_t)strlen(lines[i]));
		scene_done(&scene);
	}
}

/* Only what will never be understood need not be copied by the kernel any more. */
static void the_kernel_goes_on_copying_while_it_makes_sense(void **state)
{
	static uint8_t block[64 * 1024];
	struct scene scene;
	uint32_t c;
	int sends = 0;

	(void)state;
	begin(&scene);
	c = join_late(&scene);
	while (!pipeline_next_muted(scene.pipeline) && sends < 100) {
		scene_wait(&scene, 1);
		scene_send_bytes(&scene, c, CLIENT, (struct bytes){block, sizeof(block)});
		sends++;
	}
	assert_int_equal(sends, 17);
	then_send(&scene, c, SERVER, OK_2);
	then_send(&scene, c, CLIENT, POST_B);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 0);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_request_after_a_hole_is_read_with_its_answer),
		cmocka_unit_test(a_call_without_an_answer_before_the_hole_stays_undecidable),
		cmocka_unit_test(what_reads_like_a_request_inside_a_body_is_none),
		cmocka_unit_test(after_pipelined_requests_nobody_knows_whose_the_answer_is),
		cmocka_unit_test(an_older_connection_is_joined_at_its_next_request),
		cmocka_unit_test(an_older_connection_in_the_middle_of_a_message_is_joined_after_it),
		cmocka_unit_test(a_request_line_is_found_however_its_send_was_cut),
		cmocka_unit_test(what_is_no_whole_request_line_is_not_joined),
		cmocka_unit_test(the_kernel_goes_on_copying_while_it_makes_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
