/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines about what --confine refused: hostile names, the cap, colour, IPv6. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "limits.h"
#include "refusals.h"

static const struct alert_style plain;

/* A name of exactly 16 bytes has no NUL of its own in a wire event. */
static struct connection_name from(const char *comm, uint16_t port)
{
	struct connection_name connection = {
		.process = {.tgid = 12},
		.server = {.address = {0x20, 0x01, 0x0d, 0xb8, [15] = 1}, .port = port},
	};

	snprintf(connection.process.comm, sizeof(connection.process.comm), "%s", comm);
	return connection;
}

static void note(struct refusals *refusals, struct connection_name connection)
{
	assert_int_equal(refusals_note(refusals, &connection, false), 0);
}

static void assert_lines(const struct refusals *refusals, const struct alert_style *style,
			 const char *expected)
{
	struct buffer out = {0};

	assert_int_equal(refusals_lines(refusals, style, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void nothing_refused_is_no_line(void **state)
{
	struct refusals refusals = {0};

	(void)state;
	assert_lines(&refusals, &plain, "");
	assert_null(refusals_next(&refusals, NULL));
	refusals_done(&refusals);
}

static void a_name_can_move_no_cursor(void **state)
{
	struct refusals refusals = {0};

	(void)state;
	note(&refusals, from("\x1b[2Jx\xff\n", 80));
	assert_lines(
		&refusals, &plain,
		"nightclerk: HIGH off_loopback: \\x1b[2Jx\\xff\\x0a (pid 12) tried to connect to [2001:db8::1]:80 and "
		"was refused; next: point the program at a local server\n");
	refusals_done(&refusals);
}

static void colour_is_for_terminals(void **state)
{
	struct refusals refusals = {0};

	(void)state;
	note(&refusals, from("sixteen_bytes_16", 80));
	assert_lines(
		&refusals, &(struct alert_style){.colour = true},
		"nightclerk: \x1b[31mHIGH\x1b[0m off_loopback: sixteen_bytes_16 (pid 12) tried to connect to "
		"[2001:db8::1]:80 and was refused; next: point the program at a local server\n");
	refusals_done(&refusals);
}

/* What stood in the memory of a name before does not tell two of the same name apart. */
static void what_stands_behind_the_end_of_a_name_is_no_part_of_it(void **state)
{
	struct refusals refusals = {0};
	struct connection_name second = from("sh", 80);

	(void)state;
	note(&refusals, from("sh", 80));
	memcpy(second.process.comm + 3, "rest", 4);
	note(&refusals, second);
	assert_lines(
		&refusals, &plain,
		"nightclerk: HIGH off_loopback: sh (pid 12) tried to connect to [2001:db8::1]:80 and was refused, 2 "
		"times; next: point the program at a local server\n");
	refusals_done(&refusals);
}

static void beyond_the_cap_tries_are_counted(void **state)
{
	struct refusals refusals = {0};
	const struct refusal *refusal = NULL;
	struct buffer out = {0};
	size_t kept = 0;

	(void)state;
	for (int port = 1; port <= LIMIT_REFUSALS + 2; port++)
		note(&refusals, from("scan", (uint16_t)port));
	note(&refusals, from("scan", 1));
	note(&refusals, from("scan", LIMIT_REFUSALS + 1));
	while ((refusal = refusals_next(&refusals, refusal)))
		kept++;
	assert_int_equal(kept, LIMIT_REFUSALS);
	assert_int_equal(refusals_lines(&refusals, &plain, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_non_null(
		strstr((const char *)out.data, "[2001:db8::1]:1 and was refused, 2 times;"));
	assert_non_null(strstr(
		(const char *)out.data,
		"\nnightclerk: and 3 more tries to leave loopback were refused; the events hold them\n"));
	buffer_done(&out);
	refusals_done(&refusals);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_refused_is_no_line),
		cmocka_unit_test(a_name_can_move_no_cursor),
		cmocka_unit_test(colour_is_for_terminals),
		cmocka_unit_test(what_stands_behind_the_end_of_a_name_is_no_part_of_it),
		cmocka_unit_test(beyond_the_cap_tries_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
