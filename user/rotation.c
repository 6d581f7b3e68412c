/* SPDX-License-Identifier: BSD-2-Clause */
/* Limits and pauses as plain comparisons. */
#include "rotation.h"

bool rotation_is_due(const struct rotation_limits *limits, uint64_t bytes, uint64_t age_ns)
{
	if (bytes == 0)
		return false;
	return (limits->bytes && bytes >= limits->bytes) || (limits->age_ns && age_ns >= limits->age_ns);
}

bool rotation_may_ask(const struct rotation_pause *pause, uint64_t now_ns)
{
	return now_ns >= pause->until_ns;
}

void rotation_refused(struct rotation_pause *pause, uint64_t now_ns)
{
	uint64_t next = pause->length_ns * 2;

	if (next < ROTATION_PAUSE_MIN_NS)
		next = ROTATION_PAUSE_MIN_NS;
	if (next > ROTATION_PAUSE_MAX_NS)
		next = ROTATION_PAUSE_MAX_NS;
	pause->length_ns = next;
	pause->until_ns = now_ns + next;
}
