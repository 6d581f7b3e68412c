/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When a file that grows is set aside for a new one, and when a refused request
 * is made again. Pure. Both sides of `audit` ask it: the collector before it asks
 * for a rotation, the monitor before it grants one.
 */
#ifndef NIGHTCLERK_ROTATION_H
#define NIGHTCLERK_ROTATION_H

#include <stdbool.h>
#include <stdint.h>

#define ROTATION_PAUSE_MIN_NS (1 * 1000000000ULL)
#define ROTATION_PAUSE_MAX_NS (60 * 1000000000ULL)

struct rotation_limits {
	uint64_t bytes;	 /* 0 = none */
	uint64_t age_ns; /* 0 = none */
};

/* An empty file is never due, however old. */
bool rotation_is_due(const struct rotation_limits *limits, uint64_t bytes, uint64_t age_ns);

/* Empty when zeroed: it may be asked at once. */
struct rotation_pause {
	uint64_t until_ns;
	uint64_t length_ns;
};

bool rotation_may_ask(const struct rotation_pause *pause, uint64_t now_ns);
/* It was refused: a pause of a second, twice as long each time, a minute at most. */
void rotation_refused(struct rotation_pause *pause, uint64_t now_ns);

#endif
