/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Between tenants.c, which sends inputs where they belong, tenant.c, the life
 * of one, tenant_flows.c, whose a connection is, and tenant_cgroups.c, what
 * cgroups are called, and tenant_holders.c, who makes room. Nobody else includes it.
 */
#ifndef NIGHTCLERK_TENANTS_PRIVATE_H
#define NIGHTCLERK_TENANTS_PRIVATE_H

#include "connection_key.h"
#include "tenants.h"

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

struct tenant_holder;

struct tenant {
	struct tenant_name name;
	struct tenant_holder *holder; /* NULL once it has ended, or where there was no memory */
	struct run_facts facts;
	struct pipeline_output output;
	struct pipeline *pipeline;
	struct counters counters;	    /* its own */
	struct counters counters_at_birth; /* everybody's */
	uint64_t born_ns;
	size_t calls_bytes;  /* that its open calls hold */
	size_t connections;  /* that live */
	uint64_t last_ns;    /* something came that was for it */
	uint64_t cgroup_id;  /* whose path its pipeline was told last */
	bool ended;
	void *attached; /* the caller's */
	struct tenant *prev, *next; /* by birth */
	UT_hash_handle hh;	    /* by name; not once it has ended */
};

/* ---- tenant.c ---- */

/* born_ns: no two lives under one name begin at one time. NULL when out of memory. */
struct tenant *tenant_new(const struct tenants *tenants, const struct tenant_name *name, uint64_t born_ns);
void tenant_free(struct tenant *tenant);
/* Feeds its pipeline, and takes what it gave up. */
void tenant_feed(struct tenants *tenants, struct tenant *tenant, const struct input *input);
/* Its own bytes, and what is everybody's of the last counters. */
void tenant_feed_counters(struct tenants *tenants, struct tenant *tenant, uint64_t now_ns);

/* ---- tenant_cgroups.c ---- */

struct tenant_cgroup {
	uint64_t id;
	struct tenant_name name;
	struct buffer path;
	UT_hash_handle hh; /* the one used longest ago first */
};

struct tenant_cgroups {
	struct tenant_cgroup *table;
	size_t path_bytes;
};

/* The path of an id: told before, or not. 0 or -ENOMEM. */
int tenant_cgroups_learn(struct tenant_cgroups *cgroups, uint64_t id, struct bytes path);
/* NULL when it is not known. */
const struct tenant_cgroup *tenant_cgroups_find(const struct tenant_cgroups *cgroups, uint64_t id);
/* It is in use: others go before it. */
void tenant_cgroups_touch(struct tenant_cgroups *cgroups, uint64_t id);
void tenant_cgroups_done(struct tenant_cgroups *cgroups);

/* ---- tenant_holders.c ---- */

/* Whose tenants they are (tenant_name_of_holder). */
struct tenant_holder {
	struct tenant_name name;
	size_t tenants; /* that have not ended */
	UT_hash_handle hh;
};

/* The holder has one more. NULL when out of memory. */
struct tenant_holder *tenant_holders_join(struct tenant_holder **holders, const struct tenant_name *tenant);
/* One less; NULL is accepted. */
void tenant_holders_leave(struct tenant_holder **holders, struct tenant_holder *holder);
/*
 * Whom to close for a new tenant of that name: with nothing open, and not of this very moment, since run ids
 * go by it. Of the same holder, where he has his share (TENANTS_HOLDER_PART); else of one who has more
 * than his; else anyone. Of those the one quiet longest. NULL = none.
 */
struct tenant *tenant_holders_find_room(const struct tenants *tenants, const struct tenant_name *name, uint64_t now_ns);

/* ---- tenant_flows.c ---- */

/* An event that waits for its owner. */
struct waiting_event {
	struct waiting_event *next;
	size_t size; /* of the payload */
	struct wire_event event;
	uint8_t payload[];
};

struct tenant_flow;

struct tenant_connection {
	struct connection_key key;
	struct tenant *tenant;	     /* NULL: not known yet */
	struct tenant_flow *flow[2]; /* NULL: not seen */
	struct waiting_event *first, **last; /* last: where the next one's address goes */
	size_t waiting_count, waiting_bytes;
	uint64_t since_ns;			  /* of the first that waits */
	struct tenant_connection *prev, *next; /* of all that wait, by since_ns */
	UT_hash_handle hh;
};

struct tenant_flow {
	uint64_t id;
	struct tenant_connection *connection;
	enum connection_side side;
	bool ended;	 /* its WIRE_END came */
	uint64_t bytes; /* accepted up to here */
	UT_hash_handle hh;
};

struct tenant_flows {
	struct tenant_flow *flows;
	struct tenant_connection *connections;
	struct tenant_connection *waiting;
	size_t waiting_bytes;
};

/* The flow of an event; on first sight it is added, with its connection. NULL when out of memory. */
struct tenant_flow *tenant_flows_find(struct tenant_flows *flows, const struct wire_event *event);
/* Bytes that the event shows to have been accepted: for counters. */
void tenant_flow_count(struct tenant_flow *flow, const struct wire_event *event, struct counters *counters);
/* Behind what waits of that connection already. 0 or -ENOMEM. */
int tenant_flows_wait(struct tenant_flows *flows, struct tenant_connection *connection, const struct input *input);
/* All that waits of a connection, oldest first, now the caller's to free; NULL when nothing does. */
struct waiting_event *tenant_flows_take(struct tenant_flows *flows, struct tenant_connection *connection);
/* After an event of that flow: true when the connection is gone, and freed. */
bool tenant_flows_settle(struct tenant_flows *flows, struct tenant_flow *flow, const struct wire_event *event);
/* Every connection is gone; more may come. */
void tenant_flows_done(struct tenant_flows *flows);

struct tenants {
	struct tenants_options options;
	struct pipeline_options pipeline;
	int64_t wall_offset_ns;
	struct tenant *list;   /* by birth, those that have ended, too */
	struct tenant *names;  /* those that have not */
	struct tenant *others; /* NULL = not needed yet */
	struct tenant_holder *holders;
	size_t calls_bytes;    /* that open calls of all hold */
	uint64_t gone_bytes;   /* accepted by those that were forgotten */
	struct tenant_cgroups cgroups;
	struct tenant_flows flows;
	struct counters counters; /* the last ones of all */
	uint64_t counters_ns;
	struct buffer muted;	  /* uint64_t each */
	bool memory_lost; /* something reached nobody: a connection of any tenant may be without it */
	bool tenant_lost; /* by the input in hand, of one that will say so itself */
};

#endif
