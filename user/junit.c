/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dialect that Jenkins, GitLab and pytest agree on: testsuites, one
 * testsuite, testcases with at most one of failure, error and skipped.
 *
 * Two steps make any bytes valid XML 1.0: text_harmless() leaves only
 * characters that XML allows (section 2.2), then markup is escaped.
 */
#include "junit.h"

#include <errno.h>

#include "evidence.h"
#include "say.h"
#include "utf8.h"

#define TEXT_MAX 4096

enum result { RESULT_PASSED, RESULT_FAILED, RESULT_ERROR, RESULT_SKIPPED, RESULT_COUNT };

/* ---- XML ---- */

static int append_markup(struct bytes harmless, struct buffer *out)
{
	int err = 0;

	for (size_t i = 0; !err && i < harmless.size; i++) {
		switch (harmless.data[i]) {
		case '&':
			err = buffer_append(out, BYTES("&amp;"));
			break;
		case '<':
			err = buffer_append(out, BYTES("&lt;"));
			break;
		case '>':
			err = buffer_append(out, BYTES("&gt;"));
			break;
		case '"':
			err = buffer_append(out, BYTES("&quot;"));
			break;
		default:
			err = buffer_append_byte(out, harmless.data[i]);
		}
	}
	return err;
}

/* Any bytes as text between tags or inside double quotes. */
static int append_text(struct bytes text, struct buffer *out)
{
	struct buffer harmless = {0};
	int err = text_harmless(text, TEXT_MAX, &harmless);

	if (!err)
		err = append_markup(buffer_bytes(&harmless), out);
	buffer_done(&harmless);
	return err;
}

static int append_attribute(const char *name, struct bytes value, struct buffer *out)
{
	int err = say(out, " %s=\"", name);

	if (!err)
		err = append_text(value, out);
	return err ? err : buffer_append_byte(out, '"');
}

/* ---- testcases ---- */

static enum result result_of_incomplete(const struct junit_report *report)
{
	return report->options->allow_incomplete ? RESULT_SKIPPED : RESULT_ERROR;
}

static enum result result_of(const struct junit_report *report, const struct judgement *judgement)
{
	if (judgement->verdict.finding == FINDING_UNDECIDABLE)
		return result_of_incomplete(report);
	return judgement->verdict.severity >= report->options->fail_on ? RESULT_FAILED :
									 RESULT_PASSED;
}

static int open_testcase(const char *classname, struct bytes name, struct buffer *out)
{
	int err = say(out, "    <testcase classname=\"nightclerk.%s\"", classname);

	if (!err)
		err = append_attribute("name", name, out);
	return err ? err : say(out, ">\n");
}

/* The one element inside a testcase: result, type, message, and a text or none. */
static int append_result(enum result result, const char *type, struct bytes message,
			 struct bytes text, struct buffer *out)
{
	static const char *const elements[RESULT_COUNT] = {
		[RESULT_PASSED] = "system-out",
		[RESULT_FAILED] = "failure",
		[RESULT_ERROR] = "error",
		[RESULT_SKIPPED] = "skipped",
	};
	const char *element = elements[result];
	int err = say(out, "      <%s", element);

	if (!err && (result == RESULT_FAILED || result == RESULT_ERROR))
		err = append_attribute("type", bytes_of_string(type), out);
	if (!err && result != RESULT_PASSED)
		err = append_attribute("message", message, out);
	if (!err)
		err = buffer_append_byte(out, '>');
	if (!err)
		err = append_text(text, out);
	return err ? err : say(out, "</%s>\n    </testcase>\n", element);
}

/* "high, attempt 2 of 2: second identical POST ...; next: ..." */
static int finding_words(const struct judgement *judgement, struct bytes method, struct buffer *out)
{
	const char *severity = severity_name(judgement->verdict.severity);
	int err = say(out, "%s, attempt %llu of %llu: ", severity ? severity : "undecidable",
		      (unsigned long long)judgement->attempt,
		      (unsigned long long)judgement->attempts);

	if (!err)
		err = finding_evidence_of(judgement, method, out);
	return err ? err : say(out, "; next: %s", finding_next_step(judgement->verdict.finding));
}

static int finding_testcase(const struct junit_report *report, const struct junit_finding *finding,
			    struct buffer *out)
{
	const struct judgement *judgement = finding->judgement;
	const char *name = finding_name(judgement->verdict.finding);
	struct bytes call = finding->call.size ? finding->call : BYTES("request");
	struct bytes method = {call.data, bytes_find(call, ' ')};
	struct buffer evidence = {0}, words = {0};
	int err = finding_evidence_of(judgement, method, &evidence);

	if (!err)
		err = finding_words(judgement, method, &words);
	if (!err)
		err = open_testcase(name, call, out);
	if (!err)
		err = append_result(result_of(report, judgement), name, buffer_bytes(&evidence),
				    buffer_bytes(&words), out);
	buffer_done(&evidence);
	buffer_done(&words);
	return err;
}

/* A refused connection is a high finding, which no --fail-on lets pass. */
static int refusal_testcase(const struct refusal *refusal, struct buffer *out)
{
	const char *name = finding_name(FINDING_OFF_LOOPBACK);
	struct buffer text = {0};
	int err = refusal_name(refusal, &text);

	if (!err)
		err = open_testcase(name, buffer_bytes(&text), out);
	buffer_clear(&text);
	if (!err)
		err = refusal_text(refusal, &text);
	if (!err)
		err = append_result(RESULT_FAILED, name, buffer_bytes(&text),
				    bytes_of_string(finding_next_step(FINDING_OFF_LOOPBACK)), out);
	buffer_done(&text);
	return err;
}

static const struct refusal *next_refusal(const struct junit_report *report,
					  const struct refusal *previous)
{
	return report->refusals ? refusals_next(report->refusals, previous) : NULL;
}

static int incomplete_testcase(const struct junit_report *report, const char *reason,
			       struct buffer *out)
{
	struct bytes text = bytes_of_string(reason);
	int err = open_testcase("incomplete", text, out);

	return err ? err :
		     append_result(result_of_incomplete(report), "incomplete", text,
				   (struct bytes){0}, out);
}

static int blind_testcase(const char *kind, uint64_t streams, struct buffer *out)
{
	char message[64];
	int err = open_testcase("blind", bytes_of_string(kind), out);

	snprintf(message, sizeof(message), "%llu stream%s could not be read",
		 (unsigned long long)streams, streams == 1 ? "" : "s");
	return err ? err :
		     append_result(RESULT_SKIPPED, NULL, bytes_of_string(message),
				   (struct bytes){0}, out);
}

/* ---- the document ---- */

static size_t count_results(const struct junit_report *report, size_t counts[RESULT_COUNT])
{
	const struct refusal *refusal = NULL;
	size_t all = 0;

	for (size_t i = 0; i < report->finding_count; i++)
		counts[result_of(report, report->findings[i].judgement)]++;
	while ((refusal = next_refusal(report, refusal)))
		counts[RESULT_FAILED]++;
	counts[result_of_incomplete(report)] += report->incomplete_count;
	for (int kind = 0; kind < BLIND_COUNT; kind++)
		if (report->blind_streams[kind])
			counts[RESULT_SKIPPED]++;
	for (int result = 0; result < RESULT_COUNT; result++)
		all += counts[result];
	if (all == 0)
		all = counts[RESULT_PASSED] =
			1; /* a suite without a testcase is an error to some readers */
	return all;
}

static int append_counts(const struct junit_report *report, size_t all,
			 const size_t counts[RESULT_COUNT], struct buffer *out)
{
	return say(out,
		   " name=\"nightclerk\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" "
		   "skipped=\"%zu\" "
		   "time=\"%llu.%03llu\"",
		   all, counts[RESULT_FAILED], counts[RESULT_ERROR], counts[RESULT_SKIPPED],
		   (unsigned long long)report->wall_ms / 1000,
		   (unsigned long long)report->wall_ms % 1000);
}

static int append_testcases(const struct junit_report *report, struct buffer *out)
{
	const struct refusal *refusal = NULL;
	int err = 0;

	for (size_t i = 0; !err && i < report->finding_count; i++)
		err = finding_testcase(report, &report->findings[i], out);
	while (!err && (refusal = next_refusal(report, refusal)))
		err = refusal_testcase(refusal, out);
	for (size_t i = 0; !err && i < report->incomplete_count; i++)
		err = incomplete_testcase(report, report->incomplete[i], out);
	for (int kind = 0; !err && kind < BLIND_COUNT; kind++)
		if (report->blind_streams[kind])
			err = blind_testcase(blind_kind_name((enum blind_kind)kind),
					     report->blind_streams[kind], out);
	return err;
}

static int append_properties(const struct junit_report *report, struct buffer *out)
{
	int err = say(out, "    <properties>\n      <property name=\"run\"");

	if (!err)
		err = append_attribute("value", bytes_of_string(report->run->run_id), out);
	if (!err)
		err = say(out, "/>\n      <property name=\"version\"");
	if (!err)
		err = append_attribute("value", bytes_of_string(report->run->version), out);
	return err ? err : say(out, "/>\n    </properties>\n");
}

int junit_text(const struct junit_report *report, struct buffer *out)
{
	size_t counts[RESULT_COUNT] = {0};
	size_t all = count_results(report, counts);
	size_t start = out->size;
	size_t before_cases;
	int err = say(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");

	if (!err)
		err = append_counts(report, all, counts, out);
	if (!err)
		err = say(out, ">\n  <testsuite");
	if (!err)
		err = append_counts(report, all, counts, out);
	if (!err)
		err = say(out, ">\n");
	if (!err)
		err = append_properties(report, out);
	before_cases = out->size;
	if (!err)
		err = append_testcases(report, out);
	if (!err && out->size == before_cases)
		err = say(out, "    <testcase classname=\"nightclerk\" name=\"no finding\"/>\n");
	if (!err)
		err = say(out, "  </testsuite>\n</testsuites>\n");
	if (err)
		out->size = start;
	return err;
}
