/* SPDX-License-Identifier: BSD-2-Clause */
/* Where cgroup v2 is mounted and where in it a process is: by text alone, without root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgroup.h"

struct text_file {
	char path[64];
};

static struct text_file file_with(const char *text)
{
	struct text_file file = {"/tmp/cgroup_test-XXXXXX"};
	int fd = mkstemp(file.path);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	return file;
}

typedef int finder(const char *file, char *ret_path, size_t size); /* either of the two */

static int found(finder *find, const char *text, char *ret_path, size_t size)
{
	struct text_file file = file_with(text);
	int err = find(file.path, ret_path, size);

	unlink(file.path);
	return err;
}

static void assert_found(finder *find, const char *text, const char *expected)
{
	char path[256] = "untouched";

	assert_int_equal(found(find, text, path, sizeof(path)), 0);
	assert_string_equal(path, expected);
}

static void finds_the_mount_of_a_unified_hierarchy(void **state)
{
	(void)state;
	assert_found(
		cgroup_find_mount,
		"proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw,nosuid,nsdelegate 0 0\n",
		"/sys/fs/cgroup");
}

static void finds_the_mount_of_a_hybrid_hierarchy(void **state)
{
	(void)state;
	assert_found(
		cgroup_find_mount,
		"tmpfs /sys/fs/cgroup tmpfs ro 0 0\ncgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n"
		"cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n",
		"/sys/fs/cgroup/unified");
}

static void takes_the_first_mount_and_undoes_its_escapes(void **state)
{
	(void)state;
	assert_found(cgroup_find_mount,
		     "none /mnt/a\\040b cgroup2 rw 0 0\nnone /sys/fs/cgroup cgroup2 rw 0 0\n",
		     "/mnt/a b");
}

/* The type says it, not the name of the device or of the folder. */
static void finds_none_where_only_version_1_is_mounted(void **state)
{
	char path[64] = "untouched";

	(void)state;
	assert_int_equal(found(cgroup_find_mount,
			       "cgroup2 /sys/fs/cgroup/cgroup2 cgroup rw,cpu 0 0\n", path,
			       sizeof(path)),
			 -ENOENT);
	assert_int_equal(found(cgroup_find_mount, "", path, sizeof(path)), -ENOENT);
	assert_int_equal(cgroup_find_mount("/nonexistent/mounts", path, sizeof(path)), -ENOENT);
	assert_string_equal(path, "untouched");
}

static void finds_the_path_of_a_process_in_version_2(void **state)
{
	(void)state;
	assert_found(cgroup_find_path,
		     "9:name=systemd:/old\n1:cpu:/other\n0::/user.slice/session-3.scope\n",
		     "/user.slice/session-3.scope");
	assert_found(cgroup_find_path, "0::/\n", "/");
	assert_found(cgroup_find_path, "0::/a:b c\n", "/a:b c");
}

static void finds_no_path_where_there_is_no_version_2(void **state)
{
	char path[64] = "untouched";

	(void)state;
	assert_int_equal(
		found(cgroup_find_path, "10::/x\n1:cpu:/other\n0:name:/y\n", path, sizeof(path)),
		-ENOENT);
	assert_string_equal(path, "untouched");
}

static void says_so_when_a_path_is_too_long(void **state)
{
	char path[8] = "as was";

	(void)state;
	assert_int_equal(found(cgroup_find_path, "0::/1234567\n", path, sizeof(path)),
			 -ENAMETOOLONG);
	assert_string_equal(path, "as was");
	assert_int_equal(found(cgroup_find_path, "0::/123456\n", path, sizeof(path)), 0);
	assert_string_equal(path, "/123456");
	assert_int_equal(
		found(cgroup_find_mount, "none /1234567 cgroup2 rw 0 0\n", path, sizeof(path)),
		-ENAMETOOLONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_mount_of_a_unified_hierarchy),
		cmocka_unit_test(finds_the_mount_of_a_hybrid_hierarchy),
		cmocka_unit_test(takes_the_first_mount_and_undoes_its_escapes),
		cmocka_unit_test(finds_none_where_only_version_1_is_mounted),
		cmocka_unit_test(finds_the_path_of_a_process_in_version_2),
		cmocka_unit_test(finds_no_path_where_there_is_no_version_2),
		cmocka_unit_test(says_so_when_a_path_is_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
