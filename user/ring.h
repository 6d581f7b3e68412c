/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads one BPF ring buffer (kernel/bpf/ringbuf.c; UAPI: BPF_RINGBUF_* of
 * linux/bpf.h, since 5.8).
 *
 * libbpf tells the kernel after each record how far it has read. Senders look
 * at that number for every record they make, so on another CPU each of them
 * waits for the cache line to come back. Here it is told once per
 * RING_TOLD_BYTES, and reading stops where the caller says, however fast the
 * senders are.
 */
#ifndef NIGHTCLERK_RING_H
#define NIGHTCLERK_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RING_TOLD_BYTES (64UL * 1024)

struct ring {
	volatile unsigned long *consumed;	/* our page: how far it was read */
	const volatile unsigned long *produced; /* the kernel's page: how far it was reserved */
	const uint8_t *data;			/* twice in a row, so that no record is cut */
	size_t size;				/* bytes; 0 = not open */
};

/* What becomes of a record: 0 to go on, or -errno to stop behind it. data is lent for the call. */
typedef int ring_take(void *context, const void *data, size_t size);

/* Maps the ring of that map, whose size in bytes (a power of two) is known. fd stays the caller's. 0 or -errno. */
int ring_open(int fd, size_t size, struct ring *ret_ring);
/* Unmaps it; a ring that is not open is left alone. */
void ring_close(struct ring *ring);

/* The position where the next record will be reserved: a count of bytes that wraps as it pleases. */
unsigned long ring_end(const struct ring *ring);
/* Was everything before that position read? */
bool ring_is_read_up_to(const struct ring *ring, unsigned long end);
/* Bytes between the reader and the end; 0 of a ring that is not open. */
size_t ring_fill(const struct ring *ring);

/*
 * Hands over the finished records before `end` in their order. Stops at one
 * that its program has not finished: no later one can be read before it. 0, or
 * what take() returned.
 */
int ring_read(struct ring *ring, unsigned long end, ring_take *take, void *context);

#endif
