/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two calls of a model, and what is said of the second: how the first one
 * ended, and what makes two prompts one.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "coded_build.h"
#include "limits.h"
#include "model_key.h"
#include "scene_findings.h"

#define CHAT "POST /v1/chat/completions HTTP/1.1"
#define MESSAGES "POST /v1/messages HTTP/1.1"
#define HELLO "\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]"
#define ASK "{" HELLO "}"
#define SSE "200 OK\r\nContent-Type: text/event-stream"
#define JSON "200 OK\r\nContent-Type: application/json"
#define WHOLE "{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}"
#define BEGUN "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n"
#define ENDED BEGUN "data: {\"type\":\"message_stop\"}\n\n"

enum end {
	END_WHOLE,
	END_SERVER_CUTS, /* before the length it had promised */
	END_CLIENT_LEAVES, /* the same, by the client */
	END_NOT_READ,	   /* whole, and the client leaves without having read it */
	END_LATE,	   /* the client leaves first */
	END_SILENT,	   /* the server closes without a word */
	END_OPEN,	   /* when the second call comes */
	END_EXIT,	   /* the same, and its process is gone */
};

struct talk {
	const char *what;
	const char *head, *body;
	enum end end;
	const char *answer, *entity;
	const char *second_head, *second_body; /* NULL = the same again */
	bool other_process;
	const char *findings;
};

static const struct talk talks[] = {
	/* how the first one ended */
	{"delivered", CHAT, ASK, END_WHOLE, JSON, WHOLE, NULL, NULL, false, "llm_repeat info 1-2"},
	{"delivered to another process", CHAT, ASK, END_WHOLE, JSON, WHOLE, NULL, NULL, true, "llm_repeat info 1-2"},
	{"cut by the server", CHAT, ASK, END_SERVER_CUTS, JSON, WHOLE, NULL, NULL, false, "llm_billed_twice high 1-2"},
	{"cut by the client", CHAT, ASK, END_CLIENT_LEAVES, JSON, WHOLE, NULL, NULL, false, "llm_billed_twice high 1-2"},
	{"not read", CHAT, ASK, END_NOT_READ, JSON, WHOLE, NULL, NULL, false, "llm_billed_twice high 1-2"},
	{"answered when the client had left", CHAT, ASK, END_LATE, JSON, WHOLE, NULL, NULL, false, "llm_billed_twice high 1-2"},
	{"events with their end", MESSAGES, ASK, END_WHOLE, SSE, ENDED, NULL, NULL, false, "llm_repeat info 1-2"},
	{"HTTP is whole, the answer has no end", MESSAGES, ASK, END_WHOLE, SSE, BEGUN, NULL, NULL, false,
	 "llm_billed_twice high 1-2"},
	{"an error after a 200", MESSAGES, ASK, END_WHOLE, SSE, BEGUN "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n", NULL,
	 NULL, false, "llm_billed_twice high 1-2"},
	{"events of a form that nobody knows", MESSAGES, ASK, END_WHOLE, SSE, "data: {\"hello\":1}\n\n", NULL, NULL, false,
	 "llm_repeat info 1-2"},
	{"a count, in events of a form that nobody knows", MESSAGES, ASK, END_WHOLE, SSE, "data: {\"usage\":{\"input_tokens\":1}}\n\n",
	 NULL, NULL, false, "llm_repeat info 1-2"},
	{"an image in events", "POST /v1/images/generations HTTP/1.1", "{\"model\":\"i\",\"prompt\":\"Hi\"}", END_WHOLE, SSE,
	 "data: {\"type\":\"image_generation.completed\",\"usage\":{\"input_tokens\":1}}\n\n", NULL, NULL, false, "llm_repeat info 1-2"},
	{"in the background", "POST /v1/responses HTTP/1.1", "{\"model\":\"m\",\"input\":\"Hi\",\"background\":true}", END_WHOLE, JSON,
	 "{\"id\":\"r\",\"status\":\"queued\"}", NULL, NULL, false, "llm_repeat info 1-2"},
	{"500", CHAT, ASK, END_WHOLE, "500 No", "", NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"502", CHAT, ASK, END_WHOLE, "502 No", "", NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"504", CHAT, ASK, END_WHOLE, "504 No", "", NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"408", CHAT, ASK, END_WHOLE, "408 No", "", NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"409", CHAT, ASK, END_WHOLE, "409 No", "", NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"no answer", CHAT, ASK, END_SILENT, NULL, NULL, NULL, NULL, false, "llm_maybe_billed_twice medium 1-2"},
	{"400", CHAT, ASK, END_WHOLE, "400 No", "", NULL, NULL, false, ""},
	{"401", CHAT, ASK, END_WHOLE, "401 No", "", NULL, NULL, false, ""},
	{"402", CHAT, ASK, END_WHOLE, "402 No", "", NULL, NULL, false, ""},
	{"429", CHAT, ASK, END_WHOLE, "429 No", "", NULL, NULL, false, ""},
	{"503", CHAT, ASK, END_WHOLE, "503 No", "", NULL, NULL, false, ""},
	{"529", CHAT, ASK, END_WHOLE, "529 No", "", NULL, NULL, false, ""},
	{"open", CHAT, ASK, END_OPEN, JSON, WHOLE, NULL, NULL, false, "llm_identical_in_flight low 1-2"},
	{"open, another process", CHAT, ASK, END_OPEN, JSON, WHOLE, NULL, NULL, true, "llm_identical_in_flight low 1-2"},
	{"its process is gone, another one asks", CHAT, ASK, END_EXIT, NULL, NULL, NULL, NULL, true,
	 "llm_redispatched_job medium 1-2"},
	{"a replay", CHAT, ASK, END_WHOLE, JSON "\r\nIdempotent-Replayed: true", WHOLE, NULL, NULL, false, ""},

	/* one prompt */
	{"with stream, and another budget", CHAT, "{" HELLO ",\"stream\":true,\"max_tokens\":32000}", END_SERVER_CUTS, SSE, "data: {}\n\n",
	 CHAT, "{" HELLO ",\"max_tokens\":21333}", false, "llm_billed_twice high 1-2"},
	{"Gemini with and without a stream", "POST /v1beta/models/g:streamGenerateContent?key=k&alt=sse HTTP/1.1",
	 "{\"contents\":[]}", END_SERVER_CUTS, SSE, "data: {}\n\n", "POST /v1beta/models/g:generateContent?key=k HTTP/1.1",
	 "{\"contents\":[],\"generationConfig\":{\"maxOutputTokens\":5}}", false, "llm_billed_twice high 1-2"},
	{"Bedrock with and without a stream", "POST /model/m/converse-stream HTTP/1.1", "{\"messages\":[]}", END_SERVER_CUTS, SSE, "x",
	 "POST /model/m/converse HTTP/1.1", "{\"messages\":[]}", false, "llm_billed_twice high 1-2"},
	{"spelled in another way", CHAT, ASK, END_SERVER_CUTS, JSON, WHOLE, CHAT,
	 "{\"messages\": [{\"content\": \"H\\u0069\", \"role\": \"user\"}], \"model\": \"m\"}", false, "llm_billed_twice high 1-2"},
	{"the same key and the same body", CHAT "\r\nIdempotency-Key: k", ASK, END_SERVER_CUTS, JSON, WHOLE, NULL, NULL, false,
	 "llm_billed_twice info 1-2"},

	/* two prompts */
	{"other seeds", CHAT, "{" HELLO ",\"seed\":1}", END_SERVER_CUTS, JSON, WHOLE, CHAT, "{" HELLO ",\"seed\":2}", false, ""},
	{"another n", CHAT, "{" HELLO ",\"n\":1}", END_SERVER_CUTS, JSON, WHOLE, CHAT, "{" HELLO ",\"n\":2}", false, ""},
	{"another temperature", CHAT, "{" HELLO ",\"temperature\":0}", END_SERVER_CUTS, JSON, WHOLE, CHAT,
	 "{" HELLO ",\"temperature\":1}", false, ""},
	{"another model", CHAT, ASK, END_SERVER_CUTS, JSON, WHOLE, CHAT,
	 "{\"model\":\"n\",\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"}]}", false, ""},
	{"another Gemini model", "POST /v1beta/models/g:generateContent HTTP/1.1", "{\"contents\":[]}", END_SERVER_CUTS, JSON, "{}",
	 "POST /v1beta/models/h:generateContent HTTP/1.1", "{\"contents\":[]}", false, ""},
	{"another query", "POST /v1/messages?beta=true HTTP/1.1", ASK, END_SERVER_CUTS, SSE, BEGUN, MESSAGES, ASK, false, ""},
	{"another organisation", CHAT "\r\nOpenAI-Organization: a", ASK, END_SERVER_CUTS, JSON, WHOLE,
	 CHAT "\r\nOpenAI-Organization: b", ASK, false, ""},
	{"another principal", CHAT "\r\nX-Api-Key: a", ASK, END_SERVER_CUTS, JSON, WHOLE, CHAT "\r\nX-Api-Key: b", ASK, false, ""},

	/* little money */
	{"embeddings, cut", "POST /v1/embeddings HTTP/1.1", "{\"model\":\"e\",\"input\":\"Hi\"}", END_SERVER_CUTS, JSON, "{\"data\":[]}", NULL,
	 NULL, false, "llm_billed_twice low 1-2"},
	{"embeddings, delivered", "POST /v1/embeddings HTTP/1.1", "{\"model\":\"e\",\"input\":\"Hi\"}", END_WHOLE, JSON, "{\"data\":[]}", NULL,
	 NULL, false, "llm_repeat info 1-2"},
};

static void ask(struct scene *scene, uint32_t c, const char *head, const char *body)
{
	char text[2048];

	snprintf(text, sizeof(text), "%s\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", head,
		 strlen(body), body);
	scene_send(scene, c, WIRE_BUILD_CLIENT, text);
	scene_wait(scene, 5);
}

static void answer(struct scene *scene, uint32_t c, const struct talk *talk)
{
	bool cut = talk->end == END_SERVER_CUTS || talk->end == END_CLIENT_LEAVES;
	char text[2048];

	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n%s", talk->answer,
		 strlen(talk->entity) + (cut ? 9 : 0), talk->entity);
	scene_send(scene, c, WIRE_BUILD_SERVER, text);
	scene_wait(scene, 5);
}

static void end(struct scene *scene, uint32_t c, const struct talk *talk)
{
	switch (talk->end) {
	case END_WHOLE:
		answer(scene, c, talk);
		break;
	case END_SERVER_CUTS:
		answer(scene, c, talk);
		scene_abort(scene, c, WIRE_BUILD_SERVER);
		break;
	case END_NOT_READ:
		scene_hold_reads(scene, c, WIRE_BUILD_CLIENT);
		/* fall through */
	case END_CLIENT_LEAVES:
		answer(scene, c, talk);
		scene_close(scene, c, WIRE_BUILD_CLIENT);
		break;
	case END_LATE:
		scene_close(scene, c, WIRE_BUILD_CLIENT);
		scene_wait(scene, 5);
		answer(scene, c, talk);
		break;
	case END_SILENT:
		scene_close(scene, c, WIRE_BUILD_SERVER);
		break;
	case END_EXIT:
		scene_exit(scene, 100);
		scene_abort(scene, c, WIRE_BUILD_CLIENT);
		break;
	case END_OPEN:
		break;
	}
	scene_wait(scene, 5);
}

static void stands_as_it_should(void **state)
{
	const struct talk *talk = *state;
	struct talk second = {.end = END_WHOLE, .answer = JSON, .entity = WHOLE};
	char found[512];
	struct scene scene;
	uint32_t c, again;

	scene_start(&scene);
	scene_open(&scene);
	c = scene_connect(&scene, 100);
	ask(&scene, c, talk->head, talk->body);
	end(&scene, c, talk);
	again = scene_connect(&scene, talk->other_process ? 101 : 100);
	ask(&scene, again, talk->second_head ? talk->second_head : talk->head, talk->second_body ? talk->second_body : talk->body);
	if (talk->end == END_OPEN)
		answer(&scene, c, talk);
	end(&scene, again, &second);
	scene_finish(&scene, 0);
	scene_standing(&scene, found, sizeof(found));
	assert_string_equal(found, talk->findings);
	scene_done(&scene);
}

/* ---- the key on the wire is that of a request that is still to be sent ---- */

static void the_wire_makes_the_key_that_a_job_asks_for(void **state)
{
	static const struct {
		const char *path;
		const char *body;
	} rows[] = {
		{"/v1/chat/completions", "{" HELLO ",\"stream\":true,\"max_tokens\":9,\"idempotency_key\":\"k\"}"},
		{"/v1/messages?beta=true", ASK},
		{"/v1beta/models/g:streamGenerateContent?alt=sse", "{\"contents\":[{\"parts\":[]}]}"},
		{"/api/chat", "{\"model\":\"m\",\"messages\":[],\"options\":{\"num_predict\":5}}"},
		{"/completion", "{\"prompt\":\"Hi\",\"n_predict\":5,\"cache_prompt\":true}"},
		{"/v1/embeddings", "{\"model\":\"e\",\"input\":[\"Hi\"]}"},
		{"/v1/chat/completions", "{\"model\":\"m\","}, /* no JSON: as it was sent */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model_request request = {.path = bytes_of_string(rows[i].path), .body = bytes_of_string(rows[i].body),
						.schema_version = "v7"};
		struct model_request_key key;
		char head[256], hex[2 * DIGEST_BYTES + 1];
		struct scene scene;

		scene_start(&scene);
		memcpy(scene.options.judge.schema_version, "v7", 3);
		scene_open(&scene);
		snprintf(head, sizeof(head), "POST %s HTTP/1.1\r\nIdempotency-Key: k", rows[i].path);
		ask(&scene, scene_connect(&scene, 100), head, rows[i].body);
		scene_finish(&scene, 0);
		assert_int_equal(model_key_of_request(&request, &key), 0);
		hex_of(key.key.byte, DIGEST_BYTES, hex);
		assert_string_equal(scene_field(scene_event(&scene, "response", 0), "model_key"), hex);
		scene_done(&scene);
	}
}

static void what_is_no_model_call_has_no_key(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	ask(&scene, scene_connect(&scene, 100), "POST /v1/charges HTTP/1.1", ASK);
	scene_finish(&scene, 0);
	assert_null(scene_field(scene_event(&scene, "response", 0), "model_key"));
	assert_null(scene_field(json_object_array_get_idx(scene.ledger, 0), "prompt_fingerprint"));
	scene_done(&scene);
}

/* ---- counts ---- */

static void counts_that_are_none_show_in_the_event_and_in_the_summary(void **state)
{
	struct talk bad = {.end = END_WHOLE, .answer = JSON,
			   .entity = "{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":\"5\",\"completion_tokens\":-2}}"};
	json_object *response;
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	for (int i = 0; i < 2; i++) {
		uint32_t c = scene_connect(&scene, 100);

		ask(&scene, c, CHAT, ASK);
		end(&scene, c, &bad);
	}
	scene_finish(&scene, 0);
	response = scene_event(&scene, "response", 0);
	assert_string_equal(scene_field(response, "usage_refused"), "2");
	assert_null(scene_field(response, "usage"));
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "usage_refused"), "4");
	scene_done(&scene);
}

/* Bytes of the answer are missing: what it says is a bound, and whether it has an end nobody knows. */
static void a_hole_leaves_bounds_and_no_opinion_of_the_end(void **state)
{
	static const char rest[] = "\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":7}}\n\n";
	json_object *response;
	struct scene scene;
	char begin[512];
	uint32_t c;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	c = scene_connect(&scene, 100);
	ask(&scene, c, MESSAGES, ASK);
	snprintf(begin, sizeof(begin), "HTTP/1.1 " SSE "\r\nContent-Length: %zu\r\n\r\n" BEGUN,
		 strlen(BEGUN) + 50 + strlen(rest));
	scene_send(&scene, c, WIRE_BUILD_SERVER, begin);
	scene_lose(&scene, c, WIRE_BUILD_SERVER, 50);
	scene_send(&scene, c, WIRE_BUILD_SERVER, rest);
	scene_wait(&scene, 5);
	scene_finish(&scene, 0);
	response = scene_event(&scene, "response", 0);
	assert_string_equal(scene_field(response, "response_complete"), "true");
	assert_string_equal(scene_field(response, "usage"),
			    "{ \"input_tokens\": 5, \"output_tokens\": 7, \"cached_tokens\": null, \"cache_write_tokens\": null, "
			    "\"reasoning_tokens\": null, \"final\": false }");
	assert_null(scene_field(response, "answer_complete"));
	scene_done(&scene);
}

/* What would be kept of an answer, of which so many bytes before its last ones were lost; -1 = nothing. */
static int64_t kept_bytes(uint64_t lost)
{
	struct scene scene;
	int64_t kept = -1;
	char head[128];
	uint32_t c;

	scene_start(&scene);
	scene.options.bookings = scene.options.keep_results = true;
	scene_open(&scene);
	c = scene_connect(&scene, 100);
	ask(&scene, c, CHAT, ASK);
	snprintf(head, sizeof(head), "HTTP/1.1 " JSON "\r\nContent-Length: %zu\r\n\r\n", strlen(WHOLE) + (size_t)lost);
	scene_send(&scene, c, WIRE_BUILD_SERVER, head);
	if (lost)
		scene_lose(&scene, c, WIRE_BUILD_SERVER, lost);
	scene_send(&scene, c, WIRE_BUILD_SERVER, WHOLE);
	scene_wait(&scene, 5);
	scene_finish(&scene, 0);
	for (size_t i = 0; i < bookings_count(&scene.out.bookings); i++) {
		const struct booking *booking = bookings_at(&scene.out.bookings, i);

		if (booking->kind == BOOKING_ATTEMPT && booking->attempt.result)
			kept = (int64_t)booking->attempt.result_size;
	}
	bookings_clear(&scene.out.bookings);
	buffer_done(&scene.out.bookings);
	scene_done(&scene);
	return kept;
}

static void an_answer_with_a_hole_is_not_kept_as_one(void **state)
{
	(void)state;
	assert_int_equal(kept_bytes(0), strlen(WHOLE));
	assert_int_equal(kept_bytes(20), -1);
}

/* The one response event of a call that got this answer, its last byte by itself. */
static json_object *answered(struct scene *scene, const char *head, struct bytes entity)
{
	char text[256];
	uint32_t c;

	scene_start(scene);
	scene_open(scene);
	c = scene_connect(scene, 100);
	ask(scene, c, MESSAGES, ASK);
	snprintf(text, sizeof(text), "HTTP/1.1 %s\r\nContent-Length: %zu\r\n\r\n", head, entity.size);
	scene_send(scene, c, WIRE_BUILD_SERVER, text);
	scene->cut = entity.size - 1;
	scene_send_bytes(scene, c, WIRE_BUILD_SERVER, entity);
	scene_wait(scene, 5);
	scene_finish(scene, 0);
	assert_string_equal(scene_field(scene_event(scene, "response", 0), "response_complete"), "true");
	return scene_event(scene, "response", 0);
}

/* So the same prompt again is a second bill or a mere repeat: nobody can tell. */
static void behind_a_hole_that_may_hold_the_end_a_repeat_is_undecidable(void **state)
{
	static const struct {
		const char *rest;
		const char *stands;
	} rows[] = {
		{"\n\ndata: {\"type\":\"ping\"}\n\n", "undecidable null 1-2"},
		{"\n\ndata: {\"type\":\"message_stop\"}\n\n", "llm_repeat info 1-2"},
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct talk whole = {.end = END_WHOLE, .answer = SSE, .entity = ENDED};
		struct scene scene;
		char begin[512], found[128];
		uint32_t c;

		scene_start(&scene);
		scene_open(&scene);
		c = scene_connect(&scene, 100);
		ask(&scene, c, MESSAGES, ASK);
		snprintf(begin, sizeof(begin), "HTTP/1.1 " SSE "\r\nContent-Length: %zu\r\n\r\n" BEGUN,
			 strlen(BEGUN) + 50 + strlen(rows[i].rest));
		scene_send(&scene, c, WIRE_BUILD_SERVER, begin);
		scene_lose(&scene, c, WIRE_BUILD_SERVER, 50);
		scene_send(&scene, c, WIRE_BUILD_SERVER, rows[i].rest);
		scene_wait(&scene, 5);
		c = scene_connect(&scene, 100);
		ask(&scene, c, MESSAGES, ASK);
		end(&scene, c, &whole);
		assert_int_equal(scene_finish(&scene, 0), 11);
		scene_standing(&scene, found, sizeof(found));
		assert_string_equal(found, rows[i].stands);
		scene_done(&scene);
	}
}

/* What cannot be decoded is not read on, and nothing is said of its end. */
static void an_answer_that_cannot_be_decoded_has_no_opinion_either(void **state)
{
	struct buffer damaged = coded_gzip(BYTES(BEGUN), 0);
	json_object *response;
	struct scene scene;

	(void)state;
	response = answered(&scene, SSE "\r\nContent-Encoding: snappy", BYTES(BEGUN));
	assert_null(scene_field(response, "usage"));
	assert_null(scene_field(response, "answer_complete"));
	scene_done(&scene);

	damaged.data[damaged.size - 1] ^= 1; /* found out behind the last event */
	response = answered(&scene, SSE "\r\nContent-Encoding: gzip", buffer_bytes(&damaged));
	assert_string_equal(scene_field(response, "usage"),
			    "{ \"input_tokens\": 5, \"output_tokens\": 1, \"cached_tokens\": null, \"cache_write_tokens\": null, "
			    "\"reasoning_tokens\": null, \"final\": false }");
	assert_null(scene_field(response, "answer_complete"));
	scene_done(&scene);
	buffer_done(&damaged);
}

static void an_error_says_nothing_of_tokens(void **state)
{
	static const char *const heads[] = {"500 No", "429 No", "302 Found", "199 Odd\r\n\r\nHTTP/1.1 400 No"};
	json_object *response;
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		response = answered(&scene, heads[i], BYTES(WHOLE));
		assert_null(scene_field(response, "usage"));
		assert_null(scene_field(response, "answer_complete"));
		scene_done(&scene);
	}
}

/* No cap of the answers that are kept (LIMIT_ANSWER_BYTES) ends it. */
static void a_long_stream_is_followed_to_its_end(void **state)
{
	struct buffer stream = {0}, coded;
	json_object *response;
	struct scene scene;
	char event[64];

	(void)state;
	for (int i = 0; stream.size < 3 * LIMIT_ANSWER_BYTES / 2; i++) {
		snprintf(event, sizeof(event), "data: {\"delta\":{\"text\":\"%d\"}}\n\n", i);
		assert_int_equal(buffer_append(&stream, bytes_of_string(event)), 0);
	}
	assert_int_equal(buffer_append(&stream, BYTES(ENDED)), 0);
	coded = coded_gzip(buffer_bytes(&stream), 0);
	for (int gzip = 0; gzip < 2; gzip++) {
		response = answered(&scene, gzip ? SSE "\r\nContent-Encoding: gzip" : SSE, buffer_bytes(gzip ? &coded : &stream));
		assert_string_equal(scene_field(response, "usage"),
				    "{ \"input_tokens\": 5, \"output_tokens\": 1, \"cached_tokens\": null, \"cache_write_tokens\": null, "
				    "\"reasoning_tokens\": null, \"final\": true }");
		assert_string_equal(scene_field(response, "answer_complete"), "true");
		scene_done(&scene);
	}
	buffer_done(&stream);
	buffer_done(&coded);
}

#define TALKS (sizeof(talks) / sizeof(talks[0]))

int main(void)
{
	static const struct CMUnitTest others[] = {
		cmocka_unit_test(the_wire_makes_the_key_that_a_job_asks_for),
		cmocka_unit_test(what_is_no_model_call_has_no_key),
		cmocka_unit_test(counts_that_are_none_show_in_the_event_and_in_the_summary),
		cmocka_unit_test(a_hole_leaves_bounds_and_no_opinion_of_the_end),
		cmocka_unit_test(behind_a_hole_that_may_hold_the_end_a_repeat_is_undecidable),
		cmocka_unit_test(an_answer_with_a_hole_is_not_kept_as_one),
		cmocka_unit_test(an_answer_that_cannot_be_decoded_has_no_opinion_either),
		cmocka_unit_test(an_error_says_nothing_of_tokens),
		cmocka_unit_test(a_long_stream_is_followed_to_its_end),
	};
	struct CMUnitTest tests[TALKS + sizeof(others) / sizeof(others[0])];

	for (size_t i = 0; i < TALKS; i++)
		tests[i] = (struct CMUnitTest){talks[i].what, stands_as_it_should, NULL, NULL, (void *)&talks[i]};
	memcpy(tests + TALKS, others, sizeof(others));
	return _cmocka_run_group_tests("model calls", tests, TALKS + sizeof(others) / sizeof(others[0]), NULL, NULL);
}
