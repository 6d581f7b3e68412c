/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two buffers: the queue, which the caller fills under the lock, and the batch,
 * which the thread writes without it. Whatever came while a batch was being
 * written is the next batch, so the size of a transaction follows the load.
 */
#include "store_writer.h"
#include "clock.h"
#include "process.h"
#include "thread.h"

#include <errno.h>
#include <sys/prctl.h>

#define QUEUE_BYTES (64 * 1024 * 1024)
#define BATCH_KEPT_BYTES (32 * 1024 * 1024) /* its pages need not be made anew for the next one */
#define RETRY_MS 100
#define PATIENCE_MS 30000 /* longest wait of a replay for room */
#define SWEEP_NS (3600 * 1000000000LL)

struct store_writer {
	struct store_writer_options options;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;	/* the queue holds something, or it is over */
	pthread_cond_t progress; /* a batch was written, or given up */
	struct buffer queue;
	struct buffer batch; /* the thread's own while busy */
	bool busy;
	bool give_up; /* what cannot be written at once is lost */
	bool over;
	bool noticed;
	struct store_counts counts;
	int64_t next_sweep_ns;
};

static struct timespec monotonic_after(int ms)
{
	return thread_until(clock_monotonic_ns() + (uint64_t)ms * 1000000);
}

/* ---- the thread ---- */

static void lose(struct store_writer *writer, struct buffer *bookings)
{
	writer->counts.lost += bookings_rows(bookings);
	bookings_clear(bookings);
}

/* What will not go away by itself is not tried again: it would hold up all that follows. */
static bool is_hopeless(int err)
{
	return err == -EINVAL || err == -EBADMSG;
}

/* Under the lock: what was written into a file that is gone is lost as well. */
static void look_for_the_file(struct store_writer *writer)
{
	struct store_counts *counts = &writer->counts;

	if (counts->rows == 0 || !store_has_moved(writer->options.store))
		return;
	counts->lost += counts->rows;
	counts->rows = 0;
	snprintf(counts->reason, sizeof(counts->reason),
		 "its file was removed, renamed or replaced while it was in use; leave it where it is until the run ends");
}

/* Under the lock. True when the batch is done with. */
static bool take_result(struct store_writer *writer, int err, uint64_t rows)
{
	if (!err) {
		writer->counts.rows += rows;
		look_for_the_file(writer);
		return true;
	}
	snprintf(writer->counts.reason, sizeof(writer->counts.reason), "%s", store_reason(writer->options.store));
	if (!is_hopeless(err) && !writer->give_up)
		return false;
	lose(writer, &writer->batch);
	return true;
}

static void sweep_now_and_then(struct store_writer *writer)
{
	struct store_world world;
	struct store_swept swept;

	if (clock_wall_ns() < writer->next_sweep_ns)
		return;
	process_world(&world);
	writer->next_sweep_ns = world.now_ns + SWEEP_NS;
	store_sweep(writer->options.store, &world, writer->options.ttl_ns, &swept); /* else an hour later */
}

/* The lock is held but while it writes. */
static void write_batch(struct store_writer *writer)
{
	uint64_t rows = 0;
	struct timespec retry;
	int err;

	writer->options.run.rows_lost = writer->counts.lost != 0;
	pthread_mutex_unlock(&writer->lock);
	err = store_book(writer->options.store, &writer->options.run, &writer->batch, &rows);
	pthread_mutex_lock(&writer->lock);
	if (!take_result(writer, err, rows)) {
		retry = monotonic_after(RETRY_MS);
		pthread_cond_timedwait(&writer->work, &writer->lock, &retry);
		return;
	}
	if (writer->batch.capacity > BATCH_KEPT_BYTES)
		buffer_done(&writer->batch);
	pthread_cond_broadcast(&writer->progress);
}

static void *write_batches(void *argument)
{
	struct store_writer *writer = argument;

	prctl(PR_SET_NAME, "nc-store");
	sweep_now_and_then(writer);
	pthread_mutex_lock(&writer->lock);
	while (!writer->over || writer->queue.size || writer->batch.size) {
		if (writer->batch.size == 0 && writer->queue.size) {
			struct buffer empty = writer->batch;

			writer->batch = writer->queue;
			writer->queue = empty;
		}
		writer->busy = writer->batch.size != 0;
		if (writer->busy) {
			write_batch(writer);
			writer->busy = writer->batch.size != 0;
			continue;
		}
		pthread_cond_broadcast(&writer->progress);
		pthread_cond_wait(&writer->work, &writer->lock);
		if (!writer->over) {
			pthread_mutex_unlock(&writer->lock);
			sweep_now_and_then(writer);
			pthread_mutex_lock(&writer->lock);
		}
	}
	pthread_mutex_unlock(&writer->lock);
	return NULL;
}

/* ---- the caller ---- */

void store_run_of(const struct run_facts *facts, const struct judge_options *judge, int64_t lease_ns,
		  struct store_run *ret_run)
{
	struct store_run run = {.lease_ns = lease_ns};

	memcpy(run.id, facts->run_id, sizeof(run.id));
	memcpy(run.boot_id, facts->boot_id, sizeof(run.boot_id));
	memcpy(run.schema_version, judge->schema_version, sizeof(run.schema_version));
	*ret_run = run;
}

int store_writer_new(const struct store_writer_options *options, struct store_writer **ret_writer)
{
	struct store_writer *writer = calloc(1, sizeof(*writer));
	int err = 0;

	if (!writer) {
		store_close(options->store);
		return -ENOMEM;
	}
	writer->options = *options;
	pthread_mutex_init(&writer->lock, NULL);
	thread_condition_init(&writer->work);
	thread_condition_init(&writer->progress);
	if (options->store)
		err = thread_start(&writer->thread, write_batches, writer);
	if (err) {
		store_close(options->store);
		free(writer);
		return err;
	}
	*ret_writer = writer;
	return 0;
}

static void enqueue(struct store_writer *writer, struct buffer *bookings)
{
	struct buffer empty;

	if (writer->queue.size == 0) {
		empty = writer->queue;
		writer->queue = *bookings;
		*bookings = empty;
	} else if (buffer_append(&writer->queue, buffer_bytes(bookings))) {
		lose(writer, bookings);
		return;
	}
	buffer_clear(bookings); /* what they own went with them */
	pthread_cond_signal(&writer->work);
}

/* A queue that is empty takes anything, and takes it over without a copy: that is what the patient wait for. */
static bool has_room(const struct store_writer *writer, size_t bytes, size_t limit)
{
	return writer->queue.size == 0 || writer->queue.size + bytes <= limit;
}

void store_writer_put(struct store_writer *writer, struct buffer *bookings, bool patient)
{
	struct timespec until = monotonic_after(PATIENCE_MS);

	if (bookings->size == 0)
		return;
	pthread_mutex_lock(&writer->lock);
	while (patient && writer->options.store && !has_room(writer, bookings->size, 0) &&
	       pthread_cond_timedwait(&writer->progress, &writer->lock, &until) != ETIMEDOUT)
		;
	if (!writer->options.store || !has_room(writer, bookings->size, QUEUE_BYTES))
		lose(writer, bookings);
	else
		enqueue(writer, bookings);
	pthread_mutex_unlock(&writer->lock);
}

bool store_writer_notice(struct store_writer *writer, char *text)
{
	bool news;

	pthread_mutex_lock(&writer->lock);
	news = writer->counts.reason[0] && !writer->noticed;
	if (news) {
		writer->noticed = true;
		snprintf(text, STORE_REASON_MAX, "%.*s", STORE_REASON_MAX - 1, writer->counts.reason);
	}
	pthread_mutex_unlock(&writer->lock);
	return news;
}

uint64_t store_writer_lost(struct store_writer *writer)
{
	uint64_t lost;

	pthread_mutex_lock(&writer->lock);
	lost = writer->counts.lost;
	pthread_mutex_unlock(&writer->lock);
	return lost;
}

static bool is_idle(const struct store_writer *writer)
{
	return !writer->busy && writer->queue.size == 0;
}

bool store_writer_is_idle(struct store_writer *writer)
{
	bool idle;

	pthread_mutex_lock(&writer->lock);
	idle = is_idle(writer);
	pthread_mutex_unlock(&writer->lock);
	return idle;
}

void store_writer_settle(struct store_writer *writer, int wait_ms, struct store_counts *ret_counts)
{
	struct timespec until = monotonic_after(wait_ms);
	bool patient = writer->options.store != NULL;

	pthread_mutex_lock(&writer->lock);
	while (patient && !is_idle(writer) &&
	       pthread_cond_timedwait(&writer->progress, &writer->lock, &until) != ETIMEDOUT)
		;
	writer->give_up = true;
	pthread_cond_signal(&writer->work);
	while (patient && !is_idle(writer)) /* each batch gets one more try */
		pthread_cond_wait(&writer->progress, &writer->lock);
	writer->give_up = false;
	if (writer->options.store)
		look_for_the_file(writer);
	*ret_counts = writer->counts;
	pthread_mutex_unlock(&writer->lock);
}

void store_writer_free(struct store_writer *writer)
{
	struct store_counts ignored;

	if (!writer)
		return;
	store_writer_settle(writer, 0, &ignored);
	pthread_mutex_lock(&writer->lock);
	writer->over = true;
	pthread_cond_signal(&writer->work);
	pthread_mutex_unlock(&writer->lock);
	if (writer->options.store) {
		pthread_join(writer->thread, NULL);
		store_tidy(writer->options.store);
	}
	store_close(writer->options.store);
	bookings_clear(&writer->queue);
	buffer_done(&writer->queue);
	buffer_done(&writer->batch);
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->work);
	pthread_cond_destroy(&writer->progress);
	free(writer);
}
