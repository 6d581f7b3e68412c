/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * fork and exec, without a wait: the collector goes on at once. What fails in
 * the child can only be seen in what it does not do, so exec's error is said on
 * its standard error.
 */
#include "notify.h"
#include "finding.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int become(const struct notify *notify)
{
	if (notify->uid == (uid_t)-1 || geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) || setgid(notify->gid))
		return -1;
	return setuid(notify->uid);
}

static _Noreturn void run_child(const struct notify *notify, const struct screen_alarm *alarm)
{
	const char *severity = severity_name(alarm->severity);
	int empty = open("/dev/null", O_RDONLY);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	signal(SIGTSTP, SIG_DFL);
	dup2(empty, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
	setpgid(0, 0); /* a terminal's Ctrl-C is not for it */
	if (become(notify) == 0 && setenv("NIGHTCLERK_FINDING", finding_name(alarm->finding), 1) == 0 &&
	    setenv("NIGHTCLERK_SEVERITY", severity ? severity : "", 1) == 0 && setenv("NIGHTCLERK_TEXT", alarm->text, 1) == 0)
		execl("/bin/sh", "sh", "-c", notify->command, (char *)NULL);
	fprintf(stderr, "nightclerk: cannot run the command of --notify: %s\n", strerror(errno));
	_exit(127);
}

void notify_of(struct notify *notify, const struct screen_alarm *alarm)
{
	size_t place = 0;

	if (!notify->command)
		return;
	notify_reap(notify);
	while (place < NOTIFY_RUNNING_MAX && notify->running[place])
		place++;
	if (place == NOTIFY_RUNNING_MAX) {
		notify->left_out++;
		return;
	}
	notify->running[place] = fork();
	if (notify->running[place] == 0)
		run_child(notify, alarm);
	if (notify->running[place] < 0) {
		notify->running[place] = 0;
		notify->left_out++;
	}
}

void notify_reap(struct notify *notify)
{
	for (size_t i = 0; i < NOTIFY_RUNNING_MAX; i++)
		if (notify->running[i] && waitpid(notify->running[i], NULL, WNOHANG) != 0)
			notify->running[i] = 0;
}
