/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both rings -> one deterministic order.
 *
 * Ring order is not causal: an answer may be submitted on one CPU before the
 * request it answers is submitted on another, and two threads that share a
 * socket finish their sends in any order. The sequencer puts wire events in
 * order by these rules:
 *
 *  1. events leave in order of when_ns, and only SEQUENCER_WATERMARK_NS after
 *     it, so that a later arrival with an earlier time still finds its place;
 *     equal times keep the order (flow, offset, kind, arrival);
 *  2. in one flow, DATA and HOLE events leave in order of stream offset: one
 *     that starts beyond what has left waits for the bytes before it;
 *  3. an event of one end that has received_bytes = R waits until the other
 *     end's stream has left up to R (minus the FIN's one), and everything
 *     behind it in its flow waits with it;
 *  4. nothing waits longer than SEQUENCER_HOLD_NS after its when_ns, nor while
 *     more than LIMIT_HELD_BYTES are held, nor once the flow waited for has
 *     ended or sequencer_drain() was called. What leaves early is simply out
 *     of order: the stream stage then sees the gap.
 *
 * The two ends of a connection know each other by (netns, endpoints swapped,
 * send_base_seq and receive_base_seq swapped).
 *
 * Pure: no clock, no I/O. Push copies; pull lends until the next call.
 */
#ifndef NIGHTCLERK_SEQUENCER_H
#define NIGHTCLERK_SEQUENCER_H

#include "input.h"

struct sequencer;

/* NULL when out of memory. */
struct sequencer *sequencer_new(void);
void sequencer_free(struct sequencer *sequencer); /* accepts NULL */

/*
 * Takes a copy of one event and its payload, from either ring, in ring order.
 * 0, or -ENOMEM (nothing taken).
 */
int sequencer_push(struct sequencer *sequencer, const struct wire_event *event, struct bytes payload);

/*
 * The next event that may leave at now_ns: true, with *ret_event and
 * *ret_payload lent until the next call; false when none may.
 */
bool sequencer_pull(struct sequencer *sequencer, uint64_t now_ns, const struct wire_event **ret_event,
		    struct bytes *ret_payload);

/* From now on nothing waits: pull until false to empty it. */
void sequencer_drain(struct sequencer *sequencer);

/* Events and bytes held at this moment. */
size_t sequencer_held_count(const struct sequencer *sequencer);
size_t sequencer_held_bytes(const struct sequencer *sequencer);

#endif
