/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The body of an answer to a JSON-RPC call -> its messages: one, a batch of
 * them, or server-sent events that hold one each (MCP's Streamable HTTP).
 *
 *	struct rpc_messages messages = {.rest = body};
 *
 *	while (rpc_messages_next(&messages, &message))
 *		...
 *	rpc_messages_done(&messages);
 */
#ifndef NIGHTCLERK_RPC_ANSWER_H
#define NIGHTCLERK_RPC_ANSWER_H

#include "bytes.h"
#include "json_scan.h"

struct rpc_messages {
	struct bytes rest;     /* what is still to be read */
	struct json_scan scan; /* of the batch that is being read */
	struct buffer event;   /* the data of one event; owned */
	bool started, in_batch, in_events;
	int error; /* -ENOMEM: there may have been more */
};

/* The next JSON value, lent until the next call; it may be anything. False at the end. What is not one value is left out. */
bool rpc_messages_next(struct rpc_messages *messages, struct bytes *ret_message);
void rpc_messages_done(struct rpc_messages *messages);

/*
 * Does the whole answer say that nothing was run? All results in it are errors
 * of JSON-RPC 2.0 section 5.1 that come before any method is called: parse
 * error, invalid request, method not found, invalid params. 1, 0 or -ENOMEM.
 */
int rpc_answer_says_not_run(struct bytes body);

#endif
