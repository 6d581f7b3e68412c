/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls, judgements and blind streams as rows to be. Times leave the monotonic
 * clock here, once.
 */
#include "booking.h"
#include "secret.h"
#include "utf8.h"
#include "wall_time.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

const char *attempt_outcome_name(enum attempt_outcome outcome)
{
	static const char *const names[OUTCOME_COUNT] = {
		[OUTCOME_ANSWERED] = "answered",
		[OUTCOME_STATUS] = "status",
		[OUTCOME_FAILED] = "failed",
		[OUTCOME_CUT] = "cut",
		[OUTCOME_NOT_DELIVERED] = "not_delivered",
		[OUTCOME_NO_ANSWER] = "no_answer",
		[OUTCOME_GAVE_UP] = "client_gave_up",
		[OUTCOME_OWNER_EXITED] = "owner_exited",
		[OUTCOME_UNKNOWN] = "unknown",
	};

	return outcome < OUTCOME_COUNT ? names[outcome] : NULL;
}

static int64_t wall_ns(const struct booking_context *context, uint64_t monotonic_ns)
{
	return monotonic_ns ? wall_time_ns(monotonic_ns, context->wall_offset_ns) : 0;
}

/* ---- what became of it ---- */

static bool is_success(const struct call *call)
{
	return call->status >= 200 && call->status < 300;
}

static bool is_lost(const struct call *call)
{
	return call->delivered == DELIVERED_NONE || call->delivered == DELIVERED_PART;
}

/* What we cannot read may well be one. */
static bool is_no_answer(const struct call *call)
{
	bool empty = call->answer_use == ANSWER_FOLLOWED && call->response_body_bytes == 0;

	return call->answer_failed || empty;
}

static enum attempt_outcome outcome_of_answer(const struct call *call)
{
	if (!is_success(call))
		return OUTCOME_STATUS;
	if (is_no_answer(call))
		return OUTCOME_FAILED;
	if (is_lost(call))
		return OUTCOME_NOT_DELIVERED;
	return call->answer_unfinished ? OUTCOME_CUT : OUTCOME_ANSWERED;
}

enum attempt_outcome attempt_outcome_of(const struct call *call)
{
	if (call->response_complete)
		return outcome_of_answer(call);
	if (call->undecidable)
		return OUTCOME_UNKNOWN;
	if (call->status && call->server_closed_ns)
		return is_success(call) ? OUTCOME_CUT : OUTCOME_STATUS;
	if (call->client_died)
		return OUTCOME_OWNER_EXITED;
	if (call->client_closed_ns && (!call->server_closed_ns || call->closed_first == CLOSER_CLIENT))
		return call->status ? OUTCOME_NOT_DELIVERED : OUTCOME_GAVE_UP;
	return call->server_closed_ns ? OUTCOME_NO_ANSWER : OUTCOME_OPEN;
}

/* ---- an attempt ---- */

static void put_digest(uint8_t to[DIGEST_BYTES], const struct digest *digest, bool there, uint16_t flag,
		       struct past_attempt *past)
{
	if (!there)
		return;
	memcpy(to, digest->byte, DIGEST_BYTES);
	past->flags |= flag;
}

/* A key that does not fit may equal anything. */
static void put_key(const struct call *call, struct past_attempt *past)
{
	past->idem_state = call->idem_state;
	if (call->idem_state != IDEM_PRESENT)
		return;
	if (call->idem.size > PAST_KEY_MAX) {
		past->idem_state = IDEM_UNKNOWN;
		return;
	}
	memcpy(past->idem, call->idem.data, call->idem.size);
	past->idem_size = (uint8_t)call->idem.size;
	memcpy(past->key_scope, call->key_scope.byte, DIGEST_BYTES);
}

static void put_facts(const struct booking_context *context, const struct call *call, struct past_attempt *past)
{
	struct attempt_facts facts;

	attempt_facts_of(call, &facts);
	memcpy(past->id, call->id, sizeof(past->id));
	put_digest(past->fingerprint, &call->fingerprint, call->has_fingerprint, PAST_FINGERPRINT, past);
	put_digest(past->prompt_fingerprint, &call->prompt_fingerprint, call->has_prompt_fingerprint,
		   PAST_PROMPT_FINGERPRINT, past);
	put_digest(past->principal, &call->principal, call->has_principal, PAST_PRINCIPAL, past);
	past->first_ns = wall_ns(context, call->first_ns);
	past->status_ns = wall_ns(context, facts.status_ns);
	past->complete_ns = wall_ns(context, facts.complete_ns);
	past->closed_ns = wall_ns(context, facts.closed_ns);
	past->process_start_ns = call->process.start_ns;
	past->tgid = call->process.tgid;
	past->status = facts.status;
	past->delivered = facts.delivered;
	past->closed_first = facts.closed_first;
	put_key(call, past);
	past->flags |= (facts.bearer ? PAST_BEARER : 0) | (facts.request_complete ? PAST_REQUEST_COMPLETE : 0) |
		       (facts.undecidable ? PAST_UNDECIDABLE : 0) | (facts.replayed ? PAST_REPLAYED : 0) |
		       (facts.status_in_time ? PAST_STATUS_IN_TIME : 0) |
		       (facts.server_read_known ? PAST_SERVER_READ_KNOWN : 0) |
		       (facts.server_read_all ? PAST_SERVER_READ_ALL : 0) | (facts.owner_gone ? PAST_OWNER_GONE : 0) |
		       (facts.answer_cut ? PAST_ANSWER_CUT : 0);
}

/* Nothing in it that a terminal would act on: nearly all of it is like that. */
static bool is_plain(struct bytes text)
{
	for (size_t i = 0; i < text.size; i++)
		if (text.data[i] < 0x20 || text.data[i] > 0x7e || text.data[i] == '\\')
			return false;
	return true;
}

/* Harmless text in size bytes, cut to fit. */
static int put_text(const struct booking_context *context, struct bytes text, char *to, size_t size)
{
	struct buffer *harmless = context->scratch;
	size_t length;
	int err;

	if (text.size < size && is_plain(text)) {
		if (text.size)
			memcpy(to, text.data, text.size);
		to[text.size] = '\0';
		return 0;
	}
	buffer_clear(harmless);
	err = text_harmless(text, size > 8 ? size - 8 : 0, harmless);
	length = err ? 0 : harmless->size < size ? harmless->size : size - 1;
	if (length)
		memcpy(to, harmless->data, length);
	to[length] = '\0';
	return err;
}

static int put_path(const struct booking_context *context, const struct call *call, char to[BOOKING_PATH_MAX])
{
	struct buffer masked = {0};
	int err = secret_mask_path(context->fingerprinter, call->path, &masked);

	if (!err)
		err = put_text(context, buffer_bytes(&masked), to, BOOKING_PATH_MAX);
	buffer_done(&masked);
	return err;
}

static int put_result(const struct booking_context *context, const struct call *call, struct booked_attempt *attempt)
{
	if (!context->keep_results || attempt->outcome != OUTCOME_ANSWERED || call->answer.size == 0)
		return 0;
	attempt->result = malloc(call->answer.size);
	if (!attempt->result)
		return -ENOMEM;
	memcpy(attempt->result, call->answer.data, call->answer.size);
	attempt->result_size = call->answer.size;
	return 0;
}

static int fill_attempt(const struct booking_context *context, const struct call *call, uint64_t now_ns,
			struct booked_attempt *attempt)
{
	int err;

	put_facts(context, call, &attempt->facts);
	attempt->has_key = call->has_model_key;
	attempt->key = call->model_key;
	attempt->at_ns = wall_ns(context, now_ns);
	attempt->sent_ns = wall_ns(context, call->sent_ns);
	attempt->outcome = attempt_outcome_of(call);
	attempt->over = attempt->outcome != OUTCOME_OPEN && (!call->open || call->response_complete);
	attempt->answer_complete = call->answer_complete;
	attempt->response_complete = call->response_complete;
	attempt->billed = is_success(call) && call->usage.seen;
	attempt->usage = call->usage;
	attempt->holes = call->request_holes + call->response_holes;
	attempt->uid = call->process.uid;
	attempt->ns_tgid = call->process.ns_tgid;
	endpoint_text(&call->server, attempt->server);
	err = put_text(context, bytes_of_string(call->process.comm), attempt->comm, sizeof(attempt->comm));
	if (!err)
		err = put_text(context, call->model, attempt->model, sizeof(attempt->model));
	if (!err)
		err = put_path(context, call, attempt->path);
	return err ? err : put_result(context, call, attempt);
}

static int append(struct buffer *out, const struct booking *booking)
{
	return buffer_append(out, (struct bytes){(const uint8_t *)booking, sizeof(*booking)});
}

/* The call's last booking, if nobody has taken it away yet. */
static struct booking *booked_before(const struct call *call, const struct buffer *out)
{
	struct booking *booking;

	if (call->booking == 0 || call->booking > bookings_count(out))
		return NULL;
	booking = bookings_at(out, call->booking - 1);
	return booking->kind == BOOKING_ATTEMPT && memcmp(booking->attempt.facts.id, call->id, CALL_ID_BYTES) == 0 ? booking : NULL;
}

int book_attempt(const struct booking_context *context, struct call *call, uint64_t now_ns, struct buffer *out)
{
	struct booking *before = booked_before(call, out);
	struct booking booking;
	int err;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_ATTEMPT;
	err = fill_attempt(context, call, now_ns, &booking.attempt);
	if (!err && before) {
		free(before->attempt.result);
		*before = booking;
		return 0;
	}
	if (!err)
		err = append(out, &booking);
	if (err)
		free(booking.attempt.result);
	else
		call->booking = bookings_count(out);
	return err;
}

/* ---- the rest ---- */

int book_judgement(const struct booking_context *context, const struct judgement *judgement, uint64_t now_ns,
		   struct buffer *out)
{
	const struct verdict *verdict = &judgement->verdict;
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_FINDING;
	booking.finding = (struct booked_finding){
		.finding = verdict->finding == FINDING_NONE ? NULL : finding_name(verdict->finding),
		.severity = verdict->finding == FINDING_NONE ? NULL : severity_name(verdict->severity),
		.rule = verdict->rule,
		.attempt = judgement->attempt,
		.attempts = judgement->attempts,
		.cross_process = verdict->cross_process,
		.at_ns = wall_ns(context, now_ns),
	};
	memcpy(booking.finding.id, judgement->call_id, CALL_ID_BYTES);
	memcpy(booking.finding.earlier, judgement->earlier_id, CALL_ID_BYTES);
	return append(out, &booking);
}

int book_call_finding(const struct booking_context *context, const struct call *call, enum finding finding,
		      uint64_t now_ns, struct buffer *out)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_FINDING;
	booking.finding = (struct booked_finding){.alone = true,
						  .finding = finding_name(finding),
						  .severity = severity_name(SEVERITY_INFO),
						  .at_ns = wall_ns(context, now_ns)};
	memcpy(booking.finding.id, call->id, CALL_ID_BYTES);
	return append(out, &booking);
}

int book_blind(const struct booking_context *context, const struct process *process, enum blind_kind kind,
	       uint64_t bytes_out, uint64_t bytes_in, uint64_t now_ns, struct buffer *out)
{
	struct booking booking;
	int err;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_BLIND;
	booking.blind = (struct booked_blind){.pid = process->tgid,
					      .kind = blind_kind_name(kind),
					      .bytes_out = bytes_out,
					      .bytes_in = bytes_in,
					      .at_ns = wall_ns(context, now_ns)};
	err = put_text(context, bytes_of_string(process->comm), booking.blind.comm, sizeof(booking.blind.comm));
	return err ? err : append(out, &booking);
}

int book_hop(const struct booking_context *context, const uint8_t id[CALL_ID_BYTES],
	     const uint8_t parent[CALL_ID_BYTES], uint64_t now_ns, struct buffer *out)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_HOP;
	memcpy(booking.hop.id, id, CALL_ID_BYTES);
	memcpy(booking.hop.parent, parent, CALL_ID_BYTES);
	booking.hop.at_ns = wall_ns(context, now_ns);
	return append(out, &booking);
}

int book_run(const struct booked_run *run, struct buffer *out)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_RUN;
	booking.run = *run;
	return append(out, &booking);
}

size_t bookings_count(const struct buffer *bookings)
{
	return bookings->size / sizeof(struct booking);
}

struct booking *bookings_at(const struct buffer *bookings, size_t i)
{
	return (struct booking *)(void *)bookings->data + i;
}

void bookings_clear(struct buffer *bookings)
{
	for (size_t i = 0; i < bookings_count(bookings); i++)
		if (bookings_at(bookings, i)->kind == BOOKING_ATTEMPT)
			free(bookings_at(bookings, i)->attempt.result);
	buffer_clear(bookings);
}

struct counted {
	UT_hash_handle hh;
};

size_t bookings_rows(const struct buffer *bookings)
{
	size_t count = bookings_count(bookings), rows = 0;
	struct counted *entries = calloc(count + 1, sizeof(*entries)), *table = NULL, *found;

	for (size_t i = 0; i < count; i++) {
		const struct booking *booking = bookings_at(bookings, i);

		rows++;
		if (booking->kind != BOOKING_ATTEMPT || !entries)
			continue;
		HASH_FIND(hh, table, booking->attempt.facts.id, CALL_ID_BYTES, found);
		if (found)
			rows--;
		else
			HASH_ADD_KEYPTR(hh, table, booking->attempt.facts.id, CALL_ID_BYTES, &entries[i]);
	}
	HASH_CLEAR(hh, table);
	free(entries);
	return rows;
}

/* ---- back ---- */

/* What happened before this machine's clock began keeps only that it happened. */
static uint64_t monotonic_ns(int64_t wall, int64_t wall_offset_ns)
{
	if (wall == 0)
		return 0;
	return wall > wall_offset_ns ? (uint64_t)(wall - wall_offset_ns) : 1;
}

void past_attempt_call(const struct past_attempt *past, int64_t wall_offset_ns, struct call *ret_call)
{
	struct call *call = ret_call;
	uint64_t closed_ns = monotonic_ns(past->closed_ns, wall_offset_ns);

	memset(call, 0, sizeof(*call));
	memcpy(call->id, past->id, sizeof(call->id));
	call->class = CLASS_LLM;
	call->class_source = CLASS_BY_PROTOCOL;
	call->protocol = PROTOCOL_LLM;
	call->process.tgid = past->tgid;
	call->process.start_ns = past->process_start_ns;
	call->client_died = past->flags & PAST_OWNER_GONE;
	call->first_ns = monotonic_ns(past->first_ns, wall_offset_ns);
	call->request_complete = past->flags & PAST_REQUEST_COMPLETE;
	call->has_fingerprint = past->flags & PAST_FINGERPRINT;
	memcpy(call->fingerprint.byte, past->fingerprint, DIGEST_BYTES);
	call->has_prompt_fingerprint = past->flags & PAST_PROMPT_FINGERPRINT;
	memcpy(call->prompt_fingerprint.byte, past->prompt_fingerprint, DIGEST_BYTES);
	call->has_principal = past->flags & PAST_PRINCIPAL;
	memcpy(call->principal.byte, past->principal, DIGEST_BYTES);
	call->principal_is_bearer = past->flags & PAST_BEARER;
	call->idem_state = past->idem_state;
	call->idem = (struct bytes){(const uint8_t *)past->idem, past->idem_size};
	memcpy(call->key_scope.byte, past->key_scope, DIGEST_BYTES);
	call->status = past->status;
	call->status_ns = monotonic_ns(past->status_ns, wall_offset_ns);
	call->status_in_time = past->flags & PAST_STATUS_IN_TIME;
	call->complete_ns = monotonic_ns(past->complete_ns, wall_offset_ns);
	call->response_complete = call->complete_ns != 0;
	call->answer_unfinished = past->flags & PAST_ANSWER_CUT;
	call->delivered = past->delivered;
	call->replayed = past->flags & PAST_REPLAYED;
	call->undecidable = past->flags & PAST_UNDECIDABLE;
	call->server_read_known = past->flags & PAST_SERVER_READ_KNOWN;
	call->server_read_all = past->flags & PAST_SERVER_READ_ALL;
	call->closed_first = past->closed_first;
	if (past->closed_first == CLOSER_SERVER)
		call->server_closed_ns = closed_ns;
	else
		call->client_closed_ns = closed_ns;
}
