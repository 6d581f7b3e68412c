/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk watch`, plain form: one aligned line per call as it completes,
 * and a block per finding as it arises, folded.
 */
#include "call_line.h"
#include "commands.h"
#include "session.h"

#include <unistd.h>

/* Who looks may have stopped the terminal: the kernel's rings are emptied all the same. */
static struct output *open_screen(void)
{
	const struct output_owner self = {(uid_t)-1, (gid_t)-1};
	char reason[OUTPUT_REASON_MAX];
	struct output *screen = NULL;

	if (output_open("-", true, &self, &screen, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return NULL;
	}
	output_never_wait(screen);
	return screen;
}

/* Where standard output holds the events, it holds nothing else. */
static bool has_table(const struct session *session)
{
	return !session->line.events || strcmp(session->line.events, "-") != 0;
}

/* Calls first: the block of a finding stands below the line of its call. */
static void show(struct session *session, struct output *screen)
{
	output_write(screen, observer_calls(session->observer), NULL);
	output_write(screen, observer_alerts(session->observer), NULL);
	observer_take_calls(session->observer);
	observer_take_alerts(session->observer);
	if (session->resized) {
		observer_set_style(session->observer, session_style(STDOUT_FILENO));
		session->resized = false;
	}
}

static void show_header(struct output *screen)
{
	struct alert_style style = session_style(STDOUT_FILENO);
	struct buffer header = {0};

	if (call_line_header(&style, &header) == 0)
		output_write(screen, buffer_bytes(&header), NULL);
	buffer_done(&header);
}

static void watch(struct session *session, struct output *screen)
{
	if (has_table(session))
		show_header(screen);
	while (!session_over(session)) {
		session_turn(session);
		show(session, screen);
	}
	session_finish(session);
	show(session, screen);
	output_flush(screen);
	fprintf(stderr, "%s\n", observer_summary_line(session->observer));
}

int cmd_watch(int argc, char **argv)
{
	struct session session = {0};
	struct observer_options options;
	struct output *screen;
	int status;

	switch (command_line_parse(COMMAND_LINE_WATCH, argc, argv, &session.line)) {
	case COMMAND_LINE_HELP:
		return 0;
	case COMMAND_LINE_BAD:
		return EXIT_USAGE;
	case COMMAND_LINE_OK:
		break;
	}
	session_observer_options(&session.line, &options);
	options.pipeline.style = session_style(STDOUT_FILENO);
	options.pipeline.live_alerts = options.pipeline.live_calls = has_table(&session);
	options.pipeline.no_alerts = !has_table(&session);
	options.control = session.line.command != NULL;
	screen = open_screen();
	status = screen ? session_start(&session, &options) : EXIT_NOT_STARTED;
	if (status == 0)
		watch(&session, screen);
	session_done(&session);
	output_close(screen);
	return status == 0 ? 0 : 1;
}
