/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections: what becomes of bytes, holes, closes and resets, seen as the
 * events and the exit status that a user gets.
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

static void begin(struct scene *scene)
{
	scene_start(scene);
	scene_open(scene);
}

static const char *ledger_field(const struct scene *scene, size_t n, const char *name)
{
	return scene_field(json_object_array_get_idx(scene->ledger, n), name);
}

static const char *response_field(const struct scene *scene, size_t n, const char *name)
{
	return scene_field(scene_event(scene, "response", n), name);
}

/* The number at events.summary.bytes.NAME. */
static int64_t summary_bytes(const struct scene *scene, const char *name)
{
	json_object *bytes = NULL, *value = NULL;

	json_object_object_get_ex(scene_event(scene, "summary", 0), "bytes", &bytes);
	json_object_object_get_ex(bytes, name, &value);
	return json_object_get_int64(value);
}

static void every_byte_is_accounted_for(const struct scene *scene)
{
	assert_int_equal(summary_bytes(scene, "accepted"), scene->accepted);
	assert_int_equal(summary_bytes(scene, "in_messages") + summary_bytes(scene, "in_holes") +
				 summary_bytes(scene, "in_blind"),
			 scene->accepted);
}

static void pairs_pipelined_requests_in_order(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A POST_B GET_A);
	scene_wait(&scene, 1);
	scene_send(&scene, c, SERVER, "HTTP/1.1 201 A\r\nContent-Length: 0\r\n\r\nHTTP/1.1 202 B\r\nContent-Length: 0\r\n\r\n");
	scene_send(&scene, c, SERVER, "HTTP/1.1 203 C\r\nContent-Length: 0\r\n\r\n");
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(json_object_array_length(scene.ledger), 3);
	assert_string_equal(ledger_field(&scene, 0, "path"), "/a");
	assert_string_equal(ledger_field(&scene, 1, "path"), "/b");
	assert_string_equal(response_field(&scene, 0, "status"), "201");
	assert_string_equal(response_field(&scene, 1, "status"), "202");
	assert_string_equal(response_field(&scene, 2, "status"), "203");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_head_answer_has_no_body(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "HEAD /a HTTP/1.1\r\nHost: h\r\n\r\n" GET_A);
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" OK_2);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(response_field(&scene, 0, "http.response.body.size"), "0");
	assert_string_equal(response_field(&scene, 1, "http.response.body.size"), "2");
	scene_done(&scene);
}

static void interim_responses_are_not_the_answer(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, POST_B);
	scene_send(&scene, c, SERVER, "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n");
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(scene_count(&scene, "response"), 1);
	assert_string_equal(response_field(&scene, 0, "status"), "200");
	assert_string_equal(response_field(&scene, 0, "response_complete"), "true");
	scene_done(&scene);
}

static void a_close_delimited_answer_is_complete_after_a_fin(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\n\r\nall of it");
	scene_close(&scene, c, SERVER);
	scene_close(&scene, c, CLIENT);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(response_field(&scene, 0, "ended"), "close");
	assert_string_equal(response_field(&scene, 0, "response_complete"), "true");
	assert_string_equal(response_field(&scene, 0, "http.response.body.size"), "9");
	assert_string_equal(response_field(&scene, 0, "closed_first"), "server");
	assert_int_equal(scene_count(&scene, "finding"), 0);
	scene_done(&scene);
}

static void a_close_delimited_answer_is_cut_by_a_reset(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\n\r\nhalf");
	scene_abort(&scene, c, SERVER);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(response_field(&scene, 0, "ended"), "reset");
	assert_string_equal(response_field(&scene, 0, "response_complete"), "false");
	assert_string_equal(scene_field(scene_event(&scene, "finding", 0), "finding"), "truncated_response");
	scene_done(&scene);
}

static void chunks_are_joined(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n");
	scene_send(&scene, c, CLIENT, "1\r\ni\r\n0\r\nIdempotency-Key: trailer\r\n\r\n");
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n");
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(ledger_field(&scene, 0, "len"), "2");
	assert_string_equal(ledger_field(&scene, 0, "sha"),
			    "8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4"); /* "hi" */
	assert_null(ledger_field(&scene, 0, "idem"));
	assert_string_equal(response_field(&scene, 0, "ended"), "chunked");
	scene_done(&scene);
}

/* What a client speaks that is no HTTP/1.x: one blind record, and the exit status. */
static void expect_blind(const char *first, const char *kind, unsigned int allow, int exit_status)
{
	struct scene scene;
	json_object *blind;
	uint32_t c;

	scene_start(&scene);
	scene.options.judge.allow_blind = allow;
	scene_open(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, first);
	scene_send(&scene, c, SERVER, "\x15\x03\x01 bytes");
	assert_int_equal(scene_finish(&scene, 0), exit_status);
	blind = scene_event(&scene, "blind", 0);
	assert_int_equal(scene_count(&scene, "blind"), 1);
	assert_string_equal(scene_field(blind, "blind_kind"), kind);
	assert_int_equal(strtoull(scene_field(blind, "bytes_out"), NULL, 10), strlen(first));
	assert_string_equal(scene_field(blind, "bytes_in"), "9");
	assert_int_equal(json_object_array_length(scene.ledger), 0);
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void tls_is_blind_and_undecidable(void **state)
{
	(void)state;
	expect_blind("\x16\x03\x01\x02\x01 hello", "tls", 0, 11);
}

static void tls_may_be_allowed(void **state)
{
	(void)state;
	expect_blind("\x16\x03\x01\x02\x01 hello", "tls", 1u << BLIND_TLS, 0);
	expect_blind("\x16\x03\x01\x02\x01 hello", "tls", 1u << BLIND_H2, 11);
}

static void http2_is_blind_and_undecidable(void **state)
{
	(void)state;
	expect_blind("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "h2", 0, 11);
}

static void other_protocols_are_only_counted(void **state)
{
	(void)state;
	expect_blind("*1\r\n$4\r\nPING\r\n", "other", 0, 0);
}

static void a_websocket_is_blind_after_its_101(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "GET /ws HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
	scene_send(&scene, c, SERVER, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n\x81\x01x");
	scene_send(&scene, c, CLIENT, "\x81\x81...");
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(response_field(&scene, 0, "status"), "101");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "websocket");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "bytes_in"), "3");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "bytes_out"), "5");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void an_upgrade_is_called_by_its_name(void **state)
{
	static const struct {
		const char *upgrade, *kind;
	} rows[] = {
		{"Upgrade: WebSocket\r\n", "websocket"}, {"Upgrade: h2c\r\n", "h2"},
		{"Upgrade: HTTP/2.0\r\n", "h2"},	 {"Upgrade: TLS/1.2, HTTP/1.1\r\n", "tls"},
		{"Upgrade: SPDY/3.1\r\n", "connect"},	 {"Upgrade: tcp\r\n", "connect"},
		{"", "connect"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct scene scene;
		char answer[256];
		uint32_t c;

		begin(&scene);
		c = scene_connect(&scene, AGENT);
		scene_send(&scene, c, CLIENT, "GET /up HTTP/1.1\r\nHost: h\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n");
		snprintf(answer, sizeof(answer), "HTTP/1.1 101 Switching Protocols\r\n%sConnection: Upgrade\r\n\r\n", rows[i].upgrade);
		scene_send(&scene, c, SERVER, answer);
		assert_int_equal(scene_finish(&scene, 0), 11);
		assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), rows[i].kind);
		scene_done(&scene);
	}
}

static void a_connect_tunnel_is_blind_after_its_200(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "CONNECT example.test:443 HTTP/1.1\r\nHost: example.test:443\r\n\r\n");
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 Connection established\r\n\r\n");
	scene_send(&scene, c, CLIENT, "\x16\x03\x01");
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "connect");
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "bytes_out"), "3");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_hole_in_a_body_of_known_length_keeps_the_framing(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	scene_lose(&scene, c, CLIENT, 4);
	scene_send(&scene, c, CLIENT, "hij" GET_A);
	scene_send(&scene, c, SERVER, OK_2 OK_2);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(ledger_field(&scene, 0, "len"), "10");
	assert_string_equal(ledger_field(&scene, 0, "holes"), "4");
	assert_null(ledger_field(&scene, 0, "sha"));
	assert_non_null(ledger_field(&scene, 0, "why"));
	assert_string_equal(ledger_field(&scene, 1, "path"), "/a");
	assert_string_equal(scene_field(scene_event(&scene, "hole", 0), "cause"), "ring_full");
	assert_string_equal(scene_field(scene_event(&scene, "hole", 0), "length"), "4");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_hole_that_ends_a_body_completes_it(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	scene_lose(&scene, c, CLIENT, 7);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n");
	scene_lose(&scene, c, SERVER, 5);
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(ledger_field(&scene, 0, "request_complete"), "true");
	assert_string_equal(response_field(&scene, 0, "http.response.body.size"), "5");
	assert_string_equal(response_field(&scene, 0, "response_complete"), "true");
	assert_string_equal(response_field(&scene, 1, "http.response.body.size"), "2");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_hole_in_a_head_ends_what_can_be_read(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A "POST /b HT");
	scene_lose(&scene, c, CLIENT, 20);
	scene_send(&scene, c, CLIENT, "more bytes");
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_int_equal(scene_count(&scene, "broken"), 1);
	assert_int_equal(summary_bytes(&scene, "in_holes"), 20);
	assert_int_equal(summary_bytes(&scene, "in_blind"), strlen("more bytes") + strlen(OK_2));
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void an_answer_waits_for_its_request(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, SERVER, OK_2);
	scene_send(&scene, c, CLIENT, GET_A);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(response_field(&scene, 0, "status"), "200");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void an_answer_without_a_request_is_blind(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "other");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_server_that_speaks_first_is_other(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, SERVER, "220 mail ready\r\n");
	scene_send(&scene, c, CLIENT, "EHLO me\r\n");
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "other");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void an_http2_server_that_speaks_first_is_h2(void **state)
{
	static const uint8_t settings[] = {0, 0, 0, 4, 0, 0, 0, 0, 0};
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send_bytes(&scene, c, SERVER, (struct bytes){settings, sizeof(settings)});
	scene.ends[c][CLIENT].sent += 24; /* its preface: the kernel side copies no more */
	scene.accepted += 24;
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "h2");
	assert_int_equal(scene_count(&scene, "hole"), 0);
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void a_request_that_never_completes_has_a_line(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	scene_close(&scene, c, CLIENT);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(ledger_field(&scene, 0, "request_complete"), "false");
	assert_null(ledger_field(&scene, 0, "sha"));
	assert_string_equal(ledger_field(&scene, 0, "len"), "3");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void an_early_answer_leaves_the_body_to_its_request(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nabc");
	scene_send(&scene, c, SERVER, "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
	scene_send(&scene, c, CLIENT, "def" GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(ledger_field(&scene, 0, "len"), "6");
	assert_string_equal(response_field(&scene, 0, "status"), "413");
	assert_string_equal(response_field(&scene, 1, "status"), "200");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

/* How much of a 200 with 39 bytes on the wire the client read before it closed. */
static void expect_delivered(uint64_t read, const char *delivered, const char *bytes)
{
	struct scene scene;
	uint32_t c;

	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_hold_reads(&scene, c, CLIENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	scene_read(&scene, c, CLIENT, read);
	scene_close(&scene, c, CLIENT);
	scene_finish(&scene, 0);
	assert_string_equal(response_field(&scene, 0, "delivered"), delivered);
	assert_string_equal(response_field(&scene, 0, "delivered_bytes"), bytes);
	assert_string_equal(response_field(&scene, 0, "closed_first"), "client");
	scene_done(&scene);
}

static void says_how_much_the_client_read(void **state)
{
	(void)state;
	assert_int_equal(strlen(OK_2), 40);
	expect_delivered(0, "none", "0");
	expect_delivered(1, "part", "1");
	expect_delivered(39, "part", "39");
	expect_delivered(40, "all", "40");
}

static void what_a_client_read_shows_at_its_next_send(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_finish(&scene, 0);
	assert_string_equal(response_field(&scene, 0, "delivered"), "all");
	assert_null(response_field(&scene, 1, "status"));
	scene_done(&scene);
}

static void an_answer_that_nobody_proved_read_is_unknown(void **state)
{
	struct scene scene;
	struct input tick = {.kind = INPUT_TICK};
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_hold_reads(&scene, c, CLIENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	scene_wait(&scene, 1001);
	tick.now_ns = scene.now_ns;
	tick.tick.wall_offset_ns = scene.facts.wall_offset_ns;
	pipeline_feed(scene.pipeline, &tick);
	assert_true(scene.out.events.size > 0);
	scene_close(&scene, c, CLIENT);
	scene_finish(&scene, 0);
	assert_int_equal(scene_count(&scene, "response"), 1);
	assert_string_equal(response_field(&scene, 0, "delivered"), "unknown");
	scene_done(&scene);
}

static void a_half_close_is_not_giving_up(void **state)
{
	struct scene scene;
	struct wire_event half;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, POST_B);
	half = scene_on(&scene, wire_build_close(CLIENT, scene.ends[c][CLIENT].sent, 0, scene.now_ns), c, CLIENT);
	half.shutdown = WIRE_SHUTDOWN_SEND;
	scene_feed(&scene, &half, (struct bytes){0});
	scene_wait(&scene, 5);
	scene_send(&scene, c, SERVER, OK_2);
	scene_close(&scene, c, SERVER);
	scene_finish(&scene, 0);
	assert_string_equal(response_field(&scene, 0, "response_complete"), "true");
	assert_string_equal(response_field(&scene, 0, "closed_first"), "server");
	assert_int_equal(scene_count(&scene, "finding"), 0);
	scene_done(&scene);
}

/* What tcp_fin() does to an end that had shut its sending: both directions are, and its holder may still read. */
static void what_is_read_after_both_fins_was_delivered(void **state)
{
	struct scene scene;
	struct wire_event step;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_hold_reads(&scene, c, CLIENT);
	scene_send(&scene, c, CLIENT, POST_B);
	step = scene_on(&scene, wire_build_close(CLIENT, scene.ends[c][CLIENT].sent, 0, scene.now_ns), c, CLIENT);
	step.shutdown = WIRE_SHUTDOWN_SEND;
	scene_feed(&scene, &step, (struct bytes){0});
	scene_send(&scene, c, SERVER, OK_2);
	scene_close(&scene, c, SERVER);
	step.shutdown = WIRE_SHUTDOWN_SEND | WIRE_SHUTDOWN_RECEIVE;
	step.old_state = WIRE_TCP_FIN_WAIT2;
	step.new_state = WIRE_TCP_CLOSE;
	scene_feed(&scene, &step, (struct bytes){0});
	scene_wait(&scene, 5);
	scene_read(&scene, c, CLIENT, strlen(OK_2));
	scene_end_of(&scene, c, CLIENT);
	scene_finish(&scene, 0);
	assert_int_equal(scene_count(&scene, "response"), 1);
	assert_string_equal(response_field(&scene, 0, "delivered"), "all");
	assert_string_equal(response_field(&scene, 0, "closed_first"), "server");
	scene_done(&scene);
}

/* The other order: the server's FIN comes first, then shutdown(SHUT_WR), then the rest is read. */
static void a_half_close_after_the_servers_is_no_close(void **state)
{
	struct scene scene;
	struct wire_event step;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_hold_reads(&scene, c, CLIENT);
	scene_send(&scene, c, CLIENT, POST_B);
	scene_send(&scene, c, SERVER, OK_2);
	scene_close(&scene, c, SERVER);
	step = scene_on(&scene, wire_build_close(CLIENT, scene.ends[c][CLIENT].sent, 0, scene.now_ns), c, CLIENT);
	step.old_state = WIRE_TCP_CLOSE_WAIT;
	step.new_state = WIRE_TCP_LAST_ACK;
	scene_feed(&scene, &step, (struct bytes){0});
	scene_read(&scene, c, CLIENT, strlen(OK_2));
	scene_end_of(&scene, c, CLIENT);
	scene_finish(&scene, 0);
	assert_string_equal(response_field(&scene, 0, "delivered"), "all");
	scene_done(&scene);
}

/* A POST into an idle connection that its server has closed. */
static void send_after_the_servers_close(struct scene *scene, uint32_t c)
{
	scene_send(scene, c, CLIENT, GET_A);
	scene_send(scene, c, SERVER, OK_2);
	scene_close(scene, c, SERVER);
	scene_wait(scene, 100);
	scene_hold_reads(scene, c, SERVER);
	scene_send(scene, c, CLIENT, POST_B);
}

static void a_request_after_the_servers_close_was_never_read(void **state)
{
	(void)state;
	for (int old_stays = 0; old_stays < 2; old_stays++) {
		struct scene scene;
		uint32_t old, fresh;

		begin(&scene);
		old = scene_connect(&scene, AGENT);
		send_after_the_servers_close(&scene, old);
		if (!old_stays)
			scene_close(&scene, old, CLIENT);
		scene_wait(&scene, 1);
		fresh = scene_connect(&scene, AGENT);
		scene_send(&scene, fresh, CLIENT, POST_B);
		scene_send(&scene, fresh, SERVER, OK_2);
		assert_int_equal(scene_finish(&scene, 0), 0);
		assert_int_equal(json_object_array_length(scene.ledger), 3);
		assert_int_equal(scene_count(&scene, "finding"), 0);
		every_byte_is_accounted_for(&scene);
		scene_done(&scene);
	}
}

/* A 408 to an idle connection, then close(): no answer to what the client sends into it. */
static void what_a_closing_server_said_before_answers_no_later_request(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	scene_send(&scene, c, SERVER, "HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
	scene_close(&scene, c, SERVER);
	scene_hold_reads(&scene, c, SERVER);
	scene_send(&scene, c, CLIENT, POST_B);
	scene_close(&scene, c, CLIENT);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(scene_count(&scene, "response"), 2);
	assert_null(response_field(&scene, 1, "status"));
	assert_string_equal(response_field(&scene, 1, "closed_first"), "server");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

/* The answer was there, and this client left after it; only we could not read it. */
static void a_call_whose_answer_cannot_be_read_was_not_abandoned(void **state)
{
	static const char *const answers[] = {"ICY 200 OK\r\n\r\nabc", "no status line"};

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct scene scene;
		uint32_t c;

		begin(&scene);
		c = scene_connect(&scene, AGENT);
		scene_send(&scene, c, CLIENT, POST_B);
		scene_send(&scene, c, SERVER, answers[i]);
		scene_close(&scene, c, CLIENT);
		assert_int_equal(scene_finish(&scene, 0), 11);
		assert_int_equal(scene_count(&scene, "finding"), 0);
		scene_done(&scene);
	}
}

static void the_same_4_tuple_again_is_another_connection(void **state)
{
	struct scene scene;
	struct wire_event open, data;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, POST_B);
	scene_close(&scene, c, CLIENT);
	for (int side = 0; side < 2; side++) { /* same ports, other first sequence numbers, other flows */
		open = wire_build_open(side, scene.now_ns);
		open.flow += 1000;
		open.send_base_seq += 5000;
		open.receive_base_seq += 5000;
		scene_feed(&scene, &open, (struct bytes){0});
	}
	data = wire_build_data(CLIENT, 0, strlen(GET_A), 0, scene.now_ns);
	data.flow += 1000;
	data.send_base_seq += 5000;
	data.receive_base_seq += 5000;
	scene_feed(&scene, &data, BYTES(GET_A));
	scene.accepted += strlen(GET_A);
	/* The late answer is the first one's. */
	scene_send(&scene, c, SERVER, OK_2);
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(response_field(&scene, 0, "of"), ledger_field(&scene, 0, "id"));
	assert_string_equal(response_field(&scene, 0, "status"), "200");
	assert_null(response_field(&scene, 1, "status"));
	scene_done(&scene);
}

static void the_tail_that_was_lost_shows_at_the_end(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nabc");
	scene.ends[c][SERVER].sent += 17; /* sent, and no record of it came */
	scene.accepted += 17;
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(summary_bytes(&scene, "in_holes"), 17);
	assert_string_equal(scene_field(scene_event(&scene, "hole", 0), "cause"), "missed");
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

/* What only a recording can say: another flow with the ends and the sequence numbers of the first. */
static void a_flow_that_claims_a_taken_end_is_said_and_not_read(void **state)
{
	struct scene scene;
	struct wire_event open, data;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	open = scene_on(&scene, wire_build_open(CLIENT, scene.now_ns), c, CLIENT);
	open.flow += 1000;
	scene_feed(&scene, &open, (struct bytes){0});
	data = scene_on(&scene, wire_build_data(CLIENT, 0, sizeof(POST_B) - 1, 0, scene.now_ns), c, CLIENT);
	data.flow += 1000;
	scene_feed(&scene, &data, BYTES(POST_B));
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_int_equal(scene_count(&scene, "broken"), 1);
	assert_string_equal(scene_field(scene_event(&scene, "broken", 0), "reason"), "two flows claim one end of a connection");
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "incomplete"),
			    "[ \"an HTTP stream broke off: what followed could not be read\" ]");
	scene_done(&scene);
}

static void bytes_that_do_not_add_up_are_said(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, GET_A);
	scene_send(&scene, c, SERVER, OK_2);
	scene.accepted += 1;
	assert_int_equal(scene_finish(&scene, 0), 11);
	scene_done(&scene);
}

/* What only a recording can say: both ends have closed, and then that side sends, or is said to have sent. */
static void play_on_after_the_close(int side, const char *answer, bool lost)
{
	struct scene scene;
	uint32_t c;

	begin(&scene);
	c = scene_connect(&scene, AGENT);
	scene_send(&scene, c, CLIENT, side == SERVER ? POST_B : "POST /b HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nhi");
	scene_send(&scene, c, SERVER, answer);
	scene_close(&scene, c, SERVER);
	scene_close(&scene, c, CLIENT);
	if (lost)
		scene_lose(&scene, c, side, 4);
	else
		scene_send(&scene, c, side, "more");
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_int_equal(scene_count(&scene, "response"), 1);
	assert_int_equal(summary_bytes(&scene, lost ? "in_holes" : "in_blind"), 4);
	every_byte_is_accounted_for(&scene);
	scene_done(&scene);
}

static void nothing_follows_a_close(void **state)
{
	(void)state;
	for (int lost = 0; lost < 2; lost++) {
		play_on_after_the_close(SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart", lost);
		play_on_after_the_close(SERVER, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\npart", lost);
		play_on_after_the_close(SERVER, OK_2, lost);
		play_on_after_the_close(CLIENT, OK_2, lost);
	}
}

/* Whatever comes in the same send after it: the line of a whole request is the same. */
static void a_break_after_a_request_leaves_its_line_alone(void **state)
{
	static const char request[] = POST_B "\x01\x02 / HTTP/1.1\r\n\r\n";
	struct buffer whole = {0};

	(void)state;
	for (size_t cut = 0; cut < sizeof(request); cut++) {
		struct scene scene;
		uint32_t c;

		begin(&scene);
		scene.cut = cut;
		c = scene_connect(&scene, AGENT);
		scene_send(&scene, c, CLIENT, request);
		assert_int_equal(scene_finish(&scene, 0), 11);
		assert_int_equal(json_object_array_length(scene.ledger), 1);
		assert_null(ledger_field(&scene, 0, "why"));
		if (cut == 0)
			buffer_append(&whole, buffer_bytes(&scene.out.ledger));
		assert_int_equal(scene.out.ledger.size, whole.size);
		assert_memory_equal(scene.out.ledger.data, whole.data, whole.size);
		scene_done(&scene);
	}
	buffer_done(&whole);
}

/* The client repeats while the server's send has not returned yet: the answer was there all the same. */
static void an_answer_counts_from_the_start_of_its_send(void **state)
{
	struct scene scene;
	struct wire_event answer;
	json_object *finding;
	uint32_t first, second;

	(void)state;
	begin(&scene);
	first = scene_connect(&scene, AGENT);
	scene_send(&scene, first, CLIENT, POST_B);
	scene_wait(&scene, 10);
	answer = scene_on(&scene, wire_build_data(SERVER, 0, strlen(OK_2), 0, scene.now_ns), first, SERVER);
	answer.when_ns += 5 * SCENE_MS;
	scene_feed(&scene, &answer, BYTES(OK_2));
	scene.ends[first][SERVER].sent = scene.ends[first][CLIENT].read = strlen(OK_2);
	scene.accepted += strlen(OK_2);
	scene_wait(&scene, 1);
	second = scene_connect(&scene, AGENT);
	scene_send(&scene, second, CLIENT, POST_B);
	assert_int_equal(scene_finish(&scene, 0), 10);
	finding = scene_event(&scene, "finding", 0);
	assert_string_equal(scene_field(finding, "finding"), "dup_after_success");
	assert_string_equal(scene_field(finding, "severity"), "high");
	scene_done(&scene);
}

/* Whatever its bytes look like: those of an MPTCP or a kernel TLS socket are not what goes over the wire. */
static void sockets_that_hide_their_bytes_are_blind(void **state)
{
	static const struct {
		uint32_t flag;
		enum blind_kind kind;
		const char *name;
	} rows[] = {{WIRE_MPTCP, BLIND_MPTCP, "mptcp"}, {WIRE_KTLS, BLIND_KTLS, "ktls"}};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		bool allowed = i % 2;
		struct wire_event open;
		struct scene scene;
		uint32_t c;

		scene_start(&scene);
		scene.options.judge.allow_blind = allowed ? 1u << rows[i / 2].kind : 0;
		scene_open(&scene);
		c = scene.connections++;
		for (int side = 0; side < 2; side++) {
			scene.ends[c][side].tgid = AGENT;
			open = scene_on(&scene, wire_build_open(side, scene.now_ns), c, side);
			open.flags |= rows[i / 2].flag;
			scene_feed(&scene, &open, (struct bytes){0});
		}
		scene_send(&scene, c, CLIENT, POST_B);
		scene_send(&scene, c, SERVER, OK_2);
		assert_int_equal(scene_finish(&scene, 0), allowed ? 0 : 11);
		assert_int_equal(json_object_array_length(scene.ledger), 0);
		assert_int_equal(scene_count(&scene, "blind"), 1);
		assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), rows[i / 2].name);
		every_byte_is_accounted_for(&scene);
		scene_done(&scene);
	}
}

static void a_connection_older_than_the_observer_is_joined_late(void **state)
{
	struct scene scene;
	struct wire_event data;

	(void)state;
	begin(&scene);
	data = wire_build_data(CLIENT, 0, strlen(GET_A), 0, scene.now_ns);
	data.flags |= WIRE_JOINED_LATE;
	scene_feed(&scene, &data, BYTES(GET_A));
	scene.accepted += strlen(GET_A);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "blind", 0), "blind_kind"), "joined_late");
	scene_done(&scene);
}

static void every_cut_gives_the_same_lines(void **state)
{
	static const char request[] = "POST /b?x=1 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" GET_A;
	static const char answer[] = "HTTP/1.1 100 C\r\n\r\n" OK_2 "HTTP/1.1 204 N\r\n\r\n";
	struct buffer whole = {0};

	(void)state;
	for (size_t cut = 0; cut < sizeof(request); cut++) {
		struct scene scene;
		uint32_t c;

		begin(&scene);
		scene.cut = cut;
		c = scene_connect(&scene, AGENT);
		scene_send(&scene, c, CLIENT, request);
		scene_send(&scene, c, SERVER, answer);
		assert_int_equal(scene_finish(&scene, 0), 0);
		buffer_append(&scene.out.ledger, buffer_bytes(&scene.out.events));
		if (cut == 0)
			buffer_append(&whole, buffer_bytes(&scene.out.ledger));
		assert_int_equal(scene.out.ledger.size, whole.size);
		assert_memory_equal(scene.out.ledger.data, whole.data, whole.size);
		scene_done(&scene);
	}
	buffer_done(&whole);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pairs_pipelined_requests_in_order),
		cmocka_unit_test(a_head_answer_has_no_body),
		cmocka_unit_test(interim_responses_are_not_the_answer),
		cmocka_unit_test(a_close_delimited_answer_is_complete_after_a_fin),
		cmocka_unit_test(a_close_delimited_answer_is_cut_by_a_reset),
		cmocka_unit_test(chunks_are_joined),
		cmocka_unit_test(tls_is_blind_and_undecidable),
		cmocka_unit_test(tls_may_be_allowed),
		cmocka_unit_test(http2_is_blind_and_undecidable),
		cmocka_unit_test(other_protocols_are_only_counted),
		cmocka_unit_test(a_websocket_is_blind_after_its_101),
		cmocka_unit_test(an_upgrade_is_called_by_its_name),
		cmocka_unit_test(a_connect_tunnel_is_blind_after_its_200),
		cmocka_unit_test(a_hole_in_a_body_of_known_length_keeps_the_framing),
		cmocka_unit_test(a_hole_that_ends_a_body_completes_it),
		cmocka_unit_test(a_hole_in_a_head_ends_what_can_be_read),
		cmocka_unit_test(an_answer_waits_for_its_request),
		cmocka_unit_test(an_answer_without_a_request_is_blind),
		cmocka_unit_test(a_server_that_speaks_first_is_other),
		cmocka_unit_test(an_http2_server_that_speaks_first_is_h2),
		cmocka_unit_test(a_request_that_never_completes_has_a_line),
		cmocka_unit_test(an_early_answer_leaves_the_body_to_its_request),
		cmocka_unit_test(says_how_much_the_client_read),
		cmocka_unit_test(what_a_client_read_shows_at_its_next_send),
		cmocka_unit_test(an_answer_that_nobody_proved_read_is_unknown),
		cmocka_unit_test(a_half_close_is_not_giving_up),
		cmocka_unit_test(a_call_whose_answer_cannot_be_read_was_not_abandoned),
		cmocka_unit_test(what_is_read_after_both_fins_was_delivered),
		cmocka_unit_test(a_half_close_after_the_servers_is_no_close),
		cmocka_unit_test(a_request_after_the_servers_close_was_never_read),
		cmocka_unit_test(what_a_closing_server_said_before_answers_no_later_request),
		cmocka_unit_test(the_same_4_tuple_again_is_another_connection),
		cmocka_unit_test(the_tail_that_was_lost_shows_at_the_end),
		cmocka_unit_test(a_flow_that_claims_a_taken_end_is_said_and_not_read),
		cmocka_unit_test(bytes_that_do_not_add_up_are_said),
		cmocka_unit_test(nothing_follows_a_close),
		cmocka_unit_test(a_break_after_a_request_leaves_its_line_alone),
		cmocka_unit_test(an_answer_counts_from_the_start_of_its_send),
		cmocka_unit_test(sockets_that_hide_their_bytes_are_blind),
		cmocka_unit_test(a_connection_older_than_the_observer_is_joined_late),
		cmocka_unit_test(every_cut_gives_the_same_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
