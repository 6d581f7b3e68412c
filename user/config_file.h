/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command's options in a file: one JSON object whose fields are the long
 * options' names, without "--".
 *
 *	{"directory": "/var/log/nightclerk", "ring-size": "64M", "strict": true}
 */
#ifndef NIGHTCLERK_CONFIG_FILE_H
#define NIGHTCLERK_CONFIG_FILE_H

#include "bytes.h"

#define CONFIG_FILE_MAX (64 * 1024)
#define CONFIG_REASON_MAX 256

/*
 * Takes one field. value: what a text or a number says; NULL = true; "" with off true = false. 0, or -EINVAL with
 * what is wrong in reason (CONFIG_REASON_MAX bytes), as the end of a sentence that begins with the field's name.
 */
typedef int config_take(void *context, const char *name, const char *value, bool off, char *reason);

/*
 * Gives every field of the file to take, in its order. What is wrong is said on
 * stderr with line and column: -EINVAL; -errno where it cannot be read. *ret_texts holds the
 * values that take was given, also then: the caller frees it when they are of no use any more.
 */
int config_file_read(const char *path, config_take *take, void *context, char **ret_texts);
/* The same for text that comes from somewhere else; name is what messages call it. */
int config_file_parse(const char *name, struct bytes text, config_take *take, void *context, char **ret_texts);

#endif
