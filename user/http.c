/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What ends a message (RFC 9112 section 6.3, in frame()), and a phase for every
 * place between two messages. head.c reads heads, chunked.c chunked bodies; the
 * other bodies are a counter or run to the end of the stream. Each phase either
 * gives a part or takes all input, so http_next() goes on until one of them does.
 */
#include "http.h"
#include "chunked.h"
#include "head.h"

enum phase {
	PHASE_IDLE,    /* between messages */
	PHASE_HEAD,
	PHASE_LENGTH,  /* left bytes of body to come */
	PHASE_CHUNKED,
	PHASE_CLOSE,   /* the body runs to the end of the stream */
	PHASE_END,     /* HTTP_END is due */
	PHASE_TUNNEL,
	PHASE_BROKEN,
};

struct http_reader {
	enum phase phase;
	bool answers_head; /* the next final response answers HEAD */
	bool answers_connect;
	bool closed;	       /* the last response said that none follows */
	enum http_ended ended; /* for PHASE_END */
	const char *reason;    /* for PHASE_BROKEN */
	uint64_t left;
	struct chunked chunks;
	struct head_reader *heads;
};

static enum http_step broken(struct http_reader *reader, const char *reason)
{
	reader->phase = PHASE_BROKEN;
	reader->reason = reason;
	return HTTP_BROKEN;
}

static void end_message(struct http_reader *reader, enum http_ended ended)
{
	reader->phase = PHASE_END;
	reader->ended = ended;
}

/* Empty lines before a message are passed over (RFC 9112 section 2.2). */
static enum http_step between_messages(struct http_reader *reader, struct bytes *input)
{
	while (input->size && (input->data[0] == '\r' || input->data[0] == '\n'))
		bytes_take(input, 1);
	if (!input->size)
		return HTTP_NEED_MORE;
	if (reader->closed)
		return broken(reader, "data after close");
	head_reader_begin(reader->heads);
	reader->phase = PHASE_HEAD;
	return HTTP_NEED_MORE;
}

/* True when the start line alone decides, whatever the fields say. */
static bool frame_by_rule(struct http_reader *reader, const struct http_head *head)
{
	bool answers_head = reader->answers_head, answers_connect = reader->answers_connect;

	if (head->side == HTTP_REQUEST) {
		if (!bytes_equal(head->method, BYTES("CONNECT")))
			return false;
		end_message(reader, HTTP_ENDED_NO_BODY);
		return true;
	}
	if (head->status >= 200)
		reader->answers_head = reader->answers_connect = false;
	if (head->status == 101 || (answers_connect && head->status / 100 == 2))
		reader->phase = PHASE_TUNNEL;
	else if (head->status < 200 || head->status == 204 || head->status == 304 || answers_head)
		end_message(reader, HTTP_ENDED_NO_BODY);
	else
		return false;
	return true;
}

static void frame(struct http_reader *reader, const struct http_head *head)
{
	bool some_unseen = head->cut || head->fields_dropped;

	if (frame_by_rule(reader, head))
		return;
	if (head->chunked) {
		reader->chunks = (struct chunked){0};
		reader->phase = PHASE_CHUNKED;
	} else if (head->transfer_coded && (head->side == HTTP_REQUEST || some_unseen)) {
		broken(reader, "Transfer-Encoding without chunked last");
	} else if (head->transfer_coded) {
		reader->phase = PHASE_CLOSE;
	} else if (head->has_content_length) {
		reader->left = head->content_length;
		reader->phase = PHASE_LENGTH;
		if (!reader->left)
			end_message(reader, HTTP_ENDED_LENGTH);
	} else if (head->side == HTTP_REQUEST) {
		end_message(reader, HTTP_ENDED_NO_BODY);
	} else {
		reader->phase = PHASE_CLOSE;
	}
}

static enum http_step read_head(struct http_reader *reader, struct bytes *input,
				struct http_part *part)
{
	struct http_head *head = head_reader_head(reader->heads);
	enum head_step step = head_reader_feed(reader->heads, input);

	if (step == HEAD_NEED_MORE)
		return HTTP_NEED_MORE;
	if (step == HEAD_BROKEN)
		return broken(reader, head_reader_reason(reader->heads));
	frame(reader, head);
	if (reader->phase == PHASE_CLOSE || reader->phase == PHASE_TUNNEL)
		head->keep_alive = false;
	/* A server may well go on after a client's "close": only a response ends a stream here. */
	reader->closed = head->side == HTTP_RESPONSE && head->status >= 200 && !head->keep_alive;
	part->head = head;
	return HTTP_HEAD;
}

static enum http_step read_body(struct http_reader *reader, struct bytes *input,
				struct http_part *part)
{
	bool to_close = reader->phase == PHASE_CLOSE;

	if (!input->size)
		return HTTP_NEED_MORE;
	if (to_close || reader->left > input->size)
		part->body = bytes_take(input, input->size);
	else
		part->body = bytes_take(input, (size_t)reader->left);
	if (!to_close) {
		reader->left -= part->body.size;
		if (!reader->left)
			end_message(reader, HTTP_ENDED_LENGTH);
	}
	return HTTP_BODY;
}

static enum http_step read_chunks(struct http_reader *reader, struct bytes *input,
				  struct http_part *part)
{
	switch (chunked_next(&reader->chunks, input, &part->body)) {
	case CHUNKED_DATA:
		return HTTP_BODY;
	case CHUNKED_END:
		end_message(reader, HTTP_ENDED_CHUNKED);
		return HTTP_NEED_MORE;
	case CHUNKED_BROKEN:
		return broken(reader, reader->chunks.reason);
	default:
		return HTTP_NEED_MORE;
	}
}

/* HTTP_NEED_MORE with another phase than before means: go on. */
static enum http_step one_step(struct http_reader *reader, struct bytes *input,
			       struct http_part *part)
{
	switch (reader->phase) {
	case PHASE_IDLE:
		return between_messages(reader, input);
	case PHASE_HEAD:
		return read_head(reader, input, part);
	case PHASE_LENGTH:
	case PHASE_CLOSE:
		return read_body(reader, input, part);
	case PHASE_CHUNKED:
		return read_chunks(reader, input, part);
	case PHASE_END:
		part->ended = reader->ended;
		reader->phase = PHASE_IDLE;
		return HTTP_END;
	case PHASE_TUNNEL:
		return HTTP_TUNNEL;
	default:
		return HTTP_BROKEN;
	}
}

struct http_reader *http_reader_new(enum http_side side)
{
	struct http_reader *reader = calloc(1, sizeof(*reader));

	if (!reader)
		return NULL;
	reader->heads = head_reader_new(side);
	if (!reader->heads) {
		free(reader);
		return NULL;
	}
	return reader;
}

void http_reader_free(struct http_reader *reader)
{
	if (!reader)
		return;
	head_reader_free(reader->heads);
	free(reader);
}

void http_reader_expect(struct http_reader *reader, struct bytes request_method)
{
	reader->answers_head = bytes_equal(request_method, BYTES("HEAD"));
	reader->answers_connect = bytes_equal(request_method, BYTES("CONNECT"));
}

enum http_step http_next(struct http_reader *reader, struct bytes *input,
			 struct http_part *ret_part)
{
	enum http_step step;
	enum phase before;

	*ret_part = (struct http_part){0};
	do {
		before = reader->phase;
		step = one_step(reader, input, ret_part);
	} while (step == HTTP_NEED_MORE && reader->phase != before);
	if (step == HTTP_BROKEN)
		ret_part->reason = reader->reason;
	return step;
}

bool http_skip(struct http_reader *reader, uint64_t length)
{
	if (!length || reader->phase == PHASE_CLOSE)
		return true;
	if (reader->phase == PHASE_LENGTH && length <= reader->left) {
		reader->left -= length;
		if (!reader->left)
			end_message(reader, HTTP_ENDED_LENGTH);
		return true;
	}
	if (reader->phase != PHASE_BROKEN && reader->phase != PHASE_TUNNEL)
		broken(reader, "bytes missing");
	return false;
}

enum http_step http_finish(struct http_reader *reader, bool clean, struct http_part *ret_part)
{
	struct bytes nothing = {0};

	if (reader->phase == PHASE_CLOSE && clean)
		end_message(reader, HTTP_ENDED_CLOSE);
	else if (reader->phase >= PHASE_HEAD && reader->phase <= PHASE_CLOSE)
		broken(reader, "ended inside a message");
	return http_next(reader, &nothing, ret_part);
}

size_t http_reader_held(const struct http_reader *reader)
{
	return head_reader_held(reader->heads);
}

bool http_reader_idle(const struct http_reader *reader)
{
	return reader->phase == PHASE_IDLE;
}

bool http_reader_fresh(const struct http_reader *reader)
{
	return http_reader_idle(reader) && !reader->closed && !reader->answers_head && !reader->answers_connect;
}

bool http_reader_saw_version(const struct http_reader *reader)
{
	return head_reader_saw_version(reader->heads);
}

bool http_reader_in_head(const struct http_reader *reader)
{
	return reader->phase == PHASE_HEAD;
}

void http_head_index(struct http_head *head)
{
	head->names = 0;
	for (size_t i = 0; i < head->field_count; i++)
		head->names |= http_name_bit(head->fields[i].name);
}

const struct http_field *http_head_look_up(const struct http_head *head, struct bytes name)
{
	for (size_t i = 0; i < head->field_count; i++)
		if (bytes_equal_nocase(head->fields[i].name, name))
			return &head->fields[i];
	return NULL;
}

size_t http_head_count(const struct http_head *head, struct bytes name)
{
	size_t count = 0;

	if (http_head_lacks(head, name))
		return 0;
	for (size_t i = 0; i < head->field_count; i++)
		count += bytes_equal_nocase(head->fields[i].name, name);
	return count;
}
