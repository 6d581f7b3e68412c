/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What nobody sends by accident: lines without an end, a million headers, a
 * hundred thousand connections, one byte at a time, nesting without a bottom,
 * and escape sequences wherever a stranger may choose the text.
 *
 * No test measures time: what is bounded here is memory, and what comes out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>

#include "coded_build.h"
#include "scene.h"

#define MIB (1024 * 1024)
#define JSON "Content-Type: application/json\r\n"
#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"

#if defined(__SANITIZE_ADDRESS__)
size_t __sanitizer_get_current_allocated_bytes(void);

static size_t allocated_bytes(void)
{
	return __sanitizer_get_current_allocated_bytes();
}
#else
static size_t allocated_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}
#endif

static struct scene scene;

static int start(void **state)
{
	(void)state;
	scene_start(&scene);
	scene.options.live_calls = true;
	scene.options.live_alerts = true;
	scene.options.junit = true;
	scene_open(&scene);
	return 0;
}

static int done(void **state)
{
	(void)state;
	scene_done(&scene);
	return 0;
}

static const char *said(size_t line, const char *name)
{
	return scene_field(json_object_array_get_idx(scene.ledger, line), name);
}

static int64_t bytes_in(const char *where)
{
	json_object *bytes = NULL, *value = NULL;

	assert_true(json_object_object_get_ex(scene_event(&scene, "summary", 0), "bytes", &bytes));
	assert_true(json_object_object_get_ex(bytes, where, &value));
	return json_object_get_int64(value);
}

/* It shows in what it preloads. */
static bool under_valgrind(void)
{
	const char *preload = getenv("LD_PRELOAD");

	return preload && strstr(preload, "vgpreload");
}

/* Valgrind is some thirty times slower: it gets so much less to do, the sanitizers get it all. */
static uint64_t shorter(uint64_t amount, uint64_t divisor)
{
	return under_valgrind() ? amount / divisor : amount;
}

/* Sends the piece until so many bytes were sent; memory stays under that limit all the while. */
static void send_for_long(uint32_t c, int side, struct bytes piece, uint64_t total, size_t limit)
{
	size_t before = allocated_bytes();

	for (uint64_t sent = 0; sent < total; sent += piece.size) {
		scene_send_bytes(&scene, c, side, piece);
		if (allocated_bytes() > before + limit)
			fail_msg("%zu bytes more after %llu were sent", allocated_bytes() - before,
				 (unsigned long long)sent);
	}
}

/* ---- lines without an end ---- */

#define CHUNKED "POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

static void a_chunk_size_line_of_1_gib_ends_the_stream(const char *front, char filler, const char *reason)
{
	uint32_t c = scene_connect(&scene, 4711);
	struct buffer piece = coded_zeros(MIB);
	uint64_t total = shorter(1024ULL * MIB, 64);

	memset(piece.data, filler, piece.size);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, front);
	send_for_long(c, WIRE_BUILD_CLIENT, buffer_bytes(&piece), total, MIB);
	buffer_done(&piece);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "broken", 0), "reason"), reason);
	assert_string_equal(said(0, "request_complete"), "false");
	assert_null(said(0, "sha"));
	assert_true((uint64_t)bytes_in("in_blind") > total - MIB);
	assert_int_equal(bytes_in("in_blind") + bytes_in("in_messages"), bytes_in("accepted"));
}

static void a_chunk_size_of_a_billion_digits_ends_the_stream(void **state)
{
	(void)state;
	a_chunk_size_line_of_1_gib_ends_the_stream(CHUNKED "1", '1', "chunk size over 64 bits");
}

static void a_chunk_size_of_a_billion_zeros_ends_the_stream(void **state)
{
	(void)state;
	a_chunk_size_line_of_1_gib_ends_the_stream(CHUNKED "0", '0', "chunk size line too long");
}

static void a_chunk_extension_of_1_gib_ends_the_stream(void **state)
{
	(void)state;
	a_chunk_size_line_of_1_gib_ends_the_stream(CHUNKED "5;", 'x', "chunk size line too long");
}

static void a_chunk_of_64_bits_is_waited_for_without_memory(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	struct buffer piece = coded_zeros(MIB);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, CHUNKED "ffffffffffffffff\r\n");
	send_for_long(c, WIRE_BUILD_CLIENT, buffer_bytes(&piece), 64 * MIB, 17 * MIB);
	buffer_done(&piece);
	scene_finish(&scene, 0);
	assert_string_equal(said(0, "request_complete"), "false");
	assert_string_equal(said(0, "len"), "67108864");
	assert_int_equal(bytes_in("in_messages"), bytes_in("accepted"));
}

/* Of a body over 8 MiB the text is let go; its hash goes on. */
static void a_64_mib_upload_keeps_its_raw_hash(void **state)
{
	struct buffer piece = coded_zeros(MIB);
	struct digest_state *hash = digest_state_new();
	uint32_t c = scene_connect(&scene, 4711);
	char hex[2 * DIGEST_BYTES + 1];
	struct digest digest;

	(void)state;
	assert_int_equal(digest_start(hash), 0);
	for (int i = 0; i < 64; i++)
		assert_int_equal(digest_add(hash, buffer_bytes(&piece)), 0);
	assert_int_equal(digest_finish(hash, &digest), 0);
	hex_of(digest.byte, DIGEST_BYTES, hex);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "PUT /file HTTP/1.1\r\nHost: h\r\n" JSON "Content-Length: 67108864\r\n\r\n");
	send_for_long(c, WIRE_BUILD_CLIENT, buffer_bytes(&piece), 64 * MIB, 17 * MIB);
	scene_send(&scene, c, WIRE_BUILD_SERVER, CREATED);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_string_equal(said(0, "request_complete"), "true");
	assert_string_equal(said(0, "len"), "67108864");
	assert_string_equal(said(0, "sha_raw"), hex);
	assert_string_equal(said(0, "sha"), hex);
	assert_string_equal(said(0, "canon"), "raw");
	assert_string_equal(said(0, "canon_why"), "body over 8 MiB");
	digest_state_free(hash);
	buffer_done(&piece);
}

/* An answer's body is only counted. */
static void an_answer_without_an_end_takes_no_memory(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	struct buffer piece = coded_zeros(MIB);
	uint64_t total = shorter(256 * MIB, 64);
	char size[24];

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
	scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n");
	send_for_long(c, WIRE_BUILD_SERVER, buffer_bytes(&piece), total, MIB);
	buffer_done(&piece);
	scene_finish(&scene, 0);
	snprintf(size, sizeof(size), "%llu", (unsigned long long)total);
	assert_string_equal(scene_field(scene_event(&scene, "response", 0), "http.response.body.size"), size);
}

static void a_request_line_without_an_end_is_given_up(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	struct buffer piece = coded_zeros(MIB);

	(void)state;
	memset(piece.data, 'a', piece.size);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "GET /");
	send_for_long(c, WIRE_BUILD_CLIENT, buffer_bytes(&piece), shorter(256 * MIB, 64), MIB);
	buffer_done(&piece);
	scene_finish(&scene, 0);
	assert_int_equal(bytes_in("in_blind") + bytes_in("in_messages"), bytes_in("accepted"));
}

/* ---- many ---- */

static void a_million_headers_are_parsed_and_not_kept(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	struct buffer piece = {0};

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buffer_append(&piece, BYTES("x: y\r\n")), 0);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "POST /a HTTP/1.1\r\nHost: h\r\n");
	send_for_long(c, WIRE_BUILD_CLIENT, buffer_bytes(&piece), 6 * 1000000, MIB);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "Idempotency-Key: k-1\r\nContent-Length: 3\r\n\r\nabc");
	scene_send(&scene, c, WIRE_BUILD_SERVER, CREATED);
	buffer_done(&piece);
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(said(0, "len"), "3");
	assert_string_equal(said(0, "idem"), "unknown");
	assert_string_equal(scene_field(scene_event(&scene, "response", 0), "status"), "201");
	assert_int_equal(bytes_in("in_messages"), bytes_in("accepted"));
}

/* The scene holds fewer: these go in as events, and the output is taken away as its writer does. */
static void feed(struct wire_event event, uint32_t n, const char *text)
{
	event = wire_build_on(event, n);
	scene_feed(&scene, &event, bytes_of_string(text));
	buffer_clear(&scene.out.ledger);
	buffer_clear(&scene.out.events);
	buffer_clear(&scene.out.alerts);
	buffer_clear(&scene.out.calls);
}

static void a_hundred_thousand_idle_connections_take_3500_bytes_each(void **state)
{
	static const char request[] = "GET /poll HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept: */*\r\n\r\n";
	const uint32_t size = sizeof(request) - 1, answer = sizeof(CREATED) - 1;
	const uint32_t count = (uint32_t)shorter(100000, 10);
	size_t before = allocated_bytes();

	(void)state;
	for (uint32_t n = 0; n < count; n++) {
		feed(wire_build_open(WIRE_BUILD_CLIENT, scene.now_ns), n, "");
		feed(wire_build_open(WIRE_BUILD_SERVER, scene.now_ns), n, "");
		feed(wire_build_data(WIRE_BUILD_CLIENT, 0, size, 0, scene.now_ns), n, request);
		feed(wire_build_data(WIRE_BUILD_SERVER, 0, answer, size, scene.now_ns), n, CREATED);
		scene.accepted += size + answer;
	}
	/* With what the sequencer holds of each, 10,000 stay below 64 MiB: tests/bench/idle.py. */
	if ((allocated_bytes() - before) / count > 3500)
		fail_msg("%zu bytes each", (allocated_bytes() - before) / count);
	for (uint32_t n = 0; n < count; n++) {
		feed(wire_build_end(WIRE_BUILD_CLIENT, size, answer, scene.now_ns), n, "");
		feed(wire_build_end(WIRE_BUILD_SERVER, answer, size, scene.now_ns), n, "");
	}
	assert_int_equal(pipeline_open_calls(scene.pipeline), 0);
	if (allocated_bytes() > before + 2 * MIB)
		fail_msg("%zu KiB are left", (allocated_bytes() - before) / 1024);
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(bytes_in("in_messages"), bytes_in("accepted"));
}

/* Requests on one connection that nobody answers. */
static void pipelined_requests_without_an_answer_are_given_up(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	for (int i = 0; i < LIMIT_OPEN_CALLS_PER_CONNECTION + 10; i++)
		scene_send(&scene, c, WIRE_BUILD_CLIENT, "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(json_object_array_length(scene.ledger), LIMIT_OPEN_CALLS_PER_CONNECTION);
	assert_string_equal(scene_field(scene_event(&scene, "broken", 0), "reason"), "too many requests wait for an answer");
}

/* ---- one byte per event ---- */

static void post_twice(size_t cut, struct buffer *ret_ledger, struct buffer *ret_events)
{
	struct buffer gzip = coded_gzip(BYTES(CODED_JSON), 1);
	uint32_t c;

	start(NULL);
	c = scene_connect(&scene, 4711);
	for (int i = 0; i < 2; i++) {
		struct buffer sent = {0};
		struct bytes rest;
		char head[256];

		snprintf(head, sizeof(head),
			 "POST /v1/charges?b=1 HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n"
			 "Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n%zx\r\n", gzip.size);
		buffer_append(&sent, bytes_of_string(head));
		buffer_append(&sent, buffer_bytes(&gzip));
		buffer_append(&sent, BYTES("\r\n0\r\n\r\n"));
		for (rest = buffer_bytes(&sent); rest.size;)
			scene_send_piece(&scene, c, WIRE_BUILD_CLIENT, bytes_take(&rest, cut));
		for (rest = BYTES("HTTP/1.1 100 Continue\r\n\r\n" CREATED); rest.size;)
			scene_send_piece(&scene, c, WIRE_BUILD_SERVER, bytes_take(&rest, cut));
		buffer_done(&sent);
	}
	assert_int_equal(scene_finish(&scene, 0), 10);
	*ret_ledger = scene.out.ledger;
	*ret_events = scene.out.events;
	scene.out.ledger = scene.out.events = (struct buffer){0};
	scene_done(&scene);
	buffer_done(&gzip);
}

/* In any order: what the client has read shows with the next event, and there are more of them. */
static void has_the_lines_of(struct bytes text, struct bytes lines)
{
	assert_int_equal(text.size, lines.size);
	while (lines.size) {
		struct bytes line = bytes_take(&lines, bytes_find(lines, '\n') + 1);

		assert_non_null(memmem(text.data, text.size, line.data, line.size));
	}
}

static void one_byte_per_event_says_the_same(void **state)
{
	struct buffer ledger[2], events[2];

	(void)state;
	post_twice(4096, &ledger[0], &events[0]);
	post_twice(1, &ledger[1], &events[1]);
	assert_true(bytes_equal(buffer_bytes(&ledger[0]), buffer_bytes(&ledger[1])));
	has_the_lines_of(buffer_bytes(&events[0]), buffer_bytes(&events[1]));
	has_the_lines_of(buffer_bytes(&events[1]), buffer_bytes(&events[0]));
	for (int i = 0; i < 2; i++) {
		buffer_done(&ledger[i]);
		buffer_done(&events[i]);
	}
}

/* A client that sends one byte a second, and a server that answers like that: one call, whose times say so. */
static void one_byte_a_second_is_one_call(void **state)
{
	static const char request[] = "POST /slow HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
	uint32_t c = scene_connect(&scene, 4711);
	size_t before = allocated_bytes();

	(void)state;
	for (const char *at = request; *at; at++) {
		scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, (struct bytes){(const uint8_t *)at, 1});
		scene_wait(&scene, 1000);
	}
	for (const char *at = CREATED; *at; at++) {
		scene_send_bytes(&scene, c, WIRE_BUILD_SERVER, (struct bytes){(const uint8_t *)at, 1});
		scene_wait(&scene, 1000);
	}
	assert_true(allocated_bytes() < before + 128 * 1024); /* of which 64 KiB is the first block of remembered calls */
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(said(0, "len"), "3");
	assert_string_equal(said(0, "sha"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	assert_string_equal(said(0, "t_first"), "1790000000.000000");
	assert_string_equal(said(0, "t"), "1790000053.000000");
	assert_string_equal(scene_field(scene_event(&scene, "response", 0), "t_first"), "1790000054.000000");
	assert_string_equal(scene_field(scene_event(&scene, "response", 0), "status"), "201");
	assert_string_equal(scene_field(scene_event(&scene, "response", 0), "response_complete"), "true");
	assert_int_equal(scene_count(&scene, "finding"), 0);
}

/* ---- bytes that no event brings ---- */

/* Only the close says how many there were: it may not pass for "no answer". */
static void an_answer_that_was_lost_before_a_close_is_a_hole(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t c = scene_connect(&scene, 4711);

		scene_send(&scene, c, WIRE_BUILD_CLIENT, "POST /pay HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
		scene.ends[c][WIRE_BUILD_SERVER].sent += 50;
		scene.accepted += 50;
		scene_close(&scene, c, WIRE_BUILD_SERVER);
		scene_close(&scene, c, WIRE_BUILD_CLIENT);
		scene_wait(&scene, 10);
	}
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(scene_count(&scene, "hole"), 2);
	assert_string_equal(scene_field(scene_event(&scene, "finding", 0), "finding"), "undecidable");
	assert_int_equal(bytes_in("in_holes"), 100);
}

/* The client sends on, having received what we have not seen: the call may be answered, not open. */
static void an_answer_that_only_the_client_saw_leaves_a_repeat_undecidable(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	for (int i = 0; i < 2; i++) {
		scene_send(&scene, c, WIRE_BUILD_CLIENT, "POST /pay HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
		scene.ends[c][WIRE_BUILD_SERVER].sent += 50;
		scene.accepted += 50;
		scene_wait(&scene, 10);
	}
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "finding", 0), "finding"), "undecidable");
}

/* ---- nesting ---- */

#define DEEP 100000

/* opening DEEP times, middle, closing DEEP times. */
static struct buffer nested(const char *front, const char *opening, const char *middle, const char *closing,
			    const char *back)
{
	struct buffer text = {0};

	buffer_append(&text, bytes_of_string(front));
	for (int i = 0; i < DEEP; i++)
		buffer_append(&text, bytes_of_string(opening));
	buffer_append(&text, bytes_of_string(middle));
	for (int i = 0; i < DEEP; i++)
		buffer_append(&text, bytes_of_string(closing));
	buffer_append(&text, bytes_of_string(back));
	return text;
}

static void post(uint32_t c, const char *path, struct bytes body)
{
	char head[256];

	snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nHost: h\r\n" JSON "Content-Length: %zu\r\n\r\n",
		 path, body.size);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, head);
	scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, body);
}

static void json_100000_deep_is_raw(void **state)
{
	struct buffer bodies[] = {
		nested("", "[", "1", "]", ""),
		nested("", "{\"a\":", "1", "}", ""),
		nested("{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"x\",\"arguments\":", "[", "1", "]", "}}"),
		nested("{\"model\":\"m\",\"messages\":", "[", "{\"role\":\"user\"}", "]", "}"),
	};
	static const char *const paths[] = {"/a", "/b", "/mcp", "/v1/chat/completions"};
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	for (int i = 0; i < 4; i++) {
		post(c, paths[i], buffer_bytes(&bodies[i]));
		scene_send(&scene, c, WIRE_BUILD_SERVER, CREATED);
		buffer_done(&bodies[i]);
	}
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), 4);
	for (size_t i = 0; i < 4; i++) {
		assert_string_equal(said(i, "canon"), "raw");
		assert_string_equal(said(i, "canon_why"), "nesting too deep");
	}
}

static void graphql_100000_deep_is_mutating(void **state)
{
	struct buffer body = nested("{\"query\":\"query q ", "{a", "", "}", "\"}");
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	post(c, "/graphql", buffer_bytes(&body));
	buffer_done(&body);
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
	assert_string_equal(said(0, "canon"), "json");
}

static void a_list_of_tools_100000_deep_teaches_nothing(void **state)
{
	struct buffer answer = nested("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":", "[", "", "]", "}}");
	uint32_t c = scene_connect(&scene, 4711);
	char head[128];

	(void)state;
	post(c, "/mcp", BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"));
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n" JSON "Content-Length: %zu\r\n\r\n", answer.size);
	scene_send(&scene, c, WIRE_BUILD_SERVER, head);
	scene_send_bytes(&scene, c, WIRE_BUILD_SERVER, buffer_bytes(&answer));
	post(c, "/mcp", BYTES("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"create_x\"}}"));
	buffer_done(&answer);
	scene_finish(&scene, 0);
	assert_string_equal(said(1, "class"), "mutating");
}

/* Bodies that never end on so many connections, each just small enough to be kept. */
static void bodies_of_all_connections_together_stay_within_a_cap(void **state)
{
	enum { BODIES = 24, SENT = 7 * MIB };
	struct bytes piece = {NULL, MIB};
	size_t before = allocated_bytes();
	char head[128];

	(void)state;
	if (under_valgrind()) /* the cap is what it is */
		skip();
	piece.data = calloc(1, MIB);
	assert_non_null(piece.data);
	for (int i = 0; i < BODIES; i++) {
		uint32_t c = scene_connect(&scene, 4711);

		snprintf(head, sizeof(head), "POST /%d HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", i, SENT);
		scene_send(&scene, c, WIRE_BUILD_CLIENT, head);
		for (int n = 0; n < 6; n++)
			scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, piece);
	}
	/* What is counted is what was sent; a buffer that grows has room for as much again. */
	assert_true(allocated_bytes() - before < 2 * LIMIT_HELD_CALLS_BYTES);
	for (uint32_t c = 0; c < BODIES; c++)
		scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, piece);
	scene_finish(&scene, 0);
	free((void *)piece.data);
	assert_int_equal(json_object_array_length(scene.ledger), BODIES);
	assert_null(said(0, "why"));
	for (size_t i = 0; i < BODIES; i++)
		assert_true(said(i, "sha") ? !said(i, "why") :
			    strcmp(said(i, "why"), "the body could not be kept: too much is held of all connections together") == 0);
	assert_null(said(BODIES - 1, "sha"));
}

static void heads_of_all_connections_together_stay_within_a_cap(void **state)
{
	struct buffer request = {0};
	size_t before = allocated_bytes();
	uint32_t c = 0;

	(void)state;
	if (under_valgrind()) /* the cap is what it is */
		skip();
	buffer_append(&request, BYTES("GET / HTTP/1.1\r\nHost: h\r\nX-Long: "));
	for (int i = 0; i < 60000; i++)
		buffer_append_byte(&request, 'x');
	buffer_append(&request, BYTES("\r\n\r\n"));
	for (int i = 0; i < 4 * LIMIT_HELD_CALLS_BYTES / 60000; i++) {
		if (i % 4000 == 0)
			c = scene_connect(&scene, 4711);
		scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, buffer_bytes(&request));
	}
	assert_true(allocated_bytes() - before < 2 * LIMIT_HELD_CALLS_BYTES);
	buffer_done(&request);
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_string_equal(scene_field(scene_event(&scene, "broken", 0), "reason"), "too much is held of all connections together");
}

/* A server lists so many tools: the exit status of the run. */
static int list_tools(int count)
{
	struct buffer answer = {0};
	uint32_t c = scene_connect(&scene, 4711);
	char text[128];

	buffer_append(&answer, BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":["));
	for (int i = 0; i < count; i++) {
		snprintf(text, sizeof(text), "%s{\"name\":\"t%d\",\"annotations\":{\"readOnlyHint\":true}}", i ? "," : "", i);
		buffer_append(&answer, bytes_of_string(text));
	}
	buffer_append(&answer, BYTES("]}}"));
	post(c, "/mcp", BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"));
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n" JSON "Content-Length: %zu\r\n\r\n", answer.size);
	scene_send(&scene, c, WIRE_BUILD_SERVER, text);
	scene_send_bytes(&scene, c, WIRE_BUILD_SERVER, buffer_bytes(&answer));
	buffer_done(&answer);
	return scene_finish(&scene, 0);
}

static void tools_that_are_all_remembered_are_no_trouble(void **state)
{
	(void)state;
	assert_int_equal(list_tools(LIMIT_REMEMBERED_TOOLS), 0);
}

static void tools_that_were_forgotten_leave_the_gate_unsure(void **state)
{
	(void)state;
	assert_int_equal(list_tools(LIMIT_REMEMBERED_TOOLS + 1), 11);
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "incomplete"),
			    "[ \"annotations of MCP tools were forgotten for want of room\" ]");
}

/* ---- escape sequences ---- */

/* ESC [, CSI as one byte and in UTF-8, OSC with BEL, DEL, backspace, and bytes that are no UTF-8. */
#define EVIL "\x1b[2J\x9b" "31m\xc2\x9b" "31m\x1b]0;t\x07\x7f\x08\xff\xc3"
/* What of it a request line may hold. */
#define EVIL_IN_TARGET "\x9b" "31m\xc2\x9b" "31m\xff\xc3"
#define EVIL_COMM "a\x1b[31m\xc2\x9b\x07\nb"

/* No control but LF, in ASCII or C1, and nothing that is not UTF-8. */
static void is_harmless(const char *what, struct bytes text)
{
	for (size_t i = 0; i < text.size; i++) {
		uint8_t byte = text.data[i], next = i + 1 < text.size ? text.data[i + 1] : 0;

		if ((byte < ' ' && byte != '\n') || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next < 0xa0))
			fail_msg("%s: byte %02x %02x at %zu in\n%.*s", what, byte, next, i, (int)text.size, text.data);
		/* Every byte of a longer character is part of one. */
		if (byte >= 0x80 && byte < 0xc0 && (i == 0 || text.data[i - 1] < 0x80))
			fail_msg("%s: stray byte %02x at %zu", what, byte, i);
		if (byte >= 0xc0 && (next & 0xc0) != 0x80)
			fail_msg("%s: half a character at %zu", what, i);
	}
}

static void all_is_harmless(void)
{
	struct bytes sentence = bytes_of_string(pipeline_summary_line(scene.pipeline));

	is_harmless("ledger", buffer_bytes(&scene.out.ledger));
	is_harmless("events", buffer_bytes(&scene.out.events));
	is_harmless("alerts", buffer_bytes(&scene.out.alerts));
	is_harmless("calls", buffer_bytes(&scene.out.calls));
	is_harmless("junit", buffer_bytes(&scene.out.junit));
	is_harmless("summary line", sentence);
	for (size_t i = 0; i < json_object_array_length(scene.events); i++)
		assert_non_null(json_object_array_get_idx(scene.events, i));
	for (size_t i = 0; i < json_object_array_length(scene.ledger); i++)
		assert_non_null(json_object_array_get_idx(scene.ledger, i));
}

static void feed_names(void)
{
	struct input input = {.kind = INPUT_CGROUP, .now_ns = scene.now_ns, .cgroup = {77, BYTES("/user.slice/" EVIL)}};

	pipeline_feed(scene.pipeline, &input);
	input = (struct input){.kind = INPUT_MARK, .now_ns = scene.now_ns, .mark = {BYTES("label " EVIL)}};
	pipeline_feed(scene.pipeline, &input);
}

/* The same call twice, so that every output has something to say about it. */
static void play_evil(const char *request)
{
	scene.client_comm = EVIL_COMM;
	feed_names();
	for (int i = 0; i < 2; i++) {
		uint32_t c = scene_connect(&scene, 4711);

		scene_send(&scene, c, WIRE_BUILD_CLIENT, request);
		scene_send(&scene, c, WIRE_BUILD_SERVER,
			   "HTTP/1.1 201 " EVIL "\r\nX: " EVIL "\r\nRetry-After: " EVIL "\r\nContent-Length: 2\r\n\r\n{}");
		scene_wait(&scene, 50);
	}
	scene_finish(&scene, 0);
	all_is_harmless();
}

static void no_escape_sequence_gets_out_of_a_target(void **state)
{
	(void)state;
	play_evil("POST /pay/" EVIL_IN_TARGET "?q=" EVIL_IN_TARGET "&token=" EVIL_IN_TARGET " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_string_equal(said(0, "escaped"), "true");
	assert_int_equal(scene_count(&scene, "finding"), 1);
}

static void an_escape_sequence_in_a_target_ends_the_stream(void **state)
{
	(void)state;
	play_evil("POST /pay/" EVIL " HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
	assert_int_equal(json_object_array_length(scene.ledger), 0);
	assert_int_equal(scene_count(&scene, "broken"), 2);
}

static void no_escape_sequence_gets_out_of_a_host_or_a_key(void **state)
{
	(void)state;
	play_evil("POST /pay HTTP/1.1\r\nHost: h" EVIL "\r\nIdempotency-Key: k" EVIL "\r\nX-Stainless-Retry-Count: " EVIL
		  "\r\nAuthorization: Bearer " EVIL "\r\nContent-Type: " EVIL "\r\nContent-Length: 3\r\n\r\nabc");
	assert_int_equal(json_object_array_length(scene.ledger), 2);
}

static void no_escape_sequence_gets_out_of_an_absolute_target(void **state)
{
	(void)state;
	play_evil("POST http://u" EVIL_IN_TARGET "@h" EVIL_IN_TARGET "/pay HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
	assert_int_equal(json_object_array_length(scene.ledger), 2);
}

/* In JSON they may stand escaped: names of tools and models are decoded. */
static void no_escape_sequence_gets_out_of_a_body(void **state)
{
	char request[1024];
	const char *body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":"
			   "\"create_\\u001b[31m\\u009b\\u0007\\u2028\",\"arguments\":{\"idempotency_key\":\"\\u001b[2J\"}}}";

	(void)state;
	snprintf(request, sizeof(request),
		 "POST /mcp HTTP/1.1\r\nHost: h\r\n" JSON "Content-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	play_evil(request);
	assert_int_equal(json_object_array_length(scene.ledger), 2);
	assert_int_equal(scene_count(&scene, "finding"), 1);
}

static void no_escape_sequence_gets_out_of_a_model(void **state)
{
	char request[1024];
	const char *body = "{\"model\":\"m\\u001b[31m\\u009b\",\"messages\":[],\"idempotency_key\":\"\\u001b[2J\\u0007\"}";

	(void)state;
	snprintf(request, sizeof(request),
		 "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\n" JSON "Content-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	play_evil(request);
}

/* A method is a token: with anything else in it the stream is no HTTP. */
static void an_escape_sequence_in_a_method_is_no_http(void **state)
{
	uint32_t c;

	(void)state;
	play_evil("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc");
	scene_done(&scene);
	start(NULL);
	scene.client_comm = EVIL_COMM;
	c = scene_connect(&scene, 4711);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "PO\x1b[31mST / HTTP/1.1\r\nHost: h\r\n\r\n");
	c = scene_connect(&scene, 4711);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, "GET / HTTP/1.1\r\nHost: h\r\n\r\nPO\x1b[31mST / HTTP/1.1\r\n\r\n");
	scene_finish(&scene, 0);
	is_harmless("events", buffer_bytes(&scene.out.events));
	assert_int_equal(scene_count(&scene, "blind"), 1);
	assert_int_equal(scene_count(&scene, "broken"), 1);
	assert_int_equal(json_object_array_length(scene.ledger), 1);
}

static void no_escape_sequence_gets_out_of_a_coding_or_an_answer(void **state)
{
	(void)state;
	play_evil("POST /a HTTP/1.1\r\nHost: h\r\nContent-Encoding: " EVIL "\r\nContent-Length: 3\r\n\r\nabc");
	assert_string_equal(said(0, "canon_why"), "content coding not known");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_chunk_size_of_a_billion_digits_ends_the_stream),
		TEST(a_chunk_size_of_a_billion_zeros_ends_the_stream),
		TEST(a_chunk_extension_of_1_gib_ends_the_stream),
		TEST(a_chunk_of_64_bits_is_waited_for_without_memory),
		TEST(a_64_mib_upload_keeps_its_raw_hash),
		TEST(an_answer_without_an_end_takes_no_memory),
		TEST(a_request_line_without_an_end_is_given_up),
		TEST(a_million_headers_are_parsed_and_not_kept),
		TEST(a_hundred_thousand_idle_connections_take_3500_bytes_each),
		TEST(pipelined_requests_without_an_answer_are_given_up),
		cmocka_unit_test(one_byte_per_event_says_the_same),
		TEST(one_byte_a_second_is_one_call),
		TEST(an_answer_that_was_lost_before_a_close_is_a_hole),
		TEST(an_answer_that_only_the_client_saw_leaves_a_repeat_undecidable),
		TEST(json_100000_deep_is_raw),
		TEST(graphql_100000_deep_is_mutating),
		TEST(a_list_of_tools_100000_deep_teaches_nothing),
		TEST(bodies_of_all_connections_together_stay_within_a_cap),
		TEST(heads_of_all_connections_together_stay_within_a_cap),
		TEST(tools_that_are_all_remembered_are_no_trouble),
		TEST(tools_that_were_forgotten_leave_the_gate_unsure),
		TEST(no_escape_sequence_gets_out_of_a_target),
		TEST(an_escape_sequence_in_a_target_ends_the_stream),
		TEST(no_escape_sequence_gets_out_of_a_host_or_a_key),
		TEST(no_escape_sequence_gets_out_of_an_absolute_target),
		TEST(no_escape_sequence_gets_out_of_a_body),
		TEST(no_escape_sequence_gets_out_of_a_model),
		TEST(an_escape_sequence_in_a_method_is_no_http),
		TEST(no_escape_sequence_gets_out_of_a_coding_or_an_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
