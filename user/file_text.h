/* SPDX-License-Identifier: BSD-2-Clause */
/* A small file that is read whole: a policy, the options of a service. */
#ifndef NIGHTCLERK_FILE_TEXT_H
#define NIGHTCLERK_FILE_TEXT_H

#include "bytes.h"

/* Appends its text, of which at most max + 1 bytes: more than max tells that it is too large. 0 or -errno. */
int file_text_read(const char *path, size_t max, struct buffer *text);

#endif
