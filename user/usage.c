/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two readings of the answer: the one that stands, and the one that the event
 * or text in progress may yet make of it.
 */
#include "usage.h"
#include "event_stream.h"
#include "usage_reading.h"

static const char done[] = "[DONE]"; /* OpenAI's last event, which is no JSON */

#define DONE_BYTES (sizeof(done) - 1)

enum framing { FRAMING_NOT_KNOWN, FRAMING_JSON, FRAMING_EVENTS, FRAMING_OTHER };

struct usage_reader {
	enum framing framing;
	struct event_stream events;
	struct json_stream json;
	struct usage_reading stands; /* after the last whole event, or JSON text */
	struct usage_reading now;
	uint8_t data[DONE_BYTES]; /* the first bytes of the event */
	size_t data_size;	  /* of all of it */
	unsigned int texts;	  /* whole JSON texts that came, up to 2 */
	bool array;		  /* the JSON text is an array of answers */
	bool page;		  /* HTML or the like */
	bool gap;
};

struct usage_reader *usage_reader_new(void)
{
	struct usage_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	usage_reading_init(&reader->stands);
	reader->now = reader->stands;
	return reader;
}

void usage_reader_free(struct usage_reader *reader)
{
	free(reader);
}

/* ---- framings ---- */

/* False: it is no JSON. */
static bool feed_json(struct usage_reader *reader, struct bytes input)
{
	enum json_stream_step step;

	while ((step = json_stream_next(&reader->json, &input)) != JSON_STREAM_MORE) {
		bool whole = step == JSON_STREAM_END;

		if (step == JSON_STREAM_BROKEN)
			return false;
		if (!whole)
			usage_reading_take(&reader->now, step, &reader->json);
		if (step == JSON_STREAM_CLOSE && bytes_equal(json_stream_path(&reader->json), BYTES("[]")))
			reader->array = whole = true;
		if (whole && reader->framing == FRAMING_JSON)
			reader->stands = reader->now;
		if (step == JSON_STREAM_END)
			reader->texts += reader->texts < 2;
	}
	return true;
}

/* One JSON text or one a line: a line that is none says nothing, but where none came before it, there are no lines. */
static void feed_lines(struct usage_reader *reader, struct bytes input)
{
	while (input.size && reader->framing == FRAMING_JSON) {
		struct bytes line = bytes_take(&input, bytes_find(input, '\n') + 1);

		if (feed_json(reader, line))
			continue;
		if (reader->texts == 0)
			reader->framing = FRAMING_OTHER;
		reader->now = reader->stands;
		if (line.data[line.size - 1] == '\n')
			json_stream_reset(&reader->json);
	}
}

static void start_event(struct usage_reader *reader)
{
	json_stream_reset(&reader->json);
	reader->now = reader->stands;
	reader->data_size = 0;
}

static void end_event(struct usage_reader *reader)
{
	if (reader->data_size == DONE_BYTES && memcmp(reader->data, done, DONE_BYTES) == 0)
		reader->stands.known = reader->stands.terminal = true;
	else if (json_stream_is_outside(&reader->json))
		reader->stands = reader->now;
	start_event(reader);
}

static void feed_events(struct usage_reader *reader, struct bytes input)
{
	enum event_stream_step step;
	struct bytes data;

	while ((step = event_stream_next(&reader->events, &input, &data)) != EVENT_STREAM_MORE) {
		if (step == EVENT_STREAM_END) {
			end_event(reader);
			continue;
		}
		for (size_t i = 0; i < data.size && reader->data_size + i < DONE_BYTES; i++)
			reader->data[reader->data_size + i] = data.data[i];
		reader->data_size += data.size;
		feed_json(reader, data);
	}
}

/* By its first byte: servers do not always say what they send. */
static void find_framing(struct usage_reader *reader, struct bytes *input)
{
	static const char spaces[] = " \t\r\n\xef\xbb\xbf"; /* and a byte order mark */

	while (input->size && memchr(spaces, input->data[0], sizeof(spaces) - 1))
		bytes_take(input, 1);
	if (!input->size)
		return;
	if (input->data[0] == '{' || input->data[0] == '[')
		reader->framing = FRAMING_JSON;
	else if (memchr(":deir", input->data[0], 5)) /* a comment, data, event, id, retry */
		reader->framing = FRAMING_EVENTS;
	else
		reader->framing = FRAMING_OTHER;
	reader->page = input->data[0] == '<';
}

void usage_reader_feed(struct usage_reader *reader, struct bytes entity)
{
	if (reader->framing == FRAMING_NOT_KNOWN)
		find_framing(reader, &entity);
	if (reader->framing == FRAMING_JSON)
		feed_lines(reader, entity);
	else if (reader->framing == FRAMING_EVENTS)
		feed_events(reader, entity);
}

void usage_reader_gap(struct usage_reader *reader)
{
	reader->gap = true;
	if (reader->framing == FRAMING_EVENTS) {
		event_stream_gap(&reader->events);
		start_event(reader);
	} else {
		reader->framing = FRAMING_OTHER;
	}
}

/* ---- the answer ---- */

/* Embeddings, images and the like come as one text that has no other end than its own. */
static bool is_whole_text(const struct usage_reader *reader)
{
	const struct usage_reading *stands = &reader->stands;

	return reader->framing == FRAMING_JSON && reader->texts == 1 && !reader->array &&
	       json_stream_is_outside(&reader->json) && !stands->choices && !stands->marker_due &&
	       !stands->background.size && !stands->failed;
}

static bool is_complete(const struct usage_reader *reader)
{
	const struct usage_reading *stands = &reader->stands;

	return stands->terminal || (stands->choices && stands->choices == stands->finished_choices) ||
	       is_whole_text(reader);
}

/* One whole text that says "in progress" is all that the caller asked for. */
static bool is_fetched_later(const struct usage_reader *reader)
{
	return reader->framing == FRAMING_JSON && reader->texts == 1 && json_stream_is_outside(&reader->json) &&
	       reader->stands.background.size && !reader->stands.terminal;
}

/*
 * In a form whose end we would know. Events with a count in them may be of an
 * API that ends in a way of its own; a JSON text ends with its last bracket.
 */
static bool has_begun(const struct usage_reader *reader, const struct usage_reading *reading)
{
	bool inside = reader->framing == FRAMING_JSON && !json_stream_is_outside(&reader->json);

	return reading->known || (inside && reading->counted);
}

static struct bytes text_of(const struct usage_text *kept)
{
	return (struct bytes){kept->text, kept->size};
}

void usage_reader_answer(const struct usage_reader *reader, struct model_answer *ret_answer)
{
	/* Counts of a JSON text that is cut are lower bounds all the same; half an event was never there. */
	const struct usage_reading *reading = reader->framing == FRAMING_EVENTS ? &reader->stands : &reader->now;
	struct model_answer answer = {
		.usage = usage_reading_counts(reading),
		.refused = reading->refused,
		.complete = is_complete(reader),
		.failed = reader->stands.failed || reader->page,
		.finish_reason = text_of(&reading->finish_reason),
		.id = text_of(&reading->id),
		.model = text_of(&reading->model),
	};

	if (is_fetched_later(reader))
		answer.finish_reason = text_of(&reading->background);
	else
		answer.unfinished = has_begun(reader, reading) && !answer.complete && !reader->gap;
	answer.usage.final = answer.usage.seen && (answer.complete || reader->stands.stopped) && !reader->gap;
	*ret_answer = answer;
}
