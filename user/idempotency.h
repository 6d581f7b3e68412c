/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The idempotency key of a call, from its head or from its body.
 *
 * Both functions write the key to text where it cannot be a slice of the head:
 * call->idem is then valid until text is used again.
 */
#ifndef NIGHTCLERK_IDEMPOTENCY_H
#define NIGHTCLERK_IDEMPOTENCY_H

#include "call.h"

/*
 * Fills idem_state, idem and idem_from from the head. 0 or -ENOMEM.
 *
 * Headers that the policy's rule about the call names come first. Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07 section 2.1):
 * one pair of quotes off, \" and \\ undone, parameters ignored; a list, or
 * field lines that are repeated, is IDEM_INVALID, with the texts joined by
 * ", ". The other headers that carry a key are bare strings, tried after it
 * in a fixed order. An empty value is no key. No head, or one that was cut or
 * has dropped fields and shows no key: IDEM_UNKNOWN.
 */
int idempotency_key(struct call *call, struct buffer *text);

/*
 * Where the head is known to carry none: a top-level member of a JSON object
 * that the policy's rule names, a string or a number; else of an A2A call its
 * message's messageId; else a top-level string member that is known to carry
 * keys. json is canonical. Fills idem_state,
 * idem and idem_from ("body.requestId"); *ret_member becomes the slice of json
 * (the member with one comma) that is not part of the comparison, or empty.
 * Of a form of AWS's Query protocol, json is its canonical text, and the key is
 * its ClientToken or ClientRequestToken, a slice of it.
 * A name that comes twice, an empty text and one over 1,024 bytes are no key.
 * 0 or -ENOMEM.
 */
int idempotency_body_key(struct call *call, struct bytes json, struct buffer *text,
			 struct bytes *ret_member);

/*
 * The same slice of a canonical JSON object, wherever the call's key really
 * came from; empty where no member is a key.
 */
struct bytes idempotency_member(const struct call *call, struct bytes json);

#endif
