/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Server-sent events (WHATWG HTML, "Parsing an event stream") that come in
 * slices -> the data of each, piece by piece, without keeping any of it.
 *
 * Lines end in LF, CRLF or CR; the data lines of one event are joined by LF; an
 * event ends at an empty line, and one that never does is not told as ended.
 * Other fields and comments are passed over.
 *
 *	while ((step = event_stream_next(&stream, &input, &data)) != EVENT_STREAM_MORE)
 *		...
 */
#ifndef NIGHTCLERK_EVENT_STREAM_H
#define NIGHTCLERK_EVENT_STREAM_H

#include "bytes.h"

enum event_stream_step {
	EVENT_STREAM_MORE, /* all of *input was taken */
	EVENT_STREAM_DATA, /* *ret_data: more of the event's data, never empty, lent until the next call */
	EVENT_STREAM_END,  /* the event is whole; it had data */
};

/* Valid when zeroed. All of it is private. */
struct event_stream {
	uint8_t state;
	uint8_t mark;	    /* bytes of a byte order mark seen at the start */
	uint8_t field_size; /* of the field's name, so far */
	uint8_t field[5];
	bool after_cr;	    /* an LF now belongs to the line end before it */
	bool has_data;
	bool gap;	    /* bytes are missing: nothing is told up to the next empty line */
};

enum event_stream_step event_stream_next(struct event_stream *stream, struct bytes *input, struct bytes *ret_data);
/* Bytes are missing here: the event in progress is given up. */
void event_stream_gap(struct event_stream *stream);

#endif
