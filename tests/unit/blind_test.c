/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that could not be read, by process: the table and the words for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "blind.h"

#define ALL ~0u

static struct blind_processes processes;

static int begin(void **state)
{
	(void)state;
	processes = (struct blind_processes){0};
	return 0;
}

static void add(uint32_t tgid, uint64_t start_ns, const char *comm, enum blind_kind kind)
{
	struct process process = {.tgid = tgid, .start_ns = start_ns};

	snprintf(process.comm, sizeof(process.comm), "%s", comm);
	blind_add(&processes, &process, kind, 10, 1);
}

static void says(unsigned int kinds, size_t max, const char *expected)
{
	struct buffer text = {0};

	assert_int_equal(blind_say(&processes, kinds, max, &text), 0);
	assert_int_equal(buffer_append_byte(&text, '\0'), 0);
	assert_string_equal((const char *)text.data, expected);
	buffer_done(&text);
}

static void nothing_was_blind(void **state)
{
	(void)state;
	assert_null(blind_row(&processes, 0));
	says(ALL, 8, "");
}

static void streams_of_one_process_are_added_up(void **state)
{
	const struct blind_process *row;

	(void)state;
	add(4101, 7, "curl", BLIND_TLS);
	add(4101, 7, "curl", BLIND_H2);
	add(4101, 7, "curl", BLIND_TLS);
	row = blind_row(&processes, 0);
	assert_int_equal(row->process.tgid, 4101);
	assert_int_equal(row->streams[BLIND_TLS], 2);
	assert_int_equal(row->streams[BLIND_H2], 1);
	assert_int_equal(row->bytes_out, 30);
	assert_int_equal(row->bytes_in, 3);
	assert_int_equal(blind_streams_of(row, 1u << BLIND_TLS), 2);
	assert_null(blind_row(&processes, 1));
	says(ALL, 8, "curl (4101): 2 tls, 1 h2");
}

static void a_pid_used_again_is_another_process(void **state)
{
	(void)state;
	add(4101, 7, "curl", BLIND_TLS);
	add(4101, 8, "wget", BLIND_TLS);
	says(ALL, 8, "curl (4101): 1 tls; wget (4101): 1 tls");
}

static void only_the_kinds_asked_for_are_said(void **state)
{
	(void)state;
	add(1, 1, "redis", BLIND_OTHER);
	add(2, 1, "curl", BLIND_OTHER);
	add(2, 1, "curl", BLIND_WEBSOCKET);
	says(1u << BLIND_WEBSOCKET, 8, "curl (2): 1 websocket");
	says(1u << BLIND_TLS, 8, "");
}

static void processes_beyond_the_table_and_unknown_ones_are_the_others(void **state)
{
	const struct blind_process *row;

	(void)state;
	add(0, 0, "", BLIND_JOINED_LATE);
	for (uint32_t i = 1; i <= BLIND_PROCESSES_MAX + 3; i++)
		add(i, 1, "curl", BLIND_TLS);
	row = blind_row(&processes, BLIND_PROCESSES_MAX);
	assert_int_equal(row->process.tgid, 0);
	assert_int_equal(row->streams[BLIND_TLS], 3);
	assert_int_equal(row->streams[BLIND_JOINED_LATE], 1);
	assert_int_equal(row->bytes_out, 40);
	assert_null(blind_row(&processes, BLIND_PROCESSES_MAX + 1));
	says(1u << BLIND_JOINED_LATE, 8, "others: 1 joined_late");
	says(ALL, 2, "curl (1): 1 tls; curl (2): 1 tls; ...");
}

static void a_name_cannot_write_on_the_terminal(void **state)
{
	(void)state;
	add(5, 1, "\033[2J", BLIND_TLS);
	says(ALL, 8, "\\x1b[2J (5): 1 tls");
}

#define TEST(name) cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_was_blind),
		TEST(streams_of_one_process_are_added_up),
		TEST(a_pid_used_again_is_another_process),
		TEST(only_the_kinds_asked_for_are_said),
		TEST(processes_beyond_the_table_and_unknown_ones_are_the_others),
		TEST(a_name_cannot_write_on_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
