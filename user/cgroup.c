/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock settles who may remove a directory: between the mkdir and the first
 * process in it, it looks just like a left-over one. Removing takes the lock
 * first; making looks again, under the lock, whether the directory is there.
 *
 * What lives in a cgroup is never moved or ended here, and rmdir(2) refuses a
 * cgroup that has a process, so nothing of anybody else's can be taken away.
 */
#include "cgroup.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <linux/magic.h>
#include <mntent.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define NAME_PREFIX "nightclerk-confine-"
#define NAME_MAX_BYTES 64
#define CHANGES_MAX 4 /* looked at while waiting for an end */
#define TRIES_MAX 8   /* to make one: a sweep may take it away while it has no lock yet */

/* ---- where ---- */

static int copy_path(const char *path, char *ret_path, size_t size)
{
	size_t length = strlen(path);

	if (length >= size)
		return -ENAMETOOLONG;
	memcpy(ret_path, path, length + 1);
	return 0;
}

int cgroup_find_mount(const char *mounts, char *ret_path, size_t size)
{
	FILE *file = setmntent(mounts, "re");
	struct mntent entry;
	char line[4096];
	int err = -ENOENT;

	if (!file)
		return -errno;
	while (err == -ENOENT && getmntent_r(file, &entry, line, sizeof(line)))
		if (strcmp(entry.mnt_type, "cgroup2") == 0)
			err = copy_path(entry.mnt_dir, ret_path, size);
	endmntent(file);
	return err;
}

int cgroup_find_path(const char *file, char *ret_path, size_t size)
{
	FILE *lines = fopen(file, "re");
	char line[PATH_MAX];
	int err = -ENOENT;

	if (!lines)
		return -errno;
	while (err == -ENOENT && fgets(line, sizeof(line), lines)) {
		if (strncmp(line, "0::/", 4) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		err = copy_path(line + 3, ret_path, size);
	}
	fclose(lines);
	return err;
}

bool cgroup_is_directory(const char *path)
{
	struct statfs file_system;
	struct stat stat_of;

	return stat(path, &stat_of) == 0 && S_ISDIR(stat_of.st_mode) && statfs(path, &file_system) == 0 &&
	       file_system.f_type == CGROUP2_SUPER_MAGIC;
}

/* Our own cgroup; the top of what is mounted where that shows another part of the hierarchy. */
static int find_parent(char *ret_path, size_t size)
{
	char mount[PATH_MAX], own[PATH_MAX];
	int err = cgroup_find_mount("/proc/self/mounts", mount, sizeof(mount));

	if (err)
		return err;
	if (cgroup_find_path("/proc/self/cgroup", own, sizeof(own)) || strstr(own, "/..") ||
	    strcmp(own, "/") == 0)
		own[0] = '\0';
	if (snprintf(ret_path, size, "%s%s", mount, own) < (int)size && cgroup_is_directory(ret_path))
		return 0;
	err = copy_path(mount, ret_path, size);
	return err ? err : cgroup_is_directory(ret_path) ? 0 : -ENOENT;
}

/* ---- one of our own ---- */

/* Opens and locks. -EAGAIN: somebody else holds it; -ENOENT: it is gone. */
static int take(const char *path, int *ret_fd)
{
	struct stat there, opened;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB))
		err = errno == EWOULDBLOCK ? -EAGAIN : -errno;
	else if (fstat(fd, &opened) || stat(path, &there))
		err = -errno;
	else if (opened.st_ino != there.st_ino || opened.st_dev != there.st_dev)
		err = -ENOENT;
	else if (there.st_uid != geteuid())
		err = -EPERM;
	if (err)
		close(fd);
	else
		*ret_fd = fd;
	return err;
}

static int make_in(const char *parent, struct cgroup_directory *directory)
{
	unsigned int random;
	int n, err;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	n = snprintf(directory->path, sizeof(directory->path), "%s/" NAME_PREFIX "%ld-%08x", parent,
		     (long)getpid(), random);
	if (n < 0 || (size_t)n >= sizeof(directory->path))
		return -ENAMETOOLONG;
	if (mkdir(directory->path, 0755))
		return -errno;
	err = take(directory->path, &directory->fd);
	if (err)
		rmdir(directory->path);
	return err;
}

/* A sweep was there in the same moment, or the name was taken. */
static bool is_passing(int err)
{
	return err == -EAGAIN || err == -ENOENT || err == -EEXIST;
}

int cgroup_make(struct cgroup_directory *ret_directory, char *reason)
{
	struct cgroup_directory directory;
	char parent[PATH_MAX - NAME_MAX_BYTES];
	int err = find_parent(parent, sizeof(parent));

	if (err) {
		snprintf(reason, CGROUP_REASON_MAX, "there is no cgroup v2 here: %s",
			 "mount -t cgroup2 none /sys/fs/cgroup/unified");
		return err;
	}
	err = -EAGAIN;
	for (int tries = 0; tries < TRIES_MAX && is_passing(err); tries++)
		err = make_in(parent, &directory);
	if (err)
		snprintf(reason, CGROUP_REASON_MAX,
			 "cannot make a cgroup below %.300s: %s: run as root where that is writable",
			 parent, strerror(-err));
	else
		*ret_directory = directory;
	return err;
}

int cgroup_enter(const struct cgroup_directory *directory, pid_t pid)
{
	int fd = openat(directory->fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	char text[32];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)pid);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, (size_t)n) != n)
		err = errno ? -errno : -EIO;
	close(fd);
	return err;
}

/* ---- who lives in it ---- */

static int read_populated(int events_fd)
{
	char text[256];
	ssize_t n = pread(events_fd, text, sizeof(text) - 1, 0);
	const char *value;

	if (n < 0)
		return -errno;
	text[n] = '\0';
	value = strstr(text, "populated ");
	return value ? value[strlen("populated ")] == '1' : -EPROTO;
}

static int open_events(const struct cgroup_directory *directory)
{
	int fd = openat(directory->fd, "cgroup.events", O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

int cgroup_is_populated(const struct cgroup_directory *directory)
{
	int fd = open_events(directory);
	int populated;

	if (fd < 0)
		return fd;
	populated = read_populated(fd);
	close(fd);
	return populated;
}

int cgroup_await_empty(const struct cgroup_directory *directory, int timeout_ms)
{
	struct pollfd events = {.fd = open_events(directory), .events = POLLPRI};
	int populated;

	if (events.fd < 0)
		return events.fd;
	populated = read_populated(events.fd);
	/* Readable again with the next change; a cgroup that is frozen or thawed changes too. */
	for (int changes = 0; populated == 1 && changes < CHANGES_MAX; changes++) {
		if (poll(&events, 1, timeout_ms) <= 0)
			break;
		populated = read_populated(events.fd);
	}
	close(events.fd);
	return populated == 1 ? -EBUSY : populated;
}

/* ---- the end of one ---- */

/* A walk over directories alone: the files of a cgroup are not looked at. NULL with errno. */
static FTS *walk(char *path)
{
	char *roots[] = {path, NULL};

	return fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV | FTS_NOSTAT, NULL);
}

/* The deepest first; the kernel refuses those that somebody lives in. */
static int remove_below(char *path)
{
	FTS *tree = walk(path);
	FTSENT *entry;
	int err = 0;

	if (!tree)
		return -errno;
	while ((entry = fts_read(tree)))
		if (entry->fts_info == FTS_DP && rmdir(entry->fts_path) && errno != ENOENT)
			err = -errno;
	fts_close(tree);
	return err;
}

int cgroup_remove(struct cgroup_directory *directory)
{
	int err = remove_below(directory->path);

	cgroup_close(directory);
	return err;
}

void cgroup_close(struct cgroup_directory *directory)
{
	if (directory->fd >= 0)
		close(directory->fd);
	directory->fd = -1;
}

/* Nobody holds it and nobody lives in it: true when it is gone. */
static bool remove_left_over(const char *path)
{
	struct cgroup_directory directory;

	if (copy_path(path, directory.path, sizeof(directory.path)) || take(path, &directory.fd))
		return false;
	if (cgroup_is_populated(&directory) != 0) {
		cgroup_close(&directory);
		return false;
	}
	return cgroup_remove(&directory) == 0;
}

size_t cgroup_sweep(void)
{
	char mount[PATH_MAX];
	size_t removed = 0;
	FTSENT *entry;
	FTS *tree;

	if (cgroup_find_mount("/proc/self/mounts", mount, sizeof(mount)) || !cgroup_is_directory(mount))
		return 0;
	tree = walk(mount);
	if (!tree)
		return 0;
	/* On the way up, so that one inside another goes first. */
	while ((entry = fts_read(tree)))
		if (entry->fts_info == FTS_DP &&
		    strncmp(entry->fts_name, NAME_PREFIX, strlen(NAME_PREFIX)) == 0)
			removed += remove_left_over(entry->fts_path);
	fts_close(tree);
	return removed;
}
