/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the target's path says about a POST: sign-in, telemetry, Google's
 * ":verb" and segments that only read. A path is a convention, not a promise:
 * a read known by its path alone still counts as a low finding.
 *
 * /ingest is not in the telemetry list: for many it takes orders and events
 * that are billed, and only a policy can know.
 */
#include "classify_rules.h"

struct segment_rule {
	struct word word;
	const char *by;
};

#define READS(word) {WORD(word), "path segment " word}

/* As the last segment, or the one before the last (/search/users). */
static const struct segment_rule read_segments[] = {
	READS("search"),     READS("_search"),    READS("_msearch"),       READS("query"),
	READS("list"),       READS("count"),      READS("_count"),         READS("count_tokens"),
	READS("tokenize"),   READS("detokenize"), READS("apply-template"), READS("rerank"),
	READS("reranking"),  READS("score"),      READS("classify"),       READS("moderations"),
	READS("similarity"), READS("validate"),   READS("verify"),         READS("preview"),
	READS("estimate"),   READS("quote"),      READS("lookup"),         READS("batch-get"),
	READS("batchGet"),   READS("explain"),    READS("status"),         READS("poll"),
	READS("health"),     READS("introspect"), READS("userinfo"),       READS("get"),
	READS("read"),       READS("fetch"),
};

struct path_rule {
	struct word last;
	struct word second; /* a trailing '*' stands for any rest */
	struct word third;
	enum call_class class;
	const char *by;
};

static const struct path_rule path_rules[] = {
	{WORD("token"), ANY, ANY, CLASS_AUTH, "auth path token"},
	{WORD("login"), ANY, ANY, CLASS_AUTH, "auth path login"},
	{WORD("logout"), ANY, ANY, CLASS_AUTH, "auth path logout"},
	{WORD("signin"), ANY, ANY, CLASS_AUTH, "auth path signin"},
	{WORD("refresh"), WORD("auth"), ANY, CLASS_AUTH, "auth path auth/refresh"},
	{WORD("revoke"), WORD("oauth*"), ANY, CLASS_AUTH, "auth path oauth/revoke"},
	{WORD("traces"), WORD("v1"), ANY, CLASS_TELEMETRY, "telemetry path /v1/traces"},
	{WORD("logs"), WORD("v1"), ANY, CLASS_TELEMETRY, "telemetry path /v1/logs"},
	{WORD("metrics"), WORD("v1"), ANY, CLASS_TELEMETRY, "telemetry path /v1/metrics"},
	{WORD("traces"), WORD("v0.*"), ANY, CLASS_TELEMETRY, "telemetry path /v0.N/traces"},
	{WORD("spans"), WORD("v2"), WORD("api"), CLASS_TELEMETRY, "telemetry path /api/v2/spans"},
	{WORD("push"), WORD("v1"), WORD("api"), CLASS_TELEMETRY, "telemetry path /api/v1/push"},
	{WORD("envelope"), ANY, WORD("api"), CLASS_TELEMETRY, "telemetry path /api/N/envelope"},
};

#define VERB(word) {WORD(word), "google verb :" word}

/* Google API design guide, custom methods. */
static const struct segment_rule read_verbs[] = {
	VERB("get"), VERB("list"), VERB("search"), VERB("query"), VERB("lookup"), VERB("batchGet"),
};

/* The word itself, or the word and more: countTokens, testIamPermissions. */
static const struct segment_rule read_verb_starts[] = {VERB("count"), VERB("compute"),
						       VERB("test")};

static struct bytes take_last_segment(struct bytes *path)
{
	struct bytes segment;
	size_t start = path->size;

	while (start && path->data[start - 1] != '/')
		start--;
	segment = *path;
	bytes_take(&segment, start);
	path->size = start ? start - 1 : 0;
	return segment;
}

struct path_tail classify_paths_tail(struct bytes path)
{
	struct path_tail tail;

	while (path.size && path.data[path.size - 1] == '/')
		path.size--;
	tail.last = take_last_segment(&path);
	tail.second = take_last_segment(&path);
	tail.third = take_last_segment(&path);
	return tail;
}

struct bytes classify_paths_verb(struct bytes segment)
{
	size_t start = segment.size;

	while (start && segment.data[start - 1] != ':')
		start--;
	if (start == 0)
		return (struct bytes){0};
	bytes_take(&segment, start);
	return segment;
}

bool classify_paths_hump(struct bytes name, const struct word *word)
{
	if (name.size < word->size || !word_is(word, (struct bytes){name.data, word->size}))
		return false;
	return name.size == word->size ||
	       (name.data[word->size] >= 'A' && name.data[word->size] <= 'Z');
}

static bool matches(struct bytes segment, const struct word *pattern)
{
	struct word start = *pattern;

	if (pattern->text && pattern->text[pattern->size - 1] == '*') {
		start.size--;
		if (segment.size > start.size)
			segment.size = start.size;
	}
	return word_is_nocase(&start, segment);
}

static const char *read_verb(struct bytes segment)
{
	struct bytes verb = classify_paths_verb(segment);

	if (verb.size == 0)
		return NULL;
	for (size_t i = 0; i < COUNT_OF(read_verbs); i++)
		if (word_is(&read_verbs[i].word, verb))
			return read_verbs[i].by;
	for (size_t i = 0; i < COUNT_OF(read_verb_starts); i++)
		if (classify_paths_hump(verb, &read_verb_starts[i].word))
			return read_verb_starts[i].by;
	return NULL;
}

static const char *read_segment(struct bytes segment)
{
	for (size_t i = 0; segment.size && i < COUNT_OF(read_segments); i++)
		if (word_is_nocase(&read_segments[i].word, segment))
			return read_segments[i].by;
	return NULL;
}

bool classify_paths_rule(const struct path_tail *tail, struct class_verdict *ret_verdict)
{
	struct class_verdict verdict = {.class = CLASS_READ, .source = CLASS_BY_PATH};

	for (size_t i = 0; i < COUNT_OF(path_rules); i++) {
		const struct path_rule *rule = &path_rules[i];

		if (matches(tail->last, &rule->last) && matches(tail->second, &rule->second) &&
		    matches(tail->third, &rule->third)) {
			verdict.class = rule->class;
			verdict.by = rule->by;
			*ret_verdict = verdict;
			return true;
		}
	}
	verdict.by = read_verb(tail->last);
	if (!verdict.by)
		verdict.by = read_segment(tail->last);
	if (!verdict.by)
		verdict.by = read_segment(tail->second);
	if (!verdict.by)
		return false;
	*ret_verdict = verdict;
	return true;
}
