/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One input in, ledger lines, events and alerts out: the page that tells the
 * story. Connects the stages and knows no file, no clock and no kernel.
 */
#ifndef NIGHTCLERK_PIPELINE_H
#define NIGHTCLERK_PIPELINE_H

#include "alert.h"
#include "booking.h"
#include "connections.h"
#include "gate.h"
#include "policy.h"

struct pipeline_output {
	struct buffer ledger; /* whole lines; the caller writes them and clears it */
	struct buffer events;
	struct buffer alerts; /* live blocks, where asked for; at the end, all of them */
	struct buffer calls;  /* `watch`: one aligned line a call */
	struct buffer junit;  /* a whole document, at the end, where asked for */
	struct buffer bookings; /* for the store (booking.h), where asked for */
};

struct profile;
struct screen_model;

struct pipeline_options {
	struct judge_options judge;
	const struct policy *policy; /* borrowed; NULL = none. What it sets for the run is in judge already */
	bool live_alerts; /* `watch`: blocks as they arise, else only after INPUT_CLOSING */
	bool live_calls;
	bool no_alerts;
	bool no_events; /* nobody reads them: none is written of requests and responses */
	bool junit;
	bool bookings;	   /* there is a store to write */
	bool keep_results; /* with the answers of model calls */
	bool within_cgroups; /* no two calls of different cgroups are the same (`audit`) */
	size_t max_remembered_bytes; /* of calls; 0 = LIMIT_REMEMBERED_BYTES */
	size_t max_path_bytes;	     /* of cgroups; 0 = LIMIT_CGROUP_PATHS_BYTES */
	const struct run_gap *gap;   /* borrowed; the one before this run, NULL = none */
	struct alert_style style;
	struct profile *profile; /* borrowed; told of every stage (profile.h). NULL = none */
	struct screen_model *screen; /* borrowed; told of everything that the events hold. NULL = none */
};

struct pipeline;

/* Borrows run for its lifetime. Writes the start event. NULL when out of memory. */
struct pipeline *pipeline_new(const struct run_facts *run, const struct pipeline_options *options,
			      struct pipeline_output *output);
void pipeline_free(struct pipeline *pipeline); /* accepts NULL */

/* The terminal has another size. */
void pipeline_set_style(struct pipeline *pipeline, struct alert_style style);

/* 0, or -ENOMEM: something was lost, and the summary will say so. */
int pipeline_feed(struct pipeline *pipeline, const struct input *input);

/* Flows that were given up since the last call: the kernel need not copy them. Returns 0 when there is none. */
uint64_t pipeline_next_muted(struct pipeline *pipeline);

/*
 * Calls from now on are judged by that policy, which policy_follow()s the one before; both are borrowed for as long as
 * the pipeline lives. strict: with what it sets.
 */
void pipeline_set_policy(struct pipeline *pipeline, const struct policy *policy, bool strict);

/* Something was not seen that no input shows: the summary gives this as a reason. why is static. */
void pipeline_note_gap(struct pipeline *pipeline, const char *why);

/* What open calls hold; the limit may be set between inputs. */
struct call_memory *pipeline_memory(struct pipeline *pipeline);
/* Of memory for calls that later ones are judged against. */
size_t pipeline_remembered_bytes(const struct pipeline *pipeline);
/* Calls whose end is still due: `run` lingers for them. */
size_t pipeline_open_calls(const struct pipeline *pipeline);

/* The sums so far, findings as they stand. Valid until pipeline_free. */
const struct gate *pipeline_gate(const struct pipeline *pipeline);
struct connection_totals pipeline_totals(const struct pipeline *pipeline);

/* After INPUT_CLOSING: 10, 11, or the command's own status (0 where none was run). */
int pipeline_exit_status(const struct pipeline *pipeline);
/* The same in numbers, and the findings in groups. Valid until pipeline_free. */
const struct summary *pipeline_summary(const struct pipeline *pipeline);
const struct alerts *pipeline_alerts(const struct pipeline *pipeline);
/* One line for people. Valid until pipeline_free. */
const char *pipeline_summary_line(const struct pipeline *pipeline);

#endif
