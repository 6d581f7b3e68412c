/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each case once more with one detail changed, so that its verdict flips:
 * tests/cases/flips.json says which detail, and what must stand then.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "case_play.h"
#include "scene_findings.h"

static json_object *flips;

static json_object *member(json_object *object, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return value;
}

static struct case_change change_of(json_object *object)
{
	return (struct case_change){.files = member(object, "files"),
				    .find = scene_field(object, "find"),
				    .replace = scene_field(object, "replace")};
}

static void join(json_object *array, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < json_object_array_length(array); i++)
		used += (size_t)snprintf(text + used, size - used, "%s%s", i ? "; " : "",
					 json_object_get_string(json_object_array_get_idx(array, i)));
}

static bool fails_the_gate(const char *findings)
{
	return strstr(findings, " high ") || strstr(findings, " medium ");
}

static const char *rule_of_the_pair(const struct scene *scene)
{
	size_t n = 0;

	while (!scene_field(scene_event(scene, "finding", n), "earlier"))
		n++;
	return scene_field(scene_event(scene, "finding", n), "rule");
}

static void flips_with_one_detail_changed(void **state)
{
	json_object *flip = *state, *also = member(flip, "also");
	struct case_change second = also ? change_of(also) : (struct case_change){0};
	struct case_change change = change_of(flip);
	const char *name = scene_field(flip, "case");
	char expected[256], found[1024], path[300];
	json_object *as_it_is;
	struct scene scene;
	int status;

	change.also = also ? &second : NULL;
	join(member(flip, "findings"), expected, sizeof(expected));
	snprintf(path, sizeof(path), CASES_DIR "/%s/expected.json", name);
	as_it_is = json_object_from_file(path);
	assert_int_equal(strcmp(scene_field(as_it_is, "verdict"), "ok") == 0, fails_the_gate(expected));
	json_object_put(as_it_is);

	scene_start(&scene);
	scene_open(&scene);
	case_play_changed(&scene, name, &change);
	status = scene_finish(&scene, 0);
	scene_standing(&scene, found, sizeof(found));
	assert_string_equal(found, expected);
	assert_int_equal(status, fails_the_gate(expected) ? 10 : 0);
	if (scene_field(flip, "rule"))
		assert_string_equal(rule_of_the_pair(&scene), scene_field(flip, "rule"));
	scene_done(&scene);
}

/* 01 to 18, none left out. Samples taken on purpose (19) are never more than low. */
static void every_case_of_this_table_is_flipped(void **state)
{
	(void)state;
	for (int number = 1; number <= 18; number++) {
		char text[16];
		bool found = false;

		snprintf(text, sizeof(text), "%02d-", number);
		for (size_t i = 0; i < json_object_array_length(flips); i++)
			found |= strncmp(scene_field(json_object_array_get_idx(flips, i), "case"), text, 3) == 0;
		assert_true(found);
	}
}

#define FLIPS_MAX 64

int main(void)
{
	struct CMUnitTest tests[FLIPS_MAX];
	char titles[FLIPS_MAX][160];
	size_t count;
	int failed;

	flips = json_object_from_file(CASES_DIR "/flips.json");
	if (!flips || json_object_array_length(flips) >= FLIPS_MAX)
		return 1;
	count = json_object_array_length(flips);
	for (size_t i = 0; i < count; i++) {
		json_object *flip = json_object_array_get_idx(flips, i);

		snprintf(titles[i], sizeof(titles[i]), "%.2s: %s", scene_field(flip, "case"), scene_field(flip, "change"));
		tests[i] = (struct CMUnitTest){titles[i], flips_with_one_detail_changed, NULL, NULL, flip};
	}
	tests[count] = (struct CMUnitTest)cmocka_unit_test(every_case_of_this_table_is_flipped);
	failed = _cmocka_run_group_tests("cases flipped", tests, count + 1, NULL, NULL);
	json_object_put(flips);
	return failed;
}
