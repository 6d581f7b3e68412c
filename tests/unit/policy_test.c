/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * user/policy*.c: what a policy file says, what is refused and where, and which
 * rule is about a call. What a policy does to a run: policy_run_test.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "policy.h"

#ifndef README_FILE
#define README_FILE "README.md"
#endif

static struct policy *parse(const char *text)
{
	struct policy *policy = NULL;
	struct policy_error error;

	if (policy_parse(bytes_of_string(text), &policy, &error))
		fail_msg("%u:%u: %s", error.line, error.column, error.text);
	return policy;
}

static const struct policy_rule *rule_of(const struct policy *policy, size_t number)
{
	assert_true(number <= policy_rule_count(policy));
	return policy_rule_at(policy, number - 1);
}

static void says(struct bytes bytes, const char *text)
{
	assert_int_equal(bytes.size, strlen(text));
	if (bytes.size)
		assert_memory_equal(bytes.data, text, bytes.size);
}

/* ---- what it says ---- */

static void reads_every_field_of_a_rule(void **state)
{
	struct policy *policy = parse("{\"rules\": [{\"name\": \"charges\", \"comment\": \"why\", \"match\": {\"method\": \"POST\","
				      "\"host\": \"*.localhost\", \"port\": 8080, \"path\": \"/v1/**\", \"header\": "
				      "\"X-Mode: dry *\", \"tool\": \"create_*\"}, \"class\": \"mutating\", \"severity\": "
				      "\"low\", \"key\": {\"headers\": [\"X-Order\"], \"members\": [\"order_key\", "
				      "\"seq\\u00e9\"]}, \"masks\": [\"$.nonce\", \"$.items[*].ts\", \"$['a b']\"], "
				      "\"window\": {\"process\": 60, \"across\": 3600}, \"scope\": \"cgroup\"}]}");
	const struct policy_rule *rule = rule_of(policy, 1);

	(void)state;
	says(rule->name, "charges");
	says(rule->match.method, "POST");
	says(rule->match.host, "*.localhost");
	assert_int_equal(rule->match.port, 8080);
	says(rule->match.path, "/v1/**");
	says(rule->match.header, "X-Mode");
	says(rule->match.header_value, "dry *");
	says(rule->match.tool, "create_*");
	assert_true(rule->sets_class);
	assert_int_equal(rule->class, CLASS_MUTATING);
	assert_string_equal(rule->class_by, "policy rule 1 (charges)");
	assert_true(rule->limits->capped);
	assert_int_equal(rule->limits->at_most, SEVERITY_LOW);
	assert_int_equal(rule->carriers.header_count, 1);
	says(rule->carriers.headers[0].name, "X-Order");
	assert_string_equal(rule->carriers.headers[0].from, "X-Order");
	assert_int_equal(rule->carriers.member_count, 2);
	assert_string_equal(rule->carriers.members[0].from, "body.order_key");
	says(rule->carriers.members[1].name, "seq\xc3\xa9");
	assert_int_equal(rule->mask_count, 3);
	assert_string_equal(rule->equal_except, "nonce, items[*].ts, ['a b']");
	assert_string_equal(rule->limits->equal_except, rule->equal_except);
	assert_int_equal(rule->limits->window_ns, 60000000000);
	assert_int_equal(rule->limits->across_ns, 3600000000000);
	assert_true(rule->limits->same_cgroup);
	assert_false(rule->limits->same_process);
	policy_free(policy);
}

static void what_a_rule_does_not_say_it_does_not_set(void **state)
{
	struct policy *policy = parse("{\"rules\":[{\"match\":{}},{\"match\":{\"header\":\"X-A\"},\"scope\":\"tree\"}]}");
	const struct policy_rule *rule = rule_of(policy, 1);

	(void)state;
	assert_int_equal(rule->number, 1);
	assert_string_equal(rule->class_by, "policy rule 1");
	assert_false(rule->sets_class);
	assert_false(rule->limits->capped);
	assert_int_equal(rule->limits->window_ns, 0);
	assert_false(rule->limits->same_process);
	assert_null(rule->equal_except);
	assert_int_equal(rule_of(policy, 2)->match.header_value.size, 0);
	policy_free(policy);
}

static void applies_what_it_sets_for_the_run_and_nothing_else(void **state)
{
	struct judge_options options, defaults;
	struct policy *policy = parse("{}");

	(void)state;
	judge_options_defaults(&defaults);
	options = defaults;
	options.fail_on = SEVERITY_HIGH;
	policy_apply(policy, &options);
	assert_int_equal(options.fail_on, SEVERITY_HIGH);
	policy_free(policy);
	policy = parse("{\"fail_on\":\"info\",\"strict\":true,\"allow_blind\":[\"tls\",\"h2\"]}");
	policy_apply(policy, &options);
	assert_int_equal(options.fail_on, SEVERITY_INFO);
	assert_true(options.strict);
	assert_int_equal(options.allow_blind, 1u << BLIND_TLS | 1u << BLIND_H2);
	assert_int_equal(options.max_findings_per_call, defaults.max_findings_per_call);
	policy_free(policy);
	policy = parse("{\"strict\":false,\"allow_blind\":[]}");
	policy_apply(policy, &options);
	assert_false(options.strict);
	assert_int_equal(options.allow_blind, 0);
	policy_free(policy);
}

static void the_printed_default_changes_nothing(void **state)
{
	struct judge_options options, defaults;
	struct policy_error error;
	struct policy *policy = NULL;
	struct buffer text = {0};

	(void)state;
	assert_int_equal(policy_default(&text), 0);
	assert_int_equal(policy_parse(buffer_bytes(&text), &policy, &error), 0);
	assert_int_equal(policy_rule_count(policy), 0);
	judge_options_defaults(&defaults);
	memset(&options, 0xff, sizeof(options));
	options.allow_incomplete = defaults.allow_incomplete;
	options.max_findings_per_call = defaults.max_findings_per_call;
	options.across_processes = defaults.across_processes;
	policy_apply(policy, &options);
	assert_int_equal(options.fail_on, defaults.fail_on);
	assert_int_equal(options.strict, defaults.strict);
	assert_int_equal(options.allow_blind, defaults.allow_blind);
	assert_int_equal(policy_secrets(policy)->query_name_count, 0);
	assert_int_equal(policy_secrets(policy)->path_count, 0);
	policy_free(policy);
	buffer_done(&text);
}

static void keeps_its_text_and_the_hash_of_it(void **state)
{
	static const char text[] = "\xef\xbb\xbf{ \"rules\": [] }\n";
	struct policy *policy = parse(text);
	struct digest digest;

	(void)state;
	says(policy_text(policy), text);
	assert_int_equal(digest_of(BYTES(text), &digest), 0);
	assert_true(digest_equal(policy_sha(policy), &digest));
	policy_free(policy);
}

/* ---- what is refused ---- */

struct refused {
	const char *text;
	unsigned int line, column;
	const char *what;
};

static void refuse(const struct refused *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct policy *policy = NULL;
		struct policy_error error = {0};

		if (policy_parse(bytes_of_string(rows[i].text), &policy, &error) != -EINVAL)
			fail_msg("taken: %s", rows[i].text);
		assert_null(policy);
		assert_string_equal(error.text, rows[i].what);
		if (error.line != rows[i].line || error.column != rows[i].column)
			fail_msg("%s: %u:%u", rows[i].text, error.line, error.column);
	}
}

static void refuses_what_is_no_json(void **state)
{
	static const struct refused rows[] = {
		{"", 1, 1, "the file is empty"},
		{" \n\n", 3, 1, "the file is empty"},
		{"{\n", 2, 1, "the file ends in the middle of the policy"},
		{"{\"strict\": tru}", 1, 15, "this is no JSON: boolean expected"},
		{"{\n  \"rules\": [],\n}", 3, 1, "this is no JSON: unexpected character"},
		{"{} {}", 1, 4, "this is no JSON: unexpected character"},
		{"{'strict':true}", 1, 2, "this is no JSON"},
		{"{\"fail_on\":NaN}", 1, 2, "this is no JSON"},
		{"{\"comment\":\"\xff\"}", 1, 13, "this is no JSON: invalid utf-8 string"},
		{"[]", 1, 1, "a policy is an object in braces"},
		{"3", 1, 1, "a policy is an object in braces"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
}

static void refuses_unknown_and_repeated_fields(void **state)
{
	static const struct refused rows[] = {
		{"{\n \"rule\": []}", 2, 2,
		 "a policy has no field \"rule\"; it has comment, fail_on, strict, allow_blind, secrets, rules"},
		{"{\"rules\": [{\"match\": {}, \"clas\": \"read\"}]}", 1, 26,
		 "a rule has no field \"clas\"; it has name, comment, match, class, severity, key, masks, window, scope"},
		{"{\"rules\": [{\"match\": {\"\\u001b[2J\": 1}}]}", 1, 23,
		 "match has no field \"\\u001b[2J\"; it has method, host, port, path, header, tool"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"x\": []}}]}", 1, 34,
		 "key has no field \"x\"; it has headers, members"},
		{"{\"rules\": [{\"match\": {}, \"window\": {\"x\": 1}}]}", 1, 37,
		 "window has no field \"x\"; it has process, across"},
		{"{\"secrets\": {\"x\": []}}", 1, 14, "secrets has no field \"x\"; it has query, paths"},
		{"{\"strict\": true,\n\"strict\": true}", 2, 1, "a policy has the field strict twice"},
		{"{\"rules\": [{\"match\": {}, \"masks\": [], \"masks\": []}]}", 1, 39,
		 "a rule has the field masks twice"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
}

static void refuses_values_that_mean_nothing(void **state)
{
	static const struct refused rows[] = {
		{"{\"fail_on\": \"none\"}", 1, 13, "fail_on is info, low, medium or high, in quotes"},
		{"{\"strict\": 1}", 1, 12, "strict is true or false"},
		{"{\"allow_blind\": [\"tsl\"]}", 1, 18,
		 "a kind in allow_blind is tls, h2, websocket, connect, mptcp, joined_late, ktls, netns or other, in quotes"},
		{"{\"rules\": {}}", 1, 11, "rules is a list in square brackets"},
		{"{\"rules\": [{\"class\": \"read\"}]}", 1, 12, "a rule needs the field match; {} matches every call"},
		{"{\"rules\": [{\"match\": {}, \"class\": \"write\"}]}", 1, 35,
		 "class is mutating, read, llm, auth or telemetry, in quotes"},
		{"{\"rules\": [{\"match\": {}, \"severity\": 3}]}", 1, 38,
		 "severity is none, info, low, medium or high, in quotes"},
		{"{\"rules\": [{\"match\": {}, \"scope\": \"host\"}]}", 1, 35,
		 "scope is tree, process or cgroup, in quotes"},
		{"{\"rules\": [{\"match\": {\"method\": \"post\"}}]}", 1, 33,
		 "HTTP methods are upper case: no call has this one"},
		{"{\"rules\": [{\"match\": {\"method\": \"GET POST\"}}]}", 1, 33,
		 "method is one HTTP method, such as POST"},
		{"{\"rules\": [{\"match\": {\"port\": \"80\"}}]}", 1, 31, "port is a whole number from 1 to 65535"},
		{"{\"rules\": [{\"match\": {\"port\": 65536}}]}", 1, 31, "port is a whole number from 1 to 65535"},
		{"{\"rules\": [{\"match\": {\"host\": \"a:80\"}}]}", 1, 31,
		 "host is without a port: there is the field port, and an IPv6 address stands in [ ]"},
		{"{\"rules\": [{\"match\": {\"header\": \"a b: c\"}}]}", 1, 33,
		 "header is a name, or a name, a colon and a value"},
		{"{\"rules\": [{\"match\": {\"header\": \"X-A:\"}}]}", 1, 33, "header value: it is empty"},
		{"{\"rules\": [{\"match\": {}, \"window\": {\"process\": 0}}]}", 1, 48,
		 "process (seconds) is a whole number from 1 to 316224000"},
		{"{\"rules\": [{\"match\": {}, \"window\": {\"across\": 1.5}}]}", 1, 47,
		 "across (seconds) is a whole number from 1 to 316224000"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"members\": [\"$.a\"]}}]}", 1, 46,
		 "a member of key is a plain name, at the top level of the body"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"headers\": [\"a b\"]}}]}", 1, 46,
		 "a header of key is the name of a header"},
		{"{\"rules\": [{\"match\": {}, \"name\": \"\"}]}", 1, 34, "name is empty"},
		{"{\"rules\": [{\"match\": {}, \"name\": \"a\\u0000\"}]}", 1, 34, "name holds a control character"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
}

static void refuses_bad_globs_and_masks_where_they_are(void **state)
{
	static const struct refused rows[] = {
		{"{\"rules\": [{\"match\": {\"path\": \"v1\"}}]}", 1, 31, "path: a path starts with /"},
		{"{\"rules\": [{\"match\": {\"path\": \"/a**\"}}]}", 1, 31,
		 "path: ** stands alone between two slashes"},
		{"{\"rules\": [{\"match\": {\"tool\": \"a**\"}}]}", 1, 31,
		 "tool: ** is for paths; one * stands for any bytes here"},
		{"{\"rules\": [{\"match\": {}, \"masks\": [\"$.a..b\"]}]}", 1, 41,
		 "mask: a mask names every step: there is no .."},
		{"{\"rules\": [{\"match\": {}, \"masks\": [\"nonce\"]}]}", 1, 37,
		 "mask: a mask starts with $, as in $.nonce"},
		{"{\"secrets\": {\"paths\": [\"/a/**\"]}}", 1, 24, "path: ** may only stand at its start: /**/"},
		{"{\"secrets\": {\"query\": [3]}}", 1, 24, "a name in query is a text in quotes"},
		{"{\"secrets\": {\"paths\": [\"/a/b\"]}}", 1, 24, "path: * must stand for what is secret in it"},
		{"{\"secrets\": {\"paths\": [\"/**/b\"]}}", 1, 24, "path: * must stand for what is secret in it"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
}

static void columns_count_characters(void **state)
{
	static const struct refused row = {"{\"comment\": \"\xc3\xa9\xe2\x82\xac\", \"x\": 1}", 1, 19,
					   "a policy has no field \"x\"; it has comment, fail_on, strict, allow_blind, "
					   "secrets, rules"};

	(void)state;
	refuse(&row, 1);
}

static void refuses_two_rules_that_contradict(void **state)
{
	static const struct refused rows[] = {
		{"{\"rules\": [\n {\"match\": {\"path\": \"/a\"}, \"class\": \"read\"},\n {\"match\": {\"path\": \"/b\"}},\n"
		 " {\"match\": {\"path\": \"/a\"}, \"class\": \"llm\"}]}",
		 4, 2, "rule 3 matches the same calls as rule 1 (line 2) and sets something else: it would never be used"},
		{"{\"rules\": [{\"match\": {\"header\": \"x-a: 1\"}, \"masks\": [\"$.a\"]},{\"match\": {\"header\": \"X-A:1\"}}]}", 1,
		 62, "rule 2 matches the same calls as rule 1 (line 1) and sets something else: it would never be used"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"members\": [\"a\"]}},{\"match\": {}, \"key\": {\"members\": "
		 "[\"b\"]}}]}",
		 1, 53, "rule 2 matches the same calls as rule 1 (line 1) and sets something else: it would never be used"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
	/* The same twice is no contradiction; and a wider rule after a narrower one is what order is for. */
	policy_free(parse("{\"rules\": [{\"match\": {}, \"class\": \"read\"}, {\"match\": {}, \"class\": \"read\"}]}"));
	policy_free(parse("{\"rules\": [{\"match\": {\"path\": \"/a\"}, \"class\": \"read\"}, {\"match\": {}, \"class\": \"llm\"}]}"));
}

/* What one rule matches, and whether all that another matches is among it. */
static void a_rule_whose_calls_all_go_to_an_earlier_one_is_refused(void **state)
{
	static const struct {
		const char *earlier, *later;
		bool covers;
	} cases[] = {
		{"{}", "\"path\": \"/a\"", true},
		{"\"method\": \"POST\"", "\"method\": \"POST\", \"port\": 80", true},
		{"\"method\": \"POST\"", "\"method\": \"PUT\"", false},
		{"\"method\": \"POST\"", "\"path\": \"/a\"", false},
		{"\"port\": 80", "\"port\": 80, \"host\": \"a\"", true},
		{"\"port\": 80", "\"port\": 81", false},
		{"\"path\": \"/v1/**\"", "\"path\": \"/v1/orders/*\"", true},
		{"\"path\": \"/v1/**\"", "\"path\": \"/v2/orders\"", false},
		{"\"path\": \"/v1/*\"", "\"path\": \"/v1/orders\"", true},
		{"\"path\": \"/v1/*\"", "\"path\": \"/v1/o*s\"", true},
		{"\"path\": \"/v1/*\"", "\"path\": \"/v1/a/b\"", false},
		{"\"path\": \"/v1/*\"", "\"path\": \"/v1/**\"", false},
		{"\"path\": \"/**\"", "\"path\": \"/v1/**/x\"", true},
		{"\"path\": \"/v1/**/x\"", "\"path\": \"/v1/**/x\", \"tool\": \"t\"", true},
		{"\"path\": \"/v1/o*\"", "\"path\": \"/v1/*\"", false},
		{"\"host\": \"*.internal\"", "\"host\": \"API.internal\"", true},
		{"\"host\": \"*\"", "\"path\": \"/a\"", false}, /* a call may have no host */
		{"\"tool\": \"*\"", "\"path\": \"/a\"", true},
		{"\"tool\": \"get_*\"", "\"tool\": \"get_user_*\"", true},
		{"\"tool\": \"get_*\"", "\"path\": \"/a\"", false},
		{"\"tool\": \"get_*\"", "\"tool\": \"GET_user\"", false},
		{"\"header\": \"X-Load\"", "\"header\": \"x-load: 1\"", true},
		{"\"header\": \"X-Load: *\"", "\"header\": \"x-load: 1\"", true},
		{"\"header\": \"X-Load: 1\"", "\"header\": \"x-load\"", false},
		{"\"header\": \"X-Load\"", "\"header\": \"X-Other\"", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool any = strcmp(cases[i].earlier, "{}") == 0;
		struct policy_error error;
		struct policy *policy = NULL;
		char text[512];
		int err;

		snprintf(text, sizeof(text), "{\"rules\": [{\"match\": {%s}, \"severity\": \"none\"},\n{\"match\": {%s}, \"severity\": \"low\"}]}",
			 any ? "" : cases[i].earlier, cases[i].later);
		err = policy_parse(bytes_of_string(text), &policy, &error);
		if (!cases[i].covers) {
			if (err)
				fail_msg("%s: %s", text, error.text);
			policy_free(policy);
			continue;
		}
		if (!err)
			fail_msg("%s", text);
		assert_int_equal(err, -EINVAL);
		assert_string_equal(error.text,
				    "rule 2 matches no call but those of rule 1 (line 1) and sets something else: it would never be used");
		assert_int_equal(error.line, 2);
		assert_int_equal(error.column, 1);
	}
	/* It says the same: no harm. */
	policy_free(parse("{\"rules\": [{\"match\": {}, \"class\": \"read\"}, {\"match\": {\"port\": 1}, \"class\": \"read\"}]}"));
}

static void refuses_a_key_that_holds_credentials_or_is_masked(void **state)
{
	static const struct refused rows[] = {
		{"{\"rules\": [{\"match\": {}, \"key\": {\"headers\": [\"AUTHORIZATION\"]}}]}", 1, 46,
		 "this header holds credentials, and keys are written to the ledger as they are"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"headers\": [\"X-Order\", \"Cookie\"]}}]}", 1, 57,
		 "this header holds credentials, and keys are written to the ledger as they are"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"members\": [\"api_key\"]}}]}", 1, 46,
		 "this member holds credentials, and keys are written to the ledger as they are"},
		{"{\"rules\": [{\"match\": {}, \"key\": {\"members\": [\"a\", \"order\"]}, \"masks\": [\"$.x\", \"$['order']\"]}]}", 1, 12,
		 "rule 1 masks the member that it names as a key (body.order): no key would be found"},
		{"{\"rules\": [{\"match\": {}, \"masks\": [\"$.*\"], \"key\": {\"members\": [\"order\"]}}]}", 1, 12,
		 "rule 1 masks the member that it names as a key (body.order): no key would be found"},
	};

	(void)state;
	refuse(rows, sizeof(rows) / sizeof(rows[0]));
	policy_free(parse("{\"rules\": [{\"match\": {}, \"key\": {\"members\": [\"order\"]}, \"masks\": [\"$.order.at\", \"$.items[*].order\"]}]}"));
}

/* count times piece between start and end; freed by the caller. */
static char *repeat(const char *start, const char *piece, size_t count, const char *end)
{
	struct buffer text = {0};

	buffer_append(&text, bytes_of_string(start));
	for (size_t i = 0; i < count; i++) {
		if (i)
			buffer_append_byte(&text, ',');
		buffer_append(&text, bytes_of_string(piece));
	}
	buffer_append(&text, bytes_of_string(end));
	buffer_append_byte(&text, '\0');
	return (char *)text.data;
}

static void refuses_too_much_of_anything(void **state)
{
	static const struct {
		const char *start, *piece, *end;
		size_t most;
		const char *what;
	} rows[] = {
		{"{\"rules\":[", "{\"match\":{}}", "]}", 256, "rules holds at most 256"},
		{"{\"rules\":[{\"match\":{},\"masks\":[", "\"$.a\"", "]}]}", 32, "masks holds at most 32"},
		{"{\"rules\":[{\"match\":{},\"key\":{\"members\":[", "\"a\"", "]}}]}", 16, "members holds at most 16"},
		{"{\"rules\":[{\"match\":{},\"key\":{\"headers\":[", "\"a\"", "]}}]}", 16, "headers holds at most 16"},
		{"{\"secrets\":{\"query\":[", "\"a\"", "]}}", 64, "query holds at most 64"},
		{"{\"secrets\":{\"paths\":[", "\"/*\"", "]}}", 64, "paths holds at most 64"},
	};
	struct policy *policy;
	struct policy_error error;
	char *text;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		text = repeat(rows[i].start, rows[i].piece, rows[i].most, rows[i].end);
		policy_free(parse(text));
		free(text);
		text = repeat(rows[i].start, rows[i].piece, rows[i].most + 1, rows[i].end);
		assert_int_equal(policy_parse(bytes_of_string(text), &policy, &error), -EINVAL);
		assert_string_equal(error.text, rows[i].what);
		free(text);
	}
	text = repeat("{\"comment\":\"", "xxxxxxxxxxxxxxx", POLICY_BYTES_MAX / 16, "\"}");
	assert_int_equal(policy_parse(bytes_of_string(text), &policy, &error), -EINVAL);
	assert_string_equal(error.text, "the file is larger than 128 KiB");
	free(text);
}

/* ---- which rule ---- */

static struct http_field fields[] = {
	{BYTES("X-Mode"), BYTES("wet")},
	{BYTES("x-mode"), BYTES("dry run")},
};
static struct http_head head = {.side = HTTP_REQUEST, .fields = fields, .field_count = 2};

static struct call a_call(void)
{
	return (struct call){.head = &head,
			     .method = BYTES("POST"),
			     .path = BYTES("/v1/charges"),
			     .host = BYTES("API.localhost:8080"),
			     .has_host = true,
			     .server = {.port = 8080},
			     .tool = BYTES("create_charge")};
}

static void every_matcher_is_looked_at(void **state)
{
	static const struct {
		const char *match;
		const char *differs;
	} rows[] = {
		{"", NULL},
		{"\"method\":\"POST\"", NULL},
		{"\"method\":\"PUT\"", "method"},
		{"\"port\":8080", NULL},
		{"\"port\":80", "port"},
		{"\"host\":\"api.*\"", NULL},
		{"\"host\":\"localhost\"", "host"},
		{"\"path\":\"/v1/*\"", NULL},
		{"\"path\":\"/v1\"", "path"},
		{"\"tool\":\"create_*\"", NULL},
		{"\"tool\":\"Create_*\"", "tool"},
		{"\"header\":\"X-MODE\"", NULL},
		{"\"header\":\"x-mode: dry*\"", NULL},
		{"\"header\":\"x-mode: dry\"", "header"},
		{"\"header\":\"X-Other\"", "header"},
		{"\"method\":\"POST\",\"port\":8080,\"path\":\"/v2\"", "path"},
	};
	struct call call = a_call();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[256];
		struct policy *policy;
		const char *differs;

		snprintf(text, sizeof(text), "{\"rules\":[{\"match\":{%s}}]}", rows[i].match);
		policy = parse(text);
		differs = policy_rule_differs(rule_of(policy, 1), &call);
		if (rows[i].differs)
			assert_string_equal(differs, rows[i].differs);
		else
			assert_null(differs);
		assert_ptr_equal(policy_match(policy, &call), differs ? NULL : rule_of(policy, 1));
		policy_free(policy);
	}
}

static void a_host_is_compared_without_its_port(void **state)
{
	struct policy *policy = parse("{\"rules\":[{\"match\":{\"host\":\"[::1]\"}},{\"match\":{\"host\":\"a\"}}]}");
	struct call call = a_call();

	(void)state;
	call.host = BYTES("[::1]:80");
	assert_ptr_equal(policy_match(policy, &call), rule_of(policy, 1));
	call.host = BYTES("[::1]");
	assert_ptr_equal(policy_match(policy, &call), rule_of(policy, 1));
	call.host = BYTES("a");
	assert_ptr_equal(policy_match(policy, &call), rule_of(policy, 2));
	call.has_host = false;
	assert_null(policy_match(policy, &call));
	policy_free(policy);
}

static void the_first_rule_that_matches_decides(void **state)
{
	struct policy *policy = parse("{\"rules\":[{\"match\":{\"path\":\"/v2/**\"}},{\"match\":{\"path\":\"/v1/charges\"}},"
				      "{\"match\":{}}]}");
	struct call call = a_call();

	(void)state;
	assert_int_equal(policy_match(policy, &call)->number, 2);
	call.path = BYTES("/v3");
	assert_int_equal(policy_match(policy, &call)->number, 3);
	assert_null(policy_match(NULL, &call));
	policy_free(policy);
}

static void a_head_that_was_not_seen_has_no_header(void **state)
{
	struct policy *policy = parse("{\"rules\":[{\"match\":{\"header\":\"X-Mode\"}}]}");
	struct call call = a_call();

	(void)state;
	call.head = NULL;
	assert_null(policy_match(policy, &call));
	policy_free(policy);
}

/* ---- the documentation ---- */

static void the_example_in_the_readme_is_a_policy(void **state)
{
	struct buffer text = {0};
	uint8_t block[4096];
	FILE *file = fopen(README_FILE, "rb");
	struct policy_error error;
	struct policy *policy = NULL;
	const char *start, *end;
	size_t n;

	(void)state;
	assert_non_null(file);
	while ((n = fread(block, 1, sizeof(block), file)) > 0)
		assert_int_equal(buffer_append(&text, (struct bytes){block, n}), 0);
	fclose(file);
	assert_int_equal(buffer_append_byte(&text, '\0'), 0);
	start = strstr((char *)text.data, "```json\n{\n  \"fail_on\"");
	assert_non_null(start);
	start += strlen("```json\n");
	end = strstr(start, "```");
	assert_non_null(end);
	if (policy_parse((struct bytes){(const uint8_t *)start, (size_t)(end - start)}, &policy, &error))
		fail_msg("%u:%u: %s", error.line, error.column, error.text);
	assert_int_equal(policy_rule_count(policy), 4);
	policy_free(policy);
	buffer_done(&text);
}

static void a_policy_that_follows_keeps_the_numbers_of_the_one_before(void **state)
{
	struct policy *first, *second, *third;
	struct policy_error error;

	(void)state;
	assert_int_equal(policy_parse(BYTES("{\"rules\":[{\"match\":{\"path\":\"/a\"},\"severity\":\"low\"},{\"match\":{\"path\":\"/b\"}}]}"), &first, &error), 0);
	assert_int_equal(policy_parse(BYTES("{\"rules\":[{\"match\":{\"path\":\"/a\"},\"severity\":\"info\"}]}"), &second, &error), 0);
	assert_int_equal(policy_parse(BYTES("{\"rules\":[]}"), &third, &error), 0);
	assert_int_equal(policy_follow(second, first), 0);
	assert_int_equal(policy_rule_at(second, 0)->number, 3);
	assert_ptr_equal(policy_rule_at(second, 0)->limits, &policy_limits(second)[2]);
	assert_int_equal(policy_limits(second)[0].at_most, SEVERITY_LOW);
	assert_false(policy_limits(second)[1].capped);
	assert_int_equal(policy_limits(second)[2].at_most, SEVERITY_INFO);
	assert_int_equal(policy_follow(third, second), 0);
	assert_int_equal(policy_limits(third)[2].at_most, SEVERITY_INFO);
	policy_free(third);
	policy_free(second);
	policy_free(first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_policy_that_follows_keeps_the_numbers_of_the_one_before),
		cmocka_unit_test(reads_every_field_of_a_rule),
		cmocka_unit_test(what_a_rule_does_not_say_it_does_not_set),
		cmocka_unit_test(applies_what_it_sets_for_the_run_and_nothing_else),
		cmocka_unit_test(the_printed_default_changes_nothing),
		cmocka_unit_test(keeps_its_text_and_the_hash_of_it),
		cmocka_unit_test(refuses_what_is_no_json),
		cmocka_unit_test(refuses_unknown_and_repeated_fields),
		cmocka_unit_test(refuses_values_that_mean_nothing),
		cmocka_unit_test(refuses_bad_globs_and_masks_where_they_are),
		cmocka_unit_test(columns_count_characters),
		cmocka_unit_test(refuses_two_rules_that_contradict),
		cmocka_unit_test(a_rule_whose_calls_all_go_to_an_earlier_one_is_refused),
		cmocka_unit_test(refuses_a_key_that_holds_credentials_or_is_masked),
		cmocka_unit_test(refuses_too_much_of_anything),
		cmocka_unit_test(every_matcher_is_looked_at),
		cmocka_unit_test(a_host_is_compared_without_its_port),
		cmocka_unit_test(the_first_rule_that_matches_decides),
		cmocka_unit_test(a_head_that_was_not_seen_has_no_header),
		cmocka_unit_test(the_example_in_the_readme_is_a_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
