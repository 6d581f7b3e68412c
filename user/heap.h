/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What this process holds of memory, and what it gives back. A backlog leaves free
 * memory below what lives on, and free(3) gives back the top alone: a process that
 * lives for weeks would keep the largest burst it ever met.
 */
#ifndef NIGHTCLERK_HEAP_H
#define NIGHTCLERK_HEAP_H

#include <stdbool.h>
#include <stdint.h>

#define HEAP_LOOK_NS (10 * 1000 * 1000 * 1000ULL)
#define HEAP_WORTH_BYTES (16 << 20)

struct heap {
	int statm_fd; /* proc_pid_statm(5); it is read on when nothing can be opened any more */
	uint64_t page_bytes;
	uint64_t next_look_ns;
	uint64_t kept_bytes; /* resident, not in use, and not to be had by a trim */
};

/* -errno: all that is asked of it is then 0 and false. */
int heap_open(struct heap *heap);
void heap_close(struct heap *heap);

/* Pages of any kind that are in memory. */
uint64_t heap_resident_bytes(const struct heap *heap);
/*
 * Looks at most every HEAP_LOOK_NS (now_ns: monotonic), and gives the pages of
 * free memory back to the kernel where they are HEAP_WORTH_BYTES more than was
 * left the last time. True: it did. By malloc_trim(3) of glibc 2.8 and later,
 * which in the main arena calls brk(2) and madvise(2) alone.
 */
bool heap_tend(struct heap *heap, uint64_t now_ns);

#endif
