/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A body -> its canonical text: two bodies that say the same have one text,
 * two that differ have two. The rules are RFC 8785 (JCS) for layout, with
 * exact decimals instead of doubles, and the ones that follow below.
 *
 * canonical_json.c, canonical_form.c, canonical_multipart.c and
 * canonical_ndjson.c each make one form; this page picks.
 */
#ifndef NIGHTCLERK_CANONICAL_H
#define NIGHTCLERK_CANONICAL_H

#include "canonical_order.h"

enum canonical_kind {
	CANONICAL_NONE,	     /* no body: the empty text */
	CANONICAL_JSON,
	CANONICAL_FORM,
	CANONICAL_MULTIPART,
	CANONICAL_NDJSON,
	CANONICAL_RAW, /* the bytes as they are; why says why */
};

/* "none", "json", "form", "multipart", "ndjson", "raw" */
const char *canonical_kind_name(enum canonical_kind kind);

struct canonical {
	enum canonical_kind kind;
	const char *why;	/* static: kind is RAW although another was asked for; else NULL */
	bool duplicate_key;	/* an object held one name twice; all members were kept */
	bool lone_surrogate;	/* kept as \udxxx */
	struct buffer text;	/* RAW and NONE: empty, use the body itself */
	struct buffer spare;	/* private: work space that is used again, */
	struct order order;	/* and this too */
};

/*
 * Makes the canonical form of a whole body, after transfer and content
 * decoding. content_type may be empty. 0 or -ENOMEM. ret_canonical must be
 * zeroed or used before (its buffers are used again); canonical_done() frees.
 */
int canonical_make(struct bytes content_type, struct bytes body, struct canonical *ret_canonical);
void canonical_done(struct canonical *canonical);

/* The reason that all of the functions below give when there is no memory: compare the pointer. */
extern const char canonical_out_of_memory[];

/*
 * One JSON text -> canonical text, appended to out. NULL on success, else a
 * static reason ("bad number", "nesting too deep", ...) with out as it was.
 * Sets flags->duplicate_key and flags->lone_surrogate, never clears them. A
 * byte order mark is dropped. No recursion on input depth; depth at most
 * LIMIT_JSON_DEPTH. O(n log n); memory a small multiple of the text.
 */
const char *canonical_json(struct bytes text, struct canonical *flags, struct buffer *out);
/* application/x-www-form-urlencoded. Cannot fail but by memory: then "out of memory". */
const char *canonical_form(struct bytes text, struct buffer *out);
/* multipart/form-data with the given boundary: one line a part. */
const char *canonical_multipart(struct bytes text, struct bytes boundary, struct buffer *out);
/* One canonical JSON text a non-empty line, joined by LF. */
const char *canonical_ndjson(struct bytes text, struct canonical *flags, struct buffer *out);
/*
 * A query string with its parameters in order of name (stable): the same rules
 * as canonical_form.
 */
const char *canonical_query(struct bytes query, struct buffer *out);

#endif
