/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Formatted text into a buffer. Only for text of our own: bytes that others
 * chose go through text_harmless() or json_string() first.
 */
#ifndef NIGHTCLERK_SAY_H
#define NIGHTCLERK_SAY_H

#include "bytes.h"

/* Appends all of it or nothing: 0 or -ENOMEM. */
int say(struct buffer *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
