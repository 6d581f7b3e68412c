/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Root writes where the caller could have written: the file system ids and the
 * supplementary groups of the calling thread are lent for one call, so that
 * nothing else of us changes.
 */
#include "output_owner.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

struct own_groups {
	gid_t *list;
	int count;
};

struct output_owner output_owner_of_environment(void)
{
	struct output_owner owner = {(uid_t)-1, (gid_t)-1};
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() != 0 || !uid || !gid)
		return owner;
	owner.uid = (uid_t)strtoul(uid, NULL, 10);
	owner.gid = (gid_t)strtoul(gid, NULL, 10);
	return owner;
}

static int keep_own_groups(struct own_groups *ret_own)
{
	int count = getgroups(0, NULL);

	*ret_own = (struct own_groups){calloc((size_t)count + 1, sizeof(gid_t)), count};
	if (!ret_own->list)
		return -ENOMEM;
	ret_own->count = getgroups(count, ret_own->list);
	return ret_own->count < 0 ? -errno : 0;
}

/* Of the calling thread alone, as setfsuid() is: setgroups() of the C library is for all. */
static int set_groups(const gid_t *list, int count)
{
	return syscall(SYS_setgroups, (size_t)count, list) ? -errno : 0;
}

/* The groups of an account; of none that has a name: gid alone. */
static int take_groups_of(const char *name, gid_t gid)
{
	int count = 0, err;
	gid_t *list;

	if (!name)
		return set_groups(&gid, 1);
	getgrouplist(name, gid, NULL, &count); /* says how many there are */
	list = calloc((size_t)count, sizeof(*list));
	if (!list)
		return -ENOMEM;
	err = getgrouplist(name, gid, list, &count) < 0 ? -EPERM : set_groups(list, count);
	free(list);
	return err;
}

static void give_back(struct own_groups *own)
{
	setfsuid(geteuid());
	setfsgid(getegid());
	if (own->count >= 0 && set_groups(own->list, own->count))
		errno = 0; /* they could not be set either, then */
	free(own->list);
}

/* 0, or -errno with nothing changed. -EPERM: these rights cannot be taken on. */
static int take_on(const struct output_owner *owner, struct own_groups *ret_own)
{
	const struct passwd *entry = getpwuid(owner->uid);
	int err = keep_own_groups(ret_own);

	if (!err)
		err = take_groups_of(entry ? entry->pw_name : NULL, owner->gid);
	setfsgid(owner->gid);
	setfsuid(owner->uid);
	/* Neither says whether it worked; asked for an id that no one has, both say which one is set. */
	if (!err && (setfsuid((uid_t)-1) != (int)owner->uid || setfsgid((gid_t)-1) != (int)owner->gid))
		err = -EPERM;
	if (err)
		give_back(ret_own);
	return err;
}

static bool is_other(const struct output_owner *owner)
{
	return owner->uid != (uid_t)-1;
}

int output_owner_open(const struct output_owner *owner, const char *path, int flags)
{
	struct own_groups own;
	int fd, err = is_other(owner) ? take_on(owner, &own) : 0;

	if (err)
		return err;
	fd = open(path, flags, 0600);
	err = errno;
	if (is_other(owner))
		give_back(&own);
	return fd < 0 ? -err : fd;
}

int output_owner_unlink(const struct output_owner *owner, const char *path)
{
	struct own_groups own;
	int err = is_other(owner) ? take_on(owner, &own) : 0;

	if (err)
		return err;
	err = unlink(path) ? -errno : 0;
	if (is_other(owner))
		give_back(&own);
	return err;
}

int output_owner_chmod(const struct output_owner *owner, int fd, mode_t mode)
{
	struct own_groups own;
	int err = is_other(owner) ? take_on(owner, &own) : 0;

	if (err)
		return err;
	err = fchmod(fd, mode) ? -errno : 0;
	if (is_other(owner))
		give_back(&own);
	return err;
}
