/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of `audit` that reads what others sent: rings -> sequencer ->
 * pipelines -> files. A forked child of the monitor without rights, without a
 * way to open anything; what needs either it asks the monitor for.
 */
#ifndef NIGHTCLERK_COLLECTOR_H
#define NIGHTCLERK_COLLECTOR_H

#include "canary.h"
#include "capture.h"
#include "drop_rights.h"
#include "monitor_wire.h"
#include "pipeline.h"
#include "rotation.h"
#include "tenants.h"

#define COLLECTOR_NAME "clerk-collector" /* its comm */

struct collector_options {
	struct capture *capture;   /* the child's copy of what the monitor opened */
	struct monitor_wire *wire; /* to the monitor */
	struct canary *canary;	   /* to be proved; NULL = it was */
	struct unprivileged account;
	struct run_facts facts;	   /* of this life: another run_id each time */
	struct pipeline_options pipeline;
	struct run_gap gap;		 /* the one before this life; until_ns 0 = none */
	bool strict;			 /* whatever the policy says */
	enum tenant_split split;
	size_t tenants_max;		 /* 0 = LIMIT_TENANTS */
	struct rotation_limits rotation; /* when the monitor is to be asked */
	bool metrics;			 /* somebody wants them */
	int stores_fd;			 /* where each tenant's store is; -1 = there are none */
	int64_t lease_ns, ttl_ns;	 /* of them */
};

/*
 * Runs until the monitor says so or is gone, then writes what there is and
 * returns the exit status: 0, or 1 with a line on stderr. Call it in a child
 * whose signals are blocked, and end with _exit(): nothing is freed.
 */
int collector_run(const struct collector_options *options);

#endif
