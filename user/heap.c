/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

struct resident {
	uint64_t bytes;
	uint64_t anonymous_bytes;
};

int heap_open(struct heap *heap)
{
	*heap = (struct heap){
		.statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC),
		.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE),
	};
	return heap->statm_fd < 0 ? -errno : 0;
}

void heap_close(struct heap *heap)
{
	if (heap->statm_fd >= 0)
		close(heap->statm_fd);
	heap->statm_fd = -1;
}

/* The fields are pages: size, resident, shared (with files and other processes), and more. */
static struct resident read_resident(const struct heap *heap)
{
	char text[128], *at;
	ssize_t n = heap->statm_fd < 0 ? -1 : pread(heap->statm_fd, text, sizeof(text) - 1, 0);
	uint64_t resident, shared;

	if (n <= 0)
		return (struct resident){0};
	text[n] = '\0';
	strtoull(text, &at, 10);
	resident = strtoull(at, &at, 10);
	shared = strtoull(at, NULL, 10);
	return (struct resident){resident * heap->page_bytes, resident > shared ? (resident - shared) * heap->page_bytes : 0};
}

uint64_t heap_resident_bytes(const struct heap *heap)
{
	return read_resident(heap).bytes;
}

static uint64_t unused_bytes(const struct heap *heap)
{
	const struct mallinfo2 taken = mallinfo2();
	uint64_t used = taken.uordblks + taken.hblkhd, resident = read_resident(heap).anonymous_bytes;

	return resident > used ? resident - used : 0;
}

bool heap_tend(struct heap *heap, uint64_t now_ns)
{
	uint64_t unused;

	if (now_ns < heap->next_look_ns)
		return false;
	heap->next_look_ns = now_ns + HEAP_LOOK_NS;
	unused = unused_bytes(heap);
	if (unused < heap->kept_bytes)
		heap->kept_bytes = unused;
	if (unused - heap->kept_bytes < HEAP_WORTH_BYTES)
		return false;
	malloc_trim(0);
	heap->kept_bytes = unused_bytes(heap);
	return true;
}
