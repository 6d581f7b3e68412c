/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often something may be done: the generic cell rate algorithm (ITU-T
 * I.371, a leaky bucket that is one number). Pure: the time is an argument.
 */
#ifndef NIGHTCLERK_RATE_H
#define NIGHTCLERK_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* burst at once, and one more each interval after that. All of it is free in a struct that has these two alone. */
struct rate {
	uint64_t interval_ns;
	uint64_t burst;	     /* at least 1 */
	uint64_t taken_till_ns; /* when all of the burst is free again */
};

/* May it be done now? Then it counts. now_ns never goes back. */
static inline bool rate_take(struct rate *rate, uint64_t now_ns)
{
	uint64_t till = rate->taken_till_ns > now_ns ? rate->taken_till_ns : now_ns;

	if (till - now_ns > (rate->burst - 1) * rate->interval_ns)
		return false;
	rate->taken_till_ns = till + rate->interval_ns;
	return true;
}

#endif
