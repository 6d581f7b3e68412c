/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the pipeline books of a model call: scenes played through all of it, the
 * bookings looked at one by one, and attempts of earlier runs fed in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "scene.h"

#define BODY "{\"model\":\"a-model\",\"messages\":[{\"role\":\"user\",\"content\":\"a prompt\"}]}"
#define REQUEST_TO(path, more) \
	"POST " path " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nContent-Type: application/json\r\n" more \
	"Content-Length: 69\r\n\r\n" BODY
#define REQUEST REQUEST_TO("/v1/chat/completions", "")
#define ANSWER                                                                                                \
	"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 153\r\n\r\n"                    \
	"{\"id\":\"a\",\"choices\":[{\"index\":0,\"message\":{\"content\":\"an answer\"},\"finish_reason\":\"stop\"}]," \
	"\"usage\":{\"prompt_tokens\":812,\"completion_tokens\":41}}         "
#define UNAVAILABLE "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 2\r\n\r\n{}"

static struct scene scene;

static int start(void **state)
{
	(void)state;
	static_assert(sizeof(BODY) - 1 == 69, "Content-Length");
	scene_start(&scene);
	scene.options.bookings = true;
	scene_open(&scene);
	return 0;
}

static int end(void **state)
{
	(void)state;
	bookings_clear(&scene.out.bookings);
	buffer_done(&scene.out.bookings);
	scene_done(&scene);
	return 0;
}

static size_t count_of(enum booking_kind kind)
{
	size_t count = 0;

	for (size_t i = 0; i < bookings_count(&scene.out.bookings); i++)
		count += bookings_at(&scene.out.bookings, i)->kind == kind;
	return count;
}

/* The n-th of that kind. */
static const struct booking *booking(enum booking_kind kind, size_t n)
{
	for (size_t i = 0; i < bookings_count(&scene.out.bookings); i++)
		if (bookings_at(&scene.out.bookings, i)->kind == kind && n-- == 0)
			return bookings_at(&scene.out.bookings, i);
	fail_msg("there are not so many bookings");
	return NULL;
}

static const struct booked_attempt *attempt(size_t n)
{
	return &booking(BOOKING_ATTEMPT, n)->attempt;
}

static const struct booked_attempt *last_attempt(void)
{
	return attempt(count_of(BOOKING_ATTEMPT) - 1);
}

static int64_t wall(uint64_t monotonic_ns)
{
	return (int64_t)monotonic_ns + scene.facts.wall_offset_ns;
}

static void a_call_is_booked_when_it_is_sent_and_when_it_is_answered(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	uint64_t sent_ns = scene.now_ns;

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	assert_int_equal(count_of(BOOKING_ATTEMPT), 1);
	assert_int_equal(attempt(0)->outcome, OUTCOME_OPEN);
	assert_false(attempt(0)->over);
	scene_wait(&scene, 20);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	scene_finish(&scene, 0);
	assert_int_equal(last_attempt()->outcome, OUTCOME_ANSWERED);
	assert_true(last_attempt()->over);
	assert_true(last_attempt()->billed);
	assert_int_equal(last_attempt()->usage.input_tokens, 812);
	assert_int_equal(last_attempt()->usage.output_tokens, 41);
	assert_int_equal(last_attempt()->usage.cached_tokens, -1);
	assert_int_equal(last_attempt()->facts.first_ns, wall(sent_ns));
	assert_int_equal(last_attempt()->facts.complete_ns, wall(sent_ns + 20 * SCENE_MS));
	assert_int_equal(last_attempt()->facts.status, 200);
	assert_int_equal(last_attempt()->facts.tgid, 4711);
	assert_string_equal(last_attempt()->comm, "agent");
	assert_string_equal(last_attempt()->server, "127.0.0.1:8080");
	assert_string_equal(last_attempt()->model, "a-model");
	assert_string_equal(last_attempt()->path, "/v1/chat/completions");
	assert_null(last_attempt()->result);
	assert_true(last_attempt()->has_key);
}

static void a_booking_that_is_still_there_is_replaced_and_one_that_was_taken_is_followed_by_another(void **state)
{
	uint8_t first[CALL_ID_BYTES], second[CALL_ID_BYTES];
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	memcpy(first, attempt(0)->facts.id, CALL_ID_BYTES);
	scene_send(&scene, c, WIRE_BUILD_SERVER, UNAVAILABLE);
	assert_int_equal(count_of(BOOKING_ATTEMPT), 1);
	assert_int_equal(attempt(0)->outcome, OUTCOME_STATUS);

	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	memcpy(second, attempt(1)->facts.id, CALL_ID_BYTES);
	bookings_clear(&scene.out.bookings);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST); /* takes the place that the second one had */
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	assert_int_equal(count_of(BOOKING_ATTEMPT), 3);
	assert_memory_equal(last_attempt()->facts.id, second, CALL_ID_BYTES);
	assert_memory_not_equal(first, second, CALL_ID_BYTES);
	assert_int_equal(last_attempt()->outcome, OUTCOME_ANSWERED);
	assert_int_equal(attempt(0)->outcome, OUTCOME_OPEN);
	assert_int_equal(attempt(1)->outcome, OUTCOME_OPEN);
}

static void other_calls_are_not_booked(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	for (int i = 0; i < 2; i++) {
		scene_send(&scene, c, WIRE_BUILD_CLIENT, "POST /v1/charges HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\n{}");
		scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
	}
	scene_finish(&scene, 0);
	assert_int_equal(count_of(BOOKING_ATTEMPT), 0);
	assert_int_equal(count_of(BOOKING_FINDING), 0);
}

static void secrets_are_in_no_booking(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT,
		   REQUEST_TO("/botplanted-1/v1/chat/completions?key=planted-2",
			      "Authorization: Bearer planted-3\r\nCookie: planted-4\r\nx-api-key: planted-5\r\n"));
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	scene_finish(&scene, 0);
	for (size_t n = 0; n < count_of(BOOKING_ATTEMPT); n++) {
		assert_int_equal(strncmp(attempt(n)->path, "/~", 2), 0);
		assert_string_equal(attempt(n)->path + 18, "/v1/chat/completions");
		assert_string_equal(attempt(n)->model, "a-model");
		assert_string_equal(attempt(n)->server, "127.0.0.1:8080");
		assert_string_equal(attempt(n)->comm, "agent");
		assert_int_equal(attempt(n)->facts.idem_size, 0);
		assert_null(attempt(n)->result);
	}
	assert_true(last_attempt()->facts.flags & PAST_PRINCIPAL);
}

static enum attempt_outcome outcome_at_end(void)
{
	scene_finish(&scene, 0);
	return last_attempt()->outcome;
}

static void a_gateway_error_is_a_status(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_send(&scene, c, WIRE_BUILD_SERVER, UNAVAILABLE);
	assert_int_equal(outcome_at_end(), OUTCOME_STATUS);
	assert_false(last_attempt()->billed);
}

#define STREAM(events) "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" events
#define PLAIN(type, size, body) "HTTP/1.1 200 OK\r\nContent-Type: " type "\r\nContent-Length: " size "\r\n\r\n" body

static void a_success_that_holds_no_answer_has_failed(void **state)
{
	static const struct {
		const char *answer;
		enum attempt_outcome outcome;
		bool billed;
	} rows[] = {
		{PLAIN("application/json", "24", "{\"error\":{\"code\":\"bad\"}}"), OUTCOME_FAILED, false},
		{PLAIN("application/json", "22", "{\"error\":\"overloaded\"}"), OUTCOME_FAILED, false},
		{PLAIN("application/json", "48", "{\"status\":\"failed\",\"usage\":{\"input_tokens\":500}}"),
		 OUTCOME_FAILED, true},
		{PLAIN("application/json", "22", "{\"status\":\"cancelled\"}"), OUTCOME_FAILED, false},
		{STREAM("data: {\"choices\":[{\"index\":0}]}\n\ndata: {\"error\":{\"code\":500}}\n\ndata: [DONE]\n\n"),
		 OUTCOME_FAILED, false},
		{STREAM("event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n"),
		 OUTCOME_FAILED, false},
		{STREAM("data: {\"type\":\"response.failed\"}\n\n"), OUTCOME_FAILED, false},
		{PLAIN("text/html", "18", "<html>login</html>"), OUTCOME_FAILED, false},
		{PLAIN("application/json", "0", ""), OUTCOME_FAILED, false},
		{"HTTP/1.1 204 No Content\r\n\r\n", OUTCOME_FAILED, false},
		/* these are answers */
		{PLAIN("application/json", "35", "{\"status\":\"completed\",\"error\":null}"), OUTCOME_ANSWERED, false},
		{PLAIN("application/json", "21", "{\"error\":\"\",\"data\":1}"), OUTCOME_ANSWERED, false},
		{PLAIN("application/json", "36", "{\"status\":\"incomplete\",\"error\":null}"), OUTCOME_ANSWERED, false},
		{PLAIN("audio/mpeg", "3", "ID3"), OUTCOME_ANSWERED, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint32_t c = scene_connect(&scene, 4711);

		scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
		scene_send(&scene, c, WIRE_BUILD_SERVER, rows[i].answer);
		scene_close(&scene, c, WIRE_BUILD_SERVER);
		scene_close(&scene, c, WIRE_BUILD_CLIENT);
		if (last_attempt()->outcome != rows[i].outcome || last_attempt()->billed != rows[i].billed)
			fail_msg("%s: outcome %d, billed %d", rows[i].answer, last_attempt()->outcome, last_attempt()->billed);
		assert_true(last_attempt()->over);
	}
}

static void an_answer_that_ends_early_is_cut(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 153\r\n\r\n{");
	scene_close(&scene, c, WIRE_BUILD_SERVER);
	assert_int_equal(outcome_at_end(), OUTCOME_CUT);
}

static void an_answer_that_nobody_reads_is_not_delivered(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_hold_reads(&scene, c, WIRE_BUILD_CLIENT);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_close(&scene, c, WIRE_BUILD_CLIENT);
	assert_int_equal(last_attempt()->outcome, OUTCOME_GAVE_UP);
	assert_false(last_attempt()->over);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	assert_int_equal(outcome_at_end(), OUTCOME_NOT_DELIVERED);
	assert_true(last_attempt()->billed);
	assert_true(last_attempt()->over);
}

static void a_server_that_closes_gave_no_answer(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_close(&scene, c, WIRE_BUILD_SERVER);
	assert_int_equal(outcome_at_end(), OUTCOME_NO_ANSWER);
}

static void a_process_that_is_gone_has_left_its_call(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_exit(&scene, 4711);
	scene_close(&scene, c, WIRE_BUILD_CLIENT);
	assert_int_equal(last_attempt()->outcome, OUTCOME_OWNER_EXITED);
	assert_true(last_attempt()->facts.flags & PAST_OWNER_GONE);
}

static void a_call_that_goes_on_when_the_run_ends_stays_open(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	assert_int_equal(outcome_at_end(), OUTCOME_OPEN);
	assert_false(last_attempt()->over);
}

static void a_hole_in_the_answer_is_counted_and_hides_what_it_cost(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 153\r\n\r\n{");
	scene_lose(&scene, c, WIRE_BUILD_SERVER, 152);
	assert_int_equal(outcome_at_end(), OUTCOME_ANSWERED);
	assert_int_equal(last_attempt()->holes, 152);
	assert_false(last_attempt()->billed);
	assert_false(last_attempt()->usage.seen);
}

static void findings_are_booked_with_their_pair(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	const struct booked_finding *finding;

	(void)state;
	for (int i = 0; i < 2; i++) {
		scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
		scene_send(&scene, c, WIRE_BUILD_SERVER, UNAVAILABLE);
	}
	scene_finish(&scene, 0);
	assert_int_equal(count_of(BOOKING_FINDING), 1);
	finding = &booking(BOOKING_FINDING, 0)->finding;
	assert_string_equal(finding->finding, "llm_maybe_billed_twice");
	assert_string_equal(finding->severity, "medium");
	assert_int_equal(finding->attempt, 2);
	assert_int_equal(finding->attempts, 2);
	assert_false(finding->cross_process);
	assert_memory_equal(finding->earlier, attempt(0)->facts.id, CALL_ID_BYTES);
	assert_memory_equal(finding->id, last_attempt()->facts.id, CALL_ID_BYTES);
}

static void the_run_is_booked_at_its_start_and_at_its_end(void **state)
{
	(void)state;
	assert_int_equal(count_of(BOOKING_RUN), 1);
	assert_int_equal(booking(BOOKING_RUN, 0)->run.started_ns, wall(SCENE_START_NS));
	assert_int_equal(booking(BOOKING_RUN, 0)->run.ended_ns, 0);
	scene_wait(&scene, 7);
	scene_finish(&scene, 0);
	assert_int_equal(count_of(BOOKING_RUN), 2);
	assert_int_equal(booking(BOOKING_RUN, 1)->run.ended_ns, wall(SCENE_START_NS + 7 * SCENE_MS));
}

static void a_stream_that_cannot_be_read_is_booked(void **state)
{
	static const uint8_t hello[] = {0x16, 3, 1, 0, 5, 1, 0, 0, 1, 0};
	uint32_t c = scene_connect(&scene, 4711);

	(void)state;
	scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, (struct bytes){hello, sizeof(hello)});
	scene_finish(&scene, 0);
	assert_int_equal(count_of(BOOKING_BLIND), 1);
	assert_string_equal(booking(BOOKING_BLIND, 0)->blind.kind, "tls");
	assert_string_equal(booking(BOOKING_BLIND, 0)->blind.comm, "agent");
	assert_int_equal(booking(BOOKING_BLIND, 0)->blind.bytes_out, sizeof(hello));
	assert_int_equal(booking(BOOKING_RUN, 1)->run.blind_streams, 1);
}

/* ---- attempts of earlier runs ---- */

/* One run leaves an attempt, the next one asks again. The finding of the second. */
static const char *finding_after(const char *answer, bool exits, const char *want_severity)
{
	struct input input = {.kind = INPUT_PAST, .now_ns = SCENE_START_NS};
	struct past_attempt past;
	uint32_t c = scene_connect(&scene, 4711);
	json_object *event;

	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	if (answer)
		scene_send(&scene, c, WIRE_BUILD_SERVER, answer);
	if (exits)
		scene_exit(&scene, 4711);
	if (exits || answer)
		scene_close(&scene, c, WIRE_BUILD_CLIENT);
	scene_finish(&scene, 0);
	past = last_attempt()->facts;
	end(NULL);
	start(NULL);
	input.past = &past;
	pipeline_feed(scene.pipeline, &input);
	assert_int_equal(scene.out.ledger.size, 0);
	c = scene_connect(&scene, 5000);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, REQUEST);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	scene_finish(&scene, 0);
	event = scene_event(&scene, "finding", 0);
	if (!event)
		return NULL;
	assert_string_equal(scene_field(event, "cross_process"), "true");
	assert_string_equal(scene_field(event, "attempts"), "2");
	assert_string_equal(scene_field(event, "severity"), want_severity);
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "requests"), "1");
	return scene_field(event, "finding");
}

static void a_delivered_answer_of_an_earlier_run_is_repeated(void **state)
{
	(void)state;
	assert_string_equal(finding_after(ANSWER, false, "info"), "llm_repeat");
}

static void an_error_of_an_earlier_run_may_have_been_billed(void **state)
{
	(void)state;
	assert_string_equal(finding_after(UNAVAILABLE, false, "medium"), "llm_maybe_billed_twice");
}

static void a_call_that_an_earlier_run_left_is_dispatched_again(void **state)
{
	(void)state;
	assert_string_equal(finding_after(NULL, true, "medium"), "llm_redispatched_job");
}

static void a_call_of_an_earlier_run_that_may_go_on_is_in_flight(void **state)
{
	(void)state;
	assert_string_equal(finding_after(NULL, false, "low"), "llm_identical_in_flight");
}

static void what_was_before_this_boot_only_happened(void **state)
{
	struct past_attempt past = {.first_ns = 5, .status_ns = 7, .flags = PAST_REQUEST_COMPLETE, .status = 504};
	struct call call;

	(void)state;
	past_attempt_call(&past, 1000, &call);
	assert_int_equal(call.first_ns, 1);
	assert_int_equal(call.status_ns, 1);
	assert_int_equal(call.complete_ns, 0);
	past_attempt_call(&past, -100, &call);
	assert_int_equal(call.first_ns, 105);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_is_booked_when_it_is_sent_and_when_it_is_answered, start, end),
		cmocka_unit_test_setup_teardown(
			a_booking_that_is_still_there_is_replaced_and_one_that_was_taken_is_followed_by_another, start, end),
		cmocka_unit_test_setup_teardown(other_calls_are_not_booked, start, end),
		cmocka_unit_test_setup_teardown(secrets_are_in_no_booking, start, end),
		cmocka_unit_test_setup_teardown(a_gateway_error_is_a_status, start, end),
		cmocka_unit_test_setup_teardown(a_success_that_holds_no_answer_has_failed, start, end),
		cmocka_unit_test_setup_teardown(an_answer_that_ends_early_is_cut, start, end),
		cmocka_unit_test_setup_teardown(an_answer_that_nobody_reads_is_not_delivered, start, end),
		cmocka_unit_test_setup_teardown(a_server_that_closes_gave_no_answer, start, end),
		cmocka_unit_test_setup_teardown(a_process_that_is_gone_has_left_its_call, start, end),
		cmocka_unit_test_setup_teardown(a_call_that_goes_on_when_the_run_ends_stays_open, start, end),
		cmocka_unit_test_setup_teardown(a_hole_in_the_answer_is_counted_and_hides_what_it_cost, start, end),
		cmocka_unit_test_setup_teardown(findings_are_booked_with_their_pair, start, end),
		cmocka_unit_test_setup_teardown(the_run_is_booked_at_its_start_and_at_its_end, start, end),
		cmocka_unit_test_setup_teardown(a_stream_that_cannot_be_read_is_booked, start, end),
		cmocka_unit_test_setup_teardown(a_delivered_answer_of_an_earlier_run_is_repeated, start, end),
		cmocka_unit_test_setup_teardown(an_error_of_an_earlier_run_may_have_been_billed, start, end),
		cmocka_unit_test_setup_teardown(a_call_that_an_earlier_run_left_is_dispatched_again, start, end),
		cmocka_unit_test_setup_teardown(a_call_of_an_earlier_run_that_may_go_on_is_in_flight, start, end),
		cmocka_unit_test_setup_teardown(what_was_before_this_boot_only_happened, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
