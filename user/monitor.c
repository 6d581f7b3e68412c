/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loop of the monitor: signals, and what the collector asks for. Between two
 * of either it sleeps.
 */
#include "monitor_parts.h"
#include "clock.h"
#include "service_notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDLE_MS 1000
#define FINISH_NS (60 * 1000 * 1000 * 1000ULL) /* longest wait for the collector's last line */

/* ---- signals ---- */

static void take_signal(struct monitor *monitor, const struct signalfd_siginfo *info)
{
	switch (info->ssi_signo) {
	case SIGCHLD:
		break; /* the turn looks */
	case SIGHUP:
		monitor->reload = true;
		break;
	default:
		monitor->hurry = monitor->stop;
		monitor->stop = true;
	}
}

static int order(struct monitor *monitor, enum monitor_kind kind, struct bytes body)
{
	struct monitor_message message = {.kind = kind, .body = body, .fd = -1};

	return monitor->pid ? monitor_wire_send(&monitor->wire, &message) : 0;
}

void monitor_turn(struct monitor *monitor, int timeout_ms)
{
	struct pollfd fds[] = {{.fd = monitor->signal_fd, .events = POLLIN}, {.fd = monitor->wire.fd, .events = POLLIN}};
	struct signalfd_siginfo info;

	poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
	while (read(monitor->signal_fd, &info, sizeof(info)) == sizeof(info))
		take_signal(monitor, &info);
	if (monitor->pid && monitor_serve(monitor) < 0 && !monitor_reap(monitor)) {
		/* It closed its end, or says what no sound one says. */
		struct pollfd end = {.fd = monitor->signal_fd, .events = POLLIN};

		poll(&end, 1, IDLE_MS); /* it may just be ending */
		if (!monitor_reap(monitor))
			monitor_kill_collector(monitor);
		return;
	}
	monitor_reap(monitor);
}

/* ---- reload ---- */

static void reload(struct monitor *monitor)
{
	char state[64];

	monitor->reload = false;
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(clock_monotonic_ns() / 1000));
	service_notify(state);
	if (monitor_read_policy(monitor))
		fprintf(stderr, "nightclerk: the policy before it stays\n");
	else if (monitor->policy)
		order(monitor, MONITOR_POLICY, policy_text(monitor->policy));
	order(monitor, MONITOR_REOPEN, (struct bytes){});
	fprintf(stderr, "nightclerk: reloaded\n");
	service_notify("READY=1");
}

/* ---- the life ---- */

static void revive(struct monitor *monitor, uint64_t now_ns)
{
	char reason[MONITOR_REASON_MAX];

	if (now_ns < monitor->restart_ns)
		return;
	if (monitor_start_collector(monitor, reason)) {
		fprintf(stderr, "nightclerk: %s\n", reason);
		monitor->restart_ns = now_ns + monitor->back_off_ns;
	}
}

static int milliseconds_to(uint64_t then_ns, uint64_t now_ns)
{
	return then_ns <= now_ns ? 0 : (int)((then_ns - now_ns) / 1000000) + 1;
}

static void watch(struct monitor *monitor)
{
	while (!monitor->stop) {
		bool lived = monitor->pid != 0;
		uint64_t now_ns = clock_monotonic_ns();

		monitor_turn(monitor, lived ? IDLE_MS : milliseconds_to(monitor->restart_ns, now_ns));
		now_ns = clock_monotonic_ns();
		if (monitor->reload)
			reload(monitor);
		if (lived && !monitor->pid)
			monitor_mourn(monitor, now_ns);
		else if (!monitor->pid && !monitor->stop)
			revive(monitor, now_ns);
	}
}

/* The collector writes what there is. 0, or -ECHILD: it did not. */
static int finish(struct monitor *monitor)
{
	uint64_t deadline_ns = clock_monotonic_ns() + FINISH_NS;

	service_notify("STOPPING=1");
	if (!monitor->pid)
		return -ECHILD;
	order(monitor, MONITOR_FINISH, (struct bytes){});
	while (monitor->pid && !monitor->hurry && clock_monotonic_ns() < deadline_ns)
		monitor_turn(monitor, IDLE_MS);
	monitor_kill_collector(monitor);
	return WIFEXITED(monitor->status) && WEXITSTATUS(monitor->status) == 0 ? 0 : -ECHILD;
}

static int run(struct monitor *monitor, char *reason)
{
	int err = monitor_open(monitor, reason);

	if (!err)
		err = monitor_prove(monitor, reason);
	if (err)
		return err;
	fprintf(stderr, "nightclerk: audit of %s (door %s) to %s; the collector is %s (uid %u)\n", monitor->options->scope,
		monitor->facts.door, monitor->options->directory, monitor->options->account.name, monitor->options->account.uid);
	service_notify("READY=1");
	watch(monitor);
	err = finish(monitor);
	if (err)
		snprintf(reason, MONITOR_REASON_MAX, "the collector did not end cleanly: the last lines may be missing");
	return err;
}

int monitor_run(const struct monitor_options *options)
{
	struct monitor monitor = {.options = options, .directory_fd = -1, .stores_fd = -1, .signal_fd = -1, .wire = {.fd = -1, .with_fd = -1}};
	char reason[MONITOR_REASON_MAX] = "";
	int err = run(&monitor, reason);

	if (err && !(monitor.stop && !monitor.proved))
		fprintf(stderr, "nightclerk: %s\n", reason);
	monitor_close(&monitor);
	return err && !(monitor.stop && !monitor.proved) ? 1 : 0;
}
