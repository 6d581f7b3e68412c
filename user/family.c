/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may match whom decides the lane: attempts of one principal are in a lane
 * of their own, and those that may match another principal (bearer tokens, and
 * whatever was answered 401, 403 or 407) in one that is searched for everybody.
 * Members leave in the order in which they came, so the front of every array is
 * where they leave from.
 */
#include "family.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* what could not be added has no table then */
#include <uthash.h>

#define LANE_OF_ALL 1 /* no principal's hash, but for a chance of 2^-64, which costs time only */

struct lane {
	uint64_t principal; /* 0 = none */
	struct shelf *shelf;
	size_t shelf_count;
	UT_hash_handle hh;
};

struct family *family_new(enum bond bond)
{
	struct family *family = calloc(1, sizeof(*family));

	if (family)
		family->bond = (uint8_t)bond;
	return family;
}

static void lane_free(struct family *family, struct lane *lane)
{
	for (size_t i = 0; i < lane->shelf_count; i++)
		shelf_done(&lane->shelf[i]);
	free(lane->shelf);
	HASH_DEL(family->lanes, lane);
	free(lane);
}

static void free_lanes(struct family *family)
{
	struct lane *lane, *next;

	HASH_ITER(hh, family->lanes, lane, next)
		lane_free(family, lane);
	family->large = false;
}

void family_free(struct family *family)
{
	if (!family)
		return;
	free_lanes(family);
	free(family->member);
	free(family);
}

/* ---- lanes ---- */

static uint64_t lane_of(const struct family *family, const struct attempt_facts *facts)
{
	/* What may match another principal: see principals_match() in finding.c. */
	bool asks_who = facts->status == 401 || facts->status == 403 || facts->status == 407;
	bool for_all = facts->bearer || (asks_who && attempt_ended_ns(facts) != UINT64_MAX);

	return family->bond == BY_KEY || for_all ? LANE_OF_ALL : facts->principal;
}

static struct lane *find_lane(const struct family *family, uint64_t principal)
{
	struct lane *lane;

	HASH_FIND(hh, family->lanes, &principal, sizeof(principal), lane);
	return lane;
}

static struct lane *make_lane(struct family *family, uint64_t principal)
{
	struct lane *lane = find_lane(family, principal);

	if (lane)
		return lane;
	lane = calloc(1, sizeof(*lane));
	if (!lane)
		return NULL;
	lane->principal = principal;
	HASH_ADD(hh, family->lanes, principal, sizeof(lane->principal), lane);
	if (!lane->hh.tbl) {
		free(lane);
		return NULL;
	}
	return lane;
}

static struct shelf *find_shelf(const struct lane *lane, const struct shelf_kind *kind)
{
	for (size_t i = 0; i < lane->shelf_count; i++)
		if (shelf_kind_equal(&lane->shelf[i].kind, kind))
			return &lane->shelf[i];
	return NULL;
}

static struct shelf *make_shelf(struct lane *lane, const struct shelf_kind *kind, enum bond bond)
{
	struct shelf *shelf = find_shelf(lane, kind);

	if (shelf)
		return shelf;
	shelf = realloc(lane->shelf, (lane->shelf_count + 1) * sizeof(*shelf));
	if (!shelf)
		return NULL;
	lane->shelf = shelf;
	shelf = &lane->shelf[lane->shelf_count++];
	*shelf = (struct shelf){.kind = *kind, .bond = bond};
	return shelf;
}

static void lane_put(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	struct shelf_kind kind;
	struct lane *lane = make_lane(family, lane_of(family, &attempt->facts));
	struct shelf *shelf = NULL;

	shelf_kind_of(&attempt->facts, &kind);
	if (lane)
		shelf = make_shelf(lane, &kind, family->bond);
	if (shelf && shelf_add(shelf, remembered, attempt) == 0)
		return;
	free_lanes(family);
	family->no_memory = true;
}

/* An empty shelf goes, and so does a lane without shelves: kinds and principals come and go. */
static void lane_take(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	struct shelf_kind kind;
	struct lane *lane = find_lane(family, lane_of(family, &attempt->facts));
	struct shelf *shelf;

	shelf_kind_of(&attempt->facts, &kind);
	shelf = find_shelf(lane, &kind);
	shelf_remove(shelf, remembered, attempt);
	if (!shelf_is_empty(shelf))
		return;
	shelf_done(shelf);
	*shelf = lane->shelf[--lane->shelf_count];
	if (lane->shelf_count == 0)
		lane_free(family, lane);
}

static void become_large(struct family *family, const struct remembered *remembered)
{
	family->large = true;
	for (uint32_t i = family->begin; i < family->end && family->large; i++)
		lane_put(family, remembered, remembered_at(remembered, family->member[i]));
}

void family_take_out(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	if (family->large)
		lane_take(family, remembered, attempt);
}

void family_put_back(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	if (family->large)
		lane_put(family, remembered, attempt);
}

/* ---- members ---- */

int family_reserve(struct family *family)
{
	uint32_t count = family_size(family);
	uint32_t capacity = family->capacity ? 2 * family->capacity : 4;
	uint32_t *member;

	if (family->end < family->capacity)
		return 0;
	if (family->begin > family->capacity / 2) {
		memmove(family->member, family->member + family->begin, count * sizeof(*family->member));
		family->begin = 0;
		family->end = count;
		return 0;
	}
	member = realloc(family->member, capacity * sizeof(*member));
	if (!member)
		return -ENOMEM;
	family->member = member;
	family->capacity = capacity;
	return 0;
}

void family_add(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	family->member[family->end++] = attempt->ref;
	if (attempt->facts.first_ns > family->latest_first_ns)
		family->latest_first_ns = attempt->facts.first_ns;
	if (attempt->facts.idem_state != IDEM_PRESENT || attempt->facts.class == CLASS_LLM)
		family->late_matters = true;
	if (family->large)
		lane_put(family, remembered, attempt);
	else if (family_size(family) > FAMILY_SMALL && !family->no_memory)
		become_large(family, remembered);
}

bool family_remove(struct family *family, const struct remembered *remembered, const struct attempt *attempt)
{
	family_take_out(family, remembered, attempt);
	family->begin++;
	family->gone++;
	return family->begin == family->end;
}

uint32_t family_position(const struct family *family, uint32_t ref)
{
	uint32_t low = family->begin, high = family->end;

	if (low == high || ref_before(family->member[high - 1], ref))
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ref_before(family->member[middle], ref))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* ---- the search ---- */

static void search_lane(const struct family *family, uint64_t principal, struct search *search)
{
	const struct lane *lane = find_lane(family, principal);

	for (size_t i = 0; lane && i < lane->shelf_count; i++)
		shelf_search(&lane->shelf[i], search);
}

void family_search(const struct family *family, struct search *search)
{
	if (!family->large) {
		uint32_t end = family_position(family, search->later->ref);

		for (uint32_t i = family->begin; i < end; i++)
			search_judge(search, remembered_at(search->remembered, family->member[i]));
		return;
	}
	search_lane(family, LANE_OF_ALL, search);
	if (search->later->facts.principal != LANE_OF_ALL)
		search_lane(family, search->later->facts.principal, search);
}
