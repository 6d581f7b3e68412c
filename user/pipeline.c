/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wire event -> stream -> message -> call -> canonical -> fingerprint ->
 * finding -> ledger, events, alert.
 *
 * connections.c makes calls out of wire events; this page takes each call
 * through the rest of the house, keeps the sums of the run and says at the end
 * whether the gate holds.
 */
#include "pipeline.h"
#include "call_body.h"
#include "call_line.h"
#include "classify.h"
#include "gate.h"
#include "hops.h"
#include "junit.h"
#include "model_key.h"
#include "profile.h"
#include "refusals.h"
#include "screen_model.h"
#include "wall_time.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

#define UNSEEN_TOOLS_MAX 16

struct cgroup {
	uint64_t id;
	struct buffer path;
	UT_hash_handle hh;
};

struct pipeline {
	const struct run_facts *run;
	struct pipeline_options options;
	struct pipeline_output *output;
	struct line_context line;
	struct buffer mark;
	struct buffer booking_scratch;
	struct fingerprinter *fingerprinter;
	struct classifier *classifier;
	struct connections *connections;
	struct attempts *attempts;
	struct hops *hops;
	struct alerts *alerts;
	struct refusals refusals;
	struct gate gate;
	struct endpoint unseen[UNSEEN_TOOLS_MAX]; /* servers whose list of tools was not seen whole; full = all of them */
	size_t unseen_count;
	struct call_body body; /* used again for every body */
	struct model_keys *model_keys;
	struct buffer comparable;
	struct buffer unmasked; /* what a policy leaves of a body */
	struct buffer masked;	/* what it takes out */
	struct cgroup *cgroups;
	size_t path_bytes; /* of them */
	uint64_t muted[2];
	bool memory_lost;
	struct closing closing; /* after INPUT_CLOSING */
	struct summary summary;
	char summary_line[4096];
};

static void lost(struct pipeline *pipeline, int err)
{
	if (err)
		pipeline->memory_lost = true;
}

/* ---- what a call is the same as ---- */

/* What the fingerprinter lends until its next call, the call keeps until its end. */
static void keep(struct pipeline *pipeline, struct call *call)
{
	size_t key = call->idem.size, hint = call->retry_hint.size;
	int err = buffer_reserve(&call->kept, key + hint);

	if (key + hint == 0)
		return;
	if (!err)
		err = buffer_append(&call->kept, call->idem);
	if (!err)
		err = buffer_append(&call->kept, call->retry_hint);
	if (err) {
		call->idem = call->retry_hint = (struct bytes){0};
		call->idem_state = IDEM_UNKNOWN;
		pipeline->memory_lost = true;
		return;
	}
	call->idem = (struct bytes){call->kept.data, key};
	call->retry_hint = (struct bytes){call->kept.data + key, hint};
}

/* Less what the policy masks; two bodies that differ in that alone match, and the finding says so. */
static struct bytes apply_masks(struct pipeline *pipeline, struct call *call, struct bytes text)
{
	const struct policy_rule *rule = call->rule;
	struct digest digest;
	int changed, err;

	if (!rule || rule->mask_count == 0 || call->canon != CANONICAL_JSON)
		return text;
	buffer_clear(&pipeline->masked);
	changed = mask_text(rule->masks, rule->mask_count, text, &pipeline->unmasked, &pipeline->masked);
	err = changed < 0 ? changed : digest_of(buffer_bytes(&pipeline->masked), &digest);
	lost(pipeline, err);
	if (!err)
		memcpy(&call->masked, digest.byte, sizeof(call->masked));
	return changed == 1 ? buffer_bytes(&pipeline->unmasked) : text;
}

/* What this server said of its tools may be among what was lost: a tool of which nothing is known accuses nobody then. */
static bool tools_unseen(const struct pipeline *pipeline, const struct endpoint *server)
{
	if (pipeline->memory_lost || pipeline->unseen_count == UNSEEN_TOOLS_MAX)
		return true;
	for (size_t i = 0; i < pipeline->unseen_count; i++)
		if (memcmp(&pipeline->unseen[i], server, sizeof(*server)) == 0)
			return true;
	return false;
}

static void note_tools_unseen(struct pipeline *pipeline, const struct endpoint *server)
{
	if (!tools_unseen(pipeline, server))
		pipeline->unseen[pipeline->unseen_count++] = *server;
}

static void enter(const struct pipeline *pipeline, enum profile_stage stage)
{
	profile_enter(pipeline->options.profile, stage);
}

/* Class first: which members of a body are volatile depends on the protocol that was recognised. */
static void identify(struct pipeline *pipeline, struct call *call)
{
	struct bytes text, whole;
	int changed;

	enter(pipeline, PROFILE_BODY);
	lost(pipeline, call_body_canonical(&pipeline->body, call, &whole));
	text = whole;
	enter(pipeline, PROFILE_CLASS);
	lost(pipeline, classify_call(pipeline->classifier, call));
	lost(pipeline, model_keys_call(pipeline->model_keys, call, text));
	if (call->mcp_tool_guessed && call->class_source != CLASS_BY_POLICY && tools_unseen(pipeline, &call->server))
		call->undecidable = true;
	changed = classify_comparable_text(call, text, &pipeline->comparable);
	if (changed == 1)
		text = buffer_bytes(&pipeline->comparable);
	lost(pipeline, changed < 0 ? changed : 0);
	text = apply_masks(pipeline, call, text);
	enter(pipeline, PROFILE_FINGERPRINT);
	lost(pipeline, fingerprint_call(pipeline->fingerprinter, call, text, text.data == whole.data));
	keep(pipeline, call);
}

/* ---- findings ---- */

static struct booking_context booking_context(struct pipeline *pipeline)
{
	return (struct booking_context){.fingerprinter = pipeline->fingerprinter,
					.wall_offset_ns = pipeline->line.wall_offset_ns,
					.keep_results = pipeline->options.keep_results,
					.scratch = &pipeline->booking_scratch};
}

/* Only model calls are in the account book. */
static void book(struct pipeline *pipeline, struct call *call, uint64_t now_ns)
{
	struct booking_context context = booking_context(pipeline);

	if (pipeline->options.bookings && call->class == CLASS_LLM)
		lost(pipeline, book_attempt(&context, call, now_ns, &pipeline->output->bookings));
}

static void book_finding(struct pipeline *pipeline, const struct judgement *judgement, uint64_t now_ns)
{
	struct booking_context context = booking_context(pipeline);

	if (pipeline->options.bookings && judgement->later_facts.class == CLASS_LLM)
		lost(pipeline, book_judgement(&context, judgement, now_ns, &pipeline->output->bookings));
}

static void write_alert(struct pipeline *pipeline, const struct judgement *judgement, const struct call *call)
{
	struct alert_style style = pipeline->options.style;
	bool renew = false;

	if (pipeline->options.no_alerts)
		return;
	style.live = pipeline->options.live_calls;
	lost(pipeline, alerts_note(pipeline->alerts, judgement, call, &renew));
	if (renew && pipeline->options.live_alerts)
		lost(pipeline, alerts_block(pipeline->alerts, &judgement->group, pipeline->line.wall_offset_ns,
					    &style, &pipeline->output->alerts));
}

static void report(struct pipeline *pipeline, const struct judgement *judgement, const struct call *call, uint64_t now_ns)
{
	lost(pipeline, screen_model_judged(pipeline->options.screen, judgement, call));
	if (judgement->verdict.finding == FINDING_NONE)
		return;
	gate_add(&pipeline->gate, &judgement->verdict);
	if (judgement->attempt <= pipeline->options.judge.max_findings_per_call)
		lost(pipeline, event_finding(&pipeline->line, judgement, now_ns, &pipeline->output->events));
	book_finding(pipeline, judgement, now_ns);
	write_alert(pipeline, judgement, call);
}

/* What an MCP server says of its tools counts for every call after it, and so does that it was not seen. */
static void learn(struct pipeline *pipeline, struct call *call)
{
	bool may_list = call->mcp_lists_tools || call->request_holes;

	if (may_list && (call->undecidable || call->request_holes || call->response_holes)) {
		note_tools_unseen(pipeline, &call->server);
		return;
	}
	if (call->answer_use != ANSWER_KEPT || !call->response_complete)
		return;
	call->answer_use = ANSWER_UNREAD;
	lost(pipeline, classify_answer(pipeline->classifier, call, call->answer));
}

static void report_changes(struct pipeline *pipeline, struct call *call, uint64_t now_ns)
{
	struct judgement judgement;

	enter(pipeline, PROFILE_ATTEMPTS);
	learn(pipeline, call);
	screen_model_change(pipeline->options.screen, call);
	if (!pipeline->options.no_alerts)
		alerts_update(pipeline->alerts, call);
	attempts_update(pipeline->attempts, call);
	while (attempts_next_change(pipeline->attempts, &judgement)) {
		gate_change(&pipeline->gate, &judgement.before, &judgement.verdict);
		if (judgement.attempt <= pipeline->options.judge.max_findings_per_call)
			lost(pipeline, event_upgrade(&pipeline->line, &judgement, now_ns, &pipeline->output->events));
		book_finding(pipeline, &judgement, now_ns);
		write_alert(pipeline, &judgement, NULL);
		lost(pipeline, screen_model_judged(pipeline->options.screen, &judgement, NULL));
	}
}

/* For events, and for the account book, which adds calls up. */
static bool wants_hops(const struct pipeline *pipeline)
{
	return !pipeline->options.no_events || pipeline->options.bookings;
}

static void report_hops(struct pipeline *pipeline, struct call *call, uint64_t now_ns)
{
	struct booking_context context = booking_context(pipeline);
	struct hop hop;

	while (hops_next(pipeline->hops, call, &hop)) {
		if (!pipeline->options.no_events)
			lost(pipeline, event_hop(&pipeline->line, &hop, now_ns, &pipeline->output->events));
		if (pipeline->options.bookings && call->class == CLASS_LLM)
			lost(pipeline, book_hop(&context, hop.call_id, hop.parent_id, now_ns, &pipeline->output->bookings));
	}
}

static bool says_nothing(const struct policy_rule *rule)
{
	return rule && rule->limits->capped && rule->limits->at_most == SEVERITY_NULL;
}

/* What one call alone says: cut short, or given up by its client. */
static void report_alone(struct pipeline *pipeline, const struct call *call, uint64_t now_ns)
{
	struct booking_context context = booking_context(pipeline);
	enum finding finding = FINDING_NONE;

	if (call->undecidable) /* it may have been answered, and whole */
		return;
	if (call->status && !call->response_complete &&
	    (call->ended == CALL_ENDED_CUT || call->ended == CALL_ENDED_RESET))
		finding = FINDING_TRUNCATED_RESPONSE;
	else if (call->request_complete && call->client_closed_ns && !(call->status && call->status_in_time) &&
		 call->closed_first == CLOSER_CLIENT)
		finding = FINDING_ABANDONED_CALL;
	if (finding == FINDING_NONE || says_nothing(call->rule))
		return;
	screen_model_alone(pipeline->options.screen, call, finding);
	gate_add(&pipeline->gate, &(struct verdict){.finding = finding, .severity = SEVERITY_INFO});
	lost(pipeline, event_call_finding(&pipeline->line, call, finding, now_ns, &pipeline->output->events));
	if (pipeline->options.bookings && call->class == CLASS_LLM)
		lost(pipeline, book_call_finding(&context, call, finding, now_ns, &pipeline->output->bookings));
}

/* ---- steps ---- */

/* A safe method (RFC 9110 section 9.2.1) may be sent again at will: nothing to remember. */
static bool is_safe(const struct call *call)
{
	return call->class == CLASS_READ && call->class_source == CLASS_BY_METHOD;
}

static void set_cgroup(struct pipeline *pipeline, const struct call *call)
{
	struct cgroup *cgroup;

	HASH_FIND(hh, pipeline->cgroups, &call->process.cgroup_id, sizeof(call->process.cgroup_id), cgroup);
	pipeline->line.cgroup_path = cgroup ? buffer_bytes(&cgroup->path) : (struct bytes){0};
}

static void on_request(struct pipeline *pipeline, struct call *call, uint64_t now_ns)
{
	struct judgement judgement;

	identify(pipeline, call);
	call->answer_use = classify_wants_answer(call) ? ANSWER_KEPT
			 : call->class == CLASS_LLM    ? ANSWER_FOLLOWED
						       : ANSWER_UNREAD;
	call->keep_answer = call->answer_use == ANSWER_FOLLOWED && pipeline->options.keep_results;
	enter(pipeline, PROFILE_LEDGER);
	set_cgroup(pipeline, call);
	gate_count_request(&pipeline->gate, call);
	lost(pipeline, ledger_line(&pipeline->line, call, &pipeline->output->ledger));
	enter(pipeline, PROFILE_EVENTS);
	if (!pipeline->options.no_events)
		lost(pipeline, event_request(&pipeline->line, call, &pipeline->output->events));
	if (wants_hops(pipeline))
		lost(pipeline, hops_request(pipeline->hops, call));
	book(pipeline, call, now_ns);
	lost(pipeline, screen_model_request(pipeline->options.screen, &pipeline->line, call));
	enter(pipeline, PROFILE_ATTEMPTS);
	if (is_safe(call) || (!call->has_fingerprint && call->idem_state != IDEM_PRESENT))
		return;
	if (!pipeline->options.no_alerts)
		alerts_meet(pipeline->alerts, call);
	lost(pipeline, attempts_add(pipeline->attempts, call, &judgement));
	report(pipeline, &judgement, call, now_ns);
}

static void on_answered(struct pipeline *pipeline, struct call *call, uint64_t now_ns)
{
	report_changes(pipeline, call, now_ns);
	enter(pipeline, PROFILE_EVENTS);
	gate_count_answer(&pipeline->gate, call);
	book(pipeline, call, now_ns);
	if (wants_hops(pipeline))
		report_hops(pipeline, call, now_ns);
	if (!pipeline->options.no_events)
		lost(pipeline, event_response(&pipeline->line, call, &pipeline->output->events));
	screen_model_answered(pipeline->options.screen, call);
	if (pipeline->options.live_calls)
		lost(pipeline, call_line(pipeline->fingerprinter, call, pipeline->line.wall_offset_ns,
					 &pipeline->options.style, &pipeline->output->calls));
	report_alone(pipeline, call, now_ns);
}

static void on_blind(struct pipeline *pipeline, const struct connection_result *result)
{
	if (result->flow[SIDE_CLIENT])
		pipeline->muted[SIDE_CLIENT] = result->flow[SIDE_CLIENT];
	if (result->flow[SIDE_SERVER])
		pipeline->muted[SIDE_SERVER] = result->flow[SIDE_SERVER];
}

static void book_blind_stream(struct pipeline *pipeline, const struct connection_result *result)
{
	struct booking_context context = booking_context(pipeline);

	if (pipeline->options.bookings && result->blind != BLIND_OTHER)
		lost(pipeline, book_blind(&context, &result->name.process, result->blind, result->bytes_out, result->bytes_in,
					  result->now_ns, &pipeline->output->bookings));
}

/* The run's own row: ended_ns 0 at its start. */
static void book_the_run(struct pipeline *pipeline, uint64_t ended_ns)
{
	struct booked_run run = {
		.started_ns = wall_time_ns(pipeline->run->start_ns, pipeline->run->wall_offset_ns),
		.ended_ns = ended_ns ? wall_time_ns(ended_ns, pipeline->line.wall_offset_ns) : 0,
		.hole_bytes = pipeline->summary.hole_bytes,
	};

	if (!pipeline->options.bookings)
		return;
	memcpy(run.boot_id, pipeline->run->boot_id, sizeof(run.boot_id));
	for (int kind = 0; kind < BLIND_COUNT; kind++)
		run.blind_streams += pipeline->summary.blind_streams[kind];
	lost(pipeline, book_run(&run, &pipeline->output->bookings));
}

static void on_off_loopback(struct pipeline *pipeline, const struct connection_result *result)
{
	enum severity severity = result->refused ? SEVERITY_HIGH : SEVERITY_INFO;

	gate_add(&pipeline->gate, &(struct verdict){.finding = FINDING_OFF_LOOPBACK, .severity = severity});
	lost(pipeline, event_off_loopback(&pipeline->line, &result->name, result->refused, result->now_ns,
					  &pipeline->output->events));
	if (result->refused && !pipeline->options.no_alerts)
		lost(pipeline, refusals_note(&pipeline->refusals, &result->name, result->datagram));
}

static void on_result(struct pipeline *pipeline, struct connection_result *result)
{
	struct line_context *line = &pipeline->line;
	struct buffer *events = &pipeline->output->events;

	lost(pipeline, screen_model_stream(pipeline->options.screen, result));
	switch (result->step) {
	case CONNECTION_REQUEST:
		on_request(pipeline, result->call, result->now_ns);
		break;
	case CONNECTION_CHANGED:
		report_changes(pipeline, result->call, result->now_ns);
		if (attempt_outcome_of(result->call) != OUTCOME_OPEN)
			book(pipeline, result->call, result->now_ns);
		break;
	case CONNECTION_ANSWERED:
		on_answered(pipeline, result->call, result->now_ns);
		break;
	case CONNECTION_CLOSED:
		enter(pipeline, PROFILE_ATTEMPTS);
		attempts_close(pipeline->attempts, result->call);
		hops_close(pipeline->hops, result->call);
		break;
	case CONNECTION_HOLE: /* a whole call may be in it */
		note_tools_unseen(pipeline, &result->name.server);
		lost(pipeline, event_hole(line, &result->name, result->from_client, result->offset, result->length,
					  result->cause, result->now_ns, events));
		break;
	case CONNECTION_BLIND:
		on_blind(pipeline, result);
		gate_count_blind(&pipeline->gate, result->blind);
		break;
	case CONNECTION_BLIND_END:
		blind_add(&pipeline->gate.blind_processes, &result->name.process, result->blind, result->bytes_out,
			  result->bytes_in);
		lost(pipeline, event_blind(line, &result->name, result->blind, result->bytes_out, result->bytes_in,
					   result->now_ns, events));
		book_blind_stream(pipeline, result);
		break;
	case CONNECTION_BROKEN:
		on_blind(pipeline, result);
		gate_count_broken(&pipeline->gate, result->matters);
		lost(pipeline, event_broken(line, &result->name, result->from_client, result->offset, result->reason,
					    result->now_ns, events));
		break;
	case CONNECTION_SILENT:
		on_blind(pipeline, result);
		break;
	case CONNECTION_OFF_LOOPBACK:
		on_off_loopback(pipeline, result);
		break;
	case CONNECTION_NOTHING:
		break;
	}
}

static void forget_cgroup(struct pipeline *pipeline, struct cgroup *cgroup)
{
	HASH_DEL(pipeline->cgroups, cgroup);
	pipeline->path_bytes -= cgroup->path.size;
	buffer_done(&cgroup->path);
	free(cgroup);
}

/* Those told longest ago go first; one that is told again is told now. */
static void on_cgroup(struct pipeline *pipeline, uint64_t id, struct bytes path)
{
	size_t max_bytes = pipeline->options.max_path_bytes ? pipeline->options.max_path_bytes : LIMIT_CGROUP_PATHS_BYTES;
	struct cgroup *cgroup;

	HASH_FIND(hh, pipeline->cgroups, &id, sizeof(id), cgroup);
	if (cgroup && !cgroup->hh.next) /* the last already */
		return;
	if (cgroup)
		forget_cgroup(pipeline, cgroup);
	cgroup = calloc(1, sizeof(*cgroup));
	if (!cgroup || buffer_append(&cgroup->path, path)) {
		free(cgroup);
		pipeline->memory_lost = true;
		return;
	}
	cgroup->id = id;
	HASH_ADD(hh, pipeline->cgroups, id, sizeof(cgroup->id), cgroup);
	if (!cgroup->hh.tbl) {
		buffer_done(&cgroup->path);
		free(cgroup);
		pipeline->memory_lost = true;
		return;
	}
	pipeline->path_bytes += cgroup->path.size;
	while (pipeline->cgroups != cgroup &&
	       (HASH_COUNT(pipeline->cgroups) > LIMIT_CGROUPS || pipeline->path_bytes > max_bytes))
		forget_cgroup(pipeline, pipeline->cgroups);
}

static void on_mark(struct pipeline *pipeline, struct bytes label, uint64_t now_ns)
{
	attempts_mark(pipeline->attempts);
	buffer_clear(&pipeline->mark);
	lost(pipeline, buffer_append(&pipeline->mark, label));
	pipeline->line.mark = buffer_bytes(&pipeline->mark);
	pipeline->line.has_mark = true;
	lost(pipeline, event_mark(&pipeline->line, label, now_ns, &pipeline->output->events));
	lost(pipeline, screen_model_mark(pipeline->options.screen, label));
}

/* What an earlier run left in the store: later calls are judged against it, it is not judged again. */
static void on_past(struct pipeline *pipeline, const struct past_attempt *past)
{
	struct judgement ignored;
	struct call call;

	past_attempt_call(past, pipeline->line.wall_offset_ns, &call);
	lost(pipeline, attempts_add(pipeline->attempts, &call, &ignored));
	attempts_close(pipeline->attempts, &call);
}

static int write_junit(struct pipeline *pipeline, const struct summary *summary)
{
	struct junit_report report = {
		.run = pipeline->run,
		.options = &pipeline->options.judge,
		.incomplete = summary->incomplete,
		.incomplete_count = summary->incomplete_count,
		.blind_streams = summary->blind_streams,
		.refusals = &pipeline->refusals,
		.wall_ms = summary->closing->wall_ms,
	};
	struct junit_finding *findings = calloc(ALERT_GROUPS_MAX, sizeof(*findings));
	const void *position = NULL;
	int err;

	if (!findings)
		return -ENOMEM;
	while (report.finding_count < ALERT_GROUPS_MAX) {
		struct junit_finding *next = &findings[report.finding_count];

		next->judgement = alerts_next(pipeline->alerts, &position, &next->call);
		if (!next->judgement)
			break;
		report.finding_count++;
	}
	report.findings = findings;
	err = junit_text(&report, &pipeline->output->junit);
	free(findings);
	return err;
}

static void close_gate(struct pipeline *pipeline, uint64_t now_ns)
{
	pipeline->gate.forgotten_tools = classify_forgotten_tools(pipeline->classifier);
	gate_close(&pipeline->gate, &pipeline->options.judge, &pipeline->closing, connections_totals(pipeline->connections),
		   attempts_evicted(pipeline->attempts), pipeline->memory_lost, &pipeline->summary);
	pipeline->summary.now_ns = now_ns;
}

/* What is lost while the end is being written counts too: the gate is closed again then. */
static void on_closing(struct pipeline *pipeline, const struct closing *closing, uint64_t now_ns)
{
	struct summary *summary = &pipeline->summary;

	pipeline->closing = *closing;
	close_gate(pipeline, now_ns);
	if (!pipeline->options.no_alerts && !pipeline->options.live_alerts)
		lost(pipeline, alerts_all(pipeline->alerts, SEVERITY_LOW, pipeline->line.wall_offset_ns,
					  &pipeline->options.style, &pipeline->output->alerts));
	lost(pipeline, refusals_lines(&pipeline->refusals, &pipeline->options.style, &pipeline->output->alerts));
	if (pipeline->options.junit)
		lost(pipeline, write_junit(pipeline, summary));
	close_gate(pipeline, now_ns);
	lost(pipeline, event_summary(&pipeline->line, summary, &pipeline->output->events));
	book_the_run(pipeline, now_ns);
	close_gate(pipeline, now_ns);
	gate_sentence(&pipeline->gate, summary, pipeline->summary_line, sizeof(pipeline->summary_line));
}

int pipeline_feed(struct pipeline *pipeline, const struct input *input)
{
	struct connection_result result;

	switch (input->kind) {
	case INPUT_WIRE:
	case INPUT_DRAIN:
		break;
	case INPUT_TICK:
		pipeline->line.wall_offset_ns = input->tick.wall_offset_ns;
		screen_model_tick(pipeline->options.screen, input->tick.wall_offset_ns);
		break;
	case INPUT_CGROUP:
		on_cgroup(pipeline, input->cgroup.id, input->cgroup.path);
		return 0;
	case INPUT_COUNTERS:
		pipeline->gate.counters = input->counters;
		screen_model_counters(pipeline->options.screen, &input->counters);
		return 0;
	case INPUT_MARK:
		on_mark(pipeline, input->mark.label, input->now_ns);
		return 0;
	case INPUT_PAST:
		on_past(pipeline, input->past);
		return 0;
	case INPUT_CLOSING:
		on_closing(pipeline, &input->closing, input->now_ns);
		return 0;
	}
	enter(pipeline, PROFILE_CALLS);
	lost(pipeline, connections_feed(pipeline->connections, input));
	while (connections_next(pipeline->connections, &result) != CONNECTION_NOTHING) {
		enter(pipeline, PROFILE_OTHER);
		on_result(pipeline, &result);
		enter(pipeline, PROFILE_CALLS);
	}
	return pipeline->memory_lost ? -ENOMEM : 0;
}

/* ---- life ---- */

struct pipeline *pipeline_new(const struct run_facts *run, const struct pipeline_options *options,
			      struct pipeline_output *output)
{
	struct attempts_options attempts = {
		.finding = {.strict = options->judge.strict,
			    .window_ns = options->judge.window_s * 1000000000,
			    .across_ns = options->judge.window_across_s * 1000000000,
			    .fresh_ns = options->judge.fresh_s * 1000000000,
			    .limits = options->policy ? policy_limits(options->policy) : NULL},
		.across_processes = options->judge.across_processes,
		.within_cgroups = options->within_cgroups,
		.max_remembered = LIMIT_REMEMBERED_ATTEMPTS,
		.max_bytes = options->max_remembered_bytes ? options->max_remembered_bytes : LIMIT_REMEMBERED_BYTES,
	};
	struct pipeline *pipeline = calloc(1, sizeof(*pipeline));

	if (!pipeline)
		return NULL;
	pipeline->run = run;
	pipeline->options = *options;
	pipeline->output = output;
	pipeline->fingerprinter = fingerprinter_new(run->salt);
	pipeline->classifier = classifier_new();
	pipeline->model_keys = model_keys_new(options->judge.schema_version);
	pipeline->attempts = attempts_new(&attempts);
	pipeline->hops = hops_new();
	pipeline->alerts = pipeline->fingerprinter ? alerts_new(pipeline->fingerprinter) : NULL;
	if (pipeline->fingerprinter)
		pipeline->connections = connections_new(run->boot_id, pipeline->fingerprinter);
	if (!pipeline->connections || !pipeline->classifier || !pipeline->model_keys || !pipeline->attempts ||
	    !pipeline->hops || !pipeline->alerts) {
		pipeline_free(pipeline);
		return NULL;
	}
	if (options->policy) {
		classifier_set_policy(pipeline->classifier, options->policy);
		fingerprinter_set_secrets(pipeline->fingerprinter, policy_secrets(options->policy));
	}
	pipeline->line = (struct line_context){.run = run,
					       .wall_offset_ns = run->wall_offset_ns,
					       .fingerprinter = pipeline->fingerprinter,
					       .policy_sha = options->policy ? policy_sha(options->policy) : NULL};
	lost(pipeline, event_start(&pipeline->line, &options->judge, &output->events));
	if (options->gap) {
		lost(pipeline, event_gap(&pipeline->line, options->gap, &output->events));
		pipeline_note_gap(pipeline, "the collector was started again: what the one before it had read and not written is missing");
	}
	book_the_run(pipeline, 0);
	screen_model_tick(options->screen, run->wall_offset_ns);
	return pipeline;
}

void pipeline_free(struct pipeline *pipeline)
{
	if (!pipeline)
		return;
	connections_free(pipeline->connections);
	attempts_free(pipeline->attempts);
	hops_free(pipeline->hops);
	alerts_free(pipeline->alerts);
	refusals_done(&pipeline->refusals);
	classifier_free(pipeline->classifier);
	fingerprinter_free(pipeline->fingerprinter);
	model_keys_free(pipeline->model_keys);
	call_body_done(&pipeline->body);
	buffer_done(&pipeline->comparable);
	buffer_done(&pipeline->unmasked);
	buffer_done(&pipeline->masked);
	buffer_done(&pipeline->mark);
	buffer_done(&pipeline->booking_scratch);
	while (pipeline->cgroups)
		forget_cgroup(pipeline, pipeline->cgroups);
	free(pipeline);
}

void pipeline_set_style(struct pipeline *pipeline, struct alert_style style)
{
	pipeline->options.style = style;
}

uint64_t pipeline_next_muted(struct pipeline *pipeline)
{
	for (int side = 0; side < 2; side++) {
		uint64_t flow = pipeline->muted[side];

		pipeline->muted[side] = 0;
		if (flow)
			return flow;
	}
	return 0;
}

struct call_memory *pipeline_memory(struct pipeline *pipeline)
{
	return connections_memory(pipeline->connections);
}

size_t pipeline_remembered_bytes(const struct pipeline *pipeline)
{
	return attempts_bytes(pipeline->attempts);
}

size_t pipeline_open_calls(const struct pipeline *pipeline)
{
	return connections_open_calls(pipeline->connections);
}

void pipeline_set_policy(struct pipeline *pipeline, const struct policy *policy, bool strict)
{
	pipeline->options.policy = policy;
	pipeline->options.judge.strict = strict;
	classifier_set_policy(pipeline->classifier, policy);
	fingerprinter_set_secrets(pipeline->fingerprinter, policy_secrets(policy));
	attempts_set_policy(pipeline->attempts, policy_limits(policy), strict);
	pipeline->line.policy_sha = policy_sha(policy);
}

void pipeline_note_gap(struct pipeline *pipeline, const char *why)
{
	gate_note_gap(&pipeline->gate, why);
}

const struct gate *pipeline_gate(const struct pipeline *pipeline)
{
	return &pipeline->gate;
}

struct connection_totals pipeline_totals(const struct pipeline *pipeline)
{
	return connections_totals(pipeline->connections);
}

int pipeline_exit_status(const struct pipeline *pipeline)
{
	return pipeline->gate.exit_status;
}

const struct summary *pipeline_summary(const struct pipeline *pipeline)
{
	return &pipeline->summary;
}

const struct alerts *pipeline_alerts(const struct pipeline *pipeline)
{
	return pipeline->alerts;
}

const char *pipeline_summary_line(const struct pipeline *pipeline)
{
	return pipeline->summary_line;
}
