/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the collector's time goes: one stopwatch that is handed from stage to
 * stage. Whoever asks for it brings the clocks; everybody else passes NULL, which
 * costs one comparison a stage.
 *
 * The stages share the time that passed, which on a busy machine is also time
 * of others; what they took is that share of the CPU time of the whole.
 */
#ifndef NIGHTCLERK_PROFILE_H
#define NIGHTCLERK_PROFILE_H

#include "bytes.h"

enum profile_stage {
	PROFILE_OTHER,	     /* none of these */
	PROFILE_READING,     /* the recording, block by block, with its checksums */
	PROFILE_SEQUENCER,   /* a copy of each event in, and out in order */
	PROFILE_CALLS,	     /* streams, messages, calls, and SHA-256 of bodies as sent */
	PROFILE_BODY,	     /* content codings and canonical form, with its SHA-256 */
	PROFILE_CLASS,	     /* class, model key, what is left out of the comparison */
	PROFILE_FINGERPRINT, /* principal, key, and SHA-256 over what makes calls the same */
	PROFILE_LEDGER,	     /* the line */
	PROFILE_EVENTS,	     /* requests, responses, hops, bookings for the store */
	PROFILE_ATTEMPTS,    /* earlier ones, findings and alerts */
	PROFILE_WRITING,     /* lines to their files */
	PROFILE_STAGES,
};

struct profile {
	uint64_t (*clock)(void);     /* nanoseconds that passed; cheap to read */
	uint64_t (*cpu_clock)(void); /* nanoseconds that this thread ran */
	enum profile_stage stage;
	uint64_t since_ns;
	uint64_t cpu_since_ns;
	uint64_t cpu_ns; /* after profile_stop() */
	struct {
		uint64_t entered;
		uint64_t ns;
	} stages[PROFILE_STAGES];
};

/* The watch runs, for PROFILE_OTHER. */
void profile_start(struct profile *profile, uint64_t (*clock)(void), uint64_t (*cpu_clock)(void));
/* Stops it for the stage it runs for, and starts it for another. */
void profile_switch(struct profile *profile, enum profile_stage stage);

/* For good. */
void profile_stop(struct profile *profile);

/* profile_switch(); accepts NULL. */
static inline void profile_enter(struct profile *profile, enum profile_stage stage)
{
	if (profile)
		profile_switch(profile, stage);
}

/*
 * One JSON object and a newline: of each stage how often it was entered, and its
 * nanoseconds an exchange, less what the clock itself takes. After profile_stop(); exchanges >= 1.
 * 0 or -ENOMEM.
 */
int profile_json(const struct profile *profile, uint64_t exchanges, struct buffer *out);
/* The same as a table for people. */
int profile_table(const struct profile *profile, uint64_t exchanges, struct buffer *out);

#endif
