/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk mark [LABEL]` and `nightclerk sync`, called from inside a run.
 */
#include "command_table.h"
#include "commands.h"
#include "control.h"

static int explain(const char *verb, enum control_result result)
{
	switch (result) {
	case CONTROL_DONE:
		return 0;
	case CONTROL_NO_OBSERVER:
		fprintf(stderr, "nightclerk %s: no observer in this network namespace: call it inside "
				"`nightclerk run -- ...`, from the network namespace of the run\n", verb);
		return EXIT_USAGE;
	case CONTROL_REFUSED:
		fprintf(stderr, "nightclerk %s: refused: this process does not belong to a run that is observed here\n", verb);
		return EXIT_USAGE;
	case CONTROL_BUSY:
		fprintf(stderr, "nightclerk %s: too many ask the observer at once: try again\n", verb);
		return EXIT_USAGE;
	case CONTROL_UNWRITTEN:
		fprintf(stderr, "nightclerk %s: done, but the observer could not write every line before it: "
				"see what it says of its files\n", verb);
		return 1;
	case CONTROL_FAILED:
		break;
	}
	fprintf(stderr, "nightclerk %s: the observer ended before it answered\n", verb);
	return EXIT_USAGE;
}

/* The front of a label, cut between two characters. */
static struct bytes front_of(struct bytes label)
{
	if (label.size <= CONTROL_LABEL_MAX)
		return label;
	label.size = CONTROL_LABEL_MAX;
	while (label.size && (label.data[label.size] & 0xc0) == 0x80)
		label.size--;
	return label;
}

int cmd_mark(int argc, char **argv)
{
	bool named = argc > 1 && strcmp(argv[1], "--") == 0;
	int at = named ? 2 : 1;

	if (!named && argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		command_help(COMMAND_LINE_MARK);
		return 0;
	}
	if (argc > at + 1) {
		fprintf(stderr, "nightclerk mark: takes one label at most; see nightclerk mark --help\n");
		return EXIT_USAGE;
	}
	return explain(argv[0], control_ask(CONTROL_MARK, front_of(bytes_of_string(argc > at ? argv[at] : ""))));
}

int cmd_sync(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		command_help(COMMAND_LINE_SYNC);
		return 0;
	}
	if (argc > 1) {
		fprintf(stderr, "nightclerk sync: takes nothing; see nightclerk sync --help\n");
		return EXIT_USAGE;
	}
	return explain(argv[0], control_ask(CONTROL_SYNC, (struct bytes){0}));
}
