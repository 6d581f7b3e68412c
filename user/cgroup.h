/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cgroup v2 directories of our own: made below the cgroup that we are in
 * ourselves (its limits go on to hold), named nightclerk-confine-PID-RANDOM.
 *
 * Whoever made one holds a lock on it (flock) for as long as he lives. A
 * directory of that name that nobody holds and nobody lives in is left over
 * from a nightclerk that was killed.
 */
#ifndef NIGHTCLERK_CGROUP_H
#define NIGHTCLERK_CGROUP_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CGROUP_REASON_MAX 512

struct cgroup_directory {
	int fd; /* with the lock */
	char path[PATH_MAX];
};

/* Where cgroup v2 is mounted, by a file like /proc/self/mounts. 0, -ENOENT, or -errno of opening it. */
int cgroup_find_mount(const char *mounts, char *ret_path, size_t size);
/* A process's own path below that mount, by a file like /proc/self/cgroup: "/" or "/a/b". 0, -ENOENT or -errno. */
int cgroup_find_path(const char *file, char *ret_path, size_t size);

/* Is that a directory of cgroup v2? */
bool cgroup_is_directory(const char *path);

/* 0, or -errno with one line in reason (CGROUP_REASON_MAX bytes). */
int cgroup_make(struct cgroup_directory *ret_directory, char *reason);
/* Moves a process in, and with it what it forks from now on. 0 or -errno. */
int cgroup_enter(const struct cgroup_directory *directory, pid_t pid);
/* Does any process live in it, or in a cgroup below it? 1, 0 or -errno. */
int cgroup_is_populated(const struct cgroup_directory *directory);
/* Waits that long for the last process in it to end. 0, -EBUSY where one lives on, or -errno. */
int cgroup_await_empty(const struct cgroup_directory *directory, int timeout_ms);
/* Removes it, and the empty cgroups that were made below it. 0 or -errno; the directory is closed in any case. */
int cgroup_remove(struct cgroup_directory *directory);
/* Leaves it where it is. */
void cgroup_close(struct cgroup_directory *directory);

/* Removes what killed ones left over and nobody lives in any more: how many there were. */
size_t cgroup_sweep(void);

#endif
