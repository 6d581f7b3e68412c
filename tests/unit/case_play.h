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

/* One detail of a case that is not as its files say. All of it lent; NULL = as they say. */
struct case_change {
	json_object *files; /* array of names */
	const char *find, *replace;
	const struct case_change *also;
};

static inline bool case_changes(const struct case_change *change, const char *file)
{
	for (size_t i = 0; i < json_object_array_length(change->files); i++)
		if (strcmp(json_object_get_string(json_object_array_get_idx(change->files, i)), file) == 0)
			return true;
	return false;
}

/* Replaces every find. The test fails where there is none. */
static inline void case_replace(struct buffer *content, const char *find, const char *replace)
{
	struct bytes rest = buffer_bytes(content);
	struct buffer changed = {0};
	const uint8_t *found;

	assert_non_null(memmem(rest.data, rest.size, find, strlen(find)));
	while ((found = rest.size ? memmem(rest.data, rest.size, find, strlen(find)) : NULL)) {
		assert_int_equal(buffer_append(&changed, bytes_take(&rest, (size_t)(found - rest.data))), 0);
		assert_int_equal(buffer_append(&changed, bytes_of_string(replace)), 0);
		bytes_take(&rest, strlen(find));
	}
	assert_int_equal(buffer_append(&changed, rest), 0);
	buffer_done(content);
	*content = changed;
}

static inline size_t case_body_size(const struct buffer *content)
{
	const uint8_t *body = memmem(content->data, content->size, "\r\n\r\n", 4);

	return body ? content->size - (size_t)(body - content->data) - 4 : 0;
}

/* Content-Length follows where it was the size of the body. */
static inline void case_change_content(struct buffer *content, const struct case_change *change)
{
	char before[48], after[48];

	snprintf(before, sizeof(before), "\r\nContent-Length: %zu\r\n", case_body_size(content));
	case_replace(content, change->find, change->replace);
	snprintf(after, sizeof(after), "\r\nContent-Length: %zu\r\n", case_body_size(content));
	if (memmem(content->data, content->size, before, strlen(before)))
		case_replace(content, before, after);
}

static inline struct buffer case_read(const char *name, const char *file)
{
	struct buffer content = {0};
	char path[256];
	FILE *stream;

	snprintf(path, sizeof(path), CASES_DIR "/%s/%s", name, file);
	stream = fopen(path, "rb");
	assert_non_null(stream);
	assert_int_equal(buffer_reserve(&content, 65536), 0);
	content.size = fread(content.data, 1, 65536, stream);
	assert_true(content.size < 65536);
	fclose(stream);
	return content;
}

static inline void case_send(struct scene *scene, const char *name, json_object *event, uint32_t c, int side,
			     const struct case_change *change)
{
	size_t from = (size_t)case_number(event, "from"), to = (size_t)case_number(event, "to");
	const char *file = scene_field(event, "file");
	struct buffer content = case_read(name, file);
	bool whole = to == content.size;

	for (; change; change = change->also)
		if (case_changes(change, file))
			case_change_content(&content, change);
	if (whole)
		to = content.size;
	assert_true(from < to && to <= content.size);
	scene_send_bytes(scene, c, side, (struct bytes){content.data + from, to - from});
	buffer_done(&content);
}

/* The scene is open; its end is the caller's. */
static inline void case_play_changed(struct scene *scene, const char *name, const struct case_change *change)
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
			case_send(scene, name, event, c, WIRE_BUILD_CLIENT, change);
		else if (strcmp(what, "s2c") == 0)
			case_send(scene, name, event, c, WIRE_BUILD_SERVER, change);
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

static inline void case_play(struct scene *scene, const char *name)
{
	case_play_changed(scene, name, NULL);
}

#endif
