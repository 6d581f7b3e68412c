/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each coding undone whole, one byte at a time, cut short, damaged, and as a
 * bomb; and rows of codings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coded_build.h"
#include "decode.h"
#include "limits.h"

#define PLAIN BYTES(CODED_JSON)

static struct http_field field;
static struct http_head head = {.fields = &field, .field_count = 1};

static struct decoder *decoder_of(const char *value, uint64_t limit)
{
	struct decoder *decoder = NULL;

	field = (struct http_field){BYTES("content-encoding"), bytes_of_string(value)};
	assert_int_equal(decode_new(&head, limit, &decoder), 0);
	return decoder;
}

static void gives(const char *value, struct bytes coded, size_t slice, struct bytes plain)
{
	struct decoder *decoder = decoder_of(value, LIMIT_BODY_BYTES);
	struct buffer out = {0};

	assert_non_null(decoder);
	while (coded.size)
		decode_all(decoder, bytes_take(&coded, slice), &out);
	assert_null(decode_reason(decoder));
	assert_int_equal(decode_end(decoder), DECODE_WHOLE);
	assert_int_equal(out.size, plain.size);
	assert_memory_equal(out.data, plain.data, plain.size);
	buffer_done(&out);
	decode_free(decoder);
}

static void gives_however_cut(const char *value, struct buffer coded, struct bytes plain)
{
	gives(value, buffer_bytes(&coded), coded.size, plain);
	gives(value, buffer_bytes(&coded), 1, plain);
	gives(value, buffer_bytes(&coded), 7, plain);
	buffer_done(&coded);
}

/* Fails with that result and those words; at most out_max bytes came out before. */
static void fails(const char *value, struct bytes coded, enum decode_result result, const char *reason, size_t out_max)
{
	struct decoder *decoder = decoder_of(value, LIMIT_BODY_BYTES);
	struct buffer out = {0};

	assert_non_null(decoder);
	assert_int_equal(decode_all(decoder, coded, &out), result);
	assert_string_equal(decode_reason(decoder), reason);
	assert_true(out.size <= out_max);
	buffer_done(&out);
	decode_free(decoder);
}

static void identity_and_no_coding_have_no_decoder(void **state)
{
	(void)state;
	assert_null(decoder_of("identity", 1));
	assert_null(decoder_of(" , identity ,, ", 1));
	assert_null(decoder_of("", 1));
	head.field_count = 0;
	assert_null(decoder_of("gzip", 1));
	head.field_count = 1;
}

static void gzip_is_undone_however_it_is_cut(void **state)
{
	(void)state;
	gives_however_cut("gzip", coded_gzip(PLAIN, 1), PLAIN);
	gives_however_cut("X-GZIP", coded_gzip(PLAIN, 1), PLAIN);
	gives_however_cut("identity, GZip,", coded_gzip(PLAIN, 1), PLAIN);
}

static void deflate_is_undone_in_zlib_format_and_raw(void **state)
{
	(void)state;
	gives_however_cut("deflate", coded_zlib(PLAIN), PLAIN);
	gives_however_cut("deflate", coded_raw_deflate(PLAIN), PLAIN);
	gives_however_cut("deflate", coded_zlib(BYTES("")), BYTES(""));
	gives_however_cut("deflate", coded_raw_deflate(BYTES("")), BYTES(""));
	gives_however_cut("deflate", coded_deflated(PLAIN, -15, 0, 0), PLAIN);
}

static void br_is_undone_however_it_is_cut(void **state)
{
	(void)state;
	gives("br", CODED_BYTES(coded_br_json), sizeof(coded_br_json), PLAIN);
	gives("br", CODED_BYTES(coded_br_json), 1, PLAIN);
}

static void zstd_is_undone_however_it_is_cut(void **state)
{
	(void)state;
	gives_however_cut("zstd", coded_zstd(PLAIN, 0), PLAIN);
	gives_however_cut("zstd", coded_zstd(BYTES(""), 0), BYTES(""));
}

static void more_than_one_slice_comes_out_whole(void **state)
{
	struct buffer noise = coded_noise(300000);

	(void)state;
	gives_however_cut("gzip", coded_gzip(buffer_bytes(&noise), 0), buffer_bytes(&noise));
	gives_however_cut("deflate", coded_raw_deflate(buffer_bytes(&noise)), buffer_bytes(&noise));
	gives_however_cut("zstd", coded_zstd(buffer_bytes(&noise), 0), buffer_bytes(&noise));
	gives_however_cut("aws-chunked", coded_aws_chunked(buffer_bytes(&noise), 65536, 'a', ""), buffer_bytes(&noise));
	buffer_done(&noise);
}

/* What an encoder left in a full slice must come out although no input is left. */
static void bytes_that_wait_inside_a_coding_come_out(void **state)
{
	struct buffer zeros = coded_zeros(60000);

	(void)state;
	gives_however_cut("gzip", coded_gzip(buffer_bytes(&zeros), 0), buffer_bytes(&zeros));
	gives_however_cut("zstd", coded_zstd(buffer_bytes(&zeros), 0), buffer_bytes(&zeros));
	buffer_done(&zeros);
}

static void members_and_frames_in_a_row_are_one_body(void **state)
{
	struct buffer gzip = coded_gzip(BYTES("{\"amount\": 1900"), 1);
	struct buffer second = coded_gzip(BYTES(", \"currency\": \"eur\"}"), 2);
	struct buffer zstd = coded_zstd(BYTES("{\"amount\": 1900"), 0);
	struct buffer frame = coded_zstd(BYTES(", \"currency\": \"eur\"}"), 0);

	(void)state;
	assert_int_equal(buffer_append(&gzip, buffer_bytes(&second)), 0);
	assert_int_equal(buffer_append(&zstd, buffer_bytes(&frame)), 0);
	gives_however_cut("gzip", gzip, PLAIN);
	gives_however_cut("zstd", zstd, PLAIN);
	buffer_done(&second);
	buffer_done(&frame);
}

static void codings_are_undone_from_the_right(void **state)
{
	struct buffer zstd = coded_zstd(PLAIN, 0);
	struct buffer both = coded_gzip(buffer_bytes(&zstd), 5);

	(void)state;
	fails("gzip, zstd", buffer_bytes(&both), DECODE_DAMAGED, "zstd damaged", 0);
	gives_however_cut("zstd, gzip", both, PLAIN);
	buffer_done(&zstd);
}

static void lines_of_codings_count_as_one_list(void **state)
{
	struct http_field lines[] = {{BYTES("Content-Encoding"), BYTES("zstd")},
				     {BYTES("Content-Type"), BYTES("gzip")},
				     {BYTES("Content-Encoding"), BYTES("gzip")}};
	struct http_head several = {.fields = lines, .field_count = 3};
	struct buffer zstd = coded_zstd(PLAIN, 0), both = coded_gzip(buffer_bytes(&zstd), 5), out = {0};
	struct decoder *decoder;

	(void)state;
	assert_int_equal(decode_new(&several, 1000, &decoder), 0);
	assert_int_equal(decode_all(decoder, buffer_bytes(&both), &out), DECODE_WHOLE);
	assert_true(bytes_equal(buffer_bytes(&out), PLAIN));
	decode_free(decoder);
	buffer_done(&zstd);
	buffer_done(&both);
	buffer_done(&out);
}

static void four_codings_are_undone_and_five_are_not(void **state)
{
	struct buffer coded = coded_gzip(PLAIN, 1);

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct buffer next = coded_gzip(buffer_bytes(&coded), 1);

		buffer_done(&coded);
		coded = next;
	}
	fails("gzip,gzip,gzip,gzip,gzip", buffer_bytes(&coded), DECODE_UNKNOWN_CODING, "too many content codings", 0);
	gives_however_cut("gzip,gzip,gzip,gzip", coded, PLAIN);
}

static void aws_chunked_loses_its_signatures_and_trailers(void **state)
{
	(void)state;
	gives_however_cut("aws-chunked", coded_aws_chunked(PLAIN, 10, 'a', ""), PLAIN);
	gives_however_cut("aws-chunked", coded_aws_chunked(PLAIN, 3, 'b', "x-amz-checksum-crc32: AAAAAA==\r\n"), PLAIN);
}

static void aws_chunked_is_the_outermost_wherever_it_is_named(void **state)
{
	struct buffer gzip = coded_gzip(PLAIN, 1);

	(void)state;
	gives_however_cut("aws-chunked,gzip", coded_aws_chunked(buffer_bytes(&gzip), 9, 'a', ""), PLAIN);
	gives_however_cut("gzip, aws-chunked", coded_aws_chunked(buffer_bytes(&gzip), 9, 'a', ""), PLAIN);
	buffer_done(&gzip);
}

static void a_coding_that_is_not_known_fails(void **state)
{
	(void)state;
	fails("compress", PLAIN, DECODE_UNKNOWN_CODING, "content coding not known", 0);
	fails("gzip, snappy", PLAIN, DECODE_UNKNOWN_CODING, "content coding not known", 0);
	fails("g\033zip", PLAIN, DECODE_UNKNOWN_CODING, "content coding not known", 0);
}

/* Cut at every byte: never whole, never damaged, and what comes out is a front of the plain text. */
static void cut(const char *value, struct bytes coded)
{
	for (size_t size = 0; size < coded.size; size++) {
		struct decoder *decoder = decoder_of(value, LIMIT_BODY_BYTES);
		struct buffer out = {0};

		assert_int_equal(decode_all(decoder, (struct bytes){coded.data, size}, &out), DECODE_TRUNCATED);
		assert_string_equal(decode_reason(decoder), "content coding cut short");
		assert_true(bytes_starts_with(PLAIN, buffer_bytes(&out)));
		buffer_done(&out);
		decode_free(decoder);
	}
}

static void a_cut_coding_is_truncated_and_gives_what_came_before(void **state)
{
	struct buffer gzip = coded_gzip(PLAIN, 1), zlib = coded_zlib(PLAIN), raw = coded_raw_deflate(PLAIN);
	struct buffer zstd = coded_zstd(PLAIN, 0), aws = coded_aws_chunked(PLAIN, 9, 'a', "");
	struct decoder *decoder = decoder_of("gzip", LIMIT_BODY_BYTES);
	struct buffer out = {0};

	(void)state;
	cut("gzip", buffer_bytes(&gzip));
	cut("deflate", buffer_bytes(&zlib));
	cut("deflate", buffer_bytes(&raw));
	cut("br", CODED_BYTES(coded_br_json));
	cut("zstd", buffer_bytes(&zstd));
	cut("aws-chunked", buffer_bytes(&aws));
	/* All but the checksum at the end of the member: the text is there already. */
	decode_all(decoder, (struct bytes){gzip.data, gzip.size - 8}, &out);
	assert_true(bytes_equal(buffer_bytes(&out), PLAIN));
	decode_free(decoder);
	buffer_done(&out);
	buffer_done(&gzip);
	buffer_done(&zlib);
	buffer_done(&raw);
	buffer_done(&zstd);
	buffer_done(&aws);
}

static void bytes_behind_the_end_are_damage(void **state)
{
	struct buffer coded[] = {coded_gzip(PLAIN, 1), coded_zlib(PLAIN), coded_zstd(PLAIN, 0),
				 coded_aws_chunked(PLAIN, 99, 'a', ""), {0}};
	const char *const values[] = {"gzip", "deflate", "zstd", "aws-chunked", "br"};
	const char *const reasons[] = {"gzip damaged", "deflate damaged", "zstd damaged", "aws-chunked damaged",
				       "brotli damaged"};

	(void)state;
	assert_int_equal(buffer_append(&coded[4], CODED_BYTES(coded_br_json)), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(buffer_append(&coded[i], BYTES("tail")), 0);
		fails(values[i], buffer_bytes(&coded[i]), DECODE_DAMAGED, reasons[i], PLAIN.size);
		buffer_done(&coded[i]);
	}
}

static void a_wrong_checksum_is_damage(void **state)
{
	struct buffer gzip = coded_gzip(PLAIN, 1), zlib = coded_zlib(PLAIN), zstd = coded_zstd(PLAIN, 0);

	(void)state;
	gzip.data[gzip.size - 8] ^= 1;
	zlib.data[zlib.size - 1] ^= 1;
	zstd.data[zstd.size - 1] ^= 1;
	fails("gzip", buffer_bytes(&gzip), DECODE_DAMAGED, "gzip damaged", PLAIN.size);
	fails("deflate", buffer_bytes(&zlib), DECODE_DAMAGED, "deflate damaged", PLAIN.size);
	fails("zstd", buffer_bytes(&zstd), DECODE_DAMAGED, "zstd damaged", PLAIN.size);
	buffer_done(&gzip);
	buffer_done(&zlib);
	buffer_done(&zstd);
}

static void plain_text_under_a_coding_is_damage(void **state)
{
	(void)state;
	fails("gzip", PLAIN, DECODE_DAMAGED, "gzip damaged", 0);
	fails("deflate", PLAIN, DECODE_DAMAGED, "deflate damaged", PLAIN.size);
	fails("br", PLAIN, DECODE_DAMAGED, "brotli damaged", PLAIN.size);
	fails("zstd", PLAIN, DECODE_DAMAGED, "zstd damaged", 0);
	fails("aws-chunked", PLAIN, DECODE_DAMAGED, "aws-chunked damaged", 0);
}

#define OVER_RATIO "content coding expands more than 1000:1"
#define BOMB_OUT_MAX (DECODE_FREE_BYTES + 16 * 1024 * 1024 / DECODE_RATIO + 32 * 1024)

static void a_bomb_stops_at_a_thousand_to_one(void **state)
{
	struct buffer zeros = coded_zeros(16 * 1024 * 1024);
	struct buffer zstd = coded_zstd(buffer_bytes(&zeros), 0);

	(void)state;
	assert_true(zstd.size < 1200);
	fails("br", CODED_BYTES(coded_br_bomb), DECODE_TOO_LARGE, OVER_RATIO, BOMB_OUT_MAX);
	fails("zstd", buffer_bytes(&zstd), DECODE_TOO_LARGE, OVER_RATIO, 2 * 1024 * 1024);
	buffer_done(&zeros);
	buffer_done(&zstd);
}

/* zlib cannot do a thousand to one, twice zlib can: the first stage must not run on for ever. */
static void a_bomb_in_a_bomb_stops_too(void **state)
{
	struct buffer zeros = coded_zeros(16 * 1024 * 1024);
	struct buffer inner = coded_gzip(buffer_bytes(&zeros), 0);
	struct buffer outer = coded_gzip(buffer_bytes(&inner), 0);

	(void)state;
	assert_true(outer.size * 1000 < zeros.size);
	fails("gzip, gzip", buffer_bytes(&outer), DECODE_TOO_LARGE, OVER_RATIO,
	      2 * 1024 * 1024);
	buffer_done(&zeros);
	buffer_done(&inner);
	buffer_done(&outer);
}

static void what_is_over_the_limit_stops_there(void **state)
{
	struct buffer noise = coded_noise(100000), gzip = coded_gzip(buffer_bytes(&noise), 0), out = {0};
	struct decoder *decoder = decoder_of("gzip", 99999);

	(void)state;
	assert_int_equal(decode_all(decoder, buffer_bytes(&gzip), &out), DECODE_TOO_LARGE);
	assert_string_equal(decode_reason(decoder), "decoded body over the limit");
	assert_true(out.size <= 99999);
	buffer_clear(&out);
	decode_free(decoder);
	decoder = decoder_of("gzip", 100000);
	assert_int_equal(decode_all(decoder, buffer_bytes(&gzip), &out), DECODE_WHOLE);
	decode_free(decoder);
	buffer_done(&noise);
	buffer_done(&gzip);
	buffer_done(&out);
}

static void a_window_over_8_mib_is_refused(void **state)
{
	struct buffer noise = coded_noise(1000);
	struct buffer fits = coded_zstd(buffer_bytes(&noise), 23), large = coded_zstd(buffer_bytes(&noise), 24);

	(void)state;
	fails("zstd", buffer_bytes(&large), DECODE_TOO_LARGE, "content coding with a window over 8 MiB", 0);
	gives_however_cut("zstd", fits, buffer_bytes(&noise));
	buffer_done(&large);
	buffer_done(&noise);
}

static void a_failure_stays(void **state)
{
	struct decoder *decoder = decoder_of("gzip", LIMIT_BODY_BYTES);
	struct buffer gzip = coded_gzip(PLAIN, 1), out = {0};
	struct bytes output, input = BYTES("no gzip");

	(void)state;
	assert_int_equal(decode_next(decoder, &input, &output), DECODE_FAILED);
	input = buffer_bytes(&gzip);
	assert_int_equal(decode_next(decoder, &input, &output), DECODE_FAILED);
	assert_int_equal(input.size, gzip.size);
	assert_int_equal(decode_all(decoder, input, &out), DECODE_DAMAGED);
	decode_free(decoder);
	decode_free(NULL);
	buffer_done(&gzip);
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identity_and_no_coding_have_no_decoder),
		cmocka_unit_test(gzip_is_undone_however_it_is_cut),
		cmocka_unit_test(deflate_is_undone_in_zlib_format_and_raw),
		cmocka_unit_test(br_is_undone_however_it_is_cut),
		cmocka_unit_test(zstd_is_undone_however_it_is_cut),
		cmocka_unit_test(more_than_one_slice_comes_out_whole),
		cmocka_unit_test(bytes_that_wait_inside_a_coding_come_out),
		cmocka_unit_test(members_and_frames_in_a_row_are_one_body),
		cmocka_unit_test(codings_are_undone_from_the_right),
		cmocka_unit_test(lines_of_codings_count_as_one_list),
		cmocka_unit_test(four_codings_are_undone_and_five_are_not),
		cmocka_unit_test(aws_chunked_loses_its_signatures_and_trailers),
		cmocka_unit_test(aws_chunked_is_the_outermost_wherever_it_is_named),
		cmocka_unit_test(a_coding_that_is_not_known_fails),
		cmocka_unit_test(a_cut_coding_is_truncated_and_gives_what_came_before),
		cmocka_unit_test(bytes_behind_the_end_are_damage),
		cmocka_unit_test(a_wrong_checksum_is_damage),
		cmocka_unit_test(plain_text_under_a_coding_is_damage),
		cmocka_unit_test(a_bomb_stops_at_a_thousand_to_one),
		cmocka_unit_test(a_bomb_in_a_bomb_stops_too),
		cmocka_unit_test(what_is_over_the_limit_stops_there),
		cmocka_unit_test(a_window_over_8_mib_is_refused),
		cmocka_unit_test(a_failure_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
