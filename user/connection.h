/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wire events -> calls: both ends of every connection, their streams, their
 * HTTP messages, paired in order (RFC 9112 section 9.3.2).
 *
 * Pull style: feed one input, then take what it led to.
 * Pure: no clock, no I/O, no logging.
 */
#ifndef NIGHTCLERK_CONNECTION_H
#define NIGHTCLERK_CONNECTION_H

#include "call.h"
#include "input.h"
#include "lines.h"

enum connection_step {
	CONNECTION_NOTHING,
	CONNECTION_REQUEST,  /* call: its request is complete, or it is all there will ever be */
	CONNECTION_STATUS,   /* call: the head of its final response came, or its facts changed in another way */
	CONNECTION_ANSWERED, /* call: answered whole, or never will be; it is freed at the next step */
	CONNECTION_HOLE,
	CONNECTION_BLIND, /* the connection has been given up: kind, and its flows want muting */
	CONNECTION_BLIND_END, /* its totals */
	CONNECTION_BROKEN,
	CONNECTION_OFF_LOOPBACK,
};

struct connection_result {
	struct call *call;
	struct connection_name name;
	bool from_client;
	uint64_t offset;
	uint64_t length;
	enum wire_cause cause;
	enum blind_kind blind;
	uint64_t bytes_out, bytes_in; /* client's, server's */
	uint64_t flow[2];	      /* client's and server's flow ids, 0 = not seen */
	const char *reason;
	uint64_t now_ns;
};

struct connection_totals {
	uint64_t message_bytes;
	uint64_t hole_bytes;
	uint64_t blind_bytes;
	uint64_t ended_flow_bytes; /* accepted bytes of flows that ended, from their WIRE_END */
};

struct connections;

struct connections *connections_new(const uint8_t boot_id[16], struct fingerprinter *fingerprinter);
void connections_free(struct connections *connections);

/* 0 or -ENOMEM (the event is lost to the connection, which becomes undecidable). */
int connections_feed(struct connections *connections, const struct input *input);
enum connection_step connections_next(struct connections *connections, struct connection_result *ret_result);

size_t connections_open_calls(const struct connections *connections);
void connections_totals(const struct connections *connections, struct connection_totals *ret_totals);

#endif
