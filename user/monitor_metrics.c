/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics file: what the collector last said, and the monitor's own numbers behind it. */
#include "monitor_parts.h"
#include "clock.h"
#include "metrics.h"
#include "metrics_file.h"

#include <stdio.h>
#include <stdlib.h>

void monitor_write_metrics(struct monitor *monitor)
{
	struct metrics_monitor own = {
		.version = NIGHTCLERK_VERSION,
		.start_wall_ns = monitor->began_wall_ns,
		.collector_lives = monitor->pid != 0,
		.collector_starts = monitor->starts,
		.gaps = monitor->gaps,
		.requests_refused = audit_files_refused(monitor->files),
		.file_errors = audit_files_failed(monitor->files),
		.memory_bytes = heap_resident_bytes(&monitor->heap),
	};
	char reason[METRICS_FILE_REASON_MAX] = "";
	struct buffer text = {0};
	int err;

	if (!monitor->options->metrics)
		return;
	err = buffer_append(&text, monitor->pid ? buffer_bytes(&monitor->metrics_text) : (struct bytes){});
	if (!err)
		err = metrics_monitor_text(&own, &text);
	if (!err)
		err = metrics_file_write(monitor->options->metrics, buffer_bytes(&text), reason);
	if (err && !monitor->metrics_failed)
		fprintf(stderr, "nightclerk: %s; the metrics are tried again, continuing\n", *reason ? reason : strerror(-err));
	if (!err && monitor->metrics_failed)
		fprintf(stderr, "nightclerk: %s can be written again\n", monitor->options->metrics);
	monitor->metrics_failed = err != 0;
	buffer_done(&text);
}
