/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector asks for. It reads hostile bytes, so it may have been taken
 * over: it gets no more than a sound one needs, and no length or name of its
 * is believed.
 */
#include "monitor_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int answer(struct monitor *monitor, enum monitor_kind kind, int result, const void *body, size_t size)
{
	struct monitor_message message = {.kind = kind, .result = result, .body = {body, result ? 0 : size}, .fd = -1};

	return monitor_wire_send(&monitor->wire, &message);
}

static int answer_counters(struct monitor *monitor, struct bytes body)
{
	struct monitor_counters counters = {0};
	struct monitor_written written;
	int err;

	if (body.size != sizeof(written))
		return -EPROTO;
	memcpy(&written, body.data, sizeof(written));
	monitor->written_ns = written.until_ns;
	err = capture_counters(monitor->capture, &counters.counters);
	counters.ring_peak_bytes = capture_ring_peak(monitor->capture);
	return answer(monitor, MONITOR_COUNTERS, err, &counters, sizeof(counters));
}

/* ---- the flows that live ---- */

struct living {
	struct monitor *monitor;
	size_t count;
	struct wire_event events[MONITOR_EVENTS_MAX];
};

static int send_living(struct living *living)
{
	int err = answer(living->monitor, MONITOR_LIVING, 0, living->events, living->count * sizeof(living->events[0]));

	living->count = 0;
	return err;
}

static int take_living(void *context, const struct wire_event *event)
{
	struct living *living = context;

	living->events[living->count++] = *event;
	return living->count == MONITOR_EVENTS_MAX ? send_living(living) : 0;
}

static int answer_living(struct monitor *monitor)
{
	struct living living = {.monitor = monitor};
	int err = capture_living_flows(monitor->capture, take_living, &living);

	if (!err && living.count)
		err = send_living(&living);
	return answer(monitor, MONITOR_LIVING, err, NULL, 0);
}

/* ---- names and files ---- */

static int answer_cgroup(struct monitor *monitor, struct bytes body)
{
	struct monitor_cgroup cgroup;
	char path[PATH_MAX];

	if (body.size != sizeof(cgroup))
		return -EPROTO;
	memcpy(&cgroup, body.data, sizeof(cgroup));
	if (!cgroup_names_find(monitor->cgroups, cgroup.id, cgroup.tgid, path, sizeof(path)))
		return answer(monitor, MONITOR_CGROUP, -ENOENT, NULL, 0);
	return answer(monitor, MONITOR_CGROUP, 0, path, strlen(path));
}

static int open_beneath(const struct monitor *monitor, const struct monitor_open *open)
{
	static const char *const names[MONITOR_FILE_COUNT] = {"call_ledger.jsonl", "events.jsonl"};
	int directory, fd, err;

	if (mkdirat(monitor->directory_fd, open->tenant, 0700) && errno != EEXIST)
		return -errno;
	directory = openat(monitor->directory_fd, open->tenant, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (directory < 0)
		return -errno;
	fd = openat(directory, names[open->file], O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
	err = errno;
	close(directory);
	return fd < 0 ? -err : fd;
}

static int answer_file(struct monitor *monitor, enum monitor_kind kind, struct bytes body)
{
	struct monitor_message message = {.kind = kind, .fd = -1};
	struct monitor_open open;
	int err;

	if (!monitor_open_is_valid(body, &open))
		return -EPROTO;
	message.fd = open_beneath(monitor, &open);
	if (message.fd < 0)
		message.result = message.fd;
	err = monitor_wire_send(&monitor->wire, &message);
	if (message.fd >= 0)
		close(message.fd);
	return err;
}

/* ---- all of it ---- */

static int serve_one(struct monitor *monitor, const struct monitor_message *message)
{
	switch (message->kind) {
	case MONITOR_READY:
		monitor->ready = true;
		return 0;
	case MONITOR_CANARY_SEEN:
		monitor->canary_seen = true;
		return 0;
	case MONITOR_COUNTERS:
		return answer_counters(monitor, message->body);
	case MONITOR_REFRESH:
		return answer(monitor, MONITOR_REFRESH, capture_refresh_flows(monitor->capture), NULL, 0);
	case MONITOR_LIVING:
		return answer_living(monitor);
	case MONITOR_CGROUP:
		return answer_cgroup(monitor, message->body);
	case MONITOR_OPEN:
	case MONITOR_ROTATE:
		return answer_file(monitor, message->kind, message->body);
	case MONITOR_METRICS:
	case MONITOR_CLOSED:
		return 0;
	default:
		return -EPROTO;
	}
}

int monitor_serve(struct monitor *monitor)
{
	struct monitor_message message;
	int got = 0;

	while (monitor->wire.fd >= 0 && (got = monitor_wire_receive(&monitor->wire, false, &message)) > 0) {
		int err = message.fd >= 0 ? -EPROTO : serve_one(monitor, &message);

		if (message.fd >= 0)
			close(message.fd);
		if (err)
			return err;
	}
	return got;
}
