/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. One decoder for every writer of text.
 */
#ifndef NIGHTCLERK_UTF8_H
#define NIGHTCLERK_UTF8_H

#include "bytes.h"

/*
 * How many bytes the first code point of text takes (1 to 4), with the code
 * point; 0 when text is empty or does not start with valid UTF-8.
 */
size_t utf8_next(struct bytes text, uint32_t *ret_code_point);

/* The bytes of a code point, 1 to 4; of a lone surrogate those that it would have. */
size_t utf8_put(uint32_t code_point, uint8_t text[4]);

/* U+0000-1F, 7F, 80-9F. */
bool utf8_is_control(uint32_t code_point);

/*
 * Text that others chose, made harmless for a terminal and for XML: controls,
 * what changes the direction of text, line separators, non-characters and
 * bytes that are not UTF-8 become \xNN, byte by byte. Appended, at most
 * max_bytes of output, then "...". 0 or -ENOMEM.
 */
int text_harmless(struct bytes text, size_t max_bytes, struct buffer *out);

#endif
