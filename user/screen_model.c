/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The view's own state: its life, what stands in its margins, and what each key
 * does to it.
 */
#include "screen_parts.h"
#include "say.h"
#include "utf8.h"

#include <errno.h>
#include <limits.h>

/* ---- life ---- */

struct screen_model *screen_model_new(const struct screen_options *options)
{
	struct screen_model *model = calloc(1, sizeof(*model));

	if (!model)
		return NULL;
	model->ring = calloc(SCREEN_CALLS_MAX, sizeof(*model->ring));
	model->output = calloc(SCREEN_OUTPUT_LINES, sizeof(*model->output));
	if (!model->ring || !model->output) {
		screen_model_free(model);
		return NULL;
	}
	snprintf(model->title, sizeof(model->title), "%s", options->title);
	model->fail_on = options->fail_on;
	model->has_output = options->has_output;
	model->focus = SCREEN_CALLS;
	model->list[SCREEN_CALLS].follow = model->list[SCREEN_OUTPUT].follow = true;
	model->oldest = model->next = model->appended = 1;
	model->columns = 80;
	model->rows = 24;
	model->bell = model->changed = true;
	return model;
}

static void close_story(struct screen_model *model)
{
	screen_call_drop(model, model->story[0]);
	screen_call_drop(model, model->story[1]);
	model->story[0] = model->story[1] = NULL;
	model->story_has_judgement = false;
	if (model->page == SCREEN_STORY)
		model->page = SCREEN_MAIN;
	if (model->page_below == SCREEN_STORY)
		model->page_below = SCREEN_MAIN;
	model->scroll = 0;
}

void screen_model_forget(struct screen_model *model)
{
	close_story(model);
	screen_lists_done(model);
	screen_rows_forget(model);
	model->has_mark = false;
	model->steps = 0;
	model->changed = true;
}

void screen_model_free(struct screen_model *model)
{
	if (!model)
		return;
	if (model->ring)
		screen_model_forget(model);
	for (size_t i = 0; model->output && i < SCREEN_OUTPUT_LINES; i++)
		buffer_done(&model->output[i]);
	buffer_done(&model->mark);
	buffer_done(&model->scratch);
	free(model->output);
	free(model->ring);
	free(model);
}

/* ---- what stands in the margins ---- */

void screen_model_tick(struct screen_model *model, int64_t wall_offset_ns)
{
	if (model)
		model->wall_offset_ns = wall_offset_ns;
}

void screen_model_counters(struct screen_model *model, const struct counters *counters)
{
	uint64_t lost = counters->value[WIRE_COUNTER_LIFECYCLE_LOST] + counters->recursion_misses;

	if (!model)
		return;
	model->changed |= lost != model->totals.lost;
	model->totals.lost = lost;
}

int screen_model_mark(struct screen_model *model, struct bytes label)
{
	if (!model)
		return 0;
	buffer_clear(&model->mark);
	model->has_mark = model->changed = true;
	return text_harmless(label, 64, &model->mark);
}

void screen_model_ring(struct screen_model *model, uint64_t fill_bytes, uint64_t peak_bytes, uint64_t size_bytes)
{
	if (fill_bytes * 100 / (size_bytes + 1) != model->ring_fill * 100 / (model->ring_size + 1))
		model->changed = true;
	model->ring_fill = fill_bytes;
	model->ring_peak = peak_bytes;
	model->ring_size = size_bytes;
}

void screen_model_store_lost(struct screen_model *model, uint64_t rows)
{
	model->changed |= rows != model->store_lost;
	model->store_lost = rows;
}

void screen_model_state(struct screen_model *model, const char *text)
{
	if (strcmp(model->state, text) == 0)
		return;
	snprintf(model->state, sizeof(model->state), "%s", text);
	model->changed = true;
}

void screen_model_say(struct screen_model *model, const char *text)
{
	struct buffer *scratch = &model->scratch;

	buffer_clear(scratch);
	if (text_harmless(bytes_of_string(text), sizeof(model->message) - 8, scratch))
		return;
	snprintf(model->message, sizeof(model->message), "%.*s", (int)scratch->size, (const char *)scratch->data);
	model->changed = true;
}

/* ---- the command's output ---- */

static struct buffer *output_line(struct screen_model *model)
{
	if (model->output_lines == 0 || model->output_ended) {
		buffer_clear(&model->output[model->output_lines % SCREEN_OUTPUT_LINES]);
		model->output_lines++;
		model->output_ended = model->output_returned = false;
	}
	return &model->output[(model->output_lines - 1) % SCREEN_OUTPUT_LINES];
}

/* A carriage return begins the line anew, as a progress bar means it. */
static int output_byte(struct screen_model *model, uint8_t byte)
{
	struct buffer *line = output_line(model);
	size_t spaces = byte == '\t' ? 8 - line->size % 8 : 0;
	int err = 0;

	if (byte == '\n')
		model->output_ended = true;
	if (byte == '\r')
		model->output_returned = true;
	if (byte == '\n' || byte == '\r' || line->size >= SCREEN_LINE_BYTES)
		return 0;
	if (model->output_returned)
		buffer_clear(line);
	model->output_returned = false;
	if (!spaces)
		return buffer_append_byte(line, byte);
	while (!err && spaces--)
		err = buffer_append_byte(line, ' ');
	return err;
}

int screen_model_output(struct screen_model *model, struct bytes text)
{
	int err = 0;

	for (size_t i = 0; !err && i < text.size; i++)
		err = output_byte(model, text.data[i]);
	model->changed |= text.size > 0;
	model->memory_lost |= err != 0;
	return err;
}

/* ---- alarms ---- */

static bool is_alarm(const struct screen_model *model, const struct screen_finding *finding)
{
	enum severity severity = finding->judgement.verdict.severity;

	return finding->stands && severity != SEVERITY_NULL && severity >= model->fail_on && severity > finding->alarmed;
}

static void alarm_text(struct screen_model *model, const struct screen_finding *finding)
{
	const struct screen_call *call = finding->later;
	const struct verdict *verdict = &finding->judgement.verdict;
	struct bytes what = call ? screen_slice_of(call, call->line) : buffer_bytes(&finding->text);
	char server[ENDPOINT_TEXT_MAX] = "";

	if (call)
		endpoint_text(&call->server, server);
	snprintf(model->alarm, sizeof(model->alarm), "%s %s: %.*s%s%s", screen_severity_word(verdict->severity),
		 finding_name(verdict->finding), (int)(what.size < 300 ? what.size : 300), (const char *)what.data,
		 call ? " at " : "", server);
}

bool screen_model_next_alarm(struct screen_model *model, struct screen_alarm *ret_alarm)
{
	for (struct screen_finding *finding = model->findings; finding && model->alarm_due; finding = finding->hh.next) {
		if (!is_alarm(model, finding))
			continue;
		finding->alarmed = finding->judgement.verdict.severity;
		alarm_text(model, finding);
		*ret_alarm = (struct screen_alarm){finding->judgement.verdict.finding, finding->alarmed, model->alarm};
		return true;
	}
	model->alarm_due = false;
	return false;
}

bool screen_model_bell(const struct screen_model *model)
{
	return model->bell;
}

/* ---- looking ---- */

void screen_model_resize(struct screen_model *model, unsigned int columns, unsigned int rows)
{
	model->columns = columns;
	model->rows = rows;
	model->changed = true;
}

void screen_model_can_step(struct screen_model *model)
{
	model->can_step = true;
}

bool screen_model_take_change(struct screen_model *model)
{
	bool changed = model->changed;

	model->changed = false;
	return changed;
}

uint64_t screen_model_steps(const struct screen_model *model)
{
	return model->steps;
}

/* ---- the story of a call ---- */

static void open_pair(struct screen_model *model, struct screen_call *earlier, struct screen_call *later,
		      const struct judgement *judgement)
{
	model->story[0] = screen_call_keep(earlier);
	model->story[1] = screen_call_keep(later);
	model->story_has_judgement = judgement != NULL;
	if (judgement)
		model->story_judgement = *judgement;
	model->page = SCREEN_STORY;
	model->scroll = 0;
}

/* A call that was sent again shows beside its latest repeat. */
static void open_call(struct screen_model *model, struct screen_call *call)
{
	struct screen_call *later = call->later_number ? screen_call_find(model, call->later_number) : NULL;

	if (!call->judgement && later && later->judgement && later->judgement->earlier_number == call->number)
		call = later;
	if (call->judgement)
		open_pair(model, screen_call_find(model, call->judgement->earlier_number), call, call->judgement);
	else
		open_pair(model, NULL, call, NULL);
}

static void open_finding(struct screen_model *model, const struct screen_finding *finding)
{
	if (finding->text.size)
		screen_model_say(model, "the connection was refused before a call could be made: there is no more to show");
	else
		open_pair(model, finding->earlier, finding->later, &finding->judgement);
}

/* From the table to the calls behind a row of it. */
static void filter_by_group(struct screen_model *model, const struct screen_group *group)
{
	struct bytes path = buffer_bytes(&group->target);

	bytes_take(&path, bytes_find(path, '/'));
	path.size = bytes_find(path, ' ');
	if (group == model->other || path.size + 32 > SCREEN_FILTER_BYTES)
		return;
	snprintf(model->filter, sizeof(model->filter), "pid:%u path:%.*s", group->tgid, (int)path.size, (const char *)path.data);
	screen_filter_parse(model);
	model->focus = SCREEN_CALLS;
}

static void enter(struct screen_model *model)
{
	struct screen_list *list = &model->list[model->focus];
	const void *item = list->selected < list->count && model->focus != SCREEN_OUTPUT ? list->item[list->selected] : NULL;

	if (!item)
		return;
	if (model->focus == SCREEN_FINDINGS)
		open_finding(model, item);
	else if (model->focus == SCREEN_CALLS)
		open_call(model, (struct screen_call *)item);
	else
		filter_by_group(model, item);
}

/* ---- keys ---- */

static void set_filter(struct screen_model *model, const char *text)
{
	snprintf(model->filter, sizeof(model->filter), "%s", text);
	screen_filter_parse(model);
}

static void erase_last(char *text)
{
	size_t size = strlen(text);

	while (size && ((uint8_t)text[size - 1] & 0xc0) == 0x80)
		size--;
	text[size ? size - 1 : 0] = '\0';
}

static void add_character(char *text, size_t capacity, uint32_t c)
{
	uint8_t encoded[4];
	size_t size = strlen(text), length = utf8_is_control(c) ? 0 : utf8_put(c, encoded);

	if (length == 0 || size + length >= capacity)
		return;
	memcpy(text + size, encoded, length);
	text[size + length] = '\0';
}

static void prompt_key(struct screen_model *model, uint32_t key)
{
	switch (key) {
	case SCREEN_KEY_ENTER:
		model->prompting = false;
		return;
	case SCREEN_KEY_ESCAPE:
		model->prompting = false;
		set_filter(model, model->filter_before);
		return;
	case SCREEN_KEY_BACKSPACE:
		erase_last(model->filter);
		break;
	case 'U' - '@':
		model->filter[0] = '\0';
		break;
	default:
		if (key < SCREEN_KEY_UP)
			add_character(model->filter, sizeof(model->filter), key);
		break;
	}
	screen_filter_parse(model);
}

/* How far a key moves; 0 = it is none that moves. */
static long step_of(uint32_t key, long page)
{
	switch (key) {
	case SCREEN_KEY_UP:
	case 'k':
		return -1;
	case SCREEN_KEY_DOWN:
	case 'j':
		return 1;
	case SCREEN_KEY_PAGE_UP:
		return -page;
	case SCREEN_KEY_PAGE_DOWN:
		return page;
	case SCREEN_KEY_HOME:
	case 'g':
		return LONG_MIN;
	case SCREEN_KEY_END:
	case 'G':
		return LONG_MAX;
	default:
		return 0;
	}
}

/* Story and help. */
static enum screen_action page_key(struct screen_model *model, uint32_t key)
{
	long by = step_of(key, model->rows > 6 ? (long)model->rows - 4 : 1);

	switch (key) {
	case SCREEN_KEY_ESCAPE:
	case SCREEN_KEY_LEFT:
	case SCREEN_KEY_BACKSPACE:
	case SCREEN_KEY_ENTER:
	case 'q':
		if (model->page == SCREEN_STORY) {
			close_story(model);
		} else {
			model->page = model->page_below;
			model->scroll = 0;
		}
		return SCREEN_NOTHING;
	case 'w':
		return SCREEN_WRITE;
	default:
		break;
	}
	if (by < 0)
		model->scroll = (size_t)-(by + 1) < model->scroll ? model->scroll - (size_t)-(by + 1) - 1 : 0;
	else if (by > 0)
		model->scroll = model->scroll_max - model->scroll > (size_t)by ? model->scroll + (size_t)by : model->scroll_max;
	return SCREEN_NOTHING;
}

static void next_pane(struct screen_model *model, int by)
{
	int panes = model->has_output ? SCREEN_PANES : SCREEN_OUTPUT;

	model->focus = (enum screen_pane)(((int)model->focus + by + panes) % panes);
}

static void next_sort(struct screen_model *model)
{
	char text[64];
	bool table = model->focus == SCREEN_TABLE;

	if (table && !screen_table_sort_name(++model->table_sort))
		model->table_sort = 0;
	if (!table && !screen_call_sort_name(++model->call_sort))
		model->call_sort = 0;
	snprintf(text, sizeof(text), "%s sorted by %s", table ? "table" : "calls",
		 table ? screen_table_sort_name(model->table_sort) : screen_call_sort_name(model->call_sort));
	screen_model_say(model, text);
	if (!table) { /* the other end is where one looks now */
		model->list[SCREEN_CALLS].follow = model->call_sort == 0 && !model->paused;
		model->list[SCREEN_CALLS].selected = 0;
		model->list[SCREEN_CALLS].selected_number = 0;
	}
	model->stale = true;
	model->made_ns = 0;
}

static enum screen_action step_key(const struct screen_model *model, uint32_t key)
{
	if (!model->can_step)
		return SCREEN_NOTHING;
	switch (key) {
	case '[':
		return SCREEN_STEP_BACK;
	case ']':
		return SCREEN_STEP;
	case '{':
		return SCREEN_SECOND_BACK;
	case '}':
		return SCREEN_SECOND;
	case ' ':
		return SCREEN_PLAY;
	default:
		return SCREEN_NOTHING;
	}
}

static void pause_or_go_on(struct screen_model *model)
{
	screen_lists_pause(model, !model->paused);
	if (!model->paused && model->call_sort == 0)
		model->list[SCREEN_CALLS].follow = true;
	else if (model->paused)
		model->list[SCREEN_CALLS].follow = false;
}

static enum screen_action main_key(struct screen_model *model, uint32_t key)
{
	long by = step_of(key, model->pane_rows[model->focus] ? model->pane_rows[model->focus] : 1);

	if (by) {
		screen_lists_move(model, model->focus, by);
		return SCREEN_NOTHING;
	}
	switch (key) {
	case SCREEN_KEY_ENTER:
	case SCREEN_KEY_RIGHT:
		enter(model);
		return SCREEN_NOTHING;
	case SCREEN_KEY_TAB:
		next_pane(model, 1);
		return SCREEN_NOTHING;
	case SCREEN_KEY_BACK_TAB:
		next_pane(model, -1);
		return SCREEN_NOTHING;
	case SCREEN_KEY_ESCAPE:
		set_filter(model, "");
		return SCREEN_NOTHING;
	case '/':
		memcpy(model->filter_before, model->filter, sizeof(model->filter));
		model->prompting = true;
		return SCREEN_NOTHING;
	case 'f': /* a pane of one line takes no keys */
		if (model->list[SCREEN_FINDINGS].count)
			model->focus = SCREEN_FINDINGS;
		else
			screen_model_say(model, "no finding to go to");
		return SCREEN_NOTHING;
	case 'p':
		pause_or_go_on(model);
		return SCREEN_NOTHING;
	case 's':
		next_sort(model);
		return SCREEN_NOTHING;
	case 'b':
		model->bell = !model->bell;
		screen_model_say(model, model->bell ? "a bell at each new finding" : "no bell");
		return SCREEN_NOTHING;
	case 'w':
		return SCREEN_WRITE;
	case 'q':
		return SCREEN_QUIT;
	default:
		return SCREEN_NOTHING;
	}
}

static void open_help(struct screen_model *model)
{
	if (model->page == SCREEN_HELP)
		return;
	model->page_below = model->page;
	model->page = SCREEN_HELP;
	model->scroll = 0;
}

enum screen_action screen_model_key(struct screen_model *model, uint32_t key, uint64_t now_ns)
{
	enum screen_action action = SCREEN_NOTHING;

	model->message[0] = '\0';
	model->changed = true;
	if (key == 'L' - '@')
		return SCREEN_REDRAW;
	screen_lists_refresh(model, now_ns);
	if (model->prompting)
		prompt_key(model, key);
	else if (key == 'Z' - '@')
		screen_model_say(model, "Ctrl-Z would stop the watch and lose calls; q leaves");
	else if (key == '?')
		open_help(model);
	else if (step_key(model, key) != SCREEN_NOTHING)
		action = step_key(model, key);
	else if (model->page != SCREEN_MAIN)
		action = page_key(model, key);
	else
		action = main_key(model, key);
	screen_lists_refresh(model, now_ns);
	return action;
}
