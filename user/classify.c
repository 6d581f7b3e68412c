/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order of the rules. A method that says what it does (GET, PUT, ...) is
 * taken at its word; a POST may be anything and goes through all of them. When
 * no rule knows better, a POST is mutating.
 */
#include "classify.h"

#include "canary.h"
#include "classify_rules.h"
#include "policy.h"
#include "rpc_answer.h"

#include <errno.h>

#define SCRATCH_KEPT_BYTES (64 * 1024)

struct classifier {
	struct tool_memory *tools;
	const struct policy *policy; /* may be NULL */
	struct buffer scratch; /* a decoded GraphQL document */
};

struct method_rule {
	struct word name;
	const char *by;
	bool safe; /* RFC 9110 section 9.2.1 and the method registry */
	bool idempotent;
	bool plain; /* a POST: the method alone tells nothing */
};

static const struct method_rule methods[] = {
	{WORD("POST"), "method POST", false, false, true},
	{WORD("GET"), "method GET", true, false, false},
	{WORD("PUT"), "method PUT", false, true, false},
	{WORD("PATCH"), "method PATCH", false, false, false},
	{WORD("DELETE"), "method DELETE", false, true, false},
	{WORD("HEAD"), "method HEAD", true, false, false},
	{WORD("OPTIONS"), "method OPTIONS", true, false, false},
	{WORD("TRACE"), "method TRACE", true, false, false},
	{WORD("QUERY"), "method QUERY", true, false, false},
	{WORD("PROPFIND"), "method PROPFIND", true, false, false},
	{WORD("REPORT"), "method REPORT", true, false, false},
	{WORD("SEARCH"), "method SEARCH", true, false, false},
	{WORD("CONNECT"), "method CONNECT", true, false, false}, /* a tunnel: what is done is done inside it */
};

/* A method that nobody here knows may do anything, and its path is not trusted either. */
static const struct method_rule unknown_method = {ANY, "method not known", false, false, false};
static const struct method_rule unseen_method = {ANY, "method not seen", false, false, false};

struct classifier *classifier_new(void)
{
	struct classifier *classifier = calloc(1, sizeof(*classifier));

	if (!classifier)
		return NULL;
	classifier->tools = tool_memory_new();
	if (!classifier->tools) {
		free(classifier);
		return NULL;
	}
	return classifier;
}

void classifier_free(struct classifier *classifier)
{
	if (!classifier)
		return;
	tool_memory_free(classifier->tools);
	buffer_done(&classifier->scratch);
	free(classifier);
}

void classifier_set_policy(struct classifier *classifier, const struct policy *policy)
{
	classifier->policy = policy;
}

/*
 * By the method that the server is asked to act on. Of two overrides that
 * differ nobody knows which one is taken, so neither counts.
 */
static const struct method_rule *method_rule(const struct call *call,
					     const struct class_fields *fields)
{
	struct bytes method = call->method;

	if (fields->method_override.size && !fields->override_unclear)
		method = fields->method_override;
	if (method.size == 0)
		return &unseen_method;
	for (size_t i = 0; i < COUNT_OF(methods); i++)
		if (word_is(&methods[i].name, method))
			return &methods[i];
	return &unknown_method;
}

/* Another nightclerk's self-test, in a run that it was started in. */
static bool classify_canary(const struct call *call, struct class_verdict *ret_verdict)
{
	const struct http_field *agent;

	if (!bytes_equal(call->path, BYTES("/canary")) || !call->head)
		return false;
	agent = http_head_find(call->head, BYTES("User-Agent"));
	if (!agent || !bytes_equal(agent->value, BYTES(CANARY_AGENT)))
		return false;
	*ret_verdict = (struct class_verdict){
		.class = CLASS_TELEMETRY, .source = CLASS_BY_PROTOCOL, .by = "nightclerk's own canary"};
	return true;
}

/* Protocol > tool name > path. */
static bool judge_post(struct classifier *classifier, struct call *call,
		       const struct class_fields *fields, struct class_verdict *ret_verdict)
{
	struct path_tail tail = classify_paths_tail(call->path);

	return classify_canary(call, ret_verdict) || classify_aws(call, fields, ret_verdict) ||
	       classify_graphql(call, &tail, &classifier->scratch, ret_verdict) ||
	       classify_llm(call, &tail, ret_verdict) ||
	       classify_jsonrpc(call, &tail, fields, classifier->tools, ret_verdict) ||
	       classify_a2a_path(call, &tail, ret_verdict) ||
	       classify_names_segment(tail.last, ret_verdict) ||
	       classify_paths_rule(&tail, ret_verdict);
}

/*
 * The policy outranks every rule here, so it has the last word, and it may name
 * the tool. What was recognised above stays, since the fingerprint needs it
 * whatever the class; an idempotent method stays one.
 */
static void judge_policy(const struct classifier *classifier, struct call *call,
			 struct class_verdict *verdict)
{
	call->rule = policy_match(classifier->policy, call);
	if (!call->rule || !call->rule->sets_class)
		return;
	verdict->class = call->rule->class;
	verdict->source = CLASS_BY_POLICY;
	verdict->by = call->rule->class_by;
	verdict->known_write = call->rule->class == CLASS_MUTATING;
}

/* MCP up to 2025-11-25: the answer to a cut tools/list may come with the rest of its stream, to a GET. */
static bool resumes_mcp(const struct call *call, const struct class_fields *fields)
{
	struct path_tail tail;

	if (!fields->resumes || !bytes_equal(call->method, BYTES("GET")))
		return false;
	tail = classify_paths_tail(call->path);
	return fields->mcp || bytes_equal_nocase(tail.last, BYTES("mcp"));
}

static void forget(struct call *call)
{
	call->protocol = PROTOCOL_NONE;
	call->mcp_continuation = false;
	call->mcp_lists_tools = false;
	call->mcp_tool_guessed = false;
	call->tool = (struct bytes){0};
	call->model = (struct bytes){0};
}

int classify_call(struct classifier *classifier, struct call *call)
{
	struct class_fields fields = classify_body_fields(call->head);
	const struct method_rule *method = method_rule(call, &fields);
	struct class_verdict verdict;

	forget(call);
	if (!method->plain || !judge_post(classifier, call, &fields, &verdict)) {
		verdict =
			(struct class_verdict){.class = method->safe ? CLASS_READ : CLASS_MUTATING,
					       .source = CLASS_BY_METHOD,
					       .by = method->by,
					       .idempotent = method->idempotent};
	}
	judge_policy(classifier, call, &verdict);
	call->mcp_lists_tools = call->mcp_lists_tools || resumes_mcp(call, &fields);
	call->class = verdict.class;
	call->class_source = verdict.source;
	call->class_by = verdict.by;
	call->idempotent_hint = verdict.idempotent;
	call->known_write = verdict.known_write;
	if (classifier->scratch.capacity > SCRATCH_KEPT_BYTES)
		buffer_done(&classifier->scratch);
	return verdict.out_of_memory ? -ENOMEM : 0;
}

static bool may_have_an_effect(const struct call *call)
{
	bool rpc = call->protocol == PROTOCOL_MCP || call->protocol == PROTOCOL_JSON_RPC || call->protocol == PROTOCOL_A2A;

	return rpc && (call->class == CLASS_MUTATING || call->class_source < CLASS_BY_PROTOCOL);
}

bool classify_wants_answer(const struct call *call)
{
	return call->mcp_lists_tools || may_have_an_effect(call);
}

int classify_answer(struct classifier *classifier, struct call *call, struct bytes response_body)
{
	int err = 0;

	if (call->mcp_lists_tools)
		err = tool_memory_learn(classifier->tools, call, response_body);
	if (!err && may_have_an_effect(call))
		err = rpc_answer_says_not_run(response_body);
	call->not_run = err == 1;
	return err < 0 ? err : 0;
}

uint64_t classify_forgotten_tools(const struct classifier *classifier)
{
	return tool_memory_forgotten(classifier->tools);
}
