/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of a picture, for screen_layout.c: rows of columns, and pages of
 * lines. A page draws its lines from row `top` on, as if the frame had room for
 * all of them from line `scroll` on, and returns how many lines it has.
 */
#ifndef NIGHTCLERK_SCREEN_PAGES_H
#define NIGHTCLERK_SCREEN_PAGES_H

#include "screen_frame.h"
#include "screen_parts.h"

struct screen_window { /* where on the frame */
	unsigned int top, rows; /* rows of it that are the page's */
	size_t scroll;		/* lines of the page above them */
};

size_t screen_story(const struct screen_model *model, struct screen_frame *frame, const struct screen_window *window);
size_t screen_help(const struct screen_model *model, struct screen_frame *frame, const struct screen_window *window);

/* What the columns of that pane are called, and one item of its list. */
void screen_columns_titles(struct screen_frame *frame, unsigned int row, enum screen_pane pane);
void screen_columns_item(const struct screen_model *model, struct screen_frame *frame, unsigned int row,
			 enum screen_pane pane, const void *item, bool selected);
/* From here on a pane has its fuller set of columns, and the margins have more words. */
#define SCREEN_MEDIUM 70
#define SCREEN_WIDE 130
/* One for each code point. */
unsigned int screen_columns_in(struct bytes text);

/* The style of a severity's word. */
unsigned int screen_severity_style(enum severity severity);
/* "22:30:06.668" */
void screen_clock(uint64_t when_ns, int64_t wall_offset_ns, char text[16]);

#endif
