/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids of the cgroups that this machine has, and of one that it has not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cgroup.h"
#include "cgroup_names.h"

#define NO_CGROUP ((uint64_t)1 << 60)

struct own {
	uint64_t id;
	char path[PATH_MAX];
};

static void find_own(struct own *own)
{
	char mount[PATH_MAX], directory[2 * PATH_MAX];
	struct stat stat_of;

	if (cgroup_find_mount("/proc/self/mounts", mount, sizeof(mount)) ||
	    cgroup_find_path("/proc/self/cgroup", own->path, sizeof(own->path)))
		skip();
	snprintf(directory, sizeof(directory), "%s%s", mount, own->path);
	if (stat(directory, &stat_of) || !cgroup_is_directory(directory))
		skip();
	own->id = stat_of.st_ino;
}

static void the_own_cgroup_is_named_once(void **state)
{
	struct cgroup_names *names;
	char path[PATH_MAX];
	struct own own;

	(void)state;
	find_own(&own);
	names = cgroup_names_new();
	assert_non_null(names);
	assert_true(cgroup_names_find(names, own.id, (uint32_t)getpid(), path, sizeof(path)));
	assert_string_equal(path, own.path);
	assert_false(cgroup_names_find(names, own.id, (uint32_t)getpid(), path, sizeof(path)));
	cgroup_names_free(names);
}

/* Without any process to ask: of another pid namespace, or gone. */
static void a_cgroup_is_named_without_a_process(void **state)
{
	struct cgroup_names *names;
	char path[PATH_MAX];
	struct own own;

	(void)state;
	if (geteuid() != 0)
		skip();
	find_own(&own);
	names = cgroup_names_new();
	assert_true(cgroup_names_find(names, own.id, 0, path, sizeof(path)));
	assert_string_equal(path, own.path);
	cgroup_names_free(names);
}

/* A number that means another process here must not lend its cgroup. */
static void a_process_in_another_cgroup_lends_no_name(void **state)
{
	struct cgroup_names *names = cgroup_names_new();
	char path[PATH_MAX];

	(void)state;
	for (int i = 0; i < 10; i++)
		assert_false(cgroup_names_find(names, NO_CGROUP, (uint32_t)getpid(), path, sizeof(path)));
	assert_false(cgroup_names_find(names, 0, (uint32_t)getpid(), path, sizeof(path)));
	cgroup_names_free(names);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_own_cgroup_is_named_once),
		cmocka_unit_test(a_cgroup_is_named_without_a_process),
		cmocka_unit_test(a_process_in_another_cgroup_lends_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
