/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the screen's model is told becomes rows: calls in a ring, groups of
 * process and path, findings by fingerprint or key scope. Text is made harmless
 * and its secrets are masked here, once.
 */
#include "screen_parts.h"
#include "say.h"
#include "secret.h"
#include "utf8.h"

#include <errno.h>

#define TARGET_KEPT 1024
#define TEXT_KEPT 256
#define FIELD_NAMES_KEPT 512

struct bytes screen_slice_of(const struct screen_call *call, struct screen_slice slice)
{
	return (struct bytes){call->text.data ? call->text.data + slice.offset : NULL, slice.size};
}

/* Undecidable stands between low and medium. */
unsigned int screen_rank(enum severity severity)
{
	static const unsigned int ranks[] = {
		[SEVERITY_INFO] = 1, [SEVERITY_LOW] = 2, [SEVERITY_NULL] = 3, [SEVERITY_MEDIUM] = 4, [SEVERITY_HIGH] = 5,
	};

	return ranks[severity];
}

const char *screen_severity_word(enum severity severity)
{
	static const char *const words[] = {
		[SEVERITY_NULL] = "UNDECIDABLE", [SEVERITY_INFO] = "INFO", [SEVERITY_LOW] = "LOW",
		[SEVERITY_MEDIUM] = "MEDIUM",	 [SEVERITY_HIGH] = "HIGH",
	};

	return words[severity];
}

bool screen_finding_is_listed(const struct screen_finding *finding)
{
	return finding->stands && finding->judgement.verdict.severity != SEVERITY_INFO;
}

/* ---- calls ---- */

struct screen_call *screen_call_find(const struct screen_model *model, uint64_t number)
{
	struct screen_call *call;

	HASH_FIND(hh, model->by_number, &number, sizeof(number), call);
	return call;
}

struct screen_call *screen_call_keep(struct screen_call *call)
{
	if (call)
		call->references++;
	return call;
}

void screen_call_drop(struct screen_model *model, struct screen_call *call)
{
	if (!call || --call->references)
		return;
	HASH_DEL(model->by_number, call);
	buffer_done(&call->text);
	free(call->judgement);
	free(call);
}

/*
 * Out of the ring. What it leans on is let go: else each attempt would keep the
 * one before it, and a long row of repeats would never end.
 */
static void leave_ring(struct screen_model *model, struct screen_call *call)
{
	screen_call_drop(model, call->earlier);
	call->earlier = NULL;
	screen_call_drop(model, call);
}

static int enter_ring(struct screen_model *model, struct screen_call *call)
{
	HASH_ADD(hh, model->by_number, number, sizeof(call->number), call);
	if (!call->hh.tbl)
		return -ENOMEM;
	if (model->next - model->oldest == SCREEN_CALLS_MAX) {
		leave_ring(model, model->ring[model->oldest % SCREEN_CALLS_MAX]);
		model->oldest++;
	}
	call->references = 1;
	call->sequence = model->next++;
	model->ring[call->sequence % SCREEN_CALLS_MAX] = call;
	return 0;
}

/* ---- text of a call ---- */

static int keep_text(struct screen_call *call, struct bytes text, size_t max, struct screen_slice *ret_slice)
{
	size_t start = call->text.size;
	int err = text_harmless(text, max, &call->text);

	*ret_slice = (struct screen_slice){(uint32_t)start, (uint32_t)(call->text.size - start)};
	return err;
}

/* "POST /v1/charges?limit=1" */
static int keep_line(struct screen_model *model, const struct line_context *context, const struct call *call,
		     struct screen_call *row)
{
	struct buffer *target = &model->scratch;
	int err = keep_text(row, call->method, 32, &row->method);

	buffer_clear(target);
	if (!err)
		err = buffer_append_byte(&row->text, ' ');
	if (!err)
		err = secret_mask_target(context->fingerprinter, call->path, call->has_query, call->query, target);
	if (!err)
		err = keep_text(row, buffer_bytes(target), TARGET_KEPT, &row->target);
	row->line = (struct screen_slice){0, (uint32_t)row->text.size};
	return err;
}

static struct bytes field_of(const struct http_head *head, struct bytes name)
{
	const struct http_field *field = http_head_find(head, name);

	return field ? field->value : (struct bytes){0};
}

/* The names of all fields, in order. Their values may be secrets: only those that cannot be are kept. */
static int keep_field_names(struct screen_model *model, const struct http_head *head, struct screen_call *row)
{
	struct buffer *names = &model->scratch;
	int err = 0;

	buffer_clear(names);
	for (size_t i = 0; !err && i < head->field_count && names->size < FIELD_NAMES_KEPT; i++) {
		if (i)
			err = buffer_append(names, BYTES(", "));
		if (!err)
			err = buffer_append(names, head->fields[i].name);
	}
	return err ? err : keep_text(row, buffer_bytes(names), FIELD_NAMES_KEPT, &row->other_fields);
}

static int keep_texts(struct screen_model *model, const struct line_context *context, const struct call *call,
		      struct screen_call *row)
{
	int err = keep_line(model, context, call, row);

	if (!err)
		err = keep_text(row, bytes_of_string(call->process.comm), 64, &row->comm);
	if (!err)
		err = keep_text(row, call->host, TEXT_KEPT, &row->host);
	if (!err)
		err = keep_text(row, call->content_type, TEXT_KEPT, &row->content_type);
	if (!err)
		err = keep_text(row, call->idem, TEXT_KEPT, &row->idem);
	if (!err)
		err = keep_text(row, call->tool, CALL_NAME_BYTES, &row->tool);
	if (!err)
		err = keep_text(row, call->model, CALL_NAME_BYTES, &row->model);
	if (!err)
		err = keep_text(row, call->retry_hint, TEXT_KEPT, &row->retry_hint);
	if (!err && call->head)
		err = keep_text(row, field_of(call->head, BYTES("User-Agent")), TEXT_KEPT, &row->agent);
	if (!err && call->head)
		err = keep_field_names(model, call->head, row);
	return err;
}

/* ---- facts of a call ---- */

static void copy_request(const struct call *call, struct screen_call *row)
{
	memcpy(row->id, call->id, sizeof(row->id));
	row->number = call->number;
	row->process = call->process;
	row->client = call->client;
	row->server = call->server;
	row->has_host = call->has_host;
	row->has_sha = call->has_sha;
	row->sha = call->sha;
	row->has_raw_sha = call->has_raw_sha;
	row->raw_sha = call->raw_sha;
	row->has_fingerprint = call->has_fingerprint;
	row->fingerprint = call->fingerprint;
	row->canon = call->canon;
	row->canon_why = call->canon_why;
	row->idem_from = call->idem_from;
	row->sent_ns = call->sent_ns;
	row->body_bytes = call->body_bytes;
	row->request_holes = call->request_holes;
}

static void copy_answer(const struct call *call, struct screen_call *row)
{
	uint64_t key = row->facts.key;
	bool gone = row->facts.owner_gone;

	attempt_facts_of(call, &row->facts);
	if (row->facts.key == 0)
		row->facts.key = key;
	row->facts.owner_gone |= gone;
	row->server_process = call->server_process;
	row->why = call->why;
	row->response_first_ns = call->response_first_ns;
	row->response_last_ns = call->response_last_ns;
	row->client_closed_ns = call->client_closed_ns;
	row->server_closed_ns = call->server_closed_ns;
	row->client_died = call->client_died;
	row->response_body_bytes = call->response_body_bytes;
	row->response_wire_bytes = call->response_wire_bytes;
	row->response_complete = call->response_complete;
	row->delivered = call->delivered;
	row->delivered_bytes = call->delivered_bytes;
	row->response_holes = call->response_holes;
	row->ended = call->ended;
	row->usage = call->usage;
	row->retry_after_s = call->retry_after_s;
}

/* ---- groups ---- */

static int group_key(const struct call *call, struct bytes path, struct buffer *key)
{
	int err;

	buffer_clear(key);
	err = buffer_append(key, (struct bytes){(const uint8_t *)&call->process.tgid, sizeof(call->process.tgid)});
	if (!err)
		err = buffer_append(key, (struct bytes){(const uint8_t *)&call->process.start_ns,
							sizeof(call->process.start_ns)});
	if (!err)
		err = buffer_append(key, (struct bytes){call->server.address, sizeof(call->server.address)});
	if (!err)
		err = buffer_append(key, (struct bytes){(const uint8_t *)&call->server.port, sizeof(call->server.port)});
	return err ? err : buffer_append(key, path);
}

static void group_free(struct screen_group *group)
{
	if (!group)
		return;
	buffer_done(&group->target);
	buffer_done(&group->key);
	free(group);
}

static struct screen_group *group_new(struct screen_model *model, const struct call *call, struct bytes path)
{
	struct screen_group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->number = HASH_COUNT(model->groups) + 1;
	group->tgid = call->process.tgid;
	snprintf(group->comm, sizeof(group->comm), "%s", call->process.comm);
	if (say(&group->target, ":%u", call->server.port) || buffer_append(&group->target, path) ||
	    buffer_append(&group->key, buffer_bytes(&model->scratch))) {
		group_free(group);
		return NULL;
	}
	HASH_ADD_KEYPTR(hh, model->groups, group->key.data, group->key.size, group);
	if (group->hh.tbl)
		return group;
	group_free(group);
	return NULL;
}

/* What there is no room for is counted under one name. */
static struct screen_group *other_group(struct screen_model *model)
{
	if (!model->other) {
		model->other = calloc(1, sizeof(*model->other));
		if (model->other && buffer_append(&model->other->target, BYTES("(other paths)"))) {
			group_free(model->other);
			model->other = NULL;
		}
		if (model->other)
			model->other->number = UINT64_MAX;
	}
	return model->other;
}

/* path: harmless, without query. NULL when out of memory. */
static struct screen_group *group_of(struct screen_model *model, const struct call *call, struct bytes path)
{
	struct screen_group *group;

	if (group_key(call, path, &model->scratch))
		return NULL;
	HASH_FIND(hh, model->groups, model->scratch.data, model->scratch.size, group);
	if (group)
		return group;
	if (HASH_COUNT(model->groups) < SCREEN_GROUPS_MAX)
		group = group_new(model, call, path);
	return group ? group : other_group(model);
}

/* ---- requests and answers ---- */

static struct bytes path_of(const struct screen_call *row)
{
	struct bytes target = screen_slice_of(row, row->target);

	target.size = bytes_find(target, '?');
	return target;
}

static void count_request(struct screen_model *model, const struct call *call, struct screen_group *group)
{
	bool mutating = call->class == CLASS_MUTATING;

	model->totals.calls++;
	model->totals.mutating += mutating;
	model->steps++;
	model->changed = true;
	if (!group) {
		model->memory_lost = true;
		return;
	}
	group->calls++;
	group->mutating += mutating;
}

int screen_model_request(struct screen_model *model, const struct line_context *context, const struct call *call)
{
	struct screen_call *row = model ? calloc(1, sizeof(*row)) : NULL;
	struct screen_group *group;
	int err;

	if (!model)
		return 0;
	err = row ? keep_texts(model, context, call, row) : -ENOMEM;
	group = group_of(model, call, row ? path_of(row) : (struct bytes){0});
	count_request(model, call, group);
	if (!err) {
		copy_request(call, row);
		copy_answer(call, row);
		row->group = group;
		err = enter_ring(model, row);
	}
	if (err && row) {
		buffer_done(&row->text);
		free(row);
	}
	model->memory_lost |= err != 0;
	return err;
}

void screen_model_change(struct screen_model *model, const struct call *call)
{
	struct screen_call *row = model ? screen_call_find(model, call->number) : NULL;

	if (!model)
		return;
	model->changed = true;
	model->stale |= model->term_count > 0;
	if (!row)
		return;
	if (row->group && call->status && row->facts.status != call->status)
		row->group->last_status = call->status;
	copy_answer(call, row);
}

static void count_tokens(struct screen_group *group, const struct call *call)
{
	const struct usage *usage = &call->usage;

	if (usage->seen && usage->input_tokens > 0)
		group->tokens += (uint64_t)usage->input_tokens;
	if (usage->seen && usage->output_tokens > 0)
		group->tokens += (uint64_t)usage->output_tokens;
}

/* A call that is no longer kept has no group any more: one that was open while SCREEN_CALLS_MAX others came. */
void screen_model_answered(struct screen_model *model, const struct call *call)
{
	struct screen_call *row = model ? screen_call_find(model, call->number) : NULL;

	if (!model)
		return;
	screen_model_change(model, call);
	model->totals.answered++;
	model->steps++;
	if (!row)
		return;
	row->over = true;
	if (row->group)
		count_tokens(row->group, call);
}

/* ---- findings ---- */

static bool is_duplicate(const struct verdict *verdict)
{
	return verdict->finding != FINDING_NONE && verdict->severity >= SEVERITY_LOW;
}

static struct screen_finding *finding_of(struct screen_model *model, const struct digest *group)
{
	struct screen_finding *finding;

	HASH_FIND(hh, model->findings, group, sizeof(*group), finding);
	if (finding)
		return finding;
	if (HASH_COUNT(model->findings) >= SCREEN_FINDINGS_MAX) {
		model->findings_unlisted++;
		return NULL;
	}
	finding = calloc(1, sizeof(*finding));
	if (!finding)
		return NULL;
	finding->number = HASH_COUNT(model->findings) + 1;
	finding->group = *group;
	HASH_ADD(hh, model->findings, group, sizeof(finding->group), finding);
	if (finding->hh.tbl)
		return finding;
	free(finding);
	return NULL;
}

static void stand_for(struct screen_model *model, struct screen_finding *finding, const struct judgement *judgement)
{
	struct screen_call *later = screen_call_keep(screen_call_find(model, judgement->call_number));
	struct screen_call *earlier = screen_call_keep(screen_call_find(model, judgement->earlier_number));

	screen_call_drop(model, finding->later);
	screen_call_drop(model, finding->earlier);
	finding->later = later;
	finding->earlier = earlier;
	finding->judgement = *judgement;
	finding->stands = true;
	model->alarm_due = true;
}

/* The pair that stood for the finding is gone or got milder: the worst of those still kept stands now. */
static void stand_again(struct screen_model *model, struct screen_finding *finding)
{
	const struct screen_call *worst = finding->later && finding->later->judgement ? finding->later : NULL;

	for (uint64_t i = model->oldest; i < model->next; i++) {
		const struct screen_call *row = model->ring[i % SCREEN_CALLS_MAX];

		if (row->finding != finding || !row->judgement)
			continue;
		if (!worst || screen_rank(row->judgement->verdict.severity) >=
				      screen_rank(worst->judgement->verdict.severity))
			worst = row;
	}
	if (worst)
		stand_for(model, finding, worst->judgement);
	else
		finding->stands = false;
}

static void list_finding(struct screen_model *model, const struct judgement *judgement)
{
	struct screen_finding *finding = finding_of(model, &judgement->group);
	struct screen_call *row = screen_call_find(model, judgement->call_number);
	bool none = judgement->verdict.finding == FINDING_NONE;
	bool same, worse;

	if (!finding)
		return;
	if (row)
		row->finding = finding;
	if (judgement->attempts > finding->attempts)
		finding->attempts = judgement->attempts;
	same = finding->stands && finding->judgement.call_number == judgement->call_number;
	worse = !finding->stands || screen_rank(judgement->verdict.severity) >=
					    screen_rank(finding->judgement.verdict.severity);
	if (!none && worse)
		stand_for(model, finding, judgement);
	else if (same)
		stand_again(model, finding);
	model->stale = true;
}

/* What the row of the later call shows. 0 or -ENOMEM. */
static int note_in_row(struct screen_model *model, const struct judgement *judgement)
{
	struct screen_call *row = screen_call_find(model, judgement->call_number);
	struct screen_call *earlier = screen_call_find(model, judgement->earlier_number);

	if (earlier)
		earlier->later_number = judgement->call_number;
	if (!row)
		return 0;
	if (judgement->verdict.finding == FINDING_NONE) {
		free(row->judgement);
		row->judgement = NULL;
		return 0;
	}
	if (!row->judgement)
		row->judgement = malloc(sizeof(*row->judgement));
	if (!row->judgement)
		return -ENOMEM;
	*row->judgement = *judgement;
	if (earlier != row->earlier) {
		screen_call_drop(model, row->earlier);
		row->earlier = screen_call_keep(earlier);
	}
	return 0;
}

static void count_judged(struct screen_model *model, const struct judgement *judgement, bool first)
{
	struct screen_call *row = screen_call_find(model, judgement->call_number);
	struct screen_group *group = row ? row->group : NULL;

	if (group && first && judgement->attempt > 1)
		group->attempts++;
	if (judgement->before.finding != FINDING_NONE) {
		model->totals.standing[judgement->before.severity]--;
		if (group && is_duplicate(&judgement->before))
			group->duplicates--;
	}
	if (judgement->verdict.finding != FINDING_NONE) {
		model->totals.standing[judgement->verdict.severity]++;
		if (group && is_duplicate(&judgement->verdict))
			group->duplicates++;
	}
}

int screen_model_judged(struct screen_model *model, const struct judgement *judgement, const struct call *call)
{
	int err;

	if (!model)
		return 0;
	count_judged(model, judgement, call != NULL);
	if (judgement->verdict.finding == FINDING_NONE && judgement->before.finding == FINDING_NONE)
		return 0;
	model->changed = true;
	model->steps++;
	err = note_in_row(model, judgement);
	list_finding(model, judgement);
	model->memory_lost |= err != 0;
	return err;
}

void screen_model_alone(struct screen_model *model, const struct call *call, enum finding finding)
{
	struct screen_call *row = model ? screen_call_find(model, call->number) : NULL;

	if (!model)
		return;
	model->totals.standing[SEVERITY_INFO]++;
	model->changed = true;
	if (row)
		row->alone = finding;
}

/* ---- streams ---- */

/* A connection that was refused is a finding without a call. */
static int list_refusal(struct screen_model *model, const struct connection_result *result)
{
	struct screen_finding *finding;
	struct buffer text = {0};
	struct digest group;
	char server[ENDPOINT_TEXT_MAX];
	int err = text_harmless(bytes_of_string(result->name.process.comm), 64, &text);

	endpoint_text(&result->name.server, server);
	if (!err)
		err = say(&text, " (pid %u) tried to connect to %s and was refused", result->name.process.tgid, server);
	if (!err)
		err = digest_of(buffer_bytes(&text), &group);
	finding = err ? NULL : finding_of(model, &group);
	if (!finding || finding->stands) {
		buffer_done(&text);
		return err;
	}
	finding->text = text;
	finding->stands = true;
	finding->judgement.verdict = (struct verdict){.finding = FINDING_OFF_LOOPBACK, .severity = SEVERITY_HIGH};
	model->stale = model->alarm_due = true;
	return 0;
}

int screen_model_stream(struct screen_model *model, const struct connection_result *result)
{
	struct screen_totals *totals = model ? &model->totals : NULL;

	if (!model)
		return 0;
	switch (result->step) {
	case CONNECTION_HOLE:
		model->changed = true;
		totals->holes++;
		totals->hole_bytes += result->length;
		return 0;
	case CONNECTION_BLIND:
		model->changed = true;
		totals->blind[result->blind]++;
		return 0;
	case CONNECTION_BROKEN:
		model->changed = true;
		totals->broken++;
		return 0;
	case CONNECTION_OFF_LOOPBACK:
		model->changed = true;
		totals->off_loopback++;
		totals->refused += result->refused;
		totals->standing[result->refused ? SEVERITY_HIGH : SEVERITY_INFO]++;
		return result->refused ? list_refusal(model, result) : 0;
	default: /* of calls it is told by the functions above */
		return 0;
	}
}

/* ---- end ---- */

void screen_rows_forget(struct screen_model *model)
{
	struct screen_finding *finding, *next_finding;
	struct screen_group *group, *next_group;

	HASH_ITER(hh, model->findings, finding, next_finding) {
		HASH_DEL(model->findings, finding);
		screen_call_drop(model, finding->later);
		screen_call_drop(model, finding->earlier);
		buffer_done(&finding->text);
		free(finding);
	}
	while (model->oldest < model->next)
		leave_ring(model, model->ring[model->oldest++ % SCREEN_CALLS_MAX]);
	HASH_ITER(hh, model->groups, group, next_group) {
		HASH_DEL(model->groups, group);
		group_free(group);
	}
	group_free(model->other);
	model->other = NULL;
	model->findings_unlisted = 0;
	model->totals = (struct screen_totals){0};
}
