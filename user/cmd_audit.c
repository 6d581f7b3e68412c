/* SPDX-License-Identifier: BSD-2-Clause */
/* `nightclerk audit`: every call on this host, for weeks; a service in two processes (monitor.h, collector.h). */
#include "command_line.h"
#include "commands.h"
#include "monitor.h"

#include <stdio.h>

/* One process does not repeat itself by accident for longer; what others do again the next day is their job. */
#define WINDOW_S (15 * 60)
#define WINDOW_ACROSS_S (24 * 3600)

static int check_config(const struct command_line *line)
{
	printf("%s: these options are valid\n", line->audit.config);
	return 0;
}

/* Whose share of the rings is whose: who has a ledger of his own has one. */
static enum capture_fair fair_of(enum tenant_split split)
{
	switch (split) {
	case TENANT_SPLIT_CGROUP:
		return CAPTURE_FAIR_CGROUP;
	case TENANT_SPLIT_UID:
		return CAPTURE_FAIR_UID;
	case TENANT_SPLIT_NONE:
		break;
	}
	return CAPTURE_FAIR_NONE;
}

static int audit(const struct command_line *line)
{
	struct monitor_options options = {
		.capture = line->capture,
		.judge = line->judge,
		.policy = line->audit.policy,
		.split = line->audit.split,
		.tenants_max = line->audit.tenants_max,
		.rotation = line->audit.rotation,
		.keep = line->audit.keep ? line->audit.keep : AUDIT_KEEP,
		.metrics = line->audit.metrics,
		.stores = line->db,
		.lease_ns = line->lease_ns,
		.ttl_ns = line->ttl_ns,
		.directory = line->audit.directory ? line->audit.directory : AUDIT_DIRECTORY,
	};
	char reason[DROP_RIGHTS_REASON_MAX];

	options.judge.window_s = WINDOW_S;
	options.judge.window_across_s = WINDOW_ACROSS_S;
	options.judge.fresh_s = WINDOW_S;
	options.capture.scope = CAPTURE_ALL;
	options.capture.fair = fair_of(options.split);
	options.capture.host_wide = !line->audit.netns_only;
	snprintf(options.scope, sizeof(options.scope), "%s", line->audit.netns_only ? "this network namespace" : "this host");
	if (drop_rights_find(line->user, &options.account, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return 1;
	}
	return monitor_run(&options);
}

int cmd_audit(int argc, char **argv)
{
	struct command_line line;
	int status;

	switch (command_line_parse(COMMAND_LINE_AUDIT, argc, argv, &line)) {
	case COMMAND_LINE_HELP:
		return 0;
	case COMMAND_LINE_BAD:
		return EXIT_USAGE;
	case COMMAND_LINE_OK:
		break;
	}
	status = line.audit.check_config ? check_config(&line) : audit(&line);
	command_line_done(&line);
	return status;
}
