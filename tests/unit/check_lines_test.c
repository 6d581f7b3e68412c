/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * user/check_lines.c: what a run wrote, judged again without it. Every wire case
 * is played live, and its events must give the same findings again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case_play.h"
#include "check_lines.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define ERROR_ANSWER "HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\nno"

static const struct check_overrides no_overrides;

static struct check_lines *judge(const char *const *texts, size_t count, const struct check_overrides *overrides,
				 const struct policy *policy)
{
	struct check_lines *check = check_lines_new(overrides, policy);

	assert_non_null(check);
	for (size_t i = 0; i < count; i++) {
		struct bytes text = bytes_of_string(texts[i]);

		while (text.size) {
			struct bytes line = bytes_take(&text, bytes_find(text, '\n'));
			const char *wrong = check_lines_add(check, line);

			bytes_take(&text, 1);
			if (wrong)
				fail_msg("%s: %.*s", wrong, (int)line.size, (const char *)line.data);
		}
	}
	assert_int_equal(check_lines_judge(check), 0);
	return check;
}

static char *text_of(struct buffer *buffer)
{
	assert_int_equal(buffer_append_byte(buffer, 0), 0);
	buffer->size--;
	return (char *)buffer->data;
}

/* Of the events of a scene that is over. */
static struct check_lines *judge_events(struct scene *scene, const struct check_overrides *overrides,
					const struct policy *policy)
{
	const char *text = text_of(&scene->out.events);

	return judge(&text, 1, overrides, policy);
}

static struct check_lines *judge_ledger(struct scene *scene, const struct check_overrides *overrides)
{
	const char *text = text_of(&scene->out.ledger);

	return judge(&text, 1, overrides, NULL);
}

static void begin(struct scene *scene)
{
	scene_start(scene);
	scene_open(scene);
}

static void send_post(struct scene *scene, uint32_t c, const char *headers, const char *body)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "POST /v1/charges HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: "
		 "%zu\r\n\r\n%s",
		 headers, strlen(body), body);
	scene_send(scene, c, WIRE_BUILD_CLIENT, text);
}

static void post(struct scene *scene, uint32_t pid, const char *headers, const char *body, const char *answer)
{
	uint32_t c = scene_connect(scene, pid);

	send_post(scene, c, headers, body);
	scene_wait(scene, 1);
	scene_send(scene, c, WIRE_BUILD_SERVER, answer);
	scene_wait(scene, 1);
	scene_close(scene, c, WIRE_BUILD_CLIENT);
	scene_close(scene, c, WIRE_BUILD_SERVER);
	scene_wait(scene, 10);
}

static const struct judgement *group(const struct check_lines *check, size_t n)
{
	const struct judgement *judgement;
	const void *position = NULL;
	struct bytes call;

	do {
		judgement = alerts_next(check_lines_alerts(check), &position, &call);
	} while (judgement && n--);
	return judgement;
}

/* The only group of attempts with a finding. */
static void found(const struct check_lines *check, enum finding finding, enum severity severity)
{
	const struct judgement *judgement = group(check, 0);

	assert_non_null(judgement);
	assert_string_equal(finding_name(judgement->verdict.finding), finding_name(finding));
	assert_int_equal(judgement->verdict.severity, severity);
	assert_null(group(check, 1));
}

static bool is_incomplete(const struct check_lines *check, const char *reason)
{
	const struct summary *summary = check_lines_summary(check);

	for (size_t i = 0; i < summary->incomplete_count; i++)
		if (strcmp(summary->incomplete[i], reason) == 0)
			return true;
	return false;
}

/* ---- the same as live ---- */

static void same_tokens(const struct attempt_facts *live, const struct attempt_facts *own)
{
	assert_int_equal(own->usage_seen, live->usage_seen);
	assert_int_equal(own->usage_final, live->usage_final);
	assert_int_equal(own->input_tokens, live->input_tokens);
	assert_int_equal(own->output_tokens, live->output_tokens);
	assert_int_equal(own->answer_cut, live->answer_cut);
}

static void same_as_live_refused(struct scene *scene, const char *name, uint64_t refused)
{
	int status = scene_finish(scene, 0);
	struct check_lines *check = judge_events(scene, &no_overrides, NULL);
	const struct summary *live = pipeline_summary(scene->pipeline), *own = check_lines_summary(check);
	const void *live_position = NULL, *own_position = NULL;
	const struct judgement *a, *b;
	struct bytes live_call, own_call;

	do {
		a = alerts_next(pipeline_alerts(scene->pipeline), &live_position, &live_call);
		b = alerts_next(check_lines_alerts(check), &own_position, &own_call);
		if (!a != !b)
			fail_msg("%s: %s, only %s", name, finding_name((a ? a : b)->verdict.finding), a ? "live" : "offline");
		if (!a)
			break;
		if (a->verdict.finding != b->verdict.finding || a->verdict.severity != b->verdict.severity ||
		    memcmp(a->earlier_id, b->earlier_id, CALL_ID_BYTES) != 0)
			fail_msg("%s: %s %d live, %s %d offline", name, finding_name(a->verdict.finding), a->verdict.severity,
				 finding_name(b->verdict.finding), b->verdict.severity);
		assert_memory_equal(a->call_id, b->call_id, CALL_ID_BYTES);
		assert_int_equal(a->attempt, b->attempt);
		assert_int_equal(a->attempts, b->attempts);
		assert_string_equal(a->verdict.rule, b->verdict.rule);
		same_tokens(&a->earlier_facts, &b->earlier_facts);
		same_tokens(&a->later_facts, &b->later_facts);
		assert_int_equal(live_call.size, own_call.size);
		assert_memory_equal(live_call.data, own_call.data, own_call.size);
	} while (a);
	for (int finding = 0; finding < FINDING_COUNT; finding++)
		if (live->findings[finding] != own->findings[finding])
			fail_msg("%s: %s: %llu live, %llu offline", name, finding_name((enum finding)finding),
				 (unsigned long long)live->findings[finding], (unsigned long long)own->findings[finding]);
	assert_int_equal(own->requests, live->requests);
	assert_int_equal(own->mutating, live->mutating);
	assert_int_equal(live->usage_refused, refused);
	assert_int_equal(own->usage_refused, refused);
	assert_int_equal(own->incomplete_count, live->incomplete_count);
	if (check_lines_exit_status(check) != status)
		fail_msg("%s: exit %d live, %d offline", name, status, check_lines_exit_status(check));
	check_lines_free(check);
	scene_done(scene);
}

static void same_as_live(struct scene *scene, const char *name)
{
	same_as_live_refused(scene, name, 0);
}

static void every_case_is_judged_as_live(void **state)
{
	static const char *const names[] = {
		"01-timeout-after-commit",     "02-second-post-after-200",    "03-truncated-200",
		"04-idle-connection-resend",   "05-key-reused-different-body", "06-key-changed-on-retry",
		"07-llm-504-then-again",       "08-llm-stream-cut-then-nonstream", "09-llm-redispatched-fresh-process",
		"10-respelled-json",	       "11-mcp-write-tool-new-id",    "12-neg-pagination-search",
		"13-neg-orders-beyond-2-53",   "14-neg-same-body-different-path", "15-neg-same-key-same-body-after-503",
		"16-neg-mcp-read-only-tool",   "17-neg-graphql-query",	      "18-neg-polling",
		"19-neg-llm-different-seeds",  "20-neg-multipart-different-files",
	};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		begin(&scene);
		case_play(&scene, names[i]);
		same_as_live(&scene, names[i]);
	}
}

static void what_models_said_is_read_back(void **state)
{
	static const struct {
		const char *entity;
		uint64_t refused; /* by both answers */
	} answers[] = {
		{"{\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":\"x\",\"output_tokens\":4}}", 2},
		{"data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":5}}\n\n", 0},
		{"{\"status\":\"queued\",\"usage\":{\"input_tokens\":7,\"output_tokens\":-1}}", 2},
		{"{\"status\":\"completed\",\"usage\":{\"input_tokens\":7,\"output_tokens\":1}}", 0},
	};
	struct scene scene;
	char text[512];

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		begin(&scene);
		for (int attempt = 0; attempt < 2; attempt++) {
			uint32_t c = scene_connect(&scene, 100);

			scene_send(&scene, c, WIRE_BUILD_CLIENT,
				   "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
				   "{\"model\":\"m\"}");
			scene_wait(&scene, 1);
			snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(answers[i].entity),
				 answers[i].entity);
			scene_send(&scene, c, WIRE_BUILD_SERVER, text);
			scene_wait(&scene, 1);
			scene_close(&scene, c, WIRE_BUILD_CLIENT);
			scene_wait(&scene, 5);
		}
		same_as_live_refused(&scene, answers[i].entity, answers[i].refused);
	}
}

/* The hole may hold the end of the model's answer. */
static void a_hole_in_a_model_s_answer_is_undecidable_again(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	for (int attempt = 0; attempt < 2; attempt++) {
		uint32_t c = scene_connect(&scene, 100);

		scene_send(&scene, c, WIRE_BUILD_CLIENT,
			   "POST /v1/messages HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n"
			   "{\"model\":\"m\"}");
		scene_wait(&scene, 1);
		scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 70\r\n\r\ndata: {\"type\":\"message_start\"}\n\n");
		scene_lose(&scene, c, WIRE_BUILD_SERVER, 38);
		scene_wait(&scene, 5);
	}
	same_as_live(&scene, "a hole in a model's answer");
}

static void an_attempt_that_was_open_stays_one(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	begin(&scene);
	c = scene_connect(&scene, 100);
	send_post(&scene, c, "", "{\"a\":1}");
	scene_wait(&scene, 5);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER); /* while the first is open */
	scene_close(&scene, c, WIRE_BUILD_CLIENT);     /* which then gives up */
	scene_wait(&scene, 5);
	scene_send(&scene, c, WIRE_BUILD_SERVER, OK_ANSWER); /* and is answered to nobody */
	scene_wait(&scene, 5);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	same_as_live(&scene, "open");
}

static void a_server_that_never_read_the_request_is_remembered(void **state)
{
	struct scene scene;
	uint32_t c;

	(void)state;
	for (int reads = 0; reads < 2; reads++) {
		begin(&scene);
		c = scene_connect(&scene, 100);
		if (!reads)
			scene_hold_reads(&scene, c, WIRE_BUILD_SERVER);
		send_post(&scene, c, "", "{\"a\":1}");
		scene_wait(&scene, 5);
		scene_abort(&scene, c, WIRE_BUILD_SERVER);
		scene_wait(&scene, 5);
		post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
		same_as_live(&scene, reads ? "read" : "unread");
	}
}

static void two_bearer_tokens_are_known_from_the_finding(void **state)
{
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "Authorization: Bearer one\r\n", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "Authorization: Bearer two\r\n", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "X-Api-Key: three\r\n", "{\"b\":1}", OK_ANSWER);
	post(&scene, 100, "X-Api-Key: four\r\n", "{\"b\":1}", OK_ANSWER);
	same_as_live(&scene, "bearer");
}

/* The hole takes the status, or a part of the body. */
static void a_hole_is_undecidable_again(void **state)
{
	static const char *const heads[] = {"", "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n0123456789"};
	struct scene scene;
	uint32_t c;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		begin(&scene);
		c = scene_connect(&scene, 100);
		send_post(&scene, c, "", "{\"a\":1}");
		scene_wait(&scene, 1);
		scene_send(&scene, c, WIRE_BUILD_SERVER, heads[i]);
		scene_lose(&scene, c, WIRE_BUILD_SERVER, 40);
		scene_wait(&scene, 1);
		scene_close(&scene, c, WIRE_BUILD_CLIENT);
		scene_close(&scene, c, WIRE_BUILD_SERVER);
		scene_wait(&scene, 5);
		post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
		same_as_live(&scene, heads[i]);
	}
}

static void every_sort_of_request_is_judged_as_live(void **state)
{
	static const char *const found[] = {
		"HTTP/1.1 302 Found\r\nLocation: /done\r\nContent-Length: 0\r\n\r\n", OK_ANSWER, ERROR_ANSWER,
		"HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nab",
		"HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{\"error\":{\"code\":-32602}}"};
	static const char *const requests[][2] = {
		{"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", NULL},
		{"DELETE /a/1 HTTP/1.1\r\nHost: a\r\n\r\n", NULL},
		{"PATCH /a HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", NULL},
		{"GET /a HTTP/1.1\r\nHost: a\r\n\r\n", NULL},
		{"POST /a?key=secret HTTP/1.1\r\nHost: a\r\nContent-Type: application/x-www-form-urlencoded\r\n"
		 "Content-Length: 3\r\n\r\na=1",
		 NULL},
		{"POST /mcp HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: "
		 "90\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"create_x\",\"arguments\":{}}}",
		 "POST /mcp HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nContent-Type: application/json\r\nContent-Length: "
		 "90\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"create_x\",\"arguments\":{}}}"},
		{"POST /search HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", NULL},
		{"POST /oauth/token HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", NULL},
		{"POST /v1/embeddings HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 25\r\n\r\n"
		 "{\"model\":\"m\",\"input\":\"i\"}",
		 NULL},
		{"POST /a HTTP/1.1\r\nHost: \xff\r\nX-A: \xfe\r\nIdempotency-Key: \xfd\r\nContent-Length: 1\r\n\r\n\xfc", NULL},
	};
	struct scene scene;

	(void)state;
	for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++)
		for (size_t j = 0; j < sizeof(found) / sizeof(found[0]); j++) {
			begin(&scene);
			for (int attempt = 0; attempt < 3; attempt++) {
				uint32_t c = scene_connect(&scene, 100 + (uint32_t)attempt / 2);
				bool second = attempt == 1 && requests[i][1];

				scene_send(&scene, c, WIRE_BUILD_CLIENT, requests[i][second]);
				scene_wait(&scene, 1);
				scene_send(&scene, c, WIRE_BUILD_SERVER, found[j]);
				scene_wait(&scene, 1);
				scene_close(&scene, c, attempt == 1 ? WIRE_BUILD_SERVER : WIRE_BUILD_CLIENT);
				scene_wait(&scene, 5);
			}
			same_as_live(&scene, requests[i][0]);
		}
}

static void what_the_run_could_not_judge_stays_undecidable(void **state)
{
	struct check_lines *check;
	struct scene scene;
	char *rule;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	rule = strstr(text_of(&scene.out.events), "\"rule\":\"success/no_key: table\"");
	memcpy(rule, "\"rule\":\"undecidable/no_key\"   ", strlen("\"rule\":\"success/no_key: table\""));
	check = judge_events(&scene, &no_overrides, NULL);
	found(check, FINDING_UNDECIDABLE, SEVERITY_NULL);
	check_lines_free(check);
	scene_done(&scene);
}

/* What the built-in rules would have said is not in the lines: they are asked again, without the body. */
static void a_class_of_the_runs_own_policy_does_not_outlive_it(void **state)
{
	struct policy *policy = NULL, *other = NULL;
	struct policy_error error;
	struct check_lines *check;
	struct scene scene;

	(void)state;
	assert_int_equal(policy_parse(BYTES("{\"rules\":[{\"match\":{},\"class\":\"read\"}]}"), &policy, &error), 0);
	assert_int_equal(policy_parse(BYTES("{}"), &other, &error), 0);
	scene_start(&scene);
	scene.options.policy = policy;
	scene_open(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	assert_int_equal(scene_finish(&scene, 0), 0);
	check = judge_events(&scene, &no_overrides, NULL);
	assert_null(group(check, 0));
	check_lines_free(check);
	check = judge_events(&scene, &no_overrides, other);
	found(check, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	assert_string_equal(check_lines_notice(check, 0),
			    "a class that the run's own policy had set is judged without the body: a recording has it");
	check_lines_free(check);
	scene_done(&scene);
	policy_free(policy);
	policy_free(other);
}

static void a_mark_starts_a_new_window(void **state)
{
	struct scene scene;
	struct input mark = {.kind = INPUT_MARK, .mark = {BYTES("two")}};

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	mark.now_ns = scene.now_ns;
	pipeline_feed(scene.pipeline, &mark);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	same_as_live(&scene, "mark");
}

static void keys_and_replays_are_judged_as_live(void **state)
{
	static const char replayed[] = "HTTP/1.1 200 OK\r\nIdempotent-Replayed: true\r\nContent-Length: 2\r\n\r\nok";
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "Idempotency-Key: \"a\"\r\n", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "Idempotency-Key: \"a\"\r\n", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: \"a\"\r\n", "{\"a\":2}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: unknown\r\n", "{\"a\":3}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: unknown\r\n", "{\"a\":3}", replayed);
	post(&scene, 100, "Idempotency-Key: a, b\r\n", "{\"a\":4}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: a, b\r\n", "{\"a\":4}", OK_ANSWER);
	same_as_live(&scene, "keys");
}

/* ---- a ledger alone ---- */

static void from_a_ledger_a_repeat_without_a_key_is_undecidable(void **state)
{
	const struct check_overrides allowed = {.allow_incomplete = true};
	struct buffer text = {0};
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_ledger(&scene, &no_overrides);
	found(check, FINDING_UNDECIDABLE, SEVERITY_NULL);
	assert_int_equal(finding_evidence(group(check, 0), &text), 0);
	assert_int_equal(attempt_outcome(&group(check, 0)->later_facts, &text), 0);
	assert_string_equal(text_of(&text),
			    "the same request again, and a ledger does not say how the earlier one wentoutcome not known");
	buffer_done(&text);
	assert_int_equal(check_lines_exit_status(check), 11);
	assert_string_equal(check_lines_notice(check, 0),
			    "from a ledger alone no outcome is known: give the events file or a recording");
	assert_null(check_lines_notice(check, 1));
	check_lines_free(check);
	check = judge_ledger(&scene, &allowed);
	assert_int_equal(check_lines_exit_status(check), 0);
	check_lines_free(check);
	scene_done(&scene);
}

static void from_a_ledger_the_same_key_and_body_is_safe_unless_strict(void **state)
{
	const struct check_overrides strict = {.strict = true};
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_ledger(&scene, &no_overrides);
	found(check, FINDING_SAFE_RETRY, SEVERITY_INFO);
	assert_int_equal(check_lines_exit_status(check), 0);
	check_lines_free(check);
	check = judge_ledger(&scene, &strict);
	found(check, FINDING_UNDECIDABLE, SEVERITY_NULL);
	check_lines_free(check);
	scene_done(&scene);
	begin(&scene);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":2}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_ledger(&scene, &no_overrides);
	found(check, FINDING_UNDECIDABLE, SEVERITY_NULL);
	check_lines_free(check);
	scene_done(&scene);
}

static void a_ledger_without_repeats_is_clean(void **state)
{
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"a\":2}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_ledger(&scene, &no_overrides);
	assert_null(group(check, 0));
	assert_int_equal(check_lines_exit_status(check), 0);
	assert_int_equal(check_lines_summary(check)->requests, 2);
	check_lines_free(check);
	scene_done(&scene);
}

static void marks_are_known_from_the_ledger_by_their_label(void **state)
{
	struct input mark = {.kind = INPUT_MARK, .mark = {BYTES("two")}};
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	mark.now_ns = scene.now_ns;
	pipeline_feed(scene.pipeline, &mark);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_ledger(&scene, &no_overrides);
	assert_null(group(check, 0));
	check_lines_free(check);
	scene_done(&scene);
}

static void ledger_and_events_of_one_run_are_one(void **state)
{
	const char *texts[2];
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	for (int order = 0; order < 2; order++) {
		texts[order] = text_of(&scene.out.ledger);
		texts[!order] = text_of(&scene.out.events);
		check = judge(texts, 2, &no_overrides, NULL);
		found(check, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
		assert_int_equal(check_lines_summary(check)->requests, 2);
		assert_int_equal(check_lines_exit_status(check), 10);
		assert_null(check_lines_notice(check, 0));
		check_lines_free(check);
	}
	scene_done(&scene);
}

static void two_runs_do_not_know_each_other(void **state)
{
	const char *texts[2];
	struct check_lines *check;
	struct scene scenes[2];

	(void)state;
	for (int i = 0; i < 2; i++) {
		scene_start(&scenes[i]);
		scenes[i].facts.run_id[0] = (char)('0' + i);
		scenes[i].facts.boot_id[0] = (uint8_t)i;
		scene_open(&scenes[i]);
		post(&scenes[i], 100, "", "{\"a\":1}", OK_ANSWER);
		scene_finish(&scenes[i], 0);
		texts[i] = text_of(&scenes[i].out.events);
	}
	check = judge(texts, 2, &no_overrides, NULL);
	assert_null(group(check, 0));
	assert_int_equal(check_lines_exit_status(check), 0);
	assert_int_equal(check_lines_summary(check)->requests, 2);
	check_lines_free(check);
	scene_done(&scenes[0]);
	scene_done(&scenes[1]);
}

/* ---- options and policy ---- */

static void the_command_line_outranks_policy_and_run(void **state)
{
	const struct check_overrides high = {.has_fail_on = true, .fail_on = SEVERITY_HIGH};
	struct policy *policy = NULL;
	struct policy_error error;
	struct check_lines *check;
	struct scene scene;

	(void)state;
	assert_int_equal(policy_parse(BYTES("{\"fail_on\":\"low\"}"), &policy, &error), 0);
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	assert_int_equal(scene_finish(&scene, 0), 0);
	check = judge_events(&scene, &no_overrides, policy);
	found(check, FINDING_RETRY_WITHOUT_KEY, SEVERITY_LOW);
	assert_int_equal(check_lines_exit_status(check), 10);
	check_lines_free(check);
	check = judge_events(&scene, &high, policy);
	assert_int_equal(check_lines_exit_status(check), 0);
	check_lines_free(check);
	scene_done(&scene);
	policy_free(policy);
	/* What the run was told is the base. */
	scene_start(&scene);
	scene.options.judge.fail_on = SEVERITY_LOW;
	scene_open(&scene);
	post(&scene, 100, "", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	same_as_live(&scene, "fail_on low");
}

static void strict_raises(void **state)
{
	const struct check_overrides strict = {.strict = true};
	struct check_lines *check;
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", ERROR_ANSWER);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_events(&scene, &strict, NULL);
	found(check, FINDING_RETRY_WITHOUT_KEY, SEVERITY_MEDIUM);
	assert_int_equal(check_lines_exit_status(check), 10);
	check_lines_free(check);
	scene_done(&scene);
}

struct with_policy {
	const char *policy;
	enum finding finding; /* FINDING_NONE: none */
	enum severity severity;
	int exit_status;
	bool unsure;
};

static void another_policy_judges_events_anew(void **state)
{
	static const struct with_policy rows[] = {
		{"{\"rules\":[{\"match\":{\"path\":\"/v1/*\"},\"class\":\"read\"}]}", FINDING_NONE, SEVERITY_NULL, 0, false},
		{"{\"rules\":[{\"match\":{\"path\":\"/v1/*\"},\"severity\":\"low\"}]}", FINDING_DUP_AFTER_SUCCESS, SEVERITY_LOW, 0,
		 false},
		{"{\"rules\":[{\"match\":{\"path\":\"/v2/*\"},\"class\":\"read\"}]}", FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH, 10,
		 false},
		{"{\"rules\":[{\"match\":{\"method\":\"POST\",\"host\":\"localhost\"},\"severity\":\"none\"}]}", FINDING_NONE,
		 SEVERITY_NULL, 0, false},
		{"{\"rules\":[{\"match\":{},\"scope\":\"process\"}]}", FINDING_NONE, SEVERITY_NULL, 0, false},
		{"{\"rules\":[{\"match\":{},\"masks\":[\"$.a\"]}]}", FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH, 10, true},
		{"{\"rules\":[{\"match\":{\"header\":\"X-A\"},\"class\":\"read\"}]}", FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH, 10,
		 true},
		{"{\"rules\":[{\"match\":{\"header\":\"X-A\"},\"class\":\"read\"},{\"match\":{},\"class\":\"read\"}]}", FINDING_NONE,
		 SEVERITY_NULL, 11, true},
		{"{\"rules\":[{\"match\":{\"header\":\"X-A\",\"path\":\"/v2\"},\"class\":\"read\"},{\"match\":{},\"class\":\"read\"}]}",
		 FINDING_NONE, SEVERITY_NULL, 0, false},
	};
	struct scene scene;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 101, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = NULL;
		struct policy_error error;
		struct check_lines *check;

		assert_int_equal(policy_parse(bytes_of_string(rows[i].policy), &policy, &error), 0);
		check = judge_events(&scene, &no_overrides, policy);
		if (rows[i].finding == FINDING_NONE)
			assert_null(group(check, 0));
		else
			found(check, rows[i].finding, rows[i].severity);
		if (check_lines_exit_status(check) != rows[i].exit_status)
			fail_msg("%s: exit %d", rows[i].policy, check_lines_exit_status(check));
		assert_int_equal(is_incomplete(check, "a rule of the policy asks for what lines do not hold"), rows[i].unsure);
		check_lines_free(check);
		policy_free(policy);
	}
	scene_done(&scene);
}

/* How the first of the calls goes that a policy keeps quiet: no finding tells of it, only its own lines. */
enum first_call { GAVE_UP_BEFORE, GAVE_UP_AFTER, LATE_ANSWER, NEVER_READ, READ };

static void play_quiet_pair(struct scene *scene, enum first_call way)
{
	uint32_t c = scene_connect(scene, 100);

	if (way == NEVER_READ)
		scene_hold_reads(scene, c, WIRE_BUILD_SERVER);
	send_post(scene, c, "", "{\"a\":1}");
	scene_wait(scene, 5);
	if (way == GAVE_UP_BEFORE || way == LATE_ANSWER)
		scene_close(scene, c, WIRE_BUILD_CLIENT);
	if (way == NEVER_READ || way == READ)
		scene_abort(scene, c, WIRE_BUILD_SERVER);
	scene_wait(scene, 5);
	post(scene, 100, "", "{\"a\":1}", OK_ANSWER);
	if (way == GAVE_UP_AFTER)
		scene_close(scene, c, WIRE_BUILD_CLIENT);
	if (way == LATE_ANSWER || way == GAVE_UP_AFTER)
		scene_send(scene, c, WIRE_BUILD_SERVER, OK_ANSWER);
}

/* From the lines of a run whose policy made nothing of either call: as it would have been judged without that policy. */
static void how_a_call_went_is_known_without_a_finding(void **state)
{
	static const struct {
		enum first_call way;
		enum finding finding;
		enum severity severity;
	} rows[] = {
		{GAVE_UP_BEFORE, FINDING_DUP_AFTER_TIMEOUT, SEVERITY_MEDIUM},
		{GAVE_UP_AFTER, FINDING_DUP_IN_FLIGHT, SEVERITY_MEDIUM},
		{LATE_ANSWER, FINDING_DUP_AFTER_TIMEOUT, SEVERITY_HIGH},
		{NEVER_READ, FINDING_NONE, SEVERITY_NULL},
		{READ, FINDING_DUP_AFTER_NO_RESPONSE, SEVERITY_MEDIUM},
	};
	static const char quiet[] = "{\"rules\":[{\"match\":{},\"class\":\"read\"}]}";
	static const char other[] = "{\"rules\":[{\"match\":{\"path\":\"/other\"},\"class\":\"read\"}]}";

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct policy *policy = NULL, *another = NULL;
		struct policy_error error;
		struct check_lines *check;
		struct scene scene;

		assert_int_equal(policy_parse(BYTES(other), &another, &error), 0);
		assert_int_equal(policy_parse(BYTES(quiet), &policy, &error), 0);
		scene_start(&scene);
		scene.options.policy = policy;
		scene_open(&scene);
		play_quiet_pair(&scene, rows[i].way);
		scene_finish(&scene, 0);
		check = judge_events(&scene, &no_overrides, another);
		if (rows[i].finding == FINDING_NONE)
			assert_null(group(check, 0));
		else
			found(check, rows[i].finding, rows[i].severity);
		check_lines_free(check);
		scene_done(&scene);
		policy_free(policy);
		policy_free(another);
	}
}

/* A run with a policy, judged again with the same one and without it. */
static void the_runs_own_policy_is_asked_for(void **state)
{
	struct policy *policy = NULL;
	struct policy_error error;
	struct check_lines *check;
	struct scene scene;

	(void)state;
	assert_int_equal(policy_parse(BYTES("{\"rules\":[{\"match\":{},\"masks\":[\"$.nonce\"],\"severity\":\"low\"}]}"), &policy,
				      &error),
			 0);
	scene_start(&scene);
	scene.options.policy = policy;
	scene_open(&scene);
	post(&scene, 100, "", "{\"nonce\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"nonce\":2}", OK_ANSWER);
	assert_int_equal(scene_finish(&scene, 0), 0);
	check = judge_events(&scene, &no_overrides, policy);
	found(check, FINDING_DUP_AFTER_SUCCESS, SEVERITY_LOW);
	assert_string_equal(group(check, 0)->equal_except, "nonce");
	assert_int_equal(check_lines_exit_status(check), 0);
	assert_null(check_lines_notice(check, 0));
	check_lines_free(check);
	check = judge_events(&scene, &no_overrides, NULL);
	found(check, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	assert_null(group(check, 0)->equal_except);
	assert_string_equal(check_lines_notice(check, 0),
			    "the run had a policy that is not given here: its severities, windows and scopes do not count");
	check_lines_free(check);
	scene_done(&scene);
	policy_free(policy);
}

static void an_exact_match_is_not_weaker_again(void **state)
{
	struct policy *policy = NULL;
	struct policy_error error;
	struct check_lines *check;
	struct scene scene;

	(void)state;
	assert_int_equal(policy_parse(BYTES("{\"rules\":[{\"match\":{},\"masks\":[\"$.nonce\"]}]}"), &policy, &error), 0);
	scene_start(&scene);
	scene.options.policy = policy;
	scene_open(&scene);
	post(&scene, 100, "", "{\"nonce\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"nonce\":2}", OK_ANSWER);
	post(&scene, 100, "", "{\"nonce\":2}", OK_ANSWER);
	scene_finish(&scene, 0);
	check = judge_events(&scene, &no_overrides, policy);
	found(check, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	assert_int_equal(group(check, 0)->attempt, 3);
	assert_null(group(check, 0)->equal_except);
	check_lines_free(check);
	scene_done(&scene);
	policy_free(policy);
}

/* ---- what cannot be used ---- */

static void a_broken_line_is_named_and_the_rest_is_judged(void **state)
{
	static const struct {
		const char *line;
		const char *wrong;
	} rows[] = {
		{"", "it is no JSON object, or it is cut"},
		{"{\"t\":1,\"path\":\"/a", "it is no JSON object, or it is cut"},
		{"[1]", "it is no JSON object, or it is cut"},
		{"{\"t\":1}", "it has no run"},
		{"{\"kind\":\"mark\",\"run\":\"\\u0000a\"}", "it has no run"},
		{"{\"kind\":\"mark\",\"run\":\"a\\u0000\"}", "it has no run"},
		{"{\"run\":\"0123456789abcdef\"}", "it is neither a ledger line nor an event"},
		{"{\"kind\":\"comet\",\"run\":\"0123456789abcdef\"}", "it is an event of a kind that this build does not know"},
		{"{\"run\":\"0123456789abcdef\",\"id\":\"x\"}", "a field of the schema is missing"},
		{"{\"kind\":\"response\",\"run\":\"a\",\"t\":\"x\"}", "a field of the response is not as it should be"},
		{"{\"kind\":\"finding\",\"run\":\"a\",\"finding\":\"x\"}", "a field of the finding is not as it should be"},
		{"{\"kind\":\"start\",\"run\":\"a\",\"schema\":2}", "it is of another schema than this build reads"},
		{"{\"kind\":\"blind\",\"run\":\"a\",\"blind_kind\":\"fog\"}", "it is blind in a way that this build does not know"},
		{"{\"kind\":\"blind\",\"run\":\"a\",\"blind_kind\":\"tls\",\"pid\":-1}", "a field of the blind stream is not as it should be"},
		{"{\"kind\":\"summary\",\"run\":\"a\"}", "it is no JSON object, or it is cut"},
	};
	struct check_lines *check = check_lines_new(&no_overrides, NULL);
	struct scene scene;
	struct bytes text;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "", "{\"a\":2}", OK_ANSWER);
	scene_finish(&scene, 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(check_lines_add(check, bytes_of_string(rows[i].line)), rows[i].wrong);
	text = bytes_of_string(text_of(&scene.out.ledger));
	while (text.size) {
		assert_null(check_lines_add(check, bytes_take(&text, bytes_find(text, '\n'))));
		bytes_take(&text, 1);
	}
	assert_int_equal(check_lines_judge(check), 0);
	assert_int_equal(check_lines_summary(check)->requests, 2);
	assert_true(is_incomplete(check, "a line could not be read"));
	assert_int_equal(check_lines_exit_status(check), 11);
	check_lines_free(check);
	scene_done(&scene);
}

/* Every byte of a run's lines missing or another one: judged or named, never worse. */
static void no_damage_to_a_line_is_fatal(void **state)
{
	struct check_lines *check;
	struct scene scene;
	struct bytes text;

	(void)state;
	begin(&scene);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":1}", OK_ANSWER);
	post(&scene, 100, "Idempotency-Key: a\r\n", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	text = bytes_of_string(text_of(&scene.out.events));
	for (size_t damage = 0; damage < text.size; damage += 3) {
		struct bytes rest = text;
		uint8_t saved = scene.out.events.data[damage];

		scene.out.events.data[damage] = "\"{}0,x"[damage % 6];
		check = check_lines_new(&no_overrides, NULL);
		while (rest.size) {
			check_lines_add(check, bytes_take(&rest, bytes_find(rest, '\n')));
			bytes_take(&rest, 1);
		}
		assert_int_equal(check_lines_judge(check), 0);
		check_lines_free(check);
		scene.out.events.data[damage] = saved;
	}
	scene_done(&scene);
}

static void events_without_a_summary_were_cut(void **state)
{
	struct check_lines *check;
	struct scene scene;
	char *text;

	(void)state;
	begin(&scene);
	post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
	scene_finish(&scene, 0);
	text = text_of(&scene.out.events);
	*strstr(text, "{\"kind\":\"response\"") = '\0';
	check = judge((const char *const *)&text, 1, &no_overrides, NULL);
	assert_true(is_incomplete(check, "the events end before the summary of their run"));
	assert_null(check_lines_notice(check, 0)); /* this is no ledger */
	assert_int_equal(check_lines_exit_status(check), 11);
	check_lines_free(check);
	scene_done(&scene);
}

/* A line of that kind, the n-th, is taken out of the text. */
static void lose_line(char *text, const char *kind, int n)
{
	char start[64], *line = text, *end;

	snprintf(start, sizeof(start), "{\"kind\":\"%s\"", kind);
	for (line = strstr(line, start); n--; line = strstr(line + 1, start))
		;
	end = strchr(line, '\n') + 1;
	memmove(line, end, strlen(end) + 1);
}

static void events_that_lack_a_line_are_not_whole(void **state)
{
	static const struct {
		const char *kind;
		int n;
		int status;
	} rows[] = {{"request", 0, 11}, {"request", 1, 11}, {"request", 2, 10}, {"response", 2, 10}, {"response", 0, 11}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct check_lines *check;
		struct scene scene;
		char *text;

		begin(&scene);
		post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
		post(&scene, 100, "", "{\"a\":1}", OK_ANSWER);
		post(&scene, 100, "", "{\"a\":2}", OK_ANSWER);
		scene_finish(&scene, 0);
		text = text_of(&scene.out.events);
		check = judge((const char *const *)&text, 1, &no_overrides, NULL);
		assert_int_equal(check_lines_summary(check)->incomplete_count, 0);
		check_lines_free(check);
		lose_line(text, rows[i].kind, rows[i].n);
		check = judge((const char *const *)&text, 1, &no_overrides, NULL);
		assert_true(is_incomplete(check, "the events lack lines that their run wrote"));
		assert_int_equal(check_lines_exit_status(check), rows[i].status);
		check_lines_free(check);
		scene_done(&scene);
	}
}

static void a_line_about_no_request_is_a_loss(void **state)
{
	static const char *const texts[] = {
		"{\"kind\":\"upgrade\",\"t\":1.0,\"run\":\"a\",\"of\":\"0123456789abcdef0123456789abcdef\","
		"\"earlier\":null,\"from\":\"dup_after_success\",\"to\":\"none\",\"because\":\"\"}\n",
	};
	struct check_lines *check = judge(texts, 1, &no_overrides, NULL);

	(void)state;
	assert_true(is_incomplete(check, "the events lack lines that their run wrote"));
	assert_int_equal(check_lines_exit_status(check), 11);
	check_lines_free(check);
}

static void what_the_run_could_not_see_is_still_not_seen(void **state)
{
	static const char text[] =
		"{\"kind\":\"blind\",\"t\":1.0,\"run\":\"a\",\"blind_kind\":\"tls\",\"pid\":7,\"comm\":\"curl\",\"bytes_out\":3,\"bytes_in\":4}\n"
		"{\"kind\":\"blind\",\"t\":1.0,\"run\":\"a\",\"blind_kind\":\"tls\",\"pid\":\"unknown\",\"comm\":\"unknown\",\"bytes_out\":0,\"bytes_in\":4}\n"
		"{\"kind\":\"blind\",\"t\":1.0,\"run\":\"a\",\"blind_kind\":\"netns\",\"pid\":8,\"comm\":\"node\",\"bytes_out\":null,\"bytes_in\":null}\n"
		"{\"kind\":\"off_loopback\",\"t\":1.0,\"run\":\"a\",\"refused\":false}\n"
		"{\"kind\":\"summary\",\"t\":1.0,\"run\":\"a\",\"bytes\":{\"accepted\":9,\"in_messages\":5,\"in_holes\":4,"
		"\"in_blind\":0},\"drops\":{\"ring_full\":4,\"no_flow\":1},\"recursion_misses\":2,\"incomplete\":["
		"\"something of another version\"]}\n";
	const char *texts[] = {text};
	struct check_lines *check = judge(texts, 1, &no_overrides, NULL);
	const struct blind_process *row;

	(void)state;
	assert_true(is_incomplete(check, "bytes were not seen (holes)"));
	assert_true(is_incomplete(check, "the kernel skipped a probe (recursion_misses)"));
	assert_true(is_incomplete(check, "a kernel table was full: too many connections at once"));
	assert_true(is_incomplete(check, "a TLS stream on loopback could not be read (--allow-blind tls)"));
	assert_true(is_incomplete(check, "the run itself could not tell: see its summary"));
	assert_int_equal(check_lines_summary(check)->findings[FINDING_OFF_LOOPBACK], 1);
	assert_int_equal(check_lines_exit_status(check), 11);
	row = blind_row(check_lines_summary(check)->blind_processes, 0);
	assert_int_equal(row->process.tgid, 7);
	assert_string_equal(row->process.comm, "curl");
	assert_int_equal(row->streams[BLIND_TLS], 1);
	assert_int_equal(row->bytes_out, 3);
	row = blind_row(check_lines_summary(check)->blind_processes, 1);
	assert_int_equal(row->process.tgid, 8);
	assert_int_equal(row->streams[BLIND_NETNS], 1);
	row = blind_row(check_lines_summary(check)->blind_processes, 2);
	assert_int_equal(row->process.tgid, 0);
	assert_int_equal(row->bytes_in, 4);
	check_lines_free(check);
}

static void a_refused_connection_fails_the_gate_again(void **state)
{
	static const char text[] = "{\"kind\":\"off_loopback\",\"t\":1.0,\"run\":\"a\",\"refused\":true}\n";
	const char *texts[] = {text};
	struct check_lines *check = judge(texts, 1, &no_overrides, NULL);

	(void)state;
	assert_int_equal(check_lines_exit_status(check), 10);
	check_lines_free(check);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_is_judged_as_live),
		cmocka_unit_test(what_models_said_is_read_back),
		cmocka_unit_test(a_hole_in_a_model_s_answer_is_undecidable_again),
		cmocka_unit_test(an_attempt_that_was_open_stays_one),
		cmocka_unit_test(a_server_that_never_read_the_request_is_remembered),
		cmocka_unit_test(two_bearer_tokens_are_known_from_the_finding),
		cmocka_unit_test(a_hole_is_undecidable_again),
		cmocka_unit_test(every_sort_of_request_is_judged_as_live),
		cmocka_unit_test(what_the_run_could_not_judge_stays_undecidable),
		cmocka_unit_test(a_class_of_the_runs_own_policy_does_not_outlive_it),
		cmocka_unit_test(a_mark_starts_a_new_window),
		cmocka_unit_test(keys_and_replays_are_judged_as_live),
		cmocka_unit_test(from_a_ledger_a_repeat_without_a_key_is_undecidable),
		cmocka_unit_test(from_a_ledger_the_same_key_and_body_is_safe_unless_strict),
		cmocka_unit_test(a_ledger_without_repeats_is_clean),
		cmocka_unit_test(marks_are_known_from_the_ledger_by_their_label),
		cmocka_unit_test(ledger_and_events_of_one_run_are_one),
		cmocka_unit_test(two_runs_do_not_know_each_other),
		cmocka_unit_test(the_command_line_outranks_policy_and_run),
		cmocka_unit_test(strict_raises),
		cmocka_unit_test(another_policy_judges_events_anew),
		cmocka_unit_test(how_a_call_went_is_known_without_a_finding),
		cmocka_unit_test(the_runs_own_policy_is_asked_for),
		cmocka_unit_test(an_exact_match_is_not_weaker_again),
		cmocka_unit_test(a_broken_line_is_named_and_the_rest_is_judged),
		cmocka_unit_test(no_damage_to_a_line_is_fatal),
		cmocka_unit_test(events_without_a_summary_were_cut),
		cmocka_unit_test(events_that_lack_a_line_are_not_whole),
		cmocka_unit_test(a_line_about_no_request_is_a_loss),
		cmocka_unit_test(what_the_run_could_not_see_is_still_not_seen),
		cmocka_unit_test(a_refused_connection_fails_the_gate_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
