/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Streams that could not be read, added up by the process that spoke on them:
 * who has to be asked, or allowed, for the run to be decidable.
 *
 * Memory is fixed: processes beyond BLIND_PROCESSES_MAX, and those whose name
 * is not known, are added up as one.
 */
#ifndef NIGHTCLERK_BLIND_H
#define NIGHTCLERK_BLIND_H

#include "call.h"
#include "options.h"

#define BLIND_PROCESSES_MAX 32

struct blind_process {
	struct process process; /* tgid 0: all those that have no row of their own */
	uint64_t streams[BLIND_COUNT];
	uint64_t bytes_out, bytes_in; /* the client's, the server's */
};

struct blind_processes {
	struct blind_process row[BLIND_PROCESSES_MAX + 1]; /* in order of their first stream; the last is for tgid 0 */
	size_t count;					   /* without that last one */
};

/* One stream that ended. */
void blind_add(struct blind_processes *processes, const struct process *process, enum blind_kind kind,
	       uint64_t bytes_out, uint64_t bytes_in);

/* The n-th row that holds a stream, tgid 0 last; NULL behind them. */
const struct blind_process *blind_row(const struct blind_processes *processes, size_t n);

/* Its streams of the kinds in that mask (bit per enum blind_kind). */
uint64_t blind_streams_of(const struct blind_process *row, unsigned int kinds);

/*
 * Appends "curl (4101): 1 tls, 2 h2; others: 1 tls" for the kinds
 * in that mask; at most so many processes, then "...". Nothing where there is
 * no such stream. 0 or -ENOMEM.
 */
int blind_say(const struct blind_processes *processes, unsigned int kinds, size_t max_processes, struct buffer *out);

#endif
