/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk once`: reserve, run, keep what it printed. The lease is renewed
 * while the command runs, so it may be short; what it started does not outlive
 * us (guard.h), or two of them could run after the lease. Like $(...) in a
 * shell it waits for the end of the output, not of the command alone.
 */
#include "asked.h"
#include "clock.h"
#include "commands.h"
#include "guard.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define RENEWALS_A_LEASE 3
#define EXIT_BROKEN_PIPE (128 + SIGPIPE)

struct once {
	struct asking asking;
	sigset_t caller_mask;
	int signal_fd;
	int output[2]; /* what the command prints; read end, write end */
	struct guard guard;
	bool over;
	int signal; /* the last one that came to us; 0 = none */
	int status; /* as a shell reports it */
	bool too_long;
	bool lost_hold; /* the lease was over, and somebody else went on */
	uint8_t unprinted[PIPE_BUF]; /* what poll(2) finds room for can be written at once */
	size_t unprinted_size;
	int print_error; /* 0 or -errno; then nothing more is printed */
};

/* ---- the command ---- */

static void run_child(void *context)
{
	const struct once *once = context;
	char **argv = once->asking.line.command;

	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &once->caller_mask, NULL);
	dup2(once->output[1], STDOUT_FILENO);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "nightclerk once: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static int start(struct once *once)
{
	sigset_t set;
	int err;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &once->caller_mask);
	signal(SIGPIPE, SIG_IGN);
	once->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (once->signal_fd < 0 || pipe2(once->output, O_CLOEXEC))
		return -errno;
	err = guard_start(run_child, once, &once->guard);
	close(once->output[1]);
	fcntl(once->output[0], F_SETFL, O_NONBLOCK);
	return err;
}

static void end_output(struct once *once)
{
	if (once->output[0] >= 0)
		close(once->output[0]);
	once->output[0] = -1;
}

/* A terminal's Ctrl-C reached the command already; what was sent to us alone is passed on. */
static void take_signals(struct once *once)
{
	struct signalfd_siginfo info;

	while (read(once->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		once->signal = (int)info.ssi_signo;
		if (info.ssi_code != SI_KERNEL && !once->over)
			kill(once->guard.command, once->signal);
	}
}

static bool is_ready(int fd, short events)
{
	return poll(&(struct pollfd){.fd = fd, .events = events}, 1, 0) != 0;
}

/* After a signal nobody waits for what the command left behind, or for a reader: the output is not whole then. */
static void stop_waiting(struct once *once)
{
	if (!once->over || !once->signal)
		return;
	if (once->unprinted_size ? is_ready(STDOUT_FILENO, POLLOUT) : once->output[0] < 0 || is_ready(once->output[0], POLLIN))
		return;
	once->status = 128 + once->signal;
	once->unprinted_size = 0;
	end_output(once);
}

/* Takes as much as can be passed on, and keeps it. */
static void take_output(struct once *once)
{
	struct buffer *kept = &once->asking.result;
	ssize_t n = read(once->output[0], once->unprinted, sizeof(once->unprinted));

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		end_output(once);
	if (n <= 0)
		return;
	once->unprinted_size = once->print_error ? 0 : (size_t)n;
	once->too_long |= kept->size + (size_t)n > STORE_RESULT_MAX;
	if (!once->too_long && buffer_append(kept, (struct bytes){once->unprinted, (size_t)n}))
		once->too_long = true;
}

static void print_some(struct once *once)
{
	ssize_t n = write(STDOUT_FILENO, once->unprinted, once->unprinted_size);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		once->print_error = -errno;
		once->unprinted_size = 0;
	} else if (n > 0) {
		once->unprinted_size -= (size_t)n;
		memmove(once->unprinted, once->unprinted + n, once->unprinted_size);
	}
}

static void renew(struct once *once)
{
	struct store_claim claim = asking_claim(&once->asking, "once");
	struct store_world now;
	bool held;

	process_world(&now);
	claim.world = &now;
	if (store_renew(once->asking.store, &claim, &held)) {
		asking_failed(&once->asking, 0);
	} else if (!held && !once->lost_hold) {
		once->lost_hold = true;
		fprintf(stderr, "nightclerk once: the lease was over before it could be renewed: somebody else may have begun\n");
	}
}

/* Waits for something to do, and does it. */
static void turn(struct once *once, int64_t until_ns)
{
	bool printing = once->unprinted_size != 0;
	struct pollfd fds[] = {
		{.fd = once->signal_fd, .events = POLLIN},
		{.fd = once->over ? -1 : once->guard.fd, .events = POLLIN},
		{.fd = printing ? -1 : once->output[0], .events = POLLIN},
		{.fd = printing ? STDOUT_FILENO : -1, .events = POLLOUT},
	};
	int64_t wait_ms = (until_ns - (int64_t)clock_monotonic_ns()) / 1000000;

	poll(fds, sizeof(fds) / sizeof(fds[0]), wait_ms < 0 ? 0 : wait_ms < INT32_MAX ? (int)wait_ms + 1 : INT32_MAX);
	if (fds[3].revents)
		print_some(once);
	if (fds[2].revents)
		take_output(once);
	if (fds[1].revents)
		once->over = guard_ended(&once->guard, &once->status);
	if (fds[0].revents)
		take_signals(once);
}

static void follow(struct once *once)
{
	int64_t period_ns = once->asking.line.lease_ns / RENEWALS_A_LEASE, next_ns = (int64_t)clock_monotonic_ns() + period_ns;

	while (!once->over || once->output[0] >= 0 || once->unprinted_size) {
		turn(once, next_ns);
		stop_waiting(once);
		if ((int64_t)clock_monotonic_ns() >= next_ns) {
			renew(once);
			next_ns = (int64_t)clock_monotonic_ns() + period_ns;
		}
	}
}

/* ---- before and after ---- */

/* 0, or the exit status of a program whose output could not be written. kept: it can be had again. */
static int explain_print(const struct once *once, int err, bool kept)
{
	if (err == -EPIPE)
		return EXIT_BROKEN_PIPE;
	if (err)
		fprintf(stderr, "nightclerk once: cannot write the output: %s%s%s\n", strerror(-err),
			kept ? "; it is kept: nightclerk get " : "", kept ? once->asking.key : "");
	return err ? EXIT_NOT_STARTED : 0;
}

/* -1: go on and run it; else the exit status. */
static int ask(struct once *once)
{
	struct asking *asking = &once->asking;
	struct store_claim claim = asking_claim(asking, "once");
	enum store_answer answer;
	bool has_result;

	if (store_reserve(asking->store, &claim, &answer, &asking->result, &has_result))
		return asking_failed(asking, EXIT_NOT_STARTED);
	if (answer == STORE_RESERVED)
		return -1;
	if (answer == STORE_PENDING) {
		fprintf(stderr, "nightclerk once: somebody else is at it; nothing was run\n");
		return EXIT_PENDING;
	}
	if (!has_result) {
		fprintf(stderr, "nightclerk once: it is done, but no output was kept; nothing was run\n");
		return EXIT_DONE;
	}
	signal(SIGPIPE, SIG_IGN);
	return explain_print(once, asked_print(buffer_bytes(&asking->result)), true);
}

/* Its own reservation alone: of another one's owner, who may be in a container, we know nothing. */
static void give_back(struct once *once, const char *reason)
{
	struct store_claim claim = asking_claim(&once->asking, "once");
	struct store_world world = *claim.world;
	enum store_release release;

	world.is_gone = NULL;
	claim.world = &world;
	if (store_release(once->asking.store, &claim, reason, &release))
		asking_failed(&once->asking, 0);
}

static int keep(struct once *once)
{
	struct asking *asking = &once->asking;
	struct store_claim claim = asking_claim(asking, "once");
	bool first;

	if (once->too_long)
		fprintf(stderr, "nightclerk once: it printed more than %d MiB, which is not kept\n", STORE_RESULT_MAX >> 20);
	if (store_commit(asking->store, &claim, buffer_bytes(&asking->result), !once->too_long, &first))
		return asking_failed(asking, EXIT_NOT_STARTED);
	if (!first)
		fprintf(stderr, "nightclerk once: somebody else was faster; the first output stays\n");
	return 0;
}

static int run(struct once *once)
{
	char reason[32];
	int status = ask(once), err;

	if (status >= 0)
		return status;
	err = start(once);
	if (err) {
		fprintf(stderr, "nightclerk once: cannot start a process: %s\n", strerror(-err));
		give_back(once, "not_started");
		return EXIT_NOT_STARTED;
	}
	follow(once);
	if (once->status == 0) {
		status = keep(once);
	} else {
		snprintf(reason, sizeof(reason), "exit_%d", once->status);
		give_back(once, reason);
		status = once->status;
	}
	guard_let_go(&once->guard);
	err = explain_print(once, once->print_error, once->status == 0 && status == 0 && !once->too_long);
	return status ? status : err;
}

int cmd_once(int argc, char **argv)
{
	struct once once = {.output = {-1, -1}};
	int status = asking_start(COMMAND_LINE_ONCE, argc, argv, &once.asking);

	if (status)
		status = status == 2 ? EXIT_NOT_STARTED : status - 1;
	else if ((status = asking_open(&once.asking, true, EXIT_NOT_STARTED)) == 0)
		status = run(&once);
	asking_done(&once.asking);
	return status;
}
