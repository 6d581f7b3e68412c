/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fixed columns first, the target last: it is the only one that may be long, and
 * the one that is never left out.
 */
#include "call_line.h"
#include "say.h"
#include "secret.h"
#include "utf8.h"
#include "wall_time.h"

#include <errno.h>

#define COMM_COLUMNS 15
#define TARGET_COLUMNS 40 /* on a narrow terminal it has as many before other columns have any */

/* What is there beside time, method, status, duration and target. */
struct layout {
	bool process, command, sizes;
};

static struct layout layout_of(unsigned int width)
{
	/* Each with the space after it. */
	const unsigned int always = 13 + 7 + 4 + 10, sizes = 7 + 7, process = 8, command = COMM_COLUMNS + 1;
	unsigned int room = width > always + TARGET_COLUMNS ? width - always - TARGET_COLUMNS : 0;

	return (struct layout){
		.command = width == 0 || room >= command,
		.process = width == 0 || room >= command + process,
		.sizes = width == 0 || room >= command + process + sizes,
	};
}

bool call_line_looks_alike(unsigned int width, unsigned int other)
{
	struct layout one = layout_of(width), two = layout_of(other);

	return one.process == two.process && one.command == two.command && one.sizes == two.sizes;
}

static int add_time(uint64_t when_ns, int64_t wall_offset_ns, struct buffer *out)
{
	int64_t wall_ns = wall_time_ns(when_ns, wall_offset_ns);
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	return say(out, "%02d:%02d:%02d.%03d ", utc.tm_hour, utc.tm_min, utc.tm_sec, (int)(wall_ns / 1000000 % 1000));
}

/* text in at least `columns` columns; what is longer stays whole: no column after it is worth a lie. */
static int add_padded(struct bytes text, size_t columns, struct buffer *out)
{
	size_t before = out->size;
	int err = text_harmless(text, 64, out);

	while (!err && out->size - before < columns)
		err = buffer_append_byte(out, ' ');
	return err ? err : buffer_append_byte(out, ' ');
}

static int add_bytes(uint64_t count, struct buffer *out)
{
	if (count < 10000)
		return say(out, "%6llu ", (unsigned long long)count);
	if (count < 10000ULL * 1024)
		return say(out, "%5lluK ", (unsigned long long)(count / 1024));
	return say(out, "%5lluM ", (unsigned long long)(count / 1024 / 1024));
}

static int add_numbers(const struct call *call, const struct layout *layout, struct buffer *out)
{
	uint64_t from = call->sent_ns ? call->sent_ns : call->first_ns;
	int err;

	err = call->status ? say(out, "%3u ", call->status) : say(out, "  - ");
	if (!err && layout->sizes)
		err = add_bytes(call->body_bytes, out);
	if (!err && layout->sizes)
		err = add_bytes(call->response_body_bytes, out);
	if (err)
		return err;
	if (call->response_last_ns == 0)
		return say(out, "%9s ", "-");
	return say(out, "%9.1f ", call->response_last_ns > from ? (double)(call->response_last_ns - from) / 1e6 : 0.0);
}

static int add_target(struct fingerprinter *fingerprinter, const struct call *call, struct buffer *out)
{
	struct buffer target = {0};
	char server[ENDPOINT_TEXT_MAX];
	int err;

	endpoint_text(&call->server, server);
	err = say(out, "%s ", server);
	if (!err)
		err = secret_mask_target(fingerprinter, call->path, call->has_query, call->query, &target);
	if (!err)
		err = text_harmless(buffer_bytes(&target), LIMIT_PATH_BYTES, out);
	buffer_done(&target);
	return err;
}

/* Cuts the line that begins at start to width columns; a column is a code point. */
static void cut(struct buffer *out, size_t start, unsigned int width)
{
	struct bytes rest = {out->data + start, out->size - start};
	unsigned int columns = 0;
	uint32_t code_point;

	while (width && rest.size && columns < width) {
		size_t n = utf8_next(rest, &code_point);

		bytes_take(&rest, n ? n : 1);
		columns++;
	}
	if (width)
		out->size -= rest.size;
}

int call_line(struct fingerprinter *fingerprinter, const struct call *call, int64_t wall_offset_ns,
	      const struct alert_style *style, struct buffer *out)
{
	struct layout layout = layout_of(style->width);
	size_t start = out->size;
	char pid[16];
	int err;

	snprintf(pid, sizeof(pid), "%7u", call->process.tgid);
	err = add_time(call->first_ns, wall_offset_ns, out);
	if (!err && layout.process)
		err = add_padded(bytes_of_string(pid), 7, out);
	if (!err && layout.command)
		err = add_padded(bytes_of_string(call->process.comm), COMM_COLUMNS, out);
	if (!err)
		err = add_padded(call->method, 6, out);
	if (!err)
		err = add_numbers(call, &layout, out);
	if (!err)
		err = add_target(fingerprinter, call, out);
	if (!err) {
		cut(out, start, style->width);
		err = buffer_append_byte(out, '\n');
	}
	if (err)
		out->size = start;
	return err;
}

int call_line_header(const struct alert_style *style, struct buffer *out)
{
	struct layout layout = layout_of(style->width);
	size_t start = out->size;
	int err = say(out, "%-12s ", "TIME (UTC)");

	if (!err && layout.process)
		err = say(out, "%7s ", "PID");
	if (!err && layout.command)
		err = say(out, "%-*s ", COMM_COLUMNS, "COMMAND");
	if (!err)
		err = say(out, "%-6s %3s ", "METHOD", "ST");
	if (!err && layout.sizes)
		err = say(out, "%6s %6s ", "SENT", "GOT");
	if (!err)
		err = say(out, "%9s %s", "MS", "SERVER AND TARGET");
	if (err)
		return err;
	cut(out, start, style->width);
	return buffer_append_byte(out, '\n');
}
