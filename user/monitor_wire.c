/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message is a head and a body. SEQPACKET keeps them together (unix(7)); what
 * is longer than a chunk has a flag that says that more follows.
 */
#include "monitor_wire.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SEND_PATIENCE_S 2

struct head {
	uint32_t kind;
	int32_t result;
	uint32_t size; /* of the body behind it */
	uint32_t more; /* 1: the next message goes on with this one's body */
};

const char *monitor_kind_name(uint32_t kind)
{
	static const char *const names[MONITOR_KIND_END] = {
		[MONITOR_READY] = "READY",	 [MONITOR_CANARY_SEEN] = "CANARY_SEEN", [MONITOR_METRICS] = "METRICS",
		[MONITOR_CLOSED] = "CLOSED",	 [MONITOR_COUNTERS] = "COUNTERS",	[MONITOR_REFRESH] = "REFRESH",
		[MONITOR_LIVING] = "LIVING",	 [MONITOR_CGROUP] = "CGROUP",		[MONITOR_OPEN] = "OPEN",
		[MONITOR_ROTATE] = "ROTATE",	 [MONITOR_POLICY] = "POLICY",		[MONITOR_REOPEN] = "REOPEN",
		[MONITOR_FINISH] = "FINISH",
	};

	return kind < MONITOR_KIND_END ? names[kind] : NULL;
}

int monitor_wire_pair(struct monitor_wire *ret_monitor, struct monitor_wire *ret_collector)
{
	const struct timeval patience = {.tv_sec = SEND_PATIENCE_S};
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	*ret_monitor = (struct monitor_wire){.fd = ends[0], .with_fd = -1};
	*ret_collector = (struct monitor_wire){.fd = ends[1], .with_fd = -1};
	return 0;
}

void monitor_wire_done(struct monitor_wire *wire)
{
	if (wire->fd >= 0)
		close(wire->fd);
	if (wire->in_parts && wire->with_fd >= 0)
		close(wire->with_fd);
	wire->fd = wire->with_fd = -1;
	buffer_done(&wire->text);
}

/* ---- sending ---- */

static int send_one(int to, const struct head *head, const uint8_t *body, int fd)
{
	struct iovec parts[] = {{(void *)head, sizeof(*head)}, {(void *)body, head->size}};
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = head->size ? 2 : 1};
	ssize_t sent;

	if (fd >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	}
	do
		sent = sendmsg(to, &message, MSG_NOSIGNAL);
	while (sent < 0 && errno == EINTR);
	return sent < 0 ? -errno : 0;
}

int monitor_wire_send(struct monitor_wire *wire, const struct monitor_message *message)
{
	struct bytes rest = message->body;
	int fd = message->fd, err;

	if (rest.size > MONITOR_TEXT_MAX)
		return -EMSGSIZE;
	do {
		struct bytes part = bytes_take(&rest, MONITOR_CHUNK_BYTES);
		struct head head = {
			.kind = message->kind, .result = message->result, .size = (uint32_t)part.size, .more = rest.size > 0};

		err = send_one(wire->fd, &head, part.data, fd);
		fd = -1; /* with the first part */
	} while (!err && rest.size);
	return err;
}

/* ---- receiving ---- */

/* The one descriptor that came along, or -1; kernel: scm_detach_fds(), net/core/scm.c. */
static int take_descriptor(struct msghdr *message)
{
	int fd = -1;

	for (struct cmsghdr *control = CMSG_FIRSTHDR(message); control; control = CMSG_NXTHDR(message, control))
		if (control->cmsg_level == SOL_SOCKET && control->cmsg_type == SCM_RIGHTS && control->cmsg_len == CMSG_LEN(sizeof(int)))
			memcpy(&fd, CMSG_DATA(control), sizeof(fd));
	return fd;
}

/* One part behind what wire->text holds already. 1, 0 or -errno. */
static int receive_one(struct monitor_wire *wire, bool wait, struct head *ret_head, int *ret_fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec parts[2] = {{ret_head, sizeof(*ret_head)}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = &control, .msg_controllen = sizeof(control)};
	ssize_t size;

	if (buffer_reserve(&wire->text, MONITOR_CHUNK_BYTES))
		return -ENOMEM;
	parts[1] = (struct iovec){wire->text.data + wire->text.size, MONITOR_CHUNK_BYTES};
	do
		size = recvmsg(wire->fd, &message, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
	while (size < 0 && errno == EINTR);
	if (size < 0)
		return errno == EAGAIN ? 0 : -errno;
	if (size == 0)
		return -ECONNRESET;
	*ret_fd = take_descriptor(&message);
	if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || (size_t)size < sizeof(*ret_head) ||
	    ret_head->size != (size_t)size - sizeof(*ret_head) || ret_head->more > 1 || !monitor_kind_name(ret_head->kind)) {
		if (*ret_fd >= 0)
			close(*ret_fd);
		return -EPROTO;
	}
	wire->text.size += ret_head->size;
	return 1;
}

/* Begins a message, or goes on with one. 0, or -EPROTO: it is neither. */
static int take_part(struct monitor_wire *wire, const struct head *head, int fd)
{
	bool wrong = wire->in_parts && (head->kind != wire->kind || fd >= 0);

	if (wrong || wire->text.size > MONITOR_TEXT_MAX) {
		if (fd >= 0)
			close(fd);
		return -EPROTO;
	}
	if (!wire->in_parts) {
		wire->kind = head->kind;
		wire->result = head->result;
		wire->with_fd = fd;
	}
	wire->in_parts = head->more;
	return 0;
}

int monitor_wire_receive(struct monitor_wire *wire, bool wait, struct monitor_message *ret_message)
{
	struct head head = {0};
	int got, fd = -1;

	if (!wire->in_parts)
		buffer_clear(&wire->text);
	do {
		got = receive_one(wire, wait, &head, &fd);
		if (got > 0)
			got = take_part(wire, &head, fd) ? -EPROTO : 1;
	} while (got > 0 && wire->in_parts);
	if (got <= 0)
		return got;
	*ret_message = (struct monitor_message){
		.kind = (enum monitor_kind)wire->kind, .result = wire->result, .body = buffer_bytes(&wire->text), .fd = wire->with_fd};
	wire->with_fd = -1;
	return 1;
}

/* ---- bodies ---- */

bool monitor_open_is_valid(struct bytes body, struct monitor_open *ret_open)
{
	struct monitor_open open;
	size_t length;

	if (body.size != sizeof(open))
		return false;
	memcpy(&open, body.data, sizeof(open));
	length = strnlen(open.tenant, sizeof(open.tenant));
	if (length == 0 || length == sizeof(open.tenant) || open.file >= AUDIT_FILE_COUNT)
		return false;
	if (open.tenant[0] == '.' || memchr(open.tenant, '/', length)) /* "." and "..", and what is hidden */
		return false;
	*ret_open = open;
	return true;
}
