/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The recorded policy judges a recording again as its run did; another one may
 * be put in its place. The recorded options hold what the recorded policy set.
 */
#include "playback.h"

#include "commands.h"
#include "policy_file.h"

#include <errno.h>

#define UNREADABLE 1

static int open_recording(struct playback *playback, FILE *file, struct bytes begin)
{
	int err = recording_reader_new_begun(file, begin, &playback->reader);

	if (err)
		fprintf(stderr, "nightclerk: %s: %s\n", playback->path,
			playback->reader ? recording_error(playback->reader) : strerror(-err));
	return err ? UNREADABLE : 0;
}

static int open_policy(struct playback *playback, const char *policy_path)
{
	struct bytes recorded = recording_facts(playback->reader)->policy;

	if (policy_path)
		return policy_file_read(policy_path, &playback->policy) ? EXIT_USAGE : 0;
	if (recorded.size)
		return policy_file_parse(playback->path, recorded, &playback->policy) ? UNREADABLE : 0;
	return 0;
}

int playback_open(struct playback *playback, const char *path, const char *policy_path)
{
	FILE *file = fopen(path, "rbe");

	if (file)
		return playback_open_begun(playback, path, file, (struct bytes){0}, policy_path);
	*playback = (struct playback){.path = path};
	fprintf(stderr, "nightclerk: cannot open %s: %s\n", path, strerror(errno));
	return UNREADABLE;
}

int playback_open_begun(struct playback *playback, const char *path, FILE *file, struct bytes begin, const char *policy_path)
{
	int status;

	*playback = (struct playback){.path = path};
	judge_options_defaults(&playback->judge);
	status = open_recording(playback, file, begin);
	if (!status && judge_options_of_json(recording_facts(playback->reader)->options, &playback->judge)) {
		fprintf(stderr, "nightclerk: %s: its options cannot be read\n", path);
		status = UNREADABLE;
	}
	if (!status)
		status = open_policy(playback, policy_path);
	if (!status && policy_path)
		policy_apply(playback->policy, &playback->judge);
	return status;
}

/* xorshift64: the same seed cuts alike on every machine. */
static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* One send as several, none of them empty. What was accepted without being captured stays with the last. */
static void feed_in_pieces(struct playback *playback, struct pipeline *pipeline, const struct input *whole)
{
	struct wire_event piece = *whole->wire.event;
	struct bytes rest = whole->wire.payload;
	struct input input = *whole;

	input.wire.event = &piece;
	do {
		size_t longest = rest.size < 64 || next_random(&playback->cut) % 4 == 0 ? rest.size : 64;
		size_t size = longest ? 1 + next_random(&playback->cut) % longest : 0;

		input.wire.payload = bytes_take(&rest, size);
		piece.captured_bytes = (uint32_t)size;
		piece.length_bytes = rest.size ? size : whole->wire.event->length_bytes - (piece.offset - whole->wire.event->offset);
		pipeline_feed(pipeline, &input);
		piece.offset += size;
		piece.seq += (uint32_t)size;
	} while (rest.size);
}

int playback_measure(struct playback *playback, struct profile *profile)
{
	playback->sequencer = sequencer_new();
	if (!playback->sequencer)
		return -ENOMEM;
	playback->profile = profile;
	return 0;
}

static void put_in_order(struct playback *playback, const struct input *input)
{
	const struct wire_event *event;
	struct bytes payload;

	if (!playback->sequencer || input->kind != INPUT_WIRE)
		return;
	profile_enter(playback->profile, PROFILE_SEQUENCER);
	sequencer_push(playback->sequencer, input->wire.event, input->wire.payload);
	while (sequencer_pull(playback->sequencer, input->now_ns, &event, &payload))
		;
}

bool playback_feed(struct playback *playback, struct pipeline *pipeline)
{
	struct input input;

	profile_enter(playback->profile, PROFILE_READING);
	if (recording_next(playback->reader, &input) != RECORDING_INPUT)
		return false;
	put_in_order(playback, &input);
	profile_enter(playback->profile, PROFILE_OTHER);
	playback->now_ns = input.now_ns;
	playback->closed |= input.kind == INPUT_CLOSING;
	if (playback->cut && input.kind == INPUT_WIRE && input.wire.event->kind == WIRE_DATA)
		feed_in_pieces(playback, pipeline, &input);
	else
		pipeline_feed(pipeline, &input);
	while (pipeline_next_muted(pipeline))
		;
	return true;
}

int playback_finish(struct playback *playback, struct pipeline *pipeline)
{
	struct input drain = {.kind = INPUT_DRAIN, .now_ns = playback->now_ns};
	struct input closing = {
		.kind = INPUT_CLOSING, .now_ns = playback->now_ns, .closing = {.command_status = -1}};
	struct input input;

	if (!playback->closed) {
		pipeline_feed(pipeline, &drain);
		pipeline_feed(pipeline, &closing);
	}
	if (recording_next(playback->reader, &input) == RECORDING_END)
		return 0;
	fprintf(stderr, "nightclerk: %s: %s\n", playback->path, recording_error(playback->reader));
	return UNREADABLE;
}

void playback_close(struct playback *playback)
{
	recording_reader_free(playback->reader);
	sequencer_free(playback->sequencer);
	policy_free(playback->policy);
	*playback = (struct playback){0};
}
