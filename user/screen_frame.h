/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One picture of the screen: cells of text, each with its place, its width and
 * its style. Made by screen_layout.c, painted by screen.c, compared by tests.
 * Pure.
 */
#ifndef NIGHTCLERK_SCREEN_FRAME_H
#define NIGHTCLERK_SCREEN_FRAME_H

#include "bytes.h"

/* A colour, and bits over it. Nothing is said by colour alone. */
enum screen_style {
	STYLE_PLAIN,
	STYLE_HIGH,
	STYLE_MEDIUM,
	STYLE_LOW,
	STYLE_UNDECIDABLE,
	STYLE_COLOURS,
	STYLE_BOLD = 1 << 4,
	STYLE_DIM = 1 << 5,
	STYLE_REVERSE = 1 << 6,
};

struct screen_cell {
	unsigned int row, column;
	unsigned int width; /* columns that it fills; longer text is cut, and ends in ">" */
	unsigned int style;
	size_t offset, size; /* of its text: UTF-8 without controls */
};

struct screen_frame {
	unsigned int columns, rows;
	struct screen_cell *cell; /* later ones lie over earlier ones */
	size_t count, capacity;
	struct buffer text;
	int cursor_row, cursor_column; /* -1 = hidden */
	bool memory_lost;
};

void screen_frame_clear(struct screen_frame *frame, unsigned int columns, unsigned int rows);
void screen_frame_done(struct screen_frame *frame); /* accepts a zeroed one */

/* What lies outside of the frame is left out. */
void screen_frame_text(struct screen_frame *frame, unsigned int row, unsigned int column, unsigned int width,
		       unsigned int style, struct bytes text);
/* For text of our own only. */
void screen_frame_say(struct screen_frame *frame, unsigned int row, unsigned int column, unsigned int width,
		      unsigned int style, const char *format, ...) __attribute__((format(printf, 6, 7)));
/* A whole row in that style. */
void screen_frame_fill(struct screen_frame *frame, unsigned int row, unsigned int style);

/*
 * The frame as lines of text, without styles, a column for each code point and
 * no spaces at the end of a line. Appended. 0 or -ENOMEM.
 */
int screen_frame_lines(const struct screen_frame *frame, struct buffer *out);

#endif
