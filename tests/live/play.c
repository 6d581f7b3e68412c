/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * play: plays a case folder (tests/cases) with real sockets and real processes.
 *
 * A conductor walks timeline.json and gives orders to hands: one process for
 * each pid of the case, and one that is the server. Each order ends only when
 * its effect can be seen at the other end (bytes were read there, the end of
 * the stream arrived), so the order of events is kept and no time is waited.
 * The conductor itself touches no TCP socket; orders travel over Unix sockets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CONNECTIONS_MAX 64
#define HANDS_MAX 16
#define MESSAGE_MAX (1024 * 1024)
#define STEP_TIMEOUT_MS 10000 /* nothing in a case takes long; past this the play has failed */

enum verb {
	VERB_CONNECT,	  /* client: connect */
	VERB_ACCEPT,	  /* server: take the connection */
	VERB_SEND,	  /* bytes [from, to) of file */
	VERB_RECEIVE,	  /* read until `to` more bytes are there */
	VERB_FIN,	  /* close() */
	VERB_RST,	  /* close() with SO_LINGER 0 */
	VERB_RST_AT_EXIT, /* SO_LINGER 0 for when the process ends */
	VERB_AWAIT_END,	  /* until the peer's FIN or RST is there; reads nothing */
	VERB_AWAIT_RESET, /* until the socket is dead: what was sent met nobody */
	VERB_QUIT,
};

struct order {
	enum verb verb;
	unsigned int connection;
	uint64_t from, to;
	char file[64];
};

struct reply {
	int error; /* 0 or errno */
	int32_t pid;
};

struct options {
	const char *directory;
	const char *control; /* Unix socket of a server that runs elsewhere */
	const char *map;     /* where to write the real pids */
	uint16_t port;	     /* 0 = the port of the Host field */
	bool server, client;
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list arguments;

	fputs("play: ", stderr);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	exit(1);
}

/* ---- hands: processes that obey ---- */

struct hand {
	const char *directory;
	uint16_t port;
	int listen_fd; /* the server's, else -1 */
	int sockets[CONNECTIONS_MAX];
};

static struct sockaddr_in loopback(uint16_t port)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return address;
}

static int hand_open(struct hand *hand, const struct order *order)
{
	struct sockaddr_in address = loopback(hand->port);
	const int on = 1;
	int fd;

	if (order->verb == VERB_ACCEPT) {
		fd = accept4(hand->listen_fd, NULL, NULL, SOCK_CLOEXEC);
	} else {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address))) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		return errno;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	hand->sockets[order->connection] = fd;
	return 0;
}

static int hand_send(const struct hand *hand, const struct order *order)
{
	static char bytes[MESSAGE_MAX];
	char path[4096];
	size_t size, at;
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", hand->directory, order->file);
	file = fopen(path, "rb");
	if (!file)
		return errno;
	size = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	if (order->from > order->to || order->to > size)
		return ERANGE;
	for (at = order->from; at < order->to;) {
		ssize_t n = send(hand->sockets[order->connection], bytes + at, order->to - at,
				 MSG_NOSIGNAL);

		if (n < 0)
			return errno;
		at += (size_t)n;
	}
	return 0;
}

static int hand_wait(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};
	int n = poll(&poll_fd, 1, STEP_TIMEOUT_MS);

	return n < 0 ? errno : n == 0 ? ETIMEDOUT : 0;
}

static int hand_receive(const struct hand *hand, const struct order *order)
{
	int fd = hand->sockets[order->connection];
	uint64_t left = order->to - order->from;
	char bytes[4096];

	while (left > 0) {
		int error = hand_wait(fd, POLLIN);
		ssize_t n;

		if (error)
			return error;
		n = recv(fd, bytes, left < sizeof(bytes) ? left : sizeof(bytes), 0);
		if (n <= 0)
			return n < 0 ? errno : ECONNRESET;
		left -= (uint64_t)n;
	}
	return 0;
}

static int hand_linger_zero(const struct hand *hand, const struct order *order)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	if (setsockopt(hand->sockets[order->connection], SOL_SOCKET, SO_LINGER, &linger,
		       sizeof(linger)))
		return errno;
	return 0;
}

static int hand_close(struct hand *hand, const struct order *order)
{
	int fd = hand->sockets[order->connection];

	hand->sockets[order->connection] = -1;
	return close(fd) ? errno : 0;
}

static int hand_obey(struct hand *hand, const struct order *order)
{
	if (order->connection >= CONNECTIONS_MAX)
		return EINVAL;
	switch (order->verb) {
	case VERB_CONNECT:
	case VERB_ACCEPT:
		return hand_open(hand, order);
	case VERB_SEND:
		return hand_send(hand, order);
	case VERB_RECEIVE:
		return hand_receive(hand, order);
	case VERB_RST:
		hand_linger_zero(hand, order);
		return hand_close(hand, order);
	case VERB_RST_AT_EXIT:
		return hand_linger_zero(hand, order);
	case VERB_FIN:
		return hand_close(hand, order);
	case VERB_AWAIT_END:
		return hand_wait(hand->sockets[order->connection], POLLRDHUP);
	case VERB_AWAIT_RESET:
		return hand_wait(hand->sockets[order->connection], 0);
	case VERB_QUIT:
		return 0;
	}
	return EINVAL;
}

/* Obeys until VERB_QUIT or until the conductor is gone. */
static void hand_run(struct hand *hand, int orders_fd)
{
	struct order order;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		hand->sockets[i] = -1;
	while (recv(orders_fd, &order, sizeof(order), 0) == (ssize_t)sizeof(order)) {
		struct reply reply = {.error = hand_obey(hand, &order), .pid = getpid()};

		if (send(orders_fd, &reply, sizeof(reply), MSG_NOSIGNAL) != (ssize_t)sizeof(reply))
			return;
		if (order.verb == VERB_QUIT)
			return;
	}
}

static int listen_on(uint16_t port)
{
	struct sockaddr_in address = loopback(port);
	const int on = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, CONNECTIONS_MAX))
		die("127.0.0.1:%u: %s", port, strerror(errno));
	return fd;
}

static int unix_socket(const char *path, struct sockaddr_un *ret_address)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (fd < 0 || strlen(path) >= sizeof(ret_address->sun_path))
		die("%s: no Unix socket there", path);
	memcpy(ret_address->sun_path, path, strlen(path) + 1);
	return fd;
}

/* ---- the conductor ---- */

struct actor {
	int64_t case_pid; /* -1 = the server */
	pid_t pid;
	int fd; /* -1 = gone */
	bool child;
};

struct play {
	const struct options *options;
	uint16_t port;
	struct json_object *timeline;
	struct actor actors[HANDS_MAX];
	size_t actor_count;
	const char *connection_names[CONNECTIONS_MAX];
	unsigned int connection_count;
	struct actor *client_of[CONNECTIONS_MAX];
	bool client_closed[CONNECTIONS_MAX], server_closed[CONNECTIONS_MAX];
	FILE *map;
};

static void actor_order(struct actor *actor, struct order order)
{
	struct reply reply;

	if (actor->fd < 0)
		die("an order for process %lld, which is gone", (long long)actor->case_pid);
	if (send(actor->fd, &order, sizeof(order), MSG_NOSIGNAL) != (ssize_t)sizeof(order) ||
	    recv(actor->fd, &reply, sizeof(reply), 0) != (ssize_t)sizeof(reply))
		die("process %lld does not answer", (long long)actor->case_pid);
	if (reply.error)
		die("process %lld, connection %u, verb %d: %s", (long long)actor->case_pid,
		    order.connection + 1, (int)order.verb, strerror(reply.error));
	actor->pid = reply.pid;
}

static void actor_quit(struct actor *actor)
{
	if (actor->fd < 0)
		return;
	actor_order(actor, (struct order){.verb = VERB_QUIT});
	close(actor->fd);
	actor->fd = -1;
	if (actor->child)
		waitpid(actor->pid, NULL, 0);
}

static struct actor *actor_fork(struct play *play, int64_t case_pid, const char *comm)
{
	struct hand hand = {
		.directory = play->options->directory, .port = play->port, .listen_fd = -1};
	struct actor *actor = &play->actors[play->actor_count];
	int fds[2];

	if (play->actor_count == HANDS_MAX)
		die("more than %d processes", HANDS_MAX);
	if (case_pid < 0)
		hand.listen_fd = listen_on(play->port);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds))
		die("socketpair: %s", strerror(errno));
	*actor = (struct actor){.case_pid = case_pid, .fd = fds[0], .child = true, .pid = fork()};
	if (actor->pid < 0)
		die("fork: %s", strerror(errno));
	if (actor->pid == 0) {
		close(fds[0]);
		prctl(PR_SET_NAME, comm);
		hand_run(&hand, fds[1]);
		_exit(0);
	}
	close(fds[1]);
	if (hand.listen_fd >= 0)
		close(hand.listen_fd);
	play->actor_count++;
	return actor;
}

static void write_map(struct play *play, const struct actor *actor)
{
	if (!play->map)
		return;
	if (actor->case_pid < 0)
		fprintf(play->map, "{\"role\": \"server\", \"pid\": %d, \"port\": %u}\n",
			actor->pid, play->port);
	else
		fprintf(play->map, "{\"role\": \"client\", \"case_pid\": %lld, \"pid\": %d}\n",
			(long long)actor->case_pid, actor->pid);
	fflush(play->map);
}

/* actors[0] is always the server. */
static void find_server(struct play *play)
{
	struct actor *actor = &play->actors[0];
	struct sockaddr_un address;

	if (!play->options->control) {
		write_map(play, actor_fork(play, -1, "server"));
		return;
	}
	*actor =
		(struct actor){.case_pid = -1, .fd = unix_socket(play->options->control, &address)};
	if (connect(actor->fd, (struct sockaddr *)&address, sizeof(address)))
		die("%s: %s", play->options->control, strerror(errno));
	play->actor_count = 1;
	/* An order that does nothing: its reply tells the pid. */
	actor_order(actor, (struct order){.verb = VERB_RECEIVE});
	write_map(play, actor);
}

static const char *text_of(struct json_object *event, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(event, key, &value))
		die("an event has no '%s'", key);
	return json_object_get_string(value);
}

static int64_t number_of(struct json_object *event, const char *key)
{
	struct json_object *value;

	if (!json_object_object_get_ex(event, key, &value))
		die("an event has no '%s'", key);
	return json_object_get_int64(value);
}

/* The number of a connection's name; a new name gets the next number. */
static unsigned int connection_of(struct play *play, struct json_object *event)
{
	const char *name = text_of(event, "conn");
	unsigned int i;

	for (i = 0; i < play->connection_count; i++)
		if (!strcmp(play->connection_names[i], name))
			return i;
	if (i == CONNECTIONS_MAX)
		die("more than %d connections", CONNECTIONS_MAX);
	play->connection_names[i] = name;
	play->connection_count++;
	return i;
}

static struct actor *actor_of(struct play *play, int64_t case_pid)
{
	for (size_t i = 1; i < play->actor_count; i++)
		if (play->actors[i].case_pid == case_pid && play->actors[i].fd >= 0)
			return &play->actors[i];
	return NULL;
}

static void play_open(struct play *play, struct json_object *event)
{
	unsigned int connection = connection_of(play, event);
	struct actor *actor = actor_of(play, number_of(event, "pid"));
	bool new = !actor;

	if (new)
		actor = actor_fork(play, number_of(event, "pid"), text_of(event, "comm"));
	play->client_of[connection] = actor;
	actor_order(actor, (struct order){.verb = VERB_CONNECT, .connection = connection});
	actor_order(&play->actors[0],
		    (struct order){.verb = VERB_ACCEPT, .connection = connection});
	if (new)
		write_map(play, actor);
}

static void play_bytes(struct play *play, struct json_object *event, bool from_client)
{
	unsigned int connection = connection_of(play, event);
	struct actor *client = play->client_of[connection], *server = &play->actors[0];
	struct order order = {.verb = VERB_SEND, .connection = connection};
	bool nobody =
		from_client ? play->server_closed[connection] : play->client_closed[connection];

	snprintf(order.file, sizeof(order.file), "%s", text_of(event, "file"));
	order.from = (uint64_t)number_of(event, "from");
	order.to = (uint64_t)number_of(event, "to");
	actor_order(from_client ? client : server, order);
	if (nobody) {
		order.verb = VERB_AWAIT_RESET;
		actor_order(from_client ? client : server, order);
	} else {
		order.verb = VERB_RECEIVE;
		actor_order(from_client ? server : client, order);
	}
}

static void play_end(struct play *play, struct json_object *event, enum verb verb)
{
	unsigned int connection = connection_of(play, event);
	struct actor *client = play->client_of[connection], *server = &play->actors[0];
	bool by_client = !strcmp(text_of(event, "by"), "client");
	struct order order = {.verb = verb, .connection = connection};
	bool *closed = by_client ? play->client_closed : play->server_closed;
	bool *other_closed = by_client ? play->server_closed : play->client_closed;

	/* The exit of the process has sent it already. */
	if (!by_client || client->fd >= 0)
		actor_order(by_client ? client : server, order);
	closed[connection] = true;
	if (other_closed[connection])
		return;
	order.verb = VERB_AWAIT_END;
	actor_order(by_client ? server : client, order);
}

/* A later "client resets" of one of its connections is how the exit is to look on the wire. */
static void play_exit(struct play *play, size_t index)
{
	struct json_object *event = json_object_array_get_idx(play->timeline, index);
	struct actor *actor = actor_of(play, number_of(event, "pid"));
	size_t count = json_object_array_length(play->timeline);

	if (!actor)
		die("process %lld exits before it opens anything",
		    (long long)number_of(event, "pid"));
	for (size_t i = index + 1; i < count; i++) {
		struct json_object *later = json_object_array_get_idx(play->timeline, i);
		unsigned int connection;

		if (strcmp(text_of(later, "ev"), "rst") != 0 ||
		    strcmp(text_of(later, "by"), "client") != 0)
			continue;
		connection = connection_of(play, later);
		if (play->client_of[connection] == actor)
			actor_order(actor, (struct order){.verb = VERB_RST_AT_EXIT,
							  .connection = connection});
	}
	actor_quit(actor);
}

static void play_event(struct play *play, size_t index)
{
	struct json_object *event = json_object_array_get_idx(play->timeline, index);
	const char *what = text_of(event, "ev");

	if (!strcmp(what, "open"))
		play_open(play, event);
	else if (!strcmp(what, "c2s"))
		play_bytes(play, event, true);
	else if (!strcmp(what, "s2c"))
		play_bytes(play, event, false);
	else if (!strcmp(what, "fin"))
		play_end(play, event, VERB_FIN);
	else if (!strcmp(what, "rst"))
		play_end(play, event, VERB_RST);
	else if (!strcmp(what, "exit"))
		play_exit(play, index);
	else
		die("event '%s' is not known", what);
}

/* ---- start ---- */

/* The port of the Host field of the first request: the fingerprint rests on both. */
static uint16_t port_of_case(const char *directory)
{
	char path[4096], text[8192];
	unsigned long port = 0;
	const char *host;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "%s/request-1.bin", directory);
	file = fopen(path, "rb");
	if (!file)
		die("%s: %s", path, strerror(errno));
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	host = strstr(text, "\r\nHost: 127.0.0.1:");
	if (host)
		port = strtoul(host + sizeof("\r\nHost: 127.0.0.1:") - 1, NULL, 10);
	if (port == 0 || port > 65535)
		die("%s: no port in a Host field for 127.0.0.1; use --port", path);
	return (uint16_t)port;
}

static void be_server(const struct options *options, uint16_t port)
{
	struct hand hand = {
		.directory = options->directory, .port = port, .listen_fd = listen_on(port)};
	struct sockaddr_un address;
	int fd = unix_socket(options->control, &address);
	int orders_fd;

	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) || listen(fd, 1))
		die("%s: %s", options->control, strerror(errno));
	printf("listening on 127.0.0.1:%u\n", port);
	fflush(stdout);
	orders_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	if (orders_fd < 0)
		die("%s: %s", options->control, strerror(errno));
	hand_run(&hand, orders_fd);
	unlink(options->control);
}

static void be_conductor(const struct options *options, uint16_t port)
{
	struct play play = {.options = options, .port = port};
	char path[4096];
	size_t count;

	snprintf(path, sizeof(path), "%s/timeline.json", options->directory);
	play.timeline = json_object_from_file(path);
	if (!play.timeline || !json_object_is_type(play.timeline, json_type_array))
		die("%s: not a timeline", path);
	if (options->map) {
		play.map = fopen(options->map, "we");
		if (!play.map)
			die("%s: %s", options->map, strerror(errno));
	}
	find_server(&play);
	count = json_object_array_length(play.timeline);
	for (size_t i = 0; i < count; i++)
		play_event(&play, i);
	/* Clients first: what the timeline leaves open is closed by its client. */
	for (size_t i = play.actor_count; i-- > 0;)
		actor_quit(&play.actors[i]);
	if (play.map)
		fclose(play.map);
	json_object_put(play.timeline);
}

static void usage(FILE *out)
{
	fputs("usage: play [--port N] [--map FILE] DIR             client and server in one tree\n"
	      "       play --server --control SOCKET [--port N] DIR  the server alone\n"
	      "       play --client --control SOCKET [--port N] [--map FILE] DIR\n"
	      "DIR is a case folder. --map writes the real pids as JSON lines.\n",
	      out);
}

static bool parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"client", no_argument, NULL, 'c'},	   {"server", no_argument, NULL, 's'},
		{"control", required_argument, NULL, 'o'}, {"map", required_argument, NULL, 'm'},
		{"port", required_argument, NULL, 'p'},	   {NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (option == 'c')
			options->client = true;
		else if (option == 's')
			options->server = true;
		else if (option == 'o')
			options->control = optarg;
		else if (option == 'm')
			options->map = optarg;
		else if (option == 'p')
			options->port = (uint16_t)strtoul(optarg, NULL, 10);
		else
			return false;
	}
	if (optind + 1 != argc || (options->server && options->client))
		return false;
	if ((options->server || options->client) != (options->control != NULL))
		return false;
	options->directory = argv[optind];
	return true;
}

int main(int argc, char **argv)
{
	struct options options = {0};
	uint16_t port;

	if (!parse_options(argc, argv, &options)) {
		usage(stderr);
		return 2;
	}
	port = options.port ? options.port : port_of_case(options.directory);
	if (options.server)
		be_server(&options, port);
	else
		be_conductor(&options, port);
	return 0;
}
