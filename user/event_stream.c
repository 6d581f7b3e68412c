/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A state for each place where a slice may end. After a gap nobody knows
 * whether a line or an event began in it, so everything up to the next empty
 * line is passed over.
 */
#include "event_stream.h"

#define LINE_STEP 1024

enum {
	AT_START, /* a byte order mark may come */
	AT_LINE,
	IN_FIELD,
	AT_VALUE, /* one space may follow the colon */
	IN_DATA,
	IN_OTHER, /* a comment, or a field that we do not read */
};

static const uint8_t byte_order_mark[] = {0xef, 0xbb, 0xbf};

static bool is_line_end(uint8_t c)
{
	return c == '\n' || c == '\r';
}

/* The rest of a line, or a part of it: in steps, so that a line end is not looked for in what lies far behind it. */
static struct bytes take_line(struct event_stream *stream, struct bytes *input)
{
	size_t step = input->size < LINE_STEP ? input->size : LINE_STEP;
	struct bytes line = {input->data, step};

	line.size = bytes_find(line, '\n');
	line.size = bytes_find(line, '\r');
	bytes_take(input, line.size);
	if (line.size < step) {
		stream->after_cr = bytes_take(input, 1).data[0] == '\r';
		stream->state = AT_LINE;
	}
	return line;
}

/* True when an event is whole. */
static bool end_event(struct event_stream *stream)
{
	bool whole = stream->has_data && !stream->gap;

	stream->has_data = stream->gap = false;
	return whole;
}

/* The first byte of a line. True when it is an empty line that ends an event. */
static bool start_line(struct event_stream *stream, struct bytes *input)
{
	uint8_t c = input->data[0];
	bool rest_of_end = stream->after_cr && c == '\n';

	stream->after_cr = false;
	if (rest_of_end) {
		bytes_take(input, 1);
	} else if (is_line_end(c)) {
		take_line(stream, input);
		return end_event(stream);
	} else {
		stream->state = IN_FIELD;
		stream->field_size = 0;
	}
	return false;
}

/* The name of a field is known now. True when a data line before this one wants an LF. */
static bool start_value(struct event_stream *stream)
{
	bool is_data = stream->field_size == 4 && memcmp(stream->field, "data", 4) == 0;
	bool wants_line_feed = is_data && stream->has_data;

	stream->state = is_data ? AT_VALUE : IN_OTHER;
	stream->has_data = stream->has_data || is_data;
	return wants_line_feed;
}

/* Up to the colon or, in a field without a value, to the line end, which stays. */
static bool take_field(struct event_stream *stream, struct bytes *input)
{
	uint8_t c = input->data[0];

	if (c == ':' || is_line_end(c)) {
		bytes_take(input, c == ':');
		return start_value(stream);
	}
	bytes_take(input, 1);
	if (stream->field_size < sizeof(stream->field))
		stream->field[stream->field_size++] = c;
	return false;
}

static void take_mark(struct event_stream *stream, struct bytes *input)
{
	if (input->data[0] == byte_order_mark[stream->mark]) {
		bytes_take(input, 1);
		stream->mark++;
		if (stream->mark < sizeof(byte_order_mark))
			return;
	}
	stream->state = AT_LINE;
}

enum event_stream_step event_stream_next(struct event_stream *stream, struct bytes *input, struct bytes *ret_data)
{
	while (input->size) {
		struct bytes line;

		switch (stream->state) {
		case AT_START:
			take_mark(stream, input);
			break;
		case AT_LINE:
			if (start_line(stream, input))
				return EVENT_STREAM_END;
			break;
		case IN_FIELD:
			if (!take_field(stream, input) || stream->gap)
				break;
			*ret_data = BYTES("\n");
			return EVENT_STREAM_DATA;
		case AT_VALUE:
			bytes_take(input, input->data[0] == ' ');
			stream->state = IN_DATA;
			break;
		case IN_DATA:
			line = take_line(stream, input);
			if (!line.size || stream->gap)
				break;
			*ret_data = line;
			return EVENT_STREAM_DATA;
		default:
			take_line(stream, input);
			break;
		}
	}
	return EVENT_STREAM_MORE;
}

void event_stream_gap(struct event_stream *stream)
{
	stream->state = IN_OTHER;
	stream->after_cr = false;
	stream->gap = true;
}
