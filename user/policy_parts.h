/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a policy is made of. Private to policy*.c.
 */
#ifndef NIGHTCLERK_POLICY_PARTS_H
#define NIGHTCLERK_POLICY_PARTS_H

#include "policy.h"

struct policy {
	struct buffer text; /* with a NUL behind it that does not count */
	struct digest sha;
	char *strings; /* every text that the rules point to, each with a NUL */
	size_t strings_size;
	size_t strings_used;
	struct policy_rule *rules;
	struct finding_limits *limits; /* of each rule, after those of the policies before it */
	size_t limits_before;
	size_t rule_count;
	bool sets_fail_on, sets_strict, sets_allow_blind;
	enum severity fail_on;
	bool strict;
	unsigned int allow_blind;
	struct bytes query_names[POLICY_SECRETS_MAX];
	struct bytes paths[POLICY_SECRETS_MAX];
	struct secret_rules secrets;
};

struct policy_parser {
	struct policy *policy;
	struct policy_error *error;
	const uint8_t *start;			  /* of the text */
	const uint8_t *rule_at[POLICY_RULES_MAX]; /* where each rule starts */
	struct bytes mask_texts[MASKS_MAX];	  /* of the rule that is being read */
};

struct policy_field {
	const char *name;
	int (*take)(struct policy_parser *parser, struct bytes value, struct policy_rule *rule);
};

/* ---- policy_values.c; each returns 0, -ENOMEM, or -EINVAL with the error filled ---- */

void policy_place(const struct policy_parser *parser, const uint8_t *at, unsigned int *ret_line,
		  unsigned int *ret_column);
/* Says what is wrong with what stands at that byte of the text. -EINVAL. */
int policy_fail(struct policy_parser *parser, const uint8_t *at, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Room for size bytes and a NUL; NULL when there is none. */
char *policy_room(struct policy *policy, size_t size);
/* The texts a, b and c in one, kept by the policy; NULL when there is no room. */
const char *policy_join(struct policy *policy, const char *a, struct bytes b, const char *c);

/* what: how a message calls the value. */
/* A text of 1 to max bytes without control characters, decoded, with a NUL behind it. */
int policy_text_of(struct policy_parser *parser, struct bytes value, const char *what, size_t max,
		   struct bytes *ret_text);
int policy_bool_of(struct policy_parser *parser, struct bytes value, const char *what, bool *ret_value);
/* From 1 to max. */
int policy_number_of(struct policy_parser *parser, struct bytes value, const char *what, uint64_t max,
		     uint64_t *ret_number);
/* One of count names. */
int policy_name_of(struct policy_parser *parser, struct bytes value, const char *what, const char *const *names,
		   size_t count, size_t *ret_index);
/* Calls take for every element of a list of at most max. */
int policy_each(struct policy_parser *parser, struct bytes value, const char *what, size_t max,
		struct policy_rule *rule,
		int (*take)(struct policy_parser *parser, struct bytes value, struct policy_rule *rule));
/* Takes every field of an object, each at most once. */
int policy_fields(struct policy_parser *parser, struct bytes value, const char *what,
		  const struct policy_field *fields, size_t count, struct policy_rule *rule);

/* RFC 9110 section 5.6.2: what a method and the name of a header are made of. */
bool policy_is_token(struct bytes text);

/* ---- policy_contradictions.c ---- */

/* The rule that was read last: does it contradict itself, or an earlier one? 0 or -EINVAL. */
int policy_check_rule(struct policy_parser *parser, const struct policy_rule *rule);

#endif
