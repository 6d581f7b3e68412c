/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes of tests/live/capture_probe.c in cgroups and under uids of their
 * own. The cgroups are made below the machine's mount, and removed at the end.
 */
#ifndef CAPTURE_PROBE_OWNERS_H
#define CAPTURE_PROBE_OWNERS_H

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

struct owner {
	char path[128]; /* of the cgroup; "" = where we are */
	uint64_t cgroup_id;
	uid_t uid;
};

static struct owner owners[2] = {{.uid = 12345}, {.uid = 23456}};
static const struct owner *server_owner, *client_owner; /* of those that are started next; NULL: we */

static void owners_remove(void)
{
	for (int i = 0; i < 2; i++)
		if (*owners[i].path && !rmdir(owners[i].path))
			*owners[i].path = '\0';
}

/* Two cgroups, or cannot_reason. They go at our exit, if not before. */
static bool owners_make(void)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/unified", "/sys/fs/cgroup"};
	const char *mount = NULL;
	struct statfs mounted;
	struct stat status;

	for (int i = 0; i < 2 && !mount; i++)
		if (!statfs(mounts[i], &mounted) && mounted.f_type == CGROUP2_SUPER_MAGIC)
			mount = mounts[i];
	for (int i = 0; i < 2 && mount; i++) {
		struct owner *owner = &owners[i];

		snprintf(owner->path, sizeof(owner->path), "%s/nightclerk-test-%d-%d", mount, getpid(), i);
		if (mkdir(owner->path, 0755) || stat(owner->path, &status)) {
			*owner->path = '\0';
			mount = NULL;
		} else {
			owner->cgroup_id = status.st_ino;
		}
	}
	if (mount)
		return true;
	owners_remove();
	snprintf(cannot_reason, CANNOT_MAX, "no cgroup v2 that can be written to");
	return false;
}

static void owner_enter(const struct owner *owner)
{
	char path[160];
	int fd;

	snprintf(path, sizeof(path), "%s/cgroup.procs", owner->path);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && write(fd, "0", 1) == 1, "cgroup.procs");
	close(fd);
}

static void owner_become(const struct owner *owner)
{
	if (!owner)
		return;
	if (*owner->path)
		owner_enter(owner);
	must(!setresuid(owner->uid, owner->uid, owner->uid), "setresuid");
}

#endif
