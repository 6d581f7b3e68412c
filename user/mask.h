/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Masks: what a policy takes out of a JSON body before two attempts are
 * compared. "$.nonce" is a member, "$.items[*].ts" that member of every
 * element, "$.tags[0]" one element, "$['a b']" a member whose name is no word.
 *
 * A member goes with its name, so that a body with it equals one without it. An
 * element becomes null, so that how many there are still counts.
 */
#ifndef NIGHTCLERK_MASK_H
#define NIGHTCLERK_MASK_H

#include "bytes.h"

#define MASK_STEPS_MAX 16
#define MASKS_MAX 32 /* of one rule */
#define MASK_BYTES_MAX 256

enum mask_step_kind { MASK_MEMBER, MASK_ANY_MEMBER, MASK_ELEMENT, MASK_ANY_ELEMENT };

struct mask_step {
	enum mask_step_kind kind;
	struct bytes name; /* MASK_MEMBER: as it stands between the quotes of canonical JSON */
	size_t index;	   /* MASK_ELEMENT */
};

struct mask {
	struct mask_step steps[MASK_STEPS_MAX];
	size_t step_count;
	struct buffer names; /* owns them */
};

/*
 * 0, -ENOMEM, or -EINVAL with *ret_wrong, static, and *ret_at, the byte of text
 * that is at fault. *ret_mask must be zeroed; mask_done() frees it in every case.
 */
int mask_parse(struct bytes text, struct mask *ret_mask, const char **ret_wrong, size_t *ret_at);
void mask_done(struct mask *mask); /* accepts a zeroed mask */

/*
 * Takes all that the masks find out of canonical JSON text. 1: the rest is in
 * out, which was cleared first; 0: nothing was found, or the text is no JSON
 * object or array: use it as it is; -ENOMEM. What was taken out is appended to
 * removed, each piece with an LF: two texts that left the same rest were equal
 * if these are.
 */
int mask_text(const struct mask *masks, size_t count, struct bytes text, struct buffer *out,
	      struct buffer *removed);

#endif
