/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The main view. From top to bottom: title, findings, calls, table, the
 * command's output, what was not seen, and a line for keys and messages. What
 * has no room is reached by Tab: then the pane with the focus has all of it.
 */
#include "screen_layout.h"
#include "screen_pages.h"
#include "say.h"
#include "utf8.h"

#define ROWS_FOR_TITLES 10  /* with fewer, columns have no titles */
#define ROWS_FOR_PANES 14   /* with fewer, one pane at a time */
#define ROWS_FOR_OUTPUT 18
#define ROOM_FOR_NAME 100
#define TEXT_COLUMNS 200 /* of a file */

/* ---- panes ---- */

struct place { /* of a pane */
	unsigned int top;
	unsigned int rows; /* its header and titles included; 0 = not shown */
};

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void header_of_calls(const struct screen_model *model, struct buffer *out)
{
	const struct screen_list *list = &model->list[SCREEN_CALLS];

	say(out, "CALLS %zu", list->count);
	if (model->totals.calls > list->count)
		say(out, " of %llu", (unsigned long long)model->totals.calls);
	if (model->call_sort)
		say(out, ", by %s", screen_call_sort_name(model->call_sort));
	if (model->paused)
		say(out, ", PAUSED: %llu more since", (unsigned long long)(model->totals.calls - model->paused_calls));
	if (model->term_count)
		say(out, ", filter: ");
	if (model->term_count)
		text_harmless(bytes_of_string(model->filter), sizeof(model->filter) * 4, out);
}

static void header_of(const struct screen_model *model, enum screen_pane pane, struct buffer *out)
{
	const struct screen_list *list = &model->list[pane];

	switch (pane) {
	case SCREEN_FINDINGS:
		if (list->count)
			say(out, "FINDINGS %zu", list->count);
		else
			say(out, "FINDINGS none");
		if (model->totals.standing[SEVERITY_INFO])
			say(out, " (and %llu of info)", (unsigned long long)model->totals.standing[SEVERITY_INFO]);
		if (model->findings_unlisted)
			say(out, ", %llu more are not listed", (unsigned long long)model->findings_unlisted);
		break;
	case SCREEN_CALLS:
		header_of_calls(model, out);
		break;
	case SCREEN_TABLE:
		say(out, "PROCESSES AND PATHS %zu, by %s", list->count, screen_table_sort_name(model->table_sort));
		break;
	default:
		say(out, "OUTPUT OF THE COMMAND %llu line%s", (unsigned long long)model->output_lines, plural(model->output_lines));
		break;
	}
}

static void draw_header(const struct screen_model *model, struct screen_frame *frame, enum screen_pane pane, unsigned int row,
			bool hint)
{
	struct buffer text = {0};
	bool focus = model->focus == pane;

	header_of(model, pane, &text);
	if (hint && pane == SCREEN_FINDINGS && !focus && model->list[pane].count && frame->columns >= SCREEN_MEDIUM)
		say(&text, ": f and Enter show both attempts side by side");
	screen_frame_text(frame, row, 0, frame->columns, focus ? STYLE_BOLD | STYLE_REVERSE : STYLE_BOLD, buffer_bytes(&text));
	buffer_done(&text);
}

static void draw_output_line(const struct screen_model *model, struct screen_frame *frame, unsigned int row, size_t i)
{
	uint64_t kept = model->list[SCREEN_OUTPUT].count;
	const struct buffer *line = &model->output[(model->output_lines - kept + i) % SCREEN_OUTPUT_LINES];
	struct buffer text = {0};

	text_harmless(buffer_bytes(line), SCREEN_LINE_BYTES * 4, &text);
	screen_frame_text(frame, row, 0, frame->columns, STYLE_PLAIN, buffer_bytes(&text));
	buffer_done(&text);
}

/* The selected one stays on the screen; otherwise as little moves as can be. */
static void scroll(struct screen_list *list, unsigned int rows)
{
	if (list->selected < list->top)
		list->top = list->selected;
	if (list->selected >= list->top + rows)
		list->top = list->selected - rows + 1;
	if (list->top + rows > list->count)
		list->top = list->count > rows ? list->count - rows : 0;
}

/* What an empty pane says. */
static const char *nothing_yet(const struct screen_model *model, enum screen_pane pane)
{
	if (pane == SCREEN_CALLS && model->totals.calls == 0)
		return "no call yet: it shows when what is watched sends one";
	if (pane == SCREEN_CALLS && model->term_count)
		return "no call passes the filter: Esc shows all";
	return "";
}

static void draw_pane(struct screen_model *model, struct screen_frame *frame, enum screen_pane pane, struct place place)
{
	struct screen_list *list = &model->list[pane];
	bool titles = frame->rows >= ROWS_FOR_TITLES && pane != SCREEN_OUTPUT && place.rows > 2 &&
		      (pane != SCREEN_FINDINGS || model->focus == pane);
	unsigned int row = place.top;

	model->pane_rows[pane] = 0;
	if (place.rows == 0)
		return;
	draw_header(model, frame, pane, row++, true);
	if (titles)
		screen_columns_titles(frame, row++, pane);
	model->pane_rows[pane] = place.top + place.rows - row;
	if (model->pane_rows[pane])
		scroll(list, model->pane_rows[pane]);
	if (list->count == 0 && model->pane_rows[pane] && *nothing_yet(model, pane))
		screen_frame_say(frame, row, 0, frame->columns, STYLE_DIM, "%s", nothing_yet(model, pane));
	for (size_t i = list->top; i < list->count && row < place.top + place.rows; i++, row++) {
		if (pane == SCREEN_OUTPUT)
			draw_output_line(model, frame, row, i);
		else
			screen_columns_item(model, frame, row, pane, list->item[i], model->focus == pane && i == list->selected);
	}
}

static unsigned int least(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

static unsigned int rows_of_findings(const struct screen_model *model, unsigned int rows)
{
	bool focus = model->focus == SCREEN_FINDINGS;
	unsigned int count = (unsigned int)model->list[SCREEN_FINDINGS].count;
	unsigned int most = focus ? rows / 2 : rows / 6;

	if (count == 0 || (rows < 4 && !focus))
		return rows ? 1 : 0;
	return least(1 + (focus && model->rows >= ROWS_FOR_TITLES) + least(count, most ? most : 1), rows);
}

/* rows of the frame from top on, shared out. */
static void share_out(const struct screen_model *model, unsigned int top, unsigned int rows, struct place place[SCREEN_PANES])
{
	enum screen_pane only = model->focus == SCREEN_FINDINGS ? SCREEN_CALLS : model->focus;
	unsigned int table = rows * 2 / 5, output = 0;

	place[SCREEN_FINDINGS] = (struct place){top, rows_of_findings(model, rows)};
	top += place[SCREEN_FINDINGS].rows;
	rows -= place[SCREEN_FINDINGS].rows;
	if (rows < (model->has_output ? ROWS_FOR_OUTPUT : ROWS_FOR_PANES) - 2) {
		place[only] = (struct place){top, rows};
		return;
	}
	if (model->has_output) {
		table = rows / 4;
		output = rows / 4;
	}
	table = least(table, (unsigned int)least(1000, (unsigned int)model->list[SCREEN_TABLE].count) + 2);
	place[SCREEN_CALLS] = (struct place){top, rows - table - output};
	place[SCREEN_TABLE] = (struct place){top + rows - table - output, table};
	place[SCREEN_OUTPUT] = (struct place){top + rows - output, output};
}

/* ---- margins ---- */

static uint64_t findings_that_matter(const struct screen_totals *totals)
{
	return totals->standing[SEVERITY_LOW] + totals->standing[SEVERITY_MEDIUM] + totals->standing[SEVERITY_HIGH];
}

static void draw_title(const struct screen_model *model, struct screen_frame *frame)
{
	const struct screen_totals *totals = &model->totals;
	struct buffer text = {0}, left = {0};
	unsigned int used;

	say(&text, "%llu call%s, ", (unsigned long long)totals->calls, plural(totals->calls));
	if (frame->columns >= SCREEN_WIDE)
		say(&text, "%llu mutating, %llu answered, ", (unsigned long long)totals->mutating,
		    (unsigned long long)totals->answered);
	if (frame->columns >= SCREEN_MEDIUM)
		say(&text, "%llu high %llu medium %llu low", (unsigned long long)totals->standing[SEVERITY_HIGH],
		    (unsigned long long)totals->standing[SEVERITY_MEDIUM], (unsigned long long)totals->standing[SEVERITY_LOW]);
	else
		say(&text, "%llu finding%s", (unsigned long long)findings_that_matter(totals), plural(findings_that_matter(totals)));
	if (totals->standing[SEVERITY_NULL])
		say(&text, " %llu undecidable", (unsigned long long)totals->standing[SEVERITY_NULL]);
	say(&text, " ");
	used = screen_columns_in(buffer_bytes(&text));
	screen_frame_fill(frame, 0, STYLE_REVERSE);
	if (frame->columns >= ROOM_FOR_NAME)
		say(&left, "nightclerk ");
	text_harmless(bytes_of_string(model->title), 128, &left);
	say(&left, "  %s", model->state);
	screen_frame_text(frame, 0, 0, frame->columns > used + 1 ? frame->columns - used - 1 : 0, STYLE_REVERSE | STYLE_BOLD,
			  buffer_bytes(&left));
	screen_frame_text(frame, 0, frame->columns > used ? frame->columns - used : 0, used, STYLE_REVERSE, buffer_bytes(&text));
	buffer_done(&text);
	buffer_done(&left);
}

static void say_blind(const struct screen_totals *totals, struct buffer *out)
{
	uint64_t all = 0;
	const char *before = " (";

	for (int kind = 0; kind < BLIND_COUNT; kind++)
		all += totals->blind[kind];
	say(out, "  blind streams %llu", (unsigned long long)all);
	for (int kind = 0; kind < BLIND_COUNT; kind++) {
		if (!totals->blind[kind])
			continue;
		say(out, "%s%llu %s", before, (unsigned long long)totals->blind[kind], blind_kind_name((enum blind_kind)kind));
		before = ", ";
	}
	if (all)
		say(out, ")");
}

static bool anything_unseen(const struct screen_totals *totals)
{
	for (int kind = 0; kind < BLIND_OTHER; kind++)
		if (totals->blind[kind])
			return true;
	return totals->holes || totals->broken || totals->lost;
}

static void draw_status(const struct screen_model *model, struct screen_frame *frame, unsigned int row)
{
	const struct screen_totals *totals = &model->totals;
	struct buffer text = {0};

	say(&text, "not seen: holes %llu", (unsigned long long)totals->holes);
	if (totals->holes)
		say(&text, " (%llu bytes)", (unsigned long long)totals->hole_bytes);
	say_blind(totals, &text);
	say(&text, "  broken %llu  lost %llu", (unsigned long long)totals->broken, (unsigned long long)totals->lost);
	if (model->store_lost)
		say(&text, "  STORE: %llu rows lost", (unsigned long long)model->store_lost);
	if (model->ring_size)
		say(&text, "  ring %llu%% (peak %llu%%)", (unsigned long long)(model->ring_fill * 100 / model->ring_size),
		    (unsigned long long)(model->ring_peak * 100 / model->ring_size));
	if (totals->off_loopback)
		say(&text, "  off loopback %llu", (unsigned long long)totals->off_loopback);
	if (model->memory_lost)
		say(&text, "  OUT OF MEMORY: some rows are missing");
	if (model->has_mark) {
		say(&text, "  mark ");
		buffer_append(&text, buffer_bytes(&model->mark));
	}
	screen_frame_text(frame, row, 0, frame->columns,
			  anything_unseen(totals) || model->store_lost || model->memory_lost ? STYLE_MEDIUM | STYLE_BOLD : STYLE_DIM, buffer_bytes(&text));
	buffer_done(&text);
}

static const char *hints(const struct screen_model *model, unsigned int columns)
{
	if (model->page == SCREEN_STORY && columns < SCREEN_MEDIUM)
		return "Esc back  up/down scroll  ? help";
	if (model->page == SCREEN_STORY)
		return "Esc back  up/down scroll  w write  ? help";
	if (model->page == SCREEN_HELP)
		return "Esc back  up/down scroll";
	if (columns < SCREEN_MEDIUM)
		return "? help  Tab pane  Enter open  q quit";
	if (model->can_step)
		return "? help  f findings  Enter open  Tab pane  [ ] step  Space play  / filter  q quit";
	return "? help  f findings  Enter open  Tab pane  / filter  s sort  p pause  q quit";
}

static void draw_foot(const struct screen_model *model, struct screen_frame *frame, unsigned int row)
{
	struct buffer text = {0};
	unsigned int used;

	if (!model->prompting) {
		screen_frame_say(frame, row, 0, frame->columns, model->message[0] ? STYLE_BOLD : STYLE_DIM, "%s",
				 model->message[0] ? model->message : hints(model, frame->columns));
		return;
	}
	say(&text, "filter: ");
	text_harmless(bytes_of_string(model->filter), sizeof(model->filter) * 4, &text);
	used = screen_columns_in(buffer_bytes(&text));
	screen_frame_text(frame, row, 0, frame->columns, STYLE_BOLD, buffer_bytes(&text));
	frame->cursor_row = (int)row;
	frame->cursor_column = (int)least(used, frame->columns - 1);
	buffer_done(&text);
}

/* ---- the whole ---- */

static void draw_main(struct screen_model *model, struct screen_frame *frame, unsigned int top, unsigned int rows)
{
	struct place place[SCREEN_PANES] = {{0}};

	share_out(model, top, rows, place);
	for (int pane = 0; pane < SCREEN_PANES; pane++)
		draw_pane(model, frame, (enum screen_pane)pane, place[pane]);
}

static void draw_page(struct screen_model *model, struct screen_frame *frame, unsigned int top, unsigned int rows)
{
	struct screen_window window = {top, rows, model->scroll};
	size_t lines = model->page == SCREEN_STORY ? screen_story(model, frame, &window) : screen_help(model, frame, &window);

	model->scroll_max = lines > rows ? lines - rows : 0;
	if (model->scroll <= model->scroll_max)
		return;
	model->scroll = model->scroll_max; /* the screen has grown: less is above it now */
	screen_frame_clear(frame, model->columns, model->rows);
	draw_page(model, frame, top, rows);
	draw_title(model, frame);
}

void screen_layout(struct screen_model *model, uint64_t now_ns, struct screen_frame *frame)
{
	unsigned int foot = model->rows >= 3, status = model->rows >= 6, rows = model->rows;

	screen_frame_clear(frame, model->columns, model->rows);
	if (rows == 0 || model->columns == 0)
		return;
	screen_lists_refresh(model, now_ns);
	draw_title(model, frame);
	rows -= 1 + foot + status;
	if (model->page == SCREEN_MAIN)
		draw_main(model, frame, 1, rows);
	else
		draw_page(model, frame, 1, rows);
	if (status)
		draw_status(model, frame, 1 + rows);
	if (foot)
		draw_foot(model, frame, model->rows - 1);
}

/* ---- as a file ---- */

static int list_text(struct screen_model *model, enum screen_pane pane, struct buffer *out)
{
	struct screen_frame frame = {0};
	struct screen_list *list = &model->list[pane];
	int err = 0;

	screen_frame_clear(&frame, TEXT_COLUMNS, 2);
	draw_header(model, &frame, pane, 0, false);
	screen_columns_titles(&frame, 1, pane);
	err = screen_frame_lines(&frame, out);
	for (size_t i = 0; !err && i < list->count; i++) {
		screen_frame_clear(&frame, TEXT_COLUMNS, 1);
		screen_columns_item(model, &frame, 0, pane, list->item[i], false);
		err = screen_frame_lines(&frame, out);
	}
	if (!err)
		err = buffer_append_byte(out, '\n');
	screen_frame_done(&frame);
	return err;
}

static int page_text(struct screen_model *model, struct buffer *out)
{
	struct screen_frame frame = {0};
	struct screen_window window = {0, 0, 0};
	bool story = model->page == SCREEN_STORY;
	int err;

	screen_frame_clear(&frame, TEXT_COLUMNS, 0);
	window.rows = (unsigned int)(story ? screen_story(model, &frame, &window) : screen_help(model, &frame, &window));
	screen_frame_clear(&frame, TEXT_COLUMNS, window.rows);
	if (story)
		screen_story(model, &frame, &window);
	else
		screen_help(model, &frame, &window);
	err = screen_frame_lines(&frame, out);
	screen_frame_done(&frame);
	return err;
}

int screen_text(struct screen_model *model, uint64_t now_ns, struct buffer *out)
{
	int err;

	screen_lists_refresh(model, now_ns);
	if (model->page != SCREEN_MAIN)
		return page_text(model, out);
	err = list_text(model, SCREEN_FINDINGS, out);
	if (!err)
		err = list_text(model, SCREEN_CALLS, out);
	return err ? err : list_text(model, SCREEN_TABLE, out);
}
