/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The canary: proof that the probe fires. Two forked children, a client and a
 * server, exchange one known duplicate over loopback; their events go through
 * a pipeline of their own, and only the finding that must come out counts.
 * Nothing of it reaches a ledger, a store or an attempt of the run.
 */
#ifndef NIGHTCLERK_CANARY_H
#define NIGHTCLERK_CANARY_H

#include "input.h"

#define CANARY_REASON_MAX 256

/* Its User-Agent: to a nightclerk that watches this one the canary is telemetry (classify.c). */
#define CANARY_AGENT "nightclerk-canary"

struct canary;

/*
 * Forks both children, held, so that they can be put into the scope first.
 * 0 or -errno with one line in reason.
 */
int canary_start(struct canary **ret_canary, uint32_t *ret_client, uint32_t *ret_server, char *reason);
/* Lets them talk. */
void canary_release(struct canary *canary);
/* One event that carries WIRE_CANARY. */
void canary_feed(struct canary *canary, const struct input *input);
/* The duplicate was found: dup_after_success, at most info as all telemetry, of the second of two requests. */
bool canary_seen(const struct canary *canary);
/*
 * True when both children have ended, or the client has failed; then reason says what kept them from
 * talking ("127.0.0.1 cannot be reached: is lo up?"), or is empty.
 */
bool canary_over(struct canary *canary, char *reason);
/* Ends and reaps what is left of it. Accepts NULL. */
void canary_free(struct canary *canary);

#endif
