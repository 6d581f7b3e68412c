/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk report`: the bank statement of a store, and what a test asserts.
 */
#include "asked.h"
#include "commands.h"
#include "control.h"
#include "gate.h"
#include "report.h"

#include <errno.h>

struct reporting {
	struct asking asking;
	struct prices *prices;
	struct report *report;
	struct assertion assertions[ASSERTIONS_MAX];
	uint64_t calls, failures;
};

static int take_call(void *context, const struct store_call_row *row)
{
	return report_call(context, row);
}

static int take_attempt(void *context, const struct store_attempt_row *row)
{
	return report_attempt(context, row);
}

static int take_blind(void *context, const struct store_blind_row *row)
{
	return report_blind(context, row);
}

static int out_of_memory(void)
{
	fprintf(stderr, "nightclerk report: out of memory\n");
	return 1;
}

/* ---- asserting ---- */

static int check_call(void *context, const struct store_call_row *row)
{
	struct reporting *reporting = context;
	const struct report_line *line = &reporting->asking.line.report;

	reporting->calls++;
	for (size_t i = 0; i < line->assertion_count; i++) {
		if (assertion_holds(&reporting->assertions[i], row))
			continue;
		reporting->failures++;
		printf("does not hold: %s: call %s, model %s, %s: %lld attempts, %lld billed, %lld tokens wasted\n",
		       line->assertions[i], row->key, row->model ? row->model : "-", row->status, (long long)row->attempts,
		       (long long)row->billed, (long long)row->wasted);
	}
	return 0;
}

/* A call that nobody ever sent was not billed either. */
static void check_nothing(struct reporting *reporting)
{
	const struct store_call_row never = {.key = reporting->asking.key, .status = "absent"};

	fprintf(stderr, "nightclerk report: there is no call %s; it counts as one with 0 attempts\n", never.key);
	check_call(reporting, &never);
}

/* Of no call at all: what would not hold of one that nobody sent, like attempts==1, was hardly meant to. */
static bool is_told_by_nothing(const struct reporting *reporting)
{
	const struct store_call_row never = {.key = "", .status = "absent"};

	for (size_t i = 0; i < reporting->asking.line.report.assertion_count; i++)
		if (!assertion_holds(&reporting->assertions[i], &never))
			return false;
	return true;
}

/* Within a run that run goes on, and its rows up to now are in the store. */
static bool is_inside_a_run(void)
{
	return control_ask(CONTROL_SYNC, (struct bytes){0}) == CONTROL_DONE;
}

static bool cannot_tell(uint64_t count, const char *what)
{
	if (count)
		fprintf(stderr, "nightclerk report: cannot tell: %llu %s\n", (unsigned long long)count, what);
	return count != 0;
}

/* 0 or GATE_EXIT_INCOMPLETE, with a line for each thing that was not seen. */
static int check_what_was_seen(struct reporting *reporting)
{
	struct asking *asking = &reporting->asking;
	const struct report_line *line = &asking->line.report;
	const char *key = asking->key[0] ? asking->key : NULL;
	struct store_unseen unseen;
	bool usage = false, short_of = false;

	if (store_what_was_unseen(asking->store, line->since_ns, key, &unseen))
		return asking_failed(asking, 1);
	for (size_t i = 0; i < line->assertion_count; i++)
		usage |= assertion_needs_usage(&reporting->assertions[i]);
	if (unseen.unclean_runs && is_inside_a_run())
		unseen.unclean_runs--;
	short_of |= cannot_tell(unseen.blind, "streams could not be read: a call may be in them");
	short_of |= cannot_tell(unseen.hole_bytes, "bytes were not seen: a call may be in them");
	short_of |= cannot_tell(unseen.unclean_runs, "runs go on, were killed or lost rows: the store does not have all of them");
	short_of |= cannot_tell(unseen.unkeyed, "attempts were not seen whole: of which call they are is not known");
	short_of |= cannot_tell(usage ? unseen.without_usage : 0,
				"answers reported no tokens that could be read: whether they were billed is not known");
	if (!key && reporting->calls == 0 && !is_told_by_nothing(reporting)) {
		fprintf(stderr, "nightclerk report: cannot tell: there is no call\n");
		short_of = true;
	}
	return short_of ? GATE_EXIT_INCOMPLETE : 0;
}

static int check_assertions(struct reporting *reporting)
{
	struct asking *asking = &reporting->asking;
	const struct report_line *line = &asking->line.report;
	const char *key = asking->key[0] ? asking->key : NULL;

	for (size_t i = 0; i < line->assertion_count; i++)
		assertion_parse(line->assertions[i], &reporting->assertions[i]);
	if (store_each_active_call(asking->store, line->since_ns, key, check_call, reporting))
		return asking_failed(asking, 1);
	if (key && reporting->calls == 0)
		check_nothing(reporting);
	return reporting->failures ? GATE_EXIT_FINDING : check_what_was_seen(reporting);
}

/* ---- summing up ---- */

static int read_prices(struct reporting *reporting)
{
	const char *path = reporting->asking.line.report.prices;
	char reason[PRICES_REASON_MAX];
	struct buffer text = {0};
	int err;

	if (!path)
		return 0;
	err = asked_file(path, &text);
	if (!err) {
		err = prices_parse(buffer_bytes(&text), &reporting->prices, reason);
		if (err)
			fprintf(stderr, "nightclerk report: %s: %s\n", path, reason);
	}
	buffer_done(&text);
	return err ? EXIT_USAGE : 0;
}

static int read_rows(struct reporting *reporting)
{
	struct asking *asking = &reporting->asking;
	int64_t since_ns = asking->line.report.since_ns;
	const char *key = asking->key[0] ? asking->key : NULL;
	uint64_t holes = 0, unclean = 0;
	int err = store_each_call(asking->store, since_ns, key, take_call, reporting->report);

	if (!err)
		err = store_each_attempt(asking->store, since_ns, key, take_attempt, reporting->report);
	if (!err && !key)
		err = store_each_blind(asking->store, since_ns, take_blind, reporting->report);
	if (!err && !key)
		err = store_holes(asking->store, since_ns, &holes, &unclean);
	if (err == -ENOMEM)
		return out_of_memory();
	if (err)
		return asking_failed(asking, 1);
	report_runs(reporting->report, holes, unclean);
	return 0;
}

static int print_report(struct reporting *reporting)
{
	const struct report_line *line = &reporting->asking.line.report;
	struct buffer out = {0};
	int err, status;

	reporting->report = report_new(reporting->prices);
	if (!reporting->report)
		return out_of_memory();
	status = read_rows(reporting);
	if (status)
		return status;
	err = line->json ? report_json(reporting->report, &out)
	      : line->csv ? report_csv(reporting->report, &out) : report_text(reporting->report, &out);
	if (!err)
		err = asked_print(buffer_bytes(&out));
	buffer_done(&out);
	if (err)
		fprintf(stderr, "nightclerk report: cannot write: %s\n", strerror(-err));
	return err ? 1 : 0;
}

int cmd_report(int argc, char **argv)
{
	struct reporting reporting = {0};
	int status = asking_start(COMMAND_LINE_REPORT, argc, argv, &reporting.asking);

	if (status)
		status--;
	else if ((status = read_prices(&reporting)) == 0)
		status = asking_open(&reporting.asking, false, 1);
	if (reporting.asking.store)
		status = reporting.asking.line.report.assertion_count ? check_assertions(&reporting) : print_report(&reporting);
	report_free(reporting.report);
	prices_free(reporting.prices);
	asking_done(&reporting.asking);
	return status;
}
