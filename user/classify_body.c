/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request's head and body as the rules see them. All looks are cheap: nearly
 * every call is a plain one whose body no rule needs.
 */
#include "classify_rules.h"

#define MENTION_BYTES 4096

static const struct word override_names[] = {
	WORD("X-HTTP-Method-Override"),
	WORD("X-HTTP-Method"),
	WORD("X-Method-Override"),
};

static void take_override(struct class_fields *fields, const struct http_field *field)
{
	bool another = fields->method_override.size;

	if (field->value.size == 0)
		return;
	for (size_t i = 0; i < COUNT_OF(override_names); i++) {
		if (!word_is_nocase(&override_names[i], field->name))
			continue;
		if (another && !bytes_equal(fields->method_override, field->value))
			fields->override_unclear = true;
		fields->method_override = field->value;
	}
}

static void take_mcp(struct class_fields *fields, const struct http_field *field)
{
	if (bytes_equal_nocase(field->name, BYTES("Mcp-Method")))
		fields->mcp_method = field->value;
	else if (bytes_equal_nocase(field->name, BYTES("Mcp-Name")))
		fields->mcp_name = field->value;
	else if (!bytes_equal_nocase(field->name, BYTES("Mcp-Session-Id")) &&
		 !bytes_equal_nocase(field->name, BYTES("MCP-Protocol-Version")))
		return;
	fields->mcp = true;
}

struct class_fields classify_body_fields(const struct http_head *head)
{
	struct class_fields fields = {0};

	for (size_t i = 0; head && i < head->field_count; i++) {
		const struct http_field *field = &head->fields[i];
		uint8_t first = field->name.size ? field->name.data[0] | 0x20 : 0;

		if (first == 'm')
			take_mcp(&fields, field);
		else if (first == 'l' && bytes_equal_nocase(field->name, BYTES("Last-Event-ID")))
			fields.resumes = true;
		if (first != 'x')
			continue;
		if (bytes_equal_nocase(field->name, BYTES("X-Amz-Target")))
			fields.aws_target = field->value;
		else
			take_override(&fields, field);
	}
	return fields;
}

static bool is_space(uint8_t c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct bytes trim(struct bytes body)
{
	if (bytes_starts_with(body, BYTES("\xef\xbb\xbf")))
		bytes_take(&body, 3);
	while (body.size && is_space(body.data[0]))
		bytes_take(&body, 1);
	while (body.size && is_space(body.data[body.size - 1]))
		body.size--;
	return body;
}

static bool has_json_ends(struct bytes body)
{
	return body.size >= 2 && ((body.data[0] == '{' && body.data[body.size - 1] == '}') ||
				  (body.data[0] == '[' && body.data[body.size - 1] == ']'));
}

enum body_view classify_body_json(const struct call *call, struct bytes *ret_value)
{
	if (!call->body_held)
		return call->body_bytes ? BODY_NOT_SEEN : BODY_OTHER;
	*ret_value = trim(call->body);
	return has_json_ends(*ret_value) ? BODY_JSON : BODY_OTHER;
}

bool classify_body_mentions(const struct call *call, struct bytes word)
{
	struct bytes body;

	if (classify_body_json(call, &body) != BODY_JSON)
		return false;
	if (body.size <= 2 * MENTION_BYTES)
		return memmem(body.data, body.size, word.data, word.size) != NULL;
	return memmem(body.data, MENTION_BYTES, word.data, word.size) != NULL ||
	       memmem(body.data + body.size - MENTION_BYTES, MENTION_BYTES, word.data, word.size) !=
		       NULL;
}

/* Cuts at whole UTF-8 characters. */
static struct bytes keep(uint8_t text[CALL_NAME_BYTES], struct bytes name)
{
	size_t size = name.size;

	if (size > CALL_NAME_BYTES) {
		size = CALL_NAME_BYTES;
		while (size && (name.data[size] & 0xc0) == 0x80)
			size--;
	}
	if (size)
		memcpy(text, name.data, size);
	return (struct bytes){text, size};
}

void classify_body_tool(struct call *call, struct bytes name)
{
	call->tool = keep(call->tool_text, name);
}

void classify_body_model(struct call *call, struct bytes name)
{
	call->model = keep(call->model_text, name);
}

void classify_body_model_json(struct call *call, struct bytes value)
{
	call->model.data = call->model_text;
	call->model.size = json_scan_text(value, call->model_text, CALL_NAME_BYTES, NULL);
}
