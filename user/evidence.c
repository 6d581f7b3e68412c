/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every sentence that nightclerk says about a finding. A sentence holds what
 * the wire showed, in the order: what came, after what, under which key. Next
 * steps are for the one who wrote the client.
 */
#include "evidence.h"

#include "say.h"

#define NS_PER_MS 1000000ULL

static const char *const next_steps[FINDING_COUNT] = {
	[FINDING_NONE] = "nothing to do",
	[FINDING_UNDECIDABLE] = "look up the hole and blind events of the run, remove their cause, "
				"and run again",
	[FINDING_DUP_IN_FLIGHT] = "wait for the answer to the earlier one, or send one "
				  "Idempotency-Key on both attempts",
	[FINDING_DUP_AFTER_TIMEOUT] = "send one Idempotency-Key on both attempts, or ask the "
				      "server what became of the "
				      "earlier one before sending again",
	[FINDING_DUP_AFTER_NO_RESPONSE] = "send one Idempotency-Key on both attempts, or keep the "
					  "HTTP client from "
					  "resending by itself when a connection ends",
	[FINDING_DUP_AFTER_TRUNCATED_SUCCESS] = "take a 2xx status as done although its body was "
						"cut, or send one "
						"Idempotency-Key on both attempts",
	[FINDING_DUP_AFTER_SUCCESS] = "do not send again after a 2xx; where the same call is meant "
				      "twice, give each its "
				      "own Idempotency-Key",
	[FINDING_DUP_AFTER_GATEWAY_ERROR] = "send one Idempotency-Key on both attempts: the error "
					    "does not say that "
					    "nothing was done",
	[FINDING_RETRY_WITHOUT_KEY] = "send one Idempotency-Key on every attempt",
	[FINDING_SAFE_RETRY] = "nothing to do: one key, one body",
	[FINDING_RETRY_AFTER_SUCCESS] = "stop retrying after a 2xx: the key protects only as long "
					"as the server "
					"remembers it",
	[FINDING_RETRY_AFTER_REFUSAL] = "do not repeat a refused request unchanged",
	[FINDING_RETRY_AFTER_UNLISTED_STATUS] = "retry only after no answer, 408, 409, 429, 500, "
						"502, 503 or 504",
	[FINDING_KEY_REUSED_DIFFERENT_BODY] = "make a new Idempotency-Key for every new body, and "
					      "keep it for retries of "
					      "that body",
	[FINDING_KEY_CHANGED_ON_RETRY] = "make the Idempotency-Key once for each operation, "
					 "outside of the retry loop, and "
					 "send it on every attempt",
	[FINDING_LLM_BILLED_TWICE] = "keep what was delivered or repair what cuts the answer "
				     "before asking again, and "
				     "count the tokens of both calls",
	[FINDING_LLM_MAYBE_BILLED_TWICE] = "make the time limits of client and gateway longer than "
					   "the model's answer, and "
					   "count both calls",
	[FINDING_LLM_REDISPATCHED_JOB] = "make the job's lease longer than the model call, or look "
					 "up the earlier answer "
					 "before asking again",
	[FINDING_LLM_IDENTICAL_IN_FLIGHT] = "let callers that ask the same share one pending call",
	[FINDING_LLM_REPEAT] = "keep the answer where the repeat is not meant",
	[FINDING_TRUNCATED_RESPONSE] = "check that an answer is whole before using it, and find "
				       "out who ended the connection",
	[FINDING_ABANDONED_CALL] = "make the client's time limit longer than the server's, and ask "
				   "the server what became "
				   "of the call",
	[FINDING_OFF_LOOPBACK] = "point the program at a local server",
};

const char *finding_next_step(enum finding finding)
{
	return finding < FINDING_COUNT ? next_steps[finding] : NULL;
}

/* ---- how one attempt went ---- */

static int say_duration(struct buffer *out, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t ms = to_ns > from_ns ? (to_ns - from_ns) / NS_PER_MS : 0;

	if (ms == 0)
		return say(out, "under 1 ms");
	if (ms < 10000)
		return say(out, "%llu ms", (unsigned long long)ms);
	return say(out, "%llu s", (unsigned long long)ms / 1000);
}

/* before, a duration, after. */
static int say_span(struct buffer *out, const char *before, uint64_t from_ns, uint64_t to_ns,
		    const char *after)
{
	int err = say(out, "%s", before);

	if (!err)
		err = say_duration(out, from_ns, to_ns);
	return err ? err : say(out, "%s", after);
}

static int outcome_without_status(const struct attempt_facts *facts, struct buffer *out)
{
	if (facts->closed_ns == 0)
		return say(out, facts->owner_gone ? "no answer when its process ended" :
						    "no answer yet");
	if (facts->closed_first == CLOSER_SERVER && facts->closed_ns < facts->first_ns)
		return say(out, "sent when the server had closed");
	if (facts->closed_first == CLOSER_SERVER)
		return say_span(out, "server closed after ", facts->first_ns, facts->closed_ns,
				facts->server_read_known && !facts->server_read_all ?
					", request unread" :
					" without an answer");
	if (facts->owner_gone)
		return say_span(out, "client died or reset after ", facts->first_ns,
				facts->closed_ns, "");
	return say_span(out, "client gave up after ", facts->first_ns, facts->closed_ns, "");
}

/* before, "at least 812 tokens in, 41 out"; nothing where the model said nothing. */
static int say_tokens(struct buffer *out, const char *before, const struct attempt_facts *facts)
{
	bool in = facts->input_tokens != TOKENS_NOT_SAID, answer = facts->output_tokens != TOKENS_NOT_SAID;
	int err;

	if (!facts->usage_seen || (!in && !answer))
		return 0;
	err = say(out, "%s%s", before, facts->usage_final ? "" : "at least ");
	if (!err && in)
		err = say(out, "%u tokens in", facts->input_tokens);
	if (!err && in && answer)
		return say(out, ", %u out", facts->output_tokens);
	return !err && answer ? say(out, "%u tokens out", facts->output_tokens) : err;
}

static int outcome(const struct attempt_facts *facts, struct buffer *out)
{
	const char *tail = "";
	char status[64];
	int err;

	if (facts->no_outcome)
		return say(out, "outcome not known");
	if (facts->undecidable)
		return say(out, "not seen whole");
	if (!facts->request_complete)
		return say(out, "request never whole");
	if (facts->status == 0)
		return outcome_without_status(facts, out);
	if (!facts->status_in_time) {
		err = say_span(out, "client gave up after ", facts->first_ns, facts->closed_ns,
			       "; ");
		snprintf(status, sizeof(status), "the server answered %u at ", facts->status);
		return err ? err :
			     say_span(out, status, facts->first_ns, facts->status_ns,
				      ", to nobody");
	}
	if (facts->replayed)
		tail = ", a replay of an earlier answer";
	else if (facts->complete_ns == 0)
		tail = facts->closed_ns ? ", cut short" : ", not whole yet";
	else if (facts->delivered == DELIVERED_PART || facts->delivered == DELIVERED_NONE)
		tail = ", not read to its end";
	else if (facts->answer_cut)
		tail = ", without the end of its answer";
	else if (facts->not_run)
		tail = ", a JSON-RPC error: not run";
	snprintf(status, sizeof(status), "%u after ", facts->status);
	return say_span(out, status, facts->first_ns, facts->status_ns, tail);
}

bool attempt_outcome_is_due(const struct attempt_facts *facts)
{
	if (facts->no_outcome || facts->undecidable || !facts->request_complete || facts->closed_ns)
		return false;
	if (facts->status == 0)
		return !facts->owner_gone;
	return facts->status_in_time && !facts->replayed && facts->complete_ns == 0;
}

int attempt_outcome(const struct attempt_facts *facts, struct buffer *out)
{
	int err = outcome(facts, out);

	return err ? err : say_tokens(out, ", ", facts);
}

/* ---- the sentence of a pair ---- */

static int say_ordinal(struct buffer *out, uint64_t n)
{
	static const char *const words[] = {"", "first", "second", "third", "fourth", "fifth"};
	const char *ending = "th";

	if (n < sizeof(words) / sizeof(words[0]))
		return say(out, "%s", words[n]);
	if (n % 100 < 11 || n % 100 > 13) {
		static const char *const endings[] = {"th", "st", "nd", "rd"};

		if (n % 10 < 4)
			ending = endings[n % 10];
	}
	return say(out, "%llu%s", (unsigned long long)n, ending);
}

static int after_client_gave_up(const struct attempt_facts *earlier, struct buffer *out)
{
	if (earlier->status)
		return say(out,
			   "after the client gave up on the earlier one, which was answered %u all "
			   "the same",
			   earlier->status);
	return say(out, "after the client gave up on the earlier one without an answer");
}

static int after_cut_success(const struct attempt_facts *earlier, struct buffer *out)
{
	return say(out, "after a %u %s", earlier->status,
		   earlier->complete_ns ? "that the client had not read to its end" :
					  "that was cut short");
}

/* What had become of the earlier attempt, by the row of the table. */
static int say_after(const struct judgement *judgement, struct buffer *out)
{
	const struct attempt_facts *earlier = &judgement->earlier_facts;

	if (judgement->verdict.row == ROW_REFUSED && earlier->not_run)
		return say(out, "after a JSON-RPC error which says that nothing was run");
	switch (judgement->verdict.row) {
	case ROW_OPEN:
		return say(out, "while the earlier one was still open");
	case ROW_CLIENT_GAVE_UP:
		return after_client_gave_up(earlier, out);
	case ROW_SERVER_ENDED:
		return say(out, "after the server ended the connection of the earlier one without "
				"a final status");
	case ROW_NEVER_READ:
		return say(out, "after the earlier one, which the server had never read whole");
	case ROW_SUCCESS_CUT:
		return after_cut_success(earlier, out);
	case ROW_SUCCESS:
		return say(out, "after a complete %u", earlier->status);
	case ROW_UNDECIDABLE:
		return say(out, "after one that was not seen whole");
	default:
		if (earlier->status == 0)
			return say(out, "after one that got no final status");
		return say(out, "after a %u", earlier->status);
	}
}

static const char *key_words(const struct judgement *judgement)
{
	switch (judgement->verdict.column) {
	case COLUMN_NO_KEY:
		return judgement->later_facts.idem_state == IDEM_INVALID ?
			       ", no valid Idempotency-Key" :
			       ", no Idempotency-Key";
	case COLUMN_NEW_KEY:
		return ", another Idempotency-Key";
	default:
		return "";
	}
}

/* "second identical POST after a complete 200, no Idempotency-Key" */
static int evidence_of_repeat(const struct judgement *judgement, struct bytes method,
			      struct buffer *out)
{
	const struct verdict *verdict = &judgement->verdict;
	int err = say_ordinal(out, judgement->attempt);

	if (!err)
		err = say(out, " identical %.*s ", (int)method.size, (const char *)method.data);
	if (!err)
		err = say_after(judgement, out);
	if (!err)
		err = say(out, "%s", key_words(judgement));
	if (!err && verdict->finding == FINDING_DUP_AFTER_SUCCESS &&
	    verdict->column == COLUMN_NEW_KEY)
		err = say(out, ": the server cannot deduplicate");
	return err;
}

/* "same Idempotency-Key and same body again after a 503" */
static int evidence_of_key(const struct judgement *judgement, const char *what, struct buffer *out)
{
	int err = say(out, "same Idempotency-Key and %s ", what);

	if (!err)
		err = say_after(judgement, out);
	if (!err && judgement->verdict.finding == FINDING_RETRY_AFTER_UNLISTED_STATUS)
		err = say(out, ", which is no status to retry after");
	return err;
}

static int after_success_without_end(const struct attempt_facts *earlier, struct buffer *out)
{
	if (!earlier->status_in_time)
		return after_client_gave_up(earlier, out);
	if (earlier->answer_cut && earlier->complete_ns)
		return say(out, "after a %u whose answer has no end", earlier->status);
	return after_cut_success(earlier, out);
}

/* The table is not used for model calls, so the facts say what came before. */
static int say_after_call(const struct judgement *judgement, struct buffer *out)
{
	const struct attempt_facts *earlier = &judgement->earlier_facts;

	switch (judgement->verdict.finding) {
	case FINDING_LLM_BILLED_TWICE:
		return after_success_without_end(earlier, out);
	case FINDING_LLM_REDISPATCHED_JOB:
		return say(out, "by another process, the one that asked before having ended "
				"without an answer");
	case FINDING_LLM_IDENTICAL_IN_FLIGHT:
		return say(out, "while the earlier call was still open");
	case FINDING_LLM_REPEAT:
		return say(out, "after a complete %u", earlier->status);
	default: /* FINDING_LLM_MAYBE_BILLED_TWICE */
		if (earlier->status == 0 || !earlier->status_in_time)
			return say(out, "after a call that the client got no answer to");
		return say(out, "after a %u", earlier->status);
	}
}

/* "same prompt again after a 200 that was cut short; the earlier one took at least 4908 tokens in, 2 out" */
static int evidence_of_prompt(const struct judgement *judgement, struct buffer *out)
{
	const struct attempt_facts *earlier = &judgement->earlier_facts, *later = &judgement->later_facts;
	size_t start;
	int err = say(out, "same prompt again ");

	if (!err)
		err = say_after_call(judgement, out);
	start = out->size;
	if (!err)
		err = say_tokens(out, "; the earlier one took ", earlier);
	if (!err)
		err = say_tokens(out, out->size > start ? ", this one " : "; this one took ", later);
	return err;
}

static int evidence_of_gap(const struct judgement *judgement, struct buffer *out)
{
	if (judgement->verdict.row == ROW_UNDECIDABLE && judgement->earlier_facts.no_outcome)
		return say(out, "the same request again, and a ledger does not say how the earlier one went");
	if (judgement->verdict.row == ROW_UNDECIDABLE)
		return say(out, "a hole, a blind stream or a late join hides how one of the two "
				"attempts went");
	return say(out, "bytes that were not seen keep the two attempts from being compared");
}

static int evidence(const struct judgement *judgement, struct bytes method, struct buffer *out)
{
	switch (judgement->verdict.finding) {
	case FINDING_UNDECIDABLE:
		return evidence_of_gap(judgement, out);
	case FINDING_SAFE_RETRY:
	case FINDING_RETRY_AFTER_SUCCESS:
	case FINDING_RETRY_AFTER_REFUSAL:
	case FINDING_RETRY_AFTER_UNLISTED_STATUS:
		return evidence_of_key(judgement, "same body again", out);
	case FINDING_KEY_REUSED_DIFFERENT_BODY:
		return evidence_of_key(judgement, "another body", out);
	case FINDING_LLM_BILLED_TWICE:
	case FINDING_LLM_MAYBE_BILLED_TWICE:
	case FINDING_LLM_REDISPATCHED_JOB:
	case FINDING_LLM_IDENTICAL_IN_FLIGHT:
	case FINDING_LLM_REPEAT:
		return evidence_of_prompt(judgement, out);
	case FINDING_NONE:
		return say(out, "no finding");
	case FINDING_TRUNCATED_RESPONSE:
		return say(out, "the body of the answer ended before its framing said so");
	case FINDING_ABANDONED_CALL:
		return say(out, "the request was sent whole, and no final status came before its "
				"connection closed");
	case FINDING_OFF_LOOPBACK:
		return say(out, "a connection to an address that is not on loopback");
	default:
		return evidence_of_repeat(judgement, method, out);
	}
}

/* "; the SDK retried: x-stainless-retry-count 0 then 1", where the client said so itself. */
static int say_retry_marker(const struct judgement *judgement, struct buffer *out)
{
	static const char *const markers[] = {
		[RETRY_STAINLESS] = "the SDK retried: x-stainless-retry-count",
		[RETRY_AMZ] = "the SDK retried: amz-sdk-request attempt",
		[RETRY_SLACK] = "the sender says that it repeats: x-slack-retry-num",
	};
	const struct attempt_facts *earlier = &judgement->earlier_facts, *later = &judgement->later_facts;

	if (later->retry_marker == RETRY_UNMARKED)
		return 0;
	if (earlier->retry_marker == later->retry_marker && earlier->retry_count < later->retry_count)
		return say(out, "; %s %u then %u", markers[later->retry_marker], earlier->retry_count,
			   later->retry_count);
	if (later->retry_marker == RETRY_SLACK && earlier->retry_marker == RETRY_UNMARKED && later->retry_count > 0)
		return say(out, "; %s %u", markers[RETRY_SLACK], later->retry_count);
	return 0;
}

int finding_evidence_of(const struct judgement *judgement, struct bytes method, struct buffer *out)
{
	size_t start = out->size;
	int err = evidence(judgement, method, out);

	if (!err && judgement->verdict.cross_process &&
	    judgement->verdict.finding != FINDING_LLM_REDISPATCHED_JOB)
		err = say(out, ", from another process");
	if (!err && judgement->verdict.weaker)
		err = say(out, " (weaker: the two carry different bearer tokens)");
	if (!err && judgement->equal_except)
		err = say(out, " (weaker: equal except %s)", judgement->equal_except);
	if (!err)
		err = say_retry_marker(judgement, out);
	if (err)
		out->size = start;
	return err;
}

int finding_evidence(const struct judgement *judgement, struct buffer *out)
{
	return finding_evidence_of(judgement, BYTES("request"), out);
}

bool rule_is_plain(const char *rule)
{
	return !rule || strcmp(rule, "table") == 0 || strcmp(rule, "model call") == 0;
}

int finding_because(const struct judgement *judgement, struct buffer *out)
{
	const struct attempt_facts *earlier = &judgement->earlier_facts;

	if (judgement->verdict.finding == FINDING_NONE && judgement->later_facts.replayed)
		return say(out, "the later answer is a replay of an earlier one");
	if (judgement->verdict.finding == FINDING_NONE && earlier->replayed)
		return say(out, "the earlier answer is a replay of another one");
	if (earlier->undecidable || judgement->later_facts.undecidable)
		return say(out, "one of the two attempts was not seen whole");
	if (judgement->verdict.row == ROW_CLIENT_GAVE_UP && earlier->status)
		return say(out, "the earlier attempt was answered %u after the client had given up",
			   earlier->status);
	if (!rule_is_plain(judgement->verdict.rule))
		return say(out, "%s", judgement->verdict.rule);
	return say(out, "more is known of how the two attempts went");
}

/* ---- findings of one call ---- */

int call_evidence(const struct call *call, enum finding finding, struct buffer *out)
{
	uint64_t from_ns = call->sent_ns ? call->sent_ns : call->first_ns;

	if (finding == FINDING_TRUNCATED_RESPONSE)
		return say(out,
			   "status %u came, but its body ended after %llu bytes, before its "
			   "framing said so (%s)",
			   call->status, (unsigned long long)call->response_body_bytes,
			   call_ended_name(call->ended));
	if (call->client_closed_ns)
		return say_span(out,
				call->client_died ?
					"the request was sent whole, and the client died or reset "
					"after " :
					"the request was sent whole, and the client closed after ",
				from_ns, call->client_closed_ns, ", before a final status");
	return say(out, "the request was sent whole, and the client was gone before a final "
			"status");
}
