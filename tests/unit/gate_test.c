/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The three-valued answer: what makes it 10, what makes it 11, what does
 * neither, and the sentence that says so.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gate.h"

struct ask {
	struct gate gate;
	struct judge_options options;
	struct closing closing;
	struct connection_totals totals;
	uint64_t evicted;
	bool memory_lost;
	struct summary summary;
};

static void begin(struct ask *ask)
{
	memset(ask, 0, sizeof(*ask));
	judge_options_defaults(&ask->options);
}

static int close_it(struct ask *ask)
{
	gate_close(&ask->gate, &ask->options, &ask->closing, ask->totals, ask->evicted, ask->memory_lost, &ask->summary);
	return ask->gate.exit_status;
}

static void add(struct ask *ask, enum finding finding, enum severity severity)
{
	gate_add(&ask->gate, &(struct verdict){.finding = finding, .severity = severity});
}

static void passes_the_command_s_status_on(void **state)
{
	struct ask ask;

	(void)state;
	begin(&ask);
	ask.closing.command_status = 143;
	assert_int_equal(close_it(&ask), 143);
	ask.closing.command_status = -1; /* none was run */
	assert_int_equal(close_it(&ask), 0);
}

static void a_finding_counts_from_fail_on(void **state)
{
	static const struct {
		enum severity fail_on, severity;
		int status;
	} rows[] = {
		{SEVERITY_MEDIUM, SEVERITY_INFO, 3}, {SEVERITY_MEDIUM, SEVERITY_LOW, 3},  {SEVERITY_MEDIUM, SEVERITY_MEDIUM, 10},
		{SEVERITY_MEDIUM, SEVERITY_HIGH, 10}, {SEVERITY_HIGH, SEVERITY_MEDIUM, 3}, {SEVERITY_HIGH, SEVERITY_HIGH, 10},
		{SEVERITY_LOW, SEVERITY_LOW, 10},     {SEVERITY_INFO, SEVERITY_INFO, 10},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ask ask;

		begin(&ask);
		ask.closing.command_status = 3;
		ask.options.fail_on = rows[i].fail_on;
		add(&ask, FINDING_DUP_AFTER_SUCCESS, rows[i].severity);
		assert_int_equal(close_it(&ask), rows[i].status);
	}
}

static void a_finding_that_was_taken_back_does_not_count(void **state)
{
	struct ask ask;

	(void)state;
	begin(&ask);
	add(&ask, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	gate_remove(&ask.gate, &(struct verdict){.finding = FINDING_DUP_AFTER_SUCCESS, .severity = SEVERITY_HIGH});
	assert_int_equal(close_it(&ask), 0);
}

/* Each alone: 11 with that reason; a finding goes before it; --allow-incomplete turns it off. */
static void expect_incomplete(struct ask *ask, const char *reason)
{
	ask->closing.command_status = 5;
	assert_int_equal(close_it(ask), 11);
	assert_int_equal(ask->summary.incomplete_count, 1);
	assert_string_equal(ask->summary.incomplete[0], reason);
	ask->options.allow_incomplete = true;
	assert_int_equal(close_it(ask), 5);
	assert_int_equal(ask->summary.incomplete_count, 1);
	add(ask, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	assert_int_equal(close_it(ask), 10);
}

/* For counters that must not fall: what stands may, what was said does not. */
static void what_was_found_stays_found_when_it_changes(void **state)
{
	const struct verdict none = {.finding = FINDING_NONE}, medium = {.finding = FINDING_DUP_AFTER_TIMEOUT, .severity = SEVERITY_MEDIUM},
			     high = {.finding = FINDING_DUP_AFTER_TIMEOUT, .severity = SEVERITY_HIGH};
	struct gate gate = {0};

	(void)state;
	gate_add(&gate, &none);
	gate_add(&gate, &medium);
	gate_change(&gate, &medium, &high);
	assert_int_equal(gate.standing[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_MEDIUM], 0);
	assert_int_equal(gate.standing[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 1);
	assert_int_equal(gate.found[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_MEDIUM], 1);
	assert_int_equal(gate.found[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 0);
	assert_int_equal(gate.upgraded[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 1);
	gate_change(&gate, &high, &none);
	gate_change(&gate, &none, &high);
	assert_int_equal(gate.standing[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 1);
	assert_int_equal(gate.found[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 1);
	assert_int_equal(gate.upgraded[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH], 1);
	assert_int_equal(gate.found[FINDING_NONE][SEVERITY_NULL], 0);
}

static void what_was_not_seen_is_not_clean(void **state)
{
	struct ask ask;

	(void)state;
	begin(&ask);
	ask.gate.counters.recursion_misses = 1;
	expect_incomplete(&ask, "the kernel skipped a probe (recursion_misses)");
	begin(&ask);
	ask.totals.hole_bytes = ask.gate.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = 7;
	expect_incomplete(&ask, "bytes were not seen (holes)");
	begin(&ask);
	ask.gate.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] = 1;
	expect_incomplete(&ask, "a connection or process event was lost: the lifecycle ring or memory was full");
	begin(&ask);
	ask.gate.counters.value[WIRE_COUNTER_NO_FLOW] = 1;
	expect_incomplete(&ask, "a kernel table was full: too many connections at once");
	begin(&ask);
	ask.gate.counters.value[WIRE_COUNTER_NO_CALL] = 1;
	expect_incomplete(&ask, "a kernel table was full: too many connections at once");
	begin(&ask);
	ask.gate.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = 1;
	expect_incomplete(&ask, "the bytes do not add up");
	begin(&ask);
	gate_count_broken(&ask.gate, true);
	expect_incomplete(&ask, "an HTTP stream broke off: what followed could not be read");
	begin(&ask);
	ask.memory_lost = true;
	expect_incomplete(&ask, "nightclerk ran out of memory");
	begin(&ask);
	ask.evicted = 1;
	expect_incomplete(&ask, "the oldest calls were forgotten for want of room: a repeat of one was not found");
	begin(&ask);
	ask.gate.forgotten_tools = 1;
	expect_incomplete(&ask, "annotations of MCP tools were forgotten for want of room");
	begin(&ask);
	ask.closing.counters_unread = 1;
	expect_incomplete(&ask, "the kernel's counters could not be read at the end");
	begin(&ask);
	ask.closing.unwritten_bytes = 1;
	expect_incomplete(&ask, "an output could not be written");
	begin(&ask);
	add(&ask, FINDING_UNDECIDABLE, SEVERITY_NULL);
	expect_incomplete(&ask, "a repeated call could not be judged (undecidable)");
}

static void blind_kinds_count_unless_they_are_allowed(void **state)
{
	(void)state;
	for (int kind = 0; kind < BLIND_COUNT; kind++) {
		struct ask ask;

		begin(&ask);
		gate_count_blind(&ask.gate, kind);
		assert_int_equal(close_it(&ask), kind == BLIND_OTHER ? 0 : 11);
		assert_int_equal(ask.summary.blind_streams[kind], 1);
		ask.options.allow_blind = 1u << kind;
		assert_int_equal(close_it(&ask), 0);
		ask.options.allow_blind = ~(1u << kind);
		assert_int_equal(close_it(&ask), kind == BLIND_OTHER ? 0 : 11);
	}
}

static void a_stream_that_never_was_http_does_not_matter(void **state)
{
	struct ask ask;

	(void)state;
	begin(&ask);
	gate_count_broken(&ask.gate, false);
	assert_int_equal(close_it(&ask), 0);
	assert_int_equal(ask.summary.broken_streams, 1);
}

static void says_it_in_one_line(void **state)
{
	struct ask ask;
	char text[1024];

	(void)state;
	begin(&ask);
	ask.gate.requests = 2;
	ask.gate.mutating = 1;
	ask.totals = (struct connection_totals){.message_bytes = 100};
	ask.gate.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = 100;
	add(&ask, FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH);
	add(&ask, FINDING_SAFE_RETRY, SEVERITY_INFO);
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 2 requests (1 mutating), 1 finding (1 high, 0 medium, 0 low), 100 bytes = 100 in "
				  "messages + 0 in holes + 0 blind; command exited 0; exit 10");
}

static void without_a_command_there_is_no_exit_status_to_name(void **state)
{
	struct ask ask;
	char text[1024];

	(void)state;
	begin(&ask);
	ask.closing.command_status = -1;
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 0 requests (0 mutating), 0 findings (0 high, 0 medium, 0 low), 0 bytes = 0 in "
				  "messages + 0 in holes + 0 blind");
}

static void names_what_lives_on_and_why_it_cannot_tell(void **state)
{
	struct ask ask;
	char text[1024];

	(void)state;
	begin(&ask);
	ask.gate.counters.recursion_misses = 1;
	ask.closing.survivor_count = 2;
	ask.closing.survivors[0] = (struct survivor){4711, "sleep"};
	ask.closing.survivors[1] = (struct survivor){4712, "\033[2J"};
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 0 requests (0 mutating), 0 findings (0 high, 0 medium, 0 low), 0 bytes = 0 in "
				  "messages + 0 in holes + 0 blind; command exited 0; exit 11\n"
				  "nightclerk: 2 processes of the command live on: 4711 sleep, 4712 \\x1b[2J\n"
				  "nightclerk: cannot tell: the kernel skipped a probe (recursion_misses)");
}

static void names_the_processes_whose_streams_could_not_be_read(void **state)
{
	struct process curl = {.tgid = 4711, .comm = "curl"}, redis = {.tgid = 4712, .comm = "redis"};
	struct ask ask;
	char text[1024];

	(void)state;
	begin(&ask);
	gate_count_blind(&ask.gate, BLIND_TLS);
	blind_add(&ask.gate.blind_processes, &curl, BLIND_TLS, 1, 2);
	gate_count_blind(&ask.gate, BLIND_OTHER);
	blind_add(&ask.gate.blind_processes, &redis, BLIND_OTHER, 1, 2);
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 0 requests (0 mutating), 0 findings (0 high, 0 medium, 0 low), 0 bytes = 0 in "
				  "messages + 0 in holes + 0 blind; command exited 0; exit 11\n"
				  "nightclerk: could not be read: curl (4711): 1 tls\n"
				  "nightclerk: cannot tell: a TLS stream on loopback could not be read (--allow-blind tls)");
	ask.options.allow_blind = 1u << BLIND_TLS;
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 0 requests (0 mutating), 0 findings (0 high, 0 medium, 0 low), 0 bytes = 0 in "
				  "messages + 0 in holes + 0 blind; command exited 0; exit 0");
}

static void a_text_that_does_not_fit_is_cut(void **state)
{
	struct ask ask;
	char text[40];

	(void)state;
	begin(&ask);
	ask.gate.counters.recursion_misses = 1;
	ask.closing.survivor_count = 40;
	close_it(&ask);
	gate_sentence(&ask.gate, &ask.summary, text, sizeof(text));
	assert_string_equal(text, "nightclerk: 0 requests (0 mutating), 0 ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(passes_the_command_s_status_on),
		cmocka_unit_test(a_finding_counts_from_fail_on),
		cmocka_unit_test(a_finding_that_was_taken_back_does_not_count),
		cmocka_unit_test(what_was_found_stays_found_when_it_changes),
		cmocka_unit_test(what_was_not_seen_is_not_clean),
		cmocka_unit_test(blind_kinds_count_unless_they_are_allowed),
		cmocka_unit_test(a_stream_that_never_was_http_does_not_matter),
		cmocka_unit_test(says_it_in_one_line),
		cmocka_unit_test(without_a_command_there_is_no_exit_status_to_name),
		cmocka_unit_test(names_what_lives_on_and_why_it_cannot_tell),
		cmocka_unit_test(names_the_processes_whose_streams_could_not_be_read),
		cmocka_unit_test(a_text_that_does_not_fit_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
