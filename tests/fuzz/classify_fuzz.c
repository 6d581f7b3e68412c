/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The classifier with any body on any of its paths. The first byte picks the
 * path, the second one whether the body is held (bit 0), is a bare GraphQL
 * document (bit 1), comes with MCP fields (bit 2); bit 3 hands the text in as
 * the answer to a tools/list first.
 *
 * Beyond what the sanitizers find: there is always a rule, the same call gets
 * the same class again, names point into the call, and a text without its
 * volatile members has none left, is never longer, and is JSON still.
 */
#include "classify.h"
#include "json_scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const paths[] = {
	"/mcp",
	"/graphql",
	"/v1/messages",
	"/v1/chat/completions",
	"/api/chat",
	"/completion",
	"/v1/models/m:generateContent",
	"/model/m/converse",
	"/openai/deployments/d/chat/completions",
	"/v1/tasks/7:cancel",
	"/v1/charges",
	"",
};

static const struct http_field mcp_fields[] = {
	{{(const uint8_t *)"Mcp-Method", 10}, {(const uint8_t *)"tools/call", 10}},
	{{(const uint8_t *)"Mcp-Name", 8}, {(const uint8_t *)"get_x", 5}},
};

static void must(bool true_thing)
{
	if (!true_thing)
		abort();
}

static void must_lie_in(struct bytes name, const uint8_t text[CALL_NAME_BYTES])
{
	must(name.size <= CALL_NAME_BYTES);
	must(name.size == 0 || name.data == text);
}

static void try_text(const struct call *call, struct bytes canonical_text, bool prompt)
{
	struct buffer out = {0}, again = {0};
	struct bytes whole;
	int made = prompt ? classify_prompt_text(call, canonical_text, &out)
			  : classify_comparable_text(call, canonical_text, &out);

	must(made == 0 || made == 1);
	if (made) {
		must(out.size < canonical_text.size);
		must(json_scan_whole(buffer_bytes(&out), &whole) && whole.size == out.size);
		must((prompt ? classify_prompt_text(call, whole, &again)
			     : classify_comparable_text(call, whole, &again)) == 0);
	} else {
		must(out.size == 0);
	}
	buffer_done(&out);
	buffer_done(&again);
}

static void try_call(struct classifier *classifier, struct call *call)
{
	struct canonical canonical = {0};
	struct call again = *call;

	classify_call(classifier, call);
	must(call->class_by && call->class_by[0]);
	must_lie_in(call->tool, call->tool_text);
	must_lie_in(call->model, call->model_text);
	classify_call(classifier, &again);
	must(again.class == call->class && again.class_source == call->class_source);
	must(again.class_by == call->class_by && again.protocol == call->protocol);
	must(canonical_make(call->content_type, call->body, &canonical) == 0);
	call->canon = canonical.kind;
	try_text(call, buffer_bytes(&canonical.text), false);
	try_text(call, buffer_bytes(&canonical.text), true);
	canonical_done(&canonical);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct classifier *classifier = classifier_new();
	struct http_head head = {.fields = mcp_fields};
	struct call call = {.head = &head, .method = BYTES("POST")};

	must(classifier != NULL);
	if (size >= 2) {
		call.path = bytes_of_string(paths[data[0] % (sizeof(paths) / sizeof(paths[0]))]);
		call.body = (struct bytes){data + 2, size - 2};
		call.body_bytes = call.body.size;
		call.body_held = data[1] & 1;
		call.content_type =
			data[1] & 2 ? BYTES("application/graphql") : BYTES("application/json");
		head.field_count = data[1] & 4 ? 2 : 0;
		call.mcp_lists_tools = true;
		if (data[1] & 8)
			must(classify_answer(classifier, &call, call.body) == 0);
		try_call(classifier, &call);
	}
	classifier_free(classifier);
	return 0;
}
