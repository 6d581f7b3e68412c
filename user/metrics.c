/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HELP and TYPE once a family, then its samples. Names follow the naming rules
 * of Prometheus: base units, _total on counters. No float passes through here:
 * an uint64_t is written as it is, seconds and ratios by integer arithmetic.
 */
#include "metrics.h"
#include "lines.h"
#include "say.h"
#include "utf8.h"

#include <inttypes.h>

/* Errors stick: looked at once, at the end. */
struct page {
	struct buffer *out;
	size_t start;
	int err;
};

#define PUT(page, ...) ((page)->err = (page)->err ? (page)->err : say((page)->out, __VA_ARGS__))

static int done(struct page *page)
{
	if (page->err)
		page->out->size = page->start;
	return page->err;
}

int metrics_label(struct bytes value, struct buffer *out)
{
	const size_t start = out->size;
	int err = 0;

	while (!err && value.size) {
		uint32_t code_point;
		size_t size = utf8_next(value, &code_point);
		struct bytes letter = bytes_take(&value, size ? size : 1);

		if (size && code_point == '\n')
			err = buffer_append(out, BYTES("\\n"));
		else if (size && (code_point == '\\' || code_point == '"'))
			err = say(out, "\\%c", (char)code_point);
		else if (size && !utf8_is_control(code_point))
			err = buffer_append(out, letter);
		else /* the backslash is one of the value's own, hence two */
			for (size_t i = 0; !err && i < letter.size; i++)
				err = say(out, "\\\\x%02x", letter.data[i]);
	}
	if (err)
		out->size = start;
	return err;
}

void metrics_grow(struct counters *kept, const struct counters *now)
{
	for (int i = 0; i < WIRE_COUNTER_COUNT; i++)
		if (now->value[i] > kept->value[i])
			kept->value[i] = now->value[i];
	if (now->recursion_misses > kept->recursion_misses)
		kept->recursion_misses = now->recursion_misses;
}

static void family(struct page *page, const char *name, const char *type, const char *help)
{
	PUT(page, "# HELP nightclerk_%s %s\n# TYPE nightclerk_%s %s\n", name, help, name, type);
}

static void number(struct page *page, const char *name, const char *type, const char *help, uint64_t value)
{
	family(page, name, type, help);
	PUT(page, "nightclerk_%s %" PRIu64 "\n", name, value);
}

static void seconds(struct page *page, const char *name, const char *help, uint64_t ns)
{
	family(page, name, "gauge", help);
	PUT(page, "nightclerk_%s %" PRIu64 ".%09" PRIu64 "\n", name, ns / 1000000000, ns % 1000000000);
}

/* To six places, rounded down; 0 of 0 is 0. */
static void ratio(struct page *page, const char *name, const char *help, uint64_t part, uint64_t whole)
{
	uint64_t millionths = whole ? (uint64_t)((unsigned __int128)part * 1000000 / whole) : 0;

	family(page, name, "gauge", help);
	PUT(page, "nightclerk_%s %" PRIu64 ".%06" PRIu64 "\n", name, millionths / 1000000, millionths % 1000000);
}

/* name{tenant="... and more labels follow. */
static void sample(struct page *page, const char *name, const struct metrics_tenant *tenant)
{
	PUT(page, "nightclerk_%s{tenant=\"", name);
	page->err = page->err ? page->err : metrics_label(tenant->name, page->out);
}

/* ---- of each tenant ---- */

static const struct tenant_number {
	const char *name;
	const char *type;
	const char *help;
	size_t offset; /* of an uint64_t in struct metrics_tenant */
} tenant_numbers[] = {
	{"calls_total", "counter", "HTTP requests that were seen.", offsetof(struct metrics_tenant, calls)},
	{"mutating_total", "counter", "Of them, those that change something.", offsetof(struct metrics_tenant, mutating)},
	{"accepted_bytes_total", "counter", "Bytes that the kernel accepted on connections in scope.",
	 offsetof(struct metrics_tenant, accepted_bytes)},
	{"open_calls", "gauge", "Requests whose end is still due.", offsetof(struct metrics_tenant, open_calls)},
	{"unwritten_bytes", "gauge", "Bytes of lines that wait for a disk that takes them.",
	 offsetof(struct metrics_tenant, unwritten_bytes)},
	{"lost_line_bytes_total", "counter", "Bytes of lines that are lost since too much waited already.",
	 offsetof(struct metrics_tenant, lost_line_bytes)},
	{"rotations_total", "counter", "Files that were set aside for a new one.", offsetof(struct metrics_tenant, rotations)},
	{"store_rows_total", "counter", "Rows that were written to the account book of model calls.",
	 offsetof(struct metrics_tenant, store_rows)},
	{"store_rows_lost_total", "counter", "Rows that are missing in it.", offsetof(struct metrics_tenant, store_rows_lost)},
};

static void number_of_each(struct page *page, const struct metrics *metrics, const struct tenant_number *what)
{
	family(page, what->name, what->type, what->help);
	for (size_t i = 0; i < metrics->tenant_count; i++) {
		const struct metrics_tenant *tenant = &metrics->tenants[i];
		uint64_t value;

		memcpy(&value, (const char *)tenant + what->offset, sizeof(value));
		sample(page, what->name, tenant);
		PUT(page, "\"} %" PRIu64 "\n", value);
	}
}

static void by_severity(struct page *page, const char *name, const struct metrics_tenant *tenant,
			const uint64_t values[FINDING_COUNT][SEVERITY_HIGH + 1])
{
	for (int finding = 0; finding < FINDING_COUNT; finding++)
		for (int severity = 0; severity <= SEVERITY_HIGH; severity++) {
			const char *severity_label = severity_name((enum severity)severity);

			if (!values[finding][severity])
				continue;
			sample(page, name, tenant);
			PUT(page, "\",finding=\"%s\",severity=\"%s\"} %" PRIu64 "\n", finding_name((enum finding)finding),
			    severity_label ? severity_label : "none", values[finding][severity]);
		}
}

static void findings(struct page *page, const struct metrics *metrics)
{
	family(page, "findings_total", "counter", "Calls that were repeated, by finding and severity as first said.");
	for (size_t i = 0; i < metrics->tenant_count; i++)
		by_severity(page, "findings_total", &metrics->tenants[i], metrics->tenants[i].findings);
	family(page, "finding_upgrades_total", "counter", "Findings that changed later, by what they became.");
	for (size_t i = 0; i < metrics->tenant_count; i++)
		by_severity(page, "finding_upgrades_total", &metrics->tenants[i], metrics->tenants[i].upgrades);
}

static void holes(struct page *page, const struct metrics *metrics)
{
	family(page, "hole_bytes_total", "counter", "Bytes that were accepted and not captured, by cause.");
	for (size_t i = 0; i < metrics->tenant_count; i++)
		for (int cause = WIRE_CAUSE_NONE + 1; cause < WIRE_CAUSE_COUNT; cause++) {
			uint64_t value = metrics->tenants[i].hole_bytes[cause];

			if (!value)
				continue;
			sample(page, "hole_bytes_total", &metrics->tenants[i]);
			PUT(page, "\",cause=\"%s\"} %" PRIu64 "\n", cause_name((enum wire_cause)cause), value);
		}
}

static void blind_streams(struct page *page, const struct metrics *metrics)
{
	family(page, "blind_streams_total", "counter", "Streams that could not be read, by kind.");
	for (size_t i = 0; i < metrics->tenant_count; i++)
		for (int kind = 0; kind < BLIND_COUNT; kind++) {
			uint64_t value = metrics->tenants[i].blind_streams[kind];

			if (!value)
				continue;
			sample(page, "blind_streams_total", &metrics->tenants[i]);
			PUT(page, "\",kind=\"%s\"} %" PRIu64 "\n", blind_kind_name((enum blind_kind)kind), value);
		}
}

/* ---- of the whole service ---- */

static void drop(struct page *page, const char *cause, uint64_t value)
{
	PUT(page, "nightclerk_drops_total{cause=\"%s\"} %" PRIu64 "\n", cause, value);
}

static void losses_of_the_kernel_side(struct page *page, const struct counters *counters)
{
	family(page, "drops_total", "counter", "Records and looks of the kernel side that were lost, by cause.");
	drop(page, "lifecycle_ring_full", counters->value[WIRE_COUNTER_LIFECYCLE_LOST]);
	drop(page, "flow_table_full", counters->value[WIRE_COUNTER_NO_FLOW]);
	drop(page, "call_table_full", counters->value[WIRE_COUNTER_NO_CALL]);
	drop(page, "missed_exit", counters->value[WIRE_COUNTER_STALE_CALLS]);
	drop(page, "recursion", counters->recursion_misses);
	family(page, "lost_bytes_total", "counter", "Bytes that were accepted and not captured, of all tenants, by cause.");
	for (int cause = WIRE_CAUSE_NONE + 1; cause < WIRE_CAUSE_COUNT; cause++)
		PUT(page, "nightclerk_lost_bytes_total{cause=\"%s\"} %" PRIu64 "\n", cause_name((enum wire_cause)cause),
		    counters->value[WIRE_COUNTER_LOST_BYTES + cause]);
}

int metrics_text(const struct metrics *metrics, struct buffer *out)
{
	struct page page = {.out = out, .start = out->size};

	for (size_t i = 0; i < sizeof(tenant_numbers) / sizeof(tenant_numbers[0]); i++)
		number_of_each(&page, metrics, &tenant_numbers[i]);
	findings(&page, metrics);
	holes(&page, metrics);
	blind_streams(&page, metrics);
	losses_of_the_kernel_side(&page, &metrics->counters);
	number(&page, "tenants", "gauge", "Tenants that are open.", metrics->tenant_count);
	number(&page, "tenants_limit", "gauge", "The most that may be; those beyond share one.", metrics->tenant_limit);
	ratio(&page, "ring_fill_ratio", "How full the ring of captured bytes is.", metrics->ring_fill_bytes,
	      metrics->ring_size_bytes);
	ratio(&page, "ring_peak_ratio", "How full it was at most.", metrics->ring_peak_bytes, metrics->ring_size_bytes);
	seconds(&page, "event_lag_seconds", "From the kernel to the end of the pipeline, of the last event.",
		metrics->event_lag_ns);
	number(&page, "collector_memory_bytes", "gauge", "Resident memory of the collector.", metrics->memory_bytes);
	return done(&page);
}

int metrics_monitor_text(const struct metrics_monitor *monitor, struct buffer *out)
{
	struct page page = {.out = out, .start = out->size};
	uint64_t restarts = monitor->collector_starts ? monitor->collector_starts - 1 : 0;

	family(&page, "build_info", "gauge", "Its version; always 1.");
	PUT(&page, "nightclerk_build_info{version=\"%s\"} 1\n", monitor->version);
	seconds(&page, "start_time_seconds", "When the service was started, since 1970.",
		monitor->start_wall_ns > 0 ? (uint64_t)monitor->start_wall_ns : 0);
	number(&page, "collector_up", "gauge", "1 while a collector runs.", monitor->collector_lives);
	number(&page, "collector_restarts_total", "counter", "Collectors that were started in place of a dead one.", restarts);
	number(&page, "gaps_total", "counter", "Times that events may be missing since a collector died.", monitor->gaps);
	number(&page, "refused_requests_total", "counter", "Requests of a collector that the monitor refused.",
	       monitor->requests_refused);
	number(&page, "file_errors_total", "counter", "Opens, rotations and metrics files that failed.", monitor->file_errors);
	number(&page, "monitor_memory_bytes", "gauge", "Resident memory of the monitor.", monitor->memory_bytes);
	return done(&page);
}
