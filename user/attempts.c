/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All attempts in one row, two indexes over the newest of each family, and the
 * verdict that was last said about each. Adding one costs a lookup in both
 * indexes and a search in its families; a change of facts walks over those
 * members that came later, and only where it can matter to them.
 */
#include "attempts.h"
#include "attempt_index.h"
#include "family.h"

#include <errno.h>

#define RULES_MAX 64
#define FIRST_REF (UINT32_MAX - 1000) /* so that every long run has seen refs wrap around */

/* What attempts_next_change() has still to look at. */
struct changes {
	uint32_t ref; /* the attempt that changed; 0 = nothing is pending */
	struct attempt_facts before;
	bool own;	   /* its own verdict is to be looked at */
	bool poll;	   /* the one before it may be a poll */
	bool walking;	   /* position and end are set for this bond */
	int bond;	   /* the family that is walked over */
	uint32_t position; /* the member to look at next */
	uint32_t end;
	uint32_t restless; /* the last one seen that is not quiet; 0 = none */
};

struct attempts {
	struct attempts_options options;
	struct remembered remembered;
	struct attempt_index index[BOND_COUNT];
	struct changes changes;
	const char *rule[RULES_MAX]; /* the static texts that verdicts came with */
	uint8_t rule_count;
	uint64_t evicted;
	uint64_t looked_at;
};

/* ---- life ---- */

struct attempts *attempts_new(const struct attempts_options *options)
{
	struct attempts *attempts = calloc(1, sizeof(*attempts));

	if (!attempts)
		return NULL;
	attempts->options = *options;
	if (attempts->options.max_remembered > 1U << 30)
		attempts->options.max_remembered = 1U << 30;
	if (attempts->options.max_remembered < 1)
		attempts->options.max_remembered = 1;
	attempts->remembered.first = attempts->remembered.next = FIRST_REF;
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempts->index[bond] = (struct attempt_index){.remembered = &attempts->remembered,
							       .bond = bond,
							       .across_processes = options->across_processes};
	return attempts;
}

static void forget_oldest(struct attempts *attempts);

void attempts_free(struct attempts *attempts)
{
	if (!attempts)
		return;
	while (attempts->remembered.count)
		forget_oldest(attempts);
	free(attempts->remembered.slot);
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempt_index_done(&attempts->index[bond]);
	free(attempts);
}

/* ---- the row of all ---- */

/* Room for one more, and a ref for it that is not 0. 0 or -ENOMEM. */
static int remembered_reserve(struct remembered *remembered)
{
	uint32_t capacity = remembered->capacity ? 2 * remembered->capacity : 64;
	struct attempt **slot;

	if (remembered->next == 0)
		remembered->next++;
	if (remembered->next - remembered->first < remembered->capacity)
		return 0;
	slot = calloc(capacity, sizeof(struct attempt *));
	if (!slot)
		return -ENOMEM;
	for (uint32_t ref = remembered->first; ref != remembered->next; ref++)
		slot[ref & (capacity - 1)] = remembered->slot[ref & (remembered->capacity - 1)];
	free(remembered->slot);
	remembered->slot = slot;
	remembered->capacity = capacity;
	return 0;
}

static void forget_oldest(struct attempts *attempts)
{
	struct attempt *attempt = remembered_at(&attempts->remembered, attempts->remembered.first);

	for (int bond = 0; bond < BOND_COUNT; bond++) {
		const struct digest *digest = attempt_digest(attempt, bond);
		struct family *family = attempt->family[bond];
		uint32_t *slot;

		if (!digest)
			continue;
		slot = attempt_index_find(&attempts->index[bond], digest, &attempt->facts);
		if (*slot == attempt->ref)
			attempt_index_clear(&attempts->index[bond], slot);
		if (family && family_remove(family, &attempts->remembered, attempt))
			family_free(family);
	}
	attempts->remembered.count--;
	attempts->remembered.first++;
	if (attempts->remembered.first == 0)
		attempts->remembered.first++;
	free(attempt);
}

/* ---- verdicts, packed ---- */

static uint8_t number_of_rule(struct attempts *attempts, const char *rule)
{
	uint8_t i = 0;

	while (i < attempts->rule_count && attempts->rule[i] != rule)
		i++;
	if (i == attempts->rule_count && i < RULES_MAX - 1)
		attempts->rule[attempts->rule_count++] = rule;
	return i;
}

static struct said pack(struct attempts *attempts, const struct verdict *verdict)
{
	return (struct said){
		.finding = (uint8_t)verdict->finding,
		.severity = (uint8_t)verdict->severity,
		.row = (uint8_t)verdict->row,
		.column = (uint8_t)verdict->column,
		.rule = number_of_rule(attempts, verdict->rule),
		.cross_process = verdict->cross_process,
		.weaker = verdict->weaker,
		.masked = verdict->masked,
	};
}

static struct verdict unpack(const struct attempts *attempts, const struct said *said)
{
	return (struct verdict){
		.finding = said->finding,
		.severity = said->severity,
		.row = said->row,
		.column = said->column,
		.rule = attempts->rule[said->rule],
		.cross_process = said->cross_process,
		.weaker = said->weaker,
		.masked = said->masked,
	};
}

/* A late 2xx cannot make its verdict worse. */
static bool is_quiet(const struct attempts *attempts, const struct attempt *attempt)
{
	return attempt->said.severity >= finding_highest(&attempt->facts, &attempts->options.finding);
}

static void say(struct attempts *attempts, struct attempt *attempt, const struct verdict *verdict,
		const struct attempt *earlier)
{
	attempt->said = pack(attempts, verdict);
	attempt->earlier = earlier && verdict->finding != FINDING_NONE ? earlier->ref : 0;
	for (int bond = 0; bond < BOND_COUNT; bond++) {
		struct family *family = attempt->family[bond];

		if (family && !is_quiet(attempts, attempt) && !ref_before(attempt->ref, family->quiet_from))
			family->quiet_from = attempt->ref + 1;
	}
}

/* ---- judging ---- */

static struct attempt *neighbour_before(const struct attempts *attempts, const struct attempt *attempt, uint32_t steps)
{
	const struct family *family = attempt->family[BY_FINGERPRINT];
	uint32_t position;

	if (!family)
		return NULL;
	position = family_position(family, attempt->ref);
	if (position - family->begin < steps)
		return NULL;
	return remembered_at(&attempts->remembered, family->member[position - steps]);
}

/* The last of three, and said to be a repeat of the second. */
static bool ends_a_series(const struct attempts *attempts, const struct attempt *attempt, const struct attempt *earlier)
{
	const struct attempt *second = neighbour_before(attempts, attempt, 1);
	const struct attempt *first = neighbour_before(attempts, attempt, 2);

	return first && earlier == second && finding_is_poll(&first->facts, &second->facts, &attempt->facts);
}

static void be_poll(struct verdict *verdict)
{
	if (verdict->severity <= SEVERITY_INFO)
		return;
	verdict->severity = SEVERITY_INFO;
	verdict->rule = finding_poll_rule;
}

/* The worst pair of attempt with any that came before it. */
static struct worst judge(struct attempts *attempts, const struct attempt *attempt)
{
	struct worst worst = {0};
	struct search search = {.remembered = &attempts->remembered,
				.later = attempt,
				.options = &attempts->options.finding,
				.worst = &worst};

	for (int bond = 0; bond < BOND_COUNT; bond++)
		if (attempt->family[bond])
			family_search(attempt->family[bond], &search);
	attempts->looked_at += worst.looked_at;
	if (worst.verdict.finding == FINDING_DUP_AFTER_SUCCESS && ends_a_series(attempts, attempt, worst.earlier))
		be_poll(&worst.verdict);
	return worst;
}

static bool share(const struct attempt *a, const struct attempt *b, enum bond bond)
{
	return a->family[bond] && a->family[bond] == b->family[bond];
}

/* What the policy masks in the two of them, in words. */
static const char *equal_except(const struct attempts *attempts, const struct attempt *attempt,
				const struct attempt *earlier)
{
	const struct finding_options *options = &attempts->options.finding;
	const struct finding_limits *limits = finding_limits_of(&attempt->facts, options);

	if (earlier && (!limits || !limits->equal_except))
		limits = finding_limits_of(&earlier->facts, options);
	return limits ? limits->equal_except : NULL;
}

static void fill(const struct attempts *attempts, const struct attempt *attempt, const struct attempt *earlier,
		 struct judgement *ret_judgement)
{
	struct judgement *judgement = ret_judgement;
	enum bond bond = attempt->has_fingerprint ? BY_FINGERPRINT : BY_KEY;
	const struct family *family;

	memset(judgement, 0, sizeof(*judgement));
	judgement->verdict = unpack(attempts, &attempt->said);
	memcpy(judgement->call_id, attempt->id, sizeof(judgement->call_id));
	judgement->call_number = attempt->number;
	judgement->later_facts = attempt->facts;
	if (earlier) {
		memcpy(judgement->earlier_id, earlier->id, sizeof(judgement->earlier_id));
		judgement->earlier_number = earlier->number;
		judgement->earlier_facts = earlier->facts;
		if (!share(attempt, earlier, BY_FINGERPRINT))
			bond = BY_KEY;
	}
	if (judgement->verdict.masked)
		judgement->equal_except = equal_except(attempts, attempt, earlier);
	family = attempt->family[bond];
	judgement->by_key = bond == BY_KEY;
	judgement->group = *attempt_digest(attempt, bond);
	judgement->attempt = 1;
	judgement->attempts = 1;
	if (!family)
		return;
	judgement->attempt = family->gone + (family_position(family, attempt->ref) - family->begin) + 1;
	judgement->attempts = family->gone + family_size(family);
}

/* ---- adding ---- */

static const struct digest *fingerprint_of(const struct call *call)
{
	if (call->class == CLASS_LLM && call->has_prompt_fingerprint)
		return &call->prompt_fingerprint;
	return call->has_fingerprint ? &call->fingerprint : NULL;
}

static struct attempt *attempt_new(const struct call *call)
{
	const struct digest *fingerprint = fingerprint_of(call);
	bool has_key_scope = call->idem_state == IDEM_PRESENT;
	size_t digests = (fingerprint != NULL) + has_key_scope;
	struct attempt *attempt = calloc(1, sizeof(*attempt) + digests * sizeof(struct digest));

	if (!attempt)
		return NULL;
	attempt_facts_of(call, &attempt->facts);
	memcpy(attempt->id, call->id, sizeof(attempt->id));
	attempt->number = call->number;
	attempt->has_fingerprint = fingerprint != NULL;
	attempt->has_key_scope = has_key_scope;
	if (fingerprint)
		attempt->digest[0] = *fingerprint;
	if (has_key_scope)
		attempt->digest[fingerprint != NULL] = call->key_scope;
	return attempt;
}

/* Finds or founds the family that attempt is to be in, with room for it. 0 or -ENOMEM. */
static int find_family(struct attempts *attempts, const struct attempt *attempt, enum bond bond, struct family **ret_family)
{
	const struct digest *digest = attempt_digest(attempt, bond);
	struct attempt *newest;
	struct family *family;

	*ret_family = NULL;
	if (!digest)
		return 0;
	if (attempt_index_reserve(&attempts->index[bond]))
		return -ENOMEM;
	newest = remembered_at(&attempts->remembered,
			       *attempt_index_find(&attempts->index[bond], digest, &attempt->facts));
	if (!newest)
		return 0;
	family = newest->family[bond];
	if (!family) {
		family = family_new(bond);
		if (!family || family_reserve(family)) {
			family_free(family);
			return -ENOMEM;
		}
		newest->family[bond] = family;
		family->quiet_from = is_quiet(attempts, newest) ? newest->ref : newest->ref + 1;
		family_add(family, &attempts->remembered, newest);
	}
	if (family_reserve(family))
		return -ENOMEM;
	*ret_family = family;
	return 0;
}

static void commit(struct attempts *attempts, struct attempt *attempt, struct family *const families[BOND_COUNT])
{
	struct remembered *remembered = &attempts->remembered;

	attempt->ref = remembered->next++;
	remembered->count++;
	remembered->slot[attempt->ref & (remembered->capacity - 1)] = attempt;
	for (int bond = 0; bond < BOND_COUNT; bond++) {
		const struct digest *digest = attempt_digest(attempt, bond);
		uint32_t *slot;

		if (!digest)
			continue;
		slot = attempt_index_find(&attempts->index[bond], digest, &attempt->facts);
		attempt_index_set(&attempts->index[bond], slot, attempt->ref);
		attempt->family[bond] = families[bond];
		if (families[bond])
			family_add(families[bond], remembered, attempt);
	}
}

static int remember(struct attempts *attempts, struct attempt *attempt)
{
	struct family *families[BOND_COUNT];

	if (attempts->remembered.count >= attempts->options.max_remembered) {
		forget_oldest(attempts);
		attempts->evicted++;
	}
	if (remembered_reserve(&attempts->remembered))
		return -ENOMEM;
	for (int bond = 0; bond < BOND_COUNT; bond++)
		if (find_family(attempts, attempt, bond, &families[bond]))
			return -ENOMEM;
	commit(attempts, attempt, families);
	return 0;
}

int attempts_add(struct attempts *attempts, struct call *call, struct judgement *ret_judgement)
{
	struct judgement ignored;
	struct attempt *attempt;
	struct worst worst;

	while (attempts_next_change(attempts, &ignored))
		;
	memset(ret_judgement, 0, sizeof(*ret_judgement));
	call->attempt = NULL;
	if (!fingerprint_of(call) && call->idem_state != IDEM_PRESENT)
		return 0;
	attempt = attempt_new(call);
	if (!attempt || remember(attempts, attempt)) {
		free(attempt);
		ret_judgement->verdict.finding = FINDING_UNDECIDABLE;
		ret_judgement->verdict.rule = "out of memory";
		return -ENOMEM;
	}
	call->attempt = (void *)(uintptr_t)attempt->ref;
	worst = judge(attempts, attempt);
	say(attempts, attempt, &worst.verdict, worst.earlier);
	fill(attempts, attempt, worst.earlier, ret_judgement);
	return 0;
}

/* ---- changes ---- */

static struct attempt *attempt_of(const struct attempts *attempts, const struct call *call)
{
	struct attempt *attempt = remembered_at(&attempts->remembered, (uint32_t)(uintptr_t)call->attempt);

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
			family_take_out(attempt->family[bond], &attempts->remembered, attempt);
	memcpy(&attempt->facts, facts, sizeof(*facts));
	for (int bond = 0; moves && bond < BOND_COUNT; bond++)
		if (attempt->family[bond])
			family_put_back(attempt->family[bond], &attempts->remembered, attempt);
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
	struct verdict before = unpack(attempts, &attempt->said);
	const struct attempt *earlier = remembered_at(&attempts->remembered, attempt->earlier);
	struct worst worst = judge(attempts, attempt);

	if (worst.verdict.finding == before.finding && worst.verdict.severity == before.severity)
		return false;
	if (worst.earlier)
		earlier = worst.earlier;
	else if (earlier) /* the row and the rule that took it back */
		worst.verdict = finding_judge(&earlier->facts, &attempt->facts, &attempts->options.finding);
	say(attempts, attempt, &worst.verdict, earlier);
	fill(attempts, attempt, earlier, ret_judgement);
	ret_judgement->before = before;
	return true;
}

static const struct attempt_facts long_after = {.first_ns = UINT64_MAX - 1};

/* attempt was the third of a series, and is answered now: so the second was a poll as well. */
static bool lower_second_poll(struct attempts *attempts, const struct attempt *attempt, struct judgement *ret_judgement)
{
	struct attempt *second = neighbour_before(attempts, attempt, 1);
	const struct attempt *first = neighbour_before(attempts, attempt, 2);
	struct verdict before, verdict;

	if (!first || attempts->rule[attempt->said.rule] != finding_poll_rule ||
	    finding_row_of(&attempt->facts, &long_after) != ROW_SUCCESS)
		return false;
	if (second->said.finding != FINDING_DUP_AFTER_SUCCESS || second->said.severity <= SEVERITY_INFO ||
	    second->earlier != first->ref)
		return false;
	before = verdict = unpack(attempts, &second->said);
	be_poll(&verdict);
	say(attempts, second, &verdict, first);
	fill(attempts, second, first, ret_judgement);
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
static bool start_walk(struct changes *changes, const struct attempt *attempt)
{
	const struct family *family = attempt->family[changes->bond];
	enum reach reach = family ? reach_of(&changes->before, &attempt->facts, family) : REACH_NONE;

	if (reach == REACH_NONE)
		return false;
	changes->position = family_position(family, attempt->ref) + 1;
	changes->end = reach == REACH_ALL ? family->end : family_position(family, family->quiet_from);
	changes->restless = 0;
	return changes->position < changes->end;
}

static void end_walk(const struct changes *changes, const struct attempt *attempt)
{
	struct family *family = attempt->family[changes->bond];

	family->quiet_from = changes->restless ? changes->restless + 1 : attempt->ref + 1;
}

/* True when the verdict about later is another one now. */
static bool reconsider(struct attempts *attempts, const struct attempt *changed, struct attempt *later,
		       struct judgement *ret_judgement)
{
	const struct finding_options *options = &attempts->options.finding;
	const struct attempt_facts *before = &attempts->changes.before;
	struct attempt_facts now = changed->facts;
	struct verdict said = unpack(attempts, &later->said), was, is;

	if (attempts->changes.bond == BY_KEY && share(changed, later, BY_FINGERPRINT))
		return false;
	if (now.replayed && !before->replayed && later->earlier == changed->ref)
		return judge_again(attempts, later, ret_judgement);
	now.owner_gone = before->owner_gone;
	was = finding_judge(before, &later->facts, options);
	is = finding_judge(&now, &later->facts, options);
	attempts->looked_at += 2;
	if (was.finding == FINDING_SAFE_RETRY || !verdict_worse(&is, &was) || !verdict_worse(&is, &said))
		return false;
	say(attempts, later, &is, changed);
	fill(attempts, later, changed, ret_judgement);
	ret_judgement->before = said;
	return true;
}

static bool walk(struct attempts *attempts, const struct attempt *attempt, struct judgement *ret_judgement)
{
	struct changes *changes = &attempts->changes;
	const struct family *family = attempt->family[changes->bond];

	while (changes->position < changes->end) {
		struct attempt *later = remembered_at(&attempts->remembered, family->member[changes->position++]);
		bool changed = reconsider(attempts, attempt, later, ret_judgement);

		if (!is_quiet(attempts, later))
			changes->restless = later->ref;
		if (changed)
			return true;
	}
	end_walk(changes, attempt);
	return false;
}

bool attempts_next_change(struct attempts *attempts, struct judgement *ret_judgement)
{
	struct changes *changes = &attempts->changes;
	struct attempt *attempt = remembered_at(&attempts->remembered, changes->ref);

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
		if (!changes->walking && !start_walk(changes, attempt))
			continue;
		changes->walking = true;
		if (walk(attempts, attempt, ret_judgement))
			return true;
	}
	changes->ref = 0;
	return false;
}

void attempts_close(struct attempts *attempts, struct call *call)
{
	(void)attempts;
	call->attempt = NULL;
}

void attempts_mark(struct attempts *attempts)
{
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempt_index_empty(&attempts->index[bond]);
}

size_t attempts_count(const struct attempts *attempts)
{
	return attempts->remembered.count;
}

uint64_t attempts_evicted(const struct attempts *attempts)
{
	return attempts->evicted;
}

uint64_t attempts_looked_at(const struct attempts *attempts)
{
	return attempts->looked_at;
}
