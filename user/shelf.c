/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sorted arrays: entries come and go at their ends nearly always, so adding
 * and removing costs what lies behind the place, which is little. Positions
 * before begin are empty; they are closed when room is needed.
 */
#include "shelf.h"

#include <errno.h>

void shelf_kind_of(const struct attempt_facts *facts, struct shelf_kind *ret_kind)
{
	struct attempt_facts *kind = &ret_kind->facts;
	const struct attempt_facts later = {.first_ns = UINT64_MAX - 1};
	struct attempt_facts plain = *facts;

	memset(ret_kind, 0, sizeof(*ret_kind));
	ret_kind->open = attempt_ended_ns(facts) == UINT64_MAX;
	if (ret_kind->open) { /* its status and its close do not matter yet, and change */
		kind->idem_state = facts->idem_state;
		kind->replayed = facts->replayed;
		kind->owner_gone = facts->owner_gone;
		kind->continuation = facts->continuation;
		kind->body = facts->body != 0;
		return;
	}
	memcpy(kind, facts, sizeof(*kind));
	/* Times matter to the row alone, once the attempt has ended; behind a replay header is another row. */
	plain.replayed = false;
	kind->first_ns = finding_row_of(&plain, &later);
	kind->status_ns = 0;
	kind->closed_ns = 0;
	kind->complete_ns = 0;
	/* Only said, never judged by. */
	kind->retry_marker = 0;
	kind->retry_count = 0;
	/* Identity is compared entry by entry. */
	kind->process = 0;
	kind->tgid = 0;
	kind->cgroup = 0;
	kind->principal = 0;
	kind->key = 0;
	kind->body = facts->body != 0;
	kind->masked = 0;
	/* No verdict rests on these. */
	kind->usage_seen = kind->usage_final = false;
	kind->input_tokens = kind->output_tokens = 0;
}

bool shelf_kind_equal(const struct shelf_kind *a, const struct shelf_kind *b)
{
	return a->open == b->open && memcmp(&a->facts, &b->facts, sizeof(a->facts)) == 0;
}

/* What verdicts may differ by within one kind. */
static bool same_wide_identity(const struct attempt_facts *a, const struct attempt_facts *b, enum bond bond)
{
	return a->principal == b->principal && a->has_principal == b->has_principal && a->bearer == b->bearer &&
	       (bond != BY_KEY || a->body == b->body);
}

static bool same_identity(const struct attempt_facts *a, const struct attempt_facts *b, enum bond bond)
{
	return same_wide_identity(a, b, bond) && a->key == b->key && a->body == b->body && a->cgroup == b->cgroup &&
	       attempts_share_process(a, b);
}

/* The first position whose ref is not before ref. */
static uint32_t position_of(const struct shelf *shelf, uint32_t ref)
{
	uint32_t low = shelf->begin, high = shelf->end;

	/* Nearly always at one of the ends. */
	if (low == high || ref_before(shelf->entry[high - 1].ref, ref))
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ref_before(shelf->entry[middle].ref, ref))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Runs and ends are right before that position; makes them right from there on. */
static void renew_from(struct shelf *shelf, const struct remembered *remembered, uint32_t position)
{
	const struct attempt *before = NULL;

	if (position > shelf->begin)
		before = remembered_at(remembered, shelf->entry[position - 1].ref);
	for (uint32_t i = position; i < shelf->end; i++) {
		struct shelf_entry *entry = &shelf->entry[i];
		const struct attempt *attempt = remembered_at(remembered, entry->ref);
		uint64_t ended_ns = attempt_ended_ns(&attempt->facts);

		if (ended_ns < attempt->facts.first_ns) /* its row does not depend on time */
			ended_ns = attempt->facts.first_ns;
		entry->run = entry->key_run = entry->wide_run = i;
		entry->latest_end = ended_ns;
		if (before) {
			if (same_identity(&before->facts, &attempt->facts, shelf->bond))
				entry->run = entry[-1].run;
			if (same_wide_identity(&before->facts, &attempt->facts, shelf->bond))
				entry->wide_run = entry[-1].wide_run;
			if (entry->wide_run < i && before->facts.key == attempt->facts.key)
				entry->key_run = entry[-1].key_run;
			if (entry[-1].latest_end > ended_ns)
				entry->latest_end = entry[-1].latest_end;
		}
		before = attempt;
	}
}

static int make_room(struct shelf *shelf, struct remembered *remembered)
{
	uint32_t count = shelf->end - shelf->begin;
	uint32_t capacity = shelf_grown(shelf->capacity);
	struct shelf_entry *entry;

	if (shelf->end < shelf->capacity)
		return 0;
	if (shelf->begin > shelf->capacity / 4) {
		memmove(shelf->entry, shelf->entry + shelf->begin, count * sizeof(*shelf->entry));
		shelf->begin = 0;
		shelf->end = count;
		renew_from(shelf, remembered, 0);
		return 0;
	}
	entry = remembered_resize(remembered, shelf->entry, shelf->capacity * sizeof(*entry), capacity * sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	shelf->entry = entry;
	shelf->capacity = capacity;
	return 0;
}

int shelf_add(struct shelf *shelf, struct remembered *remembered, const struct attempt *attempt)
{
	uint32_t position;

	if (make_room(shelf, remembered))
		return -ENOMEM;
	position = position_of(shelf, attempt->ref);
	memmove(shelf->entry + position + 1, shelf->entry + position, (shelf->end - position) * sizeof(*shelf->entry));
	shelf->end++;
	shelf->entry[position].ref = attempt->ref;
	renew_from(shelf, remembered, position);
	return 0;
}

void shelf_remove(struct shelf *shelf, const struct remembered *remembered, const struct attempt *attempt)
{
	uint32_t position = position_of(shelf, attempt->ref);

	/* A run that began here now begins behind begin, and that ends it all the same. */
	if (position == shelf->begin) {
		shelf->begin++;
		return;
	}
	shelf->end--;
	memmove(shelf->entry + position, shelf->entry + position + 1, (shelf->end - position) * sizeof(*shelf->entry));
	renew_from(shelf, remembered, position);
}

bool shelf_is_empty(const struct shelf *shelf)
{
	return shelf->begin == shelf->end;
}

void shelf_done(struct shelf *shelf, struct remembered *remembered)
{
	remembered_resize(remembered, shelf->entry, shelf->capacity * sizeof(*shelf->entry), 0);
	*shelf = (struct shelf){0};
}

/* ---- the search ---- */

struct verdict search_judge(struct search *search, const struct attempt *earlier)
{
	struct worst *worst = search->worst;
	struct verdict verdict = finding_judge(&earlier->facts, &search->later->facts, search->options);

	worst->looked_at++;
	if (verdict.finding == FINDING_NONE || verdict_worse(&worst->verdict, &verdict))
		return verdict;
	if (!verdict_worse(&verdict, &worst->verdict) && worst->earlier && !ref_before(worst->earlier->ref, earlier->ref))
		return verdict;
	worst->verdict = verdict;
	worst->earlier = earlier;
	return verdict;
}

static bool began_too_long_ago(const struct shelf_entry *entry, const struct attempt_facts *later, uint64_t window_ns)
{
	return entry->latest_end <= later->first_ns && later->first_ns - entry->latest_end > window_ns;
}

/* No entry from here down began within any window that the policy leaves. */
static bool is_out_of_windows(const struct shelf_entry *entry, const struct search *search)
{
	const struct attempt_facts *later = &search->later->facts;
	uint64_t window_ns = finding_window_ns(later, search->options, false);
	uint64_t across_ns = finding_window_ns(later, search->options, true);

	return began_too_long_ago(entry, later, window_ns > across_ns ? window_ns : across_ns);
}

/*
 * Two bearer tokens match for a while only, and so do attempts about which the
 * policy says so: a run of them is not all alike, unless every attempt from
 * here down ended, and so began, too long ago.
 */
static bool may_match_further_down(const struct attempt_facts *earlier, const struct attempt_facts *later,
				   const struct shelf_entry *entry, const struct finding_options *options)
{
	bool cross_process = !attempts_share_process(earlier, later);
	uint64_t window_ns = finding_window_ns(later, options, cross_process);

	if (window_ns != UINT64_MAX && !began_too_long_ago(entry, later, window_ns))
		return true;
	if (!earlier->bearer || !later->bearer || earlier->principal == later->principal ||
	    cross_process)
		return false;
	return !began_too_long_ago(entry, later, FINDING_BEARER_WINDOW_NS);
}

/* The first entry of those that nothing else can come of, now that entry was judged. */
static uint32_t first_alike(const struct shelf *shelf, const struct shelf_entry *entry, const struct attempt_facts *earlier,
			    const struct search *search)
{
	const struct attempt_facts *later = &search->later->facts;
	bool own = earlier->has_principal == later->has_principal && earlier->principal == later->principal;
	const struct finding_limits *limits = finding_limits_of(later, search->options);
	bool process_matters = later->class == CLASS_LLM && earlier->owner_gone;

	if (limits)
		process_matters |= limits->same_process || limits->same_cgroup || limits->window_ns != limits->across_ns;
	if (!own || process_matters || later->idem_state == IDEM_UNKNOWN)
		return entry->run;
	if (shelf->bond == BY_FINGERPRINT && later->idem_state == IDEM_PRESENT && earlier->key == later->key)
		return entry->key_run;
	return entry->wide_run;
}

/*
 * Each entry had ended when the later attempt began, or was still open: the
 * worst of either sort is looked for, until both are found or can be no more.
 */
void shelf_search(const struct shelf *shelf, struct search *search)
{
	const struct attempt_facts *later = &search->later->facts;
	int64_t i = (int64_t)position_of(shelf, search->later->ref) - 1;
	bool found_open = false, found_ended = shelf->kind.open;

	while (i >= (int64_t)shelf->begin) {
		const struct shelf_entry *entry = &shelf->entry[i];
		const struct attempt *earlier = remembered_at(search->remembered, entry->ref);
		bool was_open = attempt_ended_ns(&earlier->facts) > later->first_ns;
		bool *found = was_open ? &found_open : &found_ended;
		struct verdict verdict, bound;
		bool run_is_alike;

		if (found_ended && (found_open || entry->latest_end <= later->first_ns))
			return;
		if (is_out_of_windows(entry, search))
			return;
		if (*found) {
			i--;
			continue;
		}
		verdict = search_judge(search, earlier);
		bound = finding_worst_like(&earlier->facts, later, search->options, shelf->bond == BY_KEY);
		*found = !verdict_worse(&bound, &verdict);
		run_is_alike = shelf->kind.open || (!was_open && entry->latest_end <= later->first_ns);
		if (verdict.finding == FINDING_NONE && may_match_further_down(&earlier->facts, later, entry, search->options))
			run_is_alike = false;
		i = run_is_alike ? (int64_t)first_alike(shelf, entry, &earlier->facts, search) - 1 : i - 1;
	}
}
