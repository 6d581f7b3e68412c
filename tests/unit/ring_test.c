/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ring.c on memory laid out as the kernel lays out a ring: our page, its page,
 * and the data twice.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ring.h"

#define SIZE (256UL * 1024)

struct scene {
	struct ring ring;
	uint8_t *memory;	  /* all of it, to write */
	volatile unsigned long *end; /* where the next record goes */
	uint8_t taken[64];	  /* first byte of each record that was handed over */
	size_t count, last_size;
	unsigned long told; /* the position that senders saw while the last record was handed over */
	int answer;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static struct scene *scene_new(unsigned long start)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	size_t bytes = 2 * page_bytes() + 2 * SIZE;
	int fd = memfd_create("ring", MFD_CLOEXEC);

	assert_non_null(scene);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
	scene->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(scene->memory, MAP_FAILED);
	assert_int_equal(ring_open(fd, SIZE, &scene->ring), 0);
	close(fd);
	scene->end = (volatile unsigned long *)(scene->memory + page_bytes());
	*scene->ring.consumed = start;
	*scene->end = start;
	return scene;
}

static void scene_free(struct scene *scene)
{
	ring_close(&scene->ring);
	ring_close(&scene->ring);
	munmap(scene->memory, 2 * page_bytes() + 2 * SIZE);
	free(scene);
}

static void put_byte(struct scene *scene, unsigned long position, uint8_t byte)
{
	uint8_t *data = scene->memory + 2 * page_bytes();

	data[position % SIZE] = byte;
	data[position % SIZE + SIZE] = byte;
}

/* A record of length bytes that begins with `first`; flags: BPF_RINGBUF_*_BIT. */
static void put(struct scene *scene, uint32_t length, uint32_t flags, uint8_t first)
{
	uint32_t header[2] = {length | flags, 0};

	for (size_t i = 0; i < sizeof(header); i++)
		put_byte(scene, *scene->end + i, ((const uint8_t *)header)[i]);
	put_byte(scene, *scene->end + BPF_RINGBUF_HDR_SZ, first);
	*scene->end += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7UL;
}

static int take(void *context, const void *data, size_t size)
{
	struct scene *scene = context;

	assert_true(scene->count < sizeof(scene->taken));
	scene->taken[scene->count++] = *(const uint8_t *)data;
	scene->last_size = size;
	scene->told = *scene->ring.consumed;
	return scene->answer;
}

static void records_come_in_order_without_the_discarded(void **state)
{
	struct scene *scene = scene_new(0);

	(void)state;
	put(scene, 100, 0, 'a');
	put(scene, 50, BPF_RINGBUF_DISCARD_BIT, 'b');
	put(scene, 7, 0, 'c');
	assert_int_equal(ring_fill(&scene->ring), 112 + 64 + 16);
	assert_int_equal(ring_read(&scene->ring, ring_end(&scene->ring), take, scene), 0);
	assert_int_equal(scene->count, 2);
	assert_memory_equal(scene->taken, "ac", 2);
	assert_int_equal(scene->last_size, 7);
	assert_true(ring_is_read_up_to(&scene->ring, ring_end(&scene->ring)));
	assert_int_equal(ring_fill(&scene->ring), 0);
	scene_free(scene);
}

static void an_unfinished_record_keeps_back_what_follows(void **state)
{
	struct scene *scene = scene_new(0);

	(void)state;
	put(scene, 8, 0, 'a');
	put(scene, 8, BPF_RINGBUF_BUSY_BIT, 'b');
	put(scene, 8, 0, 'c');
	assert_int_equal(ring_read(&scene->ring, ring_end(&scene->ring), take, scene), 0);
	assert_int_equal(scene->count, 1);
	assert_int_equal(*scene->ring.consumed, 16);
	assert_false(ring_is_read_up_to(&scene->ring, ring_end(&scene->ring)));
	scene_free(scene);
}

static void reading_stops_at_the_end_that_was_asked_for(void **state)
{
	struct scene *scene = scene_new(0);
	unsigned long end;

	(void)state;
	put(scene, 8, 0, 'a');
	end = ring_end(&scene->ring);
	put(scene, 8, 0, 'b');
	assert_int_equal(ring_read(&scene->ring, end, take, scene), 0);
	assert_int_equal(scene->count, 1);
	assert_true(ring_is_read_up_to(&scene->ring, end));
	scene_free(scene);
}

static void an_error_stops_behind_its_record(void **state)
{
	struct scene *scene = scene_new(0);

	(void)state;
	put(scene, 8, 0, 'a');
	put(scene, 8, 0, 'b');
	scene->answer = -EPROTO;
	assert_int_equal(ring_read(&scene->ring, ring_end(&scene->ring), take, scene), -EPROTO);
	assert_int_equal(scene->count, 1);
	assert_int_equal(*scene->ring.consumed, 16);
	scene_free(scene);
}

/* Both that of the memory and that of the count. */
static void positions_wrap(void **state)
{
	struct scene *scene = scene_new(-24UL);

	(void)state;
	put(scene, 100, 0, 'a');
	put(scene, 8, 0, 'b');
	assert_int_equal(ring_read(&scene->ring, ring_end(&scene->ring), take, scene), 0);
	assert_memory_equal(scene->taken, "ab", 2);
	assert_int_equal(*scene->ring.consumed, 112 + 16 - 24);
	scene_free(scene);
}

static void senders_are_told_once_per_batch(void **state)
{
	struct scene *scene = scene_new(0);
	const uint32_t length = RING_TOLD_BYTES / 2 - BPF_RINGBUF_HDR_SZ;

	(void)state;
	for (int i = 0; i < 4; i++)
		put(scene, length, 0, 'a');
	assert_int_equal(ring_read(&scene->ring, RING_TOLD_BYTES, take, scene), 0);
	assert_int_equal(scene->told, 0);
	assert_int_equal(*scene->ring.consumed, RING_TOLD_BYTES);
	assert_int_equal(ring_read(&scene->ring, ring_end(&scene->ring), take, scene), 0);
	assert_int_equal(scene->told, RING_TOLD_BYTES);
	assert_int_equal(*scene->ring.consumed, 2 * RING_TOLD_BYTES);
	scene_free(scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_come_in_order_without_the_discarded),
		cmocka_unit_test(an_unfinished_record_keeps_back_what_follows),
		cmocka_unit_test(reading_stops_at_the_end_that_was_asked_for),
		cmocka_unit_test(an_error_stops_behind_its_record),
		cmocka_unit_test(positions_wrap),
		cmocka_unit_test(senders_are_told_once_per_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
