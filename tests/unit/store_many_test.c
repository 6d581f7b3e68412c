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

/* Exit status: the number of keys that were given to this process, or 255. */
static _Noreturn void ask_again_and_again(struct fixture *f, int number)
{
	unsigned int state = (unsigned int)number * 2654435761U, won = 0;

	f->store = NULL; /* the parent's connection is none of ours */
	reopen(f);
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
			char key[32];

			f->store = NULL;
			reopen(f);
			snprintf(key, sizeof(key), "key %d", i);
			_exit(reserve(f, key, 900) == STORE_RESERVED ? 0 : 1);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		FIXTURE_TEST(each_key_is_done_by_one_of_fifty_processes),
		FIXTURE_TEST(a_store_that_many_make_at_once_is_made_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
