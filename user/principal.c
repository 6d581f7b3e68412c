/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credentials. Each kind is hashed under its own word, so that a user's name
 * is never taken for a token that reads the same. What cannot be taken apart
 * counts as a whole.
 */
#include "principal.h"
#include "json_scan.h"

#include <errno.h>

struct identity {
	const char *kind;
	struct bytes first;
	struct bytes second;
};

/* Both alphabets (RFC 4648 sections 4 and 5), padded or not. False when it is neither. */
static bool decode_base64(struct bytes text, struct buffer *out, int *ret_err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint32_t bits = 0;
	unsigned int bit_count = 0;
	const char *found;

	*ret_err = buffer_reserve(out, text.size);
	if (*ret_err)
		return false;
	while (text.size && text.data[text.size - 1] == '=')
		text.size--;
	for (size_t i = 0; i < text.size; i++) {
		uint8_t c = text.data[i] == '-' ? '+' : text.data[i] == '_' ? '/' : text.data[i];

		found = c ? strchr(letters, c) : NULL;
		if (!found)
			return false;
		bits = bits << 6 | (uint32_t)(found - letters);
		bit_count += 6;
		if (bit_count >= 8) {
			bit_count -= 8;
			out->data[out->size++] = (uint8_t)(bits >> bit_count);
		}
	}
	return true;
}

/* Credential=AKID/20260101/region/service/aws4_request, SignedHeaders=..., Signature=... */
static bool identity_of_sigv4(struct bytes parameters, struct identity *ret_identity)
{
	const struct bytes word = BYTES("Credential=");
	const uint8_t *found;
	struct bytes key;

	if (!parameters.size)
		return false;
	found = memmem(parameters.data, parameters.size, word.data, word.size);
	if (!found)
		return false;
	bytes_take(&parameters, (size_t)(found - parameters.data) + word.size);
	key = bytes_take(&parameters, bytes_find(parameters, '/'));
	if (!key.size || !parameters.size)
		return false;
	*ret_identity = (struct identity){"sigv4", key, {0}};
	return true;
}

static bool identity_of_basic(struct bytes token, struct buffer *scratch,
			      struct identity *ret_identity, int *ret_err)
{
	struct bytes user;
	size_t colon;

	if (!decode_base64(token, scratch, ret_err))
		return false;
	user = buffer_bytes(scratch);
	colon = bytes_find(user, ':');
	if (colon == user.size)
		return false;
	user.size = colon;
	*ret_identity = (struct identity){"basic", user, {0}};
	return true;
}

/* header "." payload "." signature (RFC 7519 section 3); values are compared as written. */
static bool identity_of_jwt(struct bytes token, struct buffer *scratch,
			    struct identity *ret_identity, int *ret_err)
{
	struct bytes payload, object, name, value, issuer = {0}, subject = {0};
	struct json_scan scan;

	bytes_take(&token, bytes_find(token, '.'));
	bytes_take(&token, 1);
	payload = bytes_take(&token, bytes_find(token, '.'));
	bytes_take(&token, 1);
	if (!payload.size || !token.size || bytes_find(token, '.') < token.size)
		return false;
	if (!decode_base64(payload, scratch, ret_err) ||
	    !json_scan_whole(buffer_bytes(scratch), &object))
		return false;
	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "iss") && json_scan_is_string(value))
			issuer = value;
		else if (json_scan_says(name, "sub") && json_scan_is_string(value))
			subject = value;
	}
	if (scan.broken || !subject.size)
		return false;
	*ret_identity = (struct identity){"jwt", issuer, subject};
	return true;
}

static int identity_of(struct bytes credential, struct buffer *scratch,
		       struct identity *ret_identity, bool *ret_bearer)
{
	struct bytes rest = credential, scheme = bytes_take(&rest, bytes_find(rest, ' '));
	struct bytes token = bytes_trim(rest);
	bool found = false;
	int err = 0;

	*ret_bearer = bytes_equal_nocase(scheme, BYTES("Bearer")) && token.size;
	if (*ret_bearer)
		found = identity_of_jwt(token, scratch, ret_identity, &err);
	else if (bytes_equal_nocase(scheme, BYTES("Basic")))
		found = identity_of_basic(token, scratch, ret_identity, &err);
	else if (bytes_starts_with(scheme, BYTES("AWS4-")))
		found = identity_of_sigv4(token, ret_identity);
	if (!found)
		*ret_identity = (struct identity){"authorization", credential, {0}};
	return err;
}

/* An API key in a header of its own, or NULL. */
static const struct http_field *api_key_of(const struct http_head *head,
					   struct identity *ret_identity)
{
	static const struct bytes names[] = {BYTES("x-api-key"), BYTES("api-key"), BYTES("x-goog-api-key")};
	const struct http_field *field;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		field = http_head_find(head, names[i]);
		if (field && field->value.size) {
			*ret_identity = (struct identity){(const char *)names[i].data, field->value, {0}};
			return field;
		}
	}
	return NULL;
}

static int hash_identity(struct digest_state *hash, struct bytes salt,
			 const struct identity *identity, struct digest *ret_digest)
{
	int err = digest_start(hash);

	if (!err)
		err = digest_add_field(hash, salt);
	if (!err)
		err = digest_add_field(hash, BYTES("principal"));
	if (!err)
		err = digest_add_field(hash, bytes_of_string(identity->kind));
	if (!err)
		err = digest_add_field(hash, identity->first);
	if (!err)
		err = digest_add_field(hash, identity->second);
	return err ? err : digest_finish(hash, ret_digest);
}

int principal_of(struct digest_state *hash, struct bytes salt, struct call *call)
{
	const struct http_field *authorization;
	struct identity identity;
	struct buffer scratch = {0};
	int err = 0;

	call->has_principal = false;
	call->principal_is_bearer = false;
	authorization = call->head ? http_head_find(call->head, BYTES("Authorization")) : NULL;
	if (authorization && authorization->value.size)
		err = identity_of(authorization->value, &scratch, &identity,
				  &call->principal_is_bearer);
	else if (!call->head || !api_key_of(call->head, &identity))
		return 0;
	if (!err)
		err = hash_identity(hash, salt, &identity, &call->principal);
	call->has_principal = !err;
	buffer_done(&scratch);
	return err;
}
