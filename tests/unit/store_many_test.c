/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many processes, one store: each with a connection of its own, as fast as they
 * can. No error of any kind, and each key is given to one of them.
 */
#include "store_build.h"

#include <sys/wait.h>

#define PROCESSES 50
#define ROUNDS 200
#define KEYS 100

/* In a child, where a failed assertion would run the tests that follow. The parent's connection is none of ours. */
static void open_in_child(struct fixture *f)
{
	struct store_options options = {.path = f->path, .owner = NOBODY_ELSE, .create = true};
	char reason[STORE_REASON_MAX];

	if (store_open(&options, &f->store, reason))
		_exit(255);
}

/* Exit status: the number of keys that were given to this process, or 255. */
static _Noreturn void ask_again_and_again(struct fixture *f, int number)
{
	unsigned int state = (unsigned int)number * 2654435761U, won = 0;

	open_in_child(f);
	for (int round = 0; round < ROUNDS; round++) {
		struct store_claim claim;
		enum store_answer answer;
		struct buffer result = {0};
		bool has_result, first;
		char key[32];

		state = state * 1103515245U + 12345U;
		snprintf(key, sizeof(key), "key %u", state / 65536 % KEYS);
		claim = claim_of(f, key, 900);
		if (store_reserve(f->store, &claim, &answer, &result, &has_result))
			_exit(255);
		buffer_done(&result);
		if (answer != STORE_RESERVED)
			continue;
		if (store_commit(f->store, &claim, bytes_of_string(key), true, &first) || !first)
			_exit(255);
		won++;
	}
	store_close(f->store);
	_exit((int)won);
}

static void each_key_is_done_by_one_of_fifty_processes(void **state)
{
	struct fixture *f = *state;
	pid_t pids[PROCESSES];
	int won = 0;

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			ask_again_and_again(f, i);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFEXITED(status));
		assert_int_not_equal(WEXITSTATUS(status), 255);
		won += WEXITSTATUS(status);
	}
	assert_int_equal(won, KEYS);
	assert_string_equal(ask(f, "SELECT COUNT(*), SUM(status = 'done'), SUM(CAST(result AS TEXT) = key) FROM calls"), "100|100|100");
}

static void a_store_that_many_make_at_once_is_made_once(void **state)
{
	struct fixture *f = *state;
	char path[PATH_MAX];
	pid_t pids[PROCESSES];

	snprintf(f->path, sizeof(f->path), "%s/new.db", f->directory);
	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0) {
			struct store_claim claim;
			enum store_answer answer;
			bool has_result;
			char key[32];

			open_in_child(f);
			snprintf(key, sizeof(key), "key %d", i);
			claim = claim_of(f, key, 900);
			_exit(store_reserve(f->store, &claim, &answer, NULL, &has_result) || answer != STORE_RESERVED);
		}
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(ask(f, "SELECT COUNT(*) FROM calls"), "50");
	for (int i = 0; i < PROCESSES; i++) {
		snprintf(path, sizeof(path), "%s.new-%d", f->path, (int)pids[i]);
		assert_int_equal(access(path, F_OK), -1);
	}
}

/* store_open() would refuse what another one has brought forward already. */
static _Noreturn void migrate(struct fixture *f, const char *const *steps)
{
	struct store store = {.path = f->path};

	if (sqlite3_open(f->path, &store.db) != SQLITE_OK)
		_exit(2);
	sqlite3_busy_timeout(store.db, 60000);
	_exit(store_migrate(&store, steps, 2) ? 1 : 0);
}

static void a_schema_that_many_bring_forward_at_once_is_brought_forward_once(void **state)
{
	static const char *const steps[] = {"", "CREATE TABLE second (x)"};
	struct fixture *f = *state;
	pid_t pids[PROCESSES];

	for (int i = 0; i < PROCESSES; i++) {
		pids[i] = fork();
		assert_true(pids[i] >= 0);
		if (pids[i] == 0)
			migrate(f, steps);
	}
	for (int i = 0; i < PROCESSES; i++) {
		int status;

		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_int_equal(status, 0);
	}
	assert_string_equal(ask(f, "PRAGMA user_version"), "2");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(a_schema_that_many_bring_forward_at_once_is_brought_forward_once),
		FIXTURE_TEST(each_key_is_done_by_one_of_fifty_processes),
		FIXTURE_TEST(a_store_that_many_make_at_once_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
