/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command line of `nightclerk run`.
 */
#ifndef NIGHTCLERK_RUN_OPTIONS_H
#define NIGHTCLERK_RUN_OPTIONS_H

#include "capture.h"
#include "options.h"

struct run_options {
	struct judge_options judge;
	const char *ledger; /* "call_ledger.jsonl" */
	const char *events;
	const char *recording;
	enum capture_door door;
	uint64_t linger_ns; /* 1 s */
	size_t ring_bytes;  /* 0 = the default */
	bool quiet;	    /* no alerts, no summary line */
	char **command;	    /* argv of the command, NULL-terminated */
	int command_argc;
};

enum run_options_result { RUN_OPTIONS_OK, RUN_OPTIONS_HELP, RUN_OPTIONS_BAD };

/* Fills options from argv; says what is wrong on stderr, or prints the help on stdout. */
enum run_options_result run_options_parse(int argc, char **argv, struct run_options *ret_options);

#endif
