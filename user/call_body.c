/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Content codings are undone first, so that two bodies are compared by what
 * they say; what cannot be canonical is compared as raw bytes.
 */
#include "call_body.h"
#include "decode.h"

#include <errno.h>

#define PLAIN_KEPT_BYTES (4 * 1024 * 1024)

static int no_canonical(struct call *call)
{
	call->canon = CANONICAL_RAW;
	call->canon_why = canonical_out_of_memory;
	call->has_sha = false;
	if (!call->why)
		call->why = "the body could not be compared: out of memory";
	return -ENOMEM;
}

/*
 * The body becomes the plain entity. Where that cannot be, canon_why says why.
 * 1: a coding was undone; 0: there is none; -ENOMEM.
 */
static int undo_codings(struct call_body *body, struct call *call)
{
	struct decoder *decoder = NULL;
	enum decode_result result;

	if (!call->head || !call->body.size)
		return 0;
	if (decode_new(call->head, LIMIT_BODY_BYTES, &decoder))
		return -ENOMEM;
	if (!decoder)
		return 0;
	if (body->plain.capacity > PLAIN_KEPT_BYTES)
		buffer_done(&body->plain);
	buffer_clear(&body->plain);
	result = decode_all(decoder, call->body, &body->plain);
	call->canon_why = decode_reason(decoder);
	decode_free(decoder);
	call->body = buffer_bytes(&body->plain);
	call->body_held = result == DECODE_WHOLE;
	return result == DECODE_OUT_OF_MEMORY ? -ENOMEM : 1;
}

int call_body_canonical(struct call_body *body, struct call *call, struct bytes *ret_text)
{
	struct canonical *canonical = &body->canonical;
	struct bytes text;
	int decoded;

	*ret_text = (struct bytes){0};
	call->canon = CANONICAL_RAW;
	call->canon_why = call->body_why;
	call->sha = call->raw_sha;
	call->has_sha = call->has_raw_sha;
	if (!call->body_held || !call->has_raw_sha)
		return 0;
	decoded = undo_codings(body, call);
	if (decoded < 0)
		return no_canonical(call);
	if (!call->body_held)
		return 0;
	if (canonical_make(call->content_type, call->body, canonical))
		return no_canonical(call);
	call->canon = canonical->kind;
	call->canon_why = canonical->why;
	text = canonical->kind == CANONICAL_RAW || canonical->kind == CANONICAL_NONE
		       ? call->body : buffer_bytes(&canonical->text);
	if ((decoded || !bytes_equal(text, call->body)) && digest_of(text, &call->sha))
		return no_canonical(call);
	*ret_text = text;
	return 0;
}

void call_body_done(struct call_body *body)
{
	buffer_done(&body->plain);
	canonical_done(&body->canonical);
}
