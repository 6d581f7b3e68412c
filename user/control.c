/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One datagram each way over SOCK_SEQPACKET: "mark LABEL" or "sync", answered
 * by "ok" or "no" when it has been done.
 */
#include "control.h"

#include <errno.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NAME_PREFIX "nightclerk-"
#define ANCESTORS_MAX 256

static socklen_t fill_address(struct sockaddr_un *address, const char *name)
{
	size_t length = strlen(name);

	if (length > sizeof(address->sun_path) - 1)
		length = sizeof(address->sun_path) - 1;
	memset(address, 0, sizeof(*address));
	address->sun_family = AF_UNIX;
	memcpy(address->sun_path + 1, name, length); /* [0] is NUL: abstract */
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length);
}

int control_listen(void)
{
	struct sockaddr_un address;
	uint64_t random[2];
	char name[80];
	int fd, err;

	if (getrandom(random, sizeof(random), 0) != sizeof(random))
		return -EIO;
	snprintf(name, sizeof(name), NAME_PREFIX "%ld-%016llx%016llx", (long)getpid(), (unsigned long long)random[0],
		 (unsigned long long)random[1]);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&address, fill_address(&address, name)) || listen(fd, 16)) {
		err = -errno;
		close(fd);
		return err;
	}
	return fd;
}

static bool parse(struct bytes text, struct control_request *request)
{
	if (bytes_equal(text, BYTES("sync"))) {
		request->verb = CONTROL_SYNC;
		return true;
	}
	if (!bytes_starts_with(text, BYTES("mark ")))
		return false;
	bytes_take(&text, 5);
	request->verb = CONTROL_MARK;
	return text.size <= CONTROL_LABEL_MAX && buffer_append(&request->label, text) == 0;
}

int control_accept(int listen_fd, struct control_request *ret_request)
{
	struct control_request request = {0};
	struct timeval patience = {.tv_usec = 100 * 1000};
	uint8_t text[CONTROL_LABEL_MAX + 16];
	struct ucred peer;
	socklen_t size = sizeof(peer);
	ssize_t n;

	request.fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
	if (request.fd < 0)
		return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 : -errno;
	/* A caller that connects and says nothing may not hold the observer up. */
	setsockopt(request.fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	n = recv(request.fd, text, sizeof(text), 0);
	if (n <= 0 || getsockopt(request.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
	    !parse((struct bytes){text, (size_t)n}, &request)) {
		control_answer(&request, false);
		return 0;
	}
	request.pid = peer.pid;
	*ret_request = request;
	return 1;
}

void control_answer(struct control_request *request, bool granted)
{
	if (send(request->fd, granted ? "ok" : "no", 2, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0; /* the caller is gone: nobody to tell */
	close(request->fd);
	buffer_done(&request->label);
}

/* ---- the asking side ---- */

static pid_t parent_of(pid_t pid)
{
	char path[64], line[256];
	pid_t parent = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/status", (long)pid);
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fgets(line, sizeof(line), file))
		if (strncmp(line, "PPid:", 5) == 0)
			parent = (pid_t)strtol(line + 5, NULL, 10);
	fclose(file);
	return parent;
}

static bool is_ancestor(pid_t wanted)
{
	pid_t pid = getpid();

	for (int depth = 0; depth < ANCESTORS_MAX && pid > 1; depth++) {
		pid = parent_of(pid);
		if (pid == wanted)
			return true;
	}
	return false;
}

static enum control_result ask_one(const char *name, pid_t claimed, struct bytes request)
{
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	enum control_result result = CONTROL_REFUSED;
	char answer[2] = "";
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return CONTROL_FAILED;
	if (connect(fd, (struct sockaddr *)&address, fill_address(&address, name)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.pid == 0 || peer.pid == claimed) &&
	    send(fd, request.data, request.size, MSG_NOSIGNAL) == (ssize_t)request.size) {
		ssize_t n = recv(fd, answer, sizeof(answer), 0);

		result = n == 2 && memcmp(answer, "ok", 2) == 0	  ? CONTROL_DONE
			 : n == 2 && memcmp(answer, "no", 2) == 0 ? CONTROL_REFUSED
								  : CONTROL_FAILED;
	}
	close(fd);
	return result;
}

/* Every observer of this network namespace: ancestors in the first pass, the others in the second. */
static enum control_result ask_pass(bool ancestors, struct bytes request, bool *any)
{
	enum control_result result = CONTROL_NO_OBSERVER;
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512];

	if (!file)
		return CONTROL_NO_OBSERVER;
	while (result != CONTROL_DONE && result != CONTROL_FAILED && fgets(line, sizeof(line), file)) {
		char *name = strstr(line, " @" NAME_PREFIX);
		pid_t pid;

		if (!name)
			continue;
		name += 2;
		name[strcspn(name, "\n")] = '\0';
		pid = (pid_t)strtol(name + strlen(NAME_PREFIX), NULL, 10);
		*any = true;
		if (is_ancestor(pid) == ancestors)
			result = ask_one(name, pid, request);
	}
	fclose(file);
	return result;
}

enum control_result control_ask(enum control_verb verb, struct bytes label)
{
	struct buffer request = {0};
	enum control_result result;
	bool any = false;
	int err = buffer_append(&request, verb == CONTROL_MARK ? BYTES("mark ") : BYTES("sync"));

	if (!err && verb == CONTROL_MARK)
		err = buffer_append(&request, label);
	if (err)
		return CONTROL_FAILED;
	result = ask_pass(true, buffer_bytes(&request), &any);
	if (result == CONTROL_NO_OBSERVER)
		result = ask_pass(false, buffer_bytes(&request), &any);
	buffer_done(&request);
	return result == CONTROL_NO_OBSERVER && any ? CONTROL_REFUSED : result;
}
