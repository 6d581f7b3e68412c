/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every message is fed whole, cut in two at every byte, and byte by byte; all
 * must give the same transcript of parts. Each slice ends at a page that cannot
 * be read, so a byte read too far is a crash.
 *
 * The tests of the first part are named after RFC 9112 section 6.3 and the
 * framing rules around it, one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "http.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a slice that ends where memory ends ---- */

static uint8_t *guard_start, *guard_end;

static int map_guard(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t size = 64 * page;
	uint8_t *memory = mmap(NULL, size + page, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (memory == MAP_FAILED || mprotect(memory + size, page, PROT_NONE) < 0)
		return -1;
	guard_start = memory;
	guard_end = memory + size;
	return 0;
}

static int unmap_guard(void **state)
{
	(void)state;
	return munmap(guard_start, (size_t)(guard_end - guard_start) + (size_t)sysconf(_SC_PAGESIZE));
}

static struct bytes at_guard(struct bytes b)
{
	assert_true(b.size <= (size_t)(guard_end - guard_start));
	if (b.size)
		memcpy(guard_end - b.size, b.data, b.size);
	return (struct bytes){guard_end - b.size, b.size};
}

/* ---- transcripts ---- */

struct transcript {
	struct buffer text;
	bool in_body; /* slices of one body are one line */
};

static void add(struct transcript *transcript, struct bytes text)
{
	assert_int_equal(buffer_append(&transcript->text, text), 0);
}

static void add_text(struct transcript *transcript, const char *text)
{
	add(transcript, bytes_of_string(text));
}

static void add_number(struct transcript *transcript, const char *before, uint64_t number)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
	add_text(transcript, before);
	add_text(transcript, text);
}

static void add_head(struct transcript *transcript, const struct http_head *head)
{
	if (head->side == HTTP_REQUEST) {
		add(transcript, head->method);
		add_text(transcript, " ");
		add(transcript, head->target);
	} else {
		add_number(transcript, "", head->status);
	}
	add_number(transcript, " ", head->http_major);
	add_number(transcript, ".", head->http_minor);
	if (head->has_content_length)
		add_number(transcript, " length=", head->content_length);
	if (head->fields_dropped)
		add_number(transcript, " dropped=", head->fields_dropped);
	add_text(transcript, head->transfer_coded ? " coded" : "");
	add_text(transcript, head->chunked ? " chunked" : "");
	add_text(transcript, head->framing_ambiguous ? " ambiguous" : "");
	add_text(transcript, head->obs_fold ? " fold" : "");
	add_text(transcript, head->cut ? " cut" : "");
	add_text(transcript, head->expects_continue ? " continue" : "");
	add_text(transcript, head->keep_alive ? "\n" : " close\n");
	for (size_t i = 0; i < head->field_count; i++) {
		add_text(transcript, " ");
		add(transcript, head->fields[i].name);
		add_text(transcript, "=");
		add(transcript, head->fields[i].value);
		add_text(transcript, "\n");
	}
}

static const char *ended_name(enum http_ended ended)
{
	static const char *const names[] = {
		[HTTP_ENDED_NONE] = "END none\n",	[HTTP_ENDED_NO_BODY] = "END no body\n",
		[HTTP_ENDED_LENGTH] = "END length\n", [HTTP_ENDED_CHUNKED] = "END chunked\n",
		[HTTP_ENDED_CLOSE] = "END close\n",
	};

	return names[ended];
}

static void add_part(struct transcript *transcript, enum http_step step, const struct http_part *part)
{
	if (transcript->in_body && step != HTTP_BODY) {
		add_text(transcript, "\n");
		transcript->in_body = false;
	}
	switch (step) {
	case HTTP_HEAD:
		add_head(transcript, part->head);
		break;
	case HTTP_BODY:
		assert_true(part->body.size > 0);
		add_text(transcript, transcript->in_body ? "" : "> ");
		add(transcript, part->body);
		transcript->in_body = true;
		break;
	case HTTP_END:
		add_text(transcript, ended_name(part->ended));
		break;
	case HTTP_TUNNEL:
		add_text(transcript, "TUNNEL\n");
		break;
	case HTTP_BROKEN:
		add_text(transcript, "BROKEN ");
		add_text(transcript, part->reason);
		add_text(transcript, "\n");
		break;
	case HTTP_NEED_MORE:
		break;
	}
}

/* Feeds one slice; false when there is nothing more to feed. */
static bool feed(struct http_reader *reader, struct bytes slice, struct transcript *transcript)
{
	struct bytes guarded = at_guard(slice), input = guarded;
	struct http_part part;
	enum http_step step;

	while ((step = http_next(reader, &input, &part)) != HTTP_NEED_MORE) {
		assert_true(input.data + input.size == guarded.data + guarded.size);
		if (step == HTTP_BODY) {
			assert_true(part.body.data >= guarded.data);
			assert_true(part.body.data + part.body.size <= input.data);
		}
		add_part(transcript, step, &part);
		if (step == HTTP_TUNNEL || step == HTTP_BROKEN)
			return false;
	}
	assert_int_equal(input.size, 0);
	return true;
}

static void finish(struct http_reader *reader, bool clean, struct transcript *transcript)
{
	struct http_part part;
	enum http_step step = http_finish(reader, clean, &part);

	add_part(transcript, HTTP_NEED_MORE, &part);
	add_text(transcript, step == HTTP_NEED_MORE ? "-- idle\n" : "-- ");
	add_part(transcript, step, &part);
}

struct stream {
	enum http_side side;
	const char *answers; /* method, or NULL */
	bool reset;	     /* the stream ends by RST */
	struct bytes bytes;
};

/* slice = 0: cut once at first, else slices of that many bytes. */
static void check_cut(const struct stream *stream, size_t first, size_t slice, const char *expected)
{
	struct http_reader *reader = http_reader_new(stream->side);
	struct bytes rest = stream->bytes;
	struct transcript transcript = {0};
	bool more;

	assert_non_null(reader);
	if (stream->answers)
		http_reader_expect(reader, bytes_of_string(stream->answers));
	more = feed(reader, bytes_take(&rest, first), &transcript);
	while (more && rest.size)
		more = feed(reader, bytes_take(&rest, slice ? slice : rest.size), &transcript);
	if (more)
		finish(reader, !stream->reset, &transcript);
	assert_int_equal(buffer_append_byte(&transcript.text, 0), 0);
	if (strcmp((const char *)transcript.text.data, expected))
		print_error("first slice %zu, then %zu\n", first, slice);
	assert_string_equal((const char *)transcript.text.data, expected);
	buffer_done(&transcript.text);
	http_reader_free(reader);
}

static void check_stream(const struct stream *stream, const char *expected)
{
	for (size_t first = 0; first <= stream->bytes.size; first++)
		check_cut(stream, first, 0, expected);
	check_cut(stream, 0, 1, expected);
}

#define REQUEST(literal, expected) \
	check_stream(&(struct stream){HTTP_REQUEST, NULL, false, BYTES(literal)}, expected)
#define RESPONSE(literal, expected) \
	check_stream(&(struct stream){HTTP_RESPONSE, NULL, false, BYTES(literal)}, expected)
#define RESPONSE_TO(method, literal, expected) \
	check_stream(&(struct stream){HTTP_RESPONSE, method, false, BYTES(literal)}, expected)
#define RESPONSE_RESET(literal, expected) \
	check_stream(&(struct stream){HTTP_RESPONSE, NULL, true, BYTES(literal)}, expected)

/* ---- RFC 9112 section 6.3, rule by rule ---- */

static void rule_1_response_to_head_ends_at_the_blank_line(void **state)
{
	(void)state;
	RESPONSE_TO("HEAD",
		    "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
		    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		    "200 1.1 length=5\n Content-Length=5\nEND no body\n"
		    "200 1.1 length=2\n Content-Length=2\n> hi\nEND length\n-- idle\n");
	RESPONSE_TO("HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
		    "200 1.1 coded chunked\n Transfer-Encoding=chunked\nEND no body\n-- idle\n");
	RESPONSE_TO("HEAD", "HTTP/1.1 200 OK\r\n\r\n", "200 1.1\nEND no body\n-- idle\n");
	RESPONSE_TO("head", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		    "200 1.1 length=2\n Content-Length=2\n> hi\nEND length\n-- idle\n");
}

static void rule_1_no_body_after_1xx_204_304_whatever_the_fields_say(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 102 Processing\r\nContent-Length: 5\r\n\r\n"
		 "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"
		 "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n",
		 "102 1.1 length=5\n Content-Length=5\nEND no body\n"
		 "204 1.1 coded chunked\n Transfer-Encoding=chunked\nEND no body\n"
		 "304 1.1 length=9\n Content-Length=9\nEND no body\n-- idle\n");
}

static void rule_1_2xx_to_connect_is_a_tunnel_from_there_on(void **state)
{
	(void)state;
	RESPONSE_TO("CONNECT", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n\x16\x03\x01",
		    "200 1.1 length=5 close\n Content-Length=5\nTUNNEL\n");
	RESPONSE_TO("CONNECT", "HTTP/1.1 407 No\r\nContent-Length: 1\r\n\r\nx",
		    "407 1.1 length=1\n Content-Length=1\n> x\nEND length\n-- idle\n");
}

static void rule_2_transfer_encoding_wins_over_content_length_and_is_marked(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
		"1\r\na\r\n0\r\n\r\n",
		"POST / 1.1 length=3 coded chunked ambiguous\n Content-Length=3\n"
		" Transfer-Encoding=chunked\n> a\nEND chunked\n-- idle\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n"
		"0\r\n\r\n",
		"POST / 1.1 length=3 coded chunked ambiguous\n Transfer-Encoding=chunked\n"
		" Content-Length=3\nEND chunked\n-- idle\n");
	RESPONSE("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: gzip\r\n\r\nabc",
		 "200 1.1 length=1 coded ambiguous close\n Content-Length=1\n"
		 " Transfer-Encoding=gzip\n> abc\n-- END close\n");
}

static void rule_3_chunked_last_is_decoded_to_the_zero_chunk_and_its_trailer(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n"
		"5\r\nhello\r\n00A\r\n, world\r\n!\r\n0\r\nX: y\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=gzip, Chunked\n"
		"> hello, world\r\n!\nEND chunked\nGET / 1.1\nEND no body\n-- idle\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
		"0\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=gzip\n Transfer-Encoding=chunked\n"
		"END chunked\n-- idle\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nb\r\n0\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n> a\nEND chunked\n"
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n> b\nEND chunked\n-- idle\n");
	/* what llhttp alone does not take for chunked */
	RESPONSE("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip,\r\n chunked\t, ,\r\n\r\n0\r\n\r\n",
		 "200 1.1 coded chunked fold\n Transfer-Encoding=gzip, chunked\t, ,\n"
		 "END chunked\n-- idle\n");
}

static void rule_3_response_with_chunked_not_last_runs_to_close(void **state)
{
	static const struct {
		struct bytes message;
		const char *expected;
	} cases[] = {
#define CODED(coding)                                                                     \
	{BYTES("HTTP/1.1 200 OK\r\nTransfer-Encoding: " coding "\r\n\r\n0\r\n\r\n"),     \
	 "200 1.1 coded close\n Transfer-Encoding=" coding "\n> 0\r\n\r\n\n-- END close\n"}
		CODED("chunked, gzip"), CODED("xchunked"), CODED("chunkedx"), CODED("identity"),
		CODED("chunked;q=1"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_stream(&(struct stream){HTTP_RESPONSE, NULL, false, cases[i].message},
			     cases[i].expected);
}

static void rule_3_request_with_chunked_not_last_is_broken_after_its_head(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\nabc",
		"POST / 1.1 coded\n Transfer-Encoding=chunked, gzip\n"
		"BROKEN Transfer-Encoding without chunked last\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n",
		"POST / 1.1 coded\n Transfer-Encoding=chunked\n Transfer-Encoding=gzip\n"
		"BROKEN Transfer-Encoding without chunked last\n");
}

static void rule_4_bad_content_length_is_broken(void **state)
{
	static const char *const values[] = {"+5", "-5", "0x5", "5_0", "5 5", "", "5a", "five",
					     "18446744073709551616", "99999999999999999999999",
					     "4\r\n 2"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(values); i++) {
		char text[128];

		snprintf(text, sizeof(text), "POST / HTTP/1.1\r\nContent-Length: %s\r\n\r\n",
			 values[i]);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     "BROKEN bad or repeated Content-Length\n");
	}
}

/* The RFC lets it pass where all numbers are the same; llhttp refuses it. */
static void rule_4_content_length_list_of_one_number_is_broken(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\nhello",
		"BROKEN bad or repeated Content-Length\n");
	REQUEST("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
		"BROKEN bad or repeated Content-Length\n");
}

static void rule_5_content_length_is_that_many_octets_and_closing_earlier_is_incomplete(void **state)
{
	(void)state;
	REQUEST("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhelloGET",
		"POST /a 1.1 length=5\n Host=x\n Content-Length=5\n> hello\nEND length\n"
		"-- BROKEN ended inside a message\n");
	REQUEST("POST /a HTTP/1.1\r\nContent-Length: 5\r\n\r\nhell",
		"POST /a 1.1 length=5\n Content-Length=5\n> hell\n"
		"-- BROKEN ended inside a message\n");
	REQUEST("POST /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"POST /a 1.1 length=0\n Content-Length=0\nEND length\n-- idle\n");
	RESPONSE("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		 "200 1.1 length=5\n Content-Length=5\n> hell\n-- BROKEN ended inside a message\n");
}

static void rule_6_request_with_neither_has_no_body(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\n\r\nGET / HTTP/1.0\r\n\r\n",
		"POST / 1.1\nEND no body\nGET / 1.0 close\nEND no body\n-- idle\n");
}

static void rule_7_response_with_neither_runs_to_close(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
		 "200 1.1 close\n> HTTP/1.1 200 OK\r\n\r\n\n-- END close\n");
	RESPONSE("HTTP/1.1 200 OK\r\n\r\n", "200 1.1 close\n-- END close\n");
	RESPONSE("HTTP/1.1 200 OK\r\nA: b\r\n", "-- BROKEN ended inside a message\n");
	RESPONSE_RESET("HTTP/1.1 200 OK\r\n\r\nhello",
		       "200 1.1 close\n> hello\n-- BROKEN ended inside a message\n");
}

/* ---- the details around it ---- */

static void http_1_0_with_transfer_encoding_is_decoded_marked_and_does_not_persist(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
		"1\r\na\r\n0\r\n\r\n",
		"POST / 1.0 coded chunked ambiguous close\n Connection=keep-alive\n"
		" Transfer-Encoding=chunked\n> a\nEND chunked\n-- idle\n");
}

static void lengths_are_64_bit_and_digits_only(void **state)
{
	static const char *const sizes[] = {"+5", "-5", "0x5", "5_0", " 5", "5 ", "", "g", "5 ;a", ";a"};

	(void)state;
	REQUEST("POST / HTTP/1.1\r\nContent-Length: 18446744073709551615\r\n\r\na",
		"POST / 1.1 length=18446744073709551615\n Content-Length=18446744073709551615\n"
		"> a\n-- BROKEN ended inside a message\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\na",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n> a\n"
		"-- BROKEN ended inside a message\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000000\r\na",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n"
		"BROKEN chunk size over 64 bits\n");
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n%s\r\nhello\r\n",
			 sizes[i]);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     "POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n"
			     "BROKEN bad chunk size\n");
	}
}

static void chunk_extensions_are_ignored(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
		"5;a=1;b=\"x y;\" ; c\r\nhello\r\n0;last\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n> hello\nEND chunked\n-- idle\n");
}

static void chunk_data_must_be_followed_by_crlf(void **state)
{
	static const struct {
		struct bytes chunks;
		const char *expected;
	} cases[] = {
#define CHUNKS(text, expected)                                                            \
	{BYTES("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" text),            \
	 "POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n" expected}
		CHUNKS("2\r\nhixx0\r\n\r\n", "> hi\nBROKEN no CRLF after chunk data\n"),
		CHUNKS("2\r\nhix\n0\r\n\r\n", "> hi\nBROKEN no CRLF after chunk data\n"),
		CHUNKS("2\r\nhi\n0\r\n\r\n", "> hi\nBROKEN no CRLF after chunk data\n"),
		CHUNKS("2\r\nhi\rx0\r\n\r\n", "> hi\nBROKEN no CRLF after chunk data\n"),
		CHUNKS("2\nhi\r\n0\r\n\r\n", "BROKEN bare LF in chunk framing\n"),
		CHUNKS("2;a\nhi\r\n0\r\n\r\n", "BROKEN bare LF in chunk framing\n"),
		CHUNKS("2\rxhi\r\n0\r\n\r\n", "BROKEN bare CR in chunk framing\n"),
		CHUNKS("0\r\n\n", "BROKEN bare LF in chunk framing\n"),
		CHUNKS("0\r\n\rx", "BROKEN bare CR in chunk framing\n"),
		CHUNKS("0\r\nA: b\n\r\n", "BROKEN bare LF in chunk framing\n"),
		CHUNKS("0\r\nA: b\rc\r\n\r\n", "BROKEN bare CR in chunk framing\n"),
		/* the last CRLF left out: the next request must not pass for a trailer */
		CHUNKS("0\r\nPOST /b HTTP/1.1\r\nHost: x\r\n\r\n", "BROKEN bad trailer\n"),
		CHUNKS("0\r\n A: b\r\n\r\n", "BROKEN bad trailer\n"),
		CHUNKS("0\r\n: b\r\n\r\n", "BROKEN bad trailer\n"),
		CHUNKS("0\r\nA\r\n\r\n", "BROKEN bad trailer\n"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, cases[i].chunks},
			     cases[i].expected);
}

static void trailers_are_kept_apart_from_the_fields(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
		"1\r\na\r\n0\r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\n"
		"Idempotency-Key: k\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\n> a\nEND chunked\n"
		"GET / 1.1\nEND no body\n-- idle\n");
}

static void bare_lf_ends_a_line_of_a_head(void **state)
{
	(void)state;
	REQUEST("POST / HTTP/1.1\nHost: x\nEmpty:\nContent-Length: 2\nConnection: close\n\nhi",
		"POST / 1.1 length=2 close\n Host=x\n Empty=\n Content-Length=2\n"
		" Connection=close\n> hi\nEND length\n-- idle\n");
	REQUEST("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\n\r\n0\r\n\r\n",
		"POST / 1.1 coded chunked\n Transfer-Encoding=chunked\nEND chunked\n-- idle\n");
	RESPONSE("HTTP/1.1 200 OK\nA: b\n\nhi", "200 1.1 close\n A=b\n> hi\n-- END close\n");
}

static void bare_cr_is_broken(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\nA: b\rc\r\n\r\n", "BROKEN bare CR\n");
	REQUEST("GET / HTTP/1.1\r\nA: b\r\rc\r\n\r\n", "BROKEN bare CR\n");
	REQUEST("GET / HTTP/1.1\r\nA:\rc\r\n\r\n", "BROKEN bare CR\n");
	REQUEST("GET / HTTP/1.1\r\nA: b\r\n\rGET / HTTP/1.1\r\n\r\n", "BROKEN bare CR\n");
	RESPONSE("HTTP/1.1 200 OK\rA: b\r\n\r\n", "BROKEN bare CR\n");
}

static void empty_lines_before_a_message_are_skipped(void **state)
{
	(void)state;
	REQUEST("\r\n\n\r\nPOST / HTTP/1.1\r\nContent-Length: 1\r\n\r\na\r\nGET / HTTP/1.1\r\n\r\n\r\n",
		"POST / 1.1 length=1\n Content-Length=1\n> a\nEND length\n"
		"GET / 1.1\nEND no body\n-- idle\n");
	RESPONSE("HTTP/1.1 204 N\r\nConnection: close\r\n\r\n\r\n",
		 "204 1.1 close\n Connection=close\nEND no body\n-- idle\n");
}

static void space_before_the_colon_is_broken(void **state)
{
	static const char *const lines[] = {"Host : x", "Host\t: x", "Content-Length : 5",
					    "Content-Length\t: 5", "Transfer-Encoding : chunked",
					    "no colon", "nocolon", ": no name", "a b: c", "a(b: c"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		char text[128];

		snprintf(text, sizeof(text), "GET / HTTP/1.1\r\nA: b\r\n%s\r\n\r\n", lines[i]);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     "BROKEN bad field\n");
		snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\nA: b\r\n%s\r\n\r\n", lines[i]);
		check_stream(&(struct stream){HTTP_RESPONSE, NULL, false, bytes_of_string(text)},
			     "BROKEN bad field\n");
	}
}

static void whitespace_led_line_after_the_start_line_is_broken(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\n Host: x\r\n\r\n", "BROKEN bad field\n");
	REQUEST("GET / HTTP/1.1\r\n\tHost: x\r\n\r\n", "BROKEN bad field\n");
	REQUEST("GET / HTTP/1.1\r\nA: b\r\n\r\nGET / HTTP/1.1\r\n Host: x\r\n\r\n",
		"GET / 1.1\n A=b\nEND no body\nBROKEN bad field\n");
	RESPONSE("HTTP/1.1 200 OK\r\n Host: x\r\n\r\n", "BROKEN bad field\n");
}

static void obs_fold_is_unfolded_to_one_space_and_marked(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\nA: b \r\n \t c\t\r\n\td\r\nB:\r\n e\r\nC: f\r\n \r\nD:\r\n \r\n\r\n",
		"GET / 1.1 fold\n A=b c d\n B=e\n C=f\n D=\nEND no body\n-- idle\n");
	REQUEST("GET / HTTP/1.1\r\nA: b\n c\r\n\r\n",
		"GET / 1.1 fold\n A=b c\nEND no body\n-- idle\n");
	REQUEST("POST / HTTP/1.1\r\nContent-Length:\r\n 2\r\nConnection: x,\r\n close\r\n\r\nhi",
		"POST / 1.1 length=2 fold close\n Content-Length=2\n Connection=x, close\n"
		"> hi\nEND length\n-- idle\n");
	REQUEST("GET / HTTP/1.1\r\nA: b\r\n\r\n", "GET / 1.1\n A=b\nEND no body\n-- idle\n");
}

static void any_number_of_1xx_comes_before_the_final_response(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n"
		 "HTTP/1.1 103 Early Hints\r\nLink: b\r\n\r\n"
		 "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		 "100 1.1\nEND no body\n103 1.1\n Link=a\nEND no body\n103 1.1\n Link=b\n"
		 "END no body\n200 1.1 length=2\n Content-Length=2\n> hi\nEND length\n-- idle\n");
	RESPONSE_TO("HEAD",
		    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
		    "100 1.1\nEND no body\n200 1.1 length=2\n Content-Length=2\nEND no body\n"
		    "-- idle\n");
	RESPONSE_TO("CONNECT", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 OK\r\n\r\nx",
		    "100 1.1\nEND no body\n204 1.1 close\nTUNNEL\n");
}

static void status_101_stops_http(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n"
		 "Connection: Upgrade\r\n\r\n\x81\x01x",
		 "101 1.1 close\n Upgrade=websocket\n Connection=Upgrade\nTUNNEL\n");
}

static void pipelined_requests_come_out_one_by_one(void **state)
{
	static const char one[] = "POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct buffer all = {0};
	size_t heads = 0, ends = 0, body = 0;
	struct http_part part;
	struct bytes input;
	enum http_step step;

	(void)state;
	for (int i = 0; i < 1000; i++)
		assert_int_equal(buffer_append(&all, BYTES(one)), 0);
	input = at_guard(buffer_bytes(&all));
	while ((step = http_next(reader, &input, &part)) != HTTP_NEED_MORE) {
		assert_true(step == HTTP_HEAD || step == HTTP_BODY || step == HTTP_END);
		heads += step == HTTP_HEAD;
		body += part.body.size;
		ends += step == HTTP_END;
		if (step == HTTP_HEAD)
			assert_int_equal(part.head->field_count, 2);
		if (step == HTTP_END)
			assert_int_equal(part.ended, HTTP_ENDED_LENGTH);
	}
	assert_int_equal(heads, 1000);
	assert_int_equal(body, 3000);
	assert_int_equal(ends, 1000);
	assert_true(http_reader_idle(reader));
	buffer_done(&all);
	http_reader_free(reader);
}

static void expect_100_continue_is_marked_and_its_body_may_come_or_not(void **state)
{
	(void)state;
	REQUEST("PUT / HTTP/1.1\r\nExpect: 100-Continue\r\nContent-Length: 2\r\n\r\nhi",
		"PUT / 1.1 length=2 continue\n Expect=100-Continue\n Content-Length=2\n> hi\n"
		"END length\n-- idle\n");
	REQUEST("PUT / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n",
		"PUT / 1.1 length=2 continue\n Expect=100-continue\n Content-Length=2\n"
		"-- BROKEN ended inside a message\n");
	/* HTTP/1.0 has no such thing (RFC 9110 section 10.1.1) */
	REQUEST("PUT / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n",
		"PUT / 1.0 close\n Expect=100-continue\nEND no body\n-- idle\n");
	REQUEST("PUT / HTTP/1.1\r\nExpect: other\r\n\r\n",
		"PUT / 1.1\n Expect=other\nEND no body\n-- idle\n");
}

static void half_close_after_a_request_is_no_error(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\n\r\n", "GET / 1.1\nEND no body\n-- idle\n");
	REQUEST("", "-- idle\n");
	REQUEST("\r\n", "-- idle\n");
	REQUEST("G", "-- BROKEN ended inside a message\n");
	REQUEST("GET / HTTP/1.1\r\n", "-- BROKEN ended inside a message\n");
}

static void method_of_each_open_request_frames_its_response(void **state)
{
	struct bytes input = BYTES("HTTP/1.1 200 A\r\nContent-Length: 3\r\n\r\n"
				   "HTTP/1.1 200 B\r\nContent-Length: 3\r\n\r\nabc"
				   "HTTP/1.1 200 C\r\nContent-Length: 3\r\n\r\n");
	static const char *const methods[] = {"HEAD", "GET", "HEAD"};
	struct http_reader *reader = http_reader_new(HTTP_RESPONSE);
	struct http_part part;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		http_reader_expect(reader, bytes_of_string(methods[i]));
		assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
		if (i == 1) {
			assert_int_equal(http_next(reader, &input, &part), HTTP_BODY);
			assert_int_equal(part.body.size, 3);
		}
		assert_int_equal(http_next(reader, &input, &part), HTTP_END);
		assert_int_equal(part.ended, i == 1 ? HTTP_ENDED_LENGTH : HTTP_ENDED_NO_BODY);
	}
	assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	http_reader_free(reader);
}

static void connect_request_has_no_body_and_is_no_tunnel_yet(void **state)
{
	(void)state;
	REQUEST("CONNECT h:443 HTTP/1.1\r\nContent-Length: 3\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"CONNECT h:443 1.1 length=3\n Content-Length=3\nEND no body\n"
		"GET / 1.1\nEND no body\n-- idle\n");
}

static void upgrade_in_a_request_does_not_stop_it(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
		"POST / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 2\r\n\r\nhi"
		"POST / HTTP/1.1\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n"
		"Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nGET /2 HTTP/1.1\r\n\r\n",
		"GET / 1.1\n Upgrade=websocket\n Connection=Upgrade\nEND no body\n"
		"POST / 1.1 length=2\n Upgrade=h2c\n Connection=Upgrade\n Content-Length=2\n"
		"> hi\nEND length\n"
		"POST / 1.1 coded chunked\n Upgrade=h2c\n Connection=Upgrade\n"
		" Transfer-Encoding=chunked\n> a\nEND chunked\nGET /2 1.1\nEND no body\n-- idle\n");
}

static void targets_are_kept_as_sent(void **state)
{
	static const char *const targets[] = {"/", "*", "h:443", "http://u:p@h:80/x?y#z",
					      "http://[::1]:8080/", "/\xc3\xa9?q=\xff", "//x",
					      "?x", "foo+bar://a", "path", "/%00%zz\"<>\\^`{|}"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(targets); i++) {
		char text[128], expected[128];

		snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\n\r\n", targets[i]);
		snprintf(expected, sizeof(expected), "GET %s 1.1\nEND no body\n-- idle\n",
			 targets[i]);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     expected);
	}
	REQUEST("GET   /a   HTTP/1.1\r\n\r\nGET   /b   HTTP/1.1\r\n\r\n",
		"GET /a 1.1\nEND no body\nGET /b 1.1\nEND no body\n-- idle\n");
	REQUEST("GET /a b HTTP/1.1\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET /a\tb HTTP/1.1\r\n\r\n", "BROKEN bad target\n");
	REQUEST("GET /a\x7f HTTP/1.1\r\n\r\n", "BROKEN bad target\n");
	REQUEST("GET /a\0b HTTP/1.1\r\n\r\n", "BROKEN bad target\n");
}

static void persistence_follows_version_and_connection(void **state)
{
	static const struct {
		const char *version, *connection;
		bool keep_alive;
	} cases[] = {
		{"1.1", "x", true},	    {"1.1", "close", false}, {"1.1", "Keep-Alive", true},
		{"1.1", "a,  CLOSE", false}, {"1.1", "closed", true}, {"1.0", "x", false},
		{"1.0", "keep-alive", true}, {"1.0", "keep-alive, close", false},
		{"1.2", "x", true},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[128], expected[128];

		snprintf(text, sizeof(text), "GET / HTTP/%s\r\nConnection: %s\r\n\r\n",
			 cases[i].version, cases[i].connection);
		snprintf(expected, sizeof(expected), "GET / %s%s\n Connection=%s\nEND no body\n-- idle\n",
			 cases[i].version, cases[i].keep_alive ? "" : " close",
			 cases[i].connection);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     expected);
	}
}

static void bytes_after_a_response_that_closes_are_broken(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi"
		 "HTTP/1.1 200 OK\r\n\r\n",
		 "200 1.1 length=2 close\n Connection=close\n Content-Length=2\n> hi\nEND length\n"
		 "BROKEN data after close\n");
	RESPONSE("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhiX",
		 "200 1.0 length=2 close\n Content-Length=2\n> hi\nEND length\n"
		 "BROKEN data after close\n");
	RESPONSE("HTTP/1.1 100 C\r\nConnection: close\r\n\r\nHTTP/1.1 204 N\r\n\r\n",
		 "100 1.1 close\n Connection=close\nEND no body\n204 1.1\nEND no body\n-- idle\n");
	/* a server may well go on after a client's "close" */
	REQUEST("GET / HTTP/1.1\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"GET / 1.1 close\n Connection=close\nEND no body\nGET / 1.1\nEND no body\n-- idle\n");
}

static void other_protocols_are_broken(void **state)
{
	(void)state;
	REQUEST("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("\x16\x03\x01\x02", "BROKEN bad method\n");
	REQUEST("GET /\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET / HTTP/0.9\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET / HTTP/2.0\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET / HTTP/3.1\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET / http/1.1\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("GET rtsp://h/ RTSP/1.0\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST("SOURCE / ICE/1.0\r\n\r\n", "BROKEN not HTTP/1.x\n");
	REQUEST(" GET / HTTP/1.1\r\n\r\n", "BROKEN bad method\n");
	REQUEST("GE(T / HTTP/1.1\r\n\r\n", "BROKEN bad method\n");
	REQUEST("GET\t/ HTTP/1.1\r\n\r\n", "BROKEN bad method\n");
	RESPONSE("HTTP/2.0 200 OK\r\n\r\n", "BROKEN not HTTP/1.x\n");
	RESPONSE("HTTP/0.9 200 OK\r\n\r\n", "BROKEN not HTTP/1.x\n");
	RESPONSE("ICY 200 OK\r\n\r\n", "BROKEN not HTTP/1.x\n");
	RESPONSE("<html>", "BROKEN not HTTP/1.x\n");
	RESPONSE("HTTP/1.1 99 Low\r\n\r\n", "BROKEN bad status\n");
	RESPONSE("HTTP/1.1 2000 High\r\n\r\n", "BROKEN bad status\n");
	RESPONSE("HTTP/1.1 abc Text\r\n\r\n", "BROKEN bad status\n");
}

/* ---- more about heads ---- */

static void unknown_methods_are_kept_as_sent(void **state)
{
	static const char *const methods[] = {"QUERY", "G", "M-SEARCH", "get", "PURGE", "PRI",
					      "SOURCE", "PUTX", "CONNECTED", "UPDATEREDIRECTREF",
					      "!#$%&'*+-.^_`|~09az"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
		char text[128], expected[128];

		snprintf(text, sizeof(text), "%s /a HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi",
			 methods[i]);
		snprintf(expected, sizeof(expected),
			 "%s /a 1.1 length=2\n Content-Length=2\n> hi\nEND length\n-- idle\n",
			 methods[i]);
		check_stream(&(struct stream){HTTP_REQUEST, NULL, false, bytes_of_string(text)},
			     expected);
	}
}

static void status_lines_need_no_reason(void **state)
{
	(void)state;
	RESPONSE("HTTP/1.1 204\r\n\r\nHTTP/1.1 204 \r\n\r\nHTTP/1.1 204 A \xff b\r\n\r\n",
		 "204 1.1\nEND no body\n204 1.1\nEND no body\n204 1.1\nEND no body\n-- idle\n");
	RESPONSE("HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n",
		 "999 1.1 length=0\n Content-Length=0\nEND length\n-- idle\n");
}

static void values_are_trimmed_and_otherwise_as_sent(void **state)
{
	(void)state;
	REQUEST("GET / HTTP/1.1\r\nA: \t b  c \t\r\nB:x\r\nC:\r\nD:   \r\nE: \x01\xff\x7f\r\na: 2\r\n\r\n",
		"GET / 1.1\n A=b  c\n B=x\n C=\n D=\n E=\x01\xff\x7f\n a=2\nEND no body\n-- idle\n");
}

/* An HTTP request of that many text bytes (method, target, names, values), fed in slices. */
static const struct http_head *read_whole(struct http_reader *reader, struct bytes input, size_t slice,
					  struct http_part *part)
{
	enum http_step step = HTTP_NEED_MORE;

	while (step == HTTP_NEED_MORE && input.size) {
		struct bytes piece = bytes_take(&input, slice);

		step = http_next(reader, &piece, part);
	}
	assert_int_equal(step, HTTP_HEAD);
	return part->head;
}

static void add_field(struct buffer *head, size_t name_size, size_t value_size)
{
	for (size_t i = 0; i < name_size; i++)
		assert_int_equal(buffer_append_byte(head, 'n'), 0);
	assert_int_equal(buffer_append(head, BYTES(": ")), 0);
	for (size_t i = 0; i < value_size; i++)
		assert_int_equal(buffer_append_byte(head, 'v'), 0);
	assert_int_equal(buffer_append(head, BYTES("\r\n")), 0);
}

static void head_text_is_kept_up_to_its_limit_exactly(void **state)
{
	static const size_t slices[] = {1, 7, 4096, 1 << 20};

	(void)state;
	for (size_t over = 0; over < 2; over++) {
		struct buffer head = {0};

		/* GET / a b: 6 bytes of text, then one long field, then Content-Length */
		buffer_append(&head, BYTES("GET / HTTP/1.1\r\na: b\r\n"));
		add_field(&head, 10, LIMIT_HEAD_BYTES - 16 + over);
		buffer_append(&head, BYTES("Content-Length: 2\r\n\r\n"));
		for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
			struct http_reader *reader = http_reader_new(HTTP_REQUEST);
			struct http_part part;
			const struct http_head *h = read_whole(reader, buffer_bytes(&head),
							       slices[i], &part);

			assert_true(h->cut);
			assert_int_equal(h->field_count, over ? 1 : 2);
			assert_true(bytes_equal(h->fields[0].value, BYTES("b")));
			if (!over)
				assert_int_equal(h->fields[1].value.size, LIMIT_HEAD_BYTES - 16);
			assert_int_equal(h->fields_dropped, 0);
			/* framing is read all the same */
			assert_true(h->has_content_length);
			assert_int_equal(h->content_length, 2);
			http_reader_free(reader);
		}
		buffer_done(&head);
	}
}

static void target_over_the_limit_is_cut_at_one_place(void **state)
{
	static const size_t slices[] = {1, 1000, 1 << 20};
	struct buffer head = {0};

	(void)state;
	buffer_append(&head, BYTES("GET /"));
	for (size_t i = 0; i < LIMIT_HEAD_BYTES; i++)
		buffer_append_byte(&head, 'x');
	buffer_append(&head, BYTES(" HTTP/1.1\r\nA: b\r\n\r\n"));
	for (size_t i = 0; i < ARRAY_SIZE(slices); i++) {
		struct http_reader *reader = http_reader_new(HTTP_REQUEST);
		struct http_part part;
		const struct http_head *h = read_whole(reader, buffer_bytes(&head), slices[i], &part);

		assert_true(h->cut);
		assert_int_equal(h->target.size, LIMIT_HEAD_BYTES - 3);
		assert_int_equal(h->field_count, 0);
		http_reader_free(reader);
	}
	buffer_done(&head);
}

static void method_over_the_limit_is_broken(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct http_part part;
	size_t taken = 0;

	(void)state;
	for (;;) {
		struct bytes input = BYTES("A");

		if (http_next(reader, &input, &part) == HTTP_BROKEN)
			break;
		taken++;
	}
	assert_int_equal(taken, LIMIT_HEAD_BYTES);
	assert_string_equal(part.reason, "bad method");
	http_reader_free(reader);
}

static void fields_are_kept_up_to_their_limit_exactly(void **state)
{
	(void)state;
	for (size_t over = 0; over < 3; over++) {
		struct http_reader *reader = http_reader_new(HTTP_RESPONSE);
		struct buffer head = {0};
		struct http_part part;
		const struct http_head *h;

		buffer_append(&head, BYTES("HTTP/1.1 200 OK\r\n"));
		for (size_t i = 1; i < LIMIT_HEAD_FIELDS + over; i++)
			add_field(&head, 1, i % 3);
		buffer_append(&head, BYTES("Content-Length: 7\r\n\r\n"));
		h = read_whole(reader, buffer_bytes(&head), 11, &part);
		assert_int_equal(h->field_count, LIMIT_HEAD_FIELDS);
		assert_int_equal(h->fields_dropped, over);
		assert_int_equal(h->fields[100].value.size, 101 % 3);
		assert_false(h->cut);
		assert_int_equal(h->content_length, 7);
		buffer_done(&head);
		http_reader_free(reader);
	}
}

/* A dropped "Transfer-Encoding: gzip" may hide what frames the body. */
static void dropped_fields_with_a_transfer_coding_are_broken(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_RESPONSE);
	struct buffer head = {0};
	struct http_part part;
	struct bytes nothing = {0};

	(void)state;
	buffer_append(&head, BYTES("HTTP/1.1 200 OK\r\n"));
	for (size_t i = 0; i < LIMIT_HEAD_FIELDS; i++)
		add_field(&head, 1, 1);
	buffer_append(&head, BYTES("Transfer-Encoding: gzip,\r\n chunked\r\n\r\n"));
	read_whole(reader, buffer_bytes(&head), 1 << 20, &part);
	assert_int_equal(http_next(reader, &nothing, &part), HTTP_BROKEN);
	assert_string_equal(part.reason, "Transfer-Encoding without chunked last");
	buffer_done(&head);
	http_reader_free(reader);
}

static void a_head_stays_until_the_next_message_and_limits_start_afresh(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct buffer head = {0};
	struct http_part part;
	struct bytes input;
	const struct http_head *h;

	(void)state;
	buffer_append(&head, BYTES("GET /first HTTP/1.1\r\n"));
	for (size_t i = 0; i < LIMIT_HEAD_FIELDS + 1; i++)
		add_field(&head, 1, 300);
	buffer_append(&head, BYTES("\r\n"));
	input = buffer_bytes(&head);
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	h = part.head;
	assert_int_equal(http_next(reader, &input, &part), HTTP_END);
	input = BYTES("\r\n");
	assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	assert_true(h->cut);
	assert_true(bytes_equal(h->target, BYTES("/first")));
	input = BYTES("GET /second HTTP/1.1\r\nA: b\r\n\r\n");
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	assert_false(part.head->cut);
	assert_int_equal(part.head->field_count, 1);
	assert_int_equal(part.head->fields_dropped, 0);
	buffer_done(&head);
	http_reader_free(reader);
}

static void fields_are_found_without_case(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct bytes input = BYTES("GET / HTTP/1.1\r\nA: 1\r\nB: 2\r\na: 3\r\n\r\n");
	struct http_part part;
	const struct http_field *field;

	(void)state;
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	field = http_head_find(part.head, BYTES("a"));
	assert_non_null(field);
	assert_true(bytes_equal(field->value, BYTES("1")));
	assert_int_equal(http_head_count(part.head, BYTES("a")), 2);
	assert_int_equal(http_head_count(part.head, BYTES("b")), 1);
	assert_int_equal(http_head_count(part.head, BYTES("c")), 0);
	assert_null(http_head_find(part.head, BYTES("c")));
	http_reader_free(reader);
}

/* ---- bounds ---- */

static size_t heap_bytes(void)
{
	return mallinfo2().uordblks;
}

static void a_million_fields_byte_by_byte_take_bounded_memory(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct bytes input = BYTES("GET / HTTP/1.1\r\n");
	size_t before = heap_bytes();
	struct http_part part;

	(void)state;
	assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	for (int i = 0; i < 1000000; i++) {
		struct bytes field = BYTES("a:b\n");

		while (field.size) {
			input = bytes_take(&field, 1);
			assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
		}
	}
	assert_true(heap_bytes() <= before + 2 * LIMIT_HEAD_BYTES);
	input = BYTES("\r\n");
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	assert_int_equal(part.head->field_count, LIMIT_HEAD_FIELDS);
	assert_int_equal(part.head->fields_dropped, 1000000 - LIMIT_HEAD_FIELDS);
	http_reader_free(reader);
}

static void sixty_four_mebibytes_in_one_value_take_bounded_memory(void **state)
{
	static const uint8_t piece[1 << 20] = {[0 ... (1 << 20) - 1] = 'x'};
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct bytes input = BYTES("GET / HTTP/1.1\r\nA: ");
	size_t before = heap_bytes();
	struct http_part part;

	(void)state;
	assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	for (int i = 0; i < 64; i++) {
		input = (struct bytes){piece, sizeof(piece)};
		assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	}
	assert_true(heap_bytes() <= before + 2 * LIMIT_HEAD_BYTES);
	input = BYTES("\r\nB: c\r\n\r\n");
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	assert_int_equal(part.head->field_count, 0);
	assert_true(part.head->cut);
	http_reader_free(reader);
}

/* Digits or an extension without end: broken at the limit, however it comes. */
static void an_endless_chunk_size_line_is_broken_at_the_limit(void **state)
{
	static const char *const starts[] = {"0", "5;"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(starts); i++) {
		struct http_reader *reader = http_reader_new(HTTP_REQUEST);
		struct bytes input = BYTES("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
		size_t taken = strlen(starts[i]);
		struct http_part part;

		assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
		input = bytes_of_string(starts[i]);
		assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
		for (;;) {
			input = BYTES("0");
			if (http_next(reader, &input, &part) == HTTP_BROKEN)
				break;
			taken++;
		}
		assert_int_equal(taken, LIMIT_HEAD_BYTES);
		assert_string_equal(part.reason, "chunk size line too long");
		http_reader_free(reader);
	}
}

static void the_limit_of_a_chunk_size_line_starts_afresh_with_each_chunk(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct bytes input = BYTES("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
	struct http_part part;

	(void)state;
	assert_int_equal(http_next(reader, &input, &part), HTTP_HEAD);
	for (int i = 0; i < LIMIT_HEAD_BYTES; i++) {
		input = BYTES("1\r\na\r\n");
		assert_int_equal(http_next(reader, &input, &part), HTTP_BODY);
		assert_int_equal(http_next(reader, &input, &part), HTTP_NEED_MORE);
	}
	http_reader_free(reader);
}

/* ---- holes and the end of a stream ---- */

static enum http_step next(struct http_reader *reader, const char *text, struct http_part *part)
{
	struct bytes input = bytes_of_string(text);

	return http_next(reader, &input, part);
}

static void a_hole_inside_a_body_of_known_length_leaves_framing_whole(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct http_part part;

	(void)state;
	assert_true(http_skip(reader, 0));
	assert_int_equal(next(reader, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n", &part),
			 HTTP_HEAD);
	assert_true(http_skip(reader, 3));
	assert_int_equal(next(reader, "abc", &part), HTTP_BODY);
	assert_int_equal(part.body.size, 3);
	assert_true(http_skip(reader, 4));
	assert_int_equal(next(reader, "", &part), HTTP_END);
	assert_int_equal(part.ended, HTTP_ENDED_LENGTH);
	assert_int_equal(next(reader, "GET / HTTP/1.1\r\n\r\n", &part), HTTP_HEAD);
	http_reader_free(reader);
}

static void a_hole_in_a_body_that_runs_to_close_leaves_it_running(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_RESPONSE);
	struct http_part part;

	(void)state;
	assert_int_equal(next(reader, "HTTP/1.1 200 OK\r\n\r\n", &part), HTTP_HEAD);
	assert_true(http_skip(reader, UINT64_MAX));
	assert_int_equal(next(reader, "abc", &part), HTTP_BODY);
	assert_int_equal(http_finish(reader, true, &part), HTTP_END);
	assert_int_equal(part.ended, HTTP_ENDED_CLOSE);
	http_reader_free(reader);
}

static void a_hole_anywhere_else_breaks_the_stream(void **state)
{
	static const char *const before[] = {
		"", "G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabc",
		"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\nabcd",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nab",
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(before); i++) {
		struct http_reader *reader = http_reader_new(HTTP_REQUEST);
		struct bytes input = bytes_of_string(before[i]);
		struct http_part part;

		while (http_next(reader, &input, &part) != HTTP_NEED_MORE)
			;
		assert_false(http_skip(reader, 5));
		assert_int_equal(next(reader, "abcde", &part), HTTP_BROKEN);
		assert_string_equal(part.reason, "bytes missing");
		http_reader_free(reader);
	}
}

static void idle_and_in_head_tell_where_a_stream_stands(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct http_part part;

	(void)state;
	assert_true(http_reader_idle(reader));
	assert_false(http_reader_in_head(reader));
	assert_int_equal(next(reader, "\r\n", &part), HTTP_NEED_MORE);
	assert_true(http_reader_idle(reader));
	assert_int_equal(next(reader, "P", &part), HTTP_NEED_MORE);
	assert_false(http_reader_idle(reader));
	assert_true(http_reader_in_head(reader));
	assert_int_equal(next(reader, "OST / HTTP/1.1\r\nContent-Length: 1\r\n", &part), HTTP_NEED_MORE);
	assert_true(http_reader_in_head(reader));
	assert_int_equal(next(reader, "\r\n", &part), HTTP_HEAD);
	assert_false(http_reader_in_head(reader));
	assert_int_equal(next(reader, "", &part), HTTP_NEED_MORE);
	assert_false(http_reader_idle(reader));
	assert_int_equal(next(reader, "x", &part), HTTP_BODY);
	assert_false(http_reader_idle(reader));
	assert_int_equal(next(reader, "", &part), HTTP_END);
	assert_true(http_reader_idle(reader));
	http_reader_free(reader);
}

static void broken_and_tunnel_stay_so(void **state)
{
	struct http_reader *reader = http_reader_new(HTTP_REQUEST);
	struct http_part part;

	(void)state;
	assert_int_equal(next(reader, "@", &part), HTTP_BROKEN);
	assert_int_equal(next(reader, "GET / HTTP/1.1\r\n\r\n", &part), HTTP_BROKEN);
	assert_string_equal(part.reason, "bad method");
	assert_int_equal(http_finish(reader, true, &part), HTTP_BROKEN);
	http_reader_free(reader);

	reader = http_reader_new(HTTP_RESPONSE);
	assert_int_equal(next(reader, "HTTP/1.1 101 S\r\n\r\n", &part), HTTP_HEAD);
	assert_int_equal(next(reader, "x", &part), HTTP_TUNNEL);
	assert_int_equal(next(reader, "HTTP/1.1 200 OK\r\n\r\n", &part), HTTP_TUNNEL);
	assert_int_equal(http_finish(reader, true, &part), HTTP_TUNNEL);
	http_reader_free(reader);
	http_reader_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rule_1_response_to_head_ends_at_the_blank_line),
		cmocka_unit_test(rule_1_no_body_after_1xx_204_304_whatever_the_fields_say),
		cmocka_unit_test(rule_1_2xx_to_connect_is_a_tunnel_from_there_on),
		cmocka_unit_test(rule_2_transfer_encoding_wins_over_content_length_and_is_marked),
		cmocka_unit_test(rule_3_chunked_last_is_decoded_to_the_zero_chunk_and_its_trailer),
		cmocka_unit_test(rule_3_response_with_chunked_not_last_runs_to_close),
		cmocka_unit_test(rule_3_request_with_chunked_not_last_is_broken_after_its_head),
		cmocka_unit_test(rule_4_bad_content_length_is_broken),
		cmocka_unit_test(rule_4_content_length_list_of_one_number_is_broken),
		cmocka_unit_test(rule_5_content_length_is_that_many_octets_and_closing_earlier_is_incomplete),
		cmocka_unit_test(rule_6_request_with_neither_has_no_body),
		cmocka_unit_test(rule_7_response_with_neither_runs_to_close),
		cmocka_unit_test(http_1_0_with_transfer_encoding_is_decoded_marked_and_does_not_persist),
		cmocka_unit_test(lengths_are_64_bit_and_digits_only),
		cmocka_unit_test(chunk_extensions_are_ignored),
		cmocka_unit_test(chunk_data_must_be_followed_by_crlf),
		cmocka_unit_test(trailers_are_kept_apart_from_the_fields),
		cmocka_unit_test(bare_lf_ends_a_line_of_a_head),
		cmocka_unit_test(bare_cr_is_broken),
		cmocka_unit_test(empty_lines_before_a_message_are_skipped),
		cmocka_unit_test(space_before_the_colon_is_broken),
		cmocka_unit_test(whitespace_led_line_after_the_start_line_is_broken),
		cmocka_unit_test(obs_fold_is_unfolded_to_one_space_and_marked),
		cmocka_unit_test(any_number_of_1xx_comes_before_the_final_response),
		cmocka_unit_test(status_101_stops_http),
		cmocka_unit_test(pipelined_requests_come_out_one_by_one),
		cmocka_unit_test(expect_100_continue_is_marked_and_its_body_may_come_or_not),
		cmocka_unit_test(half_close_after_a_request_is_no_error),
		cmocka_unit_test(method_of_each_open_request_frames_its_response),
		cmocka_unit_test(connect_request_has_no_body_and_is_no_tunnel_yet),
		cmocka_unit_test(upgrade_in_a_request_does_not_stop_it),
		cmocka_unit_test(targets_are_kept_as_sent),
		cmocka_unit_test(persistence_follows_version_and_connection),
		cmocka_unit_test(bytes_after_a_response_that_closes_are_broken),
		cmocka_unit_test(other_protocols_are_broken),
		cmocka_unit_test(unknown_methods_are_kept_as_sent),
		cmocka_unit_test(status_lines_need_no_reason),
		cmocka_unit_test(values_are_trimmed_and_otherwise_as_sent),
		cmocka_unit_test(head_text_is_kept_up_to_its_limit_exactly),
		cmocka_unit_test(target_over_the_limit_is_cut_at_one_place),
		cmocka_unit_test(method_over_the_limit_is_broken),
		cmocka_unit_test(fields_are_kept_up_to_their_limit_exactly),
		cmocka_unit_test(dropped_fields_with_a_transfer_coding_are_broken),
		cmocka_unit_test(a_head_stays_until_the_next_message_and_limits_start_afresh),
		cmocka_unit_test(fields_are_found_without_case),
		cmocka_unit_test(a_million_fields_byte_by_byte_take_bounded_memory),
		cmocka_unit_test(sixty_four_mebibytes_in_one_value_take_bounded_memory),
		cmocka_unit_test(an_endless_chunk_size_line_is_broken_at_the_limit),
		cmocka_unit_test(the_limit_of_a_chunk_size_line_starts_afresh_with_each_chunk),
		cmocka_unit_test(a_hole_inside_a_body_of_known_length_leaves_framing_whole),
		cmocka_unit_test(a_hole_in_a_body_that_runs_to_close_leaves_it_running),
		cmocka_unit_test(a_hole_anywhere_else_breaks_the_stream),
		cmocka_unit_test(idle_and_in_head_tell_where_a_stream_stands),
		cmocka_unit_test(broken_and_tunnel_stay_so),
	};

	return cmocka_run_group_tests(tests, map_guard, unmap_guard);
}
