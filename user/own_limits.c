/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who starts us has often lowered the soft limit alone, and that one is ours to
 * raise. A command that is held already keeps what it was given.
 */
#include "own_limits.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

#define FILES_NEEDED 128 /* 66 were open in a run with every output; the kprobe door takes more */
#define RING_BYTES_DEFAULT (64 * 1024 * 1024)
#define ADDRESSES_BESIDE_THE_RING (128 * 1024 * 1024ULL)
#define MIB (1024 * 1024)

/* What the limit is then. */
static rlim_t raise_to(int which, rlim_t needed)
{
	struct rlimit limit;

	if (getrlimit(which, &limit) || limit.rlim_cur >= needed)
		return needed;
	limit.rlim_cur = limit.rlim_max < needed ? limit.rlim_max : needed;
	return setrlimit(which, &limit) ? 0 : limit.rlim_cur;
}

int own_limits_prepare(size_t ring_bytes, char *reason)
{
	/* The kernel maps a ring twice in a row. */
	rlim_t addresses = 2 * (rlim_t)(ring_bytes ? ring_bytes : RING_BYTES_DEFAULT) + ADDRESSES_BESIDE_THE_RING;
	rlim_t limit = raise_to(RLIMIT_NOFILE, FILES_NEEDED);

	if (limit < FILES_NEEDED) {
		snprintf(reason, OWN_LIMITS_REASON_MAX, "%llu open files are allowed, and %d are needed: raise the limit (ulimit -n)",
			 (unsigned long long)limit, FILES_NEEDED);
		return -EMFILE;
	}
	limit = raise_to(RLIMIT_AS, addresses);
	if (limit < addresses) {
		snprintf(reason, OWN_LIMITS_REASON_MAX,
			 "%llu MiB of address space are allowed, and %llu are needed: raise the limit (ulimit -v), or give a "
			 "smaller --ring-size",
			 (unsigned long long)limit / MIB, (unsigned long long)addresses / MIB);
		return -ENOMEM;
	}
	return 0;
}
