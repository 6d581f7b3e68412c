/* SPDX-License-Identifier: BSD-2-Clause */
/* user/glob.c: what "*" and "**" stand for, and what is no glob. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glob.h"

static void path_matches(const char *glob, const char *path, bool expected)
{
	if (glob_path_matches(bytes_of_string(glob), bytes_of_string(path)) != expected)
		fail_msg("%s and %s", glob, path);
}

static void a_path_without_wildcards_matches_itself(void **state)
{
	(void)state;
	path_matches("/", "/", true);
	path_matches("/a", "/a", true);
	path_matches("/a", "/A", false);
	path_matches("/a", "/a/", false);
	path_matches("/a/", "/a/", true);
	path_matches("/a/", "/a", false);
	path_matches("/a", "/ab", false);
	path_matches("/a[b]?", "/a[b]?", true);
	path_matches("/", "", false);
}

static void one_star_stays_within_a_segment(void **state)
{
	(void)state;
	path_matches("/*", "/", true);
	path_matches("/*", "/a", true);
	path_matches("/*", "/a/b", false);
	path_matches("/v1/*/refund", "/v1/ch_1/refund", true);
	path_matches("/v1/*/refund", "/v1/a/b/refund", false);
	path_matches("/a*c/d", "/abbc/d", true);
	path_matches("/a*c/d", "/ab/cd", false);
	path_matches("/*.*.json", "/a.b.c.json", true);
	path_matches("/*.*.json", "/a.json", false);
}

static void two_stars_stand_for_any_number_of_segments(void **state)
{
	(void)state;
	path_matches("/**", "/", true);
	path_matches("/**", "/a/b/", true);
	path_matches("/v1/**", "/v1", true);
	path_matches("/v1/**", "/v1/", true);
	path_matches("/v1/**", "/v1/a/b", true);
	path_matches("/v1/**", "/v12", false);
	path_matches("/v1/**/refund", "/v1/refund", true);
	path_matches("/v1/**/refund", "/v1/a/b/refund", true);
	path_matches("/v1/**/refund", "/v1/a/refund/b", false);
	path_matches("/**/a/**/b", "/x/a/a/y/b/z/b", true);
	path_matches("/**/a/**/b", "/x/b", false);
	path_matches("/**/*", "/a/b", true);
	path_matches("/**/a*b/c", "/ab/axb/c", true);
}

static void the_worst_glob_comes_to_an_end(void **state)
{
	char path[8193], glob[] = "/**/a*a*a*a*a*a*a*a*b/**/c";

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[0] = '/';
	path[sizeof(path) - 1] = '\0';
	path_matches(glob, path, false);
	for (size_t i = 2; i < sizeof(path) - 1; i += 2)
		path[i] = '/';
	path_matches(glob, path, false);
}

static void in_other_text_a_star_is_any_bytes(void **state)
{
	(void)state;
	assert_true(glob_text_matches(BYTES("create_*"), BYTES("create_charge")));
	assert_true(glob_text_matches(BYTES("*"), BYTES("")));
	assert_true(glob_text_matches(BYTES("a*b*c"), BYTES("a/b/b c")));
	assert_false(glob_text_matches(BYTES("a*b*c"), BYTES("a/b/b")));
	assert_false(glob_text_matches(BYTES("Create_*"), BYTES("create_charge")));
	assert_true(glob_text_matches_nocase(BYTES("*.LOCALHOST"), BYTES("api.localhost")));
}

static void says_what_is_wrong(void **state)
{
	(void)state;
	assert_null(glob_path_wrong(BYTES("/v1/**/*.json")));
	assert_string_equal(glob_path_wrong(BYTES("")), "it is empty");
	assert_string_equal(glob_path_wrong(BYTES("v1")), "a path starts with /");
	assert_string_equal(glob_path_wrong(BYTES("/a**")), "** stands alone between two slashes");
	assert_string_equal(glob_path_wrong(BYTES("/a/***/b")), "** stands alone between two slashes");
	assert_string_equal(glob_path_wrong(BYTES("/a?b=1")), "a path has no query and no fragment: ? and # never match");
	assert_string_equal(glob_path_wrong(BYTES("/a\n")), "it holds a control character");
	assert_null(glob_text_wrong(BYTES("a*")));
	assert_string_equal(glob_text_wrong(BYTES("a**")), "** is for paths; one * stands for any bytes here");
	assert_string_equal(glob_text_wrong(BYTES("")), "it is empty");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_without_wildcards_matches_itself),
		cmocka_unit_test(one_star_stays_within_a_segment),
		cmocka_unit_test(two_stars_stand_for_any_number_of_segments),
		cmocka_unit_test(the_worst_glob_comes_to_an_end),
		cmocka_unit_test(in_other_text_a_star_is_any_bytes),
		cmocka_unit_test(says_what_is_wrong),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
