/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Key and value in one call, so that the schema reads as a list. Errors stick
 * in the JSON writer; line_close() looks at them once and takes the half line
 * back.
 */
#include "line.h"

void line_open(struct line *line, const struct line_context *context, struct buffer *out)
{
	*line = (struct line){.context = context, .start = out->size};
	json_writer_init(&line->json, out);
	json_object_open(&line->json);
}

void line_open_event(struct line *line, const struct line_context *context, const char *kind,
		     uint64_t when_ns, struct buffer *out)
{
	line_open(line, context, out);
	line_text(line, "kind", kind);
	line_time(line, "t", when_ns);
	line_text(line, "run", context->run->run_id);
}

int line_close(struct line *line)
{
	struct buffer *out = line->json.out;
	int err;

	json_object_close(&line->json);
	err = json_writer_error(&line->json);
	if (!err)
		err = buffer_append_byte(out, '\n');
	if (err)
		out->size = line->start;
	buffer_done(&line->scratch);
	return err;
}

void line_tenant(struct line *line)
{
	if (line->context->run->tenant[0])
		line_text(line, "tenant", line->context->run->tenant);
}

void line_endpoint(struct line *line, const char *key, const struct endpoint *endpoint)
{
	char text[ENDPOINT_TEXT_MAX];

	endpoint_text(endpoint, text);
	line_text(line, key, text);
}

void line_scratch(struct line *line, const char *key, int err)
{
	if (err && !line->json.error)
		line->json.error = err;
	line_string(line, key, buffer_bytes(&line->scratch));
	buffer_clear(&line->scratch);
}
