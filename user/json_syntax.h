/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Is a file that a person wrote one JSON value, and where not: line and column,
 * as an editor counts them.
 */
#ifndef NIGHTCLERK_JSON_SYNTAX_H
#define NIGHTCLERK_JSON_SYNTAX_H

#include "bytes.h"

#define JSON_SYNTAX_REASON_MAX 160

/* Of a byte of the text: from 1, the column in characters. */
void json_place(const uint8_t *start, const uint8_t *at, unsigned int *ret_line, unsigned int *ret_column);

/*
 * text has a NUL behind it that does not count. what: how a reason calls the value
 * ("the policy"). 0; -ENOMEM; -EINVAL with the place that is wrong and the reason filled.
 */
int json_syntax_check(struct bytes text, const char *what, const uint8_t **ret_at, char ret_reason[JSON_SYNTAX_REASON_MAX]);

#endif
