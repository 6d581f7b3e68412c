/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a watched command prints, where that may not go to the terminal: into a
 * pipe of ours, and from there into a file and to whoever shows it.
 */
#ifndef NIGHTCLERK_COMMAND_OUTPUT_H
#define NIGHTCLERK_COMMAND_OUTPUT_H

#include "output.h"

struct command_output {
	int fd;		     /* the pipe's reading end; -1 = there is none */
	struct output *file; /* NULL = none */
	const char *path;    /* of it */
	bool failed;	     /* it could not be written: said once */
};

/*
 * path NULL = no file. Fills what the command is to have as its standard output
 * and, where that is a terminal, its standard error, as launch.h takes it. 0, or -errno with reason (OUTPUT_REASON_MAX bytes) filled;
 * command_output_close() in either case.
 */
int command_output_open(struct command_output *output, const char *path, int ret_stdio[3], char *reason);
/* After the command was started: its ends of the pipe are its alone. */
void command_output_started(const int stdio[3]);
/* What came since the last call, at most size bytes of it; 0 = nothing. Never waits. */
size_t command_output_take(struct command_output *output, uint8_t *bytes, size_t size);
/* Accepts one that was never opened, but for fd = -1. */
void command_output_close(struct command_output *output);

#endif
