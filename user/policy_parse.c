/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a policy, read strictly. json-c says whether it is JSON, and where
 * not; then every value is visited in place with json_scan.h, so that whatever
 * is wrong with it has a line and a column. One table of fields an object.
 */
#include "policy_parts.h"

#include "glob.h"
#include "json_scan.h"
#include "json_syntax.h"

#include <errno.h>

#define COUNT_OF(table) (sizeof(table) / sizeof((table)[0]))

static int take_comment(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	(void)rule;
	return json_scan_is_string(value) ? 0 : policy_fail(parser, value.data, "comment is a text in quotes");
}

/* ---- match ---- */

static int take_method(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	int err = policy_text_of(parser, value, "method", 32, &rule->match.method);

	if (err)
		return err;
	if (!policy_is_token(rule->match.method))
		return policy_fail(parser, value.data, "method is one HTTP method, such as POST");
	for (size_t i = 0; i < rule->match.method.size; i++)
		if (rule->match.method.data[i] >= 'a' && rule->match.method.data[i] <= 'z')
			return policy_fail(parser, value.data, "HTTP methods are upper case: no call has this one");
	return 0;
}

static int take_host(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	int err = policy_text_of(parser, value, "host", GLOB_BYTES_MAX, &rule->match.host);
	struct bytes host = rule->match.host;
	const char *wrong = err ? NULL : glob_text_wrong(host);

	if (err)
		return err;
	if (wrong)
		return policy_fail(parser, value.data, "host: %s", wrong);
	if (host.data[0] != '[' && bytes_find(host, ':') < host.size)
		return policy_fail(parser, value.data, "host is without a port: there is the field port, and an IPv6 address stands "
						"in [ ]");
	return 0;
}

static int take_port(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	uint64_t port;
	int err = policy_number_of(parser, value, "port", 65535, &port);

	if (!err)
		rule->match.port = (uint16_t)port;
	return err;
}

static int take_path(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	int err = policy_text_of(parser, value, "path", GLOB_BYTES_MAX, &rule->match.path);
	const char *wrong = err ? NULL : glob_path_wrong(rule->match.path);

	return wrong ? policy_fail(parser, value.data, "path: %s", wrong) : err;
}

/* "Name" or "Name: value glob" */
static int take_header(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	struct bytes text, name;
	int err = policy_text_of(parser, value, "header", 2 * GLOB_BYTES_MAX, &text);
	const char *wrong;

	if (err)
		return err;
	name = bytes_take(&text, bytes_find(text, ':'));
	if (!policy_is_token(name))
		return policy_fail(parser, value.data, "header is a name, or a name, a colon and a value");
	rule->match.header = name;
	if (text.size == 0)
		return 0;
	bytes_take(&text, 1);
	text = bytes_trim(text);
	wrong = glob_text_wrong(text);
	rule->match.header_value = text;
	return wrong ? policy_fail(parser, value.data, "header value: %s", wrong) : 0;
}

static int take_tool(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	int err = policy_text_of(parser, value, "tool", GLOB_BYTES_MAX, &rule->match.tool);
	const char *wrong = err ? NULL : glob_text_wrong(rule->match.tool);

	return wrong ? policy_fail(parser, value.data, "tool: %s", wrong) : err;
}

static int take_match(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	static const struct policy_field fields[] = {
		{"method", take_method}, {"host", take_host},	  {"port", take_port},
		{"path", take_path},	 {"header", take_header}, {"tool", take_tool},
	};

	return policy_fields(parser, value, "match", fields, COUNT_OF(fields), rule);
}

/* ---- settings of a rule ---- */

static struct finding_limits *limits_of(struct policy_parser *parser, const struct policy_rule *rule)
{
	return &parser->policy->limits[rule->number - 1];
}

static int take_rule_name(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	return policy_text_of(parser, value, "name", POLICY_NAME_MAX, &rule->name);
}

static int take_class(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	const char *names[CLASS_TELEMETRY + 1];
	size_t class = 0;
	int err;

	for (size_t i = 0; i < COUNT_OF(names); i++)
		names[i] = call_class_name((enum call_class)i);
	err = policy_name_of(parser, value, "class", names, COUNT_OF(names), &class);
	rule->sets_class = !err;
	rule->class = (enum call_class)class;
	return err;
}

static int take_severity(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	static const char *const names[] = {
		[SEVERITY_NULL] = "none", [SEVERITY_INFO] = "info",	[SEVERITY_LOW] = "low",
		[SEVERITY_MEDIUM] = "medium", [SEVERITY_HIGH] = "high",
	};
	size_t severity = 0;
	int err = policy_name_of(parser, value, "severity", names, COUNT_OF(names), &severity);

	limits_of(parser, rule)->capped = !err;
	limits_of(parser, rule)->at_most = (enum severity)severity;
	return err;
}

static int take_scope(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	static const char *const names[] = {"tree", "process", "cgroup"};
	size_t scope = 0;
	int err = policy_name_of(parser, value, "scope", names, COUNT_OF(names), &scope);

	limits_of(parser, rule)->same_process = scope == 1;
	limits_of(parser, rule)->same_cgroup = scope == 2;
	return err;
}

static int take_window(struct policy_parser *parser, struct bytes value, const char *what, uint64_t *ret_ns)
{
	uint64_t seconds;
	int err = policy_number_of(parser, value, what, POLICY_WINDOW_MAX_S, &seconds);

	if (!err)
		*ret_ns = seconds * 1000000000ULL;
	return err;
}

static int take_window_process(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	return take_window(parser, value, "process (seconds)", &limits_of(parser, rule)->window_ns);
}

static int take_window_across(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	return take_window(parser, value, "across (seconds)", &limits_of(parser, rule)->across_ns);
}

static int take_windows(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	static const struct policy_field fields[] = {{"process", take_window_process}, {"across", take_window_across}};

	return policy_fields(parser, value, "window", fields, COUNT_OF(fields), rule);
}

/* A key is written to the ledger as it is, and so no credential may be taken for one. */
static bool holds_credentials(struct bytes name)
{
	static const char *const names[] = {
		"authorization", "proxy-authorization", "cookie",	 "x-api-key",	  "api-key",	   "x-goog-api-key",
		"x-auth-token",	 "x-amz-security-token", "password",	 "passwd",	  "secret",	   "client_secret",
		"api_key",	 "apikey",		 "access_token", "refresh_token",
	};

	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (bytes_equal_nocase(name, bytes_of_string(names[i])))
			return true;
	return false;
}

static int take_key_header(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	struct key_carrier *carrier = &rule->carriers.headers[rule->carriers.header_count];
	int err = policy_text_of(parser, value, "a header of key", GLOB_BYTES_MAX, &carrier->name);

	if (err)
		return err;
	if (!policy_is_token(carrier->name))
		return policy_fail(parser, value.data, "a header of key is the name of a header");
	if (holds_credentials(carrier->name))
		return policy_fail(parser, value.data, "this header holds credentials, and keys are written to the ledger as they are");
	carrier->from = (const char *)carrier->name.data;
	rule->carriers.header_count++;
	return 0;
}

static int take_key_member(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	struct key_carrier *carrier = &rule->carriers.members[rule->carriers.member_count];
	int err = policy_text_of(parser, value, "a member of key", GLOB_BYTES_MAX, &carrier->name);

	if (err)
		return err;
	if (carrier->name.data[0] == '$')
		return policy_fail(parser, value.data, "a member of key is a plain name, at the top level of the body");
	if (holds_credentials(carrier->name))
		return policy_fail(parser, value.data, "this member holds credentials, and keys are written to the ledger as they are");
	carrier->from = policy_join(parser->policy, "body.", carrier->name, "");
	rule->carriers.member_count++;
	return carrier->from ? 0 : -ENOMEM;
}

static int take_key_headers(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	return policy_each(parser, value, "headers", POLICY_CARRIERS_MAX, rule, take_key_header);
}

static int take_key_members(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	return policy_each(parser, value, "members", POLICY_CARRIERS_MAX, rule, take_key_member);
}

static int take_key(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	static const struct policy_field fields[] = {{"headers", take_key_headers}, {"members", take_key_members}};

	return policy_fields(parser, value, "key", fields, COUNT_OF(fields), rule);
}

static int take_mask(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	struct bytes *text = &parser->mask_texts[rule->mask_count];
	const char *wrong;
	size_t at;
	int err = policy_text_of(parser, value, "a mask", 4 * MASK_BYTES_MAX, text);

	if (err)
		return err;
	err = mask_parse(*text, &rule->masks[rule->mask_count++], &wrong, &at);
	if (err == -EINVAL)
		return policy_fail(parser, value.data + 1 + (at < value.size - 2 ? at : value.size - 2), "mask: %s",
				   wrong);
	return err;
}

/* "$.nonce" and "$.items[*].ts" -> "nonce, items[*].ts" */
static int name_masks(struct policy_parser *parser, struct policy_rule *rule)
{
	size_t size = 0;
	char *room;

	for (size_t i = 0; i < rule->mask_count; i++) {
		struct bytes *text = &parser->mask_texts[i];

		bytes_take(text, bytes_starts_with(*text, BYTES("$.")) ? 2 : 1);
		size += text->size + 2;
	}
	if (rule->mask_count == 0)
		return 0;
	room = policy_room(parser->policy, size);
	if (!room)
		return -ENOMEM;
	rule->equal_except = room;
	for (size_t i = 0; i < rule->mask_count; i++) {
		memcpy(room, parser->mask_texts[i].data, parser->mask_texts[i].size);
		room += parser->mask_texts[i].size;
		memcpy(room, i + 1 < rule->mask_count ? ", " : "\0\0", 2);
		room += 2;
	}
	return 0;
}

static int take_masks(struct policy_parser *parser, struct bytes value, struct policy_rule *rule)
{
	int err;

	rule->masks = calloc(MASKS_MAX, sizeof(*rule->masks));
	if (!rule->masks)
		return -ENOMEM;
	err = policy_each(parser, value, "masks", MASKS_MAX, rule, take_mask);
	return err ? err : name_masks(parser, rule);
}

/* ---- rules ---- */

static int name_rule(struct policy_parser *parser, struct policy_rule *rule)
{
	char number[32];

	snprintf(number, sizeof(number), "policy rule %u%s", rule->number, rule->name.size ? " (" : "");
	rule->class_by = policy_join(parser->policy, number, rule->name, rule->name.size ? ")" : "");
	return rule->class_by ? 0 : -ENOMEM;
}

static bool has_member(struct bytes object, const char *wanted)
{
	struct bytes name, value;
	struct json_scan scan;

	json_scan_open(&scan, object);
	while (json_scan_next(&scan, &name, &value))
		if (json_scan_says(name, wanted))
			return true;
	return false;
}

static int take_rule(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	static const struct policy_field fields[] = {
		{"name", take_rule_name}, {"comment", take_comment},   {"match", take_match},
		{"class", take_class},	  {"severity", take_severity}, {"key", take_key},
		{"masks", take_masks},	  {"window", take_windows},    {"scope", take_scope},
	};
	struct policy *policy = parser->policy;
	struct policy_rule *rule = &policy->rules[policy->rule_count];
	int err;

	(void)unused;
	parser->rule_at[policy->rule_count] = value.data;
	rule->limits = &policy->limits[policy->rule_count++];
	rule->number = (uint16_t)policy->rule_count;
	err = policy_fields(parser, value, "a rule", fields, COUNT_OF(fields), rule);
	if (!err && !has_member(value, "match"))
		err = policy_fail(parser, value.data, "a rule needs the field match; {} matches every call");
	if (!err)
		err = name_rule(parser, rule);
	limits_of(parser, rule)->equal_except = rule->equal_except;
	return err ? err : policy_check_rule(parser, rule);
}

static int take_rules(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	struct policy *policy = parser->policy;

	policy->rules = calloc(POLICY_RULES_MAX, sizeof(*policy->rules));
	policy->limits = calloc(POLICY_RULES_MAX, sizeof(*policy->limits));
	if (!policy->rules || !policy->limits)
		return -ENOMEM;
	return policy_each(parser, value, "rules", POLICY_RULES_MAX, unused, take_rule);
}

/* ---- settings of the run ---- */

static int take_fail_on(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	static const char *const names[] = {"info", "low", "medium", "high"};
	struct policy *policy = parser->policy;
	size_t severity = 0;
	int err = policy_name_of(parser, value, "fail_on", names, COUNT_OF(names), &severity);

	(void)unused;
	policy->sets_fail_on = !err;
	policy->fail_on = (enum severity)(SEVERITY_INFO + severity);
	return err;
}

static int take_strict(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	(void)unused;
	parser->policy->sets_strict = true;
	return policy_bool_of(parser, value, "strict", &parser->policy->strict);
}

static int take_blind_kind(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	const char *names[BLIND_COUNT];
	size_t kind = 0;
	int err;

	(void)unused;
	for (size_t i = 0; i < BLIND_COUNT; i++)
		names[i] = blind_kind_name((enum blind_kind)i);
	err = policy_name_of(parser, value, "a kind in allow_blind", names, BLIND_COUNT, &kind);
	if (!err)
		parser->policy->allow_blind |= 1u << kind;
	return err;
}

static int take_allow_blind(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	parser->policy->sets_allow_blind = true;
	return policy_each(parser, value, "allow_blind", BLIND_COUNT, unused, take_blind_kind);
}

static int take_secret_name(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	struct secret_rules *secrets = &parser->policy->secrets;
	struct bytes *name = &parser->policy->query_names[secrets->query_name_count];
	int err = policy_text_of(parser, value, "a name in query", GLOB_BYTES_MAX, name);
	uint8_t *text;

	(void)unused;
	if (err)
		return err;
	text = (uint8_t *)parser->policy->strings + ((const char *)name->data - parser->policy->strings);
	for (size_t i = 0; i < name->size; i++)
		if (text[i] >= 'A' && text[i] <= 'Z')
			text[i] |= 0x20;
	secrets->query_name_count++;
	return 0;
}

static int take_secret_path(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	struct secret_rules *secrets = &parser->policy->secrets;
	struct bytes *path = &parser->policy->paths[secrets->path_count];
	int err = policy_text_of(parser, value, "a path in secrets", GLOB_BYTES_MAX, path);
	const char *wrong = err ? NULL : glob_path_wrong(*path);
	size_t slashes = 0, stars = 0, stars_pairs = 0;

	(void)unused;
	if (err)
		return err;
	for (size_t i = 0; i < path->size; i++) {
		slashes += path->data[i] == '/';
		stars += path->data[i] == '*';
		stars_pairs += i && path->data[i] == '*' && path->data[i - 1] == '*';
	}
	if (!wrong && stars_pairs > bytes_starts_with(*path, BYTES("/**/")))
		wrong = "** may only stand at its start: /**/";
	if (!wrong && stars == 2 * stars_pairs)
		wrong = "* must stand for what is secret in it";
	if (!wrong && slashes > SECRET_GLOB_SEGMENTS_MAX)
		wrong = "it has more than 32 segments";
	secrets->path_count += !wrong;
	return wrong ? policy_fail(parser, value.data, "path: %s", wrong) : 0;
}

static int take_secret_names(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	return policy_each(parser, value, "query", POLICY_SECRETS_MAX, unused, take_secret_name);
}

static int take_secret_paths(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	return policy_each(parser, value, "paths", POLICY_SECRETS_MAX, unused, take_secret_path);
}

static int take_secrets(struct policy_parser *parser, struct bytes value, struct policy_rule *unused)
{
	static const struct policy_field fields[] = {{"query", take_secret_names}, {"paths", take_secret_paths}};

	return policy_fields(parser, value, "secrets", fields, COUNT_OF(fields), unused);
}

static int take_policy(struct policy_parser *parser, struct bytes value)
{
	static const struct policy_field fields[] = {
		{"comment", take_comment},	   {"fail_on", take_fail_on}, {"strict", take_strict},
		{"allow_blind", take_allow_blind}, {"secrets", take_secrets}, {"rules", take_rules},
	};

	return policy_fields(parser, value, "a policy", fields, COUNT_OF(fields), NULL);
}

/* ---- the whole text ---- */

static int check_syntax(struct policy_parser *parser, struct bytes text)
{
	char reason[JSON_SYNTAX_REASON_MAX];
	const uint8_t *at;
	int err = json_syntax_check(text, "the policy", &at, reason);

	return err == -EINVAL ? policy_fail(parser, at, "%s", reason) : err;
}

static size_t count_bytes(struct bytes text, uint8_t c)
{
	size_t count = 0;

	for (size_t i = 0; i < text.size; i++)
		count += text.data[i] == c;
	return count;
}

/* No decoded text is longer than it is in the file; names of rules, keys and masks are kept once more. */
static int policy_new(struct bytes text, struct policy **ret_policy)
{
	struct policy *policy = calloc(1, sizeof(*policy));
	int err = -ENOMEM;

	if (!policy)
		return err;
	policy->strings_size = 4 * text.size + 64 * (1 + count_bytes(text, '{'));
	policy->strings = calloc(1, policy->strings_size);
	if (policy->strings)
		err = buffer_append(&policy->text, text);
	if (!err)
		err = buffer_append_byte(&policy->text, '\0');
	if (!err) {
		policy->text.size--;
		err = digest_of(text, &policy->sha);
	}
	policy->secrets.query_names = policy->query_names;
	policy->secrets.paths = policy->paths;
	if (err)
		policy_free(policy);
	else
		*ret_policy = policy;
	return err;
}

int policy_parse(struct bytes text, struct policy **ret_policy, struct policy_error *ret_error)
{
	struct policy_parser parser = {.error = ret_error, .start = text.data};
	struct bytes value;
	int err;

	*ret_error = (struct policy_error){0};
	if (text.size > POLICY_BYTES_MAX)
		return policy_fail(&parser, text.data, "the file is larger than %d KiB", POLICY_BYTES_MAX / 1024);
	err = policy_new(text, &parser.policy);
	if (err)
		return err;
	value = policy_text(parser.policy);
	if (bytes_starts_with(value, BYTES("\xef\xbb\xbf")))
		bytes_take(&value, 3);
	parser.start = value.data;
	err = check_syntax(&parser, value);
	if (!err && !json_scan_whole(value, &value))
		err = policy_fail(&parser, parser.start, "this is no JSON");
	if (!err)
		err = take_policy(&parser, value);
	if (err)
		policy_free(parser.policy);
	else
		*ret_policy = parser.policy;
	return err;
}
