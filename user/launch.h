/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts a command in two steps, so that the probes can be put on between
 * them: the child waits on a pipe before exec, and exits if nightclerk dies
 * meanwhile. It keeps the process group, and stdin, stdout and stderr unless
 * others are given.
 */
#ifndef NIGHTCLERK_LAUNCH_H
#define NIGHTCLERK_LAUNCH_H

#include <sys/types.h>

struct launch {
	pid_t pid;
	int release_fd; /* one byte lets it go */
	int status_fd;	/* the errno of a failed exec comes back here */
	int stdio[3];	/* set before launch_hold(): what its 0, 1 and 2 are to be; 0 = ours */
};

/* Another account for the child: its ids, its groups, and HOME, USER and LOGNAME. */
struct launch_account {
	uid_t uid;
	gid_t gid;
	char name[64];
	char home[256];
};

/*
 * Forks the child, held. It keeps the signal mask and dispositions of this
 * moment: call it before they are changed. account NULL = our own. 0 or -errno.
 */
int launch_hold(struct launch *launch, char **argv, const struct launch_account *account);
/* Lets it exec: 0, or -errno of the failed exec (the child has then exited and was reaped). */
int launch_release(struct launch *launch);
/* Not to be started after all: ends and reaps the held child. */
void launch_cancel(struct launch *launch);

#endif
