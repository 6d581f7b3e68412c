/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One observation from start to end: a command that is held back until the
 * probes are on, or a scope that is there already. `run` and `watch` differ in
 * what they show and in what their exit status means.
 */
#ifndef NIGHTCLERK_SESSION_H
#define NIGHTCLERK_SESSION_H

#include "command_line.h"
#include "confine.h"
#include "launch.h"
#include "observer.h"

struct session {
	struct command_line line;
	struct observer *observer;
	struct launch child;
	struct confine *confine; /* NULL = none was asked for, or it is over */
	int signal_fd;
	bool child_started;
	bool child_over;
	int child_status; /* as a shell reports it; -1 where no command was run */
	bool stop;	  /* without a command: a signal asked us to end */
	bool asked;	  /* the same, whether there is a command or not */
	bool hurry;	  /* a signal came when the command had ended: nothing is waited for any more */
	bool finished;	  /* session_finish() was called: turns only wait */
	bool cannot_read; /* the kernel's events, at the last turn */
	bool said_so;
	bool resized;	  /* the terminal has another size since the last look */
};

/*
 * Holds the command, loads the probes, lets the command go. 0, or the exit
 * status of design: 125 with one line on stderr, 126, 127.
 */
int session_start(struct session *session, const struct observer_options *options);
/*
 * Waits up to OBSERVER_PERIOD_MS for something to happen, then one turn of the observer. After
 * session_finish() only signals can happen.
 */
void session_turn(struct session *session);
/* The command has ended, or a signal asked us to. */
bool session_over(const struct session *session);
/* Waits for calls that are still open, at most line.linger_ns and until a signal asks us to end; then judges. */
void session_finish(struct session *session);
/* The summary, on stderr, for who does not answer with the gate's exit status: it is left out. */
void session_print_summary(const struct session *session);
/* Accepts a zeroed session. */
void session_done(struct session *session);

/* How to print on that descriptor: colour only on a terminal and without NO_COLOR. */
struct alert_style session_style(int fd);

/* The options that both commands share, from the command line. */
void session_observer_options(const struct command_line *line, struct observer_options *ret_options);

#endif
