/* SPDX-License-Identifier: BSD-2-Clause */
/* Options in a file: what each field says, and what is said where one is wrong. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config_file.h"

struct taken {
	char text[1024]; /* "name=value;" of each */
	const char *refuse; /* a name that is not taken */
};

static int take(void *context, const char *name, const char *value, bool off, char *reason)
{
	struct taken *taken = context;
	size_t used = strlen(taken->text);

	if (taken->refuse && strcmp(name, taken->refuse) == 0) {
		snprintf(reason, CONFIG_REASON_MAX, "is wrong");
		return -EINVAL;
	}
	snprintf(taken->text + used, sizeof(taken->text) - used, "%s=%s;", name, off ? "(off)" : value ? value : "(on)");
	return 0;
}

/* What was said on stderr goes to said, of 512 bytes. */
static int parse(struct taken *taken, struct bytes text, char *said)
{
	FILE *file = tmpfile();
	int old = dup(STDERR_FILENO), err;
	char *texts;
	size_t n;

	assert_non_null(file);
	fflush(stderr);
	dup2(fileno(file), STDERR_FILENO);
	err = config_file_parse("a.json", text, take, taken, &texts);
	fflush(stderr);
	dup2(old, STDERR_FILENO);
	close(old);
	free(texts);
	rewind(file);
	n = fread(said, 1, 511, file);
	said[n] = '\0';
	fclose(file);
	return err;
}

static void takes_texts_numbers_and_switches_in_their_order(void **state)
{
	struct taken taken = {0};
	char said[512];

	(void)state;
	assert_int_equal(parse(&taken, BYTES("{\"split\": \"cgroup\", \"keep\": 5, \"rotate-age\": 1.5,\n \"strict\": true, \"quiet\": false}\n"), said), 0);
	assert_string_equal(taken.text, "split=cgroup;keep=5;rotate-age=1.5;strict=(on);quiet=(off);");
	assert_string_equal(said, "");
}

static void undoes_escapes(void **state)
{
	struct taken taken = {0};
	char said[512];

	(void)state;
	assert_int_equal(parse(&taken, BYTES("{\"directory\": \"\\/var\\/\\u00e4\"}"), said), 0);
	assert_string_equal(taken.text, "directory=/var/\xc3\xa4;");
}

static void says_where_it_is_wrong(void **state)
{
	static const struct {
		const char *text, *said;
	} bad[] = {
		{"", "nightclerk: a.json:1:1: the file is empty\n"},
		{"[]", "nightclerk: a.json:1:1: this is no object: {\"directory\": \"/var/log/nightclerk\"}\n"},
		{"{\"a\": 1", "nightclerk: a.json:1:8: the file ends in the middle of the options\n"},
		{"{\"a\": 1}\n{}", "nightclerk: a.json:2:1: this is no JSON: unexpected character\n"},
		{"{\"a\": 1,\n  \"bad\": 2}", "nightclerk: a.json:2:3: bad is wrong\n"},
		{"{\"a\": [1]}", "nightclerk: a.json:1:7: a is a text, a number, true or false\n"},
		{"{\"a\": null}", "nightclerk: a.json:1:7: a is a text, a number, true or false\n"},
		{"{\"a\": -1}", "nightclerk: a.json:1:7: a is a text, a number, true or false\n"},
		{"{\"a\": \"x\\u0000y\"}", "nightclerk: a.json:1:7: a holds a control character\n"},
		{"{\"a\": \"x\\u001b[0m\"}", "nightclerk: a.json:1:7: a holds a control character\n"},
		{"{\"a\": 1, \"a\": 2}", "nightclerk: a.json:1:10: this field is there already\n"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct taken taken = {.refuse = "bad"};
		char said[512];

		assert_int_equal(parse(&taken, bytes_of_string(bad[i].text), said), -EINVAL);
		assert_string_equal(said, bad[i].said);
	}
}

static void a_name_is_no_longer_than_any_option(void **state)
{
	struct taken taken = {0};
	char text[256], said[512];

	(void)state;
	memset(text, 'n', sizeof(text));
	memcpy(text, "{\"", 2);
	memcpy(text + 200, "\":1}", 5);
	assert_int_equal(parse(&taken, bytes_of_string(text), said), -EINVAL);
	assert_string_equal(said, "nightclerk: a.json:1:2: no option has a name that long\n");
}

static void a_file_that_is_not_there_is_said(void **state)
{
	struct taken taken = {0};
	char *texts = (char *)"untouched";

	(void)state;
	assert_int_equal(config_file_read("/nonexistent/a.json", take, &taken, &texts), -ENOENT);
	assert_null(texts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_texts_numbers_and_switches_in_their_order),
		cmocka_unit_test(undoes_escapes),
		cmocka_unit_test(says_where_it_is_wrong),
		cmocka_unit_test(a_name_is_no_longer_than_any_option),
		cmocka_unit_test(a_file_that_is_not_there_is_said),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
