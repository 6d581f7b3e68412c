/* SPDX-License-Identifier: BSD-2-Clause */
/* One tenant: a pipeline with facts, output and counters of its own. */
#include "tenants_private.h"

#include <errno.h>

/* The run that it would be with the others', made its own. */
static int make_run_id(struct tenant *tenant, const struct tenants *tenants, uint64_t born_ns)
{
	struct digest_state *state = digest_state_new();
	struct digest digest;
	int err = state ? digest_start(state) : -ENOMEM;

	if (!err)
		err = digest_add_field(state, bytes_of_string(tenants->options.run->run_id));
	if (!err)
		err = digest_add_field(state, bytes_of_string(tenant->name.text));
	if (!err)
		err = digest_add_number(state, born_ns);
	if (!err)
		err = digest_finish(state, &digest);
	if (!err)
		hex_of(digest.byte, (sizeof(tenant->facts.run_id) - 1) / 2, tenant->facts.run_id);
	digest_state_free(state);
	return err;
}

static int make_facts(struct tenant *tenant, const struct tenants *tenants, uint64_t born_ns)
{
	tenant->facts = *tenants->options.run;
	if (tenants->options.split == TENANT_SPLIT_NONE)
		return 0;
	tenant->facts.wall_offset_ns = tenants->wall_offset_ns;
	tenant->facts.start_ns = born_ns;
	snprintf(tenant->facts.tenant, sizeof(tenant->facts.tenant), "%s", tenant->name.text);
	return make_run_id(tenant, tenants, born_ns);
}

/* A cgroup's tenant is a scope; where several share one, each cgroup is. */
static bool is_shared(const struct tenants *tenants, const struct tenant *tenant)
{
	return tenants->options.split != TENANT_SPLIT_CGROUP || strcmp(tenant->name.text, TENANT_NAME_OTHERS) == 0;
}

struct tenant *tenant_new(const struct tenants *tenants, const struct tenant_name *name, uint64_t born_ns)
{
	struct tenant *tenant = calloc(1, sizeof(*tenant));
	struct pipeline_options options = tenants->pipeline;

	if (!tenant)
		return NULL;
	tenant->name = *name;
	tenant->born_ns = tenant->last_ns = born_ns;
	tenant->counters_at_birth = tenants->counters;
	options.within_cgroups = is_shared(tenants, tenant);
	if (!make_facts(tenant, tenants, born_ns))
		tenant->pipeline = pipeline_new(&tenant->facts, &options, &tenant->output);
	if (tenant->pipeline)
		return tenant;
	tenant_free(tenant);
	return NULL;
}

void tenant_free(struct tenant *tenant)
{
	pipeline_free(tenant->pipeline);
	buffer_done(&tenant->output.ledger);
	buffer_done(&tenant->output.events);
	buffer_done(&tenant->output.alerts);
	buffer_done(&tenant->output.calls);
	buffer_done(&tenant->output.junit);
	buffer_done(&tenant->output.bookings);
	free(tenant);
}

/*
 * A tenant may hold as much as is free, and an equal share in any case: one that
 * holds all it can leaves as much again to the others.
 */
static size_t may_hold(const struct tenants *tenants)
{
	size_t share = LIMIT_TENANTS_CALLS_BYTES / (tenants->options.max + 1);

	return tenants->calls_bytes + share < LIMIT_TENANTS_CALLS_BYTES ? LIMIT_TENANTS_CALLS_BYTES - tenants->calls_bytes : share;
}

void tenant_feed(struct tenants *tenants, struct tenant *tenant, const struct input *input)
{
	struct call_memory *memory = pipeline_memory(tenant->pipeline);
	uint64_t flow;

	if (tenants->options.split != TENANT_SPLIT_NONE)
		memory->limit = may_hold(tenants);
	if (pipeline_feed(tenant->pipeline, input))
		tenants->tenant_lost = true;
	tenants->calls_bytes += memory->bytes - tenant->calls_bytes;
	tenant->calls_bytes = memory->bytes;
	/* One that cannot be noted is copied on: that costs time, and loses nothing. */
	while ((flow = pipeline_next_muted(tenant->pipeline)))
		(void)!buffer_append(&tenants->muted, (struct bytes){(const uint8_t *)&flow, sizeof(flow)});
}

static void refresh_counters(struct tenant *tenant, const struct counters *all)
{
	static const enum wire_counter everybodys[] = {WIRE_COUNTER_STALE_CALLS, WIRE_COUNTER_NO_FLOW,
						       WIRE_COUNTER_NO_CALL, WIRE_COUNTER_LIFECYCLE_LOST};
	const struct counters *before = &tenant->counters_at_birth;

	for (size_t i = 0; i < sizeof(everybodys) / sizeof(everybodys[0]); i++)
		tenant->counters.value[everybodys[i]] = all->value[everybodys[i]] - before->value[everybodys[i]];
	tenant->counters.recursion_misses = all->recursion_misses - before->recursion_misses;
}

void tenant_feed_counters(struct tenants *tenants, struct tenant *tenant, uint64_t now_ns)
{
	if (tenants->options.split == TENANT_SPLIT_NONE && !tenants->pipeline.gap)
		tenant->counters = tenants->counters;
	else
		refresh_counters(tenant, &tenants->counters);
	tenant_feed(tenants, tenant,
		    &(struct input){.kind = INPUT_COUNTERS, .now_ns = now_ns, .counters = tenant->counters});
}

/* ---- what is asked of one ---- */

const char *tenant_name(const struct tenant *tenant)
{
	return tenant->name.text;
}

const char *tenant_run_id(const struct tenant *tenant)
{
	return tenant->facts.run_id;
}

bool tenant_ended(const struct tenant *tenant)
{
	return tenant->ended;
}

struct pipeline_output *tenant_output(struct tenant *tenant)
{
	return &tenant->output;
}

const struct gate *tenant_gate(const struct tenant *tenant)
{
	return pipeline_gate(tenant->pipeline);
}

struct connection_totals tenant_totals(const struct tenant *tenant)
{
	return pipeline_totals(tenant->pipeline);
}

const struct counters *tenant_counters(const struct tenant *tenant)
{
	return &tenant->counters;
}

size_t tenant_open_calls(const struct tenant *tenant)
{
	return pipeline_open_calls(tenant->pipeline);
}

size_t tenant_memory(const struct tenant *tenant)
{
	return tenant->calls_bytes + pipeline_remembered_bytes(tenant->pipeline);
}

size_t tenant_connections(const struct tenant *tenant)
{
	return tenant->connections;
}

const struct summary *tenant_summary(const struct tenant *tenant)
{
	return pipeline_summary(tenant->pipeline);
}

void tenant_attach(struct tenant *tenant, void *attached)
{
	tenant->attached = attached;
}

void *tenant_attached(const struct tenant *tenant)
{
	return tenant->attached;
}

int tenant_feed_past(struct tenant *tenant, const struct past_attempt *past)
{
	return pipeline_feed(tenant->pipeline, &(struct input){.kind = INPUT_PAST, .now_ns = tenant->last_ns, .past = past});
}
