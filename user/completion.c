/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The script holds the table as data, NAME or NAME:KIND, and one function that
 * walks over the words before the cursor, as getopt_long(3) does.
 */
#include "completion.h"
#include "say.h"

#include <stdio.h>

/* The names of values that say what may be one. */
static const struct {
	const char *argument;
	const char *kind;
} kinds[] = {
	{"FILE", "file"},
	{"FILE...", "files"},
	{"DIR", "directory"},
	{"USER", "user"},
	{"COMMAND", "command"},
	{"SEVERITY", "words:info,low,medium,high"},
	{"DOOR", "words:auto,tracepoint,kprobe"},
	{"FORMAT", "words:text,json,junit"},
	{"KIND,...", "list:tls,h2,websocket,connect,mptcp,joined_late,ktls,netns,other"},
};

/* Of alternatives, the first that is known: FILE|fd:N is a file. */
static const char *known_kind(struct bytes alternatives)
{
	while (alternatives.size) {
		struct bytes one = bytes_take(&alternatives, bytes_find(alternatives, '|'));

		bytes_take(&alternatives, 1);
		for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
			if (bytes_equal(one, bytes_of_string(kinds[i].argument)))
				return kinds[i].kind;
	}
	return NULL;
}

static bool is_literal(const char *argument)
{
	for (; *argument; argument++)
		if (!(*argument >= 'a' && *argument <= 'z') && *argument != '-' && *argument != '|')
			return false;
	return true;
}

int completion_kind(const char *argument, struct buffer *out)
{
	const char *kind = known_kind(bytes_of_string(argument));
	int err;

	if (kind || !is_literal(argument))
		return say(out, "%s", kind ? kind : "text");
	err = say(out, "words:");
	for (; !err && *argument; argument++)
		err = buffer_append_byte(out, *argument == '|' ? ',' : (uint8_t)*argument);
	return err;
}

static const char values[] =
	"# bash completion for nightclerk: what `nightclerk completion bash` prints.\n"
	"# shellcheck shell=bash disable=SC2054 # the commas are between the words of one value\n\n"
	"_nightclerk_value() { # KIND WORD: what may be a value of that kind\n"
	"\tlocal words=${1#*:} kept=''\n\n"
	"\tcase $1 in\n"
	"\tfile | files)\n"
	"\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -f -- \"$2\") ;;\n"
	"\tdirectory)\n"
	"\t\tcompopt -o filenames 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -d -- \"$2\") ;;\n"
	"\tuser) mapfile -t COMPREPLY < <(compgen -u -- \"$2\") ;;\n"
	"\tcommand) mapfile -t COMPREPLY < <(compgen -c -- \"$2\") ;;\n"
	"\twords:*) mapfile -t COMPREPLY < <(compgen -W \"${words//,/ }\" -- \"$2\") ;;\n"
	"\tlist:*)\n"
	"\t\tkept=${2%\"${2##*,}\"}\n"
	"\t\tcompopt -o nospace 2>/dev/null\n"
	"\t\tmapfile -t COMPREPLY < <(compgen -P \"$kept\" -W \"${words//,/ }\" -- \"${2##*,}\") ;;\n"
	"\tesac\n"
	"}\n\n"
	"_nightclerk_command() { # INDEX: of the word where a command of the user's own begins\n"
	"\tif declare -F _comp_command_offset >/dev/null; then\n"
	"\t\t_comp_command_offset \"$1\"\n"
	"\telif declare -F _command_offset >/dev/null; then\n"
	"\t\t_command_offset \"$1\"\n"
	"\telif (($1 == COMP_CWORD)); then\n"
	"\t\t_nightclerk_value command \"${COMP_WORDS[COMP_CWORD]}\"\n"
	"\telse\n"
	"\t\t_nightclerk_value file \"${COMP_WORDS[COMP_CWORD]}\"\n"
	"\tfi\n"
	"}\n\n"
	"_nightclerk() {\n"
	"\tlocal cur=${COMP_WORDS[COMP_CWORD]} i word option kind ended='' count=0 options=() operands=()\n\n"
	"\tCOMPREPLY=()\n"
	"\tif ((COMP_CWORD == 1)); then\n"
	"\t\t_nightclerk_value words:";

static const char commands[] =
	"--help,--version \"$cur\"\n"
	"\t\treturn\n"
	"\tfi\n"
	"\tcase ${COMP_WORDS[1]} in\n";

static const char walk[] =
	"\t*) return ;;\n"
	"\tesac\n"
	"\tfor ((i = 2; i < COMP_CWORD; i++)); do\n"
	"\t\tword=${COMP_WORDS[i]} kind=''\n"
	"\t\tfor option in \"${options[@]}\"; do\n"
	"\t\t\t[[ $ended || $option != \"$word:\"* ]] || kind=${option#*:}\n"
	"\t\tdone\n"
	"\t\tif [[ $kind ]]; then\n"
	"\t\t\t[[ ${COMP_WORDS[i + 1]} != = ]] || ((++i))\n"
	"\t\t\tif ((++i >= COMP_CWORD)); then\n"
	"\t\t\t\t_nightclerk_value \"$kind\" \"${cur#=}\"\n"
	"\t\t\t\treturn\n"
	"\t\t\tfi\n"
	"\t\telif [[ $ended || $word != -?* || $word == -- ]]; then\n"
	"\t\t\tif [[ ${operands[0]} == command ]]; then\n"
	"\t\t\t\t[[ $word != -- ]] || ((++i))\n"
	"\t\t\t\t_nightclerk_command \"$i\"\n"
	"\t\t\t\treturn\n"
	"\t\t\tfi\n"
	"\t\t\t[[ ! $ended && $word == -- ]] || ((++count))\n"
	"\t\t\t[[ $word != -- ]] || ended=1\n"
	"\t\tfi\n"
	"\tdone\n"
	"\toption=${options[*]%%:*}\n"
	"\tif [[ ! $ended && ($cur == -* || (! $cur && ${operands[0]} == command)) ]]; then\n"
	"\t\t[[ ${operands[0]} != command ]] || option+=' --'\n"
	"\t\t_nightclerk_value \"words:${option// /,}\" \"$cur\"\n"
	"\telse\n"
	"\t\tkind=${operands[count]}\n"
	"\t\t[[ $kind || ${operands[*]} != *files ]] || kind=files\n"
	"\t\t_nightclerk_value \"$kind\" \"$cur\"\n"
	"\tfi\n"
	"}\n\n"
	"complete -F _nightclerk nightclerk\n";

static int append_options(enum command_line_verb verb, struct buffer *out)
{
	const struct option_row *row = NULL;
	int err = 0;

	while (!err && (row = command_option_next(verb, row))) {
		err = say(out, "%s--%s%s", row == command_option_next(verb, NULL) ? "" : " ", row->name,
			  row->argument ? ":" : "");
		if (!err && row->argument)
			err = completion_kind(row->argument, out);
	}
	return err;
}

static int append_operands(const struct command_row *command, struct buffer *out)
{
	struct bytes rest = bytes_of_string(command->operands);
	int err = 0;

	while (!err && rest.size) {
		struct bytes word = bytes_take(&rest, bytes_find(rest, ' '));
		char name[16];

		bytes_take(&rest, 1);
		snprintf(name, sizeof(name), "%.*s", (int)word.size, (const char *)word.data);
		err = completion_kind(name, out);
		if (!err && rest.size)
			err = buffer_append_byte(out, ' ');
	}
	return err;
}

static int append_command(const struct command_row *command, struct buffer *out)
{
	int err = say(out, "\t%s)\n\t\toptions=(", command->name);

	if (!err)
		err = append_options(command->verb, out);
	if (!err)
		err = say(out, ")\n\t\toperands=(");
	if (!err)
		err = append_operands(command, out);
	if (!err)
		err = say(out, ") ;;\n");
	return err;
}

static int append_names(struct buffer *out)
{
	const struct command_row *command;
	int err = 0;

	for (size_t i = 0; !err && (command = command_at(i)); i++)
		err = say(out, "%s,", command->name);
	return err;
}

int completion_bash(struct buffer *out)
{
	const struct command_row *command;
	int err = buffer_append(out, bytes_of_string(values));

	if (!err)
		err = append_names(out);
	if (!err)
		err = buffer_append(out, bytes_of_string(commands));
	for (size_t i = 0; !err && (command = command_at(i)); i++)
		err = append_command(command, out);
	return err ? err : buffer_append(out, bytes_of_string(walk));
}
