/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Flows whose WIRE_END was lost: nothing would ever end them, and over weeks they
 * would fill the memory. Now and then those that live in the kernel are counted;
 * one that two counts in a row did not find, and of which no event came in
 * between, has ended, nobody knows when or how. One count is not enough: an end may be
 * on its way.
 *
 * Pure: no clock, no I/O.
 */
#ifndef NIGHTCLERK_FLOW_CENSUS_H
#define NIGHTCLERK_FLOW_CENSUS_H

#include "../bpf/wire_event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct flow_census;

struct flow_census *flow_census_new(void);	    /* NULL when out of memory */
void flow_census_free(struct flow_census *census); /* accepts NULL */

/* An event that is let through. A flow for which there is no memory is not watched. */
void flow_census_see(struct flow_census *census, const struct wire_event *event);
/* Flows that are watched. */
size_t flow_census_size(const struct flow_census *census);

/* A count begins, */
void flow_census_begin(struct flow_census *census);
/* finds each flow that lives, */
void flow_census_lives(struct flow_census *census, uint64_t flow);
/*
 * and is over, unless it failed: true, with the end of a flow that was lost and is watched no more; false
 * after the last. The end has WIRE_STILL_OPEN and WIRE_END_UNSEEN, and the offset up to which the flow was seen.
 */
bool flow_census_next_lost(struct flow_census *census, uint64_t now_ns, struct wire_event *ret_end);
/* A count that failed: as if it had not begun. */
void flow_census_cancel(struct flow_census *census);
/* Some were not found by the last count: another one will tell. */
bool flow_census_doubts(const struct flow_census *census);

#endif
