/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gzip and deflate; the only file but recording.c that knows zlib. A gzip body
 * may be several members in a row (RFC 1952 section 2.2). "deflate" is the zlib
 * format (RFC 9110 section 8.4.1.2), but raw deflate is also sent by that name:
 * the first two bytes tell, since a raw block never starts like a zlib header.
 */
#include "decode_coding.h"

#include <zlib.h>

#define RAW_WINDOW_BITS (-15)
#define ZLIB_WINDOW_BITS 15
#define GZIP_WINDOW_BITS (15 + 16)

struct inflater {
	z_stream stream;
	bool members; /* another may follow */
	bool sniff;   /* deflate, not told apart yet */
	bool ended;
	uint8_t first[2];
	size_t first_size;
};

static void *start(int window_bits)
{
	struct inflater *inflater = calloc(1, sizeof(*inflater));

	if (!inflater)
		return NULL;
	if (inflateInit2(&inflater->stream, window_bits) == Z_OK)
		return inflater;
	free(inflater);
	return NULL;
}

static void *start_gzip(void)
{
	struct inflater *inflater = start(GZIP_WINDOW_BITS);

	if (inflater)
		inflater->members = true;
	return inflater;
}

static void *start_deflate(void)
{
	struct inflater *inflater = start(ZLIB_WINDOW_BITS);

	if (inflater)
		inflater->sniff = true;
	return inflater;
}

static void done(void *state)
{
	struct inflater *inflater = state;

	if (!inflater)
		return;
	inflateEnd(&inflater->stream);
	free(inflater);
}

static enum coding_step inflate_some(struct inflater *inflater, struct bytes *input, struct coding_space *space)
{
	z_stream *stream = &inflater->stream;
	size_t size = input->size < 1 << 30 ? input->size : 1 << 30;
	int result;

	stream->next_in = (Bytef *)input->data;
	stream->avail_in = (uInt)size;
	stream->next_out = space->data + space->size;
	stream->avail_out = (uInt)(space->capacity - space->size);
	result = inflate(stream, Z_NO_FLUSH);
	bytes_take(input, size - stream->avail_in);
	space->size = space->capacity - stream->avail_out;
	switch (result) {
	case Z_STREAM_END:
		inflater->ended = true;
		return CODING_WHOLE;
	case Z_OK:
	case Z_BUF_ERROR: /* nothing to take, or nowhere to put it */
		return CODING_MORE;
	case Z_MEM_ERROR:
		return CODING_OUT_OF_MEMORY;
	default: /* Z_DATA_ERROR, Z_NEED_DICT: nobody told us the dictionary */
		return CODING_DAMAGED;
	}
}

static enum coding_step run(void *state, struct bytes *input, struct coding_space *space)
{
	struct inflater *inflater = state;
	enum coding_step step;

	do {
		if (inflater->ended) {
			if (!input->size)
				return CODING_WHOLE;
			if (!inflater->members || inflateReset(&inflater->stream) != Z_OK)
				return CODING_DAMAGED;
			inflater->ended = false;
		}
		step = inflate_some(inflater, input, space);
	} while (step <= CODING_WHOLE && input->size && space->size < space->capacity);
	return step;
}

/* RFC 1950 section 2.2: method 8, window at most 32 KiB, the two bytes a multiple of 31. */
static bool is_zlib_header(const uint8_t first[2])
{
	return (first[0] & 0x0f) == 8 && first[0] >> 4 <= 7 && (first[0] << 8 | first[1]) % 31 == 0;
}

static enum coding_step run_deflate(void *state, struct bytes *input, struct coding_space *space)
{
	struct inflater *inflater = state;
	struct bytes first;

	if (!inflater->sniff)
		return run(inflater, input, space);
	while (input->size && inflater->first_size < 2)
		inflater->first[inflater->first_size++] = bytes_take(input, 1).data[0];
	if (inflater->first_size < 2)
		return CODING_MORE;
	inflater->sniff = false;
	if (!is_zlib_header(inflater->first) && inflateReset2(&inflater->stream, RAW_WINDOW_BITS) != Z_OK)
		return CODING_OUT_OF_MEMORY;
	first = (struct bytes){inflater->first, 2};
	switch (run(inflater, &first, space)) {
	case CODING_MORE:
	case CODING_WHOLE:
		return first.size ? CODING_DAMAGED : run(inflater, input, space);
	case CODING_OUT_OF_MEMORY:
		return CODING_OUT_OF_MEMORY;
	default:
		return CODING_DAMAGED;
	}
}

const struct coding coding_gzip = {"gzip", "x-gzip", "gzip damaged", start_gzip, run, done};
const struct coding coding_deflate = {"deflate", NULL, "deflate damaged", start_deflate, run_deflate, done};
