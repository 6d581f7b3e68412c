/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three forms of a report: for people, JSON, CSV. One table of counts gives
 * all three their names and their order.
 */
#include "json_text.h"
#include "report_parts.h"
#include "say.h"
#include "utf8.h"

#include <errno.h>

static const struct {
	const char *name; /* in JSON and CSV */
	const char *head; /* over a column */
	size_t offset;
} counts[] = {
	{"calls", "calls", offsetof(struct report_sums, calls)},
	{"attempts", "attempts", offsetof(struct report_sums, attempts)},
	{"billed", "billed", offsetof(struct report_sums, billed)},
	{"input_tokens", "in", offsetof(struct report_sums, input)},
	{"output_tokens", "out", offsetof(struct report_sums, output)},
	{"cached_tokens", "cached", offsetof(struct report_sums, cached)},
	{"wasted_tokens", "wasted", offsetof(struct report_sums, wasted)},
	{"duplicates", "dup", offsetof(struct report_sums, duplicates)},
	{"pending", "pending", offsetof(struct report_sums, pending)},
	{"abandoned", "abandoned", offsetof(struct report_sums, abandoned)},
	{"blind", "blind", offsetof(struct report_sums, blind)},
	{"hole_bytes", "holes", offsetof(struct report_sums, hole_bytes)},
};

#define COUNT_COUNT (sizeof(counts) / sizeof(counts[0]))
#define NAME_WIDTH 32

static const char *const by_names[REPORT_BY_COUNT] = {"model", "process", "path", "day"};

static uint64_t value_of(const struct report_sums *sums, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)sums + counts[i].offset);
}

/* Not known where something that was billed has no price. */
static bool has_cost(const struct report_sums *sums)
{
	return sums->priced == sums->billed;
}

/* ---- for people ---- */

static int say_name(const char *by, const char *name, struct buffer *out)
{
	struct buffer harmless = {0};
	int err = text_harmless(bytes_of_string(*name ? name : "-"), NAME_WIDTH - 8, &harmless);

	if (!err)
		err = say(out, "%-7s %-*.*s", by, NAME_WIDTH - 8, (int)harmless.size, (const char *)harmless.data);
	buffer_done(&harmless);
	return err;
}

static int say_sums(const struct report *report, const struct report_sums *sums, struct buffer *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < COUNT_COUNT; i++)
		err = say(out, " %9llu", (unsigned long long)value_of(sums, i));
	if (!err && report_has_prices(report))
		err = has_cost(sums) ? say(out, " %12.6f %12.6f", sums->cost, sums->wasted_cost) : say(out, " %12s %12s", "?", "?");
	return err ? err : say(out, "\n");
}

static int say_head(const struct report *report, struct buffer *out)
{
	int err = say(out, "%-*s", NAME_WIDTH, "");

	for (size_t i = 0; !err && i < COUNT_COUNT; i++)
		err = say(out, " %9s", counts[i].head);
	if (!err && report_has_prices(report))
		err = say(out, " %12s %12s", "cost", "wasted cost");
	return err ? err : say(out, "\n");
}

int report_text(const struct report *report, struct buffer *out)
{
	int err = say_head(report, out);

	if (!err)
		err = say(out, "%-*s", NAME_WIDTH, "total");
	if (!err)
		err = say_sums(report, report_total(report), out);
	for (int by = 0; !err && by < REPORT_BY_COUNT; by++) {
		const struct report_group **groups = NULL;
		size_t count = 0;

		err = report_groups(report, by, &groups, &count);
		for (size_t i = 0; !err && i < count; i++) {
			err = say_name(by_names[by], groups[i]->name, out);
			if (!err)
				err = say_sums(report, &groups[i]->sums, out);
		}
		free(groups);
	}
	if (!err && report_hole_bytes(report))
		err = say(out, "not seen in all runs together: %llu bytes\n", (unsigned long long)report_hole_bytes(report));
	if (!err && report_unclean_runs(report))
		err = say(out, "runs that go on, or ended unclean: %llu\n", (unsigned long long)report_unclean_runs(report));
	return err;
}

/* ---- JSON ---- */

static void put_number(struct json_writer *json, double value)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%.6f", value);

	json_raw(json, (struct bytes){(const uint8_t *)text, (size_t)n});
}

static void put_sums(const struct report *report, struct json_writer *json, const struct report_sums *sums)
{
	for (size_t i = 0; i < COUNT_COUNT; i++) {
		json_key(json, counts[i].name);
		json_unsigned(json, value_of(sums, i));
	}
	if (!report_has_prices(report))
		return;
	json_key(json, "cost");
	has_cost(sums) ? put_number(json, sums->cost) : json_null(json);
	json_key(json, "wasted_cost");
	has_cost(sums) ? put_number(json, sums->wasted_cost) : json_null(json);
}

static int put_groups(const struct report *report, enum report_by by, struct json_writer *json)
{
	const struct report_group **groups = NULL;
	size_t count = 0;
	char key[32];
	int err = report_groups(report, by, &groups, &count);

	snprintf(key, sizeof(key), "by_%s", by_names[by]);
	json_key(json, key);
	json_array_open(json);
	for (size_t i = 0; !err && i < count; i++) {
		json_object_open(json);
		json_key(json, by_names[by]);
		json_text(json, groups[i]->name[0] ? groups[i]->name : NULL);
		put_sums(report, json, &groups[i]->sums);
		json_object_close(json);
	}
	json_array_close(json);
	free(groups);
	return err;
}

int report_json(const struct report *report, struct buffer *out)
{
	struct json_writer json;
	int err = 0;

	json_writer_init(&json, out);
	json_object_open(&json);
	json_key(&json, "total");
	json_object_open(&json);
	put_sums(report, &json, report_total(report));
	json_object_close(&json);
	for (int by = 0; !err && by < REPORT_BY_COUNT; by++)
		err = put_groups(report, by, &json);
	json_key(&json, "run_hole_bytes");
	json_unsigned(&json, report_hole_bytes(report));
	json_key(&json, "unclean_runs");
	json_unsigned(&json, report_unclean_runs(report));
	json_object_close(&json);
	if (!err)
		err = json_writer_error(&json);
	return err ? err : buffer_append_byte(out, '\n');
}

/* ---- CSV (RFC 4180) ---- */

static int put_field(const char *text, struct buffer *out)
{
	int err = buffer_append_byte(out, '"');

	for (const char *c = text; !err && *c; c++) {
		if (*c == '"')
			err = buffer_append_byte(out, '"');
		if (!err)
			err = buffer_append_byte(out, (uint8_t)*c);
	}
	return err ? err : buffer_append_byte(out, '"');
}

static int put_row(const struct report *report, const char *by, const char *name, const struct report_sums *sums,
		   struct buffer *out)
{
	int err = say(out, "%s,", by);

	if (!err)
		err = put_field(name, out);
	for (size_t i = 0; !err && i < COUNT_COUNT; i++)
		err = say(out, ",%llu", (unsigned long long)value_of(sums, i));
	if (!err && report_has_prices(report))
		err = has_cost(sums) ? say(out, ",%.6f,%.6f", sums->cost, sums->wasted_cost) : say(out, ",,");
	return err ? err : say(out, "\r\n");
}

int report_csv(const struct report *report, struct buffer *out)
{
	int err = say(out, "by,name");

	for (size_t i = 0; !err && i < COUNT_COUNT; i++)
		err = say(out, ",%s", counts[i].name);
	if (!err)
		err = say(out, "%s\r\n", report_has_prices(report) ? ",cost,wasted_cost" : "");
	if (!err)
		err = put_row(report, "total", "", report_total(report), out);
	for (int by = 0; !err && by < REPORT_BY_COUNT; by++) {
		const struct report_group **groups = NULL;
		size_t count = 0;

		err = report_groups(report, by, &groups, &count);
		for (size_t i = 0; !err && i < count; i++)
			err = put_row(report, by_names[by], groups[i]->name, &groups[i]->sums, out);
		free(groups);
	}
	return err;
}
