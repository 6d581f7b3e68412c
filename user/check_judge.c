/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The second pass: the calls of each run are judged in the order in which their
 * requests became whole. By now everything is known of the earlier ones, so
 * nothing is upgraded. Then the gate, with what the runs said they could not see.
 */
#include "check_parts.h"

#include "json_scan.h"

#include <errno.h>

static const char notice_ledger[] = "from a ledger alone no outcome is known: give the events file or a recording";
static const char notice_policy[] =
	"the run had a policy that is not given here: its severities, windows and scopes do not count";
static const char notice_wire[] =
	"the policy matches by header, masks or names keys: lines do not hold those; a recording does";
static const char notice_class[] =
	"a class that the run's own policy had set is judged without the body: a recording has it";

static void notice(struct check_lines *check, const char *text)
{
	for (size_t i = 0; i < check->notice_count; i++)
		if (check->notices[i] == text)
			return;
	if (check->notice_count < CHECK_NOTICES_MAX)
		check->notices[check->notice_count++] = text;
}

/* ---- how a call went ---- */

static uint64_t later_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Lines hold microseconds: within one, what the run made of it counts. */
#define LINE_TIME_NS 1000

/*
 * When the first side closed. Where the line does not say so, of a client that
 * gave up on a call that was answered later, all that is known is whether later
 * attempts still found the call open.
 */
static void set_close(struct call *call, const struct check_call *row)
{
	const struct check_response *response = &row->response;
	uint64_t closed_ns = response->ended_ns;

	if (response->closed_ns)
		closed_ns = row->open_until_ns > response->closed_ns && row->open_until_ns - response->closed_ns <= LINE_TIME_NS
				    ? row->open_until_ns : response->closed_ns;
	else if (response->status && row->abandoned)
		closed_ns = later_of(call->seen_ns, row->open_until_ns);
	else if (response->status)
		closed_ns = later_of(closed_ns, row->open_until_ns);
	call->closed_first = response->closed_first;
	if (response->closed_first == CLOSER_CLIENT)
		call->client_closed_ns = closed_ns;
	else if (response->closed_first == CLOSER_SERVER)
		call->server_closed_ns = closed_ns;
}

/* Had the client, when the head of its answer was sent, not closed yet? */
static bool in_time(const struct check_call *row)
{
	const struct check_response *response = &row->response;

	if (!response->status || response->closed_first != CLOSER_CLIENT || !response->closed_ns ||
	    response->closed_ns == response->first_ns)
		return response->status && !row->abandoned;
	return response->closed_ns > response->first_ns;
}

static void set_outcome(struct call *call, const struct check_call *row, const struct check_run *run)
{
	const struct check_response *response = &row->response;
	bool no_answer = response->status == 0 && response->closed_first == CLOSER_SERVER;

	call->status = response->status;
	call->status_ns = response->status ? response->first_ns : 0;
	call->status_in_time = in_time(row);
	call->response_first_ns = response->first_ns;
	call->response_last_ns = response->first_ns ? later_of(response->ended_ns, row->open_until_ns) : 0;
	call->response_complete = response->complete;
	call->response_body_bytes = response->body_bytes;
	call->ended = response->ended;
	call->delivered = response->delivered;
	call->delivered_bytes = response->delivered_bytes;
	call->replayed = response->replayed;
	call->usage = response->usage;
	call->answer_complete = response->answer_complete;
	call->answer_unfinished = response->answer_unfinished;
	set_close(call, row);
	call->client_died = row->owner_gone;
	call->not_run = row->refused && response->status >= 200 && response->status < 300;
	/*
	 * Where the line cannot tell yet: the run made nothing of it although it came again, or nobody
	 * sent it again: either way it counts for nothing.
	 */
	call->server_read_known = response->request_read_known || (no_answer && run->has_summary && !row->is_earlier);
	call->server_read_all = response->request_read_all;
	call->undecidable |= response->unseen || row->undecidable;
	call->principal_is_bearer = row->bearer && call->has_principal;
}

/* A rule that only fails to match for the header, which no line holds. */
static bool may_match(const struct policy_rule *rule, const struct call *call)
{
	const char *differs = policy_rule_differs(rule, call);

	return differs && strcmp(differs, "header") == 0;
}

static void apply_policy(struct check_lines *check, const struct check_run *run, const struct check_call *row,
			 struct call *call)
{
	const struct policy *policy = check->policy;
	bool own = policy && run->start.has_policy && digest_equal(&run->start.policy_sha, policy_sha(policy));

	if (!policy)
		return;
	call->rule = policy_match(policy, call);
	for (size_t i = 0; i < policy_rule_count(policy) && policy_rule_at(policy, i) != call->rule; i++)
		check->unsure |= may_match(policy_rule_at(policy, i), call);
	if (call->rule && !own && policy_rule_needs_wire(call->rule))
		check->unsure = true;
	if (call->rule && own && call->rule->mask_count) /* the fingerprint in the line is without what is masked */
		call->masked = row->masked ? row->masked : 1;
	if (call->class_source == CLASS_BY_POLICY && !own) {
		const struct policy_rule *rule = call->rule;
		struct bytes tool = call->tool;

		classify_call(check->classifier, call);
		call->rule = rule;
		call->tool = tool;
		notice(check, notice_class);
	}
	if (!call->rule || !call->rule->sets_class)
		return;
	call->class = call->rule->class;
	call->class_source = CLASS_BY_POLICY;
	call->class_by = call->rule->class_by;
	call->known_write = call->class == CLASS_MUTATING;
}

/* ---- judging ---- */

static void note(struct check_lines *check, const struct judgement *judgement, const struct call *call)
{
	bool renew;

	gate_add(&check->gate, &judgement->verdict);
	if (alerts_note(check->alerts, judgement, call, &renew))
		check->memory_lost = true;
}

static void note_alone(struct check_lines *check, const struct call *call, const struct check_call *row)
{
	struct verdict verdict = {.severity = SEVERITY_INFO};

	if (call->rule && call->rule->limits->capped && call->rule->limits->at_most == SEVERITY_NULL)
		return;
	verdict.finding = row->truncated ? FINDING_TRUNCATED_RESPONSE : row->abandoned ? FINDING_ABANDONED_CALL : FINDING_NONE;
	gate_add(&check->gate, &verdict);
}

static bool is_safe(const struct call *call)
{
	return call->class == CLASS_READ && call->class_source == CLASS_BY_METHOD;
}

/*
 * A call is judged before its own outcome is known, as in its run, and brings
 * that after: so the third of three polls lowers the second.
 */
static void judge_call(struct check_lines *check, struct attempts *attempts, struct call *call, const struct check_call *row,
		       const struct check_run *run)
{
	struct judgement judgement;

	alerts_meet(check->alerts, call);
	if (attempts_add(attempts, call, &judgement))
		check->memory_lost = true;
	if (judgement.verdict.finding != FINDING_NONE)
		note(check, &judgement, call);
	if (!row->has_response)
		return;
	set_outcome(call, row, run);
	alerts_update(check->alerts, call);
	attempts_update(attempts, call);
	while (attempts_next_change(attempts, &judgement)) {
		gate_remove(&check->gate, &judgement.before);
		note(check, &judgement, NULL);
	}
}

static void judge_row(struct check_lines *check, struct attempts *attempts, const struct check_call *row,
		      const struct check_run *run)
{
	struct call *call = &check->request.call;

	if (check_row_request(row->line, &check->request)) { /* it was good before: no memory */
		check->memory_lost = true;
		return;
	}
	call->number = ++check->number;
	check->gate.usage_refused += row->response.usage_refused;
	apply_policy(check, run, row, call);
	gate_count_request(&check->gate, call);
	note_alone(check, call, row);
	if (!row->has_response) {
		call->no_outcome = true;
		call->undecidable |= call->request_complete;
		if (!row->in_events)
			notice(check, notice_ledger);
	}
	call->principal_is_bearer = row->bearer && call->has_principal;
	if (call->idem_state == IDEM_PRESENT && fingerprint_key_scope(check->fingerprinter, call))
		check->memory_lost = true;
	if (!is_safe(call))
		judge_call(check, attempts, call, row, run);
}

static int judge_run(struct check_lines *check, const struct check_run *run)
{
	struct attempts_options options = {
		.finding = {.strict = check->options.strict, .limits = check->policy ? policy_limits(check->policy) : NULL},
		.across_processes = check->options.across_processes,
		.max_remembered = LIMIT_REMEMBERED_ATTEMPTS,
	};
	struct attempts *attempts = attempts_new(&options);
	uint32_t window = 0;

	if (!attempts)
		return -ENOMEM;
	for (const struct check_call *row = run->first; row; row = row->next) {
		if (row->window != window)
			attempts_mark(attempts);
		window = row->window;
		judge_row(check, attempts, row, run);
	}
	attempts_free(attempts);
	return 0;
}

/* ---- whether the gate can tell ---- */

static void incomplete(struct check_lines *check, const char *reason)
{
	struct summary *summary = &check->summary;

	if (summary->incomplete_count < sizeof(summary->incomplete) / sizeof(summary->incomplete[0]))
		summary->incomplete[summary->incomplete_count++] = reason;
}

/* Reasons that are found again from the lines, or judged anew. */
static bool is_found_again(const struct check_lines *check, struct bytes reason)
{
	const struct summary *summary = &check->summary;

	if (json_scan_says(reason, "a repeated call could not be judged (undecidable)") ||
	    (reason.size && memmem(reason.data, reason.size, "(--allow-blind ", 15)))
		return true;
	for (size_t i = 0; i < summary->incomplete_count; i++)
		if (json_scan_says(reason, summary->incomplete[i]))
			return true;
	return false;
}

static bool says_more(const struct check_lines *check, const struct check_run *run)
{
	struct bytes name, reason;
	struct json_scan scan;

	json_scan_open(&scan, run->summary.incomplete);
	while (json_scan_next(&scan, &name, &reason))
		if (!is_found_again(check, reason))
			return true;
	return false;
}

static struct connection_totals add_totals(struct check_lines *check)
{
	struct connection_totals totals = {0};
	uint64_t *value = check->gate.counters.value;

	for (const struct check_run *run = check->runs; run; run = run->hh.next) {
		const struct check_summary *summary = &run->summary;

		totals.message_bytes += summary->message_bytes;
		totals.hole_bytes += summary->hole_bytes;
		totals.blind_bytes += summary->blind_bytes;
		value[WIRE_COUNTER_ACCEPTED_BYTES] += summary->accepted_bytes;
		value[WIRE_COUNTER_NO_FLOW] += summary->no_flow;
		value[WIRE_COUNTER_NO_CALL] += summary->no_call;
		value[WIRE_COUNTER_LIFECYCLE_LOST] += summary->lifecycle_lost;
		check->gate.counters.recursion_misses += summary->recursion_misses;
		check->closing.wall_ms += summary->wall_ms;
	}
	return totals;
}

/* One line for each request that the run counted, and one about the end of each. */
static bool lacks_lines(const struct check_run *run)
{
	if (!run->has_summary)
		return false;
	for (const struct check_call *row = run->first; row; row = row->next)
		if (row->in_events && !row->has_response)
			return true;
	return run->requests != run->summary.requests;
}

static void find_reasons(struct check_lines *check)
{
	bool cut = false, more = false, lacks = check->orphans;

	for (const struct check_run *run = check->runs; run; run = run->hh.next) {
		cut |= run->has_events && !run->has_summary;
		more |= run->has_summary && says_more(check, run);
		lacks |= lacks_lines(run);
		if (run->start.has_policy && !check->policy)
			notice(check, notice_policy);
	}
	if (check->broken_lines)
		incomplete(check, "a line could not be read");
	if (check->has_empty_file)
		incomplete(check, "a file holds no line");
	if (lacks)
		incomplete(check, "the events lack lines that their run wrote");
	if (cut)
		incomplete(check, "the events end before the summary of their run");
	if (more)
		incomplete(check, "the run itself could not tell: see its summary");
	if (check->unsure) {
		notice(check, notice_wire);
		incomplete(check, "a rule of the policy asks for what lines do not hold");
	}
}

int check_lines_judge(struct check_lines *check)
{
	uint64_t evicted = 0;
	int err = 0;

	check_options(check->overrides, check->policy, &check->options);
	for (const struct check_run *run = check->runs; run && !err; run = run->hh.next) {
		err = judge_run(check, run);
		evicted += run->summary.evicted;
	}
	if (check->runs) {
		snprintf(check->facts.run_id, sizeof(check->facts.run_id), "%s", check->runs->id);
		snprintf(check->facts.version, sizeof(check->facts.version), "%s", check->runs->start.version);
	}
	check->closing.command_status = -1;
	gate_close(&check->gate, &check->options, &check->closing, add_totals(check), evicted,
		   check->memory_lost || err, &check->summary);
	find_reasons(check);
	check->exit_status = check->gate.exit_status;
	if (check->exit_status == 0 && check->summary.incomplete_count && !check->options.allow_incomplete)
		check->exit_status = GATE_EXIT_INCOMPLETE;
	check->summary.exit_status = check->exit_status;
	return err;
}

int check_lines_exit_status(const struct check_lines *check)
{
	return check->exit_status;
}

const struct summary *check_lines_summary(const struct check_lines *check)
{
	return &check->summary;
}

const struct judge_options *check_lines_options(const struct check_lines *check)
{
	return &check->options;
}

const struct alerts *check_lines_alerts(const struct check_lines *check)
{
	return check->alerts;
}

const struct run_facts *check_lines_run(const struct check_lines *check)
{
	return &check->facts;
}

const char *check_lines_notice(const struct check_lines *check, size_t i)
{
	return check->notices[i];
}

void check_lines_sentence(const struct check_lines *check, char *text, size_t size)
{
	gate_sentence(&check->gate, &check->summary, text, size);
}
