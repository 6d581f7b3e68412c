/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording on its way into a pipeline, for `replay` and `check`: the file,
 * the policy that judges it, and the options of its run. Says on stderr what is
 * wrong with the file.
 */
#ifndef NIGHTCLERK_PLAYBACK_H
#define NIGHTCLERK_PLAYBACK_H

#include "pipeline.h"
#include "profile.h"
#include "recording.h"
#include "sequencer.h"

struct playback {
	const char *path;
	struct recording_reader *reader;
	struct policy *policy;	    /* that of the caller, else the recorded one; NULL = none */
	struct judge_options judge; /* of the recorded run, and of the caller's policy over them */
	uint64_t now_ns;
	uint64_t cut; /* > 0: every send comes in random pieces, by this seed; what is said must stay the same */
	bool closed;
	struct profile *profile; /* borrowed; told of reading and sequencing. NULL = none */
	struct sequencer *sequencer; /* only with a profile: see playback_measure() */
};

/* policy_path may be NULL. 0, or the exit status; playback_close() in either case. */
int playback_open(struct playback *playback, const char *path, const char *policy_path);
/* The same for a file that is open, and then the playback's; begin: what was read of it already (recording.h). */
int playback_open_begun(struct playback *playback, const char *path, FILE *file, struct bytes begin, const char *policy_path);
/* Feeds the next input to the pipeline; true while there may be more. */
bool playback_feed(struct playback *playback, struct pipeline *pipeline);
/*
 * After the last input: a file that was cut is judged as far as it goes. 0, or
 * the exit status of a file that could not be read to its end.
 */
int playback_finish(struct playback *playback, struct pipeline *pipeline);
/*
 * Before the first playback_feed(): *profile is told of every stage from now on, also of the
 * sequencer, which a replay has no need of: each event goes into one and out again, as it does
 * live, and what comes out is not used. Borrows profile. 0 or -ENOMEM.
 */
int playback_measure(struct playback *playback, struct profile *profile);
void playback_close(struct playback *playback); /* accepts a zeroed one */

#endif
