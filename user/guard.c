/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process between is a subreaper (prctl(2), PR_SET_CHILD_SUBREAPER): what
 * loses its parent becomes its child, so killing its children until there are
 * none reaches everything, sessions and process groups of their own included. A
 * socket joins it with us: its end of file is our end.
 */
#include "guard.h"
#include "commands.h"
#include "process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILLED 137 /* 128 + SIGKILL */

/* ---- the process between ---- */

/* No pipe of the caller stays open because of us. */
static void close_all_but(int fd)
{
	long max = sysconf(_SC_OPEN_MAX);

	if ((fd == 0 || syscall(SYS_close_range, 0U, (unsigned int)fd - 1, 0U) == 0) &&
	    syscall(SYS_close_range, (unsigned int)fd + 1, ~0U, 0U) == 0)
		return;
	for (int other = 0; other < max; other++) /* before Linux 5.9 */
		if (other != fd)
			close(other);
}

static _Noreturn void kill_all_children(pid_t command)
{
	kill(command, SIGKILL); /* not reaped yet; of the others /proc tells */
	do {
		process_kill_children();
	} while (waitpid(-1, NULL, 0) > 0 || errno == EINTR);
	_exit(0);
}

/* The command is only looked at: its pid is not given to another one while we are told to signal it. */
static void reap(int fd, pid_t command, bool *told)
{
	siginfo_t info = {0};
	int status;

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0 && info.si_pid != command) {
		waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
	if (info.si_pid != command || *told)
		return;
	status = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
	*told = send(fd, &status, sizeof(status), MSG_NOSIGNAL) == sizeof(status);
}

static _Noreturn void watch(int fd, pid_t command)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN}, {.events = POLLIN}};
	struct signalfd_siginfo signal_info;
	bool told = false;
	sigset_t child;
	char word;

	sigemptyset(&child);
	sigaddset(&child, SIGCHLD);
	fds[1].fd = signalfd(-1, &child, SFD_NONBLOCK);
	for (;;) {
		reap(fd, command, &told);
		poll(fds, 2, -1);
		while (read(fds[1].fd, &signal_info, sizeof(signal_info)) > 0)
			;
		if (!fds[0].revents)
			continue;
		if (recv(fd, &word, 1, 0) == 1)
			_exit(0);
		kill_all_children(command);
	}
}

/* All signals are blocked: a terminal's are for the command. */
static _Noreturn void stand_between(int fd, guard_command *run, void *context, const sigset_t *caller_mask)
{
	pid_t between = getpid(), command;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	command = fork();
	if (command == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		sigprocmask(SIG_SETMASK, caller_mask, NULL);
		if (getppid() == between)
			run(context);
		_exit(EXIT_NOT_STARTED);
	}
	if (command < 0)
		command = -errno;
	if (send(fd, &command, sizeof(command), MSG_NOSIGNAL) != sizeof(command) || command < 0)
		_exit(0);
	close_all_but(fd);
	watch(fd, command);
}

/* ---- the caller ---- */

int guard_start(guard_command *run, void *context, struct guard *ret_guard)
{
	struct guard guard = {.command = -EIO};
	sigset_t all, before;
	int fds[2], err;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		return -errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	guard.guard = fork();
	err = errno;
	if (guard.guard == 0) {
		close(fds[0]);
		stand_between(fds[1], run, context, &before);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[1]);
	guard.fd = fds[0];
	if (guard.guard < 0) {
		close(guard.fd);
		return -err;
	}
	if (recv(guard.fd, &guard.command, sizeof(guard.command), 0) != sizeof(guard.command) || guard.command < 0) {
		guard_let_go(&guard);
		return guard.command < 0 ? (int)guard.command : -EIO;
	}
	*ret_guard = guard;
	return 0;
}

bool guard_ended(const struct guard *guard, int *ret_status)
{
	ssize_t n = recv(guard->fd, ret_status, sizeof(*ret_status), MSG_DONTWAIT);

	if (n < 0)
		return errno != EAGAIN && errno != EINTR;
	if (n == 0)
		*ret_status = KILLED; /* the process between was killed, and the command with it */
	return true;
}

void guard_let_go(struct guard *guard)
{
	send(guard->fd, "", 1, MSG_NOSIGNAL);
	close(guard->fd);
	waitpid(guard->guard, NULL, 0);
}
