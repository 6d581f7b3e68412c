/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MCP tools: by what their server said of them, by their name, and what is
 * learnt from whose answer.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"

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

static void judges_a_tool_without_annotation_by_its_name(void **state)
{
#define MCP_TOOL(name, its_class, source, by, write)                                       \
	ROW("/mcp", TOOL(name), its_class, source, by, .known_write = write, .tool = name, \
	    .protocol = PROTOCOL_MCP)
#define READING(name, verb) \
	MCP_TOOL(name, CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix " verb "_", false)
#define WRITING(name, verb) \
	MCP_TOOL(name, CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix " verb "_", true)
#define UNKNOWN(name) MCP_TOOL(name, CLASS_MUTATING, CLASS_BY_PROTOCOL, "mcp tools/call", false)
	static const struct class_row rows[] = {
		READING("get_gauge", "get"),
		READING("list_orders", "list"),
		READING("search", "search"),
		READING("read_file", "read"),
		READING("fetch", "fetch"),
		READING("mcp__github__get_issue", "get"),
		READING("Get-Item", "get"),
		READING("getItem", "get"),
		READING("GetItem", "get"),
		WRITING("create_ticket", "create"),
		WRITING("charge", "charge"),
		WRITING("refund_order", "refund"),
		WRITING("send_mail", "send"),
		WRITING("delete_file", "delete"),
		WRITING("update_row", "update"),
		WRITING("add_user", "add"),
		WRITING("append_row", "append"),
		WRITING("approve_pr", "approve"),
		WRITING("archive_mail", "archive"),
		WRITING("assign_to", "assign"),
		WRITING("book_room", "book"),
		WRITING("buy_stock", "buy"),
		WRITING("cancel_order", "cancel"),
		WRITING("capture_payment", "capture"),
		WRITING("checkout_cart", "checkout"),
		WRITING("deploy_app", "deploy"),
		WRITING("deposit_money", "deposit"),
		WRITING("destroy_vm", "destroy"),
		WRITING("drop_table", "drop"),
		WRITING("edit_page", "edit"),
		WRITING("insert_row", "insert"),
		WRITING("invite_user", "invite"),
		WRITING("merge_pr", "merge"),
		WRITING("modify_x", "modify"),
		WRITING("move_file", "move"),
		WRITING("patch_x", "patch"),
		WRITING("pay_bill", "pay"),
		WRITING("post_message", "post"),
		WRITING("publish_page", "publish"),
		WRITING("purchase_x", "purchase"),
		WRITING("put_object", "put"),
		WRITING("register_x", "register"),
		WRITING("reject_pr", "reject"),
		WRITING("remove_x", "remove"),
		WRITING("rename_x", "rename"),
		WRITING("replace_x", "replace"),
		WRITING("reply_to", "reply"),
		WRITING("reset_x", "reset"),
		WRITING("restore_x", "restore"),
		WRITING("schedule_x", "schedule"),
		WRITING("set_x", "set"),
		WRITING("submit_x", "submit"),
		WRITING("transfer_x", "transfer"),
		WRITING("upload_x", "upload"),
		WRITING("upsert_x", "upsert"),
		WRITING("withdraw_x", "withdraw"),
		WRITING("write_file", "write"),
		WRITING("slack.postMessage", "post"),
		UNKNOWN("get_or_create_user"),
		UNKNOWN("weather"),
		UNKNOWN("gettysburg"),
		UNKNOWN("run_query"),
		ROW("/mcp", RPC("\"method\":\"tools/call\""), CLASS_MUTATING, CLASS_BY_PROTOCOL,
		    "mcp tools/call", .tool = "tools/call", .protocol = PROTOCOL_MCP),
		ROW("/mcp", RPC("\"method\":\"tools/call\",\"params\":{\"name\":5}"),
		    CLASS_MUTATING, CLASS_BY_PROTOCOL, "mcp tools/call", .tool = "tools/call",
		    .protocol = PROTOCOL_MCP),
		ROW("/mcp", RPC("\"method\":\"tools/call\",\"params\":[\"get_x\"]"), CLASS_MUTATING,
		    CLASS_BY_PROTOCOL, "mcp tools/call", .tool = "tools/call",
		    .protocol = PROTOCOL_MCP),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void learn(struct classifier *classifier, const char *answer)
{
	struct built_call built;
	struct call *call =
		build_call(&built, "POST", "/mcp", "", RPC("\"method\":\"tools/list\""));

	classify_call(classifier, call);
	assert_true(classify_wants_answer(call));
	assert_int_equal(classify_answer(classifier, call, bytes_of_string(answer)), 0);
}

#define LISTED(name, hints) \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"tools\":[{\"name\":\"" name "\"," \
	"\"annotations\":{" hints "}}]}}"

static void believes_annotations_before_names(void **state)
{
#define BY_HINT(name, its_class, its_by, again)                                            \
	ROW("/mcp", TOOL(name), its_class, CLASS_BY_PROTOCOL, its_by, .idempotent = again, \
	    .known_write = (its_class) == CLASS_MUTATING, .tool = name, .protocol = PROTOCOL_MCP)
	static const struct class_row rows[] = {
		BY_HINT("create_report", CLASS_READ, "mcp annotation readOnlyHint", false),
		BY_HINT("get_set", CLASS_MUTATING, "mcp annotation idempotentHint", true),
		BY_HINT("get_token", CLASS_MUTATING, "mcp annotation readOnlyHint false", false),
		BY_HINT("read_once", CLASS_MUTATING, "mcp annotation destructiveHint", false),
		/* listed, but nothing said: the name decides */
		ROW("/mcp", TOOL("get_plain"), CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_",
		    .tool = "get_plain", .protocol = PROTOCOL_MCP),
		ROW("/mcp", TOOL("get_soft"), CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_",
		    .tool = "get_soft", .protocol = PROTOCOL_MCP),
		ROW("/mcp", TOOL("get_odd"), CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_",
		    .tool = "get_odd", .protocol = PROTOCOL_MCP),
		/* another endpoint has not said so */
		ROW("/other", TOOL("create_report"), CLASS_MUTATING, CLASS_BY_TOOL_NAME,
		    "tool prefix create_", .known_write = true, .tool = "create_report",
		    .protocol = PROTOCOL_MCP),
	};

	learn(*state, LISTED("create_report", "\"readOnlyHint\":true,\"idempotentHint\":true"));
	learn(*state, LISTED("get_set", "\"readOnlyHint\":false,\"idempotentHint\":true"));
	learn(*state, LISTED("get_token", "\"readOnlyHint\":false"));
	learn(*state, LISTED("read_once", "\"destructiveHint\":true"));
	learn(*state, LISTED("get_soft", "\"destructiveHint\":false,\"idempotentHint\":false"));
	learn(*state, LISTED("get_odd", "\"readOnlyHint\":\"true\""));
	learn(*state, LISTED("get_plain", ""));
	assert_posts(*state, rows, ROW_COUNT(rows));
}

/* A name that was cut must not borrow the annotation of the one it begins with. */
static void believes_no_annotation_for_a_longer_name(void **state)
{
	char name[CALL_NAME_BYTES + 2], text[600];
	struct built_call built;
	struct call *call;

	for (size_t size = CALL_NAME_BYTES; size <= CALL_NAME_BYTES + 1; size++) {
		memset(name, 'n', size);
		name[size] = 0;
		snprintf(text, sizeof(text), LISTED("%s", "\"readOnlyHint\":true"), name);
		learn(*state, text);
		snprintf(text, sizeof(text), TOOL("%s"), name);
		call = build_call(&built, "POST", "/mcp", "", text);
		classify_call(*state, call);
		assert_string_equal(call->class_by, size == CALL_NAME_BYTES
							    ? "mcp annotation readOnlyHint"
							    : "mcp tools/call");
		assert_int_equal(call->tool.size, CALL_NAME_BYTES);
	}
}

static void wants_the_answer_of_a_tools_list_and_of_what_may_have_an_effect(void **state)
{
	static const struct {
		const char *body;
		bool wanted;
	} rows[] = {
		{RPC("\"method\":\"tools/list\""), true},
		{"[" RPC("\"method\":\"ping\"") "," RPC("\"method\":\"tools/list\"") "]", true},
		{RPC("\"method\":\"tools/call\",\"params\":{\"name\":\"tools/list\"}"), true},
		{RPC("\"method\":\"tools/call\",\"params\":{\"name\":\"get_weather\"}"), true},
		{RPC("\"method\":\"notifications/cancelled\""), false},
		{RPC("\"method\":\"prompts/list\""), false},
		{"{\"method\":\"tools/list\"}", false},
		{"{}", false},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, "POST", "/mcp", "", rows[i].body);

		classify_call(*state, call);
		assert_int_equal(classify_wants_answer(call), rows[i].wanted);
	}
}

static void learns_nothing_from_the_answer_to_another_call(void **state)
{
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/mcp", "", TOOL("weather"));

	classify_call(*state, call);
	assert_int_equal(classify_answer(*state, call,
					 BYTES("{\"result\":{\"tools\":[{\"name\":\"weather\","
					       "\"annotations\":{\"readOnlyHint\":true}}]}}")),
			 0);
	classify_call(*state, call);
	assert_string_equal(call->class_by, "mcp tools/call");
}

static void sees_a_continuation(void **state)
{
	static const struct {
		const char *params;
		bool continues;
	} rows[] = {
		{"{\"name\":\"book_trip\",\"inputResponses\":{\"a\":{}}}", true},
		{"{\"name\":\"book_trip\",\"requestState\":\"s\"}", true},
		{"{\"name\":\"book_trip\",\"requestState\":null}", false},
		{"{\"name\":\"book_trip\",\"arguments\":{\"requestState\":\"s\"}}", false},
		{"{\"name\":\"book_trip\"}", false},
	};
	struct built_call built;
	struct call *call;
	char body[300];

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		snprintf(body, sizeof(body), RPC("\"method\":\"tools/call\",\"params\":%s"),
			 rows[i].params);
		call = build_call(&built, "POST", "/mcp", "", body);
		classify_call(*state, call);
		assert_int_equal(call->mcp_continuation, rows[i].continues);
		assert_int_equal(call->class, CLASS_MUTATING);
	}
	/* requestState is a word of MCP, not of JSON-RPC. */
	call = build_call(&built, "POST", "/rpc", "",
			  RPC("\"method\":\"frob\",\"params\":{\"requestState\":\"s\"}"));
	classify_call(*state, call);
	assert_false(call->mcp_continuation);
}

/* Wire cases: a write tool (11), and a tool that tools/list calls read-only (16). */
static void gives_the_cases_their_classes(void **state)
{
	static const char write[] =
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/"
		"call\",\"params\":{\"name\":\"create_ticket\","
		"\"arguments\":{\"title\":\"Belt "
		"slips\",\"queue\":\"line-4\"},\"_meta\":{\"progressToken\":\"p-7\"}}}";
	static const char gauge[] =
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/"
		"call\",\"params\":{\"name\":\"read_gauge\","
		"\"arguments\":{\"gauge\":\"g1\"},\"_meta\":{\"progressToken\":\"p-2\"}}}";
	static const struct class_row unlearnt[] = {
		ROW("/mcp", write, CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix create_",
		    .known_write = true, .tool = "create_ticket", .protocol = PROTOCOL_MCP),
		ROW("/mcp", gauge, CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix read_",
		    .tool = "read_gauge", .protocol = PROTOCOL_MCP),
	};
	static const struct class_row learnt[] = {
		ROW("/mcp", write, CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix create_",
		    .known_write = true, .tool = "create_ticket", .protocol = PROTOCOL_MCP),
		ROW("/mcp", gauge, CLASS_READ, CLASS_BY_PROTOCOL, "mcp annotation readOnlyHint",
		    .tool = "read_gauge", .protocol = PROTOCOL_MCP),
	};

	assert_posts(*state, unlearnt, ROW_COUNT(unlearnt));
	learn(*state, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"read_"
		      "gauge\",\"inputSchema\":{\"type\":"
		      "\"object\"},\"annotations\":{\"readOnlyHint\":true}},{\"name\":\"create_"
		      "ticket\",\"inputSchema\":"
		      "{\"type\":\"object\"}}]}}");
	assert_posts(*state, learnt, ROW_COUNT(learnt));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_classifier, free_classifier)
	const struct CMUnitTest tests[] = {
		TEST(judges_a_tool_without_annotation_by_its_name),
		TEST(believes_annotations_before_names),
		TEST(believes_no_annotation_for_a_longer_name),
		TEST(wants_the_answer_of_a_tools_list_and_of_what_may_have_an_effect),
		TEST(learns_nothing_from_the_answer_to_another_call),
		TEST(sees_a_continuation),
		TEST(gives_the_cases_their_classes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
