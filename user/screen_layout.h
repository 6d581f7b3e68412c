/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The model as a picture: the main view, the story of a call, the help. Pure.
 */
#ifndef NIGHTCLERK_SCREEN_LAYOUT_H
#define NIGHTCLERK_SCREEN_LAYOUT_H

#include "screen_frame.h"
#include "screen_model.h"

/* Draws the model at its size. Also tells the model how far its panes can scroll. */
void screen_layout(struct screen_model *model, uint64_t now_ns, struct screen_frame *frame);

/*
 * What is shown, whole: every call that passes the filter, in its order, with the
 * findings and the table; or the whole story or help. For a file. Appended. 0 or -ENOMEM.
 */
int screen_text(struct screen_model *model, uint64_t now_ns, struct buffer *out);

#endif
