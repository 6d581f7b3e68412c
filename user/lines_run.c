/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written of a run and of its connections: start, holes, blind and
 * broken streams, marks, and the summary with its reconciliation.
 */
#include "line.h"

#include "lines.h"

static const char *const cause_names[WIRE_CAUSE_COUNT] = {
	[WIRE_CAUSE_NONE] = "none",	      [WIRE_CAUSE_RING_FULL] = "ring_full",
	[WIRE_CAUSE_FAULT] = "fault",	      [WIRE_CAUSE_PAGES] = "pages",
	[WIRE_CAUSE_TRUNCATED] = "truncated", [WIRE_CAUSE_MISSED] = "missed",
	[WIRE_CAUSE_FASTOPEN] = "fastopen",   [WIRE_CAUSE_URGENT] = "urgent",
	[WIRE_CAUSE_MUTED] = "muted",	      [WIRE_CAUSE_SHARE] = "share",
};

const char *cause_name(enum wire_cause cause)
{
	return cause < WIRE_CAUSE_COUNT ? cause_names[cause] : NULL;
}

int event_start(const struct line_context *context, const struct judge_options *options,
		struct buffer *out)
{
	const struct run_facts *run = context->run;
	char options_text[1024];
	bool has_canary = run->canary[0] && strcmp(run->canary, "none") != 0;
	struct line line;
	int err = judge_options_to_json(options, options_text, sizeof(options_text));

	if (err)
		return err;
	line_open_event(&line, context, "start", run->start_ns, out);
	line_text(&line, "version", run->version);
	line_unsigned(&line, "schema", LEDGER_SCHEMA);
	line_text(&line, "door", run->door);
	line_text(&line, "kernel", run->kernel);
	line_hex(&line, "boot_id", run->boot_id, sizeof(run->boot_id));
	line_text(&line, "scope", run->scope);
	if (context->policy_sha)
		line_hex(&line, "policy", context->policy_sha->byte, DIGEST_BYTES);
	else
		line_text(&line, "policy", NULL);
	json_key(&line.json, "options");
	json_raw(&line.json, bytes_of_string(options_text));
	line_text(&line, "canary", has_canary ? run->canary : NULL);
	line_tenant(&line);
	return line_close(&line);
}

/* ---- connections ---- */

/* "127.0.0.1:51234 -> 127.0.0.1:8765", the client first. */
static void line_connection(struct line *line, const struct connection_name *connection)
{
	char client[ENDPOINT_TEXT_MAX], server[ENDPOINT_TEXT_MAX];
	char text[2 * ENDPOINT_TEXT_MAX + 4];

	endpoint_text(&connection->client, client);
	endpoint_text(&connection->server, server);
	snprintf(text, sizeof(text), "%s -> %s", client, server);
	line_text(line, "connection", text);
}

static void line_side(struct line *line, bool from_client)
{
	line_text(line, "side", from_client ? "client" : "server");
}

static void line_pid_and_comm(struct line *line, const struct process *process)
{
	if (process->tgid) {
		line_unsigned(line, "pid", process->tgid);
		line_text(line, "comm", process->comm);
	} else {
		line_missing(line, "pid", true);
		line_missing(line, "comm", true);
	}
}

int event_hole(const struct line_context *context, const struct connection_name *connection,
	       bool from_client, uint64_t offset, uint64_t length, enum wire_cause cause,
	       uint64_t now_ns, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "hole", now_ns, out);
	line_side(&line, from_client);
	line_connection(&line, connection);
	line_unsigned(&line, "offset", offset);
	line_unsigned(&line, "length", length);
	line_text(&line, "cause", cause_name(cause));
	return line_close(&line);
}

/* Null where nobody counted them. */
static void line_seen_bytes(struct line *line, const char *key, enum blind_kind kind, uint64_t bytes)
{
	json_key(&line->json, key);
	if (kind == BLIND_NETNS)
		json_null(&line->json);
	else
		json_unsigned(&line->json, bytes);
}

/* The schema calls this field `kind`, which is the event's own first key. */
int event_blind(const struct line_context *context, const struct connection_name *connection,
		enum blind_kind kind, uint64_t bytes_out, uint64_t bytes_in, uint64_t now_ns,
		struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "blind", now_ns, out);
	line_connection(&line, connection);
	line_text(&line, "blind_kind", blind_kind_name(kind));
	line_pid_and_comm(&line, &connection->process);
	line_seen_bytes(&line, "bytes_out", kind, bytes_out);
	line_seen_bytes(&line, "bytes_in", kind, bytes_in);
	return line_close(&line);
}

int event_broken(const struct line_context *context, const struct connection_name *connection,
		 bool from_client, uint64_t offset, const char *reason, uint64_t now_ns,
		 struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "broken", now_ns, out);
	line_connection(&line, connection);
	line_side(&line, from_client);
	line_unsigned(&line, "offset", offset);
	line_text(&line, "reason", reason);
	return line_close(&line);
}

int event_off_loopback(const struct line_context *context, const struct connection_name *connection,
		       bool refused, uint64_t now_ns, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "off_loopback", now_ns, out);
	line_pid_and_comm(&line, &connection->process);
	line_endpoint(&line, "dst", &connection->server);
	line_bool(&line, "refused", refused);
	return line_close(&line);
}

int event_gap(const struct line_context *context, const struct run_gap *gap, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "gap", gap->until_ns, out);
	line_text(&line, "cause", gap->cause);
	line_time(&line, "from", gap->from_ns);
	line_unsigned(&line, "ms", (gap->until_ns - gap->from_ns) / 1000000);
	return line_close(&line);
}

int event_mark(const struct line_context *context, struct bytes label, uint64_t now_ns,
	       struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "mark", now_ns, out);
	line_string(&line, "label", label);
	return line_close(&line);
}

/* ---- summary ---- */

/* command command_status exit */
static void how_it_ended(struct line *line, const struct summary *summary)
{
	const struct run_facts *run = line->context->run;

	json_key(&line->json, "command");
	if (run->command[0]) {
		json_object_open(&line->json);
		line_text(line, "name", run->command);
		json_key(&line->json, "arguments");
		json_signed(&line->json, run->argument_count);
		json_object_close(&line->json);
	} else {
		json_null(&line->json);
	}
	json_key(&line->json, "command_status");
	if (summary->closing->command_status < 0)
		json_null(&line->json);
	else
		json_signed(&line->json, summary->closing->command_status);
	json_key(&line->json, "exit");
	json_signed(&line->json, summary->exit_status);
}

/* requests mutating findings attempts bytes */
static void what_was_seen(struct line *line, const struct summary *summary)
{
	line_unsigned(line, "requests", summary->requests);
	line_unsigned(line, "mutating", summary->mutating);
	json_key(&line->json, "findings");
	json_object_open(&line->json);
	for (int finding = FINDING_NONE + 1; finding < FINDING_COUNT; finding++)
		if (summary->findings[finding])
			line_unsigned(line, finding_name((enum finding)finding),
				      summary->findings[finding]);
	json_object_close(&line->json);
	line_unsigned(line, "attempts", summary->attempts);
	json_key(&line->json, "bytes");
	json_object_open(&line->json);
	line_unsigned(line, "accepted", summary->accepted_bytes);
	line_unsigned(line, "in_messages", summary->message_bytes);
	line_unsigned(line, "in_holes", summary->hole_bytes);
	line_unsigned(line, "in_blind", summary->blind_bytes);
	json_object_close(&line->json);
}

/* Bytes by cause, then what is counted in other units. Muting a stream is no loss. */
static void line_drops(struct line *line, const struct counters *counters)
{
	static const struct {
		enum wire_counter counter;
		const char *name;
	} others[] = {
		{WIRE_COUNTER_STALE_CALLS, "stale_calls"},
		{WIRE_COUNTER_NO_FLOW, "no_flow"},
		{WIRE_COUNTER_NO_CALL, "no_call"},
		{WIRE_COUNTER_LIFECYCLE_LOST, "lifecycle_records"},
	};

	json_key(&line->json, "drops");
	json_object_open(&line->json);
	for (int cause = WIRE_CAUSE_NONE + 1; cause < WIRE_CAUSE_COUNT; cause++) {
		uint64_t bytes = counters->value[WIRE_COUNTER_LOST_BYTES + cause];

		if (bytes && cause != WIRE_CAUSE_MUTED)
			line_unsigned(line, cause_name((enum wire_cause)cause), bytes);
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (counters->value[others[i].counter])
			line_unsigned(line, others[i].name, counters->value[others[i].counter]);
	json_object_close(&line->json);
}

/* ring survivors wall_ms cpu_ms */
static void what_it_took(struct line *line, const struct closing *closing)
{
	json_key(&line->json, "ring");
	json_object_open(&line->json);
	line_unsigned(line, "size", closing->ring_size_bytes);
	line_unsigned(line, "peak", closing->ring_peak_bytes);
	json_object_close(&line->json);
	json_key(&line->json, "survivors");
	json_array_open(&line->json);
	for (uint32_t i = 0; i < closing->survivor_count && i < CLOSING_SURVIVORS_MAX; i++) {
		json_object_open(&line->json);
		line_unsigned(line, "pid", closing->survivors[i].pid);
		line_text(line, "comm", closing->survivors[i].comm);
		json_object_close(&line->json);
	}
	json_array_close(&line->json);
	line_unsigned(line, "wall_ms", closing->wall_ms);
	line_unsigned(line, "cpu_ms", closing->cpu_ms);
}

static void streams_by_kind(struct line *line, const uint64_t *streams)
{
	json_object_open(&line->json);
	for (int kind = 0; kind < BLIND_COUNT; kind++)
		if (streams[kind])
			line_unsigned(line, blind_kind_name((enum blind_kind)kind), streams[kind]);
	json_object_close(&line->json);
}

static void blind_by_process(struct line *line, const struct blind_processes *processes)
{
	const struct blind_process *row;

	json_array_open(&line->json);
	for (size_t n = 0; processes && (row = blind_row(processes, n)); n++) {
		json_object_open(&line->json);
		line_pid_and_comm(line, &row->process);
		json_key(&line->json, "streams");
		streams_by_kind(line, row->streams);
		line_unsigned(line, "bytes_out", row->bytes_out);
		line_unsigned(line, "bytes_in", row->bytes_in);
		json_object_close(&line->json);
	}
	json_array_close(&line->json);
}

/* incomplete blind blind_by broken evicted survivor_count usage_refused */
static void what_could_not_be_seen(struct line *line, const struct summary *summary)
{
	json_key(&line->json, "incomplete");
	json_array_open(&line->json);
	for (size_t i = 0; i < summary->incomplete_count; i++)
		json_text(&line->json, summary->incomplete[i]);
	json_array_close(&line->json);
	json_key(&line->json, "blind");
	streams_by_kind(line, summary->blind_streams);
	json_key(&line->json, "blind_by");
	blind_by_process(line, summary->blind_processes);
	line_unsigned(line, "broken", summary->broken_streams);
	line_unsigned(line, "evicted", summary->evicted);
	line_unsigned(line, "survivor_count", summary->closing->survivor_count);
	line_unsigned(line, "usage_refused", summary->usage_refused);
}

/* store: rows written and rows lost; null where the run had none */
static void line_store(struct line *line, const struct closing *closing)
{
	if (!closing->has_store) {
		line_missing(line, "store", false);
		return;
	}
	json_key(&line->json, "store");
	json_object_open(&line->json);
	line_unsigned(line, "rows", closing->store_rows);
	line_unsigned(line, "lost", closing->store_lost);
	json_object_close(&line->json);
}

int event_summary(const struct line_context *context, const struct summary *summary,
		  struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "summary", summary->now_ns, out);
	how_it_ended(&line, summary);
	what_was_seen(&line, summary);
	line_drops(&line, summary->counters);
	line_unsigned(&line, "recursion_misses", summary->counters->recursion_misses);
	what_it_took(&line, summary->closing);
	what_could_not_be_seen(&line, summary);
	line_store(&line, summary->closing);
	line_tenant(&line);
	return line_close(&line);
}
