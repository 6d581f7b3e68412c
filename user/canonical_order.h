/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Puts the members of JSON objects in order of their names (RFC 8785 section
 * 3.2.3: by UTF-16 code units), members of one name staying as they were.
 *
 * canonical_json.c writes a text in the order of its input and notes here
 * where objects and members lie; positions count from the start of that text.
 * Only objects that are out of order are remembered after their end, and
 * order_apply() moves every byte once however deep they nest: the whole costs
 * O(n log n), and memory a small multiple of the text.
 */
#ifndef NIGHTCLERK_CANONICAL_ORDER_H
#define NIGHTCLERK_CANONICAL_ORDER_H

#include "bytes.h"

/* Valid when zeroed; order_done() frees. */
struct order {
	struct buffer open;    /* members of the objects that are open, innermost last */
	struct buffer kept;    /* members of the closed objects that are out of order, sorted */
	struct buffer objects; /* those objects, in order of their ends */
	bool duplicate;	       /* one object held a name twice */
};

/* An object that is open; the caller keeps it, one for each level. */
struct order_object {
	uint32_t start; /* of its brace */
	uint32_t first_member;
	uint32_t first_object;
	bool out_of_order;
};

void order_open(const struct order *order, uint32_t start, struct order_object *ret_object);
/* A name was written: a quote at start, name_size bytes, another quote. 0 or -ENOMEM. */
int order_member(struct order *order, const uint8_t *text, struct order_object *object,
		 uint32_t start, uint32_t name_size);
/* The value of the innermost object's last member ends here. */
void order_member_end(struct order *order, uint32_t end);
/* The object's closing brace was the byte before end. 0 or -ENOMEM. */
int order_close(struct order *order, const uint8_t *text, const struct order_object *object,
		uint32_t end);
/*
 * Everything is closed: puts the text, from base on in out, in order. spare is
 * work space; the two may change memory. 0 or -ENOMEM.
 */
int order_apply(struct order *order, struct buffer *out, size_t base, struct buffer *spare);
/* For another text: the memory stays. */
void order_clear(struct order *order);
void order_done(struct order *order);

#endif
