/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Append-only output files: ledger, events. Knows files, not formats.
 *
 * What write(2) refuses (a full disk) is kept and tried again at the next
 * write, so that no line already made is lost while memory lasts. The ledger
 * may be touched by others: a watched program that truncates it or writes
 * lines into it is named once, and our next line still starts on a line of its
 * own.
 */
#ifndef NIGHTCLERK_OUTPUT_H
#define NIGHTCLERK_OUTPUT_H

#include "bytes.h"
#include <sys/types.h>

#define OUTPUT_REASON_MAX 512

struct output;

/* Whose rights are used to open: (uid_t)-1 = the caller's own. */
struct output_owner {
	uid_t uid;
	gid_t gid;
};

/* SUDO_UID and SUDO_GID where root was reached through sudo, else the caller's own. */
struct output_owner output_owner_of_environment(void);

/*
 * Opens for appending, O_NOFOLLOW, 0600 when it is made. "-" is standard
 * output and "fd:N" a descriptor that is open already, where special is true.
 * 0 or -errno with one line in reason (OUTPUT_REASON_MAX bytes) that names the
 * file, the cause and the remedy.
 */
int output_open(const char *path, bool special, const struct output_owner *owner, struct output **ret_output, char *reason);

/* Empties a regular file: what is written next is all it will hold. 0, or -errno with reason filled. */
int output_truncate(struct output *output, char *reason);

/*
 * Appends whole lines. 0, or -errno while something is still unwritten (it is
 * kept), or -ENOMEM: these lines were not even taken. *ret_notice: set once to a static sentence when the file was found
 * changed by somebody else, else untouched.
 */
int output_write(struct output *output, struct bytes lines, const char **ret_notice);
/* Bytes that wait for a write that works. */
size_t output_unwritten(const struct output *output);
const char *output_path(const struct output *output);

/*
 * A run marks its ledger as in use by a second file beside it, PATH.running,
 * and removes it at a clean end. True in *ret_unclean when one was there whose
 * run is gone: that run ended unclean.
 */
int output_mark_running(struct output *output, const char *run_id, bool *ret_unclean);

/* Writes what can be written, fsyncs, closes, removes the running mark, frees. 0 or -errno. Accepts NULL. */
int output_close(struct output *output);

#endif
