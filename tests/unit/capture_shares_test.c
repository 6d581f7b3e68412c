/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side of the fair shares, over a table that no kernel writes to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "../../bpf/share_table.h"
#include "capture_private.h"

#define RING_BYTES 4096

/* And two empty rings. */
struct table {
	struct capture capture;
	struct share *slots;
	volatile unsigned long consumed[2], produced[2];
};

static void table_new(struct table *table, enum capture_fair fair)
{
	*table = (struct table){};
	table->slots = calloc(SHARE_SLOTS, sizeof(*table->slots));
	assert_non_null(table->slots);
	table->capture.shares = table->slots;
	table->capture.fair = fair;
	table->capture.data = (struct ring){&table->consumed[0], &table->produced[0], NULL, RING_BYTES};
	table->capture.lifecycle = (struct ring){&table->consumed[1], &table->produced[1], NULL, RING_BYTES};
}

static struct share *slot_of(struct table *table, uint64_t key)
{
	return &table->slots[share_slot(key)];
}

static struct capture_share share_of(const struct table *table, uint64_t tenant)
{
	struct capture_share share;

	assert_true(capture_share(&table->capture, tenant, &share));
	return share;
}

static void tenants_of_one_machine_do_not_meet(void **state)
{
	bool used[SHARE_SLOTS] = {};

	(void)state;
	for (uint64_t id = 1000; id < 1500; id++) { /* cgroup ids are given out one after the other */
		assert_false(used[share_slot(id)]);
		used[share_slot(id)] = true;
	}
}

static void root_is_a_tenant_and_nobody_is_not(void **state)
{
	struct table table;

	(void)state;
	table_new(&table, CAPTURE_FAIR_UID);
	assert_int_not_equal(share_slot(share_key(SHARE_BY_UID, 77, 0)), share_slot(0));
	slot_of(&table, share_key(SHARE_BY_UID, 77, 0))->accepted_bytes = 5;
	slot_of(&table, 0)->accepted_bytes = 7;
	assert_int_equal(share_of(&table, 0).accepted_bytes, 5);
	assert_int_equal(share_of(&table, CAPTURE_NOBODY).accepted_bytes, 7);
	free(table.slots);
}

static void there_are_none_unless_they_were_asked_for(void **state)
{
	struct capture capture = {};
	struct capture_share share;

	(void)state;
	assert_false(capture_share(&capture, 1, &share));
	assert_int_equal(capture_shares_map(&capture, CAPTURE_FAIR_NONE, -1), 0);
	assert_false(capture_share(&capture, 1, &share));
	capture_shares_take_over(&capture);
	capture_shares_settle(&capture);
	capture_shares_unmap(&capture);
}

static void what_leaves_a_ring_is_given_back_to_its_slot(void **state)
{
	struct table table;
	struct wire_event event = {.share = share_slot(42) + 1};

	(void)state;
	table_new(&table, CAPTURE_FAIR_CGROUP);
	slot_of(&table, 42)->produced_bytes[SHARE_DATA] = 520 + 1032;
	slot_of(&table, 42)->produced_bytes[SHARE_LIFECYCLE] = 184;
	capture_shares_consume(&table.capture, &event, SHARE_DATA, 512);
	assert_int_equal(share_of(&table, 42).data_bytes, 1032);
	assert_int_equal(share_of(&table, 42).lifecycle_bytes, 184);
	capture_shares_consume(&table.capture, &event, SHARE_LIFECYCLE, sizeof(event));
	assert_int_equal(share_of(&table, 42).lifecycle_bytes, 0);
	free(table.slots);
}

static void a_record_of_no_slot_changes_nothing(void **state)
{
	struct table table;
	static const struct share untouched;

	(void)state;
	table_new(&table, CAPTURE_FAIR_CGROUP);
	capture_shares_consume(&table.capture, &(struct wire_event){.share = 0}, SHARE_DATA, 512);
	capture_shares_consume(&table.capture, &(struct wire_event){.share = SHARE_SLOTS + 1}, SHARE_DATA, 512);
	capture_shares_consume(&table.capture, &(struct wire_event){.share = UINT32_MAX}, SHARE_DATA, 512);
	for (size_t i = 0; i < SHARE_SLOTS; i++)
		assert_memory_equal(&table.slots[i], &untouched, sizeof(untouched));
	free(table.slots);
}

static void more_consumed_than_produced_is_nothing_held(void **state)
{
	struct table table;

	(void)state;
	table_new(&table, CAPTURE_FAIR_CGROUP);
	slot_of(&table, 42)->consumed_bytes[SHARE_DATA] = 520;
	assert_int_equal(share_of(&table, 42).data_bytes, 0);
	free(table.slots);
}

static void a_successor_gives_back_what_the_dead_one_took_once_the_rings_are_empty(void **state)
{
	struct table table;

	(void)state;
	table_new(&table, CAPTURE_FAIR_CGROUP);
	slot_of(&table, 42)->produced_bytes[SHARE_DATA] = 5000;
	slot_of(&table, 42)->consumed_bytes[SHARE_DATA] = 4000;
	capture_shares_settle(&table.capture); /* nobody took over */
	assert_int_equal(share_of(&table, 42).data_bytes, 1000);
	capture_shares_take_over(&table.capture);
	table.produced[1] = 184; /* something waits in the other ring */
	capture_shares_settle(&table.capture);
	assert_int_equal(share_of(&table, 42).data_bytes, 1000);
	table.consumed[1] = 184;
	capture_shares_settle(&table.capture);
	assert_int_equal(share_of(&table, 42).data_bytes, 0);
	slot_of(&table, 42)->produced_bytes[SHARE_DATA] += 520;
	capture_shares_settle(&table.capture); /* once */
	assert_int_equal(share_of(&table, 42).data_bytes, 520);
	free(table.slots);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tenants_of_one_machine_do_not_meet),
		cmocka_unit_test(root_is_a_tenant_and_nobody_is_not),
		cmocka_unit_test(there_are_none_unless_they_were_asked_for),
		cmocka_unit_test(what_leaves_a_ring_is_given_back_to_its_slot),
		cmocka_unit_test(a_record_of_no_slot_changes_nothing),
		cmocka_unit_test(more_consumed_than_produced_is_nothing_held),
		cmocka_unit_test(a_successor_gives_back_what_the_dead_one_took_once_the_rings_are_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
