/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of lines for screen_layout.c: the story of a call and the help. Each
 * draws its lines from row `top` on, as if the frame had room for all of them
 * from line `scroll` on, and returns how many lines it has.
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
/* The style of a severity's word. */
unsigned int screen_severity_style(enum severity severity);
/* "22:30:06.668" */
void screen_clock(uint64_t when_ns, int64_t wall_offset_ns, char text[16]);

#endif
