/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random histories, from fixed seeds, through attempts.c and through a plain
 * model that judges every pair every time. Both must report the same pair, the
 * same verdict, the same attempt numbers and the same changes in the same
 * order: the shelves of large families leave nothing out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "attempts.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)
#define MODEL_MAX 4000
#define OPEN_MAX 48

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

static uint64_t below(uint64_t limit)
{
	return next_random() % limit;
}

static bool one_in(uint64_t n)
{
	return below(n) == 0;
}

/* ---- the model ---- */

struct one {
	struct attempt_facts facts;
	struct verdict said;
	uint64_t number;
	int earlier;		  /* the pair that said is about; -1 = none */
	int window;
	bool bound[2];		  /* has a fingerprint, has a key scope */
	struct digest digest[2];
	uint64_t place[2];	  /* n-th of its group */
};

struct model {
	struct attempts_options options;
	struct one *one;
	int first, next, window;
	uint64_t evicted; /* forgotten in the window that they were in */
};

static bool together(const struct model *model, const struct one *a, const struct one *b, int bond)
{
	return a->window == b->window && a->bound[bond] && b->bound[bond] &&
	       digest_equal(&a->digest[bond], &b->digest[bond]) &&
	       (model->options.across_processes || attempts_share_process(&a->facts, &b->facts));
}

/* The n-th before that one in its group by fingerprint, or -1. */
static int before_in_group(const struct model *model, int of, int n)
{
	for (int i = of - 1; i >= model->first; i--)
		if (together(model, &model->one[i], &model->one[of], 0) && --n == 0)
			return i;
	return -1;
}

static struct verdict model_judge(const struct model *model, int of, int *ret_earlier)
{
	const struct one *later = &model->one[of];
	struct verdict worst = {0};
	int second = before_in_group(model, of, 1), first = before_in_group(model, of, 2);

	*ret_earlier = -1;
	for (int i = model->first; i < of; i++) {
		struct verdict verdict;

		if (!together(model, &model->one[i], later, 0) && !together(model, &model->one[i], later, 1))
			continue;
		verdict = finding_judge(&model->one[i].facts, &later->facts, &model->options.finding);
		if (verdict.finding == FINDING_NONE || verdict_worse(&worst, &verdict))
			continue;
		worst = verdict;
		*ret_earlier = i;
	}
	if (worst.finding == FINDING_DUP_AFTER_SUCCESS && worst.severity > SEVERITY_INFO && first >= 0 &&
	    *ret_earlier == second &&
	    finding_is_poll(&model->one[first].facts, &model->one[second].facts, &later->facts)) {
		worst.severity = SEVERITY_INFO;
		worst.rule = finding_poll_rule;
	}
	return worst;
}

static uint64_t group_size(const struct model *model, int of, int bond)
{
	for (int i = model->next - 1; i >= model->first; i--)
		if (together(model, &model->one[i], &model->one[of], bond))
			return model->one[i].place[bond];
	return 0;
}

static void assert_same_verdict(const struct verdict *a, const struct verdict *b)
{
	assert_int_equal(a->finding, b->finding);
	assert_int_equal(a->severity, b->severity);
	assert_int_equal(a->row, b->row);
	assert_int_equal(a->column, b->column);
	assert_ptr_equal(a->rule, b->rule);
	assert_int_equal(a->cross_process, b->cross_process);
	assert_int_equal(a->weaker, b->weaker);
}

/* judgement is what the model says of that one, paired with that earlier one. */
static void expect_judgement(const struct model *model, const struct judgement *judgement, int of, int earlier,
			     const struct verdict *verdict)
{
	const struct one *one = &model->one[of];
	struct digest group;
	int bond = !one->bound[0] || (earlier >= 0 && !together(model, one, &model->one[earlier], 0));

	assert_int_equal(judgement->call_number, one->number);
	assert_same_verdict(&judgement->verdict, verdict);
	assert_memory_equal(&judgement->later_facts, &one->facts, sizeof(one->facts));
	assert_int_equal(judgement->earlier_number, earlier >= 0 ? model->one[earlier].number : 0);
	if (earlier >= 0)
		assert_memory_equal(&judgement->earlier_facts, &model->one[earlier].facts, sizeof(one->facts));
	assert_int_equal(judgement->by_key, bond);
	group = attempts_group(&one->digest[bond]);
	assert_memory_equal(&judgement->group, &group, sizeof(group));
	assert_int_equal(judgement->attempt, one->place[bond]);
	assert_int_equal(judgement->attempts, group_size(model, of, bond));
}

static void expect_change(const struct model *model, struct attempts *attempts, int of, int earlier,
			  const struct verdict *before)
{
	struct judgement judgement;

	assert_true(attempts_next_change(attempts, &judgement));
	assert_same_verdict(&judgement.before, before);
	expect_judgement(model, &judgement, of, earlier, &model->one[of].said);
}

static int remembered(const struct model *model, int i)
{
	return i >= model->first ? i : -1;
}

/* All of its pairs anew. */
static void model_judge_again(struct model *model, struct attempts *attempts, int of)
{
	struct one *one = &model->one[of];
	struct verdict before = one->said;
	int pair = remembered(model, one->earlier), earlier;
	struct verdict worst = model_judge(model, of, &earlier);

	if (worst.finding == before.finding && worst.severity == before.severity)
		return;
	if (worst.finding == FINDING_NONE && pair >= 0)
		worst = finding_judge(&model->one[pair].facts, &one->facts, &model->options.finding);
	one->said = worst;
	one->earlier = earlier;
	expect_change(model, attempts, of, earlier >= 0 ? earlier : pair, &before);
}

static void model_reconsider(struct model *model, struct attempts *attempts, int changed, int of,
			     const struct attempt_facts *before)
{
	struct one *later = &model->one[of];
	struct attempt_facts now = model->one[changed].facts;
	struct verdict said = later->said, was, is;

	if (now.replayed && !before->replayed && later->earlier == changed) {
		model_judge_again(model, attempts, of);
		return;
	}
	now.owner_gone = before->owner_gone;
	was = finding_judge(before, &later->facts, &model->options.finding);
	is = finding_judge(&now, &later->facts, &model->options.finding);
	if (was.finding == FINDING_SAFE_RETRY || !verdict_worse(&is, &was) || !verdict_worse(&is, &said))
		return;
	later->said = is;
	later->earlier = changed;
	expect_change(model, attempts, of, changed, &said);
}

static void model_lower_poll(struct model *model, struct attempts *attempts, int of)
{
	const struct attempt_facts long_after = {.first_ns = UINT64_MAX - 1};
	int second = before_in_group(model, of, 1), first = before_in_group(model, of, 2);
	struct verdict before;

	if (first < 0 || model->one[of].said.rule != finding_poll_rule ||
	    finding_row_of(&model->one[of].facts, &long_after) != ROW_SUCCESS ||
	    model->one[second].said.finding != FINDING_DUP_AFTER_SUCCESS ||
	    model->one[second].said.severity <= SEVERITY_INFO || model->one[second].earlier != first)
		return;
	before = model->one[second].said;
	model->one[second].said.severity = SEVERITY_INFO;
	model->one[second].said.rule = finding_poll_rule;
	expect_change(model, attempts, second, first, &before);
}

static void model_update(struct model *model, struct attempts *attempts, int of, const struct call *call)
{
	struct one *one = &model->one[of];
	struct attempt_facts before = one->facts;
	struct judgement judgement;

	attempt_facts_of(call, &one->facts);
	if (of < model->first || memcmp(&before, &one->facts, sizeof(before)) == 0) {
		assert_false(attempts_next_change(attempts, &judgement));
		return;
	}
	if (one->facts.replayed && !before.replayed)
		model_judge_again(model, attempts, of);
	model_lower_poll(model, attempts, of);
	for (int bond = 0; bond < 2; bond++)
		for (int i = of + 1; i < model->next; i++)
			if (together(model, one, &model->one[i], bond) && (bond == 0 || !together(model, one, &model->one[i], 0)))
				model_reconsider(model, attempts, of, i, &before);
	assert_false(attempts_next_change(attempts, &judgement));
}

static const struct digest *fingerprint_of(const struct call *call)
{
	if (call->class == CLASS_LLM && call->has_prompt_fingerprint)
		return &call->prompt_fingerprint;
	return call->has_fingerprint ? &call->fingerprint : NULL;
}

static int model_add(struct model *model, const struct call *call, const struct judgement *judgement)
{
	const struct digest *fingerprint = fingerprint_of(call);
	struct one *one = &model->one[model->next];

	memset(one, 0, sizeof(*one));
	if ((size_t)(model->next - model->first) == model->options.max_remembered)
		model->evicted += model->one[model->first++].window == model->window;
	attempt_facts_of(call, &one->facts);
	one->number = call->number;
	one->window = model->window;
	one->bound[0] = fingerprint != NULL;
	one->bound[1] = call->idem_state == IDEM_PRESENT;
	if (fingerprint)
		one->digest[0] = *fingerprint;
	one->digest[1] = call->key_scope;
	for (int bond = 0; bond < 2; bond++)
		one->place[bond] = group_size(model, model->next, bond) + 1;
	model->next++;
	one->said = model_judge(model, model->next - 1, &one->earlier);
	expect_judgement(model, judgement, model->next - 1, one->earlier, &one->said);
	return model->next - 1;
}

/* ---- random calls ---- */

struct mix {
	bool across, strict, llm, reads, idempotent, polls;
	unsigned int remembered, fingerprints, keys, principals, processes;
	bool bearers;
	unsigned int mark_one_in;
	uint64_t step_ns;
};

static struct digest digest_number(uint64_t number)
{
	struct digest digest = {{0}};

	number = (number + 1) * 0x9e3779b97f4a7c15ULL;
	memcpy(digest.byte, &number, sizeof(number));
	digest.byte[31] = (uint8_t)number;
	return digest;
}

static void random_key(struct call *call, const struct mix *mix, uint64_t body)
{
	static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
	static char fresh[64][24];
	static unsigned int next_fresh;
	uint64_t scope;

	if (one_in(40))
		call->idem_state = one_in(2) ? IDEM_UNKNOWN : IDEM_INVALID;
	if (mix->keys == 0 || call->idem_state != IDEM_ABSENT || one_in(4))
		return;
	call->idem_state = IDEM_PRESENT;
	scope = below(mix->keys);
	call->idem = bytes_of_string(keys[scope]);
	if (one_in(3)) { /* one that nobody else has; the text must last as long as the call is open */
		char *text = fresh[next_fresh++ % 64];

		scope = 1000 + next_random() % 1000000000;
		snprintf(text, sizeof(fresh[0]), "%llu", (unsigned long long)scope);
		call->idem = bytes_of_string(text);
	}
	(void)body;
	call->key_scope = digest_number(scope * 1000 + (call->has_principal ? call->principal.byte[0] : 999));
}

static struct call random_call(const struct mix *mix, uint64_t number, uint64_t now_ns)
{
	uint64_t body = below(mix->fingerprints), upload = one_in(5) ? below(20 * mix->step_ns) : 0;
	struct call call = {
		.number = number,
		.process = {.tgid = 100 + (uint32_t)below(mix->processes), .start_ns = 5},
		.first_ns = now_ns - upload,
		.request_complete = !one_in(50),
		.method = BYTES("POST"),
		.class = mix->llm && body % 2 ? CLASS_LLM : mix->reads && body % 3 == 0 ? CLASS_READ : CLASS_MUTATING,
		.class_source = mix->llm && body % 8 > 3 ? CLASS_BY_PROTOCOL : CLASS_BY_PATH,
		.idempotent_hint = mix->idempotent && body % 2,
		.has_sha = true,
		.sha = digest_number(body / 2 + 500),
		.has_fingerprint = true,
		.fingerprint = digest_number(body),
		.undecidable = one_in(60),
		.open = true,
	};

	if (call.class == CLASS_LLM && body % 4 == 1) {
		call.has_prompt_fingerprint = true;
		call.prompt_fingerprint = digest_number(7777);
	}
	if (mix->principals && !one_in(6)) {
		call.has_principal = true;
		call.principal = digest_number(below(mix->principals) + 60);
		call.principal_is_bearer = mix->bearers && call.principal.byte[1] % 4 != 0;
	}
	random_key(&call, mix, body);
	if (!call.request_complete || (call.idem_state == IDEM_PRESENT && one_in(30)))
		call.has_fingerprint = call.has_prompt_fingerprint = call.has_sha = false;
	return call;
}

static void random_answer(struct call *call, uint64_t now_ns, uint64_t step_ns, bool polls)
{
	static const unsigned int statuses[] = {200, 200, 201, 202, 302, 303, 304, 307, 401, 403, 403, 404,
						407, 408, 409, 417, 422, 429, 499, 500, 502, 503, 524, 529};

	call->status = statuses[polls && !one_in(4) ? 0 : below(sizeof(statuses) / sizeof(statuses[0]))];
	call->status_ns = now_ns - (one_in(3) ? below(2 * step_ns) : 0); /* known a little late */
	call->status_in_time = call->client_closed_ns == 0 || call->client_closed_ns > call->status_ns;
	call->replayed = one_in(12);
	call->answer_unfinished = one_in(3);
	call->usage = (struct usage){.seen = one_in(2), .final = one_in(2), .input_tokens = (int64_t)below(1000), .output_tokens = 7};
}

/* Something that may happen to a call. */
static void random_fate(struct call *call, uint64_t now_ns, uint64_t step_ns, bool polls)
{
	switch (below(10)) {
	case 0:
		if (call->client_closed_ns == 0) {
			call->client_closed_ns = now_ns - (one_in(4) ? below(2 * step_ns) : 0);
			call->closed_first = call->closed_first ? call->closed_first : CLOSER_CLIENT;
		}
		break;
	case 1:
		if (call->server_closed_ns == 0 && !call->response_complete) {
			call->server_closed_ns = now_ns;
			call->closed_first = call->closed_first ? call->closed_first : CLOSER_SERVER;
		}
		break;
	case 2:
		call->server_read_known = true;
		call->server_read_all = one_in(2);
		break;
	case 3:
		call->client_died |= one_in(3);
		break;
	case 4:
		call->undecidable |= one_in(8);
		break;
	case 5:
		if (call->response_complete && call->delivered == DELIVERED_UNKNOWN)
			call->delivered = DELIVERED_ALL + (enum call_delivered)below(3);
		break;
	case 6:
		if (call->status && !call->response_complete) {
			call->response_complete = true;
			call->response_last_ns = now_ns;
		}
		break;
	default:
		if (call->status)
			break;
		random_answer(call, now_ns, step_ns, polls);
		if (one_in(3))
			break;
		call->response_complete = true;
		call->response_last_ns = now_ns - (one_in(4) ? below(step_ns) : 0);
		break;
	}
}

/* ---- histories ---- */

struct history {
	struct mix mix;
	struct model model;
	struct attempts *attempts;
	struct call call[OPEN_MAX];
	int place[OPEN_MAX]; /* in the model; -1 = no call */
	uint64_t now_ns;
	uint64_t number;
};

static void step_add(struct history *history, int slot)
{
	struct judgement judgement;
	struct call *call = &history->call[slot];

	*call = random_call(&history->mix, ++history->number, history->now_ns);
	assert_int_equal(attempts_add(history->attempts, call, &judgement), 0);
	if (!fingerprint_of(call) && call->idem_state != IDEM_PRESENT) {
		assert_null(call->attempt);
		assert_int_equal(judgement.verdict.finding, FINDING_NONE);
		return;
	}
	history->place[slot] = model_add(&history->model, call, &judgement);
	assert_int_equal(attempts_count(history->attempts), history->model.next - history->model.first);
	assert_int_equal(attempts_evicted(history->attempts), history->model.evicted);
}

static void step_update(struct history *history, int slot)
{
	struct call *call = &history->call[slot];

	random_fate(call, history->now_ns, history->mix.step_ns, history->mix.polls);
	attempts_update(history->attempts, call);
	model_update(&history->model, history->attempts, history->place[slot], call);
	if (!one_in(4))
		return;
	attempts_close(history->attempts, call);
	history->place[slot] = -1;
}

static void step(struct history *history)
{
	const struct mix *mix = &history->mix;
	int slot = (int)below(OPEN_MAX);

	history->now_ns += below(2 * mix->step_ns) + 1;
	if (one_in(400))
		history->now_ns += below(16 * MINUTE);
	if (mix->polls)
		history->now_ns += 2 * SECOND;
	if (mix->mark_one_in && one_in(mix->mark_one_in)) {
		attempts_mark(history->attempts);
		history->model.window++;
	}
	if (history->place[slot] < 0)
		step_add(history, slot);
	else
		step_update(history, slot);
}

static void play(struct mix mix, uint64_t seed, int steps)
{
	struct history *history = calloc(1, sizeof(*history));

	assert_non_null(history);
	random_state = seed * 0x9e3779b97f4a7c15ULL + 1;
	history->mix = mix;
	history->now_ns = 100 * MINUTE;
	history->model.options = (struct attempts_options){
		.finding = {.strict = mix.strict}, .across_processes = mix.across, .max_remembered = mix.remembered};
	history->model.one = calloc(MODEL_MAX, sizeof(struct one));
	history->attempts = attempts_new(&history->model.options);
	for (int i = 0; i < OPEN_MAX; i++)
		history->place[i] = -1;
	while (steps-- && history->model.next < MODEL_MAX)
		step(history);
	attempts_free(history->attempts);
	free(history->model.one);
	free(history);
}

#define STEPS 4000

static void one_plain_group(void **state)
{
	(void)state;
	play((struct mix){.across = true, .remembered = 5000, .fingerprints = 1, .processes = 1, .step_ns = MS}, 1, STEPS);
	play((struct mix){.across = true, .remembered = 200, .fingerprints = 1, .processes = 2, .step_ns = MS}, 2, STEPS);
}

static void groups_with_keys(void **state)
{
	(void)state;
	play((struct mix){.across = true, .remembered = 5000, .fingerprints = 1, .keys = 1, .processes = 3, .step_ns = MS}, 3, STEPS);
	play((struct mix){.across = true, .remembered = 900, .fingerprints = 4, .keys = 3, .processes = 3, .step_ns = MS}, 4, STEPS);
	play((struct mix){.across = true, .strict = true, .remembered = 500, .fingerprints = 2, .keys = 8, .processes = 1, .step_ns = MS}, 5, STEPS);
}

static void groups_with_principals(void **state)
{
	(void)state;
	play((struct mix){.across = true, .remembered = 5000, .fingerprints = 2, .principals = 3, .processes = 2, .step_ns = MS}, 6, STEPS);
	play((struct mix){.across = true, .remembered = 800, .fingerprints = 1, .principals = 4, .bearers = true, .processes = 3, .step_ns = SECOND}, 7, STEPS);
	play((struct mix){.across = true, .remembered = 800, .fingerprints = 2, .keys = 2, .principals = 4, .bearers = true, .processes = 2, .step_ns = 4 * SECOND}, 8, STEPS);
	play((struct mix){.across = true, .strict = true, .remembered = 3000, .fingerprints = 1, .keys = 4, .principals = 6, .bearers = true, .processes = 5, .step_ns = 20 * SECOND}, 9, STEPS);
}

static void groups_of_one_process(void **state)
{
	(void)state;
	play((struct mix){.remembered = 5000, .fingerprints = 2, .keys = 2, .principals = 2, .bearers = true, .processes = 3, .step_ns = MS}, 10, STEPS);
	play((struct mix){.remembered = 300, .fingerprints = 1, .processes = 4, .step_ns = MS}, 11, STEPS);
}

static void groups_of_model_calls(void **state)
{
	(void)state;
	play((struct mix){.across = true, .llm = true, .remembered = 5000, .fingerprints = 4, .processes = 4, .step_ns = MS}, 12, STEPS);
	play((struct mix){.across = true, .llm = true, .remembered = 700, .fingerprints = 4, .keys = 3, .principals = 2, .bearers = true, .processes = 2, .step_ns = MS}, 13, STEPS);
}

static void groups_of_reads_and_idempotent_calls(void **state)
{
	(void)state;
	play((struct mix){.across = true, .reads = true, .idempotent = true, .remembered = 5000, .fingerprints = 3, .keys = 2, .processes = 2, .step_ns = MS}, 14, STEPS);
	play((struct mix){.across = true, .reads = true, .idempotent = true, .strict = true, .remembered = 400, .fingerprints = 4, .processes = 2, .step_ns = MS}, 15, STEPS);
}

static void series_of_polls(void **state)
{
	(void)state;
	play((struct mix){.across = true, .polls = true, .remembered = 5000, .fingerprints = 1, .processes = 1, .step_ns = 20 * MS}, 16, STEPS);
	play((struct mix){.across = true, .polls = true, .remembered = 60, .fingerprints = 2, .processes = 1, .step_ns = 20 * MS}, 17, STEPS);
}

static void windows_that_marks_end(void **state)
{
	(void)state;
	play((struct mix){.across = true, .remembered = 5000, .fingerprints = 2, .keys = 2, .processes = 2, .mark_one_in = 150, .step_ns = MS}, 18, STEPS);
	play((struct mix){.remembered = 90, .fingerprints = 2, .keys = 2, .processes = 2, .mark_one_in = 60, .step_ns = MS}, 19, STEPS);
}

static void a_memory_of_very_few(void **state)
{
	(void)state;
	for (unsigned int remembered_max = 1; remembered_max <= 24; remembered_max++)
		play((struct mix){.across = true, .remembered = remembered_max, .fingerprints = 2, .keys = 2, .principals = 2,
				  .bearers = true, .processes = 2, .mark_one_in = 200, .step_ns = MS},
		     100 + remembered_max, 600);
}

/* Whatever nobody thought of. */
static void mixes_of_everything(void **state)
{
	(void)state;
	for (uint64_t seed = 1000; seed < 1040; seed++) {
		struct mix mix;

		random_state = seed * 77777 + 5;
		for (int i = 0; i < 9; i++)
			next_random();
		mix = (struct mix){
			.across = !one_in(4),
			.strict = one_in(3),
			.llm = one_in(3),
			.reads = one_in(3),
			.idempotent = one_in(3),
			.polls = one_in(6),
			.remembered = one_in(2) ? 5000 : 20 + (unsigned int)below(600),
			.fingerprints = 1 + (unsigned int)below(4),
			.keys = one_in(3) ? 0 : (unsigned int)below(9),
			.principals = one_in(2) ? 0 : (unsigned int)below(7),
			.processes = 1 + (unsigned int)below(5),
			.bearers = one_in(2),
			.mark_one_in = one_in(4) ? 50 + (unsigned int)below(300) : 0,
			.step_ns = one_in(2) ? MS : one_in(2) ? SECOND : 20 * SECOND,
		};
		play(mix, seed, 2000);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_plain_group),
		cmocka_unit_test(groups_with_keys),
		cmocka_unit_test(groups_with_principals),
		cmocka_unit_test(groups_of_one_process),
		cmocka_unit_test(groups_of_model_calls),
		cmocka_unit_test(groups_of_reads_and_idempotent_calls),
		cmocka_unit_test(series_of_polls),
		cmocka_unit_test(windows_that_marks_end),
		cmocka_unit_test(a_memory_of_very_few),
		cmocka_unit_test(mixes_of_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
