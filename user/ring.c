/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring.h"

#include <errno.h>
#include <linux/bpf.h>
#include <sys/mman.h>
#include <unistd.h>

int ring_open(int fd, size_t size, struct ring *ret_ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *own = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	void *theirs;
	int error;

	if (own == MAP_FAILED)
		return -errno;
	theirs = mmap(NULL, page + 2 * size, PROT_READ, MAP_SHARED, fd, (off_t)page);
	if (theirs == MAP_FAILED) {
		error = -errno;
		munmap(own, page);
		return error;
	}
	*ret_ring = (struct ring){own, theirs, (const uint8_t *)theirs + page, size};
	return 0;
}

void ring_close(struct ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	if (!ring->size)
		return;
	munmap((void *)ring->consumed, page);
	munmap((void *)ring->produced, page + 2 * ring->size);
	*ring = (struct ring){};
}

unsigned long ring_end(const struct ring *ring)
{
	return __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE);
}

bool ring_is_read_up_to(const struct ring *ring, unsigned long end)
{
	return (long)(*ring->consumed - end) >= 0;
}

size_t ring_fill(const struct ring *ring)
{
	unsigned long consumed = ring->size ? *ring->consumed : 0; /* first: the end only grows */

	return ring->size ? ring_end(ring) - consumed : 0;
}

int ring_read(struct ring *ring, unsigned long end, ring_take *take, void *context)
{
	unsigned long at = *ring->consumed, told = at;
	int error = 0;

	while (!error && (long)(end - at) > 0) {
		const uint32_t *header = (const uint32_t *)(ring->data + (at & (ring->size - 1)));
		uint32_t length = __atomic_load_n(header, __ATOMIC_ACQUIRE);

		if (length & BPF_RINGBUF_BUSY_BIT)
			break;
		if (!(length & BPF_RINGBUF_DISCARD_BIT))
			error = take(context, header + BPF_RINGBUF_HDR_SZ / sizeof(*header), length);
		length &= ~BPF_RINGBUF_DISCARD_BIT;
		at += (length + BPF_RINGBUF_HDR_SZ + 7) & ~7U;
		if (at - told >= RING_TOLD_BYTES) {
			__atomic_store_n(ring->consumed, at, __ATOMIC_RELEASE);
			told = at;
		}
	}
	__atomic_store_n(ring->consumed, at, __ATOMIC_RELEASE);
	return error;
}
