/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mdoc(7): a line that begins with . or ' is a request, \ begins an escape, and
 * a word of a macro's line that is a macro's name is one.
 */
#include "manual.h"
#include "say.h"

static int append_text(const char *text, struct buffer *out)
{
	int err = 0;

	for (const char *at = text; !err && *at; at++) {
		if (at == text && (*at == '.' || *at == '\''))
			err = say(out, "\\&");
		if (err)
			break;
		switch (*at) {
		case '\\':
			err = say(out, "\\e");
			break;
		case '-':
			err = say(out, "\\-");
			break;
		case '`':
			err = say(out, "\\(ga");
			break;
		case '\'':
			err = say(out, "\\(aq");
			break;
		default:
			err = buffer_append_byte(out, (uint8_t)*at);
		}
	}
	return err;
}

/* The value is one argument of the macro, blanks and all; \& keeps it from being a macro itself. */
static int append_option(const struct option_row *row, struct buffer *out)
{
	int err = say(out, ".It Fl \\-");

	if (!err)
		err = append_text(row->name, out);
	if (!err && row->argument)
		err = say(out, " Ar \"\\&");
	if (!err && row->argument)
		err = append_text(row->argument, out);
	if (!err && row->argument)
		err = say(out, "\"");
	if (!err)
		err = say(out, "\n");
	if (!err)
		err = append_text(row->help, out);
	return err ? err : say(out, ".\n");
}

int manual_options(enum command_line_verb verb, struct buffer *out)
{
	const struct option_row *row = NULL;
	int err = say(out, ".Bl -tag -width Ds\n");

	while (!err && (row = command_option_next(verb, row)))
		err = append_option(row, out);
	return err ? err : say(out, ".El\n");
}
