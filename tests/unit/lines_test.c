/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ledger lines and events, whole lines compared: every key, its place and its
 * value. A key that moves or goes missing fails here.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "lines.h"

#define SECOND 1000000000ULL
#define WALL_OFFSET (1790000000LL * 1000000000LL)

#define HEX_01 "0101010101010101010101010101010101010101010101010101010101010101"
#define HEX_02 "0202020202020202020202020202020202020202020202020202020202020202"
#define HEX_03 "0303030303030303030303030303030303030303030303030303030303030303"
#define HEX_05 "0505050505050505050505050505050505050505050505050505050505050505"
#define HEX_04 "0404040404040404040404040404040404040404040404040404040404040404"

static struct run_facts run = {
	.boot_id = {0xb0, 0x07},
	.run_id = "00c0ffee00c0ffee",
	.version = "0.1.0",
	.door = "kprobe",
	.kernel = "6.1.0-18-amd64",
	.canary = "seen",
	.scope = "tree",
	.command = "flaky-tool",
	.argument_count = 3,
	.wall_offset_ns = WALL_OFFSET,
	.start_ns = SECOND,
};
static struct line_context context = {.run = &run, .wall_offset_ns = WALL_OFFSET};
static struct http_head head;
static struct buffer out;

static int set_up(void **state)
{
	static const uint8_t salt[32] = {7};

	(void)state;
	context.fingerprinter = fingerprinter_new(salt);
	return context.fingerprinter ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	fingerprinter_free(context.fingerprinter);
	buffer_done(&out);
	return 0;
}

static void assert_line(int result, const char *expected)
{
	assert_int_equal(result, 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, expected);
	buffer_clear(&out);
}

static struct digest digest_filled(uint8_t byte)
{
	struct digest digest;

	memset(&digest, byte, sizeof(digest));
	return digest;
}

static struct endpoint loopback(uint16_t port)
{
	return (struct endpoint){.address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
				 .port = port};
}

/* A whole POST with everything that can be known of it. */
static struct call whole_call(void)
{
	head = (struct http_head){.side = HTTP_REQUEST};
	return (struct call){
		.id = {0xaa, [15] = 0x55},
		.netns = 4026531840,
		.client = loopback(51234),
		.server = loopback(8765),
		.process = {.tgid = 4101,
			    .tid = 4102,
			    .ns_tgid = 7,
			    .uid = 1000,
			    .start_ns = 123456789,
			    .comm = "flaky-tool"},
		.server_process = {.tgid = 4000, .comm = "charge-mock"},
		.number = 1,
		.first_ns = 2 * SECOND,
		.sent_ns = 2 * SECOND + 123456789,
		.request_complete = true,
		.head = &head,
		.method = BYTES("POST"),
		.path = BYTES("/v1/charges"),
		.query = BYTES("expand=customer"),
		.has_query = true,
		.host = BYTES("127.0.0.1:8765"),
		.has_host = true,
		.body_bytes = 27,
		.has_raw_sha = true,
		.raw_sha = digest_filled(1),
		.canon = CANONICAL_JSON,
		.has_sha = true,
		.sha = digest_filled(2),
		.idem_state = IDEM_PRESENT,
		.idem = BYTES("order-7"),
		.idem_from = "Idempotency-Key",
		.class = CLASS_LLM,
		.class_by = "path /v1/chat/completions",
		.tool = BYTES("create_charge"),
		.model = BYTES("m-1"),
		.retry_hint = BYTES("{\"x-stainless-retry-count\":\"1\"}"),
		.has_fingerprint = true,
		.fingerprint = digest_filled(3),
		.has_prompt_fingerprint = true,
		.prompt_fingerprint = digest_filled(4),
		.has_principal = true,
		.principal = digest_filled(5),
		.retry_after_s = -1,
	};
}

#define WHOLE_FIELDS_1                                                                             \
	"\"path\":\"/v1/charges\",\"len\":27,\"sha\":\"" HEX_02                                    \
	"\",\"idem\":\"order-7\",\"method\":\"POST\","                                             \
	"\"query\":\"expand=customer\",\"host\":\"127.0.0.1:8765\",\"id\":"                        \
	"\"aa000000000000000000000000000055\","
#define WHOLE_FIELDS_2                                                                             \
	"\"schema\":1,\"class\":\"llm\",\"class_by\":\"path "                                      \
	"/v1/chat/completions\",\"fingerprint\":\"" HEX_03 "\",\"prompt_fingerprint\":\"" HEX_04   \
	"\",\"principal\":\"05050505050505050505050505050505\",\"sha_raw\":\"" HEX_01              \
	"\",\"canon\":\"json\",\"canon_why\":null,\"idem_from\":\"Idempotency-Key\","              \
	"\"request_complete\":true,\"holes\":0,\"mark\":null,\"pid\":4101,\"tid\":4102,\"ns_"      \
	"pid\":7,"                                                                                 \
	"\"start_ns\":123456789,\"comm\":\"flaky-tool\",\"uid\":1000,\"cgroup\":null,\"netns\":"   \
	"4026531840,"                                                                              \
	"\"src\":\"127.0.0.1:51234\",\"dst\":\"127.0.0.1:8765\",\"server_pid\":4000,\"server_"     \
	"comm\":\"charge-mock\","                                                                  \
	"\"retry_hint\":{\"x-stainless-retry-count\":\"1\"},\"tool\":\"create_charge\",\"model\":" \
	"\"m-1\","                                                                                 \
	"\"t_first\":1790000002.000000,\"escaped\":false,\"why\":null}\n"

static void writes_every_field_of_a_whole_request_in_order(void **state)
{
	struct call call = whole_call();

	(void)state;
	assert_line(ledger_line(&context, &call, &out),
		    "{\"t\":1790000002.123456," WHOLE_FIELDS_1
		    "\"run\":\"00c0ffee00c0ffee\"," WHOLE_FIELDS_2);
}

static void a_request_event_holds_the_ledger_fields_once_each(void **state)
{
	struct call call = whole_call();

	(void)state;
	assert_line(event_request(&context, &call, &out),
		    "{\"kind\":\"request\",\"t\":1790000002.123456,\"run\":"
		    "\"00c0ffee00c0ffee\"," WHOLE_FIELDS_1 WHOLE_FIELDS_2);
}

static void writes_null_for_what_is_known_to_be_absent(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.has_query = false;
	call.has_host = false;
	call.idem_state = IDEM_ABSENT;
	call.idem_from = NULL;
	call.class = CLASS_MUTATING;
	call.class_by = NULL;
	call.has_prompt_fingerprint = false;
	call.has_principal = false;
	call.canon = CANONICAL_RAW;
	call.canon_why = "bad number";
	call.server_process.tgid = 0;
	call.retry_hint = (struct bytes){0};
	call.tool = (struct bytes){0};
	call.model = (struct bytes){0};
	assert_line(ledger_line(&context, &call, &out),
		    "{\"t\":1790000002.123456,\"path\":\"/v1/charges\",\"len\":27,\"sha\":\"" HEX_02
		    "\",\"idem\":null,"
		    "\"method\":\"POST\",\"query\":null,\"host\":null,\"id\":"
		    "\"aa000000000000000000000000000055\","
		    "\"run\":\"00c0ffee00c0ffee\",\"schema\":1,\"class\":\"mutating\",\"class_by\":"
		    "null,\"fingerprint\":\"" HEX_03
		    "\",\"prompt_fingerprint\":null,\"principal\":null,\"sha_raw\":\"" HEX_01
		    "\",\"canon\":\"raw\","
		    "\"canon_why\":\"bad "
		    "number\",\"idem_from\":null,\"request_complete\":true,\"holes\":0,\"mark\":"
		    "null,"
		    "\"pid\":4101,\"tid\":4102,\"ns_pid\":7,\"start_ns\":123456789,\"comm\":"
		    "\"flaky-tool\",\"uid\":1000,"
		    "\"cgroup\":null,\"netns\":4026531840,\"src\":\"127.0.0.1:51234\",\"dst\":"
		    "\"127.0.0.1:8765\","
		    "\"server_pid\":null,\"server_comm\":null,\"retry_hint\":null,\"tool\":null,"
		    "\"model\":null,"
		    "\"t_first\":1790000002.000000,\"escaped\":false,\"why\":null}\n");
}

static void writes_unknown_with_a_reason_for_what_could_not_be_seen(void **state)
{
	struct call call = {
		.id = {1},
		.netns = 9,
		.client = loopback(1),
		.server = loopback(2),
		.first_ns = 3 * SECOND,
		.request_holes = 512,
		.idem_state = IDEM_UNKNOWN,
		.why = "a hole in its head",
	};

	(void)state;
	assert_line(ledger_line(&context, &call, &out),
		    "{\"t\":1790000003.000000,\"path\":\"unknown\",\"len\":0,\"sha\":null,\"idem\":"
		    "\"unknown\","
		    "\"method\":\"unknown\",\"query\":\"unknown\",\"host\":\"unknown\","
		    "\"id\":\"01000000000000000000000000000000\",\"run\":\"00c0ffee00c0ffee\","
		    "\"schema\":1,"
		    "\"class\":\"unknown\",\"class_by\":null,\"fingerprint\":null,\"prompt_"
		    "fingerprint\":null,"
		    "\"principal\":\"unknown\",\"sha_raw\":null,\"canon\":\"unknown\",\"canon_"
		    "why\":null,"
		    "\"idem_from\":null,\"request_complete\":false,\"holes\":512,\"mark\":null,"
		    "\"pid\":\"unknown\","
		    "\"tid\":\"unknown\",\"ns_pid\":\"unknown\",\"start_ns\":\"unknown\",\"comm\":"
		    "\"unknown\","
		    "\"uid\":\"unknown\",\"cgroup\":null,\"netns\":9,\"src\":\"127.0.0.1:1\","
		    "\"dst\":\"127.0.0.1:2\","
		    "\"server_pid\":null,\"server_comm\":null,\"retry_hint\":\"unknown\",\"tool\":"
		    "\"unknown\","
		    "\"model\":\"unknown\",\"t_first\":1790000003.000000,\"escaped\":false,"
		    "\"why\":\"a hole in its head; its head was not seen; the request never "
		    "completed; "
		    "its process was not seen\"}\n");
}

/* From the first to the last field that the next tests look at. */
static void assert_part(int result, const char *from, const char *expected)
{
	char *start;

	assert_int_equal(result, 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	start = strstr((char *)out.data, from);
	assert_non_null(start);
	if (strncmp(start, expected, strlen(expected)) != 0)
		assert_string_equal(start, expected);
	buffer_clear(&out);
}

static void a_body_with_bytes_missing_has_no_hash_and_says_why(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.has_raw_sha = false;
	call.has_sha = false;
	call.has_fingerprint = false;
	call.tool = (struct bytes){0};
	call.request_holes = 10;
	call.body_why = "hole";
	assert_part(ledger_line(&context, &call, &out), "\"len\"",
		    "\"len\":27,\"sha\":null,\"idem\":\"order-7\",");
	assert_part(ledger_line(&context, &call, &out), "\"sha_raw\"",
		    "\"sha_raw\":null,\"canon\":\"unknown\",\"canon_why\":null,");
	assert_part(ledger_line(&context, &call, &out), "\"tool\"",
		    "\"tool\":\"unknown\",\"model\":\"m-1\",");
	assert_part(ledger_line(&context, &call, &out), "\"why\"", "\"why\":\"hole\"}\n");
	call.why = "hole";
	assert_part(ledger_line(&context, &call, &out), "\"why\"", "\"why\":\"hole\"}\n");
	call.why = NULL;
	call.body_why = NULL;
	assert_part(ledger_line(&context, &call, &out), "\"why\"",
		    "\"why\":\"body bytes are missing\"}\n");
	call.request_complete = false;
	call.sent_ns = 0;
	assert_part(ledger_line(&context, &call, &out), "\"request_complete\"",
		    "\"request_complete\":false,\"holes\":10,");
	assert_part(ledger_line(&context, &call, &out), "\"t\"",
		    "\"t\":1790000002.000000,\"path\"");
	assert_part(ledger_line(&context, &call, &out), "\"why\"",
		    "\"why\":\"the request never completed\"}\n");
}

static void a_field_that_may_have_been_in_a_cut_head_is_unknown(void **state)
{
	struct call call = whole_call();

	(void)state;
	head.fields_dropped = 1;
	call.has_host = false;
	call.has_principal = false;
	call.retry_hint = (struct bytes){0};
	assert_part(ledger_line(&context, &call, &out), "\"host\"", "\"host\":\"unknown\",\"id\"");
	assert_part(ledger_line(&context, &call, &out), "\"principal\"",
		    "\"principal\":\"unknown\",\"sha_raw\"");
	assert_part(ledger_line(&context, &call, &out), "\"retry_hint\"",
		    "\"retry_hint\":\"unknown\",\"tool\"");
	assert_part(ledger_line(&context, &call, &out), "\"why\"",
		    "\"why\":\"its head was too long to keep whole\"}\n");
}

static void a_key_that_is_no_single_key_is_unknown(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.idem_state = IDEM_INVALID;
	assert_part(ledger_line(&context, &call, &out), "\"idem\"",
		    "\"idem\":\"unknown\",\"method\"");
	assert_part(ledger_line(&context, &call, &out), "\"why\"",
		    "\"why\":\"the idempotency key is a list or was sent twice\"}\n");
}

static void marks_a_line_that_holds_bytes_that_are_not_utf8(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.path = BYTES("/caf\xe9/\n");
	assert_part(ledger_line(&context, &call, &out), "\"path\"",
		    "\"path\":\"/caf\\u00e9/\\u000a\",\"len\"");
	assert_part(ledger_line(&context, &call, &out), "\"escaped\"",
		    "\"escaped\":true,\"why\":null}\n");
	call.path = BYTES("/caf\xc3\xa9/\n");
	assert_part(ledger_line(&context, &call, &out), "\"escaped\"",
		    "\"escaped\":false,\"why\":null}\n");
}

static void keeps_secrets_out_of_path_query_and_host(void **state)
{
	struct call call = whole_call();
	char token[18], bot[18], expected[256];

	(void)state;
	call.path = BYTES("/bot123:ABC/send");
	call.query = BYTES("limit=1&token=hunter2");
	call.host = BYTES("me:hunter2@127.0.0.1:8765");
	secret_text(context.fingerprinter, BYTES("hunter2"), token);
	secret_text(context.fingerprinter, BYTES("bot123:ABC"), bot);
	snprintf(expected, sizeof(expected), "\"path\":\"/%s/send\",\"len\"", bot);
	assert_part(ledger_line(&context, &call, &out), "\"path\"", expected);
	snprintf(expected, sizeof(expected),
		 "\"query\":\"limit=1&token=%s\",\"host\":\"127.0.0.1:8765\",\"id\"", token);
	assert_part(ledger_line(&context, &call, &out), "\"query\"", expected);
	assert_part(event_request(&context, &call, &out), "\"query\"", expected);
}

static void writes_the_mark_and_the_cgroup_where_there_are_such(void **state)
{
	struct call call = whole_call();

	(void)state;
	context.has_mark = true;
	assert_part(ledger_line(&context, &call, &out), "\"mark\"", "\"mark\":\"\",\"pid\"");
	context.mark = BYTES("test_one");
	context.cgroup_path = BYTES("/user.slice");
	assert_part(ledger_line(&context, &call, &out), "\"mark\"",
		    "\"mark\":\"test_one\",\"pid\"");
	assert_part(ledger_line(&context, &call, &out), "\"cgroup\"",
		    "\"cgroup\":\"/user.slice\",\"netns\"");
	context.has_mark = false;
	context.mark = context.cgroup_path = (struct bytes){0};
}

static void writes_ipv6_endpoints_in_brackets(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.client = (struct endpoint){.address = {[15] = 1}, .port = 65535};
	call.server =
		(struct endpoint){.address = {0x20, 0x01, 0x0d, 0xb8, [15] = 0xff}, .port = 0};
	assert_part(ledger_line(&context, &call, &out), "\"src\"",
		    "\"src\":\"[::1]:65535\",\"dst\":\"[2001:db8::ff]:0\",\"server_pid\"");
}

static void names_every_class_end_and_delivery(void **state)
{
	(void)state;
	assert_string_equal(call_class_name(CLASS_MUTATING), "mutating");
	assert_string_equal(call_class_name(CLASS_READ), "read");
	assert_string_equal(call_class_name(CLASS_LLM), "llm");
	assert_string_equal(call_class_name(CLASS_AUTH), "auth");
	assert_string_equal(call_class_name(CLASS_TELEMETRY), "telemetry");
	assert_string_equal(call_ended_name(CALL_ENDED_NONE), "none");
	assert_string_equal(call_ended_name(CALL_ENDED_LENGTH), "length");
	assert_string_equal(call_ended_name(CALL_ENDED_CHUNKED), "chunked");
	assert_string_equal(call_ended_name(CALL_ENDED_CLOSE), "close");
	assert_string_equal(call_ended_name(CALL_ENDED_RESET), "reset");
	assert_string_equal(call_ended_name(CALL_ENDED_CUT), "cut");
	assert_string_equal(call_delivered_name(DELIVERED_UNKNOWN), "unknown");
	assert_string_equal(call_delivered_name(DELIVERED_ALL), "all");
	assert_string_equal(call_delivered_name(DELIVERED_PART), "part");
	assert_string_equal(call_delivered_name(DELIVERED_NONE), "none");
}

/* ---- response ---- */

static void writes_every_field_of_a_whole_response_in_order(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.status = 200;
	call.response_first_ns = 2 * SECOND + 200000000;
	call.response_last_ns = 2 * SECOND + 224691999;
	call.response_body_bytes = 18;
	call.response_complete = true;
	call.ended = CALL_ENDED_LENGTH;
	call.delivered = DELIVERED_ALL;
	call.delivered_bytes = 120;
	call.closed_first = CLOSER_CLIENT;
	call.retry_after_s = 30;
	call.replayed = true;
	call.usage = (struct usage){.input_tokens = 9,
				    .output_tokens = 3,
				    .cached_tokens = -1,
				    .cache_write_tokens = 2,
				    .reasoning_tokens = 0,
				    .final = true,
				    .seen = true};
	call.client_closed_ns = 3 * SECOND + SECOND / 2;
	call.server_read_known = call.server_read_all = true;
	call.answer_complete = true;
	call.finish_reason = BYTES("stop");
	call.response_model = BYTES("demo");
	call.response_id = BYTES("r\0011");
	call.usage_refused = 1;
	call.has_model_key = true;
	call.model_key = digest_filled(5);
	assert_line(event_response(&context, &call, &out),
		    "{\"kind\":\"response\",\"t\":1790000002.224691,\"run\":\"00c0ffee00c0ffee\","
		    "\"of\":\"aa000000000000000000000000000055\",\"status\":200,\"http.response."
		    "body.size\":18,"
		    "\"response_complete\":true,\"ended\":\"length\",\"t_first\":1790000002.200000,"
		    "\"ms\":101.235,"
		    "\"delivered\":\"all\",\"delivered_bytes\":120,\"closed_first\":\"client\","
		    "\"t_closed\":1790000003.500000,\"request_read\":\"all\","
		    "\"retry_after\":30,"
		    "\"replayed\":true,\"usage\":{\"input_tokens\":9,\"output_tokens\":3,\"cached_"
		    "tokens\":null,\"cache_write_tokens\":2,"
		    "\"reasoning_tokens\":0,\"final\":true},\"answer_complete\":true,"
		    "\"finish_reason\":\"stop\",\"response_model\":\"demo\",\"response_id\":\"r\\u00011\","
		    "\"usage_refused\":1,\"model_key\":\"" HEX_05 "\"}\n");
	call.answer_complete = false;
	call.answer_unfinished = true;
	assert_part(event_response(&context, &call, &out), "\"answer_complete\"",
		    "\"answer_complete\":false,\"finish_reason\":\"stop\"");
}

static void a_call_without_an_answer_is_closed_by_a_response_of_nulls(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.client_closed_ns = 4 * SECOND;
	call.server_closed_ns = 3 * SECOND;
	call.closed_first = CLOSER_SERVER;
	call.server_read_known = true;
	assert_line(event_response(&context, &call, &out),
		    "{\"kind\":\"response\",\"t\":1790000003.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"of\":\"aa000000000000000000000000000055\",\"status\":null,\"http.response."
		    "body.size\":null,"
		    "\"response_complete\":false,\"ended\":\"none\",\"t_first\":null,\"ms\":null,"
		    "\"delivered\":\"unknown\",\"delivered_bytes\":null,\"closed_first\":"
		    "\"server\",\"t_closed\":1790000003.000000,\"request_read\":\"part\",\"retry_after\":null,"
		    "\"replayed\":false,\"usage\":null,\"answer_complete\":null,\"finish_reason\":null,"
		    "\"response_model\":null,\"response_id\":null,\"usage_refused\":0,\"model_key\":null}\n");
	call.server_closed_ns = 0;
	assert_part(event_response(&context, &call, &out), "\"t\"",
		    "\"t\":1790000004.000000,\"run\"");
	call.client_closed_ns = 0;
	call.closed_first = CLOSER_NOBODY;
	assert_part(event_response(&context, &call, &out), "\"t\"",
		    "\"t\":1790000002.123456,\"run\"");
	assert_part(event_response(&context, &call, &out), "\"closed_first\"",
		    "\"closed_first\":null,\"t_closed\":null,\"request_read\":\"part\",\"retry_after\"");
	call.server_read_known = false;
	assert_part(event_response(&context, &call, &out), "\"request_read\"", "\"request_read\":\"unknown\",\"retry_after\"");
}

static void an_answer_that_could_not_be_seen_is_unknown_and_not_absent(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.undecidable = true;
	assert_part(event_response(&context, &call, &out), "\"status\"",
		    "\"status\":\"unknown\",\"http.response.body.size\":\"unknown\",\"response_"
		    "complete\":false,"
		    "\"ended\":\"unknown\",\"t_first\":\"unknown\",\"ms\":\"unknown\","
		    "\"delivered\":\"unknown\",");
}

static void an_answer_before_the_request_was_whole_counts_from_its_first_byte(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.sent_ns = 0;
	call.status = 413;
	call.response_first_ns = call.response_last_ns = 2 * SECOND + 1500000;
	call.ended = CALL_ENDED_RESET;
	call.delivered = DELIVERED_PART;
	call.delivered_bytes = 0;
	assert_part(event_response(&context, &call, &out), "\"status\"",
		    "\"status\":413,\"http.response.body.size\":0,\"response_complete\":false,"
		    "\"ended\":\"reset\","
		    "\"t_first\":1790000002.001500,\"ms\":1.500,\"delivered\":\"part\",\"delivered_"
		    "bytes\":0,");
}

/* ---- findings ---- */

static struct judgement judgement_of(enum finding finding, enum severity severity,
				     enum finding_row row)
{
	return (struct judgement){
		.verdict = {.finding = finding,
			    .severity = severity,
			    .row = row,
			    .column = COLUMN_NO_KEY,
			    .rule = "table"},
		.call_id = {2},
		.earlier_id = {1},
		.call_number = 2,
		.earlier_number = 1,
		.attempt = 2,
		.attempts = 3,
		.earlier_facts = {.status = 200,
				  .status_in_time = true,
				  .request_complete = true,
				  .complete_ns = 1},
	};
}

static void writes_a_finding_with_its_evidence_and_next_step(void **state)
{
	struct judgement judgement =
		judgement_of(FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH, ROW_SUCCESS);

	(void)state;
	judgement.verdict.cross_process = true;
	assert_line(event_finding(&context, &judgement, 5 * SECOND, &out),
		    "{\"kind\":\"finding\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"finding\":\"dup_after_success\",\"severity\":\"high\",\"of\":"
		    "\"02000000000000000000000000000000\","
		    "\"earlier\":\"01000000000000000000000000000000\",\"attempt\":2,\"attempts\":3,"
		    "\"cross_process\":true,"
		    "\"masked\":null,\"rule\":\"success/no_key: table\","
		    "\"text\":\"second identical request after a complete 200, no Idempotency-Key, "
		    "from another process\","
		    "\"next\":\"do not send again after a 2xx; where the same call is meant twice, "
		    "give each its own "
		    "Idempotency-Key\"}\n");
}

static void an_undecidable_finding_has_no_severity(void **state)
{
	struct judgement judgement =
		judgement_of(FINDING_UNDECIDABLE, SEVERITY_NULL, ROW_UNDECIDABLE);

	(void)state;
	assert_part(event_finding(&context, &judgement, 5 * SECOND, &out), "\"finding\":\"u",
		    "\"finding\":\"undecidable\",\"severity\":null,\"of\"");
}

static void the_rule_of_a_model_call_names_no_row_of_the_table(void **state)
{
	struct judgement judgement =
		judgement_of(FINDING_LLM_REPEAT, SEVERITY_INFO, ROW_UNDECIDABLE);

	(void)state;
	judgement.later_facts.class = CLASS_LLM;
	judgement.verdict.rule = "the answer was delivered";
	assert_part(event_finding(&context, &judgement, 5 * SECOND, &out), "\"rule\"",
		    "\"rule\":\"the answer was delivered\",\"text\":\"same prompt again after a "
		    "complete 200\",");
}

static void writes_an_upgrade_from_what_was_said_to_what_is_said_now(void **state)
{
	struct judgement judgement =
		judgement_of(FINDING_DUP_AFTER_TIMEOUT, SEVERITY_HIGH, ROW_CLIENT_GAVE_UP);

	(void)state;
	judgement.before =
		(struct verdict){.finding = FINDING_DUP_AFTER_TIMEOUT, .severity = SEVERITY_MEDIUM};
	assert_line(event_upgrade(&context, &judgement, 5 * SECOND, &out),
		    "{\"kind\":\"upgrade\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"finding\":\"dup_after_timeout\",\"severity\":\"high\",\"of\":"
		    "\"02000000000000000000000000000000\","
		    "\"earlier\":\"01000000000000000000000000000000\",\"attempt\":2,\"attempts\":3,"
		    "\"from\":\"dup_after_timeout medium\",\"to\":\"dup_after_timeout high\","
		    "\"because\":\"the earlier attempt was answered 200 after the client had given "
		    "up\"}\n");
}

static void a_finding_that_is_taken_back_goes_to_none(void **state)
{
	struct judgement judgement = judgement_of(FINDING_NONE, SEVERITY_NULL, ROW_REPLAYED);

	(void)state;
	judgement.before =
		(struct verdict){.finding = FINDING_UNDECIDABLE, .severity = SEVERITY_NULL};
	judgement.later_facts.replayed = true;
	assert_part(event_upgrade(&context, &judgement, 5 * SECOND, &out), "\"from\"",
		    "\"from\":\"undecidable\",\"to\":\"none\","
		    "\"because\":\"the later answer is a replay of an earlier one\"}\n");
}

static void writes_the_findings_of_one_call_without_an_earlier_one(void **state)
{
	struct call call = whole_call();

	(void)state;
	call.status = 200;
	call.response_body_bytes = 31;
	call.ended = CALL_ENDED_RESET;
	assert_line(
		event_call_finding(&context, &call, FINDING_TRUNCATED_RESPONSE, 5 * SECOND, &out),
		"{\"kind\":\"finding\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		"\"finding\":\"truncated_response\",\"severity\":\"info\",\"of\":"
		"\"aa000000000000000000000000000055\","
		"\"earlier\":null,\"attempt\":null,\"attempts\":null,\"cross_process\":false,"
		"\"masked\":null,"
		"\"rule\":\"call\",\"text\":\"status 200 came, but its body ended after 31 bytes, "
		"before its framing "
		"said so (reset)\",\"next\":\"check that an answer is whole before using it, and "
		"find out who ended "
		"the connection\"}\n");
	call.client_closed_ns = call.sent_ns + 50 * 1000000;
	assert_part(event_call_finding(&context, &call, FINDING_ABANDONED_CALL, 5 * SECOND, &out),
		    "\"text\"",
		    "\"text\":\"the request was sent whole, and the client closed after 50 ms, "
		    "before a final status\","
		    "\"next\":\"make the client's time limit longer than the server's, and ask the "
		    "server what became of "
		    "the call\"}\n");
	call.client_died = true;
	assert_part(event_call_finding(&context, &call, FINDING_ABANDONED_CALL, 5 * SECOND, &out),
		    "\"text\"",
		    "\"text\":\"the request was sent whole, and the client died or reset after 50 "
		    "ms, before a final "
		    "status\",");
	call.client_closed_ns = 0;
	assert_part(event_call_finding(&context, &call, FINDING_ABANDONED_CALL, 5 * SECOND, &out),
		    "\"text\"",
		    "\"text\":\"the request was sent whole, and the client was gone before a final "
		    "status\",");
}

/* ---- run and connections ---- */

static void starts_with_what_the_run_is(void **state)
{
	struct judge_options options;

	(void)state;
	judge_options_defaults(&options);
	assert_line(event_start(&context, &options, &out),
		    "{\"kind\":\"start\",\"t\":1790000001.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"version\":\"0.1.0\","
		    "\"schema\":1,\"door\":\"kprobe\",\"kernel\":\"6.1.0-18-amd64\","
		    "\"boot_id\":\"b0070000000000000000000000000000\",\"scope\":\"tree\","
		    "\"policy\":null,\"options\":{"
		    "\"fail_on\":\"medium\",\"strict\":false,\"allow_incomplete\":false,\"allow_"
		    "blind\":[],"
		    "\"max_findings_per_call\":1000,\"across_processes\":true,\"schema_version\":\"v1\"},\"canary\":\"seen\"}"
		    "\n");
	snprintf(run.canary, sizeof(run.canary), "none");
	assert_part(event_start(&context, &options, &out), "\"canary\"", "\"canary\":null}\n");
	snprintf(run.canary, sizeof(run.canary), "seen");
}

static struct connection_name connection_named(void)
{
	return (struct connection_name){.client = loopback(51234),
					.server = loopback(8765),
					.process = {.tgid = 4101, .comm = "fl\xff\x1b"}};
}

static void writes_a_hole_with_its_side_place_and_cause(void **state)
{
	struct connection_name name = connection_named();

	(void)state;
	assert_line(
		event_hole(&context, &name, true, 100, 28, WIRE_CAUSE_RING_FULL, 5 * SECOND, &out),
		"{\"kind\":\"hole\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\",\"side\":"
		"\"client\","
		"\"connection\":\"127.0.0.1:51234 -> 127.0.0.1:8765\",\"offset\":100,\"length\":28,"
		"\"cause\":\"ring_full\"}\n");
}

static void writes_a_blind_stream_with_who_and_how_much(void **state)
{
	struct connection_name name = connection_named();

	(void)state;
	assert_line(event_blind(&context, &name, BLIND_TLS, 517, 4096, 5 * SECOND, &out),
		    "{\"kind\":\"blind\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"connection\":\"127.0.0.1:51234 -> "
		    "127.0.0.1:8765\",\"blind_kind\":\"tls\",\"pid\":4101,"
		    "\"comm\":\"fl\\u00ff\\u001b\",\"bytes_out\":517,\"bytes_in\":4096}\n");
	name.process.tgid = 0;
	assert_part(event_blind(&context, &name, BLIND_OTHER, 1, 0, 5 * SECOND, &out),
		    "\"blind_kind\"",
		    "\"blind_kind\":\"other\",\"pid\":\"unknown\",\"comm\":\"unknown\",\"bytes_"
		    "out\":1,");
}

static void writes_a_broken_stream_with_its_reason(void **state)
{
	struct connection_name name = connection_named();

	(void)state;
	assert_line(event_broken(&context, &name, false, 77, "bad chunk size", 5 * SECOND, &out),
		    "{\"kind\":\"broken\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"connection\":\"127.0.0.1:51234 -> "
		    "127.0.0.1:8765\",\"side\":\"server\",\"offset\":77,"
		    "\"reason\":\"bad chunk size\"}\n");
}

static void links_a_hop_to_its_parent(void **state)
{
	struct hop hop = {.call_id = {[0] = 0xab, [15] = 0x01}, .parent_id = {[0] = 0xcd, [15] = 0x02}};

	(void)state;
	assert_line(event_hop(&context, &hop, 5 * SECOND, &out),
		    "{\"kind\":\"hop\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"of\":\"ab000000000000000000000000000001\",\"parent\":\"cd000000000000000000000000000002\"}\n");
}

static void writes_a_connection_off_loopback_and_a_mark(void **state)
{
	struct connection_name name = connection_named();

	(void)state;
	assert_line(event_off_loopback(&context, &name, true, 5 * SECOND, &out),
		    "{\"kind\":\"off_loopback\",\"t\":1790000005.000000,\"run\":"
		    "\"00c0ffee00c0ffee\",\"pid\":4101,"
		    "\"comm\":\"fl\\u00ff\\u001b\",\"dst\":\"127.0.0.1:8765\",\"refused\":true}\n");
	assert_line(event_mark(&context, BYTES("a\"b"), 5 * SECOND, &out),
		    "{\"kind\":\"mark\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"label\":\"a\\\"b\"}\n");
	assert_line(event_mark(&context, (struct bytes){0}, 5 * SECOND, &out),
		    "{\"kind\":\"mark\",\"t\":1790000005.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"label\":\"\"}\n");
}

static void names_every_cause_of_a_hole(void **state)
{
	static const char *const names[WIRE_CAUSE_COUNT] = {"none",	"ring_full", "fault",
							    "pages",	"truncated", "missed",
							    "fastopen", "urgent",    "muted",
							    "share"};

	(void)state;
	for (unsigned int cause = 0; cause < WIRE_CAUSE_COUNT; cause++)
		assert_string_equal(cause_name(cause), names[cause]);
	assert_null(cause_name(WIRE_CAUSE_COUNT));
}

static void sums_the_run_up_with_its_reconciliation(void **state)
{
	static const struct closing closing = {
		.command_status = 0,
		.survivor_count = 1,
		.survivors = {{.pid = 4200, .comm = "daemon"}},
		.ring_size_bytes = 67108864,
		.ring_peak_bytes = 4096,
		.wall_ms = 1234,
		.cpu_ms = 56,
		.has_store = true,
		.store_rows = 12,
		.store_lost = 3,
	};
	static const struct counters counters = {
		.value = {[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_PAGES] = 9,
			  [WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_MUTED] = 1000,
			  [WIRE_COUNTER_LIFECYCLE_LOST] = 2,
			  [WIRE_COUNTER_NO_FLOW] = 3,
			  [WIRE_COUNTER_RECORDS] = 77},
		.recursion_misses = 4,
	};
	static const struct blind_processes blind = {
		.row = {[0] = {{.tgid = 4101, .comm = "curl"}, {[BLIND_TLS] = 1, [BLIND_OTHER] = 1}, 17, 9},
			[BLIND_PROCESSES_MAX] = {{.tgid = 0}, {[BLIND_OTHER] = 1}, 5, 0}},
		.count = 1,
	};
	struct summary summary = {
		.closing = &closing,
		.counters = &counters,
		.exit_status = 10,
		.requests = 5,
		.mutating = 4,
		.findings = {[FINDING_NONE] = 9,
			     [FINDING_UNDECIDABLE] = 1,
			     [FINDING_DUP_AFTER_TIMEOUT] = 2},
		.attempts = 3,
		.accepted_bytes = 100,
		.message_bytes = 60,
		.hole_bytes = 9,
		.blind_bytes = 31,
		.blind_streams = {[BLIND_TLS] = 1, [BLIND_OTHER] = 2},
		.blind_processes = &blind,
		.broken_streams = 1,
		.evicted = 6,
		.usage_refused = 4,
		.now_ns = 9 * SECOND,
		.incomplete = {"bytes were lost", "a TLS stream could not be read"},
		.incomplete_count = 2,
	};

	(void)state;
	assert_line(event_summary(&context, &summary, &out),
		    "{\"kind\":\"summary\",\"t\":1790000009.000000,\"run\":\"00c0ffee00c0ffee\","
		    "\"command\":{\"name\":\"flaky-tool\",\"arguments\":3},\"command_status\":0,"
		    "\"exit\":10,\"requests\":5,"
		    "\"mutating\":4,\"findings\":{\"undecidable\":1,\"dup_after_timeout\":2},"
		    "\"attempts\":3,"
		    "\"bytes\":{\"accepted\":100,\"in_messages\":60,\"in_holes\":9,\"in_blind\":31}"
		    ","
		    "\"drops\":{\"pages\":9,\"no_flow\":3,\"lifecycle_records\":2},\"recursion_"
		    "misses\":4,"
		    "\"ring\":{\"size\":67108864,\"peak\":4096},\"survivors\":[{\"pid\":4200,"
		    "\"comm\":\"daemon\"}],"
		    "\"wall_ms\":1234,\"cpu_ms\":56,\"incomplete\":[\"bytes were lost\",\"a TLS "
		    "stream could not be read\"],"
		    "\"blind\":{\"tls\":1,\"other\":2},\"blind_by\":["
		    "{\"pid\":4101,\"comm\":\"curl\",\"streams\":{\"tls\":1,\"other\":1},\"bytes_out\":17,\"bytes_in\":9},"
		    "{\"pid\":\"unknown\",\"comm\":\"unknown\",\"streams\":{\"other\":1},\"bytes_out\":5,\"bytes_in\":0}],"
		    "\"broken\":1,\"evicted\":6,\"survivor_"
		    "count\":1,\"usage_refused\":4,\"store\":{\"rows\":12,\"lost\":3}}\n");
}

static void a_summary_without_a_command_has_no_status_of_one(void **state)
{
	static const struct closing closing = {.command_status = -1,
					       .survivor_count = CLOSING_SURVIVORS_MAX + 5};
	static const struct counters counters;
	struct summary summary = {.closing = &closing, .counters = &counters, .now_ns = 9 * SECOND};

	(void)state;
	run.command[0] = 0;
	assert_part(event_summary(&context, &summary, &out), "\"command\"",
		    "\"command\":null,\"command_status\":null,\"exit\":0,\"requests\":0,"
		    "\"mutating\":0,\"findings\":{},");
	assert_part(event_summary(&context, &summary, &out), "\"survivor_count\"",
		    "\"survivor_count\":37,\"usage_refused\":0,\"store\":null}\n");
	snprintf(run.command, sizeof(run.command), "flaky-tool");
}

static void writes_nothing_rather_than_half_a_line(void **state)
{
	/* No growth can succeed from here: buffer_reserve() refuses before it touches data. */
	struct buffer full = {.size = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};
	struct call call = whole_call();

	(void)state;
	assert_int_equal(ledger_line(&context, &call, &full), -ENOMEM);
	assert_int_equal(full.size, SIZE_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_every_field_of_a_whole_request_in_order),
		cmocka_unit_test(a_request_event_holds_the_ledger_fields_once_each),
		cmocka_unit_test(writes_null_for_what_is_known_to_be_absent),
		cmocka_unit_test(writes_unknown_with_a_reason_for_what_could_not_be_seen),
		cmocka_unit_test(a_body_with_bytes_missing_has_no_hash_and_says_why),
		cmocka_unit_test(a_field_that_may_have_been_in_a_cut_head_is_unknown),
		cmocka_unit_test(a_key_that_is_no_single_key_is_unknown),
		cmocka_unit_test(marks_a_line_that_holds_bytes_that_are_not_utf8),
		cmocka_unit_test(keeps_secrets_out_of_path_query_and_host),
		cmocka_unit_test(writes_the_mark_and_the_cgroup_where_there_are_such),
		cmocka_unit_test(writes_ipv6_endpoints_in_brackets),
		cmocka_unit_test(names_every_class_end_and_delivery),
		cmocka_unit_test(writes_every_field_of_a_whole_response_in_order),
		cmocka_unit_test(a_call_without_an_answer_is_closed_by_a_response_of_nulls),
		cmocka_unit_test(an_answer_that_could_not_be_seen_is_unknown_and_not_absent),
		cmocka_unit_test(an_answer_before_the_request_was_whole_counts_from_its_first_byte),
		cmocka_unit_test(writes_a_finding_with_its_evidence_and_next_step),
		cmocka_unit_test(an_undecidable_finding_has_no_severity),
		cmocka_unit_test(the_rule_of_a_model_call_names_no_row_of_the_table),
		cmocka_unit_test(writes_an_upgrade_from_what_was_said_to_what_is_said_now),
		cmocka_unit_test(a_finding_that_is_taken_back_goes_to_none),
		cmocka_unit_test(writes_the_findings_of_one_call_without_an_earlier_one),
		cmocka_unit_test(starts_with_what_the_run_is),
		cmocka_unit_test(writes_a_hole_with_its_side_place_and_cause),
		cmocka_unit_test(writes_a_blind_stream_with_who_and_how_much),
		cmocka_unit_test(writes_a_broken_stream_with_its_reason),
		cmocka_unit_test(writes_a_connection_off_loopback_and_a_mark),
		cmocka_unit_test(names_every_cause_of_a_hole),
		cmocka_unit_test(links_a_hop_to_its_parent),
		cmocka_unit_test(sums_the_run_up_with_its_reconciliation),
		cmocka_unit_test(a_summary_without_a_command_has_no_status_of_one),
		cmocka_unit_test(writes_nothing_rather_than_half_a_line),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
