/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call -> the few facts that the judge may know of it. Every byte that is
 * not a fact is 0, so equal facts are equal bytes.
 */
#include "json_scan.h"
#include "policy.h"

static uint64_t first_8(const struct digest *digest)
{
	uint64_t value;

	memcpy(&value, digest->byte, sizeof(value));
	return value;
}

/* FNV-1a, then mixed, so that equal keys and only those are equal; never 0. */
static uint64_t hash_of_key(struct bytes key)
{
	uint64_t hash = 0xcbf29ce484222325ULL;

	for (size_t i = 0; i < key.size; i++)
		hash = (hash ^ key.data[i]) * 0x100000001b3ULL;
	hash = (hash ^ (hash >> 33)) * 0xff51afd7ed558ccdULL;
	hash ^= hash >> 33;
	return hash ? hash : 1;
}

/* 32 of its bits, all of which have a say. */
static uint32_t half_of(uint64_t number)
{
	number ^= number >> 32;
	return (uint32_t)((number * 0x9e3779b97f4a7c15ULL) >> 32);
}

/* A hash that is 0 only where there is nothing. */
static uint32_t half_of_hash(uint64_t hash)
{
	return hash && !half_of(hash) ? 1 : half_of(hash);
}

static bool has_volatile_members(enum call_protocol protocol)
{
	return protocol != PROTOCOL_NONE && protocol != PROTOCOL_GRAPHQL && protocol != PROTOCOL_AWS;
}

static uint64_t body_of(const struct call *call)
{
	if (call->has_fingerprint && (has_volatile_members(call->protocol) || call->masked))
		return first_8(&call->fingerprint);
	return call->has_sha ? first_8(&call->sha) : 0;
}

static bool is_form(const struct call *call)
{
	return bytes_equal(call->method, BYTES("POST")) &&
	       (bytes_starts_with(call->content_type, BYTES("application/x-www-form-urlencoded")) ||
		bytes_starts_with(call->content_type, BYTES("multipart/form-data")));
}

/* Who ended it first. A server that only half closed has ended it too: no answer can follow. */
static void close_of(const struct call *call, struct attempt_facts *facts)
{
	uint64_t client_ns = call->client_closed_ns, server_ns = call->server_closed_ns;
	bool client = client_ns && (!server_ns || client_ns < server_ns ||
				    (client_ns == server_ns && call->closed_first != CLOSER_SERVER));

	if (!client_ns && !server_ns)
		return;
	facts->closed_ns = client ? client_ns : server_ns;
	facts->closed_first = client ? CLOSER_CLIENT : CLOSER_SERVER;
}

/* The number at the front of a text, at most 255. False when there is none. */
static bool leading_number(struct bytes text, uint8_t *ret_number)
{
	unsigned int number = 0;
	size_t i = 0;

	for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; i++)
		number = number > 25 ? 255 : number * 10 + text.data[i] - '0';
	*ret_number = number > 255 ? 255 : (uint8_t)number;
	return i > 0;
}

/* What follows "attempt=" in "ttl=...; attempt=2; max=3"; empty when it is not there. */
static struct bytes after_attempt(struct bytes text)
{
	static const char word[] = "attempt=";
	const uint8_t *found = text.size ? memmem(text.data, text.size, word, sizeof(word) - 1) : NULL;

	bytes_take(&text, found ? (size_t)(found - text.data) + sizeof(word) - 1 : text.size);
	return text;
}

/* How the client counts its attempts itself, from call->retry_hint. */
static void retry_of(const struct call *call, struct attempt_facts *facts)
{
	static const struct {
		const char *header;
		enum retry_marker marker;
	} markers[] = {
		{"x-stainless-retry-count", RETRY_STAINLESS},
		{"amz-sdk-request", RETRY_AMZ},
		{"x-slack-retry-num", RETRY_SLACK},
	};
	struct bytes name, value;
	struct json_scan scan;

	json_scan_open(&scan, call->retry_hint);
	while (json_scan_next(&scan, &name, &value))
		for (size_t i = 0; i < sizeof(markers) / sizeof(markers[0]); i++) {
			uint8_t room[128];
			struct bytes text = {room, json_scan_text(value, room, sizeof(room), NULL)};

			if (!json_scan_says(name, markers[i].header))
				continue;
			if (markers[i].marker == RETRY_AMZ)
				text = after_attempt(text);
			if (leading_number(text, &facts->retry_count))
				facts->retry_marker = markers[i].marker;
		}
}

static uint32_t tokens_of(int64_t tokens)
{
	if (tokens < 0)
		return TOKENS_NOT_SAID;
	return tokens < TOKENS_NOT_SAID ? (uint32_t)tokens : TOKENS_NOT_SAID - 1;
}

/* A model's answer that HTTP had whole, but for bytes that we did not see: its end may be among them. */
static bool end_unseen(const struct call *call)
{
	return call->class == CLASS_LLM && call->status >= 200 && call->status < 300 && call->response_complete &&
	       call->response_holes && !call->answer_complete;
}

static void usage_of(const struct call *call, struct attempt_facts *facts)
{
	facts->undecidable = facts->undecidable || end_unseen(call);
	facts->answer_cut = call->response_complete && call->answer_unfinished;
	facts->usage_seen = call->usage.seen;
	facts->usage_final = call->usage.final;
	if (!call->usage.seen)
		return;
	facts->input_tokens = tokens_of(call->usage.input_tokens);
	facts->output_tokens = tokens_of(call->usage.output_tokens);
}

uint32_t attempt_process_of(const struct process *process)
{
	return half_of(process->start_ns);
}

void attempt_facts_of(const struct call *call, struct attempt_facts *ret_facts)
{
	struct attempt_facts *facts = ret_facts;

	memset(facts, 0, sizeof(*facts));
	facts->first_ns = call->first_ns;
	facts->status = (uint16_t)call->status;
	facts->status_ns = call->status_ns;
	facts->status_in_time = call->status && call->status_in_time;
	facts->complete_ns = !call->response_complete ? 0 : call->complete_ns ? call->complete_ns : call->response_last_ns;
	close_of(call, facts);
	facts->delivered = call->delivered;
	facts->replayed = call->replayed;
	facts->undecidable = call->undecidable;
	facts->no_outcome = call->no_outcome;
	facts->not_run = call->not_run;
	facts->request_complete = call->request_complete;
	facts->server_read_known = call->server_read_known;
	facts->server_read_all = call->server_read_all;
	facts->tgid = call->process.tgid;
	facts->process = attempt_process_of(&call->process);
	facts->owner_gone = call->client_died;
	facts->class = call->class;
	facts->class_source = call->class_source;
	facts->idempotent = call->idempotent_hint;
	facts->known_write = call->known_write;
	facts->continuation = call->mcp_continuation;
	facts->form = is_form(call);
	facts->expects = call->head && call->head->expects_continue;
	facts->has_principal = call->has_principal;
	facts->bearer = call->has_principal && call->principal_is_bearer;
	facts->principal = call->has_principal ? first_8(&call->principal) : 0;
	facts->idem_state = call->idem_state;
	facts->key = call->idem_state == IDEM_PRESENT ? half_of_hash(hash_of_key(call->idem)) : 0;
	facts->body = half_of_hash(body_of(call));
	facts->masked = half_of_hash(call->masked);
	facts->policy_rule = call->rule ? call->rule->number : 0;
	retry_of(call, facts);
	facts->cgroup = half_of(call->process.cgroup_id);
	usage_of(call, facts);
}
