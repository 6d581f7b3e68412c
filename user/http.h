/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes of one direction -> HTTP/1.x messages (RFC 9112). Pull style: the
 * caller feeds slices and takes parts. The parts do not depend on how the bytes
 * were cut, but for the number of slices that a body comes in.
 *
 *	while ((step = http_next(reader, &input, &part)) != HTTP_NEED_MORE)
 *		...
 *
 * No clock, no I/O, no logging. Memory: one head of at most LIMIT_HEAD_BYTES.
 * The body is never kept here.
 */
#ifndef NIGHTCLERK_HTTP_H
#define NIGHTCLERK_HTTP_H

#include "bytes.h"
#include "limits.h"

enum http_side { HTTP_REQUEST, HTTP_RESPONSE };

enum http_step {
	HTTP_NEED_MORE, /* all of *input was taken */
	HTTP_HEAD,	/* a head is whole: part->head, lent until a byte of the next message is taken */
	HTTP_BODY,	/* entity bytes after transfer decoding: part->body, a slice of input */
	HTTP_END,	/* the message is complete; part->ended says how */
	HTTP_TUNNEL,	/* after this head the stream is no longer HTTP (101, 2xx to CONNECT): stop feeding */
	HTTP_BROKEN,	/* not HTTP/1.x any more: part->reason; stop feeding */
};

enum http_ended {
	HTTP_ENDED_NONE,    /* not complete */
	HTTP_ENDED_NO_BODY, /* by rule: HEAD, 1xx, 204, 304, or a request without a length */
	HTTP_ENDED_LENGTH,  /* Content-Length reached */
	HTTP_ENDED_CHUNKED, /* the zero chunk and its trailer */
	HTTP_ENDED_CLOSE,   /* ran to a clean close */
};

struct http_field {
	struct bytes name;  /* as sent */
	struct bytes value; /* OWS trimmed, obs-fold replaced by one SP */
};

struct http_head {
	enum http_side side;
	/* request */
	struct bytes method;
	struct bytes target; /* as sent: origin, absolute, authority or asterisk form; a front of it when cut there */
	/* response */
	unsigned int status; /* 100 to 999 */
	unsigned int http_major;
	unsigned int http_minor;
	const struct http_field *fields; /* in order; repeated names stay apart */
	size_t field_count;
	size_t fields_dropped;	     /* beyond LIMIT_HEAD_FIELDS: a name not found may have been among them */
	uint64_t names;		     /* http_head_index(): which names may be there; 0 = not worked out */
	bool cut;		     /* the field that went beyond LIMIT_HEAD_BYTES and all after it: the same */
	bool framing_ambiguous;	     /* Transfer-Encoding beside Content-Length, or in HTTP/1.0 (RFC 9112 section 6.1) */
	bool obs_fold;
	bool keep_alive;	     /* the connection persists after this message (RFC 9112 section 9.3) */
	bool expects_continue;	     /* Expect: 100-continue */
	bool has_content_length;
	uint64_t content_length;
	bool transfer_coded; /* Transfer-Encoding is there */
	bool chunked;	     /* and its last coding is chunked */
};

struct http_part {
	const struct http_head *head;
	struct bytes body;
	enum http_ended ended;
	const char *reason; /* static text: "bad chunk size", ... */
};

struct http_reader;

/* NULL when out of memory. */
struct http_reader *http_reader_new(enum http_side side);
void http_reader_free(struct http_reader *reader); /* accepts NULL */

/*
 * Responses only, before the bytes of each final response are fed: the method
 * that it answers, since HEAD and CONNECT change the framing (RFC 9112
 * section 6.3). It holds for every 1xx and for the final response after them,
 * and is forgotten with the head of that one.
 */
void http_reader_expect(struct http_reader *reader, struct bytes request_method);

/*
 * Takes bytes from the front of *input and stops after one part. -ENOMEM shows
 * as HTTP_BROKEN with the reason "out of memory".
 */
enum http_step http_next(struct http_reader *reader, struct bytes *input, struct http_part *ret_part);

/*
 * length bytes are missing here. True when framing survives: they lie wholly
 * inside a body of known length, or in one that runs to the end of the stream;
 * the body is then short by that much. False otherwise: nothing after it can be
 * placed; stop feeding (http_next() gives HTTP_BROKEN, "bytes missing").
 */
bool http_skip(struct http_reader *reader, uint64_t length);

/*
 * The stream ended; clean = by FIN, not by RST. Gives HTTP_END for a
 * close-delimited response after a whole head, HTTP_NEED_MORE between
 * messages, HTTP_BROKEN ("ended inside a message") otherwise.
 */
enum http_step http_finish(struct http_reader *reader, bool clean, struct http_part *ret_part);

/* Between two messages: nothing of a next one has been read. */
bool http_reader_idle(const struct http_reader *reader);
/* The same, and nothing that was read bears on what follows: as good as a new one. */
bool http_reader_fresh(const struct http_reader *reader);
/* Bytes of memory that grow with what was sent: those of the head. */
size_t http_reader_held(const struct http_reader *reader);
/* The start line of the head in progress named a version, which may be the reason why it was refused. */
bool http_reader_saw_version(const struct http_reader *reader);
/* Inside a head that is not complete yet. */
bool http_reader_in_head(const struct http_reader *reader);

/* Once the fields are there: what is asked for and absent is then told at once, without a look at each field. */
void http_head_index(struct http_head *head);
/* Of a name's length and first letter, without case: inline, so that it is a constant where the name is one. */
static inline uint64_t http_name_bit(struct bytes name)
{
	return 1ULL << ((name.size ? (name.data[0] | 0x20) * 5 + name.size : 0) & 63);
}

/* No field of a head that was indexed has that name. */
static inline bool http_head_lacks(const struct http_head *head, struct bytes name)
{
	return head->names && !(head->names & http_name_bit(name));
}

const struct http_field *http_head_look_up(const struct http_head *head, struct bytes name);
/* The first field of that name (no case), or NULL. */
static inline const struct http_field *http_head_find(const struct http_head *head, struct bytes name)
{
	return http_head_lacks(head, name) ? NULL : http_head_look_up(head, name);
}

/* How many fields have that name. */
size_t http_head_count(const struct http_head *head, struct bytes name);

#endif
