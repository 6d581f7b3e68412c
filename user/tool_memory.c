/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hash table whose entries are in order of learning, so that the first one
 * is the one to forget. A key is the endpoint, the path and the name in one
 * run of bytes; names and paths beyond the caps are never compared by a part
 * of them: such a tool is simply not known.
 */
#define HASH_NONFATAL_OOM 1

#include "tool_memory.h"

#include <errno.h>
#include <uthash.h>

#include "json_scan.h"
#include "limits.h"
#include "rpc_answer.h"

#define KEY_FIXED_BYTES (sizeof(uint32_t) + WIRE_ADDRESS_BYTES + 2 * sizeof(uint16_t))
#define KEY_BYTES (KEY_FIXED_BYTES + LIMIT_TOOL_PATH_BYTES + CALL_NAME_BYTES)

struct tool {
	UT_hash_handle hh;
	struct tool_hints hints;
	size_t key_size;
	uint8_t key[];
};

struct tool_memory {
	struct tool *tools;
	uint64_t forgotten;
};

struct tool_key {
	uint8_t bytes[KEY_BYTES];
	size_t size;
};

struct tool_memory *tool_memory_new(void)
{
	return calloc(1, sizeof(struct tool_memory));
}

static void forget(struct tool_memory *memory, struct tool *tool)
{
	HASH_DEL(memory->tools, tool);
	free(tool);
}

void tool_memory_free(struct tool_memory *memory)
{
	if (!memory)
		return;
	while (memory->tools)
		forget(memory, memory->tools);
	free(memory);
}

size_t tool_memory_count(const struct tool_memory *memory)
{
	return HASH_COUNT(memory->tools);
}

uint64_t tool_memory_forgotten(const struct tool_memory *memory)
{
	return memory->forgotten;
}

static void key_add(struct tool_key *key, const void *data, size_t size)
{
	if (size)
		memcpy(key->bytes + key->size, data, size);
	key->size += size;
}

/* False when the path or the name is too long to be remembered, or the name is empty. */
static bool key_make(const struct call *call, struct bytes name, struct tool_key *ret_key)
{
	uint16_t path_size = (uint16_t)call->path.size;

	if (call->path.size > LIMIT_TOOL_PATH_BYTES || name.size == 0 ||
	    name.size > CALL_NAME_BYTES)
		return false;
	ret_key->size = 0;
	key_add(ret_key, &call->netns, sizeof(call->netns));
	key_add(ret_key, call->server.address, sizeof(call->server.address));
	key_add(ret_key, &call->server.port, sizeof(call->server.port));
	key_add(ret_key, &path_size, sizeof(path_size));
	key_add(ret_key, call->path.data, call->path.size);
	key_add(ret_key, name.data, name.size);
	return true;
}

bool tool_memory_find(const struct tool_memory *memory, const struct call *call, struct bytes tool,
		      struct tool_hints *ret_hints)
{
	struct tool_key key;
	struct tool *found;

	if (!memory->tools || !key_make(call, tool, &key))
		return false;
	HASH_FIND(hh, memory->tools, key.bytes, key.size, found);
	if (!found)
		return false;
	*ret_hints = found->hints;
	return true;
}

static int remember(struct tool_memory *memory, const struct tool_key *key,
		    const struct tool_hints *hints)
{
	struct tool *tool;

	HASH_FIND(hh, memory->tools, key->bytes, key->size, tool);
	if (tool)
		forget(memory, tool); /* and learn it anew, as the latest */
	else if (HASH_COUNT(memory->tools) >= LIMIT_REMEMBERED_TOOLS) {
		forget(memory, memory->tools);
		memory->forgotten++;
	}
	tool = malloc(sizeof(*tool) + key->size);
	if (!tool)
		return -ENOMEM;
	tool->hints = *hints;
	tool->key_size = key->size;
	memcpy(tool->key, key->bytes, key->size);
	HASH_ADD_KEYPTR(hh, memory->tools, tool->key, tool->key_size, tool);
	if (!tool->hh.tbl) { /* uthash found no memory for its table */
		free(tool);
		return -ENOMEM;
	}
	return 0;
}

/* Anything but true and false says nothing. */
static enum tool_hint hint_of(struct bytes value)
{
	if (json_scan_is_true(value))
		return TOOL_HINT_TRUE;
	return bytes_equal(value, BYTES("false")) ? TOOL_HINT_FALSE : TOOL_HINT_UNKNOWN;
}

static void read_annotations(struct bytes annotations, struct tool_hints *ret_hints)
{
	struct json_scan scan;
	struct bytes name, value;

	json_scan_open(&scan, annotations);
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "readOnlyHint"))
			ret_hints->read_only = hint_of(value);
		else if (json_scan_says(name, "idempotentHint"))
			ret_hints->idempotent = hint_of(value);
		else if (json_scan_says(name, "destructiveHint"))
			ret_hints->destructive = hint_of(value);
	}
}

static int learn_tool(struct tool_memory *memory, const struct call *call, struct bytes tool)
{
	uint8_t text[CALL_NAME_BYTES];
	struct tool_hints hints = {0};
	struct json_scan scan;
	struct bytes name, value;
	struct tool_key key;
	size_t size = 0;
	bool cut = false;

	if (!json_scan_is_object(tool))
		return 0;
	json_scan_open(&scan, tool);
	while (json_scan_next(&scan, &name, &value)) {
		if (json_scan_says(name, "name"))
			size = json_scan_text(value, text, sizeof(text), &cut);
		else if (json_scan_says(name, "annotations") && json_scan_is_object(value))
			read_annotations(value, &hints);
	}
	if (scan.broken || cut || !key_make(call, (struct bytes){text, size}, &key))
		return 0;
	return remember(memory, &key, &hints);
}

static int learn_tools(struct tool_memory *memory, const struct call *call, struct bytes tools)
{
	struct json_scan scan;
	struct bytes name, value;
	int err = 0;

	if (!json_scan_is_array(tools))
		return 0;
	json_scan_open(&scan, tools);
	while (!err && json_scan_next(&scan, &name, &value))
		err = learn_tool(memory, call, value);
	return err;
}

static int learn_message(struct tool_memory *memory, const struct call *call, struct bytes message)
{
	return learn_tools(memory, call, json_scan_member(json_scan_member(message, "result"), "tools"));
}

int tool_memory_learn(struct tool_memory *memory, const struct call *call,
		      struct bytes response_body)
{
	struct rpc_messages messages = {.rest = response_body};
	struct bytes message;
	int err = 0;

	while (!err && rpc_messages_next(&messages, &message))
		err = learn_message(memory, call, message);
	if (!err)
		err = messages.error;
	rpc_messages_done(&messages);
	return err;
}
