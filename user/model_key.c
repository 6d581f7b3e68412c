/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request that is still to be sent becomes a call like one from the wire and
 * goes the same way: that is why the two keys are one.
 */
#include "model_key.h"
#include "call_body.h"
#include "classify.h"
#include "idempotency.h"
#include "json_scan.h"
#include "policy.h"

#include <errno.h>

#define KEPT_BYTES (4 * 1024 * 1024)

int model_key(const struct model_key_parts *parts, struct digest *ret_key)
{
	const struct bytes fields[] = {
		BYTES("nightclerk model key"),
		parts->schema_version,
		parts->model,
		parts->extra,
		{parts->prompt_hash.byte, DIGEST_BYTES},
	};
	struct digest_state *hash = digest_state_new();
	int err = hash ? digest_start(hash) : -ENOMEM;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]) && !err; i++)
		err = digest_add_field(hash, fields[i]);
	if (!err)
		err = digest_finish(hash, ret_key);
	digest_state_free(hash);
	return err;
}

/* ---- from a call ---- */

struct model_keys {
	struct buffer schema_version;
	struct buffer prompt;	/* without what is volatile */
	struct buffer unmasked; /* what a policy leaves of it */
	struct buffer masked;	/* what it takes out */
	struct buffer keyless;	/* without the member that is a key */
};

struct model_keys *model_keys_new(const char *schema_version)
{
	struct model_keys *keys = calloc(1, sizeof(*keys));

	if (!keys)
		return NULL;
	if (buffer_append(&keys->schema_version,
			  bytes_of_string(schema_version ? schema_version : MODEL_KEY_SCHEMA_VERSION))) {
		model_keys_free(keys);
		return NULL;
	}
	return keys;
}

void model_keys_free(struct model_keys *keys)
{
	if (!keys)
		return;
	buffer_done(&keys->schema_version);
	buffer_done(&keys->prompt);
	buffer_done(&keys->unmasked);
	buffer_done(&keys->masked);
	buffer_done(&keys->keyless);
	free(keys);
}

/* Memory that one huge prompt took is not kept for good. */
static void use_again(struct buffer *buffer)
{
	if (buffer->capacity > KEPT_BYTES)
		buffer_done(buffer);
	buffer_clear(buffer);
}

static int cut_masked(struct model_keys *keys, const struct call *call, struct bytes *text)
{
	const struct policy_rule *rule = call->rule;
	int changed;

	if (!rule || rule->mask_count == 0)
		return 0;
	use_again(&keys->masked);
	use_again(&keys->unmasked);
	changed = mask_text(rule->masks, rule->mask_count, *text, &keys->unmasked, &keys->masked);
	if (changed == 1)
		*text = buffer_bytes(&keys->unmasked);
	return changed < 0 ? changed : 0;
}

static int cut_key(struct model_keys *keys, const struct call *call, struct bytes *text)
{
	struct bytes member = idempotency_member(call, *text), rest = *text, before;
	int err;

	if (!member.size)
		return 0;
	before = bytes_take(&rest, (size_t)(member.data - text->data));
	bytes_take(&rest, member.size);
	use_again(&keys->keyless);
	err = buffer_append(&keys->keyless, before);
	if (!err)
		err = buffer_append(&keys->keyless, rest);
	*text = buffer_bytes(&keys->keyless);
	return err;
}

/* The prompt-level canonical form of a JSON body. */
static int prompt_of_json(struct model_keys *keys, const struct call *call, struct bytes *text)
{
	int changed;

	use_again(&keys->prompt);
	changed = classify_prompt_text(call, *text, &keys->prompt);
	if (changed < 0)
		return changed;
	if (changed == 1)
		*text = buffer_bytes(&keys->prompt);
	changed = cut_masked(keys, call, text);
	return changed < 0 ? changed : cut_key(keys, call, text);
}

static int prompt_hash(struct model_keys *keys, const struct call *call, struct bytes text, struct digest *ret_hash)
{
	int err;

	if (call->canon != CANONICAL_JSON || !text.size) {
		*ret_hash = call->sha;
		return 0;
	}
	err = prompt_of_json(keys, call, &text);
	return err ? err : digest_of(text, ret_hash);
}

/* ---- temperature ---- */

/* At the top level, or where Gemini and Ollama keep it. json is canonical: zero has one spelling. */
static enum call_temperature temperature_of(struct bytes json)
{
	static const char *const parents[] = {"generationConfig", "generation_config", "options", "inferenceConfig"};
	struct bytes temperature = json_scan_member(json, "temperature");

	for (size_t i = 0; i < sizeof(parents) / sizeof(parents[0]) && !temperature.size; i++)
		temperature = json_scan_member(json_scan_member(json, parents[i]), "temperature");
	if (!temperature.size || json_scan_is_null(temperature))
		return TEMPERATURE_ABSENT;
	return bytes_equal(temperature, BYTES("0")) ? TEMPERATURE_ZERO : TEMPERATURE_ABOVE_ZERO;
}

static int make_key(struct model_keys *keys, struct call *call, struct bytes canonical_text, struct bytes extra)
{
	struct model_key_parts parts = {
		.schema_version = buffer_bytes(&keys->schema_version),
		.model = call->model,
		.extra = extra,
	};
	int err;

	call->has_model_key = false;
	call->temperature = TEMPERATURE_ABSENT;
	if (call->class != CLASS_LLM || !call->has_sha)
		return 0;
	if (call->canon == CANONICAL_JSON)
		call->temperature = temperature_of(canonical_text);
	err = prompt_hash(keys, call, canonical_text, &parts.prompt_hash);
	if (!err)
		err = model_key(&parts, &call->model_key);
	call->has_model_key = !err;
	return err;
}

int model_keys_call(struct model_keys *keys, struct call *call, struct bytes canonical_text)
{
	return make_key(keys, call, canonical_text, (struct bytes){0});
}

/* ---- from a request that is still to be sent ---- */

/* As connection.c makes it of a POST. */
static int call_of_request(const struct model_request *request, struct call *ret_call)
{
	struct bytes target = request->path;

	*ret_call = (struct call){
		.method = BYTES("POST"),
		.path = bytes_take(&target, bytes_find(target, '?')),
		.content_type = request->content_type.size ? request->content_type : BYTES("application/json"),
		.request_complete = true,
		.body_bytes = request->body.size,
		.has_raw_sha = true,
		.body_held = request->body.size <= LIMIT_BODY_BYTES,
	};
	if (ret_call->body_held)
		ret_call->body = request->body;
	return digest_of(request->body, &ret_call->raw_sha);
}

static int key_of_call(const struct model_request *request, struct model_keys *keys, struct classifier *classifier,
		       struct model_request_key *ret_key)
{
	struct call_body body = {0};
	struct bytes text;
	struct call call;
	int err = call_of_request(request, &call);

	if (!err)
		err = call_body_canonical(&body, &call, &text);
	if (!err)
		err = classify_call(classifier, &call);
	if (!err && call.class != CLASS_LLM)
		err = -EINVAL;
	if (!err)
		err = make_key(keys, &call, text, request->extra);
	if (!err) {
		ret_key->key = call.model_key;
		ret_key->temperature = call.temperature;
		ret_key->model_size = call.model.size;
		memcpy(ret_key->model, call.model_text, CALL_NAME_BYTES);
	}
	call_body_done(&body);
	return err;
}

int model_key_of_request(const struct model_request *request, struct model_request_key *ret_key)
{
	struct model_keys *keys = model_keys_new(request->schema_version);
	struct classifier *classifier = classifier_new();
	int err = -ENOMEM;

	if (keys && classifier) {
		classifier_set_policy(classifier, request->policy);
		err = key_of_call(request, keys, classifier, ret_key);
	}
	classifier_free(classifier);
	model_keys_free(keys);
	return err;
}
