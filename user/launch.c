/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two pipes: one that the child reads before exec, one with close-on-exec
 * that carries the errno back when exec fails and simply closes when it works.
 */
#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static int become(const struct launch_account *account)
{
	if (initgroups(account->name, account->gid) || setgid(account->gid) || setuid(account->uid))
		return -1;
	return setenv("HOME", account->home, 1) || setenv("USER", account->name, 1) ||
	       setenv("LOGNAME", account->name, 1);
}

static int set_stdio(const int stdio[3])
{
	for (int fd = 0; fd < 3; fd++)
		if (stdio[fd] && dup2(stdio[fd], fd) < 0)
			return -1;
	return 0;
}

static _Noreturn void run_child(const struct launch *launch, int release_fd, int status_fd, char **argv,
				const struct launch_account *account)
{
	char byte;
	int err;

	if (read(release_fd, &byte, 1) != 1)
		_exit(125); /* nightclerk is gone */
	if (set_stdio(launch->stdio) == 0 && (!account || become(account) == 0))
		execvp(argv[0], argv);
	err = errno;
	if (write(status_fd, &err, sizeof(err)) != sizeof(err))
		_exit(126);
	_exit(err == ENOENT ? 127 : 126);
}

int launch_hold(struct launch *launch, char **argv, const struct launch_account *account)
{
	int release[2], status[2];

	if (pipe2(release, O_CLOEXEC))
		return -errno;
	if (pipe2(status, O_CLOEXEC)) {
		int err = -errno;

		close(release[0]);
		close(release[1]);
		return err;
	}
	launch->pid = fork();
	if (launch->pid == 0) {
		close(release[1]);
		close(status[0]);
		run_child(launch, release[0], status[1], argv, account);
	}
	close(release[0]);
	close(status[1]);
	launch->release_fd = release[1];
	launch->status_fd = status[0];
	if (launch->pid < 0) {
		int err = -errno;

		close(release[1]);
		close(status[0]);
		return err;
	}
	return 0;
}

int launch_release(struct launch *launch)
{
	int err = 0;
	ssize_t n;

	while ((n = write(launch->release_fd, "", 1)) < 0 && errno == EINTR)
		;
	close(launch->release_fd);
	while ((n = read(launch->status_fd, &err, sizeof(err))) < 0 && errno == EINTR)
		;
	close(launch->status_fd);
	if (n != sizeof(err))
		return 0;
	wait_for(launch->pid);
	return -err;
}

void launch_cancel(struct launch *launch)
{
	close(launch->release_fd);
	close(launch->status_fd);
	wait_for(launch->pid);
}
