/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command lines of `nightclerk run` and `nightclerk watch`.
 */
#ifndef NIGHTCLERK_COMMAND_LINE_H
#define NIGHTCLERK_COMMAND_LINE_H

#include "capture.h"
#include "options.h"
#include "policy.h"

enum command_line_verb { COMMAND_LINE_RUN = 1, COMMAND_LINE_WATCH = 2 }; /* bits */

struct command_line {
	struct judge_options judge; /* the command line over the policy over the defaults */
	struct policy *policy;	    /* NULL = none; command_line_done() frees it */
	struct capture_options capture;
	char scope[64];	    /* the scope in words */
	const char *ledger; /* run: "call_ledger.jsonl"; watch: NULL */
	const char *events;
	const char *recording;
	const char *junit;
	const char *db;	    /* the store; NULL = none */
	int64_t lease_ns;   /* 900 s */
	int64_t ttl_ns;	    /* 0 = nothing is removed from it */
	bool keep_results;
	const char *user;   /* whose rights the command and the files get */
	uint64_t linger_ns; /* 1 s */
	bool quiet;	    /* no alerts, no summary line */
	bool confine;	    /* refuse what leaves loopback */
	char **command;	    /* argv of the command, NULL-terminated; NULL = none */
	int command_argc;
};

enum command_line_result { COMMAND_LINE_OK, COMMAND_LINE_HELP, COMMAND_LINE_BAD };

/* Fills *ret_line from argv; says what is wrong on stderr, or prints the help on stdout. */
enum command_line_result command_line_parse(enum command_line_verb verb, int argc, char **argv,
					    struct command_line *ret_line);
void command_line_done(struct command_line *line); /* accepts a zeroed one */

#endif
