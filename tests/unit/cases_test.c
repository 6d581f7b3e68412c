/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire cases of tests/cases, played through the whole pipeline: as they
 * are, and with every send cut at every byte. What expected.json says must be
 * what comes out: verdict, finding, severity, pair, and every row.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#ifndef CASES_DIR
#define CASES_DIR "tests/cases"
#endif

struct case_play {
	const char *name;
	struct scene scene;
	json_object *timeline;
	json_object *expected;
	char letters[SCENE_CONNECTIONS];
};

static json_object *load_json(const char *name, const char *file)
{
	char path[256];
	json_object *object;

	snprintf(path, sizeof(path), CASES_DIR "/%s/%s", name, file);
	object = json_object_from_file(path);
	if (!object)
		fail_msg("cannot read %s", path);
	return object;
}

static struct buffer load_bytes(const char *name, const char *file)
{
	struct buffer content = {0};
	uint8_t block[4096];
	char path[256];
	FILE *stream;
	size_t n;

	snprintf(path, sizeof(path), CASES_DIR "/%s/%s", name, file);
	stream = fopen(path, "rb");
	assert_non_null(stream);
	while ((n = fread(block, 1, sizeof(block), stream)) > 0)
		buffer_append(&content, (struct bytes){block, n});
	fclose(stream);
	return content;
}

static int64_t number(json_object *object, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return json_object_get_int64(value);
}

static uint32_t connection_of(struct case_play *play, json_object *event)
{
	char letter = scene_field(event, "conn")[0];

	for (uint32_t c = 0; c < play->scene.connections; c++)
		if (play->letters[c] == letter)
			return c;
	fail_msg("%s: connection %c was never opened", play->name, letter);
	return 0;
}

static int side_of(json_object *event)
{
	return strcmp(scene_field(event, "by"), "client") == 0 ? WIRE_BUILD_CLIENT : WIRE_BUILD_SERVER;
}

static void play_send(struct case_play *play, json_object *event, int side)
{
	struct buffer file = load_bytes(play->name, scene_field(event, "file"));
	int64_t from = number(event, "from"), to = number(event, "to");

	assert_true(to <= (int64_t)file.size);
	scene_send_bytes(&play->scene, connection_of(play, event), side,
			 (struct bytes){file.data + from, (size_t)(to - from)});
	buffer_done(&file);
}

static void play_event(struct case_play *play, json_object *event)
{
	const char *what = scene_field(event, "ev");

	play->scene.now_ns = SCENE_START_NS + (uint64_t)number(event, "t_ms") * SCENE_MS;
	if (strcmp(what, "open") == 0) {
		play->letters[play->scene.connections] = scene_field(event, "conn")[0];
		scene_connect(&play->scene, (uint32_t)number(event, "pid"));
	} else if (strcmp(what, "c2s") == 0) {
		play_send(play, event, WIRE_BUILD_CLIENT);
	} else if (strcmp(what, "s2c") == 0) {
		play_send(play, event, WIRE_BUILD_SERVER);
	} else if (strcmp(what, "fin") == 0) {
		scene_close(&play->scene, connection_of(play, event), side_of(event));
	} else if (strcmp(what, "rst") == 0) {
		scene_abort(&play->scene, connection_of(play, event), side_of(event));
	} else if (strcmp(what, "exit") == 0) {
		scene_exit(&play->scene, (uint32_t)number(event, "pid"));
	} else {
		fail_msg("%s: unknown event %s", play->name, what);
	}
}

static json_object *response_of(struct case_play *play, const char *id)
{
	json_object *response;

	for (size_t n = 0; (response = scene_event(&play->scene, "response", n)); n++)
		if (strcmp(scene_field(response, "of"), id) == 0)
			return response;
	fail_msg("%s: no response event of %s", play->name, id);
	return NULL;
}

static void same_text(json_object *row, const char *row_name, const char *found)
{
	const char *expected = scene_field(row, row_name);

	if (!expected || !found)
		assert_true(!expected && !found);
	else
		assert_string_equal(found, expected);
}

static const char *state_of(json_object *response)
{
	json_object *complete = NULL;

	json_object_object_get_ex(response, "response_complete", &complete);
	if (!scene_field(response, "status"))
		return "no_answer";
	return json_object_get_boolean(complete) ? "answered" : "incomplete";
}

static json_object *member(json_object *object, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

/* Model, tokens and end of a model call; what a row does not name was not reported. */
static void check_llm(json_object *llm, json_object *line, json_object *response)
{
	static const char *const counts[] = {"input_tokens", "output_tokens", "cached_tokens"};
	json_object *expected = member(llm, "usage"), *usage = member(response, "usage");
	bool complete = json_object_get_boolean(member(response, "response_complete"));

	same_text(llm, "model", scene_field(line, "model"));
	assert_int_equal(usage != NULL, expected != NULL);
	for (size_t i = 0; expected && i < sizeof(counts) / sizeof(counts[0]); i++)
		same_text(expected, counts[i], scene_field(usage, counts[i]));
	if (!expected) {
		assert_null(scene_field(response, "answer_complete"));
		return;
	}
	assert_int_equal(json_object_get_boolean(member(usage, "final")), complete);
	assert_string_equal(scene_field(response, "answer_complete"), complete ? "true" : "false");
	same_text(llm, "model", scene_field(response, "response_model"));
	if (member(llm, "finish"))
		same_text(llm, "finish", scene_field(response, "finish_reason"));
}

static void check_row(struct case_play *play, json_object *row, json_object *line)
{
	json_object *response = response_of(play, scene_field(line, "id"));
	const char *state = scene_field(row, "state");
	char target[512];

	snprintf(target, sizeof(target), "%s%s%s", scene_field(line, "path"), scene_field(line, "query") ? "?" : "",
		 scene_field(line, "query") ? scene_field(line, "query") : "");
	same_text(row, "path", target);
	same_text(row, "method", scene_field(line, "method"));
	same_text(row, "pid", scene_field(line, "pid"));
	same_text(row, "idempotency_key", scene_field(line, "idem"));
	same_text(row, "body_kind", scene_field(line, "canon"));
	if (strcmp(scene_field(row, "body_kind"), "multipart") != 0) /* its text is each project's own */
		same_text(row, "body_sha256", scene_field(line, "sha"));
	same_text(row, "status", scene_field(response, "status"));
	if (member(row, "llm"))
		check_llm(member(row, "llm"), line, response);
	if (strcmp(state, "pending") != 0)
		assert_string_equal(state_of(response), state);
	else
		assert_null(scene_field(response, "status"));
}

/* What a model call is the same as is said by its prompt. */
static const char *operation_of(json_object *line)
{
	const char *prompt = scene_field(line, "prompt_fingerprint");

	return prompt ? prompt : scene_field(line, "fingerprint");
}

/* Rows with the same letter are the same operation, rows with different letters are not. */
static void check_groups(json_object *rows, json_object *ledger)
{
	size_t count = json_object_array_length(rows);

	for (size_t a = 0; a < count; a++)
		for (size_t b = a + 1; b < count; b++) {
			const char *one = scene_field(json_object_array_get_idx(rows, a), "same_operation_group");
			const char *other = scene_field(json_object_array_get_idx(rows, b), "same_operation_group");
			json_object *line = json_object_array_get_idx(ledger, a);
			json_object *next = json_object_array_get_idx(ledger, b);

			if (!one || !other)
				continue;
			if (strcmp(one, other) == 0)
				assert_string_equal(operation_of(line), operation_of(next));
			else
				assert_string_not_equal(operation_of(line), operation_of(next));
		}
}

/* The row number of a request id. */
static int64_t row_of(struct case_play *play, const char *id)
{
	for (size_t i = 0; i < json_object_array_length(play->scene.ledger); i++)
		if (strcmp(scene_field(json_object_array_get_idx(play->scene.ledger, i), "id"), id) == 0)
			return (int64_t)i + 1;
	return 0;
}

/* The finding about the last row of the pair as it stands at the end. */
static void check_flag(struct case_play *play)
{
	json_object *pair, *event, *later;
	const char *finding = NULL, *severity = NULL;
	char found[96], expected[96];

	json_object_object_get_ex(play->expected, "pair", &pair);
	for (size_t n = 0; (event = scene_event(&play->scene, "finding", n)); n++) {
		if (!scene_field(event, "earlier"))
			continue;
		finding = scene_field(event, "finding");
		severity = scene_field(event, "severity");
		assert_int_equal(row_of(play, scene_field(event, "earlier")),
				 json_object_get_int64(json_object_array_get_idx(pair, 0)));
		assert_int_equal(row_of(play, scene_field(event, "of")),
				 json_object_get_int64(json_object_array_get_idx(pair, 1)));
	}
	assert_non_null(finding);
	snprintf(found, sizeof(found), "%s %s", finding, severity);
	for (size_t n = 0; (later = scene_event(&play->scene, "upgrade", n)); n++)
		snprintf(found, sizeof(found), "%s", scene_field(later, "to"));
	snprintf(expected, sizeof(expected), "%s %s", scene_field(play->expected, "kind"),
		 scene_field(play->expected, "severity"));
	assert_string_equal(found, expected);
}

static bool listed(json_object *expected, const char *finding, const char *severity)
{
	json_object *list = NULL;
	char with[64];

	snprintf(with, sizeof(with), "%s:%s", finding, severity);
	if (!json_object_object_get_ex(expected, "also_expected", &list))
		return false;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *entry = json_object_get_string(json_object_array_get_idx(list, i));

		if (strcmp(entry, finding) == 0 || strcmp(entry, with) == 0)
			return true;
	}
	return false;
}

static void check_ok(struct case_play *play)
{
	json_object *event;

	for (size_t n = 0; (event = scene_event(&play->scene, "finding", n)); n++) {
		const char *severity = scene_field(event, "severity");

		assert_non_null(severity);
		if (strcmp(severity, "info") != 0 && !listed(play->expected, scene_field(event, "finding"), severity))
			fail_msg("%s: %s %s", play->name, scene_field(event, "finding"), severity);
		if (strcmp(severity, "low") == 0)
			assert_string_equal(scene_field(event, "rule"),
					    "success/no_key: path rule: known as a read by its path alone");
	}
}

/* What expected.json lists beside the verdict must be there. */
static void check_also(struct case_play *play)
{
	json_object *list = NULL, *event;

	if (!json_object_object_get_ex(play->expected, "also_expected", &list))
		return;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		const char *entry = json_object_get_string(json_object_array_get_idx(list, i));
		bool found = false;

		for (size_t n = 0; (event = scene_event(&play->scene, "finding", n)) && !found; n++) {
			size_t length = strlen(scene_field(event, "finding"));

			found = strncmp(entry, scene_field(event, "finding"), length) == 0 &&
				(entry[length] == '\0' || entry[length] == ':');
		}
		if (!found)
			fail_msg("%s: %s is missing", play->name, entry);
	}
}

static void play_case(const char *name, size_t cut)
{
	struct case_play play = {.name = name};
	json_object *rows;
	int status;
	bool flag;

	play.timeline = load_json(name, "timeline.json");
	play.expected = load_json(name, "expected.json");
	scene_start(&play.scene);
	scene_open(&play.scene);
	play.scene.cut = cut;
	for (size_t i = 0; i < json_object_array_length(play.timeline); i++)
		play_event(&play, json_object_array_get_idx(play.timeline, i));
	status = scene_finish(&play.scene, 0);
	json_object_object_get_ex(play.expected, "rows", &rows);
	assert_int_equal(json_object_array_length(play.scene.ledger), json_object_array_length(rows));
	for (size_t i = 0; i < json_object_array_length(rows); i++)
		check_row(&play, json_object_array_get_idx(rows, i), json_object_array_get_idx(play.scene.ledger, i));
	check_groups(rows, play.scene.ledger);
	flag = strcmp(scene_field(play.expected, "verdict"), "flag") == 0;
	if (flag)
		check_flag(&play);
	else
		check_ok(&play);
	check_also(&play);
	assert_int_equal(status, flag ? 10 : 0);
	json_object_put(play.timeline);
	json_object_put(play.expected);
	scene_done(&play.scene);
}

static void case_whole(void **state)
{
	play_case(*state, 0);
}

/* The longest message of a case: no send is longer. */
static size_t longest(const char *name)
{
	size_t size = 0;

	for (int k = 1; k <= 9; k++)
		for (int answer = 0; answer < 2; answer++) {
			char path[256];
			FILE *file;

			snprintf(path, sizeof(path), CASES_DIR "/%s/%s-%d.bin", name, answer ? "response" : "request", k);
			file = fopen(path, "rb");
			if (!file)
				continue;
			fseek(file, 0, SEEK_END);
			if ((size_t)ftell(file) > size)
				size = (size_t)ftell(file);
			fclose(file);
		}
	return size;
}

static void case_cut_at_every_byte(void **state)
{
	size_t size = longest(*state);

	for (size_t cut = 1; cut < size; cut++)
		play_case(*state, cut);
}

int main(void)
{
	static const char *const names[] = {
		"01-timeout-after-commit",
		"02-second-post-after-200",
		"03-truncated-200",
		"04-idle-connection-resend",
		"05-key-reused-different-body",
		"06-key-changed-on-retry",
		"07-llm-504-then-again",
		"08-llm-stream-cut-then-nonstream",
		"09-llm-redispatched-fresh-process",
		"10-respelled-json",
		"11-mcp-write-tool-new-id",
		"12-neg-pagination-search",
		"13-neg-orders-beyond-2-53",
		"14-neg-same-body-different-path",
		"15-neg-same-key-same-body-after-503",
		"16-neg-mcp-read-only-tool",
		"17-neg-graphql-query",
		"18-neg-polling",
		"19-neg-llm-different-seeds",
		"20-neg-multipart-different-files",
	};
	const size_t count = sizeof(names) / sizeof(names[0]);
	struct CMUnitTest tests[2 * sizeof(names) / sizeof(names[0])];
	static char titles[2 * sizeof(names) / sizeof(names[0])][80];

	for (size_t i = 0; i < count; i++) {
		snprintf(titles[2 * i], sizeof(titles[0]), "%s whole", names[i]);
		snprintf(titles[2 * i + 1], sizeof(titles[0]), "%s cut at every byte", names[i]);
		tests[2 * i] = (struct CMUnitTest){titles[2 * i], case_whole, NULL, NULL, (void *)names[i]};
		tests[2 * i + 1] =
			(struct CMUnitTest){titles[2 * i + 1], case_cut_at_every_byte, NULL, NULL, (void *)names[i]};
	}
	return _cmocka_run_group_tests("cases", tests, 2 * count, NULL, NULL);
}
