/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside a connection. Private to connection*.c: connection.c takes the
 * events and queues the results, connection_bytes.c makes messages of the two
 * streams, connection_calls.c makes calls of the messages, connection_search.c
 * finds the next message where the thread was lost, connection_proof.c tells
 * whether what could not be read was HTTP.
 *
 * Nothing here fails: what memory was missing for sets shared->out_of_memory.
 */
#ifndef NIGHTCLERK_CONNECTION_PARTS_H
#define NIGHTCLERK_CONNECTION_PARTS_H

#include "connection.h"
#include "exchange.h"

/* Why a stream is given up. */
#define OUT_OF_MEMORY "out of memory" /* http.h says so, too */
#define TOO_MUCH_HELD "too much is held of all connections together"

struct end {
	uint64_t flow; /* 0 = not seen */
	bool ended;    /* its WIRE_END came */
	bool finished; /* it will send nothing more: FIN or RST */
	bool decided;  /* client: its first bytes were an HTTP request line */
	bool says_http; /* client: its first line names a version of HTTP, good or bad */
	struct stream stream;
	struct http_reader *reader;
	struct buffer pending;	 /* bytes that cannot be read yet: too few to tell, or no request to answer */
	uint64_t pending_offset; /* of pending.data[0] */
	uint64_t pending_ns;	 /* when the send of that byte began */
	size_t reader_bytes;	 /* of shared->memory: what reader holds */
	uint64_t read_bytes;	 /* of the other end's stream, by this end's application */
	uint64_t finished_ns;	 /* when that was */
	uint64_t closed_ns;	 /* nobody holds it any more; a half close does not count */
	uint64_t message_offset; /* first byte of the message in progress */
	uint64_t message_ns;
	uint64_t blind_bytes;
};

/* Given up, but the next request would be understood. */
struct search {
	bool on;
	bool first;	      /* nothing of the client was seen yet: we came late */
	bool begins;	      /* the event in progress may begin a request */
	uint64_t send_ns;     /* when the client's last send began */
	uint64_t received;    /* what the client had received by then */
	uint64_t answer_at;   /* offset of the server's stream where the answer to the found request begins */
	uint64_t bytes;	      /* looked at in vain */
	const char *resumed;  /* what the next call has to say of what was before it; NULL = nothing */
};

/* Given up before HTTP was spoken: the other end may yet show that it was. */
struct proof {
	bool on;
	enum connection_side of; /* whose first bytes are due */
	struct buffer first;	 /* those so far */
	uint64_t unanswered;	 /* bytes of the other one meanwhile */
};

struct connection {
	struct connection_shared *shared;
	struct connection_name name;
	struct process server_process;
	uint32_t netns;
	struct end end[2];
	struct exchange *first, *last; /* in order of request */
	size_t count;
	struct exchange *requesting; /* its body is being read */
	struct exchange *answering;  /* its response is being read */
	bool interim;		     /* the response in progress is a 1xx */
	bool given_up;		     /* blind or broken: bytes are only counted */
	bool blind;
	bool spoke_http;
	bool end_unseen; /* of either side: when and how it ended was lost */
	enum blind_kind blind_kind;
	enum call_closer closed_first;
	struct search search;
	struct proof proof;
};

/* ---- connection.c: results ---- */

/* Room in the queue for so many more; false when there cannot be. */
bool connection_reserve(struct connection_shared *shared, size_t more);
/* A result about a call. */
void connection_push_call(struct connection_shared *shared, enum connection_step step, struct exchange *exchange,
			  uint64_t now_ns);
/* A result about the connection, in the queue, for what else it says; NULL when there is no room. */
struct connection_result *connection_push_about(struct connection *connection, enum connection_step step,
						uint64_t now_ns);

/* ---- connection.c: memory that grows with what is sent, counted in shared->memory ---- */

/* 0, -ENOMEM, or -ENOSPC: all connections together hold too much. */
int connection_pending_add(struct connection *connection, enum connection_side side, struct bytes bytes);
/* The caller owns it now. */
struct buffer connection_pending_take(struct connection *connection, enum connection_side side);
/* After the reader of that side was fed. False when all connections together hold too much. */
bool connection_count_reader(struct connection *connection, enum connection_side side);
void connection_free_reader(struct connection *connection, enum connection_side side);

/* ---- connection_bytes.c ---- */

/* What the event adds to its side's stream: bytes, holes, or nothing. */
void connection_take(struct connection *connection, enum connection_side side, const struct wire_event *event,
		     struct bytes payload);
/* From here on bytes are only counted; calls without an answer stay without one that we know. */
void connection_give_up(struct connection *connection, const char *why);
/* The same, since it is no HTTP/1.x that can be read; says so. */
void connection_go_blind(struct connection *connection, enum blind_kind kind, uint64_t now_ns);

/* From here on the client's bytes are read, the first being a request. */
void connection_read_on(struct connection *connection, struct bytes first, uint64_t offset,
			const struct wire_event *event);
void connection_count_blind(struct connection *connection, enum connection_side side, uint64_t length);

/* ---- connection_search.c ---- */

/* Before the client's event is taken: may a request begin with it? */
void connection_search_note(struct connection *connection, const struct wire_event *event);
/* Given up just now: is the next request worth looking for? */
void connection_search_start(struct connection *connection);
/* Bytes of a client that was given up: counted, and looked at. */
void connection_search_in(struct connection *connection, const struct stream_piece *piece,
			  const struct wire_event *event);
/* The thread is lost again, or all is over: what was kept is counted. */
void connection_search_drop(struct connection *connection);

/* ---- connection_proof.c ---- */

/* While it is being given up: true when it was HTTP for certain; otherwise the other end may yet show it. */
bool connection_proof_start(struct connection *connection);
/* Where connection->proof.on: bytes, or a hole, of either side. They are counted elsewhere. */
void connection_proof_in(struct connection *connection, enum connection_side side, const struct stream_piece *piece,
			 uint64_t now_ns);
void connection_proof_stop(struct connection *connection);

/* ---- connection_calls.c ---- */

struct process connection_process_of(const struct wire_event *event);
/* A request's head was read: it is the one whose body follows. NULL, or why it cannot be followed. */
const char *connection_add_call(struct connection *connection, const struct http_head *head,
				     const struct wire_event *event);
/* The request in progress is complete, or all there will ever be. */
void connection_give_out(struct connection *connection, bool complete, uint64_t now_ns);
/* The call that the next response belongs to: the oldest one without a whole answer; NULL = none. */
struct exchange *connection_next_unanswered(const struct connection *connection);
/* connection->answering: the head of its response, interim or final. */
void connection_response_head(struct connection *connection, const struct http_head *head,
			      const struct wire_event *event);
/*
 * The same: its response is whole. began_ns: when the send that completed it
 * began; the client may act on it before that send returns.
 */
void connection_response_complete(struct connection *connection, enum http_ended ended, uint64_t began_ns);

/* What is not answered will not be seen to be: undecidable, and why. */
void connection_leave_unanswered(struct connection *connection, const char *why);
/*
 * The client had received more than we have seen of the server, and the
 * sequencer waited for it in vain: what is not answered here may well be.
 */
void connection_doubt(struct connection *connection, const struct wire_event *event);
/* The server will send no more: what is being answered ends here, what is not answered never will be. */
void connection_server_finished(struct connection *connection, bool clean, uint64_t now_ns);
/* The client will send no more: a request that is not whole never will be. */
void connection_client_finished(struct connection *connection, uint64_t now_ns);
/* Nobody holds that end any more. */
void connection_end_closed(struct connection *connection, enum connection_side side, uint64_t now_ns);
/* Looks at every call that the last event may have touched, oldest first. */
void connection_settle(struct connection *connection, uint64_t now_ns);
/* Nothing more will be learnt of it: it leaves the connection through the queue. */
void connection_close_call(struct connection *connection, struct exchange *exchange, uint64_t now_ns);
/* Before it is freed: out of the lists that all connections share. */
void connection_leave_lists(struct connection_shared *shared, struct exchange *exchange);

#endif
