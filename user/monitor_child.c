/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's life as its parent sees it. What it maps it inherits, so the
 * next one goes on where the last one had read: how far that is stands in the
 * rings' own pages.
 */
#include "monitor_parts.h"
#include "clock.h"
#include "collector.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANARY_TRIES 3				       /* a stalled machine may make one miss */
#define CANARY_NS (30 * 1000 * 1000 * 1000ULL)	       /* longest wait: an emulated machine takes seconds */
#define CANARY_AFTER_NS (1200 * 1000 * 1000ULL)	       /* its children have ended: what they sent is due by then */
#define BACK_OFF_FIRST_NS (100 * 1000 * 1000ULL)
#define BACK_OFF_LAST_NS (30 * 1000 * 1000 * 1000ULL)
#define SOUND_NS (60 * 1000 * 1000 * 1000ULL) /* who lived that long did not die of its start */
#define TURN_MS 20

static int run_child(const struct monitor *monitor, struct monitor_wire *wire, const char *run_id)
{
	struct collector_options options = {
		.capture = monitor->capture,
		.wire = wire,
		.canary = monitor->canary,
		.account = monitor->options->account,
		.facts = monitor->facts,
		.pipeline = {.judge = monitor->judge, .policy = monitor->policy, .no_alerts = true, .bookings = monitor->stores_fd >= 0},
		.gap = monitor->gap,
		.strict = monitor->options->judge.strict,
		.split = monitor->options->split,
		.tenants_max = monitor->options->tenants_max,
		.rotation = monitor->options->rotation,
		.metrics = monitor->options->metrics != NULL,
		.stores_fd = monitor->stores_fd,
		.lease_ns = monitor->options->lease_ns,
		.ttl_ns = monitor->options->ttl_ns,
	};

	snprintf(options.facts.run_id, sizeof(options.facts.run_id), "%s", run_id);
	options.gap.until_ns = options.gap.cause[0] ? options.facts.start_ns : 0;
	options.pipeline.gap = options.gap.until_ns ? &options.gap : NULL;
	return collector_run(&options);
}

static int new_run_id(char *ret_hex)
{
	uint8_t run_id[8];

	if (getrandom(run_id, sizeof(run_id), 0) != sizeof(run_id))
		return -errno;
	hex_of(run_id, sizeof(run_id), ret_hex);
	return 0;
}

/* What a new one knows nothing of. */
static int prepare(struct monitor *monitor, char *ret_run_id)
{
	monitor->ready = monitor->canary_seen = false;
	audit_files_forget_all(monitor->files);
	buffer_clear(&monitor->metrics_text);
	monitor->facts.start_ns = clock_monotonic_ns();
	monitor->facts.wall_offset_ns = clock_wall_ns() - (int64_t)monitor->facts.start_ns;
	return new_run_id(ret_run_id);
}

int monitor_start_collector(struct monitor *monitor, char *reason)
{
	struct monitor_wire theirs = {.fd = -1, .with_fd = -1};
	char run_id[17];
	int err = prepare(monitor, run_id);

	if (!err)
		err = monitor_wire_pair(&monitor->wire, &theirs);
	if (!err) {
		fflush(NULL);
		monitor->pid = fork();
		err = monitor->pid < 0 ? -errno : 0;
	}
	if (!err && monitor->pid == 0)
		_exit(run_child(monitor, &theirs, run_id));
	monitor_wire_done(&theirs);
	if (err) {
		monitor->pid = 0;
		monitor_wire_done(&monitor->wire);
		snprintf(reason, MONITOR_REASON_MAX, "cannot start the collector: %s", strerror(-err));
		return err;
	}
	monitor->started_ns = monitor->facts.start_ns;
	if (!monitor->gap.cause[0])
		monitor->written_ns = monitor->started_ns;
	monitor->starts++;
	return 0;
}

bool monitor_reap(struct monitor *monitor)
{
	if (!monitor->pid || waitpid(monitor->pid, &monitor->status, WNOHANG) != monitor->pid)
		return false;
	monitor->pid = 0;
	monitor_wire_done(&monitor->wire);
	return true;
}

void monitor_kill_collector(struct monitor *monitor)
{
	if (!monitor->pid)
		return;
	kill(monitor->pid, SIGKILL);
	while (waitpid(monitor->pid, &monitor->status, 0) < 0 && errno == EINTR)
		;
	monitor->pid = 0;
	monitor_wire_done(&monitor->wire);
}

/* ---- the canary ---- */

static void say_how(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
		snprintf(text, size, "was killed by its own filter");
	else if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, size, "ended with status %d", WEXITSTATUS(status));
}

/* Until the collector has heard it: 0, or -errno with reason filled. */
static int await_canary(struct monitor *monitor, char *reason)
{
	uint64_t now_ns = clock_monotonic_ns(), deadline_ns = now_ns + CANARY_NS;
	char cause[CANARY_REASON_MAX] = "";
	bool released = false, over = false;

	while (monitor->pid && !monitor->canary_seen && !monitor->stop && now_ns < deadline_ns) {
		monitor_turn(monitor, TURN_MS);
		now_ns = clock_monotonic_ns();
		if (monitor->ready && !released)
			canary_release(monitor->canary);
		released |= monitor->ready;
		if (released && !over && canary_over(monitor->canary, cause)) {
			over = true;
			deadline_ns = now_ns + CANARY_AFTER_NS;
		}
		if (*cause)
			break;
	}
	if (monitor->canary_seen)
		return 0;
	if (!monitor->pid) {
		say_how(monitor->status, cause, sizeof(cause));
		snprintf(reason, MONITOR_REASON_MAX, "the collector %s at its start", cause);
	} else if (*cause) {
		snprintf(reason, MONITOR_REASON_MAX, "%s", cause);
	} else {
		snprintf(reason, MONITOR_REASON_MAX,
			 "the probes load but do not fire (door %s): a known call over loopback was not seen; "
			 "`nightclerk doctor` says what this kernel allows",
			 monitor->facts.door);
	}
	return monitor->pid && !*cause ? -ENODATA : -ECHILD;
}

/* What the end of its connections tells is the canary's, too: the mark stays until its processes are gone. */
static void await_its_end(struct monitor *monitor)
{
	uint64_t deadline_ns = clock_monotonic_ns() + CANARY_AFTER_NS;
	char cause[CANARY_REASON_MAX];

	while (monitor->pid && !canary_over(monitor->canary, cause) && clock_monotonic_ns() < deadline_ns)
		monitor_turn(monitor, 1);
	monitor_turn(monitor, TURN_MS);
}

static int try_canary(struct monitor *monitor, char *reason)
{
	uint32_t client, server;
	int err = canary_start(&monitor->canary, &client, &server, reason);

	if (err)
		return err;
	err = capture_set_canary(monitor->capture, client, server);
	if (err)
		snprintf(reason, MONITOR_REASON_MAX, "the canary could not be put in scope: %s", strerror(-err));
	if (!err)
		err = monitor_start_collector(monitor, reason);
	if (!err)
		err = await_canary(monitor, reason);
	if (!err)
		await_its_end(monitor);
	capture_set_canary(monitor->capture, 0, 0);
	canary_free(monitor->canary);
	monitor->canary = NULL;
	if (err)
		monitor_kill_collector(monitor);
	return err;
}

int monitor_prove(struct monitor *monitor, char *reason)
{
	int err = -ENODATA;

	for (int i = 0; i < CANARY_TRIES && err == -ENODATA && !monitor->stop; i++)
		err = try_canary(monitor, reason);
	monitor->proved = err == 0;
	return err;
}

/* ---- its death ---- */

void monitor_mourn(struct monitor *monitor, uint64_t now_ns)
{
	char how[96];

	say_how(monitor->status, how, sizeof(how));
	if (!monitor->back_off_ns || now_ns - monitor->started_ns > SOUND_NS)
		monitor->back_off_ns = BACK_OFF_FIRST_NS;
	else if (monitor->back_off_ns < BACK_OFF_LAST_NS / 2)
		monitor->back_off_ns *= 2;
	else
		monitor->back_off_ns = BACK_OFF_LAST_NS;
	monitor->restart_ns = now_ns + monitor->back_off_ns;
	monitor->gaps++;
	monitor->gap = (struct run_gap){.from_ns = monitor->written_ns};
	snprintf(monitor->gap.cause, sizeof(monitor->gap.cause), "the collector %.80s", how);
	monitor_write_metrics(monitor);
	fprintf(stderr, "nightclerk: the collector %s; what it had read and not written is lost (a gap); the next one starts in %llu ms\n",
		how, (unsigned long long)(monitor->back_off_ns / 1000000));
}
