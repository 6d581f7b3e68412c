/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `--notify CMD`: a shell command for each finding that people want to hear of.
 * Nobody waits for it; it runs with the rights of whoever called sudo.
 */
#ifndef NIGHTCLERK_NOTIFY_H
#define NIGHTCLERK_NOTIFY_H

#include "screen_model.h"

#include <sys/types.h>

#define NOTIFY_RUNNING_MAX 8 /* at a time; what comes meanwhile is counted */

struct notify {
	const char *command; /* NULL = nobody is told */
	uid_t uid;	     /* (uid_t)-1 = our own account */
	gid_t gid;
	pid_t running[NOTIFY_RUNNING_MAX]; /* 0 = free */
	unsigned long left_out;		   /* there was no free place, or no process to be had */
};

/*
 * Runs it with /bin/sh -c. Its environment has NIGHTCLERK_FINDING,
 * NIGHTCLERK_SEVERITY and NIGHTCLERK_TEXT (one line, harmless); standard input
 * is empty, standard output is standard error.
 */
void notify_of(struct notify *notify, const struct screen_alarm *alarm);
/* Forgets those that have ended: call it now and then. */
void notify_reap(struct notify *notify);

#endif
