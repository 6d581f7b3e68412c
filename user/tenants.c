/* SPDX-License-Identifier: BSD-2-Clause */
/* Who an input is for. */
#include "tenants_private.h"

#include <errno.h>
#include <utlist.h>

#define NO_ROOM "it was closed for want of room: a repeat of its calls will not be found"
#define BYTES_OF_NOBODY "the bytes of all tenants do not add up to what the kernel accepted"
#define OUT_OF_MEMORY "nightclerk ran out of memory between the tenants"

/* ---- life ---- */

static int add_tenant(struct tenants *tenants, const struct tenant_name *name, uint64_t now_ns,
		      struct tenant **ret_tenant)
{
	struct tenant *tenant = tenant_new(tenants, name, now_ns);

	if (!tenant)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh, tenants->names, tenant->name.text, strlen(tenant->name.text), tenant);
	if (!tenant->hh.tbl) {
		tenant_free(tenant);
		return -ENOMEM;
	}
	DL_APPEND(tenants->list, tenant);
	tenant->holder = tenant_holders_join(&tenants->holders, name);
	if (tenants->options.born)
		tenants->options.born(tenants->options.context, tenant);
	*ret_tenant = tenant;
	return 0;
}

static void share_out(struct pipeline_options *options, size_t count)
{
	options->max_remembered_bytes = LIMIT_TENANTS_BYTES / count;
	options->max_path_bytes = LIMIT_CGROUP_PATHS_BYTES / count;
}

struct tenants *tenants_new(const struct tenants_options *options)
{
	struct tenants *tenants = calloc(1, sizeof(*tenants));
	struct tenant_name all = {.text = "all"};
	struct tenant *tenant;

	if (!tenants)
		return NULL;
	tenants->options = *options;
	if (!tenants->options.max)
		tenants->options.max = LIMIT_TENANTS;
	tenants->pipeline = *options->pipeline;
	tenants->wall_offset_ns = options->run->wall_offset_ns;
	if (options->split != TENANT_SPLIT_NONE)
		share_out(&tenants->pipeline, tenants->options.max + 1);
	else if (add_tenant(tenants, &all, options->run->start_ns, &tenant)) {
		tenants_free(tenants);
		return NULL;
	}
	return tenants;
}

void tenants_free(struct tenants *tenants)
{
	struct tenant *tenant, *next;

	if (!tenants)
		return;
	tenant_flows_done(&tenants->flows);
	tenant_cgroups_done(&tenants->cgroups);
	HASH_CLEAR(hh, tenants->names);
	DL_FOREACH_SAFE(tenants->list, tenant, next) {
		tenant_holders_leave(&tenants->holders, tenant->holder);
		tenant_free(tenant);
	}
	buffer_done(&tenants->muted);
	free(tenants);
}

struct tenant *tenants_next(struct tenants *tenants, struct tenant *after)
{
	return after ? after->next : tenants->list;
}

void tenants_forget(struct tenants *tenants, struct tenant *tenant)
{
	tenants->gone_bytes += tenant->counters.value[WIRE_COUNTER_ACCEPTED_BYTES];
	DL_DELETE(tenants->list, tenant);
	tenant_free(tenant);
}

void tenants_set_policy(struct tenants *tenants, const struct policy *policy, bool strict)
{
	struct tenant *tenant;

	tenants->pipeline.policy = policy;
	tenants->pipeline.judge.strict = strict;
	DL_FOREACH(tenants->list, tenant)
		pipeline_set_policy(tenant->pipeline, policy, strict);
}

uint64_t tenants_next_muted(struct tenants *tenants)
{
	uint64_t flow;

	if (tenants->muted.size < sizeof(flow))
		return 0;
	tenants->muted.size -= sizeof(flow);
	memcpy(&flow, tenants->muted.data + tenants->muted.size, sizeof(flow));
	return flow;
}

/* An input, or a part of one, reached nobody. */
static void lost(struct tenants *tenants, int err)
{
	if (err)
		tenants->memory_lost = true;
}

/* ---- the end of one ---- */

/* The last input of a tenant. */
static void end_tenant(struct tenants *tenants, struct tenant *tenant, const struct closing *closing, uint64_t now_ns)
{
	struct input input = {.kind = INPUT_CLOSING, .now_ns = now_ns, .closing = *closing};

	tenant_feed_counters(tenants, tenant, now_ns);
	if (tenants->options.split != TENANT_SPLIT_NONE)
		input.closing.wall_ms = (now_ns - tenant->born_ns) / 1000000;
	if (tenants->options.ending)
		tenants->options.ending(tenants->options.context, tenant, &input.closing);
	if (tenants->memory_lost)
		pipeline_note_gap(tenant->pipeline, OUT_OF_MEMORY);
	tenant_feed(tenants, tenant, &input);
	HASH_DEL(tenants->names, tenant);
	tenant_holders_leave(&tenants->holders, tenant->holder);
	tenant->holder = NULL;
	if (tenant == tenants->others)
		tenants->others = NULL;
	tenant->ended = true;
}

/* While the run goes on. What the kernel counted since the last look may be of this tenant. */
static void retire(struct tenants *tenants, struct tenant *tenant, uint64_t now_ns)
{
	struct closing closing = {.command_status = -1, .counters_unread = tenants->counters_ns < tenant->last_ns};

	end_tenant(tenants, tenant, &closing, now_ns);
}

static void retire_idle(struct tenants *tenants, uint64_t now_ns)
{
	uint64_t idle_ns = tenants->options.idle_ns;
	struct tenant *tenant, *next;

	if (!idle_ns || tenants->options.split == TENANT_SPLIT_NONE)
		return;
	DL_FOREACH_SAFE(tenants->list, tenant, next)
		if (!tenant->ended && !tenant->connections && now_ns - tenant->last_ns >= idle_ns)
			retire(tenants, tenant, now_ns);
}

/* ---- whose it is: NULL when out of memory ---- */

static struct tenant *others(struct tenants *tenants, uint64_t now_ns)
{
	static const struct tenant_name name = {.text = TENANT_NAME_OTHERS};

	if (!tenants->others)
		lost(tenants, add_tenant(tenants, &name, now_ns, &tenants->others));
	return tenants->others;
}

static struct tenant *find_tenant(struct tenants *tenants, const struct tenant_name *name, uint64_t now_ns)
{
	struct tenant *tenant, *quiet;

	HASH_FIND(hh, tenants->names, name->text, strlen(name->text), tenant);
	if (tenant)
		return tenant;
	if (HASH_COUNT(tenants->names) - (tenants->others != NULL) >= tenants->options.max) {
		quiet = tenant_holders_find_room(tenants, name, now_ns);
		if (!quiet)
			return others(tenants, now_ns);
		pipeline_note_gap(quiet->pipeline, NO_ROOM);
		retire(tenants, quiet, now_ns);
	}
	if (!add_tenant(tenants, name, now_ns, &tenant))
		return tenant;
	lost(tenants, -ENOMEM);
	return others(tenants, now_ns);
}

/* By the cgroup and uid of an event. */
static struct tenant *owner_of(struct tenants *tenants, const struct wire_event *event, uint64_t now_ns)
{
	const struct tenant_cgroup *cgroup;
	struct tenant_name name;

	if (!event->cgroup_id)
		return others(tenants, now_ns);
	if (tenants->options.split == TENANT_SPLIT_UID) {
		tenant_name_of_uid(event->uid, &name);
		return find_tenant(tenants, &name, now_ns);
	}
	tenant_cgroups_touch(&tenants->cgroups, event->cgroup_id);
	cgroup = tenant_cgroups_find(&tenants->cgroups, event->cgroup_id);
	if (cgroup)
		return find_tenant(tenants, &cgroup->name, now_ns);
	tenant_name_of_cgroup_id(event->cgroup_id, &name);
	return find_tenant(tenants, &name, now_ns);
}

/* The path of the cgroup that the event names goes before it. */
static void feed_event(struct tenants *tenants, struct tenant *tenant, const struct input *input)
{
	uint64_t id = input->wire.event->cgroup_id;
	const struct tenant_cgroup *cgroup = NULL;

	if (id && id != tenant->cgroup_id)
		cgroup = tenant_cgroups_find(&tenants->cgroups, id);
	if (cgroup) {
		tenant_feed(tenants, tenant, &(struct input){.kind = INPUT_CGROUP, .now_ns = input->now_ns,
							     .cgroup = {id, buffer_bytes(&cgroup->path)}});
		tenant->cgroup_id = id;
	}
	tenant->last_ns = input->now_ns;
	tenant_feed(tenants, tenant, input);
}

/* ---- connections ---- */

static void feed_flow(struct tenants *tenants, const struct input *input);

/* What waited goes first. It may end the connection, which is freed then. */
static void give(struct tenants *tenants, struct tenant_connection *connection, struct tenant *tenant, uint64_t now_ns)
{
	struct waiting_event *waiting = tenant_flows_take(&tenants->flows, connection), *next;

	connection->tenant = tenant;
	tenant->connections++;
	for (; waiting; waiting = next) {
		next = waiting->next;
		feed_flow(tenants, &(struct input){.kind = INPUT_WIRE, .now_ns = now_ns,
						   .wire = {&waiting->event, {waiting->payload, waiting->size}}});
		free(waiting);
	}
}

/* False when out of memory: it waits on. */
static bool give_to_others(struct tenants *tenants, struct tenant_connection *connection, uint64_t now_ns)
{
	struct tenant *tenant = others(tenants, now_ns);

	if (tenant)
		give(tenants, connection, tenant, now_ns);
	return tenant;
}

static void hold(struct tenants *tenants, struct tenant_connection *connection, const struct input *input)
{
	struct tenant_flows *flows = &tenants->flows;

	lost(tenants, tenant_flows_wait(flows, connection, input));
	if (connection->waiting_count >= TENANTS_HELD_EVENTS_PER_CONNECTION)
		give_to_others(tenants, connection, input->now_ns);
	while (flows->waiting_bytes > TENANTS_HELD_BYTES && give_to_others(tenants, flows->waiting, input->now_ns))
		;
}

static void feed_flow(struct tenants *tenants, const struct input *input)
{
	const struct wire_event *event = input->wire.event;
	struct tenant_flow *flow = tenant_flows_find(&tenants->flows, event);
	struct tenant *tenant = flow ? flow->connection->tenant : NULL;

	if (!flow) {
		lost(tenants, -ENOMEM);
	} else if (tenant) {
		tenant_flow_count(flow, event, &tenant->counters);
		feed_event(tenants, tenant, input);
		tenant_flows_settle(&tenants->flows, flow, event);
	} else if (flow->side == SIDE_CLIENT && event->cgroup_id) {
		tenant = owner_of(tenants, event, input->now_ns);
		if (!tenant)
			return;
		give(tenants, flow->connection, tenant, input->now_ns);
		feed_flow(tenants, input);
	} else {
		hold(tenants, flow->connection, input);
	}
}

/* To "others" goes what waited too long, or all that waits. */
static void expire(struct tenants *tenants, uint64_t now_ns, bool all)
{
	struct tenant_flows *flows = &tenants->flows;

	while (flows->waiting && (all || now_ns - flows->waiting->since_ns >= TENANTS_HOLD_NS))
		if (!give_to_others(tenants, flows->waiting, now_ns))
			return;
}

/* ---- inputs ---- */

static void feed_all(struct tenants *tenants, const struct input *input)
{
	for (struct tenant *tenant = tenants->names; tenant; tenant = tenant->hh.next)
		tenant_feed(tenants, tenant, input);
}

static void feed_wire(struct tenants *tenants, const struct input *input)
{
	struct tenant *tenant;

	switch (input->wire.event->kind) {
	case WIRE_FORK:
	case WIRE_EXEC: /* a pipeline knows processes by what they send */
		break;
	case WIRE_EXIT: /* only calls that are open can learn of it */
		for (tenant = tenants->names; tenant; tenant = tenant->hh.next)
			if (pipeline_open_calls(tenant->pipeline))
				tenant_feed(tenants, tenant, input);
		break;
	case WIRE_CONNECT:
		tenant = owner_of(tenants, input->wire.event, input->now_ns);
		if (tenant)
			feed_event(tenants, tenant, input);
		break;
	default:
		feed_flow(tenants, input);
		break;
	}
}

static void feed_counters(struct tenants *tenants, const struct counters *counters, uint64_t now_ns)
{
	if (!tenants->counters_ns && tenants->pipeline.gap)
		for (struct tenant *tenant = tenants->names; tenant; tenant = tenant->hh.next)
			tenant->counters_at_birth = *counters; /* of an earlier life */
	tenants->counters = *counters;
	tenants->counters_ns = now_ns;
	for (struct tenant *tenant = tenants->names; tenant; tenant = tenant->hh.next)
		tenant_feed_counters(tenants, tenant, now_ns);
}

/* Bytes that no tenant knows of may have been anybody's. After a gap some are those of an earlier life, as was said. */
static void compare_bytes(struct tenants *tenants)
{
	uint64_t bytes = tenants->gone_bytes;
	struct tenant *tenant;

	if (tenants->pipeline.gap)
		return;
	DL_FOREACH(tenants->list, tenant)
		bytes += tenant->counters.value[WIRE_COUNTER_ACCEPTED_BYTES];
	if (bytes == tenants->counters.value[WIRE_COUNTER_ACCEPTED_BYTES])
		return;
	for (tenant = tenants->names; tenant; tenant = tenant->hh.next)
		pipeline_note_gap(tenant->pipeline, BYTES_OF_NOBODY);
}

static void close_all(struct tenants *tenants, const struct closing *closing, uint64_t now_ns)
{
	expire(tenants, now_ns, true);
	if (tenants->options.split != TENANT_SPLIT_NONE && !closing->counters_unread)
		compare_bytes(tenants);
	while (tenants->names)
		end_tenant(tenants, tenants->names, closing, now_ns);
}

static void feed_split(struct tenants *tenants, const struct input *input)
{
	switch (input->kind) {
	case INPUT_WIRE:
		feed_wire(tenants, input);
		break;
	case INPUT_CGROUP:
		lost(tenants, tenant_cgroups_learn(&tenants->cgroups, input->cgroup.id, input->cgroup.path));
		break;
	case INPUT_TICK:
		tenants->wall_offset_ns = input->tick.wall_offset_ns;
		expire(tenants, input->now_ns, false);
		feed_all(tenants, input);
		retire_idle(tenants, input->now_ns);
		break;
	case INPUT_DRAIN:
		expire(tenants, input->now_ns, true);
		feed_all(tenants, input);
		tenant_flows_done(&tenants->flows); /* every connection is over, as in connections.c */
		break;
	default:
		feed_all(tenants, input);
		break;
	}
}

/* The kernel's sums are also of what an earlier life has read: here those of this one are found flow by flow. */
static void count_after_gap(struct tenants *tenants, const struct wire_event *event)
{
	struct tenant_flow *flow;

	if (!event->flow)
		return;
	flow = tenant_flows_find(&tenants->flows, event);
	if (!flow) {
		lost(tenants, -ENOMEM);
		return;
	}
	tenant_flow_count(flow, event, &tenants->list->counters);
	tenant_flows_settle(&tenants->flows, flow, event);
}

static void feed_only(struct tenants *tenants, const struct input *input)
{
	if (tenants->pipeline.gap && input->kind == INPUT_WIRE)
		count_after_gap(tenants, input->wire.event);
	feed_all(tenants, input);
}

int tenants_feed(struct tenants *tenants, const struct input *input)
{
	tenants->tenant_lost = false;
	if (input->kind == INPUT_PAST)
		return -EINVAL;
	if (input->kind == INPUT_COUNTERS)
		feed_counters(tenants, &input->counters, input->now_ns);
	else if (input->kind == INPUT_CLOSING)
		close_all(tenants, &input->closing, input->now_ns);
	else if (tenants->options.split == TENANT_SPLIT_NONE)
		feed_only(tenants, input);
	else
		feed_split(tenants, input);
	return tenants->memory_lost || tenants->tenant_lost ? -ENOMEM : 0;
}
