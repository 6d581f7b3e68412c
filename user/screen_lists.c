/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each pane lists, in its order, with the selection. The list of calls in
 * order of time only grows at its end; every other order is made anew, at most
 * four times a second: 20,000 calls are sorted in some milliseconds.
 */
#include "screen_parts.h"

#define CHEAP_COUNT 1000 /* so many are sorted at every look */

/* ---- orders ---- */

static int descending(uint64_t a, uint64_t b)
{
	return a < b ? 1 : a > b ? -1 : 0;
}

static uint64_t duration_of(const struct screen_call *call)
{
	uint64_t from = call->sent_ns ? call->sent_ns : call->facts.first_ns;

	return call->response_last_ns > from ? call->response_last_ns - from : 0;
}

static int by_time(const void *a, const void *b)
{
	const struct screen_call *left = *(struct screen_call *const *)a, *right = *(struct screen_call *const *)b;

	return descending(right->sequence, left->sequence);
}

static int by_duration(const void *a, const void *b)
{
	const struct screen_call *left = *(struct screen_call *const *)a, *right = *(struct screen_call *const *)b;
	int order = descending(duration_of(left), duration_of(right));

	return order ? order : by_time(a, b);
}

static int by_size(const void *a, const void *b)
{
	const struct screen_call *left = *(struct screen_call *const *)a, *right = *(struct screen_call *const *)b;
	int order = descending(left->response_body_bytes, right->response_body_bytes);

	return order ? order : by_time(a, b);
}

static int by_status(const void *a, const void *b)
{
	const struct screen_call *left = *(struct screen_call *const *)a, *right = *(struct screen_call *const *)b;
	int order = descending(left->facts.status, right->facts.status);

	return order ? order : by_time(a, b);
}

#define GROUPS(a, b)                                                                                                        \
	const struct screen_group *left = *(struct screen_group *const *)(a), *right = *(struct screen_group *const *)(b)

static int by_calls(const void *a, const void *b)
{
	GROUPS(a, b);
	int order = descending(left->calls, right->calls);

	return order ? order : descending(right->number, left->number);
}

static int by_duplicates(const void *a, const void *b)
{
	GROUPS(a, b);
	int order = descending(left->duplicates, right->duplicates);

	if (!order)
		order = descending(left->attempts, right->attempts);
	return order ? order : by_calls(a, b);
}

static int by_tokens(const void *a, const void *b)
{
	GROUPS(a, b);
	int order = descending(left->tokens, right->tokens);

	return order ? order : by_calls(a, b);
}

static int by_process(const void *a, const void *b)
{
	GROUPS(a, b);
	int order = descending(right->tgid, left->tgid);

	return order ? order : descending(right->number, left->number);
}

/* Worst first, then the latest. */
static int by_rank(const void *a, const void *b)
{
	const struct screen_finding *left = *(struct screen_finding *const *)a, *right = *(struct screen_finding *const *)b;
	int order = descending(screen_rank(left->judgement.verdict.severity), screen_rank(right->judgement.verdict.severity));

	if (!order)
		order = descending(left->judgement.call_number, right->judgement.call_number);
	return order ? order : descending(left->number, right->number);
}

typedef int (*order)(const void *a, const void *b);

static const struct {
	const char *name;
	order order;
} call_sorts[] = {{"time", by_time}, {"slowest", by_duration}, {"largest", by_size}, {"status", by_status}};

static const struct {
	const char *name;
	order order;
} table_sorts[] = {
	{"duplicates", by_duplicates}, {"calls", by_calls}, {"tokens", by_tokens}, {"process", by_process}};

const char *screen_call_sort_name(unsigned int sort)
{
	return sort < sizeof(call_sorts) / sizeof(call_sorts[0]) ? call_sorts[sort].name : NULL;
}

const char *screen_table_sort_name(unsigned int sort)
{
	return sort < sizeof(table_sorts) / sizeof(table_sorts[0]) ? table_sorts[sort].name : NULL;
}

/* ---- lists ---- */

static bool list_add(struct screen_model *model, struct screen_list *list, const void *item)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		const void **more = reallocarray(list->item, capacity, sizeof(*more));

		if (!more) {
			model->memory_lost = true;
			return false;
		}
		list->item = more;
		list->capacity = capacity;
	}
	list->item[list->count++] = item;
	return true;
}

static uint64_t number_at(enum screen_pane pane, const struct screen_list *list, size_t i)
{
	const void *item = pane == SCREEN_OUTPUT ? NULL : list->item[i];

	switch (pane) {
	case SCREEN_FINDINGS:
		return ((const struct screen_finding *)item)->number;
	case SCREEN_CALLS:
		return ((const struct screen_call *)item)->number;
	case SCREEN_TABLE:
		return ((const struct screen_group *)item)->number;
	default:
		return 0;
	}
}

static void select_at(enum screen_pane pane, struct screen_list *list, size_t i)
{
	list->selected = i;
	list->selected_number = list->count ? number_at(pane, list, i) : 0;
}

/* The same item is selected as before, wherever it is now; where it is gone, what stands in its place. */
static void select_again(enum screen_pane pane, struct screen_list *list)
{
	if (list->count == 0) {
		list->selected = 0;
		return;
	}
	if (list->follow || (!list->moved && pane != SCREEN_CALLS)) {
		select_at(pane, list, list->follow ? list->count - 1 : 0);
		return;
	}
	if (list->selected < list->count && number_at(pane, list, list->selected) == list->selected_number)
		return;
	for (size_t i = 0; i < list->count; i++)
		if (number_at(pane, list, i) == list->selected_number) {
			list->selected = i;
			return;
		}
	select_at(pane, list, list->selected < list->count ? list->selected : list->count - 1);
}

static void add_call(struct screen_model *model, struct screen_call *call)
{
	if (screen_filter_call(model, call) && list_add(model, &model->list[SCREEN_CALLS], call))
		screen_call_keep(call);
}

static void drop_calls(struct screen_model *model, size_t count)
{
	struct screen_list *list = &model->list[SCREEN_CALLS];

	for (size_t i = 0; i < count; i++)
		screen_call_drop(model, (struct screen_call *)list->item[i]);
	list->count -= count;
	if (list->count)
		memmove(list->item, list->item + count, list->count * sizeof(list->item[0]));
	list->selected = list->selected > count ? list->selected - count : 0;
}

static void append_calls(struct screen_model *model)
{
	uint64_t from = model->appended > model->oldest ? model->appended : model->oldest;
	struct screen_list *list = &model->list[SCREEN_CALLS];
	size_t gone = 0;

	while (gone < list->count && ((const struct screen_call *)list->item[gone])->sequence < model->oldest)
		gone++;
	if (gone)
		drop_calls(model, gone);
	for (uint64_t i = from; i < model->next; i++)
		add_call(model, model->ring[i % SCREEN_CALLS_MAX]);
	model->appended = model->next;
}

static void make_calls(struct screen_model *model)
{
	struct screen_list *list = &model->list[SCREEN_CALLS];
	size_t selected = list->selected;

	drop_calls(model, list->count);
	list->selected = selected;
	if (model->paused)
		for (size_t i = 0; i < model->frozen_count; i++)
			add_call(model, model->frozen[i]);
	else
		for (uint64_t i = model->oldest; i < model->next; i++)
			add_call(model, model->ring[i % SCREEN_CALLS_MAX]);
	model->appended = model->next;
	if (model->call_sort && list->count)
		qsort(list->item, list->count, sizeof(list->item[0]), call_sorts[model->call_sort].order);
}

static void make_table(struct screen_model *model)
{
	struct screen_list *list = &model->list[SCREEN_TABLE];

	list->count = 0;
	for (size_t i = 0; model->paused && i < model->frozen_group_count; i++)
		if (screen_filter_group(model, &model->frozen_groups[i]))
			list_add(model, list, &model->frozen_groups[i]);
	for (struct screen_group *group = model->groups; group && !model->paused; group = group->hh.next)
		if (screen_filter_group(model, group))
			list_add(model, list, group);
	if (list->count)
		qsort(list->item, list->count, sizeof(list->item[0]), table_sorts[model->table_sort].order);
	if (model->other && model->other->calls && !model->term_count)
		list_add(model, list, model->other);
}

static void make_findings(struct screen_model *model)
{
	struct screen_list *list = &model->list[SCREEN_FINDINGS];

	list->count = 0;
	for (struct screen_finding *finding = model->findings; finding; finding = finding->hh.next)
		if (screen_finding_is_listed(finding) && screen_filter_finding(model, finding))
			list_add(model, list, finding);
	if (list->count)
		qsort(list->item, list->count, sizeof(list->item[0]), by_rank);
}

/* The list of calls, when it is due or when that costs nothing to speak of. */
static void refresh_calls(struct screen_model *model, bool due)
{
	bool wanted = model->stale || (model->call_sort && model->appended != model->next && !model->paused);

	if (wanted && (due || model->next - model->oldest <= CHEAP_COUNT)) {
		make_calls(model);
		model->stale = false;
		return;
	}
	if (!model->call_sort && !model->paused)
		append_calls(model);
	model->changed |= wanted;
}

static void refresh_output(struct screen_model *model)
{
	struct screen_list *list = &model->list[SCREEN_OUTPUT];
	size_t last;

	list->count = model->output_lines < SCREEN_OUTPUT_LINES ? model->output_lines : SCREEN_OUTPUT_LINES;
	last = list->count ? list->count - 1 : 0;
	if (list->follow || list->selected > last)
		list->selected = last;
}

void screen_lists_refresh(struct screen_model *model, uint64_t now_ns)
{
	bool due = model->made_ns == 0 || now_ns >= model->made_ns + SCREEN_REFRESH_NS;

	refresh_calls(model, due);
	make_findings(model);
	if (due || HASH_COUNT(model->groups) <= CHEAP_COUNT)
		make_table(model);
	else
		model->changed = true;
	if (due)
		model->made_ns = now_ns ? now_ns : 1;
	for (int pane = 0; pane < SCREEN_OUTPUT; pane++)
		select_again((enum screen_pane)pane, &model->list[pane]);
	refresh_output(model);
}

void screen_lists_done(struct screen_model *model)
{
	drop_calls(model, model->list[SCREEN_CALLS].count);
	for (int pane = 0; pane < SCREEN_PANES; pane++) {
		model->list[pane].count = 0;
		free(model->list[pane].item);
		model->list[pane].item = NULL;
		model->list[pane].capacity = 0;
	}
	screen_lists_pause(model, false);
	model->appended = 0;
	model->stale = true;
	model->made_ns = 0;
}

/* ---- pause ---- */

static void freeze(struct screen_model *model)
{
	size_t calls = model->next - model->oldest, groups = HASH_COUNT(model->groups);

	model->frozen = calloc(calls + 1, sizeof(*model->frozen));
	model->frozen_groups = calloc(groups + 1, sizeof(*model->frozen_groups));
	if (!model->frozen || !model->frozen_groups) {
		free(model->frozen);
		free(model->frozen_groups);
		model->frozen = NULL;
		model->frozen_groups = NULL;
		screen_model_say(model, "out of memory: not paused");
		return;
	}
	for (uint64_t i = model->oldest; i < model->next; i++)
		model->frozen[model->frozen_count++] = screen_call_keep(model->ring[i % SCREEN_CALLS_MAX]);
	for (struct screen_group *group = model->groups; group; group = group->hh.next)
		model->frozen_groups[model->frozen_group_count++] = *group;
	model->paused_calls = model->totals.calls;
	model->paused = true;
}

void screen_lists_pause(struct screen_model *model, bool pause)
{
	if (pause && !model->paused)
		freeze(model);
	if (!pause && model->paused) {
		for (size_t i = 0; i < model->frozen_count; i++)
			screen_call_drop(model, model->frozen[i]);
		free(model->frozen);
		free(model->frozen_groups);
		model->frozen = NULL;
		model->frozen_groups = NULL;
		model->frozen_count = model->frozen_group_count = 0;
		model->paused = false;
	}
	model->stale = true;
	model->made_ns = 0;
}

/* ---- moving ---- */

void screen_lists_move(struct screen_model *model, enum screen_pane pane, long by)
{
	struct screen_list *list = &model->list[pane];
	size_t last = list->count ? list->count - 1 : 0;
	size_t at = list->selected;

	if (by < 0)
		at = (size_t)-(by + 1) < at ? at - (size_t)-(by + 1) - 1 : 0;
	else
		at = last - at > (size_t)by ? at + (size_t)by : last;
	list->follow = by > 0 && at == last &&
		       (pane == SCREEN_OUTPUT || (pane == SCREEN_CALLS && !model->call_sort && !model->paused));
	list->moved = true;
	select_at(pane, list, at);
}
