/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The whole story of a call: what was found, then both attempts side by side
 * (below each other where the screen is narrow), then what happened when.
 */
#include "evidence.h"
#include "say.h"
#include "screen_pages.h"
#include "utf8.h"

#include <stdarg.h>

#define SIDE_BY_SIDE 70 /* columns from which on there is room for two */
#define LABEL 15	/* columns of a label and its mark */
#define NARROW_INDENT 4
#define EVENTS_MAX 20

/* The page as it is being made. */
struct page {
	const struct screen_model *model;
	struct screen_frame *frame;
	const struct screen_window *window;
	size_t line; /* the next one */
	const struct screen_call *call[2];    /* earlier, later; NULL = not kept, or there is none */
	const struct attempt_facts *facts[2]; /* NULL = there is none */
	const struct judgement *judgement;    /* NULL = one call, and nothing found */
	struct buffer text[2];
};

/* ---- lines ---- */

static void put(struct page *page, unsigned int column, unsigned int width, unsigned int style, struct bytes text)
{
	size_t top = page->window->scroll;

	if (page->line >= top && page->line - top < page->window->rows)
		screen_frame_text(page->frame, page->window->top + (unsigned int)(page->line - top), column, width, style, text);
}

/* The front of text that fills at most that many columns, broken at a space if there is one in its second half. */
static struct bytes take_columns(struct bytes *text, unsigned int columns)
{
	size_t i = 0, space = 0;
	struct bytes piece;

	for (unsigned int used = 0; i < text->size && used < columns; used++) {
		if (text->data[i] == ' ' && used > columns / 2)
			space = i;
		do
			i++;
		while (i < text->size && (text->data[i] & 0xc0) == 0x80);
	}
	piece = bytes_take(text, i < text->size && space ? space : i);
	while (text->size && text->data[0] == ' ')
		bytes_take(text, 1);
	return piece;
}

/* A label and its text, which goes on below where it is long. */
static void flow(struct page *page, const char *label, unsigned int style, struct bytes text)
{
	unsigned int indent = page->frame->columns < SIDE_BY_SIDE ? NARROW_INDENT : LABEL;
	unsigned int width = page->frame->columns > indent + 8 ? page->frame->columns - indent : 8;

	if (!*label)
		indent = 0, width = page->frame->columns;
	put(page, 0, LABEL, STYLE_DIM, bytes_of_string(label));
	if (*label && indent == NARROW_INDENT)
		page->line++;
	do {
		struct bytes piece = take_columns(&text, width);

		put(page, indent, width, style, piece);
		page->line++;
	} while (text.size);
}

static void blank(struct page *page)
{
	page->line++;
}

/* ---- one fact of both attempts ---- */

enum comparison { NOT_COMPARED, COMPARED };

/* Appends what that attempt says; nothing = it has nothing to say. call may be NULL. */
typedef void (*teller)(const struct page *page, const struct screen_call *call, const struct attempt_facts *facts,
		       struct buffer *out);

static void draw_beside(struct page *page, const char *label, const char *mark, unsigned int style)
{
	unsigned int width = (page->frame->columns - LABEL - 1) / 2;
	struct bytes left = buffer_bytes(&page->text[0]), right = buffer_bytes(&page->text[1]);

	put(page, 0, LABEL - 2, STYLE_DIM, bytes_of_string(label));
	put(page, LABEL - 2, 1, style | STYLE_BOLD, bytes_of_string(mark));
	do {
		put(page, LABEL, width, style, take_columns(&left, width));
		put(page, LABEL + width + 1, width, style, take_columns(&right, width));
		page->line++;
	} while (left.size || right.size);
}

static void draw_below(struct page *page, const char *label, const char *mark, unsigned int style)
{
	unsigned int width = page->frame->columns > NARROW_INDENT + 8 ? page->frame->columns - NARROW_INDENT : 8;

	put(page, 0, page->frame->columns, STYLE_DIM, bytes_of_string(label));
	put(page, (unsigned int)strlen(label) + 1, 1, style | STYLE_BOLD, bytes_of_string(mark));
	page->line++;
	for (int side = 0; side < 2; side++) {
		struct bytes text = buffer_bytes(&page->text[side]);

		put(page, 1, 2, STYLE_DIM, bytes_of_string(side ? "2" : "1"));
		do {
			put(page, NARROW_INDENT, width, style, take_columns(&text, width));
			page->line++;
		} while (text.size);
	}
}

static void tell(struct page *page, const char *label, teller say_fact, enum comparison comparison)
{
	bool pair = page->facts[0] != NULL, same;
	const char *mark = "";

	for (int side = 0; side < 2; side++) {
		buffer_clear(&page->text[side]);
		if (page->facts[side])
			say_fact(page, page->call[side], page->facts[side], &page->text[side]);
	}
	if (page->text[0].size + page->text[1].size == 0)
		return;
	if (!pair) {
		flow(page, label, STYLE_PLAIN, buffer_bytes(&page->text[1]));
		return;
	}
	same = bytes_equal(buffer_bytes(&page->text[0]), buffer_bytes(&page->text[1]));
	if (comparison == COMPARED && page->call[0] && page->call[1])
		mark = same ? "=" : "#";
	for (int side = 0; side < 2; side++)
		if (page->text[side].size == 0)
			say(&page->text[side], page->call[side] ? "-" : "(no longer kept)");
	if (page->frame->columns < SIDE_BY_SIDE)
		draw_below(page, label, mark, *mark == '#' ? STYLE_MEDIUM : STYLE_PLAIN);
	else
		draw_beside(page, label, mark, *mark == '#' ? STYLE_MEDIUM : STYLE_PLAIN);
}

/* ---- the facts ---- */

#define TELL(name)                                                                                                          \
	static void name(const struct page *page __attribute__((unused)),                                                   \
			 const struct screen_call *call __attribute__((unused)),                                            \
			 const struct attempt_facts *facts __attribute__((unused)), struct buffer *out)

TELL(tell_time)
{
	char text[16];

	screen_clock(facts->first_ns, page->model->wall_offset_ns, text);
	say(out, "%s UTC", text);
}

TELL(tell_outcome)
{
	attempt_outcome(facts, out);
}

TELL(tell_process)
{
	say(out, "pid %u ", facts->tgid);
	if (call)
		buffer_append(out, screen_slice_of(call, call->comm));
	if (call && call->process.ns_tgid && call->process.ns_tgid != call->process.tgid)
		say(out, " (%u in its namespace)", call->process.ns_tgid);
}

TELL(tell_connection)
{
	char client[ENDPOINT_TEXT_MAX], server[ENDPOINT_TEXT_MAX];

	if (!call)
		return;
	endpoint_text(&call->client, client);
	endpoint_text(&call->server, server);
	say(out, "%s to %s", client, server);
}

TELL(tell_server)
{
	if (!call || !call->server_process.tgid)
		return;
	say(out, "pid %u ", call->server_process.tgid);
	text_harmless(bytes_of_string(call->server_process.comm), 64, out);
}

TELL(tell_request)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->line));
}

TELL(tell_host)
{
	if (call && call->has_host)
		buffer_append(out, screen_slice_of(call, call->host));
}

TELL(tell_content_type)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->content_type));
}

TELL(tell_agent)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->agent));
}

TELL(tell_fields)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->other_fields));
}

TELL(tell_key)
{
	static const char *const states[] = {
		[IDEM_ABSENT] = "none", [IDEM_PRESENT] = "a key", [IDEM_INVALID] = "invalid: a list", [IDEM_UNKNOWN] = "not seen"};

	if (!call || facts->idem_state != IDEM_PRESENT) {
		say(out, "%s", states[facts->idem_state]);
		return;
	}
	buffer_append(out, screen_slice_of(call, call->idem));
	if (call->idem_from)
		say(out, " (%s)", call->idem_from);
}

TELL(tell_class)
{
	say(out, "%s", call_class_name((enum call_class)facts->class));
}

TELL(tell_tool)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->tool));
}

TELL(tell_model)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->model));
}

TELL(tell_hint)
{
	if (call)
		buffer_append(out, screen_slice_of(call, call->retry_hint));
}

TELL(tell_body)
{
	if (!call)
		return;
	say(out, "%llu bytes", (unsigned long long)call->body_bytes);
	if (call->request_holes)
		say(out, ", %llu bytes were not seen", (unsigned long long)call->request_holes);
}

static void say_digest(const struct digest *digest, struct buffer *out)
{
	char hex[2 * DIGEST_BYTES + 1];

	hex_of(digest->byte, DIGEST_BYTES, hex);
	say(out, "%s", hex);
}

TELL(tell_sha)
{
	if (!call)
		return;
	if (call->has_sha)
		say_digest(&call->sha, out);
	else
		say(out, "not known");
}

TELL(tell_raw_sha)
{
	if (call && call->has_raw_sha)
		say_digest(&call->raw_sha, out);
}

TELL(tell_fingerprint)
{
	if (call && call->has_fingerprint)
		say_digest(&call->fingerprint, out);
}

TELL(tell_answer)
{
	if (!call)
		return;
	if (!facts->status) {
		say(out, "none");
		return;
	}
	say(out, "%u, %llu bytes of body, ", facts->status, (unsigned long long)call->response_body_bytes);
	say(out, call->response_complete ? "whole" : "not whole");
	if (call->over)
		say(out, " (%s)", call_ended_name(call->ended));
	if (call->retry_after_s >= 0)
		say(out, ", Retry-After %lld s", (long long)call->retry_after_s);
	if (call->response_holes)
		say(out, ", %llu bytes were not seen", (unsigned long long)call->response_holes);
}

TELL(tell_read)
{
	if (!call || !facts->status)
		return;
	if (call->delivered == DELIVERED_UNKNOWN)
		say(out, "not known");
	else
		say(out, "%llu of %llu bytes, head included", (unsigned long long)call->delivered_bytes,
		    (unsigned long long)call->response_wire_bytes);
}

TELL(tell_usage)
{
	if (!call || !call->usage.seen)
		return;
	if (call->usage.input_tokens >= 0)
		say(out, "%lld in ", (long long)call->usage.input_tokens);
	if (call->usage.output_tokens >= 0)
		say(out, "%lld out", (long long)call->usage.output_tokens);
	if (!call->usage.final)
		say(out, " so far");
}

TELL(tell_why)
{
	if (call && call->why)
		say(out, "%s", call->why);
}

TELL(tell_id)
{
	char hex[2 * CALL_ID_BYTES + 1];

	if (!call)
		return;
	hex_of(call->id, CALL_ID_BYTES, hex);
	say(out, "%s", hex);
}

static void tell_outcomes(struct page *page)
{
	tell(page, "time", tell_time, NOT_COMPARED);
	tell(page, "outcome", tell_outcome, NOT_COMPARED);
	tell(page, "process", tell_process, COMPARED);
	tell(page, "answer", tell_answer, NOT_COMPARED);
	tell(page, "client read", tell_read, NOT_COMPARED);
	tell(page, "tokens", tell_usage, NOT_COMPARED);
	tell(page, "not known", tell_why, NOT_COMPARED);
}

static void tell_requests(struct page *page)
{
	blank(page);
	flow(page, "", STYLE_BOLD, BYTES("WHAT WAS SENT"));
	tell(page, "request", tell_request, COMPARED);
	tell(page, "host", tell_host, COMPARED);
	tell(page, "key", tell_key, COMPARED);
	tell(page, "content type", tell_content_type, COMPARED);
	tell(page, "user agent", tell_agent, COMPARED);
	tell(page, "fields", tell_fields, COMPARED);
	tell(page, "tool", tell_tool, COMPARED);
	tell(page, "model", tell_model, COMPARED);
	tell(page, "retry hint", tell_hint, COMPARED);
	tell(page, "class", tell_class, COMPARED);
	tell(page, "body", tell_body, COMPARED);
	tell(page, "sha", tell_sha, COMPARED);
	tell(page, "sha as sent", tell_raw_sha, COMPARED);
	tell(page, "fingerprint", tell_fingerprint, COMPARED);
	tell(page, "connection", tell_connection, NOT_COMPARED);
	tell(page, "server", tell_server, COMPARED);
	tell(page, "id", tell_id, NOT_COMPARED);
}

/* ---- what happened when ---- */

struct event {
	uint64_t when_ns;
	int side;
	char text[64];
};

struct events {
	struct event at[EVENTS_MAX];
	size_t count;
};

__attribute__((format(printf, 4, 5))) static void add_event(struct events *events, int side, uint64_t when_ns,
							     const char *format, ...)
{
	struct event *event = &events->at[events->count];
	va_list arguments;

	if (when_ns == 0 || events->count == EVENTS_MAX)
		return;
	event->when_ns = when_ns;
	event->side = side;
	va_start(arguments, format);
	vsnprintf(event->text, sizeof(event->text), format, arguments);
	va_end(arguments);
	events->count++;
}

static void add_events(const struct page *page, int side, struct events *events)
{
	const struct attempt_facts *facts = page->facts[side];
	const struct screen_call *call = page->call[side];

	add_event(events, side, facts->first_ns, "request begins");
	if (call)
		add_event(events, side, call->sent_ns, "request sent whole");
	add_event(events, side, facts->status_ns, "server sends %u", facts->status);
	if (call && facts->status)
		add_event(events, side, call->response_last_ns, call->response_complete ? "answer whole" : "last byte of the answer");
	if (call) {
		add_event(events, side, call->client_closed_ns, call->client_died ? "client died or reset" : "client closed");
		add_event(events, side, call->server_closed_ns,
			  call->ended == CALL_ENDED_RESET && !call->client_closed_ns ? "server reset" : "server closed");
	} else {
		add_event(events, side, facts->closed_ns, facts->closed_first == CLOSER_SERVER ? "server closed" : "client closed");
	}
}

/* In order of time; what came at one time keeps its order. */
static void sort_events(struct events *events)
{
	for (size_t i = 1; i < events->count; i++)
		for (size_t j = i; j > 0 && events->at[j].when_ns < events->at[j - 1].when_ns; j--) {
			struct event other = events->at[j];

			events->at[j] = events->at[j - 1];
			events->at[j - 1] = other;
		}
}

static void draw_event(struct page *page, const struct event *event, uint64_t from_ns, bool pair)
{
	unsigned int columns = page->frame->columns, width = (columns - LABEL - 1) / 2;
	char ms[32];
	int size = snprintf(ms, sizeof(ms), "%.1f ms", (double)(event->when_ns - from_ns) / 1e6);

	if (size < 0)
		return;
	put(page, (unsigned int)size < LABEL - 2 ? LABEL - 2 - (unsigned int)size : 0, LABEL - 1, STYLE_DIM, bytes_of_string(ms));
	if (columns < SIDE_BY_SIDE && pair)
		put(page, LABEL, 2, STYLE_DIM, bytes_of_string(event->side ? "2" : "1"));
	if (columns < SIDE_BY_SIDE)
		put(page, LABEL + (pair ? 2 : 0), columns, STYLE_PLAIN, bytes_of_string(event->text));
	else
		put(page, LABEL + (pair && event->side ? width + 1 : 0), width, STYLE_PLAIN, bytes_of_string(event->text));
	page->line++;
}

static void draw_timeline(struct page *page)
{
	struct events events = {.count = 0};

	for (int side = 0; side < 2; side++)
		if (page->facts[side])
			add_events(page, side, &events);
	sort_events(&events);
	blank(page);
	flow(page, "", STYLE_BOLD, BYTES("WHAT HAPPENED WHEN"));
	for (size_t i = 0; i < events.count; i++)
		draw_event(page, &events.at[i], events.at[0].when_ns, page->facts[0] != NULL);
}

/* ---- the head ---- */

/* "POST /v1/charges at 127.0.0.1:8080" */
static void say_call(const struct screen_call *call, struct buffer *out)
{
	char server[ENDPOINT_TEXT_MAX];

	if (!call)
		return;
	endpoint_text(&call->server, server);
	buffer_append(out, screen_slice_of(call, call->line));
	say(out, " at %s", server);
}

static void draw_found(struct page *page)
{
	const struct judgement *judgement = page->judgement;
	const struct screen_call *call = page->call[1];
	const struct verdict *verdict = &judgement->verdict;
	struct buffer *text = &page->text[0];
	uint64_t attempts = call && call->finding ? call->finding->attempts : judgement->attempts;

	buffer_clear(text);
	say(text, "%s %s: ", screen_severity_word(verdict->severity), finding_name(verdict->finding));
	say_call(call, text);
	say(text, "%sattempt %llu of %llu", call ? ", " : "", (unsigned long long)judgement->attempt,
	    (unsigned long long)attempts);
	flow(page, "", STYLE_BOLD | screen_severity_style(verdict->severity), buffer_bytes(text));
	buffer_clear(text);
	finding_evidence_of(judgement, call ? screen_slice_of(call, call->method) : BYTES("request"), text);
	flow(page, "evidence", STYLE_PLAIN, buffer_bytes(text));
	if (!rule_is_plain(verdict->rule))
		flow(page, "rule", STYLE_PLAIN, bytes_of_string(verdict->rule));
	flow(page, "next", STYLE_PLAIN, bytes_of_string(finding_next_step(verdict->finding)));
}

static void draw_alone(struct page *page)
{
	const struct screen_call *call = page->call[1];

	buffer_clear(&page->text[0]);
	if (call->alone != FINDING_NONE)
		say(&page->text[0], "INFO %s: ", finding_name(call->alone));
	say_call(call, &page->text[0]);
	if (call->alone == FINDING_NONE)
		say(&page->text[0], ": sent once, nothing found");
	flow(page, "", STYLE_BOLD, buffer_bytes(&page->text[0]));
	if (call->alone != FINDING_NONE)
		flow(page, "next", STYLE_PLAIN, bytes_of_string(finding_next_step(call->alone)));
}

static void draw_heads(struct page *page)
{
	unsigned int width = (page->frame->columns - LABEL - 1) / 2;
	uint64_t attempt = page->judgement->attempt;

	blank(page);
	if (page->frame->columns < SIDE_BY_SIDE) {
		flow(page, "", STYLE_BOLD, BYTES("1 the earlier attempt, 2 this one"));
		flow(page, "", STYLE_DIM, BYTES("= same  # differs"));
		return;
	}
	put(page, 0, LABEL, STYLE_DIM, BYTES("= #"));
	buffer_clear(&page->text[0]);
	say(&page->text[0], attempt == 2 ? "ATTEMPT 1" : "AN EARLIER ATTEMPT");
	put(page, LABEL, width, STYLE_BOLD, buffer_bytes(&page->text[0]));
	buffer_clear(&page->text[0]);
	say(&page->text[0], "ATTEMPT %llu", (unsigned long long)attempt);
	put(page, LABEL + width + 1, width, STYLE_BOLD, buffer_bytes(&page->text[0]));
	page->line++;
}

static void find_sides(struct page *page)
{
	const struct screen_model *model = page->model;

	page->call[0] = model->story[0];
	page->call[1] = model->story[1];
	if (page->call[1] && page->call[1]->judgement)
		page->judgement = page->call[1]->judgement;
	else if (model->story_has_judgement)
		page->judgement = &model->story_judgement;
	if (page->judgement)
		page->facts[0] = page->call[0] ? &page->call[0]->facts : &page->judgement->earlier_facts;
	page->facts[1] = page->call[1] ? &page->call[1]->facts : &model->story_judgement.later_facts;
}

size_t screen_story(const struct screen_model *model, struct screen_frame *frame, const struct screen_window *window)
{
	struct page page = {.model = model, .frame = frame, .window = window};

	if (frame->columns < LABEL + 8)
		return 0;
	find_sides(&page);
	if (page.judgement)
		draw_found(&page);
	else
		draw_alone(&page);
	if (page.judgement)
		draw_heads(&page);
	else
		blank(&page);
	tell_outcomes(&page);
	draw_timeline(&page);
	tell_requests(&page);
	buffer_done(&page.text[0]);
	buffer_done(&page.text[1]);
	return page.line;
}
