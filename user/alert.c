/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The groups that alerts are folded by. A group keeps its worst pair and the
 * next worst, so that a finding that is taken back uncovers the one below it;
 * everything else about it is a number. alert_text.c makes the words.
 */
#include "alert_group.h"

#include <errno.h>

#include "say.h"
#include "secret.h"

#define TARGET_MAX 240 /* printed of path and query */
#define RANK_COUNT 6
#define NAMES_COUNT 4096 /* of processes; of two in one place the later one stays */

struct process_name {
	uint32_t tgid, process; /* as in attempt_facts */
	char comm[WIRE_COMM_BYTES + 1];
};

struct alerts {
	struct fingerprinter *fingerprinter;
	struct group *groups;
	struct process_name *names; /* by tgid */
	size_t info_groups;	   /* made for a finding of severity info */
	uint64_t more[RANK_COUNT]; /* findings of groups that were not kept */
};

struct alerts *alerts_new(struct fingerprinter *fingerprinter)
{
	struct alerts *alerts = calloc(1, sizeof(*alerts));

	if (!alerts)
		return NULL;
	alerts->fingerprinter = fingerprinter;
	alerts->names = calloc(NAMES_COUNT, sizeof(*alerts->names));
	if (!alerts->names) {
		free(alerts);
		return NULL;
	}
	return alerts;
}

void alerts_meet(struct alerts *alerts, const struct call *call)
{
	struct process_name *name = &alerts->names[call->process.tgid % NAMES_COUNT];

	name->tgid = call->process.tgid;
	name->process = attempt_process_of(&call->process);
	snprintf(name->comm, sizeof(name->comm), "%s", call->process.comm);
}

/* "" = not known. */
static const char *name_of(const struct alerts *alerts, const struct attempt_facts *facts)
{
	const struct process_name *name = &alerts->names[facts->tgid % NAMES_COUNT];

	return name->tgid == facts->tgid && name->process == facts->process ? name->comm : "";
}

static void group_free(struct group *group)
{
	buffer_done(&group->method);
	buffer_done(&group->call);
	free(group);
}

void alerts_free(struct alerts *alerts)
{
	struct group *group, *next;

	if (!alerts)
		return;
	HASH_ITER (hh, alerts->groups, group, next) {
		HASH_DEL(alerts->groups, group);
		group_free(group);
	}
	free(alerts->names);
	free(alerts);
}

/* ---- taking note ---- */

/* Undecidable stands between low and medium. */
static unsigned int rank_of(enum severity severity)
{
	static const unsigned int ranks[] = {
		[SEVERITY_INFO] = 1,   [SEVERITY_LOW] = 2,  [SEVERITY_NULL] = 3,
		[SEVERITY_MEDIUM] = 4, [SEVERITY_HIGH] = 5,
	};

	return ranks[severity];
}

static unsigned int pair_rank(const struct pair *pair)
{
	return rank_of(pair->judgement.verdict.severity);
}

/* The last renewal step that n attempts have reached: 1, 2, 3, 10, 100, ... */
static uint64_t renewal_step(uint64_t n)
{
	uint64_t step = 10;

	if (n < 10)
		return n < 3 ? n : 3;
	while (n / step >= 10)
		step *= 10;
	return step;
}

static struct group *group_find(const struct alerts *alerts, const struct digest *id)
{
	struct group *group;

	HASH_FIND(hh, alerts->groups, id, sizeof(*id), group);
	return group;
}

/* Half of the room is kept for findings that are more than info. */
static bool is_full(const struct alerts *alerts, enum severity severity)
{
	return HASH_COUNT(alerts->groups) >= ALERT_GROUPS_MAX ||
	       (severity == SEVERITY_INFO && alerts->info_groups >= ALERT_GROUPS_MAX / 2);
}

static struct group *group_new(struct alerts *alerts, const struct digest *id,
			       enum severity severity)
{
	struct group *group = calloc(1, sizeof(*group));

	if (!group)
		return NULL;
	group->id = *id;
	HASH_ADD(hh, alerts->groups, id, sizeof(group->id), group);
	if (!group->hh.tbl) { /* uthash could not grow */
		free(group);
		return NULL;
	}
	alerts->info_groups += severity == SEVERITY_INFO;
	return group;
}

/* "POST /v1/charges?limit=1 at 127.0.0.1:8765, tool create_charge" */
static int describe(struct alerts *alerts, const struct call *call, struct group *group)
{
	struct buffer target = {0};
	char server[ENDPOINT_TEXT_MAX];
	int err = text_harmless(call->method, ALERT_NAME_MAX, &group->method);

	endpoint_text(&call->server, server);
	if (!err)
		err = secret_mask_target(alerts->fingerprinter, call->path, call->has_query, call->query, &target);
	if (!err)
		err = buffer_append(&group->call, buffer_bytes(&group->method));
	if (!err)
		err = buffer_append_byte(&group->call, ' ');
	if (!err)
		err = text_harmless(buffer_bytes(&target), TARGET_MAX, &group->call);
	if (!err)
		err = say(&group->call, " at %s", server);
	if (!err && call->tool.size)
		err = buffer_append(&group->call, BYTES(", tool "));
	if (!err)
		err = text_harmless(call->tool, ALERT_NAME_MAX, &group->call);
	if (!err && call->model.size)
		err = buffer_append(&group->call, BYTES(", model "));
	if (!err)
		err = text_harmless(call->model, ALERT_NAME_MAX, &group->call);
	buffer_done(&target);
	if (err) {
		buffer_clear(&group->method);
		buffer_clear(&group->call);
	}
	return err;
}

/*
 * Takes the pair of that later attempt out of the group; *pair keeps what it held of the attempt.
 */
static void take_pair(struct group *group, uint64_t call_number, struct pair *pair)
{
	for (unsigned int i = 0; i < group->pair_count; i++) {
		if (group->pair[i].judgement.call_number != call_number)
			continue;
		*pair = group->pair[i];
		if (i == 0)
			group->pair[0] = group->pair[1];
		group->pair_count--;
		return;
	}
}

static void put_pair(struct group *group, const struct pair *pair)
{
	unsigned int rank = pair_rank(pair);

	if (group->pair_count == 0 || rank >= pair_rank(&group->pair[0])) {
		group->pair[1] = group->pair[0];
		group->pair[0] = *pair;
	} else if (group->pair_count == 1 || rank >= pair_rank(&group->pair[1])) {
		group->pair[1] = *pair;
	} else {
		return;
	}
	if (group->pair_count < 2)
		group->pair_count++;
}

static void note_attempt(struct pair *pair, const struct call *call)
{
	snprintf(pair->comm, sizeof(pair->comm), "%s", call->process.comm);
	pair->key_size = call->idem_state != IDEM_PRESENT ? 0 :
			 call->idem.size < ALERT_KEY_KEPT ? call->idem.size :
							    ALERT_KEY_KEPT;
	if (pair->key_size)
		memcpy(pair->key, call->idem.data, pair->key_size);
}

static bool wants_renewal(struct group *group)
{
	unsigned int rank;

	if (group->pair_count == 0)
		return false;
	rank = pair_rank(&group->pair[0]);
	if (group->shown_attempts &&
	    renewal_step(group->attempts) <= renewal_step(group->shown_attempts) &&
	    rank <= group->shown_rank)
		return false;
	group->shown_attempts = group->attempts;
	group->shown_rank = rank;
	return true;
}

int alerts_note(struct alerts *alerts, const struct judgement *judgement, const struct call *call,
		bool *ret_renew)
{
	struct group *group = group_find(alerts, &judgement->group);
	bool taken_back = judgement->verdict.finding == FINDING_NONE;
	struct pair pair = {0};
	int err = 0;

	*ret_renew = false;
	if (!group && taken_back)
		return 0;
	if (!group && is_full(alerts, judgement->verdict.severity)) {
		if (judgement->before.finding == FINDING_NONE) /* a change was counted before */
			alerts->more[rank_of(judgement->verdict.severity)]++;
		return 0;
	}
	if (!group)
		group = group_new(alerts, &judgement->group, judgement->verdict.severity);
	if (!group)
		return -ENOMEM;

	take_pair(group, judgement->call_number, &pair);
	pair.judgement = *judgement;
	snprintf(pair.earlier_comm, sizeof(pair.earlier_comm), "%s", name_of(alerts, &judgement->earlier_facts));
	if (call)
		note_attempt(&pair, call);
	if (!taken_back)
		put_pair(group, &pair);
	if (judgement->attempts > group->attempts)
		group->attempts = judgement->attempts;
	if (call && call->head && group->call.size == 0)
		err = describe(alerts, call, group);
	*ret_renew = wants_renewal(group);
	return err;
}

/*
 * The key of a call may be lent for the time of its first note only: what was read of it then
 * stays.
 */
static void update_facts(struct attempt_facts *facts, const struct call *call)
{
	struct attempt_facts before = *facts;
	struct call now = *call;

	now.idem = (struct bytes){0};
	attempt_facts_of(&now, facts);
	facts->key = before.key;
	facts->owner_gone |= before.owner_gone;
}

static void update_group(struct alerts *alerts, const struct digest *digest, const struct call *call)
{
	const struct digest id = attempts_group(digest);
	struct group *group = group_find(alerts, &id);

	for (unsigned int i = 0; group && i < group->pair_count; i++) {
		struct judgement *judgement = &group->pair[i].judgement;

		if (judgement->call_number == call->number)
			update_facts(&judgement->later_facts, call);
		if (judgement->earlier_number == call->number)
			update_facts(&judgement->earlier_facts, call);
	}
}

void alerts_update(struct alerts *alerts, const struct call *call)
{
	if (!alerts->groups)
		return;
	if (call->has_fingerprint)
		update_group(alerts, &call->fingerprint, call);
	if (call->has_prompt_fingerprint)
		update_group(alerts, &call->prompt_fingerprint, call);
	if (call->idem_state == IDEM_PRESENT)
		update_group(alerts, &call->key_scope, call);
}

const struct judgement *alerts_next(const struct alerts *alerts, const void **position,
				    struct bytes *ret_call)
{
	const struct group *group = *position;

	do {
		group = group ? group->hh.next : alerts->groups;
	} while (group && group->pair_count == 0);
	if (!group)
		return NULL;
	*position = group;
	*ret_call = buffer_bytes(&group->call);
	return &group->pair[0].judgement;
}

/* ---- showing ---- */

int alerts_block(const struct alerts *alerts, const struct digest *group, int64_t wall_offset_ns,
		 const struct alert_style *style, struct buffer *out)
{
	const struct group *found = group_find(alerts, group);

	return found ? alert_group_block(found, wall_offset_ns, style, out) : 0;
}

/* Worst first, then in order of time; call numbers follow time and are unique. */
static int compare_groups(const void *a, const void *b)
{
	const struct pair *left = &(*(struct group *const *)a)->pair[0];
	const struct pair *right = &(*(struct group *const *)b)->pair[0];
	unsigned int left_rank = pair_rank(left), right_rank = pair_rank(right);

	if (left_rank != right_rank)
		return left_rank > right_rank ? -1 : 1;
	if (left->judgement.call_number != right->judgement.call_number)
		return left->judgement.call_number < right->judgement.call_number ? -1 : 1;
	return memcmp(&left->judgement.group, &right->judgement.group,
		      sizeof(left->judgement.group));
}

/* The least rank that is shown; undecidable counts as medium here, though it stands below. */
static unsigned int least_rank(enum severity at_least)
{
	return at_least == SEVERITY_MEDIUM ? rank_of(SEVERITY_NULL) : rank_of(at_least);
}

static int more_line(const struct alerts *alerts, unsigned int least, struct buffer *out)
{
	uint64_t more = 0;

	for (unsigned int rank = least; rank < RANK_COUNT; rank++)
		more += alerts->more[rank];
	if (more == 0)
		return 0;
	return say(out,
		   "nightclerk: and %llu more, beyond the %zu groups of attempts that are kept; "
		   "the events hold them\n",
		   (unsigned long long)more, (size_t)HASH_COUNT(alerts->groups));
}

int alerts_all(const struct alerts *alerts, enum severity at_least, int64_t wall_offset_ns,
	       const struct alert_style *style, struct buffer *out)
{
	unsigned int least = least_rank(at_least);
	struct group **sorted = calloc(HASH_COUNT(alerts->groups) + 1, sizeof(*sorted));
	size_t count = 0;
	int err = 0;

	if (!sorted)
		return -ENOMEM;
	for (struct group *group = alerts->groups; group; group = group->hh.next)
		if (group->pair_count && pair_rank(&group->pair[0]) >= least)
			sorted[count++] = group;
	qsort(sorted, count, sizeof(*sorted), compare_groups);
	for (size_t i = 0; !err && i < count; i++)
		err = alert_group_block(sorted[i], wall_offset_ns, style, out);
	free(sorted);
	return err ? err : more_line(alerts, least, out);
}
