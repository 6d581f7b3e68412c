/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cells are kept as they come: what draws over them comes later.
 */
#include "screen_frame.h"
#include "utf8.h"

#include <errno.h>
#include <stdarg.h>

void screen_frame_clear(struct screen_frame *frame, unsigned int columns, unsigned int rows)
{
	frame->columns = columns;
	frame->rows = rows;
	frame->count = 0;
	frame->cursor_row = frame->cursor_column = -1;
	frame->memory_lost = false;
	buffer_clear(&frame->text);
}

void screen_frame_done(struct screen_frame *frame)
{
	free(frame->cell);
	buffer_done(&frame->text);
	*frame = (struct screen_frame){0};
}

static struct screen_cell *add_cell(struct screen_frame *frame)
{
	if (frame->count == frame->capacity) {
		size_t capacity = frame->capacity ? frame->capacity * 2 : 256;
		struct screen_cell *more = reallocarray(frame->cell, capacity, sizeof(*more));

		if (!more)
			return NULL;
		frame->cell = more;
		frame->capacity = capacity;
	}
	return &frame->cell[frame->count++];
}

void screen_frame_text(struct screen_frame *frame, unsigned int row, unsigned int column, unsigned int width,
		       unsigned int style, struct bytes text)
{
	struct screen_cell *cell;
	size_t offset = frame->text.size;

	if (row >= frame->rows || column >= frame->columns || width == 0)
		return;
	if (width > frame->columns - column)
		width = frame->columns - column;
	cell = buffer_append(&frame->text, text) ? NULL : add_cell(frame);
	if (cell)
		*cell = (struct screen_cell){row, column, width, style, offset, text.size};
	else
		frame->memory_lost = true;
}

void screen_frame_say(struct screen_frame *frame, unsigned int row, unsigned int column, unsigned int width,
		      unsigned int style, const char *format, ...)
{
	char text[512];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (size < 0)
		return;
	if ((size_t)size >= sizeof(text))
		size = sizeof(text) - 1;
	screen_frame_text(frame, row, column, width, style, (struct bytes){(const uint8_t *)text, (size_t)size});
}

void screen_frame_fill(struct screen_frame *frame, unsigned int row, unsigned int style)
{
	screen_frame_text(frame, row, 0, frame->columns, style, (struct bytes){0});
}

/* ---- as text ---- */

static void draw_cell(const struct screen_frame *frame, const struct screen_cell *cell, uint32_t *line)
{
	struct bytes text = {frame->text.data ? frame->text.data + cell->offset : NULL, cell->size};
	unsigned int used = 0;
	uint32_t code_point;

	for (; text.size && used < cell->width; used++) {
		size_t n = utf8_next(text, &code_point);

		bytes_take(&text, n ? n : 1);
		line[cell->column + used] = n ? code_point : '?';
	}
	if (text.size)
		line[cell->column + cell->width - 1] = '>';
	for (; used < cell->width; used++)
		line[cell->column + used] = ' ';
}

static int append_code_point(struct buffer *out, uint32_t c)
{
	uint8_t text[4];

	return buffer_append(out, (struct bytes){text, utf8_put(c, text)});
}

int screen_frame_lines(const struct screen_frame *frame, struct buffer *out)
{
	uint32_t *grid = calloc((size_t)frame->rows * frame->columns + 1, sizeof(*grid));
	int err = 0;

	if (!grid)
		return -ENOMEM;
	for (size_t i = 0; i < (size_t)frame->rows * frame->columns; i++)
		grid[i] = ' ';
	for (size_t i = 0; i < frame->count; i++)
		draw_cell(frame, &frame->cell[i], grid + (size_t)frame->cell[i].row * frame->columns);
	for (unsigned int row = 0; !err && row < frame->rows; row++) {
		const uint32_t *line = grid + (size_t)row * frame->columns;
		unsigned int end = frame->columns;

		while (end && line[end - 1] == ' ')
			end--;
		for (unsigned int i = 0; !err && i < end; i++)
			err = append_code_point(out, line[i]);
		if (!err)
			err = buffer_append_byte(out, '\n');
	}
	free(grid);
	return err;
}
