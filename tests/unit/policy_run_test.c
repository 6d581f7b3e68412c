/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a policy does to a run: the same scene without and with a rule, through
 * the whole pipeline. Every rule is about /v1/charges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define OK_ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define RULE(settings) "{\"rules\":[{\"match\":{\"path\":\"/v1/charges\"}," settings "}]}"

struct play {
	struct scene scene;
	struct policy *policy;
};

static void start(struct play *play, const char *policy_text)
{
	struct policy_error error;

	memset(play, 0, sizeof(*play));
	scene_start(&play->scene);
	if (policy_text && policy_parse(bytes_of_string(policy_text), &play->policy, &error))
		fail_msg("%u:%u: %s", error.line, error.column, error.text);
	play->scene.options.policy = play->policy;
	if (play->policy)
		policy_apply(play->policy, &play->scene.options.judge);
	scene_open(&play->scene);
}

static void end(struct play *play)
{
	scene_done(&play->scene);
	policy_free(play->policy);
}

static void send_request(struct scene *scene, uint32_t c, const char *method, const char *headers, const char *body)
{
	char text[1024];

	snprintf(text, sizeof(text),
		 "%s /v1/charges HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n%sContent-Length: "
		 "%zu\r\n\r\n%s",
		 method, headers, strlen(body), body);
	scene_send(scene, c, WIRE_BUILD_CLIENT, text);
}

/* One POST of that process, answered 200 and read. */
static void post(struct play *play, uint32_t pid, const char *headers, const char *body)
{
	struct scene *scene = &play->scene;
	uint32_t c = scene_connect(scene, pid);

	send_request(scene, c, "POST", headers, body);
	scene_wait(scene, 1);
	scene_send(scene, c, WIRE_BUILD_SERVER, OK_ANSWER);
	scene_wait(scene, 1);
	scene_close(scene, c, WIRE_BUILD_CLIENT);
	scene_close(scene, c, WIRE_BUILD_SERVER);
	scene_wait(scene, 10);
}

/* The n-th finding about a pair. */
static json_object *pair_finding(const struct play *play, size_t n)
{
	json_object *event;

	for (size_t i = 0; (event = scene_event(&play->scene, "finding", i)); i++)
		if (scene_field(event, "earlier") && n-- == 0)
			return event;
	return NULL;
}

static void found(const struct play *play, const char *finding, const char *severity)
{
	json_object *event = pair_finding(play, 0);

	assert_non_null(event);
	assert_string_equal(scene_field(event, "finding"), finding);
	assert_string_equal(scene_field(event, "severity"), severity);
	assert_null(pair_finding(play, 1));
}

/* Two equal charges, and what becomes of them under that policy. */
static void two_charges(struct play *play, const char *policy_text, int exit_status)
{
	start(play, policy_text);
	post(play, 100, "", "{\"a\":1}");
	post(play, 100, "", "{\"a\":1}");
	assert_int_equal(scene_finish(&play->scene, 0), exit_status);
}

/* ---- class ---- */

static void a_read_by_policy_is_no_finding(void **state)
{
	struct play play;

	(void)state;
	two_charges(&play, NULL, 10);
	found(&play, "dup_after_success", "high");
	end(&play);
	two_charges(&play, RULE("\"name\":\"dry\",\"class\":\"read\""), 0);
	assert_null(pair_finding(&play, 0));
	assert_string_equal(scene_field(json_object_array_get_idx(play.scene.ledger, 0), "class"), "read");
	assert_string_equal(scene_field(json_object_array_get_idx(play.scene.ledger, 0), "class_by"),
			    "policy rule 1 (dry)");
	end(&play);
}

static void a_get_that_the_policy_calls_mutating_is_judged(void **state)
{
	struct play play;

	(void)state;
	for (int with = 0; with < 2; with++) {
		start(&play, with ? RULE("\"class\":\"mutating\"") : NULL);
		for (int i = 0; i < 2; i++) {
			uint32_t c = scene_connect(&play.scene, 100);

			send_request(&play.scene, c, "GET", "", "");
			scene_wait(&play.scene, 1);
			scene_send(&play.scene, c, WIRE_BUILD_SERVER, OK_ANSWER);
			scene_wait(&play.scene, 10);
		}
		assert_int_equal(scene_finish(&play.scene, 0), with ? 10 : 0);
		if (with)
			found(&play, "dup_after_success", "high");
		end(&play);
	}
}

static void telemetry_by_policy_is_info(void **state)
{
	struct play play;

	(void)state;
	two_charges(&play, RULE("\"class\":\"telemetry\""), 0);
	found(&play, "dup_after_success", "info");
	end(&play);
}

/* Six calls at even gaps are polling, unless somebody knows that they write. */
static void what_the_policy_calls_mutating_is_no_poll(void **state)
{
	struct play play;

	(void)state;
	for (int with = 0; with < 2; with++) {
		start(&play, with ? RULE("\"class\":\"mutating\"") : NULL);
		for (int i = 0; i < 6; i++) {
			post(&play, 100, "", "{\"a\":1}");
			scene_wait(&play.scene, 1988);
		}
		assert_int_equal(scene_finish(&play.scene, 0), with ? 10 : 0);
		end(&play);
	}
}

/* ---- severity ---- */

static void a_cap_lowers_the_finding_and_the_gate_follows(void **state)
{
	struct play play;

	(void)state;
	two_charges(&play, RULE("\"severity\":\"low\""), 0);
	found(&play, "dup_after_success", "low");
	assert_string_equal(scene_field(pair_finding(&play, 0), "rule"), "success/no_key: policy: severity");
	end(&play);
	two_charges(&play, "{\"fail_on\":\"low\",\"rules\":[{\"match\":{},\"severity\":\"low\"}]}", 10);
	end(&play);
	two_charges(&play, "{\"strict\":true,\"rules\":[{\"match\":{},\"severity\":\"low\"}]}", 0);
	found(&play, "dup_after_success", "low");
	end(&play);
	two_charges(&play, RULE("\"severity\":\"high\""), 10);
	found(&play, "dup_after_success", "high");
	end(&play);
}

/* Given up after 5 ms, sent again, then answered 200 to nobody. */
static void late_answer(struct play *play, const char *policy_text)
{
	struct scene *scene = &play->scene;
	uint32_t c;

	start(play, policy_text);
	c = scene_connect(scene, 100);
	send_request(scene, c, "POST", "", "{\"a\":1}");
	scene_wait(scene, 5);
	scene_close(scene, c, WIRE_BUILD_CLIENT);
	scene_wait(scene, 1);
	post(play, 100, "", "{\"a\":1}");
	scene_send(scene, c, WIRE_BUILD_SERVER, OK_ANSWER);
	scene_wait(scene, 1);
	scene_close(scene, c, WIRE_BUILD_SERVER);
}

static void a_cap_holds_for_what_comes_out_later(void **state)
{
	struct play play;

	(void)state;
	late_answer(&play, NULL);
	assert_int_equal(scene_finish(&play.scene, 0), 10);
	assert_string_equal(scene_field(scene_event(&play.scene, "upgrade", 0), "to"), "dup_after_timeout high");
	end(&play);
	late_answer(&play, RULE("\"severity\":\"low\""));
	assert_int_equal(scene_finish(&play.scene, 0), 0);
	found(&play, "dup_after_timeout", "low");
	assert_int_equal(scene_count(&play.scene, "upgrade"), 0);
	end(&play);
}

static void severity_none_says_nothing_at_all(void **state)
{
	struct play play;

	(void)state;
	late_answer(&play, RULE("\"severity\":\"none\""));
	assert_int_equal(scene_finish(&play.scene, 0), 0);
	assert_int_equal(scene_count(&play.scene, "finding"), 0); /* no abandoned_call either */
	assert_int_equal(scene_count(&play.scene, "upgrade"), 0);
	assert_int_equal(json_object_array_length(play.scene.ledger), 2);
	end(&play);
}

/* ---- masks ---- */

static void what_is_masked_is_not_compared_and_the_finding_says_so(void **state)
{
	struct play play;

	(void)state;
	for (int with = 0; with < 2; with++) {
		start(&play, with ? RULE("\"masks\":[\"$.nonce\",\"$.items[*].ts\"]") : NULL);
		post(&play, 100, "", "{\"nonce\":1,\"items\":[{\"ts\":1,\"id\":7}]}");
		post(&play, 100, "", "{\"nonce\":2,\"items\":[{\"ts\":5,\"id\":7}]}");
		assert_int_equal(scene_finish(&play.scene, 0), with ? 10 : 0);
		end(&play);
	}
	start(&play, RULE("\"masks\":[\"$.nonce\",\"$.items[*].ts\"]"));
	post(&play, 100, "", "{\"nonce\":1,\"items\":[{\"ts\":1,\"id\":7}]}");
	post(&play, 100, "", "{\"nonce\":2,\"items\":[{\"ts\":5,\"id\":7}]}");
	post(&play, 100, "", "{\"nonce\":2,\"items\":[{\"ts\":5,\"id\":8}]}"); /* another body */
	scene_finish(&play.scene, 0);
	found(&play, "dup_after_success", "high");
	assert_string_equal(scene_field(pair_finding(&play, 0), "masked"), "equal except nonce, items[*].ts");
	assert_string_equal(scene_field(pair_finding(&play, 0), "text"),
			    "second identical request after a complete 200, no Idempotency-Key (weaker: equal except nonce, "
			    "items[*].ts)");
	end(&play);
}

static void an_exact_match_is_not_weaker_for_a_mask(void **state)
{
	struct play play;

	(void)state;
	start(&play, RULE("\"masks\":[\"$.nonce\"]"));
	post(&play, 100, "", "{\"nonce\":1,\"x\":7}");
	post(&play, 100, "", "{\"x\":7,\"nonce\":1}");
	scene_finish(&play.scene, 0);
	found(&play, "dup_after_success", "high");
	assert_null(scene_field(pair_finding(&play, 0), "masked"));
	end(&play);
}

static void a_body_with_the_masked_member_equals_one_without(void **state)
{
	struct play play;

	(void)state;
	start(&play, RULE("\"masks\":[\"$.nonce\"]"));
	post(&play, 100, "", "{\"x\":7}");
	post(&play, 100, "", "{\"x\":7,\"nonce\":1}");
	scene_finish(&play.scene, 0);
	assert_string_equal(scene_field(pair_finding(&play, 0), "masked"), "equal except nonce");
	end(&play);
}

static void the_same_key_with_a_masked_difference_is_the_same_body(void **state)
{
	struct play play;

	(void)state;
	for (int with = 0; with < 2; with++) {
		start(&play, with ? RULE("\"masks\":[\"$.nonce\"]") : NULL);
		post(&play, 100, "Idempotency-Key: k1\r\n", "{\"nonce\":1}");
		post(&play, 100, "Idempotency-Key: k1\r\n", "{\"nonce\":2}");
		scene_finish(&play.scene, 0);
		found(&play, with ? "retry_after_success" : "key_reused_different_body", with ? "low" : "high");
		end(&play);
	}
}

static void another_body_under_one_key_is_not_called_equal(void **state)
{
	struct play play;

	(void)state;
	start(&play, RULE("\"masks\":[\"$.nonce\"]"));
	post(&play, 100, "Idempotency-Key: k1\r\n", "{\"nonce\":1,\"x\":1}");
	post(&play, 100, "Idempotency-Key: k1\r\n", "{\"nonce\":2,\"x\":2}");
	scene_finish(&play.scene, 0);
	found(&play, "key_reused_different_body", "high");
	assert_null(scene_field(pair_finding(&play, 0), "masked"));
	end(&play);
}

static void the_ledger_keeps_the_hash_of_the_whole_body(void **state)
{
	struct play with, without;
	const char *fields[] = {"sha", "sha_raw", "len"};

	(void)state;
	start(&with, RULE("\"masks\":[\"$.nonce\"]"));
	start(&without, NULL);
	post(&with, 100, "", "{\"nonce\":1}");
	post(&without, 100, "", "{\"nonce\":1}");
	scene_finish(&with.scene, 0);
	scene_finish(&without.scene, 0);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		assert_string_equal(scene_field(json_object_array_get_idx(with.scene.ledger, 0), fields[i]),
				    scene_field(json_object_array_get_idx(without.scene.ledger, 0), fields[i]));
	end(&with);
	end(&without);
}

/* ---- keys ---- */

static void a_key_is_found_where_the_policy_says(void **state)
{
	static const char policy[] = RULE("\"key\":{\"headers\":[\"X-Order\"],\"members\":[\"order\"]}");
	static const struct {
		const char *headers, *body, *idem, *from;
	} rows[] = {
		{"X-Order: o-1\r\n", "{\"a\":1}", "o-1", "X-Order"},
		{"x-order: o-1\r\nIdempotency-Key: k\r\n", "{\"a\":1}", "o-1", "X-Order"},
		{"Idempotency-Key: k\r\n", "{\"order\":\"b-1\"}", "k", "Idempotency-Key"},
		{"", "{\"order\":\"b-1\",\"requestId\":\"r\"}", "b-1", "body.order"},
		{"", "{\"order\":17}", "17", "body.order"},
		{"", "{\"order\":{},\"requestId\":\"r\"}", "r", "body.requestId"},
		{"", "{\"order\":\"\"}", NULL, NULL},
		{"", "{\"order\":\"a\",\"order\":\"b\"}", NULL, NULL},
	};
	struct play play;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_object *line;

		start(&play, policy);
		post(&play, 100, rows[i].headers, rows[i].body);
		scene_finish(&play.scene, 0);
		line = json_object_array_get_idx(play.scene.ledger, 0);
		if (rows[i].idem) {
			assert_string_equal(scene_field(line, "idem"), rows[i].idem);
			assert_string_equal(scene_field(line, "idem_from"), rows[i].from);
		} else {
			assert_null(scene_field(line, "idem"));
		}
		end(&play);
	}
}

static void a_retry_with_the_policys_key_is_safe(void **state)
{
	struct play play;

	(void)state;
	start(&play, RULE("\"key\":{\"members\":[\"order\"]}"));
	post(&play, 100, "", "{\"order\":\"o-1\",\"x\":1}");
	post(&play, 100, "", "{\"order\":\"o-1\",\"x\":1}");
	post(&play, 100, "", "{\"order\":\"o-1\",\"x\":2}");
	assert_int_equal(scene_finish(&play.scene, 0), 10);
	assert_string_equal(scene_field(pair_finding(&play, 0), "finding"), "retry_after_success");
	assert_string_equal(scene_field(pair_finding(&play, 1), "finding"), "key_reused_different_body");
	end(&play);
}

/* ---- windows and scope ---- */

/* Two charges of two processes, with a wait between them. */
static struct json_object *after_wait(struct play *play, const char *policy, uint32_t pid, uint32_t later_pid,
				      const char *headers, uint64_t ms)
{
	start(play, policy);
	post(play, pid, headers, "{\"a\":1}");
	scene_wait(&play->scene, ms);
	post(play, later_pid, headers, "{\"a\":1}");
	scene_finish(&play->scene, 0);
	return pair_finding(play, 0);
}

static void attempts_out_of_the_window_do_not_count(void **state)
{
	static const char policy[] = RULE("\"window\":{\"process\":60,\"across\":3600}");
	static const struct {
		uint32_t pid, later_pid;
		const char *headers;
		uint64_t s;
		bool counts;
	} rows[] = {
		{100, 100, "", 59, true},
		{100, 100, "", 61, false},
		{100, 101, "", 61, true},
		{100, 101, "", 3599, true},
		{100, 101, "", 3601, false},
		{100, 100, "Idempotency-Key: k\r\n", 61, true},
		{100, 100, "Idempotency-Key: k\r\n", 3601, false},
	};
	struct play play;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_object *event =
			after_wait(&play, policy, rows[i].pid, rows[i].later_pid, rows[i].headers, rows[i].s * 1000);

		if (!event == rows[i].counts)
			fail_msg("row %zu", i);
		end(&play);
	}
}

/* More attempts than are looked at one by one. */
static void a_window_holds_among_many(void **state)
{
	struct play play;
	size_t findings = 0;

	(void)state;
	start(&play, RULE("\"window\":{\"process\":60}"));
	for (int i = 0; i < 40; i++) {
		post(&play, 100, "", "{\"a\":1}");
		scene_wait(&play.scene, i % 2 ? 61000 : 500);
	}
	scene_finish(&play.scene, 0);
	while (pair_finding(&play, findings))
		findings++;
	assert_int_equal(findings, 20);
	end(&play);
}

#define MANY 600

static uint32_t random_below(uint64_t *seed, uint32_t limit)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*seed >> 33) % limit;
}

/* One of a family that arrives out of the order in which they began, and is answered or not. */
static struct call one_of_many(uint64_t *seed, uint64_t now_ns, uint64_t number, const struct policy_rule *rule)
{
	uint64_t first_ns = now_ns - random_below(seed, 90) * 1000 * SCENE_MS;
	struct call call = {
		.number = number,
		.process = {.tgid = 1 + random_below(seed, 3), .start_ns = 1, .cgroup_id = 1 + random_below(seed, 2)},
		.first_ns = first_ns,
		.request_complete = true,
		.class = CLASS_MUTATING,
		.method = BYTES("POST"),
		.has_sha = true,
		.has_fingerprint = true,
		.rule = rule,
	};

	if (random_below(seed, 4)) {
		call.status = random_below(seed, 2) ? 200 : 503;
		call.status_ns = first_ns + SCENE_MS;
		call.status_in_time = call.response_complete = true;
		call.response_first_ns = call.response_last_ns = first_ns + SCENE_MS;
	}
	return call;
}

/* Held against every pair: those that are skipped on the way would have said no more. */
static void the_worst_pair_within_a_window_is_found_among_many(void **state)
{
	static const char *const texts[] = {
		RULE("\"window\":{\"process\":60,\"across\":20}"), RULE("\"window\":{\"process\":20}"),
		RULE("\"window\":{\"across\":40},\"scope\":\"cgroup\""), RULE("\"scope\":\"process\",\"window\":{\"process\":70}")};
	static struct attempt_facts facts[MANY];

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct policy *policy = NULL;
		struct policy_error error;
		struct attempts_options options = {.across_processes = true, .max_remembered = MANY};
		struct attempts *attempts;
		uint64_t seed = i, now_ns = 1000000 * SCENE_MS;

		assert_int_equal(policy_parse(bytes_of_string(texts[i]), &policy, &error), 0);
		options.finding.limits = policy_limits(policy);
		attempts = attempts_new(&options);
		for (size_t n = 0; n < MANY; n++) {
			struct call call = one_of_many(&seed, now_ns, n + 1, policy_rule_at(policy, 0));
			struct judgement judgement;
			struct verdict worst = {0};
			size_t earlier = 0;

			attempt_facts_of(&call, &facts[n]);
			for (size_t m = 0; m < n; m++) {
				struct verdict verdict = finding_judge(&facts[m], &facts[n], &options.finding);

				if (verdict.finding == FINDING_NONE || verdict_worse(&worst, &verdict))
					continue;
				worst = verdict;
				earlier = m + 1;
			}
			assert_int_equal(attempts_add(attempts, &call, &judgement), 0);
			assert_int_equal(judgement.verdict.severity, worst.severity);
			assert_int_equal(judgement.earlier_number, earlier);
			now_ns += random_below(&seed, 8) * 1000 * SCENE_MS;
		}
		attempts_free(attempts);
		policy_free(policy);
	}
}

static void scope_process_keeps_processes_apart(void **state)
{
	struct play play;

	(void)state;
	assert_non_null(after_wait(&play, RULE("\"scope\":\"tree\""), 100, 101, "", 1));
	assert_string_equal(scene_field(pair_finding(&play, 0), "cross_process"), "true");
	end(&play);
	assert_null(after_wait(&play, RULE("\"scope\":\"process\""), 100, 101, "", 1));
	end(&play);
	assert_non_null(after_wait(&play, RULE("\"scope\":\"process\""), 100, 100, "", 1));
	end(&play);
}

static void scope_cgroup_looks_at_the_cgroup(void **state)
{
	const struct finding_limits limits = {.same_cgroup = true};
	const struct finding_options options = {.limits = &limits};
	struct attempt_facts earlier = {.first_ns = 1, .status = 200, .status_ns = 2, .complete_ns = 2, .request_complete = true,
					.status_in_time = true, .delivered = DELIVERED_ALL, .cgroup = 7};
	struct attempt_facts later = earlier;

	(void)state;
	later.first_ns = 10;
	later.policy_rule = 1;
	assert_int_equal(finding_judge(&earlier, &later, &options).finding, FINDING_DUP_AFTER_SUCCESS);
	later.cgroup = 8;
	assert_int_equal(finding_judge(&earlier, &later, &options).finding, FINDING_NONE);
	later.policy_rule = 0;
	assert_int_equal(finding_judge(&earlier, &later, &options).finding, FINDING_DUP_AFTER_SUCCESS);
}

/* ---- output ---- */

static void names_and_paths_of_the_policy_are_secret(void **state)
{
	static const char policy[] =
		"{\"secrets\":{\"query\":[\"Session\"],\"paths\":[\"/hooks/*/x*\",\"/**/key/*\"]}}";
	static const char *const targets[] = {"/hooks/SECRET1/xSECRET2/plain?session=SECRET3&a=1", "/a/key/SECRET4",
					      "/key/SECRET5/key/SECRET6?s%45ssion=SECRET7", "/hooks/plain1",
					      "/b/hooks/plain2/x"};
	struct play play;
	char text[256];

	(void)state;
	start(&play, policy);
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		uint32_t c = scene_connect(&play.scene, 100);

		snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", targets[i]);
		for (int twice = 0; twice < 2; twice++) {
			scene_send(&play.scene, c, WIRE_BUILD_CLIENT, text);
			scene_send(&play.scene, c, WIRE_BUILD_SERVER, OK_ANSWER);
			scene_wait(&play.scene, 10);
		}
	}
	scene_finish(&play.scene, 0);
	assert_int_equal(buffer_append_byte(&play.scene.out.ledger, 0), 0);
	assert_int_equal(buffer_append_byte(&play.scene.out.events, 0), 0);
	assert_int_equal(buffer_append_byte(&play.scene.out.alerts, 0), 0);
	assert_null(strstr((char *)play.scene.out.ledger.data, "SECRET"));
	assert_null(strstr((char *)play.scene.out.events.data, "SECRET"));
	assert_null(strstr((char *)play.scene.out.alerts.data, "SECRET"));
	assert_non_null(strstr((char *)play.scene.out.ledger.data, "/plain\""));
	assert_non_null(strstr((char *)play.scene.out.ledger.data, "/hooks/plain1"));
	assert_non_null(strstr((char *)play.scene.out.ledger.data, "/b/hooks/plain2/x"));
	assert_non_null(strstr((char *)play.scene.out.alerts.data, "dup_after_success"));
	end(&play);
}

static void the_start_event_names_the_policy(void **state)
{
	struct play play;
	char hex[2 * DIGEST_BYTES + 1];

	(void)state;
	two_charges(&play, NULL, 10);
	assert_null(scene_field(scene_event(&play.scene, "start", 0), "policy"));
	end(&play);
	two_charges(&play, RULE("\"class\":\"read\""), 0);
	hex_of(policy_sha(play.policy)->byte, DIGEST_BYTES, hex);
	assert_string_equal(scene_field(scene_event(&play.scene, "start", 0), "policy"), hex);
	end(&play);
}

/* ---- recordings ---- */

static struct recording_reader *record_and_open(const struct run_facts *facts, char **data)
{
	struct recording_writer *writer = NULL;
	struct recording_reader *reader = NULL;
	size_t size;

	assert_int_equal(recording_writer_new(open_memstream(data, &size), facts, &writer), 0);
	assert_int_equal(recording_writer_free(writer), 0);
	assert_int_equal(recording_reader_new(fmemopen(*data, size, "rb"), &reader), 0);
	return reader;
}

static void a_recording_brings_its_policy_byte_for_byte(void **state)
{
	static const char text[] = "\xef\xbb\xbf{ \"comment\": \"\\u0001 \\\\ / \xc3\xa9\",\r\n\t\"rules\": []}\n";
	struct run_facts facts = {.run_id = "0123456789abcdef", .options = "{}"};
	struct recording_reader *reader;
	char *data;

	(void)state;
	reader = record_and_open(&facts, &data);
	assert_int_equal(recording_facts(reader)->policy.size, 0);
	recording_reader_free(reader);
	free(data);
	facts.policy = BYTES(text);
	reader = record_and_open(&facts, &data);
	assert_int_equal(recording_facts(reader)->policy.size, sizeof(text) - 1);
	assert_memory_equal(recording_facts(reader)->policy.data, text, sizeof(text) - 1);
	recording_reader_free(reader);
	free(data);
}

/* Every byte of it escaped. */
static void the_largest_policy_fits_a_recording(void **state)
{
	struct run_facts facts = {.run_id = "0123456789abcdef", .options = "{}"};
	struct recording_reader *reader;
	uint8_t *text = malloc(POLICY_BYTES_MAX);
	char *data;

	(void)state;
	memset(text, 1, POLICY_BYTES_MAX);
	facts.policy = (struct bytes){text, POLICY_BYTES_MAX};
	reader = record_and_open(&facts, &data);
	assert_int_equal(recording_facts(reader)->policy.size, POLICY_BYTES_MAX);
	recording_reader_free(reader);
	free(data);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_read_by_policy_is_no_finding),
		cmocka_unit_test(a_get_that_the_policy_calls_mutating_is_judged),
		cmocka_unit_test(telemetry_by_policy_is_info),
		cmocka_unit_test(what_the_policy_calls_mutating_is_no_poll),
		cmocka_unit_test(a_cap_lowers_the_finding_and_the_gate_follows),
		cmocka_unit_test(a_cap_holds_for_what_comes_out_later),
		cmocka_unit_test(severity_none_says_nothing_at_all),
		cmocka_unit_test(what_is_masked_is_not_compared_and_the_finding_says_so),
		cmocka_unit_test(an_exact_match_is_not_weaker_for_a_mask),
		cmocka_unit_test(a_body_with_the_masked_member_equals_one_without),
		cmocka_unit_test(the_same_key_with_a_masked_difference_is_the_same_body),
		cmocka_unit_test(another_body_under_one_key_is_not_called_equal),
		cmocka_unit_test(the_ledger_keeps_the_hash_of_the_whole_body),
		cmocka_unit_test(a_key_is_found_where_the_policy_says),
		cmocka_unit_test(a_retry_with_the_policys_key_is_safe),
		cmocka_unit_test(attempts_out_of_the_window_do_not_count),
		cmocka_unit_test(a_window_holds_among_many),
		cmocka_unit_test(the_worst_pair_within_a_window_is_found_among_many),
		cmocka_unit_test(scope_process_keeps_processes_apart),
		cmocka_unit_test(scope_cgroup_looks_at_the_cgroup),
		cmocka_unit_test(names_and_paths_of_the_policy_are_secret),
		cmocka_unit_test(the_start_event_names_the_policy),
		cmocka_unit_test(a_recording_brings_its_policy_byte_for_byte),
		cmocka_unit_test(the_largest_policy_fits_a_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
