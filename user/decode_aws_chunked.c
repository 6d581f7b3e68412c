/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * aws-chunked: the framing of S3's streaming signatures. It is that of the
 * chunked transfer coding, with a signature as extension of every chunk, which
 * differs from attempt to attempt. Signatures and trailers are passed over.
 */
#include "chunked.h"
#include "decode_coding.h"

static void *start(void)
{
	return calloc(1, sizeof(struct chunked));
}

static enum coding_step run(void *state, struct bytes *input, struct coding_space *space)
{
	struct chunked *chunked = state;
	struct bytes rest, data;

	while (space->size < space->capacity) {
		/* Data is lent in runs: never more than there is space for. */
		rest = (struct bytes){input->data, input->size < space->capacity - space->size
							   ? input->size : space->capacity - space->size};
		switch (chunked_next(chunked, &rest, &data)) {
		case CHUNKED_DATA:
			memcpy(space->data + space->size, data.data, data.size);
			space->size += data.size;
			bytes_take(input, (size_t)(rest.data - input->data));
			break;
		case CHUNKED_NEED_MORE:
			bytes_take(input, (size_t)(rest.data - input->data));
			if (!input->size)
				return CODING_MORE;
			break;
		case CHUNKED_END:
			bytes_take(input, (size_t)(rest.data - input->data));
			return input->size ? CODING_DAMAGED : CODING_WHOLE;
		case CHUNKED_BROKEN:
			return CODING_DAMAGED;
		}
	}
	return CODING_MORE;
}

const struct coding coding_aws_chunked = {"aws-chunked", NULL, "aws-chunked damaged", start, run, free};
