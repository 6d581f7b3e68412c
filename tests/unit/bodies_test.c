/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whole requests with every kind of body, through the whole pipeline: which
 * spellings are the same call, which are not, and what the ledger says of a
 * body that could not be made comparable.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "coded_build.h"
#include "scene.h"

#define ANSWER "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
#define PLAIN BYTES(CODED_JSON)
/* printf '%s' '{"amount":1900,"currency":"eur"}' | sha256sum */
#define PLAIN_CANONICAL "{\"amount\":1900,\"currency\":\"eur\"}"

static struct scene scene;

static int start(void **state)
{
	(void)state;
	scene_start(&scene);
	scene.options.judge.allow_incomplete = true;
	scene_open(&scene);
	return 0;
}

static int done(void **state)
{
	(void)state;
	scene_done(&scene);
	return 0;
}

/* One POST on a connection of its own, answered. headers end in CRLF. */
static void post(const char *headers, struct bytes body)
{
	uint32_t c = scene_connect(&scene, 4711);
	char head[512];

	snprintf(head, sizeof(head), "POST /v1/charges HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n%sContent-Length: %zu\r\n\r\n",
		 headers, body.size);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, head);
	if (body.size)
		scene_send_bytes(&scene, c, WIRE_BUILD_CLIENT, body);
	scene_wait(&scene, 5);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	scene_wait(&scene, 20);
}

static void post_buffer(const char *headers, struct buffer body)
{
	post(headers, buffer_bytes(&body));
	buffer_done(&body);
}

#define JSON "Content-Type: application/json\r\n"
#define CODED(coding) JSON "Content-Encoding: " coding "\r\n"

static const char *said(size_t line, const char *name)
{
	return scene_field(json_object_array_get_idx(scene.ledger, line), name);
}

static void assert_text(const char *found, const char *expected)
{
	if (!expected) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_string_equal(found, expected);
}

/* Every line is one and the same call, and its canonical form is that. */
static void all_are_the_same(size_t count, const char *canon)
{
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), count);
	for (size_t i = 0; i < count; i++) {
		assert_text(said(i, "canon"), canon);
		assert_text(said(i, "canon_why"), NULL);
		assert_text(said(i, "fingerprint"), said(0, "fingerprint"));
		assert_text(said(i, "sha"), said(0, "sha"));
	}
	assert_int_equal(scene_count(&scene, "finding"), count - 1);
	if (count > 1)
		assert_text(scene_field(scene_event(&scene, "finding", 0), "finding"), "dup_after_success");
}

static void no_two_are_the_same(size_t count)
{
	scene_finish(&scene, 0);
	assert_int_equal(json_object_array_length(scene.ledger), count);
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(said(i, "fingerprint"), said(j, "fingerprint"));
	assert_int_equal(scene_count(&scene, "finding"), 0);
}

static void sha_text(struct bytes bytes, char text[65])
{
	struct digest digest;

	assert_int_equal(digest_of(bytes, &digest), 0);
	hex_of(digest.byte, DIGEST_BYTES, text);
}

/* The line says raw, why, and keeps the hash of what was sent. */
static void is_raw(size_t line, const char *why, struct bytes sent)
{
	char sha[65], length[24];

	sha_text(sent, sha);
	snprintf(length, sizeof(length), "%zu", sent.size);
	assert_text(said(line, "canon"), "raw");
	assert_text(said(line, "canon_why"), why);
	assert_text(said(line, "sha"), sha);
	assert_text(said(line, "sha_raw"), sha);
	assert_text(said(line, "len"), length);
}

/* ---- content codings ---- */

static void every_coding_of_one_json_is_the_same_call(void **state)
{
	struct buffer zstd = coded_zstd(PLAIN, 0);

	(void)state;
	post(JSON, PLAIN);
	post_buffer(CODED("gzip"), coded_gzip(PLAIN, 1));
	post_buffer(CODED("x-gzip"), coded_gzip(PLAIN, 1));
	post_buffer(CODED("deflate"), coded_zlib(PLAIN));
	post_buffer(CODED("deflate"), coded_raw_deflate(PLAIN));
	post(CODED("br"), CODED_BYTES(coded_br_json));
	post(CODED("zstd"), buffer_bytes(&zstd));
	post_buffer(CODED("zstd, gzip"), coded_gzip(buffer_bytes(&zstd), 1));
	post_buffer(CODED("zstd\r\nContent-Encoding: gzip"), coded_gzip(buffer_bytes(&zstd), 1));
	post(CODED("identity"), PLAIN);
	post_buffer(CODED("aws-chunked"), coded_aws_chunked(PLAIN, 10, 'a', ""));
	buffer_done(&zstd);
	all_are_the_same(11, "json");
}

static void the_ledger_keeps_the_length_and_hash_of_what_was_sent(void **state)
{
	struct buffer gzip = coded_gzip(PLAIN, 1);
	char raw[65], canonical[65], length[24];

	(void)state;
	post(CODED("gzip"), buffer_bytes(&gzip));
	all_are_the_same(1, "json");
	sha_text(buffer_bytes(&gzip), raw);
	sha_text(BYTES(PLAIN_CANONICAL), canonical);
	snprintf(length, sizeof(length), "%zu", gzip.size);
	assert_text(said(0, "sha_raw"), raw);
	assert_text(said(0, "sha"), canonical);
	assert_text(said(0, "len"), length);
	buffer_done(&gzip);
}

static void two_gzips_with_another_time_in_them_are_the_same_call(void **state)
{
	struct buffer one = coded_gzip(PLAIN, 1790000000), other = coded_gzip(PLAIN, 1790000001);

	(void)state;
	assert_memory_not_equal(one.data, other.data, one.size);
	post_buffer(CODED("gzip"), one);
	post_buffer(CODED("gzip"), other);
	all_are_the_same(2, "json");
}

static void two_gzips_of_a_text_are_the_same_call(void **state)
{
	const char *headers = "Content-Type: text/plain\r\nContent-Encoding: gzip\r\n";

	(void)state;
	post("Content-Type: text/plain\r\n", BYTES("pay 19"));
	post_buffer(headers, coded_gzip(BYTES("pay 19"), 1));
	post_buffer(headers, coded_gzip(BYTES("pay 19"), 2));
	all_are_the_same(3, "raw");
}

static void two_gzips_of_other_text_are_two_calls(void **state)
{
	(void)state;
	post_buffer(CODED("gzip"), coded_gzip(BYTES("{\"amount\": 1900}"), 1));
	post_buffer(CODED("gzip"), coded_gzip(BYTES("{\"amount\": 1901}"), 1));
	no_two_are_the_same(2);
}

static void a_coding_of_nothing_is_an_empty_body(void **state)
{
	(void)state;
	post(JSON, (struct bytes){0});
	post(CODED("gzip"), (struct bytes){0});
	post_buffer(CODED("gzip"), coded_gzip((struct bytes){0}, 1));
	all_are_the_same(3, "none");
}

static void a_key_in_a_coded_body_is_found(void **state)
{
	(void)state;
	post_buffer(CODED("gzip"), coded_gzip(BYTES("{\"amount\": 1900, \"idempotency_key\": \"k-1\"}"), 1));
	scene_finish(&scene, 0);
	assert_text(said(0, "idem"), "k-1");
	assert_text(said(0, "idem_from"), "body.idempotency_key");
}

static void a_coded_body_is_classified_by_its_text(void **state)
{
	(void)state;
	post_buffer(CODED("gzip"), coded_gzip(BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":"
						    "{\"name\":\"create_order\",\"arguments\":{}}}"), 1));
	scene_finish(&scene, 0);
	assert_text(said(0, "tool"), "create_order");
	assert_text(said(0, "class"), "mutating");
}

static void an_unknown_coding_is_compared_as_it_was_sent(void **state)
{
	(void)state;
	post(CODED("snappy"), BYTES("\x01\x02"));
	post(CODED("snappy"), BYTES("\x01\x02"));
	post(CODED("snappy"), BYTES("\x01\x03"));
	scene_finish(&scene, 0);
	is_raw(0, "content coding not known", BYTES("\x01\x02"));
	is_raw(2, "content coding not known", BYTES("\x01\x03"));
	assert_text(said(1, "fingerprint"), said(0, "fingerprint"));
	assert_string_not_equal(said(2, "fingerprint"), said(0, "fingerprint"));
	assert_int_equal(scene_count(&scene, "finding"), 1);
}

static void a_bomb_is_compared_as_it_was_sent(void **state)
{
	(void)state;
	post(CODED("br"), CODED_BYTES(coded_br_bomb));
	scene_finish(&scene, 0);
	is_raw(0, "content coding expands more than 1000:1", CODED_BYTES(coded_br_bomb));
}

static void a_gzip_over_8_mib_is_compared_as_it_was_sent(void **state)
{
	struct buffer noise = coded_noise(LIMIT_BODY_BYTES / 2), gzip, twice = {0};

	(void)state;
	assert_int_equal(buffer_append(&twice, buffer_bytes(&noise)), 0);
	buffer_done(&noise);
	noise = coded_zeros(LIMIT_BODY_BYTES / 2 + 1);
	assert_int_equal(buffer_append(&twice, buffer_bytes(&noise)), 0);
	gzip = coded_deflated(buffer_bytes(&twice), 31, 1, 0);
	post(CODED("gzip"), buffer_bytes(&gzip));
	scene_finish(&scene, 0);
	is_raw(0, "decoded body over the limit", buffer_bytes(&gzip));
	buffer_done(&noise);
	buffer_done(&twice);
	buffer_done(&gzip);
}

static void a_cut_gzip_is_compared_as_it_was_sent(void **state)
{
	struct buffer gzip = coded_gzip(PLAIN, 1);
	struct bytes front = {gzip.data, gzip.size - 9};

	(void)state;
	post(CODED("gzip"), front);
	post(JSON, PLAIN);
	no_two_are_the_same(2);
	is_raw(0, "content coding cut short", front);
	buffer_done(&gzip);
}

static void a_damaged_gzip_is_compared_as_it_was_sent(void **state)
{
	(void)state;
	post(CODED("gzip"), PLAIN);
	scene_finish(&scene, 0);
	is_raw(0, "gzip damaged", PLAIN);
}

static void aws_chunks_with_other_signatures_are_the_same_call(void **state)
{
	(void)state;
	post_buffer(CODED("aws-chunked"), coded_aws_chunked(PLAIN, 8, 'a', ""));
	post_buffer(CODED("aws-chunked"), coded_aws_chunked(PLAIN, 8, 'b', ""));
	post_buffer(CODED("aws-chunked"), coded_aws_chunked(PLAIN, 16, 'b', "x-amz-trailer-signature: c\r\n"));
	all_are_the_same(3, "json");
}

/* ---- forms of bodies ---- */

static void body_over_8_mib_is_compared_by_its_raw_hash(void **state)
{
	struct buffer body = coded_zeros(LIMIT_BODY_BYTES + 1);

	(void)state;
	memset(body.data, ' ', body.size);
	memcpy(body.data, "{}", 2);
	post(JSON, buffer_bytes(&body));
	post(JSON, buffer_bytes(&body));
	post(JSON, (struct bytes){body.data, LIMIT_BODY_BYTES});
	scene_finish(&scene, 0);
	is_raw(0, "body over 8 MiB", buffer_bytes(&body));
	assert_text(said(1, "fingerprint"), said(0, "fingerprint"));
	assert_text(said(2, "canon"), "json");
	buffer_done(&body);
}

static void multipart_with_another_boundary_is_the_same_call(void **state)
{
#define PART(boundary)                                                                          \
	"--" boundary "\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1900\r\n--" boundary "--\r\n"
	(void)state;
	post("Content-Type: multipart/form-data; boundary=----formdata-undici-012345678901\r\n",
	     BYTES(PART("----formdata-undici-012345678901")));
	post("Content-Type: multipart/form-data; boundary=\"d2a4cf1c0b2e4f4e8c3c0a6b5d7e8f90\"\r\n",
	     BYTES(PART("d2a4cf1c0b2e4f4e8c3c0a6b5d7e8f90")));
	all_are_the_same(2, "multipart");
}

static void multipart_with_other_content_is_two_calls(void **state)
{
	const char *type = "Content-Type: multipart/form-data; boundary=b\r\n";

	(void)state;
	post(type, BYTES(PART("b")));
	post(type, BYTES("--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1901\r\n--b--\r\n"));
	no_two_are_the_same(2);
}

static void a_multipart_that_is_not_closed_is_raw(void **state)
{
	const struct bytes body = BYTES("--b\r\nContent-Disposition: form-data; name=\"amount\"\r\n\r\n1900");

	(void)state;
	post("Content-Type: multipart/form-data; boundary=b\r\n", body);
	scene_finish(&scene, 0);
	assert_text(said(0, "canon"), "raw");
	assert_non_null(said(0, "canon_why"));
}

static void ndjson_respelled_is_the_same_call(void **state)
{
	(void)state;
	post("Content-Type: application/x-ndjson\r\n", BYTES("{\"b\":1,\"a\":2}\n{\"c\":3.0}\n"));
	post("Content-Type: application/x-ndjson\r\n", BYTES("{\"a\": 2, \"b\": 1}\r\n\r\n{\"c\": 3}"));
	all_are_the_same(2, "ndjson");
}

static void ndjson_in_another_order_is_two_calls(void **state)
{
	(void)state;
	post("Content-Type: application/x-ndjson\r\n", BYTES("{\"a\":1}\n{\"b\":2}\n"));
	post("Content-Type: application/x-ndjson\r\n", BYTES("{\"b\":2}\n{\"a\":1}\n"));
	no_two_are_the_same(2);
}

static void a_json_rpc_batch_respelled_with_new_ids_is_the_same_call(void **state)
{
	(void)state;
	post(JSON, BYTES("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"charge\",\"params\":[1900]},"
			 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"charge\",\"params\":[5]}]"));
	post(JSON, BYTES("[{\"method\":\"charge\",\"params\":[1900.0],\"id\":7,\"jsonrpc\":\"2.0\"}, "
			 "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"charge\",\"params\":[5]}]"));
	scene_finish(&scene, 0);
	assert_text(said(1, "fingerprint"), said(0, "fingerprint"));
	assert_int_equal(scene_count(&scene, "finding"), 1);
}

static void a_json_rpc_batch_with_other_messages_is_two_calls(void **state)
{
	(void)state;
	post(JSON, BYTES("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"charge\",\"params\":[1900]},"
			 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"charge\",\"params\":[5]}]"));
	post(JSON, BYTES("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"charge\",\"params\":[1900]},"
			 "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"charge\",\"params\":[6]}]"));
	no_two_are_the_same(2);
}

static void a_form_respelled_is_the_same_call(void **state)
{
	const char *type = "Content-Type: application/x-www-form-urlencoded\r\n";

	(void)state;
	post(type, BYTES("amount=1900&currency=eur&note=a+b"));
	post(type, BYTES("note=a%20b&currency=%65ur&amount=1900"));
	all_are_the_same(2, "form");
}

static void text_that_looks_like_json_is_raw(void **state)
{
	(void)state;
	post("Content-Type: text/plain\r\n", BYTES("{\"a\":1}"));
	post("Content-Type: text/plain\r\n", BYTES("{\"a\": 1}"));
	post("Content-Type: application/x-protobuf\r\n", BYTES("{\"a\":  1}"));
	no_two_are_the_same(3);
	is_raw(0, NULL, BYTES("{\"a\":1}"));
}

static void json_that_is_none_is_raw_with_its_reason(void **state)
{
	(void)state;
	post(JSON, BYTES("{\"a\":NaN}"));
	scene_finish(&scene, 0);
	assert_text(said(0, "canon"), "raw");
	assert_non_null(said(0, "canon_why"));
}

static void neighbours_of_2_53_are_two_calls(void **state)
{
	(void)state;
	post(JSON, BYTES("{\"order\":9007199254740992}"));
	post(JSON, BYTES("{\"order\":9007199254740993}"));
	no_two_are_the_same(2);
}

static void numbers_respelled_are_the_same_call(void **state)
{
	(void)state;
	post(JSON, BYTES("{\"amount\":1900}"));
	post(JSON, BYTES("{\"amount\":1900.0}"));
	post(JSON, BYTES("{\"amount\":1.9e3}"));
	post(JSON, BYTES("{\"amount\":19E+2}"));
	all_are_the_same(4, "json");
}

/* ---- answers ---- */

#define LIST "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"
#define TOOLS \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"create_report\"," \
	"\"annotations\":{\"readOnlyHint\":true}}]}}"
#define CALL "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"create_report\",\"arguments\":{}}}"

static void mcp(uint32_t c, const char *body)
{
	char text[512];

	snprintf(text, sizeof(text), "POST /mcp HTTP/1.1\r\nHost: h\r\n" JSON "Content-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	scene_send(&scene, c, WIRE_BUILD_CLIENT, text);
}

/* Lists the tools, is answered in that coding, calls one: the class that the call got. */
static const char *class_after_list(const char *coding, struct bytes answer)
{
	uint32_t c = scene_connect(&scene, 4711);
	char head[256];

	mcp(c, LIST);
	snprintf(head, sizeof(head),
		 "HTTP/1.1 200 OK\r\n" JSON "Content-Encoding: %s\r\nContent-Length: %zu\r\n\r\n", coding, answer.size);
	scene_send(&scene, c, WIRE_BUILD_SERVER, head);
	for (size_t half = answer.size / 2; answer.size;)
		scene_send_bytes(&scene, c, WIRE_BUILD_SERVER, bytes_take(&answer, half + 1));
	mcp(c, CALL);
	scene_finish(&scene, 0);
	return said(1, "class");
}

static void a_gzipped_list_of_tools_is_learned_from(void **state)
{
	struct buffer answer = coded_gzip(BYTES(TOOLS), 1);

	(void)state;
	assert_text(class_after_list("gzip", buffer_bytes(&answer)), "read");
	buffer_done(&answer);
}

static void a_plain_list_of_tools_is_learned_from(void **state)
{
	(void)state;
	assert_text(class_after_list("identity", BYTES(TOOLS)), "read");
}

static void a_list_of_tools_that_cannot_be_decoded_teaches_nothing(void **state)
{
	(void)state;
	assert_text(class_after_list("gzip", BYTES(TOOLS)), "mutating");
}

static void a_list_of_tools_in_an_unknown_coding_teaches_nothing(void **state)
{
	(void)state;
	assert_text(class_after_list("snappy", BYTES(TOOLS)), "mutating");
}

static void a_list_of_tools_with_a_hole_teaches_nothing(void **state)
{
	uint32_t c = scene_connect(&scene, 4711);
	char text[512];

	(void)state;
	mcp(c, LIST);
	/* Without the hole's bytes the text would be whole, and say something else. */
	snprintf(text, sizeof(text), "HTTP/1.1 200 OK\r\n" JSON "Content-Length: %zu\r\n\r\n%.40s", strlen(TOOLS) + 9,
		 TOOLS);
	scene_send(&scene, c, WIRE_BUILD_SERVER, text);
	scene_lose(&scene, c, WIRE_BUILD_SERVER, 9);
	scene_send(&scene, c, WIRE_BUILD_SERVER, TOOLS + 40);
	mcp(c, CALL);
	scene_send(&scene, c, WIRE_BUILD_SERVER, ANSWER);
	mcp(c, CALL);
	scene_finish(&scene, 0);
	assert_text(said(1, "class"), "mutating");
	/* The list may have said that the tool only reads. */
	assert_text(scene_field(scene_event(&scene, "finding", 0), "finding"), "undecidable");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_coding_of_one_json_is_the_same_call),
		TEST(the_ledger_keeps_the_length_and_hash_of_what_was_sent),
		TEST(two_gzips_with_another_time_in_them_are_the_same_call),
		TEST(two_gzips_of_a_text_are_the_same_call),
		TEST(two_gzips_of_other_text_are_two_calls),
		TEST(a_coding_of_nothing_is_an_empty_body),
		TEST(a_key_in_a_coded_body_is_found),
		TEST(a_coded_body_is_classified_by_its_text),
		TEST(an_unknown_coding_is_compared_as_it_was_sent),
		TEST(a_bomb_is_compared_as_it_was_sent),
		TEST(a_gzip_over_8_mib_is_compared_as_it_was_sent),
		TEST(a_cut_gzip_is_compared_as_it_was_sent),
		TEST(a_damaged_gzip_is_compared_as_it_was_sent),
		TEST(aws_chunks_with_other_signatures_are_the_same_call),
		TEST(body_over_8_mib_is_compared_by_its_raw_hash),
		TEST(multipart_with_another_boundary_is_the_same_call),
		TEST(multipart_with_other_content_is_two_calls),
		TEST(a_multipart_that_is_not_closed_is_raw),
		TEST(ndjson_respelled_is_the_same_call),
		TEST(ndjson_in_another_order_is_two_calls),
		TEST(a_json_rpc_batch_respelled_with_new_ids_is_the_same_call),
		TEST(a_json_rpc_batch_with_other_messages_is_two_calls),
		TEST(a_form_respelled_is_the_same_call),
		TEST(text_that_looks_like_json_is_raw),
		TEST(json_that_is_none_is_raw_with_its_reason),
		TEST(neighbours_of_2_53_are_two_calls),
		TEST(numbers_respelled_are_the_same_call),
		TEST(a_gzipped_list_of_tools_is_learned_from),
		TEST(a_plain_list_of_tools_is_learned_from),
		TEST(a_list_of_tools_that_cannot_be_decoded_teaches_nothing),
		TEST(a_list_of_tools_in_an_unknown_coding_teaches_nothing),
		TEST(a_list_of_tools_with_a_hole_teaches_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
