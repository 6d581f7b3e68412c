/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scenarios of tests/live/capture_probe.c that are more than one sender and one
 * taker: answers, strangers, late joins, loss, the ends of connections.
 */
#ifndef CAPTURE_PROBE_PLAYS_H
#define CAPTURE_PROBE_PLAYS_H

/* Lets one process wait for another without a clock: made before both are forked. */
static int gate[2], gate_back[2];

static void gate_new(void)
{
	must(!pipe2(gate, O_CLOEXEC) && !pipe2(gate_back, O_CLOEXEC), "pipe");
}

static void gate_pass(const int ends[2])
{
	must(write(ends[1], "x", 1) == 1, "gate");
}

static void gate_wait(const int ends[2])
{
	char byte;

	must(read(ends[0], &byte, 1) == 1, "gate");
}

static void gate_done(void)
{
	for (int i = 0; i < 2; i++) {
		close(gate[i]);
		close(gate_back[i]);
	}
}

static void take_exactly(int fd, struct taken *to, uint64_t count)
{
	while (count) {
		ssize_t n = read(fd, to->bytes + to->count, count);

		must(n > 0, "read");
		to->count += (uint64_t)n;
		count -= (uint64_t)n;
	}
}

/* ---- request and answer ---- */

static void serve_answer(int fd)
{
	take_exactly(fd, &taken[0], 300);
	write_stream(fd, 0, 500);
	take_until_end(fd, &taken[0]);
}

static void ask(int fd)
{
	write_stream(fd, 0, 300);
	take_exactly(fd, &taken[1], 500);
}

static void check_exchange(bool client_in_tree, bool server_in_tree)
{
	const struct seen *client = flow_of(WIRE_CLIENT), *server = flow_of(WIRE_SERVER);

	check_pair();
	check_stream(client, &taken[0], WIRE_CAUSE_NONE, 0);
	check_stream(server, &taken[1], WIRE_CAUSE_NONE, 0);
	if (!client || !server)
		return;
	EQUAL(!!(client->sent.flags & WIRE_IN_TREE), client_in_tree, "client in tree");
	EQUAL(!!(server->sent.flags & WIRE_IN_TREE), server_in_tree, "server in tree");
	expect(!(client->open.flags & WIRE_JOINED_LATE) && !(server->open.flags & WIRE_JOINED_LATE),
	       "joined late");
	EQUAL(client->sent.received_bytes, 0, "received by the client before its request");
	EQUAL(server->sent.received_bytes, 300, "received by the server before its answer");
	EQUAL(server->sent.read_bytes, 300, "read by the server before its answer");
	EQUAL(client->end.read_bytes, 500, "read by the client");
	expect(client->sent.tgid && client->sent.tgid == client->sent.tid &&
		       client->sent.process_start_ns && client->sent.cgroup_id,
	       "the client is not identified");
	expect(!strncmp(client->sent.comm, program_invocation_short_name, 15), "comm is %.16s",
	       client->sent.comm);
	expect(client->sent.tgid != server->sent.tgid, "one process for both");
}

static void play_client_in_tree(void)
{
	uint16_t port = server_start(NULL, false, serve_answer);

	client_start(NULL, port, true, ask);
	observe_children(2, 2);
	check_exchange(true, false);
}

static void play_server_in_tree(void)
{
	uint16_t port = server_start(NULL, true, serve_answer);

	client_start(NULL, port, false, ask);
	observe_children(2, 2);
	check_exchange(false, true);
}

static void play_strangers(void)
{
	struct counters before, after;
	uint16_t port;

	must(!capture_counters(capture, &before), "counters");
	port = server_start(NULL, false, serve_answer);
	client_start(NULL, port, false, ask);
	observe_children(2, 0);
	must(!capture_flush_flows(capture, sequencer), "flush");
	pull(now_ns());
	must(!capture_counters(capture, &after), "counters");
	EQUAL(seen->events, 0, "events");
	expect(!memcmp(&before, &after, sizeof(before)), "counters moved");
	EQUAL(taken[1].count, 500, "bytes that crossed");
}

/* The scope listens on the same port of another address. */
static void play_strangers_on_our_port(void)
{
	uint16_t port = server_start("127.0.0.1", true, serve_answer);

	wanted_port = port;
	must(server_start("127.0.0.2", false, serve_answer) == port, "port");
	wanted_port = 0;
	client_start("127.0.0.2", port, false, ask);
	while (waitpid(-1, NULL, 0) <= 0 || waitpid(-1, NULL, 0) <= 0)
		;
	memset(&taken[0].count, 0, sizeof(taken[0].count));
	memset(&taken[1].count, 0, sizeof(taken[1].count));
	client_start("127.0.0.1", port, false, ask);
	observe_children(2, 2);
	EQUAL(seen->flow_count, 2, "flows");
	check_exchange(false, true);
}

static void play_canary(void)
{
	uint16_t port = server_start(NULL, false, serve_answer);
	bool in_child;
	struct child child = child_new(&in_child);

	if (in_child) {
		ask(connect_to(NULL, port));
		_exit(0);
	}
	must(!capture_set_canary(capture, (uint32_t)child.pid, 0), "canary");
	child_go(child, false);
	observe_children(2, 2);
	must(!capture_set_canary(capture, 0, 0), "canary");
	check_exchange(true, false);
	for (size_t i = 0; i < seen->flow_count; i++)
		expect(seen->flows[i].open.flags & WIRE_CANARY, "flow %zu has no canary mark", i);
}

static void check_close_states(void)
{
	const struct seen *client = flow_of(WIRE_CLIENT), *server = flow_of(WIRE_SERVER);

	if (!client || !server)
		return;
	EQUAL(client->states[0].old_state, WIRE_TCP_ESTABLISHED, "client's old state");
	EQUAL(client->states[0].new_state, WIRE_TCP_FIN_WAIT1, "client's new state");
	EQUAL(client->states[0].shutdown, WIRE_SHUTDOWN_RECEIVE | WIRE_SHUTDOWN_SEND,
	      "client's shutdown");
	EQUAL(client->states[0].tgid, 0, "process of a state event");
	EQUAL(client->states[0].offset, 300, "client's offset at its close");
	EQUAL(server->states[0].old_state, WIRE_TCP_ESTABLISHED, "server's old state");
	EQUAL(server->states[0].new_state, WIRE_TCP_CLOSE_WAIT, "server's new state");
	EQUAL(server->end.received_bytes, 301, "received by the server, with the FIN's one");
	EQUAL(server->end.offset, 500, "server's offset at its end");
	EQUAL(client->resets + server->resets, 0, "resets");
}

static void play_close_states(void)
{
	play_client_in_tree();
	check_close_states();
}

/* ---- late ---- */

static void send_then_wait(int fd)
{
	write_stream(fd, 0, 100);
	gate_pass(gate_back);
	gate_wait(gate);
	write_stream(fd, 100, 200);
	take_exactly(fd, &taken[1], 500);
}

static void play_joined_late(void)
{
	const struct seen *client, *server;
	struct child child;
	bool in_child;
	uint16_t port;

	gate_new();
	port = server_start(NULL, false, serve_answer);
	child = child_new(&in_child);
	if (in_child) {
		send_then_wait(connect_to(NULL, port));
		_exit(0);
	}
	close(child.go);
	gate_wait(gate_back);
	must(!capture_add_process(capture, (uint32_t)child.pid), "tree");
	gate_pass(gate);
	observe_children(2, 2);
	gate_done();
	EQUAL(seen->flow_count, 2, "flows");
	client = &seen->flows[0];
	server = &seen->flows[1];
	expect(client->open.flags & WIRE_JOINED_LATE, "the client is not late");
	EQUAL(client->open.offset, 100, "where the client begins");
	EQUAL(client->data, 200, "client's bytes");
	EQUAL(client->end.offset, 300, "client's end");
	EQUAL(server->data, 500, "server's bytes");
	EQUAL(server->end.offset, 500, "server's end");
	EQUAL(client->open.send_base_seq, server->open.receive_base_seq, "client's base");
	EQUAL(client->open.receive_base_seq, server->open.send_base_seq, "server's base");
	EQUAL(client->hole[WIRE_CAUSE_MISSED], 0, "missed bytes of the client");
	if (client->bytes)
		expect(!memcmp(client->bytes + 100, taken[0].bytes + 100, 200),
		       "client's bytes differ");
}

/* ---- loss ---- */

static void play_ring_full(void)
{
	const struct seen *client;
	struct counters counters;
	uint16_t port;
	int status;

	capture_begin(
		(struct capture_options){.scope = CAPTURE_TREE, .data_ring_bytes = 256 * 1024});
	port = server_start(NULL, false, serve_take);
	client_start(NULL, port, true, send_mebibyte);
	/* nothing is drained until both are over */
	must(waitpid(-1, &status, 0) > 0 && waitpid(-1, &status, 0) > 0, "children");
	observe_children(0, 2);
	must(!capture_counters(capture, &counters), "counters");
	client = flow_of(WIRE_CLIENT);
	check_pair();
	if (client) {
		EQUAL(client->data + client->hole[WIRE_CAUSE_RING_FULL], MIB,
		      "captured and lost bytes");
		expect(client->data > 0 && client->hole[WIRE_CAUSE_RING_FULL] > 0,
		       "nothing was lost");
		EQUAL(client->end.offset, MIB, "offset of the end");
		EQUAL(client->hole[WIRE_CAUSE_RING_FULL],
		      counters.value[WIRE_COUNTER_LOST_BYTES + WIRE_CAUSE_RING_FULL],
		      "counted as lost");
		expect(client->end.lost_records > 0, "no lost records");
		expect(!memcmp(client->bytes, taken[0].bytes,
			       client->sent.offset + client->sent.length_bytes) ||
			       client->hole[WIRE_CAUSE_RING_FULL],
		       "bytes differ");
	}
	EQUAL(counters.value[WIRE_COUNTER_ACCEPTED_BYTES], MIB, "accepted bytes");
	EQUAL(counters.value[WIRE_COUNTER_LIFECYCLE_LOST], 0, "lost lifecycle records");
	expect(capture_ring_peak(capture) > 128 * 1024, "peak is %zu", capture_ring_peak(capture));
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

static void send_300_and_more(int fd)
{
	write_stream(fd, 0, 300);
	gate_wait(gate);
	for (int i = 1; i <= 10; i++)
		write_stream(fd, (uint64_t)i * 300, 300);
}

static void play_muted_by_us(void)
{
	struct counters before, after;
	const struct seen *client;
	uint64_t deadline = now_ns() + PATIENCE_MS * 1000000ULL;
	uint16_t port;

	gate_new();
	must(!capture_counters(capture, &before), "counters");
	port = server_start(NULL, false, serve_take);
	client_start(NULL, port, true, send_300_and_more);
	while (now_ns() < deadline && (!seen->flow_count || !seen->flows[0].records)) {
		poll(NULL, 0, 1);
		pull(now_ns());
	}
	capture_mute(capture, seen->flows[0].last.flow);
	gate_pass(gate);
	observe_children(2, 2);
	gate_done();
	must(!capture_counters(capture, &after), "counters");
	client = flow_of(WIRE_CLIENT);
	if (!client)
		return;
	EQUAL(client->records, 1, "records");
	EQUAL(client->hole[WIRE_CAUSE_MISSED], 0, "holes");
	EQUAL(client->end.offset, 3300, "offset of the end");
	EQUAL(after.value[WIRE_COUNTER_ACCEPTED_BYTES] - before.value[WIRE_COUNTER_ACCEPTED_BYTES],
	      3300, "accepted");
}

/* ---- two threads whose sends wait for one connection ---- */

/* Its queue is full, so that connecting takes the second SYN. */
static void serve_two_waiting(int ready)
{
	uint16_t port;
	int listener = listen_on(NULL, &port), first, fd;

	must(!listen(listener, 0), "listen");
	first = connect_to(NULL, port);
	must(write(ready, &port, sizeof(port)) == sizeof(port), "write");
	gate_wait(gate);
	close(accept(listener, NULL, NULL));
	close(first);
	fd = accept(listener, NULL, NULL);
	must(fd >= 0, "accept");
	take_until_end(fd, &taken[0]);
	_exit(0);
}

struct half {
	int fd;
	uint64_t from;
};

static void *write_half(void *context)
{
	struct half *half = context;
	uint8_t *bytes = stream_make(half->from, 1000);

	for (uint64_t i = 0; i < 22; i++) /* whichever comes first: it may be HTTP */
		bytes[i] = stream_byte(i);
	write_all(half->fd, bytes, 1000);
	return NULL;
}

static void send_two_waiting(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	struct half halves[] = {{fd, 0}, {fd, 1000}};
	pthread_t threads[2];

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno == EINPROGRESS,
	     "connect");
	must(!fcntl(fd, F_SETFL, 0), "O_NONBLOCK");
	for (int i = 0; i < 2; i++)
		must(!pthread_create(&threads[i], NULL, write_half, &halves[i]), "thread");
	gate_pass(gate);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void play_two_waiting(void)
{
	struct child server, client;
	bool in_child;
	uint16_t port;
	int ends[2];

	gate_new();
	must(!pipe2(ends, O_CLOEXEC), "pipe");
	server = child_new(&in_child);
	if (in_child)
		serve_two_waiting(ends[1]);
	child_go(server, false);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	client = child_new(&in_child);
	if (in_child)
		send_two_waiting(port);
	child_go(client, true);
	observe_children(2, 2);
	gate_done();
	close(ends[0]);
	close(ends[1]);
	check_pair();
	EQUAL(taken[0].count, 2000, "bytes that crossed");
	check_stream(flow_of(WIRE_CLIENT), &taken[0], WIRE_CAUSE_NONE, 0);
}

/* ---- ends ---- */

/* The client gives up; the answer is accepted by the kernel and never arrives. */
static void serve_too_late(int fd)
{
	take_until_end(fd, &taken[0]);
	write_stream(fd, 0, 200);
}

static void play_answer_to_nobody(void)
{
	const struct seen *server;
	uint16_t port = server_start(NULL, false, serve_too_late);

	client_start(NULL, port, true, send_write);
	observe_children(2, 2);
	check_pair();
	server = flow_of(WIRE_SERVER);
	if (!server)
		return;
	EQUAL(server->data, 200, "captured of the answer");
	EQUAL(server->end.offset, 200, "offset of the end");
	EQUAL(server->resets, 1, "resets");
	expect(server->sent.local_port == port && server->sent.remote_port, "ports are gone");
	for (size_t i = 0; i < 200 && server->bytes; i++)
		expect(server->bytes[i] == stream_byte(i), "byte %zu differs", i);
}

static void abort_at(int fd)
{
	struct linger at_once = {.l_onoff = 1};

	must(!setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)), "SO_LINGER");
	close(fd);
}

static void abort_unread(int fd)
{
	write_stream(fd, 0, 300);
	gate_wait(gate);
	abort_at(fd);
}

static void abort_when_read(int fd)
{
	write_stream(fd, 0, 300);
	take_exactly(fd, &taken[1], 500);
	abort_at(fd);
}

static void serve_unread_answer(int fd)
{
	take_exactly(fd, &taken[0], 300);
	write_stream(fd, 0, 500);
	gate_pass(gate);
	take_until_end(fd, &taken[0]);
}

/* With nothing unread, an aborting close disconnects the socket, which makes its numbers worthless. */
static void play_abort(void (*act)(int fd), uint64_t read_bytes)
{
	const struct seen *client, *server;
	uint16_t port;

	gate_new();
	port = server_start(NULL, false, serve_unread_answer);
	client_start(NULL, port, true, act);
	observe_children(2, 2);
	gate_done();
	check_pair();
	client = flow_of(WIRE_CLIENT);
	server = flow_of(WIRE_SERVER);
	if (!client || !server)
		return;
	EQUAL(client->end.offset, 300, "client's end");
	EQUAL(client->hole[WIRE_CAUSE_MISSED], 0, "client's holes");
	EQUAL(client->end.received_bytes, 500, "received by the client");
	EQUAL(client->end.read_bytes, read_bytes, "read by the client");
	EQUAL(client->states[0].new_state, WIRE_TCP_CLOSE, "client's new state");
	EQUAL(server->resets, 1, "resets of the server");
}

static void play_abort_unread(void)
{
	play_abort(abort_unread, 0);
}

static void play_abort_when_read(void)
{
	play_abort(abort_when_read, 500);
}

static void send_killed(int fd)
{
	uint8_t *bytes = stream_make(0, 32 * MIB);

	gate_pass(gate_back);
	write_all(fd, bytes, 32 * MIB);
}

static void serve_slowly(int fd)
{
	gate_wait(gate);
	take_until_end(fd, &taken[0]);
}

static void play_killed_in_send(void)
{
	struct child child;
	bool in_child;
	uint16_t port;

	gate_new();
	port = server_start(NULL, false, serve_slowly);
	child = child_new(&in_child);
	if (in_child) {
		send_killed(connect_to(NULL, port));
		_exit(0);
	}
	child_go(child, true);
	gate_wait(gate_back);
	poll(NULL, 0, 50); /* it fills the socket and sleeps: any moment will do */
	must(!kill(child.pid, SIGKILL), "kill");
	gate_pass(gate);
	observe_children(2, 2);
	gate_done();
	expect(taken[0].count > 0 && taken[0].count < 32 * MIB, "not cut: %lu",
	       (unsigned long)taken[0].count);
	check_pair();
	check_stream(flow_of(WIRE_CLIENT), &taken[0], WIRE_CAUSE_NONE, 0);
}

static void send_then_stay(int fd)
{
	write_stream(fd, 0, 300);
	gate_pass(gate_back);
	gate_wait(gate);
}

static void play_still_open(void)
{
	size_t still_open = 0;
	uint16_t port;

	gate_new();
	port = server_start(NULL, false, serve_take);
	client_start(NULL, port, true, send_then_stay);
	gate_wait(gate_back);
	must(!capture_flush_flows(capture, sequencer), "flush");
	sequencer_drain(sequencer);
	pull(now_ns());
	for (size_t i = 0; i < seen->flow_count; i++) {
		const struct seen *flow = &seen->flows[i];

		still_open += flow->ended && (flow->end.flags & WIRE_STILL_OPEN);
		EQUAL(flow->end.offset, flow->open.flags & WIRE_CLIENT ? 300 : 0, "offset so far");
	}
	EQUAL(still_open, 2, "flows that live");
	gate_pass(gate);
	observe_children(2, 0);
	gate_done();
}

static void reconnect(const char *new_name)
{
	uint16_t first = server_start(NULL, false, serve_take),
		 second = server_start(NULL, false, serve_take);
	bool in_child;
	struct child child = child_new(&in_child);

	if (in_child) {
		struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(second)};
		int fd = connect_to(NULL, first);

		write_stream(fd, 0, 100);
		must(!connect(fd, &nowhere, sizeof(nowhere)), "disconnect");
		if (new_name)
			must(!prctl(PR_SET_NAME, new_name), "PR_SET_NAME");
		must(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr) == 1, "address");
		must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
		write_stream(fd, 0, 200);
		_exit(0);
	}
	child_go(child, true);
	observe_children(3, 4);
	EQUAL(seen->flow_count, 4, "flows");
	for (size_t i = 0; i < seen->flow_count; i++) {
		const struct seen *flow = &seen->flows[i];

		if (flow->open.flags & WIRE_CLIENT)
			EQUAL(flow->end.offset, flow->open.remote_port == first ? 100 : 200,
			      "client's end");
		EQUAL(flow->hole[WIRE_CAUSE_MISSED], 0, "missed bytes");
		expect(!flow->disordered && flow->ended, "disordered or without an end");
	}
}

static void play_reconnect(void)
{
	reconnect(NULL);
}

/* In between its process left the scope: what the socket was has ended all the same, once. */
static void play_reconnect_out_of_scope(void)
{
	struct capture_options options = {.scope = CAPTURE_COMM};

	memcpy(options.comm, program_invocation_short_name, strnlen(program_invocation_short_name, 15));
	capture_begin(options);
	reconnect("elsewhere");
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

static void play_listen_after_disconnect(void)
{
	const struct seen *client;
	uint16_t port = server_start(NULL, false, serve_take);
	bool in_child;
	struct child child = child_new(&in_child);

	if (in_child) {
		struct sockaddr nowhere = {.sa_family = AF_UNSPEC};
		int fd = connect_to(NULL, port);

		write_stream(fd, 0, 100);
		must(!connect(fd, &nowhere, sizeof(nowhere)), "disconnect");
		/* Some kernels refuse that; the connection has ended once all the same. */
		must(!listen(fd, 1) || errno == EINVAL, "listen");
		_exit(0);
	}
	child_go(child, true);
	observe_children(2, 2);
	check_pair();
	client = flow_of(WIRE_CLIENT);
	if (client)
		EQUAL(client->end.offset, 100, "client's end");
}

#endif
