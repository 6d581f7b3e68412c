/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What each option of the table (command_options.c) does to a struct command_line,
 * and what options may not be together.
 */
#include "command_line.h"
#include "clock.h"
#include "cgroup.h"
#include "config_file.h"
#include "duration.h"
#include "output.h"
#include "policy_file.h"
#include "report.h"
#include "store.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#define RUN COMMAND_LINE_RUN
#define WATCH COMMAND_LINE_WATCH
#define KEY_MAX 255
#define COMMANDS (RUN | WATCH | COMMAND_LINE_ONCE)
const char *command_line_verb_name(enum command_line_verb verb)
{
	return command_of(verb)->name;
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

/* Is that process for certain in another network namespace than this one? proc_pid_ns(5) */
static bool is_elsewhere(unsigned long pid)
{
	char path[64];
	struct stat own, its;

	snprintf(path, sizeof(path), "/proc/%lu/ns/net", pid);
	return stat("/proc/self/ns/net", &own) == 0 && stat(path, &its) == 0 && own.st_ino != its.st_ino;
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
		if (is_elsewhere(number))
			return "is of a process in another network namespace: put nsenter -t PID -n before nightclerk";
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
	line->audit.policy = path;
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
			       ? "takes a list of tls, h2, websocket, connect, mptcp, ktls, joined_late, netns, other" : NULL;
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
static const char *wrong_with_file(const struct option_row *row, const char *value)
{
	if (row->argument && strcmp(row->argument, "DIR") == 0 && !*value)
		return "takes a directory";
	if (!row->argument || strncmp(row->argument, "FILE", 4) != 0)
		return NULL;
	switch (row->id) {
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
	if (verb == COMMAND_LINE_AUDIT)
		return optind < argc ? complain(verb, NULL, "there is an argument too many") : COMMAND_LINE_OK;
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
	free(line->audit.texts);
	line->policy = NULL;
	line->audit.texts = NULL;
}

/* Any option; NULL, or the sentence that says what it wants. */
static const char *take_any(enum command_line_verb verb, int id, const char *value, struct command_line *line)
{
	const char *wrong = wrong_with_file(command_option_of(verb, id), value);
	bool taken = wrong != NULL;

	if (!taken)
		wrong = audit_take_option(id, value, &line->audit, &taken);
	if (!taken)
		wrong = take_store_option(id, value, line, &taken);
	return taken ? wrong : take_option(id, value, line);
}

/* What getopt_long(3) did not take may be an option that this command refuses to have. */
static enum command_line_result refuse(enum command_line_verb verb, int id, const char *word)
{
	char name[32] = "";
	const char *why;

	if (verb == COMMAND_LINE_AUDIT && strncmp(word, "--", 2) == 0)
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(word + 2, "="), word + 2);
	why = audit_refuses(name);
	if (why)
		return complain(verb, name, why);
	command_line_complain_of_option(command_line_verb_name(verb), id, word);
	return COMMAND_LINE_BAD;
}

/* ---- the same options in a file ---- */

struct filled {
	enum command_line_verb verb;
	const bool *given; /* on the command line: these stay */
	struct command_line *line;
};

static int take_from_file(void *context, const char *name, const char *value, bool off, char *reason)
{
	struct filled *filled = context;
	const struct option_row *row = NULL;
	const char *wrong = audit_refuses(name);

	while ((row = command_option_next(filled->verb, row)) && strcmp(row->name, name) != 0)
		;
	if (!wrong && (!row || row->id == OPTION_CONFIG || row->id == OPTION_CHECK_CONFIG || row->id == OPTION_HELP))
		wrong = "is no option that can stand in a file; see nightclerk audit --help";
	else if (!wrong && row->argument && (!value || off))
		wrong = "takes a text or a number";
	else if (!wrong && !row->argument && value && !off)
		wrong = "is true or false";
	if (!wrong && !off && !filled->given[row->id - OPTION_LEDGER])
		wrong = take_any(filled->verb, (int)row->id, value, filled->line);
	snprintf(reason, CONFIG_REASON_MAX, "%s", wrong ? wrong : "");
	return wrong ? -EINVAL : 0;
}

static enum command_line_result take_file(enum command_line_verb verb, const bool given[], struct command_line *line)
{
	struct filled filled = {verb, given, line};

	if (!line->audit.config)
		return COMMAND_LINE_OK;
	return config_file_read(line->audit.config, take_from_file, &filled, &line->audit.texts) ? COMMAND_LINE_BAD : COMMAND_LINE_OK;
}

static enum command_line_result take_options(enum command_line_verb verb, int argc, char **argv,
					     const struct option *longs, struct command_line *line)
{
	bool given[OPTION_HELP - OPTION_LEDGER + 1] = {false};
	enum command_line_result result;
	int id, index = 0;

	/* Options may follow a KEY, but never a COMMAND. */
	while ((id = getopt_long(argc, argv, verb & COMMANDS ? "+:h" : ":h", longs, &index)) != -1) {
		const char *wrong;

		if (id == OPTION_HELP || id == 'h') {
			command_help(verb);
			return COMMAND_LINE_HELP;
		}
		if (id == ':' || id == '?')
			return refuse(verb, id, argv[optind - 1]);
		given[id - OPTION_LEDGER] = true;
		wrong = take_any(verb, id, optarg, line);
		if (wrong)
			return complain(verb, longs[index].name, wrong);
	}
	result = take_file(verb, given, line);
	if (result == COMMAND_LINE_OK && verb != COMMAND_LINE_AUDIT) /* its monitor reads the policy again and again */
		apply_policy(given, line);
	return result;
}

enum command_line_result command_line_parse(enum command_line_verb verb, int argc, char **argv,
					    struct command_line *ret_line)
{
	struct option longs[COMMAND_OPTIONS_MAX];
	struct command_line line = {.linger_ns = 1000000000ULL, .lease_ns = STORE_LEASE_NS, .now_ns = clock_wall_ns(),
				    .audit = {.split = TENANT_SPLIT_CGROUP, .rotation = {.bytes = AUDIT_ROTATE_BYTES}}};
	enum command_line_result result;

	judge_options_defaults(&line.judge);
	line.judge.across_processes = true;
	line.ledger = verb == COMMAND_LINE_RUN ? "call_ledger.jsonl" : NULL;
	command_long_options(verb, longs);
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
