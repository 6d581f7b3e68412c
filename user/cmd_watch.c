/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk watch`, plain form: one aligned line per call as it completes,
 * and a block per finding as it arises, folded.
 */
#include "call_line.h"
#include "commands.h"
#include "session.h"

#include <unistd.h>

/* Calls first: the block of a finding stands below the line of its call. */
static void show(struct session *session)
{
	struct bytes calls = observer_calls(session->observer);
	struct bytes alerts = observer_alerts(session->observer);

	if (calls.size)
		fwrite(calls.data, 1, calls.size, stdout);
	if (alerts.size)
		fwrite(alerts.data, 1, alerts.size, stdout);
	if (calls.size || alerts.size)
		fflush(stdout);
	observer_take_calls(session->observer);
	observer_take_alerts(session->observer);
	if (session->resized) {
		observer_set_style(session->observer, session_style(STDOUT_FILENO));
		session->resized = false;
	}
}

static void show_header(void)
{
	struct alert_style style = session_style(STDOUT_FILENO);
	struct buffer header = {0};

	if (call_line_header(&style, &header) == 0)
		fwrite(header.data, 1, header.size, stdout);
	fflush(stdout);
	buffer_done(&header);
}

int cmd_watch(int argc, char **argv)
{
	struct session session = {0};
	struct observer_options options;
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
	options.pipeline.live_alerts = options.pipeline.live_calls = true;
	options.control = session.line.command != NULL;
	status = session_start(&session, &options);
	if (status == 0) {
		show_header();
		while (!session_over(&session)) {
			session_turn(&session);
			show(&session);
		}
		session_finish(&session);
		show(&session);
		fprintf(stderr, "%s\n", observer_summary_line(session.observer));
	}
	session_done(&session);
	return status == 0 ? 0 : 1;
}
