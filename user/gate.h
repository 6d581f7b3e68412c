/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sums of a run and the three-valued answer at its end: clean, knocked
 * twice (10), cannot tell (11).
 */
#ifndef NIGHTCLERK_GATE_H
#define NIGHTCLERK_GATE_H

#include "blind.h"
#include "connection.h"
#include "lines.h"

#define GATE_EXIT_FINDING 10
#define GATE_EXIT_INCOMPLETE 11

#define GATE_GAPS_MAX 4

struct gate {
	uint64_t requests;
	uint64_t mutating;
	uint64_t later_attempts;			    /* findings of a pair, whatever their severity */
	uint64_t standing[FINDING_COUNT][SEVERITY_HIGH + 1]; /* findings as they stand now */
	uint64_t found[FINDING_COUNT][SEVERITY_HIGH + 1];    /* each as it was first said: these only grow */
	uint64_t upgraded[FINDING_COUNT][SEVERITY_HIGH + 1]; /* and what one became: these, too */
	uint64_t blind[BLIND_COUNT];
	struct blind_processes blind_processes;
	uint64_t broken;
	uint64_t broken_that_matter;
	uint64_t usage_refused;
	const char *gaps[GATE_GAPS_MAX]; /* static texts: what else keeps it from telling */
	size_t gap_count;
	uint64_t forgotten_tools; /* MCP tools whose annotations had to go, though they may be called again */
	struct counters counters; /* the last snapshot */
	int exit_status;	  /* after gate_close() */
};

/* It is said for the first time. */
void gate_add(struct gate *gate, const struct verdict *verdict);
void gate_remove(struct gate *gate, const struct verdict *verdict);
/* What was said of it changes. One that was no finding before is found now. */
void gate_change(struct gate *gate, const struct verdict *before, const struct verdict *after);
void gate_count_request(struct gate *gate, const struct call *call);
/* Its answer is over. */
void gate_count_answer(struct gate *gate, const struct call *call);
/* A stream turned out to be blind; when it has ended, blind_add() tells whose it was. */
void gate_count_blind(struct gate *gate, enum blind_kind kind);
/* matters: that stream is HTTP for certain, so a call may hide behind the break. */
void gate_count_broken(struct gate *gate, bool matters);
/* Something that no event shows was not seen; why is static, each text once. */
void gate_note_gap(struct gate *gate, const char *why);

/*
 * The end of the run: fills the summary (but now_ns) and exit_status. The
 * summary borrows closing and gate->counters.
 */
void gate_close(struct gate *gate, const struct judge_options *options, const struct closing *closing,
		struct connection_totals totals, uint64_t evicted, bool memory_lost, struct summary *ret_summary);

/* The summary as one line for people, without LF; cut to fit size. */
void gate_sentence(const struct gate *gate, const struct summary *summary, char *text, size_t size);

#endif
