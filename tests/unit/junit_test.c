/* SPDX-License-Identifier: BSD-2-Clause */
/* The JUnit document, whole: what fails, what is an error, what is skipped, and hostile bytes. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>

#include "junit.h"

static const struct run_facts run = {.run_id = "00c0ffee00c0ffee", .version = "0.1.0"};
static const uint64_t no_blind[BLIND_COUNT];

#define DECLARATION "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define PROPERTIES                                                                                 \
	"    <properties>\n"                                                                       \
	"      <property name=\"run\" value=\"00c0ffee00c0ffee\"/>\n"                              \
	"      <property name=\"version\" value=\"0.1.0\"/>\n"                                     \
	"    </properties>\n"
#define DOCUMENT(counts, cases)                                                                    \
	DECLARATION "<testsuites name=\"nightclerk\" " counts                                      \
		    ">\n  <testsuite name=\"nightclerk\" " counts ">\n" PROPERTIES cases           \
		    "  </testsuite>\n</testsuites>\n"

static struct judgement judgement_of(enum finding finding, enum severity severity)
{
	return (struct judgement){
		.verdict = {.finding = finding,
			    .severity = severity,
			    .row = ROW_SUCCESS,
			    .rule = "table"},
		.attempt = 2,
		.attempts = 3,
		.earlier_facts = {.status = 200},
	};
}

static void assert_document(const struct junit_report *report, const char *expected)
{
	struct buffer out = {0};

	assert_int_equal(junit_text(report, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((char *)out.data, expected);
	buffer_done(&out);
}

static void a_run_with_nothing_to_say_is_one_test_that_passes(void **state)
{
	struct judge_options options;
	struct junit_report report = {
		.run = &run, .options = &options, .blind_streams = no_blind, .wall_ms = 1005};

	(void)state;
	judge_options_defaults(&options);
	assert_document(&report, DOCUMENT("tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"0\" "
					  "time=\"1.005\"",
					  "    <testcase classname=\"nightclerk\" name=\"no "
					  "finding\"/>\n"));
}

static void findings_fail_from_the_given_severity_on_and_pass_below(void **state)
{
	struct judgement judgements[] = {
		judgement_of(FINDING_DUP_AFTER_SUCCESS, SEVERITY_HIGH),
		judgement_of(FINDING_DUP_AFTER_SUCCESS, SEVERITY_MEDIUM),
		judgement_of(FINDING_DUP_AFTER_SUCCESS, SEVERITY_LOW),
	};
	const struct junit_finding findings[] = {
		{&judgements[0], BYTES("POST /a at 127.0.0.1:1")},
		{&judgements[1], BYTES("PUT /b at 127.0.0.1:1")},
		{&judgements[2], {0}},
	};
	struct judge_options options;
	struct junit_report report = {.run = &run,
				      .options = &options,
				      .findings = findings,
				      .finding_count = 3,
				      .blind_streams = no_blind};

	(void)state;
	judge_options_defaults(&options);
	assert_document(&report,
			DOCUMENT("tests=\"3\" failures=\"2\" errors=\"0\" skipped=\"0\" "
				 "time=\"0.000\"",
				 "    <testcase classname=\"nightclerk.dup_after_success\" "
				 "name=\"POST /a at 127.0.0.1:1\">\n"
				 "      <failure type=\"dup_after_success\" message=\"second "
				 "identical POST after a complete 200, no "
				 "Idempotency-Key\">high, attempt 2 of 3: second identical POST "
				 "after a complete 200, no "
				 "Idempotency-Key; next: do not send again after a 2xx; where the "
				 "same call is meant twice, give "
				 "each its own Idempotency-Key</failure>\n"
				 "    </testcase>\n"
				 "    <testcase classname=\"nightclerk.dup_after_success\" "
				 "name=\"PUT /b at 127.0.0.1:1\">\n"
				 "      <failure type=\"dup_after_success\" message=\"second "
				 "identical PUT after a complete 200, no "
				 "Idempotency-Key\">medium, attempt 2 of 3: second identical PUT "
				 "after a complete 200, no "
				 "Idempotency-Key; next: do not send again after a 2xx; where the "
				 "same call is meant twice, give "
				 "each its own Idempotency-Key</failure>\n"
				 "    </testcase>\n"
				 "    <testcase classname=\"nightclerk.dup_after_success\" "
				 "name=\"request\">\n"
				 "      <system-out>low, attempt 2 of 3: second identical request "
				 "after a complete 200, no "
				 "Idempotency-Key; next: do not send again after a 2xx; where the "
				 "same call is meant twice, give "
				 "each its own Idempotency-Key</system-out>\n"
				 "    </testcase>\n"));
}

#define UNDECIDABLE_WORDS                                                                          \
	"undecidable, attempt 2 of 3: a hole, a blind stream or a late join hides how one of the " \
	"two attempts went; "                                                                      \
	"next: look up the hole and blind events of the run, remove their cause, and run again"

static void what_cannot_be_told_is_an_error_and_blind_kinds_are_skipped(void **state)
{
	static const char *const incomplete[] = {"bytes were lost"};
	static const uint64_t blind[BLIND_COUNT] = {[BLIND_H2] = 1, [BLIND_OTHER] = 12};
	struct judgement judgement = judgement_of(FINDING_UNDECIDABLE, SEVERITY_NULL);
	const struct junit_finding finding = {&judgement, BYTES("POST /a at 127.0.0.1:1")};
	struct judge_options options;
	struct junit_report report = {.run = &run,
				      .options = &options,
				      .findings = &finding,
				      .finding_count = 1,
				      .incomplete = incomplete,
				      .incomplete_count = 1,
				      .blind_streams = blind};

	(void)state;
	judgement.verdict.row = ROW_UNDECIDABLE;
	judge_options_defaults(&options);
	assert_document(
		&report,
		DOCUMENT("tests=\"4\" failures=\"0\" errors=\"2\" skipped=\"2\" time=\"0.000\"",
			 "    <testcase classname=\"nightclerk.undecidable\" name=\"POST /a at "
			 "127.0.0.1:1\">\n"
			 "      <error type=\"undecidable\" message=\"a hole, a blind stream or a "
			 "late join hides how one of the "
			 "two attempts went\">" UNDECIDABLE_WORDS "</error>\n"
			 "    </testcase>\n"
			 "    <testcase classname=\"nightclerk.incomplete\" name=\"bytes were "
			 "lost\">\n"
			 "      <error type=\"incomplete\" message=\"bytes were lost\"></error>\n"
			 "    </testcase>\n"
			 "    <testcase classname=\"nightclerk.blind\" name=\"h2\">\n"
			 "      <skipped message=\"1 stream could not be read\"></skipped>\n"
			 "    </testcase>\n"
			 "    <testcase classname=\"nightclerk.blind\" name=\"other\">\n"
			 "      <skipped message=\"12 streams could not be read\"></skipped>\n"
			 "    </testcase>\n"));

	options.allow_incomplete = true;
	report.blind_streams = no_blind;
	assert_document(&report, DOCUMENT("tests=\"2\" failures=\"0\" errors=\"0\" skipped=\"2\" "
					  "time=\"0.000\"",
					  "    <testcase classname=\"nightclerk.undecidable\" "
					  "name=\"POST /a at 127.0.0.1:1\">\n"
					  "      <skipped message=\"a hole, a blind stream or a "
					  "late join hides how one of the two attempts "
					  "went\">" UNDECIDABLE_WORDS "</skipped>\n"
					  "    </testcase>\n"
					  "    <testcase classname=\"nightclerk.incomplete\" "
					  "name=\"bytes were lost\">\n"
					  "      <skipped message=\"bytes were lost\"></skipped>\n"
					  "    </testcase>\n"));
}

static void hostile_bytes_become_valid_xml(void **state)
{
	static const char *const incomplete[] = {
		"]]></x>&\"'\x01\x1b[2J\n\x80\xc3\xa9\xef\xbf\xbe\xed\xa0\x80"};
	struct judge_options options;
	struct junit_report report = {.run = &run,
				      .options = &options,
				      .incomplete = incomplete,
				      .incomplete_count = 1,
				      .blind_streams = no_blind};

	(void)state;
	judge_options_defaults(&options);
#define CLEAN                                                                                      \
	"]]&gt;&lt;/"                                                                              \
	"x&gt;&amp;&quot;'\\x01\\x1b[2J\\x0a\\x80\xc3\xa9\\xef\\xbf\\xbe\\xed\\xa0\\x80"
	assert_document(
		&report,
		DOCUMENT("tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\" time=\"0.000\"",
			 "    <testcase classname=\"nightclerk.incomplete\" name=\"" CLEAN "\">\n"
			 "      <error type=\"incomplete\" message=\"" CLEAN "\"></error>\n"
			 "    </testcase>\n"));
}

static void writes_nothing_rather_than_half_a_document(void **state)
{
	/* No growth can succeed from here: buffer_reserve() refuses before it touches data. */
	struct buffer full = {.size = SIZE_MAX / 2, .capacity = SIZE_MAX / 2};
	struct judge_options options;
	struct junit_report report = {.run = &run, .options = &options, .blind_streams = no_blind};

	(void)state;
	judge_options_defaults(&options);
	assert_int_equal(junit_text(&report, &full), -ENOMEM);
	assert_int_equal(full.size, SIZE_MAX / 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_with_nothing_to_say_is_one_test_that_passes),
		cmocka_unit_test(findings_fail_from_the_given_severity_on_and_pass_below),
		cmocka_unit_test(what_cannot_be_told_is_an_error_and_blind_kinds_are_skipped),
		cmocka_unit_test(hostile_bytes_become_valid_xml),
		cmocka_unit_test(writes_nothing_rather_than_half_a_document),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
