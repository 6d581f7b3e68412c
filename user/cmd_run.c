/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk run`: holds the command back until the probes are on, follows it
 * to its end, lingers for calls that are still open, judges, reports.
 */
#include "commands.h"
#include "launch.h"
#include "observer.h"
#include "run_options.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct run {
	struct run_options options;
	struct observer *observer;
	struct launch child;
	int signal_fd;
	bool child_over;
	int child_status; /* as a shell reports it */
};

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* SIGCHLD and the signals that ask us to end come through a descriptor. */
static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void reap(struct run *run)
{
	int status;

	while (!run->child_over && waitpid(run->child.pid, &status, WNOHANG) == run->child.pid) {
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue;
		run->child_over = true;
		run->child_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
}

/*
 * A terminal's Ctrl-C reached the command already, which shares our process
 * group (the kernel sent it: SI_KERNEL). What a process sent to us alone is
 * passed on. Either way the command decides, and we judge when it has ended.
 */
static void take_signals(struct run *run)
{
	struct signalfd_siginfo info;

	while (read(run->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			reap(run);
		else if (info.ssi_code != SI_KERNEL && !run->child_over)
			kill(run->child.pid, (int)info.ssi_signo);
	}
}

static void wait_turn(struct run *run)
{
	struct pollfd fds[] = {
		{.fd = observer_fd(run->observer), .events = POLLIN},
		{.fd = run->signal_fd, .events = POLLIN},
		{.fd = observer_control_fd(run->observer), .events = POLLIN},
	};

	poll(fds, sizeof(fds) / sizeof(fds[0]), OBSERVER_PERIOD_MS);
	take_signals(run);
}

static void follow(struct run *run)
{
	uint64_t deadline;

	while (!run->child_over) {
		wait_turn(run);
		observer_turn(run->observer);
	}
	deadline = now_ns() + run->options.linger_ns;
	while (observer_open_calls(run->observer) && now_ns() < deadline) {
		wait_turn(run);
		observer_turn(run->observer);
	}
}

static void print_report(const struct run *run)
{
	struct bytes alerts = observer_alerts(run->observer);

	if (run->options.quiet)
		return;
	if (alerts.size)
		fwrite(alerts.data, 1, alerts.size, stderr);
	fprintf(stderr, "%s\n", observer_summary_line(run->observer));
}

static struct alert_style style_of_terminal(void)
{
	struct alert_style style = {0};
	struct winsize size;
	const char *no_colour = getenv("NO_COLOR");

	if (!isatty(STDERR_FILENO))
		return style;
	style.colour = !no_colour || !*no_colour;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0)
		style.width = size.ws_col;
	return style;
}

static int open_observer(struct run *run, char *reason)
{
	const struct run_options *options = &run->options;
	struct observer_options observer = {
		.capture = {.scope = CAPTURE_TREE, .door = options->door, .data_ring_bytes = options->ring_bytes},
		.pipeline = {.judge = options->judge, .no_alerts = options->quiet, .style = style_of_terminal()},
		.ledger = options->ledger,
		.events = options->events,
		.recording = options->recording,
		.append_mark = true,
		.canary = true,
		.control = true,
		.owner = output_owner_of_environment(),
		.scope = "tree",
		.command = options->command[0],
		.argument_count = options->command_argc - 1,
	};
	int err = observer_open(&observer, &run->observer, reason);

	if (err)
		return err;
	err = capture_add_process(observer_capture(run->observer), (uint32_t)run->child.pid);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot follow the command: %s", strerror(-err));
	return err;
}

static int start(struct run *run)
{
	char reason[OUTPUT_REASON_MAX] = "";
	int err = launch_hold(&run->child, run->options.command);

	if (err) {
		fprintf(stderr, "nightclerk: cannot start a process: %s\n", strerror(-err));
		return EXIT_NOT_STARTED;
	}
	err = open_observer(run, reason);
	if (err) {
		fprintf(stderr, "nightclerk: %s; the command was not started\n", reason);
		launch_cancel(&run->child);
		return EXIT_NOT_STARTED;
	}
	err = launch_release(&run->child);
	if (err) {
		fprintf(stderr, "nightclerk: %s: %s\n", run->options.command[0], strerror(-err));
		return err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
	}
	return 0;
}

int cmd_run(int argc, char **argv)
{
	struct run run = {0};
	int status;

	switch (run_options_parse(argc, argv, &run.options)) {
	case RUN_OPTIONS_HELP:
		return 0;
	case RUN_OPTIONS_BAD:
		return EXIT_NOT_STARTED;
	case RUN_OPTIONS_OK:
		break;
	}
	run.signal_fd = open_signals();
	status = start(&run);
	if (status == 0) {
		follow(&run);
		if (observer_finish(run.observer, run.child_status))
			fprintf(stderr, "nightclerk: the end of the run could not be read from the kernel\n");
		print_report(&run);
		status = observer_exit_status(run.observer);
	}
	observer_close(run.observer);
	close(run.signal_fd);
	return status;
}
