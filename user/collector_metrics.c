/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's numbers as text. The monitor writes the file, since this half can open none. */
#include "collector_parts.h"
#include "limits.h"
#include "metrics.h"

#include <stdio.h>
#include <stdlib.h>

static void fill(struct collector *collector, struct book *book, struct metrics_tenant *ret_tenant)
{
	const struct stored_counts stored = collector_stored(collector, book->tenant);
	const struct gate *gate = tenant_gate(book->tenant);
	const struct counters *counters = tenant_counters(book->tenant);
	struct metrics_tenant tenant = {
		.name = bytes_of_string(tenant_name(book->tenant)),
		.calls = gate->requests,
		.mutating = gate->mutating,
		.accepted_bytes = counters->value[WIRE_COUNTER_ACCEPTED_BYTES],
		.open_calls = tenant_open_calls(book->tenant),
		.store_rows = stored.rows,
		.store_rows_lost = stored.lost,
	};

	memcpy(tenant.findings, gate->found, sizeof(tenant.findings));
	memcpy(tenant.upgrades, gate->upgraded, sizeof(tenant.upgrades));
	memcpy(tenant.blind_streams, gate->blind, sizeof(tenant.blind_streams));
	for (int cause = 0; cause < WIRE_CAUSE_COUNT; cause++)
		tenant.hole_bytes[cause] = counters->value[WIRE_COUNTER_LOST_BYTES + cause];
	for (int file = 0; file < AUDIT_FILE_COUNT; file++) {
		const struct book_file *at = &book->files[file];

		if (!at->file)
			continue;
		tenant.unwritten_bytes += rotated_file_unwritten(at->file);
		tenant.lost_line_bytes += rotated_file_lost(at->file);
		tenant.rotations += rotated_file_rotations(at->file);
	}
	*ret_tenant = tenant;
}

/* One that has ended and waits for the disk, while another of its name has come: no series may be there twice. */
static bool has_heir(const struct book *book)
{
	if (!tenant_ended(book->tenant))
		return false;
	for (const struct book *later = book->next; later; later = later->next)
		if (strcmp(tenant_name(later->tenant), tenant_name(book->tenant)) == 0)
			return true;
	return false;
}

void collector_tell_metrics(struct collector *collector)
{
	struct metrics metrics = {
		.tenant_limit = collector->options->tenants_max ? collector->options->tenants_max : LIMIT_TENANTS,
		.counters = collector->counters,
		.ring_fill_bytes = capture_ring_fill(collector->capture),
		.ring_peak_bytes = capture_ring_peak(collector->capture),
		.ring_size_bytes = capture_ring_size(collector->capture),
		.event_lag_ns = collector->lag_ns,
		.memory_bytes = heap_resident_bytes(&collector->heap),
	};
	struct metrics_tenant *tenants;
	struct buffer text = {0};
	size_t count = 0;

	for (const struct book *book = collector->books; book; book = book->next)
		count++;
	tenants = calloc(count + 1, sizeof(*tenants));
	if (!tenants)
		return; /* the next time, then */
	for (struct book *book = collector->books; book; book = book->next)
		if (!has_heir(book))
			fill(collector, book, &tenants[metrics.tenant_count++]);
	metrics.tenants = tenants;
	if (metrics_text(&metrics, &text) == 0)
		collector_say(collector, MONITOR_METRICS, buffer_bytes(&text));
	buffer_done(&text);
	free(tenants);
}
