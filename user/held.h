/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events that the sequencer holds: their memory and their order by time.
 * Private to sequencer.c.
 */
#ifndef NIGHTCLERK_HELD_H
#define NIGHTCLERK_HELD_H

#include "../bpf/wire_event.h"
#include "bytes.h"

struct flow;

/* One event with its payload. The links and the flow belong to the sequencer. */
struct held {
	struct held *prev, *next;
	struct flow *flow;
	uint64_t arrival;
	size_t heap_index;
	size_t payload_bytes;
	unsigned int block_class;
	struct wire_event event;
	uint8_t payload[];
};

/* Order of time: (when_ns, flow, offset, kind with OPEN first, arrival). Never equal. */
bool held_before(const struct held *a, const struct held *b);

/* ---- memory: freed blocks are kept by size, up to a cap ---- */

#define HELD_CLASSES 9

struct held_pool {
	struct held *spare[HELD_CLASSES]; /* linked by next */
	size_t spare_bytes;
};

/* A copy, with flow and links unset; NULL when out of memory. */
struct held *held_new(struct held_pool *pool, const struct wire_event *event, struct bytes payload);
void held_free(struct held_pool *pool, struct held *held); /* accepts NULL */
void held_pool_done(struct held_pool *pool);

/* ---- a binary heap: items[0] is the oldest ---- */

struct held_item {
	uint64_t when_ns; /* of the event: most comparisons need not go there */
	struct held *held;
};

struct held_heap {
	struct held_item *items;
	size_t count;
	size_t capacity;
};

/* Room for so many in all. 0 or -ENOMEM. */
int held_heap_reserve(struct held_heap *heap, size_t count);
/* There must be room. */
void held_heap_add(struct held_heap *heap, struct held *held);
/* held must be in this heap, anywhere. */
void held_heap_remove(struct held_heap *heap, struct held *held);
/* Frees the items too. */
void held_heap_done(struct held_heap *heap, struct held_pool *pool);

/*
 * ---- a queue in order of time ----
 *
 * Almost every event comes in order: such a one is put behind the others, and
 * only one that is older than the last of them goes into the heap.
 */
struct held_queue {
	struct held *in_order; /* linked, oldest first */
	struct held_heap late;
	size_t count;
};

/* Room for one more. 0 or -ENOMEM. */
int held_queue_reserve(struct held_queue *queue);
/* There must be room. */
void held_queue_add(struct held_queue *queue, struct held *held);
/* The oldest; NULL when there is none. */
struct held *held_queue_first(const struct held_queue *queue);
/* Takes the oldest, which there is. */
struct held *held_queue_take(struct held_queue *queue);
/* Frees what is in it too. */
void held_queue_done(struct held_queue *queue, struct held_pool *pool);

#endif
