/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The head of one HTTP/1.x message after the other: start line and fields, up
 * to the empty line. Used by http.c alone, which decides what the head means
 * for the body. The only file that knows llhttp.
 *
 * Memory: at most LIMIT_HEAD_BYTES of text and LIMIT_HEAD_FIELDS fields; beyond
 * them the head is read on and not kept.
 */
#ifndef NIGHTCLERK_HEAD_H
#define NIGHTCLERK_HEAD_H

#include "http.h"

enum head_step {
	HEAD_NEED_MORE, /* all of *input was taken */
	HEAD_WHOLE,	/* the empty line was taken: head_reader_head() has it */
	HEAD_BROKEN,	/* head_reader_reason(); stop feeding until head_reader_begin() */
};

struct head_reader;

/* NULL when out of memory. */
struct head_reader *head_reader_new(enum http_side side);
void head_reader_free(struct head_reader *reader); /* accepts NULL */

/* Forgets the head before; the first byte of the next one follows. */
void head_reader_begin(struct head_reader *reader);
enum head_step head_reader_feed(struct head_reader *reader, struct bytes *input);

/* Lent until head_reader_begin(). keep_alive says what the head says; http.c knows more. */
struct http_head *head_reader_head(struct head_reader *reader);
size_t head_reader_held(const struct head_reader *reader); /* bytes of memory that grow with a head */
bool head_reader_saw_version(const struct head_reader *reader);
const char *head_reader_reason(const struct head_reader *reader); /* static text */

#endif
