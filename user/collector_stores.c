/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The account books of the tenants, where they were asked for: earlier calls come out
 * of them when a tenant is born, those of now go into them (stores.h).
 */
#include "collector_parts.h"
#include "clock.h"
#include "store_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define ROOT "" /* the directory of the stores is this process's root by now */
#define SETTLE_MS 5000			   /* longest wait for the stores at the end */
#define PAST_NS (24 * 3600 * 1000000000LL) /* attempts of earlier runs that count; design: across processes */
#define PAST_MAX 5000			   /* the newest of them: nothing is drained meanwhile */

int collector_open_stores(struct collector *collector)
{
	struct stores_options options = {.directory = ROOT, .ttl_ns = collector->options->ttl_ns};
	char reason[STORE_REASON_MAX];

	if (collector->options->stores_fd < 0)
		return 0;
	if (store_salt(ROOT "/", &(struct output_owner){(uid_t)-1, (gid_t)-1}, collector->facts.salt, reason))
		fprintf(stderr, "nightclerk: in the directory of the stores: %s; principals do not match those of other runs, continuing\n",
			reason);
	hex_of(collector->facts.boot_id, sizeof(collector->facts.boot_id), options.boot);
	return stores_new(&options, &collector->stores);
}

/* ---- the tenants' lives ---- */

struct feeding {
	struct tenant *tenant;
	int64_t wall_offset_ns;
	int err;
};

static void feed_past(void *context, const struct past_attempt *stored)
{
	struct feeding *feeding = context;
	struct past_attempt past = *stored;

	if (past.complete_ns == 0 && past.first_ns < feeding->wall_offset_ns) /* a process of an earlier boot is gone */
		past.flags |= PAST_OWNER_GONE;
	if (tenant_feed_past(feeding->tenant, &past))
		feeding->err = -ENOMEM;
}

static void load_past(struct collector *collector, struct tenant *tenant, struct stored *stored)
{
	int64_t wall_ns = clock_wall_ns();
	struct feeding feeding = {tenant, wall_ns - (int64_t)clock_monotonic_ns(), 0};
	char reason[STORE_REASON_MAX];
	int err = stores_past_attempts(collector->stores, stored, wall_ns - PAST_NS, PAST_MAX, feed_past, &feeding, reason);

	if (err || feeding.err)
		fprintf(stderr, "nightclerk: the store of %s: %s; calls of earlier runs do not count, continuing\n", tenant_name(tenant),
			err ? reason : "out of memory");
}

void collector_tenant_born(void *context, struct tenant *tenant)
{
	struct collector *collector = context;
	struct run_facts facts = collector->facts;
	struct store_run run;
	struct stored *stored;

	if (!collector->stores)
		return;
	snprintf(facts.run_id, sizeof(facts.run_id), "%s", tenant_run_id(tenant));
	store_run_of(&facts, &collector->options->pipeline.judge, collector->options->lease_ns, &run);
	stored = stores_add(collector->stores, tenant_name(tenant), &run);
	tenant_attach(tenant, stored);
	if (stored)
		load_past(collector, tenant, stored);
}

void collector_tenant_ending(void *context, const struct tenant *tenant, struct closing *closing)
{
	struct collector *collector = context;
	struct stored_counts counts = collector_stored(collector, tenant);

	closing->has_store = collector->stores != NULL;
	closing->store_rows = counts.rows;
	closing->store_lost = counts.lost;
}

/* ---- writing ---- */

/* Of a tenant without a place for them, which memory was short for. */
static void lose(struct collector *collector, struct buffer *bookings)
{
	collector->unstored_rows += bookings_rows(bookings);
	bookings_clear(bookings);
}

void collector_store(struct collector *collector, struct tenant *tenant)
{
	struct stored *stored = tenant_attached(tenant);
	struct buffer *bookings = &tenant_output(tenant)->bookings;
	char text[STORE_REASON_MAX];

	if (!collector->stores)
		return;
	if (!stored) {
		lose(collector, bookings);
		return;
	}
	stores_put(collector->stores, stored, bookings);
	if (stores_notice(collector->stores, stored, text))
		fprintf(stderr, "nightclerk: the store of %s: %s\n", tenant_name(tenant), text);
}

void collector_leave_store(struct collector *collector, struct tenant *tenant)
{
	struct stored *stored = tenant_attached(tenant);

	if (!stored)
		return;
	collector->unstored_rows += stores_counts(collector->stores, stored).lost;
	stores_leave(collector->stores, stored);
	tenant_attach(tenant, NULL);
}

struct stored_counts collector_stored(struct collector *collector, const struct tenant *tenant)
{
	struct stored *stored = tenant_attached(tenant);

	return stored ? stores_counts(collector->stores, stored) : (struct stored_counts){0};
}

void collector_settle_stores(struct collector *collector)
{
	if (collector->stores)
		stores_settle(collector->stores, SETTLE_MS);
}

void collector_close_stores(struct collector *collector)
{
	stores_free(collector->stores);
	collector->stores = NULL;
	if (collector->unstored_rows)
		fprintf(stderr, "nightclerk: %llu row%s missing in the stores\n", (unsigned long long)collector->unstored_rows,
			collector->unstored_rows == 1 ? " is" : "s are");
}
