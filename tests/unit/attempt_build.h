/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attempts that ended in every way there is, for the tests of the judge. The
 * earlier one begins at BEGAN and has ended at ENDED; the later one begins at
 * AGAIN. Include it after cmocka.h.
 */
#ifndef NIGHTCLERK_ATTEMPT_BUILD_H
#define NIGHTCLERK_ATTEMPT_BUILD_H

#include "finding.h"

#define MS 1000000ULL
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

#define BEGAN (10 * SECOND)	    /* first byte of the earlier attempt */
#define ENDED (BEGAN + 100 * MS)    /* when it ended, where it did */
#define AGAIN (BEGAN + 1000 * MS)   /* first byte of the later attempt */
#define MUCH_LATER (BEGAN + MINUTE) /* after both */

static const struct finding_options lax = {.strict = false};
static const struct finding_options strict = {.strict = true};

/* ---- attempts ---- */

static inline struct attempt_facts attempt(uint64_t first_ns)
{
	return (struct attempt_facts){
		.first_ns = first_ns,
		.process = 7,
		.tgid = 4711,
		.class = CLASS_MUTATING,
		.class_source = CLASS_BY_METHOD,
		.idem_state = IDEM_ABSENT,
		.request_complete = true,
		.body = 0xb0d1,
	};
}

static inline struct attempt_facts again(void)
{
	return attempt(AGAIN);
}

static inline struct attempt_facts still_open(void)
{
	return attempt(BEGAN);
}

static inline struct attempt_facts closed_by(enum call_closer closer)
{
	struct attempt_facts facts = attempt(BEGAN);

	facts.closed_first = closer;
	facts.closed_ns = ENDED;
	return facts;
}

static inline struct attempt_facts client_gave_up(void)
{
	return closed_by(CLOSER_CLIENT);
}

static inline struct attempt_facts server_ended(void)
{
	return closed_by(CLOSER_SERVER);
}

static inline struct attempt_facts never_read(void)
{
	struct attempt_facts facts = server_ended();

	facts.server_read_known = true;
	return facts;
}

static inline struct attempt_facts answered(unsigned int status)
{
	struct attempt_facts facts = attempt(BEGAN);

	facts.status = (uint16_t)status;
	facts.status_ns = ENDED - MS;
	facts.status_in_time = true;
	facts.complete_ns = ENDED;
	facts.delivered = DELIVERED_ALL;
	return facts;
}

static inline struct attempt_facts success_cut(void)
{
	struct attempt_facts facts = answered(200);

	facts.complete_ns = 0;
	facts.delivered = DELIVERED_PART;
	facts.closed_first = CLOSER_SERVER;
	facts.closed_ns = ENDED;
	return facts;
}

static inline struct attempt_facts success(void)
{
	return answered(200);
}

static inline struct attempt_facts replayed(void)
{
	struct attempt_facts facts = answered(200);

	facts.replayed = true;
	return facts;
}

static inline struct attempt_facts undecidable(void)
{
	struct attempt_facts facts = success();

	facts.undecidable = true;
	return facts;
}

static inline struct attempt_facts conflict(void)
{
	return answered(409);
}

static inline struct attempt_facts overloaded(void)
{
	return answered(503);
}

static inline struct attempt_facts server_error(void)
{
	return answered(500);
}

static inline struct attempt_facts asked_again(void)
{
	return answered(304);
}

static inline struct attempt_facts refused(void)
{
	return answered(422);
}

/* The client gave up at ENDED; the status came at late_ns all the same. */
static inline struct attempt_facts answered_late(unsigned int status, uint64_t late_ns)
{
	struct attempt_facts facts = client_gave_up();

	facts.status = (uint16_t)status;
	facts.status_ns = late_ns;
	facts.complete_ns = late_ns + MS;
	facts.status_in_time = false;
	facts.delivered = DELIVERED_NONE;
	return facts;
}

static inline void set_key(struct attempt_facts *facts, uint64_t key)
{
	facts->idem_state = IDEM_PRESENT;
	facts->key = key;
}

static inline void set_column(struct attempt_facts *earlier, struct attempt_facts *later, enum finding_column column)
{
	if (column == COLUMN_NO_KEY)
		return;
	set_key(earlier, 0xaaaa);
	set_key(later, column == COLUMN_NEW_KEY ? 0xbbbb : 0xaaaa);
	if (column == COLUMN_SAME_KEY_OTHER_BODY)
		later->body = 0x07e4;
}

static inline struct attempt_facts again_as(enum call_class class, enum class_source source)
{
	struct attempt_facts facts = again();

	facts.class = class;
	facts.class_source = source;
	return facts;
}

static inline struct attempt_facts as_principal(struct attempt_facts facts, uint64_t principal, bool bearer)
{
	facts.has_principal = true;
	facts.principal = principal;
	facts.bearer = bearer;
	return facts;
}

static inline struct attempt_facts prompt(struct attempt_facts facts)
{
	facts.class = CLASS_LLM;
	facts.class_source = CLASS_BY_PROTOCOL;
	return facts;
}

static inline struct attempt_facts orphaned(struct attempt_facts facts)
{
	facts.owner_gone = true;
	facts.tgid = 4000;
	return facts;
}

/* ---- what is expected ---- */

static inline void expect(struct verdict verdict, const char *finding, const char *severity)
{
	assert_string_equal(finding_name(verdict.finding), finding);
	if (severity)
		assert_string_equal(severity_name(verdict.severity), severity);
	else
		assert_int_equal(verdict.severity, SEVERITY_NULL);
	assert_non_null(verdict.rule);
}

static inline void expect_pair(struct attempt_facts earlier, struct attempt_facts later, const char *finding,
			       const char *severity)
{
	expect(finding_judge(&earlier, &later, &lax), finding, severity);
}

static inline void expect_strict(struct attempt_facts earlier, struct attempt_facts later, const char *finding,
				 const char *severity)
{
	expect(finding_judge(&earlier, &later, &strict), finding, severity);
}

#define BIT(column) (1U << (column))

#endif
