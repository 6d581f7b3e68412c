/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Canonical JSON text without its volatile members: what two attempts of one
 * operation differ in by rule of their protocol, and in nothing else. Members
 * of protocols that were not recognised always stay.
 *
 * What stays is copied in runs, and not at all while nothing has to go: a
 * prompt may be megabytes. Of the nested objects only those that the table
 * names are opened.
 */
#include "classify.h"

#include "classify_rules.h"

#define BIT(protocol) (1U << (protocol))
#define RPC (BIT(PROTOCOL_JSON_RPC) | BIT(PROTOCOL_MCP) | BIT(PROTOCOL_A2A))
#define OPENAI BIT(PROTOCOL_OPENAI)
#define ANTHROPIC BIT(PROTOCOL_ANTHROPIC)
#define OLLAMA BIT(PROTOCOL_OLLAMA)
#define LLAMA_CPP BIT(PROTOCOL_LLAMA_CPP)
#define ANY_LLM (OPENAI | ANTHROPIC | OLLAMA | LLAMA_CPP | BIT(PROTOCOL_GEMINI) | BIT(PROTOCOL_LLM))

struct volatile_member {
	unsigned int protocols;
	struct word parent; /* a top-level object; ANY = the top level itself */
	struct word name;
	bool prompt_only;
};

static const struct volatile_member volatile_members[] = {
	{RPC, ANY, WORD("id"), false},
	{BIT(PROTOCOL_MCP), WORD("params"), WORD("_meta"), false},
	{OPENAI | ANTHROPIC | OLLAMA | LLAMA_CPP, ANY, WORD("stream"), false},
	{OPENAI | ANTHROPIC, ANY, WORD("metadata"), false},
	{OPENAI, ANY, WORD("user"), false},
	{OPENAI, ANY, WORD("store"), false},
	{OPENAI, ANY, WORD("stream_options"), false},
	{OPENAI, ANY, WORD("service_tier"), false},
	{OPENAI, ANY, WORD("prompt_cache_key"), false},
	{OPENAI, ANY, WORD("safety_identifier"), false},
	/* vLLM, on the paths of OpenAI */
	{OPENAI, ANY, WORD("request_id"), false},
	{OPENAI, ANY, WORD("priority"), false},
	{OPENAI, ANY, WORD("cache_salt"), false},
	{OLLAMA, ANY, WORD("keep_alive"), false},
	/* llama.cpp, on its own paths and on those of OpenAI */
	{OPENAI | LLAMA_CPP, ANY, WORD("id_slot"), false},
	{OPENAI | LLAMA_CPP, ANY, WORD("cache_prompt"), false},
	{OPENAI | LLAMA_CPP, ANY, WORD("timings_per_token"), false},
	{ANY_LLM, ANY, WORD("max_tokens"), true},
	{ANY_LLM, ANY, WORD("max_output_tokens"), true},
	{ANY_LLM, ANY, WORD("max_completion_tokens"), true},
	{LLAMA_CPP, ANY, WORD("n_predict"), true},
	{OLLAMA, WORD("options"), WORD("num_predict"), true},
	{BIT(PROTOCOL_GEMINI), WORD("generationConfig"), WORD("maxOutputTokens"), true},
	{BIT(PROTOCOL_LLM), WORD("inferenceConfig"), WORD("maxTokens"), true},
};

#define MEMBER_COUNT COUNT_OF(volatile_members)

struct cutter {
	const struct volatile_member *members[MEMBER_COUNT]; /* those that apply */
	size_t count;
	const uint8_t *pending; /* kept, but not copied yet, from here on */
	struct buffer *out;
	bool removed;
	bool broken;
	int error;
};

/* In canonical text a name that needs no escape has none. */
static bool names(const struct word *word, struct bytes name)
{
	return name.size == word->size + 2 && memcmp(name.data + 1, word->text, word->size) == 0;
}

/* parent NULL = the top level. */
static bool is_volatile(const struct cutter *cutter, const struct word *parent, struct bytes name)
{
	for (size_t i = 0; i < cutter->count; i++) {
		const struct volatile_member *member = cutter->members[i];
		bool level = parent ? member->parent.text == parent->text : !member->parent.text;

		if (level && names(&member->name, name))
			return true;
	}
	return false;
}

/* The table's word for an object that holds volatile members, or NULL. */
static const struct word *parent_of(const struct cutter *cutter, struct bytes name,
				    struct bytes value)
{
	for (size_t i = 0; i < cutter->count; i++) {
		const struct word *parent = &cutter->members[i]->parent;

		if (parent->text && json_scan_is_object(value) && names(parent, name))
			return parent;
	}
	return NULL;
}

static bool all_volatile(const struct cutter *cutter, struct bytes object,
			 const struct word *parent)
{
	struct bytes name, value;
	struct json_scan scan;

	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value))
		if (!is_volatile(cutter, parent, name))
			return false;
	return true;
}

static void put_until(struct cutter *cutter, const uint8_t *end)
{
	struct bytes run = {cutter->pending, (size_t)(end - cutter->pending)};

	if (!cutter->error)
		cutter->error = buffer_append(cutter->out, run);
}

static void remove_run(struct cutter *cutter, const uint8_t *start, const uint8_t *end)
{
	put_until(cutter, start);
	cutter->pending = end;
	cutter->removed = true;
}

/*
 * A member goes together with the comma before it; in front of the first one
 * that stays, a comma that stood after a removed one goes too.
 */
static void cut_object(struct cutter *cutter, struct bytes object, const struct word *parent)
{
	const uint8_t *end_of_last = object.data + 1;
	struct bytes name, value;
	struct json_scan scan;
	bool kept = false, first = true;

	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value)) {
		const struct word *inner = parent ? NULL : parent_of(cutter, name, value);

		/* An object that is left empty, or was, says as much as if it were not there. */
		if (is_volatile(cutter, parent, name) ||
		    (inner && all_volatile(cutter, value, inner))) {
			remove_run(cutter, end_of_last, value.data + value.size);
		} else {
			if (!kept && !first)
				remove_run(cutter, end_of_last, name.data);
			if (inner)
				cut_object(cutter, value, inner); /* one level, by the table */
			kept = true;
		}
		first = false;
		end_of_last = value.data + value.size;
	}
	cutter->broken = cutter->broken || scan.broken;
}

static void cut_batch(struct cutter *cutter, struct bytes array)
{
	struct bytes name, value;
	struct json_scan scan;

	json_scan_open(&scan, array);
	while (json_scan_next(&scan, &name, &value))
		if (json_scan_is_object(value))
			cut_object(cutter, value, NULL);
	cutter->broken = cutter->broken || scan.broken;
}

static int cut(const struct call *call, bool prompt, struct bytes text, struct buffer *out)
{
	struct cutter cutter = {.pending = text.data, .out = out};
	unsigned int protocol = BIT(call->protocol);
	bool batch = json_scan_is_array(text) && (protocol & RPC);

	buffer_clear(out);
	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if ((volatile_members[i].protocols & protocol) &&
		    (prompt || !volatile_members[i].prompt_only))
			cutter.members[cutter.count++] = &volatile_members[i];
	if (call->canon != CANONICAL_JSON || cutter.count == 0 ||
	    (!batch && !json_scan_is_object(text)))
		return 0;
	if (batch)
		cut_batch(&cutter, text);
	else
		cut_object(&cutter, text, NULL);
	if (cutter.removed)
		put_until(&cutter, text.data + text.size);
	if (cutter.error || cutter.broken)
		buffer_clear(out);
	if (cutter.error)
		return cutter.error;
	return cutter.removed && !cutter.broken;
}

int classify_comparable_text(const struct call *call, struct bytes canonical_text,
			     struct buffer *out)
{
	return cut(call, false, canonical_text, out);
}

int classify_prompt_text(const struct call *call, struct bytes canonical_text, struct buffer *out)
{
	return cut(call, true, canonical_text, out);
}
