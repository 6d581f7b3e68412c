/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two lots of events, oldest first: `young` is what the watermark still keeps
 * back, `waiting` is what came out of it and rests on bytes that have not left.
 * Each flow lists its waiting events in the order in which they will leave.
 *
 * An event comes out of the watermark, or runs out of patience, at a time that
 * it carries itself, and these two kinds of happening are worked off in order of
 * that time. So the order does not depend on how often anybody pulls.
 */
#include "sequencer.h"
#include "held.h"
#include "limits.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>
#include <utlist.h>

struct end_key {
	uint8_t local_address[WIRE_ADDRESS_BYTES];
	uint8_t remote_address[WIRE_ADDRESS_BYTES];
	uint32_t netns;
	uint32_t send_base_seq;
	uint32_t receive_base_seq;
	uint16_t local_port;
	uint16_t remote_port;
};

static_assert(sizeof(struct end_key) == 48, "hashed as a whole: no padding");

struct flow {
	uint64_t id;
	struct end_key key;
	struct flow *peer;	/* NULL: not seen yet, or gone */
	struct held *waiting;	/* in the order in which they will leave */
	uint64_t left_bytes;	/* end of the stream that has left */
	bool joined_late;
	bool muted;		/* its bytes come no more: nothing waits for them */
	bool closed;		/* the event that sent its FIN has left */
	bool complete;		/* its END is out of the watermark: no more will come */
	bool ended;		/* its END has left */
	bool peer_gone;
	bool has_key;		/* it is in sequencer->ends */
	UT_hash_handle by_id;
	UT_hash_handle by_key;
	struct flow *prev, *next; /* in sequencer->flows_by_use */
};

struct sequencer {
	struct held_queue young;
	struct held_heap waiting;
	struct held *ready; /* has left, to be handed out in this order */
	struct held *lent;
	struct flow *flows; /* hash by id */
	struct flow *last_used; /* of them; NULL = none, or it is gone */
	struct flow *ends;  /* hash by key */
	struct flow *flows_by_use;
	uint64_t arrivals;
	size_t held_count;
	size_t held_bytes;
	bool draining;
	struct held_pool pool;
};

/* ---- flows ---- */

static struct end_key key_of(const struct wire_event *event)
{
	struct end_key key = {
		.netns = event->netns,
		.send_base_seq = event->send_base_seq,
		.receive_base_seq = event->receive_base_seq,
		.local_port = event->local_port,
		.remote_port = event->remote_port,
	};

	memcpy(key.local_address, event->local_address, sizeof(key.local_address));
	memcpy(key.remote_address, event->remote_address, sizeof(key.remote_address));
	return key;
}

static struct end_key key_of_other_end(const struct end_key *key)
{
	struct end_key other = {
		.netns = key->netns,
		.send_base_seq = key->receive_base_seq,
		.receive_base_seq = key->send_base_seq,
		.local_port = key->remote_port,
		.remote_port = key->local_port,
	};

	memcpy(other.local_address, key->remote_address, sizeof(other.local_address));
	memcpy(other.remote_address, key->local_address, sizeof(other.remote_address));
	return other;
}

static void flow_free(struct sequencer *sequencer, struct flow *flow)
{
	if (flow->peer) {
		flow->peer->peer = NULL;
		flow->peer->peer_gone = true;
	}
	if (flow->has_key)
		HASH_DELETE(by_key, sequencer->ends, flow);
	HASH_DELETE(by_id, sequencer->flows, flow);
	if (sequencer->last_used == flow)
		sequencer->last_used = NULL;
	DL_DELETE(sequencer->flows_by_use, flow);
	free(flow);
}

static void forget_the_quietest(struct sequencer *sequencer)
{
	struct flow *flow;

	while ((flow = sequencer->flows_by_use) && !flow->waiting &&
	       HASH_CNT(by_id, sequencer->flows) >= SEQUENCER_FLOWS_MAX)
		flow_free(sequencer, flow);
}

/* Out of memory, the other end does not find this flow, and waits under rule 4. */
static void flow_meet_peer(struct sequencer *sequencer, struct flow *flow)
{
	struct end_key other = key_of_other_end(&flow->key);
	struct flow *peer, *twin;

	if (memcmp(&other, &flow->key, sizeof(other)) == 0) { /* connected to itself */
		flow->peer_gone = true;
		return;
	}
	HASH_FIND(by_key, sequencer->ends, &other, sizeof(other), peer);
	if (peer && !peer->peer) {
		peer->peer = flow;
		peer->peer_gone = false;
		flow->peer = peer;
	}
	HASH_FIND(by_key, sequencer->ends, &flow->key, sizeof(flow->key), twin);
	if (twin)
		return;
	HASH_ADD(by_key, sequencer->ends, key, sizeof(flow->key), flow);
	flow->has_key = flow->by_key.tbl != NULL;
}

/* NULL when out of memory. */
static struct flow *flow_new(struct sequencer *sequencer, const struct wire_event *event)
{
	struct flow *flow;

	forget_the_quietest(sequencer);
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	flow->id = event->flow;
	flow->key = key_of(event);
	flow->joined_late = event->flags & WIRE_JOINED_LATE;
	flow->left_bytes = flow->joined_late ? event->offset : 0;
	HASH_ADD(by_id, sequencer->flows, id, sizeof(flow->id), flow);
	if (!flow->by_id.tbl) {
		free(flow);
		return NULL;
	}
	DL_APPEND(sequencer->flows_by_use, flow);
	flow_meet_peer(sequencer, flow);
	return flow;
}

static struct flow *flow_of(struct sequencer *sequencer, const struct wire_event *event)
{
	struct flow *flow = sequencer->last_used;

	if (flow && flow->id == event->flow)
		return flow;
	HASH_FIND(by_id, sequencer->flows, &event->flow, sizeof(event->flow), flow);
	sequencer->last_used = flow ? flow : flow_new(sequencer, event);
	if (!flow)
		return sequencer->last_used;
	if (flow->next) {
		DL_DELETE(sequencer->flows_by_use, flow);
		DL_APPEND(sequencer->flows_by_use, flow);
	}
	return flow;
}

/* ---- the rules ---- */

static bool is_of_process(const struct wire_event *event)
{
	return event->flow == 0 || event->kind == WIRE_FORK || event->kind == WIRE_EXEC ||
	       event->kind == WIRE_EXIT || event->kind == WIRE_CONNECT;
}

static bool is_of_stream(const struct wire_event *event)
{
	return event->kind == WIRE_DATA || event->kind == WIRE_HOLE;
}

/* Does this event say that its end sends no more? From then on the kernel's count holds a FIN. */
static bool closes(const struct wire_event *event)
{
	if (event->kind == WIRE_END)
		return true;
	if (event->kind != WIRE_STATE)
		return false;
	if (event->shutdown & WIRE_SHUTDOWN_SEND)
		return true;
	switch (event->new_state) {
	case WIRE_TCP_FIN_WAIT1:
	case WIRE_TCP_FIN_WAIT2:
	case WIRE_TCP_TIME_WAIT:
	case WIRE_TCP_CLOSE:
	case WIRE_TCP_LAST_ACK:
	case WIRE_TCP_CLOSING:
		return true;
	default:
		return false;
	}
}

/* Has the flow's stream left up to this many bytes, of which one may be a FIN? */
static bool has_left(const struct flow *flow, uint64_t bytes)
{
	return flow->muted || bytes <= flow->left_bytes || (flow->closed && bytes - 1 == flow->left_bytes);
}

/* Rule 2. */
static bool rests_on_own_bytes(const struct held *held)
{
	const struct flow *flow = held->flow;

	if (flow->complete || flow->muted)
		return false;
	if (held->event.kind == WIRE_STATE)
		return !has_left(flow, held->event.offset);
	return is_of_stream(&held->event) && held->event.offset > flow->left_bytes;
}

/* Rule 3. */
static bool rests_on_peer(const struct held *held)
{
	const struct flow *flow = held->flow;

	if (held->event.received_bytes == 0 || flow->peer_gone)
		return false;
	if (!flow->peer)
		return !flow->joined_late;
	return !flow->peer->ended && !has_left(flow->peer, held->event.received_bytes);
}

/* The first waiting event of a flow if it may leave, or NULL. */
static struct held *first_free(const struct flow *flow)
{
	struct held *first = flow ? flow->waiting : NULL;

	return first && !rests_on_own_bytes(first) && !rests_on_peer(first) ? first : NULL;
}

static uint64_t began_ns(const struct held *held)
{
	return held->event.start_ns ? held->event.start_ns : held->event.when_ns;
}

/*
 * Two ends of which neither may leave. If both have all their own bytes, each
 * rests on the other for good. That is so when what had been received was noted
 * after the send was answered, as for a send that sleeps and goes on; the one
 * that began first is then the cause of the other.
 */
static struct held *first_of_knot(const struct flow *a, const struct flow *b)
{
	if (!b || !a->waiting || !b->waiting)
		return NULL;
	if (rests_on_own_bytes(a->waiting) || rests_on_own_bytes(b->waiting))
		return NULL;
	if (began_ns(a->waiting) != began_ns(b->waiting))
		return began_ns(a->waiting) < began_ns(b->waiting) ? a->waiting : b->waiting;
	return held_before(a->waiting, b->waiting) ? a->waiting : b->waiting;
}

/* Its flow knows that it has left. */
static void note_left(const struct held *held)
{
	const struct wire_event *event = &held->event;
	struct flow *flow = held->flow;
	uint64_t end;

	if (is_of_stream(event)) {
		if (__builtin_add_overflow(event->offset, event->length_bytes, &end))
			end = UINT64_MAX;
		if (end > flow->left_bytes)
			flow->left_bytes = end;
	}
	if (closes(event))
		flow->closed = true;
	if (event->kind == WIRE_END)
		flow->ended = true;
}

static void leave(struct sequencer *sequencer, struct held *held)
{
	note_left(held);
	held_heap_remove(&sequencer->waiting, held);
	DL_DELETE(held->flow->waiting, held);
	DL_APPEND(sequencer->ready, held);
}

/* Lets go of what may leave at both ends, oldest first; frees an end that is over. */
static void settle(struct sequencer *sequencer, struct flow *flow)
{
	struct flow *peer = flow->peer;

	for (;;) {
		struct held *mine = first_free(flow), *other = first_free(peer);

		if (!mine && !other)
			mine = first_of_knot(flow, peer);
		if (!mine && !other)
			break;
		leave(sequencer, !mine || (other && held_before(other, mine)) ? other : mine);
	}
	if (peer && peer->ended && !peer->waiting)
		flow_free(sequencer, peer);
	if (flow->ended && !flow->waiting)
		flow_free(sequencer, flow);
}

/* Has a place in the stream, to which other events of the flow can be compared. */
static bool has_place(const struct wire_event *event)
{
	return is_of_stream(event) || event->kind == WIRE_STATE;
}

/* Behind everything, except that it goes before what starts, or counts, beyond it. */
static void flow_enlist(struct flow *flow, struct held *held)
{
	struct held *at = flow->waiting ? flow->waiting->prev : NULL; /* the last */
	struct held *before = NULL;

	while (at && has_place(&held->event)) {
		if (has_place(&at->event)) {
			if (at->event.offset <= held->event.offset)
				break;
			before = at;
		}
		at = at == flow->waiting ? NULL : at->prev;
	}
	if (before)
		DL_PREPEND_ELEM(flow->waiting, before, held);
	else
		DL_APPEND(flow->waiting, held);
}

/* Nothing waits at either end of its connection, and it need not: as if it had waited and been let go. */
static bool goes_through(const struct held *held)
{
	const struct flow *flow = held->flow;

	return !flow->waiting && !(flow->peer && flow->peer->waiting) && !flow->complete &&
	       !rests_on_own_bytes(held) && !rests_on_peer(held);
}

/* Out of the watermark. */
static void admit(struct sequencer *sequencer)
{
	struct held *held = held_queue_take(&sequencer->young);
	struct flow *flow;

	flow = is_of_process(&held->event) ? NULL : flow_of(sequencer, &held->event);
	if (!flow) { /* or out of memory: then in order of time alone */
		DL_APPEND(sequencer->ready, held);
		return;
	}
	held->flow = flow;
	if (held->event.kind != WIRE_END && goes_through(held)) {
		note_left(held);
		DL_APPEND(sequencer->ready, held);
		return;
	}
	if (held->event.kind == WIRE_END)
		flow->complete = true;
	flow_enlist(flow, held);
	held_heap_add(&sequencer->waiting, held);
	settle(sequencer, flow);
}

/* Out of patience: it leaves, and with it what stands before it in its flow. */
static void force(struct sequencer *sequencer, struct held *held)
{
	struct flow *flow = held->flow;

	while (flow->waiting != held)
		leave(sequencer, flow->waiting);
	leave(sequencer, held);
	settle(sequencer, flow);
}

static uint64_t due_ns(const struct held *oldest, uint64_t delay_ns)
{
	uint64_t due;

	if (!oldest || __builtin_add_overflow(oldest->event.when_ns, delay_ns, &due))
		return UINT64_MAX;
	return due;
}

/* Does whatever comes next, if it is due. */
static bool step(struct sequencer *sequencer, uint64_t now_ns)
{
	const struct held *young = held_queue_first(&sequencer->young);
	const struct held_heap *waiting = &sequencer->waiting;
	bool crowded = sequencer->held_bytes > LIMIT_HELD_BYTES;
	uint64_t admit_ns = due_ns(young, SEQUENCER_WATERMARK_NS);
	uint64_t force_ns = due_ns(waiting->count ? waiting->items[0].held : NULL, SEQUENCER_HOLD_NS);

	if (waiting->count && (crowded || !young || force_ns <= admit_ns)) {
		if (!crowded && force_ns > now_ns)
			return false;
		force(sequencer, waiting->items[0].held);
		return true;
	}
	if (!young || (!crowded && admit_ns > now_ns))
		return false;
	admit(sequencer);
	return true;
}

/* ---- the interface ---- */

struct sequencer *sequencer_new(void)
{
	return calloc(1, sizeof(struct sequencer));
}

void sequencer_free(struct sequencer *sequencer)
{
	if (!sequencer)
		return;
	while (sequencer->flows_by_use)
		flow_free(sequencer, sequencer->flows_by_use);
	held_queue_done(&sequencer->young, &sequencer->pool);
	held_heap_done(&sequencer->waiting, &sequencer->pool);
	while (sequencer->ready) {
		struct held *held = sequencer->ready;

		DL_DELETE(sequencer->ready, held);
		held_free(&sequencer->pool, held);
	}
	held_free(&sequencer->pool, sequencer->lent);
	held_pool_done(&sequencer->pool);
	free(sequencer);
}

int sequencer_push(struct sequencer *sequencer, const struct wire_event *event,
		   struct bytes payload)
{
	struct held *held;

	/* Room for the day when all that is young waits, so that pulling cannot fail. */
	if (held_queue_reserve(&sequencer->young) ||
	    held_heap_reserve(&sequencer->waiting, sequencer->waiting.count + sequencer->young.count + 1))
		return -ENOMEM;
	held = held_new(&sequencer->pool, event, payload);
	if (!held)
		return -ENOMEM;
	held->arrival = sequencer->arrivals++;
	held_queue_add(&sequencer->young, held);
	sequencer->held_count++;
	sequencer->held_bytes += sizeof(held->event) + payload.size;
	return 0;
}

bool sequencer_pull(struct sequencer *sequencer, uint64_t now_ns,
		    const struct wire_event **ret_event, struct bytes *ret_payload)
{
	struct held *held;

	held_free(&sequencer->pool, sequencer->lent);
	sequencer->lent = NULL;
	while (!sequencer->ready)
		if (!step(sequencer, sequencer->draining ? UINT64_MAX : now_ns))
			return false;
	held = sequencer->ready;
	DL_DELETE(sequencer->ready, held);
	sequencer->lent = held;
	sequencer->held_count--;
	sequencer->held_bytes -= sizeof(held->event) + held->payload_bytes;
	*ret_event = &held->event;
	*ret_payload = (struct bytes){held->payload, held->payload_bytes};
	return true;
}

void sequencer_mute(struct sequencer *sequencer, uint64_t flow_id)
{
	struct flow *flow;

	HASH_FIND(by_id, sequencer->flows, &flow_id, sizeof(flow_id), flow);
	if (!flow)
		return;
	flow->muted = true;
	settle(sequencer, flow);
}

void sequencer_drain(struct sequencer *sequencer)
{
	sequencer->draining = true;
}

size_t sequencer_held_count(const struct sequencer *sequencer)
{
	return sequencer->held_count;
}

size_t sequencer_held_bytes(const struct sequencer *sequencer)
{
	return sequencer->held_bytes;
}

uint64_t sequencer_oldest_ns(const struct sequencer *sequencer)
{
	const struct held *young = held_queue_first(&sequencer->young);
	const struct held *oldest = sequencer->waiting.count ? sequencer->waiting.items[0].held : young;
	const struct held *ready;

	if (young && held_before(young, oldest))
		oldest = young;
	DL_FOREACH(sequencer->ready, ready) {
		if (!oldest || held_before(ready, oldest))
			oldest = ready;
	}
	return oldest ? oldest->event.when_ns : 0;
}
