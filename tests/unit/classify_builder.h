/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call made by hand, for the tests of the classifier. Everything is borrowed
 * from the test's own texts.
 */
#ifndef NIGHTCLERK_CLASSIFY_BUILDER_H
#define NIGHTCLERK_CLASSIFY_BUILDER_H

#include "classify.h"

#define BUILT_FIELDS 8

struct built_call {
	struct call call;
	struct http_head head;
	struct http_field fields[BUILT_FIELDS];
};

/* "Name: value" lines, LF between them. */
static inline void build_fields(struct built_call *built, const char *fields)
{
	struct bytes rest = bytes_of_string(fields);

	while (rest.size && built->head.field_count < BUILT_FIELDS) {
		struct bytes line = bytes_take(&rest, bytes_find(rest, '\n'));
		struct http_field *field = &built->fields[built->head.field_count++];

		bytes_take(&rest, 1);
		field->name = bytes_take(&line, bytes_find(line, ':'));
		bytes_take(&line, 1);
		field->value = bytes_trim(line);
	}
}

/* body NULL = none. */
static inline struct call *build_call(struct built_call *built, const char *method,
				      const char *path, const char *fields, const char *body)
{
	memset(built, 0, sizeof(*built));
	built->head.side = HTTP_REQUEST;
	built->head.fields = built->fields;
	build_fields(built, fields);
	built->head.method = bytes_of_string(method);
	built->head.target = bytes_of_string(path);
	built->call.head = &built->head;
	built->call.method = built->head.method;
	built->call.path = built->head.target;
	built->call.content_type = BYTES("application/json");
	built->call.body = bytes_of_string(body);
	built->call.body_bytes = built->call.body.size;
	built->call.body_held = true;
	built->call.request_complete = true;
	built->call.canon = body && body[0] ? CANONICAL_JSON : CANONICAL_NONE;
	built->call.server.port = 8080;
	built->call.server.address[15] = 1;
	built->call.netns = 4026531840;
	return &built->call;
}

/* One rule and what it must say. */
struct class_row {
	const char *path;
	const char *body;
	enum call_class class;
	enum class_source source;
	const char *by;
	bool idempotent;
	bool known_write;
	const char *tool;
	const char *model;
	enum call_protocol protocol;
};

#define ROW(its_path, its_body, its_class, its_source, its_by, ...) \
	{.path = its_path, .body = its_body, .class = its_class, .source = its_source, \
	 .by = its_by, __VA_ARGS__}

static inline void assert_says(struct bytes bytes, const char *text)
{
	assert_int_equal(bytes.size, text ? strlen(text) : 0);
	if (bytes.size)
		assert_memory_equal(bytes.data, text, bytes.size);
}

static inline void assert_class(const struct call *call, const struct class_row *row)
{
	assert_string_equal(call->class_by, row->by);
	assert_int_equal(call->class, row->class);
	assert_int_equal(call->class_source, row->source);
	assert_int_equal(call->idempotent_hint, row->idempotent);
	assert_int_equal(call->known_write, row->known_write);
	assert_says(call->tool, row->tool);
	assert_says(call->model, row->model);
	assert_int_equal(call->protocol, row->protocol);
}

/* Each row as a POST. */
static inline void assert_posts(struct classifier *classifier, const struct class_row *rows,
				size_t count)
{
	struct built_call built;

	for (size_t i = 0; i < count; i++) {
		struct call *call = build_call(&built, "POST", rows[i].path, "", rows[i].body);

		classify_call(classifier, call);
		assert_class(call, &rows[i]);
	}
}

#define ROW_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

#endif
