/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One line in the making, for lines.c and lines_run.c: all of it reaches the
 * buffer or nothing does.
 */
#ifndef NIGHTCLERK_LINE_H
#define NIGHTCLERK_LINE_H

#include "json_text.h"
#include "lines.h"
#include "wall_time.h"

struct line {
	struct json_writer json;
	const struct line_context *context;
	struct buffer scratch; /* for one field at a time */
	size_t start;	       /* of the line in the buffer */
};

void line_open(struct line *line, const struct line_context *context, struct buffer *out);
/* Opens an event: kind, t, run. */
void line_open_event(struct line *line, const struct line_context *context, const char *kind,
		     uint64_t when_ns, struct buffer *out);
/* Ends the line with LF. 0, or -ENOMEM with the buffer as it was. */
int line_close(struct line *line);

/* Fields; when_ns is CLOCK_MONOTONIC and printed as wall time. Inline: see json_key(). */
static inline void line_time(struct line *line, const char *key, uint64_t when_ns)
{
	json_key(&line->json, key);
	json_seconds(&line->json, wall_time_ns(when_ns, line->context->wall_offset_ns));
}

static inline void line_text(struct line *line, const char *key, const char *text) /* NULL gives null */
{
	json_key(&line->json, key);
	json_text(&line->json, text);
}

static inline void line_string(struct line *line, const char *key, struct bytes text)
{
	json_key(&line->json, key);
	json_string(&line->json, text);
}

static inline void line_unsigned(struct line *line, const char *key, uint64_t value)
{
	json_key(&line->json, key);
	json_unsigned(&line->json, value);
}

static inline void line_bool(struct line *line, const char *key, bool value)
{
	json_key(&line->json, key);
	json_boolean(&line->json, value);
}

static inline void line_hex(struct line *line, const char *key, const uint8_t *bytes, size_t byte_count)
{
	json_key(&line->json, key);
	json_hex(&line->json, bytes, byte_count);
}

/* What is not there: null where that is certain, "unknown" where it may not have been seen. */
static inline void line_missing(struct line *line, const char *key, bool unseen)
{
	line_text(line, key, unseen ? "unknown" : NULL);
}

/* `audit`: whose line it is; nothing where there are no tenants. */
void line_tenant(struct line *line);
void line_endpoint(struct line *line, const char *key, const struct endpoint *endpoint);
/* What was put into line->scratch, with the result of putting it there. */
void line_scratch(struct line *line, const char *key, int err);

#endif
