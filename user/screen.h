/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A terminal that frames are painted on and keys come from. The only file that
 * knows ncurses.
 *
 * Nobody ever waits for the terminal: what ncurses wants to send goes into
 * memory first and from there as fast as the terminal takes it; while it has
 * not taken the last picture there is no next one. The terminal gets back what
 * it had at every end of the process but SIGKILL: screen_close(), exit(), and a
 * crash. One screen a process.
 */
#ifndef NIGHTCLERK_SCREEN_H
#define NIGHTCLERK_SCREEN_H

#include "screen_frame.h"

struct screen;

/*
 * Finds the terminal behind standard output and what it can do; changes nothing
 * on it yet. 0, or -errno with *ret_reason, static: "standard output is no terminal".
 */
int screen_new(struct screen **ret_screen, const char **ret_reason);
/*
 * Takes the terminal over. Standard error, where that is a terminal, is kept in
 * memory until the end: screen_messages(). 0 or -errno; signals are the caller's.
 */
int screen_show(struct screen *screen);
/* Gives the terminal back and frees; what came on standard error is printed then. Accepts NULL. */
void screen_close(struct screen *screen);

void screen_size(const struct screen *screen, unsigned int *ret_columns, unsigned int *ret_rows);
/* The terminal has another size. */
void screen_resized(struct screen *screen);
/* Sends what waits to be sent; true when nothing does any more: paint the next one. */
bool screen_ready(struct screen *screen);
void screen_paint(struct screen *screen, const struct screen_frame *frame);
/* The next screen_paint() sends everything. */
void screen_spoiled(struct screen *screen);
void screen_bell(struct screen *screen);
/* Readable when a key waits. */
int screen_fd(const struct screen *screen);
/* A key that waits (screen_model.h); false when there is none. */
bool screen_key(struct screen *screen, uint32_t *ret_key);
/* The terminal was closed. */
bool screen_gone(const struct screen *screen);
/* The last whole line that came on standard error since the last call, without LF; empty = none. Lent until then. */
struct bytes screen_messages(struct screen *screen);

#endif
