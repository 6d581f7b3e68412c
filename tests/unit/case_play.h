/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plays the timeline of a wire case (tests/cases) as a scene.
 */
#ifndef NIGHTCLERK_CASE_PLAY_H
#define NIGHTCLERK_CASE_PLAY_H

#include "scene.h"

#ifndef CASES_DIR
#define CASES_DIR "tests/cases"
#endif

static inline int64_t case_number(json_object *object, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return json_object_get_int64(value);
}

static inline void case_send(struct scene *scene, const char *name, json_object *event, uint32_t c, int side)
{
	int64_t from = case_number(event, "from"), to = case_number(event, "to");
	struct buffer content = {0};
	char path[256];
	FILE *file;

	snprintf(path, sizeof(path), CASES_DIR "/%s/%s", name, scene_field(event, "file"));
	file = fopen(path, "rb");
	assert_non_null(file);
	assert_int_equal(buffer_reserve(&content, (size_t)to), 0);
	content.size = fread(content.data, 1, (size_t)to, file);
	assert_int_equal(content.size, to);
	fclose(file);
	scene_send_bytes(scene, c, side, (struct bytes){content.data + from, (size_t)(to - from)});
	buffer_done(&content);
}

/* The scene is open; its end is the caller's. */
static inline void case_play(struct scene *scene, const char *name)
{
	char path[256], letters[SCENE_CONNECTIONS] = "";
	json_object *timeline;

	snprintf(path, sizeof(path), CASES_DIR "/%s/timeline.json", name);
	timeline = json_object_from_file(path);
	assert_non_null(timeline);
	for (size_t i = 0; i < json_object_array_length(timeline); i++) {
		json_object *event = json_object_array_get_idx(timeline, i);
		const char *what = scene_field(event, "ev"), *conn = scene_field(event, "conn"), *by = scene_field(event, "by");
		int side = by && strcmp(by, "client") == 0 ? WIRE_BUILD_CLIENT : WIRE_BUILD_SERVER;
		uint32_t c = 0;

		while (conn && c < scene->connections && letters[c] != conn[0])
			c++;
		scene->now_ns = SCENE_START_NS + (uint64_t)case_number(event, "t_ms") * SCENE_MS;
		if (strcmp(what, "open") == 0)
			letters[scene_connect(scene, (uint32_t)case_number(event, "pid"))] = conn[0];
		else if (strcmp(what, "c2s") == 0)
			case_send(scene, name, event, c, WIRE_BUILD_CLIENT);
		else if (strcmp(what, "s2c") == 0)
			case_send(scene, name, event, c, WIRE_BUILD_SERVER);
		else if (strcmp(what, "fin") == 0)
			scene_close(scene, c, side);
		else if (strcmp(what, "rst") == 0)
			scene_abort(scene, c, side);
		else if (strcmp(what, "exit") == 0)
			scene_exit(scene, (uint32_t)case_number(event, "pid"));
		else
			fail_msg("%s: unknown event %s", name, what);
	}
	json_object_put(timeline);
}

#endif
