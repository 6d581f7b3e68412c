/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * More scenarios of tests/live/capture_probe.c: addresses, sequence numbers,
 * processes, scopes, real clients; and the table of all that are played.
 */
#ifndef CAPTURE_PROBE_MORE_H
#define CAPTURE_PROBE_MORE_H

#include "capture_probe_plays.h"

#include <dirent.h>
#include <linux/if_tun.h>

/* ---- addresses ---- */

static void interface_address(const char *name, const char *address, int fd)
{
	struct ifreq interface = {};
	struct sockaddr_in *to = (struct sockaddr_in *)&interface.ifr_addr;

	snprintf(interface.ifr_name, sizeof(interface.ifr_name), "%s", name);
	to->sin_family = AF_INET;
	must(inet_pton(AF_INET, address, &to->sin_addr) == 1, "address");
	must(!ioctl(fd, SIOCSIFADDR, &interface), "SIOCSIFADDR");
	must(!ioctl(fd, SIOCGIFFLAGS, &interface), "SIOCGIFFLAGS");
	interface.ifr_flags |= IFF_UP;
	must(!ioctl(fd, SIOCSIFFLAGS, &interface), "SIOCSIFFLAGS");
}

/* A connection to an own address is loopback; one that leaves through a device is only named. */
static void play_addresses(void)
{
	struct ifreq tunnel = {.ifr_flags = IFF_TAP | IFF_NO_PI};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0),
	    device = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	size_t connects = 0;
	struct child child;
	bool in_child;
	uint16_t port;

	must(fd >= 0, "socket");
	if (device < 0) {
		expect(false, "no /dev/net/tun");
		return;
	}
	must(!ioctl(device, TUNSETIFF, &tunnel), "TUNSETIFF");
	interface_address(tunnel.ifr_name, "198.18.0.1", fd);
	port = server_start(NULL, false, serve_answer);
	client_start("198.18.0.1", port, true, ask);
	observe_children(2, 2);
	check_exchange(true, false);
	child = child_new(&in_child);
	if (in_child) {
		struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(443)};
		int out = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

		must(inet_pton(AF_INET, "198.18.0.2", &to.sin_addr) == 1, "address");
		must(connect(out, (struct sockaddr *)&to, sizeof(to)) < 0 && errno == EINPROGRESS,
		     "connect");
		_exit(0);
	}
	child_go(child, true);
	observe_children(1, 2);
	for (size_t i = 0; i < seen->process_count; i++) {
		const struct wire_event *event = &seen->process[i];

		if (event->kind != WIRE_CONNECT)
			continue;
		connects++;
		EQUAL(event->remote_port, 443, "port");
		EQUAL(event->tgid, child.pid, "who connects");
		EQUAL(event->remote_address[15], 2, "where to");
	}
	EQUAL(connects, 1, "connections off loopback");
	EQUAL(seen->flow_count, 2, "flows");
	close(device);
	close(fd);
}

/* ---- sequence numbers ---- */

/* The socket's first sequence number is chosen so that it wraps after 1000 bytes. */
static void send_over_the_wrap(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	int on = 1, off = TCP_REPAIR_OFF_NO_WP, queue = TCP_SEND_QUEUE,
	    fd = socket(AF_INET, SOCK_STREAM, 0);
	uint32_t first = UINT32_MAX - 1000;

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	must(!setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &on, sizeof(on)), "TCP_REPAIR");
	must(!setsockopt(fd, IPPROTO_TCP, TCP_REPAIR_QUEUE, &queue, sizeof(queue)),
	     "TCP_REPAIR_QUEUE");
	must(!setsockopt(fd, IPPROTO_TCP, TCP_QUEUE_SEQ, &first, sizeof(first)), "TCP_QUEUE_SEQ");
	must(!setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &off, sizeof(off)), "TCP_REPAIR");
	must(!connect(fd, (struct sockaddr *)&to, sizeof(to)), "connect");
	for (uint64_t i = 0; i < 200; i++)
		write_stream(fd, i * 500, 500);
	_exit(0);
}

static void play_wrap(void)
{
	uint16_t port = server_start(NULL, false, serve_take);
	const struct seen *client;
	struct child child;
	bool in_child;

	child = child_new(&in_child);
	if (in_child)
		send_over_the_wrap(port);
	child_go(child, true);
	observe_children(2, 2);
	check_pair();
	client = flow_of(WIRE_CLIENT);
	check_stream(client, &taken[0], WIRE_CAUSE_NONE, 0);
	if (!client)
		return;
	EQUAL(client->open.send_base_seq, UINT32_MAX - 999, "first sequence number");
	EQUAL(client->sent.seq, 99500 - 1000, "last sequence number");
	EQUAL(flow_of(WIRE_SERVER)->end.received_bytes, 100001,
	      "received by the server, with the FIN's one");
}

#define BEYOND_32_BITS (4608 * MIB)

static void send_beyond_32_bits(int fd)
{
	uint8_t *bytes = calloc(1, MIB);

	must(bytes != NULL, "memory"); /* zeros are no HTTP: muted, so that it takes no time */
	for (uint64_t at = 0; at < BEYOND_32_BITS; at += MIB)
		write_all(fd, bytes, MIB);
}

static void serve_discard(int fd)
{
	ssize_t n;

	while ((n = recv(fd, NULL, 16 * MIB, MSG_TRUNC)) > 0)
		taken[0].count += (uint64_t)n;
}

static void play_beyond_32_bits(void)
{
	const struct seen *client;
	uint16_t port;

	if (slow) {
		snprintf(cannot_reason, CANNOT_MAX, "takes minutes on an emulated machine");
		return;
	}
	port = server_start(NULL, false, serve_discard);

	client_start(NULL, port, true, send_beyond_32_bits);
	observe_children(2, 2);
	client = flow_of(WIRE_CLIENT);
	if (!client)
		return;
	EQUAL(taken[0].count, BEYOND_32_BITS, "bytes that crossed");
	EQUAL(client->end.offset, BEYOND_32_BITS, "offset of the end");
	EQUAL(flow_of(WIRE_SERVER)->end.read_bytes, BEYOND_32_BITS + 1,
	      "read by the server, with the FIN's one");
}

/* ---- fast open ---- */

static void serve_fast_open(int fd)
{
	take_until_end(fd, &taken[0]);
}

static void fast_open_client(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	uint8_t *bytes = stream_make(0, 300);

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int i = 0; i < 2; i++) { /* the first one only fetches a cookie */
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

		must(sendto(fd, bytes, 300, MSG_FASTOPEN, (struct sockaddr *)&to, sizeof(to)) ==
			     300,
		     "sendto");
		write_stream(fd, 300, 100);
		close(fd);
	}
	_exit(0);
}

static uint16_t fast_open_server(void)
{
	struct child child;
	bool in_child;
	uint16_t port;
	int ends[2];

	must(!pipe2(ends, O_CLOEXEC), "pipe");
	child = child_new(&in_child);
	if (in_child) {
		int queue = 16, listener = listen_on(NULL, &port);

		must(!setsockopt(listener, IPPROTO_TCP, TCP_FASTOPEN, &queue, sizeof(queue)),
		     "TCP_FASTOPEN");
		must(write(ends[1], &port, sizeof(port)) == sizeof(port), "write");
		for (int i = 0; i < 2; i++) {
			int fd = accept(listener, NULL, NULL);

			serve_fast_open(fd);
			close(fd);
		}
		_exit(0);
	}
	child_go(child, false);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	close(ends[0]);
	close(ends[1]);
	return port;
}

static void play_fast_open(void)
{
	int setting = open("/proc/sys/net/ipv4/tcp_fastopen", O_WRONLY | O_CLOEXEC);
	uint64_t in_syn = 0, missed = 0, clients = 0;
	struct child child;
	bool in_child;
	uint16_t port;

	must(setting >= 0 && write(setting, "3", 1) == 1, "tcp_fastopen");
	close(setting);
	port = fast_open_server();
	child = child_new(&in_child);
	if (in_child)
		fast_open_client(port);
	child_go(child, true);
	observe_children(2, 4);
	for (size_t i = 0; i < seen->flow_count; i++) {
		const struct seen *flow = &seen->flows[i];

		if (!(flow->open.flags & WIRE_CLIENT))
			continue;
		clients++;
		in_syn += flow->hole[WIRE_CAUSE_FASTOPEN];
		missed += flow->hole[WIRE_CAUSE_MISSED];
		EQUAL(flow->data + flow->hole[WIRE_CAUSE_FASTOPEN], 400, "captured and unseen");
		EQUAL(flow->end.offset, 400, "offset of the end");
		expect(!flow->disordered, "out of order");
	}
	EQUAL(clients, 2, "clients");
	EQUAL(in_syn, capture_door(capture) == CAPTURE_DOOR_KPROBE ? 0 : 300, "bytes in a SYN");
	EQUAL(missed, 0, "missed bytes");
}

/* ---- processes ---- */

static void play_processes(void)
{
	size_t forks = 0, execs = 0, exits = 0;
	uint32_t tree[4];
	struct child child;
	bool in_child;

	child = child_new(&in_child);
	if (in_child) {
		char *const arguments[] = {"true", NULL};
		pid_t grandchild = fork();

		if (!grandchild) {
			execv("/bin/true", arguments);
			_exit(1);
		}
		waitpid(grandchild, NULL, 0);
		_exit(0);
	}
	must(!capture_add_process(capture, (uint32_t)child.pid), "tree");
	EQUAL(capture_tree(capture, tree, 4), 1, "processes in the tree");
	EQUAL(tree[0], child.pid, "process in the tree");
	close(child.go);
	observe_children(1, 0);
	for (size_t i = 0; i < seen->process_count; i++) {
		const struct wire_event *event = &seen->process[i];

		forks += event->kind == WIRE_FORK && event->parent_tgid == (uint32_t)child.pid;
		execs += event->kind == WIRE_EXEC && !strcmp(event->comm, "true");
		exits += event->kind == WIRE_EXIT;
	}
	EQUAL(forks, 1, "forks");
	EQUAL(execs, 1, "execs");
	EQUAL(exits, 2, "exits");
	EQUAL(capture_tree(capture, tree, 4), 0, "processes left in the tree");
}

/* ---- other scopes ---- */

static void serve_when_told(int fd)
{
	serve_answer(fd);
}

/* The server is older than the probe: its listener must be known all the same. */
static void play_scope_pid(void)
{
	struct child server;
	bool in_child;
	uint16_t port;
	int ends[2];

	must(!pipe2(ends, O_CLOEXEC), "pipe");
	server = child_new(&in_child);
	if (in_child) {
		int listener = listen_on(NULL, &port);

		must(write(ends[1], &port, sizeof(port)) == sizeof(port), "write");
		serve_when_told(accept(listener, NULL, NULL));
		_exit(0);
	}
	close(server.go);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	capture_begin((struct capture_options){.scope = CAPTURE_PID, .pid = (uint32_t)server.pid});
	client_start(NULL, port, false, ask);
	observe_children(2, 2);
	check_exchange(false, true);
	close(ends[0]);
	close(ends[1]);
}

static void play_scope_port(void)
{
	uint16_t port = server_start(NULL, false, serve_answer);

	capture_begin((struct capture_options){.scope = CAPTURE_PORT, .port = port});
	client_start(NULL, port, false, ask);
	observe_children(2, 2);
	check_exchange(true, true);
}

static void play_scope_of(struct capture_options options)
{
	uint16_t port;

	capture_begin(options);
	port = server_start(NULL, false, serve_answer);
	client_start(NULL, port, false, ask);
	observe_children(2, 2);
	check_exchange(true, true);
}

static void play_scope_all(void)
{
	play_scope_of((struct capture_options){.scope = CAPTURE_ALL});
}

static void play_scope_uid(void)
{
	play_scope_of((struct capture_options){.scope = CAPTURE_UID, .uid = 0});
}

static void play_scope_comm(void)
{
	struct capture_options options = {.scope = CAPTURE_COMM};

	memcpy(options.comm, program_invocation_short_name,
	       strnlen(program_invocation_short_name, 15));
	play_scope_of(options);
}

static void play_scope_comm_other(void)
{
	uint16_t port;

	capture_begin((struct capture_options){.scope = CAPTURE_COMM,
					       .comm = {program_invocation_short_name[0]}});
	port = server_start(NULL, false, serve_answer);
	client_start(NULL, port, false, ask);
	observe_children(2, 0);
	EQUAL(seen->events, 0, "events");
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

/* ---- real clients ---- */

/* Takes one request by its Content-Length, answers and closes. */
static void serve_http(int fd)
{
	static const char answer[] =
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
	uint64_t due = UINT64_MAX;
	ssize_t n;

	while (taken[0].count < due && (n = read(fd, taken[0].bytes + taken[0].count,
						 STREAM_MAX - 1 - taken[0].count)) > 0) {
		char *head = (char *)taken[0].bytes, *end, *length;

		taken[0].count += (uint64_t)n;
		head[taken[0].count] = '\0';
		end = strstr(head, "\r\n\r\n");
		length = strcasestr(head, "content-length:");
		if (end && length && length < end)
			due = (uint64_t)(end + 4 - head) + strtoull(length + 15, NULL, 10);
	}
	must(taken[0].count == due, "request");
	write_all(fd, (const uint8_t *)answer, sizeof(answer) - 1);
}

static void play_program(const char *script)
{
	const struct seen *client, *server;
	uint16_t port = server_start(NULL, false, serve_http);
	char url[64];
	struct child child;
	bool in_child;

	child = child_new(&in_child);
	if (in_child) {
		snprintf(url, sizeof(url), "http://127.0.0.1:%u/pay", port);
		execl("/bin/sh", "sh", "-c", script, "sh", url, NULL);
		_exit(9);
	}
	child_go(child, true);
	observe_children(2, 2);
	check_pair();
	client = flow_of(WIRE_CLIENT);
	server = flow_of(WIRE_SERVER);
	check_stream(client, &taken[0], WIRE_CAUSE_NONE, 0);
	if (server)
		EQUAL(server->data, 59, "captured of the answer");
	if (client)
		expect(strncmp(client->sent.comm, "sh", 3), "comm is %.16s", client->sent.comm);
}

static void play_curl(void)
{
	play_program("exec curl -s -o /dev/null -d amount=5 \"$1\"");
}

static void play_curl_large(void)
{
	play_program(
		"head -c 3000000 /dev/zero | curl -s -o /dev/null -H Expect: --data-binary @- \"$1\"");
}

static void play_python(void)
{
	play_program("exec python3 -c 'import sys, urllib.request; "
		     "urllib.request.urlopen(sys.argv[1], data=b\"amount=5\").read()' \"$1\"");
}

static void play_node(void)
{
	play_program(
		"command -v node >/dev/null || exec curl -s -o /dev/null -d amount=5 \"$1\"; "
		"exec node -e 'const r = require(\"http\").request(process.argv[1], {method: \"POST\", "
		"headers: {\"content-length\": 8}}, x => x.resume()); r.end(\"amount=5\")' \"$1\"");
}

/* ---- many ---- */

#define CHURN 1500

static void *churn(void *context)
{
	uint16_t port = *(uint16_t *)context;
	uint8_t answer[500];

	for (int i = 0; i < CHURN; i++) {
		int fd = connect_to(NULL, port);
		size_t got = 0;
		ssize_t n;

		write_stream(fd, 0, 300);
		while (got < sizeof(answer) &&
		       (n = read(fd, answer + got, sizeof(answer) - got)) > 0)
			got += (size_t)n;
		must(got == sizeof(answer), "answer");
		close(fd);
	}
	return NULL;
}

static void *churn_serve(void *context)
{
	int fd = (int)(intptr_t)context;
	uint8_t request[300];
	size_t got = 0;
	ssize_t n;

	while (got < sizeof(request) && (n = read(fd, request + got, sizeof(request) - got)) > 0)
		got += (size_t)n;
	write_stream(fd, 0, 500);
	close(fd);
	return NULL;
}

static uint16_t churn_server(void)
{
	struct child child;
	bool in_child;
	uint16_t port;
	int ends[2];

	must(!pipe2(ends, O_CLOEXEC), "pipe");
	child = child_new(&in_child);
	if (in_child) {
		int listener = listen_on(NULL, &port);

		must(write(ends[1], &port, sizeof(port)) == sizeof(port), "write");
		for (int i = 0; i < 2 * CHURN; i++) {
			pthread_t thread;
			int fd = accept(listener, NULL, NULL);

			must(fd >= 0 && !pthread_create(&thread, NULL, churn_serve,
							(void *)(intptr_t)fd),
			     "accept");
			pthread_detach(thread);
		}
		pthread_exit(NULL);
	}
	child_go(child, false);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	close(ends[0]);
	close(ends[1]);
	return port;
}

static void play_churn(void)
{
	struct counters before, after;
	struct child child;
	bool in_child;
	uint16_t port = churn_server();

	must(!capture_counters(capture, &before), "counters");
	child = child_new(&in_child);
	if (in_child) {
		pthread_t threads[2];

		for (int i = 0; i < 2; i++)
			must(!pthread_create(&threads[i], NULL, churn, &port), "thread");
		for (int i = 0; i < 2; i++)
			pthread_join(threads[i], NULL);
		_exit(0);
	}
	child_go(child, true);
	observe_children(2, 4 * CHURN);
	must(!capture_counters(capture, &after), "counters");
	EQUAL(seen->flow_count, 4 * CHURN, "flows");
	for (size_t i = 0; i < seen->flow_count; i++) {
		const struct seen *flow = &seen->flows[i];

		if (!expect(flow->ended && !flow->disordered,
			    "flow %zu is disordered or without end", i))
			break;
		if (!EQUAL(flow->data, flow->open.flags & WIRE_CLIENT ? 300 : 500, "bytes"))
			break;
	}
	EQUAL(after.value[WIRE_COUNTER_ACCEPTED_BYTES] - before.value[WIRE_COUNTER_ACCEPTED_BYTES],
	      2 * CHURN * 800, "accepted");
	EQUAL(after.value[WIRE_COUNTER_STALE_CALLS] - before.value[WIRE_COUNTER_STALE_CALLS], 0,
	      "stale calls");
	EQUAL(after.recursion_misses, 0, "recursion misses");
}

/* ---- many sends at once ---- */

#define SENDERS 12
#define SENDS 1800
#define BLOCKED 40
#define BLOCKED_BYTES 200000UL

#define UNREAD_SENDS 1000

/*
 * A machine with other work may keep the reader from a ring that twelve senders
 * fill: they are never more than UNREAD_SENDS ahead of it. Who waits in vain for
 * long goes on: the loss will show.
 */
static void wait_for_reader(void)
{
	struct timespec until;

	must(!clock_gettime(CLOCK_REALTIME, &until), "clock");
	until.tv_sec += 10;
	while (sem_timedwait(unread, &until) && errno == EINTR)
		;
}

/* Mixed sizes, most of them small. */
static size_t size_of_send(uint32_t i)
{
	return i % 100 == 99 ? 70000 : 1 + (i * 2654435761U >> 16) % (slow ? 600 : 4000);
}

static void *send_many(void *context)
{
	uint8_t *bytes = stream_make(0, STREAM_MAX / 8);
	uint64_t at = 0;
	int fd = connect_to(NULL, *(uint16_t *)context);

	for (uint32_t i = 0; i < SENDS; i++) {
		wait_for_reader();
		write_all(fd, bytes + at, size_of_send(i));
		at += size_of_send(i);
	}
	close(fd);
	free(bytes);
	return NULL;
}

static void *send_blocked(void *context)
{
	int small = 4096, fd = connect_to(NULL, *(uint16_t *)context);

	must(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), "SO_SNDBUF");
	write_stream(fd, 0, BLOCKED_BYTES);
	close(fd);
	return NULL;
}

/* Do so many threads of this process sleep? */
static bool are_asleep(int threads)
{
	DIR *tasks = opendir("/proc/self/task");
	const struct dirent *task;
	int asleep = 0;

	must(tasks != NULL, "/proc/self/task");
	while ((task = readdir(tasks))) {
		char path[300], state = '?';
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/stat", task->d_name);
		file = fopen(path, "r");
		if (file && fscanf(file, "%*d (%*[^)]) %c", &state) == 1)
			asleep += state == 'S';
		if (file)
			fclose(file);
	}
	closedir(tasks);
	return asleep == threads;
}

static void *take_stream(void *context)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	uint8_t *bytes = malloc(MIB);
	int fd = (int)(intptr_t)context;
	uint64_t at = 0;
	ssize_t n;

	while ((n = read(fd, bytes, MIB)) > 0)
		for (ssize_t i = 0; i < n; i++)
			must(bytes[i] == stream_byte(at++), "the stream");
	close(fd);
	free(bytes);
	pthread_mutex_lock(&mutex);
	taken[0].count += at;
	pthread_mutex_unlock(&mutex);
	return NULL;
}

/* Reads only once the gate is passed. */
static void take_streams(int ready, int streams)
{
	pthread_t threads[BLOCKED];
	int fds[BLOCKED];
	uint16_t port;
	int listener = listen_on(NULL, &port);

	must(write(ready, &port, sizeof(port)) == sizeof(port), "write");
	for (int i = 0; i < streams; i++)
		must((fds[i] = accept(listener, NULL, NULL)) >= 0, "accept");
	gate_wait(gate);
	for (int i = 0; i < streams; i++)
		must(!pthread_create(&threads[i], NULL, take_stream, (void *)(intptr_t)fds[i]), "thread");
	for (int i = 0; i < streams; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void send_streams(uint16_t port, int streams, void *(*act)(void *))
{
	pthread_t threads[BLOCKED];

	for (int i = 0; i < streams; i++)
		must(!pthread_create(&threads[i], NULL, act, &port), "thread");
	while (act == send_blocked && !are_asleep(streams))
		poll(NULL, 0, 1);
	gate_pass(gate);
	for (int i = 0; i < streams; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static void check_streams(uint64_t streams, uint64_t each)
{
	uint64_t whole = 0;

	EQUAL(taken[0].count, streams * each, "bytes that crossed");
	for (size_t i = 0; i < seen->flow_count; i++) {
		const struct seen *flow = &seen->flows[i];

		if (!(flow->open.flags & WIRE_CLIENT))
			continue;
		if (!expect(flow->data == each, "%lu bytes of a stream, %lu lost to a full ring, %lu missed",
			    (unsigned long)flow->data, (unsigned long)flow->hole[WIRE_CAUSE_RING_FULL],
			    (unsigned long)flow->hole[WIRE_CAUSE_MISSED]) ||
		    !flow->bytes)
			return;
		for (uint64_t at = 0; at < each; at++)
			if (!expect(flow->bytes[at] == stream_byte(at), "byte %lu of flow %zu differs",
				    (unsigned long)at, i))
				return;
		whole++;
	}
	EQUAL(whole, streams, "whole streams");
}

static void play_streams(int streams, uint64_t each, void *(*act)(void *))
{
	struct counters before, after;
	struct child server, client;
	bool in_child;
	uint16_t port;
	int ends[2];

	must(!capture_counters(capture, &before), "counters");
	gate_new();
	must(!pipe2(ends, O_CLOEXEC), "pipe");
	server = child_new(&in_child);
	if (in_child)
		take_streams(ends[1], streams);
	child_go(server, false);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	client = child_new(&in_child);
	if (in_child)
		send_streams(port, streams, act);
	child_go(client, true);
	observe_children(2, 2 * (size_t)streams);
	gate_done();
	close(ends[0]);
	close(ends[1]);
	check_streams((uint64_t)streams, each);
	must(!capture_counters(capture, &after), "counters");
	EQUAL(after.value[WIRE_COUNTER_ACCEPTED_BYTES] - before.value[WIRE_COUNTER_ACCEPTED_BYTES],
	      (uint64_t)streams * each, "accepted");
	EQUAL(after.value[WIRE_COUNTER_STALE_CALLS] - before.value[WIRE_COUNTER_STALE_CALLS], 0,
	      "stale calls");
	EQUAL(after.recursion_misses - before.recursion_misses, 0, "recursion misses");
}

static void play_many_sends(void)
{
	uint64_t each = 0;

	for (uint32_t i = 0; i < SENDS; i++)
		each += size_of_send(i);
	must(!sem_destroy(unread) && !sem_init(unread, 1, UNREAD_SENDS), "semaphore");
	play_streams(SENDERS, each, send_many);
}

static void play_blocked(void)
{
	play_streams(BLOCKED, BLOCKED_BYTES, send_blocked);
}

#include "../../bpf/flow_table.h"
#include "capture_probe_tenants.h"

/* One more than fit: what that one accepts is not known, and the run says so. */
static void play_many_listeners(void)
{
	struct counters before, after;
	struct child child;
	bool in_child;

	must(!capture_counters(capture, &before), "counters");
	child = child_new(&in_child);
	if (in_child) {
		struct rlimit many = {LISTENER_ENTRIES + 100, LISTENER_ENTRIES + 100};
		uint16_t port;

		must(!setrlimit(RLIMIT_NOFILE, &many), "RLIMIT_NOFILE");
		for (int i = 0; i <= LISTENER_ENTRIES; i++)
			listen_on(NULL, &port);
		_exit(0);
	}
	child_go(child, true);
	observe_children(1, 0);
	must(!capture_counters(capture, &after), "counters");
	EQUAL(after.value[WIRE_COUNTER_NO_FLOW] - before.value[WIRE_COUNTER_NO_FLOW], 1, "listeners without room");
}

static const struct {
	const char *name;
	void (*run)(void);
	bool sends; /* a kind of send: tests/vm/table has a row of it */
} plays[] = {
	{"12 threads, 1800 sends each", play_many_sends, true},
	{"40 senders blocked at once", play_blocked, true},
	{"killed in a send", play_killed_in_send, true},
	{"two threads that wait for one connection", play_two_waiting, true},
	{"over the wrap of the sequence numbers", play_wrap, true},
	{"more than 4 GiB", play_beyond_32_bits, true},
	{"an own address, and what leaves", play_addresses, true},
	{"data in a SYN", play_fast_open, true},
	{"every way to send has exact holes where the ring is one page", play_one_page, false},
	{"captures the answer of a server outside the tree", play_client_in_tree, false},
	{"captures the request of a client outside the tree", play_server_in_tree, false},
	{"leaves nothing of strangers", play_strangers, false},
	{"leaves nothing of strangers on a port of ours", play_strangers_on_our_port, false},
	{"marks the canary", play_canary, false},
	{"tells who closed and what was read", play_close_states, false},
	{"joins late with exact offsets", play_joined_late, false},
	{"makes a hole of what a full ring refused", play_ring_full, false},
	{"mutes what the collector gave up", play_muted_by_us, false},
	{"captures an answer to a client that is gone", play_answer_to_nobody, false},
	{"keeps the offsets of a connection aborted with data unread", play_abort_unread, false},
	{"keeps the offsets of a connection aborted with all read", play_abort_when_read, false},
	{"ends the flows that live at the end of a run", play_still_open, false},
	{"tells two connections of one socket apart", play_reconnect, false},
	{"ends a connection once whose socket leaves the scope", play_reconnect_out_of_scope, false},
	{"ends a connection whose socket becomes a listener", play_listen_after_disconnect, false},
	{"counts the listener that the table has no room for", play_many_listeners, false},
	{"follows fork, exec and exit", play_processes, false},
	{"captures curl", play_curl, false},
	{"captures curl with a large body", play_curl_large, false},
	{"captures python's urllib", play_python, false},
	{"captures node", play_node, false},
	{"keeps up with many connections", play_churn, false},
	{"scope pid: knows a listener older than itself", play_scope_pid, false},
	{"scope port", play_scope_port, false},
	{"scope all", play_scope_all, false},
	{"scope uid", play_scope_uid, false},
	{"scope comm", play_scope_comm, false},
	{"scope comm: not a prefix", play_scope_comm_other, false},
	{"names the owners of both ends", play_owners, false},
	{"names the owners where the client is a stranger", play_owners_of_strangers, false},
	{"names who connects a socket of another's", play_owner_connects, false},
	{"fair by cgroup: a flood loses its own bytes", play_flood_of_cgroup, false},
	{"fair by uid: a flood loses its own bytes", play_flood_of_uid, false},
	{"fair: bodies go before heads", play_bodies_go_first, false},
	{"fair: connections in a flood leave room for others", play_connections_flood, false},
};

#endif
