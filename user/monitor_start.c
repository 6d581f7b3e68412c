/* SPDX-License-Identifier: BSD-2-Clause */
/* The start and the end of a monitor: the directory, the facts, the probes. */
#include "monitor_parts.h"
#include "audit_place.h"
#include "beneath.h"
#include "clock.h"
#include "limits.h"
#include "output.h"
#include "own_limits.h"
#include "policy_file.h"
#include "process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/utsname.h>
#include <unistd.h>

#define MARK ".audit" /* beside the tenants, whose names never begin with a dot */

/* ---- the directory ---- */

/* Made where it is not, looked at whether it is ours alone, and locked: one audit a directory. */
static int open_directory(struct monitor *monitor, char *reason)
{
	const struct audit_files_options options = {
		.directory = monitor->options->directory,
		.limits = monitor->options->rotation,
		.keep = monitor->options->keep,
		.max_tenants = (monitor->options->tenants_max ? monitor->options->tenants_max : LIMIT_TENANTS) + 1, /* "others" */
	};
	int err = audit_files_new(&options, &monitor->files, reason);

	if (err)
		return err;
	monitor->directory_fd = beneath_open_directory(options.directory);
	if (monitor->directory_fd < 0) {
		snprintf(reason, MONITOR_REASON_MAX, "cannot open %.200s: %s; %s", options.directory, strerror(-monitor->directory_fd),
			 output_remedy(-monitor->directory_fd));
		return monitor->directory_fd;
	}
	if (flock(monitor->directory_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	snprintf(reason, MONITOR_REASON_MAX, "another audit writes to %.200s: stop it, or give another --directory", options.directory);
	return -EBUSY;
}

static int open_stores(struct monitor *monitor, char *reason)
{
	const struct unprivileged *account = &monitor->options->account;
	const char *path = monitor->options->stores, *why = NULL;

	if (!path)
		return 0;
	monitor->stores_fd = audit_place_state(path, account->uid, account->gid, &why);
	if (monitor->stores_fd < 0) {
		snprintf(reason, MONITOR_REASON_MAX, "cannot use %.200s for the stores: %s", path, why ? why : strerror(-monitor->stores_fd));
		if (!why)
			snprintf(reason + strlen(reason), MONITOR_REASON_MAX - strlen(reason), "; %s", output_remedy(-monitor->stores_fd));
		return monitor->stores_fd;
	}
	if (flock(monitor->stores_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	snprintf(reason, MONITOR_REASON_MAX, "another audit has its stores in %.200s: stop it, or give another --db", path);
	return -EBUSY;
}

static void mark_directory(struct monitor *monitor)
{
	const struct output_owner self = {(uid_t)-1, (gid_t)-1};
	bool unclean = false;
	char *path;
	int err;

	if (asprintf(&path, "%s/" MARK, monitor->options->directory) < 0)
		return;
	err = output_mark_new(path, &self, monitor->facts.run_id, &monitor->mark, &unclean);
	if (err)
		fprintf(stderr, "nightclerk: cannot mark %s as in use: %s, continuing\n", monitor->options->directory, strerror(-err));
	if (unclean)
		fprintf(stderr, "nightclerk: the last audit that wrote to %s ended unclean: its last lines may be missing\n",
			monitor->options->directory);
	free(path);
}

/* ---- facts ---- */

int monitor_read_policy(struct monitor *monitor)
{
	struct judge_options judge = monitor->options->judge;
	struct policy *policy = NULL;
	int err = monitor->options->policy ? policy_file_read(monitor->options->policy, &policy) : 0;

	if (err)
		return err;
	if (policy)
		policy_apply(policy, &judge);
	judge.strict |= monitor->options->judge.strict; /* the command line outranks it */
	err = judge_options_to_json(&judge, monitor->facts.options, sizeof(monitor->facts.options));
	if (err) {
		policy_free(policy);
		return err;
	}
	policy_free(monitor->policy);
	monitor->policy = policy;
	monitor->judge = judge;
	return 0;
}

static int fill_facts(struct monitor *monitor, char *reason)
{
	struct run_facts *facts = &monitor->facts;
	struct utsname kernel;
	int err = 0;

	monitor->began_wall_ns = clock_wall_ns();
	process_boot_id(facts->boot_id);
	if (getrandom(facts->salt, sizeof(facts->salt), 0) != sizeof(facts->salt))
		err = -errno;
	if (err) {
		snprintf(reason, MONITOR_REASON_MAX, "no random numbers to be had");
		return err;
	}
	snprintf(facts->run_id, sizeof(facts->run_id), "audit");
	snprintf(facts->version, sizeof(facts->version), "%s", NIGHTCLERK_VERSION);
	snprintf(facts->scope, sizeof(facts->scope), "%s", monitor->options->scope);
	snprintf(facts->canary, sizeof(facts->canary), "seen"); /* where it is not, nothing is written at all */
	if (uname(&kernel) == 0)
		snprintf(facts->kernel, sizeof(facts->kernel), "%.64s", kernel.release);
	err = monitor_read_policy(monitor);
	if (err)
		snprintf(reason, MONITOR_REASON_MAX, "nothing was started");
	return err;
}

static int open_signals(void)
{
	static const int taken[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		sigaddset(&set, taken[i]);
	sigprocmask(SIG_BLOCK, &set, NULL); /* the collector inherits it: a signal to the group is the monitor's to act on */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a file at its limit is a full disk: write(2) says so */
	signal(SIGCHLD, SIG_DFL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int monitor_open(struct monitor *monitor, char *reason)
{
	const struct capture_options *capture = &monitor->options->capture;
	int err;

	heap_open(&monitor->heap);
	err = open_directory(monitor, reason);
	if (!err)
		err = open_stores(monitor, reason);
	if (!err)
		err = fill_facts(monitor, reason);
	if (!err)
		err = own_limits_prepare(capture->data_ring_bytes, reason);
	if (err)
		return err;
	monitor->signal_fd = open_signals();
	if (monitor->signal_fd < 0) {
		snprintf(reason, MONITOR_REASON_MAX, "cannot take signals: %s", strerror(errno));
		return -errno;
	}
	err = capture_open(capture, &monitor->capture, reason);
	if (err)
		return err;
	snprintf(monitor->facts.door, sizeof(monitor->facts.door), "%s", capture_door_name(capture_door(monitor->capture)));
	monitor->cgroups = cgroup_names_new();
	if (!monitor->cgroups) {
		snprintf(reason, MONITOR_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	mark_directory(monitor);
	return 0;
}

void monitor_close(struct monitor *monitor)
{
	monitor_kill_collector(monitor);
	capture_close(monitor->capture);
	cgroup_names_free(monitor->cgroups);
	heap_close(&monitor->heap);
	audit_files_free(monitor->files);
	buffer_done(&monitor->metrics_text);
	policy_free(monitor->policy);
	output_mark_free(monitor->mark);
	if (monitor->signal_fd >= 0)
		close(monitor->signal_fd);
	if (monitor->directory_fd >= 0)
		close(monitor->directory_fd);
	if (monitor->stores_fd >= 0)
		close(monitor->stores_fd);
}
