/* SPDX-License-Identifier: BSD-2-Clause */
/* Server-sent events in slices: the data of each, however it is cut. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "event_stream.h"

/* The data of each event, and '|' where it ended. */
static void feed(struct event_stream *stream, struct bytes input, struct buffer *out)
{
	enum event_stream_step step;
	struct bytes data;

	while ((step = event_stream_next(stream, &input, &data)) != EVENT_STREAM_MORE) {
		if (step == EVENT_STREAM_DATA)
			assert_true(data.size > 0);
		assert_int_equal(buffer_append(out, step == EVENT_STREAM_DATA ? data : BYTES("|")), 0);
	}
}

static void assert_out(struct buffer *out, const char *expected)
{
	assert_int_equal(buffer_append_byte(out, '\0'), 0);
	assert_string_equal((const char *)out->data, expected);
	buffer_done(out);
}

static void assert_tells(const char *text, const char *expected)
{
	for (size_t cut = 0; cut <= strlen(text); cut++) {
		struct event_stream stream = {0};
		struct bytes input = bytes_of_string(text);
		struct buffer out = {0};

		feed(&stream, bytes_take(&input, cut), &out);
		feed(&stream, input, &out);
		assert_out(&out, expected);
	}
}

static void every_line_end_ends_a_line(void **state)
{
	(void)state;
	assert_tells("data: a\n\ndata: b\n\n", "a|b|");
	assert_tells("data: a\r\n\r\ndata: b\r\n\r\n", "a|b|");
	assert_tells("data: a\r\rdata: b\r\r", "a|b|");
	assert_tells("data: a\n\rdata: b\r\n\ndata: c\r\r\n", "a|b|c|");
}

static void data_lines_are_joined_by_lf(void **state)
{
	(void)state;
	assert_tells("data: a\ndata:  b\ndata\ndata:\ndata:c\n\n", "a\n b\n\n\nc|");
	assert_tells("data: a\r\ndata: b\r\n\r\n", "a\nb|");
	assert_tells("data: a\rdata: b\r\r", "a\nb|");
	assert_tells("data:\n\n", "|");
}

static void other_fields_comments_and_empty_events_are_passed_over(void **state)
{
	(void)state;
	assert_tells(": data: x\nevent: data\nid\nretry: 5\ndat: x\ndataa: x\n data: x\nDATA: x\n\n\n\ndata: a\n\n", "a|");
}

static void an_event_that_has_no_end_is_not_told_as_ended(void **state)
{
	(void)state;
	assert_tells("data: a\n\ndata: b\n", "a|b");
	assert_tells("data: a\n\ndata: b", "a|b");
}

static void a_byte_order_mark_is_passed_over_at_the_start_alone(void **state)
{
	(void)state;
	assert_tells("\xef\xbb\xbf" "data: a\n\n\xef\xbb\xbf" "data: b\n\n", "a|");
}

static void behind_a_gap_the_next_event_is_told(void **state)
{
	static const char *const rests[] = {"rest\ndata: x\n\ndata: b\n\n", "\ndata: x\r\n\r\ndata: b\n\n", "\n\ndata: b\n\n",
					    "data: x\n\ndata: b\n\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++)
		for (size_t cut = 0; cut <= strlen(rests[i]); cut++) {
			struct event_stream stream = {0};
			struct bytes rest = bytes_of_string(rests[i]);
			struct buffer out = {0};

			feed(&stream, BYTES("data: a\n\ndata: y"), &out);
			event_stream_gap(&stream);
			feed(&stream, bytes_take(&rest, cut), &out);
			feed(&stream, rest, &out);
			assert_out(&out, "a|yb|");
		}
}

static void long_lines_come_in_pieces(void **state)
{
	struct event_stream stream = {0};
	struct buffer text = {0}, out = {0};

	(void)state;
	assert_int_equal(buffer_append(&text, BYTES("data: ")), 0);
	for (int i = 0; i < 5000; i++)
		assert_int_equal(buffer_append_byte(&text, (uint8_t)('a' + i % 26)), 0);
	assert_int_equal(buffer_append(&text, BYTES("\r\n\r\n")), 0);
	feed(&stream, buffer_bytes(&text), &out);
	assert_int_equal(out.size, 5001);
	assert_memory_equal(out.data, text.data + 6, 5000);
	assert_int_equal(out.data[5000], '|');
	buffer_done(&text);
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_end_ends_a_line),
		cmocka_unit_test(data_lines_are_joined_by_lf),
		cmocka_unit_test(other_fields_comments_and_empty_events_are_passed_over),
		cmocka_unit_test(an_event_that_has_no_end_is_not_told_as_ended),
		cmocka_unit_test(a_byte_order_mark_is_passed_over_at_the_start_alone),
		cmocka_unit_test(behind_a_gap_the_next_event_is_told),
		cmocka_unit_test(long_lines_come_in_pieces),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
