/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first pass: every line finds its call and its run. Judging is for when
 * everything is known: check_judge.c.
 */
#include "check_parts.h"

#include <errno.h>

#define RUNS_MAX 4096

void check_options(const struct check_overrides *overrides, const struct policy *policy,
		   struct judge_options *options)
{
	if (policy)
		policy_apply(policy, options);
	if (overrides->has_fail_on)
		options->fail_on = overrides->fail_on;
	options->strict |= overrides->strict;
	options->allow_incomplete |= overrides->allow_incomplete;
}

struct check_lines *check_lines_new(const struct check_overrides *overrides, const struct policy *policy)
{
	static const uint8_t no_salt[32];
	struct check_lines *check = calloc(1, sizeof(*check));

	if (!check)
		return NULL;
	check->overrides = overrides;
	check->policy = policy;
	judge_options_defaults(&check->options);
	check->fingerprinter = fingerprinter_new(no_salt);
	check->classifier = classifier_new();
	check->alerts = check->fingerprinter ? alerts_new(check->fingerprinter) : NULL;
	if (!check->alerts || !check->classifier) {
		check_lines_free(check);
		return NULL;
	}
	if (policy)
		check->secrets = *policy_secrets(policy);
	check->secrets.masked_before = true;
	fingerprinter_set_secrets(check->fingerprinter, &check->secrets);
	return check;
}

void check_lines_free(struct check_lines *check)
{
	struct check_run *run, *next_run;
	struct check_call *row, *next_row;

	if (!check)
		return;
	HASH_ITER(hh, check->rows, row, next_row) {
		HASH_DEL(check->rows, row);
		free(row);
	}
	HASH_ITER(hh, check->runs, run, next_run) {
		HASH_DEL(check->runs, run);
		free(run);
	}
	check_request_done(&check->request);
	alerts_free(check->alerts);
	classifier_free(check->classifier);
	fingerprinter_free(check->fingerprinter);
	free(check);
}

/* ---- the first pass ---- */

static struct check_call *find_row(const struct check_lines *check, const uint8_t id[CALL_ID_BYTES])
{
	struct check_call *row;

	HASH_FIND(hh, check->rows, id, CALL_ID_BYTES, row);
	return row;
}

/* NULL when out of memory, or when there are too many. */
static struct check_run *new_run(struct check_lines *check, const char *id)
{
	struct check_run *run = HASH_COUNT(check->runs) < RUNS_MAX ? calloc(1, sizeof(*run)) : NULL;

	if (!run)
		return NULL;
	memcpy(run->id, id, sizeof(run->id));
	HASH_ADD_STR(check->runs, id, run);
	if (!run->hh.tbl) {
		free(run);
		return NULL;
	}
	return run;
}

static struct check_run *find_run(struct check_lines *check, const char *id)
{
	struct check_run *run;

	if (check->run && strcmp(check->run->id, id) == 0)
		return check->run;
	HASH_FIND_STR(check->runs, id, run);
	check->run = run ? run : new_run(check, id);
	return check->run;
}

static struct check_call *new_row(struct check_lines *check, struct check_run *run, const uint8_t id[CALL_ID_BYTES])
{
	struct check_call *row = HASH_COUNT(check->rows) < LIMIT_REMEMBERED_ATTEMPTS ? calloc(1, sizeof(*row)) : NULL;

	if (!row)
		return NULL;
	memcpy(row->id, id, CALL_ID_BYTES);
	HASH_ADD(hh, check->rows, id, CALL_ID_BYTES, row);
	if (!row->hh.tbl) {
		free(row);
		return NULL;
	}
	if (run->last)
		run->last->next = row;
	else
		run->first = row;
	run->last = row;
	return row;
}

/* A ledger line tells a mark by its label alone. */
static void follow_mark(struct check_run *run, const struct check_request *request)
{
	uint64_t hash = request->has_mark;

	for (size_t i = 0; i < request->mark.size; i++)
		hash = (hash ^ request->mark.data[i]) * 0x100000001b3ULL;
	if (run->has_marks || hash == run->mark)
		return;
	run->mark = hash;
	run->window++;
}

static const char *add_request(struct check_lines *check, struct check_run *run, struct bytes line, bool is_event)
{
	const struct call *call = &check->request.call;
	const char *wrong = check_row_request(line, &check->request);
	struct check_call *row;

	if (wrong)
		return wrong;
	row = find_row(check, call->id);
	if (row) { /* the ledger and the events of one run both have it */
		run->requests += is_event && !row->in_events;
		row->in_events |= is_event;
		return NULL;
	}
	if (!is_event)
		follow_mark(run, &check->request);
	row = new_row(check, run, call->id);
	if (!row)
		return "it is one more than can be judged at once";
	row->line = line;
	row->first_ns = call->first_ns;
	memcpy(&row->principal, call->principal.byte, sizeof(row->principal));
	row->in_events = is_event;
	run->requests += is_event;
	row->window = run->window;
	return NULL;
}

static const char *add_response(struct check_lines *check, struct bytes line)
{
	struct check_response response;
	const char *wrong = check_row_response(line, &response);
	struct check_call *row = wrong ? NULL : find_row(check, response.of);

	if (row) {
		row->has_response = true;
		row->response = response;
	}
	check->orphans += !wrong && !row;
	return wrong;
}

/* What the run saw of the earlier one of a pair, and no line says. */
static void learn_of_pair(struct check_call *earlier, struct check_call *later, const struct check_finding *finding)
{
	unsigned int status = earlier->response.status;

	if (finding->masked)
		memcpy(&later->masked, later->id, sizeof(later->masked));
	else if (!finding->is_upgrade)
		later->masked = earlier->masked;

	earlier->is_earlier = true;
	if (finding->row_open && earlier->open_until_ns <= later->first_ns)
		earlier->open_until_ns = later->first_ns + 1;
	earlier->undecidable |= finding->row_undecidable;
	earlier->refused |= finding->row_refused;
	earlier->owner_gone |= finding->finding == FINDING_LLM_REDISPATCHED_JOB;
	if (earlier->principal != later->principal && status != 401 && status != 403 && status != 407)
		earlier->bearer = later->bearer = true;
}

static const char *add_finding(struct check_lines *check, struct bytes line)
{
	struct check_finding finding;
	const char *wrong = check_row_finding(line, &finding);
	struct check_call *later = wrong ? NULL : find_row(check, finding.of);
	struct check_call *earlier = later && finding.has_earlier ? find_row(check, finding.earlier) : NULL;

	check->orphans += !wrong && (!later || (finding.has_earlier && !earlier));
	if (!later)
		return wrong;
	later->abandoned |= finding.finding == FINDING_ABANDONED_CALL;
	later->truncated |= finding.finding == FINDING_TRUNCATED_RESPONSE;
	if (earlier)
		learn_of_pair(earlier, later, &finding);
	return NULL;
}

static const char *add_start(struct check_lines *check, struct check_run *run, struct bytes line)
{
	const char *wrong = check_row_start(line, &run->start);
	char options[1024];
	struct bytes text = run->start.options;

	if (wrong)
		return wrong;
	run->has_start = true;
	if (text.size >= sizeof(options))
		return "its options are too long";
	memcpy(options, text.data, text.size);
	options[text.size] = '\0';
	/* The first run's options judge all of them. */
	if (HASH_COUNT(check->runs) == 1 && judge_options_of_json(options, &check->options))
		return "its options cannot be read";
	return NULL;
}

static const char *add_mark(struct check_run *run)
{
	run->has_marks = true;
	run->window++;
	return NULL;
}

static const char *add_blind(struct check_lines *check, struct bytes line)
{
	struct check_blind blind;
	const char *wrong = check_row_blind(line, &blind);

	if (wrong)
		return wrong;
	gate_count_blind(&check->gate, blind.kind);
	blind_add(&check->gate.blind_processes, &blind.process, blind.kind, blind.bytes_out, blind.bytes_in);
	return NULL;
}

static const char *add_off_loopback(struct check_lines *check, struct bytes line)
{
	struct verdict verdict = {.finding = FINDING_OFF_LOOPBACK};
	bool refused;
	const char *wrong = check_row_off_loopback(line, &refused);

	verdict.severity = refused ? SEVERITY_HIGH : SEVERITY_INFO;
	if (!wrong)
		gate_add(&check->gate, &verdict);
	return wrong;
}

static const char *add_summary(struct check_run *run, struct bytes line)
{
	const char *wrong = check_row_summary(line, &run->summary);

	run->has_summary |= !wrong;
	return wrong;
}

static const char *add_line(struct check_lines *check, struct bytes line)
{
	char run_id[CHECK_RUN_BYTES + 1] = "";
	enum check_kind kind;
	const char *wrong = check_row_kind(line, &kind, run_id);
	struct check_run *run;

	if (wrong)
		return wrong;
	run = find_run(check, run_id);
	if (!run)
		return "it is of one more run than can be judged at once";
	run->has_events |= kind != CHECK_LEDGER;
	switch (kind) {
	case CHECK_LEDGER:
	case CHECK_REQUEST:
		return add_request(check, run, line, kind == CHECK_REQUEST);
	case CHECK_RESPONSE:
		return add_response(check, line);
	case CHECK_FINDING:
	case CHECK_UPGRADE:
		return add_finding(check, line);
	case CHECK_START:
		return add_start(check, run, line);
	case CHECK_MARK:
		return add_mark(run);
	case CHECK_BLIND:
		return add_blind(check, line);
	case CHECK_OFF_LOOPBACK:
		return add_off_loopback(check, line);
	case CHECK_SUMMARY:
		return add_summary(run, line);
	case CHECK_OTHER:
		break;
	}
	return NULL;
}

void check_lines_empty(struct check_lines *check)
{
	check->has_empty_file = true;
}

const char *check_lines_add(struct check_lines *check, struct bytes line)
{
	const char *wrong = add_line(check, line);

	check->broken_lines += wrong != NULL;
	return wrong;
}

