/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside the blocks of a recording. Private to recording*.c.
 *
 * Integers are stored as the host has them: every machine that nightclerk
 * builds for is little endian, and one that is not is refused here.
 */
#ifndef NIGHTCLERK_RECORDING_PARTS_H
#define NIGHTCLERK_RECORDING_PARTS_H

#include "recording.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "recordings are little endian");

/* ---- recording_input.c: one input <-> {u32 kind, u32 body bytes, u64 now_ns} and its body ---- */

/* What recording_put_input() appends; 0 for an input that is not what it says. */
size_t recording_input_bytes(const struct input *input);
/* Appends an input of 1 to RECORDING_BLOCK_MAX such bytes. 0 or -ENOMEM: nothing was appended. */
int recording_put_input(struct buffer *out, const struct input *input);

/* What an input that was read points to. */
struct input_room {
	struct wire_event event;
	struct past_attempt past;
};

/*
 * Cuts one input off *block. NULL, or in words what is wrong with it. The
 * slices of *ret_input point into the block, the rest to
 * *room.
 */
const char *recording_take_input(struct bytes *block, struct input_room *room,
				 struct input *ret_input);

/* ---- recording_facts.c: struct run_facts <-> JSON text ---- */

/* Appends. 0 or -ENOMEM. */
int recording_put_facts(struct buffer *out, const struct run_facts *facts);

/*
 * policy holds the text that ret_facts->policy points to; empty without one, as
 * in every recording that was made without a policy.
 *
 * 0, -ENOMEM, -EBADMSG, or -EPROTONOSUPPORT when the wire events in it are laid
 * out as another version has them. *ret_wrong: the name of the field at fault.
 */
int recording_take_facts(struct bytes text, struct run_facts *ret_facts, struct buffer *policy,
			 const char **ret_wrong);

#endif
