/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two line formats, ledger and events: JSON, one object a line, keys in the
 * order of the schema, no key left out. Each function appends one line that
 * ends in LF to out, or nothing: 0 or -ENOMEM. Pure; json_text.h does escapes.
 */
#ifndef NIGHTCLERK_LINES_H
#define NIGHTCLERK_LINES_H

#include "attempts.h"
#include "blind.h"
#include "fingerprint.h"
#include "hops.h"
#include "options.h"
#include "recording.h"

#define LEDGER_SCHEMA 1

struct line_context {
	const struct run_facts *run;
	int64_t wall_offset_ns; /* now */
	struct bytes mark;	/* label of the last mark */
	bool has_mark;
	struct bytes cgroup_path;	     /* of the call's process; empty = unknown: null */
	struct fingerprinter *fingerprinter; /* for secrets */
	const struct digest *policy_sha;     /* NULL = no policy */
};

/* A time of which something may be missing, since who read it died. */
struct run_gap {
	uint64_t from_ns; /* CLOCK_MONOTONIC: what was captured before is written */
	uint64_t until_ns;
	char cause[96];
};

/* ledger: a request that is complete, or that never will be. */
int ledger_line(const struct line_context *context, const struct call *call, struct buffer *out);

/* events */
int event_start(const struct line_context *context, const struct judge_options *options,
		struct buffer *out);
int event_request(const struct line_context *context, const struct call *call, struct buffer *out);
int event_response(const struct line_context *context, const struct call *call, struct buffer *out);
int event_finding(const struct line_context *context, const struct judgement *judgement,
		  uint64_t now_ns, struct buffer *out);
/* judgement->before holds what was said. */
int event_upgrade(const struct line_context *context, const struct judgement *judgement,
		  uint64_t now_ns, struct buffer *out);
/* FINDING_TRUNCATED_RESPONSE or FINDING_ABANDONED_CALL of one call. */
int event_call_finding(const struct line_context *context, const struct call *call,
		       enum finding finding, uint64_t now_ns, struct buffer *out);

/* One call that another is a hop of. */
int event_hop(const struct line_context *context, const struct hop *hop, uint64_t now_ns,
	      struct buffer *out);

struct connection_name {
	struct endpoint client;
	struct endpoint server;
	struct process process;
};
int event_hole(const struct line_context *context, const struct connection_name *connection,
	       bool from_client, uint64_t offset, uint64_t length, enum wire_cause cause,
	       uint64_t now_ns, struct buffer *out);
int event_blind(const struct line_context *context, const struct connection_name *connection,
		enum blind_kind kind, uint64_t bytes_out, uint64_t bytes_in, uint64_t now_ns,
		struct buffer *out);
int event_broken(const struct line_context *context, const struct connection_name *connection,
		 bool from_client, uint64_t offset, const char *reason, uint64_t now_ns,
		 struct buffer *out);
int event_off_loopback(const struct line_context *context, const struct connection_name *connection,
		       bool refused, uint64_t now_ns, struct buffer *out);
int event_gap(const struct line_context *context, const struct run_gap *gap, struct buffer *out);
int event_mark(const struct line_context *context, struct bytes label, uint64_t now_ns,
	       struct buffer *out);

struct summary {
	const struct closing *closing;
	const struct counters *counters;
	int32_t exit_status;
	uint64_t requests;
	uint64_t mutating;
	uint64_t findings[FINDING_COUNT]; /* as they stand at the end */
	uint64_t attempts;		  /* remembered calls that are an attempt after a first */
	uint64_t accepted_bytes;
	uint64_t message_bytes;
	uint64_t hole_bytes;
	uint64_t blind_bytes;
	uint64_t blind_streams[BLIND_COUNT];
	const struct blind_processes *blind_processes; /* NULL = none */
	unsigned int blind_that_matter;		       /* bit per enum blind_kind: those in incomplete */
	uint64_t broken_streams;
	uint64_t evicted;
	uint64_t usage_refused; /* token counts of models that were no count */
	uint64_t now_ns;
	/* why the gate cannot tell, in words, each static text; empty = it can */
	const char *incomplete[32];
	size_t incomplete_count;
};
int event_summary(const struct line_context *context, const struct summary *summary,
		  struct buffer *out);

/*
 * Names of enum wire_cause: "ring_full", "fault", "pages", "truncated", "missed", "fastopen",
 * "urgent", "muted", "share".
 */
const char *cause_name(enum wire_cause cause);

#endif
