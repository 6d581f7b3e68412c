/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HTTP/1.1 framing (RFC 9112) as calls: one test for each rule of section 6.3
 * and each detail that an observer needs, from the bytes of both ends to ledger
 * lines and response events. Every play is repeated with every send cut at
 * every byte: the calls must stay the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER

/* What happens on one connection, in order. */
enum deed { ASKS, ANSWERS, HALF_CLOSES, CLIENT_CLOSES, SERVER_CLOSES, SERVER_RESETS };

struct turn {
	enum deed deed;
	const char *text;
};

#define PLAY(expected, ...)                                                                        \
	play((const struct turn[]){__VA_ARGS__}, sizeof((const struct turn[]){__VA_ARGS__}) / sizeof(struct turn), \
	     expected)

#define HOST "Host: h\r\n"
#define CHUNKED "Transfer-Encoding: chunked\r\n"
#define POST(fields) "POST /a HTTP/1.1\r\n" HOST fields "\r\n"
#define GET "GET /b HTTP/1.1\r\n" HOST "\r\n"
#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define NO_CONTENT "HTTP/1.1 204 No Content\r\n\r\n"
#define GET_LINE "GET /b h 0 {} whole key null"
#define OK_LINE " -> 200 2 length whole\n"
#define UNANSWERED " -> null null none short\n"
#define UNKNOWN " -> unknown unknown unknown short\n" /* the stream was given up */

static void half_close(struct scene *scene, uint32_t c)
{
	struct wire_event half = wire_build_close(CLIENT, scene->ends[c][CLIENT].sent, 0, scene->now_ns);

	half.shutdown = WIRE_SHUTDOWN_SEND;
	half = scene_on(scene, half, c, CLIENT);
	scene->ends[c][CLIENT].closed = true;
	scene_feed(scene, &half, (struct bytes){0});
}

static void take_turn(struct scene *scene, uint32_t c, const struct turn *turn)
{
	switch (turn->deed) {
	case ASKS:
		scene_send(scene, c, CLIENT, turn->text);
		break;
	case ANSWERS:
		scene_send(scene, c, SERVER, turn->text);
		break;
	case HALF_CLOSES:
		half_close(scene, c);
		break;
	case CLIENT_CLOSES:
		scene_close(scene, c, CLIENT);
		break;
	case SERVER_CLOSES:
		scene_close(scene, c, SERVER);
		break;
	case SERVER_RESETS:
		scene_abort(scene, c, SERVER);
		break;
	}
	scene_wait(scene, 1);
}

static void add_text(struct buffer *out, const char *text)
{
	assert_int_equal(buffer_append(out, bytes_of_string(text ? text : "null")), 0);
}

static void add_fields(struct buffer *out, json_object *object, const char *const *names)
{
	for (; *names; names++) {
		add_text(out, " ");
		add_text(out, scene_field(object, *names));
	}
}

/* A flag as one of two words. */
static void add_flag(struct buffer *out, json_object *object, const char *name)
{
	add_text(out, strcmp(scene_field(object, name), "true") == 0 ? " whole" : " short");
}

static void add_call(struct buffer *out, const struct scene *scene, json_object *line)
{
	const char *query = scene_field(line, "query");
	json_object *response;
	size_t n = 0;

	add_text(out, scene_field(line, "method"));
	add_text(out, " ");
	add_text(out, scene_field(line, "path"));
	if (query)
		add_text(out, "?");
	if (query)
		add_text(out, query);
	add_fields(out, line, (const char *const[]){"host", "len", "sha_raw", NULL});
	add_flag(out, line, "request_complete");
	add_text(out, " key");
	add_fields(out, line, (const char *const[]){"idem", NULL});
	do
		response = scene_event(scene, "response", n++);
	while (response && strcmp(scene_field(response, "of"), scene_field(line, "id")) != 0);
	assert_non_null(response);
	add_text(out, " ->");
	add_fields(out, response, (const char *const[]){"status", "http.response.body.size", "ended", NULL});
	add_flag(out, response, "response_complete");
	add_text(out, "\n");
}

/* One line a call, then one for what of the connection is no call. */
static void describe(const struct scene *scene, struct buffer *out)
{
	json_object *event;

	for (size_t i = 0; i < json_object_array_length(scene->ledger); i++)
		add_call(out, scene, json_object_array_get_idx(scene->ledger, i));
	for (size_t i = 0; (event = scene_event(scene, "broken", i)); i++) {
		add_text(out, "broken");
		add_fields(out, event, (const char *const[]){"side", "reason", NULL});
		add_text(out, "\n");
	}
	for (size_t i = 0; (event = scene_event(scene, "blind", i)); i++) {
		add_text(out, "blind");
		add_fields(out, event, (const char *const[]){"blind_kind", "bytes_out", "bytes_in", NULL});
		add_text(out, "\n");
	}
}

/* "{abc}" becomes the SHA-256 of "abc". */
static void expand(const char *expected, struct buffer *out)
{
	struct bytes rest = bytes_of_string(expected);

	while (rest.size) {
		char hex[2 * DIGEST_BYTES + 1];
		struct digest digest;

		assert_int_equal(buffer_append(out, bytes_take(&rest, bytes_find(rest, '{'))), 0);
		if (!rest.size)
			return;
		bytes_take(&rest, 1);
		assert_int_equal(digest_of(bytes_take(&rest, bytes_find(rest, '}')), &digest), 0);
		bytes_take(&rest, 1);
		hex_of(digest.byte, DIGEST_BYTES, hex);
		add_text(out, hex);
	}
}

static void play_cut(const struct turn *turns, size_t count, size_t cut, const struct buffer *expected)
{
	struct buffer found = {0};
	struct scene scene;
	uint32_t c;

	scene_start(&scene);
	scene.cut = cut;
	scene_open(&scene);
	c = scene_connect(&scene, 4711);
	for (size_t i = 0; i < count; i++)
		take_turn(&scene, c, &turns[i]);
	scene_finish(&scene, 0);
	describe(&scene, &found);
	if (!bytes_equal(buffer_bytes(&found), buffer_bytes(expected)))
		fail_msg("cut at %zu:\n%.*sexpected:\n%.*s", cut, (int)found.size, found.data, (int)expected->size,
			 expected->data);
	buffer_done(&found);
	scene_done(&scene);
}

static void play(const struct turn *turns, size_t count, const char *expected)
{
	struct buffer lines = {0};
	size_t longest = 1;

	expand(expected, &lines);
	for (size_t i = 0; i < count; i++)
		if (turns[i].text && strlen(turns[i].text) > longest)
			longest = strlen(turns[i].text);
	for (size_t cut = 0; cut < longest; cut++)
		play_cut(turns, count, cut, &lines);
	buffer_done(&lines);
}

/* ---- section 6.3: what ends a body ---- */

static void rule_1_head_1xx_204_304_end_at_the_blank_line(void **state)
{
	(void)state;
	PLAY("HEAD /h h 0 {} whole key null -> 200 0 length whole\n" GET_LINE OK_LINE, {ASKS, "HEAD /h HTTP/1.1\r\n" HOST "\r\n" GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" OK});
	PLAY("HEAD /h h 0 {} whole key null -> 200 0 length whole\n" GET_LINE OK_LINE, {ASKS, "HEAD /h HTTP/1.1\r\n" HOST "\r\n" GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\n" CHUNKED "\r\n" OK});
	PLAY(GET_LINE " -> 204 0 length whole\n" GET_LINE OK_LINE, {ASKS, GET GET},
	     {ANSWERS, "HTTP/1.1 204 N\r\nContent-Length: 5\r\n\r\n" OK});
	PLAY(GET_LINE " -> 304 0 length whole\n" GET_LINE OK_LINE, {ASKS, GET GET},
	     {ANSWERS, "HTTP/1.1 304 N\r\n" CHUNKED "\r\n" OK});
	PLAY(GET_LINE OK_LINE, {ASKS, GET}, {ANSWERS, "HTTP/1.1 103 E\r\nContent-Length: 7\r\n\r\n" OK});
}

static void rule_1_a_2xx_to_connect_is_a_tunnel(void **state)
{
	(void)state;
	PLAY("CONNECT x:443 x:443 0 {} whole key null -> 200 0 length whole\nblind connect 5 4\n",
	     {ASKS, "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n"},
	     {ANSWERS, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nGET "}, {ASKS, "GET /"});
	PLAY("CONNECT x:443 x:443 0 {} whole key null -> 407 2 length whole\n" GET_LINE OK_LINE,
	     {ASKS, "CONNECT x:443 HTTP/1.1\r\nHost: x:443\r\n\r\n"},
	     {ANSWERS, "HTTP/1.1 407 Auth\r\nContent-Length: 2\r\n\r\nno"}, {ASKS, GET}, {ANSWERS, OK});
}

static void rule_2_transfer_encoding_beats_content_length(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null -> 200 2 chunked whole\n" GET_LINE OK_LINE,
	     {ASKS, POST("Content-Length: 30\r\n" CHUNKED) "3\r\nabc\r\n0\r\n\r\n" GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\n" CHUNKED "Content-Length: 9\r\n\r\n2\r\nok\r\n0\r\n\r\n" OK});
}

static void rule_3_chunked_last_runs_to_the_zero_chunk(void **state)
{
	(void)state;
	PLAY("POST /a h 6 {abcdef} whole key null -> 200 5 chunked whole\n" GET_LINE OK_LINE,
	     {ASKS, POST(CHUNKED) "1\r\na\r\n5\r\nbcdef\r\n0\r\n\r\n" GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n5\r\nabcde\r\n0\r\nX-Sum: 1\r\n\r\n" OK});
}

static void rule_3_a_response_with_chunked_not_last_runs_to_close(void **state)
{
	(void)state;
	PLAY(GET_LINE " -> 200 10 close whole\n", {ASKS, GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\nbytes"}, {SERVER_CLOSES, NULL},
	     {CLIENT_CLOSES, NULL});
}

static void rule_3_a_request_with_chunked_not_last_stops_its_direction(void **state)
{
	(void)state;
	PLAY("POST /a h 0 null short key null" UNKNOWN "broken client Transfer-Encoding without chunked last\n",
	     {ASKS, POST("Transfer-Encoding: gzip\r\n") "body"}, {ANSWERS, "HTTP/1.1 400 Bad\r\nContent-Length: 0\r\n\r\n"},
	     {SERVER_CLOSES, NULL});
}

static void rule_4_a_bad_content_length_is_an_error(void **state)
{
	(void)state;
	PLAY(GET_LINE UNKNOWN "broken client bad or repeated Content-Length\n",
	     {ASKS, GET POST("Content-Length: 3x\r\n") "abc"});
	PLAY(GET_LINE UNKNOWN "broken client bad or repeated Content-Length\n",
	     {ASKS, GET POST("Content-Length: 3\r\nContent-Length: 4\r\n") "abcd"});
	/* RFC 9112 lets a recipient take these; the parser refuses them, and so do most servers. */
	PLAY(GET_LINE UNKNOWN "broken client bad or repeated Content-Length\n",
	     {ASKS, GET POST("Content-Length: 3, 3\r\n") "abc"});
}

static void rule_5_content_length_is_that_many_octets(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE GET_LINE OK_LINE, {ASKS, POST("Content-Length: 3\r\n") "abc" GET},
	     {ANSWERS, OK OK});
	PLAY("POST /a h 2 null short key null" UNANSWERED, {ASKS, POST("Content-Length: 3\r\n") "ab"},
	     {CLIENT_CLOSES, NULL}, {SERVER_CLOSES, NULL});
	PLAY(GET_LINE " -> 200 3 cut short\n", {ASKS, GET}, {ANSWERS, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"},
	     {SERVER_CLOSES, NULL}, {CLIENT_CLOSES, NULL});
}

static void rule_6_a_request_with_neither_has_no_body(void **state)
{
	(void)state;
	PLAY("POST /a h 0 {} whole key null" OK_LINE GET_LINE OK_LINE, {ASKS, POST("Connection: close\r\n") GET},
	     {ANSWERS, OK OK});
}

static void rule_7_a_response_with_neither_runs_to_close(void **state)
{
	(void)state;
	PLAY(GET_LINE " -> 200 7 close whole\n", {ASKS, GET}, {ANSWERS, "HTTP/1.1 200 OK\r\n\r\nall"}, {ANSWERS, "ofit"},
	     {SERVER_CLOSES, NULL}, {CLIENT_CLOSES, NULL});
	PLAY(GET_LINE " -> 200 4 reset short\n", {ASKS, GET}, {ANSWERS, "HTTP/1.1 200 OK\r\n\r\nhalf"}, {SERVER_RESETS, NULL});
	PLAY(GET_LINE UNANSWERED, {ASKS, GET}, {ANSWERS, "HTTP/1.1 200 OK\r\nX: y"}, {SERVER_CLOSES, NULL},
	     {CLIENT_CLOSES, NULL});
}

/* ---- details ---- */

static void transfer_encoding_in_http_1_0_is_read_and_not_persistent(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null -> 200 2 chunked whole\n",
	     {ASKS, "POST /a HTTP/1.0\r\n" HOST CHUNKED "\r\n3\r\nabc\r\n0\r\n\r\n"},
	     {ANSWERS, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n" CHUNKED "\r\n2\r\nok\r\n0\r\n\r\n"},
	     {SERVER_CLOSES, NULL}, {CLIENT_CLOSES, NULL});
}

static void lengths_are_64_bits_of_digits(void **state)
{
	static const char *const bad[] = {"+3", "-3", "0x3", "3_0", "3 0", "18446744073709551616"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		char request[256];

		snprintf(request, sizeof(request), GET "POST /a HTTP/1.1\r\n" HOST "Content-Length: %s\r\n\r\nabc", bad[i]);
		PLAY(GET_LINE UNKNOWN "broken client bad or repeated Content-Length\n", {ASKS, request});
		snprintf(request, sizeof(request), GET "POST /a HTTP/1.1\r\n" HOST CHUNKED "\r\n%s\r\nabc", i == 5 ? "10000000000000000" : bad[i]);
		PLAY(i == 5 ? GET_LINE UNKNOWN "POST /a h 0 null short key null" UNKNOWN
			      "broken client chunk size over 64 bits\n"
			    : GET_LINE UNKNOWN "POST /a h 0 null short key null" UNKNOWN
			      "broken client bad chunk size\n",
		     {ASKS, request});
	}
	PLAY("POST /a h 3 null short key null" UNANSWERED, {ASKS, POST("Content-Length: 18446744073709551615\r\n") "abc"},
	     {CLIENT_CLOSES, NULL});
}

static void chunk_extensions_are_ignored_and_chunks_end_in_crlf(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE, {ASKS, POST(CHUNKED) "3;a=\"b;c\";d\r\nabc\r\n0;e\r\n\r\n"}, {ANSWERS, OK});
	PLAY("POST /a h 3 null short key null" UNKNOWN "broken client no CRLF after chunk data\n",
	     {ASKS, POST(CHUNKED) "3\r\nabcd\r\n0\r\n\r\n"});
}

static void trailers_never_count_as_headers(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE GET_LINE OK_LINE,
	     {ASKS, POST(CHUNKED) "3\r\nabc\r\n0\r\nContent-Length: 50\r\nTransfer-Encoding: gzip\r\nIdempotency-Key: k\r\nHost: other\r\n\r\n" GET},
	     {ANSWERS, OK OK});
}

static void bare_lf_ends_a_line_and_bare_cr_does_not(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key k" OK_LINE, {ASKS, "\r\n\nPOST /a HTTP/1.1\nHost: h\nIdempotency-Key: k\nContent-Length: 3\n\nabc"},
	     {ANSWERS, "HTTP/1.1 200 OK\nContent-Length: 2\n\nok"});
	PLAY(GET_LINE UNKNOWN "broken client bare CR\n", {ASKS, GET "GET /c HTTP/1.1\r\nX: a\rb\r\n\r\n"});
}

static void white_space_before_a_colon_or_after_the_start_line_is_refused(void **state)
{
	(void)state;
	PLAY(GET_LINE UNKNOWN "broken client bad field\n", {ASKS, GET "POST /c HTTP/1.1\r\nContent-Length : 3\r\n\r\nabc"});
	PLAY(GET_LINE UNKNOWN "broken client bad field\n", {ASKS, GET "POST /c HTTP/1.1\r\n Content-Length: 3\r\n\r\nabc"});
}

static void obs_fold_is_one_space(void **state)
{
	(void)state;
	PLAY("POST /a h 0 {} whole key k 1" OK_LINE, {ASKS, POST("Idempotency-Key: k\r\n \t 1\r\n")}, {ANSWERS, OK});
}

static void responses_answer_requests_in_order_after_any_number_of_1xx(void **state)
{
	(void)state;
	PLAY("POST /a h 0 {} whole key null -> 201 1 length whole\n" GET_LINE " -> 404 0 length whole\n", {ASKS, POST("") GET},
	     {ANSWERS, "HTTP/1.1 100 C\r\n\r\nHTTP/1.1 103 E\r\nLink: </x>\r\n\r\nHTTP/1.1 103 E\r\n\r\nHTTP/1.1 201 A\r\nContent-Length: 1\r\n\r\nx"},
	     {ANSWERS, "HTTP/1.1 102 P\r\n\r\nHTTP/1.1 404 B\r\nContent-Length: 0\r\n\r\n"});
}

static void a_101_ends_http_on_the_connection(void **state)
{
	(void)state;
	PLAY(GET_LINE " -> 101 0 length whole\nblind websocket 28 27\n", {ASKS, GET},
	     {ANSWERS, "HTTP/1.1 101 S\r\nUpgrade: websocket\r\n\r\nHTTP/1.1 200 OK\r\n\r\nnot http"}, {ASKS, GET});
}

static void an_upgrade_that_is_not_taken_changes_nothing(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE GET_LINE OK_LINE,
	     {ASKS, POST("Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 3\r\n") "abc" GET}, {ANSWERS, OK OK});
}

static void data_without_an_open_request_is_not_paired(void **state)
{
	(void)state;
	PLAY(GET_LINE OK_LINE "blind other 0 37\n", {ASKS, GET}, {ANSWERS, OK "HTTP/1.1 408 T\r\nContent-Length: 0\r\n\r\n"});
}

static void pipelined_requests_that_nobody_answered_end_so(void **state)
{
	(void)state;
	PLAY("POST /a h 0 {} whole key null" OK_LINE GET_LINE UNANSWERED GET_LINE UNANSWERED,
	     {ASKS, POST("") GET GET}, {ANSWERS, OK}, {SERVER_CLOSES, NULL}, {CLIENT_CLOSES, NULL});
}

static void a_thousand_pipelined_requests_are_paired_in_order(void **state)
{
	static struct scene scene;
	uint32_t c;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	c = scene_connect(&scene, 4711);
	for (int i = 0; i < 1000; i++) {
		char request[64];

		snprintf(request, sizeof(request), "GET /%d HTTP/1.1\r\n" HOST "\r\n", i);
		scene_send(&scene, c, CLIENT, request);
	}
	for (int i = 0; i < 1000; i++) {
		char answer[64];

		snprintf(answer, sizeof(answer), "HTTP/1.1 %d OK\r\nContent-Length: 0\r\n\r\n", 200 + i % 800);
		scene_send(&scene, c, SERVER, i % 800 == 4 ? "HTTP/1.1 204 N\r\n\r\n" : answer);
	}
	assert_int_equal(scene_finish(&scene, 0), 0);
	assert_int_equal(json_object_array_length(scene.ledger), 1000);
	for (int i = 0; i < 1000; i++) {
		json_object *line = json_object_array_get_idx(scene.ledger, (size_t)i), *response = scene_event(&scene, "response", (size_t)i);
		char path[16], status[16];

		snprintf(path, sizeof(path), "/%d", i);
		snprintf(status, sizeof(status), "%d", 200 + i % 800);
		assert_string_equal(scene_field(line, "path"), path);
		assert_string_equal(scene_field(response, "of"), scene_field(line, "id"));
		assert_string_equal(scene_field(response, "status"), status);
	}
	scene_done(&scene);
}

static void an_expected_body_comes_after_its_100_or_without_waiting(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE, {ASKS, POST("Expect: 100-continue\r\nContent-Length: 3\r\n")},
	     {ANSWERS, "HTTP/1.1 100 Continue\r\n\r\n"}, {ASKS, "abc"}, {ANSWERS, OK});
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE, {ASKS, POST("Expect: 100-continue\r\nContent-Length: 3\r\n") "abc"},
	     {ANSWERS, "HTTP/1.1 100 Continue\r\n\r\n" OK});
}

static void an_expected_body_that_never_comes_has_no_hash(void **state)
{
	(void)state;
	PLAY("POST /a h 0 null short key null -> 417 0 length whole\n", {ASKS, POST("Expect: 100-continue\r\nContent-Length: 3\r\n")},
	     {ANSWERS, "HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"}, {CLIENT_CLOSES, NULL}, {SERVER_CLOSES, NULL});
}

static void after_an_early_answer_the_rest_of_the_body_is_still_its_own(void **state)
{
	(void)state;
	PLAY("POST /a h 6 {abcdef} whole key null -> 413 0 length whole\n" GET_LINE OK_LINE,
	     {ASKS, POST("Content-Length: 6\r\n") "abc"}, {ANSWERS, "HTTP/1.1 413 Big\r\nContent-Length: 0\r\n\r\n"}, {ASKS, "def" GET},
	     {ANSWERS, OK});
}

static void a_half_close_ends_nothing(void **state)
{
	(void)state;
	PLAY("POST /a h 3 {abc} whole key null" OK_LINE, {ASKS, POST("Content-Length: 3\r\n") "abc"}, {HALF_CLOSES, NULL}, {ANSWERS, OK},
	     {SERVER_CLOSES, NULL});
}

static void the_method_of_each_open_request_frames_its_answer(void **state)
{
	(void)state;
	PLAY(GET_LINE OK_LINE "HEAD /h h 0 {} whole key null -> 200 0 length whole\n" GET_LINE OK_LINE,
	     {ASKS, GET "HEAD /h HTTP/1.1\r\n" HOST "\r\n" GET}, {ANSWERS, OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n" OK});
}

static void the_authority_of_an_absolute_target_beats_host(void **state)
{
	(void)state;
	PLAY("POST /p?q=1 api.example:81 0 {} whole key null" OK_LINE, {ASKS, "POST http://u:p@api.example:81/p?q=1 HTTP/1.1\r\n" HOST "\r\n"},
	     {ANSWERS, OK});
}

static void persistence_follows_version_and_connection(void **state)
{
	(void)state;
	PLAY(GET_LINE OK_LINE GET_LINE UNKNOWN "broken server data after close\n", {ASKS, GET GET},
	     {ANSWERS, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok" OK});
	PLAY(GET_LINE OK_LINE GET_LINE UNKNOWN "broken server data after close\n", {ASKS, GET GET},
	     {ANSWERS, "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok" OK});
	PLAY(GET_LINE OK_LINE GET_LINE OK_LINE, {ASKS, GET GET},
	     {ANSWERS, "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok" OK});
}

static void unknown_methods_are_calls(void **state)
{
	(void)state;
	PLAY("QUERY /q h 3 {abc} whole key null" OK_LINE, {ASKS, "QUERY /q HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"}, {ANSWERS, OK});
	PLAY("X-!#$%&'*+.^_`|~9 /q h 0 {} whole key null -> 204 0 length whole\n", {ASKS, "X-!#$%&'*+.^_`|~9 /q HTTP/1.1\r\n" HOST "\r\n"},
	     {ANSWERS, NO_CONTENT});
}

/* What is refused to be kept may have been the key. */
static void a_key_behind_a_huge_cookie_is_seen_or_unknown(void **state)
{
	static const size_t sizes[] = {60 * 1024, LIMIT_HEAD_BYTES};
	static const char *const keys[] = {"k-1", "unknown"};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct scene scene;
		char *cookie = calloc(1, sizes[i] + 1);
		uint32_t c;

		memset(cookie, 'c', sizes[i]);
		scene_start(&scene);
		scene_open(&scene);
		c = scene_connect(&scene, 4711);
		scene_send(&scene, c, CLIENT, "POST /a HTTP/1.1\r\n" HOST "Content-Length: 0\r\nCookie: ");
		scene_send(&scene, c, CLIENT, cookie);
		scene_send(&scene, c, CLIENT, "\r\nIdempotency-Key: k-1\r\n\r\n" GET);
		scene_send(&scene, c, SERVER, OK OK);
		scene_finish(&scene, 0);
		assert_int_equal(json_object_array_length(scene.ledger), 2);
		assert_string_equal(scene_field(json_object_array_get_idx(scene.ledger, 0), "idem"), keys[i]);
		assert_null(scene_field(json_object_array_get_idx(scene.ledger, 1), "idem"));
		scene_done(&scene);
		free(cookie);
	}
}

static void other_protocols_are_told_by_their_first_bytes(void **state)
{
	(void)state;
	PLAY("blind h2 24 3\n", {ASKS, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"}, {ANSWERS, "abc"});
	PLAY("blind tls 8 3\n", {ASKS, "\x16\x03\x01\x02\x01xyz"}, {ANSWERS, "abc"});
	PLAY("blind other 14 7\n", {ASKS, "*1\r\n$4\r\nPING\r\n"}, {ANSWERS, "+PONG\r\n"});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_1_head_1xx_204_304_end_at_the_blank_line),
		cmocka_unit_test(rule_1_a_2xx_to_connect_is_a_tunnel),
		cmocka_unit_test(rule_2_transfer_encoding_beats_content_length),
		cmocka_unit_test(rule_3_chunked_last_runs_to_the_zero_chunk),
		cmocka_unit_test(rule_3_a_response_with_chunked_not_last_runs_to_close),
		cmocka_unit_test(rule_3_a_request_with_chunked_not_last_stops_its_direction),
		cmocka_unit_test(rule_4_a_bad_content_length_is_an_error),
		cmocka_unit_test(rule_5_content_length_is_that_many_octets),
		cmocka_unit_test(rule_6_a_request_with_neither_has_no_body),
		cmocka_unit_test(rule_7_a_response_with_neither_runs_to_close),
		cmocka_unit_test(transfer_encoding_in_http_1_0_is_read_and_not_persistent),
		cmocka_unit_test(lengths_are_64_bits_of_digits),
		cmocka_unit_test(chunk_extensions_are_ignored_and_chunks_end_in_crlf),
		cmocka_unit_test(trailers_never_count_as_headers),
		cmocka_unit_test(bare_lf_ends_a_line_and_bare_cr_does_not),
		cmocka_unit_test(white_space_before_a_colon_or_after_the_start_line_is_refused),
		cmocka_unit_test(obs_fold_is_one_space),
		cmocka_unit_test(responses_answer_requests_in_order_after_any_number_of_1xx),
		cmocka_unit_test(a_101_ends_http_on_the_connection),
		cmocka_unit_test(an_upgrade_that_is_not_taken_changes_nothing),
		cmocka_unit_test(data_without_an_open_request_is_not_paired),
		cmocka_unit_test(pipelined_requests_that_nobody_answered_end_so),
		cmocka_unit_test(a_thousand_pipelined_requests_are_paired_in_order),
		cmocka_unit_test(an_expected_body_comes_after_its_100_or_without_waiting),
		cmocka_unit_test(an_expected_body_that_never_comes_has_no_hash),
		cmocka_unit_test(after_an_early_answer_the_rest_of_the_body_is_still_its_own),
		cmocka_unit_test(a_half_close_ends_nothing),
		cmocka_unit_test(the_method_of_each_open_request_frames_its_answer),
		cmocka_unit_test(the_authority_of_an_absolute_target_beats_host),
		cmocka_unit_test(persistence_follows_version_and_connection),
		cmocka_unit_test(unknown_methods_are_calls),
		cmocka_unit_test(a_key_behind_a_huge_cookie_is_seen_or_unknown),
		cmocka_unit_test(other_protocols_are_told_by_their_first_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
