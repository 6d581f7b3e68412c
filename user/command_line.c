/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One table: name, argument, which commands have it, help. getopt_long and the
 * help text both come out of it.
 */
#include "command_line.h"
#include "clock.h"
#include "cgroup.h"
#include "duration.h"
#include "output.h"
#include "policy_file.h"
#include "report.h"
#include "store.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

enum option_id {
	OPTION_LEDGER = COMMAND_LINE_FIRST_OPTION,
	OPTION_EVENTS,
	OPTION_RECORD,
	OPTION_JUNIT,
	OPTION_DB,
	OPTION_KEEP_RESULTS,
	OPTION_LEASE,
	OPTION_TTL,
	OPTION_KEY,
	OPTION_REQUEST,
	OPTION_PATH,
	OPTION_MODEL,
	OPTION_PROMPT,
	OPTION_EXTRA,
	OPTION_SINCE,
	OPTION_JSON,
	OPTION_CSV,
	OPTION_PRICES,
	OPTION_ASSERT,
	OPTION_NOW,
	OPTION_POLICY,
	OPTION_FAIL_ON,
	OPTION_STRICT,
	OPTION_ALLOW_INCOMPLETE,
	OPTION_ALLOW_BLIND,
	OPTION_SCHEMA_VERSION,
	OPTION_LINGER,
	OPTION_RING_SIZE,
	OPTION_DOOR,
	OPTION_USER,
	OPTION_CONFINE,
	OPTION_QUIET,
	OPTION_PLAIN,
	OPTION_NOTIFY,
	OPTION_OUTPUT,
	OPTION_PID,
	OPTION_CGROUP,
	OPTION_UID,
	OPTION_COMM,
	OPTION_PORT,
	OPTION_ALL,
	OPTION_HELP,
};

#define RUN COMMAND_LINE_RUN
#define WATCH COMMAND_LINE_WATCH
#define ALL_OF_THE_STORE                                                                                           \
	(COMMAND_LINE_RESERVE | COMMAND_LINE_COMMIT | COMMAND_LINE_GET | COMMAND_LINE_RELEASE | COMMAND_LINE_ONCE | \
	 COMMAND_LINE_REPORT | COMMAND_LINE_SWEEP)
#define CLAIM (COMMAND_LINE_RESERVE | COMMAND_LINE_ONCE)
#define ASK (COMMAND_LINE_KEY | CLAIM)
#define KEY_MAX 255
#define COMMANDS (RUN | WATCH | COMMAND_LINE_ONCE)
#define EVERY (RUN | WATCH | COMMAND_LINE_KEY | ALL_OF_THE_STORE)

static const struct {
	const char *name;
	int id;
	unsigned int verbs;
	const char *argument; /* NULL = none */
	const char *help;
} table[] = {
	{"pid", OPTION_PID, WATCH, "PID", "watch this process"},
	{"cgroup", OPTION_CGROUP, WATCH, "PATH", "watch every process of this cgroup (v2) directory"},
	{"uid", OPTION_UID, WATCH, "UID", "watch every process of this user"},
	{"comm", OPTION_COMM, WATCH, "NAME", "watch every process of this name (first 15 bytes)"},
	{"port", OPTION_PORT, WATCH, "PORT", "watch every connection to or from this port"},
	{"all", OPTION_ALL, WATCH, "host-wide", "watch every process of every user on this host"},
	{"plain", OPTION_PLAIN, WATCH, NULL, "one line a call, also on a terminal, where the full screen is the default"},
	{"notify", OPTION_NOTIFY, WATCH, "CMD", "sh -c CMD at each finding from --fail-on on; NIGHTCLERK_TEXT says which"},
	{"output", OPTION_OUTPUT, WATCH, "FILE", "append what the command prints to FILE, on the full screen besides its pane"},
	{"ledger", OPTION_LEDGER, RUN | WATCH, "FILE", "append one line per request to FILE (run: call_ledger.jsonl)"},
	{"events", OPTION_EVENTS, RUN | WATCH, "FILE|fd:N", "every request, response, finding, hole, ... as JSON lines"},
	{"record", OPTION_RECORD, RUN | WATCH, "FILE", "keep everything for `replay`; FILE will hold bodies and secrets"},
	{"junit", OPTION_JUNIT, RUN, "FILE", "a test report: one case per finding and per thing not seen"},
	{"db", OPTION_DB, RUN | WATCH | ALL_OF_THE_STORE, "FILE", "the account book of model calls (SQLite): see `report`"},
	{"keep-results", OPTION_KEEP_RESULTS, RUN | WATCH, NULL, "with the answers of model calls (to 1 MiB), secrets included"},
	{"key", OPTION_KEY, COMMAND_LINE_ONCE | COMMAND_LINE_REPORT, "KEY", "the one that `key` prints, or any text of your own"},
	{"request", OPTION_REQUEST, ASK, "FILE", "the body of the request, as it will be sent; - is standard input"},
	{"path", OPTION_PATH, ASK, "PATH", "where it will be sent to: /v1/chat/completions"},
	{"model", OPTION_MODEL, ASK, "NAME", "without HTTP: the model ..."},
	{"prompt", OPTION_PROMPT, ASK, "FILE", "... and a file with all that it is asked; - is standard input"},
	{"extra", OPTION_EXTRA, ASK, "TEXT", "part of the key: a commit, a version of the job"},
	{"lease", OPTION_LEASE, RUN | WATCH | CLAIM, "TIME", "a call in it is pending this long at most (900); 90, 15m, 2h, 7d"},
	{"ttl", OPTION_TTL, RUN | WATCH | CLAIM | COMMAND_LINE_SWEEP, "TIME", "what is older does not count, or is removed"},
	{"since", OPTION_SINCE, COMMAND_LINE_REPORT, "TIME", "only what began after it: 24h, 7d, 2026-12-01, 2026-12-01T08:00:00Z"},
	{"json", OPTION_JSON, COMMAND_LINE_REPORT, NULL, "as one JSON object"},
	{"csv", OPTION_CSV, COMMAND_LINE_REPORT, NULL, "as CSV"},
	{"prices", OPTION_PRICES, COMMAND_LINE_REPORT, "FILE", "{\"MODEL\": {\"input\": 2.5, \"cached\": 1.25, \"output\": 10}} a million tokens"},
	{"assert", OPTION_ASSERT, COMMAND_LINE_REPORT, "TEXT", "exit 10 unless it holds of every call: billed<=1"},
	{"now", OPTION_NOW, ALL_OF_THE_STORE, "SECONDS", "the time, for tests"},
	{"policy", OPTION_POLICY, RUN | WATCH | ASK, "FILE", "what you know of your calls: see `check-policy`; other options outrank it"},
	{"fail-on", OPTION_FAIL_ON, RUN | WATCH, "SEVERITY", "run: exit 10, watch: bell and --notify, from this severity on: info, low, medium, high (medium)"},
	{"strict", OPTION_STRICT, RUN | WATCH, NULL, "every repeat is at least medium, PUT and DELETE too"},
	{"allow-incomplete", OPTION_ALLOW_INCOMPLETE, RUN, NULL, "do not exit 11 when something was not seen"},
	{"allow-blind", OPTION_ALLOW_BLIND, RUN, "KIND,...",
	 "accept unreadable streams: tls, h2, websocket, connect, mptcp, ktls, joined_late, other"},
	{"schema-version", OPTION_SCHEMA_VERSION, RUN | WATCH | ASK, "TEXT",
	 "part of every model call's key: another one is other work (v1)"},
	{"linger", OPTION_LINGER, RUN, "SECONDS", "wait this long for open calls after the command ended (1)"},
	{"user", OPTION_USER, RUN, "NAME|UID", "run the command and open the files as this user"},
	{"confine", OPTION_CONFINE, RUN, NULL, "refuse what the command connects or sends to off loopback; each is a high finding"},
	{"ring-size", OPTION_RING_SIZE, RUN | WATCH, "BYTES", "kernel buffer, a power of two (64M); K, M and G are understood"},
	{"door", OPTION_DOOR, RUN | WATCH, "NAME", "auto, tracepoint or kprobe (auto)"},
	{"quiet", OPTION_QUIET, RUN, NULL, "no alerts and no summary line"},
	{"help", OPTION_HELP, EVERY, NULL, "this text"},
};

#define TABLE_SIZE (sizeof(table) / sizeof(table[0]))

static const struct {
	enum command_line_verb verb;
	const char *name;
	const char *usage; /* and what it does */
	const char *ends;
} verbs[] = {
	{RUN, "run",
	 "usage: nightclerk run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Runs COMMAND, writes down every HTTP call that it and its children send over\n"
	 "loopback, and fails when the same mutating call was sent twice.\n",
	 "Exit status: the command's own; 10 a finding at or above --fail-on; 11 cannot tell;\n"
	 "125 nightclerk could not start or watch; 126 not executable; 127 not found.\n"},
	{WATCH, "watch",
	 "usage: nightclerk watch SCOPE [OPTIONS]\n"
	 "       nightclerk watch [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Shows HTTP calls over loopback, and repeats as they happen: on the full screen, where\n"
	 "? explains the keys, or one line a call where there is no terminal.\n"
	 "SCOPE is one of --pid, --cgroup, --uid, --comm, --port, --all. Ctrl-C ends it.\n",
	 "Exit status: 0; 1 it could not watch; 2 usage.\n"},
	{COMMAND_LINE_KEY, "key",
	 "usage: nightclerk key --request FILE --path PATH [--extra TEXT]\n"
	 "       nightclerk key --model NAME --prompt FILE [--extra TEXT]\n\n"
	 "Prints the key under which the wire will count that request (without --extra), or\n"
	 "that of a job without HTTP.\n",
	 "Exit status: 0; 1 the file cannot be read, or is no request of a model; 2 usage.\n"},
	{COMMAND_LINE_RESERVE, "reserve",
	 "usage: nightclerk reserve KEY [OPTIONS]\n"
	 "       nightclerk reserve --request FILE --path PATH [OPTIONS]\n\n"
	 "Asks whether a piece of work is to be done: of all who ask, one is told to go on.\n",
	 "Exit status: 0 reserved: do it, then `commit`; 3 done: a kept result is printed;\n"
	 "4 somebody else is at it; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_COMMIT, "commit",
	 "usage: nightclerk commit KEY [FILE] [OPTIONS]\n\n"
	 "Makes a piece of work done, with what FILE holds as its result; - is standard input.\n"
	 "The first result stays.\n",
	 "Exit status: 0 it is done; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_GET, "get", "usage: nightclerk get KEY [OPTIONS]\n\nPrints the kept result of a piece of work.\n",
	 "Exit status: 0 printed; 3 done, but no result was kept; 4 pending; 5 neither;\n"
	 "1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_RELEASE, "release",
	 "usage: nightclerk release KEY [OPTIONS]\n\nGives a reservation back: the next one who asks gets it.\n",
	 "Exit status: 0 given back, or nobody had reserved it; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_ONCE, "once",
	 "usage: nightclerk once --key KEY [OPTIONS] -- COMMAND [ARGUMENT...]\n"
	 "       nightclerk once --request FILE --path PATH [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	 "Runs COMMAND and keeps what it prints; a second call prints that and runs nothing.\n",
	 "Exit status: 0 what was kept is printed; else that of the command, which is kept only\n"
	 "when it is 0; 3 done, but no output was kept; 4 somebody else is at it; 125 the store\n"
	 "cannot be used; 126 not executable; 127 not found.\n"},
	{COMMAND_LINE_REPORT, "report",
	 "usage: nightclerk report [OPTIONS]\n\n"
	 "The bank statement: what every model, process, path and day asked, got and cost.\n",
	 "Exit status: 0; 10 an --assert does not hold; 11 it holds of what was seen, but not all\n"
	 "was; 1 the store cannot be used; 2 usage.\n"},
	{COMMAND_LINE_SWEEP, "sweep",
	 "usage: nightclerk sweep [--ttl TIME] [OPTIONS]\n\n"
	 "Marks what was left pending as abandoned, and removes what is older than --ttl.\n",
	 "Exit status: 0; 1 the store cannot be used; 2 usage.\n"},
};

#define VERB_COUNT (sizeof(verbs) / sizeof(verbs[0]))

static size_t verb_index(enum command_line_verb verb)
{
	size_t i = 0;

	while (i + 1 < VERB_COUNT && verbs[i].verb != verb)
		i++;
	return i;
}

const char *command_line_verb_name(enum command_line_verb verb)
{
	return verbs[verb_index(verb)].name;
}

static void print_help(enum command_line_verb verb)
{
	printf("%s\n", verbs[verb_index(verb)].usage);
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		char left[40];

		if (!(table[i].verbs & verb))
			continue;
		snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].argument ? " " : "",
			 table[i].argument ? table[i].argument : "");
		printf("  %-22s %s\n", left, table[i].help);
	}
	if (verb & ALL_OF_THE_STORE)
		printf("\nWithout --db, the store is the file that NIGHTCLERK_DB names.\n");
	printf("\n%s", verbs[verb_index(verb)].ends);
}

static int parse_size(const char *text, size_t *ret_size)
{
	char *end;
	unsigned long long value;
	unsigned int shift;

	errno = 0;
	value = strtoull(text, &end, 10);
	shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (errno || *text < '0' || *text > '9' || (shift && end[1]) || (!shift && *end) || value > 1ULL << 31)
		return -EINVAL;
	value <<= shift;
	if (value < 4096 || value > 1ULL << 31 || (value & (value - 1)))
		return -EINVAL;
	*ret_size = (size_t)value;
	return 0;
}

static int parse_seconds(const char *text, uint64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0 && seconds <= 86400))
		return -EINVAL;
	*ret_ns = (uint64_t)(seconds * 1e9);
	return 0;
}

static int parse_door(const char *text, enum capture_door *ret_door)
{
	for (int door = CAPTURE_DOOR_AUTO; door <= CAPTURE_DOOR_TRACEPOINT; door++)
		if (strcmp(text, capture_door_name(door)) == 0) {
			*ret_door = door;
			return 0;
		}
	return -EINVAL;
}

static int parse_number(const char *text, unsigned long min, unsigned long max, unsigned long *ret_number)
{
	char *end;
	unsigned long number;

	errno = 0;
	number = strtoul(text, &end, 10);
	if (errno || end == text || *end || *text == '-' || number < min || number > max)
		return -EINVAL;
	*ret_number = number;
	return 0;
}

/* 0, or the sentence that says what the option wants. */
static const char *take_scope(int id, const char *value, struct command_line *line)
{
	struct capture_options *capture = &line->capture;
	unsigned long number;
	struct stat stat_of;

	if (line->scope[0])
		return "is a second scope: give one";
	switch (id) {
	case OPTION_PID:
		if (parse_number(value, 1, INT32_MAX, &number))
			return "takes a process id";
		if (kill((pid_t)number, 0) && errno == ESRCH)
			return "is of a process that is not there";
		capture->scope = CAPTURE_PID;
		capture->pid = (uint32_t)number;
		break;
	case OPTION_CGROUP:
		if (!cgroup_is_directory(value) || stat(value, &stat_of))
			return "takes the directory of a cgroup, such as /sys/fs/cgroup/NAME";
		capture->scope = CAPTURE_CGROUP;
		capture->cgroup_id = stat_of.st_ino;
		break;
	case OPTION_UID:
		if (parse_number(value, 0, UINT32_MAX - 1, &number))
			return "takes a numeric user id";
		capture->scope = CAPTURE_UID;
		capture->uid = (uint32_t)number;
		break;
	case OPTION_COMM:
		if (!*value)
			return "takes the name of a program";
		capture->scope = CAPTURE_COMM;
		snprintf(capture->comm, sizeof(capture->comm), "%s", value);
		break;
	case OPTION_PORT:
		if (parse_number(value, 1, 65535, &number))
			return "takes a port, 1 to 65535";
		capture->scope = CAPTURE_PORT;
		capture->port = (uint16_t)number;
		break;
	default:
		if (strcmp(value, "host-wide") != 0)
			return "watches every process of every user on this host: say --all=host-wide";
		capture->scope = CAPTURE_ALL;
		capture->host_wide = true;
		break;
	}
	snprintf(line->scope, sizeof(line->scope), "%s %.40s",
		 id == OPTION_PID      ? "pid"
		 : id == OPTION_CGROUP ? "cgroup"
		 : id == OPTION_UID    ? "uid"
		 : id == OPTION_COMM   ? "comm"
		 : id == OPTION_PORT   ? "port"
				       : "all",
		 value);
	return NULL;
}

/* The file is read at once: what is wrong with it was said then. */
static const char *take_policy(const char *path, struct command_line *line)
{
	struct policy *policy;

	if (policy_file_read(path, &policy))
		return "takes a policy file; nothing was started";
	policy_free(line->policy);
	line->policy = policy;
	return NULL;
}

static const char *take_assertion(const char *text, struct report_line *report)
{
	struct assertion parsed;

	if (report->assertion_count == ASSERTIONS_MAX)
		return "may be given eight times";
	if (assertion_parse(text, &parsed))
		return "takes NAME OP NUMBER: billed<=1; " ASSERTION_WANTED;
	report->assertions[report->assertion_count++] = text;
	return NULL;
}

static const char *take_now(const char *text, struct command_line *line)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds > 0 && seconds < 9e9))
		return "takes Unix seconds";
	line->now_ns = (int64_t)(seconds * 1e9);
	return NULL;
}

/* What is about the store. NULL with *ret_taken false: it is not. */
static const char *take_store_option(int id, const char *value, struct command_line *line, bool *ret_taken)
{
	const char **const texts[] = {
		[OPTION_DB - OPTION_LEDGER] = &line->db,
		[OPTION_KEY - OPTION_LEDGER] = &line->key,
		[OPTION_REQUEST - OPTION_LEDGER] = &line->asked.request,
		[OPTION_PATH - OPTION_LEDGER] = &line->asked.path,
		[OPTION_MODEL - OPTION_LEDGER] = &line->asked.model,
		[OPTION_PROMPT - OPTION_LEDGER] = &line->asked.prompt,
		[OPTION_EXTRA - OPTION_LEDGER] = &line->asked.extra,
		[OPTION_PRICES - OPTION_LEDGER] = &line->report.prices,
		[OPTION_HELP - OPTION_LEDGER] = NULL,
	};

	*ret_taken = true;
	switch (id) {
	case OPTION_KEEP_RESULTS:
		line->keep_results = true;
		return NULL;
	case OPTION_LEASE:
		return duration_parse(value, &line->lease_ns) ? DURATION_WANTED : NULL;
	case OPTION_TTL:
		return duration_parse(value, &line->ttl_ns) ? DURATION_WANTED : NULL;
	case OPTION_SINCE:
		line->report.since = value;
		return since_parse(value, line->now_ns, &line->report.since_ns)
			       ? "takes a time before now or a date: 24h, 7d, 2026-12-01, 2026-12-01T08:00:00Z" : NULL;
	case OPTION_JSON:
		line->report.json = true;
		return NULL;
	case OPTION_CSV:
		line->report.csv = true;
		return NULL;
	case OPTION_ASSERT:
		return take_assertion(value, &line->report);
	case OPTION_NOW:
		return take_now(value, line);
	default:
		*ret_taken = texts[id - OPTION_LEDGER] != NULL;
		if (*ret_taken)
			*texts[id - OPTION_LEDGER] = value;
		return NULL;
	}
}

static const char *take_option(int id, const char *value, struct command_line *line)
{
	switch (id) {
	case OPTION_LEDGER:
		line->ledger = value;
		return NULL;
	case OPTION_EVENTS:
		line->events = value;
		return NULL;
	case OPTION_RECORD:
		line->recording = value;
		return NULL;
	case OPTION_JUNIT:
		line->junit = value;
		return NULL;
	case OPTION_POLICY:
		return take_policy(value, line);
	case OPTION_FAIL_ON:
		return severity_parse(bytes_of_string(value), &line->judge.fail_on)
			       ? "takes info, low, medium or high" : NULL;
	case OPTION_STRICT:
		line->judge.strict = true;
		return NULL;
	case OPTION_ALLOW_INCOMPLETE:
		line->judge.allow_incomplete = true;
		return NULL;
	case OPTION_ALLOW_BLIND:
		return blind_kinds_parse(value, &line->judge.allow_blind)
			       ? "takes a list of tls, h2, websocket, connect, mptcp, ktls, joined_late, other" : NULL;
	case OPTION_SCHEMA_VERSION:
		return schema_version_parse(bytes_of_string(value), line->judge.schema_version)
			       ? "takes 1 to 63 letters, digits or . _ - + : / @" : NULL;
	case OPTION_LINGER:
		return parse_seconds(value, &line->linger_ns) ? "takes seconds, 0 to 86400" : NULL;
	case OPTION_RING_SIZE:
		return parse_size(value, &line->capture.data_ring_bytes)
			       ? "takes a power of two from 4096 to 2G, in bytes or with K, M, G" : NULL;
	case OPTION_DOOR:
		return parse_door(value, &line->capture.door) ? "takes auto, tracepoint or kprobe" : NULL;
	case OPTION_USER:
		line->user = value;
		return NULL;
	case OPTION_CONFINE:
		line->confine = true;
		return NULL;
	case OPTION_QUIET:
		line->quiet = true;
		return NULL;
	case OPTION_PLAIN:
		line->plain = true;
		return NULL;
	case OPTION_NOTIFY:
		line->notify = value;
		return NULL;
	case OPTION_OUTPUT:
		line->output = value;
		return NULL;
	default:
		return take_scope(id, value, line);
	}
}

static enum command_line_result complain(enum command_line_verb verb, const char *name, const char *what)
{
	fprintf(stderr, "nightclerk %s: %s%s%s%s; see nightclerk %s --help\n", command_line_verb_name(verb), name ? "--" : "",
		name ? name : "", name ? " " : "", what, command_line_verb_name(verb));
	return COMMAND_LINE_BAD;
}

void command_line_complain_of_option(const char *command, int id, const char *word)
{
	char letter[] = {'-', (char)optopt, '\0'};
	bool is_letter = id == '?' && optopt > 0 && optopt < COMMAND_LINE_FIRST_OPTION;

	fprintf(stderr, "nightclerk %s: %s %s; see nightclerk %s --help\n", command, is_letter ? letter : word,
		id == ':'					      ? "wants a value"
		: optopt >= COMMAND_LINE_FIRST_OPTION && !is_letter ? "is too much: that option takes no value"
								      : "is not an option of it",
		command);
}

/* What is wrong with the value of an option that takes a file, whatever is in it; NULL = nothing. */
static const char *wrong_with_file(int id, const char *value)
{
	const char *argument = NULL;

	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (table[i].id == id)
			argument = table[i].argument;
	if (!argument || strncmp(argument, "FILE", 4) != 0)
		return NULL;
	switch (id) {
	case OPTION_EVENTS:
		return output_wrong_name(value, true);
	case OPTION_LEDGER:
	case OPTION_RECORD:
	case OPTION_JUNIT:
	case OPTION_DB:
	case OPTION_OUTPUT:
		return output_wrong_name(value, false);
	default:
		return *value ? NULL : "takes the name of a file";
	}
}

/* What is asked of a model is a request or a prompt, and each has two parts. */
static const char *wrong_with_asked(const struct asked *asked)
{
	if (asked->request && (asked->model || asked->prompt))
		return "give --request or --prompt, not both";
	if (!asked->request != !asked->path)
		return "--request and --path belong together";
	if (!asked->model != !asked->prompt)
		return "--model and --prompt belong together";
	return NULL;
}

static bool is_asked(const struct command_line *line)
{
	return line->asked.request || line->asked.prompt;
}

/* KEY, and FILE of `commit`. */
static enum command_line_result take_operands(enum command_line_verb verb, int argc, char **argv, struct command_line *line)
{
	bool takes_key = verb & (COMMAND_LINE_RESERVE | COMMAND_LINE_COMMIT | COMMAND_LINE_GET | COMMAND_LINE_RELEASE);

	if (takes_key && optind < argc)
		line->key = argv[optind++];
	if (verb == COMMAND_LINE_COMMIT && optind < argc)
		line->result = argv[optind++];
	if (optind < argc)
		return complain(verb, NULL, "there is an argument too many");
	return COMMAND_LINE_OK;
}

static enum command_line_result finish_store(enum command_line_verb verb, int argc, char **argv, struct command_line *line)
{
	const char *wrong = wrong_with_asked(&line->asked);
	bool wants_key = verb & ALL_OF_THE_STORE & ~(COMMAND_LINE_REPORT | COMMAND_LINE_SWEEP);

	if (wrong)
		return complain(verb, NULL, wrong);
	if (verb != COMMAND_LINE_ONCE && take_operands(verb, argc, argv, line) != COMMAND_LINE_OK)
		return COMMAND_LINE_BAD;
	if (verb == COMMAND_LINE_ONCE && optind >= argc)
		return complain(verb, NULL, "no command given: nightclerk once --key KEY -- COMMAND [ARGUMENT...]");
	if (verb == COMMAND_LINE_ONCE) {
		line->command = argv + optind;
		line->command_argc = argc - optind;
	}
	if (verb == COMMAND_LINE_KEY && !is_asked(line))
		return complain(verb, NULL, "the key of what? give --request and --path, or --model and --prompt");
	if (wants_key && !line->key && !is_asked(line))
		return complain(verb, NULL, "which one? give a KEY; `nightclerk key` makes one");
	if (wants_key && line->key && (strlen(line->key) > KEY_MAX || !*line->key))
		return complain(verb, NULL, "a KEY has 1 to 255 bytes");
	if (line->report.since) /* again: --now may have come after it */
		since_parse(line->report.since, line->now_ns, &line->report.since_ns);
	if (line->report.json && line->report.csv)
		return complain(verb, NULL, "give --json or --csv, not both");
	if ((verb & ALL_OF_THE_STORE) && !line->db)
		line->db = getenv("NIGHTCLERK_DB");
	if ((verb & ALL_OF_THE_STORE) && (!line->db || !*line->db))
		return complain(verb, NULL, "which store? give --db FILE, or set NIGHTCLERK_DB");
	return COMMAND_LINE_OK;
}

static enum command_line_result finish(enum command_line_verb verb, int argc, char **argv, struct command_line *line)
{
	if (!(verb & (RUN | WATCH)))
		return finish_store(verb, argc, argv, line);
	if (optind < argc && line->scope[0])
		return complain(verb, NULL, "give a scope or a command, not both");
	if (optind >= argc && verb == COMMAND_LINE_RUN)
		return complain(verb, NULL, "no command given: nightclerk run -- COMMAND [ARGUMENT...]");
	if (optind >= argc && line->output)
		return complain(verb, "output", "is for what a command prints: give -- COMMAND");
	if (optind >= argc && !line->scope[0])
		return complain(verb, NULL, "watch what? give --pid, --cgroup, --uid, --comm, --port or -- COMMAND");
	if (optind < argc && line->events && strcmp(line->events, "-") == 0)
		return complain(verb, "events", "takes a file or fd:N: standard output belongs to the command");
	if (optind < argc) {
		line->command = argv + optind;
		line->command_argc = argc - optind;
		snprintf(line->scope, sizeof(line->scope), line->confine ? "tree, confined" : "tree");
	}
	return COMMAND_LINE_OK;
}

/* Puts what the policy sets under what the options set. */
static void apply_policy(const bool given[], struct command_line *line)
{
	struct judge_options judge;

	if (!line->policy)
		return;
	judge = line->judge;
	policy_apply(line->policy, &judge);
	if (given[OPTION_FAIL_ON - OPTION_LEDGER])
		judge.fail_on = line->judge.fail_on;
	if (given[OPTION_STRICT - OPTION_LEDGER])
		judge.strict = line->judge.strict;
	if (given[OPTION_ALLOW_BLIND - OPTION_LEDGER])
		judge.allow_blind = line->judge.allow_blind;
	line->judge = judge;
}

void command_line_done(struct command_line *line)
{
	policy_free(line->policy);
	line->policy = NULL;
}

static enum command_line_result take_options(enum command_line_verb verb, int argc, char **argv,
					     const struct option *longs, struct command_line *line)
{
	bool given[OPTION_HELP - OPTION_LEDGER + 1] = {false};
	int id, index = 0;

	/* Options may follow a KEY, but never a COMMAND. */
	while ((id = getopt_long(argc, argv, verb & COMMANDS ? "+:h" : ":h", longs, &index)) != -1) {
		const char *wrong;
		bool taken;

		if (id == OPTION_HELP || id == 'h') {
			print_help(verb);
			return COMMAND_LINE_HELP;
		}
		if (id == ':' || id == '?') {
			command_line_complain_of_option(command_line_verb_name(verb), id, argv[optind - 1]);
			return COMMAND_LINE_BAD;
		}
		given[id - OPTION_LEDGER] = true;
		wrong = wrong_with_file(id, optarg);
		taken = wrong != NULL;
		if (!taken)
			wrong = take_store_option(id, optarg, line, &taken);
		if (!taken)
			wrong = take_option(id, optarg, line);
		if (wrong)
			return complain(verb, longs[index].name, wrong);
	}
	apply_policy(given, line);
	return COMMAND_LINE_OK;
}

enum command_line_result command_line_parse(enum command_line_verb verb, int argc, char **argv,
					    struct command_line *ret_line)
{
	struct option longs[TABLE_SIZE + 1] = {0};
	struct command_line line = {.linger_ns = 1000000000ULL, .lease_ns = STORE_LEASE_NS, .now_ns = clock_wall_ns()};
	enum command_line_result result;
	size_t count = 0;

	judge_options_defaults(&line.judge);
	line.judge.across_processes = true;
	line.ledger = verb == COMMAND_LINE_RUN ? "call_ledger.jsonl" : NULL;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		if (table[i].verbs & verb)
			longs[count++] = (struct option){
				table[i].name, table[i].argument ? required_argument : no_argument, NULL, table[i].id};
	optind = 1;
	opterr = 0;
	result = take_options(verb, argc, argv, longs, &line);
	*ret_line = line;
	if (result == COMMAND_LINE_OK)
		result = finish(verb, argc, argv, ret_line);
	if (result != COMMAND_LINE_OK)
		command_line_done(ret_line);
	return result;
}
