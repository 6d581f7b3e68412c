/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The decision table as the design has it, one function that picks the row,
 * one that picks the column, and after them what lowers or raises a cell. Model
 * calls have an order of their own. tools/mutate-table flips every cell and
 * expects exactly its tests to fail: keep one row of the table on one line.
 */
#include "finding.h"

struct cell {
	uint8_t finding;
	uint8_t severity;
};

#define CELL(finding, severity) {FINDING_##finding, SEVERITY_##severity}
#define NONE CELL(NONE, NULL)
#define UNDECIDABLE CELL(UNDECIDABLE, NULL)
#define SAFE_RETRY CELL(SAFE_RETRY, INFO)
#define IN_FLIGHT(severity) CELL(DUP_IN_FLIGHT, severity)
#define TIMEOUT(severity) CELL(DUP_AFTER_TIMEOUT, severity)
#define NO_RESPONSE(severity) CELL(DUP_AFTER_NO_RESPONSE, severity)
#define CUT(severity) CELL(DUP_AFTER_TRUNCATED_SUCCESS, severity)
#define SUCCESS(severity) CELL(DUP_AFTER_SUCCESS, severity)
#define GATEWAY(severity) CELL(DUP_AFTER_GATEWAY_ERROR, severity)
#define NO_KEY(severity) CELL(RETRY_WITHOUT_KEY, severity)
#define AGAIN(severity) CELL(RETRY_AFTER_SUCCESS, severity)
#define REFUSED(severity) CELL(RETRY_AFTER_REFUSAL, severity)
#define REUSED(severity) CELL(KEY_REUSED_DIFFERENT_BODY, severity)
#define CHANGED(severity) CELL(KEY_CHANGED_ON_RETRY, severity)
#define BY_STATUS {FINDING_COUNT, SEVERITY_NULL} /* the same column, in the row without the replay header */

/* clang-format off */
static const struct cell table[ROW_COUNT][COLUMN_COUNT] = {
	/*                      no key on the later, same key and body, same key and other body, new key and same body */
	[ROW_UNDECIDABLE]    = {UNDECIDABLE,         UNDECIDABLE,       UNDECIDABLE,             UNDECIDABLE},
	[ROW_REPLAYED]       = {NONE,                SAFE_RETRY,        BY_STATUS,               NONE},
	[ROW_OPEN]           = {IN_FLIGHT(MEDIUM),   SAFE_RETRY,        REUSED(HIGH),            IN_FLIGHT(MEDIUM)},
	[ROW_CLIENT_GAVE_UP] = {TIMEOUT(MEDIUM),     SAFE_RETRY,        REUSED(HIGH),            CHANGED(HIGH)},
	[ROW_SERVER_ENDED]   = {NO_RESPONSE(MEDIUM), SAFE_RETRY,        REUSED(HIGH),            CHANGED(HIGH)},
	[ROW_NEVER_READ]     = {NONE,                NONE,              NONE,                    NONE},
	[ROW_SUCCESS_CUT]    = {CUT(HIGH),           AGAIN(LOW),        REUSED(HIGH),            CHANGED(HIGH)},
	[ROW_SUCCESS]        = {SUCCESS(HIGH),       AGAIN(LOW),        REUSED(HIGH),            SUCCESS(LOW)},
	[ROW_CONFLICT]       = {GATEWAY(LOW),        SAFE_RETRY,        REUSED(HIGH),            CHANGED(LOW)},
	[ROW_OVERLOADED]     = {NO_KEY(LOW),         SAFE_RETRY,        REUSED(MEDIUM),          CHANGED(LOW)},
	[ROW_SERVER_ERROR]   = {GATEWAY(MEDIUM),     SAFE_RETRY,        REUSED(HIGH),            CHANGED(MEDIUM)},
	[ROW_ASKED_AGAIN]    = {NONE,                NONE,              NONE,                    NONE},
	[ROW_REFUSED]        = {NO_KEY(INFO),        REFUSED(INFO),     REUSED(INFO),            NONE},
};
/* clang-format on */

bool attempts_share_process(const struct attempt_facts *a, const struct attempt_facts *b)
{
	return a->tgid == b->tgid && a->process == b->process;
}

/* ---- the row ---- */

static bool has_final_status(const struct attempt_facts *facts)
{
	return facts->status >= 200;
}

/* The client got its head, now or later. */
static bool was_answered(const struct attempt_facts *facts)
{
	return has_final_status(facts) && facts->status_in_time;
}

/* The server did what it was asked (RFC 9110 sections 15.3, 15.4.3, 15.4.4). */
static bool was_applied(const struct attempt_facts *facts)
{
	if (facts->not_run)
		return false;
	return (facts->status >= 200 && facts->status < 300) || facts->status == 303 ||
	       (facts->status == 302 && facts->form);
}

/* A 2xx, sent when its client had gone. */
static bool applied_late(const struct attempt_facts *facts)
{
	return was_applied(facts) && !facts->status_in_time;
}

uint64_t attempt_ended_ns(const struct attempt_facts *facts)
{
	uint64_t end_ns = facts->closed_first == CLOSER_NOBODY ? 0 : facts->closed_ns;

	if (facts->undecidable)
		return 0;
	if (!was_answered(facts)) {
		if (!facts->request_complete)
			return 0;
		return end_ns ? end_ns : UINT64_MAX;
	}
	if (facts->complete_ns && (end_ns == 0 || facts->complete_ns < end_ns))
		end_ns = facts->complete_ns;
	if (end_ns == 0)
		return UINT64_MAX;
	return end_ns > facts->status_ns ? end_ns : facts->status_ns;
}

static bool was_cut(const struct attempt_facts *facts)
{
	if (facts->complete_ns == 0 || facts->delivered == DELIVERED_PART || facts->delivered == DELIVERED_NONE)
		return true;
	if (facts->delivered == DELIVERED_ALL)
		return false;
	return facts->closed_first == CLOSER_CLIENT && facts->closed_ns && facts->closed_ns < facts->complete_ns;
}

static enum finding_row row_without_status(const struct attempt_facts *facts)
{
	if (!facts->request_complete)
		return ROW_NEVER_READ;
	if (facts->closed_first == CLOSER_CLIENT)
		return ROW_CLIENT_GAVE_UP;
	return facts->server_read_known && !facts->server_read_all ? ROW_NEVER_READ : ROW_SERVER_ENDED;
}

static bool same_principal(const struct attempt_facts *a, const struct attempt_facts *b)
{
	return a->has_principal == b->has_principal && a->principal == b->principal;
}

/* The later one is the request that a 4xx asked for. */
static bool does_as_asked(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	if (earlier->status == 417)
		return !later->expects;
	return later->has_principal && !same_principal(earlier, later);
}

static enum finding_row row_of_status(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	unsigned int status = earlier->status;

	if (was_applied(earlier))
		return was_cut(earlier) ? ROW_SUCCESS_CUT : ROW_SUCCESS;
	switch (status) {
	case 302:
	case 408:
	case 409:
		return ROW_CONFLICT;
	case 429:
	case 503:
	case 529:
		return ROW_OVERLOADED;
	case 300:
	case 304:
		return ROW_ASKED_AGAIN;
	case 401:
	case 407:
	case 417:
		return does_as_asked(earlier, later) ? ROW_ASKED_AGAIN : ROW_REFUSED;
	default:
		return status >= 500 || status == 499 ? ROW_SERVER_ERROR : ROW_REFUSED;
	}
}

/* The row but for a replay header. */
static enum finding_row row_by_time(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	if (earlier->undecidable)
		return ROW_UNDECIDABLE;
	if (later->first_ns < attempt_ended_ns(earlier))
		return ROW_OPEN;
	return was_answered(earlier) ? row_of_status(earlier, later) : row_without_status(earlier);
}

enum finding_row finding_row_of(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	enum finding_row row = row_by_time(earlier, later);

	return row != ROW_UNDECIDABLE && (earlier->replayed || later->replayed) ? ROW_REPLAYED : row;
}

/* ---- the column ---- */

#define BIT(column) (1U << (column))

static unsigned int same_key_columns(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	if (earlier->body == 0 || later->body == 0)
		return BIT(COLUMN_SAME_KEY_SAME_BODY) | BIT(COLUMN_SAME_KEY_OTHER_BODY);
	return earlier->body == later->body ? BIT(COLUMN_SAME_KEY_SAME_BODY) : BIT(COLUMN_SAME_KEY_OTHER_BODY);
}

unsigned int finding_columns_of(const struct attempt_facts *earlier, const struct attempt_facts *later)
{
	bool may_have_key = earlier->idem_state == IDEM_PRESENT || earlier->idem_state == IDEM_UNKNOWN;
	unsigned int columns = 0;

	switch ((enum idem_state)later->idem_state) {
	case IDEM_PRESENT:
		if (earlier->idem_state == IDEM_PRESENT)
			return earlier->key == later->key ? same_key_columns(earlier, later) : BIT(COLUMN_NEW_KEY);
		break;
	case IDEM_UNKNOWN:
		columns = BIT(COLUMN_NO_KEY);
		break;
	default:
		return BIT(COLUMN_NO_KEY);
	}
	columns |= BIT(COLUMN_NEW_KEY);
	return may_have_key ? columns | same_key_columns(earlier, later) : columns;
}

/* ---- the cell, and what lowers or raises it ---- */

struct pair {
	const struct attempt_facts *earlier;
	const struct attempt_facts *later;
	const struct finding_options *options;
	bool strict;
	enum finding_row row;
	bool cross_process;
	bool weaker;
	bool masked;
};

static struct verdict verdict_of(const struct pair *pair, enum finding finding, enum severity severity, const char *rule)
{
	return (struct verdict){
		.finding = finding,
		.severity = severity,
		.row = pair->row,
		.rule = rule,
		.cross_process = pair->cross_process,
		.weaker = pair->weaker,
		.masked = pair->masked,
	};
}

static void lower(struct verdict *verdict, enum severity at_most, const char *rule)
{
	if (verdict->severity <= at_most)
		return;
	verdict->severity = at_most;
	verdict->rule = rule;
}

/* The stop rule's list. Where nothing came, the row says so. */
static bool is_listed(unsigned int status)
{
	switch (status) {
	case 408:
	case 409:
	case 429:
	case 500:
	case 502:
	case 503:
	case 504:
		return true;
	default:
		return false;
	}
}

static void be_strict(struct verdict *verdict, const struct pair *pair)
{
	bool after_error = pair->row == ROW_CONFLICT || pair->row == ROW_OVERLOADED || pair->row == ROW_SERVER_ERROR;

	if (verdict->finding == FINDING_SAFE_RETRY && after_error && !is_listed(pair->earlier->status)) {
		verdict->finding = FINDING_RETRY_AFTER_UNLISTED_STATUS;
		verdict->severity = SEVERITY_MEDIUM;
		verdict->rule = "strict: the status is not in the stop rule's list";
	}
	if (verdict->finding == FINDING_NONE || verdict->finding == FINDING_SAFE_RETRY ||
	    verdict->finding == FINDING_UNDECIDABLE || verdict->severity >= SEVERITY_MEDIUM)
		return;
	verdict->severity = SEVERITY_MEDIUM;
	verdict->rule = "strict";
}

static void lower_by_class(struct verdict *verdict, const struct attempt_facts *later, bool strict)
{
	if (later->class == CLASS_READ)
		lower(verdict, SEVERITY_LOW,
		      later->class_source == CLASS_BY_PATH ? "path rule: known as a read by its path alone"
							   : "tool name rule: known as a read by its name alone");
	if (later->idempotent && !strict)
		lower(verdict, SEVERITY_LOW, "method is idempotent");
	if (later->class == CLASS_AUTH)
		lower(verdict, SEVERITY_INFO, "class auth");
	if (later->class == CLASS_TELEMETRY)
		lower(verdict, SEVERITY_INFO, "class telemetry");
}

static struct verdict judge_by_table(const struct pair *pair, enum finding_column column)
{
	struct cell cell = table[pair->row][column];
	struct verdict verdict;

	if (cell.finding == FINDING_COUNT)
		cell = table[row_by_time(pair->earlier, pair->later)][column];
	verdict = verdict_of(pair, cell.finding, cell.severity, "table");
	if (verdict.finding == FINDING_DUP_AFTER_TIMEOUT && applied_late(pair->earlier)) {
		verdict.severity = SEVERITY_HIGH;
		verdict.rule = "the earlier attempt got a late 2xx";
	}
	if (pair->strict)
		be_strict(&verdict, pair);
	lower_by_class(&verdict, pair->later, pair->strict);
	return verdict;
}

/* ---- model calls ---- */

static bool may_be_billed(unsigned int status)
{
	return (status >= 500 && status != 503 && status != 529) || status == 408 || status == 409;
}

/* An exit is no exit yet where the connection closed only after the later one began. */
static bool owner_left_it(const struct pair *pair)
{
	const struct attempt_facts *earlier = pair->earlier;

	if (!earlier->owner_gone || !pair->cross_process)
		return false;
	if (pair->row == ROW_OPEN)
		return attempt_ended_ns(earlier) == UINT64_MAX;
	return (pair->row == ROW_CLIENT_GAVE_UP || pair->row == ROW_SERVER_ENDED) && !has_final_status(earlier);
}

static struct verdict judge_row_of_llm(const struct pair *pair)
{
	const struct attempt_facts *earlier = pair->earlier;

	if (pair->row == ROW_UNDECIDABLE)
		return verdict_of(pair, FINDING_UNDECIDABLE, SEVERITY_NULL, "model call");
	if (pair->row == ROW_REPLAYED)
		return verdict_of(pair, FINDING_NONE, SEVERITY_NULL, "replay header");
	if (owner_left_it(pair))
		return verdict_of(pair, FINDING_LLM_REDISPATCHED_JOB, SEVERITY_MEDIUM, "model call");
	switch (pair->row) {
	case ROW_SUCCESS_CUT:
		return verdict_of(pair, FINDING_LLM_BILLED_TWICE, SEVERITY_HIGH, "model call");
	case ROW_SUCCESS:
		if (earlier->answer_cut)
			return verdict_of(pair, FINDING_LLM_BILLED_TWICE, SEVERITY_HIGH, "model call: its answer has no end");
		return verdict_of(pair, FINDING_LLM_REPEAT, SEVERITY_INFO, "model call");
	case ROW_OPEN:
		return verdict_of(pair, FINDING_LLM_IDENTICAL_IN_FLIGHT, SEVERITY_LOW, "model call");
	case ROW_CLIENT_GAVE_UP:
	case ROW_SERVER_ENDED:
		if (applied_late(earlier))
			return verdict_of(pair, FINDING_LLM_BILLED_TWICE, SEVERITY_HIGH, "model call: a late 2xx");
		return verdict_of(pair, FINDING_LLM_MAYBE_BILLED_TWICE, SEVERITY_MEDIUM, "model call");
	case ROW_NEVER_READ:
		return verdict_of(pair, FINDING_NONE, SEVERITY_NULL, "model call");
	default:
		if (may_be_billed(earlier->status))
			return verdict_of(pair, FINDING_LLM_MAYBE_BILLED_TWICE, SEVERITY_MEDIUM, "model call");
		return verdict_of(pair, FINDING_NONE, SEVERITY_NULL, "model call");
	}
}

/* Embeddings: little money, and the same answer every time. */
static void lower_cheap(struct verdict *verdict, const struct attempt_facts *later)
{
	if (later->class_source == CLASS_BY_PATH)
		lower(verdict, SEVERITY_LOW, "path rule: known as a model call by its path alone");
}

/* ---- the judge ---- */

/* Nothing is known of how they went, and none of the rows has more than low for it. */
static bool is_low_at_most(const struct pair *pair, enum finding_column column)
{
	return column == COLUMN_SAME_KEY_SAME_BODY && !pair->strict && pair->row == ROW_UNDECIDABLE &&
	       pair->earlier->no_outcome && pair->later->no_outcome;
}

static struct verdict judge_column(const struct pair *pair, enum finding_column column)
{
	const struct finding_limits *limits = finding_limits_of(pair->later, pair->options);
	struct verdict verdict;

	if (is_low_at_most(pair, column)) {
		verdict = verdict_of(pair, FINDING_SAFE_RETRY, SEVERITY_INFO,
				     "no outcome is known: same key and same body is low at most");
	} else if (pair->later->class != CLASS_LLM) {
		verdict = judge_by_table(pair, column);
	} else {
		verdict = judge_row_of_llm(pair);
		lower_cheap(&verdict, pair->later);
		if (column == COLUMN_SAME_KEY_SAME_BODY)
			lower(&verdict, SEVERITY_INFO, "same key and same body");
	}
	if (limits && limits->capped)
		lower(&verdict, limits->at_most, "policy: severity");
	verdict.column = column;
	return verdict;
}

/* One verdict where every column says the same, else undecidable. */
static struct verdict judge_columns(const struct pair *pair, unsigned int columns)
{
	struct verdict first = {0};
	bool have_first = false;

	for (int column = 0; column < COLUMN_COUNT; column++) {
		struct verdict verdict;

		if (!(columns & BIT(column)))
			continue;
		verdict = judge_column(pair, column);
		if (!have_first) {
			first = verdict;
			have_first = true;
		} else if (verdict.finding != first.finding || verdict.severity != first.severity) {
			first.finding = FINDING_UNDECIDABLE;
			first.severity = SEVERITY_NULL;
			first.rule = columns & (BIT(COLUMN_NO_KEY) | BIT(COLUMN_NEW_KEY))
					     ? "the key may not have been seen"
					     : "the body of one of them is not known";
			return first;
		}
	}
	return first;
}

/* Reads that are more than a guess from a path or a name. */
static bool is_certain_read(const struct attempt_facts *facts)
{
	return facts->class == CLASS_READ && facts->class_source != CLASS_BY_PATH &&
	       facts->class_source != CLASS_BY_TOOL_NAME;
}

/* ---- what the policy has to say ---- */

const struct finding_limits *finding_limits_of(const struct attempt_facts *facts,
					       const struct finding_options *options)
{
	return facts->policy_rule && options->limits ? &options->limits[facts->policy_rule - 1] : NULL;
}

uint64_t finding_window_ns(const struct attempt_facts *facts, const struct finding_options *options,
			   bool cross_process)
{
	const struct finding_limits *limits = finding_limits_of(facts, options);
	bool across = cross_process || facts->idem_state == IDEM_PRESENT;
	uint64_t window_ns = 0;

	if (limits)
		window_ns = across ? limits->across_ns : limits->window_ns;
	if (!window_ns)
		window_ns = across ? options->across_ns : options->window_ns;
	return window_ns ? window_ns : UINT64_MAX;
}

static uint64_t gap_of(const struct attempt_facts *a, const struct attempt_facts *b)
{
	return a->first_ns < b->first_ns ? b->first_ns - a->first_ns : a->first_ns - b->first_ns;
}

/* NULL, or why the policy keeps the two apart. */
static const char *why_apart(const struct pair *pair)
{
	const struct finding_limits *limits = finding_limits_of(pair->later, pair->options);

	if (limits && limits->same_process && pair->cross_process)
		return "policy: scope process";
	if (limits && limits->same_cgroup && pair->earlier->cgroup != pair->later->cgroup)
		return "policy: scope cgroup";
	if (gap_of(pair->earlier, pair->later) > finding_window_ns(pair->later, pair->options, pair->cross_process))
		return limits && (limits->window_ns || limits->across_ns) ? "policy: window" : "out of the window";
	return NULL;
}

/* NULL, or why no verdict can be about this later attempt, whatever came before. */
static const char *why_not_judged(const struct attempt_facts *later, const struct finding_options *options)
{
	const struct finding_limits *limits = finding_limits_of(later, options);

	if (limits && limits->capped && limits->at_most == SEVERITY_NULL)
		return "policy: severity none";
	if (is_certain_read(later))
		return "read";
	if (!later->request_complete && !later->undecidable)
		return "the later request was never whole";
	return NULL;
}

static bool within_bearer_window(const struct attempt_facts *a, const struct attempt_facts *b)
{
	return gap_of(a, b) <= FINDING_BEARER_WINDOW_NS;
}

static bool principals_match(const struct pair *pair, bool *ret_weaker)
{
	const struct attempt_facts *earlier = pair->earlier, *later = pair->later;

	if (same_principal(earlier, later))
		return true;
	if (row_by_time(earlier, later) >= ROW_ASKED_AGAIN &&
	    (earlier->status == 401 || earlier->status == 403 || earlier->status == 407))
		return true;
	if (!earlier->bearer || !later->bearer || pair->cross_process || !within_bearer_window(earlier, later))
		return false;
	*ret_weaker = true;
	return true;
}

static struct pair pair_of(const struct attempt_facts *earlier, const struct attempt_facts *later,
			   const struct finding_options *options)
{
	return (struct pair){
		.earlier = earlier,
		.later = later,
		.options = options,
		.strict = options->strict,
		.row = finding_row_of(earlier, later),
		.cross_process = !attempts_share_process(earlier, later),
		.masked = earlier->body == later->body && earlier->masked != later->masked,
	};
}

/* Not part of the bounds below: those hold for attempts of any age. */
static bool is_stale(const struct pair *pair)
{
	return pair->options->fresh_ns && pair->cross_process && pair->row == ROW_SUCCESS &&
	       gap_of(pair->earlier, pair->later) > pair->options->fresh_ns;
}

struct verdict finding_judge(const struct attempt_facts *earlier, const struct attempt_facts *later,
			     const struct finding_options *options)
{
	struct pair pair = pair_of(earlier, later, options);
	const char *why_not = why_not_judged(later, options);
	struct verdict verdict;

	if (!why_not)
		why_not = why_apart(&pair);
	if (!why_not && later->continuation && !earlier->continuation)
		why_not = "continuation of an MCP call";
	if (!why_not && !principals_match(&pair, &pair.weaker))
		why_not = "different principals";
	if (why_not)
		return verdict_of(&pair, FINDING_NONE, SEVERITY_NULL, why_not);
	verdict = judge_columns(&pair, finding_columns_of(earlier, later));
	if (is_stale(&pair))
		lower(&verdict, SEVERITY_INFO, "another process, long after the success");
	return verdict;
}

/* none, info, low, undecidable, medium, high */
static int rank_of(const struct verdict *verdict)
{
	static const int ranks[] = {
		[SEVERITY_NULL] = 0, [SEVERITY_INFO] = 1, [SEVERITY_LOW] = 2, [SEVERITY_MEDIUM] = 4, [SEVERITY_HIGH] = 5};

	return verdict->finding == FINDING_UNDECIDABLE ? 3 : ranks[verdict->severity];
}

bool verdict_worse(const struct verdict *a, const struct verdict *b)
{
	return rank_of(a) > rank_of(b);
}

/* ---- bounds for the search among many ---- */

struct verdict finding_worst_like(const struct attempt_facts *earlier, const struct attempt_facts *later,
				  const struct finding_options *options, bool by_key)
{
	struct pair pair = pair_of(earlier, later, options);
	unsigned int columns = finding_columns_of(earlier, later);
	struct verdict worst = judge_columns(&pair, columns);

	if (why_not_judged(later, options))
		return verdict_of(&pair, FINDING_NONE, SEVERITY_NULL, NULL);
	if (later->idem_state == IDEM_PRESENT)
		columns |= BIT(COLUMN_SAME_KEY_SAME_BODY) | BIT(by_key ? COLUMN_SAME_KEY_OTHER_BODY : COLUMN_NEW_KEY);
	for (int other_process = 0; other_process < 2; other_process++) {
		pair.cross_process = other_process;
		for (int column = 0; column < COLUMN_COUNT; column++) {
			struct verdict verdict;

			if (!(columns & BIT(column)))
				continue;
			verdict = judge_column(&pair, column);
			if (verdict_worse(&verdict, &worst))
				worst = verdict;
		}
	}
	return worst;
}

enum severity finding_highest(const struct attempt_facts *later, const struct finding_options *options)
{
	struct verdict verdict = {.finding = FINDING_DUP_AFTER_SUCCESS, .severity = SEVERITY_HIGH};
	const struct finding_limits *limits = finding_limits_of(later, options);

	if (why_not_judged(later, options))
		return SEVERITY_NULL;
	if (later->class == CLASS_LLM)
		lower_cheap(&verdict, later);
	else
		lower_by_class(&verdict, later, options->strict);
	if (limits && limits->capped)
		lower(&verdict, limits->at_most, "policy: severity");
	return verdict.severity;
}

/* ---- polling ---- */

const char finding_poll_rule[] = "polling: equal calls at even gaps, each answered";

static bool polled_once(const struct attempt_facts *a, const struct attempt_facts *b)
{
	uint64_t gap_ns = b->first_ns - a->first_ns;

	return a->idem_state == IDEM_ABSENT && b->idem_state == IDEM_ABSENT && same_principal(a, b) &&
	       b->first_ns > a->first_ns && gap_ns >= FINDING_POLL_GAP_NS && finding_row_of(a, b) == ROW_SUCCESS &&
	       attempt_ended_ns(a) - a->first_ns < gap_ns / 2;
}

bool finding_is_poll(const struct attempt_facts *a, const struct attempt_facts *b, const struct attempt_facts *c)
{
	uint64_t first_gap_ns, second_gap_ns, difference_ns;

	if (c->known_write || !polled_once(a, b) || !polled_once(b, c))
		return false;
	first_gap_ns = b->first_ns - a->first_ns;
	second_gap_ns = c->first_ns - b->first_ns;
	difference_ns = first_gap_ns < second_gap_ns ? second_gap_ns - first_gap_ns : first_gap_ns - second_gap_ns;
	return difference_ns <= (first_gap_ns > second_gap_ns ? first_gap_ns : second_gap_ns) / 10;
}
