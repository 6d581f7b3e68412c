/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a model's answer says that it cost, for every API: plain, streamed,
 * compressed, and cut; in one slice, in two that meet at every byte, and byte
 * by byte. Then the same through the whole pipeline.
 */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "coded_build.h"
#include "scene.h"
#include "usage.h"
#include "usage_rows.h"

#define SAYS_BYTES 512

/* ---- in words ---- */

static size_t add_count(char *text, size_t at, int64_t count)
{
	char digits[24] = "-";

	if (count >= 0)
		snprintf(digits, sizeof(digits), "%lld", (long long)count);
	return at + (size_t)snprintf(text + at, SAYS_BYTES - at, "%s%s", at ? "/" : "", digits);
}

static size_t add_word(char *text, size_t at, struct bytes word)
{
	if (!word.size)
		word = BYTES("-");
	return at + (size_t)snprintf(text + at, SAYS_BYTES - at, " %.*s", (int)word.size, (const char *)word.data);
}

static void put_in_words(const struct model_answer *answer, char text[SAYS_BYTES])
{
	const struct usage *usage = &answer->usage;
	const int64_t counts[] = {usage->input_tokens, usage->output_tokens, usage->cached_tokens, usage->cache_write_tokens,
				  usage->reasoning_tokens};
	size_t at = 0;

	for (size_t i = 0; usage->seen && i < 5; i++)
		at = add_count(text, at, counts[i]);
	if (!usage->seen)
		at = (size_t)snprintf(text, SAYS_BYTES, "-");
	at = add_word(text, at, usage->seen ? usage->final ? BYTES("final") : BYTES("bound") : (struct bytes){0});
	at = add_word(text, at,
		      answer->complete	   ? BYTES("complete")
		      : answer->unfinished ? BYTES("unfinished")
					   : (struct bytes){0});
	at = add_word(text, at, answer->finish_reason);
	at = add_word(text, at, answer->id);
	add_word(text, at, answer->model);
}

/* ---- slices ---- */

/* In slices that meet at cut; 0 = one slice; SIZE_MAX = a byte each. */
static struct usage_reader *read_slices(struct bytes entity, size_t cut)
{
	struct usage_reader *reader = usage_reader_new();

	assert_non_null(reader);
	if (cut && cut < entity.size)
		usage_reader_feed(reader, bytes_take(&entity, cut));
	while (entity.size)
		usage_reader_feed(reader, bytes_take(&entity, cut == SIZE_MAX ? 1 : entity.size));
	return reader;
}

static void assert_slices(const char *name, struct bytes entity, size_t cut, const char *says)
{
	struct usage_reader *reader = read_slices(entity, cut);
	struct model_answer answer;
	char text[SAYS_BYTES];

	usage_reader_answer(reader, &answer);
	put_in_words(&answer, text);
	if (strcmp(text, says) != 0)
		fail_msg("%s, cut at %zu: %s, expected %s", name, cut, text, says);
	usage_reader_free(reader);
}

/* However it is cut. */
static void assert_says(const char *name, struct bytes entity, const char *says)
{
	for (size_t cut = 0; cut < entity.size; cut++)
		assert_slices(name, entity, cut, says);
	assert_slices(name, entity, SIZE_MAX, says);
}

static void assert_text_says(const char *text, const char *says)
{
	assert_says(text, bytes_of_string(text), says);
}

static struct bytes up_to(const char *text, const char *words)
{
	const char *found = strstr(text, words);

	assert_non_null(found);
	return (struct bytes){(const uint8_t *)text, (size_t)(found - text) + strlen(words)};
}

/* The first pieces of a stream, and half of the next one where there is one. */
static struct buffer stream_of(const struct usage_row *row, size_t count)
{
	struct buffer stream = {0};

	for (size_t i = 0; i < count && row->pieces[i]; i++)
		assert_int_equal(buffer_append(&stream, bytes_of_string(row->pieces[i])), 0);
	if (count < ROW_PIECES && row->pieces[count]) {
		struct bytes half = bytes_of_string(row->pieces[count]);

		half.size /= 2;
		assert_int_equal(buffer_append(&stream, half), 0);
	}
	return stream;
}

static void every_plain_answer_is_read(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++)
		if (usage_rows[i].plain)
			assert_says(usage_rows[i].name, bytes_of_string(usage_rows[i].plain), usage_rows[i].plain_says);
}

static void every_cut_answer_keeps_what_it_reported(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++)
		if (usage_rows[i].plain)
			assert_says(usage_rows[i].name, up_to(usage_rows[i].plain, usage_rows[i].cut_plain),
				    usage_rows[i].cut_plain_says);
}

static void every_stream_is_followed_to_its_end(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++) {
		struct buffer stream = stream_of(&usage_rows[i], ROW_PIECES);

		if (stream.size)
			assert_says(usage_rows[i].name, buffer_bytes(&stream), usage_rows[i].stream_says);
		buffer_done(&stream);
	}
}

static void every_cut_stream_keeps_its_whole_events(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++) {
		struct buffer stream = stream_of(&usage_rows[i], usage_rows[i].cut_at);

		if (usage_rows[i].pieces[0])
			assert_says(usage_rows[i].name, buffer_bytes(&stream), usage_rows[i].cut_says);
		buffer_done(&stream);
	}
}

static void line_ends_do_not_matter_to_events(void **state)
{
	static const char *const ends[] = {"\n", "\r\n", "\r"};

	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++)
		for (size_t j = 0; j < 3; j++) {
			struct buffer stream = stream_of(&usage_rows[i], ROW_PIECES), other = {0};

			for (size_t k = 0; k < stream.size; k++)
				if (stream.data[k] == '\n')
					assert_int_equal(buffer_append(&other, bytes_of_string(ends[j])), 0);
				else if (stream.data[k] != '\r')
					assert_int_equal(buffer_append_byte(&other, stream.data[k]), 0);
			if (usage_rows[i].type && strcmp(usage_rows[i].type, SSE) == 0)
				assert_says(usage_rows[i].name, buffer_bytes(&other), usage_rows[i].stream_says);
			buffer_done(&other);
			buffer_done(&stream);
		}
}

/* ---- counts that are none ---- */

static void what_is_no_count_is_not_reported_and_counted(void **state)
{
	static const struct {
		const char *count;
		const char *says;
		unsigned int refused;
	} rows[] = {
		{"812", "812/41/-/-/- final complete stop - -", 0},
		{"0", "0/41/-/-/- final complete stop - -", 0},
		{"9007199254740992", "9007199254740992/41/-/-/- final complete stop - -", 0},
		{"null", "-/41/-/-/- final complete stop - -", 0},
		{"9007199254740993", "-/41/-/-/- final complete stop - -", 1},
		{"18446744073709551628", "-/41/-/-/- final complete stop - -", 1},
		{"-1", "-/41/-/-/- final complete stop - -", 1},
		{"812.5", "-/41/-/-/- final complete stop - -", 1},
		{"8e2", "-/41/-/-/- final complete stop - -", 1},
		{"\"812\"", "-/41/-/-/- final complete stop - -", 1},
		{"true", "-/41/-/-/- final complete stop - -", 1},
		{"{\"total\":812}", "-/41/-/-/- final complete stop - -", 1},
		{"[812]", "-/41/-/-/- final complete stop - -", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct model_answer answer;
		struct usage_reader *reader;
		char text[256];

		snprintf(text, sizeof(text),
			 "{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":%s,\"completion_tokens\":41}}",
			 rows[i].count);
		assert_text_says(text, rows[i].says);
		reader = read_slices(bytes_of_string(text), 0);
		usage_reader_answer(reader, &answer);
		assert_int_equal(answer.refused, rows[i].refused);
		usage_reader_free(reader);
	}
}

static void a_sum_of_which_a_part_is_not_known_is_not_known(void **state)
{
	(void)state;
	assert_text_says("{\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":\"9\",\"output_tokens\":2}}",
			 "-/2/-/-/- final complete end_turn - -");
	assert_text_says("{\"stop_reason\":\"end_turn\",\"usage\":{\"input_tokens\":5,\"cache_read_input_tokens\":null,\"output_tokens\":2}}",
			 "5/2/-/-/- final complete end_turn - -");
	assert_text_says("{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"candidatesTokenCount\":7,\"thoughtsTokenCount\":-3}}",
			 "- - complete STOP - -");
	assert_text_says("{\"candidates\":[{\"finishReason\":\"STOP\"}],\"usageMetadata\":{\"thoughtsTokenCount\":3}}",
			 "-/3/-/-/3 final complete STOP - -");
}

static void a_count_that_comes_again_replaces_the_one_before(void **state)
{
	(void)state;
	assert_text_says("data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5,\"output_tokens\":1}}}\n\n"
			 "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":8}}\n\n"
			 "data: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":6,\"output_tokens\":9}}\n\n"
			 "data: {\"type\":\"message_stop\"}\n\n",
			 "6/9/-/-/- final complete end_turn - -");
	/* LiteLLM: Anthropic's names beside a prompt that holds them already. */
	assert_text_says("{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":100,\"completion_tokens\":4,"
			 "\"cache_read_input_tokens\":60,\"cache_creation_input_tokens\":20}}",
			 "100/4/60/20/- final complete stop - -");
}

/* ---- where an answer ends ---- */

static void an_answer_is_complete_when_its_own_marker_came(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{"data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]\n\n", "- - complete - - -"},
		{"data: {\"choices\":[{\"delta\":{}}]}\n\ndata:[DONE]\n\n", "- - complete - - -"},
		{"data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]", "- - unfinished - - -"},
		{"data: {\"choices\":[{\"delta\":{}}]}\n\ndata: [DONE]]\n\n", "- - unfinished - - -"},
		{"data: {\"choices\":[{\"finish_reason\":\"stop\"}]}\n\n", "- - complete stop - -"},
		/* every choice that began must have ended */
		{"data: {\"choices\":[{\"index\":0},{\"index\":1}]}\n\ndata: {\"choices\":[{\"index\":1,\"finish_reason\":\"stop\"}]}\n\n",
		 "- - unfinished stop - -"},
		{"data: {\"choices\":[{\"index\":0},{\"index\":1}]}\n\ndata: {\"choices\":[{\"index\":1,\"finish_reason\":\"stop\"}]}\n\n"
		 "data: {\"choices\":[{\"finish_reason\":\"length\",\"index\":0}]}\n\n",
		 "- - complete stop - -"},
		{"{\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}", "- - complete SAFETY - -"},
		{"data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\n\n", "- - complete SAFETY - -"},
		{"data: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\"}}\n\n", "- - complete failed - -"},
		{"data: {\"type\":\"response.incomplete\"}\n\n", "- - complete - - -"},
		{"{\"id\":\"r\",\"status\":\"cancelled\"}", "- - complete cancelled r -"},
		/* a marker that says: not yet */
		{"{\"type\":\"message\",\"stop_reason\":null,\"usage\":{\"input_tokens\":5}}", "5/-/-/-/- bound unfinished - - -"},
		{"{\"choices\":[{\"finish_reason\":null}],\"usage\":{\"prompt_tokens\":5}}", "5/-/-/-/- bound unfinished - - -"},
		{"{\"stop\":true,\"stop_type\":\"none\",\"tokens_predicted\":3}", "-/3/-/-/- final complete - - -"},
		/* several texts, or an array of them, have no end of their own */
		{"{\"n\":1}\n{\"n\":2}\n", "- - - - - -"},
		{"[{\"usageMetadata\":{\"promptTokenCount\":3}}]", "3/-/-/-/- bound - - - -"},
		/* events of an API that has an end of its own */
		{"data: {\"usage\":{\"input_tokens\":5}}\n\n", "5/-/-/-/- bound - - - -"},
		{"data: {\"type\":\"image_generation.partial_image\"}\n\ndata: {\"type\":\"image_generation.completed\","
		 "\"usage\":{\"input_tokens\":50,\"output_tokens\":100}}\n\n",
		 "50/100/-/-/- final complete - - -"},
		{"data: {\"type\":\"transcript.text.done\",\"usage\":{\"input_tokens\":5}}\n\n", "5/-/-/-/- final complete - - -"},
		/* fetched later */
		{"{\"id\":\"r\",\"status\":\"queued\",\"usage\":null}", "- - - queued r -"},
		{"{\"id\":\"r\",\"status\":\"in_progress\"}", "- - - in_progress r -"},
		{"data: {\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n", "- - unfinished - r -"},
		/* an error in place of the rest */
		{"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n", "- - - - - -"},
		{"data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":5}}}\n\n"
		 "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}\n\n",
		 "5/-/-/-/- bound unfinished - - -"},
		{"{\"error\":{\"message\":\"no\"}}", "- - - - - -"},
		{"{\"error\":null,\"data\":[]}", "- - complete - - -"},
		/* NDJSON that stops after its first line */
		{"{\"response\":\"A\",\"done\":false}\n", "- - unfinished - - -"},
		/* an array that is closed without an end of the answer */
		{"[{\"candidates\":[{\"index\":0}]}]", "- - unfinished - - -"},
		/* images, embeddings: whole with their text */
		{"{\"created\":1,\"data\":[{\"b64_json\":\"QUJD\"}]}", "- - complete - - -"},
		{"{\"created\":1,\"data\":[{\"b64_json\":\"QUJ", "- - - - - -"},
		/* no model's answer */
		{"<html>504</html>", "- - - - - -"},
		{"event: other\ndata: hello\n\n", "- - - - - -"},
		{"", "- - - - - -"},
		{" \r\n\t", "- - - - - -"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_text_says(rows[i].text, rows[i].says);
}

static void a_name_with_a_dot_in_it_says_nothing(void **state)
{
	(void)state;
	assert_text_says("{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":812},\"usage.prompt_tokens\":7}",
			 "812/-/-/-/- final complete stop - -");
}

/* ---- framings ---- */

static void events_are_read_as_the_standard_has_it(void **state)
{
	static const char *const streams[] = {
		/* a byte order mark, comments, fields that are not ours, no space behind the colon */
		"\xef\xbb\xbf: hello\nid: 7\nretry: 3\nevent: x\ndata:{\"usage\":{\"prompt_tokens\":5}}\n\ndata: [DONE]\n\n",
		/* data over several lines, joined by LF */
		"data: {\"usage\":\ndata: {\"prompt_tokens\"\ndata\ndata: :5}}\n\ndata: [DONE]\n\n",
		/* an event without data is none; a name that only begins as data is another */
		"event: a\n\ndatax: {\"usage\":{\"prompt_tokens\":6}}\ndata: {\"usage\":{\"prompt_tokens\":5}}\n\ndata: [DONE]\n\n",
		/* what is no JSON says nothing, and neither does half of one */
		"data: {\"usage\":{\"prompt_tokens\":5}}\n\ndata: {\"usage\":{\"prompt_tokens\":6}\n\ndata: {\"usage\":{\"prompt_tokens\":7}}}\n\n"
		"data: [DONE]\n\n",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(streams) / sizeof(streams[0]); i++)
		assert_text_says(streams[i], "5/-/-/-/- final complete - - -");
}

static void a_line_that_is_no_json_is_passed_over(void **state)
{
	(void)state;
	assert_text_says("{\"done\":false,\"model\":\"m\"}\nnot json {\"done\":true}\n{\"done\":true,\"eval_count\":4}\n",
			 "-/4/-/-/- final complete - - m");
	assert_text_says("{\"done\":false} x\n\n\r\n{\"done\":true,\"eval_count\":4}", "-/4/-/-/- final complete - - -");
	/* where nothing came before it, it is no JSON at all */
	assert_text_says("{\"model\":\"m\" x}\n{\"done\":true,\"eval_count\":4}\n", "- - - - - -");
}

static void texts_are_read_without_their_escapes_and_cut_at_whole_characters(void **state)
{
	char text[512], says[SAYS_BYTES], name[200] = "";

	(void)state;
	assert_text_says("{\"id\":\"a\\u00e9\\ud83d\\ude00\\n\\\"\\ud800\",\"model\":\"\\u006d\",\"usage\":{\"prompt\\u005ftokens\":5}}",
			 "5/-/-/-/- final complete - a\xc3\xa9\xf0\x9f\x98\x80\n\"\xef\xbf\xbd m");
	for (int i = 0; i < 45; i++)
		memcpy(name + 3 * i, "\xe2\x82\xac", 3);
	snprintf(text, sizeof(text), "{\"id\":\"%s\"}", name);
	snprintf(says, sizeof(says), "- - complete - %.126s -", name); /* 42 of 128 bytes' worth */
	assert_text_says(text, says);
}

static void depth_and_size_take_no_memory(void **state)
{
	struct buffer text = {0};

	(void)state;
	assert_int_equal(buffer_append(&text, BYTES("{\"id\":\"x\",\"a\":")), 0);
	for (int i = 0; i < LIMIT_JSON_DEPTH - 1; i++)
		assert_int_equal(buffer_append(&text, BYTES("[")), 0);
	for (int i = 0; i < LIMIT_JSON_DEPTH - 1; i++)
		assert_int_equal(buffer_append(&text, BYTES("]")), 0);
	assert_int_equal(buffer_append(&text, BYTES(",\"usage\":{\"prompt_tokens\":5}}")), 0);
	assert_slices("deep", buffer_bytes(&text), 0, "5/-/-/-/- final complete - x -");
	assert_slices("deep", buffer_bytes(&text), SIZE_MAX, "5/-/-/-/- final complete - x -");
	text.data[13] = '['; /* one level too deep: it is not read */
	assert_slices("too deep", buffer_bytes(&text), 0, "- - - - - -");
	buffer_done(&text);
}

static void after_a_gap_events_are_followed_and_counts_are_bounds(void **state)
{
	struct usage_reader *reader = usage_reader_new();
	struct model_answer answer;
	char text[SAYS_BYTES];

	(void)state;
	usage_reader_feed(reader, BYTES("data: {\"choices\":[{\"delta\":{}}],\"usage\":{\"prompt_tokens\":5}}\n\ndata: {\"usage\":"));
	usage_reader_gap(reader);
	usage_reader_feed(reader, BYTES("{\"prompt_tokens\":6}}\n"));
	usage_reader_answer(reader, &answer);
	put_in_words(&answer, text);
	assert_string_equal(text, "5/-/-/-/- bound - - - -"); /* the gap may hold its end */
	usage_reader_feed(reader, BYTES("\ndata: {\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n"));
	usage_reader_answer(reader, &answer);
	put_in_words(&answer, text);
	assert_string_equal(text, "7/2/-/-/- bound complete - - -");
	usage_reader_free(reader);

	reader = usage_reader_new();
	usage_reader_feed(reader, BYTES("{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":5,"));
	usage_reader_gap(reader);
	usage_reader_feed(reader, BYTES("{\"usage\":{\"prompt_tokens\":6}}}"));
	usage_reader_answer(reader, &answer);
	put_in_words(&answer, text);
	assert_string_equal(text, "5/-/-/-/- bound - stop - -");
	usage_reader_free(reader);
}

/* ---- through the pipeline ---- */

enum how { HOW_LENGTH, HOW_CHUNKED, HOW_GZIP, HOW_ZSTD, HOW_CUT };

static struct buffer framed(const char *type, struct bytes entity, enum how how)
{
	struct buffer coded = {0}, message = {0};
	bool chunked = how == HOW_CHUNKED || how == HOW_CUT;
	char head[256], size[32];

	if (how == HOW_GZIP)
		coded = coded_gzip(entity, 0);
	else if (how == HOW_ZSTD)
		coded = coded_zstd(entity, 0);
	else
		buffer_append(&coded, entity);
	snprintf(size, sizeof(size), "Content-Length: %zu", coded.size);
	snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Type: %s\r\n%s%s\r\n\r\n", type,
		 how == HOW_GZIP   ? "Content-Encoding: gzip\r\n"
		 : how == HOW_ZSTD ? "Content-Encoding: zstd\r\n"
				   : "",
		 chunked ? "Transfer-Encoding: chunked" : size);
	buffer_append(&message, bytes_of_string(head));
	if (chunked) {
		snprintf(size, sizeof(size), "%zx\r\n", coded.size);
		buffer_append(&message, bytes_of_string(size));
	}
	buffer_append(&message, buffer_bytes(&coded));
	if (how == HOW_CHUNKED)
		buffer_append(&message, BYTES("\r\n0\r\n\r\n"));
	buffer_done(&coded);
	return message;
}

static void ask(struct scene *scene, uint32_t c, const struct usage_row *row)
{
	char request[1024];

	snprintf(request, sizeof(request), "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 row->path, strlen(row->request), row->request);
	scene_send(scene, c, WIRE_BUILD_CLIENT, request);
}

static int64_t count_of(json_object *usage, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(usage, name, &value);
	return value ? json_object_get_int64(value) : -1;
}

static struct bytes field(json_object *event, const char *name)
{
	return bytes_of_string(scene_field(event, name));
}

/* The response event as if it were the answer itself. */
static struct model_answer answer_of(json_object *event)
{
	struct model_answer answer = {.finish_reason = field(event, "finish_reason"),
				      .id = field(event, "response_id"),
				      .model = field(event, "response_model")};
	const char *complete = scene_field(event, "answer_complete");
	json_object *usage = NULL;

	json_object_object_get_ex(event, "usage", &usage);
	answer.complete = complete && strcmp(complete, "true") == 0;
	answer.unfinished = complete && strcmp(complete, "false") == 0;
	answer.usage = (struct usage){.seen = usage != NULL};
	if (!usage)
		return answer;
	answer.usage = (struct usage){
		.input_tokens = count_of(usage, "input_tokens"),
		.output_tokens = count_of(usage, "output_tokens"),
		.cached_tokens = count_of(usage, "cached_tokens"),
		.cache_write_tokens = count_of(usage, "cache_write_tokens"),
		.reasoning_tokens = count_of(usage, "reasoning_tokens"),
		.final = strcmp(scene_field(usage, "final"), "true") == 0,
		.seen = true,
	};
	return answer;
}

static void assert_wire(const struct usage_row *row, const char *type, struct bytes entity, enum how how, size_t cut,
			const char *says)
{
	struct buffer message = framed(type, entity, how);
	struct model_answer answer;
	char text[SAYS_BYTES];
	struct scene scene;
	uint32_t c;

	scene_start(&scene);
	scene_open(&scene);
	c = scene_connect(&scene, 100);
	ask(&scene, c, row);
	scene.cut = cut;
	scene_wait(&scene, 5);
	scene_send_bytes(&scene, c, WIRE_BUILD_SERVER, buffer_bytes(&message));
	scene_wait(&scene, 5);
	if (how == HOW_CUT)
		scene_abort(&scene, c, WIRE_BUILD_SERVER);
	scene_finish(&scene, 0);
	answer = answer_of(scene_event(&scene, "response", 0));
	put_in_words(&answer, text);
	if (strcmp(text, says) != 0)
		fail_msg("%s, how %d, cut at %zu: %s, expected %s", row->name, how, cut, text, says);
	buffer_done(&message);
	scene_done(&scene);
}

static void the_wire_says_the_same_of_every_plain_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++)
		for (enum how how = HOW_LENGTH; usage_rows[i].plain && how <= HOW_ZSTD; how++)
			for (size_t cut = 0; cut < 400; cut += 13)
				assert_wire(&usage_rows[i], "application/json", bytes_of_string(usage_rows[i].plain), how, cut,
					    usage_rows[i].plain_says);
}

static void the_wire_says_the_same_of_every_stream(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++) {
		struct buffer stream = stream_of(&usage_rows[i], ROW_PIECES);

		for (enum how how = HOW_LENGTH; stream.size && how <= HOW_ZSTD; how++)
			for (size_t cut = 0; cut < 400; cut += 13)
				assert_wire(&usage_rows[i], usage_rows[i].type, buffer_bytes(&stream), how, cut,
					    usage_rows[i].stream_says);
		buffer_done(&stream);
	}
}

static void the_wire_says_the_same_of_every_cut_answer(void **state)
{
	(void)state;
	for (size_t i = 0; i < USAGE_ROW_COUNT; i++) {
		const struct usage_row *row = &usage_rows[i];
		struct buffer stream = stream_of(row, row->cut_at);

		if (row->plain)
			assert_wire(row, "application/json", up_to(row->plain, row->cut_plain), HOW_CUT, 0, row->cut_plain_says);
		if (row->pieces[0])
			assert_wire(row, row->type, buffer_bytes(&stream), HOW_CUT, 0, row->cut_says);
		buffer_done(&stream);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_plain_answer_is_read),
		cmocka_unit_test(every_cut_answer_keeps_what_it_reported),
		cmocka_unit_test(every_stream_is_followed_to_its_end),
		cmocka_unit_test(every_cut_stream_keeps_its_whole_events),
		cmocka_unit_test(line_ends_do_not_matter_to_events),
		cmocka_unit_test(what_is_no_count_is_not_reported_and_counted),
		cmocka_unit_test(a_sum_of_which_a_part_is_not_known_is_not_known),
		cmocka_unit_test(a_count_that_comes_again_replaces_the_one_before),
		cmocka_unit_test(an_answer_is_complete_when_its_own_marker_came),
		cmocka_unit_test(a_name_with_a_dot_in_it_says_nothing),
		cmocka_unit_test(events_are_read_as_the_standard_has_it),
		cmocka_unit_test(a_line_that_is_no_json_is_passed_over),
		cmocka_unit_test(texts_are_read_without_their_escapes_and_cut_at_whole_characters),
		cmocka_unit_test(depth_and_size_take_no_memory),
		cmocka_unit_test(after_a_gap_events_are_followed_and_counts_are_bounds),
		cmocka_unit_test(the_wire_says_the_same_of_every_plain_answer),
		cmocka_unit_test(the_wire_says_the_same_of_every_stream),
		cmocka_unit_test(the_wire_says_the_same_of_every_cut_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
