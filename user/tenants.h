/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One host, many tenants: which tenant an input is for, and a pipeline for each.
 *
 * A connection, both flows of it, belongs to the tenant of its client: by the
 * owner that WIRE_OPEN names, or else by the first send of that side. Its ends
 * find each other as in connections.c (connection_key.h). What comes before
 * the client is known is held, in order, for at most TENANTS_HOLD_NS and within
 * TENANTS_HELD_*; then the connection belongs to "others" for good. "others"
 * is also whose cgroup cannot be told, and whoever comes when `max` are alive
 * and none can be closed. Who has his share of `max` then closes his own (TENANTS_HOLDER_PART). Nothing is dropped.
 *
 * What is everybody's goes to everybody: ticks, marks, drain, closing, and the
 * counters, of which bytes accepted and lost are each tenant's own, by its
 * events; losses that may have been anyone's (a skipped probe, a lost lifecycle
 * record, a full table) count against all. If at the closing the kernel
 * accepted other bytes than the tenants' together, all are incomplete.
 *
 * Memory is bounded for all together. For remembered calls each tenant has an
 * equal share (LIMIT_TENANTS_BYTES), and forgets its own; heads and bodies of
 * open calls may take what is free of LIMIT_TENANTS_CALLS_BYTES, so that who
 * takes all he can leaves as much to the others.
 *
 * What comes out for one tenant depends on its own inputs alone, as long as
 * nothing is short: not on how those of others lie between them.
 *
 * Pure: no clock, no I/O.
 */
#ifndef NIGHTCLERK_TENANTS_H
#define NIGHTCLERK_TENANTS_H

#include "pipeline.h"
#include "tenant_name.h"

#define TENANTS_HOLD_NS (1000 * 1000 * 1000ULL)
#define TENANTS_HELD_BYTES (16 * 1024 * 1024) /* events with their payload, of all connections together */
#define TENANTS_HELD_EVENTS_PER_CONNECTION 1024
#define TENANTS_HOLDER_PART 4 /* where there is no room, one holder may have max / 4 tenants before his own make room */

struct tenant;

enum tenant_split {
	TENANT_SPLIT_NONE, /* one tenant, "all"; inputs pass as they are */
	TENANT_SPLIT_CGROUP,
	TENANT_SPLIT_UID,
};

struct tenants_options {
	enum tenant_split split;
	size_t max;				 /* alive at once, "others" aside; 0 = LIMIT_TENANTS */
	uint64_t idle_ns;			 /* with nothing open and nothing new for so long one is closed; 0 = never */
	const struct run_facts *run;		 /* of this life of the collector; borrowed */
	const struct pipeline_options *pipeline; /* copied, what it points to is borrowed; without a screen */
	/* NULL = nobody wants to know. born: tenant_feed_past() and tenant_attach() may follow at once. */
	void (*born)(void *context, struct tenant *tenant);
	/* What only the caller knows of its end. */
	void (*ending)(void *context, const struct tenant *tenant, struct closing *closing);
	void *context;
};

struct tenants;

struct tenants *tenants_new(const struct tenants_options *options); /* NULL when out of memory */
void tenants_free(struct tenants *tenants);			     /* accepts NULL */

/*
 * Any input but INPUT_PAST, which tenant_feed_past() takes. 0, or -ENOMEM: something was lost, and the
 * summaries will say so.
 */
int tenants_feed(struct tenants *tenants, const struct input *input);
/* pipeline_set_policy() of all, and of those to come. */
void tenants_set_policy(struct tenants *tenants, const struct policy *policy, bool strict);
/* Flows that were given up since the last call: the kernel need not copy them. 0 when there is none. */
uint64_t tenants_next_muted(struct tenants *tenants);

/* Every tenant there is, oldest first; after NULL the first, NULL after the last. */
struct tenant *tenants_next(struct tenants *tenants, struct tenant *after);
/*
 * Frees a tenant that has ended, after its output was written; the next one's place is kept. Those that
 * are not forgotten are freed with the rest.
 */
void tenants_forget(struct tenants *tenants, struct tenant *tenant);

/* A file name (tenant_name.h). No two that have not ended share it. Valid, as all below, until the tenant is freed. */
const char *tenant_name(const struct tenant *tenant);
/* 16 hex digits that no other tenant has, and no other life of this one. */
const char *tenant_run_id(const struct tenant *tenant);
/* Its summary is out: nothing follows. A tenant of that name that comes back is another one. */
bool tenant_ended(const struct tenant *tenant);
/* Lines to be written and cleared. */
struct pipeline_output *tenant_output(struct tenant *tenant);
/* For metrics: requests, findings, blind streams so far. */
const struct gate *tenant_gate(const struct tenant *tenant);
/* Where its bytes went, so far: in messages, holes, blind. */
struct connection_totals tenant_totals(const struct tenant *tenant);
/* As in its last INPUT_COUNTERS, with its own bytes up to now. */
const struct counters *tenant_counters(const struct tenant *tenant);
size_t tenant_open_calls(const struct tenant *tenant);
/* Connections whose end is still due. */
size_t tenant_connections(const struct tenant *tenant);
/* Bytes that its open calls and its remembered ones take. */
size_t tenant_memory(const struct tenant *tenant);
/* Once it has ended; zeroed before. */
const struct summary *tenant_summary(const struct tenant *tenant);
/* Something of the caller's that belongs to it; NULL until then. */
void tenant_attach(struct tenant *tenant, void *attached);
void *tenant_attached(const struct tenant *tenant);
/* An attempt of an earlier run, from this tenant's store; before anything else of it. 0 or -ENOMEM. */
int tenant_feed_past(struct tenant *tenant, const struct past_attempt *past);

#endif
