/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events that tell that a function returns, where senders may sleep in it. They
 * are written into tracefs because only there a kretprobe takes a maxactive:
 * with the default, senders that sleep use all of its room and further returns
 * are missed silently. Such an event stays when its maker is killed; the next
 * run finds it by its name, which has the maker's pid.
 */
#include "capture_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SENDERS_MAX 4096 /* KRETPROBE_MAXACTIVE_MAX, kernel/trace/trace_kprobe.c */
#define GROUP "nightclerk"
#define NAME_START "return_"
#define NAMES_MAX 16 /* of one process */
#define LINE_MAX_BYTES 512

static const char *const folders[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static int open_in_tracefs(const char *name, int flags)
{
	char path[128];
	int fd = -1;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]) && fd < 0; i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		fd = open(path, flags | O_CLOEXEC);
	}
	return fd < 0 ? -errno : fd;
}

bool capture_event_of_send_end(void)
{
	int fd = open_in_tracefs("events/sock/sock_send_length/id", O_RDONLY);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/* The kernel takes one command with each write. */
static int command(int fd, const char *text)
{
	ssize_t n = write(fd, text, strlen(text));

	return n < 0 ? -errno : n == (ssize_t)strlen(text) ? 0 : -EIO;
}

static int remove_event(int fd, const char *name)
{
	char text[128];

	snprintf(text, sizeof(text), "-:" GROUP "/%s", name);
	return command(fd, text);
}

/* An event that somebody uses cannot be removed, so a maker that is hidden from us does no harm. */
void capture_event_remove_leftovers(void)
{
	static const char group[] = GROUP "/";
	int fd = open_in_tracefs("kprobe_events", O_RDWR | O_APPEND);
	FILE *list = fd < 0 ? NULL : fdopen(fd, "r");
	char line[LINE_MAX_BYTES], process[32];

	if (!list) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (fgets(line, sizeof(line), list)) {
		char *name = strstr(line, group);

		if (!name)
			continue;
		name += sizeof(group) - 1;
		name[strcspn(name, " \n")] = '\0';
		if (strncmp(name, NAME_START, sizeof(NAME_START) - 1))
			continue;
		snprintf(process, sizeof(process), "/proc/%lu",
			 strtoul(name + sizeof(NAME_START) - 1, NULL, 10));
		if (access(process, F_OK))
			remove_event(fd, name);
	}
	fclose(list);
}

static int add_event(struct capture_event *event, const char *function)
{
	int fd = open_in_tracefs("kprobe_events", O_WRONLY | O_APPEND);
	char text[128];
	int error = -EEXIST;

	if (fd < 0)
		return fd;
	/*
	 * A name may be taken: by ourselves, or by a process that has our pid in
	 * another pid namespace. The function is part of it, because a second one
	 * would be added to an event of that name, without a word.
	 */
	for (unsigned int i = 0; i < NAMES_MAX && error == -EEXIST; i++) {
		snprintf(event->name, sizeof(event->name), NAME_START "%d_%u_%s", getpid(), i,
			 function);
		snprintf(text, sizeof(text), "r%d:" GROUP "/%s %s", SENDERS_MAX, event->name,
			 function);
		error = command(fd, text);
	}
	if (error) {
		close(fd);
		return error;
	}
	event->fd = fd;
	return 0;
}

int capture_event_attach(struct capture_event *event, const struct bpf_program *program,
			 const char *function)
{
	int error;

	event->fd = -1;
	error = add_event(event, function);
	if (error)
		return error;
	event->link = bpf_program__attach_tracepoint(program, GROUP, event->name);
	return event->link ? 0 : errno ? -errno : -EINVAL;
}

/* Nothing must be attached to an event that is removed. */
void capture_event_detach(struct capture_event *event)
{
	bpf_link__destroy(event->link);
	event->link = NULL;
	if (event->fd < 0)
		return;
	remove_event(event->fd, event->name);
	close(event->fd);
	event->fd = -1;
}
