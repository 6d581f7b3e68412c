/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both ends of an HTTP connection over loopback, for `make bench`.
 *
 * talk sequential N: N times a POST of 300 bytes, each answered before the
 *     next; prints the median and the 99th percentile in microseconds.
 * talk stream N: N answers of 1,000 server-sent events, each a chunk and a send
 *     of its own; prints streams per second.
 */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS 1000
#define BODY_BYTES 300

static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{\"ok\":true}";
static const char stream_head[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
static const char event[] = "2b\r\ndata: {\"choices\":[{\"delta\":\"word word\"}]}\n\n\r\n";
static const char stream_end[] = "0\r\n\r\n";

static bool streams;
static int listener;

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t n = send(fd, data, size, MSG_NOSIGNAL);

		if (n < 0)
			fail("send");
		data += n;
		size -= (size_t)n;
	}
}

static void answer_one(int fd)
{
	if (!streams) {
		send_all(fd, answer, sizeof(answer) - 1);
		return;
	}
	send_all(fd, stream_head, sizeof(stream_head) - 1);
	for (int i = 0; i < EVENTS; i++)
		send_all(fd, event, sizeof(event) - 1);
	send_all(fd, stream_end, sizeof(stream_end) - 1);
}

/* One connection; every request is one segment, as our client sends it. */
static void *serve(void *unused)
{
	char request[4096];
	int fd = accept(listener, NULL, NULL), one = 1;

	if (fd < 0)
		fail("accept");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (recv(fd, request, sizeof(request), 0) > 0)
		answer_one(fd);
	close(fd);
	return unused;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

static size_t request_text(char *text, size_t size, uint64_t number)
{
	char body[BODY_BYTES + 1];
	int n = snprintf(body, sizeof(body), "{\"amount\":%llu,\"note\":\"%0*d\"}", (unsigned long long)number, 200, 0);

	n = snprintf(text, size,
		     "POST /v1/charges HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		     "Content-Length: %d\r\n\r\n%s", n, body);
	return (size_t)n;
}

static void receive_answer(int fd)
{
	static char data[65536];
	char last[sizeof(stream_end)] = "";
	ssize_t n;

	do {
		n = recv(fd, data, sizeof(data), 0);
		if (n <= 0)
			fail("recv");
		for (ssize_t i = n > 5 ? n - 5 : 0; i < n; i++) {
			memmove(last, last + 1, 4);
			last[4] = data[i];
		}
	} while (streams && memcmp(last, stream_end, 5) != 0);
}

static int by_size(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void talk(int fd, size_t count)
{
	uint64_t *took = calloc(count, sizeof(*took)), began = now_ns();
	char text[1024];

	if (!took)
		fail("calloc");
	for (size_t i = 0; i < count; i++) {
		size_t size = request_text(text, sizeof(text), i);
		uint64_t start = now_ns();

		send_all(fd, text, size);
		receive_answer(fd);
		took[i] = now_ns() - start;
	}
	began = now_ns() - began;
	qsort(took, count, sizeof(*took), by_size);
	if (streams)
		printf("%.1f\n", (double)count * 1e9 / (double)began);
	else
		printf("%.2f %.2f\n", (double)took[count / 2] / 1e3, (double)took[count * 99 / 100] / 1e3);
	free(took);
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(address);
	long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
	pthread_t server;
	int fd, one = 1;

	if (count <= 0 || (strcmp(argv[1], "sequential") && strcmp(argv[1], "stream"))) {
		fprintf(stderr, "usage: talk sequential|stream COUNT\n");
		return 2;
	}
	streams = !strcmp(argv[1], "stream");
	listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
	    getsockname(listener, (struct sockaddr *)&address, &size))
		fail("listen");
	if (pthread_create(&server, NULL, serve, NULL))
		fail("pthread_create");
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, size))
		fail("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	talk(fd, (size_t)count);
	close(fd);
	pthread_join(server, NULL);
	return 0;
}
