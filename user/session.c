/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Signals come through a descriptor, so no handler runs; the loop is one poll
 * of three descriptors and one turn of the observer.
 */
#include "session.h"
#include "clock.h"
#include "commands.h"

#include <errno.h>
#include <linux/limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Every signal that would end us without a judgement. */
static int open_signals(void)
{
	static const int signals[] = {SIGCHLD, SIGWINCH, SIGINT,    SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
				      SIGUSR2, SIGALRM,	 SIGVTALRM, SIGPROF, SIGIO,  SIGPWR};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaddset(&set, signals[i]);
	for (int number = SIGRTMIN; number <= SIGRTMAX; number++)
		sigaddset(&set, number);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk: write(2) says so */
	signal(SIGCHLD, SIG_DFL); /* who started us may have ignored it, and then no child could be waited for */
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Has the command ended? 0, or -errno where it cannot be waited for. */
static int reap(struct session *session)
{
	int status;
	pid_t pid;

	while (!session->child_over && (pid = waitpid(session->child.pid, &status, WNOHANG)) != 0) {
		if (pid < 0 && errno == EINTR)
			continue;
		if (pid < 0)
			return -errno;
		if (!WIFEXITED(status) && !WIFSIGNALED(status))
			continue;
		session->child_over = true;
		session->child_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return 0;
}

/*
 * A terminal's Ctrl-C reached the command already, which shares our process
 * group (the kernel sent it: SI_KERNEL). What a process sent to us alone is
 * passed on. Either way the command decides, and we judge when it has ended;
 * after that there is nobody but us to end.
 */
static void take_end_signal(struct session *session, const struct signalfd_siginfo *info)
{
	bool running = session->child_started && !session->child_over;

	if (!session->child_started)
		session->stop = true;
	session->hurry |= session->child_over;
	if (!running || info->ssi_code != SI_KERNEL || info->ssi_signo == SIGHUP)
		session->asked = true;
	if (running && info->ssi_code != SI_KERNEL)
		kill(session->child.pid, (int)info->ssi_signo);
}

/* Meant for the command, whoever it was sent to; an alarm of our caller's outlives exec(2). Without one it is ours. */
static void pass_on(struct session *session, const struct signalfd_siginfo *info)
{
	if (session->child_started && !session->child_over)
		kill(session->child.pid, (int)info->ssi_signo);
	else
		take_end_signal(session, info);
}

static void take_signal(struct session *session, const struct signalfd_siginfo *info)
{
	switch (info->ssi_signo) {
	case SIGCHLD: /* of the canary, before the command has started */
		if (session->child_started)
			reap(session);
		break;
	case SIGWINCH:
		session->resized = true;
		break;
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
		take_end_signal(session, info);
		break;
	default:
		pass_on(session, info);
	}
}

void session_turn(struct session *session)
{
	struct signalfd_siginfo info;
	int err;
	/* A ring that cannot be read stays readable: then only the period wakes us. */
	struct pollfd fds[] = {
		{.fd = session->cannot_read || session->finished ? -1 : observer_fd(session->observer), .events = POLLIN},
		{.fd = session->signal_fd, .events = POLLIN},
		{.fd = session->finished ? -1 : observer_control_fd(session->observer), .events = POLLIN},
	};

	poll(fds, sizeof(fds) / sizeof(fds[0]), OBSERVER_PERIOD_MS);
	while (read(session->signal_fd, &info, sizeof(info)) == sizeof(info))
		take_signal(session, &info);
	if (session->finished)
		return;
	err = observer_turn(session->observer);
	if (err && !session->said_so)
		fprintf(stderr, "nightclerk: cannot read the kernel's events: %s; what is lost makes the run incomplete, continuing\n",
			strerror(-err));
	session->cannot_read = err != 0;
	session->said_so |= session->cannot_read;
}

bool session_over(const struct session *session)
{
	return session->stop || session->child_over;
}

/* What outlives the command stays confined: else it had only to wait for the watchman to leave. */
static void end_confinement(struct session *session)
{
	char path[PATH_MAX];
	int err;

	if (!session->confine)
		return;
	snprintf(path, sizeof(path), "%s", confine_path(session->confine));
	err = confine_close(session->confine);
	session->confine = NULL;
	if (err == -EBUSY)
		fprintf(stderr,
			"nightclerk: what the command left running stays confined; the cgroup goes with the first "
			"start of nightclerk after it has ended: %s\n",
			path);
	else if (err)
		fprintf(stderr, "nightclerk: cannot remove %s: %s, continuing\n", path, strerror(-err));
}

void session_finish(struct session *session)
{
	uint64_t deadline_ns = clock_monotonic_ns() + session->line.linger_ns;

	while (session->child_started && !session->hurry && observer_open_calls(session->observer) &&
	       clock_monotonic_ns() < deadline_ns)
		session_turn(session);
	session->finished = true;
	if (observer_finish(session->observer, session->child_status))
		fprintf(stderr, "nightclerk: the end of the run could not be read from the kernel\n");
	end_confinement(session);
}

void session_print_summary(const struct session *session)
{
	static const char exit[] = "; exit ";
	const char *line = observer_summary_line(session->observer), *rest = line;
	const char *found = session->line.command ? strstr(line, exit) : NULL;

	if (found)
		rest = found + strlen(exit) + strspn(found + strlen(exit), "0123456789");
	fprintf(stderr, "%.*s%s\n", found ? (int)(found - line) : 0, line, rest);
}

void session_done(struct session *session)
{
	end_confinement(session);
	observer_close(session->observer);
	command_line_done(&session->line);
	if (session->signal_fd > 0)
		close(session->signal_fd);
}

struct alert_style session_style(int fd)
{
	struct alert_style style = {0};
	struct winsize size;
	const char *no_colour = getenv("NO_COLOR");

	if (!isatty(fd))
		return style;
	style.colour = !no_colour || !*no_colour;
	if (ioctl(fd, TIOCGWINSZ, &size) == 0)
		style.width = size.ws_col;
	return style;
}

void session_observer_options(const struct command_line *line, struct observer_options *ret_options)
{
	*ret_options = (struct observer_options){
		.capture = line->capture,
		.pipeline = {.judge = line->judge, .policy = line->policy, .keep_results = line->keep_results},
		.ledger = line->ledger,
		.events = line->events,
		.recording = line->recording,
		.db = line->db,
		.output = line->output,
		.lease_ns = line->lease_ns,
		.ttl_ns = line->ttl_ns,
		.canary = true,
		.owner = output_owner_of_environment(),
		.command = line->command ? line->command[0] : NULL,
		.argument_count = line->command ? line->command_argc - 1 : 0,
	};
	snprintf(ret_options->scope, sizeof(ret_options->scope), "%s", line->scope);
}

/* ---- start ---- */

/* By its name, else by its number. NULL with errno set, 0 = there is none. */
static const struct passwd *find_user(const char *text)
{
	const struct passwd *entry;
	char *end;
	unsigned long uid;

	errno = 0;
	entry = getpwnam(text);
	if (entry || *text < '0' || *text > '9')
		return entry;
	uid = strtoul(text, &end, 10);
	errno = 0;
	return *end || uid >= (uid_t)-1 ? NULL : getpwuid((uid_t)uid);
}

/* The account of --user: 0, or -ENOENT with a line on stderr. */
static int find_account(const char *name, struct launch_account *ret_account)
{
	const struct passwd *entry = find_user(name);

	if (!entry) {
		fprintf(stderr, "nightclerk: no user called %s: %s\n", name, errno ? strerror(errno) : "see getent passwd");
		return -ENOENT;
	}
	*ret_account = (struct launch_account){.uid = entry->pw_uid, .gid = entry->pw_gid};
	snprintf(ret_account->name, sizeof(ret_account->name), "%s", entry->pw_name);
	snprintf(ret_account->home, sizeof(ret_account->home), "%s", entry->pw_dir);
	return 0;
}

static int hold(struct session *session, struct observer_options *options)
{
	struct launch_account account;
	int err;

	if (session->line.user && find_account(session->line.user, &account))
		return EXIT_NOT_STARTED;
	if (session->line.user)
		options->owner = (struct output_owner){account.uid, account.gid};
	err = launch_hold(&session->child, session->line.command, session->line.user ? &account : NULL);
	if (err)
		fprintf(stderr, "nightclerk: cannot start a process: %s\n", strerror(-err));
	return err ? EXIT_NOT_STARTED : 0;
}

static int open_observer(struct session *session, const struct observer_options *options, char *reason)
{
	int err = observer_open(options, &session->observer, reason);

	if (err)
		return err;
	if (!session->line.command)
		return observer_begin(session->observer, reason);
	err = capture_add_process(observer_capture(session->observer), (uint32_t)session->child.pid);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot follow the command: %s", strerror(-err));
	if (!err && session->line.confine)
		err = confine_open(observer_capture(session->observer), session->child.pid,
				   &session->confine, reason);
	if (!err)
		err = observer_begin(session->observer, reason);
	return err;
}

static int let_go(struct session *session)
{
	int err = launch_release(&session->child);

	if (err) {
		fprintf(stderr, "nightclerk: %s: %s\n", session->line.command[0], strerror(-err));
		session->child_status = err == -ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
		observer_finish(session->observer, session->child_status);
		return session->child_status;
	}
	session->child_started = true;
	return 0;
}

int session_start(struct session *session, const struct observer_options *options)
{
	struct observer_options with_owner = *options;
	char reason[OUTPUT_REASON_MAX] = "";
	int status = 0;

	session->child_status = -1;
	if (session->line.command) /* before our signals are set up: the command keeps the caller's */
		status = hold(session, &with_owner);
	if (status)
		return status;
	session->signal_fd = open_signals();
	status = session->signal_fd < 0 ? -errno : 0;
	if (status)
		snprintf(reason, sizeof(reason), "cannot take signals: %s", strerror(-status));
	if (!status && session->line.command && (status = reap(session)))
		snprintf(reason, sizeof(reason), "cannot wait for the command: %s", strerror(-status));
	if (status || open_observer(session, &with_owner, reason)) {
		fprintf(stderr, "nightclerk: %s%s\n", reason, session->line.command ? "; the command was not started" : "");
		if (session->line.command)
			launch_cancel(&session->child);
		return EXIT_NOT_STARTED;
	}
	return session->line.command ? let_go(session) : 0;
}
