/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * br (RFC 7932); the only file that knows libbrotlidec. Large windows stay off,
 * so a window has at most 16 MiB, and the library takes only as much of it as
 * the data at hand can fill.
 */
#include "decode_coding.h"

#include <brotli/decode.h>

static void *start(void)
{
	return BrotliDecoderCreateInstance(NULL, NULL, NULL);
}

static void done(void *state)
{
	if (state)
		BrotliDecoderDestroyInstance(state);
}

static enum coding_step failure_of(const BrotliDecoderState *brotli)
{
	BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(brotli);

	return code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES
		       ? CODING_OUT_OF_MEMORY
		       : CODING_DAMAGED;
}

static enum coding_step run(void *state, struct bytes *input, struct coding_space *space)
{
	const uint8_t *next_in = input->data;
	uint8_t *next_out = space->data;
	size_t left_in = input->size, left_out = space->capacity;
	BrotliDecoderResult result;

	if (BrotliDecoderIsFinished(state))
		return input->size ? CODING_DAMAGED : CODING_WHOLE;
	result = BrotliDecoderDecompressStream(state, &left_in, &next_in, &left_out, &next_out, NULL);
	bytes_take(input, input->size - left_in);
	space->size = space->capacity - left_out;
	if (result == BROTLI_DECODER_RESULT_ERROR)
		return failure_of(state);
	if (result != BROTLI_DECODER_RESULT_SUCCESS)
		return CODING_MORE;
	return input->size ? CODING_DAMAGED : CODING_WHOLE; /* bytes behind the last block */
}

const struct coding coding_br = {"br", NULL, "brotli damaged", start, run, done};
