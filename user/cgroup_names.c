/* SPDX-License-Identifier: BSD-2-Clause */
/* What was named already or was tried (cgroups_told.h), beside the mount that all are opened below. */
#include "cgroup_names.h"
#include "cgroup.h"
#include "cgroups_told.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define KERNFS_HANDLE 0xfe /* FILEID_KERNFS, since Linux 5.5: the inode number, 64 bits */

struct cgroup_names {
	struct cgroups_told *told;
	char mount[PATH_MAX]; /* "" = none */
	int mount_fd;
};

struct cgroup_names *cgroup_names_new(void)
{
	struct cgroup_names *names = calloc(1, sizeof(*names));

	if (!names)
		return NULL;
	names->told = cgroups_told_new();
	if (!names->told) {
		free(names);
		return NULL;
	}
	if (cgroup_find_mount("/proc/self/mounts", names->mount, sizeof(names->mount)))
		names->mount[0] = '\0';
	names->mount_fd = *names->mount ? open(names->mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	return names;
}

void cgroup_names_free(struct cgroup_names *names)
{
	if (!names)
		return;
	cgroups_told_free(names->told);
	if (names->mount_fd >= 0)
		close(names->mount_fd);
	free(names);
}

static int open_by_id(const struct cgroup_names *names, uint64_t id)
{
	union {
		struct file_handle handle;
		char room[sizeof(struct file_handle) + sizeof(id)];
	} by = {.handle = {.handle_bytes = sizeof(id), .handle_type = KERNFS_HANDLE}};

	memcpy(by.handle.f_handle, &id, sizeof(id));
	return open_by_handle_at(names->mount_fd, &by.handle, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static bool find_by_id(const struct cgroup_names *names, uint64_t id, char *ret_path, size_t size)
{
	char link[32], path[PATH_MAX];
	size_t mount_length = strlen(names->mount);
	int fd = open_by_id(names, id);
	ssize_t length;

	if (fd < 0)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, sizeof(path) - 1);
	close(fd);
	if (length < (ssize_t)mount_length)
		return false;
	path[length] = '\0';
	if (strncmp(path, names->mount, mount_length) != 0 || (path[mount_length] && path[mount_length] != '/'))
		return false; /* outside of what is mounted here, or removed */
	return (size_t)snprintf(ret_path, size, "%s", path[mount_length] ? path + mount_length : "/") < size;
}

static bool find_by_process(const struct cgroup_names *names, uint64_t id, uint32_t tgid, char *ret_path, size_t size)
{
	char file[32], directory[2 * PATH_MAX];
	struct stat stat_of;

	snprintf(file, sizeof(file), "/proc/%u/cgroup", tgid);
	if (tgid == 0 || cgroup_find_path(file, ret_path, size))
		return false;
	snprintf(directory, sizeof(directory), "%s%s", names->mount, ret_path);
	return stat(directory, &stat_of) == 0 && stat_of.st_ino == id;
}

bool cgroup_names_path(const struct cgroup_names *names, uint64_t id, uint32_t tgid, char *ret_path, size_t size)
{
	return names->mount_fd >= 0 &&
	       (find_by_id(names, id, ret_path, size) || find_by_process(names, id, tgid, ret_path, size));
}

bool cgroup_names_find(struct cgroup_names *names, uint64_t id, uint32_t tgid, char *ret_path, size_t size)
{
	if (!id || names->mount_fd < 0 || !cgroups_told_is_due(names->told, id, tgid != 0))
		return false;
	if (!cgroup_names_path(names, id, tgid, ret_path, size))
		return false;
	cgroups_told_note(names->told, id, strlen(ret_path));
	return true;
}
