/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One aligned line per call, for people who watch: time, process, method,
 * status, sizes, duration, server and target. Hostile bytes are harmless,
 * secrets in the target are masked.
 */
#ifndef NIGHTCLERK_CALL_LINE_H
#define NIGHTCLERK_CALL_LINE_H

#include "alert.h"

/*
 * Appends the line with its LF, cut to style->width columns where that is not 0; a
 * narrow one has no sizes, no pid and no command, so that the target has room. 0 or -ENOMEM.
 */
int call_line(struct fingerprinter *fingerprinter, const struct call *call, int64_t wall_offset_ns,
	      const struct alert_style *style, struct buffer *out);
/* The names of the columns, aligned with them. */
int call_line_header(const struct alert_style *style, struct buffer *out);
/* Lines of these two widths have the same columns. */
bool call_line_looks_alike(unsigned int width, unsigned int other);

#endif
