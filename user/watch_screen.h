/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `watch` on the full screen: an observation and a viewer in one loop, the
 * observation first.
 */
#ifndef NIGHTCLERK_WATCH_SCREEN_H
#define NIGHTCLERK_WATCH_SCREEN_H

#include "notify.h"
#include "screen.h"
#include "session.h"

/* Takes ownership of screen. session->line is parsed, nothing is started. The exit status. */
int watch_screen(struct session *session, struct observer_options *options, struct screen *screen, struct notify *notify);

/* "watch pid 4711", "watch -- pytest"; without the arguments of a command, which may be secrets. */
void watch_title(const struct command_line *line, char *text, size_t size);

#endif
