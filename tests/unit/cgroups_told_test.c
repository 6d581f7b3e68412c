/* SPDX-License-Identifier: BSD-2-Clause */
/* A host that makes cgroups for weeks: each is named, none is asked for at each of its events, memory is bounded. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cgroups_told.h"

static void tell(struct cgroups_told *told, uint64_t id, size_t path_bytes)
{
	assert_true(cgroups_told_is_due(told, id, true));
	cgroups_told_note(told, id, path_bytes);
	assert_false(cgroups_told_is_due(told, id, true));
}

static void each_of_many_is_told_once(void **state)
{
	struct cgroups_told *told = cgroups_told_new();

	(void)state;
	for (uint64_t id = 1; id <= 3 * LIMIT_CGROUPS; id++)
		tell(told, id, 1);
	for (uint64_t id = 3 * LIMIT_CGROUPS; id > 3 * LIMIT_CGROUPS - CGROUPS_TOLD_MAX; id--)
		assert_false(cgroups_told_is_due(told, id, true));
	cgroups_told_free(told);
}

static void one_that_was_forgotten_is_told_again(void **state)
{
	struct cgroups_told *told = cgroups_told_new();

	(void)state;
	for (uint64_t id = 1; id <= CGROUPS_TOLD_MAX; id++)
		tell(told, id, 1);
	assert_false(cgroups_told_is_due(told, 1, true));
	tell(told, CGROUPS_TOLD_MAX + 1, 1);
	tell(told, 1, 1); /* in place of the second, then */
	assert_false(cgroups_told_is_due(told, 3, true));
	tell(told, 2, 1);
	cgroups_told_free(told);
}

/* Whoever learns the paths forgets by their bytes, too. */
static void long_paths_are_forgotten_sooner(void **state)
{
	struct cgroups_told *told = cgroups_told_new();

	(void)state;
	tell(told, 1, CGROUPS_TOLD_BYTES / 2);
	tell(told, 2, CGROUPS_TOLD_BYTES / 2);
	assert_false(cgroups_told_is_due(told, 1, true));
	tell(told, 3, 1);
	assert_false(cgroups_told_is_due(told, 2, true));
	tell(told, 1, CGROUPS_TOLD_BYTES + 1);
	assert_true(cgroups_told_is_due(told, 2, true));
	cgroups_told_free(told);
}

static void one_without_a_name_is_given_up(void **state)
{
	struct cgroups_told *told = cgroups_told_new();

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_true(cgroups_told_is_due(told, 7, false));
	for (int i = 0; i < CGROUPS_TOLD_TRIES; i++)
		assert_true(cgroups_told_is_due(told, 7, true));
	assert_false(cgroups_told_is_due(told, 7, true));
	assert_false(cgroups_told_is_due(told, 7, false));
	cgroups_told_free(told);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_of_many_is_told_once),
		cmocka_unit_test(one_that_was_forgotten_is_told_again),
		cmocka_unit_test(long_paths_are_forgotten_sooner),
		cmocka_unit_test(one_without_a_name_is_given_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
