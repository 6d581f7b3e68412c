/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the protocols on top of HTTP make of a second request, through the whole
 * pipeline: the findings that stand, and the rule that gave the last request
 * its class.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene_findings.h"

#define STEPS_MAX 4

#define OK_ANSWER "200 OK\r\n\r\n{}"
#define EVENTS "200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

struct step {
	const char *head;   /* request line and headers of its own */
	const char *body;
	const char *answer; /* status and headers, an empty line, the body; NULL = OK_ANSWER. A '!' in front: cut after it */
};

struct talk {
	const char *what;
	struct step steps[STEPS_MAX];
	const char *findings;
	const char *class_by; /* of the last */
};

#define MCP "POST /mcp"
#define FORM "POST / HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded; charset=utf-8"
#define MCP_CALL(id, name, more) "{\"jsonrpc\":\"2.0\",\"id\":" #id ",\"method\":\"tools/call\",\"params\":{\"name\":\"" name "\",\"arguments\":{}" more "}}"
#define TOOLS(hints) "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"t\",\"annotations\":{" hints "}}]}}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define INPUT ",\"inputResponses\":{\"a\":1},\"requestState\":\"s\""
#define APQ "\"extensions\":{\"persistedQuery\":{\"version\":1,\"sha256Hash\":\"ab\"}}"

static const struct talk talks[] = {
	/* MCP: tools */
	{"mcp: a tool of which nothing is known",
	 {{MCP, MCP_CALL(1, "t", ""), 0}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "dup_after_success high 1-2", "mcp tools/call"},
	{"mcp: read-only by the JSON answer to tools/list",
	 {{MCP, LIST, "200 OK\r\n\r\n" TOOLS("\"readOnlyHint\":true")}, {MCP, MCP_CALL(2, "t", ""), 0}, {MCP, MCP_CALL(3, "t", ""), 0}},
	 "", "mcp annotation readOnlyHint"},
	{"mcp: read-only by an answer of server-sent events",
	 {{MCP, LIST, EVENTS "event: message\ndata: " TOOLS("\"readOnlyHint\":true") "\n\n"}, {MCP, MCP_CALL(2, "t", ""), 0},
	  {MCP, MCP_CALL(3, "t", ""), 0}},
	 "", "mcp annotation readOnlyHint"},
	{"mcp: an answer that was cut teaches nothing",
	 {{MCP, LIST, "!" EVENTS "data: " TOOLS("\"readOnlyHint\":true")}, {MCP, MCP_CALL(2, "t", ""), 0}, {MCP, MCP_CALL(3, "t", ""), 0}},
	 "dup_after_success high 2-3", "mcp tools/call"},
	{"mcp: read-only by the rest of a stream that was cut",
	 {{MCP, LIST, "!" EVENTS "id: 1\ndata: \n\n"},
	  {"GET /mcp HTTP/1.1\r\nLast-Event-ID: 1", "", EVENTS "id: 2\ndata: " TOOLS("\"readOnlyHint\":true") "\n\n"},
	  {MCP, MCP_CALL(2, "t", ""), 0}, {MCP, MCP_CALL(3, "t", ""), 0}},
	 "", "mcp annotation readOnlyHint"},
	{"mcp: idempotent by annotation",
	 {{MCP, LIST, "200 OK\r\n\r\n" TOOLS("\"idempotentHint\":true")}, {MCP, MCP_CALL(2, "t", ""), 0}, {MCP, MCP_CALL(3, "t", ""), 0}},
	 "dup_after_success low 2-3", "mcp annotation idempotentHint"},
	{"mcp: an answer of server-sent events that was cut",
	 {{MCP, MCP_CALL(1, "t", ""), "!" EVENTS "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n"},
	  {MCP, MCP_CALL(2, "t", ""), 0}},
	 "dup_after_truncated_success high 1-2", "mcp tools/call"},
	{"mcp: the rest of a cut stream is fetched",
	 {{MCP, MCP_CALL(1, "t", ""), "!" EVENTS "id: 1\ndata: \n\n"}, {"GET /mcp HTTP/1.1\r\nLast-Event-ID: 1", "", EVENTS "id: 2\ndata: {}\n\n"}},
	 "", "method GET"},
	{"mcp: the session was lost, then the same call in a new one",
	 {{MCP " HTTP/1.1\r\nMcp-Session-Id: a", MCP_CALL(1, "t", ""), "404 Not Found\r\n\r\n"},
	  {MCP, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{}}", 0},
	  {MCP " HTTP/1.1\r\nMcp-Session-Id: b", MCP_CALL(3, "t", ""), 0}},
	 "retry_without_key info 1-3", "mcp tools/call"},
	/* a JSON-RPC error from before any method is called: nothing was run */
	{"mcp: invalid params, then the same again",
	 {{MCP, MCP_CALL(1, "t", ""), "200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602,\"message\":\"m\"}}"}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "retry_without_key info 1-2", "mcp tools/call"},
	{"mcp: method not found, as an event",
	 {{MCP, MCP_CALL(1, "t", ""), EVENTS "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601}}\n\n"}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "retry_without_key info 1-2", "mcp tools/call"},
	{"mcp: an error of the server's own may have come after the effect",
	 {{MCP, MCP_CALL(1, "t", ""), "200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603}}"}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "dup_after_success high 1-2", "mcp tools/call"},
	{"mcp: the tool ran and failed",
	 {{MCP, MCP_CALL(1, "t", ""), "200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true}}"}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "dup_after_success high 1-2", "mcp tools/call"},
	{"mcp: an error that was cut says nothing",
	 {{MCP, MCP_CALL(1, "t", ""), "!200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32602}}"}, {MCP, MCP_CALL(2, "t", ""), 0}},
	 "dup_after_truncated_success high 1-2", "mcp tools/call"},
	{"json-rpc: under one key",
	 {{"POST /rpc HTTP/1.1\r\nIdempotency-Key: k", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pay\"}", "200 OK\r\n\r\n{\"error\":{\"code\":-32600}}"},
	  {"POST /rpc HTTP/1.1\r\nIdempotency-Key: k", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"pay\"}", 0}},
	 "retry_after_refusal info 1-2", "tool prefix pay_"},
	{"json-rpc: one of a batch was run",
	 {{"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payA\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"payB\"}]",
	   "200 OK\r\n\r\n[{\"id\":1,\"error\":{\"code\":-32602}},{\"id\":2,\"result\":1}]"},
	  {"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payA\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"payB\"}]", 0}},
	 "dup_after_success high 1-2", "tool prefix pay_"},
	/* MCP 2026-07-28: the server asks back */
	{"mcp: the call again with the input that the server asked for",
	 {{MCP, MCP_CALL(1, "t", ""), "200 OK\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"input_required\"}}"},
	  {MCP, MCP_CALL(2, "t", INPUT), 0}},
	 "", "mcp tools/call"},
	{"mcp: the same under one key is no other body of it",
	 {{MCP " HTTP/1.1\r\nIdempotency-Key: k", MCP_CALL(1, "t", ""), 0}, {MCP " HTTP/1.1\r\nIdempotency-Key: k", MCP_CALL(2, "t", INPUT), 0}},
	 "", "mcp tools/call"},
	{"mcp: the continuation is repeated",
	 {{MCP, MCP_CALL(1, "t", ""), 0}, {MCP, MCP_CALL(2, "t", INPUT), 0}, {MCP, MCP_CALL(3, "t", INPUT), 0}},
	 "dup_after_success high 2-3", "mcp tools/call"},
	/* MCP and JSON-RPC: messages that are no calls, batches */
	{"mcp: a notification", {{MCP, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}", 0},
	  {MCP, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}", 0}},
	 "", "mcp notification"},
	{"json-rpc: an answer to the server's own request", {{MCP, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0}, {MCP, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}", 0}},
	 "", "json-rpc response"},
	{"json-rpc: a batch with a write in it, other ids",
	 {{"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"getA\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"payB\"}]", 0},
	  {"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"getA\"},{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"payB\"}]", 0}},
	 "dup_after_success high 1-2", "tool prefix pay_"},
	{"json-rpc: a batch of reads by name",
	 {{"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"getA\"},{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"getB\"}]", 0},
	  {"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"getA\"},{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"getB\"}]", 0}},
	 "dup_after_success low 1-2", "tool prefix get_"},
	{"json-rpc: the batch holds another call",
	 {{"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payA\"}]", 0}, {"POST /rpc", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"payB\"}]", 0}},
	 "", "tool prefix pay_"},
	/* A2A */
	{"a2a: one messageId",
	 {{"POST /a2a", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"message/send\",\"params\":{\"message\":{\"messageId\":\"m\",\"parts\":[1]}}}", 0},
	  {"POST /a2a", "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"message/send\",\"params\":{\"message\":{\"messageId\":\"m\",\"parts\":[1]}}}", 0}},
	 "retry_after_success low 1-2", "a2a message/send"},
	{"a2a over plain HTTP: a new messageId after no answer",
	 {{"POST /v1/message:send", "{\"message\":{\"messageId\":\"m\",\"parts\":[1]}}", "!"},
	  {"POST /v1/message:send", "{\"message\":{\"messageId\":\"n\",\"parts\":[1]}}", 0}},
	 "key_changed_on_retry high 1-2", "a2a message:send"},
	{"a2a: one messageId, other parts",
	 {{"POST /v1/message:send", "{\"message\":{\"messageId\":\"m\",\"parts\":[1]}}", 0},
	  {"POST /v1/message:send", "{\"message\":{\"messageId\":\"m\",\"parts\":[2]}}", 0}},
	 "key_reused_different_body high 1-2", "a2a message:send"},
	/* GraphQL */
	{"graphql: a query",
	 {{"POST /graphql", "{\"query\":\"{ a }\"}", 0}, {"POST /graphql", "{\"query\":\"{ a }\"}", 0}},
	 "", "graphql query"},
	{"graphql: a batch with a mutation in it",
	 {{"POST /graphql", "[{\"query\":\"{ a }\"},{\"query\":\"mutation { b }\"}]", 0}, {"POST /graphql", "[{\"query\":\"{ a }\"},{\"query\":\"mutation { b }\"}]", 0}},
	 "dup_after_success high 1-2", "graphql mutation"},
	{"graphql: a batch of queries",
	 {{"POST /graphql", "[{\"query\":\"{ a }\"},{\"query\":\"query { b }\"}]", 0}, {"POST /graphql", "[{\"query\":\"{ a }\"},{\"query\":\"query { b }\"}]", 0}},
	 "", "graphql query"},
	{"graphql: the hash was not known, then the text comes along",
	 {{"POST /graphql", "{" APQ "}", "200 OK\r\n\r\n{\"errors\":[{\"message\":\"PersistedQueryNotFound\"}]}"},
	  {"POST /graphql", "{\"query\":\"mutation { b }\"," APQ "}", 0}},
	 "", "graphql mutation"},
	{"graphql: a persisted query of no name",
	 {{"POST /graphql", "{" APQ "}", 0}, {"POST /graphql", "{" APQ "}", 0}},
	 "dup_after_success high 1-2", "graphql persisted query"},
	{"graphql: a persisted query whose name reads",
	 {{"POST /graphql", "{\"operationName\":\"GetPart\"," APQ "}", 0}, {"POST /graphql", "{\"operationName\":\"GetPart\"," APQ "}", 0}},
	 "dup_after_success low 1-2", "tool prefix get_"},
	/* the method in a header */
	{"override: GET", {{"POST /a HTTP/1.1\r\nX-HTTP-Method-Override: GET", "{}", 0}, {"POST /a HTTP/1.1\r\nX-HTTP-Method-Override: GET", "{}", 0}},
	 "", "method GET"},
	{"override: DELETE", {{"POST /a HTTP/1.1\r\nX-Method-Override: DELETE", "{}", 0}, {"POST /a HTTP/1.1\r\nX-Method-Override: DELETE", "{}", 0}},
	 "dup_after_success low 1-2", "method DELETE"},
	{"override: two methods are two operations",
	 {{"POST /a HTTP/1.1\r\nX-HTTP-Method: PATCH", "{}", 0}, {"POST /a HTTP/1.1\r\nX-HTTP-Method: PROPPATCH", "{}", 0}},
	 "", "method not known"},
	{"override: two methods are two operations, by the other header",
	 {{"POST /a HTTP/1.1\r\nX-Method-Override: PUT", "{}", 0}, {"POST /a HTTP/1.1\r\nX-Method-Override: DELETE", "{}", 0}},
	 "", "method DELETE"},
	/* Google, AWS */
	{"google: a verb that reads", {{"POST /v1/docs:search", "{}", 0}, {"POST /v1/docs:search", "{}", 0}},
	 "dup_after_success low 1-2", "google verb :search"},
	{"google: a verb that does not", {{"POST /v1/docs:archive", "{}", 0}, {"POST /v1/docs:archive", "{}", 0}},
	 "dup_after_success high 1-2", "tool prefix archive_"},
	{"aws: one ClientRequestToken",
	 {{"POST / HTTP/1.1\r\nX-Amz-Target: S.PutA\r\nContent-Type: application/x-amz-json-1.1", "{\"ClientRequestToken\":\"c\"}", 0},
	  {"POST / HTTP/1.1\r\nX-Amz-Target: S.PutA\r\nContent-Type: application/x-amz-json-1.1", "{\"ClientRequestToken\":\"c\"}", 0}},
	 "retry_after_success low 1-2", "aws target"},
	{"aws: a form that asks for a read",
	 {{FORM, "Action=DescribeInstances&Version=2016-11-15", 0}, {FORM, "Version=2016-11-15&Action=DescribeInstances", 0}},
	 "", "aws action Describe"},
	{"aws: a form that does something", {{FORM, "Action=Publish&Version=2010-03-31", 0}, {FORM, "Action=Publish&Version=2010-03-31", 0}},
	 "dup_after_success high 1-2", "aws action"},
	{"aws: a form with a ClientToken",
	 {{FORM, "Action=RunInstances&Version=2016-11-15&ClientToken=a-1", "500 No\r\n\r\n"}, {FORM, "Action=RunInstances&Version=2016-11-15&ClientToken=a-1", 0}},
	 "safe_retry info 1-2", "aws action"},
	{"aws: a form whose ClientToken was another call's",
	 {{FORM, "Action=RunInstances&Version=2016-11-15&ClientToken=a-1&N=1", 0}, {FORM, "Action=RunInstances&Version=2016-11-15&ClientToken=a-1&N=2", 0}},
	 "key_reused_different_body high 1-2", "aws action"},
	{"a form with an Action that is nobody's version", {{FORM, "Action=GetX&Version=1", 0}, {FORM, "Action=GetX&Version=1", 0}},
	 "dup_after_success high 1-2", "method POST"},
	{"a form with two Actions", {{FORM, "Action=GetX&Action=PutX&Version=2016-11-15", 0}, {FORM, "Action=GetX&Action=PutX&Version=2016-11-15", 0}},
	 "dup_after_success high 1-2", "method POST"},
	{"aws: another operation", {{"POST / HTTP/1.1\r\nX-Amz-Target: S.PutA", "{}", 0}, {"POST / HTTP/1.1\r\nX-Amz-Target: S.PutB", "{}", 0}},
	 "", "aws target"},
};

static void send_request(struct scene *scene, uint32_t c, const struct step *step)
{
	char text[2048];

	snprintf(text, sizeof(text), "%s%s\r\nHost: localhost\r\n%sContent-Length: %zu\r\n\r\n%s", step->head,
		 strstr(step->head, " HTTP/1.1") ? "" : " HTTP/1.1",
		 strstr(step->head, "Content-Type") ? "" : "Content-Type: application/json\r\n", strlen(step->body), step->body);
	scene_send(scene, c, WIRE_BUILD_CLIENT, text);
}

/* "!" alone: the server closes without a word. */
static void send_answer(struct scene *scene, uint32_t c, const char *answer)
{
	bool cut = answer && answer[0] == '!';
	const char *head = answer ? answer + cut : OK_ANSWER;
	const char *body = strstr(head, "\r\n\r\n");
	char text[2048];

	if (body) {
		body += 4;
		snprintf(text, sizeof(text), "HTTP/1.1 %.*sContent-Length: %zu\r\n\r\n%s", (int)(body - 2 - head), head,
			 strlen(body) + (cut ? 10 : 0), body);
		scene_send(scene, c, WIRE_BUILD_SERVER, text);
	}
	scene_wait(scene, 1);
	if (cut)
		scene_close(scene, c, WIRE_BUILD_SERVER);
}

static void stands_as_it_should(void **state)
{
	const struct talk *talk = *state;
	json_object *last;
	char found[512];
	struct scene scene;

	scene_start(&scene);
	scene_open(&scene);
	for (size_t i = 0; i < STEPS_MAX && talk->steps[i].head; i++) {
		uint32_t c = scene_connect(&scene, 100);

		send_request(&scene, c, &talk->steps[i]);
		scene_wait(&scene, 1);
		send_answer(&scene, c, talk->steps[i].answer);
		scene_wait(&scene, 10);
	}
	scene_finish(&scene, 0);
	scene_standing(&scene, found, sizeof(found));
	assert_string_equal(found, talk->findings);
	last = json_object_array_get_idx(scene.ledger, json_object_array_length(scene.ledger) - 1);
	assert_string_equal(scene_field(last, "class_by"), talk->class_by);
	scene_done(&scene);
}

/* The request that lists the tools is lost whole; what the server said of its tools with it. */
static void a_list_of_tools_that_was_lost_leaves_tools_undecidable(void **state)
{
	static const struct step call = {MCP, MCP_CALL(1, "t", ""), NULL}, pay = {"POST /pay", "{}", NULL};
	char found[512];
	struct scene scene;
	uint32_t c;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	c = scene_connect(&scene, 100);
	scene_lose(&scene, c, WIRE_BUILD_CLIENT, 120);
	scene_wait(&scene, 10);
	for (int i = 0; i < 4; i++) {
		c = scene_connect(&scene, 100);
		send_request(&scene, c, i < 2 ? &call : &pay);
		scene_wait(&scene, 1);
		send_answer(&scene, c, NULL);
		scene_wait(&scene, 10);
	}
	assert_int_equal(scene_finish(&scene, 0), 10);
	scene_standing(&scene, found, sizeof(found));
	/* What has nothing to do with tools is judged as ever. */
	assert_string_equal(found, "undecidable null 1-2; dup_after_success high 3-4");
	scene_done(&scene);
}

#define TALKS (sizeof(talks) / sizeof(talks[0]))

int main(void)
{
	struct CMUnitTest tests[TALKS + 1];

	for (size_t i = 0; i < TALKS; i++)
		tests[i] = (struct CMUnitTest){talks[i].what, stands_as_it_should, NULL, NULL, (void *)&talks[i]};
	tests[TALKS] = (struct CMUnitTest)cmocka_unit_test(a_list_of_tools_that_was_lost_leaves_tools_undecidable);
	return _cmocka_run_group_tests("protocols", tests, TALKS + 1, NULL, NULL);
}
