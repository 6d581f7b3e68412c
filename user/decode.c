/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A row of stages, one a coding, the outermost first. The caller asks the last
 * one for bytes; a stage that has none left asks the one before it, and the
 * first one takes what the caller brought.
 */
#include "decode.h"
#include "decode_coding.h"

#include <errno.h>

#define SPACE_BYTES (16 * 1024)

struct stage {
	const struct coding *coding;
	void *state;
	struct bytes input; /* of the stage before it, in its space */
	uint64_t produced_bytes;
	bool whole;
	uint8_t space[SPACE_BYTES];
};

struct decoder {
	uint64_t limit_bytes;
	uint64_t taken_bytes;
	enum decode_result failed; /* DECODE_WHOLE = not failed */
	const char *reason;
	int stage_count;
	struct stage *stages[DECODE_CODINGS_MAX];
};

static enum decode_result fail(struct decoder *decoder, enum decode_result result, const char *reason)
{
	decoder->failed = result;
	decoder->reason = reason;
	return result;
}

/* ---- the list of codings ---- */

static const struct coding *const codings[] = {&coding_gzip, &coding_deflate, &coding_br, &coding_zstd,
					       &coding_aws_chunked};

static const struct coding *coding_named(struct bytes name)
{
	for (size_t i = 0; i < sizeof(codings) / sizeof(codings[0]); i++)
		if (bytes_equal_nocase(name, bytes_of_string(codings[i]->name)) ||
		    (codings[i]->other_name && bytes_equal_nocase(name, bytes_of_string(codings[i]->other_name))))
			return codings[i];
	return NULL;
}

/*
 * Codings are named in the order in which they were applied, so each new one is
 * the outermost. aws-chunked frames the upload and is the outermost wherever it
 * stands: AWS writes "aws-chunked,gzip" for gzip in signed chunks.
 */
static int add_stage(struct decoder *decoder, const struct coding *coding)
{
	bool framed = decoder->stage_count && decoder->stages[0]->coding == &coding_aws_chunked;
	int at = framed ? 1 : 0;
	struct stage *stage = malloc(sizeof(*stage));

	if (!stage)
		return -ENOMEM;
	stage->coding = coding;
	stage->input = (struct bytes){0};
	stage->produced_bytes = 0;
	stage->whole = false;
	stage->state = coding->start();
	if (!stage->state) {
		free(stage);
		return -ENOMEM;
	}
	memmove(&decoder->stages[at + 1], &decoder->stages[at],
		(size_t)(decoder->stage_count - at) * sizeof(stage));
	decoder->stages[at] = stage;
	decoder->stage_count++;
	return 0;
}

/* One Content-Encoding value; empty elements are no codings (RFC 9110 section 5.6.1.2). */
static int add_codings(struct decoder *decoder, struct bytes list)
{
	int err = 0;

	while (list.size && !err && !decoder->failed) {
		struct bytes name = bytes_trim(bytes_take(&list, bytes_find(list, ',')));
		const struct coding *coding;

		bytes_take(&list, 1);
		if (!name.size || bytes_equal_nocase(name, BYTES("identity")))
			continue;
		coding = coding_named(name);
		if (!coding)
			fail(decoder, DECODE_UNKNOWN_CODING, "content coding not known");
		else if (decoder->stage_count == DECODE_CODINGS_MAX)
			fail(decoder, DECODE_UNKNOWN_CODING, "too many content codings");
		else
			err = add_stage(decoder, coding);
	}
	return err;
}

int decode_new(const struct http_head *head, uint64_t limit_bytes, struct decoder **ret_decoder)
{
	struct decoder *decoder = NULL;
	int err = 0;

	for (size_t i = 0; i < head->field_count && !err; i++) {
		if (!bytes_equal_nocase(head->fields[i].name, BYTES("Content-Encoding")))
			continue;
		if (!decoder)
			decoder = calloc(1, sizeof(*decoder));
		err = decoder ? add_codings(decoder, head->fields[i].value) : -ENOMEM;
	}
	if (err || (decoder && decoder->stage_count == 0 && !decoder->failed)) {
		decode_free(decoder);
		decoder = NULL;
	}
	if (err)
		return err;
	if (decoder)
		decoder->limit_bytes = limit_bytes;
	*ret_decoder = decoder;
	return 0;
}

void decode_free(struct decoder *decoder)
{
	if (!decoder)
		return;
	for (int i = 0; i < decoder->stage_count; i++) {
		decoder->stages[i]->coding->done(decoder->stages[i]->state);
		free(decoder->stages[i]);
	}
	free(decoder);
}

/* ---- running ---- */

static bool too_large(struct decoder *decoder, const struct stage *stage)
{
	if (stage->produced_bytes > decoder->limit_bytes) {
		fail(decoder, DECODE_TOO_LARGE, "decoded body over the limit");
		return true;
	}
	if (stage->produced_bytes > DECODE_FREE_BYTES && stage->produced_bytes / DECODE_RATIO > decoder->taken_bytes) {
		fail(decoder, DECODE_TOO_LARGE, "content coding expands more than 1000:1");
		return true;
	}
	return false;
}

/* What one stage makes of its input: *ret_output is empty when it needs more. */
static enum decode_result run_stage(struct decoder *decoder, struct stage *stage, struct bytes *input,
				    struct bytes *ret_output)
{
	struct coding_space space = {stage->space, 0, SPACE_BYTES};
	enum coding_step step = stage->coding->run(stage->state, input, &space);

	switch (step) {
	case CODING_DAMAGED:
		return fail(decoder, DECODE_DAMAGED, stage->coding->damaged);
	case CODING_TOO_LARGE:
		return fail(decoder, DECODE_TOO_LARGE, "content coding with a window over 8 MiB");
	case CODING_OUT_OF_MEMORY:
		return fail(decoder, DECODE_OUT_OF_MEMORY, "out of memory");
	case CODING_MORE:
	case CODING_WHOLE:
		break;
	}
	stage->whole = step == CODING_WHOLE;
	stage->produced_bytes += space.size;
	*ret_output = (struct bytes){space.data, space.size};
	return DECODE_WHOLE;
}

enum decode_step decode_next(struct decoder *decoder, struct bytes *input, struct bytes *ret_output)
{
	int last = decoder->stage_count - 1, i = last;

	while (i >= 0 && !decoder->failed) {
		struct stage *stage = decoder->stages[i];
		struct bytes *from = i ? &stage->input : input;
		size_t before = from->size;
		struct bytes output = {0};

		if (run_stage(decoder, stage, from, &output))
			break;
		if (i == 0)
			decoder->taken_bytes += before - from->size;
		if (too_large(decoder, stage))
			break;
		if (output.size == 0) {
			i--;
		} else if (i == last) {
			*ret_output = output;
			return DECODE_BYTES;
		} else {
			decoder->stages[++i]->input = output;
		}
	}
	return decoder->failed ? DECODE_FAILED : DECODE_NEED_MORE;
}

enum decode_result decode_end(const struct decoder *decoder)
{
	if (decoder->failed)
		return decoder->failed;
	for (int i = 0; i < decoder->stage_count; i++)
		if (!decoder->stages[i]->whole)
			return DECODE_TRUNCATED;
	return DECODE_WHOLE;
}

const char *decode_reason(const struct decoder *decoder)
{
	return decode_end(decoder) == DECODE_TRUNCATED ? "content coding cut short" : decoder->reason;
}

enum decode_result decode_all(struct decoder *decoder, struct bytes input, struct buffer *out)
{
	struct bytes output;

	while (decode_next(decoder, &input, &output) == DECODE_BYTES)
		if (buffer_append(out, output))
			return fail(decoder, DECODE_OUT_OF_MEMORY, "out of memory");
	return decode_end(decoder);
}
