/* SPDX-License-Identifier: BSD-2-Clause */
/* user/held.c: a heap that gives up items from its middle, and memory that is used again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>

#include "held.h"
#include "wire_build.h"

#define COUNT 400

static uint32_t pick(uint32_t *random, uint32_t below)
{
	*random = *random * 1664525u + 1013904223u;
	return (*random >> 8) % below;
}

static struct held *make_at(struct held_pool *pool, uint64_t when_ns)
{
	struct wire_event event = wire_build_exec(1, "agent", when_ns);
	struct held *held = held_new(pool, &event, (struct bytes){0});

	assert_non_null(held);
	held->arrival = 0;
	return held;
}

static void the_heap_stays_a_heap_whatever_is_taken_out(void **state)
{
	struct held_pool pool = {0};
	struct held_heap heap = {0};
	uint32_t random = 7;

	(void)state;
	for (int round = 0; round < 20; round++) {
		assert_int_equal(held_heap_reserve(&heap, COUNT), 0);
		for (int i = 0; i < COUNT; i++)
			held_heap_add(&heap, make_at(&pool, pick(&random, 100000)));
		for (int i = 0; i < COUNT / 2; i++) {
			struct held *held = heap.items[pick(&random, (uint32_t)heap.count)].held;

			held_heap_remove(&heap, held);
			held_free(&pool, held);
		}
		for (size_t i = 1; i < heap.count; i++)
			assert_false(held_before(heap.items[i].held, heap.items[(i - 1) / 2].held));
		for (size_t i = 0; i < heap.count; i++)
			assert_int_equal(heap.items[i].held->heap_index, i);
		for (uint64_t last = 0; heap.count;) {
			struct held *held = heap.items[0].held;

			assert_true(held->event.when_ns >= last);
			last = held->event.when_ns;
			held_heap_remove(&heap, held);
			held_free(&pool, held);
		}
	}
	held_heap_done(&heap, &pool);
	held_pool_done(&pool);
}

static void a_heap_frees_what_it_still_holds(void **state)
{
	struct held_pool pool = {0};
	struct held_heap heap = {0};

	(void)state;
	assert_int_equal(held_heap_reserve(&heap, 3000), 0);
	for (int i = 0; i < 3000; i++)
		held_heap_add(&heap, make_at(&pool, (uint64_t)i));
	held_heap_done(&heap, &pool);
	assert_int_equal(heap.count, 0);
	assert_null(heap.items);
	held_pool_done(&pool);
	assert_int_equal(pool.spare_bytes, 0);
}

static void room_for_more_than_memory_is_refused_and_changes_nothing(void **state)
{
	struct held_pool pool = {0};
	struct held_heap heap = {0};

	(void)state;
	assert_int_equal(held_heap_reserve(&heap, 1), 0);
	held_heap_add(&heap, make_at(&pool, 1));
	assert_int_equal(held_heap_reserve(&heap, SIZE_MAX / 2 + 1), -ENOMEM);
	assert_int_equal(heap.count, 1);
	assert_int_equal(heap.items[0].when_ns, 1);
	held_heap_done(&heap, &pool);
	held_pool_done(&pool);
}

/* Most come in order, some late by a little, one far too early for what follows it. */
static void the_queue_gives_the_oldest_whatever_came_late(void **state)
{
	struct held_pool pool = {0};
	struct held_queue queue = {0};
	uint32_t random = 11;
	uint64_t last = 0;

	(void)state;
	assert_null(held_queue_first(&queue));
	for (uint64_t i = 1; i <= 4000; i++) {
		uint64_t when_ns = i * 10 - (i % 7 == 0 ? pick(&random, 60) : 0) + (i == 2000 ? 5000 : 0);

		assert_int_equal(held_queue_reserve(&queue), 0);
		held_queue_add(&queue, make_at(&pool, when_ns));
		/* What is let out is old enough for nothing earlier to follow. */
		while (held_queue_first(&queue) && held_queue_first(&queue)->event.when_ns + 100 < i * 10) {
			struct held *held = held_queue_take(&queue);

			assert_true(held->event.when_ns >= last);
			last = held->event.when_ns;
			held_free(&pool, held);
		}
	}
	assert_true(queue.count > 0 && queue.count < 600);
	held_queue_done(&queue, &pool);
	assert_null(held_queue_first(&queue));
	held_pool_done(&pool);
}

static void an_event_in_order_does_not_go_through_the_heap(void **state)
{
	struct held_pool pool = {0};
	struct held_queue queue = {0};

	(void)state;
	for (uint64_t i = 1; i <= 100; i++) {
		assert_int_equal(held_queue_reserve(&queue), 0);
		held_queue_add(&queue, make_at(&pool, i == 100 ? 50 : i));
	}
	assert_int_equal(queue.count, 100);
	assert_int_equal(queue.late.count, 1);
	held_queue_done(&queue, &pool);
	held_pool_done(&pool);
}

static void memory_kept_for_reuse_has_a_cap(void **state)
{
	static const uint8_t payload[60000];
	static struct held *held[300];
	struct wire_event event = wire_build_exec(1, "agent", 1);
	struct held_pool pool = {0};

	(void)state;
	for (size_t i = 0; i < 300; i++) {
		held[i] = held_new(&pool, &event, (struct bytes){payload, sizeof(payload)});
		assert_non_null(held[i]);
	}
	for (size_t i = 0; i < 300; i++)
		held_free(&pool, held[i]);
	assert_true(pool.spare_bytes <= 8 * 1024 * 1024);
	held_free(&pool, NULL);
	held_pool_done(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_heap_stays_a_heap_whatever_is_taken_out),
		cmocka_unit_test(a_heap_frees_what_it_still_holds),
		cmocka_unit_test(room_for_more_than_memory_is_refused_and_changes_nothing),
		cmocka_unit_test(the_queue_gives_the_oldest_whatever_came_late),
		cmocka_unit_test(an_event_in_order_does_not_go_through_the_heap),
		cmocka_unit_test(memory_kept_for_reuse_has_a_cap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
