/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One hash over length-prefixed fields, fed as we go: nothing is put together
 * in memory but the sorted query. Headers that change between attempts never
 * enter, because only those that are named here do.
 */
#include "fingerprint.h"
#include "ascii.h"
#include "classify.h"
#include "idempotency.h"
#include "json_text.h"
#include "principal.h"

#include <arpa/inet.h>
#include <errno.h>

#define SALT_BYTES 32
#define HOST_BYTES_MAX 256 /* a name has at most 253 (RFC 1035); a longer host goes in as it is */

struct fingerprinter {
	struct digest_state *hash;
	const struct secret_rules *secrets;
	uint8_t salt[SALT_BYTES];
	struct buffer query; /* sorted */
	struct buffer target; /* path or query of a prompt fingerprint */
	struct buffer key;   /* lent as call->idem */
	struct buffer hint;  /* lent as call->retry_hint */
};

/* Whom a call is for, what it is to do, and to what or to which part of it. */
static const struct bytes tenant_headers[] = {
	BYTES("stripe-account"), BYTES("openai-organization"), BYTES("openai-project"), BYTES("anthropic-workspace"),
	BYTES("x-amz-target"), BYTES("mcp-method"), BYTES("mcp-name"), BYTES("x-http-method-override"),
	BYTES("x-http-method"), BYTES("x-method-override"),
	BYTES("soapaction"), BYTES("destination"), BYTES("depth"), /* RFC 4918: COPY, MOVE */
	BYTES("content-range"), BYTES("upload-offset"), BYTES("upload-length"), BYTES("upload-metadata"), /* tus */
	BYTES("x-goog-upload-command"), BYTES("x-goog-upload-offset"),
	BYTES("x-amz-copy-source"), BYTES("x-amz-copy-source-range"), BYTES("x-ms-copy-source"), BYTES("x-ms-range"),
	BYTES("dropbox-api-arg"),
};

static const struct bytes retry_markers[] = {
	BYTES("x-stainless-retry-count"), BYTES("amz-sdk-invocation-id"), BYTES("amz-sdk-request"),
	BYTES("x-slack-retry-num"), BYTES("x-slack-retry-reason"), BYTES("x-github-delivery"),
};

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct fingerprinter *fingerprinter_new(const uint8_t salt[32])
{
	struct fingerprinter *fingerprinter = calloc(1, sizeof(*fingerprinter));

	if (!fingerprinter)
		return NULL;
	memcpy(fingerprinter->salt, salt, SALT_BYTES);
	fingerprinter->hash = digest_state_new();
	if (!fingerprinter->hash) {
		fingerprinter_free(fingerprinter);
		return NULL;
	}
	return fingerprinter;
}

void fingerprinter_free(struct fingerprinter *fingerprinter)
{
	if (!fingerprinter)
		return;
	digest_state_free(fingerprinter->hash);
	buffer_done(&fingerprinter->query);
	buffer_done(&fingerprinter->target);
	buffer_done(&fingerprinter->key);
	buffer_done(&fingerprinter->hint);
	free(fingerprinter);
}

void fingerprinter_set_secrets(struct fingerprinter *fingerprinter, const struct secret_rules *rules)
{
	fingerprinter->secrets = rules;
}

const struct secret_rules *fingerprinter_secrets(const struct fingerprinter *fingerprinter)
{
	return fingerprinter->secrets;
}

static struct bytes salt_of(const struct fingerprinter *fingerprinter)
{
	return (struct bytes){fingerprinter->salt, SALT_BYTES};
}

/* ---- the server ---- */

static bool is_loopback_v4(struct bytes host)
{
	char text[INET_ADDRSTRLEN];
	uint8_t address[4];

	if (host.size >= sizeof(text))
		return false;
	memcpy(text, host.data, host.size);
	text[host.size] = '\0';
	return inet_pton(AF_INET, text, address) == 1 && address[0] == 127;
}

/* host = what stands between the brackets: ::1 in any spelling, or a mapped 127.0.0.0/8. */
static bool is_loopback_v6(struct bytes host)
{
	static const uint8_t one[16] = {[15] = 1}, mapped[12] = {[10] = 0xff, [11] = 0xff};
	char text[INET6_ADDRSTRLEN];
	uint8_t address[16];

	if (host.size >= sizeof(text))
		return false;
	memcpy(text, host.data, host.size);
	text[host.size] = '\0';
	if (inet_pton(AF_INET6, text, address) != 1)
		return false;
	return memcmp(address, one, 16) == 0 ||
	       (memcmp(address, mapped, 12) == 0 && address[12] == 127);
}

/* host is in lower case and may have a port. */
static bool is_loopback(struct bytes host)
{
	if (host.size && host.data[0] == '[') {
		bytes_take(&host, 1);
		return is_loopback_v6((struct bytes){host.data, bytes_find(host, ']')});
	}
	host.size = bytes_find(host, ':');
	if (host.size && host.data[host.size - 1] == '.')
		host.size--;
	return bytes_equal(host, BYTES("localhost")) || bytes_ends_with(host, BYTES(".localhost")) ||
	       is_loopback_v4(host);
}

static int add_host(struct digest_state *hash, struct bytes host)
{
	uint8_t lower[HOST_BYTES_MAX];

	if (host.size > sizeof(lower))
		return digest_add_field(hash, host);
	for (size_t i = 0; i < host.size; i++)
		lower[i] = ascii_lower(host.data[i]);
	host.data = lower;
	return digest_add_field(hash, is_loopback(host) ? BYTES("loopback") : host);
}

/* Server, method and path: where every hash begins. */
static int add_target(struct digest_state *hash, const struct call *call, struct bytes word, struct bytes path)
{
	int err = digest_start(hash);

	if (!err)
		err = digest_add_field(hash, word);
	if (!err)
		err = digest_add_number(hash, call->class == CLASS_LLM ? 0 : call->netns);
	if (!err)
		err = digest_add_number(hash, call->server.port);
	if (!err)
		err = add_host(hash, call->has_host ? call->host : (struct bytes){0});
	if (!err)
		err = digest_add_field(hash, call->method);
	return err ? err : digest_add_field(hash, path);
}

/* ---- the fingerprint ---- */

static int sort_query(struct fingerprinter *fingerprinter, const struct call *call, struct bytes *ret_query)
{
	const char *why;

	buffer_clear(&fingerprinter->query);
	why = canonical_query(call->query, &fingerprinter->query);
	if (why == canonical_out_of_memory)
		return -ENOMEM;
	*ret_query = why ? call->query : buffer_bytes(&fingerprinter->query);
	return 0;
}

static int add_query(struct fingerprinter *fingerprinter, const struct call *call)
{
	struct bytes query;
	int err = sort_query(fingerprinter, call, &query);

	return err ? err : digest_add_field(fingerprinter->hash, query);
}

/* What is compared of a body: its text, and how it got there. */
struct compared {
	struct bytes text;
	bool is_whole;
	struct bytes key_member; /* of text; empty = none */
};

static bool is_text(const struct call *call, const struct compared *compared)
{
	return call->canon == CANONICAL_JSON && compared->text.size;
}

/*
 * JSON by the text that is compared, without the key's member, as if that had
 * never been there: only where something is missing has it to be hashed again.
 */
static int hash_body(struct digest_state *hash, const struct call *call, const struct compared *compared,
		     struct digest *ret_digest)
{
	struct bytes before, after = compared->text;
	int err;

	*ret_digest = call->sha;
	if (!is_text(call, compared) || (compared->is_whole && !compared->key_member.size))
		return 0;
	before = bytes_take(&after, compared->key_member.size ? (size_t)(compared->key_member.data - after.data) : after.size);
	bytes_take(&after, compared->key_member.size);
	err = digest_start(hash);
	if (!err)
		err = digest_add(hash, before);
	if (!err)
		err = digest_add(hash, after);
	return err ? err : digest_finish(hash, ret_digest);
}

/* Every line of a name, in order: its name, then its value. */
static int add_tenant_headers(struct digest_state *hash, const struct http_head *head)
{
	int err = 0;

	for (size_t i = 0; i < COUNT_OF(tenant_headers); i++) {
		struct bytes name = tenant_headers[i];

		if (!http_head_find(head, name))
			continue;
		for (size_t j = 0; j < head->field_count && !err; j++) {
			if (!bytes_equal_nocase(head->fields[j].name, name))
				continue;
			err = digest_add_field(hash, name);
			if (!err)
				err = digest_add_field(hash, head->fields[j].value);
		}
	}
	return err;
}

static int make_fingerprint(struct fingerprinter *fingerprinter, struct call *call, const struct compared *compared)
{
	struct digest body;
	int err = hash_body(fingerprinter->hash, call, compared, &body);

	if (!err)
		err = add_target(fingerprinter->hash, call, BYTES("exact"), call->path);
	if (!err)
		err = add_query(fingerprinter, call);
	if (!err)
		err = digest_add_field(fingerprinter->hash, is_text(call, compared) ? BYTES("text") : BYTES("hash"));
	if (!err)
		err = digest_add_field(fingerprinter->hash, (struct bytes){body.byte, DIGEST_BYTES});
	if (!err)
		err = add_tenant_headers(fingerprinter->hash, call->head);
	if (!err)
		err = digest_finish(fingerprinter->hash, &call->fingerprint);
	call->has_fingerprint = !err;
	return err;
}

static int add_prompt_target(struct fingerprinter *fingerprinter, const struct call *call)
{
	struct buffer *target = &fingerprinter->target;
	struct bytes query;
	int err;

	buffer_clear(target);
	err = classify_prompt_path(call, target);
	if (!err)
		err = add_target(fingerprinter->hash, call, BYTES("prompt"), buffer_bytes(target));
	if (!err)
		err = sort_query(fingerprinter, call, &query);
	buffer_clear(target);
	if (!err)
		err = classify_prompt_query(call, query, target);
	return err ? err : digest_add_field(fingerprinter->hash, buffer_bytes(target));
}

static int make_prompt_fingerprint(struct fingerprinter *fingerprinter, struct call *call)
{
	struct bytes key = {call->model_key.byte, DIGEST_BYTES};
	int err = add_prompt_target(fingerprinter, call);

	if (!err)
		err = digest_add_field(fingerprinter->hash, key);
	if (!err)
		err = add_tenant_headers(fingerprinter->hash, call->head);
	if (!err)
		err = digest_finish(fingerprinter->hash, &call->prompt_fingerprint);
	call->has_prompt_fingerprint = !err;
	return err;
}

static int make_key_scope(struct digest_state *hash, struct call *call)
{
	struct bytes principal = {call->principal.byte, call->has_principal ? DIGEST_BYTES : 0};
	int err = add_target(hash, call, BYTES("key"), call->path);

	if (!err)
		err = digest_add_field(hash, principal);
	if (!err)
		err = digest_add_field(hash, call->idem);
	return err ? err : digest_finish(hash, &call->key_scope);
}

/* {"amz-sdk-request":"attempt=2; max=3"}, or nothing. */
static int make_retry_hint(struct buffer *text, struct call *call)
{
	struct json_writer writer;
	const struct http_field *field;
	bool found = false;

	buffer_clear(text);
	call->retry_hint = (struct bytes){0};
	json_writer_init(&writer, text);
	json_object_open(&writer);
	for (size_t i = 0; call->head && i < COUNT_OF(retry_markers); i++) {
		field = http_head_find(call->head, retry_markers[i]);
		if (!field)
			continue;
		found = true;
		json_name(&writer, (const char *)retry_markers[i].data, retry_markers[i].size);
		json_string(&writer, field->value);
	}
	json_object_close(&writer);
	if (found && !json_writer_error(&writer))
		call->retry_hint = buffer_bytes(text);
	return json_writer_error(&writer);
}

int fingerprint_call(struct fingerprinter *fingerprinter, struct call *call,
		     struct bytes canonical_text, bool is_whole)
{
	struct compared compared = {.text = canonical_text, .is_whole = is_whole};
	int err;

	call->has_fingerprint = call->has_prompt_fingerprint = false;
	call->idem_state = IDEM_UNKNOWN; /* should we fail before we looked */
	err = make_retry_hint(&fingerprinter->hint, call);
	if (!err)
		err = principal_of(fingerprinter->hash, salt_of(fingerprinter), call);
	if (!err)
		err = idempotency_key(call, &fingerprinter->key);
	if (!err)
		err = idempotency_body_key(call, canonical_text, &fingerprinter->key, &compared.key_member);
	if (!err && call->head && call->has_sha)
		err = make_fingerprint(fingerprinter, call, &compared);
	if (!err && call->head && call->has_model_key)
		err = make_prompt_fingerprint(fingerprinter, call);
	if (!err && call->idem_state == IDEM_PRESENT)
		err = make_key_scope(fingerprinter->hash, call);
	return err;
}

int fingerprint_key_scope(struct fingerprinter *fingerprinter, struct call *call)
{
	return make_key_scope(fingerprinter->hash, call);
}

/* ---- other hashes ---- */

static int add_endpoint(struct digest_state *hash, const struct endpoint *endpoint)
{
	int err = digest_add(hash, (struct bytes){endpoint->address, sizeof(endpoint->address)});

	return err ? err : digest_add_number(hash, endpoint->port);
}

int call_id(struct fingerprinter *fingerprinter, const uint8_t boot_id[16], const struct call *call,
	    uint32_t seq, uint8_t ret_id[CALL_ID_BYTES])
{
	struct digest_state *hash = fingerprinter->hash;
	struct digest digest;
	int err = digest_start(hash);

	if (!err)
		err = digest_add(hash, (struct bytes){boot_id, 16});
	if (!err)
		err = digest_add_number(hash, call->netns);
	if (!err)
		err = add_endpoint(hash, &call->client);
	if (!err)
		err = add_endpoint(hash, &call->server);
	if (!err)
		err = digest_add_number(hash, seq);
	if (!err)
		err = digest_finish(hash, &digest);
	if (!err)
		memcpy(ret_id, digest.byte, CALL_ID_BYTES);
	return err;
}

void secret_text(struct fingerprinter *fingerprinter, struct bytes secret, char text[18])
{
	struct digest_state *hash = fingerprinter->hash;
	struct digest digest = {0}; /* what is shown when libcrypto fails: no secret either */

	if (!digest_start(hash) && !digest_add_field(hash, salt_of(fingerprinter)) &&
	    !digest_add_field(hash, BYTES("secret")) && !digest_add_field(hash, secret))
		digest_finish(hash, &digest);
	text[0] = '~';
	hex_of(digest.byte, 8, text + 1);
}
