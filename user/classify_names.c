/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A name that starts with a verb says what the tool does: create_charge,
 * createCharge, create-charge, CreateCharge. Of a name with a namespace
 * (github__create_issue, chat.postMessage, orders/create) the last part
 * counts. A name is a hint, never proof: a read known by its name alone still
 * counts as a low finding.
 */
#include "classify_rules.h"

struct verb {
	struct word word;
	const char *by;
};

#define VERB(word) {WORD(word), "tool prefix " word "_"}

static const struct verb read_verbs[] = {
	VERB("get"), VERB("list"), VERB("search"), VERB("read"), VERB("fetch"),
};

static const struct verb write_verbs[] = {
	VERB("create"),   VERB("charge"),   VERB("refund"),   VERB("send"),     VERB("delete"),
	VERB("update"),   VERB("add"),      VERB("append"),   VERB("approve"),  VERB("archive"),
	VERB("assign"),   VERB("book"),     VERB("buy"),      VERB("cancel"),   VERB("capture"),
	VERB("checkout"), VERB("deploy"),   VERB("deposit"),  VERB("destroy"),  VERB("drop"),
	VERB("edit"),     VERB("insert"),   VERB("invite"),   VERB("merge"),    VERB("modify"),
	VERB("move"),     VERB("patch"),    VERB("pay"),      VERB("post"),     VERB("publish"),
	VERB("purchase"), VERB("put"),      VERB("register"), VERB("reject"),   VERB("remove"),
	VERB("rename"),   VERB("replace"),  VERB("reply"),    VERB("reset"),    VERB("restore"),
	VERB("schedule"), VERB("set"),      VERB("submit"),   VERB("transfer"), VERB("upload"),
	VERB("upsert"),   VERB("withdraw"), VERB("write"),
};

static bool is_upper(uint8_t c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_lower(uint8_t c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_separator(uint8_t c)
{
	return c == '_' || c == '-' || c == ' ';
}

/* What stands behind the last namespace. */
static struct bytes own_part(struct bytes name)
{
	size_t start = 0;

	for (size_t i = 0; i < name.size; i++) {
		uint8_t c = name.data[i];

		if (c == '.' || c == '/' || c == ':' ||
		    (c == '_' && i > 0 && name.data[i - 1] == '_'))
			start = i + 1;
	}
	bytes_take(&name, start);
	return name;
}

/* Up to the end, to a separator, or to where small letters turn to a capital. */
static struct bytes first_word(struct bytes name)
{
	size_t size = 0;

	while (size < name.size && !is_separator(name.data[size]) &&
	       !(size > 0 && is_upper(name.data[size]) && is_lower(name.data[size - 1])))
		size++;
	return bytes_take(&name, size);
}

static const struct verb *verb_of(const struct verb *verbs, size_t count, struct bytes word)
{
	for (size_t i = 0; i < count; i++)
		if (word_is_nocase(&verbs[i].word, word))
			return &verbs[i];
	return NULL;
}

/* get_or_create, list-and-delete, readAndMark: more than a read. */
static bool does_more(struct bytes name)
{
	while (name.size) {
		struct bytes word = first_word(name);

		if (bytes_equal_nocase(word, BYTES("or")) || bytes_equal_nocase(word, BYTES("and")))
			return true;
		bytes_take(&name, word.size);
		while (name.size && is_separator(name.data[0]))
			bytes_take(&name, 1);
	}
	return false;
}

bool classify_names_tool(struct bytes name, struct class_verdict *ret_verdict)
{
	struct bytes part = own_part(name), word = first_word(part);
	const struct verb *verb;

	verb = verb_of(write_verbs, COUNT_OF(write_verbs), word);
	if (verb) {
		*ret_verdict = (struct class_verdict){.class = CLASS_MUTATING,
						      .source = CLASS_BY_TOOL_NAME,
						      .by = verb->by,
						      .known_write = true};
		return true;
	}
	verb = verb_of(read_verbs, COUNT_OF(read_verbs), word);
	if (!verb || does_more(part))
		return false;
	*ret_verdict = (struct class_verdict){
		.class = CLASS_READ, .source = CLASS_BY_TOOL_NAME, .by = verb->by};
	return true;
}

/* "list_42" in a path is rather the id of a list than a tool. */
static bool has_digit(struct bytes name)
{
	for (size_t i = 0; i < name.size; i++)
		if (name.data[i] >= '0' && name.data[i] <= '9')
			return true;
	return false;
}

bool classify_names_segment(struct bytes segment, struct class_verdict *ret_verdict)
{
	struct class_verdict verdict;

	if (!classify_names_tool(segment, &verdict))
		return false;
	if (verdict.class == CLASS_READ &&
	    (has_digit(segment) || verb_of(read_verbs, COUNT_OF(read_verbs), segment) ||
	     bytes_find(segment, ':') < segment.size))
		return false;
	*ret_verdict = verdict;
	return true;
}
