/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * capture_probe [NAME...]: does the probe see what was sent, all of it, once?
 *
 * Loads the probe with the tree scope in a network namespace of its own, plays
 * named scenarios between a process of the tree and a stranger, and compares
 * what was captured with what the receiver took. TAP on stdout.
 */
#include "capture_probe.h"
#include "capture_probe_uring.h"

#include "capture.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/ioctl.h>
#include <time.h>

#define EVENTS_MAX 200000
#define FLOWS_MAX 8192
#define PATIENCE_MS 600000 /* only turns a hang into a failure */
#define LOSS_MS 3000	     /* so long nothing came: what was said to be lost will not come */

/* One end of a connection as the probe described it. */
struct seen {
	struct wire_event open, last, end, sent; /* sent: the last WIRE_DATA */
	bool opened, ended, disordered;
	uint64_t next; /* offset after the last DATA or HOLE that left in order */
	uint64_t data, hole[WIRE_CAUSE_COUNT], records;
	uint64_t resets;
	struct wire_event states[8];
	size_t state_count;
	uint8_t *bytes;
	struct piece *pieces; /* of bytes: what was captured, in order */
	size_t piece_count, piece_room;
};

struct piece {
	uint64_t offset, length;
};

struct observed {
	struct seen flows[FLOWS_MAX];
	size_t flow_count;
	struct wire_event process[256];
	size_t process_count;
	uint64_t events;
};

struct scenario {
	const char *kind; /* of send */
	void (*send)(int fd);
	void (*check)(const struct scenario *scenario);
	const char *address; /* NULL: 127.0.0.1 */
	enum wire_cause hole;
	uint64_t hole_bytes;
};

static struct capture *capture;
static struct sequencer *sequencer;
static struct observed *seen;
static struct taken *taken; /* shared: [0] by the server, [1] by the client */
static sem_t *unread;	    /* shared: how many more sends may go out before some are read from the ring */
static unsigned int test_count, failure_count;
static bool failed;

/* ---- TAP ---- */

__attribute__((format(printf, 2, 3))) static bool expect(bool good, const char *format, ...)
{
	va_list arguments;

	if (good)
		return true;
	failed = true;
	va_start(arguments, format);
	printf("# ");
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	return false;
}

#define EQUAL(a, b, what)                                                                          \
	expect((uint64_t)(a) == (uint64_t)(b), "%s: %llu, expected %llu", what,                    \
	       (unsigned long long)(a), (unsigned long long)(b))

/* The tracepoint door where programs are preempted: nobody takes it there who has the other one. */
static uint64_t misses_before;

static uint64_t misses(void)
{
	struct counters counters = {};

	if (capture_door(capture) != CAPTURE_DOOR_TRACEPOINT || capture_counters(capture, &counters))
		return 0;
	return counters.recursion_misses > misses_before ? counters.recursion_misses - misses_before : 0;
}

/* What such a door lost is no failure if it was counted: silence would be. */
static bool is_counted_loss(const char *name)
{
	if (!failed || !misses())
		return false;
	printf("# counted: %lu recursion misses\nok %u - %s\n", (unsigned long)misses(), ++test_count, name);
	fflush(stdout);
	failed = false;
	return true;
}

static void report(const char *name)
{
	if (is_counted_loss(name))
		return;
	printf("%sok %u - %s\n", failed ? "not " : "", ++test_count, name);
	fflush(stdout);
	failure_count += failed;
	failed = false;
}

/* ---- what leaves the sequencer ---- */

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static struct seen *seen_flow(uint64_t id)
{
	for (size_t i = seen->flow_count; i-- > 0;)
		if (seen->flows[i].last.flow == id)
			return &seen->flows[i];
	if (seen->flow_count == FLOWS_MAX)
		return NULL;
	return &seen->flows[seen->flow_count++];
}

static void note_bytes(struct seen *flow, const struct wire_event *event, struct bytes payload)
{
	if (event->offset != flow->next)
		flow->disordered = true;
	flow->next = event->offset + event->length_bytes;
	if (event->kind == WIRE_HOLE) {
		flow->hole[event->cause] += event->length_bytes;
		return;
	}
	flow->sent = *event;
	flow->data += payload.size;
	flow->records++;
	if (!flow->bytes)
		flow->bytes = calloc(1, STREAM_MAX);
	if (event->offset + payload.size <= STREAM_MAX)
		memcpy(flow->bytes + event->offset, payload.data, payload.size);
	if (flow->piece_count == flow->piece_room) {
		flow->piece_room = flow->piece_room ? 2 * flow->piece_room : 64;
		flow->pieces = realloc(flow->pieces, flow->piece_room * sizeof(*flow->pieces));
		must(flow->pieces != NULL, "memory");
	}
	flow->pieces[flow->piece_count++] = (struct piece){event->offset, payload.size};
}

static void note(const struct wire_event *event, struct bytes payload)
{
	struct seen *flow;

	seen->events++;
	expect(event->when_ns >= event->start_ns, "event %u made before it began", event->kind);
	if (!event->flow) {
		if (seen->process_count < 256)
			seen->process[seen->process_count++] = *event;
		return;
	}
	flow = seen_flow(event->flow);
	if (!flow)
		return;
	flow->last = *event;
	if (event->kind == WIRE_OPEN) {
		flow->open = *event;
		flow->opened = true;
		flow->next = event->offset;
	}
	if (!flow->opened || flow->ended)
		flow->disordered = true;
	if (event->kind == WIRE_DATA || event->kind == WIRE_HOLE) {
		note_bytes(flow, event, payload);
		sem_post(unread);
	}
	flow->resets += event->kind == WIRE_RESET;
	if (event->kind == WIRE_STATE && flow->state_count < 8)
		flow->states[flow->state_count++] = *event;
	if (event->kind == WIRE_END) {
		flow->end = *event;
		flow->ended = true;
	}
}

static void pull(uint64_t now)
{
	const struct wire_event *event;
	struct bytes payload;
	int n = capture_drain(capture, sequencer);

	expect(n >= 0, "capture_drain: %d", n);
	while (sequencer_pull(sequencer, capture_settled(capture, now), &event, &payload))
		note(event, payload);
}

static size_t living_flows(void)
{
	size_t living = 0;

	for (size_t i = 0; i < seen->flow_count; i++)
		living += seen->flows[i].opened && !seen->flows[i].ended;
	return living;
}

static void observe_begin(void)
{
	misses_before = 0;
	misses_before = misses();
	for (size_t i = 0; seen && i < seen->flow_count; i++) {
		free(seen->flows[i].bytes);
		free(seen->flows[i].pieces);
	}
	free(seen);
	sequencer_free(sequencer);
	seen = calloc(1, sizeof(*seen));
	sequencer = sequencer_new();
	must(seen && sequencer, "memory");
	memset(&taken[0].count, 0, sizeof(taken[0].count));
	memset(&taken[1].count, 0, sizeof(taken[1].count));
}

/* Until all children are gone and every flow that was opened has ended. */
static void observe_children(int children, size_t flows)
{
	uint64_t deadline = now_ns() + PATIENCE_MS * 1000000ULL, last_ns = now_ns(), events = 0;
	int status, gone = 0;

	while (now_ns() < deadline &&
	       (gone < children || living_flows() || seen->flow_count < flows)) {
		struct pollfd ready = {.fd = capture_fd(capture), .events = POLLIN};

		poll(&ready, 1, 2);
		pull(now_ns());
		if (seen->events != events || gone < children)
			last_ns = now_ns();
		events = seen->events;
		if (now_ns() > last_ns + LOSS_MS * 1000000ULL && misses())
			break;
		if (gone < children && waitpid(-1, &status, WNOHANG) > 0) {
			gone++;
			deadline = now_ns() + PATIENCE_MS * 1000000ULL;
			expect(!status || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
				       (cannot_reason[0] && WEXITSTATUS(status) == CANNOT_STATUS),
			       "a child ended with %#x", status);
		}
	}
	EQUAL(gone, children, "children that ended");
	sequencer_drain(sequencer);
	pull(now_ns());
}

/* ---- processes ---- */

/* 0 = any that is free. */
static uint16_t wanted_port;

/* Do receivers take urgent bytes with the others? */
static int urgent_inline;

static int listen_on(const char *address, uint16_t *ret_port)
{
	bool mapped = address && !strncmp(address, "::ffff:", 7),
	     v6 = address && !mapped && strchr(address, ':');
	struct sockaddr_in6 any6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_ANY_INIT};
	struct sockaddr_in any4 = {.sin_family = AF_INET, .sin_port = htons(wanted_port)};
	struct sockaddr_in6 bound;
	socklen_t size = sizeof(bound);
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0, "socket");
	if (address && !v6 && !mapped)
		must(inet_pton(AF_INET, address, &any4.sin_addr) == 1, "address");
	must(!setsockopt(fd, SOL_SOCKET, SO_OOBINLINE, &urgent_inline, sizeof(urgent_inline)),
	     "SO_OOBINLINE");
	must(!bind(fd, v6 ? (void *)&any6 : (void *)&any4, v6 ? sizeof(any6) : sizeof(any4)),
	     "bind");
	must(!listen(fd, 128), "listen");
	must(!getsockname(fd, (struct sockaddr *)&bound, &size), "getsockname");
	*ret_port = ntohs(bound.sin6_port); /* at the same place in both families */
	return fd;
}

static int connect_to(const char *address, uint16_t port)
{
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct sockaddr_in to4 = {.sin_family = AF_INET, .sin_port = htons(port)};
	bool v6 = address && strchr(address, ':');
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0, "socket");
	if (v6)
		must(inet_pton(AF_INET6, address, &to6.sin6_addr) == 1, "address");
	else
		must(inet_pton(AF_INET, address ? address : "127.0.0.1", &to4.sin_addr) == 1,
		     "address");
	must(!connect(fd, v6 ? (void *)&to6 : (void *)&to4, v6 ? sizeof(to6) : sizeof(to4)),
	     "connect");
	return fd;
}

struct child {
	pid_t pid;
	int go; /* closed by the parent: go on */
};

/* A child that waits until it is let go, so that it can be put into the tree first. */
static struct child child_new(bool *ret_in_child)
{
	struct child child;
	int ends[2];
	char byte;

	must(!pipe2(ends, O_CLOEXEC), "pipe");
	fflush(stdout);
	child.pid = fork();
	must(child.pid >= 0, "fork");
	*ret_in_child = !child.pid;
	if (!child.pid) {
		close(ends[1]);
		must(read(ends[0], &byte, 1) == 0, "read");
		close(ends[0]);
	} else {
		close(ends[0]);
	}
	child.go = ends[1];
	return child;
}

static void child_go(struct child child, bool in_tree)
{
	int error = in_tree ? capture_add_process(capture, (uint32_t)child.pid) : 0;

	expect(!error, "capture_add_process: %d", error);
	close(child.go);
}

#include "capture_probe_owners.h"

/* A server process, in the tree or not, that runs serve() on its listener. */
static uint16_t listener_start(const char *address, bool in_tree, void (*serve)(int listener))
{
	struct child child;
	bool in_child;
	uint16_t port;
	int ends[2];

	must(!pipe2(ends, O_CLOEXEC), "pipe");
	child = child_new(&in_child);
	if (in_child) {
		int listener;

		owner_become(server_owner);
		listener = listen_on(address, &port);
		must(write(ends[1], &port, sizeof(port)) == sizeof(port), "write");
		serve(listener);
		_exit(0);
	}
	child_go(child, in_tree);
	close(ends[1]);
	must(read(ends[0], &port, sizeof(port)) == sizeof(port), "server");
	close(ends[0]);
	return port;
}

static void (*serve_accepted)(int fd);

static void accept_one(int listener)
{
	int fd = accept(listener, NULL, NULL);

	must(fd >= 0, "accept");
	close(listener);
	serve_accepted(fd);
}

/* One that runs serve() on the one connection it accepts. */
static uint16_t server_start(const char *address, bool in_tree, void (*serve)(int fd))
{
	serve_accepted = serve;
	return listener_start(address, in_tree, accept_one);
}

/* The client that was started last. */
static pid_t client_pid;

static void client_start(const char *address, uint16_t port, bool in_tree, void (*act)(int fd))
{
	bool in_child;
	struct child child = child_new(&in_child);

	if (in_child) {
		owner_become(client_owner);
		act(connect_to(address, port));
		_exit(0);
	}
	client_pid = child.pid;
	child_go(child, in_tree);
}

static void serve_take(int fd)
{
	take_until_end(fd, &taken[0]);
}

/* ---- checks ---- */

static struct seen *flow_of(uint16_t role)
{
	for (size_t i = 0; i < seen->flow_count; i++)
		if (seen->flows[i].open.flags & role)
			return &seen->flows[i];
	expect(false, "no flow of the %s", role == WIRE_CLIENT ? "client" : "server");
	return NULL;
}

static void check_pair(void)
{
	const struct seen *client = flow_of(WIRE_CLIENT), *server = flow_of(WIRE_SERVER);

	if (!client || !server)
		return;
	EQUAL(seen->flow_count, 2, "flows");
	EQUAL(client->open.send_base_seq, server->open.receive_base_seq, "client's base");
	EQUAL(client->open.receive_base_seq, server->open.send_base_seq, "server's base");
	EQUAL(client->open.local_port, server->open.remote_port, "client's port");
	EQUAL(client->open.remote_port, server->open.local_port, "server's port");
	EQUAL(client->open.netns, server->open.netns, "netns");
	expect(!memcmp(client->open.local_address, server->open.remote_address, 16) &&
		       !memcmp(client->open.remote_address, server->open.local_address, 16),
	       "addresses differ");
	expect(client->ended && server->ended, "a flow has no end");
	expect(!client->disordered && !server->disordered, "events are out of order");
}

static void check_stream(const struct seen *flow, const struct taken *received,
			 enum wire_cause hole, uint64_t hole_bytes)
{
	if (!flow)
		return;
	EQUAL(flow->data + hole_bytes, received->count, "captured and missing bytes");
	EQUAL(flow->end.offset, received->count, "offset of the end");
	EQUAL(flow->next, received->count, "end of the last record");
	EQUAL(flow->hole[hole], hole_bytes, "bytes in holes");
	if (!hole_bytes && flow->bytes)
		expect(!memcmp(flow->bytes, received->bytes, received->count),
		       "captured bytes differ from the receiver's");
}

static void check_sent(const struct scenario *scenario)
{
	const struct seen *client = flow_of(WIRE_CLIENT);
	bool readable = scenario->hole == WIRE_CAUSE_PAGES && capture_reads_pages(capture);
	uint64_t hole_bytes = readable ? 0 : scenario->hole_bytes;

	check_pair();
	check_stream(client, &taken[0], scenario->hole, hole_bytes);
	if (client && client->records)
		expect(client->open.flags & WIRE_IN_TREE, "the client is not in the tree");
}

/* "# send KIND: ok", or what is missing and why: tests/vm/table reads these. */
static void report_send(const char *kind)
{
	static const char *const causes[WIRE_CAUSE_COUNT] = {
		"", "ring_full", "fault", "pages", "truncated", "missed", "fastopen", "urgent", "muted",
		"share"};
	uint64_t holes[WIRE_CAUSE_COUNT] = {}, sum = 0;

	for (size_t i = 0; i < seen->flow_count; i++)
		for (int cause = 0; cause < WIRE_CAUSE_COUNT; cause++)
			holes[cause] += seen->flows[i].hole[cause];
	printf("# send %s:", kind);
	if (failed && misses()) {
		printf(" loss(counted)\n");
		report(kind);
		return;
	}
	for (int cause = 0; cause < WIRE_CAUSE_COUNT && !failed; cause++) {
		sum += holes[cause];
		if (holes[cause])
			printf(" hole(%s)", causes[cause]);
	}
	printf("%s\n", failed ? " failed" : sum ? "" : " ok");
	report(kind);
}

static void report_cannot(const char *kind)
{
	printf("# send %s: skip(%s)\nok %u - %s # SKIP %s\n", kind, cannot_reason, ++test_count, kind,
	       cannot_reason);
	fflush(stdout);
	cannot_reason[0] = '\0';
}

static void play(const struct scenario *scenario)
{
	struct counters before, after;
	uint16_t port;

	observe_begin();
	must(!capture_counters(capture, &before), "counters");
	urgent_inline = scenario->send == send_urgent_inline;
	port = server_start(scenario->address, false, serve_take);
	client_start(scenario->address, port, true, scenario->send);
	observe_children(2, 2);
	if (cannot_reason[0]) {
		report_cannot(scenario->kind);
		return;
	}
	must(!capture_counters(capture, &after), "counters");
	scenario->check(scenario);
	EQUAL(after.value[WIRE_COUNTER_ACCEPTED_BYTES] - before.value[WIRE_COUNTER_ACCEPTED_BYTES],
	      taken[0].count, "accepted bytes");
	EQUAL(after.value[WIRE_COUNTER_STALE_CALLS] - before.value[WIRE_COUNTER_STALE_CALLS], 0,
	      "stale calls");
	EQUAL(after.recursion_misses - before.recursion_misses, 0, "recursion misses");
	report_send(scenario->kind);
}

/*
 * Whichever thread sent it: the process that asked for it is named. The workers
 * of io_uring are its threads since 5.12, and in 5.10 since 5.10.162.
 */
static void check_uring(const struct scenario *scenario)
{
	const struct seen *client = flow_of(WIRE_CLIENT);
	bool worker = scenario->send == send_uring_worker || scenario->send == send_uring_sqpoll;

	check_sent(scenario);
	if (!client)
		return;
	EQUAL(client->sent.tgid, client_pid, "process");
	EQUAL(client->sent.tid != client->sent.tgid, worker, "sent by another thread of it");
	expect(client->sent.flags & WIRE_IN_TREE, "the sender is not in the tree");
	expect(!strncmp(client->sent.comm, program_invocation_short_name, 15), "comm is %.16s",
	       client->sent.comm);
}

static void check_muted(const struct scenario *scenario)
{
	const struct seen *client = flow_of(WIRE_CLIENT);

	(void)scenario;
	if (!client)
		return;
	EQUAL(client->data, 100, "captured bytes");
	EQUAL(client->records, 1, "records");
	EQUAL(client->end.offset, 5000, "offset of the end");
	EQUAL(client->hole[WIRE_CAUSE_MISSED], 0, "holes");
}

/* Unless SO_OOBINLINE is on, the receiver does not take the urgent byte. */
static void check_urgent(const struct scenario *scenario)
{
	const struct seen *client = flow_of(WIRE_CLIENT);

	(void)scenario;
	if (!urgent_inline)
		taken[0].count++;
	check_pair();
	if (!client)
		return;
	EQUAL(client->data, 399, "captured bytes");
	EQUAL(client->hole[WIRE_CAUSE_URGENT], 1, "urgent bytes");
	EQUAL(client->end.offset, 400, "offset of the end");
}

static const struct scenario sends[] = {
	{"write", send_write, check_sent, NULL, 0, 0},
	{"write to ::1", send_write, check_sent, "::1", 0, 0},
	{"write to ::ffff:127.0.0.1", send_write, check_sent, "::ffff:127.0.0.1", 0, 0},
	{"write to 127.9.8.7", send_write, check_sent, "127.9.8.7", 0, 0},
	{"send and sendto of 0, 1 and 100 bytes", send_small, check_sent, NULL, 0, 0},
	{"MSG_MORE", send_more, check_sent, NULL, 0, 0},
	{"sendmsg with an empty piece", send_message, check_sent, NULL, 0, 0},
	{"sendmmsg", send_messages, check_sent, NULL, 0, 0},
	{"writev of 1024 pieces, some empty", send_writev_1024, check_sent, NULL, 0, 0},
	{"writev of 1 to 1024 pieces", send_writev_every_count, check_sent, NULL, 0, 0},
	{"sizes around the record classes", send_class_bounds, check_sent, NULL, 0, 0},
	{"partial writes and EAGAIN", send_eagain, check_sent, NULL, 0, 0},
	{"write of 1 MiB", send_mebibyte, check_sent, NULL, 0, 0},
	{"write of 16 MiB", send_16_mebibytes, check_sent, NULL, 0, 0},
	{"write of 64 MiB", send_64_mebibytes, check_sent, NULL, 0, 0},
	{"two threads on one socket", send_two_threads, check_sent, NULL, 0, 0},
	{"forked child", send_forked, check_sent, NULL, 0, 0},
	{"passed descriptor", send_passed, check_sent, NULL, 0, 0},
	{"bad pointer", send_fault_then_good, check_sent, NULL, 0, 0},
	{"MSG_ZEROCOPY", send_zerocopy, check_sent, NULL, 0, 0},
	{"untouched mapping", send_untouched_mapping, check_sent, NULL, 0, 0},
	{"sendfile", send_file, check_sent, NULL, WIRE_CAUSE_PAGES, 200000},
	{"splice", send_splice, check_sent, NULL, WIRE_CAUSE_PAGES, 3000},
	{"vmsplice", send_vmsplice, check_sent, NULL, WIRE_CAUSE_PAGES, 16000},
	{"MSG_OOB", send_urgent, check_urgent, NULL, 0, 0},
	{"MSG_OOB with SO_OOBINLINE", send_urgent_inline, check_urgent, NULL, 0, 0},
	{"io_uring SEND", send_uring, check_uring, NULL, 0, 0},
	{"io_uring SEND in a worker", send_uring_worker, check_uring, NULL, 0, 0},
	{"io_uring SEND with SQPOLL", send_uring_sqpoll, check_uring, NULL, 0, 0},
	{"io_uring SENDMSG", send_uring_message, check_uring, NULL, 0, 0},
	{"io_uring SEND_ZC", send_uring_zerocopy, check_uring, NULL, 0, 0},
	{"io_uring SEND_ZC of a fixed buffer", send_uring_zerocopy_fixed, check_sent, NULL,
	 WIRE_CAUSE_PAGES, 100000},
	{"io_uring WRITE_FIXED", send_uring_write_fixed, check_sent, NULL, WIRE_CAUSE_PAGES, 10000},
	{"not HTTP", send_not_http, check_muted, NULL, 0, 0},
};

/* The probe anew, with other options. CAPTURE_PROBE_DOOR=kprobe or tracepoint picks a door. */
static void capture_begin(struct capture_options options)
{
	const char *door = getenv("CAPTURE_PROBE_DOOR");
	char reason[CAPTURE_REASON_MAX];

	capture_close(capture);
	capture = NULL;
	if (door)
		options.door =
			strcmp(door, "kprobe") ? CAPTURE_DOOR_TRACEPOINT : CAPTURE_DOOR_KPROBE;
	if (capture_open(&options, &capture, reason)) {
		printf("%s %s\n", test_count ? "Bail out!" : "1..0 # SKIP", reason);
		exit(test_count != 0);
	}
}

/* Whatever was captured stands where the receiver took it, and the rest is holes. */
static void check_pieces(const char *kind, const struct seen *flow)
{
	uint64_t sum = 0;

	for (int cause = 0; cause < WIRE_CAUSE_COUNT; cause++)
		sum += flow->hole[cause];
	if (flow->data + sum != taken[0].count || flow->end.offset != taken[0].count || flow->disordered)
		expect(false, "%s: %lu captured and %lu in holes, but %lu received", kind,
		       (unsigned long)flow->data, (unsigned long)sum, (unsigned long)taken[0].count);
	for (size_t i = 0; i < flow->piece_count; i++) {
		const struct piece *piece = &flow->pieces[i];

		if (memcmp(flow->bytes + piece->offset, taken[0].bytes + piece->offset, piece->length)) {
			expect(false, "%s: bytes at %lu differ", kind, (unsigned long)piece->offset);
			return;
		}
	}
}

/* Every way to send, and room for next to nothing. */
static void play_one_page(void)
{
	uint64_t lost = 0;

	capture_begin((struct capture_options){.scope = CAPTURE_TREE,
					       .data_ring_bytes = (size_t)sysconf(_SC_PAGESIZE)});
	for (size_t i = 0; i < sizeof(sends) / sizeof(*sends); i++) {
		const struct seen *client;
		uint16_t port;

		if (sends[i].check != check_sent && sends[i].check != check_uring)
			continue;
		observe_begin();
		port = server_start(sends[i].address, false, serve_take);
		client_start(sends[i].address, port, true, sends[i].send);
		observe_children(2, 2);
		client = cannot_reason[0] ? NULL : flow_of(WIRE_CLIENT);
		cannot_reason[0] = '\0';
		if (!client)
			continue;
		check_pieces(sends[i].kind, client);
		lost += client->hole[WIRE_CAUSE_RING_FULL];
	}
	expect(lost > 0, "nothing was lost: the test does not test");
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
}

#include "capture_probe_more.h"

/* ---- the run ---- */

static void lo_up(void)
{
	struct ifreq lo = {.ifr_name = "lo"};
	int fd;

	must(!unshare(CLONE_NEWNET), "unshare");
	fd = socket(AF_INET, SOCK_DGRAM, 0);
	must(fd >= 0 && !ioctl(fd, SIOCGIFFLAGS, &lo), "SIOCGIFFLAGS");
	lo.ifr_flags |= IFF_UP;
	must(!ioctl(fd, SIOCSIFFLAGS, &lo), "SIOCSIFFLAGS");
	close(fd);
}

static bool chosen(const char *name, int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strstr(name, argv[i]))
			return true;
	return argc < 2;
}

int main(int argc, char **argv)
{
	if (geteuid()) {
		printf("1..0 # SKIP needs root\n");
		return 0;
	}
	lo_up();
	signal(SIGPIPE, SIG_IGN);
	taken = mmap(NULL, 2 * sizeof(*taken), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		     -1, 0);
	must(taken != MAP_FAILED, "mmap");
	unread = mmap(NULL, sizeof(*unread), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(unread != MAP_FAILED && !sem_init(unread, 1, 0), "semaphore");
	cannot_reason = mmap(NULL, CANNOT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
			     0);
	must(cannot_reason != MAP_FAILED, "mmap");
	atexit(owners_remove);
	slow = getenv("NIGHTCLERK_SLOW") != NULL;
	capture_begin((struct capture_options){.scope = CAPTURE_TREE});
	printf("# door: %s\n# pages: %s\n", capture_door_name(capture_door(capture)),
	       capture_reads_pages(capture) ? "readable" : "holes");
	for (size_t i = 0; i < sizeof(sends) / sizeof(*sends); i++)
		if (chosen(sends[i].kind, argc, argv))
			play(&sends[i]);
	for (size_t i = 0; i < sizeof(plays) / sizeof(*plays); i++)
		if (chosen(plays[i].name, argc, argv)) {
			observe_begin();
			plays[i].run();
			if (cannot_reason[0])
				report_cannot(plays[i].name);
			else if (plays[i].sends)
				report_send(plays[i].name);
			else
				report(plays[i].name);
		}
	capture_close(capture);
	printf("1..%u\n", test_count);
	return failure_count != 0;
}
