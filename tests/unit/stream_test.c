/* SPDX-License-Identifier: BSD-2-Clause */
/* user/stream.c: bytes in stream order, each once, with every hole named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stream.h"
#include "wire_build.h"

#define CLIENT WIRE_BUILD_CLIENT

/* "bytes@0:abc hole@3+2:ring_full" and so on, for whole-result assertions. */
static const char *const cause_names[WIRE_CAUSE_COUNT] = {
	"none",	     "ring_full", "fault",    "pages", "truncated",
	"missed", "fastopen",  "urgent", "muted", "share"};

static char *feed(struct stream *stream, struct wire_event event, const char *text)
{
	static char out[512];
	struct stream_piece piece;
	size_t used = 0;
	enum stream_step step;

	out[0] = '\0';
	stream_feed(stream, &event, bytes_of_string(text));
	while ((step = stream_next(stream, &piece)) != STREAM_NOTHING) {
		const char *gap = used ? " " : "";

		if (step == STREAM_BYTES) {
			assert_int_equal(piece.length, piece.bytes.size);
			used += (size_t)snprintf(out + used, sizeof(out) - used, "%sbytes@%llu:%.*s",
						 gap, (unsigned long long)piece.offset,
						 (int)piece.bytes.size, (const char *)piece.bytes.data);
		} else {
			used += (size_t)snprintf(out + used, sizeof(out) - used, "%shole@%llu+%llu:%s",
						 gap, (unsigned long long)piece.offset,
						 (unsigned long long)piece.length,
						 cause_names[piece.cause]);
		}
	}
	assert_int_equal(stream_next(stream, &piece), STREAM_NOTHING);
	return out;
}

static struct wire_event data(uint64_t offset, uint32_t size)
{
	return wire_build_data(CLIENT, offset, size, 0, 1);
}

static void passes_bytes_on_in_order(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, data(0, 3), "abc"), "bytes@0:abc");
	assert_string_equal(feed(&stream, data(3, 2), "de"), "bytes@3:de");
	assert_int_equal(stream.next_offset, 5);
	assert_int_equal(stream.hole_bytes, 0);
}

static void lends_the_payload_without_a_copy(void **state)
{
	const uint8_t text[] = "abcdef";
	struct wire_event event = data(0, 6);
	struct stream stream;
	struct stream_piece piece;

	(void)state;
	stream_init(&stream, 2);
	stream_feed(&stream, &event, (struct bytes){text, 6});
	assert_int_equal(stream_next(&stream, &piece), STREAM_BYTES);
	assert_ptr_equal(piece.bytes.data, text + 2);
}

static void drops_bytes_that_were_passed_on_already(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(0, 5), "abcde");
	assert_string_equal(feed(&stream, data(0, 5), "abcde"), "");
	assert_string_equal(feed(&stream, data(1, 3), "bcd"), "");
	assert_string_equal(feed(&stream, data(3, 4), "defg"), "bytes@5:fg");
}

static void keeps_a_hole_between_two_records(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(0, 3), "abc");
	assert_string_equal(feed(&stream, data(7, 2), "hi"), "hole@3+4:missed bytes@7:hi");
	assert_int_equal(stream.hole_bytes, 4);
	assert_int_equal(stream.next_offset, 9);
}

static void a_late_record_does_not_fill_a_hole_that_was_passed_on(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(3, 2), "de");
	assert_string_equal(feed(&stream, data(0, 4), "abcd"), "");
	assert_int_equal(stream.hole_bytes, 3);
}

static void a_hole_event_has_its_own_cause(void **state)
{
	struct stream stream;

	(void)state;
	for (int cause = WIRE_CAUSE_RING_FULL; cause < WIRE_CAUSE_COUNT; cause++) {
		char expected[64];

		stream_init(&stream, 0);
		snprintf(expected, sizeof(expected), "hole@0+10:%s", cause_names[cause]);
		assert_string_equal(feed(&stream, wire_build_hole(CLIENT, 0, 10, cause, 1), ""),
				    expected);
		assert_int_equal(stream.hole_bytes, 10);
	}
}

static void the_gap_before_a_hole_event_has_its_cause_and_is_one_piece(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, wire_build_hole(CLIENT, 4, 6, WIRE_CAUSE_PAGES, 1), ""),
			    "hole@0+10:pages");
}

static void a_hole_event_without_a_cause_is_missed(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, wire_build_hole(CLIENT, 0, 6, WIRE_CAUSE_NONE, 1), ""),
			    "hole@0+6:missed");
}

static void a_hole_event_over_known_bytes_leaves_only_its_tail(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(0, 5), "abcde");
	assert_string_equal(feed(&stream, wire_build_hole(CLIENT, 3, 6, WIRE_CAUSE_FAULT, 1), ""),
			    "hole@5+4:fault");
	assert_string_equal(feed(&stream, wire_build_hole(CLIENT, 3, 6, WIRE_CAUSE_FAULT, 1), ""),
			    "");
}

static void bytes_accepted_but_not_captured_are_a_hole_after_the_captured_ones(void **state)
{
	struct wire_event event = data(0, 3);
	struct stream stream;

	(void)state;
	event.length_bytes = 10;
	event.cause = WIRE_CAUSE_TRUNCATED;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, event, "abc"), "bytes@0:abc hole@3+7:truncated");
	assert_int_equal(stream.hole_bytes, 7);
}

static void the_cause_of_a_truncated_record_does_not_name_the_gap_before_it(void **state)
{
	struct wire_event event = data(5, 3);
	struct stream stream;

	(void)state;
	event.length_bytes = 4;
	event.cause = WIRE_CAUSE_FAULT;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, event, "abc"),
			    "hole@0+5:missed bytes@5:abc hole@8+1:fault");
}

static void the_cause_of_a_whole_record_names_the_gap_before_it(void **state)
{
	struct wire_event event = data(5, 3);
	struct stream stream;

	(void)state;
	event.cause = WIRE_CAUSE_RING_FULL;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, event, "abc"), "hole@0+5:ring_full bytes@5:abc");
}

static void the_end_shows_a_tail_that_never_came(void **state)
{
	struct wire_event end = wire_build_end(CLIENT, 12, 0, 9);
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(0, 5), "abcde");
	assert_string_equal(feed(&stream, end, ""), "hole@5+7:missed");
	assert_string_equal(feed(&stream, end, ""), "");
}

static void the_end_of_a_muted_stream_says_so(void **state)
{
	struct wire_event end = wire_build_end(CLIENT, 12, 0, 9);
	struct stream stream;

	(void)state;
	end.cause = WIRE_CAUSE_MUTED;
	stream_init(&stream, 0);
	assert_string_equal(feed(&stream, end, ""), "hole@0+12:muted");
}

static void a_whole_stream_ends_without_a_hole(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	feed(&stream, data(0, 5), "abcde");
	assert_string_equal(feed(&stream, wire_build_end(CLIENT, 5, 0, 9), ""), "");
	assert_int_equal(stream.hole_bytes, 0);
}

static void the_length_field_of_an_end_means_nothing(void **state)
{
	struct wire_event end = wire_build_end(CLIENT, 5, 0, 9);
	struct stream stream;

	(void)state;
	end.length_bytes = 100;
	stream_init(&stream, 5);
	assert_string_equal(feed(&stream, end, ""), "");
}

static void a_late_join_begins_where_it_is_told_to(void **state)
{
	struct stream stream;

	(void)state;
	stream_init(&stream, 1000);
	assert_string_equal(feed(&stream, data(1000, 2), "ab"), "bytes@1000:ab");
	assert_int_equal(stream.hole_bytes, 0);
}

static void offsets_go_beyond_4_gib(void **state)
{
	const uint64_t start = (1ULL << 32) - 2;
	struct stream stream;

	(void)state;
	stream_init(&stream, start);
	assert_string_equal(feed(&stream, data(start, 4), "abcd"), "bytes@4294967294:abcd");
	assert_string_equal(feed(&stream, data(start + 4, 1), "e"), "bytes@4294967298:e");
}

static void other_kinds_lead_to_nothing(void **state)
{
	static const enum wire_kind kinds[] = {WIRE_OPEN, WIRE_STATE, WIRE_RESET,
					       WIRE_FORK, WIRE_EXIT,  WIRE_CONNECT};
	struct stream stream;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		struct wire_event event = data(10, 3);

		event.kind = kinds[i];
		stream_init(&stream, 0);
		assert_string_equal(feed(&stream, event, "abc"), "");
		assert_int_equal(stream.next_offset, 0);
	}
}

static void never_lends_more_than_the_payload_or_the_length(void **state)
{
	struct wire_event event = data(0, 3);
	struct stream stream;

	(void)state;
	stream_init(&stream, 0);
	event.captured_bytes = 5;
	event.length_bytes = 5;
	assert_string_equal(feed(&stream, event, "abc"), "bytes@0:abc hole@3+2:missed");

	stream_init(&stream, 0);
	event.captured_bytes = 3;
	event.length_bytes = 2;
	assert_string_equal(feed(&stream, event, "abc"), "bytes@0:ab");
}

static void sums_saturate_instead_of_wrapping(void **state)
{
	struct wire_event event = data(UINT64_MAX - 2, 4);
	struct stream stream;

	(void)state;
	stream_init(&stream, UINT64_MAX - 2);
	assert_string_equal(feed(&stream, event, "abcd"), "bytes@18446744073709551613:ab");
	assert_int_equal(stream.next_offset, UINT64_MAX);

	stream_init(&stream, 7);
	event = wire_build_hole(CLIENT, UINT64_MAX, UINT64_MAX, WIRE_CAUSE_PAGES, 1);
	assert_string_equal(feed(&stream, event, ""), "hole@7+18446744073709551608:pages");
	assert_string_equal(feed(&stream, event, ""), "");
}

/* ---- sniffing ---- */

struct sniff_case {
	const char *first;
	enum stream_protocol expected;
};

static void check_sniff(const struct sniff_case *cases, size_t count, bool from_client)
{
	for (size_t i = 0; i < count; i++) {
		enum stream_protocol got =
			stream_sniff(bytes_of_string(cases[i].first), from_client);

		if (got != cases[i].expected)
			fail_msg("case %zu \"%s\": %d, not %d", i, cases[i].first, got,
				 cases[i].expected);
	}
}

static void knows_a_request_line(void **state)
{
	static const struct sniff_case cases[] = {
		{"", STREAM_UNDECIDED},
		{"P", STREAM_UNDECIDED},
		{"POST", STREAM_UNDECIDED},
		{"POST ", STREAM_UNDECIDED},
		{"POST /", STREAM_HTTP1},
		{"POST /charge HTTP/1.1\r\n", STREAM_HTTP1},
		{"QUERY /search HTTP/1.1\r\n", STREAM_HTTP1},
		{"m-search * HTTP/1.1\r\n", STREAM_HTTP1},
		{"X!#$%&'*+-.^_`|~9 /", STREAM_HTTP1},
		{"OPTIONS *", STREAM_HTTP1},
		{"GET  /two-spaces", STREAM_HTTP1},
		{"GET http", STREAM_UNDECIDED},
		{"GET http://localhost/", STREAM_HTTP1},
		{"CONNECT local", STREAM_HTTP1},
		{"POST charge HTTP/1.1\r\n", STREAM_HTTP1},
		{"POST charge", STREAM_UNDECIDED},
		{"\r\n", STREAM_UNDECIDED},
		{"\r\n\r\nPOST /", STREAM_HTTP1},
		{"\nPOST /", STREAM_HTTP1},
	};

	(void)state;
	check_sniff(cases, sizeof(cases) / sizeof(*cases), true);
}

static void knows_what_is_no_request_line(void **state)
{
	static const struct sniff_case cases[] = {
		{"{\"a\":1}", STREAM_OTHER},
		{" GET /", STREAM_OTHER},
		{"GET\t/", STREAM_OTHER},
		{"GET\r\n", STREAM_OTHER},
		{"GET \r\n", STREAM_OTHER},
		{"GET \x01", STREAM_OTHER},
		{"PING\r\n", STREAM_OTHER},
		{"*3\r\n$3\r\nSET\r\n", STREAM_OTHER},
		{"SET key value\r\n", STREAM_OTHER},
		{"SET key:1 value\r\n", STREAM_OTHER},
		{"EHLO localhost\r\n", STREAM_OTHER},
		{"REGISTER sip:localhost SIP/2.0\r\n", STREAM_OTHER},
		{"SSH-2.0-x\r\n", STREAM_OTHER},
		{"\x7f" "ELF", STREAM_OTHER},
		{"\xc3\xa9 /", STREAM_OTHER},
		{"HTTP/1.1 200 OK\r\n", STREAM_OTHER},
	};

	(void)state;
	check_sniff(cases, sizeof(cases) / sizeof(*cases), true);
}

static void knows_a_status_line(void **state)
{
	static const struct sniff_case cases[] = {
		{"", STREAM_UNDECIDED},
		{"H", STREAM_UNDECIDED},
		{"HTTP/1", STREAM_UNDECIDED},
		{"HTTP/1.", STREAM_HTTP1},
		{"HTTP/1.1 200 OK\r\n", STREAM_HTTP1},
		{"HTTP/2 200\r\n", STREAM_OTHER},
		{"HTPP", STREAM_OTHER},
		{"POST / HTTP/1.1\r\n", STREAM_OTHER},
		{"+OK\r\n", STREAM_OTHER},
	};

	(void)state;
	check_sniff(cases, sizeof(cases) / sizeof(*cases), false);
}

static void knows_tls_from_either_end(void **state)
{
	static const struct sniff_case cases[] = {
		{"\x16", STREAM_UNDECIDED},
		{"\x16\x03", STREAM_TLS},
		{"\x16\x03\x01\x02", STREAM_TLS},
		{"\x16\x02", STREAM_OTHER},
	};

	(void)state;
	check_sniff(cases, sizeof(cases) / sizeof(*cases), true);
	check_sniff(cases, sizeof(cases) / sizeof(*cases), false);
}

static void knows_http2_from_the_client(void **state)
{
	static const struct sniff_case cases[] = {
		{"PRI", STREAM_UNDECIDED},
		{"PRI *", STREAM_UNDECIDED},
		{"PRI * HTTP/2.0", STREAM_HTTP2},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", STREAM_HTTP2},
		{"PRI * HTTP/1.1\r\n", STREAM_HTTP1},
		{"PRI /x HTTP/1.1\r\n", STREAM_HTTP1},
	};

	(void)state;
	check_sniff(cases, sizeof(cases) / sizeof(*cases), true);
}

static void knows_http2_from_a_server_that_speaks_first(void **state)
{
	static const uint8_t settings[] = {0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 3};
	static const uint8_t odd_length[] = {0, 0, 13, 4, 0, 0, 0, 0, 0};
	static const uint8_t acknowledged[] = {0, 0, 0, 4, 1, 0, 0, 0, 0};

	(void)state;
	for (size_t size = 1; size < 9; size++)
		assert_int_equal(stream_sniff((struct bytes){settings, size}, false),
				 STREAM_UNDECIDED);
	assert_int_equal(stream_sniff((struct bytes){settings, 9}, false), STREAM_HTTP2);
	assert_int_equal(stream_sniff((struct bytes){settings, 11}, false), STREAM_HTTP2);
	assert_int_equal(stream_sniff((struct bytes){odd_length, 9}, false), STREAM_OTHER);
	assert_int_equal(stream_sniff((struct bytes){acknowledged, 9}, false), STREAM_OTHER);
	assert_int_equal(stream_sniff((struct bytes){settings, 9}, true), STREAM_OTHER);
}

static void always_decides_within_its_limit(void **state)
{
	uint8_t text[STREAM_SNIFF_BYTES + 6];

	(void)state;
	memset(text, 'A', sizeof(text));
	assert_int_equal(stream_sniff((struct bytes){text, STREAM_SNIFF_BYTES - 1}, true),
			 STREAM_UNDECIDED);
	assert_int_equal(stream_sniff((struct bytes){text, STREAM_SNIFF_BYTES}, true), STREAM_OTHER);
	memcpy(text + STREAM_SNIFF_BYTES, " /", 2);
	assert_int_equal(stream_sniff((struct bytes){text, sizeof(text)}, true), STREAM_OTHER);
	memset(text, '\n', sizeof(text));
	assert_int_equal(stream_sniff((struct bytes){text, STREAM_SNIFF_BYTES}, true), STREAM_OTHER);
}

static void a_decision_stays_whatever_follows(void **state)
{
	static const char *const texts[] = {
		"POST /charge HTTP/1.1\r\nHost: x\r\n\r\n", "GET http://localhost/ HTTP/1.1\r\n",
		"\r\n\r\nPATCH x HTTP/1.0\r\n",		    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"PRI * HTTP/1.1\r\n\r\n",		    "SET key value\r\nGET / HTTP/1.1\r\n",
		"HTTP/1.1 200 OK\r\n\r\n",		    "\x16\x03\x01 HTTP/1.1\r\n",
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(texts) / sizeof(*texts); i++) {
		struct bytes whole = bytes_of_string(texts[i / 2]);
		enum stream_protocol decision = STREAM_UNDECIDED;

		for (size_t size = 0; size <= whole.size; size++) {
			enum stream_protocol now =
				stream_sniff((struct bytes){whole.data, size}, i % 2);

			if (decision != STREAM_UNDECIDED)
				assert_int_equal(now, decision);
			decision = now;
		}
		assert_int_not_equal(decision, STREAM_UNDECIDED);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_bytes_on_in_order),
		cmocka_unit_test(lends_the_payload_without_a_copy),
		cmocka_unit_test(drops_bytes_that_were_passed_on_already),
		cmocka_unit_test(keeps_a_hole_between_two_records),
		cmocka_unit_test(a_late_record_does_not_fill_a_hole_that_was_passed_on),
		cmocka_unit_test(a_hole_event_has_its_own_cause),
		cmocka_unit_test(the_gap_before_a_hole_event_has_its_cause_and_is_one_piece),
		cmocka_unit_test(a_hole_event_without_a_cause_is_missed),
		cmocka_unit_test(a_hole_event_over_known_bytes_leaves_only_its_tail),
		cmocka_unit_test(bytes_accepted_but_not_captured_are_a_hole_after_the_captured_ones),
		cmocka_unit_test(the_cause_of_a_truncated_record_does_not_name_the_gap_before_it),
		cmocka_unit_test(the_cause_of_a_whole_record_names_the_gap_before_it),
		cmocka_unit_test(the_end_shows_a_tail_that_never_came),
		cmocka_unit_test(the_end_of_a_muted_stream_says_so),
		cmocka_unit_test(a_whole_stream_ends_without_a_hole),
		cmocka_unit_test(the_length_field_of_an_end_means_nothing),
		cmocka_unit_test(a_late_join_begins_where_it_is_told_to),
		cmocka_unit_test(offsets_go_beyond_4_gib),
		cmocka_unit_test(other_kinds_lead_to_nothing),
		cmocka_unit_test(never_lends_more_than_the_payload_or_the_length),
		cmocka_unit_test(sums_saturate_instead_of_wrapping),
		cmocka_unit_test(knows_a_request_line),
		cmocka_unit_test(knows_what_is_no_request_line),
		cmocka_unit_test(knows_a_status_line),
		cmocka_unit_test(knows_tls_from_either_end),
		cmocka_unit_test(knows_http2_from_the_client),
		cmocka_unit_test(knows_http2_from_a_server_that_speaks_first),
		cmocka_unit_test(always_decides_within_its_limit),
		cmocka_unit_test(a_decision_stays_whatever_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
