/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spans and points in time as people write them on a command line.
 */
#ifndef NIGHTCLERK_DURATION_H
#define NIGHTCLERK_DURATION_H

#include <stdint.h>

/* "90", "1.5", "15m", "2h", "7d": above 0, up to ten years. 0 or -EINVAL. */
int duration_parse(const char *text, int64_t *ret_ns);
/* After the name of the option. */
#define DURATION_WANTED "takes a time above 0: seconds, or with m, h, d: 90, 15m, 2h, 7d"

/* A duration before now_ns, or 2026-12-01, 2026-12-01T08:30:00Z (UTC), as CLOCK_REALTIME ns. 0 or -EINVAL. */
int since_parse(const char *text, int64_t now_ns, int64_t *ret_ns);

#endif
