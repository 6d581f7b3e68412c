/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Builds a call from the parts of its messages. The head of the request is
 * copied once into one block, since the reader's own memory is used again for
 * the next message while this call may wait minutes for its answer.
 */
#include "exchange.h"
#include "decode.h"
#include "secret.h"
#include "usage.h"

#include <errno.h>

static void hold(struct exchange *exchange, size_t bytes)
{
	exchange->held_bytes += bytes;
	exchange->memory->bytes += bytes;
}

static void let_go(struct exchange *exchange, size_t bytes)
{
	exchange->held_bytes -= bytes;
	exchange->memory->bytes -= bytes;
}

/* Copies one slice to *at and moves *at behind it. */
static struct bytes place(uint8_t **at, struct bytes source)
{
	struct bytes copy = {*at, source.size};

	if (source.size)
		memcpy(*at, source.data, source.size);
	*at += source.size;
	return copy;
}

static int copy_head(struct exchange *exchange, const struct http_head *head)
{
	size_t text = head->method.size + head->target.size;
	size_t table = head->field_count * sizeof(struct http_field);
	struct http_field *fields;
	uint8_t *at;

	for (size_t i = 0; i < head->field_count; i++)
		text += head->fields[i].name.size + head->fields[i].value.size;
	exchange->head_memory = malloc(table + text + 1);
	if (!exchange->head_memory)
		return -ENOMEM;
	hold(exchange, table + text + 1);
	fields = exchange->head_memory;
	at = (uint8_t *)exchange->head_memory + table;
	exchange->head = *head;
	exchange->head.method = place(&at, head->method);
	exchange->head.target = place(&at, head->target);
	for (size_t i = 0; i < head->field_count; i++) {
		fields[i].name = place(&at, head->fields[i].name);
		fields[i].value = place(&at, head->fields[i].value);
	}
	exchange->head.fields = fields;
	http_head_index(&exchange->head);
	return 0;
}

/* "http://authority/path" -> its authority; *target becomes what follows. RFC 9112 section 3.2.2. */
static bool take_authority(struct bytes *target, struct bytes *ret_authority)
{
	static const uint8_t separator[] = "://";
	struct bytes rest = *target;
	const uint8_t *at = rest.data[0] == '/' ? NULL : memmem(rest.data, rest.size, separator, 3);
	struct bytes authority;
	size_t end = 0;

	if (!at || bytes_find(rest, '/') < (size_t)(at - rest.data))
		return false;
	bytes_take(&rest, (size_t)(at - rest.data) + 3);
	while (end < rest.size && rest.data[end] != '/' && rest.data[end] != '?' && rest.data[end] != '#')
		end++;
	authority = bytes_take(&rest, end);
	*ret_authority = authority;
	*target = rest;
	return true;
}

static void split_target(struct call *call)
{
	struct bytes target = call->head->target;
	const struct http_field *host = http_head_find(call->head, BYTES("Host"));
	struct bytes authority = {0};

	if (bytes_equal(call->method, BYTES("CONNECT"))) {
		authority = target;
		call->has_host = true;
	} else if (target.size && take_authority(&target, &authority)) {
		call->has_host = true;
	} else if (host) {
		authority = host->value;
		call->has_host = true;
	}
	call->host = secret_strip_userinfo(authority);
	target.size = bytes_find(target, '#');
	call->path = bytes_take(&target, bytes_find(target, '?'));
	if (call->path.size == 0 && !bytes_equal(call->method, BYTES("CONNECT")))
		call->path = BYTES("/");
	call->has_query = target.size > 0;
	if (call->has_query)
		bytes_take(&target, 1);
	call->query = target;
}

struct exchange *exchange_new(const struct http_head *head, struct call_memory *memory)
{
	struct exchange *exchange = calloc(1, sizeof(*exchange));
	struct call *call;
	const struct http_field *type;

	if (!exchange)
		return NULL;
	exchange->memory = memory;
	if (copy_head(exchange, head)) {
		free(exchange);
		return NULL;
	}
	call = &exchange->call;
	call->head = &exchange->head;
	call->method = exchange->head.method;
	split_target(call);
	type = http_head_find(call->head, BYTES("Content-Type"));
	if (type)
		call->content_type = type->value;
	call->body_held = true;
	call->has_raw_sha = true;
	call->open = true;
	call->retry_after_s = -1;
	call->usage = (struct usage){-1, -1, -1, -1, -1, false, false};
	return exchange;
}

void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	let_go(exchange, exchange->held_bytes);
	digest_state_free(exchange->hash);
	decode_free(exchange->decoder);
	usage_reader_free(exchange->usage);
	buffer_done(&exchange->answer);
	buffer_done(&exchange->call.kept);
	buffer_done(&exchange->body);
	free(exchange->head_memory);
	free(exchange);
}

void exchange_why(struct exchange *exchange, const char *reason)
{
	if (!exchange->call.why)
		exchange->call.why = reason;
}

void exchange_body_done(struct exchange *exchange)
{
	let_go(exchange, exchange->body.size);
	buffer_done(&exchange->body);
	exchange->call.body = (struct bytes){0};
	exchange->call.body_held = false;
}

static void drop_body(struct exchange *exchange, const char *why)
{
	if (!exchange->call.body_why)
		exchange->call.body_why = why;
	exchange_body_done(exchange);
}

static void drop_hash(struct exchange *exchange, const char *why)
{
	exchange->call.has_raw_sha = false;
	exchange_why(exchange, why);
	drop_body(exchange, why);
}

int exchange_body(struct exchange *exchange, struct bytes body)
{
	struct call *call = &exchange->call;

	call->body_bytes += body.size;
	if (call->has_raw_sha && digest_add(exchange->hash, body)) {
		drop_hash(exchange, "the body could not be hashed: out of memory");
		return -ENOMEM;
	}
	if (!call->body_held)
		return 0;
	if (exchange->body.size + body.size > LIMIT_BODY_BYTES) {
		drop_body(exchange, "body over 8 MiB");
		return 0;
	}
	/* The raw hash would make another call of one whose text was kept. */
	if (exchange->memory->bytes + body.size > exchange->memory->limit) {
		drop_hash(exchange, "the body could not be kept: too much is held of all connections together");
		return 0;
	}
	if (buffer_append(&exchange->body, body)) {
		drop_hash(exchange, "the body could not be kept: out of memory");
		return -ENOMEM;
	}
	hold(exchange, body.size);
	return 0;
}

void exchange_body_hole(struct exchange *exchange, uint64_t length)
{
	exchange->call.body_bytes += length;
	exchange->call.request_holes += length;
	drop_hash(exchange, "bytes of the body were not seen");
}

void exchange_request_end(struct exchange *exchange, bool complete, uint64_t now_ns)
{
	struct call *call = &exchange->call;

	call->request_complete = complete;
	if (complete)
		call->sent_ns = now_ns;
	else
		drop_hash(exchange, "the request never completed");
	if (call->has_raw_sha && digest_finish(exchange->hash, &call->raw_sha))
		drop_hash(exchange, "the body could not be hashed: out of memory");
	if (call->body_held)
		call->body = buffer_bytes(&exchange->body);
}

/* ---- the answer ---- */

/* Nobody reads on; what was followed up to here still stands, and nobody knows whether it has an end. */
static int drop_answer(struct exchange *exchange, int err)
{
	exchange->call.answer_use = ANSWER_UNREAD;
	exchange->call.answer_unfinished = false;
	exchange->call.answer = (struct bytes){0};
	let_go(exchange, exchange->answer.size);
	buffer_done(&exchange->answer);
	decode_free(exchange->decoder);
	exchange->decoder = NULL;
	return err;
}

/* 0, -ENOMEM, or -EBADMSG: all calls together hold too much. */
static int keep(struct exchange *exchange, struct bytes plain)
{
	int err;

	if (exchange->memory->bytes + plain.size > exchange->memory->limit)
		return -EBADMSG;
	err = buffer_append(&exchange->answer, plain);
	if (!err)
		hold(exchange, plain.size);
	return err;
}

/* All of it or nothing: a part would be taken for the answer. */
static void keep_nothing(struct exchange *exchange)
{
	exchange->call.keep_answer = false;
	exchange->call.answer = (struct bytes){0};
	let_go(exchange, exchange->answer.size);
	buffer_done(&exchange->answer);
}

static int keep_followed(struct exchange *exchange, struct bytes plain)
{
	bool fits = exchange->answer.size + plain.size <= LIMIT_ANSWER_BYTES;
	int err;

	if (!exchange->call.keep_answer)
		return 0;
	err = fits ? keep(exchange, plain) : -EBADMSG;
	if (err != -EBADMSG)
		return err;
	keep_nothing(exchange);
	return 0;
}

/* -EBADMSG: it is not to be used any further. */
static int use_plain(struct exchange *exchange, struct bytes plain)
{
	if (exchange->call.answer_use == ANSWER_FOLLOWED) {
		usage_reader_feed(exchange->usage, plain);
		return keep_followed(exchange, plain);
	}
	return keep(exchange, plain);
}

/* The same, or it cannot be decoded any further. */
static int use_answer(struct exchange *exchange, struct bytes body)
{
	enum decode_step step;
	struct bytes plain;
	int err = 0;

	if (!exchange->decoder)
		return use_plain(exchange, body);
	while (!err && (step = decode_next(exchange->decoder, &body, &plain)) == DECODE_BYTES)
		err = use_plain(exchange, plain);
	if (err || step != DECODE_FAILED)
		return err;
	return decode_end(exchange->decoder) == DECODE_OUT_OF_MEMORY ? -ENOMEM : -EBADMSG;
}

/* What the reader lends it lends until the exchange is freed. */
static void tell_usage(struct exchange *exchange)
{
	struct call *call = &exchange->call;
	struct model_answer answer;

	usage_reader_answer(exchange->usage, &answer);
	call->usage = answer.usage;
	call->usage_refused = answer.refused;
	call->answer_complete = answer.complete;
	call->answer_unfinished = answer.unfinished;
	call->answer_failed = answer.failed;
	call->finish_reason = answer.finish_reason;
	call->response_id = answer.id;
	call->response_model = answer.model;
}

int exchange_answer(struct exchange *exchange, struct bytes body)
{
	struct call *call = &exchange->call;
	int err;

	call->response_body_bytes += body.size;
	if (call->answer_use == ANSWER_UNREAD)
		return 0;
	if (call->answer_use == ANSWER_KEPT && exchange->answer.size + body.size > LIMIT_ANSWER_BYTES)
		return drop_answer(exchange, 0);
	err = use_answer(exchange, body);
	if (exchange->usage)
		tell_usage(exchange);
	if (err)
		return drop_answer(exchange, err == -ENOMEM ? err : 0);
	call->answer = buffer_bytes(&exchange->answer);
	return 0;
}

void exchange_answer_hole(struct exchange *exchange, uint64_t length)
{
	struct call *call = &exchange->call;

	call->response_holes += length;
	call->response_body_bytes += length;
	if (exchange->usage) {
		usage_reader_gap(exchange->usage);
		tell_usage(exchange);
	}
	if (call->answer_use == ANSWER_KEPT || exchange->decoder) /* what follows cannot be read */
		drop_answer(exchange, 0);
	else
		keep_nothing(exchange);
}

/* Who says that the answer is a stored one: seen in the field, no standard names it. */
static bool says_replayed(const struct http_head *head)
{
	static const struct bytes names[] = {
		BYTES("Idempotent-Replayed"), BYTES("Idempotency-Replayed"), BYTES("Request-Idempotency"),
		BYTES("X-Idempotency-Replayed"), BYTES("X-Idempotent-Replayed")};
	const struct http_field *field = http_head_find(head, BYTES("X-Idempotency-Status"));

	if (field && bytes_equal_nocase(field->value, BYTES("replayed")))
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		field = http_head_find(head, names[i]);
		if (field && bytes_equal_nocase(field->value, BYTES("true")))
			return true;
	}
	return false;
}

/* Retry-After as delta-seconds (RFC 9110 section 10.2.3); -1 for a date or none. */
static int64_t retry_after_seconds(const struct http_head *head)
{
	const struct http_field *field = http_head_find(head, BYTES("Retry-After"));
	int64_t seconds = 0;

	if (!field || field->value.size == 0 || field->value.size > 9)
		return -1;
	for (size_t i = 0; i < field->value.size; i++) {
		if (field->value.data[i] < '0' || field->value.data[i] > '9')
			return -1;
		seconds = seconds * 10 + (field->value.data[i] - '0');
	}
	return seconds;
}

int exchange_response_head(struct exchange *exchange, const struct http_head *head)
{
	struct call *call = &exchange->call;
	int err = 0;

	call->status = head->status;
	call->replayed = says_replayed(head);
	call->retry_after_s = retry_after_seconds(head);
	exchange->dirty = true;
	if (call->answer_use == ANSWER_FOLLOWED && (head->status < 200 || head->status > 299))
		call->answer_use = ANSWER_UNREAD; /* no model answered */
	if (call->answer_use == ANSWER_FOLLOWED)
		exchange->usage = usage_reader_new();
	if (call->answer_use == ANSWER_FOLLOWED && !exchange->usage)
		return drop_answer(exchange, -ENOMEM);
	if (call->answer_use != ANSWER_UNREAD)
		err = decode_new(head, call->answer_use == ANSWER_KEPT ? LIMIT_ANSWER_BYTES : UINT64_MAX,
				 &exchange->decoder);
	return err ? drop_answer(exchange, err) : 0;
}

bool exchange_delivered(struct exchange *exchange, uint64_t client_read, bool final)
{
	struct call *call = &exchange->call;
	uint64_t wire = exchange->response_end - exchange->response_offset;
	uint64_t read = client_read > exchange->response_offset ? client_read - exchange->response_offset : 0;
	enum call_delivered before = call->delivered;

	if (!exchange->response_started) {
		if (final)
			call->delivered = DELIVERED_NONE;
		return final;
	}
	call->response_wire_bytes = wire;
	call->delivered_bytes = read < wire ? read : wire;
	if (call->response_complete && read >= wire)
		call->delivered = DELIVERED_ALL;
	else if (final)
		call->delivered = call->delivered_bytes == 0 ? DELIVERED_NONE
				: call->delivered_bytes < wire ? DELIVERED_PART : DELIVERED_ALL;
	if (call->delivered != before)
		exchange->dirty = true;
	return call->delivered != DELIVERED_UNKNOWN;
}
