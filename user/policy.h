/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy file: what a user knows of their calls that no rule of ours can.
 * JSON; an ordered list of rules of which the first that matches decides, and
 * a few settings for the whole run.
 *
 *	{"rules": [{
 *		"name": "nonce in charges",
 *		"match": {"method": "POST", "path": "/v1/charges"},
 *		"masks": ["$.nonce"]
 *	}]}
 *
 * Pure: text in, rules out. What a rule does not set is as it would be without
 * the policy. policy_parse.c and policy_values.c read the text, policy.c
 * answers questions.
 */
#ifndef NIGHTCLERK_POLICY_H
#define NIGHTCLERK_POLICY_H

#include "call.h"
#include "finding.h"
#include "mask.h"
#include "options.h"
#include "secret.h"

/* A recording's header holds the text, escaped, in one block. */
#define POLICY_BYTES_MAX (128 * 1024)
#define POLICY_RULES_MAX 256
#define POLICY_CARRIERS_MAX 16 /* headers, and members, of one rule */
#define POLICY_SECRETS_MAX 64  /* query names, and paths */
#define POLICY_NAME_MAX 64
#define POLICY_WINDOW_MAX_S (10 * 366 * 86400LL)

/* Where an idempotency key may be, beside the places that everybody knows. */
struct key_carrier {
	struct bytes name;
	const char *from; /* what call->idem_from says: "X-Order-Key", "body.order_key" */
};

struct key_carriers {
	struct key_carrier headers[POLICY_CARRIERS_MAX];
	size_t header_count;
	struct key_carrier members[POLICY_CARRIERS_MAX]; /* of the top level of a JSON object */
	size_t member_count;
};

/* Empty = any. */
struct policy_match {
	struct bytes method;
	struct bytes host; /* glob, without case; without port */
	uint16_t port;	   /* 0 = any */
	struct bytes path; /* glob, as sent, without query */
	struct bytes header;
	struct bytes header_value; /* glob */
	struct bytes tool;	   /* glob */
};

struct policy_rule {
	uint16_t number; /* 1, 2, ... in order of the file */
	struct bytes name;
	struct policy_match match;
	bool sets_class;
	enum call_class class;
	const char *class_by; /* "policy rule 2 (search)" */
	struct mask *masks;
	size_t mask_count;
	struct key_carriers carriers;
	const struct finding_limits *limits; /* severity cap, windows, scope */
	const char *equal_except;	     /* "nonce, items[*].ts"; NULL without masks */
};

struct policy_error {
	unsigned int line; /* from 1 */
	unsigned int column; /* from 1, in characters */
	char text[256];
};

struct policy;

/*
 * 0, -ENOMEM, or -EINVAL with *ret_error filled: no JSON, an unknown field, a
 * value that is not allowed, a bad glob or mask, two rules that match the same
 * calls and set different things, too much of something. text is copied.
 */
int policy_parse(struct bytes text, struct policy **ret_policy, struct policy_error *ret_error);
void policy_free(struct policy *policy); /* accepts NULL */

/*
 * For a policy that takes the place of another while calls are remembered: the rules of before keep their numbers in
 * policy_limits(), those of policy come after them. before must outlive policy. 0, -ENOMEM, or -E2BIG: too many rules
 * in all, with policy as it was.
 */
int policy_follow(struct policy *policy, const struct policy *before);

struct bytes policy_text(const struct policy *policy);
const struct digest *policy_sha(const struct policy *policy); /* of the text */
size_t policy_rule_count(const struct policy *policy);
const struct policy_rule *policy_rule_at(const struct policy *policy, size_t i);
/* What every rule sets of finding_options.limits, by its number - 1. */
const struct finding_limits *policy_limits(const struct policy *policy);
const struct secret_rules *policy_secrets(const struct policy *policy);
/* Overwrites the options that the policy sets. */
void policy_apply(const struct policy *policy, struct judge_options *options);

/* The first rule that matches, or NULL. call->tool must be known. policy may be NULL. */
const struct policy_rule *policy_match(const struct policy *policy, const struct call *call);
/* The first field of the rule that call does not match ("method", "path", ...), or NULL: it matches. */
const char *policy_rule_differs(const struct policy_rule *rule, const struct call *call);
/* The rule asks for more than a ledger line can tell: a header to match, masks, where the key is. */
bool policy_rule_needs_wire(const struct policy_rule *rule);

/*
 * Appends the policy that changes nothing, with every setting of the run
 * spelled out. 0 or -ENOMEM.
 */
int policy_default(struct buffer *out);

#endif
