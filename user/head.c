/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * llhttp reads the status line, the HTTP version and the fields. Method and
 * target are read here: llhttp knows a fixed list of methods, and its versions
 * refuse different targets. It is paused at the empty line and reset for every
 * head, so that none of its rules about bodies, upgrades and closed connections
 * apply, and llhttp 8 and 9 behave alike.
 *
 * Text is copied to one buffer as it comes; fields hold sizes until the head is
 * whole, since the buffer moves while it grows.
 */
#include "head.h"
#include "ascii.h"

/* Three names that llhttp.h and http.h both give to enum constants. */
#define HTTP_REQUEST LLHTTP_REQUEST
#define HTTP_RESPONSE LLHTTP_RESPONSE
#define HTTP_HEAD LLHTTP_HEAD
#include <llhttp.h>
#undef HTTP_REQUEST
#undef HTTP_RESPONSE
#undef HTTP_HEAD

/* A head that took more than this gives its memory back: most connections are idle. */
#define KEPT_TEXT_BYTES 4096
#define KEPT_FIELDS 32

enum place { IN_METHOD, IN_TARGET, IN_LLHTTP };

struct head_reader {
	llhttp_t parser;
	enum http_side side;
	enum place place;
	bool saw_version;
	const char *reason; /* set by callbacks too: they can only stop llhttp */

	struct http_head head; /* field_count grows as fields are kept */
	struct buffer text;    /* method, target, then name and value of each field */
	struct http_field *fields;
	size_t field_capacity;

	const char *input_end; /* of what llhttp is reading */
	uint8_t last_byte;     /* of what it has read before */

	/* the field in progress */
	bool in_field;
	bool keeping; /* it is fields[head.field_count] */
	bool has_name;
	bool value_began;
	bool value_continues; /* its last slice ended where the input ended */
	bool skipping_ows;    /* at the start of a folded line */
};

/* ---- keeping text ---- */

/* The return value of a callback that stops llhttp. */
static int refuse(struct head_reader *reader, const char *reason)
{
	reader->reason = reason;
	return -1;
}

/* Keeps text and adds to *size. Text that does not fit sets cut: nothing is kept from there on. */
static int keep(struct head_reader *reader, struct bytes text, size_t *size)
{
	if (reader->head.cut || !text.size)
		return 0;
	if (text.size > LIMIT_HEAD_BYTES - reader->text.size) {
		reader->head.cut = true;
		return 0;
	}
	if (buffer_append(&reader->text, text) < 0)
		return refuse(reader, "out of memory");
	*size += text.size;
	return 0;
}

/* The same, but keeps the front that fits: a target is cut at one place however it arrives. */
static int keep_front(struct head_reader *reader, struct bytes text, size_t *size)
{
	size_t room = LIMIT_HEAD_BYTES - reader->text.size;

	if (text.size > room && keep(reader, bytes_take(&text, room), size) < 0)
		return -1;
	return keep(reader, text, size);
}

static struct http_field *field_in_progress(struct head_reader *reader)
{
	return reader->keeping ? &reader->fields[reader->head.field_count] : NULL;
}

/* 0 with room for one more field, or -1. */
static int grow_fields(struct head_reader *reader)
{
	size_t capacity = reader->field_capacity ? reader->field_capacity * 2 : 8;
	struct http_field *fields;

	if (reader->head.field_count < reader->field_capacity)
		return 0;
	fields = realloc(reader->fields, capacity * sizeof(*fields));
	if (!fields)
		return refuse(reader, "out of memory");
	reader->fields = fields;
	reader->field_capacity = capacity;
	return 0;
}

static int begin_field(struct head_reader *reader)
{
	struct http_head *head = &reader->head;

	reader->in_field = true;
	reader->keeping = false;
	reader->has_name = false;
	reader->value_began = false;
	reader->skipping_ows = false;
	if (head->cut)
		return 0;
	if (head->field_count == LIMIT_HEAD_FIELDS) {
		head->fields_dropped++;
		return 0;
	}
	if (grow_fields(reader) < 0)
		return -1;
	reader->fields[head->field_count] = (struct http_field){0};
	reader->keeping = true;
	return 0;
}

/* A field that does not fit goes whole: half a key would be another key. */
static void drop_cut_field(struct head_reader *reader)
{
	if (reader->head.cut)
		reader->keeping = false;
}

static int keep_value(struct head_reader *reader, struct bytes text)
{
	struct http_field *field = field_in_progress(reader);

	if (field && keep(reader, text, &field->value.size) < 0)
		return -1;
	drop_cut_field(reader);
	return 0;
}

static void trim_value(struct head_reader *reader)
{
	struct http_field *field = field_in_progress(reader);

	while (field && field->value.size && ascii_is_ows(reader->text.data[reader->text.size - 1])) {
		field->value.size--;
		reader->text.size--;
	}
}

/* ---- llhttp's callbacks ---- */

static struct head_reader *reader_of(llhttp_t *parser)
{
	return parser->data;
}

static int on_version_complete(llhttp_t *parser)
{
	reader_of(parser)->saw_version = true;
	return llhttp_get_http_major(parser) != 1 ? refuse(reader_of(parser), "not HTTP/1.x") : 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
	struct head_reader *reader = reader_of(parser);
	struct bytes text = {(const uint8_t *)at, length};
	struct http_field *field;

	if (!reader->in_field && begin_field(reader) < 0)
		return -1;
	/* llhttp 8 takes a space for part of a name. */
	if (memchr(at, ' ', length))
		return refuse(reader, "bad field");
	reader->has_name |= length > 0;
	field = field_in_progress(reader);
	if (field && keep(reader, text, &field->name.size) < 0)
		return -1;
	drop_cut_field(reader);
	return 0;
}

static int on_header_field_complete(llhttp_t *parser)
{
	if (!reader_of(parser)->has_name)
		return refuse(reader_of(parser), "bad field");
	/*
	 * Lenient values: odd bytes, obs-fold and bare LF, which servers take.
	 * Names stay strict: "Content-Length :" means two things to two readers.
	 */
	llhttp_set_lenient_headers(parser, 1);
	return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
	struct head_reader *reader = reader_of(parser);
	struct bytes text = {(const uint8_t *)at, length};

	/* llhttp ends a value at each line end: what does not continue one is a folded line. */
	if (reader->value_began && !reader->value_continues) {
		trim_value(reader);
		if (reader->keeping && field_in_progress(reader)->value.size &&
		    keep_value(reader, BYTES(" ")) < 0)
			return -1;
		reader->skipping_ows = true;
	}
	reader->value_began = true;
	reader->value_continues = at + length == reader->input_end;
	while (reader->skipping_ows && text.size) {
		reader->skipping_ows = ascii_is_ows(text.data[0]);
		if (reader->skipping_ows)
			bytes_take(&text, 1);
	}
	return keep_value(reader, text);
}

static int on_header_value_complete(llhttp_t *parser)
{
	struct head_reader *reader = reader_of(parser);

	llhttp_set_lenient_headers(parser, 0);
	trim_value(reader);
	reader->in_field = false;
	if (reader->keeping)
		reader->head.field_count++;
	reader->keeping = false;
	return 0;
}

static int on_headers_complete(llhttp_t *parser)
{
	(void)parser;
	return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
	.on_version_complete = on_version_complete,
	.on_header_field = on_header_field,
	.on_header_field_complete = on_header_field_complete,
	.on_header_value = on_header_value,
	.on_header_value_complete = on_header_value_complete,
	.on_headers_complete = on_headers_complete,
};

static const char *reason_of(llhttp_errno_t error)
{
	switch (error) {
	case HPE_INVALID_CONTENT_LENGTH:
	case HPE_UNEXPECTED_CONTENT_LENGTH:
		return "bad or repeated Content-Length";
	case HPE_INVALID_CONSTANT:
	case HPE_INVALID_VERSION:
		return "not HTTP/1.x";
	case HPE_INVALID_STATUS:
		return "bad status";
	case HPE_INVALID_HEADER_TOKEN:
	case HPE_UNEXPECTED_SPACE:
		return "bad field";
	case HPE_LF_EXPECTED:
		return "bare CR";
	default:
		return "bad line end";
	}
}

/* ---- steps ---- */

static enum head_step broken(struct head_reader *reader, const char *reason)
{
	reader->reason = reason;
	return HEAD_BROKEN;
}

static enum head_step read_method(struct head_reader *reader, struct bytes *input)
{
	size_t length = 0;

	while (length < input->size && ascii_is_token(input->data[length]))
		length++;
	if (keep(reader, bytes_take(input, length), &reader->head.method.size) < 0)
		return HEAD_BROKEN;
	if (reader->head.cut)
		return broken(reader, "bad method");
	if (!input->size)
		return HEAD_NEED_MORE;
	if (input->data[0] != ' ' || !reader->head.method.size)
		return broken(reader, "bad method");
	bytes_take(input, 1);
	reader->place = IN_TARGET;
	return HEAD_NEED_MORE;
}

static enum head_step read_target(struct head_reader *reader, struct bytes *input)
{
	/* Any method and target would do that llhttp takes for HTTP and not for RTSP or ICE. */
	static const char stand_in[] = "PUT / ";
	struct http_head *head = &reader->head;
	size_t length = 0;

	while (!head->target.size && input->size && input->data[0] == ' ')
		bytes_take(input, 1);
	while (length < input->size && input->data[length] > ' ' && input->data[length] != 0x7f)
		length++;
	if (keep_front(reader, bytes_take(input, length), &head->target.size) < 0)
		return HEAD_BROKEN;
	if (!input->size)
		return HEAD_NEED_MORE;
	if (input->data[0] == '\r' || input->data[0] == '\n')
		return broken(reader, "not HTTP/1.x"); /* no version: HTTP/0.9 */
	if (input->data[0] != ' ')
		return broken(reader, "bad target");
	bytes_take(input, 1);
	llhttp_execute(&reader->parser, stand_in, sizeof(stand_in) - 1);
	reader->place = IN_LLHTTP;
	return HEAD_NEED_MORE;
}

/*
 * Line ends of what llhttp took: it lets a CR stand without its LF here and
 * there, and shows no fold after an empty first line. False on a bare CR.
 */
static bool check_lines(struct head_reader *reader, struct bytes taken)
{
	const uint8_t *at = taken.data, *end = at + taken.size;

	while (at < end) {
		const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
		const uint8_t *line_end = lf ? lf : end;
		const uint8_t *cr = memchr(at, '\r', (size_t)(line_end - at));

		if (reader->last_byte == '\r' && *at != '\n')
			return false;
		if (reader->last_byte == '\n' && ascii_is_ows(*at))
			reader->head.obs_fold = true;
		if (cr && cr + 1 != line_end)
			return false;
		reader->last_byte = lf ? '\n' : end[-1];
		at = lf ? lf + 1 : end;
	}
	return true;
}

/* Gives the kept text to the fields: from here on the buffer does not move. */
static void place_text(struct head_reader *reader)
{
	struct http_head *head = &reader->head;
	const uint8_t *at = reader->text.data;

	if (!at)
		return;
	head->method.data = at;
	at += head->method.size;
	head->target.data = at;
	at += head->target.size;
	for (size_t i = 0; i < head->field_count; i++) {
		struct http_field *field = &reader->fields[i];

		field->name.data = at;
		at += field->name.size;
		field->value.data = at;
		at += field->value.size;
	}
	head->fields = reader->fields;
}

/* Is "chunked" the last transfer coding of the fields kept? */
static bool chunked_is_last(const struct http_head *head)
{
	bool last = false;

	for (size_t i = 0; i < head->field_count; i++) {
		struct bytes rest = head->fields[i].value;

		if (!bytes_equal_nocase(head->fields[i].name, BYTES("Transfer-Encoding")))
			continue;
		while (rest.size) {
			struct bytes coding = bytes_trim(bytes_take(&rest, bytes_find(rest, ',')));

			bytes_take(&rest, 1);
			if (coding.size)
				last = bytes_equal_nocase(coding, BYTES("chunked"));
		}
	}
	return last;
}

static bool asks_for_continue(const struct http_head *head)
{
	const struct http_field *expect = http_head_find(head, BYTES("Expect"));

	return head->side == HTTP_REQUEST && head->http_minor >= 1 && expect &&
	       bytes_equal_nocase(expect->value, BYTES("100-continue"));
}

static enum head_step finish_head(struct head_reader *reader)
{
	struct http_head *head = &reader->head;
	unsigned int flags = reader->parser.flags;

	place_text(reader);
	head->http_major = llhttp_get_http_major(&reader->parser);
	head->http_minor = llhttp_get_http_minor(&reader->parser);
	if (reader->side == HTTP_RESPONSE) {
		head->status = (unsigned int)llhttp_get_status_code(&reader->parser);
		if (head->status < 100 || head->status > 999)
			return broken(reader, "bad status");
	}
	head->has_content_length = flags & F_CONTENT_LENGTH;
	head->content_length = head->has_content_length ? reader->parser.content_length : 0;
	head->transfer_coded = flags & F_TRANSFER_ENCODING;
	/* llhttp overlooks it after a fold and before HT or an empty list member. */
	head->chunked = (flags & F_CHUNKED) || (head->transfer_coded && chunked_is_last(head));
	/* HTTP/1.0 has no Transfer-Encoding: such framing is faulty (RFC 9112 section 6.1). */
	head->framing_ambiguous =
		head->transfer_coded && (head->has_content_length || head->http_minor == 0);
	head->keep_alive = !(flags & F_CONNECTION_CLOSE);
	if (head->http_minor == 0 && (head->transfer_coded || !(flags & F_CONNECTION_KEEP_ALIVE)))
		head->keep_alive = false;
	head->expects_continue = asks_for_continue(head);
	return HEAD_WHOLE;
}

static enum head_step feed_llhttp(struct head_reader *reader, struct bytes *input)
{
	const char *data = (const char *)input->data;
	llhttp_errno_t error;
	size_t taken = input->size;

	reader->input_end = data + input->size;
	error = llhttp_execute(&reader->parser, data, input->size);
	if (error != HPE_OK)
		taken = (size_t)(llhttp_get_error_pos(&reader->parser) - data);
	if (!check_lines(reader, bytes_take(input, taken)))
		return broken(reader, "bare CR");
	if (error == HPE_OK)
		return HEAD_NEED_MORE;
	if (error != HPE_PAUSED)
		return broken(reader, reader->reason ? reader->reason : reason_of(error));
	return reader->last_byte == '\n' ? finish_head(reader) : broken(reader, "bare CR");
}

/* ---- what the header offers ---- */

struct head_reader *head_reader_new(enum http_side side)
{
	struct head_reader *reader = calloc(1, sizeof(*reader));
	llhttp_t *parser;

	if (!reader)
		return NULL;
	parser = &reader->parser;
	reader->side = side;
	llhttp_init(parser, side == HTTP_REQUEST ? LLHTTP_REQUEST : LLHTTP_RESPONSE, &settings);
	parser->data = reader;
	/* What these refuse is for http.c to judge. llhttp 8 has no call for the third. */
	llhttp_set_lenient_chunked_length(parser, 1);
	llhttp_set_lenient_transfer_encoding(parser, 1);
	parser->lenient_flags |= LENIENT_VERSION;
#if LLHTTP_VERSION_MAJOR >= 9
	/* Bare LF. 9.2 asks for both after a request line; check_lines() refuses a bare CR. */
	llhttp_set_lenient_optional_cr_before_lf(parser, 1);
	llhttp_set_lenient_optional_lf_after_cr(parser, 1);
#endif
	return reader;
}

void head_reader_free(struct head_reader *reader)
{
	if (!reader)
		return;
	buffer_done(&reader->text);
	free(reader->fields);
	free(reader);
}

void head_reader_begin(struct head_reader *reader)
{
	if (reader->text.capacity > KEPT_TEXT_BYTES)
		buffer_done(&reader->text);
	if (reader->field_capacity > KEPT_FIELDS) {
		free(reader->fields);
		reader->fields = NULL;
		reader->field_capacity = 0;
	}
	buffer_clear(&reader->text);
	reader->head = (struct http_head){.side = reader->side};
	reader->saw_version = false;
	reader->reason = NULL;
	reader->last_byte = 0;
	reader->place = reader->side == HTTP_REQUEST ? IN_METHOD : IN_LLHTTP;
	llhttp_reset(&reader->parser);
}

enum head_step head_reader_feed(struct head_reader *reader, struct bytes *input)
{
	enum head_step step = HEAD_NEED_MORE;

	while (step == HEAD_NEED_MORE && input->size) {
		if (reader->place == IN_METHOD)
			step = read_method(reader, input);
		else if (reader->place == IN_TARGET)
			step = read_target(reader, input);
		else
			step = feed_llhttp(reader, input);
	}
	return step;
}

struct http_head *head_reader_head(struct head_reader *reader)
{
	return &reader->head;
}

const char *head_reader_reason(const struct head_reader *reader)
{
	return reader->reason;
}

size_t head_reader_held(const struct head_reader *reader)
{
	return reader->text.capacity + reader->field_capacity * sizeof(*reader->fields);
}

bool head_reader_saw_version(const struct head_reader *reader)
{
	return reader->saw_version;
}
