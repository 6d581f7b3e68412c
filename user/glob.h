/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two wildcards of a policy file. Nothing else is special: no brackets, no
 * question marks, no escapes.
 *
 * In a path "*" stands for any bytes but "/", and a segment "**" for any number
 * of whole segments, none included. In any other text "*" stands for any bytes.
 */
#ifndef NIGHTCLERK_GLOB_H
#define NIGHTCLERK_GLOB_H

#include "bytes.h"

#define GLOB_BYTES_MAX 256

/* NULL, or what is wrong with it as a glob for paths; static. */
const char *glob_path_wrong(struct bytes glob);
/* path as sent, without query. At most size of glob times size of path steps. */
bool glob_path_matches(struct bytes glob, struct bytes path);

/* NULL, or what is wrong with it as a glob for other text; static. */
const char *glob_text_wrong(struct bytes glob);
bool glob_text_matches(struct bytes glob, struct bytes text);
/* ASCII letters without case. */
bool glob_text_matches_nocase(struct bytes glob, struct bytes text);

#endif
