/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Connections off loopback, played as wire events through the whole pipeline:
 * told of where they were let through, a high finding where --confine refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"

#define AGENT 4711

/* The last byte of the address is given: 192.0.2.x. */
static struct wire_event connect_to(const char *comm, uint8_t last, uint16_t port, uint16_t flags)
{
	static const uint8_t elsewhere[WIRE_ADDRESS_BYTES] = {
		[10] = 0xff, [11] = 0xff, [12] = 192, [13] = 0, [14] = 2};
	struct wire_event event =
		wire_build_process_event(WIRE_CONNECT, AGENT, comm, SCENE_START_NS);

	memcpy(event.remote_address, elsewhere, sizeof(elsewhere));
	event.remote_address[15] = last;
	event.remote_port = port;
	event.flags |= WIRE_CLIENT | flags;
	return event;
}

static void play(struct scene *scene, struct wire_event event)
{
	scene_feed(scene, &event, (struct bytes){0});
}

static void assert_text(struct bytes text, const char *expected)
{
	char copy[2048];

	assert_true(text.size < sizeof(copy));
	memcpy(copy, text.data ? text.data : (const uint8_t *)"", text.size);
	copy[text.size] = '\0';
	assert_string_equal(copy, expected);
}

static void one_that_was_let_through_is_told_of_and_fails_nothing(void **state)
{
	struct scene scene;
	json_object *event;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	play(&scene, connect_to("curl", 1, 443, 0));
	assert_int_equal(scene_finish(&scene, 7), 7);
	assert_int_equal(scene_count(&scene, "off_loopback"), 1);
	event = scene_event(&scene, "off_loopback", 0);
	assert_string_equal(scene_field(event, "pid"), "4711");
	assert_string_equal(scene_field(event, "comm"), "curl");
	assert_string_equal(scene_field(event, "dst"), "192.0.2.1:443");
	assert_string_equal(scene_field(event, "refused"), "false");
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "findings"),
			    "{ \"off_loopback\": 1 }");
	assert_int_equal(scene.out.alerts.size, 0);
	assert_non_null(strstr(pipeline_summary_line(scene.pipeline),
			       "0 findings (0 high, 0 medium, 0 low)"));
	scene_done(&scene);
}

static void one_that_was_let_through_is_a_finding_of_severity_info(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene.options.judge.fail_on = SEVERITY_INFO;
	scene_open(&scene);
	play(&scene, connect_to("curl", 1, 443, 0));
	assert_int_equal(scene_finish(&scene, 0), 10);
	scene_done(&scene);
	scene_start(&scene);
	scene.options.judge.fail_on = SEVERITY_LOW;
	scene_open(&scene);
	play(&scene, connect_to("curl", 1, 443, 0));
	assert_int_equal(scene_finish(&scene, 0), 0);
	scene_done(&scene);
}

static void one_that_was_refused_is_a_high_finding(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene.options.judge.fail_on = SEVERITY_HIGH;
	scene_open(&scene);
	play(&scene, connect_to("curl", 1, 80, WIRE_REFUSED));
	assert_int_equal(scene_finish(&scene, 7), 10);
	assert_string_equal(scene_field(scene_event(&scene, "off_loopback", 0), "refused"), "true");
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "exit"), "10");
	assert_string_equal(scene_field(scene_event(&scene, "summary", 0), "attempts"), "0");
	assert_non_null(strstr(pipeline_summary_line(scene.pipeline),
			       "1 finding (1 high, 0 medium, 0 low)"));
	assert_text(
		buffer_bytes(&scene.out.alerts),
		"nightclerk: HIGH off_loopback: curl (pid 4711) tried to connect to 192.0.2.1:80 and was refused; "
		"next: point the program at a local server\n");
	scene_done(&scene);
}

static void every_try_is_an_event_and_each_destination_of_a_name_one_line(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	for (int i = 0; i < 3; i++)
		play(&scene, connect_to("curl", 1, 80, WIRE_REFUSED));
	play(&scene, connect_to("node", 1, 80, WIRE_REFUSED));
	play(&scene, connect_to("curl", 1, 443, WIRE_REFUSED));
	play(&scene, connect_to("curl", 2, 9999, WIRE_REFUSED | WIRE_DATAGRAM));
	play(&scene, connect_to("curl", 2, 53, WIRE_REFUSED | WIRE_DATAGRAM));
	assert_int_equal(scene_finish(&scene, 0), 10);
	assert_int_equal(scene_count(&scene, "off_loopback"), 7);
	assert_text(
		buffer_bytes(&scene.out.alerts),
		"nightclerk: HIGH off_loopback: curl (pid 4711) tried to connect to 192.0.2.1:80 and was refused, "
		"3 times; next: point the program at a local server\n"
		"nightclerk: HIGH off_loopback: node (pid 4711) tried to connect to 192.0.2.1:80 and was refused; "
		"next: point the program at a local server\n"
		"nightclerk: HIGH off_loopback: curl (pid 4711) tried to connect to 192.0.2.1:443 and was refused; "
		"next: point the program at a local server\n"
		"nightclerk: HIGH off_loopback: curl (pid 4711) tried to reach 192.0.2.2:9999 over UDP and was "
		"refused; next: point the program at a local server\n"
		"nightclerk: HIGH off_loopback: curl (pid 4711) tried to reach 192.0.2.2:53 over UDP (to look up a "
		"name) and was refused; next: point the program at a local server\n");
	scene_done(&scene);
}

static void without_alerts_the_gate_still_fails(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene.options.no_alerts = true;
	scene_open(&scene);
	play(&scene, connect_to("curl", 1, 80, WIRE_REFUSED));
	assert_int_equal(scene_finish(&scene, 0), 10);
	assert_int_equal(scene.out.alerts.size, 0);
	scene_done(&scene);
}

static void a_refusal_is_a_failed_test_case(void **state)
{
	struct scene scene;
	const char *junit;

	(void)state;
	scene_start(&scene);
	scene.options.junit = true;
	scene_open(&scene);
	play(&scene, connect_to("a<b", 2, 53, WIRE_REFUSED | WIRE_DATAGRAM));
	play(&scene, connect_to("curl", 1, 80, 0));
	assert_int_equal(scene_finish(&scene, 0), 10);
	assert_int_equal(buffer_append_byte(&scene.out.junit, 0), 0);
	junit = (const char *)scene.out.junit.data;
	assert_non_null(strstr(junit, " tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\" "));
	assert_non_null(strstr(
		junit,
		"    <testcase classname=\"nightclerk.off_loopback\" name=\"a&lt;b to 192.0.2.2:53/udp\">\n"
		"      <failure type=\"off_loopback\" message=\"a&lt;b (pid 4711) tried to reach 192.0.2.2:53 "
		"over UDP (to look up a name) and was refused\">point the program at a local "
		"server</failure>\n"));
	buffer_done(&scene.out.junit);
	scene_done(&scene);
}

static struct wire_event connect_in_another_namespace(void)
{
	struct wire_event event = connect_to("curl", 1, 8080, WIRE_OTHER_NETNS);

	event.netns = 4026539999;
	return event;
}

static void one_in_another_namespace_cannot_be_told(void **state)
{
	struct scene scene;
	json_object *event;

	(void)state;
	scene_start(&scene);
	scene_open(&scene);
	play(&scene, connect_in_another_namespace());
	play(&scene, connect_in_another_namespace());
	assert_int_equal(scene_finish(&scene, 0), 11);
	assert_int_equal(scene_count(&scene, "off_loopback"), 0);
	assert_int_equal(scene_count(&scene, "blind"), 2);
	event = scene_event(&scene, "blind", 0);
	assert_string_equal(scene_field(event, "blind_kind"), "netns");
	assert_string_equal(scene_field(event, "pid"), "4711");
	assert_string_equal(scene_field(event, "comm"), "curl");
	assert_non_null(strstr(scene_field(event, "connection"), " -> 192.0.2.1:8080"));
	assert_null(scene_field(event, "bytes_out"));
	assert_null(scene_field(event, "bytes_in"));
	assert_non_null(strstr(pipeline_summary_line(scene.pipeline),
			       "a connection in another network namespace could not be seen"));
	assert_non_null(strstr(pipeline_summary_line(scene.pipeline), "could not be read: curl (4711): 2 netns"));
	scene_done(&scene);
}

static void one_in_another_namespace_that_is_allowed_fails_nothing(void **state)
{
	struct scene scene;

	(void)state;
	scene_start(&scene);
	scene.options.judge.allow_blind = 1u << BLIND_NETNS;
	scene_open(&scene);
	play(&scene, connect_in_another_namespace());
	assert_int_equal(scene_finish(&scene, 3), 3);
	assert_int_equal(scene_count(&scene, "blind"), 1);
	scene_done(&scene);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_was_let_through_is_told_of_and_fails_nothing),
		cmocka_unit_test(one_that_was_let_through_is_a_finding_of_severity_info),
		cmocka_unit_test(one_that_was_refused_is_a_high_finding),
		cmocka_unit_test(every_try_is_an_event_and_each_destination_of_a_name_one_line),
		cmocka_unit_test(without_alerts_the_gate_still_fails),
		cmocka_unit_test(a_refusal_is_a_failed_test_case),
		cmocka_unit_test(one_in_another_namespace_cannot_be_told),
		cmocka_unit_test(one_in_another_namespace_that_is_allowed_fails_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
