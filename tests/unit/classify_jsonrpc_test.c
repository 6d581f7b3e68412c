/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON-RPC, MCP and A2A: every method of the tables, batches, headers, and
 * messages that mean to confuse.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"
#include "limits.h"

#define RPC(rest) "{\"jsonrpc\":\"2.0\",\"id\":7," rest "}"
#define TOOL(name) \
	RPC("\"method\":\"tools/call\",\"params\":{\"name\":\"" name "\",\"arguments\":{}}")

static int make_classifier(void **state)
{
	*state = classifier_new();
	return *state ? 0 : -1;
}

static int free_classifier(void **state)
{
	classifier_free(*state);
	return 0;
}

static void knows_every_method_of_mcp_and_a2a(void **state)
{
	static const struct {
		const char *method;
		enum call_protocol protocol;
		enum call_class class;
		bool idempotent;
		bool known_write;
		const char *by;
	} rows[] = {
#define MCP(name) {name, PROTOCOL_MCP, CLASS_READ, false, false, "mcp " name}
#define A2A(name) {name, PROTOCOL_A2A, CLASS_READ, false, false, "a2a " name}
#define SEND(name) {name, PROTOCOL_A2A, CLASS_MUTATING, false, true, "a2a " name}
#define AGAIN(name) {name, PROTOCOL_A2A, CLASS_MUTATING, true, true, "a2a " name}
		MCP("initialize"),
		MCP("ping"),
		MCP("tools/list"),
		MCP("resources/list"),
		MCP("resources/read"),
		MCP("resources/templates/list"),
		MCP("prompts/list"),
		MCP("prompts/get"),
		MCP("roots/list"),
		MCP("completion/complete"),
		MCP("logging/setLevel"),
		MCP("server/discover"),
		MCP("subscriptions/listen"),
		MCP("tasks/result"),
		{"resources/subscribe", PROTOCOL_MCP, CLASS_MUTATING, true, false,
		 "mcp resources/subscribe"},
		{"resources/unsubscribe", PROTOCOL_MCP, CLASS_MUTATING, true, false,
		 "mcp resources/unsubscribe"},
		{"notifications/initialized", PROTOCOL_MCP, CLASS_READ, false, false,
		 "mcp notification"},
		{"notifications/cancelled", PROTOCOL_MCP, CLASS_READ, false, false,
		 "mcp notification"},
		{"tasks/get", PROTOCOL_A2A, CLASS_READ, false, false, "json-rpc tasks/get"},
		{"tasks/list", PROTOCOL_A2A, CLASS_READ, false, false, "json-rpc tasks/list"},
		{"tasks/cancel", PROTOCOL_A2A, CLASS_MUTATING, true, true, "json-rpc tasks/cancel"},
		SEND("SendMessage"),
		SEND("SendStreamingMessage"),
		SEND("message/send"),
		SEND("message/stream"),
		SEND("tasks/send"),
		SEND("tasks/sendSubscribe"),
		SEND("CreateTaskPushNotificationConfig"),
		A2A("GetTask"),
		A2A("ListTasks"),
		A2A("SubscribeToTask"),
		A2A("tasks/resubscribe"),
		A2A("GetExtendedAgentCard"),
		A2A("agent/getAuthenticatedExtendedCard"),
		A2A("GetTaskPushNotificationConfig"),
		A2A("ListTaskPushNotificationConfigs"),
		A2A("tasks/pushNotificationConfig/get"),
		A2A("tasks/pushNotificationConfig/list"),
		AGAIN("CancelTask"),
		AGAIN("DeleteTaskPushNotificationConfig"),
		AGAIN("tasks/pushNotificationConfig/delete"),
		AGAIN("tasks/pushNotificationConfig/set"),
	};
	char body[200];

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct class_row row =
			ROW("/rpc", body, rows[i].class, CLASS_BY_PROTOCOL, rows[i].by,
			    .idempotent = rows[i].idempotent, .known_write = rows[i].known_write,
			    .tool = rows[i].method, .protocol = rows[i].protocol);

		snprintf(body, sizeof(body),
			 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":{}}",
			 rows[i].method);
		assert_posts(*state, &row, 1);
	}
}

static void tells_mcp_from_others_by_header_or_path(void **state)
{
	static const struct {
		const char *path;
		const char *fields;
		enum call_protocol protocol;
		enum call_class class;
		const char *by;
	} rows[] = {
		{"/mcp", "", PROTOCOL_MCP, CLASS_READ, "mcp method */list"},
		{"/x/MCP/", "", PROTOCOL_MCP, CLASS_READ, "mcp method */list"},
		{"/rpc", "Mcp-Session-Id: s-1", PROTOCOL_MCP, CLASS_READ, "mcp method */list"},
		{"/rpc", "MCP-Protocol-Version: 2025-06-18", PROTOCOL_MCP, CLASS_READ,
		 "mcp method */list"},
		{"/rpc", "Mcp-Method: things/list", PROTOCOL_MCP, CLASS_READ, "mcp method */list"},
		{"/rpc", "", PROTOCOL_JSON_RPC, CLASS_READ, "tool prefix list_"},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, "POST", rows[i].path, rows[i].fields,
					       RPC("\"method\":\"things/list\""));

		classify_call(*state, call);
		assert_string_equal(call->class_by, rows[i].by);
		assert_int_equal(call->class, rows[i].class);
		assert_int_equal(call->protocol, rows[i].protocol);
	}
}

static void judges_other_methods_by_their_words(void **state)
{
#define OTHER(method, its_class, source, by, write)                                                \
	ROW("/rpc", RPC("\"method\":\"" method "\""), its_class, source, by, .known_write = write, \
	    .tool = method, .protocol = PROTOCOL_JSON_RPC)
	static const struct class_row rows[] = {
		OTHER("orders.create", CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix create_",
		      true),
		OTHER("user.get", CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_", false),
		OTHER("getUser", CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_", false),
		OTHER("chargeCard", CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix charge_",
		      true),
		OTHER("frobnicate", CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc method", false),
		OTHER("a.b.", CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc method", false),
		ROW("/mcp", RPC("\"method\":\"things/read\""), CLASS_READ, CLASS_BY_PROTOCOL,
		    "mcp method */read", .tool = "things/read", .protocol = PROTOCOL_MCP),
		ROW("/mcp", RPC("\"method\":\"things/get\""), CLASS_READ, CLASS_BY_PROTOCOL,
		    "mcp method */get", .tool = "things/get", .protocol = PROTOCOL_MCP),
		ROW("/mcp", RPC("\"method\":\"/get\""), CLASS_READ, CLASS_BY_TOOL_NAME,
		    "tool prefix get_", .tool = "/get", .protocol = PROTOCOL_MCP),
		/* a path that reads says nothing about a JSON-RPC method */
		ROW("/search", RPC("\"method\":\"frobnicate\""), CLASS_MUTATING, CLASS_BY_METHOD,
		    "json-rpc method", .tool = "frobnicate", .protocol = PROTOCOL_JSON_RPC),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void a_batch_is_what_its_worst_message_is(void **state)
{
#define PING RPC("\"method\":\"ping\"")
#define GET_X RPC("\"method\":\"get_x\"")
	static const struct class_row rows[] = {
		ROW("/mcp", "[" PING "]", CLASS_READ, CLASS_BY_PROTOCOL, "mcp ping", .tool = "ping",
		    .protocol = PROTOCOL_MCP),
		ROW("/mcp", "[" PING "," GET_X "," PING "]", CLASS_READ, CLASS_BY_TOOL_NAME,
		    "tool prefix get_", .tool = "get_x", .protocol = PROTOCOL_MCP),
		ROW("/mcp", "[" PING "," TOOL("weather") "," TOOL("create_x") "," GET_X "]",
		    CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix create_", .known_write = true,
		    .tool = "create_x", .protocol = PROTOCOL_MCP),
		ROW("/rpc", "[" RPC("\"method\":\"CancelTask\"") "," RPC("\"method\":\"frob\"") "]",
		    CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc method", .tool = "frob",
		    .protocol = PROTOCOL_A2A),
		ROW("/rpc", "[" RPC("\"method\":\"frob\"") "," RPC("\"method\":\"CancelTask\"") "]",
		    CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc method", .tool = "frob",
		    .protocol = PROTOCOL_A2A),
		ROW("/rpc",
		    "[" RPC("\"method\":\"CancelTask\"") "," RPC("\"method\":\"GetTask\"") "]",
		    CLASS_MUTATING, CLASS_BY_PROTOCOL, "a2a CancelTask", .idempotent = true,
		    .known_write = true, .tool = "CancelTask", .protocol = PROTOCOL_A2A),
		ROW("/mcp", "[" PING ",5]", CLASS_MUTATING, CLASS_BY_METHOD,
		    "json-rpc batch unclear", .protocol = PROTOCOL_MCP),
		ROW("/mcp", "[" PING " " TOOL("create_x") "]", CLASS_MUTATING, CLASS_BY_METHOD,
		    "json-rpc batch unclear", .protocol = PROTOCOL_MCP),
		ROW("/mcp", "[5," PING "]", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "[\"jsonrpc\"]", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void an_answer_to_the_server_is_no_call(void **state)
{
	static const struct class_row rows[] = {
		ROW("/mcp", "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", CLASS_READ,
		    CLASS_BY_PROTOCOL, "json-rpc response", .protocol = PROTOCOL_MCP),
		ROW("/rpc", "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-1}}", CLASS_READ,
		    CLASS_BY_PROTOCOL, "json-rpc response", .protocol = PROTOCOL_JSON_RPC),
		ROW("/mcp", "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"result\":{}}",
		    CLASS_MUTATING, CLASS_BY_PROTOCOL, "mcp tools/call", .tool = "tools/call",
		    .protocol = PROTOCOL_MCP),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void does_not_believe_a_member_that_stands_twice(void **state)
{
	static const char *const bodies[] = {
		RPC("\"method\":\"ping\",\"method\":\"tools/call\""),
		RPC("\"method\":\"tools/call\",\"meth\\u006fd\":\"ping\""),
		RPC("\"method\":\"tools/"
		    "call\",\"params\":{\"name\":\"get_x\"},\"params\":{\"name\":\"create_x\"}"),
		RPC("\"method\":\"tools/"
		    "call\",\"params\":{\"name\":\"get_x\",\"name\":\"create_x\"}"),
		RPC("\"method\":\"tools/call\",\"params\":{\"name\":\"get_x\" \"a\":1}"),
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(bodies); i++) {
		struct call *call = build_call(&built, "POST", "/mcp", "", bodies[i]);

		classify_call(*state, call);
		assert_string_equal(call->class_by, "json-rpc message unclear");
		assert_int_equal(call->class, CLASS_MUTATING);
		assert_int_equal(call->class_source, CLASS_BY_METHOD);
		assert_int_equal(call->protocol, PROTOCOL_MCP);
	}
}

static void what_is_not_json_rpc_2_is_none(void **state)
{
	static const struct class_row rows[] = {
		ROW("/mcp", "{\"jsonrpc\":\"1.0\",\"method\":\"ping\"}", CLASS_MUTATING,
		    CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "{\"jsonrpc\":2.0,\"method\":\"ping\"}", CLASS_MUTATING,
		    CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "{\"method\":\"ping\"}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/mcp", RPC("\"method\":7"), CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", RPC("\"method\":\"\""), CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "{\"jsonrpc\":\"2.0\",\"method\":\"ping\"", CLASS_MUTATING,
		    CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "{\"a\":{\"jsonrpc\":\"2.0\",\"method\":\"ping\"}}", CLASS_MUTATING,
		    CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "\"jsonrpc\"", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/mcp", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

/* MCP 2026-07-28: the body could not be kept, and the headers say the same. */
static void takes_headers_where_the_body_cannot_be_seen(void **state)
{
	static const struct {
		const char *fields;
		struct class_row row;
	} rows[] = {
		{"Mcp-Method: tools/call\nMcp-Name: create_ticket",
		 ROW("/mcp", NULL, CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix create_",
		     .known_write = true, .tool = "create_ticket", .protocol = PROTOCOL_MCP)},
		{"Mcp-Method: resources/read\nMcp-Name: file:///x",
		 ROW("/mcp", NULL, CLASS_READ, CLASS_BY_PROTOCOL, "mcp resources/read",
		     .tool = "resources/read", .protocol = PROTOCOL_MCP)},
		{"Mcp-Session-Id: s",
		 ROW("/mcp", NULL, CLASS_MUTATING, CLASS_BY_METHOD, "method POST")},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, "POST", "/mcp", rows[i].fields, NULL);

		call->body_held = false;
		call->body_bytes = 9000000;
		classify_call(*state, call);
		assert_class(call, &rows[i].row);
	}
}

static void the_body_counts_before_the_headers(void **state)
{
	struct built_call built;
	struct call *call =
		build_call(&built, "POST", "/mcp", "Mcp-Method: tools/list\nMcp-Name: get_x",
			   TOOL("create_ticket"));

	classify_call(*state, call);
	assert_string_equal(call->class_by, "tool prefix create_");
	assert_says(call->tool, "create_ticket");
	assert_false(call->mcp_lists_tools);
}

static void knows_a2a_over_plain_http(void **state)
{
	static const struct class_row rows[] = {
		ROW("/v1/message:send", "{}", CLASS_MUTATING, CLASS_BY_PROTOCOL, "a2a message:send",
		    .known_write = true, .protocol = PROTOCOL_A2A),
		ROW("/message:stream", "{}", CLASS_MUTATING, CLASS_BY_PROTOCOL,
		    "a2a message:stream", .known_write = true, .protocol = PROTOCOL_A2A),
		ROW("/v1/tasks/t-1:cancel", "", CLASS_MUTATING, CLASS_BY_PROTOCOL,
		    "a2a tasks:cancel", .idempotent = true, .known_write = true,
		    .protocol = PROTOCOL_A2A),
		ROW("/v1/tasks/t-1:subscribe", "", CLASS_READ, CLASS_BY_PROTOCOL,
		    "a2a tasks:subscribe", .protocol = PROTOCOL_A2A),
		ROW("/v1/jobs/t-1:cancel", "", CLASS_MUTATING, CLASS_BY_TOOL_NAME,
		    "tool prefix cancel_", .known_write = true),
		ROW("/v1/tasks/t-1:frob", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void does_not_go_deeper_than_the_limit(void **state)
{
	struct buffer body = {0};
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", "");

	for (size_t depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
		buffer_clear(&body);
		assert_int_equal(
			buffer_append(&body,
				      BYTES("{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"x\":")),
			0);
		for (size_t i = 0; i < depth; i++)
			assert_int_equal(buffer_append_byte(&body, '['), 0);
		for (size_t i = 0; i < depth; i++)
			assert_int_equal(buffer_append_byte(&body, ']'), 0);
		assert_int_equal(buffer_append_byte(&body, '}'), 0);
		call->body = buffer_bytes(&body);
		call->body_bytes = body.size;
		classify_call(*state, call);
		assert_string_equal(call->class_by,
				    depth == LIMIT_JSON_DEPTH ? "mcp ping" : "method POST");
	}
	buffer_done(&body);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_classifier, free_classifier)
	const struct CMUnitTest tests[] = {
		TEST(knows_every_method_of_mcp_and_a2a),
		TEST(tells_mcp_from_others_by_header_or_path),
		TEST(judges_other_methods_by_their_words),
		TEST(a_batch_is_what_its_worst_message_is),
		TEST(an_answer_to_the_server_is_no_call),
		TEST(does_not_believe_a_member_that_stands_twice),
		TEST(what_is_not_json_rpc_2_is_none),
		TEST(takes_headers_where_the_body_cannot_be_seen),
		TEST(the_body_counts_before_the_headers),
		TEST(knows_a2a_over_plain_http),
		TEST(does_not_go_deeper_than_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
