/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as what a few clients and one server do, through the whole
 * pipeline: sends in any pieces, holes, closes, resets, exits, marks.
 *
 * Held: every accepted byte is in a message, in a hole or blind; one ledger
 * line and one response event for every request event; findings name requests
 * that were there; every line is JSON, and no control byte stands in any
 * output. A full screen looks on, is pressed keys and resized: it counts what
 * the ledger counts.
 *
 * The first byte sets options. Then actions, a byte each (see struct action);
 * tests/fuzz/pipeline_seeds writes this form.
 */
#include "scene.h"
#include "screen_layout.h"
#include "screen_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SLOTS 4
#define EVENTS_MAX 4096 /* of one input: an event each may be one byte long */

#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)

enum action_kind { ACT_SEND, ACT_SEND_TOO, ACT_LOSE, ACT_CLOSE, ACT_ABORT, ACT_END, ACT_MORE, ACT_OPEN };

/* kind: bits 0 to 2; slot: bits 3, 4; side: bit 5; how long nothing happened before: bits 6, 7. */
struct action {
	enum action_kind kind;
	uint32_t slot;
	int side;
	uint64_t wait_ms;
};

struct fuzz {
	struct scene scene;
	struct screen_model *screen;
	struct screen_frame frame;
	struct bytes rest;
	uint32_t connection[SLOTS];
	bool open[SLOTS];
};

static uint8_t take_byte(struct fuzz *fuzz)
{
	struct bytes byte = bytes_take(&fuzz->rest, 1);

	return byte.size ? byte.data[0] : 0;
}

/* A byte, or from 240 on twelve bits of two. */
static size_t take_length(struct fuzz *fuzz)
{
	size_t length = take_byte(fuzz);

	return length < 240 ? length : (length & 15) << 8 | take_byte(fuzz);
}

static struct action take_action(struct fuzz *fuzz)
{
	static const uint64_t waits[] = {0, 5, 300, 20000};
	uint8_t code = take_byte(fuzz);

	return (struct action){code & 7, code >> 3 & 3, code >> 5 & 1, waits[code >> 6]};
}

static bool open_slot(struct fuzz *fuzz, uint32_t slot, uint8_t owner)
{
	if (fuzz->scene.connections == SCENE_CONNECTIONS)
		return false;
	fuzz->connection[slot] = scene_connect(&fuzz->scene, 4720u + owner % 3);
	fuzz->open[slot] = true;
	return true;
}

static void more(struct fuzz *fuzz, uint32_t c, int side)
{
	struct scene *scene = &fuzz->scene;
	struct input input = {.now_ns = scene->now_ns};
	uint8_t code = take_byte(fuzz);

	switch (code & 7) {
	case 0:
		input.kind = INPUT_MARK;
		input.mark.label = bytes_take(&fuzz->rest, take_byte(fuzz) & 31);
		pipeline_feed(scene->pipeline, &input);
		break;
	case 1:
		scene_exit(scene, 4720u + (code >> 3) % 3);
		break;
	case 2:
		scene_hold_reads(scene, c, side);
		break;
	case 3:
		if (scene->ends[c][side].read < scene->ends[c][!side].sent)
			scene_read(scene, c, side, 1);
		break;
	case 4:
		input.kind = INPUT_CGROUP;
		input.cgroup.id = 77;
		input.cgroup.path = bytes_take(&fuzz->rest, take_byte(fuzz) & 31);
		pipeline_feed(scene->pipeline, &input);
		break;
	default:
		input.kind = INPUT_TICK;
		input.tick.wall_offset_ns = scene->facts.wall_offset_ns;
		pipeline_feed(scene->pipeline, &input);
		break;
	}
}

/*
 * A kernel says nothing of an end after its close but the END; a recording may.
 * After both ENDs the same flow would be another connection.
 */
static void act(struct fuzz *fuzz)
{
	struct action action = take_action(fuzz);
	struct scene *scene = &fuzz->scene;
	uint32_t c;

	scene_wait(scene, action.wait_ms);
	if (action.kind == ACT_OPEN || !fuzz->open[action.slot])
		if (!open_slot(fuzz, action.slot, action.kind == ACT_OPEN ? take_byte(fuzz) : 0))
			return;
	c = fuzz->connection[action.slot];
	if (action.kind == ACT_MORE)
		more(fuzz, c, action.side);
	if (action.kind == ACT_SEND || action.kind == ACT_SEND_TOO) {
		struct bytes sent = bytes_take(&fuzz->rest, take_length(fuzz));

		if (sent.size)
			scene_send_bytes(scene, c, action.side, sent);
	} else if (action.kind == ACT_LOSE) {
		scene_lose(scene, c, action.side, take_length(fuzz) + 1);
	} else if (action.kind == ACT_CLOSE) {
		scene_close(scene, c, action.side);
	} else if (action.kind == ACT_ABORT) {
		scene_abort(scene, c, action.side);
	} else if (action.kind == ACT_END) {
		scene_end_of(scene, c, action.side);
		fuzz->open[action.slot] = !scene->ends[c][!action.side].ended;
	}
}

/* ---- somebody looks on ---- */

/* A key and sometimes another size, by the length of what is left: the bytes of the input are for the wire. */
static void look_on(struct fuzz *fuzz)
{
	static const uint32_t keys[] = {'?', 'j', 'k', 'g', 'G', 'f', 'p', 's', 'w', '/', 'a', '!', ':', SCREEN_KEY_PAGE_UP, SCREEN_KEY_PAGE_DOWN,
					SCREEN_KEY_ENTER, SCREEN_KEY_TAB, SCREEN_KEY_BACKSPACE, SCREEN_KEY_ESCAPE, SCREEN_KEY_ESCAPE};
	static const unsigned int sizes[][2] = {{80, 24}, {40, 10}, {132, 5}, {3, 2}, {20, 60}, {0, 0}};
	size_t n = fuzz->rest.size * 2654435761u;

	screen_model_key(fuzz->screen, keys[(n >> 8) % (sizeof(keys) / sizeof(keys[0]))], fuzz->scene.now_ns);
	if (n >> 16 & 3)
		return;
	screen_model_resize(fuzz->screen, sizes[(n >> 18) % 6][0], sizes[(n >> 18) % 6][1]);
	screen_layout(fuzz->screen, fuzz->scene.now_ns, &fuzz->frame);
}

/* ---- what must hold ---- */

static void check_text(struct bytes text)
{
	CHECK(text.size == 0 || text.data[text.size - 1] == '\n');
	for (size_t i = 0; i < text.size; i++)
		CHECK((text.data[i] >= ' ' && text.data[i] != 0x7f) || text.data[i] == '\n');
}

static int64_t number(json_object *object, const char *name)
{
	json_object *value = NULL;

	CHECK(json_object_object_get_ex(object, name, &value));
	return json_object_get_int64(value);
}

static void check_sums(const struct scene *scene)
{
	json_object *summary = scene_event(scene, "summary", 0), *bytes = NULL;

	CHECK(summary && scene_count(scene, "summary") == 1);
	CHECK(json_object_object_get_ex(summary, "bytes", &bytes));
	CHECK(number(bytes, "accepted") == (int64_t)scene->accepted);
	CHECK(number(bytes, "in_messages") + number(bytes, "in_holes") + number(bytes, "in_blind") ==
	      (int64_t)scene->accepted);
	CHECK(number(summary, "requests") == (int64_t)json_object_array_length(scene->ledger));
}

/* The ledger as a set: request id -> its response events. */
static json_object *ids_of(const struct scene *scene)
{
	json_object *ids = json_object_new_object();

	for (size_t i = 0; i < json_object_array_length(scene->ledger); i++) {
		json_object *line = json_object_array_get_idx(scene->ledger, i);

		CHECK(line);
		CHECK(!json_object_object_get_ex(ids, scene_field(line, "id"), NULL));
		json_object_object_add(ids, scene_field(line, "id"), json_object_new_int(0));
	}
	return ids;
}

static void check_event(json_object *event, const struct scene *scene, json_object *ids, size_t *requests)
{
	const char *kind = scene_field(event, "kind"), *of = scene_field(event, "of");
	const char *earlier = scene_field(event, "earlier");
	json_object *count = NULL;

	CHECK(kind);
	if (strcmp(kind, "request") == 0) {
		json_object *line = json_object_array_get_idx(scene->ledger, (*requests)++);

		CHECK(line && strcmp(scene_field(line, "id"), scene_field(event, "id")) == 0);
	}
	CHECK(!of || json_object_object_get_ex(ids, of, &count));
	CHECK(!earlier || json_object_object_get_ex(ids, earlier, NULL));
	if (strcmp(kind, "response") == 0) {
		CHECK(json_object_get_int(count) == 0);
		json_object_set_int(count, 1);
	}
}

static void check(struct scene *scene)
{
	json_object *ids = ids_of(scene);
	size_t requests = 0;

	for (size_t i = 0; i < json_object_array_length(scene->events); i++) {
		json_object *event = json_object_array_get_idx(scene->events, i);

		CHECK(event);
		check_event(event, scene, ids, &requests);
	}
	CHECK(requests == json_object_array_length(scene->ledger));
	json_object_object_foreach(ids, id, answered)
		CHECK(id && json_object_get_int(answered) == 1);
	json_object_put(ids);
	check_sums(scene);
	CHECK(pipeline_open_calls(scene->pipeline) == 0);
}

/* All calls, whole, in the view that is open; and no control byte. */
static void check_screen(struct fuzz *fuzz)
{
	const struct screen_model *screen = fuzz->screen;
	uint64_t calls = screen->other ? screen->other->calls : 0;
	struct buffer text = {0};

	for (const struct screen_group *group = screen->groups; group; group = group->hh.next)
		calls += group->calls;
	CHECK(calls == screen->totals.calls);
	CHECK(calls == json_object_array_length(fuzz->scene.ledger));
	CHECK(screen->totals.answered == calls);
	CHECK(screen_text(fuzz->screen, fuzz->scene.now_ns, &text) == 0);
	check_text(buffer_bytes(&text));
	screen_layout(fuzz->screen, fuzz->scene.now_ns, &fuzz->frame);
	for (size_t i = 0; i < fuzz->frame.text.size; i++)
		CHECK(fuzz->frame.text.data[i] >= ' ' && fuzz->frame.text.data[i] != 0x7f);
	buffer_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz fuzz = {.rest = {data, size}};
	struct scene *scene = &fuzz.scene;
	uint8_t options = take_byte(&fuzz);

	scene_start(scene);
	scene->options.judge.strict = options & 1;
	scene->options.judge.across_processes = !(options & 2);
	scene->options.live_alerts = options & 4;
	scene->options.live_calls = true;
	scene->options.junit = options & 8;
	scene->options.style.width = options & 16 ? 80 : 0;
	fuzz.screen = screen_model_new(&(struct screen_options){.title = "fuzz", .fail_on = SEVERITY_MEDIUM});
	scene->options.screen = fuzz.screen;
	scene_open(scene);
	for (int i = 0; fuzz.rest.size && i < EVENTS_MAX; i++) {
		act(&fuzz);
		look_on(&fuzz);
	}
	scene_finish(scene, 0);
	check_text(buffer_bytes(&scene->out.ledger));
	check_text(buffer_bytes(&scene->out.events));
	check_text(buffer_bytes(&scene->out.alerts));
	check_text(buffer_bytes(&scene->out.calls));
	check_text(buffer_bytes(&scene->out.junit));
	check(scene);
	check_screen(&fuzz);
	scene_done(scene);
	screen_model_free(fuzz.screen);
	screen_frame_done(&fuzz.frame);
	return 0;
}
