/* SPDX-License-Identifier: BSD-2-Clause */
/* Many stores and one thread: each has its own rows, and one that takes nothing holds up no other. */
#include "store_build.h"
#include "stores.h"

#define TENANTS (2 * STORES_OPEN_MAX)
#define PATIENT_MS 60000

struct playing {
	struct fixture *f;
	struct stores *stores;
};

static struct playing start(void **state)
{
	struct playing p = {.f = *state};
	const struct stores_options options = {.directory = p.f->directory};

	assert_int_equal(stores_new(&options, &p.stores), 0);
	return p;
}

static struct stored *add(struct playing *p, const char *name)
{
	struct stored *stored = stores_add(p->stores, name, &p->f->run);

	assert_non_null(stored);
	return stored;
}

static void put(struct playing *p, struct stored *stored, unsigned int n)
{
	add_ended(p->f, n, n, OUTCOME_ANSWERED, 200, 1, 1);
	stores_put(p->stores, stored, &p->f->bookings);
	assert_int_equal(p->f->bookings.size, 0);
}

static void expect(struct playing *p, const struct stored *stored, uint64_t rows, uint64_t lost)
{
	struct stored_counts counts = stores_counts(p->stores, stored);

	assert_int_equal(counts.rows, rows);
	assert_int_equal(counts.lost, lost);
}

static const char *ask_of(struct playing *p, const char *name, const char *sql)
{
	snprintf(p->f->path, sizeof(p->f->path), "%s/%s.db", p->f->directory, name);
	return ask(p->f, sql);
}

/* Stores that this process has open, but for the fixture's own. */
static size_t open_files(const struct playing *p)
{
	DIR *directory = opendir("/proc/self/fd");
	size_t count = 0, length = strlen(p->f->directory);
	const struct dirent *entry;
	char path[PATH_MAX], link[sizeof("/proc/self/fd/") + NAME_MAX];

	assert_non_null(directory);
	while ((entry = readdir(directory))) {
		ssize_t n;

		snprintf(link, sizeof(link), "/proc/self/fd/%s", entry->d_name);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		count += strncmp(path, p->f->directory, length) == 0 && strcmp(path + length, "/calls.db") != 0 &&
			 strcmp(path + strlen(path) - 3, ".db") == 0;
	}
	closedir(directory);
	return count;
}

static void each_has_its_own_rows_and_few_files_are_open(void **state)
{
	struct playing p = start(state);
	struct stored *stored[TENANTS];
	char name[16];

	for (unsigned int i = 0; i < TENANTS; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		stored[i] = add(&p, name);
	}
	for (unsigned int round = 0; round < 2; round++)
		for (unsigned int i = 0; i < TENANTS; i++)
			put(&p, stored[i], 1 + 2 * i + round);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(open_files(&p), STORES_OPEN_MAX);
	for (unsigned int i = 0; i < TENANTS; i++) {
		snprintf(name, sizeof(name), "t%u", i);
		expect(&p, stored[i], 2, 0);
		assert_string_equal(ask_of(&p, name, THE_SUM), "done|2|4");
	}
	stores_free(p.stores);
}

static void a_run_without_a_call_makes_no_file(void **state)
{
	struct playing p = start(state);
	struct stored *stored = add(&p, "quiet");

	assert_int_equal(book_run(&(struct booked_run){.started_ns = SECOND}, &p.f->bookings), 0);
	stores_put(p.stores, stored, &p.f->bookings);
	assert_true(stores_is_idle(p.stores, stored));
	stores_settle(p.stores, PATIENT_MS);
	expect(&p, stored, 0, 0);
	stores_leave(p.stores, stored);
	stores_free(p.stores);
	snprintf(p.f->path, sizeof(p.f->path), "%s/quiet.db", p.f->directory);
	assert_int_equal(access(p.f->path, F_OK), -1);
}

static void one_that_is_damaged_is_said_once_and_the_other_is_written(void **state)
{
	struct playing p = start(state);
	struct stored *bad = add(&p, "bad"), *good = add(&p, "good");
	char path[PATH_MAX], text[STORE_REASON_MAX];

	write_file(in_directory(p.f, "bad.db", path), "this is no store, and it is long enough to be looked at as if it were one, "
						      "which begins with a head of a hundred bytes");
	put(&p, bad, 1);
	put(&p, good, 2);
	stores_settle(p.stores, PATIENT_MS);
	put(&p, bad, 3); /* not even tried */
	assert_true(stores_is_idle(p.stores, bad));
	expect(&p, bad, 0, 2);
	expect(&p, good, 1, 0);
	assert_true(stores_notice(p.stores, bad, text));
	assert_non_null(strstr(text, "it is no store or is damaged"));
	assert_non_null(strstr(text, "its rows are lost, and counted"));
	assert_false(stores_notice(p.stores, bad, text));
	assert_false(stores_notice(p.stores, good, text));
	unlink(path);
	stores_reopen(p.stores);
	put(&p, bad, 4);
	stores_settle(p.stores, PATIENT_MS);
	expect(&p, bad, 1, 2);
	assert_true(stores_notice(p.stores, bad, text));
	assert_non_null(strstr(text, "can be written again"));
	stores_free(p.stores);
	assert_string_equal(ask_of(&p, "bad", THE_SUM), "done|1|2");
}

static void a_lock_of_another_program_holds_up_no_other(void **state)
{
	struct playing p = start(state);
	struct stored *held = add(&p, "held"), *other = add(&p, "other");
	char path[PATH_MAX];
	sqlite3 *db;

	put(&p, held, 1);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(sqlite3_open(in_directory(p.f, "held.db", path), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	put(&p, held, 2);
	put(&p, other, 3);
	while (!stores_is_idle(p.stores, other))
		usleep(1000);
	expect(&p, other, 1, 0);
	expect(&p, held, 1, 0);
	assert_int_equal(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	stores_settle(p.stores, PATIENT_MS);
	expect(&p, held, 2, 0);
	stores_free(p.stores);
}

static void one_that_waits_leaves_room_to_the_others(void **state)
{
	struct playing p = start(state);
	struct stored *held = add(&p, "held"), *other = add(&p, "other");
	uint64_t before;
	char path[PATH_MAX];
	sqlite3 *db;

	put(&p, held, 1);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(sqlite3_open(in_directory(p.f, "held.db", path), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	for (unsigned int n = 2; stores_counts(p.stores, held).lost == 0; n++) {
		for (unsigned int i = 0; i < 1000; i++)
			add_ended(p.f, n * 1000 + i, n * 1000 + i, OUTCOME_ANSWERED, 200, 1, 1);
		stores_put(p.stores, held, &p.f->bookings);
	}
	before = stores_counts(p.stores, held).lost;
	put(&p, other, 3);
	while (!stores_is_idle(p.stores, other))
		usleep(1000);
	expect(&p, other, 1, 0);
	assert_int_equal(before, 1000);
	sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
	sqlite3_close(db);
	stores_free(p.stores);
}

static void count_past(void *context, const struct past_attempt *past)
{
	(void)past;
	++*(unsigned int *)context;
}

static void earlier_attempts_come_out_and_none_where_there_is_no_file(void **state)
{
	struct playing p = start(state);
	struct stored *stored = add(&p, "t");
	char reason[STORE_REASON_MAX];
	unsigned int count = 0;

	assert_int_equal(stores_past_attempts(p.stores, stored, 0, 10, count_past, &count, reason), 0);
	assert_int_equal(count, 0);
	assert_int_equal(open_files(&p), 0);
	put(&p, stored, 1);
	put(&p, stored, 2);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(stores_past_attempts(p.stores, stored, 0, 10, count_past, &count, reason), 0);
	assert_int_equal(count, 2);
	stores_free(p.stores);
}

static void who_comes_back_under_the_same_name_writes_the_same_file(void **state)
{
	struct playing p = start(state);
	struct stored *first = add(&p, "t"), *second;

	put(&p, first, 1);
	stores_leave(p.stores, first);
	second = add(&p, "t");
	put(&p, second, 2);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(open_files(&p), 1);
	stores_free(p.stores);
	assert_string_equal(ask_of(&p, "t", THE_SUM), "done|2|4");
}

static void a_file_that_is_set_aside_keeps_its_rows(void **state)
{
	struct playing p = start(state);
	struct stored *stored = add(&p, "t");
	char from[PATH_MAX], to[PATH_MAX];

	put(&p, stored, 1);
	stores_settle(p.stores, PATIENT_MS);
	assert_int_equal(rename(in_directory(p.f, "t.db", from), in_directory(p.f, "old.db", to)), 0);
	put(&p, stored, 2);
	stores_settle(p.stores, PATIENT_MS);
	expect(&p, stored, 2, 0);
	stores_free(p.stores);
	assert_string_equal(ask_of(&p, "t", THE_SUM), "done|1|2");
	assert_string_equal(ask_of(&p, "old", THE_SUM), "done|1|2");
	assert_string_equal(ask_of(&p, "t", "PRAGMA integrity_check"), "ok");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(each_has_its_own_rows_and_few_files_are_open),
		FIXTURE_TEST(a_run_without_a_call_makes_no_file),
		FIXTURE_TEST(one_that_is_damaged_is_said_once_and_the_other_is_written),
		FIXTURE_TEST(a_lock_of_another_program_holds_up_no_other),
		FIXTURE_TEST(one_that_waits_leaves_room_to_the_others),
		FIXTURE_TEST(earlier_attempts_come_out_and_none_where_there_is_no_file),
		FIXTURE_TEST(who_comes_back_under_the_same_name_writes_the_same_file),
		FIXTURE_TEST(a_file_that_is_set_aside_keeps_its_rows),
	};

	return cmocka_run_group_tests_name("stores", tests, NULL, NULL);
}
