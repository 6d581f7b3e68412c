/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command lines of `run`, `watch` and of everything about the store.
 */
#ifndef NIGHTCLERK_COMMAND_LINE_H
#define NIGHTCLERK_COMMAND_LINE_H

#include "audit_options.h"
#include "capture.h"
#include "command_table.h"
#include "options.h"
#include "policy.h"

#define ASSERTIONS_MAX 8

/* What is asked of a model, before it is: a request, or a model and a prompt. */
struct asked {
	const char *request; /* file with the body; "-" = standard input */
	const char *path;    /* "/v1/chat/completions" */
	const char *model;
	const char *prompt; /* file; "-" = standard input */
	const char *extra;  /* part of the key, of the caller's choice */
};

struct report_line {
	const char *since; /* as given; NULL = from the first row on */
	int64_t since_ns;  /* the same; 0 then */
	bool json, csv;
	const char *prices; /* file; NULL = none */
	const char *assertions[ASSERTIONS_MAX];
	size_t assertion_count;
};

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
	const char *key;    /* as given; NULL = from what is asked */
	const char *result; /* commit: file, "-" = standard input; NULL = none */
	struct asked asked;
	struct report_line report;
	struct audit_line audit;
	int64_t now_ns; /* CLOCK_REALTIME, or what --now says */
	const char *user;   /* name or number: whose rights the command and the files get */
	uint64_t linger_ns; /* 1 s */
	const char *notify; /* watch: a shell command for each finding from fail_on on */
	const char *output; /* watch: a file for the command's own output */
	bool plain;	    /* watch: a line a call, also on a terminal */
	bool quiet;	    /* no alerts, no summary line */
	bool confine;	    /* refuse what leaves loopback */
	char **command;	    /* argv of the command, NULL-terminated; NULL = none */
	int command_argc;
};

enum command_line_result { COMMAND_LINE_OK, COMMAND_LINE_HELP, COMMAND_LINE_BAD };

/* "run", "watch", ... */
const char *command_line_verb_name(enum command_line_verb verb);

/* Fills *ret_line from argv; says what is wrong on stderr, or prints the help on stdout. */
enum command_line_result command_line_parse(enum command_line_verb verb, int argc, char **argv,
					    struct command_line *ret_line);
void command_line_done(struct command_line *line); /* accepts a zeroed one */

/*
 * Says on stderr what getopt_long(3) did not take. id: its answer, '?' or ':'
 * (its letters begin with ':', opterr is 0); word: argv[optind - 1], a whole group
 * of letters where one of them is wrong.
 */
void command_line_complain_of_option(const char *command, int id, const char *word);

#endif
