/* SPDX-License-Identifier: BSD-2-Clause */
/* What a burst took is given back to the kernel, though something that lives lies above it. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "heap.h"

#define PIECE_BYTES 4096
#define MIB (1ULL << 20)

static uint64_t anonymous_bytes(void)
{
	unsigned long kib = 0;
	char line[256];
	FILE *file = fopen("/proc/self/status", "r");

	assert_non_null(file);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "RssAnon: %lu", &kib) == 1)
			break;
	fclose(file);
	return kib * 1024;
}

static char *touched(void)
{
	char *piece = malloc(PIECE_BYTES);

	assert_non_null(piece);
	memset(piece, 1, PIECE_BYTES);
	return piece;
}

/* Takes that much, frees it, and returns what was taken last, which keeps the top. */
static char *burst(uint64_t bytes)
{
	size_t count = bytes / PIECE_BYTES;
	char **pieces = calloc(count, sizeof(*pieces)), *last;

	assert_non_null(pieces);
	for (size_t i = 0; i < count; i++)
		pieces[i] = touched();
	last = touched();
	for (size_t i = 0; i < count; i++)
		free(pieces[i]);
	free(pieces);
	return last;
}

static struct heap opened(void)
{
	struct heap heap;

	assert_int_equal(heap_open(&heap), 0);
	return heap;
}

static void a_burst_is_given_back(void **state)
{
	struct heap heap = opened();
	uint64_t before = anonymous_bytes();
	char *last = burst(64 * MIB);

	(void)state;
	assert_true(anonymous_bytes() >= before + 64 * MIB); /* free(3) gave nothing back */
	assert_true(heap_tend(&heap, 1));
	assert_true(anonymous_bytes() < before + 4 * MIB);
	free(last);
	heap_close(&heap);
}

static void and_so_is_the_next_one(void **state)
{
	struct heap heap = opened();
	uint64_t before = anonymous_bytes();
	char *last = burst(64 * MIB), *later;

	(void)state;
	assert_true(heap_tend(&heap, 1));
	assert_false(heap_tend(&heap, 1 + HEAP_LOOK_NS));
	later = burst(64 * MIB);
	assert_true(heap_tend(&heap, 1 + 2 * HEAP_LOOK_NS));
	assert_true(anonymous_bytes() < before + 4 * MIB);
	free(last);
	free(later);
	heap_close(&heap);
}

static void it_is_looked_at_now_and_then(void **state)
{
	struct heap heap = opened();
	char *last;

	(void)state;
	assert_false(heap_tend(&heap, 1));
	last = burst(64 * MIB);
	assert_false(heap_tend(&heap, HEAP_LOOK_NS));
	assert_true(heap_tend(&heap, HEAP_LOOK_NS + 1));
	free(last);
	heap_close(&heap);
}

static void little_is_left_where_it_is(void **state)
{
	struct heap heap = opened();
	char *last = burst(8 * MIB);

	(void)state;
	assert_false(heap_tend(&heap, 1));
	free(last);
	heap_close(&heap);
}

static void what_is_in_use_is_not_looked_for(void **state)
{
	struct heap heap = opened();
	char *pieces[64];

	(void)state;
	for (int i = 0; i < 64; i++) {
		pieces[i] = malloc(MIB);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, MIB);
	}
	assert_false(heap_tend(&heap, 1));
	for (int i = 0; i < 64; i++)
		free(pieces[i]);
	heap_close(&heap);
}

static void resident_memory_is_counted_in_bytes(void **state)
{
	struct heap heap = opened();
	uint64_t before = heap_resident_bytes(&heap);
	char *piece = malloc(32 * MIB);

	(void)state;
	assert_non_null(piece);
	memset(piece, 1, 32 * MIB);
	assert_in_range(heap_resident_bytes(&heap) - before, 32 * MIB - 4096, 33 * MIB);
	free(piece);
	heap_close(&heap);
	assert_int_equal(heap_resident_bytes(&heap), 0);
	assert_false(heap_tend(&heap, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_burst_is_given_back),
		cmocka_unit_test(and_so_is_the_next_one),
		cmocka_unit_test(it_is_looked_at_now_and_then),
		cmocka_unit_test(little_is_left_where_it_is),
		cmocka_unit_test(what_is_in_use_is_not_looked_for),
		cmocka_unit_test(resident_memory_is_counted_in_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
