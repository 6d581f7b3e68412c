/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bodies in every content coding, for tests. The caller frees each with
 * buffer_done(). brotli's encoder is another library: its texts are fixed.
 */
#ifndef NIGHTCLERK_CODED_BUILD_H
#define NIGHTCLERK_CODED_BUILD_H

#include "bytes.h"

#include <zlib.h>
#include <zstd.h>

#define CODED_JSON "{\"amount\": 1900, \"currency\": \"eur\"}"

/* CODED_JSON in brotli. */
static const uint8_t coded_br_json[] = {
	0x0b, 0x11, 0x80, 0x7b, 0x22, 0x61, 0x6d, 0x6f, 0x75, 0x6e, 0x74, 0x22, 0x3a,
	0x20, 0x31, 0x39, 0x30, 0x30, 0x2c, 0x20, 0x22, 0x63, 0x75, 0x72, 0x72, 0x65,
	0x6e, 0x63, 0x79, 0x22, 0x3a, 0x20, 0x22, 0x65, 0x75, 0x72, 0x22, 0x7d, 0x03,
};

/* 16 MiB of zeros in brotli, with a window of 16 MiB. */
static const uint8_t coded_br_bomb[] = {
	0x9f, 0xff, 0xff, 0xff, 0xf8, 0x27, 0x00, 0xe2, 0xb1, 0x40, 0x20, 0xf7, 0xfe, 0x1f,
};

#define CODED_BYTES(array) ((struct bytes){(array), sizeof(array)})

static inline struct buffer coded_deflated(struct bytes plain, int window_bits, int level, uint32_t mtime)
{
	gz_header header = {.time = mtime, .os = 3};
	z_stream stream = {0};
	struct buffer coded = {0};

	if (deflateInit2(&stream, level, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK)
		abort();
	if (window_bits > 15)
		deflateSetHeader(&stream, &header);
	if (buffer_reserve(&coded, deflateBound(&stream, plain.size) + 64))
		abort();
	stream.next_in = (Bytef *)plain.data;
	stream.avail_in = (uInt)plain.size;
	stream.next_out = coded.data;
	stream.avail_out = (uInt)coded.capacity;
	if (deflate(&stream, Z_FINISH) != Z_STREAM_END)
		abort();
	coded.size = coded.capacity - stream.avail_out;
	deflateEnd(&stream);
	return coded;
}

static inline struct buffer coded_gzip(struct bytes plain, uint32_t mtime)
{
	return coded_deflated(plain, 15 + 16, 6, mtime);
}

static inline struct buffer coded_zlib(struct bytes plain)
{
	return coded_deflated(plain, 15, 6, 0);
}

static inline struct buffer coded_raw_deflate(struct bytes plain)
{
	return coded_deflated(plain, -15, 6, 0);
}

/* The size of the content is not in the frame, as a stream's is not; window_log 0 = the default. */
static inline struct buffer coded_zstd(struct bytes plain, int window_log)
{
	ZSTD_CCtx *context = ZSTD_createCCtx();
	struct buffer coded = {0};
	ZSTD_inBuffer in = {plain.data, plain.size, 0};
	ZSTD_outBuffer out;

	if (!context || buffer_reserve(&coded, ZSTD_compressBound(plain.size)))
		abort();
	if (window_log && ZSTD_isError(ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, window_log)))
		abort();
	ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
	out = (ZSTD_outBuffer){coded.data, coded.capacity, 0};
	/* Flushed first, so that the frame cannot know its size and does not shrink its window. */
	if (ZSTD_isError(ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush)) ||
	    ZSTD_compressStream2(context, &out, &in, ZSTD_e_end) != 0)
		abort();
	coded.size = out.pos;
	ZSTD_freeCCtx(context);
	return coded;
}

/* chunk_bytes of plain a chunk; every signature is 64 times the same digit. */
static inline struct buffer coded_aws_chunked(struct bytes plain, size_t chunk_bytes, char digit, const char *trailer)
{
	struct buffer coded = {0};
	char signature[65], line[128];

	memset(signature, digit, 64);
	signature[64] = '\0';
	for (;;) {
		struct bytes data = bytes_take(&plain, chunk_bytes);

		snprintf(line, sizeof(line), "%zx;chunk-signature=%s\r\n", data.size, signature);
		if (buffer_append(&coded, bytes_of_string(line)) || buffer_append(&coded, data))
			abort();
		if (data.size == 0)
			break;
		if (buffer_append(&coded, BYTES("\r\n")))
			abort();
	}
	if (buffer_append(&coded, bytes_of_string(trailer)) || buffer_append(&coded, BYTES("\r\n")))
		abort();
	return coded;
}

/* size bytes that do not compress. */
static inline struct buffer coded_noise(size_t size)
{
	struct buffer noise = {0};
	uint32_t state = 1;

	if (buffer_reserve(&noise, size))
		abort();
	for (; noise.size < size; noise.size++) {
		state = state * 1664525u + 1013904223u;
		noise.data[noise.size] = (uint8_t)(state >> 24);
	}
	return noise;
}

/* size times the same byte. */
static inline struct buffer coded_zeros(size_t size)
{
	struct buffer zeros = {0};

	if (buffer_reserve(&zeros, size))
		abort();
	memset(zeros.data, 0, size);
	zeros.size = size;
	return zeros;
}

#endif
