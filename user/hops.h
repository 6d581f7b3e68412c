/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Proxy hops: one call that crosses loopback twice or more, agent -> gateway ->
 * server. A hop has its parent's method and body, goes to another server
 * endpoint, began while the parent was being answered, and was sent by the
 * process that received the parent. It is no second attempt: another port
 * makes it another call to begin with; the link is for whoever adds calls up.
 *
 * Who received a call is known once something came back on its connection, so
 * hops are told when the parent is over. Of a first call on a connection that
 * is never answered nobody knows.
 *
 * Pure; what is remembered are calls that are open.
 */
#ifndef NIGHTCLERK_HOPS_H
#define NIGHTCLERK_HOPS_H

#include "call.h"

#define HOPS_PER_CALL 16 /* sent on for one call; more are not linked */

struct hops;

struct hop {
	uint8_t call_id[CALL_ID_BYTES];
	uint8_t parent_id[CALL_ID_BYTES];
};

struct hops *hops_new(void);	      /* NULL when out of memory */
void hops_free(struct hops *hops);    /* accepts NULL */

/* A request that is complete: may become a parent, and a hop of one that is open. 0 or -ENOMEM: it is neither. */
int hops_request(struct hops *hops, struct call *call);
/* The next hop of a call that is over; false when no other is known. */
bool hops_next(struct hops *hops, struct call *parent, struct hop *ret_hop);
/* Nothing will change any more about that call. */
void hops_close(struct hops *hops, struct call *call);

size_t hops_open(const struct hops *hops); /* calls that may become parents */

#endif
