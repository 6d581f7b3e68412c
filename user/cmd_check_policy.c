/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk check-policy FILE`: is it a valid policy, and, for a request that
 * is described on the command line, which rule is about it and what it sets.
 */
#include "classify.h"
#include "command_line.h"
#include "commands.h"
#include "policy_file.h"
#include "utf8.h"

#include <errno.h>

#define HEADERS_MAX 32
#define TEXT_MAX 200

struct described {
	struct call call;
	struct http_head head;
	struct http_field fields[HEADERS_MAX];
	bool any; /* something of a request was described */
};

/* ---- the command line ---- */

static int usage(const char *what)
{
	fprintf(stderr, "nightclerk check-policy: %s; see nightclerk check-policy --help\n", what);
	return EXIT_USAGE + 1;
}

static int add_header(struct described *described, const char *text)
{
	struct http_field *field = &described->fields[described->head.field_count];
	struct bytes line = bytes_of_string(text);

	if (described->head.field_count == HEADERS_MAX)
		return usage("more than 32 headers");
	field->name = bytes_take(&line, bytes_find(line, ':'));
	if (line.size == 0 || field->name.size == 0)
		return usage("--header takes 'NAME: VALUE'");
	bytes_take(&line, 1);
	field->value = bytes_trim(line);
	described->head.field_count++;
	return 0;
}

static int set_port(struct described *described, const char *text)
{
	char *end;
	unsigned long port = strtoul(text, &end, 10);

	if (end == text || *end || *text == '-' || port < 1 || port > 65535)
		return usage("--port takes 1 to 65535");
	described->call.server.port = (uint16_t)port;
	return 0;
}

/* 0 = go on, else the exit status + 1. */
static int take(int id, const char *value, struct described *described)
{
	struct call *call = &described->call;

	described->any = true;
	switch (id) {
	case OPTION_METHOD:
		call->method = bytes_of_string(value);
		return 0;
	case OPTION_HOST:
		call->host = bytes_of_string(value);
		call->has_host = true;
		return 0;
	case OPTION_PORT:
		return set_port(described, value);
	case OPTION_PATH:
		call->path = bytes_of_string(value);
		return *value == '/' ? 0 : usage("--path starts with /");
	case OPTION_HEADER:
		return add_header(described, value);
	default:
		call->tool = bytes_of_string(value);
		return 0;
	}
}

static int print_default(void)
{
	struct buffer text = {0};
	int err = policy_default(&text);

	if (!err)
		fwrite(text.data, 1, text.size, stdout);
	buffer_done(&text);
	return err ? 2 : 1;
}

static int parse(int argc, char **argv, struct described *described, const char **ret_path)
{
	struct option longs[COMMAND_OPTIONS_MAX];
	int id, status;

	command_long_options(COMMAND_LINE_CHECK_POLICY, longs);
	optind = 1;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (id == OPTION_HELP || id == 'h') {
			command_help(COMMAND_LINE_CHECK_POLICY);
			return 1;
		}
		if (id == OPTION_PRINT_DEFAULT)
			return print_default();
		if (id == '?' || id == ':') {
			command_line_complain_of_option("check-policy", id, argv[optind - 1]);
			return EXIT_USAGE + 1;
		}
		status = take(id, optarg, described);
		if (status)
			return status;
	}
	if (optind + 1 != argc)
		return usage("give one policy file");
	*ret_path = argv[optind];
	return 0;
}

/* ---- what it says ---- */

static void print_text(const char *before, struct bytes text, const char *after)
{
	struct buffer harmless = {0};

	if (text_harmless(text, TEXT_MAX, &harmless))
		harmless.size = 0;
	printf("%s%.*s%s", before, (int)harmless.size, (const char *)harmless.data, after);
	buffer_done(&harmless);
}

static void print_rule(const struct policy_rule *rule)
{
	printf("  rule %u", rule->number);
	if (rule->name.size)
		print_text(" (", rule->name, ")");
}

static void print_window(const char *what, uint64_t window_ns)
{
	if (window_ns)
		printf("  window: attempts %s count for %llu s\n", what, (unsigned long long)(window_ns / 1000000000));
}

static void print_carriers(const char *what, const struct key_carrier *carriers, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		printf("%s", i ? ", " : what);
		print_text("", carriers[i].name, i + 1 < count ? "" : "\n");
	}
}

static void print_settings(const struct policy_rule *rule)
{
	const struct finding_limits *limits = rule->limits;

	if (limits->capped && limits->at_most == SEVERITY_NULL)
		printf("  severity: none, nothing is reported\n");
	else if (limits->capped)
		printf("  severity: %s at most\n", severity_name(limits->at_most));
	if (rule->equal_except)
		print_text("  compared without: ", bytes_of_string(rule->equal_except), "\n");
	print_carriers("  key in header: ", rule->carriers.headers, rule->carriers.header_count);
	print_carriers("  key in body member: ", rule->carriers.members, rule->carriers.member_count);
	print_window("of one process", limits->window_ns);
	print_window("across processes, or with a key,", limits->across_ns);
	if (limits->same_process)
		printf("  scope: attempts of one process\n");
	if (limits->same_cgroup)
		printf("  scope: attempts of one cgroup\n");
}

/* The class as a run would have it, as far as it does not depend on the body. */
static int print_class(struct call *call, const struct policy_rule *rule)
{
	struct classifier *classifier = classifier_new();

	if (!classifier)
		return 1;
	if (!rule || !rule->sets_class) {
		classify_call(classifier, call);
		printf("  class: %s, by %s%s\n", call_class_name(call->class), call->class_by,
		       bytes_equal(call->method, BYTES("POST")) ? "; the body may say more" : "");
	} else {
		printf("  class: %s, by %s\n", call_class_name(rule->class), rule->class_by);
	}
	classifier_free(classifier);
	return 0;
}

static int explain(const struct policy *policy, struct described *described)
{
	struct call *call = &described->call;
	const struct policy_rule *decides = NULL;

	call->head = &described->head;
	described->head.fields = described->fields;
	if (!call->method.size)
		call->method = BYTES("POST");
	call->request_complete = true;
	for (size_t i = 0; i < policy_rule_count(policy) && !decides; i++) {
		const struct policy_rule *rule = policy_rule_at(policy, i);
		const char *differs = policy_rule_differs(rule, call);

		print_rule(rule);
		if (differs)
			printf(" does not match: %s\n", differs);
		else
			printf(" decides\n");
		decides = differs ? NULL : rule;
	}
	if (!decides)
		printf("  no rule is about this request: the built-in rules decide\n");
	else
		print_settings(decides);
	return print_class(call, decides);
}

int cmd_check_policy(int argc, char **argv)
{
	struct described described = {0};
	struct policy *policy = NULL;
	const char *path;
	int err, status = parse(argc, argv, &described, &path);

	if (status)
		return status - 1;
	err = policy_file_read(path, &policy);
	if (err)
		return err == -EINVAL ? EXIT_USAGE : 1;
	printf("%s: a valid policy with %zu rule%s\n", path, policy_rule_count(policy),
	       policy_rule_count(policy) == 1 ? "" : "s");
	if (described.any)
		status = explain(policy, &described);
	policy_free(policy);
	return status;
}
