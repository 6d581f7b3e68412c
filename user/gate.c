/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Everything that keeps the gate from saying "clean" is collected here, each
 * with its reason in words, so that no loss can hide behind a zero.
 */
#include "gate.h"
#include "say.h"
#include "utf8.h"

/* Processes in the sentence at the end; the summary event has more. */
#define BLIND_NAMES_MAX 8

void gate_add(struct gate *gate, const struct verdict *verdict)
{
	if (verdict->finding == FINDING_NONE)
		return;
	gate->standing[verdict->finding][verdict->severity]++;
	gate->found[verdict->finding][verdict->severity]++;
}

void gate_remove(struct gate *gate, const struct verdict *verdict)
{
	if (verdict->finding != FINDING_NONE)
		gate->standing[verdict->finding][verdict->severity]--;
}

void gate_change(struct gate *gate, const struct verdict *before, const struct verdict *after)
{
	if (before->finding == FINDING_NONE) {
		gate_add(gate, after);
		return;
	}
	gate_remove(gate, before);
	if (after->finding == FINDING_NONE)
		return;
	gate->standing[after->finding][after->severity]++;
	gate->upgraded[after->finding][after->severity]++;
}

void gate_count_request(struct gate *gate, const struct call *call)
{
	gate->requests++;
	if (call->class == CLASS_MUTATING)
		gate->mutating++;
}

void gate_count_answer(struct gate *gate, const struct call *call)
{
	gate->usage_refused += call->usage_refused;
}

void gate_count_blind(struct gate *gate, enum blind_kind kind)
{
	gate->blind[kind]++;
}

void gate_count_broken(struct gate *gate, bool matters)
{
	gate->broken++;
	if (matters)
		gate->broken_that_matter++;
}

void gate_note_gap(struct gate *gate, const char *why)
{
	for (size_t i = 0; i < gate->gap_count; i++)
		if (strcmp(gate->gaps[i], why) == 0)
			return;
	if (gate->gap_count < GATE_GAPS_MAX)
		gate->gaps[gate->gap_count++] = why;
}

static void incomplete(struct summary *summary, const char *reason)
{
	if (summary->incomplete_count < sizeof(summary->incomplete) / sizeof(summary->incomplete[0]))
		summary->incomplete[summary->incomplete_count++] = reason;
}

static const char *blind_reason(enum blind_kind kind)
{
	switch (kind) {
	case BLIND_TLS:
		return "a TLS stream on loopback could not be read (--allow-blind tls)";
	case BLIND_H2:
		return "an HTTP/2 stream on loopback could not be read (--allow-blind h2)";
	case BLIND_WEBSOCKET:
		return "a WebSocket on loopback could not be read (--allow-blind websocket)";
	case BLIND_CONNECT:
		return "a tunnel on loopback (CONNECT, or an upgrade to no protocol known here) could not be read (--allow-blind connect)";
	case BLIND_MPTCP:
		return "an MPTCP connection on loopback could not be read (--allow-blind mptcp)";
	case BLIND_JOINED_LATE:
		return "a connection was older than the observer (--allow-blind joined_late)";
	case BLIND_KTLS:
		return "a kernel TLS stream on loopback could not be read (--allow-blind ktls)";
	case BLIND_NETNS:
		return "a connection in another network namespace could not be seen: run nightclerk inside it (--allow-blind netns)";
	case BLIND_OTHER:
	case BLIND_COUNT:
		break;
	}
	return NULL;
}

static void find_reasons(const struct gate *gate, const struct judge_options *options, bool memory_lost,
			 struct summary *summary)
{
	const uint64_t *value = gate->counters.value;

	if (gate->standing[FINDING_UNDECIDABLE][SEVERITY_NULL])
		incomplete(summary, "a repeated call could not be judged (undecidable)");
	if (summary->hole_bytes)
		incomplete(summary, "bytes were not seen (holes)");
	if (gate->counters.recursion_misses)
		incomplete(summary, "the kernel skipped a probe (recursion_misses)");
	if (value[WIRE_COUNTER_LIFECYCLE_LOST])
		incomplete(summary, "a connection or process event was lost: the lifecycle ring or memory was full");
	if (value[WIRE_COUNTER_NO_FLOW] || value[WIRE_COUNTER_NO_CALL])
		incomplete(summary, "a kernel table was full: too many connections at once");
	if (summary->accepted_bytes != summary->message_bytes + summary->hole_bytes + summary->blind_bytes)
		incomplete(summary, "the bytes do not add up");
	for (int kind = 0; kind < BLIND_COUNT; kind++)
		if (gate->blind[kind] && blind_reason(kind) && !(options->allow_blind & 1u << kind)) {
			incomplete(summary, blind_reason(kind));
			summary->blind_that_matter |= 1u << kind;
		}
	if (gate->broken_that_matter)
		incomplete(summary, "an HTTP stream broke off: what followed could not be read");
	if (summary->closing->store_lost)
		incomplete(summary, "rows of the store could not be written");
	if (summary->evicted)
		incomplete(summary, "the oldest calls were forgotten for want of room: a repeat of one was not found");
	if (gate->forgotten_tools)
		incomplete(summary, "annotations of MCP tools were forgotten for want of room");
	if (summary->closing->counters_unread)
		incomplete(summary, "the kernel's counters could not be read at the end");
	if (summary->closing->unwritten_bytes)
		incomplete(summary, "an output could not be written");
	for (size_t i = 0; i < gate->gap_count; i++)
		incomplete(summary, gate->gaps[i]);
	if (memory_lost)
		incomplete(summary, "nightclerk ran out of memory");
}

static bool fails(const struct gate *gate, enum severity fail_on)
{
	for (int finding = 0; finding < FINDING_COUNT; finding++)
		for (int severity = fail_on; severity <= SEVERITY_HIGH; severity++)
			if (gate->standing[finding][severity])
				return true;
	return false;
}

static uint64_t all_of(const struct gate *gate, int finding)
{
	uint64_t sum = 0;

	for (int severity = 0; severity <= SEVERITY_HIGH; severity++)
		sum += gate->standing[finding][severity];
	return sum;
}

void gate_close(struct gate *gate, const struct judge_options *options, const struct closing *closing,
		struct connection_totals totals, uint64_t evicted, bool memory_lost, struct summary *ret_summary)
{
	struct summary summary = {
		.closing = closing,
		.counters = &gate->counters,
		.requests = gate->requests,
		.mutating = gate->mutating,
		.accepted_bytes = gate->counters.value[WIRE_COUNTER_ACCEPTED_BYTES],
		.message_bytes = totals.message_bytes,
		.hole_bytes = totals.hole_bytes,
		.blind_bytes = totals.blind_bytes,
		.blind_processes = &gate->blind_processes,
		.broken_streams = gate->broken,
		.evicted = evicted,
		.usage_refused = gate->usage_refused,
	};

	for (int finding = 0; finding < FINDING_COUNT; finding++) {
		summary.findings[finding] = all_of(gate, finding);
		if (finding != FINDING_TRUNCATED_RESPONSE && finding != FINDING_ABANDONED_CALL &&
		    finding != FINDING_OFF_LOOPBACK)
			summary.attempts += summary.findings[finding];
	}
	memcpy(summary.blind_streams, gate->blind, sizeof(summary.blind_streams));
	find_reasons(gate, options, memory_lost, &summary);
	if (fails(gate, options->fail_on))
		gate->exit_status = GATE_EXIT_FINDING;
	else if (summary.incomplete_count && !options->allow_incomplete)
		gate->exit_status = GATE_EXIT_INCOMPLETE;
	else
		gate->exit_status = closing->command_status > 0 ? closing->command_status : 0;
	summary.exit_status = gate->exit_status;
	*ret_summary = summary;
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

/* The processes that outlive the command; what was written into text. */
static int name_survivors(const struct closing *closing, char *text, size_t size)
{
	struct buffer names = {0};
	int n = 0;

	if (closing->survivor_count == 0 || size == 0)
		return 0;
	for (uint32_t i = 0; i < closing->survivor_count && i < CLOSING_SURVIVORS_MAX; i++) {
		if (say(&names, "%s%u ", i ? ", " : "", closing->survivors[i].pid) ||
		    text_harmless(bytes_of_string(closing->survivors[i].comm), 64, &names))
			break;
	}
	n = snprintf(text, size, "\nnightclerk: %u process%s of the command live%s on: %.*s%s", closing->survivor_count,
		     closing->survivor_count == 1 ? "" : "es", closing->survivor_count == 1 ? "s" : "", (int)names.size,
		     (const char *)names.data, closing->survivor_count > CLOSING_SURVIVORS_MAX ? ", ..." : "");
	buffer_done(&names);
	return n < 0 ? 0 : (size_t)n < size ? n : (int)size - 1;
}

/* Whose streams they were that keep the gate from telling. */
static int name_blind(const struct summary *summary, char *text, size_t size)
{
	struct buffer names = {0};
	int n = 0;

	if (size && summary->blind_that_matter && summary->blind_processes &&
	    blind_say(summary->blind_processes, summary->blind_that_matter, BLIND_NAMES_MAX, &names) == 0 && names.size)
		n = snprintf(text, size, "\nnightclerk: could not be read: %.*s", (int)names.size, (const char *)names.data);
	buffer_done(&names);
	return n < 0 ? 0 : (size_t)n < size ? n : (int)size - 1;
}

void gate_sentence(const struct gate *gate, const struct summary *summary, char *text, size_t size)
{
	uint64_t of[SEVERITY_HIGH + 1] = {0};
	uint64_t alerts;
	char command[64] = "";
	int n;

	for (int finding = 0; finding < FINDING_COUNT; finding++)
		for (int severity = 0; severity <= SEVERITY_HIGH; severity++)
			of[severity] += gate->standing[finding][severity];
	alerts = of[SEVERITY_LOW] + of[SEVERITY_MEDIUM] + of[SEVERITY_HIGH];
	if (summary->closing->command_status >= 0)
		snprintf(command, sizeof(command), "; command exited %d; exit %d", summary->closing->command_status,
			 summary->exit_status);
	n = snprintf(text, size,
		     "nightclerk: %llu request%s (%llu mutating), %llu finding%s (%llu high, %llu medium, %llu low), "
		     "%llu bytes = %llu in messages + %llu in holes + %llu blind%s",
		     (unsigned long long)summary->requests, plural(summary->requests),
		     (unsigned long long)summary->mutating, (unsigned long long)alerts, plural(alerts),
		     (unsigned long long)of[SEVERITY_HIGH], (unsigned long long)of[SEVERITY_MEDIUM],
		     (unsigned long long)of[SEVERITY_LOW], (unsigned long long)summary->accepted_bytes,
		     (unsigned long long)summary->message_bytes, (unsigned long long)summary->hole_bytes,
		     (unsigned long long)summary->blind_bytes, command);
	n += name_survivors(summary->closing, text + n, n > 0 && (size_t)n < size ? size - (size_t)n : 0);
	n += name_blind(summary, text + n, n > 0 && (size_t)n < size ? size - (size_t)n : 0);
	for (size_t i = 0; i < summary->incomplete_count && n > 0 && (size_t)n < size; i++)
		n += snprintf(text + n, size - (size_t)n, "%s%s", i ? "; " : "\nnightclerk: cannot tell: ",
			      summary->incomplete[i]);
}
