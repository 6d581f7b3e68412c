/* SPDX-License-Identifier: BSD-2-Clause */
/* The clocks, in nanoseconds. The pure stages know none: time comes in as an argument. */
#ifndef NIGHTCLERK_CLOCK_H
#define NIGHTCLERK_CLOCK_H

#include <stdint.h>

uint64_t clock_monotonic_ns(void);
/* CPU time of this thread. */
uint64_t clock_thread_ns(void);
/* CPU time of this process. */
uint64_t clock_process_ns(void);
/* Since 1970. */
int64_t clock_wall_ns(void);
/* Added to a monotonic time it gives that of the wall, as the two stand now. */
int64_t clock_wall_offset_ns(void);

#endif
