/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene with a screen's model beside it, and what that shows as text.
 */
#ifndef NIGHTCLERK_SCREEN_PLAY_H
#define NIGHTCLERK_SCREEN_PLAY_H

#include "scene.h"

#include "screen_layout.h"
#include "screen_parts.h"

#define SCREEN_PLAY_AGENT 4101
#define SCREEN_PLAY_OTHER 4202

#define SCREEN_PLAY_POST(path, body_size, body)                                                                             \
	"POST " path " HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUser-Agent: agent/1\r\nAuthorization: Bearer s3cret\r\n"         \
	"Content-Type: application/json\r\nContent-Length: " #body_size "\r\n\r\n" body
#define SCREEN_PLAY_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

struct screen_play {
	struct scene scene;
	struct screen_model *model;
	struct screen_frame frame;
	struct buffer text;
	uint64_t now_ns; /* of the view: a second later at every look */
};

static inline void screen_play_start(struct screen_play *play, unsigned int columns, unsigned int rows)
{
	struct screen_options options = {.title = "watch pid 4101", .fail_on = SEVERITY_MEDIUM};

	memset(play, 0, sizeof(*play));
	scene_start(&play->scene);
	play->model = screen_model_new(&options);
	assert_non_null(play->model);
	screen_model_resize(play->model, columns, rows);
	screen_model_state(play->model, "LIVE");
	play->scene.options.screen = play->model;
	scene_open(&play->scene);
}

static inline void screen_play_done(struct screen_play *play)
{
	scene_done(&play->scene);
	screen_model_free(play->model);
	screen_frame_done(&play->frame);
	buffer_done(&play->text);
}

static inline void screen_play_ask(struct screen_play *play, uint32_t c, const char *request, uint64_t wait_ms,
				   const char *answer)
{
	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, request);
	scene_wait(&play->scene, wait_ms);
	if (answer)
		scene_send(&play->scene, c, WIRE_BUILD_SERVER, answer);
	scene_wait(&play->scene, 10);
}

static inline enum screen_action screen_play_key(struct screen_play *play, uint32_t key)
{
	play->now_ns += 1000000000;
	return screen_model_key(play->model, key, play->now_ns);
}

static inline void screen_play_type(struct screen_play *play, const char *text)
{
	for (; *text; text++)
		screen_play_key(play, (uint8_t)*text);
}

/* The screen as lines of text; lent until the next look. */
static inline const char *screen_play_look(struct screen_play *play)
{
	play->now_ns += 1000000000;
	screen_layout(play->model, play->now_ns, &play->frame);
	assert_false(play->frame.memory_lost);
	buffer_clear(&play->text);
	assert_int_equal(screen_frame_lines(&play->frame, &play->text), 0);
	assert_int_equal(buffer_append_byte(&play->text, '\0'), 0);
	return (const char *)play->text.data;
}

/*
 * 4101 posts a charge, gets no answer for 50 ms and closes; the server answers all the same; it
 * posts the charge again and gets 200. 4202 posts another one and gets 503, and reads a list.
 */
static inline void screen_play_knock_twice(struct screen_play *play)
{
	const char *charge = SCREEN_PLAY_POST("/v1/charges", 13, "{\"amount\": 5}");
	uint32_t c = scene_connect(&play->scene, SCREEN_PLAY_AGENT);

	scene_send(&play->scene, c, WIRE_BUILD_CLIENT, charge);
	scene_wait(&play->scene, 50);
	scene_close(&play->scene, c, WIRE_BUILD_CLIENT);
	scene_wait(&play->scene, 30);
	scene_send(&play->scene, c, WIRE_BUILD_SERVER, SCREEN_PLAY_OK);
	scene_close(&play->scene, c, WIRE_BUILD_SERVER);
	scene_wait(&play->scene, 20);
	screen_play_ask(play, scene_connect(&play->scene, SCREEN_PLAY_AGENT), charge, 3, SCREEN_PLAY_OK);
	c = scene_connect(&play->scene, SCREEN_PLAY_OTHER);
	screen_play_ask(play, c, SCREEN_PLAY_POST("/v1/refunds?key=abc&n=1", 2, "{}"), 5,
			"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n");
	screen_play_ask(play, c, "GET /v1/charges HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", 1, SCREEN_PLAY_OK);
}

#endif
