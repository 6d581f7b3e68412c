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
#define HASH_INITIAL_NUM_BUCKETS 4U /* most families have one lane */
#define HASH_INITIAL_NUM_BUCKETS_LOG2 2U
#include <uthash.h>

#define LANE_OF_ALL 1 /* no principal's hash, but for a chance of 2^-64, which costs time only */

struct lane {
	uint64_t principal; /* 0 = none */
	struct shelf *shelf;
	uint32_t shelf_count, shelf_capacity;
	UT_hash_handle hh;
};

/* About what uthash takes for a lane, beside the handle in it: two buckets' worth. */
#define LANE_BYTES (sizeof(struct lane) + 2 * sizeof(UT_hash_bucket))

struct member_list {
	struct lane *lanes; /* NULL while small, or for want of memory */
	uint32_t begin;
	uint32_t capacity;
	uint32_t ref[]; /* in order of arrival, from begin on */
};

static size_t list_bytes(uint32_t capacity)
{
	return sizeof(struct member_list) + capacity * sizeof(uint32_t);
}

static struct lane *lanes_of(const struct family *family)
{
	return family->is_many ? family->many->lanes : NULL;
}

static void lane_free(struct family *family, struct remembered *remembered, struct lane *lane)
{
	for (uint32_t i = 0; i < lane->shelf_count; i++)
		shelf_done(&lane->shelf[i], remembered);
	remembered_resize(remembered, lane->shelf, lane->shelf_capacity * sizeof(*lane->shelf), 0);
	HASH_DEL(family->many->lanes, lane);
	remembered_resize(remembered, lane, LANE_BYTES, 0);
}

static void free_lanes(struct family *family, struct remembered *remembered)
{
	struct lane *lane, *next;

	HASH_ITER(hh, family->many->lanes, lane, next)
		lane_free(family, remembered, lane);
	family->large = false;
}

void family_done(struct family *family, struct remembered *remembered)
{
	if (!family->is_many)
		return;
	free_lanes(family, remembered);
	remembered_resize(remembered, family->many, list_bytes(family->many->capacity), 0);
	*family = (struct family){0};
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
	struct lane *lane, *lanes = lanes_of(family);

	HASH_FIND(hh, lanes, &principal, sizeof(principal), lane);
	return lane;
}

static struct lane *make_lane(struct family *family, struct remembered *remembered, uint64_t principal)
{
	struct lane *lane = find_lane(family, principal);

	if (lane)
		return lane;
	lane = remembered_resize(remembered, NULL, 0, LANE_BYTES);
	if (!lane)
		return NULL;
	*lane = (struct lane){.principal = principal};
	HASH_ADD(hh, family->many->lanes, principal, sizeof(lane->principal), lane);
	if (!lane->hh.tbl) {
		remembered_resize(remembered, lane, LANE_BYTES, 0);
		return NULL;
	}
	return lane;
}

static struct shelf *find_shelf(const struct lane *lane, const struct shelf_kind *kind)
{
	for (uint32_t i = 0; i < lane->shelf_count; i++)
		if (shelf_kind_equal(&lane->shelf[i].kind, kind))
			return &lane->shelf[i];
	return NULL;
}

static struct shelf *make_shelf(struct lane *lane, struct remembered *remembered, const struct shelf_kind *kind,
				enum bond bond)
{
	struct shelf *shelf = find_shelf(lane, kind);

	if (shelf)
		return shelf;
	if (lane->shelf_count == lane->shelf_capacity) {
		shelf = remembered_resize(remembered, lane->shelf, lane->shelf_capacity * sizeof(*shelf),
					  (lane->shelf_capacity + 1) * sizeof(*shelf));
		if (!shelf)
			return NULL;
		lane->shelf = shelf;
		lane->shelf_capacity++;
	}
	shelf = &lane->shelf[lane->shelf_count++];
	*shelf = (struct shelf){.kind = *kind, .bond = bond};
	return shelf;
}

static void lane_put(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	struct shelf_kind kind;
	struct lane *lane = make_lane(family, remembered, lane_of(family, &attempt->facts));
	struct shelf *shelf = NULL;

	shelf_kind_of(&attempt->facts, &kind);
	if (lane)
		shelf = make_shelf(lane, remembered, &kind, family->bond);
	if (shelf && shelf_add(shelf, remembered, attempt) == 0)
		return;
	free_lanes(family, remembered);
	family->no_memory = true;
}

/* An empty shelf goes, and so does a lane without shelves: kinds and principals come and go. */
static void lane_take(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	struct shelf_kind kind;
	struct lane *lane = find_lane(family, lane_of(family, &attempt->facts));
	struct shelf *shelf;

	shelf_kind_of(&attempt->facts, &kind);
	shelf = find_shelf(lane, &kind);
	shelf_remove(shelf, remembered, attempt);
	if (!shelf_is_empty(shelf))
		return;
	shelf_done(shelf, remembered);
	if (lane->shelf_count == 1) {
		lane_free(family, remembered, lane);
		return;
	}
	*shelf = lane->shelf[lane->shelf_count - 1];
	lane->shelf_count--;
}

static void become_large(struct family *family, struct remembered *remembered)
{
	family->large = true;
	for (uint32_t i = 0; i < family->count && family->large; i++)
		lane_put(family, remembered, remembered_at(remembered, family_member(family, i)));
}

void family_take_out(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	if (family->large)
		lane_take(family, remembered, attempt);
}

void family_put_back(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	if (family->large)
		lane_put(family, remembered, attempt);
}

/* ---- members ---- */

static const uint32_t *members_of(const struct family *family)
{
	return family->is_many ? family->many->ref + family->many->begin : family->few;
}

static int become_many(struct family *family, struct remembered *remembered)
{
	uint32_t capacity = 2 * FAMILY_INLINE;
	struct member_list *list = remembered_resize(remembered, NULL, 0, list_bytes(capacity));

	if (!list)
		return -ENOMEM;
	*list = (struct member_list){.capacity = capacity};
	memcpy(list->ref, family->few, family->count * sizeof(*list->ref));
	family->many = list;
	family->is_many = true;
	return 0;
}

int family_reserve(struct family *family, struct remembered *remembered)
{
	struct member_list *list = family->many;
	uint32_t capacity;

	if (!family->is_many)
		return family->count < FAMILY_INLINE ? 0 : become_many(family, remembered);
	if (list->begin + family->count < list->capacity)
		return 0;
	if (list->begin > list->capacity / 4) {
		memmove(list->ref, list->ref + list->begin, family->count * sizeof(*list->ref));
		list->begin = 0;
		return 0;
	}
	capacity = shelf_grown(list->capacity);
	list = remembered_resize(remembered, list, list_bytes(list->capacity), list_bytes(capacity));
	if (!list)
		return -ENOMEM;
	list->capacity = capacity;
	family->many = list;
	return 0;
}

void family_add(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	if (family->is_many)
		family->many->ref[family->many->begin + family->count] = attempt->ref;
	else
		family->few[family->count] = attempt->ref;
	family->count++;
	if (attempt->facts.first_ns > family->latest_first_ns)
		family->latest_first_ns = attempt->facts.first_ns;
	if (attempt->facts.idem_state != IDEM_PRESENT || attempt->facts.class == CLASS_LLM)
		family->late_matters = true;
	if (family->large)
		lane_put(family, remembered, attempt);
	else if (family->count > FAMILY_SMALL && !family->no_memory)
		become_large(family, remembered);
}

bool family_remove(struct family *family, struct remembered *remembered, const struct attempt *attempt)
{
	family_take_out(family, remembered, attempt);
	family->count--;
	family->gone++;
	if (family->is_many)
		family->many->begin++;
	else
		memmove(family->few, family->few + 1, family->count * sizeof(*family->few));
	return family->count == 0;
}

uint32_t family_member(const struct family *family, uint32_t position)
{
	return members_of(family)[position];
}

uint32_t family_position(const struct family *family, uint32_t ref)
{
	const uint32_t *member = members_of(family);
	uint32_t low = 0, high = family->count;

	if (low == high || ref_before(member[high - 1], ref))
		return high;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (ref_before(member[middle], ref))
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
		const uint32_t *member = members_of(family);
		uint32_t end = family_position(family, search->later->ref);

		for (uint32_t i = 0; i < end; i++)
			search_judge(search, remembered_at(search->remembered, member[i]));
		return;
	}
	search_lane(family, LANE_OF_ALL, search);
	if (search->later->facts.principal != LANE_OF_ALL)
		search_lane(family, search->later->facts.principal, search);
}
