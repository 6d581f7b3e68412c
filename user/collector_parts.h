/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is inside a collector. Private to collector*.c: collector.c is the loop,
 * collector_start.c how it gives its rights away, collector_ask.c talks with the
 * monitor, collector_books.c writes the tenants' files, collector_stores.c their stores,
 * collector_census.c ends what ended unseen, collector_metrics.c counts.
 */
#ifndef NIGHTCLERK_COLLECTOR_PARTS_H
#define NIGHTCLERK_COLLECTOR_PARTS_H

#include "cgroups_told.h"
#include "collector.h"
#include "flow_census.h"
#include "heap.h"
#include "rotated_file.h"
#include "stores.h"
#include "tenants.h"

#define CANARY_FLOWS 16 /* two for each try, of which there are three */

/* One file of one tenant. */
struct book_file {
	struct collector *collector; /* whom to ask for it, with what is said of it */
	struct tenant *tenant;
	enum audit_file kind;
	struct rotated_file *file; /* NULL: no line was there to be written */
	bool said;		   /* that it cannot be written */
};

/* The files of one tenant. */
struct book {
	struct tenant *tenant;
	struct book_file files[AUDIT_FILE_COUNT];
	struct book *next;
};

struct collector {
	const struct collector_options *options;
	struct run_facts facts; /* of the options, with the salt of the stores */
	struct capture *capture;
	struct monitor_wire *wire;
	struct capture_rights rights;
	struct sequencer *sequencer;
	struct canary *canary;
	uint64_t canary_flows[CANARY_FLOWS]; /* 0 = none; the end of one may come when the mark is off */
	struct tenants *tenants;
	struct book *books;
	struct stores *stores;	/* NULL = nobody asked for them */
	uint64_t unstored_rows; /* that tenants who are gone lost */
	/* what the monitor ordered */
	bool monitor_gone, finish, reopen;
	struct buffer policy_text;
	bool policy_due;
	const struct policy *policy; /* those before it are kept: calls that are remembered point to them */
	/* of the loop */
	struct cgroups_told *cgroups;
	struct flow_census *census;
	uint64_t next_census_ns, whole_census_ns; /* when the next one may be, and must be */
	uint64_t losses;			   /* as the last one knew them */
	uint64_t next_tick_ns, next_counters_ns, next_metrics_ns;
	uint64_t written_ns;	 /* every line of what was captured before it has been written */
	uint64_t drain_failures; /* events may be gone without a hole to show it */
	struct counters counters; /* as last read, or higher (metrics_grow) */
	bool counters_unread;
	struct heap heap;
	uint64_t lag_ns; /* of the last event: from the kernel's clock to the end of its pipeline */
};

/* ---- collector_start.c ---- */

/* Everything that opens something, then no right is left. 0 or -errno with one line in reason (DROP_RIGHTS_REASON_MAX). */
int collector_prepare(struct collector *collector, char *reason);

/* ---- collector_ask.c; each returns 0 or -errno (-ECONNRESET: the monitor is gone) ---- */

/* What has come from the monitor, without waiting. */
void collector_take_orders(struct collector *collector);
int collector_say(struct collector *collector, enum monitor_kind kind, struct bytes body);
/* The path of a cgroup; lent until the next question. */
int collector_ask_cgroup(struct collector *collector, uint64_t id, uint32_t tgid, struct bytes *ret_path);
/* kind: MONITOR_OPEN or MONITOR_ROTATE. The descriptor is the caller's. */
int collector_ask_file(struct collector *collector, enum monitor_kind kind, const struct tenant *tenant, enum audit_file file,
		       int *ret_fd);
/* Its files are of no use any more. */
void collector_say_closed(struct collector *collector, const struct tenant *tenant);
/* capture's way to the monitor. */
struct capture_rights collector_rights(struct collector *collector);

/* ---- collector_books.c ---- */

/* Writes what the pipelines made; what cannot be written is kept. Those that have ended are forgotten. True: all is written. */
bool collector_write(struct collector *collector, uint64_t now_ns);
/* Every file is to be opened again. */
void collector_reopen(struct collector *collector);
/* Files that somebody removed are opened again, and lines that wait are tried again. */
void collector_look_at_files(struct collector *collector, uint64_t now_ns);
/* At the end: bytes that could not be written all the same. */
uint64_t collector_flush(struct collector *collector);
/* The last of all. */
void collector_close(struct collector *collector);

/* ---- collector_census.c ---- */

/* Ends flows that live no more and whose end was lost. Once a minute at most, and only where there is a reason. */
void collector_take_census(struct collector *collector, uint64_t now_ns);

/* ---- collector_stores.c ---- */

/* After the rights are gone; before the tenants. 0 or -errno. */
int collector_open_stores(struct collector *collector);
/* Of struct tenants_options. */
void collector_tenant_born(void *context, struct tenant *tenant);
void collector_tenant_ending(void *context, const struct tenant *tenant, struct closing *closing);
/* What its pipeline has for its store goes there; what is wrong with that is said. */
void collector_store(struct collector *collector, struct tenant *tenant);
/* The tenant has ended. */
void collector_leave_store(struct collector *collector, struct tenant *tenant);
struct stored_counts collector_stored(struct collector *collector, const struct tenant *tenant);
/* Everything up to here is in the stores, or it is counted as lost. */
void collector_settle_stores(struct collector *collector);
/* The last of all. */
void collector_close_stores(struct collector *collector);

/* ---- collector_metrics.c ---- */

/* Where the monitor wants them: the text goes to it. */
void collector_tell_metrics(struct collector *collector);

#endif
