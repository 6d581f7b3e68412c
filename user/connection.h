/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One TCP connection: the streams of its two ends -> HTTP messages -> calls,
 * requests paired with responses in order (RFC 9112 section 9.3.2).
 *
 * What an event leads to is pushed onto a queue of results; connections.c lends
 * them to the pipeline one by one.
 */
#ifndef NIGHTCLERK_CONNECTION_H
#define NIGHTCLERK_CONNECTION_H

#include "call.h"
#include "connection_key.h"
#include "fingerprint.h"
#include "lines.h"
#include "stream.h"

enum connection_step {
	CONNECTION_NOTHING,
	CONNECTION_REQUEST,  /* call: its request is complete, or it is all there will ever be; body is valid during this step */
	CONNECTION_CHANGED,  /* call: its facts changed (status, close, what was read) */
	CONNECTION_ANSWERED, /* call: its response event is due; it may still change */
	CONNECTION_CLOSED,   /* call: nothing will change any more; freed at the next step */
	CONNECTION_HOLE,
	CONNECTION_BLIND,     /* the connection was given up: flow[] want muting, unless they are 0 */
	CONNECTION_BLIND_END, /* its totals, when it ended */
	CONNECTION_BROKEN,    /* one side is no HTTP/1.x any more: the same */
	CONNECTION_SILENT,    /* nothing more will be understood: flow[] want muting */
	CONNECTION_OFF_LOOPBACK,
};

struct connection_result {
	enum connection_step step;
	struct call *call;
	struct connection_name name;
	bool from_client;
	bool matters; /* CONNECTION_BROKEN: it is HTTP for certain */
	bool refused, datagram; /* CONNECTION_OFF_LOOPBACK: by --confine; UDP */
	uint64_t offset;
	uint64_t length;
	enum wire_cause cause;
	enum blind_kind blind;
	uint64_t bytes_out, bytes_in; /* the client's, the server's */
	uint64_t flow[2];	      /* indexed by side; 0 = not seen */
	const char *reason;
	uint64_t now_ns;
};

/* Where every byte of the streams went: message + hole + blind = accepted. */
struct connection_totals {
	uint64_t message_bytes;
	uint64_t hole_bytes;
	uint64_t blind_bytes;
};

/* Messages that arrive in pieces side by side keep so many readers from being made anew. */
#define SPARE_READERS_MAX 8

struct exchange; /* a call and what connection*.c needs to make it */

/* What all connections share; owned by connections.c. */
struct connection_shared {
	const uint8_t *boot_id;
	struct fingerprinter *fingerprinter;
	struct connection_totals totals;
	uint64_t next_number;
	struct exchange *open;	  /* list: no final response yet, and its server has not closed */
	size_t open_count;
	struct exchange *waiting; /* list: complete, but what the client read of it is not known */
	struct connection_result *queue;
	size_t queue_head, queue_size, queue_capacity;
	struct exchange *overdue; /* list: closed, and no memory to queue that: connection_next_overdue() */
	struct digest_state *spare_digest;
	struct http_reader *spare_readers[2][SPARE_READERS_MAX]; /* by side; a connection between messages has none */
	size_t spare_reader_count[2];
	struct call_memory memory;
	bool out_of_memory; /* something was lost since the last look */
};

/* Frees what is kept for the next message; every connection is gone. */
void connection_shared_done(struct connection_shared *shared);

struct connection;

/* Borrows shared for its lifetime. NULL when out of memory. */
struct connection *connection_new(struct connection_shared *shared, const struct connection_name *name, uint32_t netns);
/* Every call in it must have been closed: connection_finish() first. */
void connection_free(struct connection *connection);

/* An end of the connection was seen for the first time. */
void connection_open(struct connection *connection, enum connection_side side, const struct wire_event *event);
/* WIRE_DATA or WIRE_HOLE. */
void connection_data(struct connection *connection, enum connection_side side, const struct wire_event *event,
		     struct bytes payload);
/* WIRE_STATE. */
void connection_state(struct connection *connection, enum connection_side side, const struct wire_event *event);
/* WIRE_END; true when both ends are gone (or only this one was ever seen): finish and free it. */
bool connection_end(struct connection *connection, enum connection_side side, const struct wire_event *event);
/* Nothing will come any more: every call and blind record is closed. */
void connection_finish(struct connection *connection, uint64_t now_ns);
/* A process is gone: its open calls know. */
void connection_process_exited(struct connection_shared *shared, uint32_t tgid, uint64_t process_start_ns);
/* Time passed: response events that waited long enough for proof of delivery. */
void connection_tick(struct connection_shared *shared, uint64_t now_ns);

/* Appends a copy to the queue; false (and out_of_memory) when that cannot be. */
bool connection_push(struct connection_shared *shared, const struct connection_result *result);

/* When the queue is empty: the end of a call that could not be queued. False when there is none. */
bool connection_next_overdue(struct connection_shared *shared, uint64_t now_ns, struct connection_result *ret_result);

/* Frees what a CONNECTION_CLOSED result lent, and the body after a CONNECTION_REQUEST. */
void connection_result_done(struct connection_shared *shared, const struct connection_result *result);

#endif
