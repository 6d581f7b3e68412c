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
 *     equal times keep the order (flow, offset, kind with OPEN first, arrival);
 *  2. in one flow, DATA and HOLE events leave in order of stream offset: one
 *     that starts beyond what has left waits for the bytes before it, and a
 *     STATE event waits for the bytes that its offset counts. Everything else
 *     that comes later in the flow waits behind them;
 *  3. an event of one end that has received_bytes = R waits until the other
 *     end's stream has left up to R (R - 1 once the STATE event that sent a FIN
 *     has left: the kernel counts a FIN as one), and everything behind it in
 *     its flow waits with it. Where the two ends wait for each other, the send
 *     that began first leaves at once;
 *  4. nothing waits longer than SEQUENCER_HOLD_NS after its when_ns, nor while
 *     more than LIMIT_HELD_BYTES are held, nor once the flow waited for has
 *     ended or sequencer_drain() was called. What leaves early is simply out
 *     of order: the stream stage then sees the gap.
 *
 * The two ends of a connection know each other by (netns, endpoints swapped,
 * send_base_seq and receive_base_seq swapped). An end whose other end was not
 * seen waits for it under rule 4, unless it was joined late. Process events
 * (and any of flow 0) follow rule 1 alone.
 *
 * The order depends on the events, not on when sequencer_pull() is called, as
 * long as every event is pushed before its watermark has passed and no cap is
 * reached.
 *
 * Pure: no clock, no I/O. Push copies; pull lends until the next pull.
 */
#ifndef NIGHTCLERK_SEQUENCER_H
#define NIGHTCLERK_SEQUENCER_H

#include "input.h"

/* Flows remembered; past it the one that was quiet longest is forgotten. */
#define SEQUENCER_FLOWS_MAX 65536

struct sequencer;

/* NULL when out of memory. */
struct sequencer *sequencer_new(void);
void sequencer_free(struct sequencer *sequencer); /* accepts NULL */

/*
 * Takes a copy of one event and its payload, from either ring, in ring order.
 * 0, or -ENOMEM (nothing taken).
 */
int sequencer_push(struct sequencer *sequencer, const struct wire_event *event,
		   struct bytes payload);

/*
 * The next event that may leave at now_ns: true, with *ret_event and
 * *ret_payload lent until the next pull; false when none may. now_ns must have
 * been read before the rings were last drained: only then has everything older
 * than the watermark been pushed.
 */
bool sequencer_pull(struct sequencer *sequencer, uint64_t now_ns,
		    const struct wire_event **ret_event, struct bytes *ret_payload);

/* The kernel copies that flow no more: nothing waits for its bytes. A flow that is not known is left alone. */
void sequencer_mute(struct sequencer *sequencer, uint64_t flow);

/* From now on nothing waits: pull until false to empty it. The order is as if time had passed. */
void sequencer_drain(struct sequencer *sequencer);

/* Events held at this moment, and their bytes (struct wire_event and payload). */
size_t sequencer_held_count(const struct sequencer *sequencer);
size_t sequencer_held_bytes(const struct sequencer *sequencer);
/* The earliest when_ns among them; 0 when none is held. */
uint64_t sequencer_oldest_ns(const struct sequencer *sequencer);

#endif
