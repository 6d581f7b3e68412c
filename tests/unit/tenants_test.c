/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose calls, bytes and losses they are, with several sandboxes on one host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "tenants_play.h"

#define CLIENT WIRE_BUILD_CLIENT
#define SERVER WIRE_BUILD_SERVER
#define AGENT WIRE_BUILD_CLIENT_TGID

static struct host host;

static void each_tenant_has_its_own_ledger(void **state)
{
	struct tenant *first, *second;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	host_name(&host, 100, "/system.slice/a.service");
	host_name(&host, 101, "/sandboxes/7");
	charge_once(&host.sandbox[0], "{\"n\":1}");
	charge_once(&host.sandbox[1], "{\"n\":2}");
	charge_once(&host.sandbox[1], "{\"n\":3}");
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 2);
	first = host_tenant(&host, "a.service", 0);
	second = host_tenant(&host, "sandboxes+7", 0);
	assert_int_equal(host_requests(&host, "a.service"), 1);
	assert_int_equal(host_requests(&host, "sandboxes+7"), 2);
	assert_string_not_equal(tenant_run_id(first), tenant_run_id(second));
	assert_string_not_equal(tenant_run_id(first), host.facts.run_id);
	assert_int_equal(strlen(tenant_run_id(first)), 16);
	assert_true(tenant_ended(first));
	assert_int_equal(tenant_summary(second)->requests, 2);
	assert_int_equal(tenant_gate(second)->mutating, 2);
	assert_int_equal(tenant_summary(second)->incomplete_count, 0);
	host_done(&host);
}

static void lines_name_the_tenant_and_its_run(void **state)
{
	struct tenant *tenant;
	json_object *ledger, *events, *line;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	host_name(&host, 100, "/sandboxes/7");
	charge_once(&host.sandbox[0], "{}");
	host_finish(&host);
	tenant = host_tenant(&host, "sandboxes+7", 0);
	ledger = scene_lines(buffer_bytes(&tenant_output(tenant)->ledger));
	events = scene_lines(buffer_bytes(&tenant_output(tenant)->events));
	line = json_object_array_get_idx(ledger, 0);
	assert_string_equal(scene_field(line, "tenant"), "sandboxes+7");
	assert_string_equal(scene_field(line, "run"), tenant_run_id(tenant));
	assert_string_equal(scene_field(line, "cgroup"), "/sandboxes/7");
	line = json_object_array_get_idx(events, 0);
	assert_string_equal(scene_field(line, "kind"), "start");
	assert_string_equal(scene_field(line, "tenant"), "sandboxes+7");
	line = json_object_array_get_idx(events, json_object_array_length(events) - 1);
	assert_string_equal(scene_field(line, "kind"), "summary");
	assert_string_equal(scene_field(line, "tenant"), "sandboxes+7");
	json_object_put(ledger);
	json_object_put(events);
	host_done(&host);
}

static void without_a_split_nothing_changes(void **state)
{
	struct tenant *tenant;

	(void)state;
	host_start(&host, TENANT_SPLIT_NONE);
	host_open(&host);
	charge_once(&host.sandbox[0], "{\"n\":1}");
	charge_once(&host.sandbox[1], "{\"n\":2}");
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 1);
	tenant = host_tenant(&host, "all", 0);
	assert_string_equal(tenant_run_id(tenant), host.facts.run_id);
	assert_int_equal(host_requests(&host, "all"), 2);
	assert_int_equal(tenant_summary(tenant)->incomplete_count, 0);
	assert_false(tenant_says(tenant, "\"tenant\""));
	host_done(&host);
}

static void a_uid_is_a_tenant(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_UID);
	host.sandbox[1].uid = 1000;
	host.sandbox[2].uid = 0;
	host_open(&host);
	charge_once(&host.sandbox[0], "{\"n\":1}");
	charge_once(&host.sandbox[1], "{\"n\":2}");
	charge_once(&host.sandbox[2], "{\"n\":3}");
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 2);
	assert_int_equal(host_requests(&host, "uid-1000"), 2);
	assert_int_equal(host_requests(&host, "uid-0"), 1);
	host_done(&host);
}

static void a_cgroup_without_a_path_is_named_by_its_number(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge_once(&host.sandbox[0], "{\"n\":1}");
	host_name(&host, 100, "/late");
	charge_once(&host.sandbox[0], "{\"n\":2}");
	host_finish(&host);
	assert_int_equal(host_requests(&host, "cgroup-100"), 1);
	assert_int_equal(host_requests(&host, "late"), 1);
	host_done(&host);
}

/* The server is in a cgroup of its own: it answers in its client's ledger. */
static void both_flows_are_the_clients(void **state)
{
	struct tenant *tenant;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 1);
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_true(tenant_says(tenant, "\"status\":200"));
	assert_int_equal(tenant_summary(tenant)->message_bytes, host.accepted);
	host_done(&host);
}

/* ---- what waits ---- */

static void the_first_send_tells_where_the_open_does_not(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.sandbox[0].nameless_open = true;
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 1);
	assert_int_equal(host_requests(&host, "cgroup-100"), 1);
	assert_true(tenant_says(host_tenant(&host, "cgroup-100", 0), "\"status\":200"));
	assert_int_equal(tenant_summary(host_tenant(&host, "cgroup-100", 0))->incomplete_count, 0);
	host_done(&host);
}

static void what_nobody_owns_goes_to_others_in_order(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	sandbox->nameless = true;
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	charge(sandbox, c, "{}");
	host_tick(&host, 998); /* and one passed before */
	assert_int_equal(host_tenants(&host), 0);
	host_tick(&host, 1);
	assert_int_equal(host_tenants(&host), 1);
	assert_int_equal(host_requests(&host, "others"), 1);
	charge(sandbox, c, "{\"n\":2}");
	assert_int_equal(host_requests(&host, "others"), 2);
	leave(sandbox, c);
	host_finish(&host);
	assert_int_equal(tenant_summary(host_tenant(&host, "others", 0))->incomplete_count, 0);
	host_done(&host);
}

static void once_it_is_of_others_it_stays_there(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	sandbox->nameless = true;
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	host_tick(&host, 1000);
	sandbox->nameless = false;
	charge(sandbox, c, "{}");
	leave(sandbox, c);
	host_finish(&host);
	assert_int_equal(host_tenants(&host), 1);
	assert_int_equal(host_requests(&host, "others"), 1);
	host_done(&host);
}

static void a_drain_waits_for_nobody(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.sandbox[0].nameless = true;
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host_finish(&host);
	assert_int_equal(host_requests(&host, "others"), 1);
	assert_int_equal(tenant_summary(host_tenant(&host, "others", 0))->incomplete_count, 0);
	host_done(&host);
}

static void a_drain_ends_what_lives_on(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge(&host.sandbox[0], scene_connect(&host.sandbox[0].scene, AGENT), "{}");
	assert_int_equal(tenant_connections(host_tenant(&host, "cgroup-100", 0)), 1);
	host_finish(&host);
	assert_int_equal(tenant_connections(host_tenant(&host, "cgroup-100", 0)), 0);
	assert_int_equal(tenant_summary(host_tenant(&host, "cgroup-100", 0))->incomplete_count, 0);
	host_done(&host);
}

/* Of one connection: the count; of all: the bytes. */
static void what_waits_is_bounded(void **state)
{
	static char body[60000];
	struct sandbox *sandbox = &host.sandbox[0];
	uint32_t c;

	(void)state;
	memset(body, 'x', sizeof(body));
	host_start(&host, TENANT_SPLIT_CGROUP);
	sandbox->nameless = true;
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	for (int i = 0; i < TENANTS_HELD_EVENTS_PER_CONNECTION - 2; i++) {
		assert_int_equal(host_tenants(&host), 0);
		scene_send(&sandbox->scene, c, CLIENT, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	}
	assert_int_equal(host_requests(&host, "others"), TENANTS_HELD_EVENTS_PER_CONNECTION - 2);
	host_done(&host);

	host_start(&host, TENANT_SPLIT_CGROUP);
	sandbox->nameless = true;
	host_open(&host);
	for (int i = 0; i < 16; i++) {
		c = scene_connect(&sandbox->scene, AGENT);
		scene_send(&sandbox->scene, c, CLIENT, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1200000\r\n\r\n");
		for (int n = 0; n < 20; n++)
			scene_send_bytes(&sandbox->scene, c, CLIENT, (struct bytes){(uint8_t *)body, sizeof(body)});
	}
	assert_int_equal(host_requests(&host, "others"), 3);
	host_done(&host);
}

/* ---- findings ---- */

/* Three sandboxes charge the same once each, the last one twice: from two processes. */
static size_t findings_of_all(enum tenant_split split, uint32_t uid)
{
	struct sandbox *last = &host.sandbox[2];
	struct tenant *tenant = NULL;
	size_t findings = 0;
	uint32_t c;

	host_start(&host, split);
	for (int n = 0; n < 3; n++)
		host.sandbox[n].uid = uid;
	host_open(&host);
	for (int n = 0; n < 3; n++) {
		charge_once(&host.sandbox[n], "{\"amount\":1}");
	}
	c = scene_connect(&last->scene, AGENT + 50);
	charge(last, c, "{\"amount\":1}");
	leave(last, c);
	host_finish(&host);
	while ((tenant = tenants_next(host.tenants, tenant)))
		findings += tenant_summary(tenant)->findings[FINDING_DUP_AFTER_SUCCESS];
	host_done(&host);
	return findings;
}

static void a_repeat_is_one_only_within_a_cgroup(void **state)
{
	(void)state;
	assert_int_equal(findings_of_all(TENANT_SPLIT_CGROUP, 1000), 1);
	assert_int_equal(findings_of_all(TENANT_SPLIT_UID, 1000), 1);
	assert_int_equal(findings_of_all(TENANT_SPLIT_NONE, 1000), 1);
}

/* ---- losses ---- */

static void a_loss_counts_against_its_tenant_alone(void **state)
{
	struct sandbox *flood = &host.sandbox[0];
	struct tenant *tenant;
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	c = scene_connect(&flood->scene, AGENT);
	charge(flood, c, "{}");
	scene_lose(&flood->scene, c, CLIENT, 5000);
	leave(flood, c);
	charge_once(&host.sandbox[1], "{}");
	host_finish(&host);
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_int_equal(tenant_counters(tenant)->value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_RING_FULL], 5000);
	assert_int_equal(tenant_totals(tenant).hole_bytes, 5000);
	assert_true(tenant_cannot_tell(tenant, "bytes were not seen (holes)"));
	assert_false(tenant_cannot_tell(tenant, "the bytes do not add up"));
	tenant = host_tenant(&host, "cgroup-101", 0);
	assert_int_equal(tenant_summary(tenant)->incomplete_count, 0);
	assert_int_equal(tenant_summary(tenant)->accepted_bytes, tenant_totals(tenant).message_bytes);
	host_done(&host);
}

/* As the stream stage sees it: bytes that no event brought are MISSED. */
static void a_gap_that_no_event_tells_of_is_counted(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];
	struct tenant *tenant;
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	charge(sandbox, c, "{}");
	sandbox->scene.ends[c][CLIENT].sent += 300;
	host.accepted += 300;
	leave(sandbox, c);
	host_finish(&host);
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_int_equal(tenant_counters(tenant)->value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_MISSED], 300);
	assert_int_equal(tenant_counters(tenant)->value[WIRE_COUNTER_ACCEPTED_BYTES], host.accepted);
	assert_int_equal(tenant_totals(tenant).hole_bytes, 300);
	assert_false(tenant_cannot_tell(tenant, "the bytes"));
	host_done(&host);
}

static void a_loss_of_anyone_counts_against_all_that_live(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] = 2;
	host.counters.recursion_misses = 3;
	host_count(&host);
	charge_once(&host.sandbox[1], "{}");
	host_finish(&host);
	assert_true(tenant_cannot_tell(host_tenant(&host, "cgroup-100", 0), "a connection or process event was lost"));
	assert_true(tenant_cannot_tell(host_tenant(&host, "cgroup-100", 0), "the kernel skipped a probe"));
	assert_int_equal(tenant_counters(host_tenant(&host, "cgroup-100", 0))->recursion_misses, 3);
	assert_int_equal(tenant_summary(host_tenant(&host, "cgroup-101", 0))->incomplete_count, 0);
	host_done(&host);
}

/* The kernel counts on across the lives of collectors. */
static void after_a_gap_the_counts_of_an_earlier_life_are_not_this_ones(void **state)
{
	static const struct run_gap gap = {.from_ns = 1, .until_ns = 2, .cause = "the collector was killed"};
	static const struct {
		enum tenant_split split;
		const char *name;
	} splits[] = {{TENANT_SPLIT_NONE, "all"}, {TENANT_SPLIT_CGROUP, "cgroup-100"}, {TENANT_SPLIT_UID, "uid-1000"}};

	(void)state;
	for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
		struct tenant *tenant;

		host_start(&host, splits[i].split);
		host.pipeline.gap = &gap;
		host_open(&host);
		host.accepted = 5000;
		host.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] = 7;
		host.counters.value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_RING_FULL] = 70;
		host.counters.recursion_misses = 9;
		host_count(&host);
		charge_once(&host.sandbox[0], "{}");
		host.counters.value[WIRE_COUNTER_STALE_CALLS] = 3;
		host_finish(&host);
		tenant = host_tenant(&host, splits[i].name, 0);
		assert_int_equal(tenant_summary(tenant)->incomplete_count, 1);
		assert_true(tenant_cannot_tell(tenant, "the collector was started again"));
		assert_int_equal(tenant_summary(tenant)->accepted_bytes, tenant_totals(tenant).message_bytes);
		assert_int_equal(tenant_counters(tenant)->value[WIRE_COUNTER_STALE_CALLS], 3);
		assert_int_equal(tenant_counters(tenant)->value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_RING_FULL], 0);
		host_done(&host);
	}
}

static void bytes_of_nobody_count_against_all(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	charge_once(&host.sandbox[1], "{}");
	host.accepted += 1;
	host_finish(&host);
	assert_true(tenant_cannot_tell(host_tenant(&host, "cgroup-100", 0), "the bytes of all tenants do not add up"));
	assert_true(tenant_cannot_tell(host_tenant(&host, "cgroup-101", 0), "the bytes of all tenants do not add up"));
	host_done(&host);
}

/* ---- lives ---- */

static void beyond_max_there_is_others(void **state)
{
	uint32_t c[3];

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.max = 2;
	host_open(&host);
	for (int n = 0; n < 3; n++) {
		host.sandbox[n].scene.now_ns = host.now_ns;
		c[n] = scene_connect(&host.sandbox[n].scene, AGENT);
		charge(&host.sandbox[n], c[n], "{}");
	}
	assert_int_equal(host_requests(&host, "cgroup-100"), 1);
	assert_int_equal(host_requests(&host, "cgroup-101"), 1);
	assert_int_equal(host_requests(&host, "others"), 1);
	assert_null(host_tenant(&host, "cgroup-102", 0));
	for (int n = 0; n < 3; n++) {
		host.sandbox[n].scene.now_ns = host.now_ns;
		leave(&host.sandbox[n], c[n]);
	}
	host_finish(&host);
	assert_int_equal(tenant_summary(host_tenant(&host, "others", 0))->incomplete_count, 0);
	host_done(&host);
}

static void the_quietest_makes_room_and_says_so(void **state)
{
	struct tenant *first;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.max = 2;
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host_tick(&host, 10);
	charge_once(&host.sandbox[1], "{}");
	host_count(&host);
	host_tick(&host, 10);
	charge_once(&host.sandbox[2], "{}");
	first = host_tenant(&host, "cgroup-100", 0);
	assert_true(tenant_ended(first));
	assert_int_equal(tenant_summary(first)->incomplete_count, 1);
	assert_true(tenant_cannot_tell(first, "it was closed for want of room"));
	assert_false(tenant_ended(host_tenant(&host, "cgroup-101", 0)));
	assert_int_equal(host_requests(&host, "cgroup-102"), 1);
	assert_null(host_tenant(&host, "others", 0));
	host_done(&host);
}

static void charge_as(uint64_t cgroup_id, const char *path)
{
	host_name(&host, cgroup_id, path);
	host.sandbox[0].cgroup_id = cgroup_id;
	charge_once(&host.sandbox[0], "{}");
	host_tick(&host, 10);
}

/* Max is 8, so a holder's share is 2: while there is room he may have more, and he is the first to make some. */
static void who_makes_tenants_without_end_closes_his_own(void **state)
{
	struct sandbox *busy = &host.sandbox[1];
	char path[128];
	uint32_t c[2];

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.max = 8;
	host_open(&host);
	charge_as(100, "/system.slice/web.service");
	for (unsigned int n = 0; n < 40; n++) {
		if (n % 2)
			snprintf(path, sizeof(path), "/user.slice/user-7.slice/session-%u.scope", n);
		else
			snprintf(path, sizeof(path), "/user.slice/user-7.slice/user@7.service/libpod-%012u%052u.scope", n, 0U);
		charge_as(200 + n, path);
	}
	assert_false(tenant_ended(host_tenant(&host, "web.service", 0)));
	for (unsigned int n = 0; n < 5; n++) {
		snprintf(path, sizeof(path), "/system.slice/db%u.service", n);
		charge_as(101 + n, path);
	}
	assert_false(tenant_ended(host_tenant(&host, "web.service", 0)));
	assert_null(host_tenant(&host, "others", 0));
	for (unsigned int n = 0; n < 2; n++) { /* his two are busy now: he finds no room, though others are quiet */
		snprintf(path, sizeof(path), "/user.slice/user-7.slice/session-%u.scope", n ? 39 : 37);
		busy->cgroup_id = n ? 239 : 237;
		busy->scene.now_ns = host.now_ns;
		c[n] = scene_connect(&busy->scene, AGENT);
		charge(busy, c[n], "{}");
	}
	charge_as(300, "/user.slice/user-7.slice/session-300.scope");
	assert_int_equal(host_requests(&host, "others"), 1);
	assert_false(tenant_ended(host_tenant(&host, "web.service", 0)));
	host_finish(&host);
	host_done(&host);
}

static void an_idle_tenant_is_closed_and_may_come_back(void **state)
{
	struct tenant *first, *second;
	char run_id[17];

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.idle_ns = 100 * SCENE_MS;
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	host_count(&host);
	host_tick(&host, 99);
	first = host_tenant(&host, "cgroup-100", 0);
	assert_false(tenant_ended(first));
	host_tick(&host, 1);
	assert_true(tenant_ended(first));
	assert_true(tenant_says(first, "\"kind\":\"summary\""));
	assert_int_equal(tenant_summary(first)->incomplete_count, 0);
	assert_int_equal(tenant_summary(first)->closing->wall_ms, 102);
	charge_once(&host.sandbox[0], "{}");
	second = host_tenant(&host, "cgroup-100", 1);
	assert_non_null(second);
	assert_int_equal(lines_of(buffer_bytes(&tenant_output(second)->ledger)), 1);
	snprintf(run_id, sizeof(run_id), "%s", tenant_run_id(first));
	assert_string_not_equal(tenant_run_id(second), run_id);
	tenants_forget(host.tenants, first);
	assert_ptr_equal(host_tenant(&host, "cgroup-100", 0), second);
	host_finish(&host);
	assert_int_equal(tenant_summary(second)->incomplete_count, 0); /* with the bytes of the one that is gone */
	host_done(&host);
}

struct lives {
	unsigned int born, ended;
	char name[TENANT_NAME_BYTES + 1];
};

static void note_birth(void *context, struct tenant *tenant)
{
	struct lives *lives = context;

	lives->born++;
	assert_int_equal(tenant_gate(tenant)->requests, 0);
	assert_null(tenant_attached(tenant));
	tenant_attach(tenant, lives);
	snprintf(lives->name, sizeof(lives->name), "%s", tenant_name(tenant));
}

static void note_end(void *context, const struct tenant *tenant, struct closing *closing)
{
	struct lives *lives = context;

	lives->ended++;
	assert_ptr_equal(tenant_attached(tenant), lives);
	closing->has_store = true;
	closing->store_lost = 3;
}

static void a_birth_is_told_before_the_first_call_and_an_end_before_the_summary(void **state)
{
	struct lives lives = {0};

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.born = note_birth;
	host.options.ending = note_end;
	host.options.context = &lives;
	host_open(&host);
	assert_int_equal(lives.born, 0);
	charge_once(&host.sandbox[0], "{}");
	assert_int_equal(lives.born, 1);
	assert_string_equal(lives.name, "cgroup-100");
	host_finish(&host);
	assert_int_equal(lives.ended, 1);
	assert_int_equal(tenant_summary(host_tenant(&host, "cgroup-100", 0))->closing->store_lost, 3);
	assert_true(tenant_says(host_tenant(&host, "cgroup-100", 0), "\"lost\":3"));
	host_done(&host);
}

static void a_tenant_with_something_open_is_not_idle(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.idle_ns = 100 * SCENE_MS;
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	assert_int_equal(tenant_connections(host_tenant(&host, "cgroup-100", 0)), 1);
	host_tick(&host, 1000);
	assert_false(tenant_ended(host_tenant(&host, "cgroup-100", 0)));
	leave(sandbox, c);
	assert_int_equal(tenant_connections(host_tenant(&host, "cgroup-100", 0)), 0);
	host_tick(&host, 100);
	assert_true(tenant_ended(host_tenant(&host, "cgroup-100", 0)));
	/* The kernel's counters were not read since. */
	assert_true(tenant_cannot_tell(host_tenant(&host, "cgroup-100", 0), "the kernel's counters could not be read"));
	host_done(&host);
}

/* ---- memory ---- */

static char block[60000];

/* The head of a request of that many blocks, and so many of them. */
static void send_blocks(struct sandbox *sandbox, uint32_t c, unsigned int of, unsigned int count)
{
	char head[128];

	memset(block, 'x', sizeof(block));
	snprintf(head, sizeof(head), "POST /a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
		 of * sizeof(block));
	scene_send(&sandbox->scene, c, CLIENT, head);
	for (unsigned int i = 0; i < count; i++)
		scene_send_bytes(&sandbox->scene, c, CLIENT, (struct bytes){(uint8_t *)block, sizeof(block)});
}

/* Requests that never end: the flood's own bodies are not kept, its neighbour's is. */
static void who_holds_all_it_can_leaves_as_much(void **state)
{
	struct sandbox *flood = &host.sandbox[0], *neighbour = &host.sandbox[1];
	struct tenant *tenant;
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	for (int i = 0; i < 60; i++) {
		c = scene_connect(&flood->scene, AGENT);
		send_blocks(flood, c, 101, 100);
	}
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_in_range(tenant_memory(tenant), LIMIT_TENANTS_CALLS_BYTES / 2 - 10000000, LIMIT_TENANTS_CALLS_BYTES / 2 + 100000);
	neighbour->scene.now_ns = host.now_ns;
	for (int i = 0; i < 3; i++) {
		c = scene_connect(&neighbour->scene, AGENT + 10 + i);
		send_blocks(neighbour, c, 100, 100);
		leave(neighbour, c);
	}
	host_finish(&host);
	assert_int_equal(host_requests(&host, "cgroup-101"), 3);
	assert_false(memmem(tenant_output(host_tenant(&host, "cgroup-101", 0))->ledger.data,
			    tenant_output(host_tenant(&host, "cgroup-101", 0))->ledger.size, "too much is held", 16));
	assert_int_equal(tenant_summary(host_tenant(&host, "cgroup-101", 0))->attempts, 2);
	assert_int_equal(host_requests(&host, "cgroup-100"), 60);
	assert_true(memmem(tenant_output(tenant)->ledger.data, tenant_output(tenant)->ledger.size, "too much is held", 16));
	assert_in_range(tenant_memory(tenant), 0, 100000); /* all is given back */
	host_done(&host);
}

/* Its share of remembered calls is full: it forgets its own, and nobody else's. */
static void who_calls_most_forgets_its_own(void **state)
{
	struct tenant *tenant;
	char body[32];

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host.options.max = 255;
	host_open(&host);
	charge_once(&host.sandbox[1], "{\"amount\":1}");
	for (int i = 0; i < 8000; i++) {
		snprintf(body, sizeof(body), "{\"n\":%d}", i);
		host.sandbox[0].scene.connections = 0;
		memset(host.sandbox[0].scene.ends, 0, sizeof(host.sandbox[0].scene.ends));
		charge_once(&host.sandbox[0], body);
	}
	charge_once(&host.sandbox[1], "{\"amount\":1}");
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_in_range(tenant_memory(tenant), LIMIT_TENANTS_BYTES / 256 / 2, LIMIT_TENANTS_BYTES / 256 + 1000);
	host_finish(&host);
	assert_true(tenant_cannot_tell(tenant, "the oldest calls were forgotten for want of room"));
	tenant = host_tenant(&host, "cgroup-101", 0);
	assert_int_equal(tenant_summary(tenant)->findings[FINDING_DUP_AFTER_SUCCESS], 1);
	assert_int_equal(tenant_summary(tenant)->incomplete_count, 0);
	host_done(&host);
}

/* Thousands of cgroups with long paths, as one that makes its own can have: calls after them are named. */
static void paths_of_cgroups_are_bounded(void **state)
{
	static char path[4096] = "/mine/";
	struct sandbox *sandbox = &host.sandbox[0];
	struct tenant *tenant;
	uint32_t c;

	(void)state;
	memset(path + 6, 'p', sizeof(path) - 7);
	host_start(&host, TENANT_SPLIT_UID);
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	for (uint64_t id = 100; id < 10100; id++) {
		host_name(&host, id, path);
		sandbox->cgroup_id = id;
		if (id % 100 == 0)
			charge(sandbox, c, "{}");
	}
	host_name(&host, 99, "/the/last");
	sandbox->cgroup_id = 99;
	charge(sandbox, c, "{}");
	leave(sandbox, c);
	host_finish(&host);
	tenant = host_tenant(&host, "uid-1000", 0);
	assert_int_equal(host_requests(&host, "uid-1000"), 101);
	assert_non_null(memmem(tenant_output(tenant)->ledger.data, tenant_output(tenant)->ledger.size, "\"cgroup\":\"/the/last\"", 20));
	host_done(&host);
}

/* One that is in use for weeks, while thousands come and go, is told again now and then, and stays known. */
static void a_path_that_is_told_again_outlives_those_told_before(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];

	(void)state;
	host_start(&host, TENANT_SPLIT_NONE);
	host.pipeline.max_path_bytes = 24;
	host_open(&host);
	host_name(&host, 100, "/at/work");
	host_name(&host, 101, "/a/quiet");
	host_name(&host, 100, "/at/work");
	host_name(&host, 102, "/a/third");
	host_name(&host, 103, "/one/too");
	charge_once(sandbox, "{}");
	assert_true(memmem(tenant_output(host_tenant(&host, "all", 0))->ledger.data, tenant_output(host_tenant(&host, "all", 0))->ledger.size,
			   "\"cgroup\":\"/at/work\"", 19));
	host_finish(&host);
	host_done(&host);
}

/* ---- an end that was lost ---- */

/* As flow_census.h makes it. */
static void end_unseen(struct sandbox *sandbox, uint32_t c, int side)
{
	struct wire_event end = wire_build_end(side, sandbox->scene.ends[c][side].sent, 0, sandbox->scene.now_ns);

	end = scene_on(&sandbox->scene, end, c, side);
	end.flags |= WIRE_STILL_OPEN | WIRE_END_UNSEEN;
	sandbox->scene.ends[c][side].ended = true;
	scene_feed(&sandbox->scene, &end, (struct bytes){0});
}

static void a_connection_whose_end_was_lost_ends_undecided(void **state)
{
	struct sandbox *sandbox = &host.sandbox[0];
	struct tenant *tenant;
	uint32_t c;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	c = scene_connect(&sandbox->scene, AGENT);
	charge(sandbox, c, "{}");
	scene_send(&sandbox->scene, c, WIRE_BUILD_CLIENT,
		   "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"n\":1}");
	tenant = host_tenant(&host, "cgroup-100", 0);
	assert_int_equal(tenant_connections(tenant), 1);
	assert_int_equal(tenant_open_calls(tenant), 1);
	end_unseen(sandbox, c, WIRE_BUILD_CLIENT);
	end_unseen(sandbox, c, WIRE_BUILD_SERVER);
	assert_int_equal(tenant_connections(tenant), 0);
	assert_int_equal(tenant_open_calls(tenant), 0);
	charge_once(sandbox, "{\"n\":1}"); /* was the first still open? had it failed? */
	charge_once(sandbox, "{}");	   /* the one that had its answer */
	host_finish(&host);
	assert_int_equal(tenant_summary(tenant)->findings[FINDING_UNDECIDABLE], 1);
	assert_int_equal(tenant_summary(tenant)->findings[FINDING_DUP_AFTER_SUCCESS], 1);
	assert_int_equal(tenant_summary(tenant)->hole_bytes, 0);
	host_done(&host);
}

/* ---- what is not of a connection ---- */

static void off_loopback_is_of_the_process(void **state)
{
	struct wire_event event = wire_build_exit(AGENT, "agent", SCENE_START_NS);

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	event.kind = WIRE_CONNECT;
	sandbox_feed(&host.sandbox[3].scene, &event, (struct bytes){0});
	host_finish(&host);
	assert_true(tenant_says(host_tenant(&host, "cgroup-103", 0), "off_loopback"));
	assert_int_equal(host_tenants(&host), 1);
	host_done(&host);
}

static void a_mark_is_everybodys(void **state)
{
	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	charge_once(&host.sandbox[0], "{}");
	charge_once(&host.sandbox[1], "{}");
	host_feed(&host, &(struct input){.kind = INPUT_MARK, .now_ns = host.now_ns, .mark = {BYTES("noon")}});
	assert_true(tenant_says(host_tenant(&host, "cgroup-100", 0), "\"noon\""));
	assert_true(tenant_says(host_tenant(&host, "cgroup-101", 0), "\"noon\""));
	host_done(&host);
}

static void flows_that_are_given_up_are_told(void **state)
{
	uint64_t flow, sum = 0;

	(void)state;
	host_start(&host, TENANT_SPLIT_CGROUP);
	host_open(&host);
	for (int n = 0; n < 2; n++) {
		struct scene *scene = &host.sandbox[n].scene;
		uint32_t c;

		scene->now_ns = host.now_ns;
		c = scene_connect(scene, AGENT);
		scene_send(scene, c, CLIENT, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03");
	}
	while ((flow = tenants_next_muted(host.tenants)))
		sum += flow;
	assert_int_equal(sum, 101 + 102 + 1101 + 1102);
	assert_int_equal(tenant_gate(host_tenant(&host, "cgroup-101", 0))->blind[BLIND_TLS], 1);
	host_done(&host);
}

/* ---- what comes out depends on a tenant's own inputs alone ---- */

/* Whatever comes to mind, by that seed. */
static void play_at_random(struct sandbox *sandbox, unsigned int seed)
{
	struct scene *scene = &sandbox->scene;
	uint32_t c = scene_connect(scene, AGENT);
	char body[64];

	for (int i = 0; i < 40; i++) {
		scene_wait(scene, (uint64_t)rand_r(&seed) % 20);
		switch (rand_r(&seed) % 6) {
		case 0:
			leave(sandbox, c);
			c = scene_connect(scene, AGENT + 10 * ((uint32_t)rand_r(&seed) % 3));
			break;
		case 1:
			scene_lose(scene, c, rand_r(&seed) % 2, 1 + (uint64_t)rand_r(&seed) % 100);
			leave(sandbox, c);
			c = scene_connect(scene, AGENT);
			break;
		case 2:
			scene_send(scene, c, CLIENT, "GET /list HTTP/1.1\r\nHost: a\r\n\r\n");
			scene_exit(scene, AGENT);
			leave(sandbox, c);
			c = scene_connect(scene, AGENT);
			break;
		default:
			snprintf(body, sizeof(body), "{\"n\":%d}", rand_r(&seed) % 4);
			charge(sandbox, c, body);
			break;
		}
	}
}

/* Both tapes by time, the second one delayed, with ticks between; what the first tenant wrote. */
static void play_tapes(struct sandbox *first, struct sandbox *second, uint64_t delay_ns, struct buffer *ret_text)
{
	struct host *play = first->host;
	uint64_t end_ns = SCENE_START_NS + 20000 * SCENE_MS, tick_ns = SCENE_START_NS;
	struct sandbox *sandboxes[] = {first, second};
	size_t at[2] = {0};
	struct tenant *tenant;

	play->now_ns = SCENE_START_NS;
	host_open(play);
	for (;;) {
		struct taped *next = NULL;
		struct input input;
		int of = 0;

		for (int n = 0; n < 2; n++) {
			struct taped *taped = sandboxes[n] && at[n] < sandboxes[n]->taped ? &sandboxes[n]->tape[at[n]] : NULL;

			if (taped && (!next || taped->now_ns + (n ? delay_ns : 0) < next->now_ns)) {
				next = taped;
				of = n;
			}
		}
		if (!next)
			break;
		at[of]++;
		input = (struct input){.kind = INPUT_WIRE, .now_ns = next->now_ns + (of ? delay_ns : 0),
				       .wire = {&next->event, buffer_bytes(&next->payload)}};
		for (; tick_ns <= input.now_ns; tick_ns += 50 * SCENE_MS)
			host_feed(play, &(struct input){.kind = INPUT_TICK, .now_ns = tick_ns, .tick = {play->facts.wall_offset_ns}});
		host_feed(play, &input);
	}
	for (; tick_ns <= end_ns; tick_ns += 50 * SCENE_MS)
		host_feed(play, &(struct input){.kind = INPUT_TICK, .now_ns = tick_ns, .tick = {play->facts.wall_offset_ns}});
	host_feed(play, &(struct input){.kind = INPUT_DRAIN, .now_ns = end_ns});
	host_feed(play, &(struct input){.kind = INPUT_CLOSING, .now_ns = end_ns,
					.closing = {.command_status = -1, .counters_unread = 1}});
	tenant = host_tenant(play, "cgroup-100", 0);
	assert_int_equal(buffer_append(ret_text, buffer_bytes(&tenant_output(tenant)->ledger)), 0);
	assert_int_equal(buffer_append(ret_text, buffer_bytes(&tenant_output(tenant)->events)), 0);
	tenants_free(play->tenants);
	play->tenants = NULL;
}

static void others_inputs_change_nothing(void **state)
{
	struct buffer alone = {0}, between = {0};

	(void)state;
	for (unsigned int seed = 1; seed <= 30; seed++) {
		unsigned int more = seed + 1000;

		host_start(&host, TENANT_SPLIT_CGROUP);
		host.sandbox[0].nameless_open = seed % 2;
		for (int n = 0; n < 2; n++) {
			host.sandbox[n].tapes = true;
			play_at_random(&host.sandbox[n], seed + 100 * (unsigned int)n);
		}
		buffer_clear(&alone);
		play_tapes(&host.sandbox[0], NULL, 0, &alone);
		assert_true(lines_of(buffer_bytes(&alone)) > 60);
		for (int i = 0; i < 10; i++) {
			buffer_clear(&between);
			play_tapes(&host.sandbox[0], &host.sandbox[1], (uint64_t)rand_r(&more) % 2000000, &between);
			assert_true(bytes_equal(buffer_bytes(&between), buffer_bytes(&alone)));
		}
		host_done(&host);
	}
	buffer_done(&alone);
	buffer_done(&between);
}

/* ---- the same as a pipeline ---- */

/* Without what names the tenant and its run. */
static json_object *without_names(struct bytes text)
{
	json_object *lines = scene_lines(text);

	for (size_t i = 0; i < json_object_array_length(lines); i++) {
		json_object *line = json_object_array_get_idx(lines, i);

		json_object_object_del(line, "run");
		json_object_object_del(line, "tenant");
	}
	return lines;
}

static void one_tenant_is_as_one_pipeline(void **state)
{
	static const char *const names[] = {"all", "cgroup-100"};
	json_object *ledger[2], *events[2];

	(void)state;
	for (unsigned int seed = 1; seed <= 30; seed++) {
		for (int i = 0; i < 2; i++) {
			struct pipeline_output *output;

			host_start(&host, i ? TENANT_SPLIT_CGROUP : TENANT_SPLIT_NONE);
			host_open(&host);
			play_at_random(&host.sandbox[0], seed);
			host_finish(&host);
			output = tenant_output(host_tenant(&host, names[i], 0));
			ledger[i] = without_names(buffer_bytes(&output->ledger));
			events[i] = without_names(buffer_bytes(&output->events));
			/* It counts what it lost by its own events; the kernel's are of all. */
			json_object_object_del(json_object_array_get_idx(events[i], json_object_array_length(events[i]) - 1), "drops");
			json_object_object_del(json_object_array_get_idx(events[i], json_object_array_length(events[i]) - 1), "wall_ms");
			host_done(&host);
		}
		assert_string_equal(json_object_to_json_string(ledger[0]), json_object_to_json_string(ledger[1]));
		assert_string_equal(json_object_to_json_string(events[0]), json_object_to_json_string(events[1]));
		for (int i = 0; i < 2; i++) {
			json_object_put(ledger[i]);
			json_object_put(events[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_tenant_has_its_own_ledger),
		cmocka_unit_test(lines_name_the_tenant_and_its_run),
		cmocka_unit_test(without_a_split_nothing_changes),
		cmocka_unit_test(a_uid_is_a_tenant),
		cmocka_unit_test(a_cgroup_without_a_path_is_named_by_its_number),
		cmocka_unit_test(both_flows_are_the_clients),
		cmocka_unit_test(the_first_send_tells_where_the_open_does_not),
		cmocka_unit_test(what_nobody_owns_goes_to_others_in_order),
		cmocka_unit_test(once_it_is_of_others_it_stays_there),
		cmocka_unit_test(a_drain_waits_for_nobody),
		cmocka_unit_test(a_drain_ends_what_lives_on),
		cmocka_unit_test(what_waits_is_bounded),
		cmocka_unit_test(a_repeat_is_one_only_within_a_cgroup),
		cmocka_unit_test(a_loss_counts_against_its_tenant_alone),
		cmocka_unit_test(a_gap_that_no_event_tells_of_is_counted),
		cmocka_unit_test(a_loss_of_anyone_counts_against_all_that_live),
		cmocka_unit_test(after_a_gap_the_counts_of_an_earlier_life_are_not_this_ones),
		cmocka_unit_test(bytes_of_nobody_count_against_all),
		cmocka_unit_test(beyond_max_there_is_others),
		cmocka_unit_test(the_quietest_makes_room_and_says_so),
		cmocka_unit_test(who_makes_tenants_without_end_closes_his_own),
		cmocka_unit_test(an_idle_tenant_is_closed_and_may_come_back),
		cmocka_unit_test(a_birth_is_told_before_the_first_call_and_an_end_before_the_summary),
		cmocka_unit_test(a_tenant_with_something_open_is_not_idle),
		cmocka_unit_test(who_holds_all_it_can_leaves_as_much),
		cmocka_unit_test(who_calls_most_forgets_its_own),
		cmocka_unit_test(paths_of_cgroups_are_bounded),
		cmocka_unit_test(a_path_that_is_told_again_outlives_those_told_before),
		cmocka_unit_test(a_connection_whose_end_was_lost_ends_undecided),
		cmocka_unit_test(off_loopback_is_of_the_process),
		cmocka_unit_test(a_mark_is_everybodys),
		cmocka_unit_test(flows_that_are_given_up_are_told),
		cmocka_unit_test(others_inputs_change_nothing),
		cmocka_unit_test(one_tenant_is_as_one_pipeline),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
