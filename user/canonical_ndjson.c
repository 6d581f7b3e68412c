/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON lines: the canonical text of each line that holds more than space, in
 * order. One bad line makes the whole body raw, since no half of it may be
 * compared.
 */
#include "canonical.h"

static bool is_blank(struct bytes line)
{
	for (size_t i = 0; i < line.size; i++)
		if (line.data[i] != ' ' && line.data[i] != '\t' && line.data[i] != '\r')
			return false;
	return true;
}

const char *canonical_ndjson(struct bytes text, struct canonical *flags, struct buffer *out)
{
	size_t start = out->size;
	const char *why = NULL;
	struct bytes line;

	while (text.size && !why) {
		line = bytes_take(&text, bytes_find(text, '\n'));
		bytes_take(&text, 1);
		if (is_blank(line))
			continue;
		if (out->size > start && buffer_append_byte(out, '\n'))
			why = canonical_out_of_memory;
		else
			why = canonical_json(line, flags, out);
	}
	if (why)
		out->size = start;
	return why;
}
