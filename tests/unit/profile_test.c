/* SPDX-License-Identifier: BSD-2-Clause */
/* The stopwatch, with a clock of the test's own: each reading of it takes 10 ns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "profile.h"

static uint64_t now_ns;
static bool is_shared; /* half of the time is that of others */

static uint64_t clock_of_test(void)
{
	now_ns += 10;
	return now_ns;
}

static uint64_t cpu_clock_of_test(void)
{
	return is_shared ? now_ns / 2 : now_ns;
}

static void gives_each_stage_the_time_between_two_switches(void **state)
{
	struct profile profile;

	(void)state;
	profile_start(&profile, clock_of_test, cpu_clock_of_test);
	profile_switch(&profile, PROFILE_READING);
	now_ns += 100;
	profile_switch(&profile, PROFILE_CALLS);
	now_ns += 1000;
	profile_switch(&profile, PROFILE_READING);
	now_ns += 100;
	profile_switch(&profile, PROFILE_OTHER);
	assert_int_equal(profile.stages[PROFILE_READING].entered, 2);
	assert_int_equal(profile.stages[PROFILE_READING].ns, 220);
	assert_int_equal(profile.stages[PROFILE_CALLS].entered, 1);
	assert_int_equal(profile.stages[PROFILE_CALLS].ns, 1010);
}

static void takes_off_what_the_clock_takes(void **state)
{
	struct buffer out = {0};
	struct profile profile;

	(void)state;
	profile_start(&profile, clock_of_test, cpu_clock_of_test);
	for (int i = 0; i < 2; i++) {
		profile_switch(&profile, PROFILE_LEDGER);
		now_ns += 700;
	}
	profile_stop(&profile);
	assert_int_equal(profile_json(&profile, 2, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_non_null(strstr((const char *)out.data, "{\"exchanges\":2,\"stages\":[{\"stage\":\"other\","));
	assert_non_null(strstr((const char *)out.data, "{\"stage\":\"ledger\",\"entered\":2,\"ns_per_exchange\":700}"));
	assert_non_null(strstr((const char *)out.data, "}]}\n"));
	buffer_done(&out);
}

static void prints_a_table_with_its_sum(void **state)
{
	struct buffer out = {0};
	struct profile profile;

	(void)state;
	profile_start(&profile, clock_of_test, cpu_clock_of_test);
	profile_switch(&profile, PROFILE_BODY);
	now_ns += 300;
	profile_switch(&profile, PROFILE_WRITING);
	now_ns += 40;
	profile_stop(&profile);
	assert_int_equal(profile_table(&profile, 1, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_non_null(strstr((const char *)out.data, "body                    1              300\n"));
	assert_non_null(strstr((const char *)out.data, "writing                 1               40\n"));
	/* Of what came before the first stage nothing is left: it was one reading of the clock. */
	assert_non_null(strstr((const char *)out.data, "all                     1              340\n"));
	buffer_done(&out);
}

static void leaves_out_what_others_ran(void **state)
{
	struct buffer out = {0};
	struct profile profile;

	(void)state;
	is_shared = true;
	profile_start(&profile, clock_of_test, cpu_clock_of_test);
	profile_switch(&profile, PROFILE_LEDGER);
	now_ns += 100000;
	profile_stop(&profile);
	is_shared = false;
	assert_int_equal(profile_json(&profile, 1, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_non_null(strstr((const char *)out.data, "{\"stage\":\"ledger\",\"entered\":1,\"ns_per_exchange\":49995}"));
	buffer_done(&out);
}

static void nobody_asked(void **state)
{
	(void)state;
	now_ns = 5;
	profile_enter(NULL, PROFILE_READING);
	assert_int_equal(now_ns, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_each_stage_the_time_between_two_switches),
		cmocka_unit_test(takes_off_what_the_clock_takes),
		cmocka_unit_test(prints_a_table_with_its_sum),
		cmocka_unit_test(leaves_out_what_others_ran),
		cmocka_unit_test(nobody_asked),
	};

	return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
