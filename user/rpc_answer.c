/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages in whichever of the three shapes an answer has. An event that is
 * cut is lost, as for any reader of server-sent events.
 */
#include "rpc_answer.h"

#include <errno.h>

/* The next line without its end: LF, CRLF or CR. False when no whole line is left. */
static bool next_line(struct bytes *text, struct bytes *ret_line)
{
	size_t size = 0;

	while (size < text->size && text->data[size] != '\n' && text->data[size] != '\r')
		size++;
	if (size == text->size)
		return false;
	*ret_line = bytes_take(text, size);
	bytes_take(text, bytes_starts_with(*text, BYTES("\r\n")) ? 2 : 1);
	return true;
}

/* Data lines join with LF, an empty line ends an event. False at the end. */
static bool next_event(struct rpc_messages *messages)
{
	struct bytes line;

	buffer_clear(&messages->event);
	while (!messages->error && next_line(&messages->rest, &line)) {
		if (line.size == 0)
			return true;
		if (!bytes_starts_with(line, BYTES("data:")))
			continue;
		bytes_take(&line, 5);
		messages->error = buffer_append(&messages->event, line);
		if (!messages->error)
			messages->error = buffer_append_byte(&messages->event, '\n');
	}
	return false;
}

/* A value, or the start of a batch. True when *ret_message is set. */
static bool take_value(struct rpc_messages *messages, struct bytes value, struct bytes *ret_message)
{
	messages->in_batch = json_scan_is_array(value);
	if (messages->in_batch)
		json_scan_open(&messages->scan, value);
	else
		*ret_message = value;
	return !messages->in_batch;
}

bool rpc_messages_next(struct rpc_messages *messages, struct bytes *ret_message)
{
	struct bytes name, value;

	if (!messages->started) {
		messages->started = true;
		messages->in_events = !json_scan_whole(messages->rest, &value);
		if (!messages->in_events && take_value(messages, value, ret_message))
			return true;
	}
	for (;;) {
		if (messages->in_batch && json_scan_next(&messages->scan, &name, ret_message))
			return true;
		messages->in_batch = false;
		if (!messages->in_events || !next_event(messages))
			return false;
		if (json_scan_whole(buffer_bytes(&messages->event), &value) && take_value(messages, value, ret_message))
			return true;
	}
}

void rpc_messages_done(struct rpc_messages *messages)
{
	buffer_done(&messages->event);
}

/* ---- was it run ---- */

/* {"code": -32602, ...} */
static bool is_refusal(struct bytes error)
{
	static const char *const codes[] = {"-32700", "-32600", "-32601", "-32602"};
	struct bytes name, value;
	struct json_scan scan;
	bool refusal = false;

	json_scan_open(&scan, json_scan_is_object(error) ? error : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value))
		if (json_scan_says(name, "code"))
			for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
				refusal |= bytes_equal(value, bytes_of_string(codes[i]));
	return refusal && !scan.broken;
}

struct outcome {
	bool refused; /* an error that says so */
	bool other;   /* a result, or any other error */
};

/* Notifications and requests of the server have a method, and say nothing of the outcome. */
static void look_at(struct bytes message, struct outcome *outcome)
{
	struct bytes name, value, error = {0};
	struct json_scan scan;
	bool result = false, method = false;

	json_scan_open(&scan, json_scan_is_object(message) ? message : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value)) {
		result |= json_scan_says(name, "result") && !json_scan_is_null(value);
		method |= json_scan_says(name, "method");
		if (json_scan_says(name, "error") && !json_scan_is_null(value))
			error = value;
	}
	if (method && !result && !error.size)
		return;
	if (error.size && !result && !scan.broken && is_refusal(error))
		outcome->refused = true;
	else
		outcome->other = true;
}

int rpc_answer_says_not_run(struct bytes body)
{
	struct rpc_messages messages = {.rest = body};
	struct outcome outcome = {0};
	struct bytes message;
	int err;

	while (rpc_messages_next(&messages, &message))
		look_at(message, &outcome);
	err = messages.error;
	rpc_messages_done(&messages);
	return err ? err : outcome.refused && !outcome.other;
}
