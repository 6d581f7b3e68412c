/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `run --confine` refused, for people: one line for each pair of a process
 * name and a destination, however often it was tried. Pure.
 */
#ifndef NIGHTCLERK_REFUSALS_H
#define NIGHTCLERK_REFUSALS_H

#include "alert.h"
#include "lines.h"

struct refusal;

/* Empty when zeroed. */
struct refusals {
	struct refusal *first; /* hash, in order of first sight */
	uint64_t more;	       /* tries by further pairs than LIMIT_REFUSALS */
};

/* 0 or -ENOMEM. connection: its process and its server. */
int refusals_note(struct refusals *refusals, const struct connection_name *connection,
		  bool datagram);
void refusals_done(struct refusals *refusals);

/* Start with NULL; NULL after the last. */
const struct refusal *refusals_next(const struct refusals *refusals,
				    const struct refusal *previous);
/* "curl to 192.0.2.1:80", or ":53/udp": the same in every run; harmless. 0 or -ENOMEM. */
int refusal_name(const struct refusal *refusal, struct buffer *out);
/* "curl (pid 4711) tried to connect to 192.0.2.1:80 and was refused, 3 times", harmless. 0 or -ENOMEM. */
int refusal_text(const struct refusal *refusal, struct buffer *out);

/* One line each, as they stand after a run. 0, or -ENOMEM with out as it was. */
int refusals_lines(const struct refusals *refusals, const struct alert_style *style,
		   struct buffer *out);

#endif
