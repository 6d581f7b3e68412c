/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every allocation failed once: each case is played through the whole pipeline
 * with its first allocation failing, then its second, and so on until a run
 * passes untouched; then the same with all that follow failing too.
 *
 * Whatever fails: no crash, no leak, no broken line, and no wrong verdict. A
 * run says what the untouched one says, or it says that memory was lost.
 *
 * Two builds: beside the plain build malloc itself is replaced, so that
 * libcrypto, zlib and the others fail too; under AddressSanitizer, which needs
 * malloc for itself, only the calls of our own objects are wrapped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>

#include "case_load.h"
#include "gate.h"
#include "sequencer.h"
#include "coded_build.h"

/* ---- the allocator ---- */

static bool armed;
static long allocations;    /* since armed */
static long fail_from;	    /* the first one that fails; 0 = none */
static long fail_count;	    /* so many in a row */
static long blocks;	    /* alive; under AddressSanitizer, which looks for leaks itself, they only grow */

static bool fails(void)
{
	if (!armed)
		return false;
	allocations++;
	if (fail_from && allocations >= fail_from && allocations - fail_from < fail_count) {
		errno = ENOMEM;
		return true;
	}
	return false;
}

#ifdef TORTURE_WRAP
#define REAL(name) __real_##name
#define OURS(name) __wrap_##name
#else
#define REAL(name) __libc_##name
#define OURS(name) name
#endif

void *REAL(malloc)(size_t size);
void *REAL(calloc)(size_t count, size_t size);
void *REAL(realloc)(void *old, size_t size);
void *OURS(malloc)(size_t size);
void *OURS(calloc)(size_t count, size_t size);
void *OURS(realloc)(void *old, size_t size);

static void *born(void *block)
{
	if (block)
		blocks++;
	return block;
}

void *OURS(malloc)(size_t size)
{
	return fails() ? NULL : born(REAL(malloc)(size));
}

void *OURS(calloc)(size_t count, size_t size)
{
	return fails() ? NULL : born(REAL(calloc)(count, size));
}

void *OURS(realloc)(void *old, size_t size)
{
	void *block;

	if (fails())
		return NULL;
	block = REAL(realloc)(old, size);
	if (!old)
		born(block);
	return block;
}

#ifndef TORTURE_WRAP
void __libc_free(void *old);

void free(void *old)
{
	if (old)
		blocks--;
	__libc_free(old);
}
#endif

/* ---- one run ---- */

struct play {
	const char *name;
	const struct case_text *text;
	void (*act)(struct scene *scene);
	int status; /* of the untouched run */
};

static void open_scene(struct scene *scene)
{
	scene_start(scene);
	scene->options.live_alerts = true;
	scene->options.live_calls = true;
	scene->options.junit = true;
	scene->options.style.width = 100;
	scene_open(scene);
}

static bool sequenced; /* else the events go straight into the pipeline */
static struct sequencer *sequencer;

/* As observer.c does it; the scene's events come in order, so that none of them waits. */
static void feed_in_order(struct scene *scene, const struct wire_event *event, struct bytes payload)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = scene->now_ns};

	if (sequencer_push(sequencer, event, payload))
		scene->lost_events++;
	while (sequencer_pull(sequencer, scene->now_ns + SEQUENCER_WATERMARK_NS + SEQUENCER_HOLD_NS, &input.wire.event,
			      &input.wire.payload))
		pipeline_feed(scene->pipeline, &input);
}

/* False: there was not even memory to begin. */
static bool run(const struct play *play, struct scene *scene)
{
	open_scene(scene);
	sequencer = sequenced ? sequencer_new() : NULL;
	if (!scene->pipeline || (sequenced && !sequencer)) {
		sequencer_free(sequencer);
		return false;
	}
	scene->feed = sequenced ? feed_in_order : NULL;
	if (play->text)
		case_play(play->text, scene);
	else
		play->act(scene);
	scene_end_run(scene, 0);
	sequencer_free(sequencer);
	return true;
}

static bool same(const struct buffer *a, const struct buffer *b)
{
	return bytes_equal(buffer_bytes(a), buffer_bytes(b));
}

static bool says_the_same(const struct scene *one, const struct scene *other)
{
	return same(&one->out.ledger, &other->out.ledger) && same(&one->out.events, &other->out.events) &&
	       same(&one->out.alerts, &other->out.alerts) && same(&one->out.calls, &other->out.calls) &&
	       same(&one->out.junit, &other->out.junit);
}

static void check_lines(const char *name, long n, struct bytes text)
{
	json_object *lines = scene_lines(text);

	if (text.size && text.data[text.size - 1] != '\n')
		fail_msg("%s, allocation %ld: the last line has no end", name, n);
	for (size_t i = 0; i < json_object_array_length(lines); i++)
		if (!json_object_array_get_idx(lines, i))
			fail_msg("%s, allocation %ld: line %zu is no JSON:\n%.*s", name, n, i, (int)text.size,
				 text.data);
	json_object_put(lines);
}

/* How often the events say this finding at this severity; upgrades count as what they became. */
static size_t times_said(const struct scene *scene, const char *finding, const char *severity)
{
	size_t count = 0;

	for (size_t i = 0; i < json_object_array_length(scene->events); i++) {
		json_object *event = json_object_array_get_idx(scene->events, i);
		const char *kind = scene_field(event, "kind"), *found = scene_field(event, "finding");
		const char *level = scene_field(event, "severity");

		if (strcmp(kind, "finding") == 0 && strcmp(found, finding) == 0 && level &&
		    strcmp(level, severity) == 0)
			count++;
	}
	return count;
}

/* Before a failure: cmocka's own messages are short. */
static void show(const struct scene *scene)
{
	fwrite(scene->out.events.data, 1, scene->out.events.size, stderr);
}

/*
 * Nothing is said at medium or high that the untouched run does not say as
 * often. Where an event was lost before the pipeline, which the summary says, a
 * repeat may go by another name, but nothing is called a repeat that is none.
 */
static void check_findings(const struct play *play, long n, struct scene *scene, const struct scene *untouched)
{
	scene->events = scene_lines(buffer_bytes(&scene->out.events));
	for (size_t i = 0; i < json_object_array_length(scene->events); i++) {
		json_object *event = json_object_array_get_idx(scene->events, i);
		const char *finding = scene_field(event, "finding"), *severity = scene_field(event, "severity");

		if (strcmp(scene_field(event, "kind"), "finding") != 0 || !severity ||
		    (strcmp(severity, "medium") != 0 && strcmp(severity, "high") != 0))
			continue;
		if (scene->lost_events && pipeline_exit_status(untouched->pipeline) == GATE_EXIT_FINDING)
			continue;
		if (times_said(scene, finding, severity) > times_said(untouched, finding, severity)) {
			show(scene);
			fail_msg("%s, allocation %ld: %s %s is wrong", play->name, n, finding, severity);
		}
	}
}

static void check_run(const struct play *play, long n, struct scene *scene, const struct scene *untouched)
{
	int status = pipeline_exit_status(scene->pipeline), right = pipeline_exit_status(untouched->pipeline);
	bool admits = strstr(pipeline_summary_line(scene->pipeline), "ran out of memory") || scene->lost_events;

	check_lines(play->name, n, buffer_bytes(&scene->out.ledger));
	check_lines(play->name, n, buffer_bytes(&scene->out.events));
	check_findings(play, n, scene, untouched);
	if (!admits && !says_the_same(scene, untouched)) {
		show(scene);
		fail_msg("%s, allocation %ld: says something else and does not admit it", play->name, n);
	}
	if (status != right && status != GATE_EXIT_INCOMPLETE)
		fail_msg("%s, allocation %ld: exit %d instead of %d", play->name, n, status, right);
	if (admits && status != GATE_EXIT_INCOMPLETE && status != GATE_EXIT_FINDING)
		fail_msg("%s, allocation %ld: exit %d although memory was lost", play->name, n, status);
}

/* Blocks that it left behind. */
static long run_with_failure(const struct play *play, long n, long in_a_row, const struct scene *untouched)
{
	struct scene scene;
	long before = blocks;
	bool begun;

	fail_from = n;
	fail_count = in_a_row;
	allocations = 0;
	armed = true;
	begun = run(play, &scene);
	armed = false;
	if (begun)
		check_run(play, n, &scene, untouched);
	scene_done(&scene);
	ERR_clear_error(); /* a queue of them, with their texts */
	return blocks - before;
}

static void torture(const struct play *play, long in_a_row)
{
	struct scene untouched;
	long n = 0;

	run(play, &untouched);
	untouched.events = scene_lines(buffer_bytes(&untouched.out.events));
	assert_int_equal(pipeline_exit_status(untouched.pipeline), play->status);
	do {
		long left;

		n++;
		left = run_with_failure(play, n, in_a_row, &untouched);
		/* What a library makes at its first use or first error it keeps: a leak happens each time. */
		for (int again = 0; left > 0 && again < 2; again++)
			left = run_with_failure(play, n, in_a_row, &untouched);
#ifndef TORTURE_WRAP
		if (left > 0)
			fail_msg("%s, allocation %ld: %ld blocks were not freed", play->name, n, left);
#endif
	} while (allocations >= n);
	assert_true(n > 50);
	scene_done(&untouched);
}

static void once(void **state)
{
	torture(*state, 1);
}

static void from_there_on(void **state)
{
	torture(*state, LONG_MAX);
}

static void behind_the_sequencer(void **state)
{
	sequenced = true;
	torture(*state, 1);
	sequenced = false;
}

/* ---- plays that no case has ---- */

static struct buffer gzip, zstd, aws, tools;

static void post(struct scene *scene, const char *headers, struct bytes body, const char *answer)
{
	uint32_t c = scene_connect(scene, 4711);
	char head[256];

	snprintf(head, sizeof(head), "POST /v1/charges?b=1&a=2 HTTP/1.1\r\nHost: h\r\n%sContent-Length: %zu\r\n\r\n", headers,
		 body.size);
	scene_send(scene, c, WIRE_BUILD_CLIENT, head);
	scene_send_bytes(scene, c, WIRE_BUILD_CLIENT, body);
	scene_wait(scene, 5);
	scene_send(scene, c, WIRE_BUILD_SERVER, answer);
	scene_wait(scene, 20);
}

#define CREATED "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
#define REFUSED "HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}"

/* The same call in three codings: a duplicate. */
static void coded_bodies(struct scene *scene)
{
	const char *json = "Content-Type: application/json\r\n";
	char headers[128];

	post(scene, json, BYTES(CODED_JSON), CREATED);
	snprintf(headers, sizeof(headers), "%sContent-Encoding: zstd, gzip\r\n", json);
	post(scene, headers, buffer_bytes(&gzip), CREATED);
	snprintf(headers, sizeof(headers), "%sContent-Encoding: br\r\n", json);
	post(scene, headers, CODED_BYTES(coded_br_json), CREATED);
	snprintf(headers, sizeof(headers), "%sContent-Encoding: aws-chunked\r\n", json);
	post(scene, headers, buffer_bytes(&aws), CREATED);
}

/* Two orders that differ, in every form, with keys: nothing to report. */
static void other_bodies(struct scene *scene)
{
	post(scene, "Content-Type: application/x-www-form-urlencoded\r\nIdempotency-Key: \"a\\\"b\"\r\n",
	     BYTES("b=2&a=%201"), CREATED);
	post(scene, "Content-Type: application/x-www-form-urlencoded\r\n", BYTES("b=3&a=%201"), CREATED);
	post(scene, "Content-Type: multipart/form-data; boundary=b\r\nAuthorization: Bearer s3cret\r\n",
	     BYTES("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"), CREATED);
	post(scene, "Content-Type: application/x-ndjson\r\n", BYTES("{\"a\":1}\n{\"b\":[2,{\"z\":1,\"y\":2}]}\n"), CREATED);
	post(scene, "Content-Type: application/json\r\nX-Stainless-Retry-Count: 0\r\n",
	     BYTES("{\"idempotency_key\":\"k-1\",\"amount\":5}"), REFUSED);
	post(scene, "Content-Type: application/json\r\nX-Stainless-Retry-Count: 1\r\n",
	     BYTES("{\"idempotency_key\":\"k-2\",\"amount\":6}"), CREATED);
}

/* The same key with the same body after a 503: allowed. */
static void keyed_retry(struct scene *scene)
{
	const char *headers = "Content-Type: application/json\r\nIdempotency-Key: k-1\r\n";

	post(scene, headers, BYTES("{\"amount\":5}"), "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
	post(scene, headers, BYTES("{\"amount\": 5}"), CREATED);
}

/* A cgroup, a mark, a stream that is no HTTP, and a call on each side of the mark. */
static void marks_and_blind_streams(struct scene *scene)
{
	struct input cgroup = {.kind = INPUT_CGROUP, .now_ns = scene->now_ns, .cgroup = {77, BYTES("/user.slice")}};
	struct input mark = {.kind = INPUT_MARK, .mark = {BYTES("test_two")}};
	struct input tick = {.kind = INPUT_TICK, .tick = {.wall_offset_ns = 1}};
	uint32_t c = scene_connect(scene, 4711);

	pipeline_feed(scene->pipeline, &cgroup);
	scene_send(scene, c, WIRE_BUILD_CLIENT, "\x01\x02\x03 no http");
	post(scene, "Content-Type: application/json\r\n", BYTES("{\"a\":1}"), CREATED);
	mark.now_ns = tick.now_ns = scene->now_ns;
	pipeline_feed(scene->pipeline, &mark);
	pipeline_feed(scene->pipeline, &tick);
	post(scene, "Content-Type: application/json\r\n", BYTES("{\"a\":1}"), CREATED);
}

/* Requests on top of each other, and one that stops midway. */
static void pipelined_and_cut(struct scene *scene)
{
	uint32_t c = scene_connect(scene, 4711);

	for (int i = 0; i < 3; i++) {
		char text[128];

		snprintf(text, sizeof(text),
			 "POST /%d HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", i);
		scene_send(scene, c, WIRE_BUILD_CLIENT, text);
	}
	scene_send(scene, c, WIRE_BUILD_SERVER, CREATED CREATED CREATED);
	scene_send(scene, c, WIRE_BUILD_CLIENT, "PUT /last HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	scene_close(scene, c, WIRE_BUILD_CLIENT);
	scene_close(scene, c, WIRE_BUILD_SERVER);
}

#define PLAYS_MAX (CASES_MAX + 8)

/* An answer in gzip that a later stage reads: the tool only reads, and may be called twice. */
static void tools_in_gzip(struct scene *scene)
{
	static const char list[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}";
	static const char call[] =
		"{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"create_a\"}}";
	uint32_t c = scene_connect(scene, 4711);

	for (int i = 0; i < 3; i++) {
		const char *body = i ? call : list;
		struct bytes answer = i ? BYTES("{}") : buffer_bytes(&tools);
		char head[256];

		snprintf(head, sizeof(head),
			 "POST /mcp HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
			 strlen(body));
		scene_send(scene, c, WIRE_BUILD_CLIENT, head);
		scene_send(scene, c, WIRE_BUILD_CLIENT, body);
		snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%sContent-Length: %zu\r\n\r\n",
			 i ? "" : "Content-Encoding: gzip\r\n", answer.size);
		scene_send(scene, c, WIRE_BUILD_SERVER, head);
		scene_send_bytes(scene, c, WIRE_BUILD_SERVER, answer);
		scene_wait(scene, 100);
	}
}

static void holes(struct scene *scene)
{
	uint32_t c = scene_connect(scene, 4711);

	scene_send(scene, c, WIRE_BUILD_CLIENT, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\nabc");
	scene_lose(scene, c, WIRE_BUILD_CLIENT, 4);
	scene_send(scene, c, WIRE_BUILD_CLIENT, "xyz");
	scene_send(scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc");
	scene_lose(scene, c, WIRE_BUILD_SERVER, 7);
}

static struct play plays[PLAYS_MAX];
static size_t play_count;

static void make_plays(const struct case_texts *texts)
{
	static const struct play more[] = {
		{"coded bodies", NULL, coded_bodies, GATE_EXIT_FINDING},
		{"other bodies", NULL, other_bodies, 0},
		{"a keyed retry", NULL, keyed_retry, 0},
		{"marks and blind streams", NULL, marks_and_blind_streams, 0},
		{"pipelined and cut", NULL, pipelined_and_cut, 0},
		{"a list of tools in gzip", NULL, tools_in_gzip, 0},
		{"holes", NULL, holes, GATE_EXIT_INCOMPLETE},
	};

	for (size_t i = 0; i < texts->count; i++) {
		const struct case_text *text = &texts->cases[i];
		struct scene scene;

		plays[play_count] = (struct play){text->name, text, NULL, text->flagged ? GATE_EXIT_FINDING : 0};
		/* A case whose rules are not there yet is no case of ours: cases_test says so. */
		run(&plays[play_count], &scene);
		if (pipeline_exit_status(scene.pipeline) == plays[play_count].status)
			play_count++;
		scene_done(&scene);
	}
	for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++)
		plays[play_count++] = more[i];
	zstd = coded_zstd(BYTES(CODED_JSON), 0);
	gzip = coded_gzip(buffer_bytes(&zstd), 0);
	aws = coded_aws_chunked(BYTES(CODED_JSON), 9, 'a', "");
	tools = coded_gzip(BYTES("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"tools\":[{\"name\":\"create_a\","
				 "\"annotations\":{\"readOnlyHint\":true}}]}}"), 1);
}

int main(void)
{
	static struct case_texts texts;
	static struct CMUnitTest tests[3 * PLAYS_MAX];
	static char titles[3 * PLAYS_MAX][100];
	int failed;

	case_load_all(&texts);
	make_plays(&texts);
	for (size_t i = 0; i < play_count; i++) {
		static const struct {
			const char *what;
			CMUnitTestFunction test;
		} ways[] = {
			{"each allocation failed once", once},
			{"no memory from each allocation on", from_there_on},
			{"behind the sequencer, each failed once", behind_the_sequencer},
		};

		for (size_t j = 0; j < 3; j++) {
			snprintf(titles[3 * i + j], sizeof(titles[0]), "%s, %s", plays[i].name, ways[j].what);
			tests[3 * i + j] = (struct CMUnitTest){titles[3 * i + j], ways[j].test, NULL, NULL, &plays[i]};
		}
	}
	failed = _cmocka_run_group_tests("allocations", tests, 3 * play_count, NULL, NULL);
	case_unload_all(&texts);
	buffer_done(&zstd);
	buffer_done(&gzip);
	buffer_done(&aws);
	buffer_done(&tools);
	return failed;
}
