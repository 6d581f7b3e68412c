/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of tests/live/capture_probe.c: whose is a connection, and what a flood takes from others.
 */
#ifndef CAPTURE_PROBE_TENANTS_H
#define CAPTURE_PROBE_TENANTS_H

static void check_owner(const struct seen *flow, const struct owner *owner, const char *whose)
{
	if (!flow)
		return;
	expect(flow->open.cgroup_id == owner->cgroup_id, "%s cgroup: %lu, expected %lu", whose,
	       (unsigned long)flow->open.cgroup_id, (unsigned long)owner->cgroup_id);
	expect(flow->open.uid == owner->uid, "%s uid: %u, expected %u", whose, flow->open.uid, owner->uid);
	EQUAL(flow->open.tgid, 0, "process of the opening");
}

static void play_owners_of(bool client_in_tree)
{
	const struct seen *client;
	uint16_t port;

	if (!owners_make())
		return;
	client_owner = &owners[0];
	server_owner = &owners[1];
	port = server_start(NULL, !client_in_tree, serve_answer);
	client_start(NULL, port, client_in_tree, ask);
	observe_children(2, 2);
	client_owner = server_owner = NULL;
	check_exchange(client_in_tree, !client_in_tree);
	client = flow_of(WIRE_CLIENT);
	check_owner(client, &owners[0], "client's");
	check_owner(flow_of(WIRE_SERVER), &owners[1], "server's");
	if (client)
		EQUAL(client->sent.cgroup_id, owners[0].cgroup_id, "sender's cgroup");
	owners_remove();
}

static void play_owners(void)
{
	play_owners_of(true);
}

/* The client's connect is nobody's business: its socket tells. */
static void play_owners_of_strangers(void)
{
	play_owners_of(false);
}

/* Made in one cgroup, connected in another. */
static void play_owner_connects(void)
{
	struct child child;
	bool in_child;
	uint16_t port;

	if (!owners_make())
		return;
	port = server_start(NULL, false, serve_take);
	child = child_new(&in_child);
	if (in_child) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
		int fd;

		owner_enter(&owners[0]);
		fd = socket(AF_INET, SOCK_STREAM, 0);
		owner_become(&owners[1]);
		must(fd >= 0 && inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1, "socket");
		must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
		send_write(fd);
		_exit(0);
	}
	child_go(child, true);
	observe_children(2, 2);
	check_pair();
	check_owner(flow_of(WIRE_CLIENT), &owners[1], "client's");
	owners_remove();
}

/* ---- fair shares: nothing is drained before all is sent ---- */

#define SMALL_RING (256 * 1024UL)
#define SEND_BYTES 10000

static const struct seen *flow_of_owner(const struct owner *owner)
{
	for (size_t i = 0; i < seen->flow_count; i++)
		if (seen->flows[i].open.uid == owner->uid)
			return &seen->flows[i];
	expect(false, "no flow of uid %u", owner->uid);
	return NULL;
}

static const struct seen *peer_of(const struct seen *flow)
{
	for (size_t i = 0; flow && i < seen->flow_count; i++)
		if (seen->flows[i].open.remote_port == flow->open.local_port)
			return &seen->flows[i];
	return NULL;
}

static uint64_t tenant_of(const struct owner *owner, enum capture_fair fair)
{
	return fair == CAPTURE_FAIR_CGROUP ? owner->cgroup_id : owner->uid;
}

/* Both ends of one connection, to their ends. */
static void connection_of(const struct owner *owner, void (*serve)(int fd), void (*act)(int fd))
{
	uint16_t port = server_start(NULL, false, serve);
	int status;

	client_owner = owner;
	client_start(NULL, port, true, act);
	client_owner = NULL;
	for (int i = 0; i < 2; i++)
		must(waitpid(-1, &status, 0) > 0, "child");
}

static void check_share(const struct owner *owner, enum capture_fair fair, uint64_t accepted, uint64_t shed)
{
	struct capture_share share;

	if (!expect(capture_share(capture, tenant_of(owner, fair), &share), "there are no shares"))
		return;
	EQUAL(share.accepted_bytes, accepted, "accepted of the tenant");
	for (int cause = 0; cause < WIRE_CAUSE_COUNT; cause++)
		EQUAL(share.lost_bytes[cause], cause == WIRE_CAUSE_SHARE ? shed : 0, "lost by the tenant");
	EQUAL(share.changes, 1, "tenants of the slot");
	EQUAL(share.flows, 0, "flows that live");
	EQUAL(share.flows_refused, 0, "flows that were refused");
	EQUAL(share.lifecycle_lost, 0, "lost events");
	EQUAL(share.data_bytes, 0, "still in the data ring");
	EQUAL(share.lifecycle_bytes, 0, "still in the lifecycle ring");
}

static void check_flood(const struct seen *flood, uint64_t captured)
{
	if (!flood)
		return;
	EQUAL(flood->data, captured, "captured of the flood");
	EQUAL(flood->data + flood->hole[WIRE_CAUSE_SHARE], MIB, "captured of the flood and lost by its share");
	EQUAL(flood->end.offset, MIB, "end of the flood");
	expect(!flood->disordered && flood->ended, "the flood is disordered or has no end");
	expect(flood->bytes && !memcmp(flood->bytes, taken[0].bytes, captured), "bytes of the flood differ");
}

static void check_quiet(const struct seen *quiet)
{
	const struct seen *answer = peer_of(quiet);

	if (!quiet || !expect(answer != NULL, "no answer"))
		return;
	EQUAL(quiet->data, 300, "request of the quiet one");
	EQUAL(answer->data, 500, "answer to the quiet one");
	EQUAL(quiet->end.offset, 300, "end of the request");
	EQUAL(answer->end.offset, 500, "end of the answer");
	expect(!quiet->disordered && !answer->disordered, "the quiet one is disordered");
	EQUAL(quiet->end.lost_records + answer->end.lost_records, 0, "lost records of the quiet one");
}

static void play_flood(enum capture_fair fair)
{
	struct counters counters;
	uint64_t shed = MIB - WIRE_PAYLOAD_MAX; /* one record is all that half a share has room for */

	if (fair == CAPTURE_FAIR_CGROUP && !owners_make())
		return;
	capture_begin((struct capture_options){
		.scope = CAPTURE_TREE, .data_ring_bytes = SMALL_RING, .fair = fair});
	connection_of(&owners[0], serve_take, send_mebibyte);
	connection_of(&owners[1], serve_answer, ask);
	observe_children(0, 4);
	check_flood(flow_of_owner(&owners[0]), WIRE_PAYLOAD_MAX);
	check_quiet(flow_of_owner(&owners[1]));
	check_share(&owners[0], fair, MIB, shed);
	check_share(&owners[1], fair, 800, 0);
	must(!capture_counters(capture, &counters), "counters");
	EQUAL(counters.value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_SHARE], shed, "counted as lost");
	EQUAL(counters.value[WIRE_COUNTER_ACCEPTED_BYTES], MIB + 800, "accepted");
	owners_remove();
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

static void play_flood_of_cgroup(void)
{
	play_flood(CAPTURE_FAIR_CGROUP);
}

static void play_flood_of_uid(void)
{
	play_flood(CAPTURE_FAIR_UID);
}

static void send_bodies(int fd)
{
	for (uint64_t i = 0; i < 40; i++)
		write_stream(fd, i * SEND_BYTES, SEND_BYTES);
}

/* Whole sends, then heads, then nothing: what fits becomes less and less while nobody drains. */
static void check_bodies_go_first(const struct seen *flow)
{
	const uint64_t head = WIRE_CLASS_5 - sizeof(struct wire_event);
	uint64_t captured[40] = {}, heads = 0, nothing = 0;

	for (size_t i = 0; i < flow->piece_count; i++) {
		if (!expect(flow->pieces[i].offset / SEND_BYTES < 40, "a piece at %lu",
			    (unsigned long)flow->pieces[i].offset))
			return;
		captured[flow->pieces[i].offset / SEND_BYTES] += flow->pieces[i].length;
	}
	EQUAL(captured[0], SEND_BYTES, "captured of the first send");
	for (size_t i = 0; i < 40; i++) {
		expect(captured[i] == SEND_BYTES || captured[i] == head || !captured[i], "send %zu: %lu bytes",
		       i, (unsigned long)captured[i]);
		expect(!i || captured[i] <= captured[i - 1], "send %zu: more than of the one before", i);
		heads += captured[i] == head;
		nothing += !captured[i];
	}
	expect(heads > 2 && nothing > 2, "%lu heads, and %lu sends of which is nothing", (unsigned long)heads,
	       (unsigned long)nothing);
}

static void play_bodies_go_first(void)
{
	const struct seen *client;

	capture_begin((struct capture_options){
		.scope = CAPTURE_TREE, .data_ring_bytes = SMALL_RING, .fair = CAPTURE_FAIR_UID});
	connection_of(&owners[0], serve_take, send_bodies);
	observe_children(0, 2);
	client = flow_of_owner(&owners[0]);
	check_pair();
	if (client) {
		check_pieces("bodies", client);
		check_bodies_go_first(client);
		check_share(&owners[0], CAPTURE_FAIR_UID, 40 * SEND_BYTES, client->hole[WIRE_CAUSE_SHARE]);
	}
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

#define CONNECTIONS 60

static void accept_many(int listener)
{
	for (int i = 0; i < CONNECTIONS; i++)
		close(accept(listener, NULL, NULL));
}

/* The lifecycle ring has room for 89 events. */
static void play_connections_flood(void)
{
	uint16_t port;
	bool in_child;
	struct child child;
	struct capture_share flood = {}, quiet = {};
	struct counters counters;

	capture_begin((struct capture_options){.scope = CAPTURE_TREE,
					       .lifecycle_ring_bytes = 4 * (size_t)sysconf(_SC_PAGESIZE),
					       .fair = CAPTURE_FAIR_UID});
	port = listener_start(NULL, false, accept_many);
	child = child_new(&in_child);
	if (in_child) {
		owner_become(&owners[0]);
		for (int i = 0; i < CONNECTIONS; i++)
			close(connect_to(NULL, port));
		_exit(0);
	}
	child_go(child, true);
	must(waitpid(-1, NULL, 0) > 0 && waitpid(-1, NULL, 0) > 0, "children");
	connection_of(&owners[1], serve_answer, ask);
	pull(now_ns());
	sequencer_drain(sequencer);
	pull(now_ns());
	check_quiet(flow_of_owner(&owners[1]));
	must(capture_share(capture, owners[0].uid, &flood) && capture_share(capture, owners[1].uid, &quiet) &&
		     !capture_counters(capture, &counters),
	     "shares");
	expect(flood.lifecycle_lost > 0, "the flood lost no event");
	EQUAL(quiet.lifecycle_lost, 0, "lost events of the quiet one");
	EQUAL(counters.value[WIRE_COUNTER_LIFECYCLE_LOST], flood.lifecycle_lost, "lost events of all");
	EQUAL(flood.lifecycle_bytes + quiet.lifecycle_bytes, 0, "still in the ring");
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

#endif
