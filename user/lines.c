/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is written of a call: its ledger line, its request and response event,
 * and its findings. The order of the calls below is the order of the schema.
 *
 * A field that could not be seen is "unknown" and `why` names the reason; null
 * means that it is known not to be there.
 */
#include "lines.h"

#include "evidence.h"
#include "line.h"
#include "secret.h"

/* A field that was not found may have been in the part of the head that is missing. */
static bool head_has_gaps(const struct call *call)
{
	return !call->head || call->head->cut || call->head->fields_dropped;
}

/* What is read out of the body may be missing with it. */
static bool body_has_gaps(const struct call *call)
{
	return !call->head || !call->request_complete || !call->has_raw_sha;
}

static uint64_t request_ns(const struct call *call)
{
	return call->sent_ns ? call->sent_ns : call->seen_ns ? call->seen_ns : call->first_ns;
}

/* ---- why ---- */

static int add_reason(struct buffer *reasons, const char *reason)
{
	int err = reasons->size ? buffer_append(reasons, BYTES("; ")) : 0;

	return err ? err : buffer_append(reasons, bytes_of_string(reason));
}

/* The reason for a null sha; NULL when there is one. */
static const char *reason_for_no_hash(const struct call *call)
{
	if (call->has_sha)
		return NULL;
	if (call->body_why)
		return call->body_why;
	if (!call->request_complete)
		return "the request never completed";
	return "body bytes are missing";
}

static void line_why(struct line *line, const struct call *call)
{
	const char *no_hash = reason_for_no_hash(call);
	struct buffer *reasons = &line->scratch;
	int err = 0;

	if (call->why)
		err = add_reason(reasons, call->why);
	if (!err && !call->head)
		err = add_reason(reasons, "its head was not seen");
	else if (!err && head_has_gaps(call))
		err = add_reason(reasons, "its head was too long to keep whole");
	if (!err && no_hash && (!call->why || strcmp(no_hash, call->why) != 0))
		err = add_reason(reasons, no_hash);
	if (!err && call->has_sha && !call->has_fingerprint)
		err = add_reason(reasons, "no fingerprint was made");
	if (!err && call->idem_state == IDEM_INVALID)
		err = add_reason(reasons, "the idempotency key is a list or was sent twice");
	if (!err && call->process.tgid == 0)
		err = add_reason(reasons, "its process was not seen");
	if (err || reasons->size)
		line_scratch(line, "why", err);
	else
		line_text(line, "why", NULL);
}

/* ---- the fields of a request ---- */

static void line_idem(struct line *line, const struct call *call)
{
	if (call->idem_state == IDEM_PRESENT)
		line_string(line, "idem", call->idem);
	else
		line_missing(line, "idem", call->idem_state != IDEM_ABSENT);
}

static void line_hash(struct line *line, const char *key, bool is_there,
		      const struct digest *digest)
{
	if (is_there)
		line_hex(line, key, digest->byte, DIGEST_BYTES);
	else
		line_text(line, key, NULL);
}

static void line_path(struct line *line, const struct call *call)
{
	if (call->head)
		line_scratch(
			line, "path",
			secret_mask_path(line->context->fingerprinter, call->path, &line->scratch));
	else
		line_missing(line, "path", true);
}

static void line_query(struct line *line, const struct call *call)
{
	if (call->has_query)
		line_scratch(line, "query",
			     secret_mask_query(line->context->fingerprinter, call->query,
					       &line->scratch));
	else
		line_missing(line, "query", !call->head);
}

/* path len sha idem method query host */
static void what_was_asked(struct line *line, const struct call *call)
{
	line_path(line, call);
	line_unsigned(line, "len", call->body_bytes);
	line_hash(line, "sha", call->has_sha, &call->sha);
	line_idem(line, call);
	if (call->head)
		line_string(line, "method", call->method);
	else
		line_missing(line, "method", true);
	line_query(line, call);
	if (call->has_host)
		line_string(line, "host", secret_strip_userinfo(call->host));
	else
		line_missing(line, "host", head_has_gaps(call));
}

/*
 * class class_by fingerprint prompt_fingerprint principal sha_raw canon canon_why idem_from
 * request_complete holes
 */
static void what_it_is_the_same_as(struct line *line, const struct call *call)
{
	if (call->head)
		line_text(line, "class", call_class_name(call->class));
	else
		line_missing(line, "class", true);
	line_text(line, "class_by", call->class_by);
	line_hash(line, "fingerprint", call->has_fingerprint, &call->fingerprint);
	line_hash(line, "prompt_fingerprint", call->has_prompt_fingerprint,
		  &call->prompt_fingerprint);
	if (call->has_principal)
		line_hex(line, "principal", call->principal.byte, 16);
	else
		line_missing(line, "principal", head_has_gaps(call));
	line_hash(line, "sha_raw", call->has_raw_sha, &call->raw_sha);
	if (call->has_sha)
		line_text(line, "canon", canonical_kind_name(call->canon));
	else
		line_missing(line, "canon", true);
	line_text(line, "canon_why", call->canon_why);
	line_text(line, "idem_from", call->idem_from);
	line_bool(line, "request_complete", call->request_complete);
	line_unsigned(line, "holes", call->request_holes);
}

/* pid tid ns_pid start_ns comm uid */
static void process_fields(struct line *line, const struct process *process)
{
	if (process->tgid) {
		line_unsigned(line, "pid", process->tgid);
		line_unsigned(line, "tid", process->tid);
		line_unsigned(line, "ns_pid", process->ns_tgid);
		line_unsigned(line, "start_ns", process->start_ns);
		line_text(line, "comm", process->comm);
		line_unsigned(line, "uid", process->uid);
		return;
	}
	line_missing(line, "pid", true);
	line_missing(line, "tid", true);
	line_missing(line, "ns_pid", true);
	line_missing(line, "start_ns", true);
	line_missing(line, "comm", true);
	line_missing(line, "uid", true);
}

static void line_string_or_null(struct line *line, const char *key, bool is_there,
				struct bytes text)
{
	if (is_there)
		line_string(line, key, text);
	else
		line_text(line, key, NULL);
}

/* mark pid tid ns_pid start_ns comm uid cgroup netns src dst server_pid server_comm */
static void who_asked_whom(struct line *line, const struct call *call)
{
	const struct line_context *context = line->context;

	line_string_or_null(line, "mark", context->has_mark, context->mark);
	process_fields(line, &call->process);
	line_string_or_null(line, "cgroup", context->cgroup_path.size, context->cgroup_path);
	line_unsigned(line, "netns", call->netns);
	line_endpoint(line, "src", &call->client);
	line_endpoint(line, "dst", &call->server);
	if (call->server_process.tgid) {
		line_unsigned(line, "server_pid", call->server_process.tgid);
		line_text(line, "server_comm", call->server_process.comm);
	} else {
		line_text(line, "server_pid", NULL);
		line_text(line, "server_comm", NULL);
	}
}

/* retry_hint tool model */
static void hints(struct line *line, const struct call *call)
{
	if (call->retry_hint.size) {
		json_key(&line->json, "retry_hint");
		json_raw(&line->json, call->retry_hint);
	} else {
		line_missing(line, "retry_hint", head_has_gaps(call));
	}
	if (call->tool.size)
		line_string(line, "tool", call->tool);
	else
		line_missing(line, "tool", body_has_gaps(call));
	if (call->model.size)
		line_string(line, "model", call->model);
	else
		line_missing(line, "model", body_has_gaps(call));
}

static void request_fields(struct line *line, const struct call *call, bool with_run)
{
	what_was_asked(line, call);
	line_hex(line, "id", call->id, CALL_ID_BYTES);
	if (with_run)
		line_text(line, "run", line->context->run->run_id);
	line_unsigned(line, "schema", LEDGER_SCHEMA);
	what_it_is_the_same_as(line, call);
	who_asked_whom(line, call);
	hints(line, call);
	line_time(line, "t_first", call->first_ns);
	line_bool(line, "escaped", line->json.escaped);
	line_why(line, call);
	line_tenant(line);
}

int ledger_line(const struct line_context *context, const struct call *call, struct buffer *out)
{
	struct line line;

	line_open(&line, context, out);
	line_time(&line, "t", request_ns(call));
	request_fields(&line, call, true);
	return line_close(&line);
}

int event_request(const struct line_context *context, const struct call *call, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "request", request_ns(call), out);
	request_fields(&line, call, false);
	return line_close(&line);
}

/* ---- the response ---- */

/* When the call was over: the answer's last byte, else the first close. */
static uint64_t response_ns(const struct call *call)
{
	uint64_t client = call->client_closed_ns, server = call->server_closed_ns;

	if (call->response_last_ns)
		return call->response_last_ns;
	if (client && server)
		return client < server ? client : server;
	if (client || server)
		return client ? client : server;
	return request_ns(call);
}

static void token_count(struct line *line, const char *key, int64_t count)
{
	json_key(&line->json, key);
	if (count < 0)
		json_null(&line->json);
	else
		json_signed(&line->json, count);
}

static void line_usage(struct line *line, const struct usage *usage)
{
	json_key(&line->json, "usage");
	if (!usage->seen) {
		json_null(&line->json);
		return;
	}
	json_object_open(&line->json);
	token_count(line, "input_tokens", usage->input_tokens);
	token_count(line, "output_tokens", usage->output_tokens);
	token_count(line, "cached_tokens", usage->cached_tokens);
	token_count(line, "cache_write_tokens", usage->cache_write_tokens);
	token_count(line, "reasoning_tokens", usage->reasoning_tokens);
	line_bool(line, "final", usage->final);
	json_object_close(&line->json);
}

/* status http.response.body.size response_complete ended t_first ms */
static void what_was_answered(struct line *line, const struct call *call)
{
	bool unseen = call->undecidable && call->status == 0;

	if (call->status) {
		line_unsigned(line, "status", call->status);
		line_unsigned(line, "http.response.body.size", call->response_body_bytes);
	} else {
		line_missing(line, "status", unseen);
		line_missing(line, "http.response.body.size", unseen);
	}
	line_bool(line, "response_complete", call->response_complete);
	line_text(line, "ended", unseen ? "unknown" : call_ended_name(call->ended));
	if (!call->response_first_ns) {
		line_missing(line, "t_first", unseen);
		line_missing(line, "ms", unseen);
		return;
	}
	line_time(line, "t_first", call->response_first_ns);
	json_key(&line->json, "ms");
	json_milliseconds(&line->json, (int64_t)(call->response_last_ns - request_ns(call)));
}

static uint64_t closed_ns(const struct call *call)
{
	switch (call->closed_first) {
	case CLOSER_CLIENT:
		return call->client_closed_ns;
	case CLOSER_SERVER:
		return call->server_closed_ns;
	case CLOSER_NOBODY:
		break;
	}
	return 0;
}

/* delivered delivered_bytes closed_first t_closed request_read */
static void what_was_read(struct line *line, const struct call *call)
{
	static const char *const closers[] = {
		[CLOSER_CLIENT] = "client", [CLOSER_SERVER] = "server"};

	line_text(line, "delivered", call_delivered_name(call->delivered));
	if (call->delivered == DELIVERED_UNKNOWN)
		line_text(line, "delivered_bytes", NULL);
	else
		line_unsigned(line, "delivered_bytes", call->delivered_bytes);
	line_text(line, "closed_first", closers[call->closed_first]);
	if (closed_ns(call))
		line_time(line, "t_closed", closed_ns(call));
	else
		line_text(line, "t_closed", NULL);
	line_text(line, "request_read", !call->server_read_known ? "unknown" : call->server_read_all ? "all" : "part");
}

/* usage answer_complete finish_reason response_model response_id usage_refused model_key */
static void what_the_model_said(struct line *line, const struct call *call)
{
	line_usage(line, &call->usage);
	if (call->answer_complete || call->answer_unfinished)
		line_bool(line, "answer_complete", call->answer_complete);
	else
		line_text(line, "answer_complete", NULL);
	line_string_or_null(line, "finish_reason", call->finish_reason.size, call->finish_reason);
	line_string_or_null(line, "response_model", call->response_model.size, call->response_model);
	line_string_or_null(line, "response_id", call->response_id.size, call->response_id);
	line_unsigned(line, "usage_refused", call->usage_refused);
	line_hash(line, "model_key", call->has_model_key, &call->model_key);
}

int event_response(const struct line_context *context, const struct call *call, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "response", response_ns(call), out);
	line_hex(&line, "of", call->id, CALL_ID_BYTES);
	what_was_answered(&line, call);
	what_was_read(&line, call);
	if (call->retry_after_s < 0)
		line_text(&line, "retry_after", NULL);
	else
		line_unsigned(&line, "retry_after", (uint64_t)call->retry_after_s);
	line_bool(&line, "replayed", call->replayed);
	what_the_model_said(&line, call);
	return line_close(&line);
}

/* ---- findings ---- */

/* "client_gave_up/no_key: table"; model calls do not use the table. */
static void line_rule(struct line *line, const struct judgement *judgement)
{
	const struct verdict *verdict = &judgement->verdict;
	int err = 0;

	if (judgement->later_facts.class != CLASS_LLM) {
		err = buffer_append(&line->scratch,
				    bytes_of_string(finding_row_name(verdict->row)));
		if (!err)
			err = buffer_append_byte(&line->scratch, '/');
		if (!err)
			err = buffer_append(&line->scratch,
					    bytes_of_string(finding_column_name(verdict->column)));
		if (!err && verdict->rule)
			err = buffer_append(&line->scratch, BYTES(": "));
	}
	if (!err)
		err = buffer_append(&line->scratch, bytes_of_string(verdict->rule));
	line_scratch(line, "rule", err);
}

/* finding severity of earlier attempt attempts */
static void finding_identity(struct line *line, const struct judgement *judgement)
{
	line_text(line, "finding", finding_name(judgement->verdict.finding));
	line_text(line, "severity", severity_name(judgement->verdict.severity));
	line_hex(line, "of", judgement->call_id, CALL_ID_BYTES);
	line_hex(line, "earlier", judgement->earlier_id, CALL_ID_BYTES);
	line_unsigned(line, "attempt", judgement->attempt);
	line_unsigned(line, "attempts", judgement->attempts);
}

/* "equal except nonce" */
static void line_masked(struct line *line, const struct judgement *judgement)
{
	int err = 0;

	if (!judgement->equal_except) {
		line_text(line, "masked", NULL);
		return;
	}
	err = buffer_append(&line->scratch, BYTES("equal except "));
	if (!err)
		err = buffer_append(&line->scratch, bytes_of_string(judgement->equal_except));
	line_scratch(line, "masked", err);
}

int event_finding(const struct line_context *context, const struct judgement *judgement,
		  uint64_t now_ns, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "finding", now_ns, out);
	finding_identity(&line, judgement);
	line_bool(&line, "cross_process", judgement->verdict.cross_process);
	line_masked(&line, judgement);
	line_rule(&line, judgement);
	line_scratch(&line, "text", finding_evidence(judgement, &line.scratch));
	line_text(&line, "next", finding_next_step(judgement->verdict.finding));
	return line_close(&line);
}

/* "dup_after_timeout high", "undecidable", "none" */
static void line_verdict(struct line *line, const char *key, const struct verdict *verdict)
{
	int err = buffer_append(&line->scratch, bytes_of_string(finding_name(verdict->finding)));

	if (!err && verdict->finding != FINDING_NONE && verdict->severity != SEVERITY_NULL) {
		err = buffer_append_byte(&line->scratch, ' ');
		if (!err)
			err = buffer_append(&line->scratch,
					    bytes_of_string(severity_name(verdict->severity)));
	}
	line_scratch(line, key, err);
}

int event_upgrade(const struct line_context *context, const struct judgement *judgement,
		  uint64_t now_ns, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "upgrade", now_ns, out);
	finding_identity(&line, judgement);
	line_verdict(&line, "from", &judgement->before);
	line_verdict(&line, "to", &judgement->verdict);
	line_scratch(&line, "because", finding_because(judgement, &line.scratch));
	return line_close(&line);
}

int event_call_finding(const struct line_context *context, const struct call *call,
		       enum finding finding, uint64_t now_ns, struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "finding", now_ns, out);
	line_text(&line, "finding", finding_name(finding));
	line_text(&line, "severity", severity_name(SEVERITY_INFO));
	line_hex(&line, "of", call->id, CALL_ID_BYTES);
	line_text(&line, "earlier", NULL);
	line_text(&line, "attempt", NULL);
	line_text(&line, "attempts", NULL);
	line_bool(&line, "cross_process", false);
	line_text(&line, "masked", NULL);
	line_text(&line, "rule", "call");
	line_scratch(&line, "text", call_evidence(call, finding, &line.scratch));
	line_text(&line, "next", finding_next_step(finding));
	return line_close(&line);
}

/* ---- hops ---- */

int event_hop(const struct line_context *context, const struct hop *hop, uint64_t now_ns,
	      struct buffer *out)
{
	struct line line;

	line_open_event(&line, context, "hop", now_ns, out);
	line_hex(&line, "of", hop->call_id, CALL_ID_BYTES);
	line_hex(&line, "parent", hop->parent_id, CALL_ID_BYTES);
	return line_close(&line);
}
