/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where clients and webhook senders put their keys. In bodies a key is a
 * member by name only: the value says nothing, but for Stripe's event ids.
 */
#include "idempotency.h"
#include "json_scan.h"
#include "policy.h"

#include <errno.h>

#define BODY_KEY_BYTES_MAX 1024

/* The first is a structured field, the rest are bare strings. Incoming hooks come last. */
static const struct bytes headers[] = {
	BYTES("Idempotency-Key"),
	BYTES("X-Idempotency-Key"),
	BYTES("Idempotency-Token"),
	BYTES("PayPal-Request-Id"),
	BYTES("Chargebee-Idempotency-Key"),
	BYTES("Cko-Idempotency-Key"),
	BYTES("Request-Idempotency-Key"),
	BYTES("X-Payout-Idempotency"),
	BYTES("X-Unique-Transaction-ID"),
	BYTES("Repeatability-Request-ID"), /* Microsoft */
	BYTES("X-GitHub-Delivery"),
	BYTES("Webhook-Id"),
	BYTES("Svix-Id"),
	BYTES("I-Twilio-Idempotency-Token"),
};

static const struct {
	struct bytes name;
	const char *from;
} members[] = {
	{BYTES("idempotency_key"), "body.idempotency_key"}, /* Square */
	{BYTES("requestId"), "body.requestId"},	     /* Google */
	{BYTES("ClientToken"), "body.ClientToken"},	     /* AWS, four spellings */
	{BYTES("clientToken"), "body.clientToken"},
	{BYTES("ClientRequestToken"), "body.ClientRequestToken"},
	{BYTES("clientRequestToken"), "body.clientRequestToken"},
	{BYTES("messageId"), "body.messageId"},
	{BYTES("event_id"), "body.event_id"},	 /* Slack */
	{BYTES("id"), "body.id"},		 /* Stripe events: evt_... only */
};

#define HEADER_COUNT (sizeof(headers) / sizeof(headers[0]))
#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))
#define MEMBER_EVENT_ID (MEMBER_COUNT - 1)
#define LAST_FIRST_LETTER 'r' /* no name in the table sorts after it */

/* ---- in the head ---- */

static void set_key(struct call *call, enum idem_state state, struct bytes key)
{
	call->idem_state = state;
	call->idem = key;
}

/* All lines of one name, in order, joined. */
static int set_joined(struct call *call, struct bytes name, struct buffer *text)
{
	const struct http_head *head = call->head;
	int err = 0;

	buffer_clear(text);
	for (size_t i = 0; i < head->field_count && !err; i++) {
		if (!bytes_equal_nocase(head->fields[i].name, name))
			continue;
		if (text->size)
			err = buffer_append(text, BYTES(", "));
		if (!err)
			err = buffer_append(text, head->fields[i].value);
	}
	if (!err)
		set_key(call, IDEM_INVALID, buffer_bytes(text));
	return err;
}

/* Behind the quote that closes the string at the start of value; 0 if none does. */
static size_t quoted_end(struct bytes value, bool *ret_escapes)
{
	*ret_escapes = false;
	for (size_t i = 1; i < value.size; i++) {
		if (value.data[i] == '"')
			return i + 1;
		if (value.data[i] == '\\' && i + 1 < value.size) {
			*ret_escapes = true;
			i++;
		}
	}
	return 0;
}

/* RFC 8941 section 4.2.5 knows \" and \\; anything else behind a backslash stays as it is. */
static int unescape(struct bytes quoted, struct buffer *text)
{
	int err = 0;

	buffer_clear(text);
	for (size_t i = 0; i < quoted.size && !err; i++) {
		if (quoted.data[i] == '\\' && i + 1 < quoted.size &&
		    (quoted.data[i + 1] == '"' || quoted.data[i + 1] == '\\'))
			i++;
		err = buffer_append_byte(text, quoted.data[i]);
	}
	return err;
}

static int set_structured(struct call *call, struct bytes value, struct buffer *text)
{
	bool escapes, is_list = bytes_find(value, ',') < value.size;
	struct bytes quoted, rest;
	size_t end;
	int err;

	if (!value.size)
		return 0;
	end = value.data[0] == '"' ? quoted_end(value, &escapes) : 0;
	rest = bytes_trim((struct bytes){value.data + end, value.size - end});
	if (!end || (rest.size && rest.data[0] != ';')) {
		set_key(call, is_list ? IDEM_INVALID : IDEM_PRESENT, value);
		return 0;
	}
	quoted = (struct bytes){value.data + 1, end - 2};
	if (!escapes) {
		set_key(call, IDEM_PRESENT, quoted);
		return 0;
	}
	err = unescape(quoted, text);
	if (!err)
		set_key(call, IDEM_PRESENT, buffer_bytes(text));
	return err;
}

/* from: what to call the place. */
static int read_header(struct call *call, struct bytes name, const char *from, struct buffer *text)
{
	const struct http_field *field = http_head_find(call->head, name);
	int err = 0;

	if (!field)
		return 0;
	if (http_head_count(call->head, name) > 1)
		err = set_joined(call, name, text);
	else if (bytes_equal_nocase(name, headers[0]))
		err = set_structured(call, field->value, text);
	else
		set_key(call, IDEM_PRESENT, field->value);
	if (err || call->idem.size == 0)
		set_key(call, IDEM_ABSENT, (struct bytes){0});
	else
		call->idem_from = from;
	return err;
}

int idempotency_key(struct call *call, struct buffer *text)
{
	bool incomplete;
	int err = 0;

	set_key(call, IDEM_ABSENT, (struct bytes){0});
	call->idem_from = NULL;
	if (!call->head) {
		call->idem_state = IDEM_UNKNOWN;
		return 0;
	}
	for (size_t i = 0; call->rule && i < call->rule->carriers.header_count && !err && call->idem_state == IDEM_ABSENT; i++)
		err = read_header(call, call->rule->carriers.headers[i].name, call->rule->carriers.headers[i].from, text);
	for (size_t i = 0; i < HEADER_COUNT && !err && call->idem_state == IDEM_ABSENT; i++)
		err = read_header(call, headers[i], (const char *)headers[i].data, text);
	incomplete = call->head->cut || call->head->fields_dropped;
	if (err || (incomplete && call->idem_state == IDEM_ABSENT))
		call->idem_state = IDEM_UNKNOWN;
	return err;
}

/* ---- in the body ---- */

struct candidate {
	size_t member; /* index in the table; MEMBER_COUNT = none */
	const char *from;
	struct bytes name;
	struct bytes value;
};

static size_t member_of(struct bytes name)
{
	struct bytes inside = {name.data + 1, name.size - 2};

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		if (bytes_equal(inside, members[i].name))
			return i;
	return MEMBER_COUNT;
}

static bool is_key(size_t member, struct bytes value)
{
	if (!json_scan_is_string(value) || value.size == 2 || value.size > BODY_KEY_BYTES_MAX + 2)
		return false;
	return member != MEMBER_EVENT_ID || bytes_starts_with(value, BYTES("\"evt_"));
}

/* Members stand in order of their names: equal ones are neighbours, and a later letter ends it. */
static struct candidate find_candidate(struct bytes json)
{
	struct candidate best = {.member = MEMBER_COUNT}, found;
	struct bytes name, value, name_before = {0};
	struct json_scan scan;

	json_scan_open(&scan, json);
	while (json_scan_next(&scan, &name, &value) && name.data[1] <= LAST_FIRST_LETTER) {
		found = (struct candidate){.member = member_of(name), .name = name, .value = value};
		if (bytes_equal(name, name_before)) {
			if (found.member == best.member)
				best.member = MEMBER_COUNT;
		} else if (found.member < best.member && is_key(found.member, value)) {
			best = found;
		}
		name_before = name;
	}
	best.from = best.member < MEMBER_COUNT ? members[best.member].from : NULL;
	return best;
}

/* Is it a key where the policy says that there is one? */
static bool is_named_key(struct bytes value)
{
	bool number = value.size && (value.data[0] == '-' || (value.data[0] >= '0' && value.data[0] <= '9'));

	return (number || (json_scan_is_string(value) && value.size > 2)) && value.size <= BODY_KEY_BYTES_MAX + 2;
}

/* The one member of that name in an object; false when there is none, or more. */
static bool find_only(struct bytes object, const char *wanted, struct candidate *ret_candidate)
{
	struct bytes name, value;
	struct json_scan scan;
	unsigned int found = 0;

	json_scan_open(&scan, json_scan_is_object(object) ? object : (struct bytes){0});
	while (json_scan_next(&scan, &name, &value)) {
		if (!json_scan_says(name, wanted))
			continue;
		found++;
		*ret_candidate = (struct candidate){.name = name, .value = value};
	}
	return found == 1;
}

static bool find_named(struct bytes json, const struct key_carrier *carrier, struct candidate *ret_candidate)
{
	if (!find_only(json, carrier->from + strlen("body."), ret_candidate))
		return false;
	ret_candidate->from = carrier->from;
	return is_named_key(ret_candidate->value);
}

/*
 * A2A: a server may tell repeats by message.messageId (A2A 1.0 section 3.3.1),
 * which its JSON-RPC binding has in params.
 */
static bool find_message_id(struct bytes json, struct candidate *ret_candidate)
{
	const char *from = "body.message.messageId";
	struct candidate outer = {.value = json};

	if (find_only(json, "params", &outer))
		from = "body.params.message.messageId";
	else
		outer.value = json;
	if (!find_only(outer.value, "message", &outer) || !find_only(outer.value, "messageId", ret_candidate))
		return false;
	ret_candidate->from = from;
	return json_scan_is_string(ret_candidate->value) && ret_candidate->value.size > 2 &&
	       ret_candidate->value.size <= BODY_KEY_BYTES_MAX + 2;
}

static struct candidate find_key(const struct call *call, struct bytes json)
{
	const struct policy_rule *rule = call->rule;
	struct candidate candidate;

	for (size_t i = 0; rule && i < rule->carriers.member_count; i++)
		if (find_named(json, &rule->carriers.members[i], &candidate))
			return candidate;
	if (call->protocol == PROTOCOL_A2A && find_message_id(json, &candidate))
		return candidate;
	return find_candidate(json);
}

/* With the comma behind it, or else the one before it. */
static struct bytes with_comma(struct bytes json, const struct candidate *candidate)
{
	const uint8_t *start = candidate->name.data;
	const uint8_t *end = candidate->value.data + candidate->value.size;

	if (end < json.data + json.size && *end == ',')
		end++;
	else if (start[-1] == ',')
		start--;
	return (struct bytes){start, (size_t)(end - start)};
}

/* The one field of that name in a canonical form; false when there is none, an empty one, or more. */
static bool find_field(struct bytes form, struct bytes wanted, struct bytes *ret_value)
{
	unsigned int found = 0;

	while (form.size) {
		struct bytes value = bytes_take(&form, bytes_find(form, '&')), name = bytes_take(&value, bytes_find(value, '='));

		bytes_take(&form, 1);
		bytes_take(&value, 1);
		if (!bytes_equal(name, wanted))
			continue;
		found++;
		*ret_value = value;
	}
	return found == 1 && ret_value->size && ret_value->size <= BODY_KEY_BYTES_MAX;
}

/* The Query protocol of AWS. The field stays a part of the comparison, since a form is compared by its hash. */
static void find_form_key(struct call *call, struct bytes form)
{
	struct bytes value;

	if (find_field(form, BYTES("ClientToken"), &value))
		call->idem_from = "body.ClientToken";
	else if (find_field(form, BYTES("ClientRequestToken"), &value))
		call->idem_from = "body.ClientRequestToken";
	else
		return;
	set_key(call, IDEM_PRESENT, value);
}

int idempotency_body_key(struct call *call, struct bytes json, struct buffer *text,
			 struct bytes *ret_member)
{
	struct candidate candidate;
	int err;

	*ret_member = (struct bytes){0};
	if (call->idem_state == IDEM_ABSENT && call->canon == CANONICAL_FORM && call->protocol == PROTOCOL_AWS)
		find_form_key(call, json);
	if (call->idem_state != IDEM_ABSENT || call->canon != CANONICAL_JSON ||
	    !json_scan_is_object(json))
		return 0;
	candidate = find_key(call, json);
	if (!candidate.from)
		return 0;
	buffer_clear(text);
	err = buffer_reserve(text, candidate.value.size);
	if (err)
		return err;
	if (json_scan_is_string(candidate.value))
		text->size = json_scan_text(candidate.value, text->data, text->capacity, NULL);
	else
		err = buffer_append(text, candidate.value);
	if (err)
		return err;
	set_key(call, IDEM_PRESENT, buffer_bytes(text));
	call->idem_from = candidate.from;
	*ret_member = with_comma(json, &candidate);
	return 0;
}

struct bytes idempotency_member(const struct call *call, struct bytes json)
{
	struct candidate candidate;

	if (!json_scan_is_object(json))
		return (struct bytes){0};
	candidate = find_key(call, json);
	return candidate.from ? with_comma(json, &candidate) : (struct bytes){0};
}
