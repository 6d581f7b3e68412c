/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is learnt from tools/list answers, from whom, and when it is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"
#include "limits.h"
#include "tool_memory.h"

static int make_memory(void **state)
{
	*state = tool_memory_new();
	return *state ? 0 : -1;
}

static int free_memory(void **state)
{
	tool_memory_free(*state);
	return 0;
}

#define TOOL(name, hints) "{\"name\":\"" name "\",\"annotations\":{" hints "}}"
#define ANSWER(tools) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[" tools "]}}"
#define READ_ONLY "\"readOnlyHint\":true"

static void learn(struct tool_memory *memory, const struct call *call, const char *answer)
{
	assert_int_equal(tool_memory_learn(memory, call, bytes_of_string(answer)), 0);
}

static bool knows(struct tool_memory *memory, const struct call *call, const char *tool)
{
	struct tool_hints hints;

	return tool_memory_find(memory, call, bytes_of_string(tool), &hints);
}

static void keeps_true_false_and_silence_apart(void **state)
{
	static const struct {
		const char *answer;
		struct tool_hints hints;
	} rows[] = {
		{ANSWER(TOOL("t", "")), {0}},
		{ANSWER("{\"name\":\"t\"}"), {0}},
		{ANSWER("{\"name\":\"t\",\"annotations\":null}"), {0}},
		{ANSWER(TOOL("t", "\"readOnlyHint\":true")), {.read_only = TOOL_HINT_TRUE}},
		{ANSWER(TOOL("t", "\"readOnlyHint\":false")), {.read_only = TOOL_HINT_FALSE}},
		{ANSWER(TOOL("t", "\"readOnlyHint\":1")), {0}},
		{ANSWER(TOOL("t", "\"idempotentHint\":true,\"destructiveHint\":false")),
		 {.idempotent = TOOL_HINT_TRUE, .destructive = TOOL_HINT_FALSE}},
		{ANSWER(TOOL("t", "\"re\\u0061dOnlyHint\":true")), {.read_only = TOOL_HINT_TRUE}},
		{ANSWER("{\"annotations\":{\"readOnlyHint\":true},\"name\":\"\\u0074\"}"),
		 {.read_only = TOOL_HINT_TRUE}},
	};
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", NULL);
	struct tool_hints hints;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		learn(*state, call, rows[i].answer);
		assert_true(tool_memory_find(*state, call, BYTES("t"), &hints));
		assert_int_equal(hints.read_only, rows[i].hints.read_only);
		assert_int_equal(hints.idempotent, rows[i].hints.idempotent);
		assert_int_equal(hints.destructive, rows[i].hints.destructive);
		assert_int_equal(tool_memory_count(*state), 1);
	}
}

static void learns_from_json_batches_and_events(void **state)
{
	static const struct {
		const char *answer;
		size_t learnt;
	} rows[] = {
		{ANSWER(TOOL("a", "") "," TOOL("b", "")), 2},
		{" \n" ANSWER(TOOL("a", "")) "\r\n", 1},
		{"[" ANSWER(TOOL("a", "")) "," ANSWER(TOOL("b", "")) "]", 2},
		{"event: message\ndata: " ANSWER(TOOL("a", "")) "\n\n", 1},
		{"data:" ANSWER(TOOL("a", "")) "\r\n\r\n", 1},
		{"data: " ANSWER(TOOL("a", "")) "\r\r", 1},
		{": comment\n\nid: 1\ndata: "
		 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\ndata: " ANSWER(
			 TOOL("a", "")) "\n\n",
		 1},
		{"data: {\"result\":\ndata: {\"tools\":[\ndata: " TOOL("a", "") "]}}\n\n", 1},
		{"data: " ANSWER(TOOL("a", "")) "\n\ndata: " ANSWER(TOOL("b", "")) "\n\n", 2},
		/* not whole, or nothing of the kind */
		{"data: " ANSWER(TOOL("a", "")) "\n", 0},
		{"data: " ANSWER(TOOL("a", "")), 0},
		{"database: " ANSWER(TOOL("a", "")) "\n\n", 0},
		{"{\"result\":{\"tools\":[" TOOL("a", "") "]}", 0},
		{"{\"result\":{\"tools\":{\"x\":" TOOL("a", "") "}}}", 0},
		{"{\"result\":[" TOOL("a", "") "]}", 0},
		{"{\"tools\":[" TOOL("a", "") "]}", 0},
		{"{\"error\":{\"code\":1}}", 0},
		{ANSWER("5,null,[],{},{\"name\":7},{\"name\":\"\"}"), 0},
		{ANSWER("{\"name\":\"a\" \"x\":1}"), 0},
		{"[]", 0},
		{"", 0},
		{"\n\n\n", 0},
	};
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", NULL);

	(void)state;
	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct tool_memory *memory = tool_memory_new();

		assert_non_null(memory);
		learn(memory, call, rows[i].answer);
		assert_int_equal(tool_memory_count(memory), rows[i].learnt);
		assert_int_equal(knows(memory, call, "a"), rows[i].learnt > 0);
		tool_memory_free(memory);
	}
}

static void knows_a_tool_only_where_it_was_listed(void **state)
{
	struct built_call built, other_built;
	struct call *call = build_call(&built, "POST", "/mcp", "", NULL);
	struct call *other = build_call(&other_built, "POST", "/mcp", "", NULL);

	learn(*state, call, ANSWER(TOOL("a", READ_ONLY)));
	assert_true(knows(*state, other, "a"));
	assert_false(knows(*state, other, "b"));
	assert_false(knows(*state, other, ""));
	other->server.port++;
	assert_false(knows(*state, other, "a"));
	other->server.port--;
	other->server.address[15]++;
	assert_false(knows(*state, other, "a"));
	other->server.address[15]--;
	other->netns++;
	assert_false(knows(*state, other, "a"));
	other->netns--;
	other->path = BYTES("/mcp2");
	assert_false(knows(*state, other, "a"));
	/* path "/mcpa" and name "" are not path "/mcp" and name "a" */
	other->path = BYTES("/mc");
	assert_false(knows(*state, other, "pa"));
	other->path = BYTES("/mcp");
	assert_true(knows(*state, other, "a"));
}

static void remembers_no_name_and_no_path_that_is_too_long(void **state)
{
	char answer[400], name[CALL_NAME_BYTES + 2], path[LIMIT_TOOL_PATH_BYTES + 2];
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", NULL);

	for (size_t size = CALL_NAME_BYTES; size <= CALL_NAME_BYTES + 1; size++) {
		memset(name, 'n', size);
		name[size] = 0;
		snprintf(answer, sizeof(answer), ANSWER("{\"name\":\"%s\"}"), name);
		learn(*state, call, answer);
		assert_int_equal(knows(*state, call, name), size == CALL_NAME_BYTES);
	}
	for (size_t size = LIMIT_TOOL_PATH_BYTES; size <= LIMIT_TOOL_PATH_BYTES + 1; size++) {
		memset(path, '/', size);
		call->path = (struct bytes){(uint8_t *)path, size};
		learn(*state, call, ANSWER(TOOL("a", "")));
		assert_int_equal(knows(*state, call, "a"), size == LIMIT_TOOL_PATH_BYTES);
	}
	assert_int_equal(tool_memory_count(*state), 2);
}

static void forgets_the_tool_that_was_listed_longest_ago(void **state)
{
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", NULL);
	char answer[200];

	for (size_t i = 0; i < LIMIT_REMEMBERED_TOOLS; i++) {
		snprintf(answer, sizeof(answer), ANSWER("{\"name\":\"t%zu\"}"), i);
		learn(*state, call, answer);
	}
	assert_int_equal(tool_memory_count(*state), LIMIT_REMEMBERED_TOOLS);
	learn(*state, call, ANSWER(TOOL("t0", ""))); /* again: now t1 is the oldest */
	assert_int_equal(tool_memory_count(*state), LIMIT_REMEMBERED_TOOLS);
	assert_int_equal(tool_memory_forgotten(*state), 0);
	learn(*state, call, ANSWER(TOOL("new", "")));
	assert_int_equal(tool_memory_forgotten(*state), 1);
	assert_int_equal(tool_memory_count(*state), LIMIT_REMEMBERED_TOOLS);
	assert_true(knows(*state, call, "t0"));
	assert_false(knows(*state, call, "t1"));
	assert_true(knows(*state, call, "t2"));
	assert_true(knows(*state, call, "new"));
}

static void frees_none(void **state)
{
	(void)state;
	tool_memory_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_memory, free_memory)
	const struct CMUnitTest tests[] = {
		TEST(keeps_true_false_and_silence_apart),
		TEST(learns_from_json_batches_and_events),
		TEST(knows_a_tool_only_where_it_was_listed),
		TEST(remembers_no_name_and_no_path_that_is_too_long),
		TEST(forgets_the_tool_that_was_listed_longest_ago),
		cmocka_unit_test(frees_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
