/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of the screen's model and layout share: screen_rows.c fills
 * it, screen_model.c looks after the view, screen_layout.c and screen_story.c
 * read it.
 */
#ifndef NIGHTCLERK_SCREEN_PARTS_H
#define NIGHTCLERK_SCREEN_PARTS_H

#include "screen_model.h"

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

/* Part of a row's text. */
struct screen_slice {
	uint32_t offset;
	uint32_t size;
};

struct screen_group { /* one process and path */
	uint64_t number; /* 1, 2, 3 ... in order of first sight */
	uint32_t tgid;
	char comm[WIRE_COMM_BYTES + 1];
	struct buffer target; /* ":8080/v1/charges", harmless */
	struct buffer key;
	uint64_t calls, mutating;
	uint64_t attempts;   /* calls that are an attempt after a first */
	uint64_t duplicates; /* of them: with a finding of low or worse */
	uint64_t tokens;
	unsigned int last_status; /* 0 = none yet */
	UT_hash_handle hh;
};

/* Findings of one fingerprint or key scope: the worst pair stands for all. */
struct screen_finding {
	uint64_t number; /* 1, 2, 3 ... in order of first sight */
	struct digest group;
	bool stands;		   /* false: taken back, or never a pair */
	struct judgement judgement; /* of the worst pair */
	struct screen_call *later, *earlier; /* references; NULL = no longer kept */
	uint64_t attempts;
	struct buffer text;	   /* for findings without a call: all there is to say */
	enum severity alarmed;	   /* the worst that was told; SEVERITY_NULL = nothing */
	UT_hash_handle hh;
};

struct screen_call {
	uint64_t number; /* call.number */
	uint64_t sequence; /* 1, 2, 3 ... in order of arrival */
	unsigned int references;
	uint8_t id[CALL_ID_BYTES];
	struct process process, server_process;
	struct endpoint client, server;
	struct attempt_facts facts;
	uint64_t sent_ns, response_first_ns, response_last_ns, client_closed_ns, server_closed_ns;
	uint64_t body_bytes, response_body_bytes, response_wire_bytes, delivered_bytes;
	uint64_t request_holes, response_holes;
	enum call_ended ended;
	enum call_delivered delivered;
	bool client_died, response_complete, over;
	bool has_sha, has_raw_sha, has_fingerprint, has_host;
	struct digest sha, raw_sha, fingerprint;
	enum canonical_kind canon;
	const char *canon_why, *why, *idem_from;
	struct usage usage;
	int64_t retry_after_s;
	enum finding alone; /* of this call by itself */
	struct judgement *judgement;	/* as a later attempt; NULL = it is none, or there is nothing to say */
	struct screen_call *earlier;	/* the other one of that pair; a reference */
	uint64_t later_number;		/* the latest call that was judged against this one; 0 = none */
	struct screen_finding *finding; /* where it is listed */
	struct screen_group *group;
	struct buffer text; /* harmless; holds: */
	struct screen_slice line;   /* "POST /v1/charges?x=1" */
	struct screen_slice method; /* the front of it */
	struct screen_slice target; /* the rest */
	struct screen_slice comm, host, content_type, agent, idem, tool, model, retry_hint, other_fields;
	UT_hash_handle hh;
};

struct screen_totals {
	uint64_t calls, mutating, answered;
	uint64_t standing[SEVERITY_HIGH + 1]; /* findings as they stand */
	uint64_t holes, hole_bytes;
	uint64_t blind[BLIND_COUNT];
	uint64_t broken, off_loopback, refused;
	uint64_t lost; /* records that the kernel could not hand over */
};

enum screen_pane { SCREEN_FINDINGS, SCREEN_CALLS, SCREEN_TABLE, SCREEN_OUTPUT, SCREEN_PANES };
enum screen_page { SCREEN_MAIN, SCREEN_STORY, SCREEN_HELP };

/* What one pane shows: pointers to what it lists, in order. */
struct screen_list {
	const void **item;
	size_t count, capacity;
	size_t selected; /* index */
	uint64_t selected_number;
	size_t top;	 /* index of the first one on the screen */
	bool follow;	 /* the last one is selected, and stays so */
	bool moved;	 /* somebody chose; until then the first one of findings and table is selected */
};

enum screen_field { FIELD_ANY, FIELD_METHOD, FIELD_PATH, FIELD_PID, FIELD_COMMAND, FIELD_STATUS, FIELD_FINDING };

struct screen_term {
	enum screen_field field;
	bool negated;
	char text[64]; /* lower case */
};

#define SCREEN_TERMS_MAX 16

struct screen_model {
	/* what it was told */
	char title[128];
	enum severity fail_on;
	int64_t wall_offset_ns;
	struct screen_totals totals;
	struct screen_call **ring; /* SCREEN_CALLS_MAX slots, by sequence */
	uint64_t oldest, next;	   /* sequences: [oldest, next) are in the ring */
	struct screen_call *by_number;
	struct screen_group *groups;
	struct screen_group *other; /* for what is beyond SCREEN_GROUPS_MAX */
	struct screen_finding *findings;
	uint64_t findings_unlisted;
	bool alarm_due; /* some finding may not have been told of */
	struct buffer mark;
	bool has_mark;
	uint64_t ring_fill, ring_peak, ring_size;
	char state[96];
	struct buffer *output; /* SCREEN_OUTPUT_LINES slots */
	uint64_t output_lines; /* begun so far; the last one may grow */
	bool output_ended, output_returned; /* a line feed, a carriage return came last */
	uint64_t store_lost;
	bool memory_lost;
	uint64_t steps;
	struct buffer scratch;
	char alarm[512];

	/* how it is looked at */
	unsigned int columns, rows;
	enum screen_page page, page_below; /* what ? was pressed on */
	enum screen_pane focus;
	bool has_output, can_step, bell, changed;
	struct screen_list list[SCREEN_PANES];
	unsigned int pane_rows[SCREEN_PANES]; /* lines that each has for its items; filled by the layout */
	unsigned int call_sort, table_sort;
	bool stale; /* the lists must be made anew */
	uint64_t made_ns;
	uint64_t appended; /* sequence up to which the list of calls has looked */
	char filter[SCREEN_FILTER_BYTES + 1];
	struct screen_term terms[SCREEN_TERMS_MAX];
	unsigned int term_count;
	bool prompting;
	char filter_before[SCREEN_FILTER_BYTES + 1]; /* comes back on Escape */
	bool paused;
	struct screen_call **frozen; /* references */
	size_t frozen_count;
	struct screen_group *frozen_groups; /* copies that borrow their texts */
	size_t frozen_group_count;
	uint64_t paused_calls; /* totals.calls at that moment */
	char message[256]; /* until the next key */
	/* the story of one call */
	struct screen_call *story[2]; /* earlier, later; references; the earlier may be NULL */
	struct judgement story_judgement;
	bool story_has_judgement;
	size_t scroll, scroll_max; /* of story and help; scroll_max is filled by the layout */
};

/* ---- screen_rows.c ---- */

struct bytes screen_slice_of(const struct screen_call *call, struct screen_slice slice);
struct screen_call *screen_call_find(const struct screen_model *model, uint64_t number);
struct screen_call *screen_call_keep(struct screen_call *call);			/* one more reference; accepts NULL */
void screen_call_drop(struct screen_model *model, struct screen_call *call);	/* one less; accepts NULL */
/* From SEVERITY_NULL (undecidable: between low and medium) to high, as a number that sorts. */
unsigned int screen_rank(enum severity severity);
/* A listed finding is low or worse, or undecidable. */
bool screen_finding_is_listed(const struct screen_finding *finding);
/* "HIGH", "undecidable" in capitals. */
const char *screen_severity_word(enum severity severity);
void screen_rows_forget(struct screen_model *model);

/* ---- screen_filter.c ---- */

void screen_filter_parse(struct screen_model *model);
bool screen_filter_call(const struct screen_model *model, const struct screen_call *call);
bool screen_filter_group(const struct screen_model *model, const struct screen_group *group);
bool screen_filter_finding(const struct screen_model *model, const struct screen_finding *finding);

/* ---- screen_lists.c ---- */

/* Brings the lists up to date: call it before they are read. */
void screen_lists_refresh(struct screen_model *model, uint64_t now_ns);
void screen_lists_done(struct screen_model *model);
void screen_lists_pause(struct screen_model *model, bool pause);
/* The selection by that many items; LONG_MIN and LONG_MAX: to the ends. */
void screen_lists_move(struct screen_model *model, enum screen_pane pane, long by);
const char *screen_call_sort_name(unsigned int sort);  /* NULL = there is no such */
const char *screen_table_sort_name(unsigned int sort);

#endif
