/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The mark of a run that writes to a file: a second file beside it, locked
 * (flock) for as long as the run lives and removed at its clean end. One that
 * nobody holds is left over from a run that ended unclean, in whatever pid
 * namespace that was. The first run marks PATH.running, those that run beside
 * it PATH.RUN-ID.running.
 */
#ifndef NIGHTCLERK_OUTPUT_MARK_H
#define NIGHTCLERK_OUTPUT_MARK_H

#include "output_owner.h"
#include <stdbool.h>

struct output_mark;

/*
 * 0 or -errno. *ret_unclean becomes true when a mark was left over; it is
 * removed, so that it is said once.
 */
int output_mark_new(const char *path, const struct output_owner *owner, const char *run_id,
		    struct output_mark **ret_mark, bool *ret_unclean);
/* Removes the mark. Accepts NULL. */
void output_mark_free(struct output_mark *mark);

#endif
