/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Senders of tests/live/capture_probe.c that send through io_uring. Without
 * liburing-dev, and on kernels that do not know an operation, they say so.
 */
#ifndef CAPTURE_PROBE_URING_H
#define CAPTURE_PROBE_URING_H

#include "capture_probe.h"

#ifdef HAVE_LIBURING
#include <liburing.h>

static struct io_uring ring;

static void ring_new(unsigned int flags)
{
	int error = io_uring_queue_init(8, &ring, flags);

	if (error)
		cannot("io_uring: %s", strerror(-error));
}

/* The request that was prepared, to its end. What the kernel does not know is -EINVAL. */
static void ring_run(int expected)
{
	struct io_uring_cqe *cqe;
	bool more;

	must(io_uring_submit(&ring) == 1, "submit");
	do {
		int error = io_uring_wait_cqe(&ring, &cqe);

		must(!error, "io_uring_wait_cqe");
		if (cqe->res == -EINVAL || cqe->res == -EOPNOTSUPP)
			cannot("the kernel's io_uring has no such request");
		errno = -cqe->res;
		must((cqe->flags & IORING_CQE_F_NOTIF) || cqe->res == expected, "io_uring request");
		more = cqe->flags & IORING_CQE_F_MORE;
		io_uring_cqe_seen(&ring, cqe);
	} while (more);
}

static void uring_send(int fd, unsigned int ring_flags, unsigned int request_flags)
{
	static const size_t sizes[] = {300, MIB, 300};
	uint64_t at = 0;

	ring_new(ring_flags);
	for (int i = 0; i < 3; i++) {
		uint8_t *bytes = stream_make(at, sizes[i]);
		struct io_uring_sqe *sqe = io_uring_get_sqe(&ring);

		io_uring_prep_send(sqe, fd, bytes, sizes[i], MSG_WAITALL);
		io_uring_sqe_set_flags(sqe, request_flags);
		ring_run((int)sizes[i]);
		at += sizes[i];
	}
}

static void send_uring(int fd)
{
	uring_send(fd, 0, 0);
}

static void send_uring_worker(int fd)
{
	uring_send(fd, 0, IOSQE_ASYNC);
}

static void send_uring_sqpoll(int fd)
{
	uring_send(fd, IORING_SETUP_SQPOLL, 0);
}

static void send_uring_message(int fd)
{
	uint8_t *bytes = stream_make(0, 500);
	struct iovec parts[] = {{bytes, 200}, {bytes + 200, 300}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};

	ring_new(0);
	io_uring_prep_sendmsg(io_uring_get_sqe(&ring), fd, &message, 0);
	ring_run(500);
}

static void send_uring_zerocopy(int fd)
{
	uint8_t *bytes = stream_make(0, 100000);

	ring_new(0);
	io_uring_prep_send_zc(io_uring_get_sqe(&ring), fd, bytes, 100000, MSG_WAITALL, 0);
	ring_run(100000);
}

/* The stream's first bytes are not in pages, so that it is known to be HTTP where pages cannot be read. */
static uint8_t *fixed_buffer(int fd, size_t size)
{
	uint8_t *bytes = stream_make(300, size);
	struct iovec part = {bytes, size};

	ring_new(0);
	write_stream(fd, 0, 300);
	must(!io_uring_register_buffers(&ring, &part, 1), "io_uring_register_buffers");
	return bytes;
}

static void send_uring_zerocopy_fixed(int fd)
{
	uint8_t *bytes = fixed_buffer(fd, 100000);

	io_uring_prep_send_zc_fixed(io_uring_get_sqe(&ring), fd, bytes, 100000, MSG_WAITALL, 0, 0);
	ring_run(100000);
}

static void send_uring_write_fixed(int fd)
{
	uint8_t *bytes = fixed_buffer(fd, 10000);

	io_uring_prep_write_fixed(io_uring_get_sqe(&ring), fd, bytes, 10000, 0, 0);
	ring_run(10000);
}

#else

static void send_uring(int fd)
{
	(void)fd;
	cannot("built without liburing-dev");
}

#define send_uring_worker send_uring
#define send_uring_sqpoll send_uring
#define send_uring_message send_uring
#define send_uring_zerocopy send_uring
#define send_uring_zerocopy_fixed send_uring
#define send_uring_write_fixed send_uring

#endif

#endif
