/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each turn drains the rings before it looks at the terminal. After a command
 * has ended the screen stays until q: that is when one wants to look.
 */
#include "watch_screen.h"
#include "clock.h"
#include "command_output.h"
#include "viewer.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define RING_LOOK_NS (250 * 1000 * 1000ULL)
#define BLOCKS_AT_END 20 /* findings that are printed when the screen has closed */
#define READS_A_TURN 16 /* of what the command prints */

struct watch {
	struct session *session;
	struct viewer viewer;
	struct notify *notify;
	struct command_output output;
	uint64_t looked_ns;    /* at the ring */
	uint64_t linger_until_ns; /* 0 = the command still runs */
	unsigned int quits;    /* how often q was pressed while the command runs */
	bool finished, leave;
};

void watch_title(const struct command_line *line, char *text, size_t size)
{
	const char *name = line->command ? strrchr(line->command[0], '/') : NULL;

	if (line->command)
		snprintf(text, size, "watch -- %.60s", name ? name + 1 : line->command[0]);
	else
		snprintf(text, size, "watch %s", line->scope);
}

static void take_output(struct watch *watch)
{
	uint8_t text[64 * 1024];
	size_t n;

	for (int i = 0; i < READS_A_TURN && (n = command_output_take(&watch->output, text, sizeof(text))) > 0; i++)
		screen_model_output(watch->viewer.model, (struct bytes){text, n});
}

/* ---- turns ---- */

static void look_at_losses(struct watch *watch, uint64_t now_ns)
{
	const struct capture *capture = observer_capture(watch->session->observer);

	if (watch->finished || now_ns < watch->looked_ns + RING_LOOK_NS)
		return;
	watch->looked_ns = now_ns;
	screen_model_ring(watch->viewer.model, capture_ring_fill(capture), capture_ring_peak(capture), capture_ring_size(capture));
	screen_model_store_lost(watch->viewer.model, observer_store_lost(watch->session->observer));
}

static void tell(struct watch *watch)
{
	struct screen_alarm alarm;
	bool any = false;

	while (screen_model_next_alarm(watch->viewer.model, &alarm)) {
		notify_of(watch->notify, &alarm);
		any = true;
	}
	if (any && screen_model_bell(watch->viewer.model))
		screen_bell(watch->viewer.screen);
	notify_reap(watch->notify);
}

/* What comes next is said before it is done. */
static void ask_to_quit(struct watch *watch)
{
	static const char *const words[] = {
		"the command still runs: q again sends it SIGTERM, and the screen closes when it has ended",
		"SIGTERM is sent; q again: SIGKILL",
		"SIGKILL is sent",
	};
	static const int signals[] = {0, SIGTERM, SIGKILL};
	struct session *session = watch->session;
	unsigned int i = watch->quits < 2 ? watch->quits : 2;

	if (!session->child_started || session->child_over) {
		watch->leave = true;
		return;
	}
	if (signals[i])
		kill(session->child.pid, signals[i]);
	screen_model_say(watch->viewer.model, words[i]);
	watch->quits++;
}

static void say_state(struct watch *watch)
{
	const struct session *session = watch->session;
	char text[64] = "LIVE";

	if (session->child_over)
		snprintf(text, sizeof(text), "%s: exit status %d", watch->finished ? "OVER" : "ending", session->child_status);
	screen_model_state(watch->viewer.model, text);
}

/* The command has ended: open calls get their time, then all is judged. */
static void finish_when_due(struct watch *watch, uint64_t now_ns)
{
	struct session *session = watch->session;

	if (!session_over(session) || watch->finished)
		return;
	if (watch->linger_until_ns == 0)
		watch->linger_until_ns = now_ns + session->line.linger_ns;
	if (session->child_started && observer_open_calls(session->observer) && now_ns < watch->linger_until_ns)
		return;
	session->line.linger_ns = 0;
	session_finish(session);
	observer_detach(session->observer);
	take_output(watch);
	watch->finished = true;
	watch->leave |= watch->quits > 1;
}

static void turn(struct watch *watch)
{
	struct session *session = watch->session;
	uint64_t now_ns;

	session_turn(session);
	observer_take_calls(session->observer);
	now_ns = clock_monotonic_ns();
	take_output(watch);
	look_at_losses(watch, now_ns);
	tell(watch);
	finish_when_due(watch, now_ns);
	say_state(watch);
	if (session->resized) {
		viewer_resized(&watch->viewer);
		session->resized = false;
	}
	if (screen_gone(watch->viewer.screen))
		watch->leave |= watch->finished || !session->child_started;
	else if (viewer_turn(&watch->viewer, now_ns) == SCREEN_QUIT)
		ask_to_quit(watch);
	watch->leave |= session_over(session) && session->asked;
}

static int start(struct watch *watch, struct observer_options *options)
{
	struct session *session = watch->session;
	char reason[OUTPUT_REASON_MAX];
	int status;

	if (session->line.command && command_output_open(&watch->output, session->line.output, session->child.stdio, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		return 1;
	}
	if (session->line.command && isatty(STDIN_FILENO)) /* the keys are ours */
		session->child.stdio[0] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	status = session_start(session, options);
	command_output_started(session->child.stdio);
	return status;
}

static struct screen_model *new_model(const struct session *session)
{
	char title[96];
	struct screen_options options = {
		.title = title, .fail_on = session->line.judge.fail_on, .has_output = session->line.command != NULL};

	watch_title(&session->line, title, sizeof(title));
	return screen_model_new(&options);
}

/* The first blocks of an alert text, each of which begins with our name; *ret_more: how many there are beside them. */
static struct bytes first_blocks(struct bytes alerts, size_t *ret_more)
{
	struct bytes rest = alerts, shown = {alerts.data, 0};
	size_t blocks = 0;

	while (rest.size) {
		struct bytes line = bytes_take(&rest, bytes_find(rest, '\n') + 1);

		blocks += bytes_starts_with(line, BYTES("nightclerk: "));
		if (blocks <= BLOCKS_AT_END)
			shown.size += line.size;
	}
	*ret_more = blocks > BLOCKS_AT_END ? blocks - BLOCKS_AT_END : 0;
	return shown;
}

/* What was on the screen is gone with it: the worst findings once more, and the sums. */
static void print_end(const struct session *session)
{
	size_t more;
	struct bytes alerts = first_blocks(observer_alerts(session->observer), &more);

	if (alerts.size)
		fwrite(alerts.data, 1, alerts.size, stderr);
	if (more)
		fprintf(stderr, "nightclerk: and %zu findings more; --events FILE keeps all of them\n", more);
	session_print_summary(session);
}

static int run(struct watch *watch, struct observer_options *options, struct screen *screen)
{
	int status, err;

	options->pipeline.screen = watch->viewer.model;
	options->pipeline.style = session_style(STDERR_FILENO);
	status = start(watch, options);
	if (status)
		return 1;
	err = viewer_open(&watch->viewer, screen, watch->viewer.model);
	if (err)
		fprintf(stderr, "nightclerk: the terminal cannot be used: %s; give --plain\n", strerror(-err));
	while (!err && !watch->leave)
		turn(watch);
	if (err && watch->session->child_started && !watch->session->child_over)
		kill(watch->session->child.pid, SIGTERM);
	if (!watch->finished)
		session_finish(watch->session);
	watch->finished = true;
	return err ? 1 : 0;
}

int watch_screen(struct session *session, struct observer_options *options, struct screen *screen, struct notify *notify)
{
	struct watch watch = {.session = session, .notify = notify, .output = {.fd = -1}};
	int status = 1;

	watch.viewer.model = new_model(session);
	watch.viewer.screen = screen;
	if (!watch.viewer.model)
		fprintf(stderr, "nightclerk: out of memory\n");
	else
		status = run(&watch, options, screen);
	screen_close(watch.viewer.screen);
	watch.viewer.screen = NULL;
	if (status == 0)
		print_end(session);
	/* The observer's pipeline knows the model: first that one goes, then this. */
	session_done(session);
	command_output_close(&watch.output);
	viewer_close(&watch.viewer);
	return status;
}
