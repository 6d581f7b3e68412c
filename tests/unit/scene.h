/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A scene: clients, servers and what they send each other, played as wire
 * events through the whole pipeline. Tests then look at the events that came
 * out, as a user would.
 *
 * By default each side reads whatever the other sent; scene_hold_reads() stops that.
 */
#ifndef NIGHTCLERK_SCENE_H
#define NIGHTCLERK_SCENE_H

#include "wire_build.h"

#include "pipeline.h"

#include <json-c/json.h>

#ifndef SCENE_CONNECTIONS
#define SCENE_CONNECTIONS 64
#endif
#define SCENE_MS 1000000ULL
#define SCENE_START_NS (1000 * SCENE_MS)

struct scene_end {
	uint64_t sent;
	uint64_t read;
	uint32_t tgid;
	bool holds_reads;
	bool closed;
	bool ended; /* its WIRE_END is out: nothing follows */
};

struct scene {
	struct run_facts facts;
	struct pipeline_options options;
	struct pipeline_output out;
	struct pipeline *pipeline;
	struct scene_end ends[SCENE_CONNECTIONS][2];
	uint16_t server_port[SCENE_CONNECTIONS]; /* 0 = WIRE_BUILD_SERVER_PORT */
	uint32_t connections;
	uint64_t now_ns;
	uint64_t accepted;
	const char *client_comm; /* NULL = "agent" */
	size_t cut; /* > 0: every send goes out as two events, cut after this many bytes */
	/* Where events go; NULL = into the pipeline. */
	void (*feed)(struct scene *scene, const struct wire_event *event, struct bytes payload);
	uint64_t lost_events;	 /* that a feed of its own could not take */
	json_object *events; /* array, after scene_finish() */
	json_object *ledger;
};

static inline void scene_feed(struct scene *scene, struct wire_event *event, struct bytes payload)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = scene->now_ns, .wire = {event, payload}};

	if (scene->feed)
		scene->feed(scene, event, payload);
	else
		pipeline_feed(scene->pipeline, &input);
}

static inline void scene_start(struct scene *scene)
{
	memset(scene, 0, sizeof(*scene));
	scene->now_ns = SCENE_START_NS;
	scene->facts.wall_offset_ns = 1790000000LL * 1000000000LL - (int64_t)SCENE_START_NS;
	scene->facts.start_ns = SCENE_START_NS;
	memcpy(scene->facts.run_id, "0123456789abcdef", 17);
	memcpy(scene->facts.options, "{}", 3);
	judge_options_defaults(&scene->options.judge);
	scene->options.judge.across_processes = true;
}

/* After the options were changed, before anything is played. */
static inline void scene_open(struct scene *scene)
{
	scene->pipeline = pipeline_new(&scene->facts, &scene->options, &scene->out);
}

static inline void scene_wait(struct scene *scene, uint64_t ms)
{
	scene->now_ns += ms * SCENE_MS;
}

static inline struct wire_event scene_on(struct scene *scene, struct wire_event event, uint32_t c, int side)
{
	struct scene_end *end = &scene->ends[c][side];

	event = wire_build_on(event, c);
	if (scene->server_port[c])
		*(side == WIRE_BUILD_SERVER ? &event.local_port : &event.remote_port) = scene->server_port[c];
	event.read_bytes = end->read;
	event.received_bytes = scene->ends[c][!side].sent;
	if (event.tgid)
		wire_build_process(&event, end->tgid,
				   side == WIRE_BUILD_SERVER ? "server"
				   : scene->client_comm	     ? scene->client_comm
							     : "agent");
	return event;
}

/* A new connection from that client process to the server process behind a port: its number. */
static inline uint32_t scene_connect_to(struct scene *scene, uint32_t client_tgid, uint16_t port, uint32_t server_tgid)
{
	uint32_t c = scene->connections++;

	scene->ends[c][WIRE_BUILD_CLIENT].tgid = client_tgid;
	scene->ends[c][WIRE_BUILD_SERVER].tgid = server_tgid;
	scene->server_port[c] = port;
	for (int side = 0; side < 2; side++) {
		struct wire_event open = scene_on(scene, wire_build_open(side, scene->now_ns), c, side);

		scene_feed(scene, &open, (struct bytes){0});
	}
	return c;
}

/* A new connection from that client process to the server: its number. */
static inline uint32_t scene_connect(struct scene *scene, uint32_t client_tgid)
{
	return scene_connect_to(scene, client_tgid, 0, WIRE_BUILD_SERVER_TGID);
}

static inline void scene_hold_reads(struct scene *scene, uint32_t c, int side)
{
	scene->ends[c][side].holds_reads = true;
}

static inline void scene_read(struct scene *scene, uint32_t c, int side, uint64_t bytes)
{
	scene->ends[c][side].read += bytes;
}

static inline void scene_send_piece(struct scene *scene, uint32_t c, int side, struct bytes bytes)
{
	struct scene_end *end = &scene->ends[c][side];
	struct wire_event data = wire_build_data(side, end->sent, (uint32_t)bytes.size, 0, scene->now_ns);

	data = scene_on(scene, data, c, side);
	end->sent += bytes.size;
	scene->accepted += bytes.size;
	if (!scene->ends[c][!side].holds_reads)
		scene->ends[c][!side].read = end->sent;
	scene_feed(scene, &data, bytes);
}

static inline void scene_send_bytes(struct scene *scene, uint32_t c, int side, struct bytes bytes)
{
	if (scene->cut && scene->cut < bytes.size)
		scene_send_piece(scene, c, side, bytes_take(&bytes, scene->cut));
	scene_send_piece(scene, c, side, bytes);
}

static inline void scene_send(struct scene *scene, uint32_t c, int side, const char *text)
{
	scene_send_bytes(scene, c, side, bytes_of_string(text));
}

/* length bytes were sent that the probe could not keep. */
static inline void scene_lose(struct scene *scene, uint32_t c, int side, uint64_t length)
{
	struct scene_end *end = &scene->ends[c][side];
	struct wire_event hole = wire_build_hole(side, end->sent, length, WIRE_CAUSE_RING_FULL, scene->now_ns);

	hole = scene_on(scene, hole, c, side);
	end->sent += length;
	scene->accepted += length;
	scene_feed(scene, &hole, (struct bytes){0});
}

/* close() by that side. */
static inline void scene_close(struct scene *scene, uint32_t c, int side)
{
	struct wire_event state =
		wire_build_close(side, scene->ends[c][side].sent, scene->ends[c][!side].sent, scene->now_ns);

	if (scene->ends[c][!side].closed) {
		state.old_state = WIRE_TCP_CLOSE_WAIT;
		state.new_state = WIRE_TCP_LAST_ACK;
	}
	state = scene_on(scene, state, c, side);
	scene->ends[c][side].closed = true;
	scene_feed(scene, &state, (struct bytes){0});
	if (scene->ends[c][!side].closed) { /* the peer acknowledges the FIN at once */
		state.old_state = WIRE_TCP_LAST_ACK;
		state.new_state = WIRE_TCP_CLOSE;
		state.flags |= WIRE_ORPHANED;
		scene_feed(scene, &state, (struct bytes){0});
	}
}

static inline void scene_end_of(struct scene *scene, uint32_t c, int side)
{
	struct wire_event end =
		wire_build_end(side, scene->ends[c][side].sent, scene->ends[c][!side].sent, scene->now_ns);

	end = scene_on(scene, end, c, side);
	scene->ends[c][side].ended = true;
	scene_feed(scene, &end, (struct bytes){0});
}

/* RST by that side: both ends go straight to CLOSE. */
static inline void scene_abort(struct scene *scene, uint32_t c, int side)
{
	struct wire_event state = wire_build_close(side, scene->ends[c][side].sent, 0, scene->now_ns);

	state.new_state = WIRE_TCP_CLOSE;
	if (scene->ends[c][!side].closed)
		state.old_state = WIRE_TCP_CLOSE_WAIT;
	state = scene_on(scene, state, c, side);
	scene->ends[c][side].closed = true;
	scene_feed(scene, &state, (struct bytes){0});
}

static inline void scene_exit(struct scene *scene, uint32_t tgid)
{
	struct wire_event event = wire_build_exit(tgid, "agent", scene->now_ns);

	scene_feed(scene, &event, (struct bytes){0});
}

static inline json_object *scene_lines(struct bytes text)
{
	json_object *array = json_object_new_array();

	while (text.size) {
		struct bytes line = bytes_take(&text, bytes_find(text, '\n'));
		json_tokener *tokener = json_tokener_new();
		json_object *object = json_tokener_parse_ex(tokener, (const char *)line.data, (int)line.size);

		json_object_array_add(array, object);
		json_tokener_free(tokener);
		bytes_take(&text, 1);
	}
	return array;
}

/* Ends the run: the output is complete as text then. The exit status. */
static inline int scene_end_run(struct scene *scene, int command_status)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = scene->now_ns};

	for (uint32_t c = 0; c < scene->connections; c++)
		for (int side = 0; side < 2; side++) {
			struct wire_event end = wire_build_end(side, scene->ends[c][side].sent, 0, scene->now_ns);

			if (scene->ends[c][side].ended)
				continue;
			end = scene_on(scene, end, c, side);
			end.flags |= scene->ends[c][side].closed ? 0 : WIRE_STILL_OPEN;
			scene_feed(scene, &end, (struct bytes){0});
		}
	input.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = scene->accepted;
	input.counters.value[WIRE_COUNTER_LIFECYCLE_LOST] = scene->lost_events;
	pipeline_feed(scene->pipeline, &input);
	input = (struct input){.kind = INPUT_DRAIN, .now_ns = scene->now_ns};
	pipeline_feed(scene->pipeline, &input);
	input = (struct input){.kind = INPUT_CLOSING, .now_ns = scene->now_ns,
			       .closing = {.command_status = command_status}};
	pipeline_feed(scene->pipeline, &input);
	return pipeline_exit_status(scene->pipeline);
}

/* Ends the run; events and ledger can be read then. The exit status. */
static inline int scene_finish(struct scene *scene, int command_status)
{
	int status = scene_end_run(scene, command_status);

	scene->events = scene_lines(buffer_bytes(&scene->out.events));
	scene->ledger = scene_lines(buffer_bytes(&scene->out.ledger));
	return status;
}

static inline void scene_done(struct scene *scene)
{
	json_object_put(scene->events);
	json_object_put(scene->ledger);
	pipeline_free(scene->pipeline);
	buffer_done(&scene->out.ledger);
	buffer_done(&scene->out.events);
	buffer_done(&scene->out.alerts);
	buffer_done(&scene->out.calls);
	buffer_done(&scene->out.junit);
}

static inline const char *scene_field(json_object *object, const char *name)
{
	json_object *value = NULL;

	return json_object_object_get_ex(object, name, &value) && value ? json_object_get_string(value) : NULL;
}

/* The n-th event of that kind, or NULL. */
static inline json_object *scene_event(const struct scene *scene, const char *kind, size_t n)
{
	for (size_t i = 0; i < json_object_array_length(scene->events); i++) {
		json_object *event = json_object_array_get_idx(scene->events, i);
		const char *name = scene_field(event, "kind");

		if (name && strcmp(name, kind) == 0 && n-- == 0)
			return event;
	}
	return NULL;
}

static inline size_t scene_count(const struct scene *scene, const char *kind)
{
	size_t n = 0;

	while (scene_event(scene, kind, n))
		n++;
	return n;
}

#endif
