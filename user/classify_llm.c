/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a model: they cost money and have no other effect. Known by their
 * path; where a path has a common name (/messages may be a chat or an SMS
 * service), the body must say which model is asked, or hold a prompt.
 */
#include "classify_rules.h"

enum need {
	NEED_NOTHING, /* the path tells it alone */
	NEED_PROMPT,  /* a model or a prompt, unless the body cannot be seen */
	NEED_MODEL,   /* a model */
};

struct llm_path {
	struct word last;
	struct word second;
	struct word third;
	enum need need;
	enum call_protocol protocol;
	enum class_source source;
	const char *by;
};

#define EXACT CLASS_BY_PROTOCOL

static const struct llm_path llm_paths[] = {
	{WORD("completions"), WORD("chat"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /chat/completions"},
	{WORD("completions"), WORD("v1"), ANY, NEED_PROMPT, PROTOCOL_OPENAI, EXACT, "llm path /v1/completions"},
	{WORD("responses"), WORD("v1"), ANY, NEED_PROMPT, PROTOCOL_OPENAI, EXACT, "llm path /v1/responses"},
	{WORD("messages"), WORD("v1"), ANY, NEED_PROMPT, PROTOCOL_ANTHROPIC, EXACT, "llm path /v1/messages"},
	{WORD("generate"), WORD("api"), ANY, NEED_PROMPT, PROTOCOL_OLLAMA, EXACT, "llm path /api/generate"},
	{WORD("chat"), WORD("api"), ANY, NEED_PROMPT, PROTOCOL_OLLAMA, EXACT, "llm path /api/chat"},
	{WORD("completion"), ANY, ANY, NEED_PROMPT, PROTOCOL_LLAMA_CPP, EXACT, "llm path /completion"},
	{WORD("infill"), ANY, ANY, NEED_NOTHING, PROTOCOL_LLAMA_CPP, EXACT, "llm path /infill"},
	{WORD("generations"), WORD("images"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /images/generations"},
	{WORD("edits"), WORD("images"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /images/edits"},
	{WORD("variations"), WORD("images"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /images/variations"},
	{WORD("speech"), WORD("audio"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /audio/speech"},
	{WORD("transcriptions"), WORD("audio"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /audio/transcriptions"},
	{WORD("translations"), WORD("audio"), ANY, NEED_NOTHING, PROTOCOL_OPENAI, EXACT, "llm path /audio/translations"},
	{WORD("invoke"), ANY, WORD("model"), NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path /model/ID/invoke"},
	{WORD("invoke-with-response-stream"), ANY, WORD("model"), NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path /model/ID/invoke"},
	{WORD("converse"), ANY, WORD("model"), NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path /model/ID/converse"},
	{WORD("converse-stream"), ANY, WORD("model"), NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path /model/ID/converse"},
	/* Cheap and without a choice in the answer: by path, so that the judge may lower it. */
	{WORD("embed"), WORD("api"), ANY, NEED_NOTHING, PROTOCOL_OLLAMA, CLASS_BY_PATH, "llm path embed"},
	{WORD("embeddings"), WORD("api"), ANY, NEED_NOTHING, PROTOCOL_OLLAMA, CLASS_BY_PATH, "llm path embeddings"},
	{WORD("embeddings"), ANY, ANY, NEED_NOTHING, PROTOCOL_OPENAI, CLASS_BY_PATH, "llm path embeddings"},
	{WORD("embedding"), ANY, ANY, NEED_NOTHING, PROTOCOL_LLAMA_CPP, CLASS_BY_PATH, "llm path embedding"},
	{WORD("embed"), ANY, ANY, NEED_NOTHING, PROTOCOL_LLM, CLASS_BY_PATH, "llm path embed"},
	{WORD("completions"), ANY, ANY, NEED_MODEL, PROTOCOL_OPENAI, EXACT, "llm path completions with a model"},
	{WORD("responses"), ANY, ANY, NEED_MODEL, PROTOCOL_OPENAI, EXACT, "llm path responses with a model"},
	{WORD("messages"), ANY, ANY, NEED_MODEL, PROTOCOL_ANTHROPIC, EXACT, "llm path messages with a model"},
	{WORD("chat"), ANY, ANY, NEED_MODEL, PROTOCOL_LLM, EXACT, "llm path chat with a model"},
	{WORD("generate"), ANY, ANY, NEED_MODEL, PROTOCOL_LLM, EXACT, "llm path generate with a model"},
	{WORD("interactions"), ANY, ANY, NEED_MODEL, PROTOCOL_GEMINI, EXACT, "llm path interactions with a model"},
};

/* Custom methods of Gemini and Vertex: /v1beta/models/NAME:generateContent. */
static const struct llm_path llm_verbs[] = {
	{WORD("generateContent"), ANY, ANY, NEED_NOTHING, PROTOCOL_GEMINI, EXACT, "llm path :generateContent"},
	{WORD("streamGenerateContent"), ANY, ANY, NEED_NOTHING, PROTOCOL_GEMINI, EXACT, "llm path :streamGenerateContent"},
	{WORD("rawPredict"), ANY, ANY, NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path :rawPredict"},
	{WORD("streamRawPredict"), ANY, ANY, NEED_NOTHING, PROTOCOL_LLM, EXACT, "llm path :streamRawPredict"},
	{WORD("embedContent"), ANY, ANY, NEED_NOTHING, PROTOCOL_GEMINI, CLASS_BY_PATH, "llm path :embedContent"},
	{WORD("batchEmbedContents"), ANY, ANY, NEED_NOTHING, PROTOCOL_GEMINI, CLASS_BY_PATH, "llm path :batchEmbedContents"},
};

/* What the body tells. */
struct llm_body {
	enum body_view view;
	struct bytes model; /* JSON string */
	bool prompt;
};

static struct llm_body look(const struct call *call)
{
	static const char *const prompts[] = {"messages", "prompt", "input", "inputs"};
	struct llm_body body = {0};
	struct bytes whole, name, value;
	struct json_scan scan;

	body.view = classify_body_json(call, &whole);
	if (body.view != BODY_JSON || !json_scan_is_object(whole))
		return body;
	json_scan_open(&scan, whole);
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "model") && json_scan_is_string(value))
			body.model = value;
		for (size_t i = 0; i < sizeof(prompts) / sizeof(prompts[0]); i++)
			body.prompt = body.prompt || json_scan_says(name, prompts[i]);
	}
	return scan.broken ? (struct llm_body){.view = BODY_OTHER} : body;
}

static bool need_is_met(enum need need, const struct llm_body *body)
{
	if (need == NEED_NOTHING || body->model.size)
		return true;
	return need == NEED_PROMPT && (body->prompt || body->view == BODY_NOT_SEEN);
}

/* The model where the body does not say it: models/NAME:verb, model/NAME/invoke, deployments/NAME/chat/completions. */
static struct bytes model_in_path(const struct call *call, const struct path_tail *tail)
{
	static const char deployments[] = "/deployments/";
	static const struct word bedrock = WORD("model");
	struct bytes model = tail->last, verb = classify_paths_verb(tail->last);
	const uint8_t *at;

	if (verb.size) {
		model.size -= verb.size + 1;
		return model;
	}
	if (word_is(&bedrock, tail->third))
		return tail->second;
	at = call->path.size ? memmem(call->path.data, call->path.size, deployments, sizeof(deployments) - 1) : NULL;
	if (!at)
		return (struct bytes){0};
	at += sizeof(deployments) - 1;
	model = (struct bytes){at, (size_t)(call->path.data + call->path.size - at)};
	model.size = bytes_find(model, '/');
	return model;
}

static bool path_fits(const struct llm_path *path, const struct path_tail *tail)
{
	return word_is(&path->last, tail->last) && word_is(&path->second, tail->second) &&
	       word_is(&path->third, tail->third);
}

bool classify_llm(struct call *call, const struct path_tail *tail, struct class_verdict *ret_verdict)
{
	struct bytes verb = classify_paths_verb(tail->last);
	const struct llm_path *found = NULL;
	struct llm_body body = {0};
	bool looked = false;

	for (size_t i = 0; verb.size && !found && i < sizeof(llm_verbs) / sizeof(llm_verbs[0]); i++)
		if (word_is(&llm_verbs[i].last, verb))
			found = &llm_verbs[i];
	for (size_t i = 0; !found && i < sizeof(llm_paths) / sizeof(llm_paths[0]); i++) {
		if (!path_fits(&llm_paths[i], tail))
			continue;
		if (!looked)
			body = look(call);
		looked = true;
		if (need_is_met(llm_paths[i].need, &body))
			found = &llm_paths[i];
	}
	if (!found)
		return false;
	call->protocol = found->protocol;
	if (body.model.size)
		classify_body_model_json(call, body.model);
	else
		classify_body_model(call, model_in_path(call, tail));
	*ret_verdict = (struct class_verdict){.class = CLASS_LLM, .source = found->source, .by = found->by};
	return true;
}
