/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The key of a model call: what was asked of which model, whoever asked,
 * wherever, and however the answer was to be brought. The wire and the commands
 * that ask before they call make it here, so that both say the same.
 *
 *	key = SHA-256 over F("nightclerk model key") F(schema version) F(model) F(extra) F(prompt hash)
 *	F(x) = the length of x as 8 bytes, little endian, and x
 *
 * The prompt hash (32 bytes) is the SHA-256 of the prompt-level canonical form:
 * the canonical body (canonical.h) without what a protocol, a policy's masks or
 * a key-like member makes volatile and without the budget of output tokens
 * (classify.h); where the body has no canonical form, of the body as it was
 * sent. It holds seed, n and temperature: other seeds are other work.
 *
 * Pure: no clock, no I/O.
 */
#ifndef NIGHTCLERK_MODEL_KEY_H
#define NIGHTCLERK_MODEL_KEY_H

#include "call.h"

#define MODEL_KEY_SCHEMA_VERSION "v1" /* where the user names none */

struct model_key_parts {
	struct bytes schema_version; /* of what the caller makes of an answer: another one is other work */
	struct bytes model;
	struct bytes extra;	   /* of the caller's choice, such as a commit; empty on the wire */
	struct digest prompt_hash; /* of a job without HTTP: digest_of() its prompt */
};

/* 0 or -ENOMEM (libcrypto failed). */
int model_key(const struct model_key_parts *parts, struct digest *ret_key);

/* ---- from a call ---- */

struct model_keys; /* the schema version and work space */

/* schema_version is copied; NULL = MODEL_KEY_SCHEMA_VERSION. NULL when out of memory. */
struct model_keys *model_keys_new(const char *schema_version);
void model_keys_free(struct model_keys *keys); /* accepts NULL */

/*
 * Fills has_model_key, model_key and temperature of a call that was classified
 * as llm (classify_call()) and whose sha is known; of any other it clears
 * them. canonical_text is that of call_body_canonical(). 0 or -ENOMEM.
 */
int model_keys_call(struct model_keys *keys, struct call *call, struct bytes canonical_text);

/* ---- from a request that is still to be sent ---- */

struct policy;

struct model_request {
	struct bytes path;	     /* "/v1/chat/completions"; a query may follow */
	struct bytes content_type;   /* empty = application/json */
	struct bytes body;	     /* without content coding */
	struct bytes extra;	     /* as in model_key_parts */
	const char *schema_version;  /* NULL = MODEL_KEY_SCHEMA_VERSION */
	const struct policy *policy; /* NULL = none. Rules that name a host, a port or a header do not match */
};

struct model_request_key {
	struct digest key;
	enum call_temperature temperature;
	uint8_t model[CALL_NAME_BYTES];
	size_t model_size; /* 0: the request names none */
};

/*
 * The key that the wire gives the same POST (where extra is empty). 0, -ENOMEM,
 * or -EINVAL: path and body are no model call that classify.h knows.
 */
int model_key_of_request(const struct model_request *request, struct model_request_key *ret_key);

#endif
