/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which columns each pane has on a terminal of that width, and what stands in
 * them.
 */
#include "say.h"
#include "screen_pages.h"
#include "utf8.h"
#include "wall_time.h"

#define ROOM_FOR_WHO 110 /* and when, of a finding */

/* ---- numbers and times ---- */

void screen_clock(uint64_t when_ns, int64_t wall_offset_ns, char text[16])
{
	int64_t wall_ns = wall_time_ns(when_ns, wall_offset_ns);
	time_t seconds = (time_t)(wall_ns / 1000000000);
	struct tm utc;

	gmtime_r(&seconds, &utc);
	snprintf(text, 16, "%02u:%02u:%02u.%03u", (unsigned int)utc.tm_hour % 100, (unsigned int)utc.tm_min % 100,
		 (unsigned int)utc.tm_sec % 100, (unsigned int)(wall_ns / 1000000 % 1000));
}

unsigned int screen_severity_style(enum severity severity)
{
	static const unsigned int styles[] = {
		[SEVERITY_NULL] = STYLE_UNDECIDABLE, [SEVERITY_INFO] = STYLE_PLAIN, [SEVERITY_LOW] = STYLE_LOW,
		[SEVERITY_MEDIUM] = STYLE_MEDIUM,    [SEVERITY_HIGH] = STYLE_HIGH,
	};

	return styles[severity];
}

static void count_text(uint64_t count, char text[16])
{
	if (count < 100000)
		snprintf(text, 16, "%u", (unsigned int)count);
	else if (count < 10000ULL * 1024)
		snprintf(text, 16, "%uK", (unsigned int)(count / 1024));
	else if (count < 10000ULL * 1024 * 1024)
		snprintf(text, 16, "%uM", (unsigned int)(count / 1024 / 1024));
	else
		snprintf(text, 16, "%lluG", (unsigned long long)(count / 1024 / 1024 / 1024) % 1000000000000);
}

/* ---- columns ---- */

enum shown {
	SHOW_FLAG, SHOW_TIME, SHOW_PID, SHOW_COMMAND, SHOW_METHOD, SHOW_STATUS, SHOW_SENT, SHOW_GOT, SHOW_MS,
	SHOW_FINDING, SHOW_TARGET, SHOW_SERVER_TARGET,
	SHOW_SEVERITY, SHOW_NAME, SHOW_ATTEMPT, SHOW_WHAT,
	SHOW_CALLS, SHOW_MUTATING, SHOW_ATTEMPTS, SHOW_DUPLICATES, SHOW_LAST, SHOW_TOKENS, SHOW_PATH,
};

struct column {
	enum shown id;
	const char *title;
	unsigned int width; /* the last one takes the rest */
	bool right;
};

static const struct column calls_wide[] = {
	{SHOW_TIME, "TIME (UTC)", 12, false}, {SHOW_PID, "PID", 7, true},
	{SHOW_COMMAND, "COMMAND", 15, false}, {SHOW_METHOD, "METHOD", 7, false},
	{SHOW_STATUS, "ST", 3, true},		{SHOW_SENT, "SENT", 6, true},
	{SHOW_GOT, "GOT", 6, true},		{SHOW_MS, "MS", 9, true},
	{SHOW_FINDING, "FINDING", 28, false}, {SHOW_SERVER_TARGET, "SERVER AND TARGET", 0, false},
	{0},
};
static const struct column calls_medium[] = {
	{SHOW_FLAG, "", 1, false},		{SHOW_TIME, "TIME", 8, false},
	{SHOW_PID, "PID", 7, true},		{SHOW_COMMAND, "COMMAND", 10, false},
	{SHOW_METHOD, "METHOD", 6, false}, {SHOW_STATUS, "ST", 3, true},
	{SHOW_GOT, "GOT", 5, true},		{SHOW_MS, "MS", 7, true},
	{SHOW_TARGET, "TARGET", 0, false},	{0},
};
static const struct column calls_narrow[] = {
	{SHOW_FLAG, "", 1, false}, {SHOW_METHOD, "METH", 4, false}, {SHOW_STATUS, "ST", 3, true},
	{SHOW_MS, "MS", 6, true},  {SHOW_TARGET, "TARGET", 0, false},   {0},
};
static const struct column findings_wide[] = {
	{SHOW_SEVERITY, "SEVERITY", 11, false}, {SHOW_NAME, "FINDING", 28, false},
	{SHOW_ATTEMPT, "ATTEMPT", 9, true},	{SHOW_TIME, "TIME (UTC)", 12, false},
	{SHOW_PID, "PID", 7, true},		{SHOW_COMMAND, "COMMAND", 15, false},
	{SHOW_WHAT, "CALL", 0, false},		{0},
};
static const struct column findings_medium[] = {
	{SHOW_SEVERITY, "SEVERITY", 11, false}, {SHOW_NAME, "FINDING", 25, false},
	{SHOW_ATTEMPT, "ATTEMPT", 7, true},	  {SHOW_WHAT, "CALL", 0, false}, {0},
};
static const struct column findings_narrow[] = {
	{SHOW_FLAG, "", 1, false}, {SHOW_NAME, "FINDING", 17, false}, {SHOW_WHAT, "CALL", 0, false}, {0},
};
static const struct column table_medium[] = {
	{SHOW_PID, "PID", 7, true},	      {SHOW_COMMAND, "COMMAND", 10, false},
	{SHOW_CALLS, "CALLS", 6, true},     {SHOW_MUTATING, "MUT", 5, true},
	{SHOW_ATTEMPTS, "ATTEMPTS", 8, true},	{SHOW_DUPLICATES, "DUPS", 5, true},
	{SHOW_LAST, "LAST", 4, true},	      {SHOW_TOKENS, "TOKENS", 6, true},
	{SHOW_PATH, "PATH", 0, false},      {0},
};
static const struct column table_narrow[] = {
	{SHOW_CALLS, "CALLS", 5, true}, {SHOW_DUPLICATES, "DUPS", 4, true}, {SHOW_LAST, "LAST", 4, true},
	{SHOW_PATH, "PATH", 0, false},  {0},
};

static const struct column *columns_of(enum screen_pane pane, unsigned int columns)
{
	switch (pane) {
	case SCREEN_FINDINGS:
		return columns >= ROOM_FOR_WHO ? findings_wide : columns >= SCREEN_MEDIUM ? findings_medium : findings_narrow;
	case SCREEN_CALLS:
		return columns >= SCREEN_WIDE ? calls_wide : columns >= SCREEN_MEDIUM ? calls_medium : calls_narrow;
	default:
		return columns >= SCREEN_MEDIUM ? table_medium : table_narrow;
	}
}

/* ---- what stands in a column ---- */

struct cell { /* one being filled */
	struct buffer *text;
	unsigned int style;
};

/* One letter for what was found; "+" before a call that was sent again later. */
static const char *flag_of(const struct verdict *verdict, enum finding alone, bool sent_again)
{
	static const char *const flags[] = {
		[SEVERITY_NULL] = "?", [SEVERITY_INFO] = "i", [SEVERITY_LOW] = "L", [SEVERITY_MEDIUM] = "M", [SEVERITY_HIGH] = "H"};

	if (verdict && verdict->finding != FINDING_NONE)
		return flags[verdict->severity];
	if (sent_again)
		return "+";
	return alone == FINDING_NONE ? "" : "i";
}

static void put_ms(const struct screen_call *call, struct buffer *out)
{
	uint64_t from = call->sent_ns ? call->sent_ns : call->facts.first_ns;

	if (call->response_last_ns == 0)
		say(out, "-");
	else
		say(out, "%.1f", call->response_last_ns > from ? (double)(call->response_last_ns - from) / 1e6 : 0.0);
}

static void put_count(uint64_t count, struct buffer *out)
{
	char text[16];

	count_text(count, text);
	say(out, "%s", text);
}

static void put_status(unsigned int status, struct cell *cell)
{
	if (status)
		say(cell->text, "%u", status);
	else
		say(cell->text, "-");
	if (status >= 500)
		cell->style = STYLE_MEDIUM;
}

static void put_target(const struct screen_call *call, bool whole, struct buffer *out)
{
	char server[ENDPOINT_TEXT_MAX];

	endpoint_text(&call->server, server);
	if (whole)
		say(out, "%s ", server);
	else
		say(out, ":%u", call->server.port);
	buffer_append(out, screen_slice_of(call, call->target));
}

static void put_call(const struct screen_model *model, const struct screen_call *call, enum shown id, struct cell *cell)
{
	const struct verdict *verdict = call->judgement ? &call->judgement->verdict : NULL;
	enum finding finding = verdict ? verdict->finding : call->alone;
	char text[16];

	switch (id) {
	case SHOW_FLAG:
		say(cell->text, "%s", flag_of(verdict, call->alone, call->later_number));
		cell->style = verdict ? screen_severity_style(verdict->severity) | STYLE_BOLD : STYLE_PLAIN;
		break;
	case SHOW_TIME:
		screen_clock(call->facts.first_ns, model->wall_offset_ns, text);
		say(cell->text, "%s", text);
		break;
	case SHOW_PID:
		say(cell->text, "%u", call->process.tgid);
		break;
	case SHOW_COMMAND:
		buffer_append(cell->text, screen_slice_of(call, call->comm));
		break;
	case SHOW_METHOD:
		buffer_append(cell->text, screen_slice_of(call, call->method));
		break;
	case SHOW_STATUS:
		put_status(call->facts.status, cell);
		break;
	case SHOW_SENT:
		put_count(call->body_bytes, cell->text);
		break;
	case SHOW_GOT:
		put_count(call->response_body_bytes, cell->text);
		break;
	case SHOW_MS:
		put_ms(call, cell->text);
		break;
	case SHOW_FINDING:
		say(cell->text, "%s", !verdict && call->later_number ? "(sent again later)" :
				      finding == FINDING_NONE	       ? "" :
									 finding_name(finding));
		cell->style = verdict ? screen_severity_style(verdict->severity) : STYLE_PLAIN;
		break;
	default:
		put_target(call, id == SHOW_SERVER_TARGET, cell->text);
		break;
	}
}

/* Who sent the later attempt, and when. */
static void put_later(const struct screen_model *model, const struct screen_finding *finding, enum shown id, struct cell *cell)
{
	const struct attempt_facts *facts = &finding->judgement.later_facts;
	char text[16];

	if (finding->judgement.attempt == 0)
		return;
	if (id == SHOW_TIME) {
		screen_clock(facts->first_ns, model->wall_offset_ns, text);
		say(cell->text, "%s", text);
	} else if (id == SHOW_PID) {
		say(cell->text, "%u", facts->tgid);
	} else if (finding->later) {
		buffer_append(cell->text, screen_slice_of(finding->later, finding->later->comm));
	}
}

static void put_finding(const struct screen_model *model, const struct screen_finding *finding, enum shown id, struct cell *cell)
{
	const struct verdict *verdict = &finding->judgement.verdict;
	const struct screen_call *call = finding->later ? finding->later : finding->earlier;

	switch (id) {
	case SHOW_FLAG:
		say(cell->text, "%s", flag_of(verdict, FINDING_NONE, false));
		cell->style = screen_severity_style(verdict->severity) | STYLE_BOLD;
		break;
	case SHOW_SEVERITY:
		say(cell->text, "%s", screen_severity_word(verdict->severity));
		cell->style = screen_severity_style(verdict->severity) | STYLE_BOLD;
		break;
	case SHOW_NAME:
		say(cell->text, "%s", finding_name(verdict->finding));
		break;
	case SHOW_ATTEMPT:
		if (finding->judgement.attempt)
			say(cell->text, "%llu of %llu", (unsigned long long)finding->judgement.attempt,
			    (unsigned long long)finding->attempts);
		break;
	case SHOW_TIME:
	case SHOW_PID:
	case SHOW_COMMAND:
		put_later(model, finding, id, cell);
		break;
	default:
		if (finding->text.size)
			buffer_append(cell->text, buffer_bytes(&finding->text));
		else if (call)
			buffer_append(cell->text, screen_slice_of(call, call->method));
		if (call)
			say(cell->text, " :%u", call->server.port);
		if (call)
			buffer_append(cell->text, screen_slice_of(call, call->target));
		break;
	}
}

static void put_group(const struct screen_group *group, enum shown id, struct cell *cell)
{
	switch (id) {
	case SHOW_PID:
		if (group->tgid)
			say(cell->text, "%u", group->tgid);
		break;
	case SHOW_COMMAND:
		text_harmless(bytes_of_string(group->comm), 64, cell->text);
		break;
	case SHOW_CALLS:
		put_count(group->calls, cell->text);
		break;
	case SHOW_MUTATING:
		put_count(group->mutating, cell->text);
		break;
	case SHOW_ATTEMPTS:
		put_count(group->attempts, cell->text);
		break;
	case SHOW_DUPLICATES:
		put_count(group->duplicates, cell->text);
		cell->style = group->duplicates ? STYLE_HIGH : STYLE_PLAIN;
		break;
	case SHOW_LAST:
		put_status(group->last_status, cell);
		break;
	case SHOW_TOKENS:
		put_count(group->tokens, cell->text);
		break;
	default:
		buffer_append(cell->text, buffer_bytes(&group->target));
		break;
	}
}

/* ---- a row of them ---- */

unsigned int screen_columns_in(struct bytes text)
{
	unsigned int columns = 0;

	for (size_t i = 0; i < text.size; i++)
		columns += (text.data[i] & 0xc0) != 0x80;
	return columns;
}

void screen_columns_item(const struct screen_model *model, struct screen_frame *frame, unsigned int row, enum screen_pane pane,
		      const void *item, bool selected)
{
	unsigned int x = 0;
	struct buffer text = {0};

	if (selected)
		screen_frame_fill(frame, row, STYLE_REVERSE);
	for (const struct column *column = columns_of(pane, frame->columns); column->title; column++) {
		struct cell cell = {&text, STYLE_PLAIN};
		unsigned int width = column->width ? column->width : frame->columns > x ? frame->columns - x : 0;
		unsigned int used;

		buffer_clear(&text);
		if (pane == SCREEN_CALLS)
			put_call(model, item, column->id, &cell);
		else if (pane == SCREEN_FINDINGS)
			put_finding(model, item, column->id, &cell);
		else
			put_group(item, column->id, &cell);
		if (column->id == SHOW_TIME && text.size > column->width)
			text.size = column->width; /* whole seconds: nothing is hidden that a ">" should point at */
		used = screen_columns_in(buffer_bytes(&text));
		if (column->right && used < width)
			screen_frame_text(frame, row, x + width - used, used, cell.style | (selected ? STYLE_REVERSE : 0),
					  buffer_bytes(&text));
		else
			screen_frame_text(frame, row, x, width, cell.style | (selected ? STYLE_REVERSE : 0), buffer_bytes(&text));
		x += width + 1;
	}
	buffer_done(&text);
}

void screen_columns_titles(struct screen_frame *frame, unsigned int row, enum screen_pane pane)
{
	unsigned int x = 0;

	for (const struct column *column = columns_of(pane, frame->columns); column->title; column++) {
		unsigned int size = (unsigned int)strlen(column->title);
		unsigned int at = column->right && size < column->width ? x + column->width - size : x;

		screen_frame_say(frame, row, at, column->width ? column->width : frame->columns, STYLE_DIM, "%s", column->title);
		x += column->width + 1;
	}
}
