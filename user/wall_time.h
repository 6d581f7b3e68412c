/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The one sum that makes wall time of a time of CLOCK_MONOTONIC. Both may come
 * from a hostile recording.
 */
#ifndef NIGHTCLERK_WALL_TIME_H
#define NIGHTCLERK_WALL_TIME_H

#include <stdint.h>

/* Nanoseconds since 1970: not before that, and not past what fits. */
static inline int64_t wall_time_ns(uint64_t when_ns, int64_t wall_offset_ns)
{
	int64_t wall_ns = when_ns < INT64_MAX ? (int64_t)when_ns : INT64_MAX;

	if (__builtin_add_overflow(wall_ns, wall_offset_ns, &wall_ns))
		return INT64_MAX; /* the first of the two is not negative */
	return wall_ns > 0 ? wall_ns : 0;
}

#endif
