/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Findings in words: what was seen, and what to do about it. Evidence, never
 * accusation: what the wire showed, not what it may have meant.
 */
#ifndef NIGHTCLERK_EVIDENCE_H
#define NIGHTCLERK_EVIDENCE_H

#include "attempts.h"

/* The next step in words for a finding: "send one Idempotency-Key on both attempts". Static. */
const char *finding_next_step(enum finding finding);

/*
 * One sentence of evidence: "second identical request after a complete 200". Appended. 0 or
 * -ENOMEM.
 */
int finding_evidence(const struct judgement *judgement, struct buffer *out);
/* The same where the method is known: "second identical POST after a complete 200". */
int finding_evidence_of(const struct judgement *judgement, struct bytes method, struct buffer *out);

/*
 * The rule says no more than where the verdict was looked up: nothing lowered, raised or withheld
 * it.
 */
bool rule_is_plain(const char *rule);

/* Why judgement->verdict is no longer judgement->before. Appended. 0 or -ENOMEM. */
int finding_because(const struct judgement *judgement, struct buffer *out);

/*
 * How one attempt went: "client gave up after 50 ms; the server answered 200 at 101 ms, to nobody".
 * Appended.
 */
int attempt_outcome(const struct attempt_facts *facts, struct buffer *out);
/* It says "yet": the answer, or its end, is still to come. */
bool attempt_outcome_is_due(const struct attempt_facts *facts);

/* The evidence for FINDING_TRUNCATED_RESPONSE or FINDING_ABANDONED_CALL of one call. Appended. */
int call_evidence(const struct call *call, enum finding finding, struct buffer *out);

#endif
