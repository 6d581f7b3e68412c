/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The steps of audit_files.c on the file system: each opens one thing, looks at
 * what it has opened, and refuses it or sets it right. Descriptors belong to the
 * caller. On failure -errno, and *ret_why is a static "cause: remedy" where the
 * errno alone would not tell, else untouched (see output_remedy()).
 */
#ifndef NIGHTCLERK_AUDIT_PLACE_H
#define NIGHTCLERK_AUDIT_PLACE_H

#include <stdbool.h>
#include <sys/types.h>

#define AUDIT_PLACE_NOBODY ((gid_t)-1)
#define AUDIT_PLACE_KEEP_MAX 1000

/*
 * The group that a user's files may be shared with: his primary one if it has his name, as useradd(8) makes it for
 * him alone; a group of many would show them to other tenants. Else AUDIT_PLACE_NOBODY.
 */
gid_t audit_place_group(uid_t user);

/*
 * The directory of all tenants. Not there, but its parent: made, 0711, and *ret_made is true. Another's, or others
 * may write to it: -EPERM.
 */
int audit_place_directory(const char *path, bool *ret_made, const char **ret_why);
/*
 * A directory that an account writes to: made, 0700, and given to it where there is none but its parent. Another
 * owner, or a parent in which others could put another in its place: -EPERM.
 */
int audit_place_state(const char *path, uid_t user, gid_t group, const char **ret_why);
/* A tenant's, made if need be; ours, or -EPERM. 0700, or 0750 with that group. */
int audit_place_tenant(int directory, const char *name, gid_t group, const char **ret_why);
/*
 * A file for appending alone, made if need be; regular, ours and with one hard link, or -EPERM. 0600, or 0640 with
 * that group.
 */
int audit_place_file(int tenant, const char *name, gid_t group, const char **ret_why);
/* What a dead writer left of a line is ended with LF. 0 or -errno. */
int audit_place_end_line(int tenant, const char *name, int fd);
/*
 * name.1 becomes name.2 and so on, name becomes name.1; what is above keep is removed, which may
 * be more than one where keep was larger. 0 or -errno: some may have moved, nothing is lost.
 */
int audit_place_shift(int tenant, const char *name, unsigned int keep);

#endif
