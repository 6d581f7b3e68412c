/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every switch reads the clock once, so each time that a stage was entered holds
 * one reading of it. What that takes is measured at the end and taken off again.
 */
#include "profile.h"
#include "json_text.h"

#include <stdio.h>

#define CLOCK_READINGS 500
#define CLOCK_ROUNDS 20 /* the quickest counts */

static const char *const stage_names[] = {
	[PROFILE_OTHER] = "other",
	[PROFILE_READING] = "reading",
	[PROFILE_SEQUENCER] = "sequencer",
	[PROFILE_CALLS] = "calls",
	[PROFILE_BODY] = "body",
	[PROFILE_CLASS] = "class",
	[PROFILE_FINGERPRINT] = "fingerprint",
	[PROFILE_LEDGER] = "ledger",
	[PROFILE_EVENTS] = "events",
	[PROFILE_ATTEMPTS] = "attempts",
	[PROFILE_WRITING] = "writing",
};

void profile_start(struct profile *profile, uint64_t (*clock)(void), uint64_t (*cpu_clock)(void))
{
	*profile = (struct profile){.clock = clock, .cpu_clock = cpu_clock, .since_ns = clock()};
	profile->cpu_since_ns = cpu_clock();
}

void profile_switch(struct profile *profile, enum profile_stage stage)
{
	uint64_t now_ns = profile->clock();

	profile->stages[profile->stage].ns += now_ns - profile->since_ns;
	profile->stages[stage].entered++;
	profile->stage = stage;
	profile->since_ns = now_ns;
}

void profile_stop(struct profile *profile)
{
	profile_switch(profile, PROFILE_OTHER);
	profile->cpu_ns = profile->cpu_clock() - profile->cpu_since_ns;
}

/* Picoseconds, since one reading takes few nanoseconds. */
static uint64_t reading_ps(const struct profile *profile)
{
	uint64_t least = UINT64_MAX;

	for (unsigned int round = 0; round < CLOCK_ROUNDS; round++) {
		struct profile empty = {.clock = profile->clock, .since_ns = profile->clock()};

		for (unsigned int i = 0; i < CLOCK_READINGS; i++)
			profile_switch(&empty, PROFILE_OTHER);
		if (empty.stages[PROFILE_OTHER].ns < least)
			least = empty.stages[PROFILE_OTHER].ns;
	}
	return least * 1000 / CLOCK_READINGS;
}

static uint64_t ns_each(const struct profile *profile, enum profile_stage stage, uint64_t ps, uint64_t exchanges)
{
	double passed = 0, taken, clock_ns = (double)profile->stages[stage].entered * (double)ps / 1000;

	for (int i = 0; i < PROFILE_STAGES; i++)
		passed += (double)profile->stages[i].ns;
	taken = passed > 0 ? (double)profile->stages[stage].ns / passed * (double)profile->cpu_ns : 0;
	return taken > clock_ns ? (uint64_t)((taken - clock_ns) / (double)exchanges + 0.5) : 0;
}

int profile_json(const struct profile *profile, uint64_t exchanges, struct buffer *out)
{
	uint64_t ps = reading_ps(profile);
	struct json_writer writer;
	int err;

	json_writer_init(&writer, out);
	json_object_open(&writer);
	json_key(&writer, "exchanges");
	json_unsigned(&writer, exchanges);
	json_key(&writer, "stages");
	json_array_open(&writer);
	for (int stage = 0; stage < PROFILE_STAGES; stage++) {
		json_object_open(&writer);
		json_key(&writer, "stage");
		json_text(&writer, stage_names[stage]);
		json_key(&writer, "entered");
		json_unsigned(&writer, profile->stages[stage].entered);
		json_key(&writer, "ns_per_exchange");
		json_unsigned(&writer, ns_each(profile, stage, ps, exchanges));
		json_object_close(&writer);
	}
	json_array_close(&writer);
	json_object_close(&writer);
	err = json_writer_error(&writer);
	return err ? err : buffer_append_byte(out, '\n');
}

static int add_row(struct buffer *out, const char *name, uint64_t entered, uint64_t ns)
{
	char row[96];
	int size = snprintf(row, sizeof(row), "%-12s %12llu %16llu\n", name, (unsigned long long)entered, (unsigned long long)ns);

	return buffer_append(out, (struct bytes){(const uint8_t *)row, (size_t)size});
}

int profile_table(const struct profile *profile, uint64_t exchanges, struct buffer *out)
{
	uint64_t ps = reading_ps(profile), sum = 0;
	int err = buffer_append(out, BYTES("stage             entered  ns an exchange\n"));

	for (int stage = 0; stage < PROFILE_STAGES && !err; stage++) {
		uint64_t ns = ns_each(profile, stage, ps, exchanges);

		sum += ns;
		err = add_row(out, stage_names[stage], profile->stages[stage].entered, ns);
	}
	return err ? err : add_row(out, "all", exchanges, sum);
}
