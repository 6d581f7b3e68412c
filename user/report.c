/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One set of sums for each name in each way of grouping, found by a hash.
 */
#include "report_parts.h"

#include <errno.h>
#include <time.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

struct group {
	struct report_group public;
	UT_hash_handle hh;
};

struct report {
	const struct prices *prices;
	struct report_sums total;
	struct group *groups[REPORT_BY_COUNT];
	uint64_t run_hole_bytes;
	uint64_t unclean_runs;
};

struct report *report_new(const struct prices *prices)
{
	struct report *report = calloc(1, sizeof(*report));

	if (report)
		report->prices = prices;
	return report;
}

void report_free(struct report *report)
{
	struct group *group, *next;

	if (!report)
		return;
	for (int by = 0; by < REPORT_BY_COUNT; by++) {
		HASH_ITER(hh, report->groups[by], group, next) {
			HASH_DEL(report->groups[by], group);
			free(group);
		}
	}
	free(report);
}

/* NULL when out of memory. A name that is too long for us is cut. */
static struct report_sums *sums_of(struct report *report, enum report_by by, const char *name)
{
	const char *text = name ? name : "";
	size_t size = strnlen(text, REPORT_NAME_MAX - 1);
	struct group *group;

	HASH_FIND(hh, report->groups[by], text, size, group);
	if (group)
		return &group->public.sums;
	group = calloc(1, sizeof(*group));
	if (!group)
		return NULL;
	memcpy(group->public.name, text, size);
	HASH_ADD_KEYPTR(hh, report->groups[by], group->public.name, size, group);
	if (group->hh.tbl)
		return &group->public.sums;
	free(group);
	return NULL;
}

struct places {
	struct report_sums *sums[REPORT_BY_COUNT + 1]; /* the total is last; NULL = not there */
};

static int find_places(struct report *report, const char *model, const char *process, const char *path, double at_s,
		       struct places *ret_places)
{
	time_t second = (time_t)at_s;
	struct tm day;
	char date[16] = "";

	if (gmtime_r(&second, &day))
		strftime(date, sizeof(date), "%Y-%m-%d", &day);
	ret_places->sums[REPORT_BY_MODEL] = sums_of(report, REPORT_BY_MODEL, model);
	ret_places->sums[REPORT_BY_PROCESS] = sums_of(report, REPORT_BY_PROCESS, process);
	ret_places->sums[REPORT_BY_PATH] = sums_of(report, REPORT_BY_PATH, path);
	ret_places->sums[REPORT_BY_DAY] = sums_of(report, REPORT_BY_DAY, date);
	ret_places->sums[REPORT_BY_COUNT] = &report->total;
	for (int by = 0; by < REPORT_BY_COUNT; by++)
		if (!ret_places->sums[by])
			return -ENOMEM;
	return 0;
}

int report_call(struct report *report, const struct store_call_row *row)
{
	struct places places;
	int err = find_places(report, row->model, row->process, row->path, row->created_s, &places);

	for (int i = 0; !err && i <= REPORT_BY_COUNT; i++) {
		places.sums[i]->calls++;
		places.sums[i]->pending += strcmp(row->status, "pending") == 0;
		places.sums[i]->abandoned += strcmp(row->status, "abandoned") == 0;
	}
	return err;
}

static uint64_t known(int64_t tokens)
{
	return tokens > 0 ? (uint64_t)tokens : 0;
}

/* What is said of a hop is said of its caller too, but for what a gateway asked again. */
static bool is_counted(const struct store_attempt_row *row)
{
	return !row->is_hop || row->again;
}

static void add_attempt(struct report_sums *sums, const struct store_attempt_row *row, bool priced, double cost)
{
	uint64_t input = known(row->tokens.input), output = known(row->tokens.output);

	sums->attempts += !row->is_hop;
	sums->billed += row->billed;
	sums->duplicates += row->finding != NULL && is_counted(row);
	sums->hole_bytes += known(row->holes);
	if (!row->billed)
		return;
	if (row->used) {
		sums->input += input;
		sums->output += output;
		sums->cached += known(row->tokens.cached);
	} else {
		sums->wasted += input + output;
	}
	sums->priced += priced;
	sums->cost += cost;
	sums->wasted_cost += row->used ? 0 : cost;
}

int report_attempt(struct report *report, const struct store_attempt_row *row)
{
	struct places places;
	double cost = 0;
	bool priced = row->billed && prices_cost(report->prices, row->model, &row->tokens, &cost);
	int err = find_places(report, row->model, row->process, row->path, row->at_s, &places);

	for (int i = 0; !err && i <= REPORT_BY_COUNT; i++)
		add_attempt(places.sums[i], row, priced, cost);
	return err;
}

/* What it asked for is not known: it counts for its process and its day. */
int report_blind(struct report *report, const struct store_blind_row *row)
{
	time_t second = (time_t)row->at_s;
	struct tm day;
	char date[16] = "";
	struct report_sums *process = sums_of(report, REPORT_BY_PROCESS, row->process), *of_day;

	if (gmtime_r(&second, &day))
		strftime(date, sizeof(date), "%Y-%m-%d", &day);
	of_day = sums_of(report, REPORT_BY_DAY, date);
	if (!process || !of_day)
		return -ENOMEM;
	process->blind++;
	of_day->blind++;
	report->total.blind++;
	return 0;
}

void report_runs(struct report *report, uint64_t hole_bytes, uint64_t unclean_runs)
{
	report->run_hole_bytes = hole_bytes;
	report->unclean_runs = unclean_runs;
}

/* ---- for report_text.c ---- */

const struct report_sums *report_total(const struct report *report)
{
	return &report->total;
}

uint64_t report_hole_bytes(const struct report *report)
{
	return report->run_hole_bytes;
}

uint64_t report_unclean_runs(const struct report *report)
{
	return report->unclean_runs;
}

bool report_has_prices(const struct report *report)
{
	return report->prices != NULL;
}

static int compare_names(const void *a, const void *b)
{
	const struct report_group *const *left = a, *const *right = b;

	return strcmp((*left)->name, (*right)->name);
}

int report_groups(const struct report *report, enum report_by by, const struct report_group ***ret_groups, size_t *ret_count)
{
	size_t count = HASH_COUNT(report->groups[by]), i = 0;
	const struct report_group **groups = calloc(count + 1, sizeof(*groups));

	if (!groups)
		return -ENOMEM;
	for (const struct group *group = report->groups[by]; group; group = group->hh.next)
		groups[i++] = &group->public;
	qsort(groups, count, sizeof(*groups), compare_names);
	*ret_groups = groups;
	*ret_count = count;
	return 0;
}
