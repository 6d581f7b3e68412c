/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Append-only output files: ledger, events. Knows files, not formats.
 *
 * What write(2) refuses (a full disk, a pipe that nobody empties) is kept and
 * tried again at the next write, up to LIMIT_UNWRITTEN_BYTES; the lines that
 * come after that are lost, and counted. The ledger
 * may be touched by others: a watched program that truncates it or writes
 * lines into it is named once, and our next line still starts on a line of its
 * own.
 */
#ifndef NIGHTCLERK_OUTPUT_H
#define NIGHTCLERK_OUTPUT_H

#include "bytes.h"
#include "output_owner.h"

#define OUTPUT_REASON_MAX 512

struct output;

/* What to do about an open(2) that failed with that errno, in words. */
const char *output_remedy(int err);

/*
 * What is wrong with the name of an output, as the end of a sentence that begins
 * with its option; NULL = nothing. special: "-" and "fd:N" are names, too. Call it
 * before anything is opened: a descriptor counts only if the caller left it open.
 */
const char *output_wrong_name(const char *path, bool special);

struct output_place {
	const char *option; /* how people know it: "--ledger" */
	const char *path;   /* NULL = none */
	bool special;	    /* "-" and "fd:N" are names */
};

/* After all of them are opened: 0, or -EINVAL with reason filled where two are one file (/dev/null may be). */
int output_places_differ(const struct output_place *places, size_t count, char *reason);

/*
 * Opens for appending, O_NOFOLLOW, 0600 when it is made. "-" is standard
 * output and "fd:N" a descriptor that is open already, where special is true.
 * 0 or -errno with one line in reason (OUTPUT_REASON_MAX bytes) that names the
 * file, the cause and the remedy.
 */
int output_open(const char *path, bool special, const struct output_owner *owner, struct output **ret_output, char *reason);

/*
 * An output of a descriptor that somebody else opened for appending; takes ownership of fd, on failure too. It may be
 * -1: none yet, and what is written waits. name is what messages call it. 0 or -ENOMEM.
 */
int output_adopt(int fd, const char *name, struct output **ret_output);
/*
 * From the next line on, lines go to fd; takes ownership. A line of which the old one holds a part is finished there
 * first, as soon as it takes the rest; where it never will (it was removed, or fails for another reason than a full
 * disk), the whole line goes to the new one. 0, or -errno as output_write().
 */
int output_switch(struct output *output, int fd);
/* Bytes in the regular file that lines go to; 0: none, or no such file. */
uint64_t output_size(const struct output *output);
/* It has no name any more: who looks for its lines will not find them. */
bool output_is_removed(const struct output *output);

/*
 * From here on no write waits for a reader: a pipe, a socket or a terminal takes
 * what it has room for. Who else writes to the same open file notices nothing.
 */
void output_never_wait(struct output *output);

/* Nobody else may read it: 0600 whatever it was; regular files, and /dev/null. 0, or -errno with reason filled. */
int output_make_private(struct output *output, char *reason);
/* Empties a regular file: what is written next is all it will hold. 0, or -errno with reason filled. */
int output_truncate(struct output *output, char *reason);

/*
 * Appends whole lines. 0, or -errno while something is still unwritten (it is
 * kept; -EAGAIN: its reader has not taken it yet), or -ENOMEM: these lines were
 * not even taken. *ret_notice: set once to a static sentence when the file was
 * found changed by somebody else, else untouched.
 */
int output_write(struct output *output, struct bytes lines, const char **ret_notice);
/* Bytes that wait for a write that works. */
size_t output_unwritten(const struct output *output);
/* Bytes of lines that are lost, since too much waited already. */
uint64_t output_lost(const struct output *output);
/*
 * At the end: what waits is written, for as long as its reader takes some of it
 * every other second. 0 or -errno. One that stood still is not waited for again.
 */
int output_flush(struct output *output);
/* Owned by output. */
int output_fd(const struct output *output);
const char *output_path(const struct output *output);

/*
 * A run marks its ledger as in use (output_mark.h) until output_close(). True in
 * *ret_unclean when a run that wrote it ended unclean. 0 or -errno.
 */
int output_mark_running(struct output *output, const char *run_id, bool *ret_unclean);

/*
 * output_flush(), fsyncs, closes, removes the running mark, frees. 0 or -errno
 * (-ENOBUFS: lines were lost on the way). Accepts NULL.
 */
int output_close(struct output *output);
/* Nothing was written and nothing will be: closes, and removes the file if output_open() made it. Accepts NULL. */
void output_abandon(struct output *output);

#endif
