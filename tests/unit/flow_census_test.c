/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows without an end: two counts that do not find one, and nothing heard of it, end it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "flow_census.h"
#include "wire_build.h"

#define NOW 5000

static void see(struct flow_census *census, struct wire_event event)
{
	flow_census_see(census, &event);
}

static struct flow_census *two_flows(void)
{
	struct flow_census *census = flow_census_new();

	assert_non_null(census);
	see(census, wire_build(WIRE_BUILD_CLIENT, WIRE_OPEN, 1));
	see(census, wire_build(WIRE_BUILD_SERVER, WIRE_OPEN, 1));
	assert_int_equal(flow_census_size(census), 2);
	return census;
}

static bool nobody_is_lost(struct flow_census *census)
{
	struct wire_event end;

	return !flow_census_next_lost(census, NOW, &end);
}

/* The client's flow is found, the server's is not. */
static void count(struct flow_census *census)
{
	flow_census_begin(census);
	flow_census_lives(census, WIRE_BUILD_CLIENT_FLOW);
	flow_census_lives(census, 9999); /* opened since: not heard of yet */
}

static void one_that_two_counts_missed_is_lost(void **state)
{
	struct flow_census *census = two_flows();
	struct wire_event end;

	(void)state;
	see(census, wire_build_data(WIRE_BUILD_SERVER, 100, 20, 0, 1));
	see(census, wire_build_data(WIRE_BUILD_SERVER, 0, 100, 0, 1));
	count(census);
	assert_true(nobody_is_lost(census));
	assert_true(flow_census_doubts(census));
	count(census);
	assert_true(flow_census_next_lost(census, NOW, &end));
	assert_int_equal(end.version, WIRE_EVENT_VERSION);
	assert_int_equal(end.kind, WIRE_END);
	assert_int_equal(end.flow, WIRE_BUILD_SERVER_FLOW);
	assert_int_equal(end.flags, WIRE_STILL_OPEN | WIRE_END_UNSEEN);
	assert_int_equal(end.offset, 120);
	assert_int_equal(end.when_ns, NOW);
	assert_true(nobody_is_lost(census));
	assert_int_equal(flow_census_size(census), 1);
	assert_false(flow_census_doubts(census));
	flow_census_free(census);
}

static void one_of_which_anything_is_heard_is_not(void **state)
{
	struct flow_census *census = two_flows();

	(void)state;
	count(census);
	see(census, wire_build_data(WIRE_BUILD_SERVER, 0, 1, 0, 1));
	count(census);
	assert_true(nobody_is_lost(census));
	see(census, wire_build_end(WIRE_BUILD_SERVER, 1, 0, 2)); /* it was on its way */
	assert_int_equal(flow_census_size(census), 1);
	count(census);
	assert_true(nobody_is_lost(census));
	flow_census_free(census);
}

static void a_count_that_failed_says_nothing(void **state)
{
	struct flow_census *census = two_flows();

	(void)state;
	for (int i = 0; i < 3; i++) {
		flow_census_begin(census);
		flow_census_cancel(census);
	}
	assert_false(flow_census_doubts(census));
	count(census);
	assert_true(nobody_is_lost(census));
	flow_census_free(census);
}

static void what_is_of_no_flow_is_not_watched(void **state)
{
	struct flow_census *census = flow_census_new();
	struct wire_event connect = wire_build(WIRE_BUILD_CLIENT, WIRE_CONNECT, 1);

	(void)state;
	see(census, connect);
	see(census, wire_build_exit(1, "agent", 1));
	see(census, wire_build_end(WIRE_BUILD_CLIENT, 1, 0, 2));
	assert_int_equal(flow_census_size(census), 0);
	flow_census_free(census);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_two_counts_missed_is_lost),
		cmocka_unit_test(one_of_which_anything_is_heard_is_not),
		cmocka_unit_test(a_count_that_failed_says_nothing),
		cmocka_unit_test(what_is_of_no_flow_is_not_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
