/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a million tokens cost, by model, as a file of the user's says:
 *
 *	{"a-model": {"input": 2.5, "cached": 1.25, "output": 10}}
 *
 * cached may be left out: as input. None are built in: they change.
 */
#ifndef NIGHTCLERK_PRICES_H
#define NIGHTCLERK_PRICES_H

#include "store.h"

#define PRICES_REASON_MAX 512

struct prices;

/* 0, or -errno with one line in reason (PRICES_REASON_MAX bytes) that says what is wrong with the text. */
int prices_parse(struct bytes text, struct prices **ret_prices, char *reason);
void prices_free(struct prices *prices); /* accepts NULL */
/* False when there is no price for it. Counts that are not known cost nothing. */
bool prices_cost(const struct prices *prices, const char *model, const struct store_tokens *tokens, double *ret_cost);

#endif
