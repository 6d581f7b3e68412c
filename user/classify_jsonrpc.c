/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON-RPC 2.0 and the two protocols on it that we know: MCP (2025-03-26 to
 * 2026-07-28) and A2A (0.2 to 1.0). A batch is what its worst message is. A
 * member that stands twice in one message is not believed: readers differ in
 * which one they take.
 *
 * A tool is what its server's annotations say, else what its name says, else
 * mutating: MCP's default for readOnlyHint is false.
 */
#include "classify_rules.h"

struct rpc_method {
	struct word name;
	enum call_protocol protocol; /* PROTOCOL_NONE: MCP and A2A both have it */
	enum call_class class;
	bool idempotent;
	bool known_write;
	const char *by;
};

#define MCP_READ(name) {WORD(name), PROTOCOL_MCP, CLASS_READ, false, false, "mcp " name}
#define A2A_READ(name) {WORD(name), PROTOCOL_A2A, CLASS_READ, false, false, "a2a " name}
#define A2A_SEND(name) {WORD(name), PROTOCOL_A2A, CLASS_MUTATING, false, true, "a2a " name}
#define A2A_AGAIN(name) {WORD(name), PROTOCOL_A2A, CLASS_MUTATING, true, true, "a2a " name}

static const struct rpc_method rpc_methods[] = {
	MCP_READ("initialize"),
	MCP_READ("ping"),
	MCP_READ("tools/list"),
	MCP_READ("resources/list"),
	MCP_READ("resources/read"),
	MCP_READ("resources/templates/list"),
	MCP_READ("prompts/list"),
	MCP_READ("prompts/get"),
	MCP_READ("roots/list"),
	MCP_READ("completion/complete"),
	MCP_READ("logging/setLevel"),
	MCP_READ("server/discover"),
	MCP_READ("subscriptions/listen"),
	MCP_READ("tasks/result"),
	{WORD("resources/subscribe"), PROTOCOL_MCP, CLASS_MUTATING, true, false,
	 "mcp resources/subscribe"},
	{WORD("resources/unsubscribe"), PROTOCOL_MCP, CLASS_MUTATING, true, false,
	 "mcp resources/unsubscribe"},
	{WORD("tasks/get"), PROTOCOL_NONE, CLASS_READ, false, false, "json-rpc tasks/get"},
	{WORD("tasks/list"), PROTOCOL_NONE, CLASS_READ, false, false, "json-rpc tasks/list"},
	{WORD("tasks/cancel"), PROTOCOL_NONE, CLASS_MUTATING, true, true, "json-rpc tasks/cancel"},
	A2A_SEND("SendMessage"),
	A2A_SEND("SendStreamingMessage"),
	A2A_SEND("message/send"),
	A2A_SEND("message/stream"),
	A2A_SEND("tasks/send"),
	A2A_SEND("tasks/sendSubscribe"),
	A2A_READ("GetTask"),
	A2A_READ("ListTasks"),
	A2A_READ("SubscribeToTask"),
	A2A_READ("tasks/resubscribe"),
	A2A_READ("GetExtendedAgentCard"),
	A2A_READ("agent/getAuthenticatedExtendedCard"),
	A2A_READ("GetTaskPushNotificationConfig"),
	A2A_READ("ListTaskPushNotificationConfigs"),
	A2A_READ("tasks/pushNotificationConfig/get"),
	A2A_READ("tasks/pushNotificationConfig/list"),
	A2A_AGAIN("CancelTask"),
	A2A_AGAIN("DeleteTaskPushNotificationConfig"),
	A2A_AGAIN("tasks/pushNotificationConfig/delete"),
	A2A_AGAIN("tasks/pushNotificationConfig/set"),
	A2A_SEND("CreateTaskPushNotificationConfig"),
};

/* Endings that read, of methods of MCP that the table does not know. */
static const struct {
	const char *end;
	const char *by;
} mcp_read_ends[] = {
	{"/list", "mcp method */list"},
	{"/read", "mcp method */read"},
	{"/get", "mcp method */get"},
};

/* One message, its names decoded. */
struct rpc_message {
	uint8_t method_text[CALL_NAME_BYTES];
	uint8_t tool_text[CALL_NAME_BYTES];
	struct bytes method;
	struct bytes tool; /* params.name */
	bool tool_cut;     /* it was longer than tool_text */
	bool is_rpc;       /* says that it is JSON-RPC 2.0 */
	bool is_answer;    /* result or error, and no method */
	bool unclear;      /* a member that decides stands there twice, or the text breaks off */
	bool continues;    /* params.inputResponses or params.requestState */
};

struct rpc_context {
	struct call *call;
	const struct tool_memory *memory;
	bool mcp;                     /* header or path say so */
	bool judged;                  /* verdict is set */
	struct class_verdict verdict; /* so far */
};

static void read_params(struct rpc_message *message, struct bytes params)
{
	struct json_scan scan;
	struct bytes name, value;

	json_scan_open(&scan, json_scan_is_object(params) ? params : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "name")) {
			message->unclear = message->unclear || message->tool.data;
			message->tool.data = message->tool_text;
			message->tool.size = json_scan_text(value, message->tool_text,
							    CALL_NAME_BYTES, &message->tool_cut);
		} else if (json_scan_says(name, "inputResponses") ||
			   json_scan_says(name, "requestState")) {
			message->continues = message->continues || !json_scan_is_null(value);
		}
	}
	message->unclear = message->unclear || scan.broken;
}

static void read_message(struct rpc_message *message, struct bytes object)
{
	struct bytes name, value, params = {0};
	struct json_scan scan;
	bool answer = false;

	memset(message, 0, sizeof(*message));
	json_scan_open(&scan, json_scan_is_object(object) ? object : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "jsonrpc")) {
			message->is_rpc = json_scan_says(value, "2.0");
		} else if (json_scan_says(name, "method")) {
			message->unclear = message->unclear || message->method.data;
			message->method.data = message->method_text;
			message->method.size =
				json_scan_text(value, message->method_text, CALL_NAME_BYTES, NULL);
		} else if (json_scan_says(name, "params")) {
			message->unclear = message->unclear || params.data;
			params = value;
		} else if (json_scan_says(name, "result") || json_scan_says(name, "error")) {
			answer = true;
		}
	}
	message->is_answer = answer && !message->method.data;
	message->is_rpc =
		message->is_rpc && !scan.broken && (message->method.size || message->is_answer);
	if (message->is_rpc)
		read_params(message, params);
}

static struct class_verdict verdict_of(enum call_class class, enum class_source source,
				       const char *by)
{
	return (struct class_verdict){.class = class, .source = source, .by = by};
}

/* A tool whose server has said something about it. */
static bool by_annotation(const struct rpc_context *context, struct bytes tool,
			  struct class_verdict *ret_verdict)
{
	struct tool_hints hints;

	if (!tool_memory_find(context->memory, context->call, tool, &hints))
		return false;
	if (hints.read_only == TOOL_HINT_TRUE) {
		*ret_verdict =
			verdict_of(CLASS_READ, CLASS_BY_PROTOCOL, "mcp annotation readOnlyHint");
		return true;
	}
	*ret_verdict = verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, NULL);
	ret_verdict->known_write = true;
	if (hints.idempotent == TOOL_HINT_TRUE) {
		ret_verdict->idempotent = true;
		ret_verdict->by = "mcp annotation idempotentHint";
	} else if (hints.read_only == TOOL_HINT_FALSE) {
		ret_verdict->by = "mcp annotation readOnlyHint false";
	} else if (hints.destructive == TOOL_HINT_TRUE) {
		ret_verdict->by = "mcp annotation destructiveHint";
	}
	return ret_verdict->by != NULL;
}

static struct class_verdict judge_tool(const struct rpc_context *context,
				       const struct rpc_message *message)
{
	struct class_verdict verdict;

	if (!message->tool_cut && by_annotation(context, message->tool, &verdict))
		return verdict;
	context->call->mcp_tool_guessed = true;
	if (classify_names_tool(message->tool, &verdict))
		return verdict;
	return verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, "mcp tools/call");
}

static const struct rpc_method *known_method(struct bytes name)
{
	for (size_t i = 0; i < COUNT_OF(rpc_methods); i++)
		if (word_is(&rpc_methods[i].name, name))
			return &rpc_methods[i];
	return NULL;
}

static bool ends_with(struct bytes name, struct bytes end)
{
	if (name.size <= end.size)
		return false;
	bytes_take(&name, name.size - end.size);
	return bytes_equal(name, end);
}

/* A method that only the words in it can tell about. */
static struct class_verdict judge_unknown(const struct rpc_context *context, struct bytes method)
{
	struct class_verdict verdict;

	for (size_t i = 0; context->mcp && i < COUNT_OF(mcp_read_ends); i++)
		if (ends_with(method, bytes_of_string(mcp_read_ends[i].end)))
			return verdict_of(CLASS_READ, CLASS_BY_PROTOCOL, mcp_read_ends[i].by);
	if (classify_names_tool(method, &verdict))
		return verdict;
	return verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc method");
}

/* Also notes in the call what the message makes of it. */
static struct class_verdict judge_message(const struct rpc_context *context,
					  const struct rpc_message *message)
{
	struct call *call = context->call;
	const struct rpc_method *known = known_method(message->method);
	bool is_tool = bytes_equal(message->method, BYTES("tools/call"));
	struct class_verdict verdict;

	if (call->protocol == PROTOCOL_NONE)
		call->protocol = context->mcp ? PROTOCOL_MCP : PROTOCOL_JSON_RPC;
	if (is_tool || bytes_starts_with(message->method, BYTES("notifications/")))
		call->protocol = PROTOCOL_MCP;
	else if (known && known->protocol != PROTOCOL_NONE)
		call->protocol = known->protocol;
	else if (known && !context->mcp)
		call->protocol = PROTOCOL_A2A;
	if (message->unclear)
		return verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc message unclear");
	if (message->is_answer)
		return verdict_of(CLASS_READ, CLASS_BY_PROTOCOL, "json-rpc response");
	call->mcp_continuation = call->mcp_continuation ||
				 (message->continues && call->protocol == PROTOCOL_MCP);
	call->mcp_lists_tools =
		call->mcp_lists_tools || bytes_equal(message->method, BYTES("tools/list"));
	if (is_tool)
		return judge_tool(context, message);
	if (bytes_starts_with(message->method, BYTES("notifications/")))
		return verdict_of(CLASS_READ, CLASS_BY_PROTOCOL, "mcp notification");
	if (!known)
		return judge_unknown(context, message->method);
	verdict = verdict_of(known->class, CLASS_BY_PROTOCOL, known->by);
	verdict.idempotent = known->idempotent;
	verdict.known_write = known->known_write;
	return verdict;
}

static struct bytes name_of(const struct rpc_message *message)
{
	return bytes_equal(message->method, BYTES("tools/call")) && message->tool.size
		       ? message->tool
		       : message->method;
}

/* Does b decide over a? A write over a read, a sure write over a guess, an unsure read over any. */
static bool decides_over(const struct class_verdict *b, const struct class_verdict *a)
{
	if (a->class != b->class)
		return b->class == CLASS_MUTATING;
	if (a->class == CLASS_READ)
		return b->source < a->source;
	if (a->idempotent != b->idempotent)
		return !b->idempotent;
	return b->known_write && !a->known_write;
}

static void take_verdict(struct rpc_context *context, const struct rpc_message *message,
			 struct class_verdict verdict)
{
	if (!context->judged || decides_over(&verdict, &context->verdict)) {
		context->verdict = verdict;
		classify_body_tool(context->call, name_of(message));
	}
	context->judged = true;
}

/* False when what comes first is not JSON-RPC 2.0 at all. */
static bool judge_element(struct rpc_context *context, struct bytes value)
{
	struct rpc_message message;

	read_message(&message, value);
	if (message.is_rpc)
		take_verdict(context, &message, judge_message(context, &message));
	else if (context->judged)
		take_verdict(context, &message,
			     verdict_of(CLASS_MUTATING, CLASS_BY_METHOD, "json-rpc batch unclear"));
	return context->judged;
}

/* A message or an array of them. */
static void judge_body(struct rpc_context *context, struct bytes whole)
{
	struct bytes name, value;
	struct json_scan scan;

	if (!json_scan_is_array(whole)) {
		judge_element(context, whole);
		return;
	}
	json_scan_open(&scan, whole);
	while (json_scan_next(&scan, &name, &value))
		if (!judge_element(context, value))
			return;
	if (scan.broken && context->judged)
		judge_element(context, (struct bytes){0});
}

/* MCP 2026-07-28 repeats method and tool in headers; they count where the body cannot be seen. */
static void judge_fields(struct rpc_context *context, const struct class_fields *fields)
{
	struct rpc_message message = {
		.is_rpc = true, .method = fields->mcp_method, .tool = fields->mcp_name};

	if (message.method.size)
		take_verdict(context, &message, judge_message(context, &message));
}

bool classify_jsonrpc(struct call *call, const struct path_tail *tail,
		      const struct class_fields *fields, const struct tool_memory *memory,
		      struct class_verdict *ret_verdict)
{
	struct rpc_context context = {.call = call, .memory = memory};
	struct bytes whole;

	context.mcp = fields->mcp || bytes_equal_nocase(tail->last, BYTES("mcp"));
	if (!call->body_held && call->body_bytes)
		judge_fields(&context, fields);
	else if (classify_body_mentions(call, BYTES("\"jsonrpc\"")) &&
		 classify_body_json(call, &whole) == BODY_JSON)
		judge_body(&context, whole);
	if (context.judged)
		*ret_verdict = context.verdict;
	return context.judged;
}

bool classify_a2a_path(struct call *call, const struct path_tail *tail,
		       struct class_verdict *ret_verdict)
{
	struct bytes verb = classify_paths_verb(tail->last);
	bool task = bytes_equal(tail->second, BYTES("tasks"));

	if (verb.size == 0)
		return false;
	if (bytes_equal(tail->last, BYTES("message:send"))) {
		*ret_verdict = verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, "a2a message:send");
		ret_verdict->known_write = true;
	} else if (bytes_equal(tail->last, BYTES("message:stream"))) {
		*ret_verdict = verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, "a2a message:stream");
		ret_verdict->known_write = true;
	} else if (task && bytes_equal(verb, BYTES("cancel"))) {
		*ret_verdict = verdict_of(CLASS_MUTATING, CLASS_BY_PROTOCOL, "a2a tasks:cancel");
		ret_verdict->idempotent = true;
		ret_verdict->known_write = true;
	} else if (task && bytes_equal(verb, BYTES("subscribe"))) {
		*ret_verdict = verdict_of(CLASS_READ, CLASS_BY_PROTOCOL, "a2a tasks:subscribe");
	} else {
		return false;
	}
	call->protocol = PROTOCOL_A2A;
	return true;
}
