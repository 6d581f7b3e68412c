/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * AWS JSON protocols: every call is a POST to "/", and X-Amz-Target names the
 * operation behind its last dot (DynamoDB_20120810.GetItem).
 */
#include "classify_rules.h"

#define READS(word) {WORD(word), "aws target " word}

static const struct {
	struct word word;
	const char *by;
} aws_reads[] = {
	READS("Get"),  READS("List"),     READS("Describe"), READS("Query"),
	READS("Scan"), READS("BatchGet"), READS("Head"),     READS("Receive"),
};

bool classify_aws(struct call *call, const struct class_fields *fields,
		  struct class_verdict *ret_verdict)
{
	struct bytes operation = fields->aws_target;
	struct class_verdict by_name;

	for (size_t dot = bytes_find(operation, '.'); dot < operation.size;
	     dot = bytes_find(operation, '.'))
		bytes_take(&operation, dot + 1);
	if (operation.size == 0)
		return false;
	call->protocol = PROTOCOL_AWS;
	*ret_verdict = (struct class_verdict){.class = CLASS_READ, .source = CLASS_BY_PROTOCOL};
	for (size_t i = 0; i < COUNT_OF(aws_reads); i++) {
		if (classify_paths_hump(operation, &aws_reads[i].word)) {
			ret_verdict->by = aws_reads[i].by;
			return true;
		}
	}
	ret_verdict->class = CLASS_MUTATING;
	ret_verdict->by = "aws target";
	ret_verdict->known_write =
		classify_names_tool(operation, &by_name) && by_name.class == CLASS_MUTATING;
	return true;
}
