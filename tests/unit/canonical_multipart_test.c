/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * multipart/form-data: one line a part, whatever the boundary; what differs in
 * a part differs in its line; what is cut or odd is refused.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "canonical.h"

/* SHA-256 of "logs", "line one\n" and "". */
#define SHA_LOGS "98f38f12db221a8cf8ca7aadfdcd759b01d52eb4ebb3eedbb2d97e92805c6960"
#define SHA_LINE_ONE "31f21b1dae81d3f32f40e38134bc688e6f7df4f08dde1d7d2cda3c4b59104e1c"
#define SHA_EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

#define UPLOAD(boundary)                                                                                      \
	"--" boundary                                                                                         \
	"\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nlogs\r\n--" boundary                     \
	"\r\nContent-Disposition: form-data; name=\"file\"; filename=\"log.txt\"\r\nContent-Type: text/plain" \
	"\r\n\r\nline one\n\r\n--" boundary "--\r\n"
#define UPLOAD_TEXT                                                                                \
	"purpose\t\t\t4\t" SHA_LOGS "\nfile\t\"log.txt\"\ttext/plain\t9\t" SHA_LINE_ONE "\n"

static void assert_parts(const char *input, const char *boundary, const char *expected)
{
	struct buffer out = {0};

	assert_null(canonical_multipart(bytes_of_string(input), bytes_of_string(boundary), &out));
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, expected);
	buffer_done(&out);
}

static void assert_refused(const char *input, const char *boundary, const char *expected_reason)
{
	struct buffer out = {0};
	const char *reason;

	assert_int_equal(buffer_append(&out, BYTES("before")), 0);
	reason = canonical_multipart(bytes_of_string(input), bytes_of_string(boundary), &out);
	assert_non_null(reason);
	assert_string_equal(reason, expected_reason);
	assert_true(bytes_equal(buffer_bytes(&out), BYTES("before")));
	buffer_done(&out);
}

/* One part with that head and no content. */
static void assert_head(const char *head, const char *expected)
{
	char input[512];

	snprintf(input, sizeof(input), "--b\r\n%s\r\n\r\n\r\n--b--", head);
	assert_parts(input, "b", expected);
}

/* undici, urllib3, curl, axios, a browser. */
static void gives_one_text_whatever_the_boundary(void **state)
{
	(void)state;
	assert_parts(UPLOAD("----formdata-undici-012345678901"), "----formdata-undici-012345678901",
		     UPLOAD_TEXT);
	assert_parts(UPLOAD("0123456789abcdef0123456789abcdef"), "0123456789abcdef0123456789abcdef",
		     UPLOAD_TEXT);
	assert_parts(UPLOAD("------------------------d74496d66958873e"),
		     "------------------------d74496d66958873e", UPLOAD_TEXT);
	assert_parts(UPLOAD("--------------------------123456789012345678901234"),
		     "--------------------------123456789012345678901234", UPLOAD_TEXT);
	assert_parts(UPLOAD("----WebKitFormBoundaryAbC123dEf456"),
		     "----WebKitFormBoundaryAbC123dEf456", UPLOAD_TEXT);
}

static void tells_other_content_of_one_length_apart(void **state)
{
	(void)state;
	assert_parts("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b--", "b",
		     "a\t\t\t4\t" SHA_LOGS "\n");
	assert_parts(
		"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogz\r\n--b--", "b",
		"a\t\t\t4\t313e33da82482f146845961e8b7fcbf1678f3b98fdff5609b681d0483c36c5db\n");
}

static void keeps_the_order_of_parts(void **state)
{
	(void)state;
	assert_parts("--b\r\nContent-Disposition: form-data; name=z\r\n\r\n\r\n--b\r\n"
		     "Content-Disposition: form-data; name=a\r\n\r\n\r\n--b--",
		     "b", "z\t\t\t0\t" SHA_EMPTY "\na\t\t\t0\t" SHA_EMPTY "\n");
}

static void tells_no_filename_from_an_empty_one(void **state)
{
	(void)state;
	assert_head("Content-Disposition: form-data; name=a", "a\t\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; name=a; filename=\"\"",
		    "a\t\"\"\t\t0\t" SHA_EMPTY "\n");
}

static void reads_quoted_and_bare_parameters(void **state)
{
	(void)state;
	assert_head("content-disposition:form-data;NAME=a;FileName=b.txt",
		    "a\t\"b.txt\"\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; filename = \"x; name=y\" ; name = \"a\"",
		    "a\t\"x;%20name=y\"\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; name=\"q\\\"uote\"",
		    "q\\%22uote\t\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; name=\"a\"; filename*=UTF-8''%e2%82%ac",
		    "a\t\"UTF-8''%25e2%2582%25ac\"\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; flag; name=\"\"", "\t\t\t0\t" SHA_EMPTY "\n");
}

static void writes_the_type_in_lower_case(void **state)
{
	(void)state;
	assert_head("Content-Disposition: form-data; name=A\r\nContent-Type: Image/PNG; X=Y",
		    "A\t\timage/png;%20x=y\t0\t" SHA_EMPTY "\n");
}

/* A name cannot pretend to be the rest of its line or another line. */
static void escapes_what_would_break_a_line(void **state)
{
	(void)state;
	assert_head("Content-Disposition: form-data; name=\"a\tb\xc3\xa9%\"; filename=\"x\ny\"",
		    "a%09b%C3%A9%25\t\"x%0Ay\"\t\t0\t" SHA_EMPTY "\n");
}

static void skips_preamble_and_epilogue(void **state)
{
	(void)state;
	assert_parts(
		"preamble\r\n--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b--\r\nepilogue",
		"b", "a\t\t\t4\t" SHA_LOGS "\n");
}

static void allows_space_behind_a_boundary(void **state)
{
	(void)state;
	assert_parts("--b \t\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b--", "b",
		     "a\t\t\t4\t" SHA_LOGS "\n");
}

static void takes_an_empty_form(void **state)
{
	(void)state;
	assert_parts("--b--\r\n", "b", "");
}

static void does_not_cut_content_at_a_longer_boundary(void **state)
{
	struct buffer out = {0};

	(void)state;
	assert_null(canonical_multipart(
		BYTES("--b\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n--bb\r\n2\r\n--b--"),
		BYTES("b"), &out));
	assert_true(bytes_starts_with(buffer_bytes(&out), BYTES("a\t\t\t10\t")));
	buffer_done(&out);
}

static void refuses_what_is_not_closed(void **state)
{
	(void)state;
	assert_refused("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs", "b",
		       "multipart not closed");
	assert_refused("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b\r\n", "b",
		       "multipart head not closed");
	assert_refused("--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b", "b",
		       "multipart not closed");
	assert_refused("--b\r\nContent-Disposition: form-data; name=a", "b",
		       "multipart head not closed");
	assert_refused("no boundary at all", "b", "multipart not closed");
	assert_refused("", "b", "multipart not closed");
}

/* A good part before the bad one must not be left in the output. */
static void refuses_parts_that_cannot_be_compared(void **state)
{
	const char *const good =
		"--b\r\nContent-Disposition: form-data; name=a\r\n\r\nlogs\r\n--b\r\n";
	char input[512];

	(void)state;
	snprintf(input, sizeof(input), "%sContent-Type: text/plain\r\n\r\nx\r\n--b--", good);
	assert_refused(input, "b", "multipart name missing");
	snprintf(input, sizeof(input), "%sno colon\r\n\r\nx\r\n--b--", good);
	assert_refused(input, "b", "bad multipart head");
	snprintf(
		input, sizeof(input),
		"%sContent-Disposition: form-data; name=c\r\nContent-Transfer-Encoding: base64\r\n\r\nx\r\n--b--",
		good);
	assert_refused(input, "b", "multipart transfer encoding");
}

static void takes_transfer_encodings_that_change_nothing(void **state)
{
	(void)state;
	assert_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: Binary",
		    "a\t\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: 8bit",
		    "a\t\t\t0\t" SHA_EMPTY "\n");
	assert_head("Content-Disposition: form-data; name=a\r\nContent-Transfer-Encoding: 7BIT",
		    "a\t\t\t0\t" SHA_EMPTY "\n");
}

static void refuses_a_boundary_that_is_empty_or_endless(void **state)
{
	char boundary[202];

	(void)state;
	assert_refused("--\r\n\r\n\r\n----", "", "multipart boundary missing");
	memset(boundary, 'b', sizeof(boundary) - 1);
	boundary[sizeof(boundary) - 1] = '\0';
	assert_refused(UPLOAD("b"), boundary, "multipart boundary missing");
	boundary[200] = '\0';
	assert_refused(UPLOAD("b"), boundary, "multipart not closed");
}

static void reads_no_byte_beyond_a_cut_body(void **state)
{
	const struct bytes whole = BYTES(UPLOAD("bound"));

	(void)state;
	for (size_t size = 1; size < whole.size - 2; size++) {
		struct buffer out = {0};
		uint8_t *cut = malloc(size);

		assert_non_null(cut);
		memcpy(cut, whole.data, size);
		assert_non_null(
			canonical_multipart((struct bytes){cut, size}, BYTES("bound"), &out));
		assert_int_equal(out.size, 0);
		buffer_done(&out);
		free(cut);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_one_text_whatever_the_boundary),
		cmocka_unit_test(tells_other_content_of_one_length_apart),
		cmocka_unit_test(keeps_the_order_of_parts),
		cmocka_unit_test(tells_no_filename_from_an_empty_one),
		cmocka_unit_test(reads_quoted_and_bare_parameters),
		cmocka_unit_test(writes_the_type_in_lower_case),
		cmocka_unit_test(escapes_what_would_break_a_line),
		cmocka_unit_test(skips_preamble_and_epilogue),
		cmocka_unit_test(allows_space_behind_a_boundary),
		cmocka_unit_test(takes_an_empty_form),
		cmocka_unit_test(does_not_cut_content_at_a_longer_boundary),
		cmocka_unit_test(refuses_what_is_not_closed),
		cmocka_unit_test(refuses_parts_that_cannot_be_compared),
		cmocka_unit_test(takes_transfer_encodings_that_change_nothing),
		cmocka_unit_test(refuses_a_boundary_that_is_empty_or_endless),
		cmocka_unit_test(reads_no_byte_beyond_a_cut_body),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
