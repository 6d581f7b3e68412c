/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `mark` and `sync`, both sides: an abstract Unix socket whose name holds the
 * observer's pid and 128 random bits.
 *
 * The asking side looks for a name that carries the pid of one of its
 * ancestors, the nearest first, so nothing has to be handed down; where the ancestry is cut (a
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

enum control_result {
	CONTROL_DONE,
	CONTROL_REFUSED,     /* this process belongs to no run that is observed here */
	CONTROL_BUSY,	     /* too many ask at once */
	CONTROL_UNWRITTEN,   /* done, but a line before it could not be written */
	CONTROL_NO_OBSERVER, /* the asking side's: none in this network namespace */
	CONTROL_FAILED,	     /* the asking side's: the observer ended before it answered */
};

/* ---- the observer's side: nothing here waits ---- */

struct control;

/* May that caller ask? Who may not is refused as soon as it connects. */
typedef bool control_admits(void *context, pid_t pid);

/* Listens. 0 or -errno. */
int control_open(control_admits *admits, void *context, struct control **ret_control);
/* Who waits is refused. Accepts NULL. */
void control_close(struct control *control);
/* Readable when control_next() has something to do. */
int control_fd(const struct control *control);
/*
 * The next request, if one has come. 1: *ret_request is filled and owned by the
 * caller until control_answer(); 0: none; -errno. Malformed ones are refused
 * here, and so is who says nothing for a second. Call it until it returns 0.
 */
int control_next(struct control *control, uint64_t now_ns, struct control_request *ret_request);
/* How it ended; frees what the request holds. */
void control_answer(struct control_request *request, enum control_result result);
/* Callers that were not admitted, so far. */
uint64_t control_refused(const struct control *control);

/* ---- the asking side ---- */

/* Asks the observer of this process; waits until it has answered. The label has CONTROL_LABEL_MAX bytes at most. */
enum control_result control_ask(enum control_verb verb, struct bytes label);

#endif
