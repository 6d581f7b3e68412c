/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk replay FILE`: a recording through the same pipeline, without
 * root and without a kernel: the same ledger, events and alerts, byte for byte.
 */
#include "commands.h"
#include "gate.h"
#include "output.h"
#include "pipeline.h"
#include "recording.h"

#include <errno.h>
#include <getopt.h>

struct replay {
	const char *path;
	const char *ledger;
	const char *events;
	bool quiet;
	struct recording_reader *reader;
	struct output *ledger_file;
	struct output *events_file;
	struct pipeline *pipeline;
	struct pipeline_output out;
	bool closed;
};

static void print_help(void)
{
	printf("usage: nightclerk replay FILE [--ledger FILE] [--events FILE|-] [--quiet]\n\n"
	       "Judges a recording again: the same ledger, events and alerts, byte for byte.\n\n"
	       "  --ledger FILE    append one line per request to FILE\n"
	       "  --events FILE|-  every event as JSON lines\n"
	       "  --quiet          no alerts and no summary line\n\n"
	       "Exit status: 0, 10 a finding at or above the run's --fail-on, 11 cannot tell,\n"
	       "1 the recording cannot be read, 2 usage.\n");
}

/* 0 = go on, else the exit status + 1. */
static int parse(int argc, char **argv, struct replay *replay)
{
	static const struct option longs[] = {{"ledger", required_argument, NULL, 'l'},
					      {"events", required_argument, NULL, 'e'},
					      {"quiet", no_argument, NULL, 'q'},
					      {"help", no_argument, NULL, 'h'},
					      {0}};
	int id;

	optind = 1;
	while ((id = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
		switch (id) {
		case 'l':
			replay->ledger = optarg;
			break;
		case 'e':
			replay->events = optarg;
			break;
		case 'q':
			replay->quiet = true;
			break;
		case 'h':
			print_help();
			return 1;
		default:
			return EXIT_USAGE + 1;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "nightclerk replay: give one recording; see nightclerk replay --help\n");
		return EXIT_USAGE + 1;
	}
	replay->path = argv[optind];
	return 0;
}

static int write_out(struct replay *replay)
{
	int err = 0;

	if (replay->ledger_file)
		err = output_write(replay->ledger_file, buffer_bytes(&replay->out.ledger), NULL);
	if (!err && replay->events_file)
		err = output_write(replay->events_file, buffer_bytes(&replay->out.events), NULL);
	buffer_clear(&replay->out.ledger);
	buffer_clear(&replay->out.events);
	return err;
}

static int open_recording(struct replay *replay)
{
	FILE *file = fopen(replay->path, "rbe");
	int err;

	if (!file) {
		fprintf(stderr, "nightclerk: cannot open %s: %s\n", replay->path, strerror(errno));
		return 1;
	}
	err = recording_reader_new(file, &replay->reader);
	if (err)
		fprintf(stderr, "nightclerk: %s: %s\n", replay->path,
			replay->reader ? recording_error(replay->reader) : strerror(-err));
	return err ? 1 : 0;
}

static int open_outputs(struct replay *replay)
{
	struct output_owner self = {(uid_t)-1, (gid_t)-1};
	char reason[OUTPUT_REASON_MAX];
	int err = 0;

	if (replay->ledger)
		err = output_open(replay->ledger, false, &self, &replay->ledger_file, reason);
	if (!err && replay->events)
		err = output_open(replay->events, true, &self, &replay->events_file, reason);
	if (err)
		fprintf(stderr, "nightclerk: %s\n", reason);
	return err ? 1 : 0;
}

static int open_pipeline(struct replay *replay)
{
	struct pipeline_options options = {.no_alerts = replay->quiet};
	const struct run_facts *facts = recording_facts(replay->reader);

	judge_options_defaults(&options.judge);
	if (judge_options_of_json(facts->options, &options.judge)) {
		fprintf(stderr, "nightclerk: %s: its options cannot be read\n", replay->path);
		return 1;
	}
	replay->pipeline = pipeline_new(facts, &options, &replay->out);
	if (!replay->pipeline)
		fprintf(stderr, "nightclerk: out of memory\n");
	return replay->pipeline ? 0 : 1;
}

/* A file that was cut has no closing input: its end is judged as far as it goes, and the gate cannot tell. */
static void close_cut(struct replay *replay, uint64_t now_ns)
{
	struct input drain = {.kind = INPUT_DRAIN, .now_ns = now_ns};
	struct input closing = {.kind = INPUT_CLOSING, .now_ns = now_ns, .closing = {.command_status = -1}};

	pipeline_feed(replay->pipeline, &drain);
	pipeline_feed(replay->pipeline, &closing);
}

static int play(struct replay *replay)
{
	enum recording_result result;
	struct input input;
	uint64_t now_ns = 0;
	int err = 0;

	while ((result = recording_next(replay->reader, &input)) == RECORDING_INPUT) {
		now_ns = input.now_ns;
		/* The command is over long ago: its status is in the summary event, not in ours. */
		pipeline_feed(replay->pipeline, &input);
		replay->closed |= input.kind == INPUT_CLOSING;
		while (pipeline_next_muted(replay->pipeline))
			;
		err = write_out(replay);
		if (err)
			break;
	}
	if (!err && !replay->closed) {
		close_cut(replay, now_ns);
		err = write_out(replay);
	}
	if (err) {
		fprintf(stderr, "nightclerk: cannot write: %s\n", strerror(-err));
		return 1;
	}
	if (result == RECORDING_END)
		return 0;
	fprintf(stderr, "nightclerk: %s: %s\n", replay->path, recording_error(replay->reader));
	return 1;
}

static int replay_run(struct replay *replay)
{
	int status = open_recording(replay);

	if (!status)
		status = open_outputs(replay);
	if (!status)
		status = open_pipeline(replay);
	if (status)
		return status;
	status = play(replay);
	if (!replay->quiet) {
		fwrite(replay->out.alerts.data, 1, replay->out.alerts.size, stderr);
		fprintf(stderr, "%s\n", pipeline_summary_line(replay->pipeline));
	}
	if (status)
		return status;
	status = pipeline_exit_status(replay->pipeline);
	return status == GATE_EXIT_FINDING || status == GATE_EXIT_INCOMPLETE ? status : 0;
}

int cmd_replay(int argc, char **argv)
{
	struct replay replay = {0};
	int status = parse(argc, argv, &replay);

	if (status)
		return status - 1;
	status = replay_run(&replay);
	pipeline_free(replay.pipeline);
	recording_reader_free(replay.reader);
	output_close(replay.ledger_file);
	output_close(replay.events_file);
	buffer_done(&replay.out.ledger);
	buffer_done(&replay.out.events);
	buffer_done(&replay.out.alerts);
	return status;
}
