/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All attempts in one row, two indexes over the newest of each family, and the
 * verdict that was last said about each. Adding one costs a lookup in both
 * indexes and a search in its families; a change of facts walks over those
 * members that came later, and only where it can matter to them.
 */
#include "attempts_private.h"

#include <errno.h>

#define FIRST_REF (UINT32_MAX - 1000) /* so that every long run has seen refs wrap around */

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
	attempts->remembered.first = attempts->remembered.next = attempts->window_from = FIRST_REF;
	attempts->families.remembered = &attempts->remembered;
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempts->index[bond] = (struct attempt_index){.remembered = &attempts->remembered,
							       .bond = bond,
							       .across_processes = options->across_processes};
	return attempts;
}

static void leave_family(struct attempts *attempts, const struct attempt *attempt, int bond)
{
	struct family *family = attempts_family(attempts, attempt, bond);

	if (!family || !family_remove(family, &attempts->remembered, attempt))
		return;
	family_done(family, &attempts->remembered);
	family_pool_give_back(&attempts->families, attempt->family[bond]);
}

static struct attempt *oldest(const struct attempts *attempts)
{
	return attempts_at(attempts, attempts->remembered.first);
}

/* Out of its families, not out of the indexes. */
static void drop_oldest(struct attempts *attempts)
{
	for (int bond = 0; bond < BOND_COUNT; bond++)
		leave_family(attempts, oldest(attempts), bond);
	remembered_drop_oldest(&attempts->remembered);
}

static void forget_oldest(struct attempts *attempts)
{
	const struct attempt *attempt = oldest(attempts);

	for (int bond = 0; bond < BOND_COUNT; bond++) {
		const struct short_digest *digest = attempt_digest(attempt, bond);
		uint32_t *slot;

		if (!digest)
			continue;
		slot = attempt_index_find(&attempts->index[bond], digest, &attempt->facts);
		if (*slot == attempt->ref)
			attempt_index_clear(&attempts->index[bond], slot);
	}
	drop_oldest(attempts);
}

void attempts_free(struct attempts *attempts)
{
	if (!attempts)
		return;
	while (attempts->remembered.count)
		drop_oldest(attempts);
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempt_index_done(&attempts->index[bond]);
	family_pool_done(&attempts->families);
	remembered_done(&attempts->remembered);
	free(attempts);
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

static void pack(struct attempts *attempts, const struct verdict *verdict, struct said *said)
{
	*said = (struct said){
		.has_fingerprint = said->has_fingerprint,
		.has_key_scope = said->has_key_scope,
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

struct verdict attempts_said(const struct attempts *attempts, const struct attempt *attempt)
{
	const struct said *said = &attempt->said;

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

bool attempts_is_quiet(const struct attempts *attempts, const struct attempt *attempt)
{
	return attempt->said.severity >= finding_highest(&attempt->facts, &attempts->options.finding);
}

void attempts_say(struct attempts *attempts, struct attempt *attempt, const struct verdict *verdict,
		  const struct attempt *earlier)
{
	pack(attempts, verdict, &attempt->said);
	attempt->earlier = earlier && verdict->finding != FINDING_NONE ? earlier->ref : 0;
	for (int bond = 0; bond < BOND_COUNT; bond++) {
		struct family *family = attempts_family(attempts, attempt, bond);

		if (family && !attempts_is_quiet(attempts, attempt) && !ref_before(attempt->ref, family->quiet_from))
			family->quiet_from = attempt->ref + 1;
	}
}

/* ---- judging ---- */

struct attempt *attempts_before(const struct attempts *attempts, const struct attempt *attempt, uint32_t steps)
{
	const struct family *family = attempts_family(attempts, attempt, BY_FINGERPRINT);
	uint32_t position;

	if (!family)
		return NULL;
	position = family_position(family, attempt->ref);
	if (position < steps)
		return NULL;
	return attempts_at(attempts, family_member(family, position - steps));
}

/* The last of three, and said to be a repeat of the second. */
static bool ends_a_series(const struct attempts *attempts, const struct attempt *attempt, const struct attempt *earlier)
{
	const struct attempt *second = attempts_before(attempts, attempt, 1);
	const struct attempt *first = attempts_before(attempts, attempt, 2);

	return first && earlier == second && finding_is_poll(&first->facts, &second->facts, &attempt->facts);
}

void attempts_be_poll(struct verdict *verdict)
{
	if (verdict->severity <= SEVERITY_INFO)
		return;
	verdict->severity = SEVERITY_INFO;
	verdict->rule = finding_poll_rule;
}

struct worst attempts_judge(struct attempts *attempts, const struct attempt *attempt)
{
	struct worst worst = {0};
	struct search search = {.remembered = &attempts->remembered,
				.later = attempt,
				.options = &attempts->options.finding,
				.worst = &worst};

	for (int bond = 0; bond < BOND_COUNT; bond++)
		if (attempt->family[bond])
			family_search(attempts_family(attempts, attempt, bond), &search);
	attempts->looked_at += worst.looked_at;
	if (worst.verdict.finding == FINDING_DUP_AFTER_SUCCESS && ends_a_series(attempts, attempt, worst.earlier))
		attempts_be_poll(&worst.verdict);
	return worst;
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

void attempts_fill(const struct attempts *attempts, const struct attempt *attempt, const struct attempt *earlier,
		 struct judgement *ret_judgement)
{
	struct judgement *judgement = ret_judgement;
	enum bond bond = attempt->said.has_fingerprint ? BY_FINGERPRINT : BY_KEY;
	const struct family *family;

	memset(judgement, 0, sizeof(*judgement));
	judgement->verdict = attempts_said(attempts, attempt);
	memcpy(judgement->call_id, attempt->id, sizeof(judgement->call_id));
	judgement->call_number = attempt->number;
	judgement->later_facts = attempt->facts;
	if (earlier) {
		memcpy(judgement->earlier_id, earlier->id, sizeof(judgement->earlier_id));
		judgement->earlier_number = earlier->number;
		judgement->earlier_facts = earlier->facts;
		if (!attempts_share(attempt, earlier, BY_FINGERPRINT))
			bond = BY_KEY;
	}
	if (judgement->verdict.masked)
		judgement->equal_except = equal_except(attempts, attempt, earlier);
	family = attempts_family(attempts, attempt, bond);
	judgement->by_key = bond == BY_KEY;
	memcpy(judgement->group.byte, attempt_digest(attempt, bond)->byte, sizeof(struct short_digest));
	judgement->attempt = 1;
	judgement->attempts = 1;
	if (!family)
		return;
	judgement->attempt = (uint64_t)family->gone + family_position(family, attempt->ref) + 1;
	judgement->attempts = (uint64_t)family->gone + family->count;
}

/* ---- adding ---- */

static const struct digest *fingerprint_of(const struct call *call)
{
	if (call->class == CLASS_LLM && call->has_prompt_fingerprint)
		return &call->prompt_fingerprint;
	return call->has_fingerprint ? &call->fingerprint : NULL;
}

struct digest attempts_group(const struct digest *digest)
{
	struct digest group = {0};

	memcpy(group.byte, digest->byte, sizeof(struct short_digest));
	return group;
}

/*
 * Another digest for each scope that is apart: an attempt needs no field for it. Digests are SHA-256, so what
 * is folded in makes no two of them equal that were not.
 */
static struct short_digest front_of(const struct attempts *attempts, const struct digest *digest,
				    const struct process *process)
{
	uint64_t scope[2] = {process->cgroup_id, 0};
	struct short_digest front;

	memcpy(front.byte, digest->byte, sizeof(front.byte));
	if (!attempts->options.within_cgroups)
		return front;
	if (!scope[0]) {
		scope[0] = process->start_ns;
		scope[1] = (uint64_t)process->tgid << 32 | 1;
	}
	for (size_t i = 0; i < sizeof(front.byte); i++)
		front.byte[i] ^= ((const uint8_t *)scope)[i];
	return front;
}

/* Behind all others, and not added yet. */
static struct attempt *make_attempt(struct attempts *attempts, const struct call *call)
{
	const struct digest *fingerprint = fingerprint_of(call);
	bool has_key_scope = call->idem_state == IDEM_PRESENT;
	struct attempt *attempt = remembered_make(&attempts->remembered, (fingerprint != NULL) + has_key_scope);

	if (!attempt)
		return NULL;
	attempt_facts_of(call, &attempt->facts);
	memcpy(attempt->id, call->id, sizeof(attempt->id));
	attempt->number = call->number;
	attempt->said.has_fingerprint = fingerprint != NULL;
	attempt->said.has_key_scope = has_key_scope;
	if (fingerprint)
		attempt->digest[0] = front_of(attempts, fingerprint, &call->process);
	if (has_key_scope)
		attempt->digest[fingerprint != NULL] = front_of(attempts, &call->key_scope, &call->process);
	return attempt;
}

/* A family of one, which another is about to join. Its number; 0 when out of memory. */
static uint32_t found_family(struct attempts *attempts, struct attempt *member, enum bond bond)
{
	uint32_t number = family_pool_new(&attempts->families, bond);
	struct family *family = family_pool_at(&attempts->families, number);

	if (!number)
		return 0;
	member->family[bond] = number;
	family->quiet_from = attempts_is_quiet(attempts, member) ? member->ref : member->ref + 1;
	family_add(family, &attempts->remembered, member);
	return number;
}

/* The family that attempt is to be in, with room for it; 0 = none. 0 or -ENOMEM. */
static int find_family(struct attempts *attempts, const struct attempt *attempt, enum bond bond, uint32_t *ret_number)
{
	const struct short_digest *digest = attempt_digest(attempt, bond);
	struct attempt *newest;

	*ret_number = 0;
	if (!digest)
		return 0;
	if (attempt_index_reserve(&attempts->index[bond]))
		return -ENOMEM;
	newest = attempts_at(attempts, *attempt_index_find(&attempts->index[bond], digest, &attempt->facts));
	if (!newest)
		return 0;
	*ret_number = newest->family[bond] ? newest->family[bond] : found_family(attempts, newest, bond);
	if (!*ret_number)
		return -ENOMEM;
	return family_reserve(family_pool_at(&attempts->families, *ret_number), &attempts->remembered);
}

static void commit(struct attempts *attempts, struct attempt *attempt, const uint32_t families[BOND_COUNT])
{
	struct remembered *remembered = &attempts->remembered;

	remembered_add(remembered, attempt);
	for (int bond = 0; bond < BOND_COUNT; bond++) {
		const struct short_digest *digest = attempt_digest(attempt, bond);
		uint32_t *slot;

		if (!digest)
			continue;
		slot = attempt_index_find(&attempts->index[bond], digest, &attempt->facts);
		attempt_index_set(&attempts->index[bond], slot, attempt);
		attempt->family[bond] = families[bond];
		if (families[bond])
			family_add(attempts_family(attempts, attempt, bond), remembered, attempt);
	}
}

static bool is_full(const struct attempts *attempts)
{
	const struct attempts_options *options = &attempts->options;

	return attempts->remembered.count >= options->max_remembered ||
	       (options->max_bytes && attempts->remembered.bytes > options->max_bytes);
}

/* 0 or -ENOMEM: then the attempt is not among them. */
static int remember(struct attempts *attempts, struct attempt *attempt)
{
	uint32_t families[BOND_COUNT];

	while (attempts->remembered.count && is_full(attempts)) {
		attempts->evicted += !ref_before(attempts->remembered.first, attempts->window_from);
		forget_oldest(attempts);
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
	attempt = make_attempt(attempts, call);
	if (!attempt || remember(attempts, attempt)) {
		remembered_unmake(&attempts->remembered, attempt);
		ret_judgement->verdict.finding = FINDING_UNDECIDABLE;
		ret_judgement->verdict.rule = "out of memory";
		return -ENOMEM;
	}
	call->attempt = (void *)(uintptr_t)attempt->ref;
	worst = attempts_judge(attempts, attempt);
	attempts_say(attempts, attempt, &worst.verdict, worst.earlier);
	attempts_fill(attempts, attempt, worst.earlier, ret_judgement);
	return 0;
}

/* ---- what is asked ---- */

void attempts_close(struct attempts *attempts, struct call *call)
{
	(void)attempts;
	call->attempt = NULL;
}

void attempts_set_policy(struct attempts *attempts, const struct finding_limits *limits, bool strict)
{
	attempts->options.finding.limits = limits;
	attempts->options.finding.strict = strict;
}

void attempts_mark(struct attempts *attempts)
{
	for (int bond = 0; bond < BOND_COUNT; bond++)
		attempt_index_empty(&attempts->index[bond]);
	attempts->window_from = attempts->remembered.next;
}

size_t attempts_count(const struct attempts *attempts)
{
	return attempts->remembered.count;
}

uint64_t attempts_evicted(const struct attempts *attempts)
{
	return attempts->evicted;
}

size_t attempts_bytes(const struct attempts *attempts)
{
	return sizeof(*attempts) + attempts->remembered.bytes;
}

uint64_t attempts_looked_at(const struct attempts *attempts)
{
	return attempts->looked_at;
}
