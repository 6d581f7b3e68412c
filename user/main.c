/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of subcommands.
 */
#include "commands.h"

#include <fcntl.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	const char *help; /* NULL: named in one line with the others; its --help says more */
} commands[] = {
	{"run", cmd_run, "run a command and fail if it sent the same mutating call twice"},
	{"watch", cmd_watch, "show calls and repeats as they happen"},
	{"check", cmd_check, "judge ledgers, events files and recordings again, and gate"},
	{"replay", cmd_replay, "judge a recording again, without root"},
	{"report", cmd_report, "what model calls were asked, got and cost, and what a test asserts of them"},
	{"doctor", cmd_doctor, "what this kernel and this account allow, and what cannot be seen"},
	{"mark", cmd_mark, "inside a run: start a new attempt window"},
	{"sync", cmd_sync, "inside a run: wait until every call so far is judged and written"},
	{"once", cmd_once, NULL},
	{"key", cmd_key, NULL},
	{"reserve", cmd_reserve, NULL},
	{"commit", cmd_commit, NULL},
	{"get", cmd_get, NULL},
	{"release", cmd_release, NULL},
	{"sweep", cmd_sweep, NULL},
	{"check-policy", cmd_check_policy, NULL},
};

#define COMMAND_COUNT (sizeof(commands) / sizeof(commands[0]))

static void print_commands(FILE *to)
{
	fprintf(to, "nightclerk watches HTTP calls over loopback and reports the second knock.\n\n"
		    "usage: nightclerk COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (commands[i].help)
			fprintf(to, "  %-7s %s\n", commands[i].name, commands[i].help);
	fprintf(to, "  and    ");
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (!commands[i].help)
			fprintf(to, " %s", commands[i].name);
	fprintf(to, "\n\nnightclerk COMMAND --help shows its options; try: nightclerk run -- pytest -q\n");
}

/*
 * A descriptor of these three that the caller has closed would be that of the
 * first file we open, and what we say would end up in it. A command gets it closed.
 */
static void hold_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd > STDERR_FILENO)
		close(fd);
}

int main(int argc, char **argv)
{
	hold_standard_descriptors();
	if (argc < 2) {
		print_commands(stdout);
		return 0;
	}
	for (size_t i = 0; i < COMMAND_COUNT; i++)
		if (strcmp(argv[1], commands[i].name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (strcmp(argv[1], "--version") == 0) {
		printf("nightclerk %s\n", NIGHTCLERK_VERSION);
		return 0;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_commands(stdout);
		return 0;
	}
	fprintf(stderr, "nightclerk: no command called %s\n\n", argv[1]);
	print_commands(stderr);
	return EXIT_USAGE;
}
