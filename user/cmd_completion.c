/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk completion bash` and `nightclerk help [--mdoc] COMMAND`: what the
 * table of commands says, to a shell, to the manual and to people. Not in that
 * table themselves.
 */
#include "command_table.h"
#include "commands.h"
#include "completion.h"
#include "manual.h"

#include <errno.h>
#include <stdio.h>

/* Takes ownership of what text holds. */
static int print(const char *command, struct buffer *text, int err)
{
	if (!err) {
		fwrite(text->data, 1, text->size, stdout);
		if (fflush(stdout))
			err = -errno;
	}
	if (err)
		fprintf(stderr, "nightclerk %s: cannot print: %s\n", command, strerror(-err));
	buffer_done(text);
	return err ? 1 : 0;
}

int cmd_completion(int argc, char **argv)
{
	struct buffer text = {0};

	if (argc == 2 && strcmp(argv[1], "bash") == 0)
		return print(argv[0], &text, completion_bash(&text));
	fprintf(stderr, "nightclerk completion: takes the name of a shell: bash\n");
	return EXIT_USAGE;
}

int cmd_help(int argc, char **argv)
{
	bool mdoc = argc == 3 && strcmp(argv[1], "--mdoc") == 0;
	const struct command_row *command;
	struct buffer text = {0};

	for (size_t i = 0; (argc == 2 || mdoc) && (command = command_at(i)); i++) {
		if (strcmp(command->name, argv[argc - 1]) != 0)
			continue;
		if (mdoc)
			return print(argv[0], &text, manual_options(command->verb, &text));
		command_help(command->verb);
		return 0;
	}
	fprintf(stderr, "nightclerk help: takes the name of a command; see nightclerk --help\n");
	return EXIT_USAGE;
}
