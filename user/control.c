/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One datagram each way over SOCK_SEQPACKET: "mark LABEL" or "sync", answered
 * by one word when it has been done. The observer's side waits for nobody: who
 * has connected and said nothing yet sits in callers[].
 */
#include "control.h"

#include <errno.h>
#include <sys/epoll.h>
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

/* ---- the observer's side ---- */

#define CALLERS_MAX 16 /* connected and silent; then the one that is silent longest goes */
#define SILENCE_NS (1000 * 1000 * 1000ULL)
#define DEAF_NS (100 * 1000 * 1000ULL) /* after a failed accept, that a knock alone does not keep us busy */

struct caller {
	int fd;
	pid_t pid;
	uint64_t since_ns;
};

struct control {
	int listen_fd;
	int epoll_fd; /* the listener and every caller */
	control_admits *admits;
	void *context;
	uint64_t refused;
	uint64_t deaf_until_ns; /* 0 = we hear */
	struct caller callers[CALLERS_MAX]; /* in order of arrival */
	size_t count;
};

static const struct {
	enum control_result result;
	const char *word;
} answers[] = {
	{CONTROL_DONE, "ok"},
	{CONTROL_REFUSED, "no"},
	{CONTROL_BUSY, "busy"},
	{CONTROL_UNWRITTEN, "unwritten"},
};

static int listen_at_a_name(void)
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

static int await(struct control *control, int fd, int operation)
{
	struct epoll_event event = {.events = EPOLLIN};

	return epoll_ctl(control->epoll_fd, operation, fd, &event) ? -errno : 0;
}

int control_open(control_admits *admits, void *context, struct control **ret_control)
{
	struct control *control = calloc(1, sizeof(*control));
	int err;

	if (!control)
		return -ENOMEM;
	*control = (struct control){.admits = admits, .context = context};
	control->listen_fd = listen_at_a_name();
	control->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	err = control->listen_fd < 0 ? control->listen_fd : control->epoll_fd < 0 ? -errno : 0;
	if (!err)
		err = await(control, control->listen_fd, EPOLL_CTL_ADD);
	if (err) {
		control_close(control);
		return err;
	}
	*ret_control = control;
	return 0;
}

int control_fd(const struct control *control)
{
	return control->epoll_fd;
}

uint64_t control_refused(const struct control *control)
{
	return control->refused;
}

/* What was said and not read would turn the answer into a reset: nothing more may come, and what came is taken. */
static void answer(int fd, enum control_result result)
{
	const char *word = "no";
	char unread;

	shutdown(fd, SHUT_RD);
	while (recv(fd, &unread, 1, MSG_DONTWAIT) > 0)
		;

	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (answers[i].result == result)
			word = answers[i].word;
	if (send(fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		errno = 0; /* the caller is gone: nobody to tell */
	close(fd);
}

static void remove_caller(struct control *control, size_t index)
{
	control->count--;
	memmove(control->callers + index, control->callers + index + 1,
		(control->count - index) * sizeof(control->callers[0]));
}

static void turn_away(struct control *control, size_t index)
{
	int fd = control->callers[index].fd;

	remove_caller(control, index);
	answer(fd, CONTROL_REFUSED);
}

void control_close(struct control *control)
{
	if (!control)
		return;
	while (control->count)
		turn_away(control, 0);
	if (control->listen_fd >= 0)
		close(control->listen_fd);
	if (control->epoll_fd >= 0)
		close(control->epoll_fd);
	free(control);
}

/* Takes in who knocks. 0 or -errno. */
static int take_callers(struct control *control, uint64_t now_ns)
{
	struct caller caller = {.since_ns = now_ns};
	struct ucred peer = {0};
	socklen_t size = sizeof(peer);

	while ((caller.fd = accept4(control->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
		if (getsockopt(caller.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ||
		    !control->admits(control->context, peer.pid)) {
			control->refused++;
			answer(caller.fd, CONTROL_REFUSED);
			continue;
		}
		if (control->count == CALLERS_MAX)
			turn_away(control, 0);
		caller.pid = peer.pid;
		if (await(control, caller.fd, EPOLL_CTL_ADD))
			answer(caller.fd, CONTROL_BUSY);
		else
			control->callers[control->count++] = caller;
	}
	return errno == EAGAIN || errno == ECONNABORTED || errno == EINTR ? 0 : -errno;
}

static int listen_on(struct control *control, uint64_t now_ns)
{
	int err;

	if (control->deaf_until_ns > now_ns)
		return 0;
	if (control->deaf_until_ns) {
		await(control, control->listen_fd, EPOLL_CTL_ADD);
		control->deaf_until_ns = 0;
	}
	err = take_callers(control, now_ns);
	if (err) { /* too many open files: whoever knocks still waits then */
		await(control, control->listen_fd, EPOLL_CTL_DEL);
		control->deaf_until_ns = now_ns + DEAF_NS;
	}
	return err;
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

int control_next(struct control *control, uint64_t now_ns, struct control_request *ret_request)
{
	uint8_t text[CONTROL_LABEL_MAX + 16];
	int err = listen_on(control, now_ns);

	for (size_t i = 0; i < control->count;) {
		struct caller *caller = &control->callers[i];
		struct control_request request = {.pid = caller->pid, .fd = caller->fd};
		ssize_t n = recv(caller->fd, text, sizeof(text), 0);

		if (n < 0 && errno == EAGAIN && now_ns < caller->since_ns + SILENCE_NS) {
			i++;
		} else if (n <= 0 || !parse((struct bytes){text, (size_t)n}, &request)) {
			turn_away(control, i);
		} else {
			epoll_ctl(control->epoll_fd, EPOLL_CTL_DEL, caller->fd, NULL);
			remove_caller(control, i);
			*ret_request = request;
			return 1;
		}
	}
	return err;
}

void control_answer(struct control_request *request, enum control_result result)
{
	answer(request->fd, result);
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

/* Our parent, its parent, and so on. */
struct ancestry {
	pid_t pid[ANCESTORS_MAX];
	size_t count;
};

static void find_ancestors(struct ancestry *ancestry)
{
	pid_t pid = getpid();

	ancestry->count = 0;
	while (ancestry->count < ANCESTORS_MAX && pid > 1) {
		pid = parent_of(pid);
		ancestry->pid[ancestry->count++] = pid;
	}
}

static bool is_ancestor(const struct ancestry *ancestry, pid_t wanted)
{
	for (size_t i = 0; i < ancestry->count; i++)
		if (ancestry->pid[i] == wanted)
			return true;
	return false;
}

static enum control_result result_of(struct bytes word)
{
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++)
		if (bytes_equal(word, bytes_of_string(answers[i].word)))
			return answers[i].result;
	return CONTROL_FAILED;
}

static enum control_result ask_one(const char *name, pid_t claimed, struct bytes request)
{
	struct sockaddr_un address;
	struct ucred peer;
	socklen_t size = sizeof(peer);
	enum control_result result = CONTROL_REFUSED;
	uint8_t word[16];
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return CONTROL_FAILED;
	if (connect(fd, (struct sockaddr *)&address, fill_address(&address, name)) == 0 &&
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && (peer.pid == 0 || peer.pid == claimed)) {
		ssize_t n;

		/* Who is refused may be so before it speaks: the answer is there all the same. */
		send(fd, request.data, request.size, MSG_NOSIGNAL);
		n = recv(fd, word, sizeof(word), 0);
		result = result_of((struct bytes){word, n > 0 ? (size_t)n : 0});
	}
	close(fd);
	return result;
}

/* The next name of an observer in /proc/net/unix, in line; NULL = no more. */
static char *next_name(FILE *file, char *line, size_t size, pid_t *ret_pid)
{
	while (fgets(line, (int)size, file)) {
		char *name = strstr(line, " @" NAME_PREFIX);

		if (!name)
			continue;
		name += 2;
		name[strcspn(name, "\n")] = '\0';
		*ret_pid = (pid_t)strtol(name + strlen(NAME_PREFIX), NULL, 10);
		return name;
	}
	return NULL;
}

/* Asks that ancestor; 0 = every observer that is none. One that refuses is no reason to stop. */
static enum control_result ask_those(pid_t ancestor, const struct ancestry *ancestry, struct bytes request, bool *any)
{
	enum control_result result = CONTROL_NO_OBSERVER;
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], *name;
	pid_t pid;

	if (!file)
		return CONTROL_NO_OBSERVER;
	while ((result == CONTROL_NO_OBSERVER || result == CONTROL_REFUSED) &&
	       (name = next_name(file, line, sizeof(line), &pid))) {
		*any = true;
		if (ancestor ? pid == ancestor : !is_ancestor(ancestry, pid))
			result = ask_one(name, pid, request);
	}
	fclose(file);
	return result;
}

/* Of runs inside one another the innermost answers: that is the one which the caller was started in. */
static enum control_result ask_all(struct bytes request, bool *any)
{
	enum control_result result = CONTROL_NO_OBSERVER;
	struct ancestry ancestry;

	find_ancestors(&ancestry);
	for (size_t i = 0; i < ancestry.count; i++) {
		enum control_result said = ask_those(ancestry.pid[i], &ancestry, request, any);

		if (said != CONTROL_NO_OBSERVER)
			result = said;
		if (said != CONTROL_NO_OBSERVER && said != CONTROL_REFUSED)
			return said;
		if (i == 0 && !*any)
			return CONTROL_NO_OBSERVER;
	}
	return result == CONTROL_NO_OBSERVER ? ask_those(0, &ancestry, request, any) : result;
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
	result = ask_all(buffer_bytes(&request), &any);
	buffer_done(&request);
	return result == CONTROL_NO_OBSERVER && any ? CONTROL_REFUSED : result;
}
