/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order matters: what opens files of its own accord (time zones, libcrypto
 * and its configuration) does it while it still may.
 */
#include "collector_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define FILE_SLACK_BYTES (64 * 1024 * 1024ULL) /* beyond --rotate-size */
#define IDLE_NS (24 * 3600 * 1000000000ULL) /* the longest window in which an attempt of a tenant counts */

/* A pipeline that nothing is fed to: each of its parts has then been made once. */
static int warm_up(const struct collector *collector)
{
	struct pipeline_output out = {0};
	struct pipeline *pipeline = pipeline_new(&collector->options->facts, &collector->options->pipeline, &out);

	tzset();
	store_warm_up();
	pipeline_free(pipeline);
	buffer_done(&out.events);
	buffer_done(&out.ledger);
	bookings_clear(&out.bookings);
	buffer_done(&out.bookings);
	return pipeline ? 0 : -ENOMEM;
}

static int open_stages(struct collector *collector)
{
	int err = collector_open_stores(collector);
	const struct tenants_options tenants = {
		.split = collector->options->split,
		.max = collector->options->tenants_max,
		.idle_ns = IDLE_NS,
		.run = &collector->facts,
		.pipeline = &collector->options->pipeline,
		.born = collector_tenant_born,
		.ending = collector_tenant_ending,
		.context = collector,
	};

	if (err)
		return err;
	collector->sequencer = sequencer_new();
	collector->tenants = tenants_new(&tenants);
	collector->cgroups = cgroups_told_new();
	collector->census = flow_census_new();
	return collector->sequencer && collector->tenants && collector->cgroups && collector->census ? 0 : -ENOMEM;
}

/*
 * Whoever takes this half over can fill no disk by the files that he holds: SIGXFSZ is ignored, so
 * write(2) says EFBIG. A sound one asks for the next file at the size itself; the slack
 * is for what waited in memory, and for while the monitor refuses.
 */
static void bound_files(const struct rotation_limits *rotation)
{
	const rlim_t bytes = rotation->bytes + FILE_SLACK_BYTES;
	struct rlimit limit;

	if (!rotation->bytes || getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_max <= bytes)
		return; /* none is wanted, or a lower one was set before */
	limit.rlim_cur = limit.rlim_max = bytes;
	setrlimit(RLIMIT_FSIZE, &limit);
}

static int give_rights_away(struct collector *collector, char *reason)
{
	const int keep[] = {collector->wire->fd, capture_fd(collector->capture), collector->heap.statm_fd, collector->options->stores_fd};
	int err = drop_rights_close_all_but(keep, sizeof(keep) / sizeof(keep[0]));

	if (err) {
		snprintf(reason, DROP_RIGHTS_REASON_MAX, "the collector cannot close its descriptors: %s", strerror(-err));
		return err;
	}
	prctl(PR_SET_NAME, COLLECTOR_NAME);
	bound_files(&collector->options->rotation);
	collector->rights = collector_rights(collector);
	capture_without_rights(collector->capture, &collector->rights);
	return drop_rights(&collector->options->account, collector->options->stores_fd, reason);
}

int collector_prepare(struct collector *collector, char *reason)
{
	int err = warm_up(collector);

	if (!err) {
		heap_open(&collector->heap);
		err = give_rights_away(collector, reason);
		if (err)
			return err;
		err = open_stages(collector);
	}
	if (err)
		snprintf(reason, DROP_RIGHTS_REASON_MAX, "the collector cannot start: %s", strerror(-err));
	return err;
}
