/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * zstd (RFC 8878); the only file that knows libzstd. A body may be several
 * frames in a row. RFC 9659 section 2: as a content coding the window has at
 * most 8 MiB.
 */
#include "decode_coding.h"

#include <zstd.h>
#include <zstd_errors.h>

#define WINDOW_LOG_MAX 23

struct unpacker {
	ZSTD_DCtx *context;
	bool whole; /* at the end of a frame */
};

static void done(void *state)
{
	struct unpacker *unpacker = state;

	if (!unpacker)
		return;
	ZSTD_freeDCtx(unpacker->context);
	free(unpacker);
}

static void *start(void)
{
	struct unpacker *unpacker = calloc(1, sizeof(*unpacker));

	if (!unpacker)
		return NULL;
	unpacker->context = ZSTD_createDCtx();
	if (unpacker->context &&
	    !ZSTD_isError(ZSTD_DCtx_setParameter(unpacker->context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
		return unpacker;
	done(unpacker);
	return NULL;
}

static enum coding_step failure_of(size_t result)
{
	switch (ZSTD_getErrorCode(result)) {
	case ZSTD_error_memory_allocation:
		return CODING_OUT_OF_MEMORY;
	case ZSTD_error_frameParameter_windowTooLarge:
		return CODING_TOO_LARGE;
	default:
		return CODING_DAMAGED;
	}
}

static enum coding_step run(void *state, struct bytes *input, struct coding_space *space)
{
	struct unpacker *unpacker = state;
	ZSTD_inBuffer in = {input->data, input->size, 0};
	ZSTD_outBuffer out = {space->data, space->capacity, 0};

	/* Asked with nothing at the end of a frame, the library would begin another. */
	while (out.pos < out.size && !(unpacker->whole && in.pos == in.size)) {
		size_t taken = in.pos, made = out.pos;
		size_t result = ZSTD_decompressStream(unpacker->context, &out, &in);

		if (ZSTD_isError(result))
			return failure_of(result);
		unpacker->whole = result == 0;
		if (in.pos == taken && out.pos == made)
			break;
	}
	bytes_take(input, in.pos);
	space->size = out.pos;
	return unpacker->whole ? CODING_WHOLE : CODING_MORE;
}

const struct coding coding_zstd = {"zstd", NULL, "zstd damaged", start, run, done};
