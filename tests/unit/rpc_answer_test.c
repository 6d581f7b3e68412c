/* SPDX-License-Identifier: BSD-2-Clause */
/* Bodies of answers to JSON-RPC calls: which messages are in them, and whether they say that nothing was run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "rpc_answer.h"

/* All messages, one a line. */
static void assert_messages(const char *body, const char *expected)
{
	struct rpc_messages messages = {.rest = bytes_of_string(body)};
	struct buffer found = {0};
	struct bytes message;

	while (rpc_messages_next(&messages, &message)) {
		assert_int_equal(buffer_append(&found, message), 0);
		assert_int_equal(buffer_append_byte(&found, '\n'), 0);
	}
	assert_false(rpc_messages_next(&messages, &message));
	assert_int_equal(messages.error, 0);
	assert_int_equal(buffer_append_byte(&found, '\0'), 0);
	assert_string_equal((const char *)found.data, expected);
	rpc_messages_done(&messages);
	buffer_done(&found);
}

static void finds_messages_in_every_shape(void **state)
{
	(void)state;
	assert_messages("{\"a\":1}", "{\"a\":1}\n");
	assert_messages(" [{\"a\":1}, 2 ,[3]] ", "{\"a\":1}\n2\n[3]\n");
	assert_messages("[]", "");
	assert_messages("", "");
	assert_messages("no JSON", "");
	assert_messages("data: {\"a\":1}\n\n", "{\"a\":1}\n");
	assert_messages("event: message\r\nid: 7\r\ndata: {\"a\":\r\ndata:1}\r\n\r\n", "{\"a\":\n1}\n");
	assert_messages("data: {\"a\":1}\r\rdata: {\"b\":2}\r\r", "{\"a\":1}\n{\"b\":2}\n");
	assert_messages(": comment\n\n\ndata: \n\ndata: two words\n\ndata: {\"a\":1}\n\n", "{\"a\":1}\n");
	assert_messages("data: [1,2]\n\ndata: [3]\n\n", "1\n2\n3\n");
	assert_messages("data: {\"a\":1}\n\ndata: {\"cut\":1}\n", "{\"a\":1}\n");
}

static void knows_answers_that_say_nothing_was_run(void **state)
{
	static const struct {
		const char *body;
		int not_run;
	} cases[] = {
		{"{\"error\":{\"code\":-32700}}", 1},
		{"{\"error\":{\"code\":-32600}}", 1},
		{"{\"error\":{\"code\":-32601}}", 1},
		{"{\"id\":1,\"result\":null,\"error\":{\"message\":\"m\",\"code\":-32602}}", 1},
		{"{\"error\":{\"code\":-32603}}", 0},
		{"{\"error\":{\"code\":-32000}}", 0},
		{"{\"error\":{\"code\":\"-32602\"}}", 0},
		{"{\"error\":\"-32602\"}", 0},
		{"{\"error\":null}", 0},
		{"{\"result\":1,\"error\":{\"code\":-32602}}", 0},
		{"{\"result\":{\"isError\":true}}", 0},
		{"{}", 0},
		{"[]", 0},
		{"", 0},
		{"[{\"error\":{\"code\":-32602}},{\"error\":{\"code\":-32601}}]", 1},
		{"[{\"error\":{\"code\":-32602}},{\"error\":{\"code\":-32000}}]", 0},
		{"[{\"error\":{\"code\":-32602}},{\"result\":1}]", 0},
		{"data: {\"method\":\"notifications/message\"}\n\ndata: {\"error\":{\"code\":-32602}}\n\n", 1},
		{"data: {\"method\":\"notifications/message\"}\n\n", 0},
		{"data: {\"error\":{\"code\":-32602}}\n\ndata: {\"result\":1}\n\n", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (rpc_answer_says_not_run(bytes_of_string(cases[i].body)) != cases[i].not_run)
			fail_msg("%s", cases[i].body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_messages_in_every_shape),
		cmocka_unit_test(knows_answers_that_say_nothing_was_run),
	};

	return cmocka_run_group_tests_name("rpc answer", tests, NULL, NULL);
}
