/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The commands, in the order of the list that `nightclerk` prints, and their help.
 */
#include "command_table.h"

#include <stdio.h>

static const struct command_row commands[] = {
	{COMMAND_LINE_RUN, "run", "run a command and fail if it sent the same mutating call twice",
	 "usage: nightclerk run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Runs COMMAND, writes down every HTTP call that it and its children send over\n"
	 "loopback, and fails when the same mutating call was sent twice.\n",
	 "COMMAND",
	 "Exit status: the command's own; 10 a finding at or above --fail-on; 11 cannot tell;\n"
	 "125 nightclerk could not start or watch; 126 not executable; 127 not found.\n"},
	{COMMAND_LINE_WATCH, "watch", "show calls and repeats as they happen",
	 "usage: nightclerk watch SCOPE [OPTIONS]\n"
	 "       nightclerk watch [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Shows HTTP calls over loopback, and repeats as they happen: on the full screen, where\n"
	 "? explains the keys, or one line a call where there is no terminal.\n"
	 "SCOPE is one of --pid, --cgroup, --uid, --comm, --port, --all. Ctrl-C ends it.\n",
	 "COMMAND",
	 "Exit status: 0; 1 it could not watch; 2 usage.\n"},
	{COMMAND_LINE_AUDIT, "audit", "write down every call on this host, for weeks: a service",
	 "usage: nightclerk audit [OPTIONS]\n"
	 "       nightclerk audit --check-config FILE\n\n"
	 "Writes down every HTTP call over loopback on this host, and repeats as they happen.\n"
	 "A monitor (root) holds the probes and opens the files; what was sent is read by a\n"
	 "collector without rights. SIGHUP: reads the policy and opens the files again;\n"
	 "SIGTERM, Ctrl-C: writes what there is and ends.\n",
	 NULL,
	 "Exit status: 0; 1 it could not observe, or not all is written; 2 usage.\n"},
	{COMMAND_LINE_CHECK, "check", "judge ledgers, events files and recordings again, and gate",
	 "usage: nightclerk check FILE... [OPTIONS]\n\n"
	 "Judges again what a run wrote: call ledgers, events files (run --events) and\n"
	 "recordings (run --record). An events file or a recording says how every call\n"
	 "went; from a ledger alone no outcome is known.\n",
	 "FILE...",
	 "Exit status: 0; 10 a finding at or above --fail-on; 11 cannot tell; 1 a file\n"
	 "cannot be read; 2 usage.\n"},
	{COMMAND_LINE_REPLAY, "replay", "judge a recording again, without root",
	 "usage: nightclerk replay FILE [OPTIONS]\n"
	 "       nightclerk replay FILE --screen [--policy FILE]\n\n"
	 "Judges a recording again: the same ledger, events and alerts, byte for byte.\n",
	 "FILE",
	 "Exit status: 0, 10 a finding at or above the run's --fail-on, 11 cannot tell,\n"
	 "1 the recording cannot be read, 2 usage.\n"},
	{COMMAND_LINE_REPORT, "report", "what model calls were asked, got and cost, and what a test asserts of them",
	 "usage: nightclerk report [OPTIONS]\n\n"
	 "The bank statement: what every model, process, path and day asked, got and cost.\n",
	 NULL,
	 "Exit status: 0; 10 an --assert does not hold; 11 it holds of what was seen, but not all\n"
	 "was; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_DOCTOR, "doctor", "what this kernel and this account allow, and what cannot be seen",
	 "usage: nightclerk doctor [--json]\n\n"
	 "Says what this kernel and this account allow, and what cannot be seen here.\n",
	 NULL,
	 "Exit status: 0 only if the gate can be trusted, else 1; 2 usage.\n"},
	{COMMAND_LINE_MARK, "mark", "inside a run: start a new attempt window",
	 "usage: nightclerk mark [--] [LABEL]\n\n"
	 "Inside `nightclerk run`: starts a new attempt window. Calls after it are not\n"
	 "compared with calls before it, so two tests may rightly send the same body.\n"
	 "What follows -- is the label, whatever it is; of a label over 256 bytes the\n"
	 "front is kept.\n",
	 "LABEL",
	 "Exit status: 0; 1 a line before it could not be written; 2 usage, or no observer.\n"},
	{COMMAND_LINE_SYNC, "sync", "inside a run: wait until every call so far is judged and written",
	 "usage: nightclerk sync\n\n"
	 "Inside `nightclerk run`: returns once every call up to now is judged and\n"
	 "written, so that the ledger can be read the moment after a call.\n",
	 NULL,
	 "Exit status: 0; 1 a line before it could not be written; 2 usage, or no observer.\n"},
	{COMMAND_LINE_ONCE, "once", NULL,
	 "usage: nightclerk once --key KEY [OPTIONS] -- COMMAND [ARGUMENT...]\n"
	 "       nightclerk once --request FILE --path PATH [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Runs COMMAND and keeps what it prints; a second call prints that and runs nothing.\n",
	 "COMMAND",
	 "Exit status: 0 what was kept is printed; else that of the command, which is kept only\n"
	 "when it is 0; 3 done, but no output was kept; 4 somebody else is at it; 125 the store\n"
	 "cannot be used; 126 not executable; 127 not found.\n"},
	{COMMAND_LINE_KEY, "key", NULL,
	 "usage: nightclerk key --request FILE --path PATH [--extra TEXT]\n"
	 "       nightclerk key --model NAME --prompt FILE [--extra TEXT]\n\n"
	 "Prints the key under which the wire will count that request (without --extra), or\n"
	 "that of a job without HTTP.\n",
	 NULL,
	 "Exit status: 0; 1 the file cannot be read, or is no request of a model; 2 usage.\n"},
	{COMMAND_LINE_RESERVE, "reserve", NULL,
	 "usage: nightclerk reserve KEY [OPTIONS]\n"
	 "       nightclerk reserve --request FILE --path PATH [OPTIONS]\n\n"
	 "Asks whether a piece of work is to be done: of all who ask, one is told to go on.\n",
	 "KEY",
	 "Exit status: 0 reserved: do it, then `commit`; 3 done: a kept result is printed;\n"
	 "4 somebody else is at it; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_COMMIT, "commit", NULL,
	 "usage: nightclerk commit KEY [FILE] [OPTIONS]\n\n"
	 "Makes a piece of work done, with what FILE holds as its result; - is standard input.\n"
	 "The first result stays.\n",
	 "KEY FILE",
	 "Exit status: 0 it is done; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_GET, "get", NULL,
	 "usage: nightclerk get KEY [OPTIONS]\n\nPrints the kept result of a piece of work.\n",
	 "KEY",
	 "Exit status: 0 printed; 3 done, but no result was kept; 4 pending; 5 neither;\n"
	 "1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_RELEASE, "release", NULL,
	 "usage: nightclerk release KEY [OPTIONS]\n\nGives a reservation back: the next one who asks gets it.\n",
	 "KEY",
	 "Exit status: 0 given back, or nobody had reserved it; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_SWEEP, "sweep", NULL,
	 "usage: nightclerk sweep [--ttl TIME] [OPTIONS]\n\n"
	 "Marks what was left pending as abandoned, and removes what is older than --ttl.\n",
	 NULL,
	 "Exit status: 0; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_CHECK_POLICY, "check-policy", NULL,
	 "usage: nightclerk check-policy FILE [REQUEST]\n"
	 "       nightclerk check-policy --print-default\n\n"
	 "Says whether FILE is a valid policy, and which of its rules is about a request.\n",
	 "FILE",
	 "Exit status: 0; 1 FILE cannot be read; 2 it is no valid policy, or usage.\n"},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

const struct command_row *command_at(size_t i)
{
	return i < COMMAND_COUNT ? &commands[i] : NULL;
}

const struct command_row *command_of(enum command_line_verb verb)
{
	size_t i = 0;

	while (i + 1 < COMMAND_COUNT && commands[i].verb != verb)
		i++;
	return &commands[i];
}

void command_help(enum command_line_verb verb)
{
	const struct command_row *command = command_of(verb);
	const struct option_row *row = NULL;

	printf("%s\n", command->usage);
	while ((row = command_option_next(verb, row))) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
			 row->argument ? row->argument : "");
		printf("  %-22s %s\n", left, row->help);
	}
	if (verb & ALL_OF_THE_STORE)
		printf("\nWithout --db, the store is the file that NIGHTCLERK_DB names.\n");
	printf("\n%s", command->ends);
}
