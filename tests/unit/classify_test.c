/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The classifier's order of rules, and every rule that needs no more than
 * method, path, a header or the body of a model call.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "classify_builder.h"
#include "limits.h"

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

static void takes_a_method_at_its_word(void **state)
{
	static const struct {
		const char *method;
		enum call_class class;
		const char *by;
		bool idempotent;
	} rows[] = {
		{"GET", CLASS_READ, "method GET", false},
		{"HEAD", CLASS_READ, "method HEAD", false},
		{"OPTIONS", CLASS_READ, "method OPTIONS", false},
		{"TRACE", CLASS_READ, "method TRACE", false},
		{"QUERY", CLASS_READ, "method QUERY", false},
		{"PROPFIND", CLASS_READ, "method PROPFIND", false},
		{"REPORT", CLASS_READ, "method REPORT", false},
		{"SEARCH", CLASS_READ, "method SEARCH", false},
		{"CONNECT", CLASS_READ, "method CONNECT", false},
		{"POST", CLASS_MUTATING, "method POST", false},
		{"PATCH", CLASS_MUTATING, "method PATCH", false},
		{"PUT", CLASS_MUTATING, "method PUT", true},
		{"DELETE", CLASS_MUTATING, "method DELETE", true},
		{"get", CLASS_MUTATING, "method not known", false},
		{"FROB", CLASS_MUTATING, "method not known", false},
		{"", CLASS_MUTATING, "method not seen", false},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, rows[i].method, "/v1/charges", "", NULL);

		classify_call(*state, call);
		assert_class(call, &(struct class_row){.class = rows[i].class,
						       .by = rows[i].by,
						       .idempotent = rows[i].idempotent});
	}
}

/* Only a POST may be anything: the other methods say what they do. */
static void asks_no_path_where_the_method_has_spoken(void **state)
{
	static const struct {
		const char *method;
		const char *path;
		const char *body;
		enum call_class class;
		const char *by;
	} rows[] = {
		{"GET", "/graphql", "{\"query\":\"mutation{pay}\"}", CLASS_READ, "method GET"},
		{"GET", "/v1/responses/resp_1", NULL, CLASS_READ, "method GET"},
		{"GET", "/oauth/token", NULL, CLASS_READ, "method GET"},
		{"PUT", "/v1/tickets/search", "{}", CLASS_MUTATING, "method PUT"},
		{"PATCH", "/jobs/status", "{}", CLASS_MUTATING, "method PATCH"},
		{"DELETE", "/mcp", NULL, CLASS_MUTATING, "method DELETE"},
		{"FROB", "/v1/tickets/search", "{}", CLASS_MUTATING, "method not known"},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call =
			build_call(&built, rows[i].method, rows[i].path, "", rows[i].body);

		classify_call(*state, call);
		assert_string_equal(call->class_by, rows[i].by);
		assert_int_equal(call->class, rows[i].class);
		assert_int_equal(call->class_source, CLASS_BY_METHOD);
	}
}

static void an_override_is_the_method(void **state)
{
	static const struct {
		const char *method;
		const char *fields;
		enum call_class class;
		const char *by;
	} rows[] = {
		{"POST", "X-HTTP-Method-Override: GET", CLASS_READ, "method GET"},
		{"POST", "x-http-method-override:  DELETE ", CLASS_MUTATING, "method DELETE"},
		{"POST", "X-HTTP-Method: PATCH", CLASS_MUTATING, "method PATCH"},
		{"POST", "X-Method-Override: PUT", CLASS_MUTATING, "method PUT"},
		{"GET", "X-HTTP-Method-Override: DELETE", CLASS_MUTATING, "method DELETE"},
		{"POST", "X-HTTP-Method-Override: BREW", CLASS_MUTATING, "method not known"},
		{"POST", "X-HTTP-Method-Override:", CLASS_MUTATING, "method POST"},
		{"POST", "X-HTTP-Method-Override: GET\nX-HTTP-Method-Override: GET", CLASS_READ,
		 "method GET"},
		{"POST", "X-HTTP-Method-Override: GET\nX-HTTP-Method-Override: PUT", CLASS_MUTATING,
		 "method POST"},
		{"POST", "X-HTTP-Method-Override: GET\nX-Method-Override: DELETE", CLASS_MUTATING,
		 "method POST"},
		{"POST", "X-HTTP-Method-Override: GET\nX-Method-Override: GET", CLASS_READ,
		 "method GET"},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call =
			build_call(&built, rows[i].method, "/v1/charges", rows[i].fields, "{}");

		classify_call(*state, call);
		assert_string_equal(call->class_by, rows[i].by);
		assert_int_equal(call->class, rows[i].class);
		assert_int_equal(call->class_source, CLASS_BY_METHOD);
	}
}

static void a_call_whose_head_was_not_seen_is_mutating(void **state)
{
	struct call call = {.class = CLASS_READ, .body_bytes = 10};

	classify_call(*state, &call);
	assert_class(&call, &(struct class_row){.class = CLASS_MUTATING, .by = "method not seen"});
}

static void forgets_what_an_earlier_look_said(void **state)
{
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/v1/charges", "", "{}");

	call->class = CLASS_READ;
	call->class_source = CLASS_BY_POLICY;
	call->idempotent_hint = call->known_write = call->mcp_continuation = call->mcp_lists_tools =
		true;
	call->tool = call->model = BYTES("old");
	call->protocol = PROTOCOL_MCP;
	classify_call(*state, call);
	assert_class(call, &(struct class_row){.class = CLASS_MUTATING, .by = "method POST"});
	assert_false(call->mcp_continuation);
	assert_false(call->mcp_lists_tools);
}

static void knows_segments_that_read(void **state)
{
	static const char *const words[] = {
		"search",         "_search",    "_msearch",     "query",     "list",
		"count",          "_count",     "count_tokens", "tokenize",  "detokenize",
		"apply-template", "rerank",     "reranking",    "score",     "classify",
		"moderations",    "similarity", "validate",     "verify",    "preview",
		"estimate",       "quote",      "lookup",       "batch-get", "batchGet",
		"explain",        "status",     "poll",         "health",    "introspect",
		"userinfo",       "get",        "read",         "fetch",
	};
	static const char *const shapes[] = {"/v1/things/%s", "/%s", "/%s/", "/api/%s/users", "%s"};
	char path[64], by[64];

	for (size_t i = 0; i < ROW_COUNT(words); i++) {
		for (size_t j = 0; j < ROW_COUNT(shapes); j++) {
			struct class_row row = ROW(path, "{}", CLASS_READ, CLASS_BY_PATH, by);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
			snprintf(path, sizeof(path), shapes[j], words[i]);
#pragma GCC diagnostic pop
			snprintf(by, sizeof(by), "path segment %s", words[i]);
			assert_posts(*state, &row, 1);
		}
	}
}

static void knows_paths_of_sign_in_telemetry_and_google_verbs(void **state)
{
	static const struct class_row rows[] = {
		ROW("/oauth/token", "", CLASS_AUTH, CLASS_BY_PATH, "auth path token"),
		ROW("/token", "", CLASS_AUTH, CLASS_BY_PATH, "auth path token"),
		ROW("/api/login", "", CLASS_AUTH, CLASS_BY_PATH, "auth path login"),
		ROW("/logout", "", CLASS_AUTH, CLASS_BY_PATH, "auth path logout"),
		ROW("/signin/", "", CLASS_AUTH, CLASS_BY_PATH, "auth path signin"),
		ROW("/auth/refresh", "", CLASS_AUTH, CLASS_BY_PATH, "auth path auth/refresh"),
		ROW("/oauth2/revoke", "", CLASS_AUTH, CLASS_BY_PATH, "auth path oauth/revoke"),
		ROW("/v1/traces", "", CLASS_TELEMETRY, CLASS_BY_PATH, "telemetry path /v1/traces"),
		ROW("/otlp/v1/logs", "", CLASS_TELEMETRY, CLASS_BY_PATH, "telemetry path /v1/logs"),
		ROW("/v1/metrics", "", CLASS_TELEMETRY, CLASS_BY_PATH,
		    "telemetry path /v1/metrics"),
		ROW("/v0.4/traces", "", CLASS_TELEMETRY, CLASS_BY_PATH,
		    "telemetry path /v0.N/traces"),
		ROW("/api/v2/spans", "", CLASS_TELEMETRY, CLASS_BY_PATH,
		    "telemetry path /api/v2/spans"),
		ROW("/loki/api/v1/push", "", CLASS_TELEMETRY, CLASS_BY_PATH,
		    "telemetry path /api/v1/push"),
		ROW("/api/42/envelope/", "", CLASS_TELEMETRY, CLASS_BY_PATH,
		    "telemetry path /api/N/envelope"),
		ROW("/v1/docs:get", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :get"),
		ROW("/v1/docs:list", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :list"),
		ROW("/v1/docs:search", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :search"),
		ROW("/v1/docs:query", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :query"),
		ROW("/v1/docs:lookup", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :lookup"),
		ROW("/v1/docs:batchGet", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :batchGet"),
		ROW("/v1/models/m:countTokens", "{}", CLASS_READ, CLASS_BY_PATH,
		    "google verb :count"),
		ROW("/v1/routes:compute", "{}", CLASS_READ, CLASS_BY_PATH, "google verb :compute"),
		ROW("/v1/p:testIamPermissions", "{}", CLASS_READ, CLASS_BY_PATH,
		    "google verb :test"),
		/* near misses */
		ROW("/v1/tokens", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/ingest", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v2/traces", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/shop/7/envelope", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/users/refresh", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/docs:testing", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/docs:export", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/searches", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/search/a/b", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("///", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("*", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW(":", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

/* In a path the verb comes before the path rules: /status/update writes. */
static void knows_tools_by_the_last_segment(void **state)
{
#define WRITES(path, verb)                                                           \
	ROW(path, "{}", CLASS_MUTATING, CLASS_BY_TOOL_NAME, "tool prefix " verb "_", \
	    .known_write = true)
#define READS(path, verb) ROW(path, "{}", CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix " verb "_")
#define NEITHER(path) ROW(path, "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST")
	static const struct class_row rows[] = {
		WRITES("/tools/create_ticket", "create"),
		WRITES("/tools/charge_card", "charge"),
		WRITES("/tools/refund-order", "refund"),
		WRITES("/tools/sendMail", "send"),
		WRITES("/tools/DeleteUser", "delete"),
		WRITES("/users/7/update", "update"),
		WRITES("/status/update", "update"),
		WRITES("/search/delete/", "delete"),
		WRITES("/api/chat.postMessage", "post"),
		WRITES("/charge", "charge"),
		READS("/tools/get_ticket", "get"),
		READS("/tools/list-orders", "list"),
		READS("/tools/searchOrders", "search"),
		READS("/tools/ReadGauge", "read"),
		READS("/tools/fetch_page", "fetch"),
		READS("/api/conversations.list", "list"),
		NEITHER("/tools/get_or_create_user"),
		NEITHER("/tools/list-and-close"),
		NEITHER("/tools/getOrCreateUser"),
		NEITHER("/tools/readAndMark"),
		NEITHER("/items/list_42"),
		NEITHER("/tools/getaway"),
		NEITHER("/charges"),
		NEITHER("/tools/listen_in"),
		NEITHER("/tools/readiness"),
		NEITHER("/v1/settings"),
		NEITHER("/tools/addresses"),
		NEITHER("/tools/my_get"),
		/* "order" and "android" are no "or" and no "and" */
		READS("/tools/get_order_android", "get"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void knows_model_calls_by_their_path(void **state)
{
#define LLM(path, body, by, its_protocol, its_model)                                            \
	ROW(path, body, CLASS_LLM, CLASS_BY_PROTOCOL, "llm path " by, .protocol = its_protocol, \
	    .model = its_model)
#define CHEAP(path, body, by, its_protocol, its_model)                                      \
	ROW(path, body, CLASS_LLM, CLASS_BY_PATH, "llm path " by, .protocol = its_protocol, \
	    .model = its_model)
#define M "{\"model\":\"m-1\",\"messages\":[]}"
#define P "{\"prompt\":\"hi\"}"
	static const struct class_row rows[] = {
		LLM("/v1/chat/completions", M, "/chat/completions", PROTOCOL_OPENAI, "m-1"),
		LLM("/chat/completions", "{}", "/chat/completions", PROTOCOL_OPENAI, NULL),
		LLM("/openai/deployments/gpt-x/chat/completions", "{\"messages\":[]}",
		    "/chat/completions", PROTOCOL_OPENAI, "gpt-x"),
		LLM("/v1/completions", P, "/v1/completions", PROTOCOL_OPENAI, NULL),
		LLM("/v1/responses", "{\"input\":\"x\"}", "/v1/responses", PROTOCOL_OPENAI, NULL),
		LLM("/proxy/v1/messages/", M, "/v1/messages", PROTOCOL_ANTHROPIC, "m-1"),
		LLM("/api/generate", P, "/api/generate", PROTOCOL_OLLAMA, NULL),
		LLM("/api/chat", M, "/api/chat", PROTOCOL_OLLAMA, "m-1"),
		LLM("/completion", P, "/completion", PROTOCOL_LLAMA_CPP, NULL),
		LLM("/infill", "{\"input_prefix\":\"a\"}", "/infill", PROTOCOL_LLAMA_CPP, NULL),
		LLM("/v1/images/generations", M, "/images/generations", PROTOCOL_OPENAI, "m-1"),
		LLM("/v1/images/edits", "", "/images/edits", PROTOCOL_OPENAI, NULL),
		LLM("/v1/images/variations", "", "/images/variations", PROTOCOL_OPENAI, NULL),
		LLM("/v1/audio/speech", M, "/audio/speech", PROTOCOL_OPENAI, "m-1"),
		LLM("/v1/audio/transcriptions", "", "/audio/transcriptions", PROTOCOL_OPENAI, NULL),
		LLM("/v1/audio/translations", "", "/audio/translations", PROTOCOL_OPENAI, NULL),
		LLM("/model/claude-x/invoke", "{}", "/model/ID/invoke", PROTOCOL_LLM, "claude-x"),
		LLM("/model/claude-x/invoke-with-response-stream", "{}", "/model/ID/invoke",
		    PROTOCOL_LLM, "claude-x"),
		LLM("/model/claude-x/converse", "{}", "/model/ID/converse", PROTOCOL_LLM,
		    "claude-x"),
		LLM("/model/claude-x/converse-stream", "{}", "/model/ID/converse", PROTOCOL_LLM,
		    "claude-x"),
		LLM("/v1beta/models/gem-2:generateContent", "{}", ":generateContent",
		    PROTOCOL_GEMINI, "gem-2"),
		LLM("/v1beta/models/gem-2:streamGenerateContent", "{}", ":streamGenerateContent",
		    PROTOCOL_GEMINI, "gem-2"),
		LLM("/v1/publishers/a/models/c:rawPredict", "{}", ":rawPredict", PROTOCOL_LLM, "c"),
		LLM("/v1/publishers/a/models/c:streamRawPredict", "{}", ":streamRawPredict",
		    PROTOCOL_LLM, "c"),
		CHEAP("/v1/models/e:embedContent", "{}", ":embedContent", PROTOCOL_GEMINI, "e"),
		CHEAP("/v1/models/e:batchEmbedContents", "{}", ":batchEmbedContents",
		      PROTOCOL_GEMINI, "e"),
		CHEAP("/v1/embeddings", "{\"model\":\"e\",\"input\":\"x\"}", "embeddings",
		      PROTOCOL_OPENAI, "e"),
		CHEAP("/api/embeddings", "{\"model\":\"e\"}", "embeddings", PROTOCOL_OLLAMA, "e"),
		CHEAP("/api/embed", "{\"model\":\"e\"}", "embed", PROTOCOL_OLLAMA, "e"),
		CHEAP("/embedding", "{}", "embedding", PROTOCOL_LLAMA_CPP, NULL),
		CHEAP("/v2/embed", "{}", "embed", PROTOCOL_LLM, NULL),
		LLM("/anthropic/messages", M, "messages with a model", PROTOCOL_ANTHROPIC, "m-1"),
		LLM("/x/responses", M, "responses with a model", PROTOCOL_OPENAI, "m-1"),
		LLM("/v1/fim/completions", M, "completions with a model", PROTOCOL_OPENAI, "m-1"),
		LLM("/v2/chat", M, "chat with a model", PROTOCOL_LLM, "m-1"),
		LLM("/v1/generate", M, "generate with a model", PROTOCOL_LLM, "m-1"),
		LLM("/v1beta/interactions", M, "interactions with a model", PROTOCOL_GEMINI, "m-1"),
		/* what only looks like one */
		NEITHER("/v1/channels/7/messages"),
		ROW("/v1/messages", "{\"to\":\"+1\",\"text\":\"hi\"}", CLASS_MUTATING,
		    CLASS_BY_METHOD, "method POST"),
		ROW("/v1/messages", "{\"model\":7}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/x/messages", P, CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/messages", "", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/messages", "{\"model\":\"m", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/v1/messages", "{\"model\":\"m\" \"x\":1}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/v1/messages", "[\"model\"]", CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/messages/count_tokens", M, CLASS_READ, CLASS_BY_PATH,
		    "path segment count_tokens"),
		ROW("/v1/messages/batches", M, CLASS_MUTATING, CLASS_BY_METHOD, "method POST"),
		ROW("/v1/images/upload", M, CLASS_MUTATING, CLASS_BY_TOOL_NAME,
		    "tool prefix upload_", .known_write = true),
		/* spelling of the body */
		LLM("/v1/messages", " \n{\"m\\u006fdel\":\"a\\u002fb\"}\n", "/v1/messages",
		    PROTOCOL_ANTHROPIC, "a/b"),
		LLM("/v1/messages", "{\"model\":\"a\",\"model\":\"b\"}", "/v1/messages",
		    PROTOCOL_ANTHROPIC, "b"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void trusts_a_model_path_whose_body_cannot_be_seen(void **state)
{
	static const struct {
		const char *path;
		enum call_class class;
	} rows[] = {
		{"/v1/messages", CLASS_LLM},
		{"/v1/responses", CLASS_LLM},
		{"/api/chat", CLASS_LLM},
		{"/v1/chat/completions", CLASS_LLM},
		{"/rooms/7/messages", CLASS_MUTATING},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, "POST", rows[i].path, "", NULL);

		call->body_held = false;
		call->body_bytes = LIMIT_BODY_BYTES + 1;
		classify_call(*state, call);
		assert_int_equal(call->class, rows[i].class);
		assert_says(call->model, NULL);
	}
}

/* curl -d sends JSON under the type of a form. */
static void reads_a_model_body_whatever_its_content_type(void **state)
{
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/api/generate", "",
				       "{\"model\":\"m-1\",\"prompt\":\"x\"}");

	call->content_type = BYTES("application/x-www-form-urlencoded");
	classify_call(*state, call);
	assert_int_equal(call->class, CLASS_LLM);
	assert_says(call->model, "m-1");
}

static void keeps_names_when_the_body_goes(void **state)
{
	char body[400], expected[CALL_NAME_BYTES + 1];
	struct built_call built;
	struct call *call;

	memset(expected, 'x', sizeof(expected));
	expected[CALL_NAME_BYTES] = 0;
	snprintf(body, sizeof(body), "{\"model\":\"%s%s\"}", expected, "tail");
	call = build_call(&built, "POST", "/v1/chat/completions", "", body);
	classify_call(*state, call);
	memset(body, '!', sizeof(body));
	assert_says(call->model, expected);
	/* From a path, cut at a whole character: two bytes stand across the limit. */
	snprintf(body, sizeof(body), "/m/%.*s\xc3\xa9z:generateContent", CALL_NAME_BYTES - 1,
		 expected);
	call = build_call(&built, "POST", body, "", "{}");
	classify_call(*state, call);
	expected[CALL_NAME_BYTES - 1] = 0;
	assert_says(call->model, expected);
}

static void knows_aws_operations_by_their_target(void **state)
{
	static const struct {
		const char *fields;
		struct class_row row;
	} rows[] = {
#define AWS_READ(target, by)                                                                      \
	{"X-Amz-Target: " target, ROW("/", "{}", CLASS_READ, CLASS_BY_PROTOCOL, "aws target " by, \
				      .protocol = PROTOCOL_AWS)}
#define AWS_WRITE(target, known) \
	{"X-Amz-Target: " target, ROW("/", "{}", CLASS_MUTATING, CLASS_BY_PROTOCOL, "aws target", \
				      .known_write = known, .protocol = PROTOCOL_AWS)}
		AWS_READ("DynamoDB_20120810.GetItem", "Get"),
		AWS_READ("DynamoDB_20120810.Query", "Query"),
		AWS_READ("DynamoDB_20120810.Scan", "Scan"),
		AWS_READ("DynamoDB_20120810.BatchGetItem", "BatchGet"),
		AWS_READ("AmazonSSM.ListTagsForResource", "List"),
		AWS_READ("AmazonSSM.DescribeParameters", "Describe"),
		AWS_READ("AmazonSQS.ReceiveMessage", "Receive"),
		AWS_READ("X.HeadThing", "Head"),
		AWS_READ("a.b.GetX", "Get"),
		AWS_READ("ListTables", "List"),
		AWS_WRITE("DynamoDB_20120810.PutItem", true),
		AWS_WRITE("AmazonSQS.SendMessage", true),
		AWS_WRITE("X.StartQuery", false),
		AWS_WRITE("X.Getaway", false),
		{"X-Amz-Target:", ROW("/", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST")},
		{"X-Amz-Target: Get.",
		 ROW("/", "{}", CLASS_MUTATING, CLASS_BY_METHOD, "method POST")},
	};
	struct built_call built;

	for (size_t i = 0; i < ROW_COUNT(rows); i++) {
		struct call *call = build_call(&built, "POST", "/", rows[i].fields, "{}");

		classify_call(*state, call);
		assert_class(call, &rows[i].row);
	}
}

/* Each row meets two rules; the stronger kind must win. */
static void keeps_the_order_protocol_tool_path_method(void **state)
{
	static const struct class_row rows[] = {
		/* protocol over tool name, path */
		ROW("/search/create_x", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}",
		    CLASS_READ, CLASS_BY_PROTOCOL, "mcp ping", .tool = "ping",
		    .protocol = PROTOCOL_MCP),
		ROW("/search/graphql", "{\"query\":\"mutation{pay}\"}", CLASS_MUTATING,
		    CLASS_BY_PROTOCOL, "graphql mutation", .known_write = true,
		    .protocol = PROTOCOL_GRAPHQL),
		ROW("/query/chat/completions", M, CLASS_LLM, CLASS_BY_PROTOCOL,
		    "llm path /chat/completions", .model = "m-1", .protocol = PROTOCOL_OPENAI),
		/* tool name over path */
		ROW("/search/create_x", "{}", CLASS_MUTATING, CLASS_BY_TOOL_NAME,
		    "tool prefix create_", .known_write = true),
		ROW("/status/get_x", "{}", CLASS_READ, CLASS_BY_TOOL_NAME, "tool prefix get_"),
		/* path over method */
		ROW("/search/x", "{}", CLASS_READ, CLASS_BY_PATH, "path segment search"),
		/* of two segments the last one */
		ROW("/search/status", "{}", CLASS_READ, CLASS_BY_PATH, "path segment status"),
	};

	assert_posts(*state, rows, ROW_COUNT(rows));
}

static void reads_no_json_rpc_from_the_middle_of_a_large_body(void **state)
{
	struct buffer body = {0};
	struct built_call built;
	struct call *call = build_call(&built, "POST", "/v1/docs", "", "{}");

	assert_int_equal(buffer_append(&body, BYTES("{\"text\":\"")), 0);
	assert_int_equal(buffer_reserve(&body, 3 * 4096), 0);
	memset(body.data + body.size, 'x', 3 * 4096);
	body.size += 3 * 4096;
	assert_int_equal(buffer_append(&body, BYTES("\",\"method\":\"ping\",\"jsonrpc\":\"2.0\"}")),
			 0);
	call->body = buffer_bytes(&body);
	call->body_bytes = body.size;
	classify_call(*state, call);
	assert_string_equal(call->class_by, "mcp ping");
	/* The same with the word out of both looks. */
	buffer_clear(&body);
	assert_int_equal(buffer_append(&body, BYTES("{\"a\":\"")), 0);
	memset(body.data + body.size, 'x', 5000);
	body.size += 5000;
	assert_int_equal(
		buffer_append(&body, BYTES("\",\"method\":\"ping\",\"jsonrpc\":\"2.0\",\"b\":\"")),
		0);
	memset(body.data + body.size, 'x', 5000);
	body.size += 5000;
	assert_int_equal(buffer_append(&body, BYTES("\"}")), 0);
	call->body = buffer_bytes(&body);
	call->body_bytes = body.size;
	classify_call(*state, call);
	assert_string_equal(call->class_by, "method POST");
	buffer_done(&body);
}

/* Wire cases: pagination (12), polling (18), 504 (07), cut stream (08). */
static void gives_the_cases_their_classes(void **state)
{
	static const struct class_row rows[] = {
		ROW("/v1/tickets/search",
		    "{\"query\":\"status:open\",\"page_size\":50,\"cursor\":null}", CLASS_READ,
		    CLASS_BY_PATH, "path segment search"),
		ROW("/v1/jobs", "{\"render\":\"scene-5\"}", CLASS_MUTATING, CLASS_BY_METHOD,
		    "method POST"),
		ROW("/v1/jobs/status", "{\"job\":\"j-9\"}", CLASS_READ, CLASS_BY_PATH,
		    "path segment status"),
		ROW("/v1/chat/completions",
		    "{\"model\":\"demo-large\",\"messages\":[{\"role\":\"system\",\"content\":"
		    "\"You grade parts.\"}],\"temperature\":0}",
		    CLASS_LLM, CLASS_BY_PROTOCOL, "llm path /chat/completions",
		    .model = "demo-large", .protocol = PROTOCOL_OPENAI),
		ROW("/v1/messages",
		    "{\"model\":\"demo-opus\",\"max_tokens\":32000,\"stream\":true,\"messages\":[{"
		    "\"role\":\"user\",\"content\":\"Plan.\"}]}",
		    CLASS_LLM, CLASS_BY_PROTOCOL, "llm path /v1/messages", .model = "demo-opus",
		    .protocol = PROTOCOL_ANTHROPIC),
	};
	struct built_call built;
	struct call *call;

	assert_posts(*state, rows, ROW_COUNT(rows));
	call = build_call(&built, "GET", "/v1/jobs/j-9", "", NULL);
	classify_call(*state, call);
	assert_class(call, &(struct class_row){.class = CLASS_READ, .by = "method GET"});
}

static void a_freed_classifier_may_be_none(void **state)
{
	(void)state;
	classifier_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_classifier, free_classifier)
	const struct CMUnitTest tests[] = {
		TEST(takes_a_method_at_its_word),
		TEST(asks_no_path_where_the_method_has_spoken),
		TEST(an_override_is_the_method),
		TEST(a_call_whose_head_was_not_seen_is_mutating),
		TEST(forgets_what_an_earlier_look_said),
		TEST(knows_segments_that_read),
		TEST(knows_paths_of_sign_in_telemetry_and_google_verbs),
		TEST(knows_tools_by_the_last_segment),
		TEST(knows_model_calls_by_their_path),
		TEST(trusts_a_model_path_whose_body_cannot_be_seen),
		TEST(reads_a_model_body_whatever_its_content_type),
		TEST(keeps_names_when_the_body_goes),
		TEST(knows_aws_operations_by_their_target),
		TEST(keeps_the_order_protocol_tool_path_method),
		TEST(reads_no_json_rpc_from_the_middle_of_a_large_body),
		TEST(gives_the_cases_their_classes),
		cmocka_unit_test(a_freed_classifier_may_be_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
