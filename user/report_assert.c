/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NAME OP NUMBER, about one call.
 */
#include "report.h"

#include <ctype.h>
#include <errno.h>

enum field { ATTEMPTS, BILLED, WASTED, PROMPT, OUTPUT, CACHED, REASONING, TOKENS, PENDING, DONE, ABANDONED, FIELD_COUNT };

static const char *const fields[FIELD_COUNT] = {
	[ATTEMPTS] = "attempts",	   [BILLED] = "billed",	   [WASTED] = "wasted_tokens",
	[PROMPT] = "prompt_tokens",	   [OUTPUT] = "output_tokens", [CACHED] = "cached_tokens",
	[REASONING] = "reasoning_tokens", [TOKENS] = "tokens",	   [PENDING] = "pending",
	[DONE] = "done",		   [ABANDONED] = "abandoned",
};

enum operation { AT_MOST, AT_LEAST, EQUAL, UNEQUAL, BELOW, ABOVE, OPERATION_COUNT };

/* Two characters before one. */
static const char *const operations[OPERATION_COUNT] = {
	[AT_MOST] = "<=", [AT_LEAST] = ">=", [EQUAL] = "==", [UNEQUAL] = "!=", [BELOW] = "<", [ABOVE] = ">",
};

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

static int find(const char *const *names, int count, const char *text, size_t size)
{
	for (int i = 0; i < count; i++)
		if (strlen(names[i]) == size && strncmp(names[i], text, size) == 0)
			return i;
	return -1;
}

int assertion_parse(const char *text, struct assertion *ret_assertion)
{
	struct assertion assertion;
	size_t size;
	char *end;

	text = skip_blanks(text);
	size = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
	assertion.field = find(fields, FIELD_COUNT, text, size);
	text = skip_blanks(text + size);
	size = strspn(text, "<>=!");
	assertion.operation = size == 1 && *text == '=' ? EQUAL : find(operations, OPERATION_COUNT, text, size);
	text = skip_blanks(text + size);
	if (assertion.field < 0 || assertion.operation < 0 || !isdigit((unsigned char)*text))
		return -EINVAL;
	errno = 0;
	assertion.value = strtoll(text, &end, 10);
	if (errno || *skip_blanks(end))
		return -EINVAL;
	*ret_assertion = assertion;
	return 0;
}

/* -1: not known. */
static int64_t value_of(enum field field, const struct store_call_row *row)
{
	const struct store_tokens *tokens = &row->tokens;

	switch (field) {
	case ATTEMPTS:
		return row->attempts;
	case BILLED:
		return row->billed;
	case WASTED:
		return row->wasted;
	case PROMPT:
		return tokens->input;
	case OUTPUT:
		return tokens->output;
	case CACHED:
		return tokens->cached;
	case REASONING:
		return tokens->reasoning;
	case TOKENS:
		return tokens->input < 0 || tokens->output < 0 ? -1 : tokens->input + tokens->output;
	case PENDING:
	case DONE:
	case ABANDONED:
		return strcmp(row->status, fields[field]) == 0;
	case FIELD_COUNT:
		break;
	}
	return -1;
}

bool assertion_needs_usage(const struct assertion *assertion)
{
	return assertion->field >= BILLED && assertion->field <= TOKENS;
}

bool assertion_holds(const struct assertion *assertion, const struct store_call_row *row)
{
	int64_t value = value_of((enum field)assertion->field, row);

	if (value < 0)
		return false;
	switch ((enum operation)assertion->operation) {
	case AT_MOST:
		return value <= assertion->value;
	case AT_LEAST:
		return value >= assertion->value;
	case EQUAL:
		return value == assertion->value;
	case UNEQUAL:
		return value != assertion->value;
	case BELOW:
		return value < assertion->value;
	case ABOVE:
		return value > assertion->value;
	case OPERATION_COUNT:
		break;
	}
	return false;
}
