/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Remembered attempts: what is judged against what, how attempts are counted,
 * what later evidence changes, what is forgotten, and that the cost of one does
 * not grow with its group. attempts_all_pairs_test.c holds them against
 * a judge of every pair.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attempts.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

struct scene {
	struct attempts *attempts;
	struct judgement judgement; /* the last one */
	uint64_t now_ns;
	uint64_t number;
};

static struct scene scene_of(struct attempts_options options)
{
	return (struct scene){.attempts = attempts_new(&options), .now_ns = 1000 * SECOND};
}

static struct scene scene_start(void)
{
	return scene_of((struct attempts_options){.across_processes = true, .max_remembered = 200000});
}

static struct digest digest_number(uint64_t number)
{
	struct digest digest = {{0}};

	memset(digest.byte, 0x5a, sizeof(digest.byte));
	number *= 0x9e3779b97f4a7c15ULL;
	memcpy(digest.byte, &number, sizeof(number));
	return digest;
}

/* A whole POST of process 4711, of that body, without a key. */
static struct call post(struct scene *scene, uint64_t body)
{
	struct call call = {
		.number = ++scene->number,
		.process = {.tgid = 4711, .start_ns = 1},
		.first_ns = scene->now_ns,
		.request_complete = true,
		.method = BYTES("POST"),
		.class = CLASS_MUTATING,
		.has_sha = true,
		.sha = digest_number(body + 1000000),
		.has_fingerprint = true,
		.fingerprint = digest_number(body),
		.open = true,
	};

	memcpy(call.id, &call.number, sizeof(call.number));
	return call;
}

static struct call post_with_key(struct scene *scene, uint64_t body, const char *key)
{
	struct call call = post(scene, body);
	uint64_t hash = 5381;

	for (const char *c = key; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	call.idem_state = IDEM_PRESENT;
	call.idem = bytes_of_string(key);
	call.key_scope = digest_number(hash ^ 0x1234567);
	return call;
}

static void add(struct scene *scene, struct call *call)
{
	assert_int_equal(attempts_add(scene->attempts, call, &scene->judgement), 0);
}

static void answer(struct scene *scene, struct call *call, unsigned int status)
{
	call->status = status;
	call->status_ns = scene->now_ns;
	call->status_in_time = call->client_closed_ns == 0;
	call->response_complete = true;
	call->response_last_ns = scene->now_ns;
	call->delivered = call->status_in_time ? DELIVERED_ALL : DELIVERED_NONE;
}

static void give_up(struct scene *scene, struct call *call)
{
	call->client_closed_ns = scene->now_ns;
	call->closed_first = CLOSER_CLIENT;
}

/* Nothing comes of the update. */
static void update_quietly(struct scene *scene, struct call *call)
{
	struct judgement judgement;

	attempts_update(scene->attempts, call);
	assert_false(attempts_next_change(scene->attempts, &judgement));
}

static void wait_for(struct scene *scene, uint64_t ns)
{
	scene->now_ns += ns;
}

/* Added, answered after 10 ms, over; a second passes. */
static void play(struct scene *scene, struct call call, unsigned int status)
{
	add(scene, &call);
	wait_for(scene, 10 * MS);
	answer(scene, &call, status);
	update_quietly(scene, &call);
	attempts_close(scene->attempts, &call);
	wait_for(scene, 50 * MS);
}

static void expect_verdict(const struct verdict *verdict, const char *finding, const char *severity)
{
	assert_string_equal(finding_name(verdict->finding), finding);
	if (severity)
		assert_string_equal(severity_name(verdict->severity), severity);
	else
		assert_int_equal(verdict->severity, SEVERITY_NULL);
}

static void expect(const struct scene *scene, const char *finding, const char *severity, uint64_t earlier)
{
	expect_verdict(&scene->judgement.verdict, finding, severity);
	assert_int_equal(scene->judgement.earlier_number, earlier);
}

static void expect_count(const struct scene *scene, uint64_t attempt, uint64_t attempts)
{
	assert_int_equal(scene->judgement.attempt, attempt);
	assert_int_equal(scene->judgement.attempts, attempts);
}

static void expect_change(struct scene *scene, uint64_t number, const char *from, const char *from_severity, const char *to,
			  const char *to_severity)
{
	assert_true(attempts_next_change(scene->attempts, &scene->judgement));
	assert_int_equal(scene->judgement.call_number, number);
	expect_verdict(&scene->judgement.before, from, from_severity);
	expect_verdict(&scene->judgement.verdict, to, to_severity);
}

static void expect_no_change(struct scene *scene)
{
	assert_false(attempts_next_change(scene->attempts, &scene->judgement));
}

/* ---- who is judged against whom ---- */

static void assert_group(const struct judgement *judgement, const struct digest *digest)
{
	struct digest group = attempts_group(digest);

	assert_memory_equal(&judgement->group, &group, sizeof(group));
	assert_memory_equal(group.byte, digest->byte, 16);
}

static void the_first_of_its_kind_has_no_pair(void **state)
{
	struct scene scene = scene_start();
	struct call call = post(&scene, 1);

	(void)state;
	add(&scene, &call);
	expect(&scene, "none", NULL, 0);
	expect_count(&scene, 1, 1);
	assert_int_equal(scene.judgement.call_number, 1);
	assert_non_null(call.attempt);
	assert_group(&scene.judgement, &call.fingerprint);
	assert_false(scene.judgement.by_key);
	attempts_free(scene.attempts);
}

static void the_second_is_judged_against_the_first(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second;

	(void)state;
	play(&scene, first, 200);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "dup_after_success", "high", 1);
	expect_count(&scene, 2, 2);
	assert_memory_equal(scene.judgement.earlier_id, first.id, sizeof(first.id));
	assert_memory_equal(scene.judgement.call_id, second.id, sizeof(second.id));
	assert_int_equal(scene.judgement.earlier_facts.status, 200);
	assert_true(scene.judgement.later_facts.first_ns == second.first_ns);
	attempts_free(scene.attempts);
}

static void other_fingerprints_do_not_meet(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	play(&scene, post(&scene, 1), 200);
	play(&scene, post(&scene, 2), 200);
	expect(&scene, "none", NULL, 0);
	expect_count(&scene, 1, 1);
	attempts_free(scene.attempts);
}

static void the_worst_pair_is_reported_even_if_it_is_old(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	play(&scene, post(&scene, 1), 200);
	for (int i = 0; i < 40; i++) {
		play(&scene, post(&scene, 1), 503);
		expect(&scene, "dup_after_success", "high", 1);
	}
	expect_count(&scene, 41, 41);
	attempts_free(scene.attempts);
}

static void of_equal_pairs_the_latest_is_reported(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	for (uint64_t i = 1; i <= 40; i++) {
		play(&scene, post(&scene, 1), 500);
		expect(&scene, i == 1 ? "none" : "dup_after_gateway_error", i == 1 ? NULL : "medium", i - 1);
		expect_count(&scene, i, i);
	}
	attempts_free(scene.attempts);
}

static void a_key_is_found_with_another_fingerprint(void **state)
{
	struct scene scene = scene_start();
	struct call first = post_with_key(&scene, 1, "k"), second;

	(void)state;
	play(&scene, first, 201);
	second = post_with_key(&scene, 2, "k");
	add(&scene, &second);
	expect(&scene, "key_reused_different_body", "high", 1);
	expect_count(&scene, 2, 2);
	assert_true(scene.judgement.by_key);
	assert_group(&scene.judgement, &second.key_scope);
	attempts_free(scene.attempts);
}

static void a_key_with_the_same_fingerprint_folds_by_fingerprint(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 503);
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	expect(&scene, "safe_retry", "info", 1);
	assert_false(scene.judgement.by_key);
	play(&scene, post_with_key(&scene, 1, "l"), 200);
	expect(&scene, "dup_after_success", "low", 2); /* key_changed_on_retry of 1 is low as well: the latest wins */
	attempts_free(scene.attempts);
}

static void a_call_without_fingerprint_is_found_by_its_key(void **state)
{
	struct scene scene = scene_start();
	struct call second;

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 201);
	second = post_with_key(&scene, 1, "k");
	second.has_fingerprint = second.has_sha = false;
	second.undecidable = true;
	add(&scene, &second);
	expect(&scene, "undecidable", NULL, 1);
	assert_true(scene.judgement.by_key);
	attempts_free(scene.attempts);
}

static void a_call_without_anything_to_know_it_by_is_not_remembered(void **state)
{
	struct scene scene = scene_start();
	struct call call = post(&scene, 1);

	(void)state;
	call.has_fingerprint = false;
	add(&scene, &call);
	expect(&scene, "none", NULL, 0);
	assert_null(call.attempt);
	assert_int_equal(attempts_count(scene.attempts), 0);
	attempts_update(scene.attempts, &call);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void model_calls_meet_by_their_prompt(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second = post(&scene, 2);

	(void)state;
	first.class = second.class = CLASS_LLM;
	first.has_prompt_fingerprint = second.has_prompt_fingerprint = true;
	first.prompt_fingerprint = second.prompt_fingerprint = digest_number(77);
	add(&scene, &first);
	add(&scene, &second);
	expect(&scene, "llm_identical_in_flight", "low", 1);
	assert_group(&scene.judgement, &second.prompt_fingerprint);
	attempts_free(scene.attempts);
}

static void processes_are_apart_unless_asked(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.max_remembered = 100});
	struct call other;

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	other = post_with_key(&scene, 1, "k");
	other.process.start_ns++;
	add(&scene, &other);
	expect(&scene, "none", NULL, 0);
	expect_count(&scene, 1, 1);
	other = post_with_key(&scene, 1, "k");
	add(&scene, &other);
	expect(&scene, "retry_after_success", "low", 1);
	expect_count(&scene, 2, 2);
	attempts_free(scene.attempts);
}

static void processes_of_a_tree_meet_and_are_marked(void **state)
{
	struct scene scene = scene_start();
	struct call other;

	(void)state;
	play(&scene, post(&scene, 1), 200);
	other = post(&scene, 1);
	other.process.tgid++;
	add(&scene, &other);
	expect(&scene, "dup_after_success", "high", 1);
	assert_true(scene.judgement.verdict.cross_process);
	attempts_free(scene.attempts);
}

/* ---- mark ---- */

static void no_attempt_meets_one_from_before_the_mark(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	attempts_mark(scene.attempts);
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	expect(&scene, "none", NULL, 0);
	expect_count(&scene, 1, 1);
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	expect(&scene, "retry_after_success", "low", 3);
	expect_count(&scene, 2, 2);
	attempts_free(scene.attempts);
}

static void late_evidence_still_counts_in_a_window_that_is_over(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second, third;

	(void)state;
	add(&scene, &first);
	wait_for(&scene, SECOND);
	give_up(&scene, &first);
	update_quietly(&scene, &first);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "dup_after_timeout", "medium", 1);
	attempts_mark(scene.attempts);
	third = post(&scene, 1);
	add(&scene, &third);
	expect(&scene, "none", NULL, 0);
	wait_for(&scene, SECOND);
	answer(&scene, &first, 201);
	attempts_update(scene.attempts, &first);
	expect_change(&scene, 2, "dup_after_timeout", "medium", "dup_after_timeout", "high");
	expect_count(&scene, 2, 2);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

/* ---- what later evidence changes ---- */

static void a_late_2xx_upgrades_every_later_attempt_once(void **state)
{
	struct scene scene = scene_start();
	struct call calls[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		calls[i] = post(&scene, 1);
		add(&scene, &calls[i]);
		wait_for(&scene, SECOND);
		give_up(&scene, &calls[i]);
		update_quietly(&scene, &calls[i]);
	}
	expect(&scene, "dup_after_timeout", "medium", 3);
	answer(&scene, &calls[1], 200);
	attempts_update(scene.attempts, &calls[1]);
	expect_change(&scene, 3, "dup_after_timeout", "medium", "dup_after_timeout", "high");
	assert_int_equal(scene.judgement.earlier_number, 2);
	expect_count(&scene, 3, 4);
	expect_change(&scene, 4, "dup_after_timeout", "medium", "dup_after_timeout", "high");
	assert_int_equal(scene.judgement.earlier_number, 2);
	expect_no_change(&scene);
	answer(&scene, &calls[2], 200);
	update_quietly(&scene, &calls[2]); /* 4 is high already */
	answer(&scene, &calls[0], 200);
	attempts_update(scene.attempts, &calls[0]);
	expect_change(&scene, 2, "dup_after_timeout", "medium", "dup_after_timeout", "high");
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void an_answer_that_comes_after_a_repeat_in_flight_changes_nothing(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second;

	(void)state;
	add(&scene, &first);
	wait_for(&scene, MS);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "dup_in_flight", "medium", 1);
	wait_for(&scene, MS);
	answer(&scene, &first, 200);
	update_quietly(&scene, &first);
	attempts_free(scene.attempts);
}

static void a_safe_retry_is_never_revoked(void **state)
{
	struct scene scene = scene_start();
	struct call first = post_with_key(&scene, 1, "k"), second;

	(void)state;
	add(&scene, &first);
	wait_for(&scene, SECOND);
	give_up(&scene, &first);
	update_quietly(&scene, &first);
	second = post_with_key(&scene, 1, "k");
	add(&scene, &second);
	expect(&scene, "safe_retry", "info", 1);
	answer(&scene, &first, 200);
	update_quietly(&scene, &first);
	first.undecidable = true;
	update_quietly(&scene, &first);
	attempts_free(scene.attempts);
}

static void a_hole_that_shows_later_makes_a_pair_undecidable(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second;

	(void)state;
	add(&scene, &first);
	answer(&scene, &first, 422);
	update_quietly(&scene, &first);
	wait_for(&scene, MS);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "retry_without_key", "info", 1);
	first.undecidable = true;
	attempts_update(scene.attempts, &first);
	expect_change(&scene, 2, "retry_without_key", "info", "undecidable", NULL);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void a_replay_header_on_the_later_answer_takes_its_finding_back(void **state)
{
	struct scene scene = scene_start();
	struct call second;

	(void)state;
	play(&scene, post(&scene, 1), 200);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "dup_after_success", "high", 1);
	answer(&scene, &second, 200);
	second.replayed = true;
	attempts_update(scene.attempts, &second);
	expect_change(&scene, 2, "dup_after_success", "high", "none", NULL);
	assert_int_equal(scene.judgement.earlier_number, 1);
	assert_true(scene.judgement.later_facts.replayed);
	expect_count(&scene, 2, 2);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void a_replay_header_makes_a_retry_after_success_safe(void **state)
{
	struct scene scene = scene_start();
	struct call second;

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	second = post_with_key(&scene, 1, "k");
	add(&scene, &second);
	answer(&scene, &second, 200);
	second.replayed = true;
	attempts_update(scene.attempts, &second);
	expect_change(&scene, 2, "retry_after_success", "low", "safe_retry", "info");
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void a_replay_header_makes_a_safe_retry_of_what_was_nothing(void **state)
{
	struct scene scene = scene_start();
	struct call first = post_with_key(&scene, 1, "k"), second;

	(void)state;
	add(&scene, &first);
	first.server_closed_ns = scene.now_ns;
	first.closed_first = CLOSER_SERVER;
	first.server_read_known = true;
	update_quietly(&scene, &first);
	second = post_with_key(&scene, 1, "k");
	add(&scene, &second);
	expect(&scene, "none", NULL, 0);
	answer(&scene, &second, 200);
	second.replayed = true;
	attempts_update(scene.attempts, &second);
	expect_change(&scene, 2, "none", NULL, "safe_retry", "info");
	assert_int_equal(scene.judgement.earlier_number, 1);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void a_replay_header_leaves_a_reused_key(void **state)
{
	struct scene scene = scene_start();
	struct call second;

	(void)state;
	play(&scene, post_with_key(&scene, 1, "k"), 200);
	second = post_with_key(&scene, 2, "k");
	add(&scene, &second);
	answer(&scene, &second, 200);
	second.replayed = true;
	update_quietly(&scene, &second);
	attempts_free(scene.attempts);
}

static void a_replay_header_on_the_earlier_answer_takes_the_pair_back(void **state)
{
	struct scene scene = scene_start();
	struct call second, third;

	(void)state;
	play(&scene, post(&scene, 1), 503);
	second = post(&scene, 1);
	add(&scene, &second);
	expect(&scene, "retry_without_key", "low", 1);
	third = post(&scene, 1);
	add(&scene, &third);
	expect(&scene, "dup_in_flight", "medium", 2);
	answer(&scene, &second, 200);
	second.replayed = true;
	attempts_update(scene.attempts, &second);
	expect_change(&scene, 2, "retry_without_key", "low", "none", NULL);
	expect_change(&scene, 3, "dup_in_flight", "medium", "retry_without_key", "low");
	assert_int_equal(scene.judgement.earlier_number, 1);
	expect_no_change(&scene);
	attempts_free(scene.attempts);
}

static void an_exit_counts_for_those_that_come_after(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second, third;

	(void)state;
	first.class = CLASS_LLM;
	add(&scene, &first);
	second = post(&scene, 1);
	second.class = CLASS_LLM;
	second.process.tgid++;
	add(&scene, &second);
	expect(&scene, "llm_identical_in_flight", "low", 1);
	first.client_died = true;
	update_quietly(&scene, &first);
	wait_for(&scene, MS);
	give_up(&scene, &first);
	update_quietly(&scene, &first);
	answer(&scene, &second, 422);
	update_quietly(&scene, &second);
	third = post(&scene, 1);
	third.class = CLASS_LLM;
	third.process.tgid++;
	add(&scene, &third);
	expect(&scene, "llm_redispatched_job", "medium", 1);
	attempts_free(scene.attempts);
}

static void changes_that_nobody_takes_are_made_all_the_same(void **state)
{
	struct scene scene = scene_start();
	struct call first = post(&scene, 1), second, third;

	(void)state;
	add(&scene, &first);
	wait_for(&scene, SECOND);
	give_up(&scene, &first);
	update_quietly(&scene, &first);
	second = post(&scene, 1);
	add(&scene, &second);
	answer(&scene, &first, 200);
	attempts_update(scene.attempts, &first); /* upgrades 2; not taken */
	third = post(&scene, 2);
	add(&scene, &third);
	expect_no_change(&scene);
	answer(&scene, &second, 200);
	second.replayed = true;
	attempts_update(scene.attempts, &second);
	expect_change(&scene, 2, "dup_after_timeout", "high", "none", NULL);
	attempts_free(scene.attempts);
}

/* ---- polling ---- */

static void play_poll(struct scene *scene, struct call *call)
{
	add(scene, call);
	wait_for(scene, 10 * MS);
	answer(scene, call, 200);
	attempts_update(scene->attempts, call);
}

static void the_third_of_an_even_series_lowers_itself_and_the_second(void **state)
{
	struct scene scene = scene_start();
	struct call calls[4];

	(void)state;
	for (int i = 0; i < 2; i++) {
		calls[i] = post(&scene, 1);
		play_poll(&scene, &calls[i]);
		expect_no_change(&scene);
		wait_for(&scene, 2 * SECOND - 10 * MS);
	}
	calls[2] = post(&scene, 1);
	add(&scene, &calls[2]);
	expect(&scene, "dup_after_success", "info", 2);
	assert_string_equal(scene.judgement.verdict.rule, finding_poll_rule);
	expect_no_change(&scene);
	wait_for(&scene, 10 * MS);
	answer(&scene, &calls[2], 200);
	attempts_update(scene.attempts, &calls[2]);
	expect_change(&scene, 2, "dup_after_success", "high", "dup_after_success", "info");
	assert_string_equal(scene.judgement.verdict.rule, finding_poll_rule);
	assert_int_equal(scene.judgement.earlier_number, 1);
	expect_no_change(&scene);
	wait_for(&scene, 2 * SECOND - 10 * MS);
	calls[3] = post(&scene, 1);
	play_poll(&scene, &calls[3]);
	assert_string_equal(severity_name(scene.judgement.verdict.severity), "info");
	expect_no_change(&scene);
	wait_for(&scene, SECOND); /* out of step */
	calls[3] = post(&scene, 1);
	add(&scene, &calls[3]);
	expect(&scene, "dup_after_success", "high", 4);
	attempts_free(scene.attempts);
}

static void a_known_write_is_never_a_poll(void **state)
{
	struct scene scene = scene_start();

	(void)state;
	for (int i = 0; i < 4; i++) {
		struct call call = post(&scene, 1);

		call.known_write = true;
		play_poll(&scene, &call);
		expect_no_change(&scene);
		wait_for(&scene, 2 * SECOND - 10 * MS);
	}
	expect(&scene, "dup_after_success", "high", 3);
	attempts_free(scene.attempts);
}

/* ---- forgetting ---- */

static void the_oldest_are_forgotten_first(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.across_processes = true, .max_remembered = 3});

	(void)state;
	play(&scene, post(&scene, 1), 200);
	for (uint64_t i = 2; i <= 4; i++)
		play(&scene, post(&scene, i), 200);
	assert_int_equal(attempts_count(scene.attempts), 3);
	assert_int_equal(attempts_evicted(scene.attempts), 1);
	play(&scene, post(&scene, 1), 200); /* 1 is forgotten, now so is 2 */
	expect(&scene, "none", NULL, 0);
	expect_count(&scene, 1, 1);
	play(&scene, post(&scene, 4), 200);
	expect(&scene, "dup_after_success", "high", 4);
	assert_int_equal(attempts_evicted(scene.attempts), 3);
	attempts_free(scene.attempts);
}

static void forgotten_members_still_count_as_attempts(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.across_processes = true, .max_remembered = 3});

	(void)state;
	for (uint64_t i = 1; i <= 10; i++) {
		play(&scene, post(&scene, 1), 500);
		expect_count(&scene, i, i);
	}
	expect(&scene, "dup_after_gateway_error", "medium", 9);
	attempts_free(scene.attempts);
}

static void a_call_may_outlive_its_attempt(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.across_processes = true, .max_remembered = 2});
	struct call first = post(&scene, 1);

	(void)state;
	add(&scene, &first);
	for (uint64_t i = 2; i <= 5; i++)
		play(&scene, post(&scene, i), 200);
	answer(&scene, &first, 200);
	update_quietly(&scene, &first);
	attempts_close(scene.attempts, &first);
	assert_null(first.attempt);
	attempts_free(scene.attempts);
}

static void refs_that_wrap_around_forget_nothing(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.across_processes = true, .max_remembered = 700});

	(void)state;
	for (uint64_t i = 1; i <= 3000; i++) {
		play(&scene, post_with_key(&scene, i % 3, "k"), 200);
		assert_int_equal(attempts_count(scene.attempts), i < 700 ? i : 700);
		if (i > 3)
			expect(&scene, "key_reused_different_body", "high", i - 1);
	}
	attempts_free(scene.attempts);
}

/* ---- cost ---- */

#define MANY 100000
#define ENOUGH 10000 /* a cost that grows would be far over the bound by then */
#define PAIRS_PER_CALL 200 /* judged pairs an attempt, at most: two small families, or a few shelves */

enum pattern { /* bits */
	TIMEOUTS = 1,	     /* clients give up instead of getting answers */
	NEW_KEYS = 2,	     /* one each */
	ONE_KEY = 4,
	NEW_BODIES = 8,
	NEW_PROCESSES = 16,
	NEW_PRINCIPALS = 32,
	BEARER = 64,	     /* principals are bearer tokens: one, or with NEW_PRINCIPALS one each */
	READS = 128,	     /* known by their path */
	COUNTED = 256,	     /* by the client, in a header of its own */
};

static void shape(struct call *call, enum pattern pattern, uint64_t i, char *key, size_t key_bytes)
{
	struct scene none = {0};

	if (pattern & NEW_PROCESSES)
		call->process.tgid = (uint32_t)i + 2;
	if (pattern & READS) {
		call->class = CLASS_READ;
		call->class_source = CLASS_BY_PATH;
	}
	if (pattern & COUNTED) {
		static char hint[64];

		snprintf(hint, sizeof(hint), "{\"x-stainless-retry-count\":\"%u\"}", (unsigned int)i % 256);
		call->retry_hint = bytes_of_string(hint);
	}
	call->has_principal = pattern & (NEW_PRINCIPALS | BEARER);
	call->principal_is_bearer = pattern & BEARER;
	call->principal = digest_number(pattern & NEW_PRINCIPALS ? i : 0);
	if (!(pattern & (NEW_KEYS | ONE_KEY)))
		return;
	snprintf(key, key_bytes, "key-%llu", pattern & NEW_KEYS ? (unsigned long long)i : 0ULL);
	call->idem_state = IDEM_PRESENT;
	call->idem = bytes_of_string(key);
	call->key_scope = post_with_key(&none, 0, key).key_scope;
}

static void end_it(struct scene *scene, struct call *call, enum pattern pattern, bool success, uint64_t i)
{
	static const unsigned int statuses[] = {200, 503, 500, 422, 429};

	if (pattern & TIMEOUTS)
		give_up(scene, call);
	else
		answer(scene, call, statuses[success ? 0 : 1 + i % 4]);
}

/* First come successes, then errors of several kinds. */
static void expect_flat_cost(enum pattern pattern, uint64_t many)
{
	struct scene scene = scene_start();
	uint64_t most = 0;

	for (uint64_t i = 0; i < many; i++) {
		struct call call = post(&scene, pattern & NEW_BODIES ? i : 1);
		uint64_t before = attempts_looked_at(scene.attempts), cost;
		char key[32] = "";

		shape(&call, pattern, i, key, sizeof(key));
		add(&scene, &call);
		wait_for(&scene, MS);
		end_it(&scene, &call, pattern, i < many / 2, i);
		update_quietly(&scene, &call);
		attempts_close(scene.attempts, &call);
		wait_for(&scene, MS);
		cost = attempts_looked_at(scene.attempts) - before;
		most = cost > most ? cost : most;
	}
	assert_int_equal(attempts_count(scene.attempts), many);
	assert_in_range(most, 1, PAIRS_PER_CALL);
	attempts_free(scene.attempts);
}

static void cost_is_flat_in_every_large_group(void **state)
{
	static const enum pattern patterns[] = {
		0,
		TIMEOUTS,
		NEW_KEYS,
		ONE_KEY,
		ONE_KEY | NEW_BODIES,
		NEW_PROCESSES,
		NEW_PROCESSES | ONE_KEY,
		NEW_PROCESSES | NEW_KEYS,
		NEW_PRINCIPALS,
		BEARER | NEW_KEYS,
		BEARER | NEW_PROCESSES | TIMEOUTS,
		BEARER | NEW_PRINCIPALS,
		READS | NEW_PROCESSES,
		COUNTED,
	};

	(void)state;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++)
		expect_flat_cost(patterns[i], i == 0 ? MANY : ENOUGH);
}

#define IN_FLIGHT 4000

/* All are open together, then all are answered; keyed or not. */
static void expect_flat_cost_in_flight(bool keyed, bool late)
{
	struct scene scene = scene_start();
	struct call *calls = calloc(IN_FLIGHT, sizeof(*calls));
	uint64_t changes = 0;

	assert_non_null(calls);
	for (uint64_t i = 0; i < IN_FLIGHT; i++) {
		uint64_t before = attempts_looked_at(scene.attempts);

		calls[i] = keyed ? post_with_key(&scene, 1, "k") : post(&scene, 1);
		add(&scene, &calls[i]);
		assert_true(attempts_looked_at(scene.attempts) - before <= PAIRS_PER_CALL);
		wait_for(&scene, 10);
		if (!late)
			continue;
		give_up(&scene, &calls[i]);
		update_quietly(&scene, &calls[i]);
		wait_for(&scene, 10);
	}
	for (uint64_t i = 0; i < IN_FLIGHT; i++) {
		answer(&scene, &calls[i], 200);
		attempts_update(scene.attempts, &calls[i]);
		while (attempts_next_change(scene.attempts, &scene.judgement))
			changes++;
		attempts_close(scene.attempts, &calls[i]);
		wait_for(&scene, 10);
	}
	assert_int_equal(changes, late && !keyed ? IN_FLIGHT - 1 : 0);
	assert_true(attempts_looked_at(scene.attempts) <= (uint64_t)IN_FLIGHT * PAIRS_PER_CALL);
	free(calls);
	attempts_free(scene.attempts);
}

static void cost_is_flat_with_all_in_flight(void **state)
{
	(void)state;
	expect_flat_cost_in_flight(false, false);
	expect_flat_cost_in_flight(true, false);
}

static void cost_is_flat_when_all_are_answered_late(void **state)
{
	(void)state;
	expect_flat_cost_in_flight(false, true);
	expect_flat_cost_in_flight(true, true);
}

static void options_out_of_range_are_bent_into_it(void **state)
{
	struct scene scene = scene_of((struct attempts_options){.max_remembered = 0});

	(void)state;
	play(&scene, post(&scene, 1), 200);
	play(&scene, post(&scene, 1), 200);
	expect(&scene, "none", NULL, 0);
	assert_int_equal(attempts_count(scene.attempts), 1);
	attempts_free(scene.attempts);
	attempts_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_of_its_kind_has_no_pair),
		cmocka_unit_test(the_second_is_judged_against_the_first),
		cmocka_unit_test(other_fingerprints_do_not_meet),
		cmocka_unit_test(the_worst_pair_is_reported_even_if_it_is_old),
		cmocka_unit_test(of_equal_pairs_the_latest_is_reported),
		cmocka_unit_test(a_key_is_found_with_another_fingerprint),
		cmocka_unit_test(a_key_with_the_same_fingerprint_folds_by_fingerprint),
		cmocka_unit_test(a_call_without_fingerprint_is_found_by_its_key),
		cmocka_unit_test(a_call_without_anything_to_know_it_by_is_not_remembered),
		cmocka_unit_test(model_calls_meet_by_their_prompt),
		cmocka_unit_test(processes_are_apart_unless_asked),
		cmocka_unit_test(processes_of_a_tree_meet_and_are_marked),
		cmocka_unit_test(no_attempt_meets_one_from_before_the_mark),
		cmocka_unit_test(late_evidence_still_counts_in_a_window_that_is_over),
		cmocka_unit_test(a_late_2xx_upgrades_every_later_attempt_once),
		cmocka_unit_test(an_answer_that_comes_after_a_repeat_in_flight_changes_nothing),
		cmocka_unit_test(a_safe_retry_is_never_revoked),
		cmocka_unit_test(a_hole_that_shows_later_makes_a_pair_undecidable),
		cmocka_unit_test(a_replay_header_on_the_later_answer_takes_its_finding_back),
		cmocka_unit_test(a_replay_header_makes_a_retry_after_success_safe),
		cmocka_unit_test(a_replay_header_makes_a_safe_retry_of_what_was_nothing),
		cmocka_unit_test(a_replay_header_leaves_a_reused_key),
		cmocka_unit_test(a_replay_header_on_the_earlier_answer_takes_the_pair_back),
		cmocka_unit_test(an_exit_counts_for_those_that_come_after),
		cmocka_unit_test(changes_that_nobody_takes_are_made_all_the_same),
		cmocka_unit_test(the_third_of_an_even_series_lowers_itself_and_the_second),
		cmocka_unit_test(a_known_write_is_never_a_poll),
		cmocka_unit_test(the_oldest_are_forgotten_first),
		cmocka_unit_test(forgotten_members_still_count_as_attempts),
		cmocka_unit_test(a_call_may_outlive_its_attempt),
		cmocka_unit_test(refs_that_wrap_around_forget_nothing),
		cmocka_unit_test(cost_is_flat_in_every_large_group),
		cmocka_unit_test(cost_is_flat_with_all_in_flight),
		cmocka_unit_test(cost_is_flat_when_all_are_answered_late),
		cmocka_unit_test(options_out_of_range_are_bent_into_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
