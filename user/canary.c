/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two blocking children that know nothing of the observer. What they say is
 * fixed, so what must come out of the pipeline is fixed too.
 */
#include "canary.h"
#include "pipeline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANARY_PATIENCE_S 20

static const char request[] = "POST /canary HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: " CANARY_AGENT "\r\nContent-Type: application/json\r\n"
			      "Content-Length: 13\r\n\r\n{\"canary\": 1}";
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";

struct canary {
	pid_t pids[2]; /* client, server; 0 = reaped */
	int statuses[2];
	int release_fd;
	struct run_facts facts;
	struct pipeline_output out;
	struct pipeline *pipeline;
	bool seen;
};

/* ---- the children ---- */

enum child_exit { CHILD_OK, CHILD_NO_SOCKET = 10, CHILD_NO_LOOPBACK, CHILD_NO_PEER };

static int read_all(int fd, size_t size)
{
	char text[256];

	while (size) {
		ssize_t n = read(fd, text, size < sizeof(text) ? size : sizeof(text));

		if (n <= 0)
			return -1;
		size -= (size_t)n;
	}
	return 0;
}

static int send_all(int fd, const char *text, size_t size)
{
	return send(fd, text, size, MSG_NOSIGNAL) == (ssize_t)size ? 0 : -1;
}

static enum child_exit serve(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		return CHILD_NO_PEER;
	for (int i = 0; i < 2; i++)
		if (read_all(fd, sizeof(request) - 1) || send_all(fd, answer, sizeof(answer) - 1))
			return CHILD_NO_PEER;
	return CHILD_OK;
}

static enum child_exit knock_twice(const struct sockaddr_in *server)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0)
		return CHILD_NO_SOCKET;
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server)))
		return CHILD_NO_LOOPBACK;
	for (int i = 0; i < 2; i++)
		if (send_all(fd, request, sizeof(request) - 1) || read_all(fd, sizeof(answer) - 1))
			return CHILD_NO_PEER;
	return CHILD_OK;
}

/* The server makes its listener only when it is released: it must be in scope by then. */
static _Noreturn void run_server(int release_fd, int port_fd)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	char byte;
	int listener;

	if (read(release_fd, &byte, 1) != 1)
		_exit(CHILD_OK);
	listener = socket(AF_INET, SOCK_STREAM, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		_exit(CHILD_NO_SOCKET);
	alarm(CANARY_PATIENCE_S);
	if (write(port_fd, &address, sizeof(address)) != sizeof(address))
		_exit(CHILD_NO_PEER);
	_exit(serve(listener));
}

static _Noreturn void run_client(int release_fd, int port_fd)
{
	struct sockaddr_in address;
	char byte;

	if (read(release_fd, &byte, 1) != 1)
		_exit(CHILD_OK);
	alarm(CANARY_PATIENCE_S);
	if (read(port_fd, &address, sizeof(address)) != sizeof(address))
		_exit(CHILD_NO_PEER);
	_exit(knock_twice(&address));
}

static pid_t fork_child(bool server, const int release[2], const int port[2])
{
	pid_t pid = fork();
	sigset_t none;

	if (pid != 0)
		return pid;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGALRM, SIG_DFL);
	close(release[1]);
	close(port[server ? 0 : 1]);
	if (server)
		run_server(release[0], port[1]);
	run_client(release[0], port[0]);
}

/* ---- the observer's side ---- */

static int open_pipeline(struct canary *canary)
{
	struct pipeline_options options = {.no_alerts = true};

	judge_options_defaults(&options.judge);
	memcpy(canary->facts.options, "{}", 3);
	canary->pipeline = pipeline_new(&canary->facts, &options, &canary->out);
	return canary->pipeline ? 0 : -ENOMEM;
}

static int fork_children(struct canary *canary)
{
	int release[2], port[2], err = 0;

	if (pipe2(release, O_CLOEXEC))
		return -errno;
	if (pipe2(port, O_CLOEXEC)) {
		err = -errno;
		close(release[0]);
		close(release[1]);
		return err;
	}
	canary->release_fd = release[1];
	for (int server = 0; server < 2 && !err; server++) {
		canary->pids[server] = fork_child(server, release, port);
		if (canary->pids[server] < 0) {
			err = -errno;
			canary->pids[server] = 0;
		}
	}
	close(release[0]);
	close(port[0]);
	close(port[1]);
	return err;
}

int canary_start(struct canary **ret_canary, uint32_t *ret_client, uint32_t *ret_server, char *reason)
{
	struct canary *canary = calloc(1, sizeof(*canary));
	int err = canary ? 0 : -ENOMEM;

	if (canary)
		canary->release_fd = -1;
	if (!err)
		err = open_pipeline(canary);
	if (!err)
		err = fork_children(canary);
	if (err) {
		snprintf(reason, CANARY_REASON_MAX, "the canary could not be started: %s", strerror(-err));
		canary_free(canary);
		return err;
	}
	*ret_client = (uint32_t)canary->pids[0];
	*ret_server = (uint32_t)canary->pids[1];
	*ret_canary = canary;
	return 0;
}

void canary_release(struct canary *canary)
{
	if (write(canary->release_fd, "go", 2) != 2)
		errno = 0; /* a child that died shows in canary_over() */
	close(canary->release_fd);
	canary->release_fd = -1;
}

void canary_feed(struct canary *canary, const struct input *input)
{
	static const char finding[] = "\"finding\":\"dup_after_success\",\"severity\":\"info\"";

	pipeline_feed(canary->pipeline, input);
	if (canary->out.events.size &&
	    memmem(canary->out.events.data, canary->out.events.size, finding, sizeof(finding) - 1))
		canary->seen = true;
	buffer_clear(&canary->out.events);
	buffer_clear(&canary->out.ledger);
}

bool canary_seen(const struct canary *canary)
{
	return canary->seen;
}

static const char *cause_of(int status)
{
	if (WIFSIGNALED(status))
		return "the canary's own connection over 127.0.0.1 did not get through in time";
	switch (WEXITSTATUS(status)) {
	case CHILD_NO_SOCKET:
		return "the canary could not open a socket on 127.0.0.1";
	case CHILD_NO_LOOPBACK:
		return "127.0.0.1 cannot be reached: bring the loopback device up (ip link set lo up)";
	case CHILD_NO_PEER:
		return "the canary's two processes could not talk over 127.0.0.1";
	default:
		return "";
	}
}

bool canary_over(struct canary *canary, char *reason)
{
	for (int i = 0; i < 2; i++)
		if (canary->pids[i] && waitpid(canary->pids[i], &canary->statuses[i], WNOHANG) == canary->pids[i])
			canary->pids[i] = 0;
	/* A client that failed says enough: its server would wait for it in vain. */
	if (canary->pids[0] || (canary->pids[1] && canary->statuses[0] == 0))
		return false;
	snprintf(reason, CANARY_REASON_MAX, "%s", cause_of(canary->statuses[0]));
	if (!*reason)
		snprintf(reason, CANARY_REASON_MAX, "%s", cause_of(canary->statuses[1]));
	return true;
}

void canary_free(struct canary *canary)
{
	if (!canary)
		return;
	if (canary->release_fd >= 0)
		close(canary->release_fd);
	for (int i = 0; i < 2; i++) {
		if (!canary->pids[i])
			continue;
		kill(canary->pids[i], SIGKILL);
		while (waitpid(canary->pids[i], NULL, 0) < 0 && errno == EINTR)
			;
	}
	pipeline_free(canary->pipeline);
	buffer_done(&canary->out.ledger);
	buffer_done(&canary->out.events);
	buffer_done(&canary->out.alerts);
	buffer_done(&canary->out.calls);
	free(canary);
}
