/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of a model: they cost money and have no other effect. Known by their
 * path; where a path has a common name (/messages may be a chat or an SMS
 * service), the body must say which model is asked, or hold a prompt.
 */
#include "classify.h"

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

#define COSTLY(last, second, third, need, api, by) \
	{last, second, third, NEED_##need, PROTOCOL_##api, CLASS_BY_PROTOCOL, "llm path " by}
/* Little money, and no choice in the answer: by path, so that the judge may lower it. */
#define CHEAP(last, second, third, need, api, by) \
	{last, second, third, NEED_##need, PROTOCOL_##api, CLASS_BY_PATH, "llm path " by}

static const struct llm_path llm_paths[] = {
	COSTLY(WORD("completions"), WORD("chat"), ANY, NOTHING, OPENAI, "/chat/completions"),
	COSTLY(WORD("completions"), WORD("v1"), ANY, PROMPT, OPENAI, "/v1/completions"),
	COSTLY(WORD("responses"), WORD("v1"), ANY, PROMPT, OPENAI, "/v1/responses"),
	COSTLY(WORD("messages"), WORD("v1"), ANY, PROMPT, ANTHROPIC, "/v1/messages"),
	COSTLY(WORD("generate"), WORD("api"), ANY, PROMPT, OLLAMA, "/api/generate"),
	COSTLY(WORD("chat"), WORD("api"), ANY, PROMPT, OLLAMA, "/api/chat"),
	COSTLY(WORD("completion"), ANY, ANY, PROMPT, LLAMA_CPP, "/completion"),
	COSTLY(WORD("infill"), ANY, ANY, NOTHING, LLAMA_CPP, "/infill"),
	COSTLY(WORD("generations"), WORD("images"), ANY, NOTHING, OPENAI, "/images/generations"),
	COSTLY(WORD("edits"), WORD("images"), ANY, NOTHING, OPENAI, "/images/edits"),
	COSTLY(WORD("variations"), WORD("images"), ANY, NOTHING, OPENAI, "/images/variations"),
	COSTLY(WORD("speech"), WORD("audio"), ANY, NOTHING, OPENAI, "/audio/speech"),
	COSTLY(WORD("transcriptions"), WORD("audio"), ANY, NOTHING, OPENAI,
	       "/audio/transcriptions"),
	COSTLY(WORD("translations"), WORD("audio"), ANY, NOTHING, OPENAI, "/audio/translations"),
	COSTLY(WORD("invoke"), ANY, WORD("model"), NOTHING, LLM, "/model/ID/invoke"),
	COSTLY(WORD("invoke-with-response-stream"), ANY, WORD("model"), NOTHING, LLM,
	       "/model/ID/invoke"),
	COSTLY(WORD("converse"), ANY, WORD("model"), NOTHING, LLM, "/model/ID/converse"),
	COSTLY(WORD("converse-stream"), ANY, WORD("model"), NOTHING, LLM, "/model/ID/converse"),
	CHEAP(WORD("embed"), WORD("api"), ANY, NOTHING, OLLAMA, "embed"),
	CHEAP(WORD("embeddings"), WORD("api"), ANY, NOTHING, OLLAMA, "embeddings"),
	CHEAP(WORD("embeddings"), ANY, ANY, NOTHING, OPENAI, "embeddings"),
	CHEAP(WORD("embedding"), ANY, ANY, NOTHING, LLAMA_CPP, "embedding"),
	CHEAP(WORD("embed"), ANY, ANY, NOTHING, LLM, "embed"),
	COSTLY(WORD("completions"), ANY, ANY, MODEL, OPENAI, "completions with a model"),
	COSTLY(WORD("responses"), ANY, ANY, MODEL, OPENAI, "responses with a model"),
	COSTLY(WORD("messages"), ANY, ANY, MODEL, ANTHROPIC, "messages with a model"),
	COSTLY(WORD("chat"), ANY, ANY, MODEL, LLM, "chat with a model"),
	COSTLY(WORD("generate"), ANY, ANY, MODEL, LLM, "generate with a model"),
	COSTLY(WORD("interactions"), ANY, ANY, MODEL, GEMINI, "interactions with a model"),
};

/* Custom methods of Gemini and Vertex: /v1beta/models/NAME:generateContent. */
static const struct llm_path llm_verbs[] = {
	COSTLY(WORD("generateContent"), ANY, ANY, NOTHING, GEMINI, ":generateContent"),
	COSTLY(WORD("streamGenerateContent"), ANY, ANY, NOTHING, GEMINI, ":streamGenerateContent"),
	COSTLY(WORD("rawPredict"), ANY, ANY, NOTHING, LLM, ":rawPredict"),
	COSTLY(WORD("streamRawPredict"), ANY, ANY, NOTHING, LLM, ":streamRawPredict"),
	CHEAP(WORD("embedContent"), ANY, ANY, NOTHING, GEMINI, ":embedContent"),
	CHEAP(WORD("batchEmbedContents"), ANY, ANY, NOTHING, GEMINI, ":batchEmbedContents"),
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
		for (size_t i = 0; i < COUNT_OF(prompts); i++)
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

/*
 * The model where the body does not say it: models/NAME:verb, model/NAME/invoke,
 * deployments/NAME/chat/completions.
 */
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
	at = call->path.size ? memmem(call->path.data, call->path.size, deployments,
				      sizeof(deployments) - 1)
			     : NULL;
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

bool classify_llm(struct call *call, const struct path_tail *tail,
		  struct class_verdict *ret_verdict)
{
	struct bytes verb = classify_paths_verb(tail->last);
	const struct llm_path *found = NULL;
	struct llm_body body = {0};
	bool looked = false;

	for (size_t i = 0; verb.size && !found && i < COUNT_OF(llm_verbs); i++)
		if (word_is(&llm_verbs[i].last, verb))
			found = &llm_verbs[i];
	for (size_t i = 0; !found && i < COUNT_OF(llm_paths); i++) {
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
	*ret_verdict = (struct class_verdict){
		.class = CLASS_LLM, .source = found->source, .by = found->by};
	return true;
}

/* ---- the same, but for how the answer is brought ---- */

static const struct {
	struct word stream;
	struct word plain;
} stream_names[] = {
	{WORD("streamGenerateContent"), WORD("generateContent")},
	{WORD("streamRawPredict"), WORD("rawPredict")},
	{WORD("invoke-with-response-stream"), WORD("invoke")},
	{WORD("converse-stream"), WORD("converse")},
};

int classify_prompt_path(const struct call *call, struct buffer *out)
{
	struct path_tail tail = classify_paths_tail(call->path);
	struct bytes name = classify_paths_verb(tail.last), before = call->path;
	int err;

	if (!name.size)
		name = tail.last;
	for (size_t i = 0; i < COUNT_OF(stream_names) && name.size; i++) {
		if (!word_is(&stream_names[i].stream, name))
			continue;
		before.size = (size_t)(name.data - call->path.data);
		err = buffer_append(out, before);
		return err ? err : buffer_append(out, bytes_of_string(stream_names[i].plain.text));
	}
	return buffer_append(out, call->path);
}

int classify_prompt_query(const struct call *call, struct bytes sorted_query, struct buffer *out)
{
	bool first = true;
	int err = 0;

	if (call->protocol != PROTOCOL_GEMINI)
		return buffer_append(out, sorted_query);
	while (sorted_query.size && !err) {
		struct bytes parameter = bytes_take(&sorted_query, bytes_find(sorted_query, '&'));

		bytes_take(&sorted_query, 1);
		if (bytes_starts_with(parameter, BYTES("alt=")))
			continue;
		if (!first)
			err = buffer_append_byte(out, '&');
		if (!err)
			err = buffer_append(out, parameter);
		first = false;
	}
	return err;
}
