/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A model on a terminal: keys go in, pictures come out, at most
 * VIEWER_FRAMES_PER_SECOND of them, and only when the terminal has taken the
 * last one. `watch` and `replay --screen` each drive one.
 */
#ifndef NIGHTCLERK_VIEWER_H
#define NIGHTCLERK_VIEWER_H

#include "output.h"
#include "screen.h"
#include "screen_model.h"

#define VIEWER_FRAMES_PER_SECOND 20

struct viewer {
	struct screen *screen;
	struct screen_model *model;
	struct screen_frame frame;
	struct output_owner owner; /* of the files that w writes */
	uint64_t drawn_ns;
	uint64_t looked_ns; /* for messages on standard error */
};

/* Takes the terminal over (screen_new() was before). 0 or -errno. Takes ownership of both. */
int viewer_open(struct viewer *viewer, struct screen *screen, struct screen_model *model);
/* Gives the terminal back and frees all. Accepts a zeroed one. */
void viewer_close(struct viewer *viewer);

/*
 * Takes the keys that wait, up to one that needs the caller, and draws what is
 * due. Never waits. now_ns: CLOCK_MONOTONIC.
 */
enum screen_action viewer_turn(struct viewer *viewer, uint64_t now_ns);
/* The terminal has another size. */
void viewer_resized(struct viewer *viewer);

#endif
