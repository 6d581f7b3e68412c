/* SPDX-License-Identifier: BSD-2-Clause */
#include "clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
	return (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t clock_thread_ns(void)
{
	return (uint64_t)read_clock(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t clock_process_ns(void)
{
	return (uint64_t)read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t clock_wall_ns(void)
{
	return read_clock(CLOCK_REALTIME);
}

int64_t clock_wall_offset_ns(void)
{
	return clock_wall_ns() - (int64_t)clock_monotonic_ns();
}
