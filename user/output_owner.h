/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose rights are used on files: root that was reached through sudo, or that
 * runs a command as somebody else, writes where that account could have written.
 */
#ifndef NIGHTCLERK_OUTPUT_OWNER_H
#define NIGHTCLERK_OUTPUT_OWNER_H

#include <sys/types.h>

/* (uid_t)-1 = the caller's own. */
struct output_owner {
	uid_t uid;
	gid_t gid;
};

/* SUDO_UID and SUDO_GID where root was reached through sudo, else the caller's own. */
struct output_owner output_owner_of_environment(void);

/*
 * open(2), unlink(2) and fchmod(2) with these rights: user, group, supplementary
 * groups. What is made is 0600. The descriptor, or 0, or -errno; -EPERM where the
 * rights cannot be taken on.
 */
int output_owner_open(const struct output_owner *owner, const char *path, int flags);
int output_owner_unlink(const struct output_owner *owner, const char *path);
int output_owner_chmod(const struct output_owner *owner, int fd, mode_t mode);

#endif
