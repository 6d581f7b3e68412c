/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the observer does with the account book: earlier runs come out of it, the
 * rows of this one go into it.
 */
#include "observer_parts.h"
#include "process.h"

#define STORE_BUSY_MS 1000   /* then a batch is tried again */
#define STORE_SYNC_NS (1000 * 1000 * 1000ULL)
#define STORE_SETTLE_MS 5000 /* longest wait for the store at the end */
#define PAST_NS (24 * 3600 * 1000000000LL) /* attempts of earlier runs that count; design: across processes */
#define PAST_MAX 20000			   /* the newest of them */

/* Without one the run goes on: what it would have written is counted as lost. */
void observer_open_store(struct observer *observer)
{
	const struct observer_options *options = &observer->options;
	struct store_options how = {
		.path = options->db, .owner = options->owner, .create = true, .busy_ms = STORE_BUSY_MS};
	char reason[STORE_REASON_MAX];

	if (!options->db)
		return;
	if (store_open(&how, &observer->store, reason)) {
		fprintf(stderr, "nightclerk: %s; the run goes on, its rows are counted as lost\n", reason);
		return;
	}
	if (store_salt(options->db, &options->owner, observer->facts.salt, reason))
		fprintf(stderr, "nightclerk: %s; principals do not match those of other runs, continuing\n", reason);
}

static void feed_past(void *context, const struct past_attempt *stored)
{
	struct observer *observer = context;
	struct past_attempt past = *stored;
	struct input input = {.kind = INPUT_PAST, .now_ns = observer->facts.start_ns, .past = &past};

	/* A process of an earlier boot is gone; pid and start would say nothing of it. */
	if (past.complete_ns == 0 &&
	    (past.first_ns < observer->wall_offset_ns || process_is_gone(past.tgid, past.process_start_ns)))
		past.flags |= PAST_OWNER_GONE;
	observer_feed(observer, &input);
}

/* What earlier runs left in the store goes through the same door as everything else, so a recording has it. */
void observer_load_past(struct observer *observer)
{
	int64_t since_ns = (int64_t)observer->facts.start_ns + observer->wall_offset_ns - PAST_NS;

	if (observer->store && store_past_attempts(observer->store, since_ns, PAST_MAX, feed_past, observer))
		fprintf(stderr, "nightclerk: %s; attempts of earlier runs do not count, continuing\n",
			store_reason(observer->store));
}

int observer_start_store_writer(struct observer *observer, char *reason)
{
	struct store_writer_options writer = {
		.store = observer->store,
		.ttl_ns = observer->options.ttl_ns,
	};
	int err;

	if (!observer->options.db)
		return 0;
	store_run_of(&observer->facts, &observer->options.pipeline.judge, observer->options.lease_ns, &writer.run);
	observer->store = NULL;
	err = store_writer_new(&writer, &observer->store_writer);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot start the thread that writes the store: %s", strerror(-err));
	return err;
}

void observer_write_store(struct observer *observer)
{
	char reason[STORE_REASON_MAX];

	if (!observer->store_writer)
		return;
	store_writer_put(observer->store_writer, &observer->out.bookings, false);
	if (store_writer_notice(observer->store_writer, reason))
		fprintf(stderr, "nightclerk: %s; rows are kept in memory and tried again, continuing\n", reason);
}

/* Everything up to here is in the store, or it is counted as lost. */
void observer_settle_store(struct observer *observer, struct closing *closing)
{
	struct store_counts counts;

	if (!observer->store_writer)
		return;
	observer_write_store(observer);
	store_writer_settle(observer->store_writer, STORE_SETTLE_MS, &counts);
	closing->has_store = true;
	closing->store_rows = counts.rows;
	closing->store_lost = counts.lost;
}

/* A sync is about the store as well, but does not wait for a lock that somebody else holds for long. */
bool observer_store_has_all(struct observer *observer, uint64_t now_ns)
{
	const struct waiting_request *first = &observer->waiting[0];

	if (!observer->store_writer || first->request.verb != CONTROL_SYNC || now_ns > first->asked_ns + STORE_SYNC_NS)
		return true;
	observer_write_store(observer);
	return store_writer_is_idle(observer->store_writer);
}

/* After the last booking. */
void observer_close_store(struct observer *observer)
{
	struct store_counts counts;

	if (!observer->store_writer)
		return;
	store_writer_settle(observer->store_writer, STORE_SETTLE_MS, &counts);
	if (counts.lost)
		fprintf(stderr, "nightclerk: %llu row%s missing in the store %s%s%s\n", (unsigned long long)counts.lost,
			counts.lost == 1 ? " is" : "s are", observer->options.db, counts.reason[0] ? ": " : "",
			counts.reason);
	store_writer_free(observer->store_writer);
	observer->store_writer = NULL;
}

uint64_t observer_store_lost(const struct observer *observer)
{
	return observer->store_writer ? store_writer_lost(observer->store_writer) : 0;
}
