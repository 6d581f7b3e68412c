/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside a monitor. Private to monitor*.c: monitor.c is the loop and the
 * signals, monitor_start.c the start and the end, monitor_child.c the collector's life,
 * monitor_serve.c what it asks for,
 * monitor_metrics.c the file for node_exporter.
 */
#ifndef NIGHTCLERK_MONITOR_PARTS_H
#define NIGHTCLERK_MONITOR_PARTS_H

#include "audit_files.h"
#include "canary.h"
#include "cgroup_names.h"
#include "heap.h"
#include "monitor.h"
#include "monitor_wire.h"
#include "output_mark.h"

#define MONITOR_REASON_MAX 512

struct monitor {
	const struct monitor_options *options;
	struct capture *capture;
	struct run_facts facts; /* of the next collector but for its run_id */
	struct policy *policy;
	struct judge_options judge; /* with what the policy sets */
	int directory_fd;	    /* locked: one audit a directory */
	int stores_fd;		    /* the same; -1 = there are no stores */
	struct output_mark *mark;
	struct audit_files *files;
	struct cgroup_names *cgroups;
	struct heap heap;
	struct buffer metrics_text; /* the collector's last */
	bool metrics_failed;	    /* said */
	uint64_t gaps;
	struct run_gap gap; /* the last one; no cause = none */
	int64_t began_wall_ns;
	int signal_fd;
	/* the collector */
	pid_t pid; /* 0 = none lives */
	struct monitor_wire wire;
	struct canary *canary;	      /* while it is being proved */
	bool ready, canary_seen;      /* it said so */
	bool proved;		      /* the probes fire */
	uint64_t starts;
	uint64_t started_ns, restart_ns;
	uint64_t back_off_ns;
	uint64_t written_ns; /* what was captured before it is written */
	int status;	     /* of the last one that ended, as wait(2) has it */
	/* what signals asked for */
	bool stop, hurry, reload;
	uint64_t deadline_ns; /* of the end */
};

/* ---- monitor_start.c ---- */

/* 0, or -errno with one line in reason (MONITOR_REASON_MAX bytes). */
int monitor_open(struct monitor *monitor, char *reason);
void monitor_close(struct monitor *monitor);
/* The policy file anew. 0, or -errno with a line on stderr; then the old one stays. */
int monitor_read_policy(struct monitor *monitor);

/* ---- monitor_child.c ---- */

/* 0 or -errno with reason filled. */
int monitor_start_collector(struct monitor *monitor, char *reason);
/* Starts it, proves that the probes fire, three times if it must. 0 or -errno with reason filled. */
int monitor_prove(struct monitor *monitor, char *reason);
/* Has it ended? Then what is known of it is cleared. */
bool monitor_reap(struct monitor *monitor);
void monitor_kill_collector(struct monitor *monitor);
/* It ended though nobody asked it to: says so, and when the next one starts. */
void monitor_mourn(struct monitor *monitor, uint64_t now_ns);

/* ---- monitor_metrics.c ---- */

/* The collector's text, and ours behind it. */
void monitor_write_metrics(struct monitor *monitor);

/* ---- monitor_serve.c ---- */

/* Answers all that has been asked. 0, or -errno: the collector is no use any more. */
int monitor_serve(struct monitor *monitor);

/* ---- monitor.c ---- */

/* Waits up to timeout_ms for something to happen, and does what is to be done. */
void monitor_turn(struct monitor *monitor, int timeout_ms);

#endif
