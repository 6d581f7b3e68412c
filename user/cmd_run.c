/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk run`: follows a command to its end, judges, reports, and answers
 * with the command's own status, 10 or 11.
 */
#include "commands.h"
#include "session.h"

#include <unistd.h>

static void print_report(const struct session *session)
{
	struct bytes alerts = observer_alerts(session->observer);

	if (session->line.quiet)
		return;
	if (alerts.size)
		fwrite(alerts.data, 1, alerts.size, stderr);
	fprintf(stderr, "%s\n", observer_summary_line(session->observer));
	if (observer_is_short(session->observer))
		fprintf(stderr, "nightclerk: not every line could be written: exit %d\n",
			observer_exit_status(session->observer));
}

int cmd_run(int argc, char **argv)
{
	struct session session = {0};
	struct observer_options options;
	int status;

	switch (command_line_parse(COMMAND_LINE_RUN, argc, argv, &session.line)) {
	case COMMAND_LINE_HELP:
		return 0;
	case COMMAND_LINE_BAD:
		return EXIT_NOT_STARTED;
	case COMMAND_LINE_OK:
		break;
	}
	session_observer_options(&session.line, &options);
	options.pipeline.no_alerts = session.line.quiet && !session.line.junit;
	options.pipeline.style = session_style(STDERR_FILENO);
	options.append_mark = true;
	options.control = true;
	options.junit = session.line.junit;
	status = session_start(&session, &options);
	if (status == 0) {
		while (!session_over(&session))
			session_turn(&session);
		session_finish(&session);
		print_report(&session);
		status = observer_exit_status(session.observer);
	}
	session_done(&session);
	return status;
}
