/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rules that contradict themselves or each other. The first rule that matches
 * a call decides, so one whose calls all belong to an earlier rule says
 * something that would never be heard.
 */
#include "policy_parts.h"

#include "glob.h"

static bool matches_the_same(const struct policy_match *a, const struct policy_match *b)
{
	return bytes_equal(a->method, b->method) && bytes_equal_nocase(a->host, b->host) && a->port == b->port &&
	       bytes_equal(a->path, b->path) && bytes_equal_nocase(a->header, b->header) &&
	       bytes_equal(a->header_value, b->header_value) && bytes_equal(a->tool, b->tool);
}

/*
 * Does the glob match all that the other one matches? A star of the other one
 * can only have been taken by a star of this one, which takes all the rest as
 * well. Empty = any.
 */
static bool text_covers(struct bytes glob, struct bytes other)
{
	return glob.size == 0 || (other.size && glob_text_matches(glob, other));
}

/* The same for paths; with ** in the other one only where that is certain. */
static bool path_covers(struct bytes glob, struct bytes other)
{
	bool deep = other.size && memmem(other.data, other.size, "**", 2);

	if (glob.size == 0 || bytes_equal(glob, other))
		return true;
	return other.size && (deep ? bytes_equal(glob, BYTES("/**")) : glob_path_matches(glob, other));
}

static bool header_covers(const struct policy_match *a, const struct policy_match *b)
{
	return a->header.size == 0 ||
	       (bytes_equal_nocase(a->header, b->header) && text_covers(a->header_value, b->header_value));
}

/* Every call that b matches is one that a matches. */
static bool covers(const struct policy_match *a, const struct policy_match *b)
{
	bool any_tool = a->tool.size == 0 || bytes_equal(a->tool, BYTES("*"));

	return (a->method.size == 0 || bytes_equal(a->method, b->method)) && (a->port == 0 || a->port == b->port) &&
	       (a->host.size == 0 || (b->host.size && glob_text_matches_nocase(a->host, b->host))) &&
	       path_covers(a->path, b->path) && header_covers(a, b) && (any_tool || text_covers(a->tool, b->tool));
}

static bool same_carriers(const struct key_carrier *a, size_t a_count, const struct key_carrier *b, size_t b_count)
{
	for (size_t i = 0; a_count == b_count && i < a_count; i++)
		if (!bytes_equal_nocase(a[i].name, b[i].name))
			return false;
	return a_count == b_count;
}

static bool sets_the_same(const struct policy_rule *a, const struct policy_rule *b)
{
	const struct finding_limits *x = a->limits, *y = b->limits;

	return a->sets_class == b->sets_class && a->class == b->class && x->capped == y->capped &&
	       x->at_most == y->at_most && x->window_ns == y->window_ns && x->across_ns == y->across_ns &&
	       x->same_process == y->same_process && x->same_cgroup == y->same_cgroup &&
	       bytes_equal(bytes_of_string(a->equal_except), bytes_of_string(b->equal_except)) &&
	       same_carriers(a->carriers.headers, a->carriers.header_count, b->carriers.headers, b->carriers.header_count) &&
	       same_carriers(a->carriers.members, a->carriers.member_count, b->carriers.members, b->carriers.member_count);
}

/* Takes the mask out all members of that name, or of any, at the top level? name is as it stands in the file. */
static bool mask_takes(const struct mask *mask, struct bytes name)
{
	const struct mask_step *step = &mask->steps[0];

	return mask->step_count == 1 &&
	       (step->kind == MASK_ANY_MEMBER || (step->kind == MASK_MEMBER && bytes_equal(step->name, name)));
}

/* What is masked is not looked at any more, so no key would be found there. */
static int check_masked_keys(struct policy_parser *parser, const struct policy_rule *rule)
{
	for (size_t i = 0; i < rule->carriers.member_count; i++)
		for (size_t j = 0; j < rule->mask_count; j++)
			if (mask_takes(&rule->masks[j], rule->carriers.members[i].name))
				return policy_fail(parser, parser->rule_at[rule->number - 1],
						   "rule %u masks the member that it names as a key (%s): no key would be found",
						   rule->number, rule->carriers.members[i].from);
	return 0;
}

/* A rule of which an earlier one matches every call would never be used. */
static int check_against_earlier(struct policy_parser *parser, const struct policy_rule *rule)
{
	const struct policy *policy = parser->policy;
	unsigned int line, column;

	for (size_t i = 0; i + 1 < rule->number; i++) {
		const struct policy_rule *earlier = &policy->rules[i];

		if (!covers(&earlier->match, &rule->match) || sets_the_same(earlier, rule))
			continue;
		policy_place(parser, parser->rule_at[i], &line, &column);
		return policy_fail(parser, parser->rule_at[rule->number - 1],
				   "rule %u matches %s rule %u (line %u) and sets something else: it would never be used",
				   rule->number,
				   matches_the_same(&earlier->match, &rule->match) ? "the same calls as" : "no call but those of",
				   earlier->number, line);
	}
	return 0;
}

int policy_check_rule(struct policy_parser *parser, const struct policy_rule *rule)
{
	int err = check_masked_keys(parser, rule);

	return err ? err : check_against_earlier(parser, rule);
}
