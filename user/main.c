/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which function each command of the table is.
 */
#include "command_table.h"
#include "commands.h"

#include <fcntl.h>
#include <unistd.h>

static const struct {
	enum command_line_verb verb;
	int (*run)(int argc, char **argv);
} functions[] = {
	{COMMAND_LINE_RUN, cmd_run},
	{COMMAND_LINE_WATCH, cmd_watch},
	{COMMAND_LINE_AUDIT, cmd_audit},
	{COMMAND_LINE_CHECK, cmd_check},
	{COMMAND_LINE_REPLAY, cmd_replay},
	{COMMAND_LINE_REPORT, cmd_report},
	{COMMAND_LINE_DOCTOR, cmd_doctor},
	{COMMAND_LINE_MARK, cmd_mark},
	{COMMAND_LINE_SYNC, cmd_sync},
	{COMMAND_LINE_ONCE, cmd_once},
	{COMMAND_LINE_KEY, cmd_key},
	{COMMAND_LINE_RESERVE, cmd_reserve},
	{COMMAND_LINE_COMMIT, cmd_commit},
	{COMMAND_LINE_GET, cmd_get},
	{COMMAND_LINE_RELEASE, cmd_release},
	{COMMAND_LINE_SWEEP, cmd_sweep},
	{COMMAND_LINE_CHECK_POLICY, cmd_check_policy},
};

static void print_commands(FILE *to)
{
	const struct command_row *command;

	fprintf(to, "nightclerk watches HTTP calls over loopback and reports the second knock.\n"
		    "usage: nightclerk COMMAND [OPTIONS]\n\n");
	for (size_t i = 0; (command = command_at(i)); i++)
		if (command->summary)
			fprintf(to, "  %-7s %s\n", command->name, command->summary);
	fprintf(to, "  and    ");
	for (size_t i = 0; (command = command_at(i)); i++)
		if (!command->summary)
			fprintf(to, " %s", command->name);
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
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(argv[1], command_of(functions[i].verb)->name) == 0)
			return functions[i].run(argc - 1, argv + 1);
	if (strcmp(argv[1], "--version") == 0) {
		printf("nightclerk %s\n", NIGHTCLERK_VERSION);
		return 0;
	}
	if (strcmp(argv[1], "completion") == 0)
		return cmd_completion(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0 && argc > 2)
		return cmd_help(argc - 1, argv + 1);
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
		print_commands(stdout);
		return 0;
	}
	fprintf(stderr, "nightclerk: no command called %s\n\n", argv[1]);
	print_commands(stderr);
	return EXIT_USAGE;
}
