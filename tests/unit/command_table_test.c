/* SPDX-License-Identifier: BSD-2-Clause */
/* The one table of commands and options: what the parsers, --help, the manual and the completion rely on. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "command_table.h"
#include "control.h"

static void every_command_is_found_by_its_bit(void **state)
{
	const struct command_row *command;
	unsigned int bits = 0;

	(void)state;
	for (size_t i = 0; (command = command_at(i)); i++) {
		assert_int_equal(bits & command->verb, 0);
		bits |= command->verb;
		assert_ptr_equal(command_of(command->verb), command);
	}
	assert_int_equal(bits & (bits + 1), 0); /* no bit without a command */
}

static void a_usage_names_its_command_and_ends_with_a_line(void **state)
{
	const struct command_row *command;
	char start[64];

	(void)state;
	for (size_t i = 0; (command = command_at(i)); i++) {
		snprintf(start, sizeof(start), "usage: nightclerk %s", command->name);
		assert_memory_equal(command->usage, start, strlen(start));
		assert_int_equal(command->usage[strlen(command->usage) - 1], '\n');
		assert_memory_equal(command->ends, "Exit status: ", 13);
		assert_int_equal(command->ends[strlen(command->ends) - 1], '\n');
	}
}

static void no_command_has_an_option_twice(void **state)
{
	const struct command_row *command;

	(void)state;
	for (size_t i = 0; (command = command_at(i)); i++) {
		const struct option_row *row = NULL, *other;

		while ((row = command_option_next(command->verb, row)))
			for (other = row; (other = command_option_next(command->verb, other));) {
				assert_string_not_equal(row->name, other->name);
				assert_int_not_equal(row->id, other->id);
			}
	}
}

static void getopt_gets_every_option_and_an_end(void **state)
{
	const struct command_row *command;

	(void)state;
	for (size_t i = 0; (command = command_at(i)); i++) {
		struct option longs[COMMAND_OPTIONS_MAX];
		const struct option_row *row = NULL;
		size_t at = 0;

		command_long_options(command->verb, longs);
		while ((row = command_option_next(command->verb, row))) {
			assert_string_equal(longs[at].name, row->name);
			assert_int_equal(longs[at].val, row->id);
			assert_int_equal(longs[at].has_arg, row->argument ? required_argument : no_argument);
			at++;
		}
		assert_null(longs[at].name);
		assert_string_equal(longs[at - 1].name, "help");
	}
}

static void an_option_is_found_by_command_and_id(void **state)
{
	(void)state;
	assert_string_equal(command_option_of(COMMAND_LINE_WATCH, OPTION_CGROUP)->argument, "DIR");
	assert_null(command_option_of(COMMAND_LINE_RUN, OPTION_CGROUP));
	assert_string_equal(command_option_of(COMMAND_LINE_WATCH, OPTION_PORT)->help,
			    "watch every connection to or from this port");
	assert_string_equal(command_option_of(COMMAND_LINE_CHECK_POLICY, OPTION_PORT)->help, "that it goes to");
}

static void the_length_of_a_label_is_the_real_one(void **state)
{
	char text[64];

	(void)state;
	snprintf(text, sizeof(text), "of a label over %d bytes", CONTROL_LABEL_MAX);
	assert_non_null(strstr(command_of(COMMAND_LINE_MARK)->usage, text));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_command_is_found_by_its_bit),
		cmocka_unit_test(a_usage_names_its_command_and_ends_with_a_line),
		cmocka_unit_test(no_command_has_an_option_twice),
		cmocka_unit_test(getopt_gets_every_option_and_an_end),
		cmocka_unit_test(an_option_is_found_by_command_and_id),
		cmocka_unit_test(the_length_of_a_label_is_the_real_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
