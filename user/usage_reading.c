/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One table from path to meaning: a count under somebody's name for it, or a
 * mark that a function below reads. Different APIs never give one path two
 * meanings, so nobody has to say which API it is.
 */
#include "usage_reading.h"
#include "usage.h"

#define NOT_REPORTED (-1)
#define REFUSED (-2)
#define CHOICES_MAX 64 /* choices beyond are taken for the last */

/* What else an answer says. */
enum mark {
	MARK_TYPE = COUNT_COUNT,
	MARK_CHOICE, /* an object */
	MARK_CHOICE_INDEX,
	MARK_CHOICE_FINISH,
	MARK_BLOCKED,
	MARK_STATUS,
	MARK_STOP_REASON,
	MARK_STOP_REASON_AHEAD, /* the terminal marker follows */
	MARK_DONE,
	MARK_FINISH,
	MARK_ERROR,
	MARK_ID,
	MARK_MODEL,
	MARK_NOTHING,
};

struct member_row {
	const char *path;
	uint8_t size;
	uint8_t says; /* enum usage_count or enum mark */
};

#define MEMBER(path, says) {path, sizeof(path) - 1, says}
#define ROW(path, count) MEMBER(path, COUNT_##count)

static const struct member_row member_rows[] = {
	/* OpenAI chat and embeddings, vLLM, llama.cpp */
	ROW("usage.prompt_tokens", PROMPT),
	ROW("usage.completion_tokens", OUTPUT),
	ROW("usage.total_tokens", TOTAL),
	ROW("usage.prompt_tokens_details.cached_tokens", CACHED),
	ROW("usage.prompt_tokens_details.cache_write_tokens", CACHE_WRITE),
	ROW("usage.completion_tokens_details.reasoning_tokens", REASONING),
	/* OpenAI responses, Anthropic */
	ROW("usage.input_tokens", INPUT),
	ROW("usage.output_tokens", OUTPUT),
	ROW("usage.input_tokens_details.cached_tokens", CACHED),
	ROW("usage.input_tokens_details.cache_write_tokens", CACHE_WRITE),
	ROW("usage.output_tokens_details.reasoning_tokens", REASONING),
	ROW("usage.output_tokens_details.thinking_tokens", REASONING),
	ROW("usage.cache_read_input_tokens", CACHE_READ),
	ROW("usage.cache_creation_input_tokens", CACHE_CREATION),
	ROW("usage.cache_creation.ephemeral_5m_input_tokens", CACHE_5M),
	ROW("usage.cache_creation.ephemeral_1h_input_tokens", CACHE_1H),
	/* Gemini generateContent, interactions */
	ROW("usageMetadata.promptTokenCount", PROMPT),
	ROW("usageMetadata.toolUsePromptTokenCount", TOOL_PROMPT),
	ROW("usageMetadata.cachedContentTokenCount", CACHED),
	ROW("usageMetadata.candidatesTokenCount", VISIBLE),
	ROW("usageMetadata.thoughtsTokenCount", THOUGHTS),
	ROW("usage.total_input_tokens", PROMPT),
	ROW("usage.total_tool_use_tokens", TOOL_PROMPT),
	ROW("usage.total_cached_tokens", CACHED),
	ROW("usage.total_output_tokens", VISIBLE),
	ROW("usage.total_thought_tokens", THOUGHTS),
	/* Ollama */
	ROW("prompt_eval_count", PROMPT),
	ROW("eval_count", OUTPUT),
	/* llama.cpp, its own style */
	ROW("tokens_evaluated", PROMPT),
	ROW("tokens_predicted", OUTPUT),
	ROW("tokens_cached", SLOT_CACHED),
	ROW("timings.prompt_n", TIMED_PROMPT),
	ROW("timings.cache_n", TIMED_CACHED),
	ROW("timings.predicted_n", TIMED_OUTPUT),

	MEMBER("type", MARK_TYPE),
	MEMBER("event_type", MARK_TYPE),
	MEMBER("choices[]", MARK_CHOICE),
	MEMBER("choices[].index", MARK_CHOICE_INDEX),
	MEMBER("choices[].finish_reason", MARK_CHOICE_FINISH),
	MEMBER("candidates[]", MARK_CHOICE),
	MEMBER("candidates[].index", MARK_CHOICE_INDEX),
	MEMBER("candidates[].finishReason", MARK_CHOICE_FINISH),
	MEMBER("promptFeedback.blockReason", MARK_BLOCKED),
	MEMBER("status", MARK_STATUS),
	MEMBER("stop_reason", MARK_STOP_REASON),
	MEMBER("delta.stop_reason", MARK_STOP_REASON_AHEAD),
	MEMBER("done", MARK_DONE),
	MEMBER("done_reason", MARK_FINISH),
	MEMBER("stop", MARK_DONE),
	MEMBER("stop_type", MARK_FINISH),
	MEMBER("error", MARK_ERROR),
	MEMBER("id", MARK_ID),
	MEMBER("responseId", MARK_ID),
	MEMBER("model", MARK_MODEL),
	MEMBER("modelVersion", MARK_MODEL),
};

#define ROW_COUNT (sizeof(member_rows) / sizeof(member_rows[0]))

void usage_reading_init(struct usage_reading *reading)
{
	*reading = (struct usage_reading){0};
	for (int i = 0; i < COUNT_COUNT; i++)
		reading->counts[i] = NOT_REPORTED;
}

/* ---- members ---- */

/*
 * Streams wrap the object that a plain answer is: in an array, in "response"
 * (OpenAI), "message" (Anthropic), "interaction" (Gemini).
 */
static struct bytes unwrapped(struct bytes path)
{
	static const struct bytes response = {(const uint8_t *)"response.", 9}, message = {(const uint8_t *)"message.", 8},
				  interaction = {(const uint8_t *)"interaction.", 12};
	const struct bytes *wrapper;

	if (bytes_starts_with(path, BYTES("[].")))
		bytes_take(&path, 3);
	switch (path.size ? path.data[0] : 0) { /* nearly every path is none of them */
	case 'r':
		wrapper = &response;
		break;
	case 'm':
		wrapper = &message;
		break;
	case 'i':
		wrapper = &interaction;
		break;
	default:
		return path;
	}
	if (bytes_starts_with(path, *wrapper))
		bytes_take(&path, wrapper->size);
	return path;
}

/* A stream has dozens of members an event, most of them not in the table: size and last byte turn them away. */
static unsigned int what_says(struct bytes path)
{
	uint8_t last;

	path = unwrapped(path);
	if (!path.size)
		return MARK_NOTHING;
	last = path.data[path.size - 1];
	for (size_t i = 0; i < ROW_COUNT; i++) {
		const struct member_row *row = &member_rows[i];

		if (row->size == path.size && (uint8_t)row->path[row->size - 1] == last &&
		    memcmp(row->path, path.data, path.size) == 0)
			return row->says;
	}
	return MARK_NOTHING;
}

/* Digits alone, up to USAGE_TOKENS_MAX: else REFUSED. */
static int64_t tokens_of(struct bytes number)
{
	int64_t tokens = 0;

	if (number.size == 0 || number.size > 16)
		return REFUSED;
	for (size_t i = 0; i < number.size; i++) {
		if (number.data[i] < '0' || number.data[i] > '9')
			return REFUSED;
		tokens = tokens * 10 + (number.data[i] - '0');
	}
	return tokens <= USAGE_TOKENS_MAX ? tokens : REFUSED;
}

/* null is no report. */
static void take_count(struct usage_reading *now, enum usage_count count, enum json_stream_step step, struct bytes text)
{
	if (step == JSON_STREAM_NULL || step == JSON_STREAM_CLOSE)
		return;
	now->counted = true;
	now->counts[count] = step == JSON_STREAM_NUMBER ? tokens_of(text) : REFUSED;
	now->refused += now->counts[count] == REFUSED;
}

/* The first that is said stays. What does not fit is cut at a whole character. */
static void keep_first(struct usage_text *kept, const struct json_stream *json)
{
	struct bytes text = json_stream_text(json);

	if (kept->size)
		return;
	if (json_stream_text_cut(json))
		while (text.size && (text.data[text.size - 1] & 0xc0) == 0x80)
			text.size--;
	if (json_stream_text_cut(json) && text.size && (text.data[text.size - 1] & 0x80))
		text.size--;
	memcpy(kept->text, text.data, text.size);
	kept->size = (uint8_t)text.size;
}

static void take_type(struct usage_reading *now, struct bytes type)
{
	static const char *const last[] = {
		"message_stop",				      /* Anthropic */
		"response.completed", "response.incomplete", "response.failed",
		"interaction.complete", "interaction.completed", /* Gemini */
		"image_generation.completed", "image_edit.completed", "speech.audio.done", "transcript.text.done",
	};

	now->known = now->known || bytes_starts_with(type, BYTES("message_")) ||
		     bytes_starts_with(type, BYTES("response.")) || bytes_starts_with(type, BYTES("interaction."));
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++)
		now->terminal = now->terminal || bytes_equal(type, bytes_of_string(last[i]));
	now->failed = now->failed || bytes_equal(type, BYTES("response.failed"));
}

static void take_status(struct usage_reading *now, const struct json_stream *json)
{
	static const char *const last[] = {"completed", "incomplete", "failed", "cancelled", "requires_action"};
	struct bytes status = json_stream_text(json);

	if (bytes_equal(status, BYTES("queued")) || bytes_equal(status, BYTES("in_progress"))) {
		now->known = true;
		keep_first(&now->background, json);
	}
	for (size_t i = 0; i < sizeof(last) / sizeof(last[0]); i++) {
		if (!bytes_equal(status, bytes_of_string(last[i])))
			continue;
		now->known = now->terminal = true;
		keep_first(&now->finish_reason, json);
	}
	now->failed = now->failed || bytes_equal(status, BYTES("failed")) || bytes_equal(status, BYTES("cancelled"));
}

static void take_choice(struct usage_reading *now, enum json_stream_step step)
{
	if (step == JSON_STREAM_OPEN) {
		now->known = true;
		now->choice = 0;
		now->choice_finished = false;
	} else if (step == JSON_STREAM_CLOSE) {
		now->choices |= 1ULL << now->choice;
		if (now->choice_finished)
			now->finished_choices |= 1ULL << now->choice;
	}
}

static void take_choice_index(struct usage_reading *now, struct bytes number)
{
	int64_t index = tokens_of(number);

	if (index >= 0)
		now->choice = index < CHOICES_MAX ? (unsigned int)index : CHOICES_MAX - 1;
}

static void take_done(struct usage_reading *now, enum json_stream_step step)
{
	if (step != JSON_STREAM_TRUE && step != JSON_STREAM_FALSE)
		return;
	now->known = true;
	now->terminal = now->terminal || step == JSON_STREAM_TRUE;
	now->marker_due = step == JSON_STREAM_FALSE;
}

/* Members that hold a text. */
static void take_text(struct usage_reading *now, enum mark mark, const struct json_stream *json)
{
	switch (mark) {
	case MARK_TYPE:
		take_type(now, json_stream_text(json));
		break;
	case MARK_STATUS:
		take_status(now, json);
		break;
	case MARK_CHOICE_FINISH:
		now->choice_finished = true;
		keep_first(&now->finish_reason, json);
		break;
	case MARK_BLOCKED:
	case MARK_STOP_REASON:
		now->known = now->terminal = true;
		keep_first(&now->finish_reason, json);
		break;
	case MARK_STOP_REASON_AHEAD:
		now->known = now->stopped = true;
		keep_first(&now->finish_reason, json);
		break;
	case MARK_FINISH:
		if (!bytes_equal(json_stream_text(json), BYTES("none")))
			keep_first(&now->finish_reason, json);
		break;
	case MARK_ID:
		keep_first(&now->id, json);
		break;
	case MARK_MODEL:
		keep_first(&now->model, json);
		break;
	default:
		break;
	}
}

/* null, false and "" say that there was none. */
static bool is_error(enum json_stream_step step, struct bytes text)
{
	return step != JSON_STREAM_NULL && step != JSON_STREAM_FALSE && !(step == JSON_STREAM_STRING && text.size == 0);
}

void usage_reading_take(struct usage_reading *now, enum json_stream_step step, const struct json_stream *json)
{
	unsigned int says = what_says(json_stream_path(json));

	if (says < COUNT_COUNT)
		take_count(now, says, step, json_stream_text(json));
	else if (says == MARK_CHOICE)
		take_choice(now, step);
	else if (says == MARK_CHOICE_INDEX && step == JSON_STREAM_NUMBER)
		take_choice_index(now, json_stream_text(json));
	else if (says == MARK_DONE)
		take_done(now, step);
	else if (says == MARK_ERROR)
		now->failed = now->failed || is_error(step, json_stream_text(json));
	else if (says == MARK_STOP_REASON && step == JSON_STREAM_NULL)
		now->known = now->marker_due = true;
	else if (step == JSON_STREAM_STRING)
		take_text(now, says, json);
}

/* ---- the normal form ---- */

static int64_t either(int64_t first, int64_t otherwise)
{
	return first != NOT_REPORTED ? first : otherwise;
}

/* Of the parts that were reported; not known where one of them is not. */
static int64_t plus(int64_t a, int64_t b)
{
	if (a == REFUSED || b == REFUSED)
		return REFUSED;
	if (a == NOT_REPORTED || b == NOT_REPORTED)
		return either(a, b);
	return a + b;
}

static int64_t cache_creation_of(const int64_t *counts)
{
	return either(counts[COUNT_CACHE_CREATION], plus(counts[COUNT_CACHE_5M], counts[COUNT_CACHE_1H]));
}

static int64_t input_of(const int64_t *counts)
{
	int64_t apart = plus(counts[COUNT_INPUT], counts[COUNT_CACHE_READ]);

	if (counts[COUNT_PROMPT] != NOT_REPORTED)
		return plus(counts[COUNT_PROMPT], counts[COUNT_TOOL_PROMPT]);
	if (apart != NOT_REPORTED)
		return plus(apart, cache_creation_of(counts));
	return plus(counts[COUNT_TIMED_PROMPT], counts[COUNT_TIMED_CACHED]);
}

/* Embeddings have no output, and say so by a total that is the prompt. */
static int64_t rest_of(const int64_t *counts)
{
	int64_t prompt = counts[COUNT_PROMPT], total = counts[COUNT_TOTAL];

	return prompt >= 0 && total >= prompt ? total - prompt : NOT_REPORTED;
}

static int64_t output_of(const int64_t *counts)
{
	int64_t parts = plus(counts[COUNT_VISIBLE], counts[COUNT_THOUGHTS]);

	return either(counts[COUNT_OUTPUT], either(parts, either(counts[COUNT_TIMED_OUTPUT], rest_of(counts))));
}

static int64_t cached_of(const int64_t *counts)
{
	int64_t slot = counts[COUNT_SLOT_CACHED];

	if (slot > counts[COUNT_PROMPT])
		slot = NOT_REPORTED;
	return either(counts[COUNT_CACHED],
		      either(counts[COUNT_CACHE_READ], either(counts[COUNT_TIMED_CACHED], slot)));
}

static int64_t or_null(int64_t tokens)
{
	return tokens < 0 ? -1 : tokens;
}

struct usage usage_reading_counts(const struct usage_reading *reading)
{
	const int64_t *counts = reading->counts;
	struct usage usage = {
		.input_tokens = or_null(input_of(counts)),
		.output_tokens = or_null(output_of(counts)),
		.cached_tokens = or_null(cached_of(counts)),
		.cache_write_tokens = or_null(either(counts[COUNT_CACHE_WRITE], cache_creation_of(counts))),
		.reasoning_tokens = or_null(either(counts[COUNT_REASONING], counts[COUNT_THOUGHTS])),
	};

	usage.seen = usage.input_tokens >= 0 || usage.output_tokens >= 0 || usage.cached_tokens >= 0 ||
		     usage.cache_write_tokens >= 0 || usage.reasoning_tokens >= 0;
	return usage;
}
