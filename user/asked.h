/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the commands that ask first have in common: the key of what is asked,
 * the store, the claim. Says on stderr what is wrong.
 */
#ifndef NIGHTCLERK_ASKED_H
#define NIGHTCLERK_ASKED_H

#include "command_line.h"
#include "store.h"

struct asking {
	struct command_line line;
	enum command_line_verb verb;
	char key[256];
	char model[CALL_NAME_BYTES + 1]; /* "" = not known */
	struct store_world world;
	struct store *store;
	struct buffer result;
};

/* Parses, makes the key (line.key over what is asked). 0, or the exit status + 1; asking_done() in either case. */
int asking_start(enum command_line_verb verb, int argc, char **argv, struct asking *ret_asking);
/* Opens the store. 0, or failed, the exit status. */
int asking_open(struct asking *asking, bool create, int failed);
/* Borrows from asking. */
struct store_claim asking_claim(const struct asking *asking, const char *owner);
/* One line on stderr: what the store said. Returns failed. */
int asking_failed(const struct asking *asking, int failed);
void asking_done(struct asking *asking); /* accepts a zeroed one */

/* A whole file; "-" = standard input. 0, or -errno with a line on stderr. */
int asked_file(const char *path, struct buffer *out);
/* All of it to standard output: 0 or -errno. */
int asked_print(struct bytes bytes);

#endif
