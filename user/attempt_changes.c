/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What becomes of an attempt after it was judged, and what that does to the
 * verdicts about it and about those that came later. A change walks over the
 * later members of its families, and only where it can matter to them.
 */
#include "attempts_private.h"

static struct attempt *attempt_of(const struct attempts *attempts, const struct call *call)
{
	struct attempt *attempt = attempts_at(attempts, (uint32_t)(uintptr_t)call->attempt);

	return attempt && attempt->number == call->number ? attempt : NULL;
}

/* Where it lies on the shelves does not depend on what changed. */
static bool stays_put(const struct attempt_facts *before, const struct attempt_facts *now)
{
	return attempt_ended_ns(before) == UINT64_MAX && attempt_ended_ns(now) == UINT64_MAX &&
	       before->replayed == now->replayed && before->owner_gone == now->owner_gone;
}

static void set_facts(struct attempts *attempts, struct attempt *attempt, const struct attempt_facts *facts)
{
	bool moves = !stays_put(&attempt->facts, facts);

	for (int bond = 0; moves && bond < BOND_COUNT; bond++)
		if (attempt->family[bond])
			family_take_out(attempts_family(attempts, attempt, bond), &attempts->remembered, attempt);
	memcpy(&attempt->facts, facts, sizeof(*facts));
	for (int bond = 0; moves && bond < BOND_COUNT; bond++)
		if (attempt->family[bond])
			family_put_back(attempts_family(attempts, attempt, bond), &attempts->remembered, attempt);
}

void attempts_update(struct attempts *attempts, struct call *call)
{
	struct attempt *attempt = attempt_of(attempts, call);
	struct changes *changes = &attempts->changes;
	struct attempt_facts facts;
	struct judgement ignored;

	while (attempts_next_change(attempts, &ignored))
		;
	if (!attempt)
		return;
	attempt_facts_of(call, &facts);
	if (memcmp(&facts, &attempt->facts, sizeof(facts)) == 0)
		return;
	*changes = (struct changes){
		.ref = attempt->ref,
		.own = facts.replayed && !attempt->facts.replayed,
		.poll = true,
	};
	memcpy(&changes->before, &attempt->facts, sizeof(changes->before));
	set_facts(attempts, attempt, &facts);
}

/* Judges anew, all pairs; true when that gives another verdict. */
static bool judge_again(struct attempts *attempts, struct attempt *attempt, struct judgement *ret_judgement)
{
	struct verdict before = attempts_said(attempts, attempt);
	const struct attempt *earlier = attempts_at(attempts, attempt->earlier);
	struct worst worst = attempts_judge(attempts, attempt);

	if (worst.verdict.finding == before.finding && worst.verdict.severity == before.severity)
		return false;
	if (worst.earlier)
		earlier = worst.earlier;
	else if (earlier) /* the row and the rule that took it back */
		worst.verdict = finding_judge(&earlier->facts, &attempt->facts, &attempts->options.finding);
	attempts_say(attempts, attempt, &worst.verdict, earlier);
	attempts_fill(attempts, attempt, earlier, ret_judgement);
	ret_judgement->before = before;
	return true;
}

static const struct attempt_facts long_after = {.first_ns = UINT64_MAX - 1};

/* attempt was the third of a series, and is answered now: so the second was a poll as well. */
static bool lower_second_poll(struct attempts *attempts, const struct attempt *attempt, struct judgement *ret_judgement)
{
	struct attempt *second = attempts_before(attempts, attempt, 1);
	const struct attempt *first = attempts_before(attempts, attempt, 2);
	struct verdict before, verdict;

	if (!first || attempts->rule[attempt->said.rule] != finding_poll_rule ||
	    finding_row_of(&attempt->facts, &long_after) != ROW_SUCCESS)
		return false;
	if (second->said.finding != FINDING_DUP_AFTER_SUCCESS || second->said.severity <= SEVERITY_INFO ||
	    second->earlier != first->ref)
		return false;
	before = verdict = attempts_said(attempts, second);
	attempts_be_poll(&verdict);
	attempts_say(attempts, second, &verdict, first);
	attempts_fill(attempts, second, first, ret_judgement);
	ret_judgement->before = before;
	return true;
}

/* What a change of facts can do to pairs with later attempts. */
enum reach {
	REACH_NONE,
	REACH_LATE_STATUS, /* only what a late 2xx does: it makes no pair worse that is at its worst */
	REACH_ALL,
};

static enum reach reach_of(const struct attempt_facts *before, const struct attempt_facts *now, const struct family *family)
{
	uint64_t ended_before_ns = attempt_ended_ns(before), ended_ns = attempt_ended_ns(now);

	if (before->replayed != now->replayed)
		return REACH_ALL;
	if (ended_before_ns > family->latest_first_ns && ended_ns > family->latest_first_ns)
		return REACH_NONE;
	if (ended_before_ns != ended_ns || finding_row_of(before, &long_after) != finding_row_of(now, &long_after))
		return REACH_ALL;
	return family->late_matters && before->status != now->status ? REACH_LATE_STATUS : REACH_NONE;
}

/* Sets out over the members that came later. False when none has to be looked at. */
static bool start_walk(struct attempts *attempts, const struct attempt *attempt)
{
	struct changes *changes = &attempts->changes;
	const struct family *family = attempts_family(attempts, attempt, changes->bond);
	enum reach reach = family ? reach_of(&changes->before, &attempt->facts, family) : REACH_NONE;

	if (reach == REACH_NONE)
		return false;
	changes->position = family_position(family, attempt->ref) + 1;
	changes->end = reach == REACH_ALL ? family->count : family_position(family, family->quiet_from);
	changes->restless = 0;
	return changes->position < changes->end;
}

static void end_walk(const struct attempts *attempts, const struct attempt *attempt)
{
	const struct changes *changes = &attempts->changes;
	struct family *family = attempts_family(attempts, attempt, changes->bond);

	family->quiet_from = changes->restless ? changes->restless + 1 : attempt->ref + 1;
}

/* True when the verdict about later is another one now. */
static bool reconsider(struct attempts *attempts, const struct attempt *changed, struct attempt *later,
		       struct judgement *ret_judgement)
{
	const struct finding_options *options = &attempts->options.finding;
	const struct attempt_facts *before = &attempts->changes.before;
	struct attempt_facts now = changed->facts;
	struct verdict said = attempts_said(attempts, later), was, is;

	if (attempts->changes.bond == BY_KEY && attempts_share(changed, later, BY_FINGERPRINT))
		return false;
	if (now.replayed && !before->replayed && later->earlier == changed->ref)
		return judge_again(attempts, later, ret_judgement);
	now.owner_gone = before->owner_gone;
	was = finding_judge(before, &later->facts, options);
	is = finding_judge(&now, &later->facts, options);
	attempts->looked_at += 2;
	if (was.finding == FINDING_SAFE_RETRY || !verdict_worse(&is, &was) || !verdict_worse(&is, &said))
		return false;
	attempts_say(attempts, later, &is, changed);
	attempts_fill(attempts, later, changed, ret_judgement);
	ret_judgement->before = said;
	return true;
}

static bool walk(struct attempts *attempts, const struct attempt *attempt, struct judgement *ret_judgement)
{
	struct changes *changes = &attempts->changes;
	const struct family *family = attempts_family(attempts, attempt, changes->bond);

	while (changes->position < changes->end) {
		struct attempt *later = attempts_at(attempts, family_member(family, changes->position++));
		bool changed = reconsider(attempts, attempt, later, ret_judgement);

		if (!attempts_is_quiet(attempts, later))
			changes->restless = later->ref;
		if (changed)
			return true;
	}
	end_walk(attempts, attempt);
	return false;
}

bool attempts_next_change(struct attempts *attempts, struct judgement *ret_judgement)
{
	struct changes *changes = &attempts->changes;
	struct attempt *attempt = attempts_at(attempts, changes->ref);

	if (!attempt)
		return false;
	if (changes->own) {
		changes->own = false;
		if (judge_again(attempts, attempt, ret_judgement))
			return true;
	}
	if (changes->poll) {
		changes->poll = false;
		if (lower_second_poll(attempts, attempt, ret_judgement))
			return true;
	}
	for (; changes->bond < BOND_COUNT; changes->bond++, changes->walking = false) {
		if (!changes->walking && !start_walk(attempts, attempt))
			continue;
		changes->walking = true;
		if (walk(attempts, attempt, ret_judgement))
			return true;
	}
	changes->ref = 0;
	return false;
}
