/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of many stores, and the thread that empties them by turns. */
#include "stores_private.h"
#include "clock.h"
#include "thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <utlist.h>

#define RETRY_NS (1000 * 1000 * 1000ULL) /* of what may be over soon */
#define HOPELESS_NS (60 * 1000 * 1000 * 1000ULL)
#define LOOK_NS (60 * 1000 * 1000 * 1000ULL) /* for stores that are due to be swept */

/* ---- the thread; `lock` is held but while a file is written ---- */

static void turn_to_files(struct stores *stores)
{
	pthread_mutex_unlock(&stores->lock);
	pthread_mutex_lock(&stores->files);
}

static void turn_to_queues(struct stores *stores)
{
	pthread_mutex_unlock(&stores->files);
	pthread_mutex_lock(&stores->lock);
}

static void lose(struct stored *stored, struct buffer *bookings)
{
	stored->counts.lost += bookings_rows(bookings);
	bookings_clear(bookings);
}

/* What will not go away by itself: rows would wait for nothing. */
static bool is_hopeless(int err)
{
	return err == -EINVAL || err == -EBADMSG || err == -EPROTONOSUPPORT;
}

static bool has_batch(const struct stored *stored)
{
	return stored->has_calls && (stored->queue.size || stored->batch.size);
}

static bool is_due(const struct stores *stores, const struct stored *stored, uint64_t now_ns)
{
	return has_batch(stored) && (stores->give_up || stores->over || stored->retry_ns <= now_ns);
}

static void take_result(struct stores *stores, struct stored *stored, size_t bytes, int err, uint64_t rows, const char *reason)
{
	bool lost = is_hopeless(err) || stores->give_up || stores->over;

	stored->err = err;
	stored->retry_ns = 0;
	if (!err) {
		stored->counts.rows += rows;
		stores->waiting_bytes -= bytes;
		return;
	}
	snprintf(stored->reason, sizeof(stored->reason), "%s", reason);
	if (err != -EINVAL) /* there it is the row */
		stored->retry_ns = clock_monotonic_ns() + (is_hopeless(err) ? HOPELESS_NS : RETRY_NS);
	if (lost) {
		lose(stored, &stored->batch);
		stores->waiting_bytes -= bytes;
	}
}

static void write_batch(struct stores *stores, struct stored *stored)
{
	char reason[STORE_REASON_MAX] = "";
	uint64_t rows = 0;
	size_t bytes;
	int err;

	if (stored->batch.size == 0) {
		struct buffer empty = stored->batch;

		stored->batch = stored->queue;
		stored->queue = empty;
	}
	bytes = stored->batch.size;
	stored->busy = true;
	stored->run.rows_lost = stored->counts.lost != 0;

	turn_to_files(stores);
	err = stores_write_file(stores, stored, &rows, reason);
	if (!err && clock_wall_ns() >= stored->next_sweep_ns)
		stores_sweep_file(stores, stored);
	turn_to_queues(stores);

	stored->busy = false;
	take_result(stores, stored, bytes, err, rows, reason);
	DL_DELETE(stores->list, stored); /* its next turn comes after everybody's */
	DL_APPEND(stores->list, stored);
	pthread_cond_broadcast(&stores->progress);
}

static void free_stored(struct stored *stored)
{
	bookings_clear(&stored->queue);
	bookings_clear(&stored->batch);
	buffer_done(&stored->queue);
	buffer_done(&stored->batch);
	free(stored->path);
	free(stored);
}

static void forget(struct stores *stores, struct stored *stored)
{
	stores->waiting_bytes -= stored->queue.size + stored->batch.size; /* no call: a run alone is no row that anybody misses */
	DL_DELETE(stores->list, stored);
	turn_to_files(stores);
	stores_close_file(stores, stored);
	turn_to_queues(stores);
	free_stored(stored);
}

static void reopen_files(struct stores *stores)
{
	stores->reopen = false;
	turn_to_files(stores);
	stores_close_all(stores);
	turn_to_queues(stores);
}

/* One thing that is to be done now; false: there is none. *ret_until_ns: when there may be one. */
static bool do_one(struct stores *stores, uint64_t *ret_until_ns)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct stored *stored;

	if (stores->reopen) {
		reopen_files(stores);
		return true;
	}
	*ret_until_ns = now_ns + LOOK_NS;
	DL_FOREACH(stores->list, stored) {
		if (is_due(stores, stored, now_ns)) {
			write_batch(stores, stored);
			return true;
		}
		if (stored->left && !has_batch(stored)) {
			forget(stores, stored);
			return true;
		}
		if (has_batch(stored) && stored->retry_ns < *ret_until_ns)
			*ret_until_ns = stored->retry_ns;
	}
	return false;
}

/* One of them: pending calls of a tenant that is quiet end, too. */
static void sweep_those_that_rest(struct stores *stores)
{
	struct stored *stored;

	DL_FOREACH(stores->list, stored)
		if (stored->next_sweep_ns && stored->next_sweep_ns <= clock_wall_ns()) {
			stored->busy = true;
			turn_to_files(stores);
			stores_sweep_file(stores, stored);
			turn_to_queues(stores);
			stored->busy = false;
			pthread_cond_broadcast(&stores->progress);
			return;
		}
}

static void *write_all(void *argument)
{
	struct stores *stores = argument;
	uint64_t until_ns;

	prctl(PR_SET_NAME, "nc-stores");
	pthread_mutex_lock(&stores->lock);
	while (true) {
		struct timespec until;

		if (do_one(stores, &until_ns))
			continue;
		if (stores->over)
			break;
		sweep_those_that_rest(stores);
		until = thread_until(until_ns);
		if (!stores->reopen)
			pthread_cond_timedwait(&stores->work, &stores->lock, &until);
	}
	pthread_mutex_unlock(&stores->lock);
	return NULL;
}

/* ---- the caller ---- */

int stores_new(const struct stores_options *options, struct stores **ret_stores)
{
	struct stores *stores = calloc(1, sizeof(*stores));
	int err;

	if (!stores)
		return -ENOMEM;
	stores->options = *options;
	pthread_mutex_init(&stores->lock, NULL);
	pthread_mutex_init(&stores->files, NULL);
	thread_condition_init(&stores->work);
	thread_condition_init(&stores->progress);
	err = thread_start(&stores->thread, write_all, stores);
	if (err) {
		free(stores);
		return err;
	}
	*ret_stores = stores;
	return 0;
}

struct stored *stores_add(struct stores *stores, const char *name, const struct store_run *run)
{
	struct stored *stored = calloc(1, sizeof(*stored));

	if (!stored)
		return NULL;
	if (asprintf(&stored->path, "%s/%s.db", stores->options.directory, name) < 0) {
		free(stored);
		return NULL;
	}
	stored->run = *run;
	pthread_mutex_lock(&stores->lock);
	DL_APPEND(stores->list, stored);
	pthread_mutex_unlock(&stores->lock);
	return stored;
}

void stores_leave(struct stores *stores, struct stored *stored)
{
	pthread_mutex_lock(&stores->lock);
	stored->left = true;
	pthread_cond_signal(&stores->work);
	pthread_mutex_unlock(&stores->lock);
}

int stores_past_attempts(struct stores *stores, struct stored *stored, int64_t since_ns, size_t max,
			 void (*each)(void *context, const struct past_attempt *past), void *context, char *reason)
{
	int err;

	pthread_mutex_lock(&stores->files);
	err = stores_open_file(stores, stored, false, reason);
	if (!err) {
		err = store_past_attempts(stored->store, since_ns, max, each, context);
		if (err)
			snprintf(reason, STORE_REASON_MAX, "%s", store_reason(stored->store));
	}
	pthread_mutex_unlock(&stores->files);
	return err == -ENOENT ? 0 : err;
}

static bool tells_of_calls(const struct buffer *bookings)
{
	for (size_t i = 0; i < bookings_count(bookings); i++)
		if (bookings_at(bookings, i)->kind != BOOKING_RUN)
			return true;
	return false;
}

static void enqueue(struct stores *stores, struct stored *stored, struct buffer *bookings)
{
	size_t waits = stored->queue.size + stored->batch.size;
	size_t free_bytes = stores->waiting_bytes < STORES_WAITING_BYTES ? STORES_WAITING_BYTES - stores->waiting_bytes : 0;

	stored->has_calls |= tells_of_calls(bookings);
	if (is_hopeless(stored->err) && stored->retry_ns > clock_monotonic_ns()) {
		lose(stored, bookings);
		return;
	}
	if (waits + bookings->size > free_bytes || buffer_append(&stored->queue, buffer_bytes(bookings))) {
		lose(stored, bookings);
		return;
	}
	stores->waiting_bytes += bookings->size;
	buffer_clear(bookings); /* what they own went with them */
	pthread_cond_signal(&stores->work);
}

void stores_put(struct stores *stores, struct stored *stored, struct buffer *bookings)
{
	if (bookings->size == 0)
		return;
	pthread_mutex_lock(&stores->lock);
	enqueue(stores, stored, bookings);
	pthread_mutex_unlock(&stores->lock);
}

void stores_reopen(struct stores *stores)
{
	struct stored *stored;

	pthread_mutex_lock(&stores->lock);
	DL_FOREACH(stores->list, stored)
		stored->retry_ns = 0;
	stores->reopen = true;
	pthread_cond_signal(&stores->work);
	pthread_mutex_unlock(&stores->lock);
}

bool stores_notice(struct stores *stores, struct stored *stored, char *text)
{
	bool news;

	pthread_mutex_lock(&stores->lock);
	news = !stored->err != !stored->said_err;
	stored->said_err = stored->err;
	if (news && stored->err)
		snprintf(text, STORE_REASON_MAX, "%.400s; its rows are %s, continuing", stored->reason,
			 is_hopeless(stored->err) ? "lost, and counted" : "kept in memory and tried again");
	else if (news)
		snprintf(text, STORE_REASON_MAX, "%.400s can be written again", stored->path);
	pthread_mutex_unlock(&stores->lock);
	return news;
}

struct stored_counts stores_counts(struct stores *stores, const struct stored *stored)
{
	struct stored_counts counts;

	pthread_mutex_lock(&stores->lock);
	counts = stored->counts;
	pthread_mutex_unlock(&stores->lock);
	return counts;
}

static bool is_idle(const struct stored *stored)
{
	return !stored->busy && !has_batch(stored);
}

bool stores_is_idle(struct stores *stores, const struct stored *stored)
{
	bool idle;

	pthread_mutex_lock(&stores->lock);
	idle = is_idle(stored);
	pthread_mutex_unlock(&stores->lock);
	return idle;
}

static bool all_are_idle(const struct stores *stores)
{
	const struct stored *stored;

	DL_FOREACH(stores->list, stored)
		if (!is_idle(stored))
			return false;
	return true;
}

void stores_settle(struct stores *stores, int wait_ms)
{
	struct timespec until = thread_until(clock_monotonic_ns() + (uint64_t)wait_ms * 1000000);

	pthread_mutex_lock(&stores->lock);
	while (!all_are_idle(stores) && pthread_cond_timedwait(&stores->progress, &stores->lock, &until) != ETIMEDOUT)
		;
	stores->give_up = true; /* each batch gets one more try */
	pthread_cond_signal(&stores->work);
	while (!all_are_idle(stores))
		pthread_cond_wait(&stores->progress, &stores->lock);
	stores->give_up = false;
	pthread_mutex_unlock(&stores->lock);
}

void stores_free(struct stores *stores)
{
	struct stored *stored, *next;

	if (!stores)
		return;
	stores_settle(stores, 0);
	pthread_mutex_lock(&stores->lock);
	stores->over = true;
	pthread_cond_signal(&stores->work);
	pthread_mutex_unlock(&stores->lock);
	pthread_join(stores->thread, NULL);
	stores_close_all(stores);
	DL_FOREACH_SAFE(stores->list, stored, next)
		free_stored(stored);
	pthread_mutex_destroy(&stores->lock);
	pthread_mutex_destroy(&stores->files);
	pthread_cond_destroy(&stores->work);
	pthread_cond_destroy(&stores->progress);
	free(stores);
}
