/* SPDX-License-Identifier: BSD-2-Clause */
/* What monitor and collector say to each other: whole, in pieces, with a descriptor, and what is no message of ours. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "monitor_wire.h"

struct ends {
	struct monitor_wire monitor, collector;
};

static int set_up(void **state)
{
	struct ends *ends = calloc(1, sizeof(*ends));

	*state = ends;
	return !ends || monitor_wire_pair(&ends->monitor, &ends->collector);
}

static int tear_down(void **state)
{
	struct ends *ends = *state;

	monitor_wire_done(&ends->monitor);
	monitor_wire_done(&ends->collector);
	free(ends);
	return 0;
}

static void takes_a_message_over_as_it_is(void **state)
{
	struct ends *ends = *state;
	struct monitor_message sent = {.kind = MONITOR_CGROUP, .result = -ENOENT, .body = BYTES("/a/b"), .fd = -1}, got;

	assert_int_equal(monitor_wire_send(&ends->monitor, &sent), 0);
	assert_int_equal(monitor_wire_receive(&ends->collector, false, &got), 1);
	assert_int_equal(got.kind, MONITOR_CGROUP);
	assert_int_equal(got.result, -ENOENT);
	assert_true(bytes_equal(got.body, BYTES("/a/b")));
	assert_int_equal(got.fd, -1);
	assert_int_equal(monitor_wire_receive(&ends->collector, false, &got), 0);
}

static void an_empty_body_is_one(void **state)
{
	struct ends *ends = *state;
	struct monitor_message sent = {.kind = MONITOR_READY, .fd = -1}, got;

	assert_int_equal(monitor_wire_send(&ends->collector, &sent), 0);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), 1);
	assert_int_equal(got.kind, MONITOR_READY);
	assert_int_equal(got.body.size, 0);
}

static void puts_a_text_of_many_parts_together(void **state)
{
	struct ends *ends = *state;
	size_t size = 3 * MONITOR_CHUNK_BYTES + 17;
	uint8_t *text = malloc(size);
	struct monitor_message sent = {.kind = MONITOR_POLICY, .body = {text, size}, .fd = -1}, got;

	for (size_t i = 0; i < size; i++)
		text[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(monitor_wire_send(&ends->monitor, &sent), 0);
	assert_int_equal(monitor_wire_receive(&ends->collector, false, &got), 1);
	assert_int_equal(got.kind, MONITOR_POLICY);
	assert_true(bytes_equal(got.body, (struct bytes){text, size}));
	free(text);
}

static void a_descriptor_comes_along_and_closes_on_exec(void **state)
{
	struct ends *ends = *state;
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct monitor_message sent = {.kind = MONITOR_OPEN, .fd = fd}, got;
	struct stat ours, theirs;

	assert_int_equal(monitor_wire_send(&ends->monitor, &sent), 0);
	assert_int_equal(monitor_wire_receive(&ends->collector, true, &got), 1);
	assert_true(got.fd >= 0 && got.fd != fd);
	assert_int_equal(fcntl(got.fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(fstat(got.fd, &theirs), 0);
	assert_int_equal(ours.st_rdev, theirs.st_rdev);
	close(fd);
	close(got.fd);
}

static void what_is_too_long_is_not_sent(void **state)
{
	struct ends *ends = *state;
	struct monitor_message sent = {.kind = MONITOR_METRICS, .body = {(const uint8_t *)"", MONITOR_TEXT_MAX + 1}, .fd = -1}, got;

	assert_int_equal(monitor_wire_send(&ends->collector, &sent), -EMSGSIZE);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), 0);
}

static void the_other_end_may_be_gone(void **state)
{
	struct ends *ends = *state;
	struct monitor_message sent = {.kind = MONITOR_READY, .fd = -1}, got;

	monitor_wire_done(&ends->collector);
	assert_int_equal(monitor_wire_send(&ends->monitor, &sent), -EPIPE);
	assert_int_equal(monitor_wire_receive(&ends->monitor, true, &got), -ECONNRESET);
}

/* kind, result, size, more */
static void send_raw(int fd, uint32_t kind, uint32_t size, uint32_t more, size_t real_size)
{
	uint8_t message[64] = {0};
	uint32_t head[4] = {kind, 0, size, more};

	memcpy(message, head, sizeof(head));
	assert_int_equal(send(fd, message, sizeof(head) + real_size, 0), sizeof(head) + real_size);
}

static void no_message_of_ours_is_refused(void **state)
{
	static const struct {
		uint32_t kind, size, more;
		size_t real_size;
	} bad[] = {
		{0, 0, 0, 0},			     /* no kind */
		{MONITOR_KIND_END, 0, 0, 0},	     /* nor this */
		{MONITOR_READY, 4, 0, 3},	     /* shorter than it says */
		{MONITOR_READY, 3, 0, 4},	     /* longer */
		{MONITOR_READY, UINT32_MAX, 0, 4},
		{MONITOR_READY, 0, 2, 0},	     /* more is 0 or 1 */
	};
	struct ends *ends = *state;
	struct monitor_message got;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		send_raw(ends->collector.fd, bad[i].kind, bad[i].size, bad[i].more, bad[i].real_size);
		assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), -EPROTO);
	}
	assert_int_equal(send(ends->collector.fd, "x", 1, 0), 1);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), -EPROTO);
}

static void a_part_that_is_missing_is_not_waited_for(void **state)
{
	struct ends *ends = *state;
	struct monitor_message got;

	send_raw(ends->collector.fd, MONITOR_METRICS, 3, 1, 3);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), 0);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), 0);
	send_raw(ends->collector.fd, MONITOR_METRICS, 2, 0, 2);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), 1);
	assert_int_equal(got.body.size, 5);
}

static void a_part_of_another_kind_is_refused(void **state)
{
	struct ends *ends = *state;
	struct monitor_message got;

	send_raw(ends->collector.fd, MONITOR_METRICS, 3, 1, 3);
	send_raw(ends->collector.fd, MONITOR_READY, 0, 0, 0);
	assert_int_equal(monitor_wire_receive(&ends->monitor, false, &got), -EPROTO);
}

/* A collector that was taken over could send parts for ever. */
static void a_text_without_end_is_refused(void **state)
{
	struct ends *ends = *state;
	uint8_t *part = calloc(1, 16 + MONITOR_CHUNK_BYTES);
	uint32_t head[4] = {MONITOR_METRICS, 0, MONITOR_CHUNK_BYTES, 1};
	struct monitor_message got;
	int result = 0;

	memcpy(part, head, sizeof(head));
	for (int i = 0; i <= MONITOR_TEXT_MAX / MONITOR_CHUNK_BYTES && result == 0; i++) {
		assert_int_equal(send(ends->collector.fd, part, 16 + MONITOR_CHUNK_BYTES, 0), 16 + MONITOR_CHUNK_BYTES);
		result = monitor_wire_receive(&ends->monitor, false, &got);
	}
	assert_int_equal(result, -EPROTO);
	free(part);
}

static bool is_valid(const char *tenant, uint8_t file)
{
	struct monitor_open open = {.file = file}, got;

	snprintf(open.tenant, sizeof(open.tenant), "%s", tenant);
	return monitor_open_is_valid((struct bytes){(const uint8_t *)&open, sizeof(open)}, &got);
}

static void a_tenant_is_the_name_of_a_file_here(void **state)
{
	struct monitor_open open = {0}, got;

	(void)state;
	assert_true(is_valid("docker-0123456789ab", AUDIT_LEDGER));
	assert_true(is_valid("user@1000.service+x", AUDIT_EVENTS));
	assert_false(is_valid("", AUDIT_LEDGER));
	assert_false(is_valid(".", AUDIT_LEDGER));
	assert_false(is_valid("..", AUDIT_LEDGER));
	assert_false(is_valid(".audit.running", AUDIT_LEDGER));
	assert_false(is_valid("../../etc", AUDIT_LEDGER));
	assert_false(is_valid("a/b", AUDIT_LEDGER));
	assert_false(is_valid("a", AUDIT_FILE_COUNT));
	memset(open.tenant, 'a', sizeof(open.tenant)); /* no NUL */
	assert_false(monitor_open_is_valid((struct bytes){(const uint8_t *)&open, sizeof(open)}, &got));
	assert_false(monitor_open_is_valid((struct bytes){(const uint8_t *)&open, sizeof(open) - 1}, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(takes_a_message_over_as_it_is, set_up, tear_down),
		cmocka_unit_test_setup_teardown(an_empty_body_is_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(puts_a_text_of_many_parts_together, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_descriptor_comes_along_and_closes_on_exec, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_too_long_is_not_sent, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_other_end_may_be_gone, set_up, tear_down),
		cmocka_unit_test_setup_teardown(no_message_of_ours_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_that_is_missing_is_not_waited_for, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_part_of_another_kind_is_refused, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_text_without_end_is_refused, set_up, tear_down),
		cmocka_unit_test(a_tenant_is_the_name_of_a_file_here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
