/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A host with sandboxes, each a scene of its own: what a scene plays becomes
 * events of that sandbox's network namespace, cgroup and uid, with flows that
 * no other scene has. They go into the tenants at once, or onto a tape first.
 */
#ifndef NIGHTCLERK_TENANTS_PLAY_H
#define NIGHTCLERK_TENANTS_PLAY_H

#include "scene.h"
#include "tenants.h"

#ifndef PLAY_CHECK
#define PLAY_CHECK(condition) assert_true(condition)
#endif

#define SANDBOXES 12
#define SERVER_CGROUP 9000

struct taped {
	uint64_t now_ns;
	struct wire_event event;
	struct buffer payload;
};

struct host;

struct sandbox {
	struct scene scene; /* first: its feed finds the rest */
	struct host *host;
	uint64_t cgroup_id;
	uint32_t uid;
	uint32_t number;
	bool nameless_open; /* WIRE_OPEN names no owner, as in older recordings */
	bool nameless;	    /* nothing does */
	bool tapes;
	struct taped *tape;
	size_t taped;
};

struct host {
	struct run_facts facts;
	struct pipeline_options pipeline;
	struct tenants_options options;
	struct tenants *tenants;
	struct sandbox sandbox[SANDBOXES];
	uint64_t now_ns;
	uint64_t accepted;
	struct counters counters;
};

static inline struct wire_event sandbox_event(const struct sandbox *sandbox, const struct wire_event *event)
{
	struct wire_event own = *event;
	bool client = event->tgid != WIRE_BUILD_SERVER_TGID;

	own.netns += sandbox->number;
	if (own.flow)
		own.flow += 1000ULL * sandbox->number;
	if (own.tgid)
		own.tgid += 10000 * sandbox->number;
	if (own.cgroup_id) {
		own.cgroup_id = client ? sandbox->cgroup_id : SERVER_CGROUP;
		own.uid = client ? sandbox->uid : 0;
	}
	if (sandbox->nameless || (sandbox->nameless_open && own.kind == WIRE_OPEN))
		own.cgroup_id = own.uid = 0;
	if (own.kind == WIRE_OPEN) { /* as the probe has it */
		own.tgid = own.tid = own.ns_tgid = 0;
		own.process_start_ns = 0;
		memset(own.comm, 0, sizeof(own.comm));
	}
	return own;
}

static inline void host_feed(struct host *host, const struct input *input)
{
	PLAY_CHECK(input->now_ns >= host->now_ns);
	host->now_ns = input->now_ns;
	PLAY_CHECK(tenants_feed(host->tenants, input) == 0);
}

static inline void sandbox_feed(struct scene *scene, const struct wire_event *event, struct bytes payload)
{
	struct sandbox *sandbox = (struct sandbox *)scene;
	struct wire_event own = sandbox_event(sandbox, event);
	struct taped *taped;

	if (own.kind == WIRE_DATA || own.kind == WIRE_HOLE)
		sandbox->host->accepted += own.length_bytes;
	if (!sandbox->tapes) {
		host_feed(sandbox->host, &(struct input){.kind = INPUT_WIRE, .now_ns = scene->now_ns, .wire = {&own, payload}});
		return;
	}
	sandbox->tape = realloc(sandbox->tape, (sandbox->taped + 1) * sizeof(*taped));
	PLAY_CHECK(sandbox->tape);
	taped = &sandbox->tape[sandbox->taped++];
	*taped = (struct taped){.now_ns = scene->now_ns, .event = own};
	PLAY_CHECK(buffer_append(&taped->payload, payload) == 0);
}

static inline void host_open(struct host *host)
{
	host->options.run = &host->facts;
	host->options.pipeline = &host->pipeline;
	host->tenants = tenants_new(&host->options);
	PLAY_CHECK(host->tenants);
}

/* Sandbox n is cgroup 100 + n, uid 1000 + n. */
static inline void host_start(struct host *host, enum tenant_split split)
{
	memset(host, 0, sizeof(*host));
	for (uint32_t n = 0; n < SANDBOXES; n++) {
		struct sandbox *sandbox = &host->sandbox[n];

		scene_start(&sandbox->scene);
		sandbox->scene.feed = sandbox_feed;
		sandbox->host = host;
		sandbox->number = n;
		sandbox->cgroup_id = 100 + n;
		sandbox->uid = 1000 + n;
	}
	host->now_ns = SCENE_START_NS;
	host->facts = host->sandbox[0].scene.facts;
	host->pipeline = host->sandbox[0].scene.options;
	host->pipeline.no_alerts = true;
	host->options.split = split;
}

static inline void host_name(struct host *host, uint64_t cgroup_id, const char *path)
{
	host_feed(host, &(struct input){.kind = INPUT_CGROUP, .now_ns = host->now_ns,
					.cgroup = {cgroup_id, bytes_of_string(path)}});
}

static inline void host_tick(struct host *host, uint64_t ms)
{
	host_feed(host, &(struct input){.kind = INPUT_TICK, .now_ns = host->now_ns + ms * SCENE_MS,
					.tick = {host->facts.wall_offset_ns}});
	for (int n = 0; n < SANDBOXES; n++)
		if (host->sandbox[n].scene.now_ns < host->now_ns)
			host->sandbox[n].scene.now_ns = host->now_ns;
}

static inline void host_count(struct host *host)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = host->now_ns, .counters = host->counters};

	input.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = host->accepted;
	host_feed(host, &input);
}

static inline void host_finish(struct host *host)
{
	host_count(host);
	host_feed(host, &(struct input){.kind = INPUT_DRAIN, .now_ns = host->now_ns});
	host_feed(host, &(struct input){.kind = INPUT_CLOSING, .now_ns = host->now_ns, .closing = {.command_status = -1}});
}

static inline void host_done(struct host *host)
{
	tenants_free(host->tenants);
	for (int n = 0; n < SANDBOXES; n++) {
		for (size_t i = 0; i < host->sandbox[n].taped; i++)
			buffer_done(&host->sandbox[n].tape[i].payload);
		free(host->sandbox[n].tape);
	}
}

/* The n-th tenant of that name, from 0; NULL when there is none. */
static inline struct tenant *host_tenant(struct host *host, const char *name, int n)
{
	for (struct tenant *tenant = tenants_next(host->tenants, NULL); tenant; tenant = tenants_next(host->tenants, tenant))
		if (strcmp(tenant_name(tenant), name) == 0 && n-- == 0)
			return tenant;
	return NULL;
}

static inline size_t host_tenants(struct host *host)
{
	struct tenant *tenant = NULL;
	size_t count = 0;

	while ((tenant = tenants_next(host->tenants, tenant)))
		count++;
	return count;
}

static inline size_t lines_of(struct bytes text)
{
	size_t lines = 0;

	for (size_t i = 0; i < text.size; i++)
		lines += text.data[i] == '\n';
	return lines;
}

/* Lines of its ledger; 0 where there is no such tenant. */
static inline size_t host_requests(struct host *host, const char *name)
{
	struct tenant *tenant = host_tenant(host, name, 0);

	return tenant ? lines_of(buffer_bytes(&tenant_output(tenant)->ledger)) : 0;
}

static inline bool tenant_says(struct tenant *tenant, const char *text)
{
	const struct buffer *events = &tenant_output(tenant)->events;

	return memmem(events->data, events->size, text, strlen(text));
}

/* One reason of that beginning in its summary. */
static inline bool tenant_cannot_tell(const struct tenant *tenant, const char *why)
{
	const struct summary *summary = tenant_summary(tenant);

	for (size_t i = 0; i < summary->incomplete_count; i++)
		if (strncmp(summary->incomplete[i], why, strlen(why)) == 0)
			return true;
	return false;
}

/* ---- what sandboxes do ---- */

static inline void charge(struct sandbox *sandbox, uint32_t c, const char *body)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "POST /v1/charges HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	scene_send(&sandbox->scene, c, WIRE_BUILD_CLIENT, text);
	scene_wait(&sandbox->scene, 1);
	scene_send(&sandbox->scene, c, WIRE_BUILD_SERVER, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
	scene_wait(&sandbox->scene, 1);
}

static inline void leave(struct sandbox *sandbox, uint32_t c)
{
	scene_close(&sandbox->scene, c, WIRE_BUILD_CLIENT);
	scene_close(&sandbox->scene, c, WIRE_BUILD_SERVER);
	scene_end_of(&sandbox->scene, c, WIRE_BUILD_CLIENT);
	scene_end_of(&sandbox->scene, c, WIRE_BUILD_SERVER);
}

/* One connection with one charge, from start to end. */
static inline void charge_once(struct sandbox *sandbox, const char *body)
{
	uint32_t c;

	if (sandbox->scene.now_ns < sandbox->host->now_ns)
		sandbox->scene.now_ns = sandbox->host->now_ns;
	c = scene_connect(&sandbox->scene, WIRE_BUILD_CLIENT_TGID);
	charge(sandbox, c, body);
	leave(sandbox, c);
}

#endif
