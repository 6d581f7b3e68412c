/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one table of commands and of their options. The parsers, --help, the
 * manual pages and the shell completion all come out of it.
 */
#ifndef NIGHTCLERK_COMMAND_TABLE_H
#define NIGHTCLERK_COMMAND_TABLE_H

#include <getopt.h>
#include <stddef.h>

enum command_line_verb { /* bits */
	COMMAND_LINE_RUN = 1 << 0,
	COMMAND_LINE_WATCH = 1 << 1,
	COMMAND_LINE_KEY = 1 << 2,
	COMMAND_LINE_RESERVE = 1 << 3,
	COMMAND_LINE_COMMIT = 1 << 4,
	COMMAND_LINE_GET = 1 << 5,
	COMMAND_LINE_RELEASE = 1 << 6,
	COMMAND_LINE_ONCE = 1 << 7,
	COMMAND_LINE_REPORT = 1 << 8,
	COMMAND_LINE_SWEEP = 1 << 9,
	COMMAND_LINE_CHECK = 1 << 10,
	COMMAND_LINE_CHECK_POLICY = 1 << 11,
	COMMAND_LINE_REPLAY = 1 << 12,
	COMMAND_LINE_DOCTOR = 1 << 13,
	COMMAND_LINE_MARK = 1 << 14,
	COMMAND_LINE_SYNC = 1 << 15,
	COMMAND_LINE_AUDIT = 1 << 16,
};

#define ALL_OF_THE_STORE                                                                                           \
	(COMMAND_LINE_RESERVE | COMMAND_LINE_COMMIT | COMMAND_LINE_GET | COMMAND_LINE_RELEASE | COMMAND_LINE_ONCE | \
	 COMMAND_LINE_REPORT | COMMAND_LINE_SWEEP)

#define COMMAND_LINE_FIRST_OPTION 256 /* what getopt_long(3) answers for a long option; below are letters */

enum option_id {
	OPTION_LEDGER = COMMAND_LINE_FIRST_OPTION,
	OPTION_EVENTS,
	OPTION_RECORD,
	OPTION_JUNIT,
	OPTION_DB,
	OPTION_KEEP_RESULTS,
	OPTION_LEASE,
	OPTION_TTL,
	OPTION_KEY,
	OPTION_REQUEST,
	OPTION_PATH,
	OPTION_MODEL,
	OPTION_PROMPT,
	OPTION_EXTRA,
	OPTION_SINCE,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_PRICES,
	OPTION_ASSERT,
	OPTION_NOW,
	OPTION_POLICY,
	OPTION_FAIL_ON,
	OPTION_STRICT,
	OPTION_ALLOW_INCOMPLETE,
	OPTION_ALLOW_BLIND,
	OPTION_SCHEMA_VERSION,
	OPTION_LINGER,
	OPTION_RING_SIZE,
	OPTION_DOOR,
	OPTION_USER,
	OPTION_CONFINE,
	OPTION_QUIET,
	OPTION_PLAIN,
	OPTION_NOTIFY,
	OPTION_OUTPUT,
	OPTION_PID,
	OPTION_CGROUP,
	OPTION_UID,
	OPTION_COMM,
	OPTION_PORT,
	OPTION_ALL,
	OPTION_FORMAT,
	OPTION_METHOD,
	OPTION_HOST,
	OPTION_HEADER,
	OPTION_TOOL,
	OPTION_PRINT_DEFAULT,
	OPTION_SCREEN,
	OPTION_PROFILE,
	OPTION_CUT,
	OPTION_CONFIG,
	OPTION_CHECK_CONFIG,
	OPTION_DIRECTORY,
	OPTION_NETNS_ONLY,
	OPTION_SPLIT,
	OPTION_MAX_TENANTS,
	OPTION_ROTATE_SIZE,
	OPTION_ROTATE_AGE,
	OPTION_KEEP,
	OPTION_METRICS,
	OPTION_HELP, /* the last one */
};

struct option_row {
	const char *name;
	enum option_id id;
	unsigned int verbs; /* bit per enum command_line_verb */
	/*
	 * What its value is, NULL = it takes none. FILE and DIR are names of files; small
	 * letters are the value itself; alternatives have a | between them.
	 */
	const char *argument;
	const char *help;
};

struct command_row {
	enum command_line_verb verb;
	const char *name;
	const char *summary; /* NULL: named in one line with the others; its --help says more */
	const char *usage;   /* and what it does */
	const char *operands; /* what follows the options: "FILE...", "KEY FILE", "COMMAND"; NULL = nothing */
	const char *ends;     /* the exit status */
};

/* In the order of the list of commands; NULL after the last. */
const struct command_row *command_at(size_t i);
const struct command_row *command_of(enum command_line_verb verb);
/* The option of that command that follows after, NULL = its first one; NULL after the last. */
const struct option_row *command_option_next(enum command_line_verb verb, const struct option_row *after);
const struct option_row *command_option_of(enum command_line_verb verb, int id); /* NULL = it has no such option */

#define COMMAND_OPTIONS_MAX 64

/* What getopt_long(3) wants: a command's options, zeroed after the last. */
void command_long_options(enum command_line_verb verb, struct option ret_longs[COMMAND_OPTIONS_MAX]);

/* What `nightclerk COMMAND --help` prints, on stdout. */
void command_help(enum command_line_verb verb);

#endif
