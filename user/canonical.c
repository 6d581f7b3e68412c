/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Picks the form by the media type (RFC 9110 section 8.3.1) and says why it
 * fell back to raw. Nothing is guessed from the body: text/plain that looks
 * like JSON stays raw.
 */
#include "canonical.h"

#include <errno.h>

#define KEPT_BYTES (4 * 1024 * 1024)

const char canonical_out_of_memory[] = "out of memory";

static const char *const kind_names[] = {
	[CANONICAL_NONE] = "none",
	[CANONICAL_JSON] = "json",
	[CANONICAL_FORM] = "form",
	[CANONICAL_MULTIPART] = "multipart",
	[CANONICAL_NDJSON] = "ndjson",
	[CANONICAL_RAW] = "raw",
};

const char *canonical_kind_name(enum canonical_kind kind)
{
	return kind_names[kind];
}

static const struct {
	const char *type;
	enum canonical_kind kind;
} media_types[] = {
	{"application/json", CANONICAL_JSON},
	{"text/json", CANONICAL_JSON},
	{"application/json-rpc", CANONICAL_JSON},
	{"application/x-amz-json-1.0", CANONICAL_JSON},
	{"application/x-amz-json-1.1", CANONICAL_JSON},
	{"application/x-www-form-urlencoded", CANONICAL_FORM},
	{"multipart/form-data", CANONICAL_MULTIPART},
	{"application/x-ndjson", CANONICAL_NDJSON},
	{"application/ndjson", CANONICAL_NDJSON},
	{"application/jsonl", CANONICAL_NDJSON},
};

static enum canonical_kind kind_of_type(struct bytes type)
{
	const struct bytes suffix = BYTES("+json"); /* RFC 6839 section 3.1 */

	for (size_t i = 0; i < sizeof(media_types) / sizeof(media_types[0]); i++)
		if (bytes_equal_nocase(type, bytes_of_string(media_types[i].type)))
			return media_types[i].kind;
	if (type.size > suffix.size &&
	    bytes_equal_nocase((struct bytes){type.data + type.size - suffix.size, suffix.size},
			       suffix))
		return CANONICAL_JSON;
	return CANONICAL_RAW;
}

struct media_type {
	struct bytes type;
	struct bytes charset;
	struct bytes boundary;
};

/* A token, or a quoted string without its quotes. No value that we ask for needs a backslash. */
static struct bytes take_value(struct bytes *rest)
{
	struct bytes value;

	*rest = bytes_trim(*rest);
	if (!rest->size || rest->data[0] != '"')
		return bytes_trim(bytes_take(rest, bytes_find(*rest, ';')));
	bytes_take(rest, 1);
	value = bytes_take(rest, bytes_find(*rest, '"'));
	bytes_take(rest, bytes_find(*rest, ';'));
	return value;
}

static struct media_type media_type_of(struct bytes content_type)
{
	struct media_type media = {0};
	struct bytes name, value;

	media.type = bytes_trim(bytes_take(&content_type, bytes_find(content_type, ';')));
	while (content_type.size) {
		size_t end = 1; /* behind the semicolon */

		while (end < content_type.size && content_type.data[end] != '=' &&
		       content_type.data[end] != ';')
			end++;
		name = bytes_take(&content_type, end);
		if (!content_type.size || content_type.data[0] == ';')
			continue;
		bytes_take(&name, 1);
		name = bytes_trim(name);
		bytes_take(&content_type, 1);
		value = take_value(&content_type);
		if (bytes_equal_nocase(name, BYTES("charset")))
			media.charset = value;
		else if (bytes_equal_nocase(name, BYTES("boundary")))
			media.boundary = value;
	}
	return media;
}

static bool charset_is_utf8(struct bytes charset)
{
	return !charset.size || bytes_equal_nocase(charset, BYTES("utf-8")) ||
	       bytes_equal_nocase(charset, BYTES("utf8")) ||
	       bytes_equal_nocase(charset, BYTES("us-ascii"));
}

static const char *make_form(const struct media_type *media, struct bytes body,
			     struct canonical *canonical)
{
	if (!charset_is_utf8(media->charset))
		return "charset is not UTF-8";
	switch (canonical->kind) {
	case CANONICAL_JSON:
		return canonical_json(body, canonical, &canonical->text);
	case CANONICAL_FORM:
		return canonical_form(body, &canonical->text);
	case CANONICAL_MULTIPART:
		return canonical_multipart(body, media->boundary, &canonical->text);
	case CANONICAL_NDJSON:
		return canonical_ndjson(body, canonical, &canonical->text);
	case CANONICAL_NONE:
	case CANONICAL_RAW:
		break;
	}
	return NULL;
}

/* Memory that one huge body took is not kept for good. */
static void use_again(struct buffer *buffer)
{
	if (buffer->capacity > KEPT_BYTES)
		buffer_done(buffer);
	buffer_clear(buffer);
}

int canonical_make(struct bytes content_type, struct bytes body, struct canonical *ret_canonical)
{
	struct media_type media = media_type_of(content_type);
	enum canonical_kind kind = kind_of_type(media.type);

	*ret_canonical = (struct canonical){
		.text = ret_canonical->text, .spare = ret_canonical->spare, .order = ret_canonical->order};
	use_again(&ret_canonical->text);
	use_again(&ret_canonical->spare);
	use_again(&ret_canonical->order.open);
	use_again(&ret_canonical->order.kept);
	use_again(&ret_canonical->order.objects);
	ret_canonical->kind = body.size ? kind : CANONICAL_NONE;
	if (ret_canonical->kind == CANONICAL_NONE || kind == CANONICAL_RAW)
		return 0;
	ret_canonical->why = make_form(&media, body, ret_canonical);
	if (!ret_canonical->why)
		return 0;
	ret_canonical->kind = CANONICAL_RAW;
	ret_canonical->duplicate_key = false;
	ret_canonical->lone_surrogate = false;
	return ret_canonical->why == canonical_out_of_memory ? -ENOMEM : 0;
}

void canonical_done(struct canonical *canonical)
{
	if (!canonical)
		return;
	buffer_done(&canonical->text);
	buffer_done(&canonical->spare);
	order_done(&canonical->order);
}
