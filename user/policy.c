/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which rule is about a call, and what the policy sets for the whole run. Rules
 * are tried one after the other: a policy has a handful of them, and most are
 * turned away by their method or their port.
 */
#include "policy_parts.h"

#include "glob.h"
#include "json_text.h"
#include "say.h"

#include <errno.h>

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	for (size_t i = 0; i < policy->rule_count; i++) {
		for (size_t j = 0; j < policy->rules[i].mask_count; j++)
			mask_done(&policy->rules[i].masks[j]);
		free(policy->rules[i].masks);
	}
	free(policy->rules);
	free(policy->limits);
	free(policy->strings);
	buffer_done(&policy->text);
	free(policy);
}

int policy_follow(struct policy *policy, const struct policy *before)
{
	size_t earlier = before->limits_before + before->rule_count;
	struct finding_limits *limits;

	if (earlier + policy->rule_count > UINT16_MAX)
		return -E2BIG;
	limits = calloc(earlier + policy->rule_count + 1, sizeof(*limits));
	if (!limits)
		return -ENOMEM;
	if (earlier)
		memcpy(limits, before->limits, earlier * sizeof(*limits));
	if (policy->rule_count)
		memcpy(limits + earlier, policy->limits, policy->rule_count * sizeof(*limits));
	free(policy->limits);
	policy->limits = limits;
	policy->limits_before = earlier;
	for (size_t i = 0; i < policy->rule_count; i++) {
		policy->rules[i].number = (uint16_t)(earlier + i + 1);
		policy->rules[i].limits = &limits[earlier + i];
	}
	return 0;
}

struct bytes policy_text(const struct policy *policy)
{
	return buffer_bytes(&policy->text);
}

const struct digest *policy_sha(const struct policy *policy)
{
	return &policy->sha;
}

size_t policy_rule_count(const struct policy *policy)
{
	return policy->rule_count;
}

const struct policy_rule *policy_rule_at(const struct policy *policy, size_t i)
{
	return &policy->rules[i];
}

const struct finding_limits *policy_limits(const struct policy *policy)
{
	return policy->limits;
}

const struct secret_rules *policy_secrets(const struct policy *policy)
{
	return &policy->secrets;
}

void policy_apply(const struct policy *policy, struct judge_options *options)
{
	if (policy->sets_fail_on)
		options->fail_on = policy->fail_on;
	if (policy->sets_strict)
		options->strict = policy->strict;
	if (policy->sets_allow_blind)
		options->allow_blind = policy->allow_blind;
}

/* ---- matching ---- */

/* "[::1]:80" -> "[::1]", "localhost:80" -> "localhost" */
static struct bytes without_port(struct bytes host)
{
	size_t bracket = host.size && host.data[0] == '[' ? bytes_find(host, ']') : 0;
	struct bytes rest = {host.data + bracket, host.size - bracket};

	host.size = bracket + bytes_find(rest, ':');
	return host;
}

static bool header_matches(const struct policy_match *match, const struct http_head *head)
{
	for (size_t i = 0; head && i < head->field_count; i++)
		if (bytes_equal_nocase(head->fields[i].name, match->header) &&
		    (!match->header_value.size ||
		     glob_text_matches(match->header_value, head->fields[i].value)))
			return true;
	return false;
}

const char *policy_rule_differs(const struct policy_rule *rule, const struct call *call)
{
	const struct policy_match *match = &rule->match;

	if (match->method.size && !bytes_equal(match->method, call->method))
		return "method";
	if (match->port && match->port != call->server.port)
		return "port";
	if (match->host.size && !(call->has_host && glob_text_matches_nocase(match->host, without_port(call->host))))
		return "host";
	if (match->path.size && !glob_path_matches(match->path, call->path))
		return "path";
	if (match->tool.size && !glob_text_matches(match->tool, call->tool))
		return "tool";
	if (match->header.size && !header_matches(match, call->head))
		return "header";
	return NULL;
}

const struct policy_rule *policy_match(const struct policy *policy, const struct call *call)
{
	for (size_t i = 0; policy && i < policy->rule_count; i++)
		if (!policy_rule_differs(&policy->rules[i], call))
			return &policy->rules[i];
	return NULL;
}

bool policy_rule_needs_wire(const struct policy_rule *rule)
{
	return rule->match.header.size || rule->mask_count || rule->carriers.header_count || rule->carriers.member_count;
}

/* ---- the default ---- */

int policy_default(struct buffer *out)
{
	struct judge_options options;
	size_t start = out->size;
	const char *comma = "";
	int err;

	judge_options_defaults(&options);
	err = say(out, "{\n  \"fail_on\": \"%s\",\n  \"strict\": %s,\n  \"allow_blind\": [",
		  severity_name(options.fail_on), options.strict ? "true" : "false");
	for (unsigned int kind = 0; !err && kind < BLIND_COUNT; kind++) {
		if (!(options.allow_blind & 1u << kind))
			continue;
		err = say(out, "%s\"%s\"", comma, blind_kind_name((enum blind_kind)kind));
		comma = ", ";
	}
	if (!err)
		err = say(out, "],\n  \"secrets\": {\"query\": [], \"paths\": []},\n  \"rules\": []\n}\n");
	if (err)
		out->size = start;
	return err;
}
