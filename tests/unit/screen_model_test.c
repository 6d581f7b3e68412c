/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The screen's model: what it counts, keeps, lists, filters and sorts, fed by
 * the whole pipeline as `watch` feeds it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "screen_play.h"

#include <limits.h>

static int set_up(void **state)
{
	static struct screen_play play;

	screen_play_start(&play, 80, 24);
	*state = &play;
	return 0;
}

static int tear_down(void **state)
{
	screen_play_done(*state);
	return 0;
}

static const struct screen_group *group_named(const struct screen_play *play, uint32_t tgid, const char *target)
{
	for (const struct screen_group *group = play->model->groups; group; group = group->hh.next)
		if (group->tgid == tgid && bytes_equal(buffer_bytes(&group->target), bytes_of_string(target)))
			return group;
	fail_msg("no group of %u and %s", tgid, target);
	return NULL;
}

/* "2 3": the numbers of the calls that are listed, in order. */
static const char *listed(struct screen_play *play)
{
	static char text[256];
	struct screen_list *list = &play->model->list[SCREEN_CALLS];
	size_t size = 0;

	play->now_ns += 1000000000;
	screen_lists_refresh(play->model, play->now_ns);
	text[0] = '\0';
	for (size_t i = 0; i < list->count && size < sizeof(text) - 24; i++)
		size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%llu", i ? " " : "",
					 (unsigned long long)((const struct screen_call *)list->item[i])->number);
	return text;
}

static void counts_calls_per_process_and_path(void **state)
{
	struct screen_play *play = *state;
	const struct screen_group *group;

	screen_play_knock_twice(play);
	assert_int_equal(play->model->totals.calls, 4);
	assert_int_equal(play->model->totals.mutating, 3);
	assert_int_equal(HASH_COUNT(play->model->groups), 3);
	group = group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges");
	assert_int_equal(group->calls, 2);
	assert_int_equal(group->mutating, 2);
	assert_int_equal(group->attempts, 1);
	assert_int_equal(group->duplicates, 1);
	assert_int_equal(group->last_status, 200);
	group = group_named(play, SCREEN_PLAY_OTHER, ":8080/v1/refunds");
	assert_int_equal(group->calls, 1);
	assert_int_equal(group->duplicates, 0);
	assert_int_equal(group->last_status, 503);
}

static void lists_one_finding_for_all_attempts_of_a_call(void **state)
{
	struct screen_play *play = *state;
	const struct screen_finding *finding;

	screen_play_knock_twice(play);
	screen_play_ask(play, scene_connect(&play->scene, SCREEN_PLAY_AGENT), SCREEN_PLAY_POST("/v1/charges", 13, "{\"amount\": 5}"),
			3, SCREEN_PLAY_OK);
	assert_int_equal(HASH_COUNT(play->model->findings), 1);
	finding = play->model->findings;
	assert_int_equal(finding->judgement.verdict.finding, FINDING_DUP_AFTER_SUCCESS); /* of two alike, the latest */
	assert_int_equal(finding->judgement.verdict.severity, SEVERITY_HIGH);
	assert_int_equal(finding->attempts, 3);
	assert_int_equal(finding->judgement.call_number, 5);
	assert_int_equal(finding->earlier->number, 2);
	assert_int_equal(finding->later->number, 5);
	assert_int_equal(play->model->totals.standing[SEVERITY_HIGH], 2);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges")->duplicates, 2);
}

/* A late 2xx raises what was medium; the counts move with it. */
static void rows_that_the_store_did_not_take_are_on_the_status_line(void **state)
{
	struct screen_play *play = *state;

	assert_null(strstr(screen_play_look(play), "STORE"));
	screen_model_store_lost(play->model, 3);
	assert_non_null(strstr(screen_play_look(play), "not seen: holes 0  blind streams 0  broken 0  lost 0  STORE: 3 rows lost\n"));
}

static void where_there_is_no_finding_the_keys_stay_where_they_are(void **state)
{
	struct screen_play *play = *state;

	screen_play_look(play);
	screen_play_key(play, 'f');
	assert_int_equal(play->model->focus, SCREEN_CALLS);
	screen_play_knock_twice(play);
	screen_play_look(play);
	screen_play_key(play, 'f');
	assert_int_equal(play->model->focus, SCREEN_FINDINGS);
}

static void a_finding_that_gets_worse_is_counted_once(void **state)
{
	struct screen_play *play = *state;
	const char *charge = SCREEN_PLAY_POST("/v1/charges", 2, "{}");
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, charge);
	scene_wait(&play->scene, 50);
	scene_close(&play->scene, c, WIRE_BUILD_CLIENT);
	screen_play_ask(play, scene_connect(&play->scene, SCREEN_PLAY_AGENT), charge, 3, SCREEN_PLAY_OK);
	assert_int_equal(play->model->totals.standing[SEVERITY_MEDIUM], 1);
	assert_int_equal(play->model->totals.standing[SEVERITY_HIGH], 0);
	scene_send(&play->scene, c, WIRE_BUILD_SERVER, SCREEN_PLAY_OK);
	assert_int_equal(play->model->totals.standing[SEVERITY_MEDIUM], 0);
	assert_int_equal(play->model->totals.standing[SEVERITY_HIGH], 1);
	assert_int_equal(play->model->findings->judgement.verdict.severity, SEVERITY_HIGH);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges")->duplicates, 1);
}

/* A replay header takes a finding back: it is no longer listed. */
static void a_finding_that_is_taken_back_is_not_listed(void **state)
{
	struct screen_play *play = *state;
	const char *charge = SCREEN_PLAY_POST("/v1/charges", 2, "{}");
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	screen_play_ask(play, c, charge, 3, SCREEN_PLAY_OK);
	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, charge);
	screen_lists_refresh(play->model, 1);
	assert_int_equal(play->model->list[SCREEN_FINDINGS].count, 1);
	scene_send(&play->scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nIdempotent-Replayed: true\r\nContent-Length: 2\r\n\r\nok");
	screen_lists_refresh(play->model, 2);
	assert_int_equal(play->model->list[SCREEN_FINDINGS].count, 0);
	assert_int_equal(play->model->totals.standing[SEVERITY_HIGH], 0);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges")->duplicates, 0);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges")->attempts, 1);
}

static void filters_by_every_field(void **state)
{
	struct screen_play *play = *state;
	static const struct {
		const char *filter, *listed;
	} cases[] = {
		{"", "1 2 3 4"},
		{"post", "1 2 3"},
		{"method:get", "4"},
		{"path:REFUNDS", "3"},
		{"pid:4202", "3 4"},
		{"pid:42", "3 4"},
		{"4101", "1 2"},
		{"command:agent", "1 2 3 4"},
		{"command:other", ""},
		{"status:5xx", "3"},
		{"status:503", "3"},
		{"status:2", "1 2 4"},
		{"finding:dup", "2"},
		{"finding:high", "2"},
		{"finding:abandoned", "1"},
		{"dup_after", "2"},
		{"!post", "4"},
		{"post !path:charges", "3"},
		{"post path:charges", "1 2"},
		{"  post   path:charges ", "1 2"},
		{"!", ""},
	};

	screen_play_knock_twice(play);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		screen_play_key(play, SCREEN_KEY_ESCAPE);
		screen_play_key(play, '/');
		screen_play_type(play, cases[i].filter);
		screen_play_key(play, SCREEN_KEY_ENTER);
		if (strcmp(listed(play), cases[i].listed) != 0)
			fail_msg("\"%s\" lists %s, not %s", cases[i].filter, listed(play), cases[i].listed);
	}
}

/* What comes after the filter was set is judged by it too, and so is an answer that changes a call. */
static void a_filter_holds_for_what_comes_later(void **state)
{
	struct screen_play *play = *state;
	uint32_t c;

	screen_play_key(play, '/');
	screen_play_type(play, "status:503");
	screen_play_key(play, SCREEN_KEY_ENTER);
	c = scene_connect(&play->scene, SCREEN_PLAY_OTHER);
	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, SCREEN_PLAY_POST("/v1/refunds", 2, "{}"));
	assert_string_equal(listed(play), "");
	scene_send(&play->scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
	assert_string_equal(listed(play), "1");
}

static void escape_takes_the_old_filter_back(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, '/');
	screen_play_type(play, "getx");
	assert_string_equal(listed(play), "");
	screen_play_key(play, SCREEN_KEY_BACKSPACE);
	screen_play_key(play, SCREEN_KEY_ENTER);
	assert_string_equal(listed(play), "4");
	screen_play_key(play, '/');
	screen_play_type(play, " refunds");
	assert_string_equal(listed(play), "");
	screen_play_key(play, SCREEN_KEY_ESCAPE);
	assert_string_equal(listed(play), "4");
	assert_string_equal(play->model->filter, "get");
}

static void a_filter_takes_and_loses_whole_characters(void **state)
{
	struct screen_play *play = *state;

	screen_play_key(play, '/');
	screen_play_key(play, 0xe9);
	screen_play_key(play, 0x20ac);
	screen_play_key(play, 0x1f511);
	screen_play_key(play, 0x1b);
	assert_string_equal(play->model->filter, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x94\x91");
	screen_play_key(play, SCREEN_KEY_BACKSPACE);
	assert_string_equal(play->model->filter, "\xc3\xa9\xe2\x82\xac");
	screen_play_key(play, SCREEN_KEY_BACKSPACE);
	assert_string_equal(play->model->filter, "\xc3\xa9");
	screen_play_key(play, 'U' - '@');
	assert_string_equal(play->model->filter, "");
	for (int i = 0; i < SCREEN_FILTER_BYTES + 50; i++)
		screen_play_key(play, 'x');
	assert_int_equal(strlen(play->model->filter), SCREEN_FILTER_BYTES);
}

static void sorts_calls(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	assert_string_equal(listed(play), "1 2 3 4");
	screen_play_key(play, 's');
	assert_string_equal(listed(play), "1 3 2 4"); /* 80, 5, 3 and 1 ms */
	screen_play_key(play, 's');
	assert_string_equal(listed(play), "1 2 4 3"); /* 2, 2, 2 and 0 bytes */
	screen_play_key(play, 's');
	assert_string_equal(listed(play), "3 1 2 4"); /* 503 first */
	screen_play_key(play, 's');
	assert_string_equal(listed(play), "1 2 3 4");
}

static void sorts_the_table(void **state)
{
	struct screen_play *play = *state;
	struct screen_list *list = &play->model->list[SCREEN_TABLE];
	static const uint32_t first[] = {SCREEN_PLAY_AGENT, SCREEN_PLAY_OTHER, SCREEN_PLAY_OTHER, SCREEN_PLAY_AGENT, SCREEN_PLAY_AGENT};

	screen_play_knock_twice(play);
	for (int i = 0; i < 2; i++) {
		uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_OTHER);

		screen_play_ask(play, c, "GET /v1/charges HTTP/1.1\r\nHost: a\r\n\r\n", 1, SCREEN_PLAY_OK);
	}
	screen_play_ask(play, scene_connect(&play->scene, SCREEN_PLAY_OTHER),
			SCREEN_PLAY_POST("/v1/chat/completions", 50, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":1}]}"),
			1,
			"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n"
			"{\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":3}}");
	scene_end_run(&play->scene, 0);
	screen_play_key(play, SCREEN_KEY_TAB);
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		assert_int_equal(((const struct screen_group *)list->item[0])->tgid, first[i]);
		screen_play_key(play, 's');
	}
}

static void pausing_holds_the_lists_and_loses_nothing(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, 'p');
	screen_play_knock_twice(play);
	assert_string_equal(listed(play), "1 2 3 4");
	assert_int_equal(((const struct screen_group *)play->model->list[SCREEN_TABLE].item[0])->calls, 2);
	assert_int_equal(play->model->totals.calls, 8);
	screen_play_key(play, 'p');
	assert_string_equal(listed(play), "1 2 3 4 5 6 7 8");
	assert_int_equal(((const struct screen_group *)play->model->list[SCREEN_TABLE].item[0])->calls, 4);
	assert_int_equal(play->model->list[SCREEN_CALLS].selected, 7);
}

static void ask_often(struct screen_play *play, uint32_t c, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		scene_send(&play->scene, c, WIRE_BUILD_CLIENT, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
		scene_send(&play->scene, c, WIRE_BUILD_SERVER, SCREEN_PLAY_OK);
	}
}

static void keeps_the_last_calls_and_counts_them_all(void **state)
{
	struct screen_play *play = *state;
	struct screen_list *list = &play->model->list[SCREEN_CALLS];
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	ask_often(play, c, SCREEN_CALLS_MAX);
	screen_lists_refresh(play->model, 1);
	assert_int_equal(list->count, SCREEN_CALLS_MAX);
	ask_often(play, c, 10);
	screen_lists_refresh(play->model, 2);
	assert_int_equal(list->count, SCREEN_CALLS_MAX);
	assert_int_equal(((const struct screen_call *)list->item[0])->number, 11);
	assert_int_equal(HASH_CNT(hh, play->model->by_number), SCREEN_CALLS_MAX);
	assert_int_equal(play->model->totals.calls, SCREEN_CALLS_MAX + 10);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/a")->calls, SCREEN_CALLS_MAX + 10);
}

/* The two calls of a finding outlive the others, and so does a list that is held still. */
static void keeps_both_attempts_of_a_finding(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, 'p');
	ask_often(play, scene_connect(&play->scene, SCREEN_PLAY_AGENT), SCREEN_CALLS_MAX + 1);
	assert_string_equal(listed(play), "1 2 3 4");
	screen_play_key(play, 'p');
	assert_int_equal(HASH_CNT(hh, play->model->by_number), SCREEN_CALLS_MAX + 2);
	assert_int_equal(play->model->findings->earlier->number, 1);
	assert_int_equal(play->model->findings->later->number, 2);
}

/* Each repeat leans on the one before it; none may keep all of them alive. */
static void a_long_row_of_repeats_does_not_pile_up(void **state)
{
	struct screen_play *play = *state;
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	for (unsigned int i = 0; i < SCREEN_CALLS_MAX + 100; i++) {
		scene_send(&play->scene, c, WIRE_BUILD_CLIENT, SCREEN_PLAY_POST("/v1/charges", 2, "{}"));
		scene_send(&play->scene, c, WIRE_BUILD_SERVER, SCREEN_PLAY_OK);
	}
	assert_in_range(HASH_CNT(hh, play->model->by_number), SCREEN_CALLS_MAX, SCREEN_CALLS_MAX + 2);
	assert_int_equal(play->model->totals.standing[SEVERITY_HIGH], SCREEN_CALLS_MAX + 99);
	assert_int_equal(group_named(play, SCREEN_PLAY_AGENT, ":8080/v1/charges")->attempts, SCREEN_CALLS_MAX + 99);
}

static void more_paths_than_there_is_room_for_count_as_others(void **state)
{
	struct screen_play *play = *state;
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);
	char request[64];

	for (unsigned int i = 0; i < SCREEN_GROUPS_MAX + 3; i++) {
		snprintf(request, sizeof(request), "GET /p/%u HTTP/1.1\r\nHost: a\r\n\r\n", i);
		screen_play_ask(play, c, request, 1, SCREEN_PLAY_OK);
	}
	assert_int_equal(HASH_COUNT(play->model->groups), SCREEN_GROUPS_MAX);
	assert_int_equal(play->model->other->calls, 3);
	assert_int_equal(play->model->totals.calls, SCREEN_GROUPS_MAX + 3);
}

static void follows_the_newest_until_one_looks_elsewhere(void **state)
{
	struct screen_play *play = *state;
	struct screen_list *list = &play->model->list[SCREEN_CALLS];

	screen_play_knock_twice(play);
	assert_string_equal(listed(play), "1 2 3 4");
	assert_int_equal(list->selected, 3);
	screen_play_key(play, 'k');
	screen_play_key(play, 'k');
	screen_play_knock_twice(play);
	assert_string_equal(listed(play), "1 2 3 4 5 6 7 8");
	assert_int_equal(list->selected, 1);
	screen_play_key(play, 'G');
	screen_play_knock_twice(play);
	listed(play);
	assert_int_equal(list->selected, 11);
	screen_play_key(play, 'g');
	assert_int_equal(list->selected, 0);
}

static void alarms_once_and_again_when_it_gets_worse(void **state)
{
	struct screen_play *play = *state;
	const char *charge = SCREEN_PLAY_POST("/v1/charges", 2, "{}");
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);
	struct screen_alarm alarm;

	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, charge);
	scene_close(&play->scene, c, WIRE_BUILD_CLIENT);
	assert_false(screen_model_next_alarm(play->model, &alarm));
	screen_play_ask(play, scene_connect(&play->scene, SCREEN_PLAY_AGENT), charge, 3, SCREEN_PLAY_OK);
	assert_true(screen_model_next_alarm(play->model, &alarm));
	assert_string_equal(alarm.text, "MEDIUM dup_after_timeout: POST /v1/charges at 127.0.0.1:8080");
	assert_int_equal(alarm.finding, FINDING_DUP_AFTER_TIMEOUT);
	assert_false(screen_model_next_alarm(play->model, &alarm));
	scene_send(&play->scene, c, WIRE_BUILD_SERVER, SCREEN_PLAY_OK);
	assert_true(screen_model_next_alarm(play->model, &alarm));
	assert_string_equal(alarm.text, "HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8080");
	assert_false(screen_model_next_alarm(play->model, &alarm));
}

static void below_fail_on_there_is_no_alarm(void **state)
{
	struct screen_play *play = *state;
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);
	const char *put = "PUT /v1/charges/1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}";
	struct screen_alarm alarm;

	screen_play_ask(play, c, put, 1, SCREEN_PLAY_OK);
	screen_play_ask(play, c, put, 1, SCREEN_PLAY_OK);
	assert_int_equal(play->model->totals.standing[SEVERITY_LOW], 1);
	assert_false(screen_model_next_alarm(play->model, &alarm));
}

static void counts_what_was_not_seen(void **state)
{
	struct screen_play *play = *state;
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	scene_lose(&play->scene, c, WIRE_BUILD_CLIENT, 100);
	scene_end_of(&play->scene, c, WIRE_BUILD_CLIENT);
	scene_end_of(&play->scene, c, WIRE_BUILD_SERVER);
	c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);
	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
	assert_int_equal(play->model->totals.holes, 1);
	assert_int_equal(play->model->totals.hole_bytes, 100);
	assert_int_equal(play->model->totals.blind[BLIND_TLS], 1);
}

static void output_comes_line_by_line(void **state)
{
	struct screen_play *play = *state;
	struct screen_model *model = play->model;

	screen_model_output(model, BYTES("one\ntw"));
	screen_model_output(model, BYTES("o\n10%\r20%\r\nend"));
	assert_int_equal(model->output_lines, 4);
	assert_true(bytes_equal(buffer_bytes(&model->output[0]), BYTES("one")));
	assert_true(bytes_equal(buffer_bytes(&model->output[1]), BYTES("two")));
	assert_true(bytes_equal(buffer_bytes(&model->output[2]), BYTES("20%")));
	assert_true(bytes_equal(buffer_bytes(&model->output[3]), BYTES("end")));
	for (int i = 0; i < SCREEN_OUTPUT_LINES; i++)
		screen_model_output(model, BYTES("\nx\ty"));
	assert_int_equal(model->output_lines, SCREEN_OUTPUT_LINES + 4);
	assert_true(bytes_equal(buffer_bytes(&model->output[3]), BYTES("x       y")));
}

static void forgetting_keeps_how_one_looks_at_it(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, '/');
	screen_play_type(play, "post");
	screen_play_key(play, SCREEN_KEY_ENTER);
	screen_play_key(play, 's');
	screen_play_key(play, 'p');
	screen_model_forget(play->model);
	assert_int_equal(play->model->totals.calls, 0);
	assert_null(play->model->by_number);
	assert_null(play->model->groups);
	assert_null(play->model->findings);
	assert_string_equal(play->model->filter, "post");
	assert_int_equal(play->model->call_sort, 1);
	screen_play_knock_twice(play);
	assert_string_equal(listed(play), "5 7 6");
}

static void from_the_table_to_its_calls(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, SCREEN_KEY_TAB);
	screen_play_key(play, 'j');
	screen_play_key(play, SCREEN_KEY_ENTER);
	assert_string_equal(play->model->filter, "pid:4202 path:/v1/refunds");
	assert_string_equal(listed(play), "3");
	assert_int_equal(play->model->focus, SCREEN_CALLS);
}

static void the_first_attempt_opens_the_story_of_both(void **state)
{
	struct screen_play *play = *state;

	screen_play_knock_twice(play);
	screen_play_key(play, 'g');
	screen_play_key(play, SCREEN_KEY_ENTER);
	assert_int_equal(play->model->page, SCREEN_STORY);
	assert_int_equal(play->model->story[0]->number, 1);
	assert_int_equal(play->model->story[1]->number, 2);
	screen_play_key(play, SCREEN_KEY_ESCAPE);
	assert_int_equal(play->model->page, SCREEN_MAIN);
	screen_play_key(play, 'G');
	screen_play_key(play, SCREEN_KEY_ENTER);
	assert_null(play->model->story[0]);
	assert_int_equal(play->model->story[1]->number, 4);
}

static void keys_that_the_model_cannot_do_itself(void **state)
{
	struct screen_play *play = *state;

	assert_int_equal(screen_play_key(play, 'q'), SCREEN_QUIT);
	assert_int_equal(screen_play_key(play, 'w'), SCREEN_WRITE);
	assert_int_equal(screen_play_key(play, 'L' - '@'), SCREEN_REDRAW);
	assert_int_equal(screen_play_key(play, ']'), SCREEN_NOTHING);
	screen_model_can_step(play->model);
	assert_int_equal(screen_play_key(play, ']'), SCREEN_STEP);
	assert_int_equal(screen_play_key(play, '['), SCREEN_STEP_BACK);
	assert_int_equal(screen_play_key(play, '}'), SCREEN_SECOND);
	assert_int_equal(screen_play_key(play, '{'), SCREEN_SECOND_BACK);
	assert_int_equal(screen_play_key(play, ' '), SCREEN_PLAY);
	screen_play_key(play, '?');
	assert_int_equal(screen_play_key(play, 'q'), SCREEN_NOTHING);
	assert_int_equal(play->model->page, SCREEN_MAIN);
	screen_play_key(play, '/');
	assert_int_equal(screen_play_key(play, 'q'), SCREEN_NOTHING);
	assert_string_equal(play->model->filter, "q");
}

/* Any key in any state, on every size down to nothing: no crash, no loop. */
static void no_key_on_no_size_breaks_it(void **state)
{
	struct screen_play *play = *state;
	static const uint32_t keys[] = {'?', 'j', 'k', 'g', 'G', 'f', 'p', 's', 'w', 'b', '/', 'x', '[', ']', ' ', 0x1a, 0x10ffff, 0xfffd,
					SCREEN_KEY_UP, SCREEN_KEY_DOWN, SCREEN_KEY_PAGE_UP, SCREEN_KEY_PAGE_DOWN, SCREEN_KEY_HOME,
					SCREEN_KEY_END, SCREEN_KEY_LEFT, SCREEN_KEY_RIGHT, SCREEN_KEY_ENTER, SCREEN_KEY_TAB,
					SCREEN_KEY_BACK_TAB, SCREEN_KEY_BACKSPACE, SCREEN_KEY_ESCAPE};
	static const unsigned int sizes[][2] = {{80, 24}, {40, 10}, {300, 80}, {1, 1}, {2, 2}, {0, 0}, {10, 3}, {23, 5}, {500, 1}, {1, 200}};
	uint64_t random = 88172645463325252ULL;

	play->model->has_output = true;
	screen_model_output(play->model, BYTES("a\nb\n"));
	screen_play_knock_twice(play);
	for (int i = 0; i < 6000; i++) {
		random ^= random << 13, random ^= random >> 7, random ^= random << 17;
		screen_play_key(play, keys[random % (sizeof(keys) / sizeof(keys[0]))]);
		if (i % 7 == 0) {
			const unsigned int *size = sizes[random / 64 % (sizeof(sizes) / sizeof(sizes[0]))];

			screen_model_resize(play->model, size[0], size[1]);
			screen_play_look(play);
		}
		if (i % 1500 == 0)
			screen_play_knock_twice(play);
	}
	for (size_t i = 0; i < play->frame.count; i++) {
		assert_in_range(play->frame.cell[i].row + 1, 1, play->frame.rows);
		assert_in_range(play->frame.cell[i].column + play->frame.cell[i].width, 1, play->frame.columns);
	}
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(counts_calls_per_process_and_path),
		TEST(lists_one_finding_for_all_attempts_of_a_call),
		TEST(rows_that_the_store_did_not_take_are_on_the_status_line),
		TEST(where_there_is_no_finding_the_keys_stay_where_they_are),
		TEST(a_finding_that_gets_worse_is_counted_once),
		TEST(a_finding_that_is_taken_back_is_not_listed),
		TEST(filters_by_every_field),
		TEST(a_filter_holds_for_what_comes_later),
		TEST(escape_takes_the_old_filter_back),
		TEST(a_filter_takes_and_loses_whole_characters),
		TEST(sorts_calls),
		TEST(sorts_the_table),
		TEST(pausing_holds_the_lists_and_loses_nothing),
		TEST(keeps_the_last_calls_and_counts_them_all),
		TEST(keeps_both_attempts_of_a_finding),
		TEST(a_long_row_of_repeats_does_not_pile_up),
		TEST(more_paths_than_there_is_room_for_count_as_others),
		TEST(follows_the_newest_until_one_looks_elsewhere),
		TEST(alarms_once_and_again_when_it_gets_worse),
		TEST(below_fail_on_there_is_no_alarm),
		TEST(counts_what_was_not_seen),
		TEST(output_comes_line_by_line),
		TEST(forgetting_keeps_how_one_looks_at_it),
		TEST(from_the_table_to_its_calls),
		TEST(the_first_attempt_opens_the_story_of_both),
		TEST(keys_that_the_model_cannot_do_itself),
		TEST(no_key_on_no_size_breaks_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
