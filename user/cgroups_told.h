/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which cgroup ids have got their path already, so that none is looked up at
 * each of its events. Bounded: those told longest ago are forgotten, and are due
 * once more when they come back.
 *
 * The bounds are half of those of whoever learns the paths (LIMIT_CGROUPS,
 * LIMIT_CGROUP_PATHS_BYTES) and forgets them in the same order, or those used
 * longest ago: what is remembered here is remembered there.
 *
 * Pure: no clock, no I/O.
 */
#ifndef NIGHTCLERK_CGROUPS_TOLD_H
#define NIGHTCLERK_CGROUPS_TOLD_H

#include "limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CGROUPS_TOLD_MAX (LIMIT_CGROUPS / 2)
#define CGROUPS_TOLD_BYTES (LIMIT_CGROUP_PATHS_BYTES / 2) /* of the paths that were told */
#define CGROUPS_TOLD_TRIES 4				     /* the process that was asked may just have ended */

struct cgroups_told;

struct cgroups_told *cgroups_told_new(void);	      /* NULL when out of memory */
void cgroups_told_free(struct cgroups_told *told); /* accepts NULL */

/*
 * True when the path of this id is to be looked up now: it was not told yet, and not
 * given up after CGROUPS_TOLD_TRIES with a process to ask. by_process: there is one, so this counts as a try.
 */
bool cgroups_told_is_due(struct cgroups_told *told, uint64_t id, bool by_process);
/* Its path, of so many bytes, was found and told. */
void cgroups_told_note(struct cgroups_told *told, uint64_t id, size_t path_bytes);

#endif
