/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The half of `audit` that has rights and reads no captured byte: loads and
 * attaches, proves the canary, starts the collector and starts it again when it
 * dies, opens files for it, answers what it asks.
 */
#ifndef NIGHTCLERK_MONITOR_H
#define NIGHTCLERK_MONITOR_H

#include "capture.h"
#include "drop_rights.h"
#include "pipeline.h"
#include "rotation.h"
#include "tenants.h"

struct monitor_options {
	struct capture_options capture;
	struct judge_options judge;  /* without what a policy sets */
	const char *policy;	     /* file; NULL = none. Read at the start and at each SIGHUP */
	const char *directory;	     /* of the tenants' files */
	enum tenant_split split;
	size_t tenants_max;		 /* 0 = LIMIT_TENANTS */
	struct rotation_limits rotation;
	unsigned int keep;		 /* files set aside of each kind */
	const char *metrics;		 /* file; NULL = none */
	const char *stores;		 /* directory of the tenants' account books; NULL = none */
	int64_t lease_ns, ttl_ns;	 /* of them */
	struct unprivileged account; /* of the collector */
	char scope[64];		     /* in words */
};

/*
 * Runs until SIGTERM or SIGINT; SIGHUP: the policy is read and the files are
 * opened again. Says on stderr what goes on, and to the service manager how it
 * stands (service_notify.h). The exit status: 0; 1 with a line on stderr.
 */
int monitor_run(const struct monitor_options *options);

#endif
