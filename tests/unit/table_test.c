/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision table, cell by cell, played as wire bytes through the whole
 * pipeline. Row = how the earlier attempt ended; column = what the later one
 * carries. The expected finding and severity stand in the test itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

enum column { NO_KEY, SAME_KEY_SAME_BODY, SAME_KEY_OTHER_BODY, NEW_KEY };

#define AGENT 4711
#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER

static void post(struct scene *scene, uint32_t c, const char *key, const char *body, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "POST /v1/charges HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n%s%s%s%s"
		 "Content-Length: %zu\r\n\r\n%s",
		 key ? "Idempotency-Key: " : "", key ? key : "", key ? "\r\n" : "", more, strlen(body), body);
	scene_send(scene, c, CLIENT, text);
}

static void answer(struct scene *scene, uint32_t c, const char *status, const char *more)
{
	char text[256];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\n%sContent-Length: 2\r\n\r\n{}", status, more);
	scene_send(scene, c, SERVER, text);
}

/* What happens to the first attempt, on connection c, after its request. */
typedef void first_ending(struct scene *scene, uint32_t c);

static void ends_undecidable(struct scene *scene, uint32_t c)
{
	scene_lose(scene, c, SERVER, 60);
}

static void ends_open(struct scene *scene, uint32_t c)
{
	(void)scene;
	(void)c;
}

static void ends_client_gave_up(struct scene *scene, uint32_t c)
{
	scene_close(scene, c, CLIENT);
}

static void ends_server_ended(struct scene *scene, uint32_t c)
{
	scene_close(scene, c, SERVER);
}

static void ends_success_cut(struct scene *scene, uint32_t c)
{
	scene_send(scene, c, SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"half");
	scene_close(scene, c, SERVER);
	scene_close(scene, c, CLIENT);
}

static void ends_success(struct scene *scene, uint32_t c)
{
	answer(scene, c, "200 OK", "");
	scene_wait(scene, 1);
	scene_close(scene, c, CLIENT);
}

static void ends_conflict(struct scene *scene, uint32_t c)
{
	answer(scene, c, "409 Conflict", "");
}

static void ends_overloaded(struct scene *scene, uint32_t c)
{
	answer(scene, c, "503 Service Unavailable", "");
}

static void ends_server_error(struct scene *scene, uint32_t c)
{
	answer(scene, c, "500 Internal Server Error", "");
}

static void ends_asked_again(struct scene *scene, uint32_t c)
{
	answer(scene, c, "417 Expectation Failed", "");
}

static void ends_refused(struct scene *scene, uint32_t c)
{
	answer(scene, c, "422 Unprocessable Content", "");
}

struct play {
	first_ending *ending;
	enum column column;
	bool replayed;	  /* the later answer says so */
	bool expects;	  /* the first request has Expect, the later one has not */
	bool unread;	  /* the server's application never reads the first request */
};

/* Plays both attempts; the finding that stands at the end about the second. */
static void expect(struct play play, const char *finding, const char *severity)
{
	struct scene scene;
	json_object *event, *later;
	uint32_t first, second;
	char found[96], expected[96];

	scene_start(&scene);
	scene_open(&scene);
	first = scene_connect(&scene, AGENT);
	if (play.unread)
		scene_hold_reads(&scene, first, SERVER);
	post(&scene, first, play.column == NO_KEY ? NULL : "k-1", "{\"amount\":1}",
	     play.expects ? "Expect: 100-continue\r\n" : "");
	scene_wait(&scene, 10);
	play.ending(&scene, first);
	scene_wait(&scene, 10);
	second = scene_connect(&scene, AGENT);
	post(&scene, second, play.column == NO_KEY ? NULL : play.column == NEW_KEY ? "k-2" : "k-1",
	     play.column == SAME_KEY_OTHER_BODY ? "{\"amount\":2}" : "{\"amount\":1}", "");
	scene_wait(&scene, 1);
	answer(&scene, second, "200 OK", play.replayed ? "Idempotent-Replayed: true\r\n" : "");
	scene_wait(&scene, 1);
	scene_close(&scene, second, CLIENT);
	scene_finish(&scene, 0);

	event = NULL;
	for (size_t n = 0; (later = scene_event(&scene, "finding", n)); n++)
		if (scene_field(later, "earlier"))
			event = later;
	snprintf(found, sizeof(found), "%s%s%s", event ? scene_field(event, "finding") : "none",
		 event && scene_field(event, "severity") ? " " : "",
		 event && scene_field(event, "severity") ? scene_field(event, "severity") : "");
	for (size_t n = 0; (later = scene_event(&scene, "upgrade", n)); n++)
		snprintf(found, sizeof(found), "%s", scene_field(later, "to"));
	snprintf(expected, sizeof(expected), "%s%s%s", finding, severity ? " " : "", severity ? severity : "");
	assert_string_equal(found, expected);
	scene_done(&scene);
}

#define CELL(row, column_name, column_value, finding, severity, ...)                             \
	static void cell_##row##_##column_name(void **state)                                    \
	{                                                                                       \
		(void)state;                                                                    \
		expect((struct play){.ending = ends_##row, .column = column_value, __VA_ARGS__}, finding, severity); \
	}

CELL(undecidable, no_key, NO_KEY, "undecidable", NULL)
CELL(undecidable, same_key_same_body, SAME_KEY_SAME_BODY, "undecidable", NULL)
CELL(undecidable, same_key_other_body, SAME_KEY_OTHER_BODY, "undecidable", NULL)
CELL(undecidable, new_key, NEW_KEY, "undecidable", NULL)

#define ends_replayed ends_success
CELL(replayed, no_key, NO_KEY, "none", NULL, .replayed = true)
CELL(replayed, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info", .replayed = true)
CELL(replayed, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high", .replayed = true)
CELL(replayed, new_key, NEW_KEY, "none", NULL, .replayed = true)

CELL(open, no_key, NO_KEY, "dup_in_flight", "medium")
CELL(open, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(open, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(open, new_key, NEW_KEY, "dup_in_flight", "medium")

CELL(client_gave_up, no_key, NO_KEY, "dup_after_timeout", "medium")
CELL(client_gave_up, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(client_gave_up, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(client_gave_up, new_key, NEW_KEY, "key_changed_on_retry", "high")

CELL(server_ended, no_key, NO_KEY, "dup_after_no_response", "medium")
CELL(server_ended, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(server_ended, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(server_ended, new_key, NEW_KEY, "key_changed_on_retry", "high")

#define ends_never_read ends_server_ended
CELL(never_read, no_key, NO_KEY, "none", NULL, .unread = true)
CELL(never_read, same_key_same_body, SAME_KEY_SAME_BODY, "none", NULL, .unread = true)
CELL(never_read, same_key_other_body, SAME_KEY_OTHER_BODY, "none", NULL, .unread = true)
CELL(never_read, new_key, NEW_KEY, "none", NULL, .unread = true)

CELL(success_cut, no_key, NO_KEY, "dup_after_truncated_success", "high")
CELL(success_cut, same_key_same_body, SAME_KEY_SAME_BODY, "retry_after_success", "low")
CELL(success_cut, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(success_cut, new_key, NEW_KEY, "key_changed_on_retry", "high")

CELL(success, no_key, NO_KEY, "dup_after_success", "high")
CELL(success, same_key_same_body, SAME_KEY_SAME_BODY, "retry_after_success", "low")
CELL(success, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(success, new_key, NEW_KEY, "dup_after_success", "low")

CELL(conflict, no_key, NO_KEY, "dup_after_gateway_error", "low")
CELL(conflict, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(conflict, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(conflict, new_key, NEW_KEY, "key_changed_on_retry", "low")

CELL(overloaded, no_key, NO_KEY, "retry_without_key", "low")
CELL(overloaded, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(overloaded, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "medium")
CELL(overloaded, new_key, NEW_KEY, "key_changed_on_retry", "low")

CELL(server_error, no_key, NO_KEY, "dup_after_gateway_error", "medium")
CELL(server_error, same_key_same_body, SAME_KEY_SAME_BODY, "safe_retry", "info")
CELL(server_error, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "high")
CELL(server_error, new_key, NEW_KEY, "key_changed_on_retry", "medium")

CELL(asked_again, no_key, NO_KEY, "none", NULL, .expects = true)
CELL(asked_again, same_key_same_body, SAME_KEY_SAME_BODY, "none", NULL, .expects = true)
CELL(asked_again, same_key_other_body, SAME_KEY_OTHER_BODY, "none", NULL, .expects = true)
CELL(asked_again, new_key, NEW_KEY, "none", NULL, .expects = true)

CELL(refused, no_key, NO_KEY, "retry_without_key", "info")
CELL(refused, same_key_same_body, SAME_KEY_SAME_BODY, "retry_after_refusal", "info")
CELL(refused, same_key_other_body, SAME_KEY_OTHER_BODY, "key_reused_different_body", "info")
CELL(refused, new_key, NEW_KEY, "none", NULL)

#define ROW(row)                                                                                         \
	cmocka_unit_test(cell_##row##_no_key), cmocka_unit_test(cell_##row##_same_key_same_body),       \
		cmocka_unit_test(cell_##row##_same_key_other_body), cmocka_unit_test(cell_##row##_new_key)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ROW(undecidable), ROW(replayed),  ROW(open),	 ROW(client_gave_up), ROW(server_ended),
		ROW(never_read),  ROW(success_cut), ROW(success), ROW(conflict),	      ROW(overloaded),
		ROW(server_error), ROW(asked_again), ROW(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
