/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire cases of tests/cases, read once into memory: they are played
 * thousands of times.
 */
#ifndef NIGHTCLERK_CASE_LOAD_H
#define NIGHTCLERK_CASE_LOAD_H

#include "scene.h"

#include <glob.h>

#ifndef CASES_DIR
#define CASES_DIR "tests/cases"
#endif

#define CASES_MAX 64
#define CASE_STEPS_MAX 64

enum case_action { CASE_OPEN, CASE_SEND, CASE_FIN, CASE_RST, CASE_EXIT };

struct case_step {
	enum case_action action;
	uint64_t t_ms;
	uint32_t connection;
	int side;
	uint32_t pid;
	struct buffer bytes;
};

struct case_text {
	char name[64];
	bool flagged; /* expected.json's verdict */
	struct case_step steps[CASE_STEPS_MAX];
	size_t count;
};

struct case_texts {
	struct case_text cases[CASES_MAX];
	size_t count;
};

static inline int64_t case_number(json_object *object, const char *name)
{
	json_object *value = NULL;

	json_object_object_get_ex(object, name, &value);
	return json_object_get_int64(value);
}

static inline void case_fatal(const char *what)
{
	fprintf(stderr, "cannot read %s\n", what);
	exit(1);
}

static inline struct buffer case_bytes(const char *directory, const char *file, int64_t from, int64_t to)
{
	struct buffer bytes = {0};
	char path[512];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/%s", directory, file);
	stream = fopen(path, "rb");
	if (!stream || buffer_reserve(&bytes, (size_t)(to - from)) || fseek(stream, from, SEEK_SET) ||
	    fread(bytes.data, 1, (size_t)(to - from), stream) != (size_t)(to - from))
		case_fatal(path);
	bytes.size = (size_t)(to - from);
	fclose(stream);
	return bytes;
}

static inline struct case_step case_step_of(json_object *event, const char *directory, char letters[CASE_STEPS_MAX],
					    uint32_t *opened)
{
	struct case_step step = {
		.t_ms = (uint64_t)case_number(event, "t_ms"),
		.pid = (uint32_t)case_number(event, "pid"),
	};
	const char *what = scene_field(event, "ev"), *letter = scene_field(event, "conn");
	const char *by = scene_field(event, "by");

	step.side = by && strcmp(by, "server") == 0 ? WIRE_BUILD_SERVER : WIRE_BUILD_CLIENT;
	if (strcmp(what, "open") == 0)
		letters[(*opened)++] = letter[0];
	while (letter && step.connection < *opened && letters[step.connection] != letter[0])
		step.connection++;
	step.action = strcmp(what, "open") == 0	 ? CASE_OPEN
		      : strcmp(what, "fin") == 0  ? CASE_FIN
		      : strcmp(what, "rst") == 0  ? CASE_RST
		      : strcmp(what, "exit") == 0 ? CASE_EXIT
						  : CASE_SEND;
	if (step.action != CASE_SEND)
		return step;
	if (strcmp(what, "s2c") == 0)
		step.side = WIRE_BUILD_SERVER;
	step.bytes = case_bytes(directory, scene_field(event, "file"), case_number(event, "from"),
				case_number(event, "to"));
	return step;
}

static inline void case_load(const char *directory, struct case_text *text)
{
	json_object *timeline, *expected;
	char letters[CASE_STEPS_MAX] = "", path[512];
	uint32_t opened = 0;

	snprintf(text->name, sizeof(text->name), "%s", strrchr(directory, '/') + 1);
	snprintf(path, sizeof(path), "%s/timeline.json", directory);
	timeline = json_object_from_file(path);
	if (!timeline || json_object_array_length(timeline) > CASE_STEPS_MAX)
		case_fatal(path);
	snprintf(path, sizeof(path), "%s/expected.json", directory);
	expected = json_object_from_file(path);
	if (!expected)
		case_fatal(path);
	text->flagged = strcmp(scene_field(expected, "verdict"), "flag") == 0;
	for (; text->count < json_object_array_length(timeline); text->count++)
		text->steps[text->count] =
			case_step_of(json_object_array_get_idx(timeline, text->count), directory, letters, &opened);
	json_object_put(timeline);
	json_object_put(expected);
}

static inline void case_load_all(struct case_texts *texts)
{
	glob_t found = {0};

	if (glob(CASES_DIR "/*/timeline.json", 0, NULL, &found) || found.gl_pathc > CASES_MAX)
		case_fatal(CASES_DIR);
	for (; texts->count < found.gl_pathc; texts->count++) {
		*strrchr(found.gl_pathv[texts->count], '/') = '\0';
		case_load(found.gl_pathv[texts->count], &texts->cases[texts->count]);
	}
	globfree(&found);
}

static inline void case_unload_all(struct case_texts *texts)
{
	for (size_t i = 0; i < texts->count; i++)
		for (size_t j = 0; j < texts->cases[i].count; j++)
			buffer_done(&texts->cases[i].steps[j].bytes);
}

/* On a scene that was opened. Allocates nothing of its own. */
static inline void case_play(const struct case_text *text, struct scene *scene)
{
	for (size_t i = 0; i < text->count; i++) {
		const struct case_step *step = &text->steps[i];

		scene->now_ns = SCENE_START_NS + step->t_ms * SCENE_MS;
		switch (step->action) {
		case CASE_OPEN:
			scene_connect(scene, step->pid);
			break;
		case CASE_SEND:
			scene_send_bytes(scene, step->connection, step->side, buffer_bytes(&step->bytes));
			break;
		case CASE_FIN:
			scene_close(scene, step->connection, step->side);
			break;
		case CASE_RST:
			scene_abort(scene, step->connection, step->side);
			break;
		case CASE_EXIT:
			scene_exit(scene, step->pid);
			break;
		}
	}
}

#endif
