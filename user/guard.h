/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command that does not outlive us, and neither does anything that it
 * started. Between us and it stands a process that adopts what it leaves
 * behind; when we end without guard_let_go(), killed or not, it kills all of
 * them. Who kills that process too reaches the command, but not its children.
 */
#ifndef NIGHTCLERK_GUARD_H
#define NIGHTCLERK_GUARD_H

#include <stdbool.h>
#include <sys/types.h>

struct guard {
	pid_t guard;
	pid_t command; /* stays a valid pid until guard_let_go() */
	int fd;	       /* readable when guard_ended() has something to say */
};

/* In the child: with the signal mask of the caller, every other descriptor as it was. */
typedef void guard_command(void *context);

/* run() becomes the command, or returns to end with EXIT_NOT_STARTED. 0 or -errno. */
int guard_start(guard_command *run, void *context, struct guard *ret_guard);
/* True when the command has ended: *ret_status as a shell reports it. Does not wait. */
bool guard_ended(const struct guard *guard, int *ret_status);
/* What still runs of it may go on without us. */
void guard_let_go(struct guard *guard);

#endif
