/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The collector's side of the wire: one question at a time. Orders that come
 * while an answer is awaited are kept for the loop.
 */
#include "collector_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void take_order(struct collector *collector, const struct monitor_message *message)
{
	switch (message->kind) {
	case MONITOR_POLICY:
		buffer_clear(&collector->policy_text);
		collector->policy_due = buffer_append(&collector->policy_text, message->body) == 0;
		break;
	case MONITOR_REOPEN:
		collector->reopen = true;
		break;
	case MONITOR_FINISH:
		collector->finish = true;
		break;
	default: /* an answer that nobody waits for any more */
		break;
	}
	if (message->fd >= 0)
		close(message->fd);
}

static int lose_monitor(struct collector *collector, int err)
{
	collector->monitor_gone = true;
	return err == -EPROTO ? -EPROTO : -ECONNRESET;
}

void collector_take_orders(struct collector *collector)
{
	struct monitor_message message;
	int got = 0;

	while (!collector->monitor_gone && (got = monitor_wire_receive(collector->wire, false, &message)) > 0)
		take_order(collector, &message);
	if (got < 0)
		lose_monitor(collector, got);
}

int collector_say(struct collector *collector, enum monitor_kind kind, struct bytes body)
{
	struct monitor_message message = {.kind = kind, .body = body, .fd = -1};
	int err = collector->monitor_gone ? -ECONNRESET : monitor_wire_send(collector->wire, &message);

	return err ? lose_monitor(collector, err) : 0;
}

static int await(struct collector *collector, enum monitor_kind kind, struct monitor_message *ret_answer)
{
	int got;

	while ((got = monitor_wire_receive(collector->wire, true, ret_answer)) > 0) {
		if (ret_answer->kind == kind)
			return 0;
		take_order(collector, ret_answer);
	}
	return lose_monitor(collector, got);
}

/* *ret_answer's body is lent until the next question. What the monitor could not do comes back as its -errno. */
static int ask(struct collector *collector, enum monitor_kind kind, const void *body, size_t size,
	       struct monitor_message *ret_answer)
{
	int err = collector_say(collector, kind, (struct bytes){body, size});

	if (!err)
		err = await(collector, kind, ret_answer);
	return err ? err : ret_answer->result;
}

/* An answer that should have no descriptor, or a body of another size, is not believed. */
static int check_size(struct monitor_message *answer, size_t size)
{
	if (answer->fd >= 0)
		close(answer->fd);
	return answer->body.size == size ? 0 : -EPROTO;
}

int collector_ask_cgroup(struct collector *collector, uint64_t id, uint32_t tgid, struct bytes *ret_path)
{
	struct monitor_cgroup cgroup = {.id = id, .tgid = tgid};
	struct monitor_message answer;
	int err = ask(collector, MONITOR_CGROUP, &cgroup, sizeof(cgroup), &answer);

	if (!err)
		*ret_path = answer.body;
	return err;
}

/* By what the tenant is called: "uid-1000" is that user where tenants are users. */
static struct monitor_open file_of(const struct collector *collector, const struct tenant *tenant, enum audit_file file)
{
	struct monitor_open open = {.file = (uint8_t)file};
	struct tenant_name name;

	snprintf(open.tenant, sizeof(open.tenant), "%s", tenant_name(tenant));
	if (collector->options->split != TENANT_SPLIT_UID || strncmp(open.tenant, "uid-", 4) != 0)
		return open;
	open.uid = (uint32_t)strtoul(open.tenant + 4, NULL, 10);
	tenant_name_of_uid(open.uid, &name);
	open.has_owner = strcmp(name.text, open.tenant) == 0;
	return open;
}

int collector_ask_file(struct collector *collector, enum monitor_kind kind, const struct tenant *tenant, enum audit_file file,
		       int *ret_fd)
{
	struct monitor_open open = file_of(collector, tenant, file);
	struct monitor_message answer;
	int err = ask(collector, kind, &open, sizeof(open), &answer);

	if (!err && answer.fd < 0)
		err = -EPROTO;
	if (!err)
		*ret_fd = answer.fd;
	return err;
}

void collector_say_closed(struct collector *collector, const struct tenant *tenant)
{
	struct monitor_open open = file_of(collector, tenant, AUDIT_LEDGER);

	collector_say(collector, MONITOR_CLOSED, (struct bytes){(const uint8_t *)&open, sizeof(open)});
}

/* ---- what capture asks for ---- */

static int ask_counters(void *context, struct counters *ret_counters, size_t *ret_ring_peak)
{
	struct collector *collector = context;
	struct monitor_written written = {.until_ns = collector->written_ns};
	struct monitor_counters counters;
	struct monitor_message answer;
	int err = ask(collector, MONITOR_COUNTERS, &written, sizeof(written), &answer);

	if (!err)
		err = check_size(&answer, sizeof(counters));
	if (err)
		return err;
	memcpy(&counters, answer.body.data, sizeof(counters));
	*ret_counters = counters.counters;
	*ret_ring_peak = counters.ring_peak_bytes;
	return 0;
}

static int ask_refresh(void *context)
{
	struct monitor_message answer;
	int err = ask(context, MONITOR_REFRESH, NULL, 0, &answer);

	return err ? err : check_size(&answer, 0);
}

static int ask_living(void *context, capture_take_living *take, void *take_context)
{
	struct monitor_message answer;
	int err = ask(context, MONITOR_LIVING, NULL, 0, &answer);

	while (!err && answer.body.size) {
		struct bytes rest = answer.body;

		if (rest.size % sizeof(struct wire_event) || answer.fd >= 0)
			return -EPROTO;
		while (rest.size && !err) {
			struct wire_event event;

			memcpy(&event, bytes_take(&rest, sizeof(event)).data, sizeof(event));
			err = take(take_context, &event);
		}
		if (!err)
			err = await(context, MONITOR_LIVING, &answer);
		if (!err)
			err = answer.result;
	}
	return err;
}

struct capture_rights collector_rights(struct collector *collector)
{
	return (struct capture_rights){.context = collector, .counters = ask_counters, .refresh = ask_refresh, .living = ask_living};
}
