/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A request to fingerprint: POST http://127.0.0.1:8080/v1/charges with whatever
 * headers a test adds. Slices point at string literals and at the struct itself.
 */
#ifndef NIGHTCLERK_CALL_BUILD_H
#define NIGHTCLERK_CALL_BUILD_H

#include "call.h"

#define CALL_BUILD_FIELDS 16

struct call_build {
	struct http_field fields[CALL_BUILD_FIELDS];
	struct http_head head;
	struct call call;
};

static inline void call_build_init(struct call_build *build)
{
	memset(build, 0, sizeof(*build));
	build->head.side = HTTP_REQUEST;
	build->head.method = BYTES("POST");
	build->head.fields = build->fields;
	build->call.head = &build->head;
	build->call.netns = 4026531840;
	build->call.server.port = 8080;
	build->call.method = BYTES("POST");
	build->call.path = BYTES("/v1/charges");
	build->call.host = BYTES("127.0.0.1:8080");
	build->call.has_host = true;
	build->call.request_complete = true;
}

static inline void call_build_add(struct call_build *build, const char *name, const char *value)
{
	build->fields[build->head.field_count++] =
		(struct http_field){bytes_of_string(name), bytes_of_string(value)};
}

/* A body whose canonical text is known: nothing is made canonical here. */
static inline void call_build_body(struct call_build *build, enum canonical_kind kind,
				   const char *text)
{
	build->call.canon = kind;
	build->call.has_sha = digest_of(bytes_of_string(text), &build->call.sha) == 0;
	build->call.raw_sha = build->call.sha;
	build->call.has_raw_sha = build->call.has_sha;
}

#endif
