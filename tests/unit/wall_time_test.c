/* SPDX-License-Identifier: BSD-2-Clause */
/* Wall time of times and offsets that no clock gives: sums that do not wrap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scene.h"
#include "wall_time.h"

static void sums_saturate(void **state)
{
	static const struct {
		uint64_t when_ns;
		int64_t offset_ns, wall_ns;
	} rows[] = {
		{5, 1790000000000000000, 1790000000000000005},
		{1000, -5, 995},
		{0, 0, 0},
		{4, -5, 0},
		{0, INT64_MIN, 0},
		{UINT64_MAX, 0, INT64_MAX},
		{UINT64_MAX, -5, INT64_MAX - 5},
		{UINT64_MAX, INT64_MAX, INT64_MAX},
		{1, INT64_MAX, INT64_MAX},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(wall_time_ns(rows[i].when_ns, rows[i].offset_ns), rows[i].wall_ns);
}

/* Through every output; the sanitizers look on. */
static void a_run_at_the_end_of_time_is_judged(void **state)
{
	static const uint64_t starts[] = {0, INT64_MAX - 5, UINT64_MAX - 3600000 * SCENE_MS};
	static const int64_t offsets[] = {INT64_MIN, 0, INT64_MAX};

	(void)state;
	for (int i = 0; i < 9; i++) {
		struct scene scene;
		uint32_t c;

		scene_start(&scene);
		scene.facts.wall_offset_ns = offsets[i % 3];
		scene.now_ns = scene.facts.start_ns = starts[i / 3];
		scene.options.live_calls = scene.options.junit = true;
		scene_open(&scene);
		c = scene_connect(&scene, 4711);
		for (int n = 0; n < 2; n++) {
			scene_send(&scene, c, WIRE_BUILD_CLIENT, "POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
			scene_wait(&scene, 60000);
			scene_send(&scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
		}
		assert_int_equal(scene_finish(&scene, 0), 10);
		if (offsets[i % 3] == INT64_MAX)
			assert_string_equal(scene_field(json_object_array_get_idx(scene.ledger, 1), "t"), "9223372036.854775");
		scene_done(&scene);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(a_run_at_the_end_of_time_is_judged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
