/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every canonical form, picked by the first byte: 0 JSON, 1 form, 2 multipart
 * with boundary "b", 3 NDJSON, 4 query, 5 a content type up to the first LF
 * and a body behind it, 6 JSON through the search for a key and its member.
 *
 * Beyond what the sanitizers find: canonical text is its own canonical text,
 * a refusal leaves the output alone, and a text is never more than a small
 * multiple of its input.
 */
#include "canonical.h"
#include "idempotency.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool true_thing)
{
	if (!true_thing)
		abort();
}

static const char *make(uint8_t form, struct bytes text, struct canonical *flags,
			struct buffer *out)
{
	switch (form) {
	case 0:
		return canonical_json(text, flags, out);
	case 1:
		return canonical_form(text, out);
	case 2:
		return canonical_multipart(text, BYTES("b"), out);
	case 3:
		return canonical_ndjson(text, flags, out);
	default:
		return canonical_query(text, out);
	}
}

static void try_form(uint8_t form, struct bytes text)
{
	struct canonical flags = {0}, again_flags = {0};
	struct buffer out = {0}, again = {0};
	const char *why;

	must(buffer_append(&out, BYTES("before")) == 0);
	why = make(form, text, &flags, &out);
	must(bytes_starts_with(buffer_bytes(&out), BYTES("before")));
	if (why) {
		must(out.size == 6);
	} else if (form != 2) {
		struct bytes made = {out.data + 6, out.size - 6};

		must(made.size <= 6 * text.size + 1);
		must(!make(form, made, &again_flags, &again));
		must(bytes_equal(buffer_bytes(&again), made));
		must(again_flags.duplicate_key == flags.duplicate_key);
		must(again_flags.lone_surrogate == flags.lone_surrogate);
	}
	buffer_done(&out);
	buffer_done(&again);
	canonical_done(&flags);
	canonical_done(&again_flags);
}

static void try_content_type(struct bytes text)
{
	struct bytes content_type = bytes_take(&text, bytes_find(text, '\n'));
	struct canonical canonical = {0};

	bytes_take(&text, 1);
	must(canonical_make(content_type, text, &canonical) == 0);
	must(canonical.kind != CANONICAL_NONE || text.size == 0);
	must(canonical.kind != CANONICAL_RAW || canonical.text.size == 0);
	must(canonical.kind == CANONICAL_RAW || !canonical.why);
	canonical_done(&canonical);
}

/* Without the member that held the key it must still be canonical JSON. */
static void try_key(struct bytes text)
{
	const struct http_head head = {.side = HTTP_REQUEST};
	struct call call = {.head = &head, .canon = CANONICAL_JSON};
	struct canonical canonical = {0}, flags = {0};
	struct buffer key = {0}, rest = {0}, again = {0};
	struct bytes whole, member, after;

	must(canonical_make(BYTES("application/json"), text, &canonical) == 0);
	whole = buffer_bytes(&canonical.text);
	if (canonical.kind == CANONICAL_JSON) {
		must(idempotency_key(&call, &key) == 0);
		must(idempotency_body_key(&call, whole, &key, &member) == 0);
		must((call.idem_state == IDEM_PRESENT) == (member.size > 0));
		if (member.size) {
			after = whole;
			must(buffer_append(&rest, bytes_take(&after, (size_t)(member.data -
									      whole.data))) == 0);
			bytes_take(&after, member.size);
			must(buffer_append(&rest, after) == 0);
			must(!canonical_json(buffer_bytes(&rest), &flags, &again));
			must(bytes_equal(buffer_bytes(&rest), buffer_bytes(&again)));
		}
	}
	canonical_done(&canonical);
	canonical_done(&flags);
	buffer_done(&key);
	buffer_done(&rest);
	buffer_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct bytes text = {data + 1, size - 1};

	if (!size)
		return 0;
	if (data[0] % 7 == 5)
		try_content_type(text);
	else if (data[0] % 7 == 6)
		try_key(text);
	else
		try_form(data[0] % 7, text);
	return 0;
}
