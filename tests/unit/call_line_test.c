/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The line of a call, whole: on no terminal, and which columns go on a narrow one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "call_line.h"

#define MS 1000000ULL
#define START 1000000000ULL
/* 2026-10-01 12:00:00 UTC, less the 1 s that the monotonic clock shows. */
#define WALL_OFFSET ((1790856000LL - 1) * 1000000000LL)

static const uint8_t salt[32] = {7};

static struct call charge_call(void)
{
	return (struct call){
		.server = {.address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}, .port = 45745},
		.process = {.tgid = 4101, .comm = "flaky-tool"},
		.first_ns = START + 193 * MS,
		.sent_ns = START + 194 * MS,
		.response_last_ns = START + 206 * MS,
		.status = 200,
		.body_bytes = 13,
		.response_body_bytes = 36,
		.method = BYTES("POST"),
		.path = BYTES("/v1/chat/completions"),
	};
}

/* The header and the line of that width. */
static void expect(unsigned int width, const char *header, const char *line)
{
	const struct alert_style style = {.width = width};
	struct fingerprinter *fingerprinter = fingerprinter_new(salt);
	struct call call = charge_call();
	struct buffer out = {0};

	assert_non_null(fingerprinter);
	assert_int_equal(call_line_header(&style, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, header);
	buffer_clear(&out);
	assert_int_equal(call_line(fingerprinter, &call, WALL_OFFSET, &style, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, line);
	buffer_done(&out);
	fingerprinter_free(fingerprinter);
}

static void has_every_column_where_there_is_room(void **state)
{
	static const unsigned int widths[] = {0, 112, 200};

	(void)state;
	for (size_t i = 0; i < sizeof(widths) / sizeof(widths[0]); i++)
		expect(widths[i],
		       "TIME (UTC)       PID COMMAND         METHOD  ST   SENT    GOT        MS SERVER AND TARGET\n",
		       "12:00:00.193    4101 flaky-tool      POST   200     13     36      12.0 "
		       "127.0.0.1:45745 /v1/chat/completions\n");
}

static void leaves_the_sizes_out_first(void **state)
{
	(void)state;
	expect(111, "TIME (UTC)       PID COMMAND         METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193    4101 flaky-tool      POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
	expect(98, "TIME (UTC)       PID COMMAND         METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193    4101 flaky-tool      POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
}

static void then_the_pid(void **state)
{
	(void)state;
	expect(97, "TIME (UTC)   COMMAND         METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193 flaky-tool      POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
	expect(90, "TIME (UTC)   COMMAND         METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193 flaky-tool      POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
}

static void then_the_command(void **state)
{
	(void)state;
	expect(89, "TIME (UTC)   METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193 POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
	expect(80, "TIME (UTC)   METHOD  ST        MS SERVER AND TARGET\n",
	       "12:00:00.193 POST   200      12.0 127.0.0.1:45745 /v1/chat/completions\n");
}

static void cuts_the_target_last(void **state)
{
	(void)state;
	expect(50, "TIME (UTC)   METHOD  ST        MS SERVER AND TARGE\n",
	       "12:00:00.193 POST   200      12.0 127.0.0.1:45745 \n");
	expect(1, "T\n", "1\n");
}

static void knows_widths_with_the_same_columns(void **state)
{
	static const struct {
		unsigned int width, other;
		bool alike;
	} rows[] = {
		{0, 112, true},	  {0, 111, false}, {111, 98, true}, {98, 97, false},
		{97, 90, true},	  {90, 89, false}, {89, 1, true},   {300, 112, true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(call_line_looks_alike(rows[i].width, rows[i].other), rows[i].alike);
		assert_int_equal(call_line_looks_alike(rows[i].other, rows[i].width), rows[i].alike);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(has_every_column_where_there_is_room),
		cmocka_unit_test(leaves_the_sizes_out_first),
		cmocka_unit_test(then_the_pid),
		cmocka_unit_test(then_the_command),
		cmocka_unit_test(cuts_the_target_last),
		cmocka_unit_test(knows_widths_with_the_same_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
