/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AWS protocols in which every call is a POST to one path. In the JSON ones
 * X-Amz-Target names the operation behind its last dot
 * (DynamoDB_20120810.GetItem); in the Query and EC2 ones a form does
 * (Action=DescribeInstances), and the date of the API's version stands beside it.
 */
#include "classify_rules.h"

#define READS(word) {WORD(word), "aws target " word, "aws action " word}

static const struct {
	struct word word;
	const char *by_target;
	const char *by_action;
} aws_reads[] = {
	READS("Get"),  READS("List"),     READS("Describe"), READS("Query"),
	READS("Scan"), READS("BatchGet"), READS("Head"),     READS("Receive"),
};

/* 2016-11-15 */
static bool is_date(struct bytes text)
{
	for (size_t i = 0; i < text.size; i++) {
		bool dash = i == 4 || i == 7;

		if (dash ? text.data[i] != '-' : text.data[i] < '0' || text.data[i] > '9')
			return false;
	}
	return text.size == 10;
}

static bool is_form(const struct call *call)
{
	struct bytes type = call->content_type;

	type.size = bytes_find(type, ';');
	return call->body_held && bytes_equal_nocase(bytes_trim(type), BYTES("application/x-www-form-urlencoded"));
}

/* Action of a form that has it once, and a Version that is a date; empty for any other. */
static struct bytes action_of(const struct call *call)
{
	struct bytes rest = is_form(call) ? call->body : (struct bytes){0}, action = {0};
	bool version = false, twice = false;

	while (rest.size) {
		struct bytes value = bytes_take(&rest, bytes_find(rest, '&')), name = bytes_take(&value, bytes_find(value, '='));

		bytes_take(&rest, 1);
		bytes_take(&value, 1);
		if (bytes_equal(name, BYTES("Version")))
			version = is_date(value);
		if (!bytes_equal(name, BYTES("Action")))
			continue;
		twice = action.size != 0;
		action = value;
	}
	return version && !twice ? action : (struct bytes){0};
}

bool classify_aws(struct call *call, const struct class_fields *fields,
		  struct class_verdict *ret_verdict)
{
	struct bytes operation = fields->aws_target;
	struct class_verdict by_name;
	bool target;

	for (size_t dot = bytes_find(operation, '.'); dot < operation.size;
	     dot = bytes_find(operation, '.'))
		bytes_take(&operation, dot + 1);
	target = operation.size;
	if (!target && !fields->aws_target.size)
		operation = action_of(call);
	if (operation.size == 0)
		return false;
	call->protocol = PROTOCOL_AWS;
	*ret_verdict = (struct class_verdict){.class = CLASS_READ, .source = CLASS_BY_PROTOCOL};
	for (size_t i = 0; i < COUNT_OF(aws_reads); i++) {
		if (classify_paths_hump(operation, &aws_reads[i].word)) {
			ret_verdict->by = target ? aws_reads[i].by_target : aws_reads[i].by_action;
			return true;
		}
	}
	ret_verdict->class = CLASS_MUTATING;
	ret_verdict->by = target ? "aws target" : "aws action";
	ret_verdict->known_write =
		classify_names_tool(operation, &by_name) && by_name.class == CLASS_MUTATING;
	return true;
}
