/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a recording: read as they are, then once more with every
 * checksum put right, since no mutator guesses a CRC. Whatever comes out must
 * be fit for the writer, and come back from it the same; and whatever order the
 * inputs stand in, the pipeline takes them.
 */
#include <assert.h>
#include <stdint.h>
#include <zlib.h>

#include "pipeline.h"
#include "recording.h"

#define FILE_HEAD_BYTES 16
#define BLOCK_HEAD_BYTES 20

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend(uint8_t *data, size_t size)
{
	size_t at = FILE_HEAD_BYTES;

	for (uint64_t number = 0; at + BLOCK_HEAD_BYTES <= size; number++) {
		uint32_t payload_bytes, crc;
		size_t left = size - at - BLOCK_HEAD_BYTES;

		memcpy(&payload_bytes, data + at + 8, sizeof(payload_bytes));
		if (payload_bytes > left)
			return;
		crc = (uint32_t)crc32_z(0, data + at + BLOCK_HEAD_BYTES, payload_bytes);
		memcpy(data + at + 12, &crc, sizeof(crc));
		crc = (uint32_t)crc32_z(0, (const uint8_t *)&number, sizeof(number));
		crc = (uint32_t)crc32_z(crc, data + at, 16);
		memcpy(data + at + 16, &crc, sizeof(crc));
		at += BLOCK_HEAD_BYTES + payload_bytes;
	}
}

static struct recording_writer *new_writer(const struct run_facts *facts, char **text, size_t *size)
{
	struct recording_writer *writer = NULL;
	FILE *file = open_memstream(text, size);

	if (!file || recording_writer_new(file, facts, &writer) != 0)
		abort();
	return writer;
}

struct play {
	struct pipeline *pipeline;
	struct pipeline_output out;
};

static void play_start(struct play *play, const struct run_facts *facts)
{
	struct pipeline_options options = {.live_alerts = true, .live_calls = true, .junit = true};

	judge_options_defaults(&options.judge);
	play->pipeline = pipeline_new(facts, &options, &play->out);
	if (!play->pipeline)
		abort();
}

static void play_done(struct play *play)
{
	pipeline_free(play->pipeline);
	buffer_done(&play->out.ledger);
	buffer_done(&play->out.events);
	buffer_done(&play->out.alerts);
	buffer_done(&play->out.calls);
	buffer_done(&play->out.junit);
}

static void read_and_write_again(const uint8_t *data, size_t size, bool again)
{
	struct recording_reader *reader = NULL;
	struct recording_writer *writer = NULL;
	struct play play = {0};
	struct input input;
	enum recording_result result;
	char *text = NULL;
	size_t text_size = 0;
	FILE *file = fmemopen((void *)data, size, "rb");

	if (!file)
		abort();
	if (recording_reader_new(file, &reader) != 0) {
		assert(*recording_error(reader));
		recording_reader_free(reader);
		return;
	}
	writer = new_writer(recording_facts(reader), &text, &text_size);
	play_start(&play, recording_facts(reader));
	while ((result = recording_next(reader, &input)) == RECORDING_INPUT) {
		if (recording_write(writer, &input) != 0)
			abort();
		pipeline_feed(play.pipeline, &input);
	}
	play_done(&play);
	assert((result == RECORDING_END) == (*recording_error(reader) == '\0'));
	if (recording_writer_free(writer) != 0)
		abort();
	if (again)
		read_and_write_again((const uint8_t *)text, text_size, false);
	recording_reader_free(reader);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint8_t *mended;

	if (size == 0)
		return 0;
	read_and_write_again(data, size, false);
	mended = malloc(size);
	if (!mended)
		return 0;
	memcpy(mended, data, size);
	mend(mended, size);
	read_and_write_again(mended, size, true);
	free(mended);
	return 0;
}
