/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The memory behind a struct page, for sends of pages: sendfile, splice,
 * io_uring's fixed buffers.
 *
 * On x86-64 all of memory is mapped at one address, and the array of all struct
 * page is at another (Documentation/arch/x86/x86_64/mm.rst). Both are whole GiB,
 * and may be random ones of each boot. They are found by looking for what the
 * loader wrote into a pipe: a page whose content it knows.
 */
#ifndef NIGHTCLERK_PAGES_BPF_H
#define NIGHTCLERK_PAGES_BPF_H

#include "tables.bpf.h"

#define GIB (1ULL << 30)
#define MEMORY_GIB_MAX 1024
#define PAGE_BYTES 4096

static __always_inline bool pages_known(void)
{
	return pages_memory != 0;
}

static __always_inline u64 address_in(u64 memory, u64 array, u64 page)
{
	return memory + (page - array) / bpf_core_type_size(struct page) * PAGE_BYTES;
}

/* Neighbours in the array are neighbours in memory. */
static __always_inline u64 pages_address(u64 page)
{
	return address_in(pages_memory, pages_array, page);
}

/* Global functions, as the next one: verified once, not once for each call. */
__noinline __weak int pages_have_mark(u64 address)
{
	u64 words[PAGES_MARK_WORDS] = {}, difference = 0;

	if (bpf_probe_read_kernel(words, sizeof(words), (void *)address))
		return false;
	for (int i = 0; i < PAGES_MARK_WORDS; i++)
		difference |= words[i] ^ pages_mark(pages_seed, i);
	return !difference;
}

/* Where is memory mapped, if the array of pages is there? From `top` downwards; 0 = nowhere. */
__noinline __weak u64 pages_try(u64 array, u64 page, u64 top)
{
	for (int i = 0; i < MEMORY_GIB_MAX; i++)
		if (pages_have_mark(address_in(top - i * GIB, array, page)))
			return top - i * GIB;
	return 0;
}

/* Any address in mapped memory is above its start, and a page above the array's. */
static __always_inline void pages_find(struct task_struct *task)
{
	struct file **files = BPF_CORE_READ(task, files, fdt, fd), *file = NULL;
	struct pipe_inode_info *pipe;
	u64 page, memory;

	bpf_probe_read_kernel(&file, sizeof(file), &files[pages_pipe]);
	pipe = BPF_CORE_READ(file, private_data);
	page = (u64)BPF_CORE_READ(pipe, bufs, page);
	for (u64 i = 0; page && i <= MEMORY_GIB_MAX / 64; i++) {
		u64 array = (page & ~(GIB - 1)) - i * GIB;

		memory = pages_try(array, page, (u64)task & ~(GIB - 1));
		if (memory) {
			pages_array = array;
			pages_memory = memory;
			return;
		}
	}
}

#endif
