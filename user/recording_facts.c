/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The facts of a run as JSON text, so that `head -c` shows what a recording is
 * of. One table names every text field for both directions. The judging options
 * stay a string inside: they come back byte for byte.
 */
#include "recording_parts.h"
#include "digest.h"

#include <errno.h>
#include <json-c/json.h>

struct text_field {
	const char *name;
	size_t at;
	size_t size;
};

#define TEXT(field)                                                                                \
	{                                                                                          \
		#field, offsetof(struct run_facts, field), sizeof(((struct run_facts *)0)->field)  \
	}

static const struct text_field text_fields[] = {
	TEXT(run_id), TEXT(version), TEXT(door),    TEXT(kernel),
	TEXT(canary), TEXT(scope),   TEXT(command), TEXT(options),
};

#define TEXT_FIELDS (sizeof(text_fields) / sizeof(*text_fields))

/* ---- writing ---- */

/* Takes ownership of value; NULL, as json-c returns when out of memory, fails. */
static bool add(struct json_object *object, const char *name, struct json_object *value)
{
	if (value && json_object_object_add(object, name, value) == 0)
		return true;
	json_object_put(value);
	return false;
}

static bool add_hex(struct json_object *object, const char *name, const uint8_t *data, size_t size)
{
	char text[2 * 32 + 1] = "";

	for (size_t i = 0; i < size; i++)
		snprintf(text + 2 * i, 3, "%02x", data[i]);
	return add(object, name, json_object_new_string(text));
}

static bool add_text(struct json_object *object, const struct text_field *field,
		     const struct run_facts *facts)
{
	const char *text = (const char *)facts + field->at;

	return add(object, field->name,
		   json_object_new_string_len(text, (int)strnlen(text, field->size - 1)));
}

int recording_put_facts(struct buffer *out, const struct run_facts *facts)
{
	struct json_object *object = json_object_new_object();
	const char *text = NULL;
	bool good;
	int err = -ENOMEM;

	if (!object)
		return -ENOMEM;
	good = add(object, "wire_event_version", json_object_new_int(WIRE_EVENT_VERSION)) &&
	       add(object, "counters", json_object_new_int(WIRE_COUNTER_COUNT)) &&
	       add(object, "argument_count", json_object_new_int(facts->argument_count)) &&
	       add(object, "wall_offset_ns", json_object_new_int64(facts->wall_offset_ns)) &&
	       add(object, "start_ns", json_object_new_uint64(facts->start_ns)) &&
	       add_hex(object, "boot_id", facts->boot_id, sizeof(facts->boot_id)) &&
	       add_hex(object, "salt", facts->salt, sizeof(facts->salt));
	for (size_t i = 0; good && i < TEXT_FIELDS; i++)
		good = add_text(object, &text_fields[i], facts);
	if (good && facts->policy.size)
		good = add(object, "policy",
			   json_object_new_string_len((const char *)facts->policy.data, (int)facts->policy.size));
	if (good)
		text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN |
								      JSON_C_TO_STRING_NOSLASHESCAPE);
	if (text)
		err = buffer_append(out, bytes_of_string(text));
	json_object_put(object);
	return err;
}

/* ---- reading ---- */

static bool take_text(struct json_object *object, const struct text_field *field,
		      struct run_facts *facts)
{
	char *to = (char *)facts + field->at;
	struct json_object *value;
	size_t size;

	if (!json_object_object_get_ex(object, field->name, &value) ||
	    !json_object_is_type(value, json_type_string))
		return false;
	size = (size_t)json_object_get_string_len(value);
	if (size >= field->size || strlen(json_object_get_string(value)) != size)
		return false;
	memcpy(to, json_object_get_string(value), size + 1);
	return true;
}

static bool take_hex(struct json_object *object, const char *name, uint8_t *data, size_t size)
{
	struct json_object *value;

	return json_object_object_get_ex(object, name, &value) && json_object_is_type(value, json_type_string) &&
	       hex_read((struct bytes){(const uint8_t *)json_object_get_string(value),
				       (size_t)json_object_get_string_len(value)}, data, size);
}

static bool take_signed(struct json_object *object, const char *name, int64_t low, int64_t high,
			int64_t *ret_number)
{
	struct json_object *value;
	int64_t number;

	if (!json_object_object_get_ex(object, name, &value) ||
	    !json_object_is_type(value, json_type_int))
		return false;
	number = json_object_get_int64(value);
	if (number < low || number > high)
		return false;
	*ret_number = number;
	return true;
}

static bool take_unsigned(struct json_object *object, const char *name, uint64_t *ret_number)
{
	struct json_object *value;

	if (!json_object_object_get_ex(object, name, &value) ||
	    !json_object_is_type(value, json_type_int) || json_object_get_int64(value) < 0)
		return false;
	*ret_number = json_object_get_uint64(value);
	return true;
}

/* The name of the first field that is missing or wrong, or NULL. */
static const char *take_all(struct json_object *object, struct run_facts *facts)
{
	int64_t number;

	if (!take_signed(object, "argument_count", INT32_MIN, INT32_MAX, &number))
		return "argument_count";
	facts->argument_count = (int32_t)number;
	if (!take_signed(object, "wall_offset_ns", INT64_MIN, INT64_MAX, &facts->wall_offset_ns))
		return "wall_offset_ns";
	if (!take_unsigned(object, "start_ns", &facts->start_ns))
		return "start_ns";
	if (!take_hex(object, "boot_id", facts->boot_id, sizeof(facts->boot_id)))
		return "boot_id";
	if (!take_hex(object, "salt", facts->salt, sizeof(facts->salt)))
		return "salt";
	for (size_t i = 0; i < TEXT_FIELDS; i++)
		if (!take_text(object, &text_fields[i], facts))
			return text_fields[i].name;
	return NULL;
}

static int parse(struct bytes text, struct json_object **ret_object)
{
	struct json_tokener *tokener = json_tokener_new_ex(4);
	struct json_object *object;

	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT);
	object = json_tokener_parse_ex(tokener, (const char *)text.data, (int)text.size);
	json_tokener_free(tokener);
	if (!json_object_is_type(object, json_type_object)) {
		json_object_put(object);
		return -EBADMSG;
	}
	*ret_object = object;
	return 0;
}

/* There is none where the run had no policy. 0, -EBADMSG or -ENOMEM. */
static int take_policy(struct json_object *object, struct run_facts *facts, struct buffer *policy)
{
	struct json_object *value;
	int err;

	if (!json_object_object_get_ex(object, "policy", &value))
		return 0;
	if (!json_object_is_type(value, json_type_string))
		return -EBADMSG;
	err = buffer_append(policy, (struct bytes){(const uint8_t *)json_object_get_string(value),
						   (size_t)json_object_get_string_len(value)});
	facts->policy = buffer_bytes(policy);
	return err;
}

int recording_take_facts(struct bytes text, struct run_facts *ret_facts, struct buffer *policy,
			 const char **ret_wrong)
{
	struct run_facts facts = {0};
	struct json_object *object;
	int64_t version, counters;
	int err = parse(text, &object);

	*ret_wrong = "JSON text";
	if (err)
		return err;
	err = -EBADMSG;
	*ret_wrong = "wire_event_version";
	if (!take_signed(object, "wire_event_version", 0, UINT8_MAX, &version) ||
	    !take_signed(object, "counters", 0, UINT16_MAX, &counters))
		goto out;
	if (version != WIRE_EVENT_VERSION || counters != WIRE_COUNTER_COUNT) {
		err = -EPROTONOSUPPORT;
		goto out;
	}
	*ret_wrong = take_all(object, &facts);
	if (*ret_wrong)
		goto out;
	*ret_wrong = "policy";
	err = take_policy(object, &facts, policy);
	if (!err)
		*ret_facts = facts;
out:
	json_object_put(object);
	return err;
}
