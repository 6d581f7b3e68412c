/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Alerts for people: whole blocks compared, renewal, folding, colour, caps, and text that cannot
 * move the cursor.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "alert.h"

#define MS 1000000ULL
/* 2026-10-01 12:00:00 UTC, less the 1 s that the monotonic clock shows at the first attempt. */
#define WALL_OFFSET ((1790856000LL - 1) * 1000000000LL)
#define START 1000000000ULL

static const struct alert_style plain;
static struct fingerprinter *fingerprinter;
static struct http_head head;

static int set_up(void **state)
{
	static const uint8_t salt[32] = {7};

	fingerprinter = fingerprinter_new(salt);
	*state = alerts_new(fingerprinter);
	return *state ? 0 : -1;
}

static int tear_down(void **state)
{
	alerts_free(*state);
	fingerprinter_free(fingerprinter);
	return 0;
}

static struct endpoint loopback(uint16_t port)
{
	return (struct endpoint){.address = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1},
				 .port = port};
}

static struct call charge_call(void)
{
	return (struct call){
		.server = loopback(8765),
		.process = {.tgid = 4101, .start_ns = 5, .comm = "flaky-tool"},
		.number = 2,
		.first_ns = START + 193 * MS,
		.request_complete = true,
		.head = &head,
		.method = BYTES("POST"),
		.path = BYTES("/v1/charges"),
		.has_fingerprint = true,
		.fingerprint = {{1}},
	};
}

/* The pair of the design's opening story. */
static struct judgement timeout_judgement(void)
{
	return (struct judgement){
		.verdict = {.finding = FINDING_DUP_AFTER_TIMEOUT,
			    .severity = SEVERITY_HIGH,
			    .row = ROW_CLIENT_GAVE_UP,
			    .column = COLUMN_NO_KEY,
			    .rule = "table"},
		.call_number = 2,
		.earlier_number = 1,
		.attempt = 2,
		.attempts = 2,
		.group = {{1}},
		.earlier_facts = {.first_ns = START + 123 * MS,
				  .closed_ns = START + 173 * MS,
				  .closed_first = CLOSER_CLIENT,
				  .status = 200,
				  .status_ns = START + 224 * MS,
				  .complete_ns = START + 224 * MS,
				  .request_complete = true,
				  .tgid = 4101,
				  .process = 5},
		.later_facts = {.first_ns = START + 193 * MS,
				.status = 200,
				.status_ns = START + 194 * MS,
				.complete_ns = START + 194 * MS,
				.status_in_time = true,
				.request_complete = true,
				.tgid = 4101,
				.process = 5},
	};
}

static bool note(struct alerts *alerts, const struct judgement *judgement, const struct call *call)
{
	bool renew;

	assert_int_equal(alerts_note(alerts, judgement, call, &renew), 0);
	return renew;
}

static void assert_text(struct buffer *out, const char *expected)
{
	assert_int_equal(buffer_append_byte(out, 0), 0);
	assert_string_equal((char *)out->data, expected);
	buffer_done(out);
}

static void assert_block(const struct alerts *alerts, const struct alert_style *style,
			 const char *expected)
{
	const struct digest group = {{1}};
	struct buffer out = {0};

	assert_int_equal(alerts_block(alerts, &group, WALL_OFFSET, style, &out), 0);
	assert_text(&out, expected);
}

static void assert_all(const struct alerts *alerts, enum severity at_least, const char *expected)
{
	struct buffer out = {0};

	assert_int_equal(alerts_all(alerts, at_least, WALL_OFFSET, &plain, &out), 0);
	assert_text(&out, expected);
}

/* ---- blocks ---- */

#define TIMEOUT_BLOCK                                                                              \
	"nightclerk: HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8765, attempt 2 of 2, " \
	"2026-10-01 UTC\n"                                                                         \
	"  attempt 1  12:00:00.123  pid 4101 flaky-tool  no key  client gave up after 50 ms; the " \
	"server answered 200 "                                                                     \
	"at 101 ms, to nobody\n"                                                                   \
	"  attempt 2  12:00:00.193  pid 4101 flaky-tool  no key  200 after 1 ms\n"                 \
	"  evidence   second identical POST after the client gave up on the earlier one, which "   \
	"was answered 200 all "                                                                    \
	"the same, no Idempotency-Key\n"                                                           \
	"  next       send one Idempotency-Key on both attempts, or ask the server what became "   \
	"of the earlier one "                                                                      \
	"before sending again\n"

static void shows_both_attempts_the_evidence_and_the_next_step(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	assert_true(note(*state, &judgement, &call));
	assert_block(*state, &plain, TIMEOUT_BLOCK);
}

static void folds_at_the_given_width_with_a_hanging_indent(void **state)
{
	const struct alert_style narrow = {.width = 72};
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	note(*state, &judgement, &call);
	assert_block(*state, &narrow,
		     "nightclerk: HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8765,\n"
		     "             attempt 2 of 2, 2026-10-01 UTC\n"
		     "  attempt 1  12:00:00.123  pid 4101 flaky-tool  no key  client gave up\n"
		     "             after 50 ms; the server answered 200 at 101 ms, to nobody\n"
		     "  attempt 2  12:00:00.193  pid 4101 flaky-tool  no key  200 after 1 ms\n"
		     "  evidence   second identical POST after the client gave up on the\n"
		     "             earlier one, which was answered 200 all the same, no\n"
		     "             Idempotency-Key\n"
		     "  next       send one Idempotency-Key on both attempts, or ask the\n"
		     "             server what became of the earlier one before sending again\n");
}

static void breaks_a_word_that_is_wider_than_the_line(void **state)
{
	const struct alert_style tiny = {.width = 1}; /* taken as 40 */
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();
	const struct digest group = {{1}};
	struct buffer out = {0};
	static const char expected[] = "nightclerk: HIGH dup_after_timeout: POST\n"
				       "             /\xc3\xa9xxxxxxxxxxxxxxxxxxxxxxxxx\n"
				       "             xxxxxxxxxx at\n"
				       "             127.0.0.1:8765, attempt 2\n"
				       "             of 2, 2026-10-01 UTC\n";

	call.path = BYTES("/\xc3\xa9xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
	note(*state, &judgement, &call);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &tiny, &out), 0);
	assert_memory_equal(out.data, expected, sizeof(expected) - 1);
	buffer_done(&out);
}

static void colours_the_severity_word_and_nothing_else(void **state)
{
	static const struct {
		enum finding finding;
		enum severity severity;
		const char *start;
	} cases[] = {
		{FINDING_DUP_AFTER_TIMEOUT, SEVERITY_HIGH,
		 "nightclerk: \x1b[31mHIGH\x1b[0m dup_after_timeout: POST /v1"},
		{FINDING_DUP_AFTER_TIMEOUT, SEVERITY_MEDIUM,
		 "nightclerk: \x1b[33mMEDIUM\x1b[0m dup_after_timeout: POST /v1"},
		{FINDING_DUP_AFTER_TIMEOUT, SEVERITY_LOW,
		 "nightclerk: \x1b[36mLOW\x1b[0m dup_after_timeout: POST /v1"},
		{FINDING_DUP_AFTER_TIMEOUT, SEVERITY_INFO,
		 "nightclerk: \x1b[36mINFO\x1b[0m dup_after_timeout: POST /v1"},
		{FINDING_UNDECIDABLE, SEVERITY_NULL,
		 "nightclerk: \x1b[35mUNDECIDABLE\x1b[0m: POST /v1"},
	};
	const struct alert_style colourful = {.colour = true};
	const struct digest group = {{1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judgement judgement = timeout_judgement();
		struct call call = charge_call();
		struct buffer out = {0};
		size_t escapes = 0;

		judgement.verdict.finding = cases[i].finding;
		judgement.verdict.severity = cases[i].severity;
		note(*state, &judgement, &call);
		assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &colourful, &out), 0);
		assert_memory_equal(out.data, cases[i].start, strlen(cases[i].start));
		for (size_t j = 0; j < out.size; j++)
			escapes += out.data[j] == 0x1b;
		assert_int_equal(escapes, 2);
		buffer_done(&out);
	}
}

static void colour_does_not_count_as_width(void **state)
{
	const struct alert_style style = {.colour = true, .width = 72};
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();
	const struct digest group = {{1}};
	struct buffer out = {0};
	static const char expected[] =
		"nightclerk: \x1b[31mHIGH\x1b[0m dup_after_timeout: POST /v1/charges at "
		"127.0.0.1:8765,\n             attempt 2 of 2, 2026-10-01 UTC\n";

	note(*state, &judgement, &call);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &style, &out), 0);
	assert_memory_equal(out.data, expected, sizeof(expected) - 1);
	buffer_done(&out);
}

static void shows_keys_processes_tools_and_a_rule_of_its_own(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	judgement.verdict = (struct verdict){.finding = FINDING_KEY_CHANGED_ON_RETRY,
					     .severity = SEVERITY_LOW,
					     .row = ROW_SERVER_ENDED,
					     .column = COLUMN_NEW_KEY,
					     .rule = "method is idempotent",
					     .cross_process = true};
	judgement.attempt = 12;
	judgement.attempts = 12;
	judgement.earlier_facts.tgid = 77;
	judgement.earlier_facts.idem_state = IDEM_PRESENT;
	judgement.earlier_facts.key = 1;
	judgement.earlier_facts.status = 0;
	judgement.earlier_facts.closed_first = CLOSER_SERVER;
	judgement.later_facts.idem_state = IDEM_PRESENT;
	judgement.later_facts.key = 2;
	judgement.later_facts.status = 0;
	call.method = BYTES("PUT");
	call.query = BYTES("a=1");
	call.has_query = true;
	call.tool = BYTES("create_charge");
	call.model = BYTES("m\n1");
	call.idem_state = IDEM_PRESENT;
	call.idem = BYTES("k\x1b-2");
	note(*state, &judgement, &call);
	assert_block(*state, &plain,
		     "nightclerk: LOW key_changed_on_retry: PUT /v1/charges?a=1 at 127.0.0.1:8765, "
		     "tool create_charge, "
		     "model m\\x0a1, attempt 12 of 12, 2026-10-01 UTC\n"
		     "  earlier    12:00:00.123  pid 77               another key    server closed "
		     "after 50 ms without an "
		     "answer\n"
		     "  attempt 12  12:00:00.193  pid 4101 flaky-tool  key \"k\\x1b-2\"  no answer "
		     "yet\n"
		     "  evidence   12th identical PUT after the server ended the connection of the "
		     "earlier one without a "
		     "final status, another Idempotency-Key, from another process\n"
		     "  rule       method is idempotent\n"
		     "  next       make the Idempotency-Key once for each operation, outside of "
		     "the retry loop, and send it "
		     "on every attempt\n");
}

/* The earlier process is named as well when it is another one; of a pid used again nobody's name is lent. */
static void names_the_process_of_the_earlier_attempt(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call(), other = charge_call();
	struct buffer out = {0};
	const struct digest group = {{1}};

	other.process = (struct process){.tgid = 77, .start_ns = 900, .comm = "cron\x1b[1m"};
	alerts_meet(*state, &other);
	judgement.verdict.cross_process = true;
	judgement.earlier_facts.tgid = 77;
	judgement.earlier_facts.process = attempt_process_of(&other.process);
	note(*state, &judgement, &call);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &plain, &out), 0);
	assert_non_null(memmem(out.data, out.size, "  pid 77 cron\\x1b[1m   no key  ", 31));
	buffer_clear(&out);
	judgement.earlier_facts.process++;
	note(*state, &judgement, &call);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &plain, &out), 0);
	assert_non_null(memmem(out.data, out.size, "  pid 77               no key  ", 31));
	buffer_done(&out);
}

struct key_case {
	enum idem_state earlier, later;
	uint64_t earlier_key;
	const char *earlier_text, *later_text;
};

static void shows_what_is_known_of_the_keys(void **state)
{
	static const struct key_case cases[] = {
		{IDEM_PRESENT, IDEM_PRESENT, 2, "key \"order-7\"  client", "key \"order-7\"  200"},
		{IDEM_PRESENT, IDEM_ABSENT, 2, "a key   client", "no key  200"},
		{IDEM_UNKNOWN, IDEM_INVALID, 0, "key not seen    client", "a list of keys  200"},
	};
	const struct digest group = {{1}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct judgement judgement = timeout_judgement();
		struct call call = charge_call();
		struct buffer out = {0};

		judgement.earlier_facts.idem_state = cases[i].earlier;
		judgement.earlier_facts.key = cases[i].earlier_key;
		judgement.later_facts.idem_state = cases[i].later;
		judgement.later_facts.key = 2;
		call.idem_state = cases[i].later;
		call.idem = BYTES("order-7");
		note(*state, &judgement, &call);
		assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &plain, &out), 0);
		assert_int_equal(buffer_append_byte(&out, 0), 0);
		assert_non_null(strstr((char *)out.data, cases[i].earlier_text));
		assert_non_null(strstr((char *)out.data, cases[i].later_text));
		buffer_done(&out);
	}
}

static void keeps_secrets_out_of_the_target(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();
	const struct digest group = {{1}};
	struct buffer out = {0};
	char bot[18], token[18], expected[200];

	call.path = BYTES("/bot12:AB/send");
	call.query = BYTES("token=hunter2&x=1");
	call.has_query = true;
	note(*state, &judgement, &call);
	secret_text(fingerprinter, BYTES("bot12:AB"), bot);
	secret_text(fingerprinter, BYTES("hunter2"), token);
	snprintf(expected, sizeof(expected),
		 "nightclerk: HIGH dup_after_timeout: POST /%s/send?token=%s&x=1 at "
		 "127.0.0.1:8765, ",
		 bot, token);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &plain, &out), 0);
	assert_memory_equal(out.data, expected, strlen(expected));
	buffer_done(&out);
}

static void says_what_it_can_where_the_call_is_not_known(void **state)
{
	struct judgement judgement = timeout_judgement();

	judgement.earlier_facts.tgid = 0;
	note(*state, &judgement, NULL);
	assert_block(*state, &plain,
		     "nightclerk: HIGH dup_after_timeout: attempt 2 of 2, 2026-10-01 UTC\n"
		     "  attempt 1  12:00:00.123  process not seen  no key  client gave up after 50 "
		     "ms; the server answered "
		     "200 at 101 ms, to nobody\n"
		     "  attempt 2  12:00:00.193  pid 4101          no key  200 after 1 ms\n"
		     "  evidence   second identical request after the client gave up on the "
		     "earlier one, which was answered "
		     "200 all the same, no Idempotency-Key\n"
		     "  next       send one Idempotency-Key on both attempts, or ask the server "
		     "what became of the earlier "
		     "one before sending again\n");
}

static void says_how_a_call_went_on_after_it_was_noted(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	judgement.later_facts.status = 0;
	judgement.later_facts.status_in_time = false;
	judgement.later_facts.complete_ns = 0;
	note(*state, &judgement, &call);
	call.status = 200;
	call.status_ns = call.response_last_ns = START + 194 * MS;
	call.status_in_time = true;
	call.response_complete = true;
	call.ended = CALL_ENDED_LENGTH;
	call.delivered = DELIVERED_ALL;
	alerts_update(*state, &call);
	assert_block(*state, &plain, TIMEOUT_BLOCK);
}

static void a_stranger_changes_no_block(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	alerts_update(*state, &call);
	note(*state, &judgement, &call);
	call.number = 3;
	call.status = 500;
	alerts_update(*state, &call);
	call.number = 2;
	call.fingerprint.byte[0] = 9;
	alerts_update(*state, &call);
	assert_block(*state, &plain, TIMEOUT_BLOCK);
}

/* ---- renewal ---- */

static void renews_at_the_second_third_tenth_hundredth_attempt(void **state)
{
	struct judgement judgement = timeout_judgement();

	for (uint64_t attempt = 2; attempt <= 1000; attempt++) {
		judgement.attempt = judgement.attempts = attempt;
		judgement.call_number = attempt;
		assert_int_equal(note(*state, &judgement, NULL),
				 attempt == 2 || attempt == 3 || attempt == 10 || attempt == 100 ||
					 attempt == 1000);
	}
}

static void renews_when_the_severity_rises_and_not_when_it_falls(void **state)
{
	struct judgement judgement = timeout_judgement();

	judgement.verdict.severity = SEVERITY_LOW;
	assert_true(note(*state, &judgement, NULL));
	assert_false(note(*state, &judgement, NULL));
	judgement.verdict.severity = SEVERITY_NULL;
	assert_true(note(*state, &judgement, NULL));
	judgement.verdict.severity = SEVERITY_MEDIUM;
	assert_true(note(*state, &judgement, NULL));
	judgement.verdict.severity = SEVERITY_INFO;
	assert_false(note(*state, &judgement, NULL));
	judgement.verdict.severity = SEVERITY_HIGH;
	assert_true(note(*state, &judgement, NULL));
}

static void shows_the_worst_pair_and_of_equals_the_latest(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct bytes call;
	const void *position = NULL;

	note(*state, &judgement, NULL);
	judgement.call_number = 3;
	judgement.verdict.severity = SEVERITY_LOW;
	note(*state, &judgement, NULL);
	assert_int_equal(alerts_next(*state, &position, &call)->call_number, 2);
	judgement.call_number = 4;
	judgement.verdict.severity = SEVERITY_HIGH;
	note(*state, &judgement, NULL);
	position = NULL;
	assert_int_equal(alerts_next(*state, &position, &call)->call_number, 4);
}

static void a_finding_that_is_taken_back_uncovers_the_next_worst(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct bytes call;
	const void *position = NULL;

	judgement.verdict.severity = SEVERITY_MEDIUM;
	note(*state, &judgement, NULL);
	judgement.call_number = 3;
	judgement.verdict.severity = SEVERITY_HIGH;
	note(*state, &judgement, NULL);
	judgement.verdict = (struct verdict){.finding = FINDING_NONE};
	assert_false(note(*state, &judgement, NULL));
	assert_int_equal(alerts_next(*state, &position, &call)->call_number, 2);
	judgement.call_number = 2;
	assert_false(note(*state, &judgement, NULL));
	position = NULL;
	assert_null(alerts_next(*state, &position, &call));
	assert_block(*state, &plain, "");
	assert_all(*state, SEVERITY_INFO, "");
}

static void a_change_keeps_what_was_known_of_the_call(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();

	judgement.verdict.severity = SEVERITY_MEDIUM;
	note(*state, &judgement, &call);
	judgement.verdict.severity = SEVERITY_HIGH;
	assert_true(note(*state, &judgement, NULL));
	assert_block(*state, &plain, TIMEOUT_BLOCK);
}

static void a_group_that_is_not_known_gives_no_block(void **state)
{
	struct judgement judgement = timeout_judgement();

	judgement.verdict.finding = FINDING_NONE;
	assert_false(note(*state, &judgement, NULL));
	assert_block(*state, &plain, "");
}

/* ---- all of them ---- */

static void note_group(struct alerts *alerts, uint8_t group, uint64_t number,
		       enum severity severity)
{
	struct judgement judgement = timeout_judgement();

	judgement.group.byte[0] = group;
	judgement.call_number = number;
	judgement.verdict.severity = severity;
	if (severity == SEVERITY_NULL)
		judgement.verdict.finding = FINDING_UNDECIDABLE;
	note(alerts, &judgement, NULL);
}

/*
 * The severity words of all blocks, in order, and the number of each group's later call as its
 * seconds.
 */
static void assert_order(const struct alerts *alerts, enum severity at_least, const char *expected)
{
	struct buffer out = {0};
	char words[256] = "";

	assert_int_equal(alerts_all(alerts, at_least, WALL_OFFSET, &plain, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	for (const char *at = (char *)out.data; (at = strstr(at, "nightclerk: ")) != NULL; at++) {
		size_t used = strlen(words);

		snprintf(words + used, sizeof(words) - used, "%.*s ", (int)strcspn(at + 12, " :"),
			 at + 12);
	}
	assert_string_equal(words, expected);
	buffer_done(&out);
}

static void shows_all_blocks_worst_first_and_undecidable_as_medium(void **state)
{
	note_group(*state, 1, 10, SEVERITY_LOW);
	note_group(*state, 2, 11, SEVERITY_NULL);
	note_group(*state, 3, 12, SEVERITY_HIGH);
	note_group(*state, 4, 13, SEVERITY_INFO);
	note_group(*state, 5, 14, SEVERITY_MEDIUM);
	assert_order(*state, SEVERITY_INFO, "HIGH MEDIUM UNDECIDABLE LOW INFO ");
	assert_order(*state, SEVERITY_LOW, "HIGH MEDIUM UNDECIDABLE LOW ");
	assert_order(*state, SEVERITY_MEDIUM, "HIGH MEDIUM UNDECIDABLE ");
	assert_order(*state, SEVERITY_HIGH, "HIGH ");
}

static void shows_equals_in_order_of_time(void **state)
{
	struct judgement late = timeout_judgement(), early = timeout_judgement();
	struct buffer out = {0};
	const char *first;

	late.group.byte[0] = 8;
	late.call_number = 20;
	late.attempt = 7;
	early.group.byte[0] = 9;
	early.call_number = 19;
	early.attempt = 6;
	note(*state, &late, NULL);
	note(*state, &early, NULL);
	assert_int_equal(alerts_all(*state, SEVERITY_LOW, WALL_OFFSET, &plain, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	first = strstr((char *)out.data, "attempt 6 of");
	assert_non_null(first);
	assert_non_null(strstr(first, "attempt 7 of"));
	buffer_done(&out);
}

static void lists_the_groups_for_other_reports(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();
	const void *position = NULL;
	struct bytes text;

	note(*state, &judgement, &call);
	note_group(*state, 5, 14, SEVERITY_MEDIUM);
	assert_int_equal(alerts_next(*state, &position, &text)->call_number, 2);
	assert_true(bytes_equal(text, BYTES("POST /v1/charges at 127.0.0.1:8765")));
	assert_int_equal(alerts_next(*state, &position, &text)->call_number, 14);
	assert_int_equal(text.size, 0);
	assert_null(alerts_next(*state, &position, &text));
}

static void counts_what_is_beyond_the_cap(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct buffer out = {0};
	static const char expected[] = "nightclerk: and 2 more, beyond the 10000 groups of "
				       "attempts that are kept; the events hold them\n";

	judgement.verdict.severity = SEVERITY_LOW;
	for (uint32_t i = 0; i < ALERT_GROUPS_MAX; i++) {
		memcpy(judgement.group.byte, &i, sizeof(i));
		assert_true(note(*state, &judgement, NULL));
	}
	judgement.group.byte[31] = 1;
	judgement.verdict.severity = SEVERITY_HIGH;
	assert_false(note(*state, &judgement, NULL));
	judgement.verdict.severity = SEVERITY_MEDIUM;
	assert_false(note(*state, &judgement, NULL));
	judgement.before.finding = FINDING_DUP_AFTER_TIMEOUT; /* a change of what was counted */
	assert_false(note(*state, &judgement, NULL));
	judgement.before.finding = FINDING_NONE;
	judgement.verdict.severity = SEVERITY_INFO;
	assert_false(note(*state, &judgement, NULL));
	assert_all(*state, SEVERITY_MEDIUM, expected);
	assert_int_equal(alerts_all(*state, SEVERITY_LOW, WALL_OFFSET, &plain, &out), 0);
	assert_memory_equal(out.data + out.size - (sizeof(expected) - 1), expected,
			    sizeof(expected) - 1);
	buffer_done(&out);
}

static void findings_of_severity_info_take_half_of_the_room_at_most(void **state)
{
	struct judgement judgement = timeout_judgement();

	judgement.verdict.severity = SEVERITY_INFO;
	for (uint32_t i = 0; i < ALERT_GROUPS_MAX; i++) {
		memcpy(judgement.group.byte, &i, sizeof(i));
		assert_int_equal(note(*state, &judgement, NULL), i < ALERT_GROUPS_MAX / 2);
	}
	judgement.verdict.severity = SEVERITY_LOW;
	assert_true(note(*state, &judgement, NULL));
}

/* The last words of the line of attempt 2. */
static void expect_end_of_attempt_2(struct alerts *alerts, const struct judgement *judgement, bool live, const char *end)
{
	const struct alert_style style = {.live = live};
	struct buffer out = {0};
	char *line;

	assert_int_equal(alerts_block(alerts, &judgement->group, WALL_OFFSET, &style, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	line = strstr((char *)out.data, "  attempt 2");
	assert_non_null(line);
	*strchr(line, '\n') = '\0';
	assert_string_equal(strstr(line, "no key  ") + strlen("no key  "), end);
	buffer_done(&out);
}

static void says_live_that_the_end_of_an_attempt_is_to_come(void **state)
{
	struct judgement judgement = timeout_judgement();

	judgement.later_facts.status = 0;
	judgement.later_facts.complete_ns = 0;
	note(*state, &judgement, NULL);
	expect_end_of_attempt_2(*state, &judgement, true, "no answer yet: its line follows");
	expect_end_of_attempt_2(*state, &judgement, false, "no answer yet");
	judgement.later_facts.status = 200;
	judgement.later_facts.status_in_time = true;
	judgement.later_facts.status_ns = judgement.later_facts.first_ns + 3 * MS;
	note(*state, &judgement, NULL);
	expect_end_of_attempt_2(*state, &judgement, true, "200 after 3 ms, not whole yet: its line follows");
	judgement.later_facts.complete_ns = judgement.later_facts.status_ns;
	note(*state, &judgement, NULL);
	expect_end_of_attempt_2(*state, &judgement, true, "200 after 3 ms");
	judgement.later_facts.complete_ns = 0;
	judgement.later_facts.closed_ns = judgement.later_facts.status_ns + MS;
	note(*state, &judgement, NULL);
	expect_end_of_attempt_2(*state, &judgement, true, "200 after 3 ms, cut short");
}

static void does_not_look_at_a_key_that_is_no_longer_lent(void **state)
{
	struct judgement judgement = timeout_judgement();
	struct call call = charge_call();
	const struct digest group = {{1}};
	struct buffer out = {0};
	uint8_t *key = malloc(3);

	assert_non_null(key);
	memcpy(key, "k-1", 3);
	call.idem_state = judgement.earlier_facts.idem_state = judgement.later_facts.idem_state =
		IDEM_PRESENT;
	judgement.earlier_facts.key = judgement.later_facts.key = 7;
	call.idem = (struct bytes){key, 3};
	note(*state, &judgement, &call);
	free(key);
	alerts_update(*state, &call);
	assert_int_equal(alerts_block(*state, &group, WALL_OFFSET, &plain, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_non_null(strstr((char *)out.data, "key \"k-1\"  client gave up"));
	assert_non_null(strstr((char *)out.data, "key \"k-1\"  no answer yet"));
	buffer_done(&out);
}

static void writes_nothing_rather_than_half_a_block(void **state)
{
	/* No growth can succeed from here: buffer_reserve() refuses before it touches data. */
	struct buffer full = {.size = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};
	struct judgement judgement = timeout_judgement();

	note(*state, &judgement, NULL);
	assert_int_equal(alerts_block(*state, &judgement.group, WALL_OFFSET, &plain, &full),
			 -ENOMEM);
	assert_int_equal(full.size, SIZE_MAX / 2);
}

/* ---- harmless text ---- */

struct harmless_case {
	struct bytes text;
	const char *expected;
};

static const struct harmless_case harmless_cases[] = {
	{BYTES(""), ""},
	{BYTES("plain \\ text~"), "plain \\ text~"},
	{BYTES("\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb8"), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x92\xb8"},
	{BYTES("\0\t\r\n\x1b[31m\x7f"), "\\x00\\x09\\x0d\\x0a\\x1b[31m\\x7f"},
	{BYTES("\xc2\x9b[2J"), "\\xc2\\x9b[2J"}, /* CSI as one code point */
	{BYTES("a\xff\xfe z\x80"), "a\\xff\\xfe z\\x80"},
	{BYTES("\xe2\x80\xaa\xe2\x80\xae\xe2\x81\xa6\xe2\x81\xa9"),
	 "\\xe2\\x80\\xaa\\xe2\\x80\\xae\\xe2\\x81\\xa6\\xe2\\x81\\xa9"},
	{BYTES("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"), "\xe2\x80\xa7\xe2\x80\xaf\xe2"
								    "\x81\xa5\xe2\x81\xaa"},
	{BYTES("\xe2\x80\x8e\xd8\x9c\xe2\x80\xa8\xef\xbb\xbf\xef\xbf\xbf"),
	 "\\xe2\\x80\\x8e\\xd8\\x9c\\xe2\\x80\\xa8\\xef\\xbb\\xbf\\xef\\xbf\\xbf"},
};

static void makes_every_byte_harmless(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(harmless_cases) / sizeof(harmless_cases[0]); i++) {
		struct buffer out = {0};

		assert_int_equal(text_harmless(harmless_cases[i].text, 1000, &out), 0);
		assert_text(&out, harmless_cases[i].expected);
	}
}

static void cuts_text_at_a_whole_character(void **state)
{
	static const struct {
		size_t max_bytes;
		const char *expected;
	} cases[] = {{0, "> ..."},	    {1, "> a..."},	   {2, "> a..."},
		     {3, "> a\xc3\xa9..."}, {6, "> a\xc3\xa9..."}, {7, "> a\xc3\xa9\\x1b"}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct buffer out = {0};

		assert_int_equal(buffer_append(&out, BYTES("> ")), 0);
		assert_int_equal(text_harmless(BYTES("a\xc3\xa9\x1b"), cases[i].max_bytes, &out),
				 0);
		assert_text(&out, cases[i].expected);
	}
}

int main(void)
{
#define fresh(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		fresh(shows_both_attempts_the_evidence_and_the_next_step),
		fresh(folds_at_the_given_width_with_a_hanging_indent),
		fresh(breaks_a_word_that_is_wider_than_the_line),
		fresh(colours_the_severity_word_and_nothing_else),
		fresh(colour_does_not_count_as_width),
		fresh(shows_keys_processes_tools_and_a_rule_of_its_own),
		fresh(names_the_process_of_the_earlier_attempt),
		fresh(shows_what_is_known_of_the_keys),
		fresh(keeps_secrets_out_of_the_target),
		fresh(says_what_it_can_where_the_call_is_not_known),
		fresh(says_how_a_call_went_on_after_it_was_noted),
		fresh(a_stranger_changes_no_block),
		fresh(renews_at_the_second_third_tenth_hundredth_attempt),
		fresh(renews_when_the_severity_rises_and_not_when_it_falls),
		fresh(shows_the_worst_pair_and_of_equals_the_latest),
		fresh(a_finding_that_is_taken_back_uncovers_the_next_worst),
		fresh(a_change_keeps_what_was_known_of_the_call),
		fresh(a_group_that_is_not_known_gives_no_block),
		fresh(shows_all_blocks_worst_first_and_undecidable_as_medium),
		fresh(shows_equals_in_order_of_time),
		fresh(lists_the_groups_for_other_reports),
		fresh(counts_what_is_beyond_the_cap),
		fresh(findings_of_severity_info_take_half_of_the_room_at_most),
		fresh(says_live_that_the_end_of_an_attempt_is_to_come),
		fresh(does_not_look_at_a_key_that_is_no_longer_lent),
		fresh(writes_nothing_rather_than_half_a_block),
		cmocka_unit_test(makes_every_byte_harmless),
		cmocka_unit_test(cuts_text_at_a_whole_character),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
