/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's side of a tenant's file: whole lines into a descriptor that
 * somebody with more rights opens. It asks for the first one, for another one
 * when the file has reached its size or age, when it was removed, and when it is
 * told to (SIGHUP). Until one is there, and while the disk takes nothing, lines
 * wait in memory (output.h). A line is never cut by a change of files.
 */
#ifndef NIGHTCLERK_ROTATED_FILE_H
#define NIGHTCLERK_ROTATED_FILE_H

#include "bytes.h"
#include "rotation.h"

/* Who opens. The descriptor, which is then the file's, or -errno; -EAGAIN to rotate: not due, the old one stays. */
struct rotated_file_source {
	int (*ask)(void *context, bool rotate);
	void *context;
};

struct rotated_file;

/* name is for messages; source is copied. NULL when out of memory. Nothing is asked for yet. */
struct rotated_file *rotated_file_new(const char *name, const struct rotation_limits *limits,
				      const struct rotated_file_source *source);

/*
 * Appends whole lines, which may be none: then what waits is tried again. 0, or -errno while something
 * waits. Call it once in a while: only then is anything asked for. *ret_notice as output_write() sets it.
 * now_ns: CLOCK_MONOTONIC; wall_ns: since 1970.
 */
int rotated_file_write(struct rotated_file *file, struct bytes lines, uint64_t now_ns, int64_t wall_ns,
		       const char **ret_notice);
/* At the next write the file is opened by its name again. */
void rotated_file_reopen(struct rotated_file *file);

/* Bytes of lines that wait, and of lines that are lost, since too much waited already. */
size_t rotated_file_unwritten(const struct rotated_file *file);
uint64_t rotated_file_lost(const struct rotated_file *file);
/* Times that it was set aside. */
uint64_t rotated_file_rotations(const struct rotated_file *file);

/* output_close(): 0 or -errno. Accepts NULL. */
int rotated_file_close(struct rotated_file *file);

#endif
