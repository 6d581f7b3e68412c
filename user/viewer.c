/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Here are the clock and the writes that model and layout do without.
 */
#include "viewer.h"
#include "screen_layout.h"

#include <errno.h>

#define FRAME_NS (1000 * 1000 * 1000ULL / VIEWER_FRAMES_PER_SECOND)
#define LOOK_NS (100 * 1000 * 1000ULL)

void viewer_resized(struct viewer *viewer)
{
	unsigned int columns, rows;

	screen_resized(viewer->screen);
	screen_size(viewer->screen, &columns, &rows);
	screen_model_resize(viewer->model, columns, rows);
}

int viewer_open(struct viewer *viewer, struct screen *screen, struct screen_model *model)
{
	int err;

	viewer->screen = screen;
	viewer->model = model;
	viewer->owner = output_owner_of_environment();
	err = screen_show(screen);
	if (!err)
		viewer_resized(viewer);
	return err;
}

void viewer_close(struct viewer *viewer)
{
	screen_close(viewer->screen);
	screen_model_free(viewer->model);
	screen_frame_done(&viewer->frame);
	*viewer = (struct viewer){0};
}

static void write_file(struct viewer *viewer, uint64_t now_ns)
{
	char path[64], text[OUTPUT_REASON_MAX + 64];
	struct buffer lines = {0};
	struct output *file = NULL;
	time_t now = time(NULL);
	struct tm utc;
	int err = screen_text(viewer->model, now_ns, &lines);

	gmtime_r(&now, &utc);
	strftime(path, sizeof(path), "nightclerk-%Y%m%d-%H%M%S.txt", &utc);
	snprintf(text, sizeof(text), "out of memory: nothing was written");
	if (!err)
		err = output_open(path, false, &viewer->owner, &file, text);
	if (!err) {
		err = output_write(file, buffer_bytes(&lines), NULL);
		if (output_close(file) || err)
			snprintf(text, sizeof(text), "%s is not whole: %s", path, strerror(-err));
		else
			snprintf(text, sizeof(text), "written: %s, %zu bytes", path, lines.size);
	}
	screen_model_say(viewer->model, text);
	buffer_done(&lines);
}

static enum screen_action take_keys(struct viewer *viewer, uint64_t now_ns)
{
	enum screen_action action = SCREEN_NOTHING;
	uint32_t key;

	while (action == SCREEN_NOTHING && screen_key(viewer->screen, &key)) {
		action = screen_model_key(viewer->model, key, now_ns);
		viewer->drawn_ns = 0; /* whoever presses a key wants to see what it does */
		if (action == SCREEN_WRITE)
			write_file(viewer, now_ns);
		if (action == SCREEN_REDRAW)
			screen_spoiled(viewer->screen);
		if (action == SCREEN_WRITE || action == SCREEN_REDRAW)
			action = SCREEN_NOTHING;
	}
	return action;
}

static void take_messages(struct viewer *viewer, uint64_t now_ns)
{
	struct bytes line;

	if (now_ns < viewer->looked_ns + LOOK_NS)
		return;
	viewer->looked_ns = now_ns;
	line = screen_messages(viewer->screen);
	if (line.size)
		screen_model_say(viewer->model, (const char *)line.data);
}

static void draw(struct viewer *viewer, uint64_t now_ns)
{
	if (!screen_ready(viewer->screen) || now_ns < viewer->drawn_ns + FRAME_NS || !screen_model_take_change(viewer->model))
		return;
	screen_layout(viewer->model, now_ns, &viewer->frame);
	screen_paint(viewer->screen, &viewer->frame);
	viewer->drawn_ns = now_ns;
}

enum screen_action viewer_turn(struct viewer *viewer, uint64_t now_ns)
{
	enum screen_action action = take_keys(viewer, now_ns);

	take_messages(viewer, now_ns);
	draw(viewer, now_ns);
	return action;
}
