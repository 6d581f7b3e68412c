/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector asks for. It reads hostile bytes, so it may have been taken
 * over: it gets no more than a sound one needs, and no length or name of its
 * is believed.
 */
#include "monitor_parts.h"
#include "clock.h"

#include <errno.h>
#include <stdio.h>
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
	if (!cgroup_names_path(monitor->cgroups, cgroup.id, cgroup.tgid, path, sizeof(path)))
		return answer(monitor, MONITOR_CGROUP, -ENOENT, NULL, 0);
	return answer(monitor, MONITOR_CGROUP, 0, path, strlen(path));
}

static int open_file(struct monitor *monitor, enum monitor_kind kind, const struct monitor_open *open)
{
	const struct audit_files_request request = {
		.tenant = bytes_of_string(open->tenant),
		.file = (enum audit_file)open->file,
		.user = open->has_owner ? open->uid : AUDIT_FILES_NO_USER,
	};
	char news[AUDIT_FILES_NEWS_MAX] = "";
	int fd;

	if (kind == MONITOR_ROTATE)
		fd = audit_files_rotate(monitor->files, &request, clock_monotonic_ns(), clock_wall_ns(), news);
	else
		fd = audit_files_open(monitor->files, &request, clock_monotonic_ns(), news);
	if (*news)
		fprintf(stderr, "nightclerk: %s\n", news);
	return fd;
}

static int answer_file(struct monitor *monitor, enum monitor_kind kind, struct bytes body)
{
	struct monitor_message message = {.kind = kind, .fd = -1};
	struct monitor_open open;
	int err;

	if (!monitor_open_is_valid(body, &open))
		return -EPROTO;
	message.fd = open_file(monitor, kind, &open);
	if (message.fd < 0)
		message.result = message.fd;
	err = monitor_wire_send(&monitor->wire, &message);
	if (message.fd >= 0)
		close(message.fd);
	return err;
}

static int take_closed(struct monitor *monitor, struct bytes body)
{
	struct monitor_open open;

	if (!monitor_open_is_valid(body, &open))
		return -EPROTO;
	audit_files_forget(monitor->files, bytes_of_string(open.tenant));
	return 0;
}

static int take_metrics(struct monitor *monitor, struct bytes text)
{
	buffer_clear(&monitor->metrics_text);
	if (buffer_append(&monitor->metrics_text, text) == 0)
		monitor_write_metrics(monitor);
	return 0;
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
		return take_metrics(monitor, message->body);
	case MONITOR_CLOSED:
		return take_closed(monitor, message->body);
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
