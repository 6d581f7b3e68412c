/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The thread that writes the store: what it is given is in the file, or it is
 * counted as lost, and a lock that somebody else holds costs nothing but time.
 */
#include "store_build.h"
#include "store_writer.h"

struct writing {
	struct fixture *f;
	struct store_writer *writer;
	struct store_counts counts;
};

static struct writing start_with(void **state, bool with_store, int busy_ms, int64_t ttl_ns)
{
	struct writing w = {.f = *state};
	struct store_options how = {.path = w.f->path, .owner = NOBODY_ELSE, .create = true, .busy_ms = busy_ms};
	struct store_writer_options options = {.run = w.f->run, .ttl_ns = ttl_ns};
	char reason[STORE_REASON_MAX];

	if (with_store && store_open(&how, &options.store, reason))
		fail_msg("%s", reason);
	assert_int_equal(store_writer_new(&options, &w.writer), 0);
	return w;
}

static struct writing start(void **state, bool with_store, int busy_ms)
{
	return start_with(state, with_store, busy_ms, 0);
}

static void put(struct writing *w, unsigned int n)
{
	add_ended(w->f, n, n, OUTCOME_ANSWERED, 200, 1, 1);
	store_writer_put(w->writer, &w->f->bookings, false);
	assert_int_equal(w->f->bookings.size, 0);
}

static void settle(struct writing *w, int wait_ms, uint64_t rows, uint64_t lost)
{
	store_writer_settle(w->writer, wait_ms, &w->counts);
	assert_int_equal(w->counts.rows, rows);
	assert_int_equal(w->counts.lost, lost);
}

/* Another program begins to write and does not end. */
static sqlite3 *lock(struct fixture *f)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000); /* the writer may still be at what it does when it starts */
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void what_is_put_is_in_the_file_when_it_has_settled(void **state)
{
	struct writing w = start(state, true, 0);

	for (unsigned int n = 1; n <= 100; n++)
		put(&w, n);
	settle(&w, 60000, 100, 0);
	assert_string_equal(ask(w.f, THE_SUM), "done|100|200");
	put(&w, 101);
	settle(&w, 60000, 101, 0);
	assert_string_equal(ask(w.f, THE_SUM), "done|101|202");
	store_writer_free(w.writer);
}

static void without_a_store_everything_is_lost_and_counted(void **state)
{
	struct writing w = start(state, false, 0);
	char notice[STORE_REASON_MAX];

	put(&w, 1);
	put(&w, 2);
	assert_int_equal(store_writer_lost(w.writer), 2);
	settle(&w, 60000, 0, 2);
	assert_false(store_writer_notice(w.writer, notice));
	store_writer_free(w.writer);
}

static void what_waits_for_a_lock_is_written_when_it_is_free(void **state)
{
	struct writing w = start(state, true, 1);
	sqlite3 *other = lock(w.f);
	char notice[STORE_REASON_MAX], want[STORE_REASON_MAX];

	put(&w, 1);
	while (!store_writer_notice(w.writer, notice))
		usleep(1000);
	snprintf(want, sizeof(want),
		 "cannot write to %s: database is locked; another program holds its lock: end that program's transaction", w.f->path);
	assert_string_equal(notice, want);
	assert_false(store_writer_notice(w.writer, notice));
	put(&w, 2);
	sqlite3_close(other);
	settle(&w, 60000, 2, 0);
	assert_string_equal(ask(w.f, THE_SUM), "done|2|4");
	store_writer_free(w.writer);
}

static void what_is_still_waiting_at_the_end_is_lost(void **state)
{
	struct writing w = start(state, true, 1);
	sqlite3 *other = lock(w.f);

	put(&w, 1);
	put(&w, 2);
	settle(&w, 0, 0, 2);
	sqlite3_close(other);
	put(&w, 3);
	settle(&w, 60000, 1, 2);
	assert_string_equal(ask(w.f, THE_SUM), "done|1|2");
	store_writer_free(w.writer);
}

static void a_row_that_is_refused_holds_nothing_up(void **state)
{
	struct writing w = start(state, true, 0);
	char notice[STORE_REASON_MAX];

	ask(w.f, "CREATE TRIGGER no BEFORE INSERT ON attempts WHEN NEW.id LIKE '07%' BEGIN SELECT raise(ABORT, 'no'); END");
	put(&w, 7);
	settle(&w, 60000, 0, 1);
	assert_true(store_writer_notice(w.writer, notice));
	put(&w, 8);
	settle(&w, 60000, 1, 1);
	store_writer_free(w.writer);
}

static void what_is_written_into_a_file_that_is_gone_is_lost(void **state)
{
	struct writing w = start(state, true, 0);

	put(&w, 1);
	put(&w, 2);
	settle(&w, 60000, 2, 0);
	unlink(w.f->path);
	settle(&w, 60000, 0, 2);
	assert_string_equal(w.counts.reason, "its file was removed, renamed or replaced while it was in use; leave it where it is "
					     "until the run ends");
	put(&w, 3);
	settle(&w, 60000, 0, 3);
	store_writer_free(w.writer);
}

static void end_run(struct writing *w)
{
	struct booked_run run = {.started_ns = 1000 * SECOND, .ended_ns = 1001 * SECOND};

	assert_int_equal(book_run(&run, &w->f->bookings), 0);
	store_writer_put(w->writer, &w->f->bookings, false);
}

static void a_run_that_lost_rows_has_no_end_in_the_store(void **state)
{
	struct writing w = start(state, true, 0);

	end_run(&w);
	settle(&w, 60000, 1, 0);
	assert_string_equal(ask(w.f, "SELECT ended_at FROM runs"), "1001.0");
	ask(w.f, "DELETE FROM runs");
	ask(w.f, "CREATE TRIGGER no BEFORE INSERT ON attempts BEGIN SELECT raise(ABORT, 'no'); END");
	put(&w, 7);
	settle(&w, 60000, 1, 1);
	end_run(&w);
	settle(&w, 60000, 2, 1);
	assert_string_equal(ask(w.f, "SELECT started_at, ended_at FROM runs"), "1000.0|");
	store_writer_free(w.writer);
}

static void what_was_left_is_marked_and_what_is_old_removed_when_it_starts(void **state)
{
	struct writing w;
	struct fixture *f = *state;

	book_open(f, 1, 1); /* of 1970, with a lease of 900 s */
	w = start(state, true, 0);
	store_writer_free(w.writer);
	assert_string_equal(ask(f, "SELECT status, reason FROM calls"), "abandoned|owner_exited");
	ask(f, "UPDATE calls SET updated_at = created_at");
	w = start_with(state, true, 0, SECOND);
	store_writer_free(w.writer);
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM calls"), "0");
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM attempts"), "0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(what_is_put_is_in_the_file_when_it_has_settled),
		FIXTURE_TEST(without_a_store_everything_is_lost_and_counted),
		FIXTURE_TEST(what_waits_for_a_lock_is_written_when_it_is_free),
		FIXTURE_TEST(what_is_still_waiting_at_the_end_is_lost),
		FIXTURE_TEST(what_is_written_into_a_file_that_is_gone_is_lost),
		FIXTURE_TEST(a_run_that_lost_rows_has_no_end_in_the_store),
		FIXTURE_TEST(a_row_that_is_refused_holds_nothing_up),
		FIXTURE_TEST(what_was_left_is_marked_and_what_is_old_removed_when_it_starts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
