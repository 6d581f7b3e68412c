/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the processes of tests/live/capture_probe.c do with their sockets. They
 * share no code with the probe. Every byte that a sender sends is a function of
 * its place in the stream, so that a shifted or repeated byte cannot hide.
 */
#ifndef CAPTURE_PROBE_H
#define CAPTURE_PROBE_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024UL * 1024)
#define STREAM_MAX (72 * MIB)

/* What one end of the connection took, as its own process saw it. */
struct taken {
	uint64_t count;
	uint8_t bytes[STREAM_MAX];
};

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(9);
}

/* An emulated kernel: some counts are smaller. */
static bool slow;

/* Why the child could not send in its way: shared with it. */
static char *cannot_reason;
#define CANNOT_MAX 128
#define CANNOT_STATUS 77

__attribute__((format(printf, 1, 2))) static void cannot(const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(cannot_reason, CANNOT_MAX, format, arguments);
	va_end(arguments);
	_exit(CANNOT_STATUS);
}

static uint8_t stream_byte(uint64_t i)
{
	static const char start[] = "POST /probe HTTP/1.1\r\n";

	if (i < sizeof(start) - 1)
		return (uint8_t)start[i];
	return (uint8_t)((i * 2654435761U) >> 13 ^ i >> 16);
}

static uint8_t *stream_make(uint64_t from, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);

	must(bytes != NULL, "malloc");
	for (size_t i = 0; i < size; i++)
		bytes[i] = stream_byte(from + i);
	return bytes;
}

static void write_all(int fd, const uint8_t *bytes, size_t size)
{
	while (size) {
		ssize_t n = write(fd, bytes, size);

		must(n > 0, "write");
		bytes += n;
		size -= (size_t)n;
	}
}

static void write_stream(int fd, uint64_t from, size_t size)
{
	uint8_t *bytes = stream_make(from, size);

	write_all(fd, bytes, size);
	free(bytes);
}

static void take_until_end(int fd, struct taken *taken)
{
	ssize_t n;

	while ((n = read(fd, taken->bytes + taken->count, STREAM_MAX - taken->count)) > 0)
		taken->count += (uint64_t)n;
}

/* ---- senders: what the client does, from connected to about to close ---- */

static void send_write(int fd)
{
	write_stream(fd, 0, 300);
}

static void send_mebibyte(int fd)
{
	write_stream(fd, 0, MIB);
}

static void send_16_mebibytes(int fd)
{
	write_stream(fd, 0, 16 * MIB);
}

static void send_64_mebibytes(int fd)
{
	write_stream(fd, 0, 64 * MIB);
}

/* Nothing is accepted of the empty ones. */
static void send_small(int fd)
{
	uint8_t *bytes = stream_make(0, 200);
	struct iovec nothing = {bytes, 0};

	must(write(fd, bytes, 0) == 0 && send(fd, bytes, 0, 0) == 0, "empty");
	must(writev(fd, &nothing, 1) == 0, "empty writev");
	for (int i = 0; i < 100; i++)
		must(send(fd, bytes + i, 1, 0) == 1, "send");
	must(sendto(fd, bytes + 100, 100, 0, NULL, 0) == 100, "sendto");
}

static void send_more(int fd)
{
	uint8_t *bytes = stream_make(0, 400);

	must(send(fd, bytes, 100, MSG_MORE) == 100, "send");
	must(send(fd, bytes + 100, 300, 0) == 300, "send");
}

static void send_message(int fd)
{
	uint8_t *bytes = stream_make(0, 500);
	struct iovec parts[] = {{bytes, 200}, {bytes + 200, 0}, {bytes + 200, 300}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3};

	must(sendmsg(fd, &message, 0) == 500, "sendmsg");
}

static void send_messages(int fd)
{
	uint8_t *bytes = stream_make(0, 300);
	struct iovec parts[] = {{bytes, 100}, {bytes + 100, 200}};
	struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &parts[0], .msg_iovlen = 1}},
				      {.msg_hdr = {.msg_iov = &parts[1], .msg_iovlen = 1}}};

	must(sendmmsg(fd, messages, 2, 0) == 2, "sendmmsg");
}

/* 1024 pieces of 0 to 700 bytes, every fourth one empty. */
static void send_writev_1024(int fd)
{
	static struct iovec parts[1024];
	uint8_t *bytes = stream_make(0, 1024 * 700);
	size_t total = 0;

	for (int i = 0; i < 1024; i++) {
		parts[i].iov_base = bytes + total;
		parts[i].iov_len = i % 4 == 3 ? 0 : (size_t)(i * 37 % 700 + 1);
		total += parts[i].iov_len;
	}
	must(writev(fd, parts, 1024) == (ssize_t)total, "writev");
}

static void send_writev_every_count(int fd)
{
	static struct iovec parts[1024];
	uint64_t at = 0;

	for (int count = 1; count <= 1024; count += slow && count >= 64 ? 15 : 1) {
		uint8_t *bytes = stream_make(at, (size_t)count * 3);

		for (int i = 0; i < count; i++)
			parts[i] = (struct iovec){bytes + i * 3, 3};
		must(writev(fd, parts, count) == count * 3, "writev");
		at += (uint64_t)count * 3;
		free(bytes);
	}
}

/* Every size around the bounds of the record classes. */
static void send_class_bounds(int fd)
{
	static const size_t classes[] = {512, 1024, 2048, 4096, 16384, 65536, 131072};
	uint64_t at = 0;

	for (size_t c = 0; c < sizeof(classes) / sizeof(*classes); c++)
		for (size_t size = 2 * (classes[c] - 177); size <= 2 * (classes[c] - 175); size++) {
			write_stream(fd, at, size);
			at += size;
		}

	for (size_t c = 0; c < sizeof(classes) / sizeof(*classes); c++)
		for (size_t size = classes[c] - 178; size <= classes[c] - 174; size++) {
			write_stream(fd, at, size);
			at += size;
		}
	for (size_t c = 0; c < 6; c++)
		for (size_t size = classes[c] - 1; size <= classes[c] + 1; size++) {
			write_stream(fd, at, size);
			at += size;
		}
}

/* Partial writes and EAGAIN: by O_NONBLOCK and by MSG_DONTWAIT in turn. */
static void send_eagain(int fd)
{
	uint8_t *bytes = stream_make(0, 32 * MIB);
	int small = 4096;
	size_t at = 0, refused = 0;

	must(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), "SO_SNDBUF");
	while (at < MIB || !refused) { /* the receiver may be as fast as we are for long */
		size_t left = (at < MIB ? MIB : 32 * MIB) - at;
		ssize_t n;

		must(!fcntl(fd, F_SETFL, refused & 1 ? O_NONBLOCK : 0), "O_NONBLOCK");
		n = refused & 1 ? write(fd, bytes + at, left)
				: send(fd, bytes + at, left, MSG_DONTWAIT);

		if (n < 0) {
			struct pollfd waiting = {.fd = fd, .events = POLLOUT};

			must(errno == EAGAIN, "write");
			refused++;
			poll(&waiting, 1, -1);
			continue;
		}
		at += (size_t)n;
	}
}

/* A bad pointer: nothing is accepted, and the stream goes on behind it. */
static void send_fault_then_good(int fd)
{
	uint8_t *bytes = stream_make(0, 300);
	void *volatile bad = (void *)16;
	struct iovec parts[] = {{bytes, 100}, {bad, 100}};

	must(write(fd, bad, 100) < 0 && errno == EFAULT, "write of a bad pointer");
	must(writev(fd, parts, 2) < 0 && errno == EFAULT, "writev of a bad pointer");
	write_all(fd, bytes, 300);
}

static void send_zerocopy(int fd)
{
	uint8_t *bytes = stream_make(0, 100000);
	int on = 1;

	must(!setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &on, sizeof(on)), "SO_ZEROCOPY");
	must(send(fd, bytes, 100000, MSG_ZEROCOPY) == 100000, "send");
}

/* A file mapping that nobody has touched: at the start of the call it cannot be read. */
static void send_untouched_mapping(int fd)
{
	char path[] = "/tmp/capture-probe-XXXXXX";
	int file = mkstemp(path);
	void *map;

	must(file >= 0, "mkstemp");
	unlink(path);
	write_stream(file, 0, 20000);
	fsync(file);
	posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
	map = mmap(NULL, 20000, PROT_READ, MAP_SHARED, file, 0);
	must(map != MAP_FAILED, "mmap");
	must(write(fd, map, 20000) == 20000, "write");
}

static void send_file(int fd)
{
	char path[] = "/tmp/capture-probe-XXXXXX";
	int file = mkstemp(path);
	off_t at = 0;

	must(file >= 0, "mkstemp");
	unlink(path);
	write_stream(file, 100, 200000);
	write_stream(fd, 0, 100);
	while (at < 200000)
		must(sendfile(fd, file, &at, (size_t)(200000 - at)) > 0, "sendfile");
	write_stream(fd, 200100, 100);
}

static void send_splice(int fd)
{
	int ends[2];

	must(!pipe(ends), "pipe");
	write_stream(fd, 0, 100);
	write_stream(ends[1], 100, 3000);
	must(splice(ends[0], NULL, fd, NULL, 3000, 0) == 3000, "splice");
}

/* The pages are those of the sender's own memory. */
static void send_vmsplice(int fd)
{
	uint8_t *bytes = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec part = {bytes + 100, 16000};
	ssize_t n = 0, moved;
	int ends[2];

	must(bytes != MAP_FAILED && !pipe(ends), "pipe");
	for (size_t i = 0; i < 16000; i++)
		bytes[100 + i] = stream_byte(100 + i);
	write_stream(fd, 0, 100);
	must(vmsplice(ends[1], &part, 1, 0) == 16000, "vmsplice");
	for (; n < 16000; n += moved)
		must((moved = splice(ends[0], NULL, fd, NULL, (size_t)(16000 - n), SPLICE_F_MORE)) > 0,
		     "splice");
	write_stream(fd, 16100, 100);
}

/* A process that never had the socket gets it, and sends. */
static void send_passed(int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {};
	char byte = 'x';
	struct iovec part = {&byte, 1};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	int ends[2], status;
	pid_t child;

	must(!socketpair(AF_UNIX, SOCK_STREAM, 0, ends), "socketpair");
	child = fork();
	if (!child) {
		close(fd);
		must(recvmsg(ends[1], &message, 0) == 1, "recvmsg");
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
		write_stream(fd, 300, 500);
		_exit(0);
	}
	write_stream(fd, 0, 300);
	control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	must(sendmsg(ends[0], &message, 0) == 1, "sendmsg");
	must(waitpid(child, &status, 0) == child && !status, "child");
	write_stream(fd, 800, 200);
}

static void send_urgent(int fd)
{
	uint8_t *bytes = stream_make(0, 310);

	write_all(fd, bytes, 300);
	must(send(fd, bytes + 300, 10, MSG_OOB) == 10, "send");
	write_stream(fd, 310, 90);
}

static void send_urgent_inline(int fd)
{
	send_urgent(fd);
}

static void send_not_http(int fd)
{
	uint8_t bytes[100] = {0, 0, 0, 8, 4, 0xd2};

	for (int i = 0; i < 50; i++)
		write_all(fd, bytes, sizeof(bytes));
}

static void send_forked(int fd)
{
	int status;
	pid_t child;

	write_stream(fd, 0, 300);
	child = fork();
	if (!child) {
		write_stream(fd, 300, 500);
		_exit(0);
	}
	must(waitpid(child, &status, 0) == child && !status, "child");
	write_stream(fd, 800, 200);
}

/* ---- two writers on one socket: which byte goes where is the kernel's choice ---- */

static void *write_4_mebibytes(void *context)
{
	int fd = *(int *)context;
	uint8_t *bytes = stream_make(0, 4 * MIB);

	for (int i = 0; i < 4; i++)
		write_all(fd, bytes + (size_t)i * MIB, MIB);
	return NULL;
}

static void send_two_threads(int fd)
{
	int small = 65536;
	pthread_t threads[2];

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small));
	for (int i = 0; i < 2; i++)
		must(!pthread_create(&threads[i], NULL, write_4_mebibytes, &fd), "thread");
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

#endif
