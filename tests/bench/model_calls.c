/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model_calls ATTEMPTS KEYS FILE: a recording of so many model calls, of so
 * many prompts in turn, on 16 connections. One in five is answered by a 504.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "recording.h"
#include "scene.h"

#define CONNECTIONS 16
#define GAP_NS 20000 /* between two sends */

static struct recording_writer *writer;

static void write_input(const struct input *input)
{
	int err = recording_write(writer, input);

	if (err) {
		fprintf(stderr, "model_calls: %s\n", strerror(-err));
		exit(1);
	}
}

static void to_recording(struct scene *scene, const struct wire_event *event, struct bytes payload)
{
	struct input input = {.kind = INPUT_WIRE, .now_ns = scene->now_ns, .wire = {event, payload}};

	write_input(&input);
}

static void call(struct scene *scene, uint32_t c, unsigned long prompt, bool fails)
{
	static const char answer[] =
		"{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"model\":\"demo-large-1\",\"choices\":[{\"index\":0,"
		"\"message\":{\"role\":\"assistant\",\"content\":\"A bolt of grade 8.8 will do.\"},\"finish_reason\":\"stop\"}],"
		"\"usage\":{\"prompt_tokens\":812,\"completion_tokens\":41,\"total_tokens\":853}}";
	char body[256], request[512], response[1024];

	snprintf(body, sizeof(body),
		 "{\"model\":\"demo-large\",\"messages\":[{\"role\":\"user\",\"content\":\"Grade bolt number %lu.\"}],\"temperature\":0}",
		 prompt);
	snprintf(request, sizeof(request),
		 "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAuthorization: Bearer x\r\n"
		 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
		 strlen(body), body);
	if (fails)
		snprintf(response, sizeof(response), "HTTP/1.1 504 Gateway Timeout\r\nContent-Length: 2\r\n\r\n{}");
	else
		snprintf(response, sizeof(response),
			 "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s", strlen(answer), answer);
	scene->now_ns += GAP_NS;
	scene_send(scene, c, WIRE_BUILD_CLIENT, request);
	scene->now_ns += GAP_NS;
	scene_send(scene, c, WIRE_BUILD_SERVER, response);
}

static void finish(struct scene *scene)
{
	struct input input = {.kind = INPUT_COUNTERS, .now_ns = scene->now_ns};

	for (uint32_t c = 0; c < scene->connections; c++) {
		for (int side = 0; side < 2; side++)
			scene_close(scene, c, side);
		for (int side = 0; side < 2; side++)
			scene_end_of(scene, c, side);
	}
	input.counters.value[WIRE_COUNTER_ACCEPTED_BYTES] = scene->accepted;
	write_input(&input);
	write_input(&(struct input){.kind = INPUT_DRAIN, .now_ns = scene->now_ns});
	write_input(&(struct input){.kind = INPUT_CLOSING, .now_ns = scene->now_ns});
}

int main(int argc, char **argv)
{
	struct scene scene;
	unsigned long attempts, keys;
	FILE *file;

	if (argc != 4 || !(attempts = strtoul(argv[1], NULL, 10)) || !(keys = strtoul(argv[2], NULL, 10))) {
		fprintf(stderr, "usage: model_calls ATTEMPTS KEYS FILE\n");
		return 2;
	}
	file = fopen(argv[3], "wbe");
	scene_start(&scene);
	if (!file || recording_writer_new(file, &scene.facts, &writer)) {
		fprintf(stderr, "model_calls: cannot write %s\n", argv[3]);
		return 1;
	}
	scene.feed = to_recording;
	for (uint32_t i = 0; i < CONNECTIONS; i++)
		scene_connect(&scene, 4711 + i);
	for (unsigned long i = 0; i < attempts; i++)
		call(&scene, (uint32_t)(i % CONNECTIONS), i % keys, i / keys % 5 == 0);
	finish(&scene);
	return recording_writer_free(writer) ? 1 : 0;
}
