/* SPDX-License-Identifier: BSD-2-Clause */
/* The metrics file: its exact text, hostile labels, the largest numbers, and nothing where memory ran out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "metrics.h"

static const char of_the_collector[] =
	"# HELP nightclerk_calls_total HTTP requests that were seen.\n"
	"# TYPE nightclerk_calls_total counter\n"
	"nightclerk_calls_total{tenant=\"docker-0123\"} 7\n"
	"nightclerk_calls_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_mutating_total Of them, those that change something.\n"
	"# TYPE nightclerk_mutating_total counter\n"
	"nightclerk_mutating_total{tenant=\"docker-0123\"} 3\n"
	"nightclerk_mutating_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_accepted_bytes_total Bytes that the kernel accepted on connections in scope.\n"
	"# TYPE nightclerk_accepted_bytes_total counter\n"
	"nightclerk_accepted_bytes_total{tenant=\"docker-0123\"} 18446744073709551615\n"
	"nightclerk_accepted_bytes_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_open_calls Requests whose end is still due.\n"
	"# TYPE nightclerk_open_calls gauge\n"
	"nightclerk_open_calls{tenant=\"docker-0123\"} 1\n"
	"nightclerk_open_calls{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_unwritten_bytes Bytes of lines that wait for a disk that takes them.\n"
	"# TYPE nightclerk_unwritten_bytes gauge\n"
	"nightclerk_unwritten_bytes{tenant=\"docker-0123\"} 4\n"
	"nightclerk_unwritten_bytes{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_lost_line_bytes_total Bytes of lines that are lost since too much waited already.\n"
	"# TYPE nightclerk_lost_line_bytes_total counter\n"
	"nightclerk_lost_line_bytes_total{tenant=\"docker-0123\"} 5\n"
	"nightclerk_lost_line_bytes_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_rotations_total Files that were set aside for a new one.\n"
	"# TYPE nightclerk_rotations_total counter\n"
	"nightclerk_rotations_total{tenant=\"docker-0123\"} 6\n"
	"nightclerk_rotations_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_store_rows_total Rows that were written to the account book of model calls.\n"
	"# TYPE nightclerk_store_rows_total counter\n"
	"nightclerk_store_rows_total{tenant=\"docker-0123\"} 8\n"
	"nightclerk_store_rows_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_store_rows_lost_total Rows that are missing in it.\n"
	"# TYPE nightclerk_store_rows_lost_total counter\n"
	"nightclerk_store_rows_lost_total{tenant=\"docker-0123\"} 9\n"
	"nightclerk_store_rows_lost_total{tenant=\"user-1000\"} 0\n"
	"# HELP nightclerk_findings_total Calls that were repeated, by finding and severity as first said.\n"
	"# TYPE nightclerk_findings_total counter\n"
	"nightclerk_findings_total{tenant=\"docker-0123\",finding=\"undecidable\",severity=\"none\"} 1\n"
	"nightclerk_findings_total{tenant=\"docker-0123\",finding=\"dup_after_timeout\",severity=\"medium\"} 1\n"
	"nightclerk_findings_total{tenant=\"docker-0123\",finding=\"dup_after_timeout\",severity=\"high\"} 2\n"
	"# HELP nightclerk_finding_upgrades_total Findings that changed later, by what they became.\n"
	"# TYPE nightclerk_finding_upgrades_total counter\n"
	"nightclerk_finding_upgrades_total{tenant=\"docker-0123\",finding=\"dup_after_timeout\",severity=\"high\"} 1\n"
	"# HELP nightclerk_hole_bytes_total Bytes that were accepted and not captured, by cause.\n"
	"# TYPE nightclerk_hole_bytes_total counter\n"
	"nightclerk_hole_bytes_total{tenant=\"docker-0123\",cause=\"ring_full\"} 4096\n"
	"nightclerk_hole_bytes_total{tenant=\"docker-0123\",cause=\"muted\"} 12\n"
	"# HELP nightclerk_blind_streams_total Streams that could not be read, by kind.\n"
	"# TYPE nightclerk_blind_streams_total counter\n"
	"nightclerk_blind_streams_total{tenant=\"docker-0123\",kind=\"tls\"} 2\n"
	"nightclerk_blind_streams_total{tenant=\"user-1000\",kind=\"other\"} 1\n"
	"# HELP nightclerk_drops_total Records and looks of the kernel side that were lost, by cause.\n"
	"# TYPE nightclerk_drops_total counter\n"
	"nightclerk_drops_total{cause=\"lifecycle_ring_full\"} 1\n"
	"nightclerk_drops_total{cause=\"flow_table_full\"} 2\n"
	"nightclerk_drops_total{cause=\"call_table_full\"} 3\n"
	"nightclerk_drops_total{cause=\"missed_exit\"} 0\n"
	"nightclerk_drops_total{cause=\"recursion\"} 9\n"
	"# HELP nightclerk_lost_bytes_total Bytes that were accepted and not captured, of all tenants, by cause.\n"
	"# TYPE nightclerk_lost_bytes_total counter\n"
	"nightclerk_lost_bytes_total{cause=\"ring_full\"} 4096\n"
	"nightclerk_lost_bytes_total{cause=\"fault\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"pages\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"truncated\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"missed\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"fastopen\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"urgent\"} 0\n"
	"nightclerk_lost_bytes_total{cause=\"muted\"} 12\n"
	"nightclerk_lost_bytes_total{cause=\"share\"} 0\n"
	"# HELP nightclerk_tenants Tenants that are open.\n"
	"# TYPE nightclerk_tenants gauge\n"
	"nightclerk_tenants 2\n"
	"# HELP nightclerk_tenants_limit The most that may be; those beyond share one.\n"
	"# TYPE nightclerk_tenants_limit gauge\n"
	"nightclerk_tenants_limit 256\n"
	"# HELP nightclerk_ring_fill_ratio How full the ring of captured bytes is.\n"
	"# TYPE nightclerk_ring_fill_ratio gauge\n"
	"nightclerk_ring_fill_ratio 0.015625\n"
	"# HELP nightclerk_ring_peak_ratio How full it was at most.\n"
	"# TYPE nightclerk_ring_peak_ratio gauge\n"
	"nightclerk_ring_peak_ratio 1.000000\n"
	"# HELP nightclerk_event_lag_seconds From the kernel to the end of the pipeline, of the last event.\n"
	"# TYPE nightclerk_event_lag_seconds gauge\n"
	"nightclerk_event_lag_seconds 1.005000001\n"
	"# HELP nightclerk_collector_memory_bytes Resident memory of the collector.\n"
	"# TYPE nightclerk_collector_memory_bytes gauge\n"
	"nightclerk_collector_memory_bytes 8388608\n";

static const char of_the_monitor[] =
	"# HELP nightclerk_build_info Its version; always 1.\n"
	"# TYPE nightclerk_build_info gauge\n"
	"nightclerk_build_info{version=\"0.1.0\"} 1\n"
	"# HELP nightclerk_start_time_seconds When the service was started, since 1970.\n"
	"# TYPE nightclerk_start_time_seconds gauge\n"
	"nightclerk_start_time_seconds 1790000000.500000000\n"
	"# HELP nightclerk_collector_up 1 while a collector runs.\n"
	"# TYPE nightclerk_collector_up gauge\n"
	"nightclerk_collector_up 1\n"
	"# HELP nightclerk_collector_restarts_total Collectors that were started in place of a dead one.\n"
	"# TYPE nightclerk_collector_restarts_total counter\n"
	"nightclerk_collector_restarts_total 2\n"
	"# HELP nightclerk_gaps_total Times that events may be missing since a collector died.\n"
	"# TYPE nightclerk_gaps_total counter\n"
	"nightclerk_gaps_total 2\n"
	"# HELP nightclerk_refused_requests_total Requests of a collector that the monitor refused.\n"
	"# TYPE nightclerk_refused_requests_total counter\n"
	"nightclerk_refused_requests_total 4\n"
	"# HELP nightclerk_file_errors_total Opens, rotations and metrics files that failed.\n"
	"# TYPE nightclerk_file_errors_total counter\n"
	"nightclerk_file_errors_total 5\n"
	"# HELP nightclerk_monitor_memory_bytes Resident memory of the monitor.\n"
	"# TYPE nightclerk_monitor_memory_bytes gauge\n"
	"nightclerk_monitor_memory_bytes 4194304\n";

static void fill(struct metrics_tenant tenants[2], struct metrics *metrics)
{
	struct metrics_tenant *first = &tenants[0];

	*first = (struct metrics_tenant){.name = BYTES("docker-0123"), .calls = 7, .mutating = 3, .accepted_bytes = UINT64_MAX,
					 .open_calls = 1, .unwritten_bytes = 4, .lost_line_bytes = 5, .rotations = 6, .store_rows = 8, .store_rows_lost = 9};
	first->findings[FINDING_UNDECIDABLE][SEVERITY_NULL] = 1;
	first->findings[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_MEDIUM] = 1;
	first->findings[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH] = 2;
	first->upgrades[FINDING_DUP_AFTER_TIMEOUT][SEVERITY_HIGH] = 1;
	first->hole_bytes[WIRE_CAUSE_RING_FULL] = 4096;
	first->hole_bytes[WIRE_CAUSE_MUTED] = 12;
	first->blind_streams[BLIND_TLS] = 2;
	tenants[1] = (struct metrics_tenant){.name = BYTES("user-1000")};
	tenants[1].blind_streams[BLIND_OTHER] = 1;
	*metrics = (struct metrics){.tenants = tenants, .tenant_count = 2, .tenant_limit = 256, .ring_fill_bytes = 1 << 20,
				    .ring_peak_bytes = 64 << 20, .ring_size_bytes = 64 << 20, .event_lag_ns = 1005000001,
				    .memory_bytes = 8 << 20};
	metrics->counters.value[WIRE_COUNTER_LIFECYCLE_LOST] = 1;
	metrics->counters.value[WIRE_COUNTER_NO_FLOW] = 2;
	metrics->counters.value[WIRE_COUNTER_NO_CALL] = 3;
	metrics->counters.value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_RING_FULL] = 4096;
	metrics->counters.value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_MUTED] = 12;
	metrics->counters.recursion_misses = 9;
}

static const struct metrics_monitor monitor = {
	.version = "0.1.0", .start_wall_ns = 1790000000500000000, .collector_lives = true, .collector_starts = 3, .gaps = 2,
	.requests_refused = 4, .file_errors = 5, .memory_bytes = 4 << 20,
};

/* The file that METRICS_SAMPLE names gets both texts: what `promtool check metrics` is shown. */
static void show(const struct buffer *out)
{
	const char *path = getenv("METRICS_SAMPLE");
	FILE *file = path ? fopen(path, "wb") : NULL;

	if (!file)
		return;
	assert_int_equal(fwrite(out->data, 1, out->size, file), out->size);
	fclose(file);
}

static void both_texts_are_exactly_these(void **state)
{
	struct metrics_tenant tenants[2];
	struct metrics metrics;
	struct buffer out = {0};

	(void)state;
	fill(tenants, &metrics);
	assert_int_equal(metrics_text(&metrics, &out), 0);
	assert_int_equal(out.size, sizeof(of_the_collector) - 1);
	assert_memory_equal(out.data, of_the_collector, out.size);
	assert_int_equal(metrics_monitor_text(&monitor, &out), 0);
	assert_int_equal(out.size, sizeof(of_the_collector) + sizeof(of_the_monitor) - 2);
	assert_memory_equal(out.data + sizeof(of_the_collector) - 1, of_the_monitor, sizeof(of_the_monitor) - 1);
	show(&out);
	buffer_done(&out);
}

static void a_service_without_tenants_has_its_families_all_the_same(void **state)
{
	struct metrics metrics = {0};
	struct buffer out = {0};

	(void)state;
	assert_int_equal(metrics_text(&metrics, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_null(strstr((const char *)out.data, "tenant=\""));
	assert_non_null(strstr((const char *)out.data, "# TYPE nightclerk_calls_total counter\n# HELP nightclerk_mutating_total"));
	assert_non_null(strstr((const char *)out.data, "\nnightclerk_ring_fill_ratio 0.000000\n"));
	assert_non_null(strstr((const char *)out.data, "\nnightclerk_event_lag_seconds 0.000000000\n"));
	buffer_done(&out);
}

static void what_is_counted_never_falls(void **state)
{
	struct counters kept = {.recursion_misses = 5}, now = {.recursion_misses = 4};

	(void)state;
	kept.value[WIRE_COUNTER_NO_FLOW] = 2;
	now.value[WIRE_COUNTER_NO_FLOW] = 3;
	kept.value[WIRE_COUNTER_NO_CALL] = 1;
	metrics_grow(&kept, &now);
	assert_int_equal(kept.recursion_misses, 5);
	assert_int_equal(kept.value[WIRE_COUNTER_NO_FLOW], 3);
	assert_int_equal(kept.value[WIRE_COUNTER_NO_CALL], 1);
	now.recursion_misses = 6;
	metrics_grow(&kept, &now);
	assert_int_equal(kept.recursion_misses, 6);
}

static void label_is(struct bytes value, const char *expected)
{
	struct buffer out = {0};

	assert_int_equal(metrics_label(value, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	assert_string_equal((const char *)out.data, expected);
	buffer_done(&out);
}

static void a_label_can_end_no_sample_and_is_always_utf8(void **state)
{
	(void)state;
	label_is(BYTES(""), "");
	label_is(BYTES("a-b_c.d@e:f"), "a-b_c.d@e:f");
	label_is(BYTES("\"} 1\nnightclerk_calls_total{tenant=\"other"), "\\\"} 1\\nnightclerk_calls_total{tenant=\\\"other");
	label_is(BYTES("back\\slash"), "back\\\\slash");
	label_is(BYTES("caf\xc3\xa9"), "caf\xc3\xa9");
	label_is(BYTES("\xff\xc3"), "\\\\xff\\\\xc3");
	label_is(BYTES("a\0b\x1b[2J\xc2\x9b"), "a\\\\x00b\\\\x1b[2J\\\\xc2\\\\x9b");
}

/* Every family has one HELP and one TYPE, next to each other, and its samples follow at once. */
static void families_are_not_torn(void **state)
{
	char seen[64][64], current[64] = "";
	struct metrics_tenant tenants[2];
	struct metrics metrics;
	struct buffer out = {0};
	size_t count = 0;

	(void)state;
	fill(tenants, &metrics);
	assert_int_equal(metrics_text(&metrics, &out), 0);
	assert_int_equal(metrics_monitor_text(&monitor, &out), 0);
	assert_int_equal(buffer_append_byte(&out, 0), 0);
	for (char *rest = NULL, *line = strtok_r((char *)out.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		if (sscanf(line, "# HELP %63s", current) == 1) {
			for (size_t i = 0; i < count; i++)
				assert_string_not_equal(seen[i], current);
			snprintf(seen[count++], sizeof(seen[0]), "%s", current);
		}
		assert_non_null(strstr(line, current));
	}
	assert_int_equal(count, 29);
	buffer_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_texts_are_exactly_these),
		cmocka_unit_test(a_service_without_tenants_has_its_families_all_the_same),
		cmocka_unit_test(a_label_can_end_no_sample_and_is_always_utf8),
		cmocka_unit_test(what_is_counted_never_falls),
		cmocka_unit_test(families_are_not_torn),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
