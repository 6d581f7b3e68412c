/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call's body as it was sent -> the plain entity and its canonical text.
 * Pure; the work space is used again for every body.
 */
#ifndef NIGHTCLERK_CALL_BODY_H
#define NIGHTCLERK_CALL_BODY_H

#include "call.h"

struct call_body {
	struct buffer plain; /* a body without its content codings */
	struct canonical canonical;
};

/*
 * Fills canon, canon_why, has_sha and sha of a call whose request is whole, and
 * makes call->body the plain entity; where that cannot be, nobody reads it any
 * more (body_held becomes false). *ret_text is the text that was hashed, empty
 * where there was none; it lives as long as call->body and until the next call.
 *
 * 0, or -ENOMEM: then there is no hash, since none is better than one that
 * differs from its twin's, and call->why says so.
 */
int call_body_canonical(struct call_body *body, struct call *call, struct bytes *ret_text);
void call_body_done(struct call_body *body); /* accepts a zeroed one */

#endif
