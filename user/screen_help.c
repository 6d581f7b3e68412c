/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ? shows: first what one comes for, then every key.
 */
#include "screen_pages.h"

static const struct {
	const char *key;  /* NULL = a heading, or a line of text */
	const char *text;
	bool steps; /* only where a recording is shown */
} lines[] = {
	{NULL, "TO SEE BOTH ATTEMPTS BEHIND A DUPLICATE", false},
	{"f", "go to the findings at the top: one line for each duplicate, worst first", false},
	{"up, down", "choose one", false},
	{"Enter", "both attempts side by side: who, when, what was sent and read; Esc comes back", false},
	{NULL, "Enter on a call does the same. Letters before calls: H M L ? i, the finding is high, medium, low, undecidable, info; "
	       "+, it was sent again later.", false},
	{NULL, "", false},
	{NULL, "STEPPING THROUGH A RECORDING", true},
	{"]  [", "one event on, one back", true},
	{"}  {", "one second on, one back", true},
	{"Space", "play from here as fast as it was; again: stop", true},
	{NULL, "", true},
	{NULL, "MOVING", false},
	{"Tab", "next pane: findings, calls, processes and paths, the command's output", false},
	{"up k, down j", "one line; PgUp, PgDn: a page; Home g, End G: to the ends (End of calls: follow the newest)", false},
	{"Enter", "on a finding or a call: its story; on a process and path: its calls", false},
	{NULL, "", false},
	{NULL, "CHOOSING", false},
	{"/", "filter: words that must all be found in method, path, command, pid or finding; !word must not", false},
	{"", "in one of them only: method:post path:/v1 pid:4711 command:curl status:5xx finding:dup", false},
	{"Esc", "no filter", false},
	{"s", "sort the calls (time, slowest, largest, status) or the table (duplicates, calls, tokens, process)", false},
	{"p", "hold the lists still, and go on; calls are counted all the while", false},
	{NULL, "", false},
	{NULL, "AND", false},
	{"w", "write what is shown into a file: all lines, also those beyond the screen", false},
	{"b", "bell at a new finding, or not", false},
	{"Ctrl-L", "paint the screen again", false},
	{"q", "leave", false},
	{NULL, "", false},
	{NULL, "THE TABLE", false},
	{"MUT", "calls that change something: POST and kin, unless known to be reads", false},
	{"ATTEMPTS", "calls that were sent before with the same content or key", false},
	{"DUPS", "of them, those with a finding of low or worse", false},
	{NULL, "", false},
	{NULL, "NOT SEEN", false},
	{"holes", "bytes that the probe could not copy", false},
	{"blind", "streams that cannot be read: TLS, HTTP/2, ...", false},
	{"ring", "how full the buffer between kernel and nightclerk is; at 100% bytes are lost", false},
};

#define KEY_COLUMNS 14

/* The front of text that fits, broken at a space. */
static struct bytes take_words(struct bytes *text, unsigned int columns)
{
	size_t fits = text->size < columns ? text->size : columns;
	struct bytes piece;

	if (fits < text->size)
		while (fits && text->data[fits] != ' ')
			fits--;
	piece = bytes_take(text, fits ? fits : columns);
	bytes_take(text, text->size && text->data[0] == ' ');
	return piece;
}

size_t screen_help(const struct screen_model *model, struct screen_frame *frame, const struct screen_window *window)
{
	size_t line = 0;

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct bytes text = bytes_of_string(lines[i].text);
		unsigned int indent = lines[i].key ? KEY_COLUMNS : 0;
		unsigned int width = frame->columns > indent + 8 ? frame->columns - indent : 8;
		bool heading = !lines[i].key && text.size && text.data[text.size - 1] != '.';
		bool first = true;

		if (lines[i].steps && !model->can_step)
			continue;
		do {
			struct bytes piece = take_words(&text, width);
			bool shown = line >= window->scroll && line - window->scroll < window->rows;
			unsigned int row = shown ? window->top + (unsigned int)(line - window->scroll) : 0;

			if (shown && lines[i].key && first)
				screen_frame_say(frame, row, 0, KEY_COLUMNS - 1, STYLE_BOLD, "%s", lines[i].key);
			if (shown)
				screen_frame_text(frame, row, indent, width, heading ? STYLE_BOLD : STYLE_PLAIN, piece);
			line++;
			first = false;
		} while (text.size);
	}
	return line;
}
