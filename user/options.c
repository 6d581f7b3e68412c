/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options that the judging stages depend on, their defaults, and their
 * form in a recording's header. A recording may come from anywhere: its text
 * is parsed strictly and taken over whole or not at all.
 */
#include "options.h"

#include <errno.h>
#include <json-c/json.h>

#include "json_text.h"
#include "limits.h"

/* An object that holds one array that holds texts. */
#define OPTIONS_JSON_DEPTH 3
#define WINDOW_MAX_S (10 * 366 * 86400LL)

static const char *const blind_names[BLIND_COUNT] = {
	[BLIND_TLS] = "tls",	     [BLIND_H2] = "h2",	      [BLIND_WEBSOCKET] = "websocket",
	[BLIND_CONNECT] = "connect", [BLIND_MPTCP] = "mptcp", [BLIND_JOINED_LATE] = "joined_late",
	[BLIND_KTLS] = "ktls",	     [BLIND_NETNS] = "netns",	      [BLIND_OTHER] = "other",
};

const char *blind_kind_name(enum blind_kind kind)
{
	return kind < BLIND_COUNT ? blind_names[kind] : NULL;
}

static int blind_kind_parse(struct bytes text, unsigned int *kinds)
{
	for (unsigned int kind = 0; kind < BLIND_COUNT; kind++) {
		if (bytes_equal(text, bytes_of_string(blind_names[kind]))) {
			*kinds |= 1U << kind;
			return 0;
		}
	}
	return -EINVAL;
}

int blind_kinds_parse(const char *text, unsigned int *ret_kinds)
{
	struct bytes rest = bytes_of_string(text);
	unsigned int kinds = 0;
	bool more;

	do {
		struct bytes name = bytes_take(&rest, bytes_find(rest, ','));

		if (blind_kind_parse(name, &kinds))
			return -EINVAL;
		more = bytes_take(&rest, 1).size;
	} while (more);
	*ret_kinds = kinds;
	return 0;
}

int schema_version_parse(struct bytes text, char ret_version[SCHEMA_VERSION_MAX + 1])
{
	static const char allowed[] = "._-+:/@";

	if (text.size == 0 || text.size > SCHEMA_VERSION_MAX)
		return -EINVAL;
	for (size_t i = 0; i < text.size; i++) {
		uint8_t c = text.data[i], letter = c | 0x20;

		if (!(letter >= 'a' && letter <= 'z') && !(c >= '0' && c <= '9') &&
		    !memchr(allowed, c, sizeof(allowed) - 1))
			return -EINVAL;
	}
	memcpy(ret_version, text.data, text.size);
	ret_version[text.size] = '\0';
	return 0;
}

void judge_options_defaults(struct judge_options *options)
{
	*options = (struct judge_options){
		.fail_on = SEVERITY_MEDIUM,
		.max_findings_per_call = LIMIT_FINDINGS_PER_CALL,
		.across_processes = true,
		.schema_version = "v1",
	};
}

/* Written where one is set. */
static const char *const windows[] = {"window_s", "window_across_s", "fresh_s"};

static uint64_t *window_of(struct judge_options *options, size_t i)
{
	return i == 0 ? &options->window_s : i == 1 ? &options->window_across_s : &options->fresh_s;
}

int judge_options_to_json(const struct judge_options *options, char *text, size_t size)
{
	struct buffer out = {0};
	struct json_writer writer;
	int err;

	json_writer_init(&writer, &out);
	json_object_open(&writer);
	json_key(&writer, "fail_on");
	json_text(&writer, severity_name(options->fail_on));
	json_key(&writer, "strict");
	json_boolean(&writer, options->strict);
	json_key(&writer, "allow_incomplete");
	json_boolean(&writer, options->allow_incomplete);
	json_key(&writer, "allow_blind");
	json_array_open(&writer);
	for (unsigned int kind = 0; kind < BLIND_COUNT; kind++)
		if (options->allow_blind & 1U << kind)
			json_text(&writer, blind_names[kind]);
	json_array_close(&writer);
	json_key(&writer, "max_findings_per_call");
	json_unsigned(&writer, options->max_findings_per_call);
	json_key(&writer, "across_processes");
	json_boolean(&writer, options->across_processes);
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]); i++)
		if (*window_of((struct judge_options *)options, i)) {
			json_key(&writer, windows[i]);
			json_unsigned(&writer, *window_of((struct judge_options *)options, i));
		}
	json_key(&writer, "schema_version");
	json_text(&writer, options->schema_version);
	json_object_close(&writer);

	err = json_writer_error(&writer);
	if (!err && out.size >= size)
		err = -ENOSPC;
	if (!err) {
		memcpy(text, out.data, out.size);
		text[out.size] = 0;
	}
	buffer_done(&out);
	return err;
}

/* ---- reading ---- */

static struct bytes json_bytes(json_object *value)
{
	return (struct bytes){(const uint8_t *)json_object_get_string(value),
			      (size_t)json_object_get_string_len(value)};
}

static int read_bool(json_object *object, const char *key, bool *ret_value)
{
	json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		return 0;
	if (!json_object_is_type(value, json_type_boolean))
		return -EINVAL;
	*ret_value = json_object_get_boolean(value);
	return 0;
}

static int read_fail_on(json_object *object, enum severity *ret_severity)
{
	json_object *value;

	if (!json_object_object_get_ex(object, "fail_on", &value))
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EINVAL;
	return severity_parse(json_bytes(value), ret_severity);
}

static int read_allow_blind(json_object *object, unsigned int *ret_kinds)
{
	json_object *list;
	unsigned int kinds = 0;

	if (!json_object_object_get_ex(object, "allow_blind", &list))
		return 0;
	if (!json_object_is_type(list, json_type_array))
		return -EINVAL;
	for (size_t i = 0; i < json_object_array_length(list); i++) {
		json_object *name = json_object_array_get_idx(list, i);

		if (!json_object_is_type(name, json_type_string) ||
		    blind_kind_parse(json_bytes(name), &kinds))
			return -EINVAL;
	}
	*ret_kinds = kinds;
	return 0;
}

/* json-c saturates an integer that is too large: INT64_MAX is refused with it. */
static int read_max_findings(json_object *object, size_t *ret_max)
{
	json_object *value;
	int64_t number;

	if (!json_object_object_get_ex(object, "max_findings_per_call", &value))
		return 0;
	if (!json_object_is_type(value, json_type_int))
		return -EINVAL;
	number = json_object_get_int64(value);
	if (number < 1 || number == INT64_MAX)
		return -EINVAL;
	*ret_max = (size_t)number;
	return 0;
}

static int read_window(json_object *object, const char *key, uint64_t *ret_seconds)
{
	json_object *value;

	if (!json_object_object_get_ex(object, key, &value))
		return 0;
	if (!json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 1 ||
	    json_object_get_int64(value) > WINDOW_MAX_S)
		return -EINVAL;
	*ret_seconds = (uint64_t)json_object_get_int64(value);
	return 0;
}

static int read_schema_version(json_object *object, char ret_version[SCHEMA_VERSION_MAX + 1])
{
	json_object *value;

	if (!json_object_object_get_ex(object, "schema_version", &value))
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EINVAL;
	return schema_version_parse(json_bytes(value), ret_version);
}

/* The one JSON value that text is, or NULL. */
static json_object *parse_whole(const char *text)
{
	struct json_tokener *tokener = json_tokener_new_ex(OPTIONS_JSON_DEPTH);
	size_t size = strlen(text);
	json_object *object = NULL;

	if (!tokener || size >= INT32_MAX)
		goto out;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	/* With its NUL, so that the end of the text is the end of the value. */
	object = json_tokener_parse_ex(tokener, text, (int)size + 1);
	if (json_tokener_get_error(tokener) != json_tokener_success ||
	    json_tokener_get_parse_end(tokener) < size) {
		json_object_put(object);
		object = NULL;
	}
out:
	if (tokener)
		json_tokener_free(tokener);
	return object;
}

int judge_options_of_json(const char *text, struct judge_options *options)
{
	struct judge_options read = *options;
	json_object *object = parse_whole(text);
	int err = json_object_is_type(object, json_type_object) ? 0 : -EINVAL;

	if (!err)
		err = read_fail_on(object, &read.fail_on);
	if (!err)
		err = read_bool(object, "strict", &read.strict);
	if (!err)
		err = read_bool(object, "allow_incomplete", &read.allow_incomplete);
	if (!err)
		err = read_allow_blind(object, &read.allow_blind);
	if (!err)
		err = read_max_findings(object, &read.max_findings_per_call);
	if (!err)
		err = read_bool(object, "across_processes", &read.across_processes);
	for (size_t i = 0; i < sizeof(windows) / sizeof(windows[0]) && !err; i++)
		err = read_window(object, windows[i], window_of(&read, i));
	if (!err)
		err = read_schema_version(object, read.schema_version);
	json_object_put(object);
	if (!err)
		*options = read;
	return err;
}
