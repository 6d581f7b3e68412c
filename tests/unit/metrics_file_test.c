/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics file: replaced whole, never through a link, and kept where the new one cannot be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "audit_place_build.h"
#include "metrics_file.h"

static char reason[METRICS_FILE_REASON_MAX];

static int write_it(const struct place *place, const char *name, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s", in(place, name));
	return metrics_file_write(path, bytes_of_string(text), reason);
}

static void a_reader_keeps_the_old_text_whole(void **state)
{
	struct place *place = *state;
	struct stat stat;
	char text[8] = "";
	int reader;

	assert_int_equal(write_it(place, "n.prom", "one 1\n"), 0);
	reader = open(in(place, "n.prom"), O_RDONLY);
	assert_int_equal(write_it(place, "n.prom", "two 2\n"), 0);
	assert_string_equal(reason, "");
	assert_int_equal(read(reader, text, sizeof(text)), 6);
	close(reader);
	assert_string_equal(text, "one 1\n");
	holds(in(place, "n.prom"), "two 2\n");
	assert_int_equal(lstat(in(place, "n.prom"), &stat), 0);
	assert_int_equal(stat.st_mode & 07777, 0644);
	assert_false(is_there(in(place, "n.prom.tmp")));
}

static void no_link_is_followed(void **state)
{
	struct place *place = *state;

	put(in(place, "victim"), "mine\n", 0600);
	assert_int_equal(symlink("victim", in(place, "n.prom")), 0);
	assert_int_equal(symlink("victim", in(place, "n.prom.tmp")), 0);
	assert_int_equal(write_it(place, "n.prom", "one 1\n"), 0);
	holds(in(place, "victim"), "mine\n");
	holds(in(place, "n.prom"), "one 1\n");
	assert_int_equal(mkdir(in(place, "real"), 0700), 0);
	assert_int_equal(symlink("real", in(place, "link")), 0);
	assert_int_equal(write_it(place, "link/n.prom", "one 1\n"), -ELOOP);
	assert_non_null(strstr(reason, "it is a symbolic link: give the real path"));
	assert_int_equal(rmdir(in(place, "real")), 0);
}

static void what_cannot_be_written_leaves_the_old_one(void **state)
{
	struct place *place = *state;

	assert_int_equal(write_it(place, "gone/n.prom", "one 1\n"), -ENOENT);
	assert_non_null(strstr(reason, "cannot write the metrics to "));
	assert_non_null(strstr(reason, "its directory does not exist: create it"));
	assert_int_equal(write_it(place, "n.prom", "one 1\n"), 0);
	assert_int_equal(mkdir(in(place, "n.prom.tmp"), 0700), 0);
	assert_int_equal(write_it(place, "n.prom", "two 2\n"), -EEXIST);
	holds(in(place, "n.prom"), "one 1\n");
	assert_int_equal(mkdir(in(place, "d.prom"), 0700), 0);
	assert_int_equal(write_it(place, "d.prom", "two 2\n"), -EISDIR);
	assert_false(is_there(in(place, "d.prom.tmp")));
}

static void its_name_ends_in_prom(void **state)
{
	char path[PATH_MAX + 8];

	(void)state;
	assert_null(metrics_file_wrong_name("/var/lib/prometheus/node-exporter/nightclerk.prom"));
	assert_null(metrics_file_wrong_name("n.prom"));
	assert_non_null(metrics_file_wrong_name(""));
	assert_non_null(metrics_file_wrong_name("/var/lib/x.txt"));
	assert_non_null(metrics_file_wrong_name("/var/lib/.prom"));
	memset(path, 'a', sizeof(path));
	memcpy(path + PATH_MAX - 6, ".prom", 6);
	assert_string_equal(metrics_file_wrong_name(path), "takes a shorter path");
}

#define at_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		at_a_place(a_reader_keeps_the_old_text_whole),
		at_a_place(no_link_is_followed),
		at_a_place(what_cannot_be_written_leaves_the_old_one),
		cmocka_unit_test(its_name_ends_in_prom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
