/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes under any row of codings. The first two bytes name the codings, the
 * third how the rest is cut. However it is cut, the same comes out; no stage
 * gives more than its caps allow; and a failure stays one.
 */
#include <stdint.h>

#include "decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LIMIT (256 * 1024)

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

static const char *const names[] = {"gzip", "deflate", "br", "zstd", "aws-chunked", "identity", "x-gzip", "snappy"};

static struct decoder *decoder_of(uint8_t first, uint8_t second)
{
	struct http_field fields[2] = {{BYTES("Content-Encoding"), bytes_of_string(names[first & 7])},
				       {BYTES("content-encoding"), bytes_of_string(names[second & 7])}};
	struct http_head head = {.fields = fields, .field_count = second & 8 ? 2 : 1};
	struct decoder *decoder;

	if (decode_new(&head, LIMIT, &decoder))
		abort();
	return decoder;
}

/* What came out, and in *ret_result how it ended. */
static struct buffer decode(const uint8_t codings[2], struct bytes input, size_t slice, enum decode_result *ret_result)
{
	struct decoder *decoder = decoder_of(codings[0], codings[1]);
	struct buffer out = {0};
	size_t taken = input.size;

	*ret_result = DECODE_WHOLE;
	if (!decoder)
		return out;
	while (input.size)
		decode_all(decoder, bytes_take(&input, slice), &out);
	*ret_result = decode_end(decoder);
	CHECK((decode_reason(decoder) == NULL) == (*ret_result == DECODE_WHOLE));
	CHECK(out.size <= LIMIT);
	CHECK(out.size <= DECODE_FREE_BYTES || out.size / DECODE_RATIO <= taken);
	if (*ret_result != DECODE_WHOLE && *ret_result != DECODE_TRUNCATED) {
		struct bytes rest = BYTES("more"), output;

		CHECK(decode_next(decoder, &rest, &output) == DECODE_FAILED);
	}
	decode_free(decoder);
	return out;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum decode_result results[2];
	struct buffer whole, cut;
	struct bytes input;

	if (size < 4)
		return 0;
	input = (struct bytes){data + 3, size - 3};
	whole = decode(data, input, input.size, &results[0]);
	cut = decode(data, input, 1 + data[2] % 32, &results[1]);
	/* How much is out when a cap is hit rests on the pieces; everything else does not. */
	if (results[0] != DECODE_TOO_LARGE && results[1] != DECODE_TOO_LARGE) {
		CHECK(results[0] == results[1]);
		CHECK(results[0] > DECODE_UNKNOWN_CODING || bytes_equal(buffer_bytes(&whole), buffer_bytes(&cut)));
	}
	buffer_done(&whole);
	buffer_done(&cut);
	return 0;
}
