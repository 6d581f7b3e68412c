/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `mark` and `sync`, both sides: an abstract Unix socket whose name holds the
 * observer's pid and 128 random bits.
 *
 * The asking side looks for a name that carries the pid of one of its
 * ancestors, so nothing has to be handed down; where the ancestry is cut (a
 * daemon, a pid namespace) it asks every observer of its network namespace,
 * and those it does not belong to refuse. The observer knows the caller by
 * SO_PEERCRED and answers only processes in its scope.
 */
#ifndef NIGHTCLERK_CONTROL_H
#define NIGHTCLERK_CONTROL_H

#include "bytes.h"
#include <sys/types.h>

#define CONTROL_LABEL_MAX 256

enum control_verb { CONTROL_MARK, CONTROL_SYNC };

struct control_request {
	enum control_verb verb;
	pid_t pid; /* the caller, as SO_PEERCRED saw it */
	int fd;	   /* the answer goes there: control_answer() closes it */
	struct buffer label;
};

/* ---- the observer's side ---- */

/* A listening socket, non-blocking and close-on-exec. The descriptor or -errno. */
int control_listen(void);
/*
 * The next request that waits, if any. 1: *ret_request is filled and owned by
 * the caller until control_answer(); 0: none; -errno. Malformed ones are
 * answered and dropped here.
 */
int control_accept(int listen_fd, struct control_request *ret_request);
/* "ok" or a refusal; frees what the request holds. */
void control_answer(struct control_request *request, bool granted);

/* ---- the asking side ---- */

enum control_result {
	CONTROL_DONE,
	CONTROL_NO_OBSERVER, /* none in this network namespace */
	CONTROL_REFUSED,     /* there are some, and this process belongs to none */
	CONTROL_FAILED,	     /* the observer ended before it answered */
};

/* Asks the observer of this process; waits until it has answered. */
enum control_result control_ask(enum control_verb verb, struct bytes label);

#endif
