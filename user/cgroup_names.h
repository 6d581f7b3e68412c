/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cgroup ids of the kernel -> paths below the mount of cgroup v2, each once.
 *
 * The id is the inode number of the cgroup's directory, and a file handle of
 * kernfs is that number, so the directory is opened by it: whichever pid
 * namespace its processes are in, and be they gone. Where that is not allowed
 * (CAP_DAC_READ_SEARCH), the path comes from a process in it, and holds only if
 * the directory there has that number.
 */
#ifndef NIGHTCLERK_CGROUP_NAMES_H
#define NIGHTCLERK_CGROUP_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cgroup_names;

struct cgroup_names *cgroup_names_new(void);	      /* NULL when out of memory */
void cgroup_names_free(struct cgroup_names *names); /* accepts NULL */

/*
 * True, with the path in ret_path, when this id gets its name now: the first
 * time that it can be found, and again once so many others were named since that it
 * was forgotten (cgroups_told.h). tgid: a process that was in it, 0 = none is known. An id is tried with a few processes.
 */
bool cgroup_names_find(struct cgroup_names *names, uint64_t id, uint32_t tgid, char *ret_path, size_t size);
/* The same each time that it is asked, for who remembers by himself. */
bool cgroup_names_path(const struct cgroup_names *names, uint64_t id, uint32_t tgid, char *ret_path, size_t size);

#endif
