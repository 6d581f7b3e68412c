/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory and order of the events that the sequencer holds. At 200,000 events a
 * second malloc would be a good part of the cost, so freed blocks are kept in
 * a list per size class. Each event knows its place in the heap, since most
 * leave it from the middle.
 */
#include "held.h"

#include <errno.h>
#include <utlist.h>

static const size_t block_bytes[HELD_CLASSES] = {256,  512,   1024,  2048, 4096,
						 8192, 16384, 32768, 66560};

#ifdef __SANITIZE_ADDRESS__
#define SPARE_BYTES_MAX 0 /* so that the sanitizer sees a use after the loan */
#else
#define SPARE_BYTES_MAX (8 * 1024 * 1024)
#endif

static struct held *block_get(struct held_pool *pool, size_t bytes)
{
	unsigned int class = 0;
	struct held *held;

	while (class < HELD_CLASSES && block_bytes[class] < bytes)
		class++;
	if (class < HELD_CLASSES && pool->spare[class]) {
		held = pool->spare[class];
		pool->spare[class] = held->next;
		pool->spare_bytes -= block_bytes[class];
		return held;
	}
	held = malloc(class < HELD_CLASSES ? block_bytes[class] : bytes);
	if (held)
		held->block_class = class;
	return held;
}

struct held *held_new(struct held_pool *pool, const struct wire_event *event, struct bytes payload)
{
	struct held *held;

	if (payload.size > SIZE_MAX - sizeof(*held))
		return NULL;
	held = block_get(pool, sizeof(*held) + payload.size);
	if (!held)
		return NULL;
	held->prev = held->next = NULL;
	held->flow = NULL;
	held->event = *event;
	held->payload_bytes = payload.size;
	if (payload.size)
		memcpy(held->payload, payload.data, payload.size);
	return held;
}

void held_free(struct held_pool *pool, struct held *held)
{
	unsigned int class;

	if (!held)
		return;
	class = held->block_class;
	if (class == HELD_CLASSES || pool->spare_bytes + block_bytes[class] > SPARE_BYTES_MAX) {
		free(held);
		return;
	}
	held->next = pool->spare[class];
	pool->spare[class] = held;
	pool->spare_bytes += block_bytes[class];
}

void held_pool_done(struct held_pool *pool)
{
	for (size_t i = 0; i < HELD_CLASSES; i++) {
		while (pool->spare[i]) {
			struct held *next = pool->spare[i]->next;

			free(pool->spare[i]);
			pool->spare[i] = next;
		}
	}
	pool->spare_bytes = 0;
}

/* OPEN comes before what it opens, also when both have the same time. */
static int kind_rank(const struct wire_event *event)
{
	return event->kind == WIRE_OPEN ? 0 : event->kind;
}

bool held_before(const struct held *a, const struct held *b)
{
	const struct wire_event *x = &a->event, *y = &b->event;

	if (x->when_ns != y->when_ns)
		return x->when_ns < y->when_ns;
	if (x->flow != y->flow)
		return x->flow < y->flow;
	if (x->offset != y->offset)
		return x->offset < y->offset;
	if (x->kind != y->kind)
		return kind_rank(x) < kind_rank(y);
	return a->arrival < b->arrival;
}

int held_heap_reserve(struct held_heap *heap, size_t count)
{
	size_t capacity = heap->capacity ? heap->capacity : 1024;
	struct held_item *items;

	if (count <= heap->capacity)
		return 0;
	if (count > SIZE_MAX / 2 / sizeof(*items))
		return -ENOMEM;
	while (capacity < count)
		capacity *= 2;
	items = reallocarray(heap->items, capacity, sizeof(*items));
	if (!items)
		return -ENOMEM;
	heap->items = items;
	heap->capacity = capacity;
	return 0;
}

static bool item_before(const struct held_item *a, const struct held_item *b)
{
	return a->when_ns != b->when_ns ? a->when_ns < b->when_ns : held_before(a->held, b->held);
}

static void put(struct held_heap *heap, size_t index, struct held_item item)
{
	heap->items[index] = item;
	item.held->heap_index = index;
}

static void raise_from(struct held_heap *heap, size_t index, struct held_item item)
{
	while (index && item_before(&item, &heap->items[(index - 1) / 2])) {
		put(heap, index, heap->items[(index - 1) / 2]);
		index = (index - 1) / 2;
	}
	put(heap, index, item);
}

static void lower_from(struct held_heap *heap, size_t index, struct held_item item)
{
	for (;;) {
		size_t child = 2 * index + 1;

		if (child + 1 < heap->count && item_before(&heap->items[child + 1], &heap->items[child]))
			child++;
		if (child >= heap->count || item_before(&item, &heap->items[child]))
			break;
		put(heap, index, heap->items[child]);
		index = child;
	}
	put(heap, index, item);
}

void held_heap_add(struct held_heap *heap, struct held *held)
{
	raise_from(heap, heap->count++, (struct held_item){held->event.when_ns, held});
}

void held_heap_remove(struct held_heap *heap, struct held *held)
{
	size_t index = held->heap_index;
	struct held_item last = heap->items[--heap->count];

	if (last.held == held)
		return;
	if (index && item_before(&last, &heap->items[(index - 1) / 2]))
		raise_from(heap, index, last);
	else
		lower_from(heap, index, last);
}

void held_heap_done(struct held_heap *heap, struct held_pool *pool)
{
	for (size_t i = 0; i < heap->count; i++)
		held_free(pool, heap->items[i].held);
	free(heap->items);
	*heap = (struct held_heap){0};
}

int held_queue_reserve(struct held_queue *queue)
{
	return held_heap_reserve(&queue->late, queue->late.count + 1);
}

void held_queue_add(struct held_queue *queue, struct held *held)
{
	queue->count++;
	if (queue->in_order && held_before(held, queue->in_order->prev)) /* prev of the first is the last */
		held_heap_add(&queue->late, held);
	else
		DL_APPEND(queue->in_order, held);
}

struct held *held_queue_first(const struct held_queue *queue)
{
	struct held *late = queue->late.count ? queue->late.items[0].held : NULL;

	return !late || (queue->in_order && held_before(queue->in_order, late)) ? queue->in_order : late;
}

struct held *held_queue_take(struct held_queue *queue)
{
	struct held *first = held_queue_first(queue);

	queue->count--;
	if (first == queue->in_order)
		DL_DELETE(queue->in_order, first);
	else
		held_heap_remove(&queue->late, first);
	return first;
}

void held_queue_done(struct held_queue *queue, struct held_pool *pool)
{
	while (queue->in_order) {
		struct held *held = queue->in_order;

		DL_DELETE(queue->in_order, held);
		held_free(pool, held);
	}
	held_heap_done(&queue->late, pool);
	queue->count = 0;
}
