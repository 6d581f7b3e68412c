/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Owners and modes are looked at on the descriptor. A wider mode that root set is
 * corrected; another owner never is, for a stranger may hold the file open.
 */
#include "audit_place.h"
#include "beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <linux/limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ACCOUNT_BYTES 16384 /* of one line of passwd or group */

gid_t audit_place_group(uid_t user)
{
	char *text = malloc(2 * ACCOUNT_BYTES);
	struct passwd account, *found = NULL;
	struct group group, *found_group = NULL;
	gid_t gid = AUDIT_PLACE_NOBODY;

	if (text && getpwuid_r(user, &account, text, ACCOUNT_BYTES, &found) == 0 && found &&
	    getgrgid_r(account.pw_gid, &group, text + ACCOUNT_BYTES, ACCOUNT_BYTES, &found_group) == 0 && found_group &&
	    strcmp(account.pw_name, group.gr_name) == 0)
		gid = account.pw_gid;
	free(text);
	return gid;
}

static int close_with(int fd, int err)
{
	close(fd);
	return err;
}

static int refuse(int fd, const char **ret_why, const char *why)
{
	*ret_why = why;
	return close_with(fd, -EPERM);
}

/* Ours, and exactly that mode and group. 0 or -errno. */
static int set_right(int fd, const struct stat *stat, mode_t mode, gid_t group)
{
	gid_t wanted = group == AUDIT_PLACE_NOBODY ? getegid() : group;

	if (stat->st_gid != wanted) {
		if (fchmod(fd, mode & 0700)) /* never for a moment readable by the wrong group */
			return -errno;
		if (fchown(fd, (uid_t)-1, wanted) || fchmod(fd, mode))
			return -errno;
		return 0;
	}
	return (stat->st_mode & 07777) != mode && fchmod(fd, mode) ? -errno : 0;
}

/* ---- directories ---- */

/* Its parent, and its name there (PATH_MAX bytes). A descriptor or -errno. */
static int open_parent(const char *path, char *ret_name)
{
	char parent[PATH_MAX], name[PATH_MAX];

	if (strlen(path) >= sizeof(parent))
		return -ENAMETOOLONG;
	snprintf(parent, sizeof(parent), "%s", path); /* dirname(3) and basename(3) write into what they are given */
	snprintf(name, sizeof(name), "%s", path);
	snprintf(ret_name, PATH_MAX, "%s", basename(name));
	return beneath_open_directory(dirname(parent));
}

static int make_directory(const char *path)
{
	char name[PATH_MAX];
	int err, fd = open_parent(path, name);

	if (fd < 0)
		return fd;
	err = mkdirat(fd, name, 0700) ? -errno : 0;
	close(fd);
	fd = err && err != -EEXIST ? err : beneath_open_directory(path);
	if (fd >= 0 && !err && fchmod(fd, 0711)) /* a tenant may pass through to his own, and list nobody */
		return close_with(fd, -errno);
	return fd;
}

int audit_place_directory(const char *path, bool *ret_made, const char **ret_why)
{
	int fd = beneath_open_directory(path);
	struct stat stat;

	if (fd == -ENOENT) {
		fd = make_directory(path);
		*ret_made = fd >= 0;
	}
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat))
		return close_with(fd, -errno);
	if (stat.st_uid != geteuid())
		return refuse(fd, ret_why, "the directory belongs to somebody else: chown it to root, or give another");
	if (stat.st_mode & 022)
		return refuse(fd, ret_why, "others may write to the directory: chmod go-w, or give another");
	return fd;
}

/* Made just now, it is ours until it is given away. */
static int give_state(int fd, bool made, uid_t user, gid_t group, const char **ret_why)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return close_with(fd, -errno);
	if (made && stat.st_uid == geteuid() && fchown(fd, user, group))
		return close_with(fd, -errno);
	if (!made && stat.st_uid != user)
		return refuse(fd, ret_why, "it belongs to somebody else than the collector's account: chown it, or give another");
	return stat.st_mode & 077 && fchmod(fd, 0700) ? close_with(fd, -errno) : fd;
}

int audit_place_state(const char *path, uid_t user, gid_t group, const char **ret_why)
{
	char name[PATH_MAX];
	struct stat stat;
	bool made;
	int fd, err, parent = open_parent(path, name);

	if (parent < 0)
		return parent;
	if (fstat(parent, &stat))
		return close_with(parent, -errno);
	if (stat.st_mode & 022 && !(stat.st_mode & S_ISVTX))
		return refuse(parent, ret_why, "others may write to the directory it is in: chmod go-w that, or give another");
	made = mkdirat(parent, name, 0700) == 0;
	err = made || errno == EEXIST ? 0 : -errno;
	fd = err ? err : beneath_open(parent, name, O_RDONLY | O_DIRECTORY, 0);
	close(parent);
	return fd < 0 ? fd : give_state(fd, made, user, group, ret_why);
}

int audit_place_tenant(int directory, const char *name, gid_t group, const char **ret_why)
{
	int made = mkdirat(directory, name, 0700) == 0, err, fd;
	struct stat stat;

	if (!made && errno != EEXIST)
		return -errno;
	fd = beneath_open(directory, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	if (fstat(fd, &stat))
		return close_with(fd, -errno);
	if (stat.st_uid != geteuid())
		return refuse(fd, ret_why, "the tenant's directory belongs to somebody else: remove it, or chown it to root");
	err = set_right(fd, &stat, group == AUDIT_PLACE_NOBODY ? 0700 : 0750, group);
	return err ? close_with(fd, err) : fd;
}

/* ---- files ---- */

int audit_place_file(int tenant, const char *name, gid_t group, const char **ret_why)
{
	int fd = beneath_open(tenant, name, O_WRONLY | O_APPEND | O_CREAT, 0600), err;
	struct stat stat;

	if (fd == -ENXIO) /* a FIFO that nobody reads, or a socket */
		*ret_why = "it is no regular file: remove it";
	if (fd < 0)
		return fd == -ENXIO ? -EPERM : fd;
	if (fstat(fd, &stat))
		return close_with(fd, -errno);
	if (!S_ISREG(stat.st_mode))
		return refuse(fd, ret_why, "it is no regular file: remove it");
	if (stat.st_nlink > 1)
		return refuse(fd, ret_why, "it has a second hard link: remove one of the two");
	if (stat.st_uid != geteuid())
		return refuse(fd, ret_why, "it belongs to somebody else: remove it, or chown it to root");
	err = set_right(fd, &stat, group == AUDIT_PLACE_NOBODY ? 0600 : 0640, group);
	return err ? close_with(fd, err) : fd;
}

int audit_place_end_line(int tenant, const char *name, int fd)
{
	int reader = beneath_open(tenant, name, O_RDONLY, 0), err = 0;
	struct stat stat, same;
	char last;

	if (reader < 0)
		return reader;
	if (fstat(fd, &stat) || fstat(reader, &same))
		err = -errno;
	else if (stat.st_ino != same.st_ino || stat.st_dev != same.st_dev)
		err = -ESTALE;
	else if (stat.st_size > 0 && pread(reader, &last, 1, stat.st_size - 1) == 1 && last != '\n')
		err = write(fd, "\n", 1) == 1 ? 0 : -errno;
	close(reader);
	return err;
}

static void name_of(char *text, size_t size, const char *name, unsigned int number)
{
	if (number)
		snprintf(text, size, "%s.%u", name, number);
	else
		snprintf(text, size, "%s", name);
}

int audit_place_shift(int tenant, const char *name, unsigned int keep)
{
	char from[NAME_MAX + 1], to[NAME_MAX + 1];

	for (unsigned int i = keep; i-- > 0;) {
		name_of(from, sizeof(from), name, i);
		name_of(to, sizeof(to), name, i + 1);
		if (renameat(tenant, from, tenant, to) && errno != ENOENT)
			return -errno;
	}
	for (unsigned int i = keep + 1; i <= AUDIT_PLACE_KEEP_MAX; i++) {
		name_of(from, sizeof(from), name, i);
		if (unlinkat(tenant, from, 0))
			break;
	}
	return 0;
}
