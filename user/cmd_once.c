/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk once`: reserve, run, keep what it printed. The lease is renewed
 * while the command runs, so it may be short; a command does not outlive us,
 * or two of them could run after the lease.
 */
#include "asked.h"
#include "clock.h"
#include "commands.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define READ_BYTES (64 * 1024)
#define RENEWALS_A_LEASE 3

struct once {
	struct asking asking;
	sigset_t caller_mask;
	int signal_fd;
	int output_fd; /* what the command prints */
	pid_t pid;
	bool over;
	int status; /* as a shell reports it */
	bool too_long;
	bool lost_hold; /* the lease was over, and somebody else went on */
};

/* ---- the command ---- */

static _Noreturn void run_child(const struct once *once, pid_t parent, int output_fd)
{
	char **argv = once->asking.line.command;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(EXIT_NOT_STARTED);
	sigprocmask(SIG_SETMASK, &once->caller_mask, NULL);
	dup2(output_fd, STDOUT_FILENO);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "nightclerk once: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

static int start(struct once *once)
{
	pid_t parent = getpid();
	sigset_t set;
	int output[2];

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, &once->caller_mask);
	signal(SIGPIPE, SIG_IGN);
	once->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (once->signal_fd < 0 || pipe2(output, O_CLOEXEC))
		return -errno;
	once->pid = fork();
	if (once->pid == 0) {
		signal(SIGPIPE, SIG_DFL);
		run_child(once, parent, output[1]);
	}
	close(output[1]);
	once->output_fd = output[0];
	fcntl(once->output_fd, F_SETFL, O_NONBLOCK);
	return once->pid < 0 ? -errno : 0;
}

/* A terminal's Ctrl-C reached the command already; what was sent to us alone is passed on. */
static void take_signals(struct once *once)
{
	struct signalfd_siginfo info;
	int status;

	while (read(once->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD && info.ssi_code != SI_KERNEL && !once->over)
			kill(once->pid, (int)info.ssi_signo);
	if (once->over || waitpid(once->pid, &status, WNOHANG) != once->pid)
		return;
	once->over = true;
	once->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Passes on what it printed, and keeps it. */
static void take_output(struct once *once)
{
	struct buffer *kept = &once->asking.result;
	uint8_t bytes[READ_BYTES];
	ssize_t n;

	while ((n = read(once->output_fd, bytes, sizeof(bytes))) > 0) {
		asked_print((struct bytes){bytes, (size_t)n});
		once->too_long |= kept->size + (size_t)n > STORE_RESULT_MAX;
		if (!once->too_long && buffer_append(kept, (struct bytes){bytes, (size_t)n}))
			once->too_long = true;
	}
	if (n == 0) {
		close(once->output_fd);
		once->output_fd = -1;
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

static void follow(struct once *once)
{
	int64_t period_ns = once->asking.line.lease_ns / RENEWALS_A_LEASE, next_ns = (int64_t)clock_monotonic_ns() + period_ns;

	while (!once->over) {
		struct pollfd fds[] = {{.fd = once->signal_fd, .events = POLLIN}, {.fd = once->output_fd, .events = POLLIN}};

		int64_t wait_ms = (next_ns - (int64_t)clock_monotonic_ns()) / 1000000;

		poll(fds, 2, wait_ms < 0 ? 0 : wait_ms < INT32_MAX ? (int)wait_ms + 1 : INT32_MAX);
		if ((int64_t)clock_monotonic_ns() >= next_ns) {
			renew(once);
			next_ns = (int64_t)clock_monotonic_ns() + period_ns;
		}
		if (once->output_fd >= 0)
			take_output(once);
		take_signals(once);
	}
	if (once->output_fd >= 0)
		take_output(once);
}

/* ---- before and after ---- */

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
	return asked_print(buffer_bytes(&asking->result)) ? EXIT_NOT_STARTED : 0;
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
	if (once->status == 0)
		return keep(once);
	snprintf(reason, sizeof(reason), "exit_%d", once->status);
	give_back(once, reason);
	return once->status;
}

int cmd_once(int argc, char **argv)
{
	struct once once = {.output_fd = -1};
	int status = asking_start(COMMAND_LINE_ONCE, argc, argv, &once.asking);

	if (status)
		status = status == 2 ? EXIT_NOT_STARTED : status - 1;
	else if ((status = asking_open(&once.asking, true, EXIT_NOT_STARTED)) == 0)
		status = run(&once);
	asking_done(&once.asking);
	return status;
}
