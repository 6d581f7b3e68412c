/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All connections: finds the one an event belongs to, by flow id, and brings
 * the two ends of one connection together by (netns, endpoints, both first
 * sequence numbers). Feed one input, then take what it led to.
 *
 * Pure: no clock, no I/O, no logging.
 */
#ifndef NIGHTCLERK_CONNECTIONS_H
#define NIGHTCLERK_CONNECTIONS_H

#include "connection.h"
#include "input.h"

struct connections;

/* Borrows both for its lifetime. NULL when out of memory. */
struct connections *connections_new(const uint8_t boot_id[16], struct fingerprinter *fingerprinter);
void connections_free(struct connections *connections); /* accepts NULL */

/* 0, or -ENOMEM: something was lost. INPUT_DRAIN ends every connection. */
int connections_feed(struct connections *connections, const struct input *input);
/* The next result, lent until the next call; CONNECTION_NOTHING when there is none. */
enum connection_step connections_next(struct connections *connections, struct connection_result *ret_result);

/* What they hold; the limit, LIMIT_HELD_CALLS_BYTES at first, may be set. */
struct call_memory *connections_memory(struct connections *connections);
/* Calls whose end is still due. */
size_t connections_open_calls(const struct connections *connections);
struct connection_totals connections_totals(const struct connections *connections);

#endif
