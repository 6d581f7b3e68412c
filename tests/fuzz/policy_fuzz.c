/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A policy file from anywhere: a recording may bring one. Up to the first NUL
 * the input is the policy, what follows is the body of a call that it judges.
 *
 * Beyond what the sanitizers find: what is refused has a place and a reason,
 * what is taken is taken again from its own text, every rule that is picked
 * matches, and a masked body is JSON that masking again does not change.
 */
#include "canonical.h"
#include "json_scan.h"
#include "policy.h"

#include <errno.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_thing)
{
	if (!true_thing)
		abort();
}

static void mask(const struct policy_rule *rule, struct bytes text)
{
	struct buffer out = {0}, again = {0}, removed = {0};
	struct bytes whole;
	int made = mask_text(rule->masks, rule->mask_count, text, &out, &removed);

	must(made == 0 || made == 1);
	if (made) {
		must(removed.size != 0);
		must(json_scan_whole(buffer_bytes(&out), &whole) && whole.size == out.size);
		if (mask_text(rule->masks, rule->mask_count, whole, &again, &removed))
			must(bytes_equal(buffer_bytes(&again), whole));
	}
	buffer_done(&out);
	buffer_done(&again);
	buffer_done(&removed);
}

static void judge(const struct policy *policy, struct bytes body)
{
	struct http_field field = {BYTES("X-Mode"), BYTES("dry run")};
	struct http_head head = {.side = HTTP_REQUEST, .fields = &field, .field_count = 1};
	struct call call = {.head = &head, .method = BYTES("POST"), .path = body, .host = body, .has_host = true, .tool = body};
	const struct policy_rule *rule = policy_match(policy, &call);
	struct canonical flags = {0};
	struct buffer text = {0};

	must(!rule || !policy_rule_differs(rule, &call));
	if (!canonical_json(body, &flags, &text))
		for (size_t i = 0; i < policy_rule_count(policy); i++)
			mask(policy_rule_at(policy, i), buffer_bytes(&text));
	buffer_done(&text);
	canonical_done(&flags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes body = {data, size}, text = bytes_take(&body, bytes_find(body, '\0'));
	struct policy *policy = NULL, *again = NULL;
	struct policy_error error;
	int err = policy_parse(text, &policy, &error);

	bytes_take(&body, 1);
	must(err == 0 || err == -EINVAL);
	if (err) {
		must(!policy && error.line >= 1 && error.column >= 1 && error.text[0]);
		return 0;
	}
	must(policy_parse(policy_text(policy), &again, &error) == 0);
	must(policy_rule_count(again) == policy_rule_count(policy));
	judge(policy, body);
	policy_free(policy);
	policy_free(again);
	return 0;
}
