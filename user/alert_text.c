/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One block of text for people: a headline, the two attempts side by side, the
 * evidence and the next step. Made of logical lines that are folded on the way
 * out.
 *
 * What a client chose (method, target, key, comm) goes through text_harmless()
 * before it is put into a line.
 */
#include "alert_group.h"

#include "say.h"
#include "wall_time.h"

#define INDENT 13 /* columns of "  attempt 2  " */
#define WIDTH_MIN 40

/*
 * How many bytes of text fill at most that many columns; *ret_space: the last space that a line may
 * break at, or 0.
 */
static size_t bytes_that_fit(struct bytes text, size_t columns, size_t *ret_space)
{
	size_t used = 0, i = 0;

	*ret_space = 0;
	while (i < text.size && used <= columns) {
		if (text.data[i] == ' ')
			*ret_space = i;
		if (used == columns)
			break;
		i++;
		while (i < text.size && (text.data[i] & 0xc0) == 0x80)
			i++;
		used++;
	}
	return i;
}

/*
 * One logical line that starts in the given column; what does not fit goes on below, indented. Ends
 * in LF.
 */
static int fold(struct buffer *out, struct bytes text, size_t column, unsigned int style_width)
{
	size_t width = style_width < WIDTH_MIN ? WIDTH_MIN : style_width;
	int err = 0;

	while (!err && style_width) {
		size_t room = width > column ? width - column : 0, space;
		size_t fits = bytes_that_fit(text, room, &space);
		struct bytes piece;

		if (fits == text.size)
			break;
		piece = bytes_take(&text, space ? space : fits);
		while (piece.size && piece.data[piece.size - 1] == ' ')
			piece.size--;
		while (text.size && text.data[0] == ' ')
			bytes_take(&text, 1);
		err = buffer_append(out, piece);
		if (!err)
			err = say(out, "\n%*s", INDENT, "");
		column = INDENT;
	}
	if (!err)
		err = buffer_append(out, text);
	return err ? err : buffer_append_byte(out, '\n');
}

static const char *severity_word(enum severity severity)
{
	static const char *const words[] = {
		[SEVERITY_NULL] = "UNDECIDABLE", [SEVERITY_INFO] = "INFO", [SEVERITY_LOW] = "LOW",
		[SEVERITY_MEDIUM] = "MEDIUM",	 [SEVERITY_HIGH] = "HIGH",
	};

	return words[severity];
}

static const char *severity_colour(enum severity severity)
{
	static const char *const colours[] = {
		[SEVERITY_NULL] = "\x1b[35m", [SEVERITY_INFO] = "\x1b[36m",
		[SEVERITY_LOW] = "\x1b[36m",  [SEVERITY_MEDIUM] = "\x1b[33m",
		[SEVERITY_HIGH] = "\x1b[31m",
	};

	return colours[severity];
}

struct clock_time {
	struct tm tm; /* UTC */
	int ms;
};

static struct clock_time clock_time_of(uint64_t when_ns, int64_t wall_offset_ns)
{
	int64_t wall_ms = wall_time_ns(when_ns, wall_offset_ns) / 1000000;
	time_t seconds = (time_t)(wall_ms / 1000);
	struct clock_time clock = {.ms = (int)(wall_ms % 1000)};

	gmtime_r(&seconds, &clock.tm);
	return clock;
}

/* A block in the making. */
struct block {
	const struct group *group;
	const struct pair *pair;
	int64_t wall_offset_ns;
	const struct alert_style *style;
	struct buffer *out;
	struct buffer text; /* one logical line */
};

static int end_line(struct block *block, int err)
{
	if (!err)
		err = fold(block->out, buffer_bytes(&block->text), 0, block->style->width);
	buffer_clear(&block->text);
	return err;
}

/*
 * "nightclerk: HIGH dup_after_timeout: POST /v1/charges at 127.0.0.1:8765, attempt 2 of 2,
 * 2026-10-01 UTC"
 */
static int headline(struct block *block)
{
	const struct judgement *judgement = &block->pair->judgement;
	const struct verdict *verdict = &judgement->verdict;
	const char *word = severity_word(verdict->severity);
	struct clock_time clock =
		clock_time_of(judgement->later_facts.first_ns, block->wall_offset_ns);
	bool colour = block->style->colour;
	size_t column = strlen("nightclerk: ") + strlen(word);
	int err = say(block->out, "nightclerk: %s%s%s",
		      colour ? severity_colour(verdict->severity) : "", word,
		      colour ? "\x1b[0m" : "");

	if (!err && verdict->finding != FINDING_UNDECIDABLE)
		err = say(&block->text, " %s", finding_name(verdict->finding));
	if (!err)
		err = say(&block->text, ": ");
	if (!err)
		err = buffer_append(&block->text, buffer_bytes(&block->group->call));
	if (!err)
		err = say(&block->text, "%sattempt %llu of %llu, %04d-%02d-%02d UTC",
			  block->group->call.size ? ", " : "",
			  (unsigned long long)judgement->attempt,
			  (unsigned long long)block->group->attempts, clock.tm.tm_year + 1900,
			  clock.tm.tm_mon + 1, clock.tm.tm_mday);
	if (!err)
		err = fold(block->out, buffer_bytes(&block->text), column, block->style->width);
	buffer_clear(&block->text);
	return err;
}

/* "pid 4101 flaky-tool" */
static int say_who(const struct block *block, bool later, struct buffer *out)
{
	const struct judgement *judgement = &block->pair->judgement;
	const struct attempt_facts *facts = later ? &judgement->later_facts :
						    &judgement->earlier_facts;
	const char *comm = later || !judgement->verdict.cross_process ? block->pair->comm : block->pair->earlier_comm;
	int err;

	if (facts->tgid == 0)
		return say(out, "process not seen");
	err = say(out, "pid %u", facts->tgid);
	if (!err && comm[0])
		err = buffer_append_byte(out, ' ');
	if (!err && comm[0])
		err = text_harmless(bytes_of_string(comm), ALERT_NAME_MAX, out);
	return err;
}

/* "no key", "key \"order-7\"" */
static int say_key(const struct block *block, bool later, struct buffer *out)
{
	const struct attempt_facts *later_facts = &block->pair->judgement.later_facts;
	const struct attempt_facts *facts = later ? later_facts :
						    &block->pair->judgement.earlier_facts;
	int err;

	if (facts->idem_state == IDEM_ABSENT)
		return say(out, "no key");
	if (facts->idem_state == IDEM_UNKNOWN)
		return say(out, "key not seen");
	if (facts->idem_state == IDEM_INVALID)
		return say(out, "a list of keys");
	if (!later && (later_facts->idem_state != IDEM_PRESENT || later_facts->key != facts->key))
		return say(out, later_facts->idem_state == IDEM_PRESENT ? "another key" : "a key");
	if (block->pair->key_size == 0)
		return say(out, "a key");
	err = say(out, "key \"");
	if (!err)
		err = text_harmless((struct bytes){block->pair->key, block->pair->key_size},
				    ALERT_NAME_MAX, out);
	return err ? err : buffer_append_byte(out, '"');
}

static size_t columns_of(const struct buffer *text)
{
	size_t columns = 0;

	for (size_t i = 0; i < text->size; i++)
		columns += (text->data[i] & 0xc0) != 0x80;
	return columns;
}

/* text, padded to the wider of both, and two spaces. */
static int say_cell(struct buffer *out, const struct buffer *text, const struct buffer *beside)
{
	size_t columns = columns_of(text), other = columns_of(beside);
	int err = buffer_append(out, buffer_bytes(text));

	return err ? err : say(out, "%*s", (int)(columns < other ? other - columns : 0) + 2, "");
}

struct cells {
	struct buffer who;
	struct buffer key;
};

static int attempt_line(struct block *block, bool later, const struct cells *own,
			const struct cells *beside)
{
	const struct judgement *judgement = &block->pair->judgement;
	const struct attempt_facts *facts = later ? &judgement->later_facts :
						    &judgement->earlier_facts;
	struct clock_time clock = clock_time_of(facts->first_ns, block->wall_offset_ns);
	char label[32] = "earlier";
	int err;

	/* Which one the earlier is, is known only of the first pair. */
	if (later || judgement->attempt == 2)
		snprintf(label, sizeof(label), "attempt %llu",
			 later ? (unsigned long long)judgement->attempt : 1);
	err = say(&block->text, "  %-9s  %02d:%02d:%02d.%03d  ", label, clock.tm.tm_hour,
		  clock.tm.tm_min, clock.tm.tm_sec, clock.ms);
	if (!err)
		err = say_cell(&block->text, &own->who, &beside->who);
	if (!err)
		err = say_cell(&block->text, &own->key, &beside->key);
	if (!err)
		err = attempt_outcome(facts, &block->text);
	if (!err && block->style->live && attempt_outcome_is_due(facts))
		err = say(&block->text, ": its line follows");
	return end_line(block, err);
}

static int attempt_lines(struct block *block)
{
	struct cells earlier = {0}, later = {0};
	int err = say_who(block, false, &earlier.who);

	if (!err)
		err = say_key(block, false, &earlier.key);
	if (!err)
		err = say_who(block, true, &later.who);
	if (!err)
		err = say_key(block, true, &later.key);
	if (!err)
		err = attempt_line(block, false, &earlier, &later);
	if (!err)
		err = attempt_line(block, true, &later, &earlier);
	buffer_done(&earlier.who);
	buffer_done(&earlier.key);
	buffer_done(&later.who);
	buffer_done(&later.key);
	return err;
}

static int evidence_line(struct block *block)
{
	const struct buffer *method = &block->group->method;
	int err = say(&block->text, "  evidence   ");

	if (!err)
		err = finding_evidence_of(&block->pair->judgement,
					  method->size ? buffer_bytes(method) : BYTES("request"),
					  &block->text);
	return end_line(block, err);
}

/* Only where a rule beside the table had a say. */
static int rule_line(struct block *block)
{
	const char *rule = block->pair->judgement.verdict.rule;

	if (rule_is_plain(rule))
		return 0;
	return end_line(block, say(&block->text, "  rule       %s", rule));
}

int alert_group_block(const struct group *group, int64_t wall_offset_ns,
		      const struct alert_style *style, struct buffer *out)
{
	struct block block = {.group = group,
			      .pair = &group->pair[0],
			      .wall_offset_ns = wall_offset_ns,
			      .style = style,
			      .out = out};
	size_t start = out->size;
	int err;

	if (group->pair_count == 0)
		return 0;
	err = headline(&block);
	if (!err)
		err = attempt_lines(&block);
	if (!err)
		err = evidence_line(&block);
	if (!err)
		err = rule_line(&block);
	if (!err)
		err = end_line(&block,
			       say(&block.text, "  next       %s",
				   finding_next_step(block.pair->judgement.verdict.finding)));
	buffer_done(&block.text);
	if (err)
		out->size = start;
	return err;
}
