/* SPDX-License-Identifier: BSD-2-Clause */
/* json-c builds a tree that is not used: what counts is where it stops. */
#include "json_syntax.h"
#include "json_scan.h"

#include <errno.h>
#include <json-c/json.h>
#include <stdio.h>

#define SYNTAX_DEPTH 16

void json_place(const uint8_t *start, const uint8_t *at, unsigned int *ret_line, unsigned int *ret_column)
{
	unsigned int line = 1, column = 1;

	for (const uint8_t *c = start; c < at; c++) {
		if (*c == '\n') {
			line++;
			column = 1;
		} else if ((*c & 0xc0) != 0x80) {
			column++;
		}
	}
	*ret_line = line;
	*ret_column = column;
}

int json_syntax_check(struct bytes text, const char *what, const uint8_t **ret_at, char ret_reason[JSON_SYNTAX_REASON_MAX])
{
	struct json_tokener *tokener = json_tokener_new_ex(SYNTAX_DEPTH);
	const uint8_t *end = text.data + text.size, *at;
	enum json_tokener_error error;
	struct json_object *object;

	if (!tokener)
		return -ENOMEM;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, (const char *)text.data, (int)text.size + 1);
	error = json_tokener_get_error(tokener);
	at = text.data + json_tokener_get_parse_end(tokener);
	json_object_put(object);
	json_tokener_free(tokener);
	*ret_at = at < end ? at : end;
	if (json_skip_space(text.data, end) == end)
		snprintf(ret_reason, JSON_SYNTAX_REASON_MAX, "the file is empty");
	else if (error != json_tokener_success && at >= end)
		snprintf(ret_reason, JSON_SYNTAX_REASON_MAX, "the file ends in the middle of %s", what);
	else if (error != json_tokener_success)
		snprintf(ret_reason, JSON_SYNTAX_REASON_MAX, "this is no JSON: %s", json_tokener_error_desc(error));
	else if (json_skip_space(at, end) < end)
		snprintf(ret_reason, JSON_SYNTAX_REASON_MAX, "something follows %s", what);
	else
		return 0;
	if (json_skip_space(text.data, end) == end)
		*ret_at = end;
	else if (error == json_tokener_success)
		*ret_at = json_skip_space(at, end);
	return -EINVAL;
}
