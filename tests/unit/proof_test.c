/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * First bytes that cannot be read as a request: whether the run may still be
 * called clean depends on what shows that the stream was HTTP.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER
#define OK_2 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define FIELDS "\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi"

static struct scene scene;

static void begin(size_t cut)
{
	scene_start(&scene);
	scene.cut = cut;
	scene_open(&scene);
}

static int64_t summary_bytes(const char *name)
{
	json_object *bytes = NULL, *value = NULL;

	json_object_object_get_ex(scene_event(&scene, "summary", 0), "bytes", &bytes);
	json_object_object_get_ex(bytes, name, &value);
	return json_object_get_int64(value);
}

/* Ends the run: its exit status, and every byte is in one place. */
static int finish(void)
{
	int status = scene_finish(&scene, 0);

	assert_int_equal(json_object_array_length(scene.ledger), 0);
	assert_int_equal(summary_bytes("accepted"), scene.accepted);
	assert_int_equal(summary_bytes("in_messages") + summary_bytes("in_blind"), scene.accepted);
	return status;
}

/* One connection; each side says one thing, "" = nothing. */
static int status_after(const char *first, const char *answer, size_t cut)
{
	uint32_t c;
	int status;

	begin(cut);
	c = scene_connect(&scene, 4711);
	if (*first)
		scene_send(&scene, c, CLIENT, first);
	scene_wait(&scene, 1);
	if (*answer)
		scene_send(&scene, c, SERVER, answer);
	status = finish();
	scene_done(&scene);
	return status;
}

static const char *const refused_heads[] = {
	"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nhi",
	"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2, 2\r\n\r\nhi",
	"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: +2\r\n\r\nhi",
	"POST /a HTTP/1.1\r\nHost: h\r\nContent-Length : 2\r\n\r\nhi",
	"POST /a HTTP/1.1\r\nHost: h\r\nno field\r\n\r\n",
	"POST /a HTTP/1.1\r\nHost: h\r\n\xc3\x89: 1\r\n\r\n",
	"POST /\x1b[31m HTTP/1.1" FIELDS,
	"POST /a\tb HTTP/1.1" FIELDS,
	"POST /a b HTTP/1.1" FIELDS,
	"POST /a HTTP/2.0" FIELDS,
	"POST /a HTTP/0.9" FIELDS,
	"POST /a http/1.1" FIELDS,
};

static void a_refused_head_that_names_http_is_no_clean_run(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused_heads) / sizeof(refused_heads[0]); i++) {
		assert_int_equal(status_after(refused_heads[i], "", 0), 11);
		assert_int_equal(status_after(refused_heads[i], OK_2, 0), 11);
		assert_int_equal(status_after(refused_heads[i], OK_2, 3), 11);
	}
}

static const char *const no_requests[] = {
	"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nPOST /a HTTP/1.1" FIELDS,
	" POST /a HTTP/1.1" FIELDS,
	"\xef\xbb\xbfPOST /a HTTP/1.1" FIELDS,
	"POST /a\r\n",
	"*1\r\n$4\r\nPING\r\n",
};

static void an_answer_in_http_shows_what_was_no_request(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(no_requests) / sizeof(no_requests[0]); i++) {
		assert_int_equal(status_after(no_requests[i], OK_2, 0), 11);
		assert_int_equal(status_after(no_requests[i], OK_2, 5), 11);
		assert_int_equal(status_after(no_requests[i], "+PONG\r\n", 0), 0);
		assert_int_equal(status_after(no_requests[i], "HTT", 0), 0);
		assert_int_equal(status_after(no_requests[i], "HTTP is not spoken here", 3), 0);
		assert_int_equal(status_after(no_requests[i], "", 0), 0);
	}
}

/* Which side of a stream of another protocol speaks first does not matter. */
static void a_request_after_a_banner_shows_it_too(void **state)
{
	static const char *const says[] = {"POST /a HTTP/1.1" FIELDS, "EHLO mail.example\r\n"};

	(void)state;
	for (int i = 0; i < 2; i++) {
		uint32_t c;

		begin(i == 0 ? 4 : 0);
		c = scene_connect(&scene, 4711);
		scene_send(&scene, c, SERVER, "220 hello\r\n");
		scene_send(&scene, c, CLIENT, says[i]);
		scene_send(&scene, c, SERVER, "250 fine\r\n");
		assert_int_equal(finish(), i == 0 ? 11 : 0);
		assert_int_equal(scene_count(&scene, "broken"), i == 0);
		scene_done(&scene);
	}
}

/* The status line may be there before the first bytes of the client tell that they are no request. */
static void an_answer_that_waits_shows_it(void **state)
{
	uint32_t c;

	(void)state;
	begin(0);
	c = scene_connect(&scene, 4711);
	scene_send(&scene, c, SERVER, OK_2);
	scene_send(&scene, c, CLIENT, no_requests[0]);
	assert_int_equal(finish(), 11);
	assert_int_equal(scene_count(&scene, "broken"), 1);
	scene_done(&scene);
}

/* Nothing is copied any more once it cannot be shown: of a log say, that nobody answers. */
static void a_stream_without_an_answer_is_let_be(void **state)
{
	char line[4096];
	uint64_t muted;
	int lines = 0;
	uint32_t c;

	(void)state;
	memset(line, 'x', sizeof(line));
	memcpy(line, "log: ", 5);
	begin(0);
	c = scene_connect(&scene, 4711);
	do {
		scene_send_bytes(&scene, c, CLIENT, (struct bytes){(const uint8_t *)line, sizeof(line)});
		muted = pipeline_next_muted(scene.pipeline);
	} while (!muted && lines++ < 100);
	assert_int_equal(lines, 17); /* the one that was looked at, and 64 KiB */
	assert_int_equal(finish(), 0);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refused_head_that_names_http_is_no_clean_run),
		cmocka_unit_test(an_answer_in_http_shows_what_was_no_request),
		cmocka_unit_test(a_request_after_a_banner_shows_it_too),
		cmocka_unit_test(an_answer_that_waits_shows_it),
		cmocka_unit_test(a_stream_without_an_answer_is_let_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
