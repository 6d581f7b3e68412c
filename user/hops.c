/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Open calls by what they ask for, the newest first. One that begins is put
 * down as the hop of one open call at most, and the receiver of that one
 * decides. Of many equal open calls only the newest are looked at, so that the
 * cost of a call does not grow with them.
 */
#include "hops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#define BUCKETS 4096 /* a power of two */
#define LOOKED_AT_MAX 64

struct child {
	uint8_t id[CALL_ID_BYTES];
	uint32_t tgid;
	uint64_t start_ns;
};

struct open_call {
	struct call *call; /* lent until hops_close() */
	uint64_t kind;
	struct open_call *prev, *next; /* of one bucket, the newest first */
	struct child *children;
	size_t child_count;
};

struct hops {
	struct open_call *bucket[BUCKETS];
	size_t count;
};

struct hops *hops_new(void)
{
	return calloc(1, sizeof(struct hops));
}

static void open_call_free(struct open_call *open)
{
	free(open->children);
	free(open);
}

void hops_free(struct hops *hops)
{
	struct open_call *open, *next;

	for (size_t i = 0; hops && i < BUCKETS; i++)
		DL_FOREACH_SAFE(hops->bucket[i], open, next)
			open_call_free(open);
	free(hops);
}

size_t hops_open(const struct hops *hops)
{
	return hops->count;
}

static uint64_t mix(uint64_t hash, struct bytes text)
{
	for (size_t i = 0; i < text.size; i++)
		hash = (hash ^ text.data[i]) * 0x100000001b3ULL;
	return (hash ^ (hash >> 29)) * 0xff51afd7ed558ccdULL;
}

/* A proxy may write the path anew; where there is no body, the target is all there is. */
static uint64_t kind_of(const struct call *call)
{
	uint64_t hash;

	memcpy(&hash, call->sha.byte, sizeof(hash));
	hash = mix(hash, call->method);
	return call->body_bytes ? hash : mix(mix(hash, call->path), call->query);
}

static struct open_call **bucket_of(struct hops *hops, uint64_t kind)
{
	return &hops->bucket[kind & (BUCKETS - 1)];
}

static bool is_process(const struct process *process, uint32_t tgid, uint64_t start_ns)
{
	return process->tgid == tgid && process->start_ns == start_ns;
}

static bool was_sent_on_by(const struct open_call *open, const struct process *process)
{
	for (size_t i = 0; i < open->child_count; i++)
		if (is_process(process, open->children[i].tgid, open->children[i].start_ns))
			return true;
	return false;
}

static bool same_server(const struct call *a, const struct call *b)
{
	return a->netns == b->netns && memcmp(&a->server, &b->server, sizeof(a->server)) == 0;
}

#define LIKELIEST 3

/* 0 = cannot be. A proxy is seldom its own client, and sends on each call once before it retries. */
static int likelihood(const struct open_call *open, const struct call *call)
{
	const struct call *parent = open->call;

	if (parent->response_complete || same_server(parent, call) || open->child_count == HOPS_PER_CALL)
		return 0;
	if (is_process(&parent->process, call->process.tgid, call->process.start_ns))
		return 1;
	return was_sent_on_by(open, &call->process) ? 2 : LIKELIEST;
}

/* The likeliest; of equals the latest. */
static struct open_call *parent_of(struct hops *hops, uint64_t kind, const struct call *call)
{
	struct open_call *best = NULL, *open;
	int most = 0, looked_at = 0;

	DL_FOREACH(*bucket_of(hops, kind), open) {
		int likely = open->kind == kind ? likelihood(open, call) : 0;

		if (likely > most) {
			most = likely;
			best = open;
		}
		if (most == LIKELIEST || ++looked_at == LOOKED_AT_MAX)
			break;
	}
	return best;
}

static int add_child(struct open_call *parent, const struct call *call)
{
	struct child *children = realloc(parent->children, (parent->child_count + 1) * sizeof(*children));

	if (!children)
		return -ENOMEM;
	parent->children = children;
	children += parent->child_count++;
	*children = (struct child){.tgid = call->process.tgid, .start_ns = call->process.start_ns};
	memcpy(children->id, call->id, sizeof(children->id));
	return 0;
}

int hops_request(struct hops *hops, struct call *call)
{
	struct open_call *open, *parent;
	int err = 0;

	call->hop = NULL;
	if (!call->has_sha || !call->request_complete || call->process.tgid == 0)
		return 0;
	open = calloc(1, sizeof(*open));
	if (!open)
		return -ENOMEM;
	open->call = call;
	open->kind = kind_of(call);
	parent = parent_of(hops, open->kind, call);
	if (parent)
		err = add_child(parent, call);
	DL_PREPEND(*bucket_of(hops, open->kind), open);
	call->hop = open;
	hops->count++;
	return err;
}

bool hops_next(struct hops *hops, struct call *parent, struct hop *ret_hop)
{
	struct open_call *open = parent->hop;
	struct child child;

	(void)hops;
	if (!open || parent->server_process.tgid == 0)
		return false;
	while (open->child_count) {
		child = open->children[0];
		open->child_count--;
		memmove(open->children, open->children + 1, open->child_count * sizeof(child));
		if (!is_process(&parent->server_process, child.tgid, child.start_ns))
			continue;
		memcpy(ret_hop->call_id, child.id, sizeof(child.id));
		memcpy(ret_hop->parent_id, parent->id, sizeof(parent->id));
		return true;
	}
	return false;
}

void hops_close(struct hops *hops, struct call *call)
{
	struct open_call *open = call->hop;

	if (!open)
		return;
	DL_DELETE(*bucket_of(hops, open->kind), open);
	open_call_free(open);
	call->hop = NULL;
	hops->count--;
}
