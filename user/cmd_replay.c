/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk replay FILE`: a recording through the same pipeline, without
 * root and without a kernel: the same ledger, events and alerts, byte for byte.
 */
#include "clock.h"
#include "command_line.h"
#include "commands.h"
#include "duration.h"
#include "gate.h"
#include "output.h"
#include "playback.h"
#include "process.h"
#include "replay_screen.h"
#include "store_writer.h"

#define WRITE_BATCH_BYTES (64 * 1024)
#define SETTLE_MS (600 * 1000)		   /* nobody waits for a replay but who started it */
#define BOOKINGS_BYTES (24 * 1024 * 1024) /* handed to the store at once: large transactions write each page once */

struct replay {
	const char *path;
	const char *ledger;
	const char *events;
	const char *policy_path;
	const char *db;
	int64_t lease_ns;
	bool keep_results;
	bool quiet;
	bool screen;
	bool profiled;
	bool json;
	uint64_t cut;
	struct playback playback;
	struct profile profile;
	struct output *ledger_file;
	struct output *events_file;
	struct store_writer *store_writer; /* NULL = none was asked for */
	struct pipeline *pipeline;
	struct pipeline_output out;
};

static int usage(const char *option, const char *what)
{
	fprintf(stderr, "nightclerk replay: %s %s; see nightclerk replay --help\n", option, what);
	return EXIT_USAGE + 1;
}

/* What is wrong with the names of its files: 0, or the exit status + 1. */
static int look_at_names(const struct replay *replay)
{
	const struct output_place places[] = {
		{"--ledger", replay->ledger, false}, {"--events", replay->events, true}, {"--db", replay->db, false}};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		const char *wrong = places[i].path ? output_wrong_name(places[i].path, places[i].special) : NULL;

		if (wrong)
			return usage(places[i].option, wrong);
	}
	return 0;
}

/* 0 = go on, else the exit status + 1. */
static int parse(int argc, char **argv, struct replay *replay)
{
	struct option longs[COMMAND_OPTIONS_MAX];
	int id;

	command_long_options(COMMAND_LINE_REPLAY, longs);
	optind = 1;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		switch (id) {
		case OPTION_LEDGER:
			replay->ledger = optarg;
			break;
		case OPTION_EVENTS:
			replay->events = optarg;
			break;
		case OPTION_POLICY:
			replay->policy_path = optarg;
			break;
		case OPTION_DB:
			replay->db = optarg;
			break;
		case OPTION_KEEP_RESULTS:
			replay->keep_results = true;
			break;
		case OPTION_LEASE:
			if (duration_parse(optarg, &replay->lease_ns))
				return usage("--lease", DURATION_WANTED);
			break;
		case OPTION_QUIET:
			replay->quiet = true;
			break;
		case OPTION_CUT:
			replay->cut = strtoull(optarg, NULL, 10);
			if (replay->cut == 0)
				return usage("--cut", "takes a number from 1 on");
			break;
		case OPTION_SCREEN:
			replay->screen = true;
			break;
		case OPTION_PROFILE:
			replay->profiled = replay->quiet = true;
			break;
		case OPTION_JSON:
			replay->json = true;
			break;
		case OPTION_HELP:
		case 'h':
			command_help(COMMAND_LINE_REPLAY);
			return 1;
		default:
			command_line_complain_of_option("replay", id, argv[optind - 1]);
			return EXIT_USAGE + 1;
		}
	}
	if (optind + 1 != argc) {
		fprintf(stderr, "nightclerk replay: give one recording; see nightclerk replay --help\n");
		return EXIT_USAGE + 1;
	}
	replay->path = argv[optind];
	if (replay->screen && (replay->ledger || replay->events || replay->quiet || replay->cut)) {
		fprintf(stderr, "nightclerk replay: --screen only shows, and steps back and forth: give it --policy at most, "
				"and write files in a replay without it\n");
		return EXIT_USAGE + 1;
	}
	if (replay->json && !replay->profiled)
		return usage("--json", "says how to print a profile: give it --profile as well");
	return look_at_names(replay);
}

static int write_out(struct replay *replay, size_t at_least)
{
	int err = 0;

	if (replay->out.ledger.size < at_least && replay->out.events.size < at_least)
		return 0;
	profile_enter(replay->playback.profile, PROFILE_WRITING);
	if (replay->ledger_file)
		err = output_write(replay->ledger_file, buffer_bytes(&replay->out.ledger), NULL);
	if (!err && replay->events_file)
		err = output_write(replay->events_file, buffer_bytes(&replay->out.events), NULL);
	buffer_clear(&replay->out.ledger);
	buffer_clear(&replay->out.events);
	if (replay->out.bookings.size >= BOOKINGS_BYTES)
		store_writer_put(replay->store_writer, &replay->out.bookings, true);
	return err;
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

static int open_store(struct replay *replay)
{
	struct store_options how = {.path = replay->db, .owner = {(uid_t)-1, (gid_t)-1}, .create = true, .bulk = true};
	struct store_writer_options writer = {0};
	char reason[STORE_REASON_MAX];
	int err;

	if (!replay->db)
		return 0;
	store_run_of(recording_facts(replay->playback.reader), &replay->playback.judge, replay->lease_ns, &writer.run);
	err = store_open(&how, &writer.store, reason);
	if (!err)
		err = store_writer_new(&writer, &replay->store_writer);
	else
		fprintf(stderr, "nightclerk: %s\n", reason);
	return err ? 1 : 0;
}

/* What the store could not take: 0, or the exit status. */
static int close_store(struct replay *replay)
{
	struct store_counts counts;

	if (!replay->store_writer)
		return 0;
	store_writer_put(replay->store_writer, &replay->out.bookings, true);
	store_writer_settle(replay->store_writer, SETTLE_MS, &counts);
	if (counts.lost)
		fprintf(stderr, "nightclerk: %llu row%s missing in the store %s: %s\n", (unsigned long long)counts.lost,
			counts.lost == 1 ? " is" : "s are", replay->db, counts.reason);
	return counts.lost ? 1 : 0;
}

static int keep_files_apart(const struct replay *replay)
{
	struct output_place places[3 + STORE_FILES] = {
		{"the recording", replay->path, false}, {"--ledger", replay->ledger, false}, {"--events", replay->events, true}};
	struct store_files files;
	char reason[OUTPUT_REASON_MAX];

	if (replay->db)
		store_files_of(replay->db, &files);
	for (size_t i = 0; replay->db && i < STORE_FILES; i++)
		places[3 + i] = (struct output_place){"--db", files.path[i], false};
	if (output_places_differ(places, sizeof(places) / sizeof(places[0]), reason) == 0)
		return 0;
	fprintf(stderr, "nightclerk replay: %s\n", reason);
	return EXIT_USAGE;
}

static int open_pipeline(struct replay *replay)
{
	struct pipeline_options options = {
		.judge = replay->playback.judge,
		.policy = replay->playback.policy,
		.no_alerts = replay->quiet,
		.no_events = !replay->events,
		.bookings = replay->db != NULL,
		.keep_results = replay->keep_results,
		.profile = replay->profiled ? &replay->profile : NULL,
	};

	if (replay->profiled && playback_measure(&replay->playback, &replay->profile)) {
		fprintf(stderr, "nightclerk: out of memory\n");
		return 1;
	}
	replay->pipeline = pipeline_new(recording_facts(replay->playback.reader), &options, &replay->out);
	if (!replay->pipeline)
		fprintf(stderr, "nightclerk: out of memory\n");
	return replay->pipeline ? 0 : 1;
}

static int play(struct replay *replay)
{
	int status = 0, err = 0;

	if (replay->profiled)
		profile_start(&replay->profile, clock_monotonic_ns, clock_thread_ns);
	while (!err && playback_feed(&replay->playback, replay->pipeline))
		err = write_out(replay, WRITE_BATCH_BYTES);
	if (!err) {
		status = playback_finish(&replay->playback, replay->pipeline);
		err = write_out(replay, 0);
	}
	if (err)
		fprintf(stderr, "nightclerk: cannot write: %s\n", strerror(-err));
	return err ? 1 : status;
}

/* 0, or the exit status. */
static int print_profile(struct replay *replay)
{
	uint64_t requests = pipeline_summary(replay->pipeline)->requests;
	struct buffer text = {0};
	int err;

	profile_stop(&replay->profile);
	err = (replay->json ? profile_json : profile_table)(&replay->profile, requests ? requests : 1, &text);
	if (err)
		fprintf(stderr, "nightclerk: out of memory\n");
	fwrite(text.data, 1, text.size, stdout);
	buffer_done(&text);
	return err ? 1 : 0;
}

static int replay_run(struct replay *replay)
{
	int status = playback_open(&replay->playback, replay->path, replay->policy_path), store_status;

	replay->playback.cut = replay->cut;
	if (!status)
		status = open_outputs(replay);
	if (!status)
		status = keep_files_apart(replay); /* before SQLite takes one for its own */
	if (!status)
		status = open_store(replay);
	if (!status)
		status = keep_files_apart(replay);
	if (!status)
		status = open_pipeline(replay);
	if (status)
		return status;
	status = play(replay);
	store_status = close_store(replay);
	status = status ? status : store_status;
	if (!replay->quiet) {
		fwrite(replay->out.alerts.data, 1, replay->out.alerts.size, stderr);
		fprintf(stderr, "%s\n", pipeline_summary_line(replay->pipeline));
	}
	if (!status && replay->profiled)
		status = print_profile(replay);
	if (status)
		return status;
	/* The command is over long ago: its status is in the summary event, not in ours. */
	status = pipeline_exit_status(replay->pipeline);
	return status == GATE_EXIT_FINDING || status == GATE_EXIT_INCOMPLETE ? status : 0;
}

static bool close_output(struct output *output, const char *path)
{
	int err = output_close(output);

	if (err)
		fprintf(stderr, "nightclerk: %s is not whole: %s\n", path, strerror(-err));
	return err != 0;
}

int cmd_replay(int argc, char **argv)
{
	struct replay replay = {.lease_ns = STORE_LEASE_NS};
	int status = parse(argc, argv, &replay);

	if (status)
		return status - 1;
	if (replay.screen)
		status = replay_screen(replay.path, replay.policy_path);
	if (replay.screen && status >= 0)
		return status;
	status = replay_run(&replay);
	pipeline_free(replay.pipeline);
	playback_close(&replay.playback);
	store_writer_free(replay.store_writer);
	bookings_clear(&replay.out.bookings);
	buffer_done(&replay.out.bookings);
	if (close_output(replay.ledger_file, replay.ledger) | close_output(replay.events_file, replay.events))
		status = 1;
	buffer_done(&replay.out.ledger);
	buffer_done(&replay.out.events);
	buffer_done(&replay.out.alerts);
	return status;
}
