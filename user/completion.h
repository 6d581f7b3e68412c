/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a shell is told of the table of commands. Pure: text into a buffer.
 */
#ifndef NIGHTCLERK_COMPLETION_H
#define NIGHTCLERK_COMPLETION_H

#include "bytes.h"
#include "command_table.h"

/*
 * How a shell completes a value that an option_row's `argument` or a word of a
 * command_row's `operands` names: "file", "files" (any number), "directory", "user", "command",
 * "words:a,b" (one of them), "list:a,b" (some of them, with commas), or "text"
 * (anything). Appended to out: 0 or -ENOMEM.
 */
int completion_kind(const char *argument, struct buffer *out);

/*
 * A script for bash 4.2 or later, appended to out: 0 or -ENOMEM. Where
 * bash-completion is loaded it completes the command behind `--` as that one.
 */
int completion_bash(struct buffer *out);

#endif
