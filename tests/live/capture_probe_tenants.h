/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of tests/live/capture_probe.c: whose is a connection.
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

#endif
