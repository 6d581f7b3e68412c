/* SPDX-License-Identifier: BSD-2-Clause */
/* openat2(2) has no wrapper in the C library of Debian 12. */
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RACES_MAX 16 /* a ".." or a rename at the same moment gives EAGAIN: fs/namei.c, handle_dots() */

static int open_how(int directory, const char *path, int flags, mode_t mode, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)(flags | O_CLOEXEC | O_NOCTTY),
		.mode = flags & O_CREAT ? mode : 0,
		.resolve = RESOLVE_NO_SYMLINKS | resolve,
	};
	long fd = -1;

	for (int race = 0; race < RACES_MAX; race++) {
		fd = syscall(SYS_openat2, directory, path, &how, sizeof(how));
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd < 0 ? -errno : (int)fd;
}

int beneath_open_directory(const char *path)
{
	return open_how(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, 0);
}

int beneath_open(int directory, const char *name, int flags, mode_t mode)
{
	return open_how(directory, name, flags | O_NONBLOCK, mode, RESOLVE_BENEATH);
}

int beneath_born(int fd, int64_t *ret_wall_ns)
{
	struct statx facts;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &facts))
		return -errno;
	if (!(facts.stx_mask & STATX_BTIME))
		return -ENODATA;
	*ret_wall_ns = facts.stx_btime.tv_sec * 1000000000 + facts.stx_btime.tv_nsec;
	return 0;
}
