/* SPDX-License-Identifier: BSD-2-Clause */
/* What a shell completes a value as, and that the words it offers are those that the parsers take. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>

#include "capture.h"
#include "completion.h"
#include "manual.h"
#include "options.h"

static void assert_kind(const char *argument, const char *expected)
{
	struct buffer kind = {0};

	assert_int_equal(completion_kind(argument, &kind), 0);
	assert_int_equal(kind.size, strlen(expected));
	assert_memory_equal(kind.data, expected, kind.size);
	buffer_done(&kind);
}

static void the_name_of_a_value_says_what_it_may_be(void **state)
{
	(void)state;
	assert_kind("FILE", "file");
	assert_kind("FILE|fd:N", "file");
	assert_kind("FILE...", "files");
	assert_kind("DIR", "directory");
	assert_kind("USER|UID", "user");
	assert_kind("host-wide", "words:host-wide");
	assert_kind("cgroup|uid|none", "words:cgroup,uid,none");
	assert_kind("PID", "text");
	assert_kind("'N: V'", "text");
}

static void the_words_of_severities_are_all_of_them(void **state)
{
	char words[128];

	(void)state;
	snprintf(words, sizeof(words), "words:%s,%s,%s,%s", severity_name(SEVERITY_INFO), severity_name(SEVERITY_LOW),
		 severity_name(SEVERITY_MEDIUM), severity_name(SEVERITY_HIGH));
	assert_kind("SEVERITY", words);
}

static void the_words_of_doors_are_all_of_them(void **state)
{
	char words[128];

	(void)state;
	snprintf(words, sizeof(words), "words:%s,%s,%s", capture_door_name(CAPTURE_DOOR_AUTO),
		 capture_door_name(CAPTURE_DOOR_TRACEPOINT), capture_door_name(CAPTURE_DOOR_KPROBE));
	assert_kind("DOOR", words);
}

static void the_words_of_blind_streams_are_all_of_them(void **state)
{
	char words[256] = "list:";

	(void)state;
	for (int kind = 0; kind < BLIND_COUNT; kind++)
		snprintf(words + strlen(words), sizeof(words) - strlen(words), "%s%s", kind ? "," : "",
			 blind_kind_name(kind));
	assert_kind("KIND,...", words);
}

static void assert_holds(const struct buffer *text, const char *part)
{
	assert_non_null(memmem(text->data, text->size, part, strlen(part)));
}

static void the_manual_escapes_what_mdoc_would_read_as_its_own(void **state)
{
	struct buffer text = {0};

	(void)state;
	assert_int_equal(manual_options(COMMAND_LINE_ONCE, &text), 0);
	assert_holds(&text, ".It Fl \\-prompt Ar \"\\&FILE\"\n\\&... and a file");
	assert_holds(&text, "every model call\\(aqs key");
	assert_holds(&text, "what you know of your calls: see \\(gacheck\\-policy\\(ga;");
	assert_memory_equal(text.data, ".Bl -tag", 8);
	assert_memory_equal(text.data + text.size - 5, "\n.El\n", 5);
	buffer_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_name_of_a_value_says_what_it_may_be),
		cmocka_unit_test(the_words_of_severities_are_all_of_them),
		cmocka_unit_test(the_words_of_doors_are_all_of_them),
		cmocka_unit_test(the_words_of_blind_streams_are_all_of_them),
		cmocka_unit_test(the_manual_escapes_what_mdoc_would_read_as_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
