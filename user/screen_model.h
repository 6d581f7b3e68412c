/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the full-screen view knows and how it is being looked at: calls, a table
 * per process and path, findings; focus, selection, filter, sort, pause, page.
 *
 * A reader of the same structs that the events are made of: pipeline.c tells it
 * of every request, answer, finding, hole and blind stream. Pure: no clock, no
 * terminal; screen_layout.h makes a frame of it, screen.c paints that.
 *
 * The counts are of everything it was told. Of the calls themselves the last
 * SCREEN_CALLS_MAX are kept, and both attempts of every finding that is listed.
 */
#ifndef NIGHTCLERK_SCREEN_MODEL_H
#define NIGHTCLERK_SCREEN_MODEL_H

#include "attempts.h"
#include "connection.h"
#include "lines.h"

#define SCREEN_CALLS_MAX 20000
#define SCREEN_GROUPS_MAX 10000	  /* processes and paths; what comes after counts as "(other paths)" */
#define SCREEN_FINDINGS_MAX 1000  /* listed, one per fingerprint or key scope; the rest are counted */
#define SCREEN_OUTPUT_LINES 2000  /* kept of the command's own output */
#define SCREEN_LINE_BYTES 1024	  /* kept of one of its lines */
#define SCREEN_FILTER_BYTES 200
#define SCREEN_REFRESH_NS (250 * 1000 * 1000ULL) /* a list in another order than time is sorted again at most this often */

struct screen_model;

struct screen_options {
	const char *title;     /* "watch pid 4711", "replay FILE"; copied */
	enum severity fail_on; /* a finding from here on is an alarm */
	bool has_output;       /* a command's output has a pane */
};

struct screen_model *screen_model_new(const struct screen_options *options); /* NULL when out of memory */
void screen_model_free(struct screen_model *model);			     /* accepts NULL */
/* Forgets what it was told, keeps how it is looked at: a recording is played from its start again. */
void screen_model_forget(struct screen_model *model);

/*
 * ---- what it is told by pipeline.c ----
 * Each 0 or -ENOMEM: the counts are right even then. Each accepts NULL: nobody looks.
 */

/* CONNECTION_REQUEST, after the call was classified. */
int screen_model_request(struct screen_model *model, const struct line_context *context, const struct call *call);
/* The facts of a call changed. */
void screen_model_change(struct screen_model *model, const struct call *call);
/* CONNECTION_ANSWERED: once a call. */
void screen_model_answered(struct screen_model *model, const struct call *call);
/* A judgement or its change (call NULL); judgement->before says which. FINDING_NONE with an attempt of 2 or more counts as an attempt. */
int screen_model_judged(struct screen_model *model, const struct judgement *judgement, const struct call *call);
/* FINDING_TRUNCATED_RESPONSE or FINDING_ABANDONED_CALL of one call. */
void screen_model_alone(struct screen_model *model, const struct call *call, enum finding finding);
/* Holes, blind and broken streams, connections off loopback. */
int screen_model_stream(struct screen_model *model, const struct connection_result *result);
/* Time passed: times are shown by this offset. */
void screen_model_tick(struct screen_model *model, int64_t wall_offset_ns);
void screen_model_counters(struct screen_model *model, const struct counters *counters);
int screen_model_mark(struct screen_model *model, struct bytes label);

/* ---- what it is told by who drives it ---- */

void screen_model_ring(struct screen_model *model, uint64_t fill_bytes, uint64_t peak_bytes, uint64_t size_bytes);
/* Rows of the store that are lost, up to now. */
void screen_model_store_lost(struct screen_model *model, uint64_t rows);
/* The command's own output, as it came. */
int screen_model_output(struct screen_model *model, struct bytes text);
/* How things stand: "LIVE", "ended: exit 0", "12.3 of 13.0 s". Copied. */
void screen_model_state(struct screen_model *model, const char *text);
/* A line for the foot of the screen, until the next key. Copied, made harmless. */
void screen_model_say(struct screen_model *model, const char *text);

/* ---- how it is looked at ---- */

/* Keys that are no character; characters are their code point. */
enum screen_key {
	SCREEN_KEY_UP = 0x110000,
	SCREEN_KEY_DOWN,
	SCREEN_KEY_PAGE_UP,
	SCREEN_KEY_PAGE_DOWN,
	SCREEN_KEY_HOME,
	SCREEN_KEY_END,
	SCREEN_KEY_LEFT,
	SCREEN_KEY_RIGHT,
	SCREEN_KEY_ENTER,
	SCREEN_KEY_TAB,
	SCREEN_KEY_BACK_TAB,
	SCREEN_KEY_BACKSPACE,
	SCREEN_KEY_ESCAPE,
};

/* What the model cannot do itself. */
enum screen_action {
	SCREEN_NOTHING,
	SCREEN_QUIT,
	SCREEN_WRITE,	    /* screen_text() into a file */
	SCREEN_REDRAW,	    /* ^L: paint everything again */
	SCREEN_STEP_BACK,   /* a recording: one event */
	SCREEN_STEP,
	SCREEN_SECOND_BACK, /* one second */
	SCREEN_SECOND,
	SCREEN_PLAY,	    /* play or stop */
};

void screen_model_resize(struct screen_model *model, unsigned int columns, unsigned int rows);
/* now_ns: any clock that does not run backwards. */
enum screen_action screen_model_key(struct screen_model *model, uint32_t key, uint64_t now_ns);
/* A recording: the keys that step in time are on. */
void screen_model_can_step(struct screen_model *model);

/* Something that is shown may have changed since the last call. */
bool screen_model_take_change(struct screen_model *model);
/* How many steps of a recording there were: requests, answers, findings. */
uint64_t screen_model_steps(const struct screen_model *model);
/* The next finding at or above fail_on that nobody was told of, as a line for people; NULL = none. */
struct screen_alarm {
	enum finding finding;
	enum severity severity;
	const char *text; /* "HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8765, attempt 2"; lent until the next call */
};
bool screen_model_next_alarm(struct screen_model *model, struct screen_alarm *ret_alarm);
bool screen_model_bell(const struct screen_model *model);

#endif
