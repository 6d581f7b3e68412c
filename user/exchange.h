/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call in the making: the call itself, the memory that its slices point
 * into, and where its bytes lie in the two streams. Private to connection*.c.
 */
#ifndef NIGHTCLERK_EXCHANGE_H
#define NIGHTCLERK_EXCHANGE_H

#include "call.h"

struct decoder;
struct usage_reader;

struct exchange {
	struct call call;
	struct http_head head;	   /* owned copy; call.head points here */
	void *head_memory;	   /* fields and texts of head, one block */
	struct buffer body;	   /* what call.body lends */
	struct call_memory *memory; /* of all calls; borrowed */
	size_t held_bytes;	   /* of it: head, body, answer */
	struct digest_state *hash; /* of the raw entity, while the request runs */
	struct buffer answer;	   /* what call.answer lends */
	struct decoder *decoder;   /* of the answer, where it is used and coded */
	struct usage_reader *usage; /* of the answer, where it is followed */
	uint64_t request_offset;   /* first byte, in the client's stream */
	uint64_t request_end;	   /* one past its last byte seen */
	uint64_t response_offset;  /* final response, in the server's stream */
	uint64_t response_end;
	bool response_started;
	bool given_out;	    /* CONNECTION_REQUEST was pushed */
	bool answered_out;  /* CONNECTION_ANSWERED was pushed */
	bool dirty;	    /* facts changed since the last CONNECTION_CHANGED */
	bool in_open;	    /* which shared list it is in */
	bool in_waiting;
	struct exchange *next, *prev;		    /* in the connection, in order of request */
	struct exchange *shared_next, *shared_prev; /* in shared->open or shared->waiting */
};

/*
 * A copy of head with memory of its own; splits the target; finds Host and
 * Content-Type. What the call holds is counted in *memory, too. NULL when
 * out of memory.
 */
struct exchange *exchange_new(const struct http_head *head, struct call_memory *memory);
void exchange_free(struct exchange *exchange); /* accepts NULL */
/* Nobody asks for the body any more. */
void exchange_body_done(struct exchange *exchange);

/*
 * One slice of the request's entity: counted, hashed, kept up to
 * LIMIT_BODY_BYTES and, of all calls, memory->limit. 0 or -ENOMEM
 * (then the hash is given up, with its reason).
 */
int exchange_body(struct exchange *exchange, struct bytes body);
/* length bytes of the request's entity are missing. */
void exchange_body_hole(struct exchange *exchange, uint64_t length);
/* The request is complete, or will never be: the raw hash is made where every byte was there. */
void exchange_request_end(struct exchange *exchange, bool complete, uint64_t now_ns);
/*
 * One slice of the response's entity: counted and, its content codings undone,
 * kept or followed as call.answer_use asks. What cannot be decoded, and what is
 * to be kept and is over a limit, is not used any more. 0 or -ENOMEM.
 */
int exchange_answer(struct exchange *exchange, struct bytes body);
/* length bytes of the response's entity are missing. */
void exchange_answer_hole(struct exchange *exchange, uint64_t length);
/* The head of the final response. 0, or -ENOMEM: then its entity will not be used. */
int exchange_response_head(struct exchange *exchange, const struct http_head *head);
/*
 * The client's application has read its stream up to client_read, final when
 * nothing more will be read. True when `delivered` is now certain.
 */
bool exchange_delivered(struct exchange *exchange, uint64_t client_read, bool final);

/* Appends reason to call->why's meaning: the first one stays. */
void exchange_why(struct exchange *exchange, const char *reason);

#endif
