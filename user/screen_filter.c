/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter: words that must all match, "name:word" in one field only, "!word"
 * must not match. Letters compare without case.
 */
#include "screen_parts.h"
#include "ascii.h"

static const struct {
	const char *name;
	enum screen_field field;
} fields[] = {
	{"method:", FIELD_METHOD}, {"path:", FIELD_PATH},     {"pid:", FIELD_PID},
	{"command:", FIELD_COMMAND}, {"status:", FIELD_STATUS}, {"finding:", FIELD_FINDING},
};

static struct screen_term parse_term(struct bytes word)
{
	struct screen_term term = {.field = FIELD_ANY};

	if (word.size > 1 && word.data[0] == '!') {
		term.negated = true;
		bytes_take(&word, 1);
	}
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		struct bytes name = bytes_of_string(fields[i].name);

		if (word.size < name.size || !bytes_equal_nocase((struct bytes){word.data, name.size}, name))
			continue;
		term.field = fields[i].field;
		bytes_take(&word, name.size);
		break;
	}
	for (size_t i = 0; i < word.size && i < sizeof(term.text) - 1; i++)
		term.text[i] = (char)ascii_lower(word.data[i]);
	return term;
}

void screen_filter_parse(struct screen_model *model)
{
	struct bytes rest = bytes_of_string(model->filter);

	model->term_count = 0;
	while (rest.size && model->term_count < SCREEN_TERMS_MAX) {
		struct bytes word = bytes_take(&rest, bytes_find(rest, ' '));

		bytes_take(&rest, 1);
		if (word.size)
			model->terms[model->term_count++] = parse_term(word);
	}
	model->stale = true;
	model->made_ns = 0;
}

static bool holds(struct bytes text, const char *word)
{
	size_t size = strlen(word);

	for (size_t i = 0; i + size <= text.size; i++) {
		size_t n = 0;

		while (n < size && ascii_lower(text.data[i + n]) == (uint8_t)word[n])
			n++;
		if (n == size)
			return true;
	}
	return false;
}

/* "4711" at the front of a number: "/ pid:47" finds it while it is being typed. */
static bool number_starts(uint64_t number, const char *word)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	return strncmp(text, word, strlen(word)) == 0;
}

/* "5xx" and "50" are statuses too; "-" is none yet. */
static bool status_matches(unsigned int status, const char *word)
{
	char text[16];
	size_t i;

	snprintf(text, sizeof(text), "%u", status);
	if (status == 0)
		return strcmp(word, "-") == 0;
	for (i = 0; word[i] && text[i]; i++)
		if (word[i] != 'x' && word[i] != text[i])
			return false;
	return word[i] == '\0';
}

static bool verdict_matches(const struct verdict *verdict, const char *word)
{
	const char *name = finding_name(verdict->finding);
	const char *severity = severity_name(verdict->severity);

	return holds(bytes_of_string(name), word) || (severity && strcmp(severity, word) == 0);
}

static bool finding_matches(const struct screen_call *call, const char *word)
{
	if (call->judgement && verdict_matches(&call->judgement->verdict, word))
		return true;
	return call->alone != FINDING_NONE && holds(bytes_of_string(finding_name(call->alone)), word);
}

static bool field_matches(const struct screen_call *call, enum screen_field field, const char *word)
{
	switch (field) {
	case FIELD_METHOD:
		return holds(screen_slice_of(call, call->method), word);
	case FIELD_PATH:
		return holds(screen_slice_of(call, call->target), word);
	case FIELD_PID:
		return number_starts(call->process.tgid, word);
	case FIELD_COMMAND:
		return holds(screen_slice_of(call, call->comm), word);
	case FIELD_STATUS:
		return status_matches(call->facts.status, word);
	case FIELD_FINDING:
		return finding_matches(call, word);
	case FIELD_ANY:
		break;
	}
	return holds(screen_slice_of(call, call->line), word) || holds(screen_slice_of(call, call->comm), word) ||
	       number_starts(call->process.tgid, word) || finding_matches(call, word);
}

bool screen_filter_call(const struct screen_model *model, const struct screen_call *call)
{
	for (unsigned int i = 0; i < model->term_count; i++) {
		const struct screen_term *term = &model->terms[i];

		if (field_matches(call, term->field, term->text) == term->negated)
			return false;
	}
	return true;
}

/* Only what a process and a path have: the other fields say nothing about a group. */
static bool group_matches(const struct screen_group *group, const struct screen_term *term)
{
	bool path = holds(buffer_bytes(&group->target), term->text);
	bool pid = number_starts(group->tgid, term->text);
	bool command = holds(bytes_of_string(group->comm), term->text);

	switch (term->field) {
	case FIELD_PATH:
		return path;
	case FIELD_PID:
		return pid;
	case FIELD_COMMAND:
		return command;
	case FIELD_ANY:
		return path || pid || command;
	default:
		return !term->negated;
	}
}

bool screen_filter_group(const struct screen_model *model, const struct screen_group *group)
{
	for (unsigned int i = 0; i < model->term_count; i++)
		if (group_matches(group, &model->terms[i]) == model->terms[i].negated)
			return false;
	return true;
}

bool screen_filter_finding(const struct screen_model *model, const struct screen_finding *finding)
{
	if (!model->term_count)
		return true;
	return (finding->later && screen_filter_call(model, finding->later)) ||
	       (finding->earlier && screen_filter_call(model, finding->earlier));
}
