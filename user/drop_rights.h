/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a process of ours that reads hostile bytes gives its rights away, for
 * good: another account, no group, no capability (bounding set too),
 * no_new_privs (Documentation/userspace-api/no_new_privs.rst), no core and no
 * ptrace(2) by that account (PR_SET_DUMPABLE), and a seccomp filter that lists
 * what may still be called. Whatever else is called kills the process with
 * SIGSYS: a violation is a break-in or a bug, and neither is to go unseen.
 */
#ifndef NIGHTCLERK_DROP_RIGHTS_H
#define NIGHTCLERK_DROP_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define DROP_RIGHTS_REASON_MAX 256
#define DROP_RIGHTS_USER "nightclerk" /* the account of the package; without it "nobody" */

struct unprivileged {
	uid_t uid; /* never 0 */
	gid_t gid;
	char name[64];
};

/*
 * The account by its name or number; NULL = DROP_RIGHTS_USER, else "nobody".
 * 0, or -ENOENT or -EINVAL (it is root) with one line in reason
 * (DROP_RIGHTS_REASON_MAX bytes).
 */
int drop_rights_find(const char *user, struct unprivileged *ret_account, char *reason);

/*
 * Closes every descriptor but standard input, output, error and those in keep.
 * 0 or -errno (-EINVAL: more than 16 of them).
 */
int drop_rights_close_all_but(const int *keep, size_t count);

/*
 * Gives everything away. Of this process alone and for good: call it in a child
 * that has one thread. stores_fd: a directory that becomes its root (chroot(2)) and working
 * directory, and what SQLite does to files there, from a second thread, is in the
 * filter, too; the descriptor is closed. -1: it can open nothing. 0, or -errno with reason
 * filled, and then the process may have lost a part of it: end it.
 */
int drop_rights(const struct unprivileged *account, int stores_fd, char *reason);

#endif
