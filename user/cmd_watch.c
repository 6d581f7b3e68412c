/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk watch`: on a terminal the full screen (watch_screen.c), else the
 * plain form: one aligned line per call as it completes, and a block per finding
 * as it arises, folded.
 */
#include "call_line.h"
#include "command_output.h"
#include "commands.h"
#include "watch_screen.h"

#include <unistd.h>

/* Who looks may have stopped the terminal: the kernel's rings are emptied all the same. */
static struct output *open_lines(void)
{
	const struct output_owner self = {(uid_t)-1, (gid_t)-1};
	char reason[OUTPUT_REASON_MAX];
	struct output *lines = NULL;

	if (output_open("-", true, &self, &lines, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return NULL;
	}
	output_never_wait(lines);
	return lines;
}

/* Where standard output holds the events, it holds nothing else. */
static bool has_table(const struct session *session)
{
	return !session->line.events || strcmp(session->line.events, "-") != 0;
}

/* The plain form: lines to standard output, the command's output to a file where that was asked for. */
struct plain_watch {
	struct session *session;
	struct output *lines;
	unsigned int width; /* of the lines; 0 = no terminal */
	struct command_output output;
	struct screen_model *model; /* only where somebody is to be told of findings */
	struct notify *notify;
};

static void show_header(const struct alert_style *style, struct output *lines)
{
	struct buffer header = {0};

	if (call_line_header(style, &header) == 0)
		output_write(lines, buffer_bytes(&header), NULL);
	buffer_done(&header);
}

/* The terminal has another width: the header once more where there are other columns. */
static void take_width(struct plain_watch *watch)
{
	struct alert_style style = session_style(STDOUT_FILENO);

	if (has_table(watch->session) && !call_line_looks_alike(watch->width, style.width))
		show_header(&style, watch->lines);
	watch->width = style.width;
	observer_set_style(watch->session->observer, style);
}

/* Calls first: the block of a finding stands below the line of its call, where that has ended. */
static void show(struct plain_watch *watch)
{
	struct session *session = watch->session;

	output_write(watch->lines, observer_calls(session->observer), NULL);
	output_write(watch->lines, observer_alerts(session->observer), NULL);
	observer_take_calls(session->observer);
	observer_take_alerts(session->observer);
	if (session->resized)
		take_width(watch);
	session->resized = false;
}

/* In the plain form nobody looks at the model: it only says what people want to hear of. */
static void tell(struct screen_model *model, struct notify *notify)
{
	struct screen_alarm alarm;

	while (model && screen_model_next_alarm(model, &alarm))
		notify_of(notify, &alarm);
	notify_reap(notify);
}

static void look(struct plain_watch *watch)
{
	uint8_t text[64 * 1024];

	while (command_output_take(&watch->output, text, sizeof(text)) == sizeof(text))
		;
	show(watch);
	tell(watch->model, watch->notify);
}

static void watch_plainly(struct plain_watch *watch)
{
	struct alert_style style = session_style(STDOUT_FILENO);

	watch->width = style.width;
	if (has_table(watch->session))
		show_header(&style, watch->lines);
	while (!session_over(watch->session)) {
		session_turn(watch->session);
		look(watch);
	}
	session_finish(watch->session);
	look(watch);
	output_flush(watch->lines);
	session_print_summary(watch->session);
}

static int start_plainly(struct plain_watch *watch, struct observer_options *options)
{
	struct session *session = watch->session;
	char reason[OUTPUT_REASON_MAX];
	int status;

	options->pipeline.style = session_style(STDOUT_FILENO);
	options->pipeline.live_alerts = options->pipeline.live_calls = has_table(session);
	options->pipeline.no_alerts = !has_table(session);
	options->pipeline.screen = watch->model;
	if (session->line.output && command_output_open(&watch->output, session->line.output, session->child.stdio, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return 1;
	}
	status = session_start(session, options);
	command_output_started(session->child.stdio);
	return status;
}

static int watch_plain(struct session *session, struct observer_options *options, struct notify *notify)
{
	struct screen_options model_options = {.title = "watch", .fail_on = session->line.judge.fail_on};
	struct plain_watch watch = {.session = session, .notify = notify, .output = {.fd = -1}};
	int status = 1;

	watch.lines = open_lines();
	watch.model = notify->command ? screen_model_new(&model_options) : NULL;
	if (notify->command && !watch.model)
		fprintf(stderr, "nightclerk: out of memory\n");
	else if (watch.lines)
		status = start_plainly(&watch, options);
	if (status == 0)
		watch_plainly(&watch);
	session_done(session);
	output_close(watch.lines);
	command_output_close(&watch.output);
	screen_model_free(watch.model);
	return status == 0 ? 0 : 1;
}

/* NULL: the plain form it is, because that was asked for or because it must be, which is said. */
static struct screen *find_screen(const struct session *session)
{
	struct screen *screen = NULL;
	const char *reason;

	if (!session->line.plain && has_table(session) && screen_new(&screen, &reason))
		fprintf(stderr, "nightclerk: %s: the plain form instead of the full screen\n", reason);
	return screen;
}

int cmd_watch(int argc, char **argv)
{
	struct session session = {0};
	struct output_owner owner = output_owner_of_environment();
	struct notify notify = {.uid = owner.uid, .gid = owner.gid};
	struct observer_options options;
	struct screen *screen;

	switch (command_line_parse(COMMAND_LINE_WATCH, argc, argv, &session.line)) {
	case COMMAND_LINE_HELP:
		return 0;
	case COMMAND_LINE_BAD:
		return EXIT_USAGE;
	case COMMAND_LINE_OK:
		break;
	}
	session_observer_options(&session.line, &options);
	options.control = session.line.command != NULL;
	notify.command = session.line.notify;
	screen = find_screen(&session);
	if (screen)
		return watch_screen(&session, &options, screen, &notify);
	return watch_plain(&session, &options, &notify);
}
