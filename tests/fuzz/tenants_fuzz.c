/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as what four sandboxes do on one host, through the tenants: sends,
 * holes, closes, exits, connections that nobody owns, cgroups that get any
 * path at any time, time that passes, tenants that are forgotten.
 *
 * Held: every request is in one ledger; of each tenant every accepted byte is
 * in a message, in a hole or blind, and the tenants' bytes are those of the
 * host; no two that live share a name, none shares a run id; every line is JSON.
 *
 * The first byte sets options. Then actions: what, of which sandbox, and how
 * much time passed before, in one byte.
 */
#define CHECK(condition)          \
	do {                      \
		if (!(condition)) \
			abort();  \
	} while (0)
#define PLAY_CHECK CHECK
#define SCENE_CONNECTIONS 128

#include "tenants_play.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define PLAYERS 4
#define ACTIONS_MAX 4096

struct fuzz {
	struct host host;
	struct bytes rest;
	uint32_t connection[PLAYERS][2];
	bool open[PLAYERS][2];
	json_object *runs; /* run ids that there were */
	json_object *ids;  /* request ids */
	uint64_t bytes;	   /* of those that ended */
};

static uint8_t take_byte(struct fuzz *fuzz)
{
	struct bytes byte = bytes_take(&fuzz->rest, 1);

	return byte.size ? byte.data[0] : 0;
}

/* ---- what sandboxes do ---- */

static bool open_slot(struct fuzz *fuzz, int player, int slot)
{
	struct sandbox *sandbox = &fuzz->host.sandbox[player];

	if (fuzz->open[player][slot])
		return true;
	if (sandbox->scene.connections == SCENE_CONNECTIONS)
		return false;
	fuzz->connection[player][slot] = scene_connect(&sandbox->scene, 4720u + slot);
	fuzz->open[player][slot] = true;
	return true;
}

static void end(struct fuzz *fuzz, int player, int slot, int side)
{
	struct scene *scene = &fuzz->host.sandbox[player].scene;
	uint32_t c = fuzz->connection[player][slot];

	scene_end_of(scene, c, side);
	fuzz->open[player][slot] = !scene->ends[c][!side].ended;
}

static void send(struct fuzz *fuzz, struct scene *scene, uint32_t c, uint8_t code)
{
	static const char *const requests[] = {"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
					       "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}"};

	if (code & 2)
		scene_send(scene, c, WIRE_BUILD_CLIENT, requests[code & 1]);
	else
		scene_send_bytes(scene, c, code & 1, bytes_take(&fuzz->rest, 1 + (take_byte(fuzz) & 31)));
}

static void exits_or_leaves_loopback(struct fuzz *fuzz, struct scene *scene)
{
	struct wire_event event = wire_build_exit(4720u + (take_byte(fuzz) & 1), "agent", scene->now_ns);

	event.kind = take_byte(fuzz) & 1 ? WIRE_CONNECT : WIRE_EXIT;
	sandbox_feed(scene, &event, (struct bytes){0});
}

static void change_sandbox(struct fuzz *fuzz, struct sandbox *sandbox)
{
	uint8_t code = take_byte(fuzz);

	sandbox->nameless = code & 1;
	sandbox->nameless_open = code & 2;
	sandbox->cgroup_id = 100 + (code >> 2 & 7);
	sandbox->uid = code >> 5;
	if (code & 4)
		host_feed(&fuzz->host, &(struct input){.kind = INPUT_CGROUP, .now_ns = fuzz->host.now_ns,
						       .cgroup = {sandbox->cgroup_id, bytes_take(&fuzz->rest, take_byte(fuzz) & 127)}});
}

/* ---- what must hold ---- */

static void check_name(const char *name)
{
	size_t size = strlen(name);

	CHECK(size > 0 && size <= TENANT_NAME_BYTES);
	CHECK(!strchr(name, '/') && name[0] != '.' && name[0] != '-');
}

static void check_lines(struct fuzz *fuzz, struct tenant *tenant)
{
	json_object *ledger = scene_lines(buffer_bytes(&tenant_output(tenant)->ledger));
	json_object *events = scene_lines(buffer_bytes(&tenant_output(tenant)->events));

	for (size_t i = 0; i < json_object_array_length(ledger); i++) {
		json_object *line = json_object_array_get_idx(ledger, i);

		CHECK(line);
		CHECK(strcmp(scene_field(line, "run"), tenant_run_id(tenant)) == 0);
		CHECK(!json_object_object_get_ex(fuzz->ids, scene_field(line, "id"), NULL));
		json_object_object_add(fuzz->ids, scene_field(line, "id"), NULL);
	}
	CHECK(json_object_array_length(ledger) == tenant_summary(tenant)->requests);
	for (size_t i = 0; i < json_object_array_length(events); i++)
		CHECK(json_object_array_get_idx(events, i));
	json_object_put(ledger);
	json_object_put(events);
}

static void check_ended(struct fuzz *fuzz, struct tenant *tenant)
{
	const struct summary *summary = tenant_summary(tenant);

	CHECK(summary->accepted_bytes == summary->message_bytes + summary->hole_bytes + summary->blind_bytes);
	CHECK(!tenant_cannot_tell(tenant, "the bytes"));
	CHECK(tenant_open_calls(tenant) == 0 && tenant_connections(tenant) == 0);
	CHECK(!json_object_object_get_ex(fuzz->runs, tenant_run_id(tenant), NULL));
	json_object_object_add(fuzz->runs, tenant_run_id(tenant), NULL);
	check_lines(fuzz, tenant);
	fuzz->bytes += summary->accepted_bytes;
}

/* Those that have ended are written and forgotten, as a collector does. */
static void reap(struct fuzz *fuzz)
{
	struct tenant *tenant = tenants_next(fuzz->host.tenants, NULL), *next;
	size_t alive = 0;

	for (; tenant; tenant = next) {
		next = tenants_next(fuzz->host.tenants, tenant);
		check_name(tenant_name(tenant));
		if (!tenant_ended(tenant)) {
			CHECK(host_tenant(&fuzz->host, tenant_name(tenant), 0) == tenant ||
			      tenant_ended(host_tenant(&fuzz->host, tenant_name(tenant), 0)));
			alive += strcmp(tenant_name(tenant), TENANT_NAME_OTHERS) != 0;
			continue;
		}
		check_ended(fuzz, tenant);
		tenants_forget(fuzz->host.tenants, tenant);
	}
	CHECK(alive <= fuzz->host.options.max);
	while (tenants_next_muted(fuzz->host.tenants))
		;
}

static void act(struct fuzz *fuzz)
{
	static const uint64_t waits[] = {0, 3, 400, 1500};
	uint8_t code = take_byte(fuzz), more;
	struct sandbox *sandbox = &fuzz->host.sandbox[code >> 4 & 3];
	int player = code >> 4 & 3, slot = code >> 3 & 1;
	struct scene *scene = &sandbox->scene;

	if (code >> 6)
		host_tick(&fuzz->host, waits[code >> 6]);
	scene->now_ns = fuzz->host.now_ns;
	if (!open_slot(fuzz, player, slot))
		return;
	switch (code & 7) {
	case 0:
	case 1:
	case 2:
		send(fuzz, scene, fuzz->connection[player][slot], code);
		break;
	case 3:
		more = take_byte(fuzz);
		scene_lose(scene, fuzz->connection[player][slot], more & 1, 1 + (more >> 1));
		break;
	case 4:
		more = take_byte(fuzz);
		if (more & 2)
			scene_close(scene, fuzz->connection[player][slot], more & 1);
		if (more & 4)
			end(fuzz, player, slot, more & 1);
		break;
	case 5:
		change_sandbox(fuzz, sandbox);
		break;
	case 6:
		exits_or_leaves_loopback(fuzz, scene);
		break;
	default:
		host_count(&fuzz->host);
		reap(fuzz);
		break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct fuzz fuzz;
	uint8_t options;

	memset(&fuzz, 0, sizeof(fuzz));
	fuzz.rest = (struct bytes){data, size};
	options = take_byte(&fuzz);
	host_start(&fuzz.host, options % 3);
	fuzz.host.options.max = 1 + (options >> 2 & 3);
	fuzz.host.options.idle_ns = options & 16 ? 300 * SCENE_MS : 0;
	host_open(&fuzz.host);
	fuzz.ids = json_object_new_object();
	fuzz.runs = json_object_new_object();
	for (int i = 0; fuzz.rest.size && i < ACTIONS_MAX; i++)
		act(&fuzz);
	host_finish(&fuzz.host);
	reap(&fuzz);
	CHECK(!tenants_next(fuzz.host.tenants, NULL));
	CHECK(fuzz.bytes == fuzz.host.accepted);
	host_done(&fuzz.host);
	json_object_put(fuzz.ids);
	json_object_put(fuzz.runs);
	return 0;
}
