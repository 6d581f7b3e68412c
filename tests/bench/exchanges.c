/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exchanges [OPTION=NUMBER...] FILE: a recording of HTTP exchanges, on each
 * connection in turn, for benchmarks that need no live traffic. The same
 * arguments give the same bytes.
 *
 *   count=N        exchanges (10,000)
 *   connections=N  (16)
 *   body=BYTES     of a request, about (300)
 *   equal=1        every body is the same
 *   orders=1       a body is a list of orders, members out of order and spaces between;
 *                  otherwise one long text behind three numbers, its own canonical form
 *   keyed=1        each request has credentials and an Idempotency-Key
 *   chunks=N       each answer is a stream of so many events, a send each
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>

#define SCENE_CONNECTIONS 10000
#include "recording.h"
#include "scene.h"

#define GAP_NS 4000 /* between two sends */
#define BODY_MAX (8 * 1024 * 1024)

static struct shape {
	unsigned long count, connections, body, equal, orders, keyed, chunks;
} shape = {.count = 10000, .connections = 16, .body = 300};

static struct scene scene;
static struct recording_writer *writer;
static char pad[BODY_MAX];

static void check(const char *what, int err)
{
	if (!err)
		return;
	fprintf(stderr, "exchanges: %s: %s\n", what, strerror(-err));
	exit(1);
}

static void write_input(const struct input *input)
{
	check("cannot record", recording_write(writer, input));
}

static void to_recording(struct scene *from, const struct wire_event *event, struct bytes payload)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = from->now_ns, .wire = {event, payload}};

	write_input(&input);
}

/* One send, in records as the kernel side cuts them. */
static void send_text(uint32_t c, int side, const char *text, size_t size)
{
	struct bytes rest = {(const uint8_t *)text, size};

	scene.now_ns += GAP_NS;
	while (rest.size)
		scene_send_piece(&scene, c, side, bytes_take(&rest, WIRE_PAYLOAD_MAX));
}

static void put_charge(FILE *to, unsigned long number)
{
	int size = fprintf(to, "{\"amount\":%lu,\"currency\":\"usd\",\"customer\":\"cus_%08lu\",\"description\":\"", number, number);
	int left = (int)shape.body - size - 2;

	fprintf(to, "%.*s\"}", left > 0 ? left : 0, pad);
}

static void put_orders(FILE *to, unsigned long number)
{
	fputs("[\n", to);
	for (unsigned long i = 0; i * 110 < shape.body; i++)
		fprintf(to, "%s  {\"sku\": \"part-%05lu\", \"quantity\": %lu, \"note\": \"caf\xc3\xa9, \\\"hot\\\"\", \"id\": %lu, \"price\": 12.50}",
			i ? ",\n" : "", i, i % 7 + 1, number * 100000 + i);
	fputs("\n]\n", to);
}

static void send_request(uint32_t c, unsigned long number)
{
	char *body = NULL, *request = NULL;
	size_t body_size = 0, size = 0;
	FILE *to = open_memstream(&body, &body_size);

	(shape.orders ? put_orders : put_charge)(to, shape.equal ? 1 : number);
	fclose(to);
	to = open_memstream(&request, &size);
	fputs("POST /v1/charges HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n", to);
	if (shape.keyed)
		fprintf(to, "User-Agent: python-requests/2.28.1\r\nAccept: */*\r\nAccept-Encoding: gzip, deflate\r\nConnection: keep-alive\r\n"
			"Authorization: Bearer sk_test_4eC39HqLyjWDarjtT1zdp7dc\r\nIdempotency-Key: 7c9e6679-7425-40de-944b-%012lx\r\n",
			number);
	fprintf(to, "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body_size);
	fwrite(body, 1, body_size, to);
	fclose(to);
	send_text(c, WIRE_BUILD_CLIENT, request, size);
	free(body);
	free(request);
}

static void send_answer(uint32_t c)
{
	static const char head[] =
		"HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Tue, 01 Dec 2026 10:00:00 GMT\r\n"
		"Content-Type: application/json\r\nContent-Length: 292\r\nConnection: keep-alive\r\n\r\n"
		"{\"id\":\"ch_123456789\",\"object\":\"charge\",\"amount\":2500,\"currency\":\"usd\",\"note\":\"";
	char text[1024];
	int size = snprintf(text, sizeof(text), "%s%.*s\"}", head, 292 - 78 - 2, pad);

	send_text(c, WIRE_BUILD_SERVER, text, (size_t)size);
}

static void send_stream(uint32_t c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
			  event[] = "2b\r\ndata: {\"choices\":[{\"delta\":\"word word\"}]}\n\n\r\n";

	send_text(c, WIRE_BUILD_SERVER, head, sizeof(head) - 1);
	for (unsigned long i = 0; i < shape.chunks; i++)
		send_text(c, WIRE_BUILD_SERVER, event, sizeof(event) - 1);
	send_text(c, WIRE_BUILD_SERVER, "0\r\n\r\n", 5);
}

static void finish(void)
{
	struct input input = {.kind = INPUT_COUNTERS};

	for (uint32_t c = 0; c < scene.connections; c++) {
		for (int side = 0; side < 2; side++)
			scene_close(&scene, c, side);
		for (int side = 0; side < 2; side++)
			scene_end_of(&scene, c, side);
	}
	input.now_ns = scene.now_ns;
	input.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = scene.accepted;
	write_input(&input);
	write_input(&(struct input){.kind = INPUT_DRAIN, .now_ns = scene.now_ns});
	write_input(&(struct input){.kind = INPUT_CLOSING, .now_ns = scene.now_ns});
	check("cannot write", recording_writer_free(writer));
}

/* "name=number" */
static bool read_option(const char *argument)
{
	const struct {
		const char *name;
		unsigned long *value, max;
	} options[] = {
		{"count=", &shape.count, 100000000}, {"connections=", &shape.connections, SCENE_CONNECTIONS},
		{"body=", &shape.body, BODY_MAX},    {"equal=", &shape.equal, 1},
		{"orders=", &shape.orders, 1},	     {"keyed=", &shape.keyed, 1},
		{"chunks=", &shape.chunks, 1000000},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		size_t name = strlen(options[i].name);

		if (strncmp(argument, options[i].name, name) == 0) {
			*options[i].value = strtoul(argument + name, NULL, 10);
			return *options[i].value <= options[i].max;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	bool good = argc > 1;
	FILE *file;

	for (int i = 1; i < argc - 1; i++)
		good &= read_option(argv[i]);
	if (!good || !shape.connections) {
		fprintf(stderr, "usage: exchanges [count=N] [connections=N] [body=BYTES] [equal=1] [orders=1] [keyed=1] [chunks=N] FILE\n");
		return 2;
	}
	memset(pad, 'x', sizeof(pad));
	scene_start(&scene);
	file = fopen(argv[argc - 1], "wbe");
	check("cannot write the file", file ? recording_writer_new(file, &scene.facts, &writer) : -errno);
	scene.feed = to_recording;
	for (uint32_t c = 0; c < shape.connections; c++)
		scene_connect(&scene, WIRE_BUILD_CLIENT_TGID);
	for (unsigned long i = 0; i < shape.count; i++) {
		uint32_t c = (uint32_t)(i % shape.connections);

		send_request(c, i + 1);
		(shape.chunks ? send_stream : send_answer)(c);
	}
	finish();
	return 0;
}
