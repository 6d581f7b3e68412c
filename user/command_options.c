/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options: name, argument, which commands have it, help. Where two rows
 * have one name, no command has both.
 */
#include "command_table.h"

#include <string.h>

#define RUN COMMAND_LINE_RUN
#define WATCH COMMAND_LINE_WATCH
#define REPLAY COMMAND_LINE_REPLAY
#define AUDIT COMMAND_LINE_AUDIT
#define CLAIM (COMMAND_LINE_RESERVE | COMMAND_LINE_ONCE)
#define ASK (COMMAND_LINE_KEY | CLAIM)

static const struct option_row table[] = {
	{"pid", OPTION_PID, WATCH, "PID", "watch this process"},
	{"cgroup", OPTION_CGROUP, WATCH, "DIR", "watch every process of this cgroup (v2)"},
	{"uid", OPTION_UID, WATCH, "UID", "watch every process of this user"},
	{"comm", OPTION_COMM, WATCH, "NAME", "watch every process of this name (first 15 bytes)"},
	{"port", OPTION_PORT, WATCH, "PORT", "watch every connection to or from this port"},
	{"all", OPTION_ALL, WATCH, "host-wide", "watch every process of every user on this host"},
	{"plain", OPTION_PLAIN, WATCH, NULL, "one line a call, also on a terminal, where the full screen is the default"},
	{"notify", OPTION_NOTIFY, WATCH, "CMD", "sh -c CMD at each finding from --fail-on on; NIGHTCLERK_TEXT says which"},
	{"output", OPTION_OUTPUT, WATCH, "FILE", "append what the command prints to FILE, on the full screen besides its pane"},
	{"ledger", OPTION_LEDGER, RUN | WATCH | REPLAY, "FILE", "append one line per request to FILE (run: call_ledger.jsonl)"},
	{"events", OPTION_EVENTS, RUN | WATCH | REPLAY, "FILE|fd:N", "every request, response, finding, hole, ... as JSON lines"},
	{"record", OPTION_RECORD, RUN | WATCH, "FILE", "keep everything for `replay`; FILE will hold bodies and secrets"},
	{"junit", OPTION_JUNIT, RUN, "FILE", "a test report: one case per finding and per thing not seen"},
	{"db", OPTION_DB, RUN | WATCH | ALL_OF_THE_STORE, "FILE", "the account book of model calls (SQLite): see `report`"},
	{"db", OPTION_DB, REPLAY, "FILE", "the same account book; what is in it already is not counted again"},
	{"db", OPTION_DB, AUDIT, "DIR", "where each tenant gets an account book of model calls, TENANT.db: see `report`"},
	{"keep-results", OPTION_KEEP_RESULTS, RUN | WATCH | REPLAY, NULL, "with the answers of model calls (to 1 MiB), secrets included"},
	{"key", OPTION_KEY, COMMAND_LINE_ONCE | COMMAND_LINE_REPORT, "KEY", "the one that `key` prints, or any text of your own"},
	{"request", OPTION_REQUEST, ASK, "FILE", "the body of the request, as it will be sent; - is standard input"},
	{"path", OPTION_PATH, ASK, "PATH", "where it will be sent to: /v1/chat/completions"},
	{"model", OPTION_MODEL, ASK, "NAME", "without HTTP: the model ..."},
	{"prompt", OPTION_PROMPT, ASK, "FILE", "... and a file with all that it is asked; - is standard input"},
	{"extra", OPTION_EXTRA, ASK, "TEXT", "part of the key: a commit, a version of the job"},
	{"lease", OPTION_LEASE, RUN | WATCH | REPLAY | AUDIT | CLAIM, "TIME", "a call in it is pending this long at most (900); 90, 15m, 2h, 7d"},
	{"ttl", OPTION_TTL, RUN | WATCH | AUDIT | CLAIM | COMMAND_LINE_SWEEP, "TIME", "what is older does not count, or is removed"},
	{"since", OPTION_SINCE, COMMAND_LINE_REPORT, "TIME", "only what began after it: 24h, 7d, 2026-12-01, 2026-12-01T08:00:00Z"},
	{"json", OPTION_JSON, COMMAND_LINE_REPORT | COMMAND_LINE_DOCTOR, NULL, "as one JSON object"},
	{"json", OPTION_JSON, REPLAY, NULL, "with --profile: as one JSON object"},
	{"csv", OPTION_CSV, COMMAND_LINE_REPORT, NULL, "as CSV"},
	{"prices", OPTION_PRICES, COMMAND_LINE_REPORT, "FILE", "{\"MODEL\": {\"input\": 2.5, \"cached\": 1.25, \"output\": 10}} a million tokens"},
	{"assert", OPTION_ASSERT, COMMAND_LINE_REPORT, "TEXT", "exit 10 unless it holds of every call: billed<=1"},
	{"now", OPTION_NOW, ALL_OF_THE_STORE, "SECONDS", "the time, for tests"},
	{"config", OPTION_CONFIG, AUDIT, "FILE", "these options in a JSON object, without --; the command line outranks it"},
	{"check-config", OPTION_CHECK_CONFIG, AUDIT, "FILE", "only say whether FILE is a valid --config"},
	{"directory", OPTION_DIRECTORY, AUDIT, "DIR", "where each tenant gets a directory with its ledger and events (/var/log/nightclerk)"},
	{"split", OPTION_SPLIT, AUDIT, "cgroup|uid|none", "who is a tenant: a container or service, a user, all together (cgroup)"},
	{"max-tenants", OPTION_MAX_TENANTS, AUDIT, "COUNT", "at once (256); who comes later is among \"others\""},
	{"rotate-size", OPTION_ROTATE_SIZE, AUDIT, "BYTES", "a file that large is set aside as .1 (256M); K, M and G are understood, 0 = never"},
	{"rotate-age", OPTION_ROTATE_AGE, AUDIT, "TIME", "the same for one that old: 7d (never)"},
	{"keep", OPTION_KEEP, AUDIT, "COUNT", "files set aside of each kind (5); the oldest goes"},
	{"metrics", OPTION_METRICS, AUDIT, "FILE", "numbers for node_exporter's textfile collector; FILE ends in .prom"},
	{"policy", OPTION_POLICY, RUN | WATCH | ASK | AUDIT, "FILE", "what you know of your calls: see `check-policy`; other options outrank it"},
	{"policy", OPTION_POLICY, COMMAND_LINE_CHECK | REPLAY, "FILE", "judge by this policy: see `check-policy`"},
	{"fail-on", OPTION_FAIL_ON, RUN | WATCH, "SEVERITY", "run: exit 10, watch: bell and --notify, from this severity on: info, low, medium, high (medium)"},
	{"fail-on", OPTION_FAIL_ON, COMMAND_LINE_CHECK, "SEVERITY", "exit 10 from this severity on: info, low, medium, high (medium)"},
	{"strict", OPTION_STRICT, RUN | WATCH | AUDIT | COMMAND_LINE_CHECK, NULL, "every repeat is at least medium, PUT and DELETE too"},
	{"allow-incomplete", OPTION_ALLOW_INCOMPLETE, RUN | COMMAND_LINE_CHECK, NULL, "do not exit 11 when something was not seen"},
	{"allow-blind", OPTION_ALLOW_BLIND, RUN, "KIND,...",
	 "accept unreadable streams: tls, h2, websocket, connect, mptcp, ktls, joined_late, netns, other"},
	{"schema-version", OPTION_SCHEMA_VERSION, RUN | WATCH | ASK | AUDIT, "TEXT",
	 "part of every model call's key: another one is other work (v1)"},
	{"linger", OPTION_LINGER, RUN, "SECONDS", "wait this long for open calls after the command ended (1)"},
	{"user", OPTION_USER, RUN, "USER|UID", "run the command and open the files as this user"},
	{"user", OPTION_USER, AUDIT, "USER|UID", "whose rights the half that reads captured bytes is left with (nightclerk, else nobody)"},
	{"netns-only", OPTION_NETNS_ONLY, AUDIT, NULL, "not the whole host: only the network namespace that it runs in"},
	{"confine", OPTION_CONFINE, RUN, NULL, "refuse what the command connects or sends to off loopback; each is a high finding"},
	{"ring-size", OPTION_RING_SIZE, RUN | WATCH | AUDIT, "BYTES", "kernel buffer, a power of two (64M); K, M and G are understood"},
	{"door", OPTION_DOOR, RUN | WATCH | AUDIT, "DOOR", "auto, tracepoint or kprobe (auto)"},
	{"quiet", OPTION_QUIET, RUN | REPLAY, NULL, "no alerts and no summary line"},
	{"format", OPTION_FORMAT, COMMAND_LINE_CHECK, "FORMAT", "text, json or junit (text)"},
	{"screen", OPTION_SCREEN, REPLAY, NULL, "on the full screen, as in `watch`, stepping in time; ? explains the keys"},
	{"profile", OPTION_PROFILE, REPLAY, NULL, "print what each stage takes, in nanoseconds an exchange, and nothing else"},
	{"cut", OPTION_CUT, REPLAY, "SEED", "every send in random pieces, for tests: the ledger must stay the same"},
	{"method", OPTION_METHOD, COMMAND_LINE_CHECK_POLICY, "NAME", "of the request (POST)"},
	{"host", OPTION_HOST, COMMAND_LINE_CHECK_POLICY, "NAME", "as in its Host header, without port"},
	{"port", OPTION_PORT, COMMAND_LINE_CHECK_POLICY, "PORT", "that it goes to"},
	{"path", OPTION_PATH, COMMAND_LINE_CHECK_POLICY, "PATH", "without query"},
	{"header", OPTION_HEADER, COMMAND_LINE_CHECK_POLICY, "'N: V'", "one of its headers; may be given again"},
	{"tool", OPTION_TOOL, COMMAND_LINE_CHECK_POLICY, "NAME", "the MCP tool or JSON-RPC method that it calls"},
	{"print-default", OPTION_PRINT_DEFAULT, COMMAND_LINE_CHECK_POLICY, NULL, "a policy that changes nothing, to start from"},
	{"help", OPTION_HELP, ~0U, NULL, "this text"},
};

#define TABLE_SIZE (sizeof(table) / sizeof(table[0]))

const struct option_row *command_option_next(enum command_line_verb verb, const struct option_row *after)
{
	for (const struct option_row *row = after ? after + 1 : table; row < table + TABLE_SIZE; row++)
		if (row->verbs & verb)
			return row;
	return NULL;
}

const struct option_row *command_option_of(enum command_line_verb verb, int id)
{
	const struct option_row *row = NULL;

	while ((row = command_option_next(verb, row)) && (int)row->id != id)
		;
	return row;
}

void command_long_options(enum command_line_verb verb, struct option ret_longs[COMMAND_OPTIONS_MAX])
{
	const struct option_row *row = NULL;
	size_t count = 0;

	memset(ret_longs, 0, COMMAND_OPTIONS_MAX * sizeof(*ret_longs));
	while ((row = command_option_next(verb, row)) && count + 1 < COMMAND_OPTIONS_MAX)
		ret_longs[count++] = (struct option){
			row->name, row->argument ? required_argument : no_argument, NULL, (int)row->id};
}
