/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The numbers of a service in the Prometheus text exposition format, version
 * 0.0.4, as node_exporter's textfile collector reads it. Pure: numbers in, text
 * out; who writes the file is audit_metrics_write().
 *
 * Two texts make one file: the collector's and, after it, the monitor's, which is
 * there while no collector lives, too. No family is in both.
 *
 * The order is fixed: families as in metrics.c, tenants as they are given, then
 * the enums' order. A series of a tenant's finding, cause or kind is there once it
 * is not zero; all others always are.
 */
#ifndef NIGHTCLERK_METRICS_H
#define NIGHTCLERK_METRICS_H

#include "input.h"
#include "options.h"

/* What is named _total only grows while its tenant lives; a new one, or a new collector, starts at 0, as Prometheus expects. */
struct metrics_tenant {
	struct bytes name; /* any bytes: escaped by metrics_label() */
	uint64_t calls;
	uint64_t mutating;
	uint64_t findings[FINDING_COUNT][SEVERITY_HIGH + 1]; /* as first said */
	uint64_t upgrades[FINDING_COUNT][SEVERITY_HIGH + 1]; /* what one became */
	uint64_t accepted_bytes; /* by the kernel, from its connections */
	uint64_t hole_bytes[WIRE_CAUSE_COUNT];
	uint64_t blind_streams[BLIND_COUNT];
	uint64_t open_calls;	  /* now */
	uint64_t unwritten_bytes; /* now: lines that wait for the disk */
	uint64_t lost_line_bytes; /* lines that found no room to wait */
	uint64_t rotations;
	uint64_t store_rows;	  /* written to its store */
	uint64_t store_rows_lost; /* that are not in it */
};

struct metrics {
	const struct metrics_tenant *tenants;
	size_t tenant_count;
	size_t tenant_limit;
	struct counters counters; /* of the kernel side */
	uint64_t ring_fill_bytes; /* now */
	uint64_t ring_peak_bytes;
	uint64_t ring_size_bytes;
	uint64_t event_lag_ns; /* from the kernel's clock to the end of its pipeline, of the last event */
	uint64_t memory_bytes; /* resident */
};

struct metrics_monitor {
	const char *version;
	int64_t start_wall_ns; /* since 1970 */
	bool collector_lives;
	uint64_t collector_starts; /* the first is one */
	uint64_t gaps;		   /* times that events may be missing since a collector died */
	uint64_t requests_refused; /* of the collector: names or rates that no sound one has */
	uint64_t file_errors;	   /* opens, rotations and metrics files that failed */
	uint64_t memory_bytes;	   /* resident */
};

/*
 * Raises each of kept to what it is now. The kernel's sums only grow, but misses are told from harmless ones by
 * sums that are read one after the other, so a reading may be lower than the one before it.
 */
void metrics_grow(struct counters *kept, const struct counters *now);

/* Appends the whole text or nothing: 0 or -ENOMEM. */
int metrics_text(const struct metrics *metrics, struct buffer *out);
int metrics_monitor_text(const struct metrics_monitor *monitor, struct buffer *out);

/*
 * A label's value: backslash, double quote and line feed escaped, controls and
 * bytes that are not UTF-8 as \xNN. 0 or -ENOMEM.
 */
int metrics_label(struct bytes value, struct buffer *out);

#endif
