/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One table: name, argument, help. getopt_long and the help text both come
 * out of it.
 */
#include "run_options.h"

#include <errno.h>
#include <getopt.h>

enum option_id {
	OPTION_LEDGER = 256,
	OPTION_EVENTS,
	OPTION_RECORD,
	OPTION_FAIL_ON,
	OPTION_STRICT,
	OPTION_ALLOW_INCOMPLETE,
	OPTION_ALLOW_BLIND,
	OPTION_LINGER,
	OPTION_RING_SIZE,
	OPTION_DOOR,
	OPTION_QUIET,
	OPTION_HELP,
};

static const struct {
	const char *name;
	int id;
	const char *argument; /* NULL = none */
	const char *help;
} table[] = {
	{"ledger", OPTION_LEDGER, "FILE", "append one line per request to FILE (call_ledger.jsonl)"},
	{"events", OPTION_EVENTS, "FILE|fd:N", "every request, response, finding, hole, ... as JSON lines"},
	{"record", OPTION_RECORD, "FILE", "keep everything for `replay`; FILE will hold bodies and secrets"},
	{"fail-on", OPTION_FAIL_ON, "SEVERITY", "exit 10 from this severity on: info, low, medium, high (medium)"},
	{"strict", OPTION_STRICT, NULL, "every repeat is at least medium, PUT and DELETE too"},
	{"allow-incomplete", OPTION_ALLOW_INCOMPLETE, NULL, "do not exit 11 when something was not seen"},
	{"allow-blind", OPTION_ALLOW_BLIND, "KIND,...",
	 "accept unreadable streams: tls, h2, websocket, connect, mptcp, ktls, joined_late"},
	{"linger", OPTION_LINGER, "SECONDS", "wait this long for open calls after the command ended (1)"},
	{"ring-size", OPTION_RING_SIZE, "BYTES", "kernel buffer, a power of two (67108864); K, M and G are understood"},
	{"door", OPTION_DOOR, "NAME", "auto, tracepoint or kprobe (auto)"},
	{"quiet", OPTION_QUIET, NULL, "no alerts and no summary line"},
	{"help", OPTION_HELP, NULL, "this text"},
};

#define TABLE_SIZE (sizeof(table) / sizeof(table[0]))

static void print_help(void)
{
	printf("usage: nightclerk run [OPTIONS] -- COMMAND [ARGUMENT...]\n\n"
	       "Runs COMMAND, writes down every HTTP call that it and its children send over\n"
	       "loopback, and fails when the same mutating call was sent twice.\n\n");
	for (size_t i = 0; i < TABLE_SIZE; i++) {
		char left[40];

		snprintf(left, sizeof(left), "--%s%s%s", table[i].name, table[i].argument ? " " : "",
			 table[i].argument ? table[i].argument : "");
		printf("  %-22s %s\n", left, table[i].help);
	}
	printf("\nExit status: the command's own; 10 a finding at or above --fail-on; 11 cannot tell;\n"
	       "125 nightclerk could not start or watch; 126 not executable; 127 not found.\n");
}

static int parse_size(const char *text, size_t *ret_size)
{
	char *end;
	unsigned long long value;
	unsigned int shift;

	errno = 0;
	value = strtoull(text, &end, 10);
	shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (errno || end == text || *text == '-' || (shift && end[1]) || (!shift && *end) || value > 1ULL << 40)
		return -EINVAL;
	value <<= shift;
	if (value < 4096 || value > 1ULL << 32 || (value & (value - 1)))
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

/* 0, or the sentence that says what the option wants. */
static const char *take_option(int id, const char *value, struct run_options *options)
{
	switch (id) {
	case OPTION_LEDGER:
		options->ledger = value;
		return NULL;
	case OPTION_EVENTS:
		options->events = value;
		return strcmp(value, "-") == 0 ? "takes a file or fd:N: standard output belongs to the command" : NULL;
	case OPTION_RECORD:
		options->recording = value;
		return NULL;
	case OPTION_FAIL_ON:
		return severity_parse(bytes_of_string(value), &options->judge.fail_on)
			       ? "takes info, low, medium or high" : NULL;
	case OPTION_STRICT:
		options->judge.strict = true;
		return NULL;
	case OPTION_ALLOW_INCOMPLETE:
		options->judge.allow_incomplete = true;
		return NULL;
	case OPTION_ALLOW_BLIND:
		return blind_kinds_parse(value, &options->judge.allow_blind)
			       ? "takes a list of tls, h2, websocket, connect, mptcp, ktls, joined_late, other" : NULL;
	case OPTION_LINGER:
		return parse_seconds(value, &options->linger_ns) ? "takes seconds, 0 to 86400" : NULL;
	case OPTION_RING_SIZE:
		return parse_size(value, &options->ring_bytes)
			       ? "takes a power of two from 4096 to 4G, in bytes or with K, M, G" : NULL;
	case OPTION_DOOR:
		return parse_door(value, &options->door) ? "takes auto, tracepoint or kprobe" : NULL;
	case OPTION_QUIET:
		options->quiet = true;
		return NULL;
	default:
		return "is not known";
	}
}

static enum run_options_result complain(const char *name, const char *what)
{
	fprintf(stderr, "nightclerk run: %s%s %s; see nightclerk run --help\n", name ? "--" : "", name ? name : "", what);
	return RUN_OPTIONS_BAD;
}

enum run_options_result run_options_parse(int argc, char **argv, struct run_options *ret_options)
{
	struct option longs[TABLE_SIZE + 1] = {0};
	struct run_options options = {.ledger = "call_ledger.jsonl", .linger_ns = 1000000000ULL};
	int id, index = 0;

	judge_options_defaults(&options.judge);
	options.judge.across_processes = true;
	for (size_t i = 0; i < TABLE_SIZE; i++)
		longs[i] = (struct option){table[i].name, table[i].argument ? required_argument : no_argument, NULL,
					   table[i].id};
	optind = 1;
	opterr = 0;
	while ((id = getopt_long(argc, argv, "+:h", longs, &index)) != -1) {
		const char *wrong;

		if (id == OPTION_HELP || id == 'h') {
			print_help();
			return RUN_OPTIONS_HELP;
		}
		if (id == ':' || id == '?') {
			fprintf(stderr, "nightclerk run: %s %s; see nightclerk run --help\n", argv[optind - 1],
				id == ':' ? "wants a value" : "is not an option of run");
			return RUN_OPTIONS_BAD;
		}
		wrong = take_option(id, optarg, &options);
		if (wrong)
			return complain(longs[index].name, wrong);
	}
	if (optind >= argc)
		return complain(NULL, "no command given: nightclerk run -- COMMAND [ARGUMENT...]");
	options.command = argv + optind;
	options.command_argc = argc - optind;
	*ret_options = options;
	return RUN_OPTIONS_OK;
}
