/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the manual says of the table of commands. Pure: text into a buffer.
 */
#ifndef NIGHTCLERK_MANUAL_H
#define NIGHTCLERK_MANUAL_H

#include "bytes.h"
#include "command_table.h"

/* The options of a command as a list in mdoc(7), .Bl to .El, appended to out: 0 or -ENOMEM. */
int manual_options(enum command_line_verb verb, struct buffer *out);

#endif
