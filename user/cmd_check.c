/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk check FILE...`: judges ledgers, events files and recordings again,
 * without root, and gates. All ledgers and events files are judged together;
 * each recording goes through a pipeline of its own.
 */
#include "check_lines.h"
#include "command_line.h"
#include "commands.h"
#include "gate.h"
#include "json_text.h"
#include "junit.h"
#include "playback.h"
#include "policy_file.h"
#include "say.h"

#include <errno.h>

#define FILE_BYTES_MAX (2ULL * 1024 * 1024 * 1024)
#define UNREADABLE 1

enum check_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_JUNIT };

/* What came out of one recording, or of all lines. */
struct part {
	const struct alerts *alerts;
	const struct summary *summary;
	const struct judge_options *options;
	const struct run_facts *run;
};

struct recorded {
	struct playback playback;
	struct pipeline *pipeline;
	struct pipeline_output out;
};

struct check_command {
	struct check_overrides overrides;
	const char *policy_path;
	enum check_format format;
	char **paths;
	int path_count;
	struct policy *policy;
	struct check_lines *lines; /* NULL while no file of lines was given */
	struct buffer *texts;	   /* of the files of lines */
	size_t text_count;
	struct recorded *recorded;
	size_t recorded_count;
	struct buffer broken; /* JSON array elements: the lines that could not be read */
	size_t broken_count;
	bool unreadable;
};

/* ---- the command line ---- */

static int usage(const char *what)
{
	fprintf(stderr, "nightclerk check: %s; see nightclerk check --help\n", what);
	return EXIT_USAGE + 1;
}

static int parse_format(const char *text, enum check_format *ret_format)
{
	static const char *const names[] = {"text", "json", "junit"};

	for (int format = FORMAT_TEXT; format <= FORMAT_JUNIT; format++)
		if (strcmp(text, names[format]) == 0) {
			*ret_format = (enum check_format)format;
			return 0;
		}
	return usage("--format takes text, json or junit");
}

/* 0 = go on, else the exit status + 1. */
static int take(int id, const char *value, struct check_command *command)
{
	switch (id) {
	case OPTION_POLICY:
		command->policy_path = value;
		return 0;
	case OPTION_FAIL_ON:
		command->overrides.has_fail_on = true;
		return severity_parse(bytes_of_string(value), &command->overrides.fail_on)
			       ? usage("--fail-on takes info, low, medium or high") : 0;
	case OPTION_STRICT:
		command->overrides.strict = true;
		return 0;
	case OPTION_ALLOW_INCOMPLETE:
		command->overrides.allow_incomplete = true;
		return 0;
	case OPTION_FORMAT:
		return parse_format(value, &command->format);
	case OPTION_HELP:
	case 'h':
		command_help(COMMAND_LINE_CHECK);
		return 1;
	default:
		return EXIT_USAGE + 1;
	}
}

static int parse(int argc, char **argv, struct check_command *command)
{
	struct option longs[COMMAND_OPTIONS_MAX];
	int id, status = 0;

	command_long_options(COMMAND_LINE_CHECK, longs);
	optind = 1;
	opterr = 0;
	while (!status && (id = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (id == ':' || id == '?')
			command_line_complain_of_option("check", id, argv[optind - 1]);
		status = take(id, optarg, command);
	}
	if (!status && optind == argc)
		status = usage("give a ledger, an events file or a recording");
	command->paths = argv + optind;
	command->path_count = argc - optind;
	return status;
}

/* ---- reading ---- */

static int cannot_read(struct check_command *command, const char *path, int err)
{
	fprintf(stderr, "nightclerk: cannot read %s: %s\n", path, strerror(-err));
	command->unreadable = true;
	return err;
}

static int read_all(FILE *file, struct buffer *text)
{
	size_t got;
	int err;

	do {
		err = text->size > FILE_BYTES_MAX ? -EFBIG : buffer_reserve(text, 64 * 1024);
		if (err)
			return err;
		errno = 0;
		got = fread(text->data + text->size, 1, text->capacity - text->size, file);
		text->size += got;
	} while (got);
	if (ferror(file))
		return errno ? -errno : -EIO;
	return 0;
}

/* Names a line that cannot be used, and goes on. */
static int note_broken(struct check_command *command, const char *path, uint64_t number, const char *wrong)
{
	struct json_writer json;

	fprintf(stderr, "nightclerk: %s:%llu: %s; skipped\n", path, (unsigned long long)number, wrong);
	if (command->broken_count++ && buffer_append_byte(&command->broken, ','))
		return -ENOMEM;
	json_writer_init(&json, &command->broken);
	json_object_open(&json);
	json_key(&json, "file");
	json_text(&json, path);
	json_key(&json, "line");
	json_unsigned(&json, number);
	json_key(&json, "reason");
	json_text(&json, wrong);
	json_object_close(&json);
	return json_writer_error(&json);
}

static int add_lines(struct check_command *command, const char *path, struct bytes text)
{
	uint64_t number = 0;
	int err = 0;

	if (!bytes_trim(text).size)
		check_lines_empty(command->lines);
	while (text.size && !err) {
		struct bytes line = bytes_take(&text, bytes_find(text, '\n'));
		const char *wrong;

		bytes_take(&text, 1);
		number++;
		if (bytes_trim(line).size == 0)
			continue;
		wrong = check_lines_add(command->lines, line);
		if (wrong)
			err = note_broken(command, path, number, wrong);
	}
	return err;
}

static int out_of_memory(void)
{
	fprintf(stderr, "nightclerk: out of memory\n");
	return UNREADABLE;
}

static int take_lines(struct check_command *command, const char *path, FILE *file, struct bytes begin)
{
	struct buffer *text = &command->texts[command->text_count];
	int err = buffer_append(text, begin);

	if (!err)
		err = read_all(file, text);
	fclose(file);
	command->text_count++;
	if (err)
		return cannot_read(command, path, err);
	if (!command->lines)
		command->lines = check_lines_new(&command->overrides, command->policy);
	if (!command->lines)
		return -ENOMEM;
	return add_lines(command, path, buffer_bytes(text));
}

/* 0, or the exit status. */
static int take_recording(struct check_command *command, const char *path, FILE *file, struct bytes begin)
{
	struct recorded *recorded = &command->recorded[command->recorded_count];
	struct pipeline_options options = {0};
	int status = playback_open_begun(&recorded->playback, path, file, begin, command->policy_path);

	if (status) {
		playback_close(&recorded->playback);
		return status;
	}
	check_options(&command->overrides, NULL, &recorded->playback.judge);
	options.judge = recorded->playback.judge;
	options.policy = recorded->playback.policy;
	recorded->pipeline = pipeline_new(recording_facts(recorded->playback.reader), &options, &recorded->out);
	if (!recorded->pipeline) {
		playback_close(&recorded->playback);
		return out_of_memory();
	}
	command->recorded_count++;
	while (playback_feed(&recorded->playback, recorded->pipeline)) {
		buffer_clear(&recorded->out.ledger);
		buffer_clear(&recorded->out.events);
	}
	return playback_finish(&recorded->playback, recorded->pipeline);
}

/* Opened and read once: a pipe says nothing twice. 0, or -ENOMEM. */
static int take_file(struct check_command *command, const char *path)
{
	uint8_t begin[RECORDING_MAGIC_BYTES];
	FILE *file = fopen(path, "rbe");
	struct bytes begun = {begin, 0};

	if (!file) {
		cannot_read(command, path, -errno);
		return 0;
	}
	begun.size = fread(begin, 1, sizeof(begin), file);
	if (!recording_is_begun(begun))
		return take_lines(command, path, file, begun) == -ENOMEM ? -ENOMEM : 0;
	command->unreadable |= take_recording(command, path, file, begun) != 0;
	return 0;
}

/* 0, or the exit status of what keeps everything from being judged. */
static int take_files(struct check_command *command)
{
	command->texts = calloc((size_t)command->path_count, sizeof(*command->texts));
	command->recorded = calloc((size_t)command->path_count, sizeof(*command->recorded));
	if (!command->texts || !command->recorded)
		return out_of_memory();
	for (int i = 0; i < command->path_count; i++)
		if (take_file(command, command->paths[i]))
			return out_of_memory();
	return command->lines && check_lines_judge(command->lines) ? out_of_memory() : 0;
}

/* ---- the parts ---- */

/* The i-th part; false after the last. */
static bool part_at(const struct check_command *command, size_t i, struct part *ret_part)
{
	const struct recorded *recorded;

	if (command->lines && i == 0) {
		*ret_part = (struct part){check_lines_alerts(command->lines), check_lines_summary(command->lines),
					  check_lines_options(command->lines), check_lines_run(command->lines)};
		return true;
	}
	i -= command->lines != NULL;
	if (i >= command->recorded_count)
		return false;
	recorded = &command->recorded[i];
	*ret_part = (struct part){pipeline_alerts(recorded->pipeline), pipeline_summary(recorded->pipeline),
				  &recorded->playback.judge, recording_facts(recorded->playback.reader)};
	return true;
}

/* A finding anywhere outranks what cannot be told elsewhere. */
static int exit_status(const struct check_command *command)
{
	struct part part;
	int status = 0;

	if (command->unreadable)
		return UNREADABLE;
	for (size_t i = 0; part_at(command, i, &part); i++) {
		int own = part.summary->exit_status;

		if (own == GATE_EXIT_FINDING || (own == GATE_EXIT_INCOMPLETE && status == 0))
			status = own;
	}
	return status;
}

/* ---- output ---- */

static int print_text(const struct check_command *command)
{
	struct alert_style style = {0};
	struct buffer out = {0};
	char sentence[4096];
	const char *notice;
	int err = 0;

	if (command->lines) {
		err = alerts_all(check_lines_alerts(command->lines), SEVERITY_LOW, 0, &style, &out);
		for (size_t i = 0; !err && (notice = check_lines_notice(command->lines, i)); i++)
			err = say(&out, "nightclerk: %s\n", notice);
		check_lines_sentence(command->lines, sentence, sizeof(sentence));
		if (!err)
			err = say(&out, "%s\n", sentence);
	}
	for (size_t i = 0; !err && i < command->recorded_count; i++) {
		const struct recorded *recorded = &command->recorded[i];

		err = buffer_append(&out, buffer_bytes(&recorded->out.alerts));
		if (!err)
			err = say(&out, "%s\n", pipeline_summary_line(recorded->pipeline));
	}
	fwrite(out.data, 1, out.size, stdout);
	buffer_done(&out);
	return err;
}

static void write_key_text(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	json_text(json, text);
}

static void write_key_number(struct json_writer *json, const char *key, uint64_t number)
{
	json_key(json, key);
	json_unsigned(json, number);
}

static void write_masked(struct json_writer *json, const char *equal_except)
{
	char text[4096] = "";

	if (equal_except)
		snprintf(text, sizeof(text), "equal except %s", equal_except);
	write_key_text(json, "masked", equal_except ? text : NULL);
}

static int write_finding(struct json_writer *json, const struct part *part, const struct judgement *judgement,
			 struct bytes call)
{
	struct bytes method = {call.data, bytes_find(call, ' ')};
	struct buffer text = {0};
	int err = finding_evidence_of(judgement, method.size ? method : BYTES("request"), &text);

	json_object_open(json);
	write_key_text(json, "finding", finding_name(judgement->verdict.finding));
	write_key_text(json, "severity", severity_name(judgement->verdict.severity));
	json_key(json, "call");
	json_string(json, call);
	write_key_text(json, "run", part->run->run_id);
	json_key(json, "of");
	json_hex(json, judgement->call_id, CALL_ID_BYTES);
	json_key(json, "earlier");
	json_hex(json, judgement->earlier_id, CALL_ID_BYTES);
	write_key_number(json, "attempt", judgement->attempt);
	write_key_number(json, "attempts", judgement->attempts);
	json_key(json, "cross_process");
	json_boolean(json, judgement->verdict.cross_process);
	write_masked(json, judgement->equal_except);
	write_key_text(json, "rule", judgement->verdict.rule);
	json_key(json, "text");
	json_string(json, buffer_bytes(&text));
	write_key_text(json, "next", finding_next_step(judgement->verdict.finding));
	json_object_close(json);
	buffer_done(&text);
	return err;
}

/* The worst pair of every group of attempts. */
static int write_findings(const struct check_command *command, struct json_writer *json)
{
	const struct judgement *judgement;
	struct part part;
	int err = 0;

	json_key(json, "findings");
	json_array_open(json);
	for (size_t i = 0; part_at(command, i, &part); i++) {
		const void *position = NULL;
		struct bytes call;

		while (!err && (judgement = alerts_next(part.alerts, &position, &call)))
			err = write_finding(json, &part, judgement, call);
	}
	json_array_close(json);
	return err;
}

static void write_reasons(const struct check_command *command, struct json_writer *json)
{
	const char *notice;
	struct part part;

	json_key(json, "incomplete");
	json_array_open(json);
	for (size_t i = 0; part_at(command, i, &part); i++)
		for (size_t j = 0; j < part.summary->incomplete_count; j++)
			json_text(json, part.summary->incomplete[j]);
	json_array_close(json);
	json_key(json, "notices");
	json_array_open(json);
	for (size_t i = 0; command->lines && (notice = check_lines_notice(command->lines, i)); i++)
		json_text(json, notice);
	json_array_close(json);
	json_key(json, "broken_lines");
	json_array_open(json);
	json_raw(json, buffer_bytes(&command->broken));
	json_array_close(json);
}

static int print_json(const struct check_command *command)
{
	uint64_t requests = 0, mutating = 0;
	struct json_writer json;
	struct buffer out = {0};
	struct part part;
	int err;

	for (size_t i = 0; part_at(command, i, &part); i++) {
		requests += part.summary->requests;
		mutating += part.summary->mutating;
	}
	json_writer_init(&json, &out);
	json_object_open(&json);
	write_key_number(&json, "exit", (uint64_t)exit_status(command));
	write_key_number(&json, "requests", requests);
	write_key_number(&json, "mutating", mutating);
	err = write_findings(command, &json);
	write_reasons(command, &json);
	json_object_close(&json);
	if (!err)
		err = json_writer_error(&json);
	if (!err)
		err = buffer_append_byte(&out, '\n');
	if (!err)
		fwrite(out.data, 1, out.size, stdout);
	buffer_done(&out);
	return err;
}

static size_t collect_findings(const struct check_command *command, struct junit_finding *findings, size_t max)
{
	struct part part;
	size_t count = 0;

	for (size_t i = 0; part_at(command, i, &part); i++) {
		const void *position = NULL;

		while (count < max) {
			findings[count].judgement = alerts_next(part.alerts, &position, &findings[count].call);
			if (!findings[count].judgement)
				break;
			count++;
		}
	}
	return count;
}

/* One suite for all parts; the options of the first say what fails. */
static int print_junit(const struct check_command *command)
{
	const char *incomplete[64];
	uint64_t blind[BLIND_COUNT] = {0};
	struct junit_report report = {.incomplete = incomplete, .blind_streams = blind};
	struct junit_finding *findings = calloc(ALERT_GROUPS_MAX + 1, sizeof(*findings));
	struct buffer out = {0};
	struct part part;
	int err;

	if (!findings)
		return -ENOMEM;
	for (size_t i = 0; part_at(command, i, &part); i++) {
		report.run = report.run ? report.run : part.run;
		report.options = report.options ? report.options : part.options;
		report.wall_ms += part.summary->closing->wall_ms;
		for (size_t j = 0; j < part.summary->incomplete_count && report.incomplete_count < 64; j++)
			incomplete[report.incomplete_count++] = part.summary->incomplete[j];
		for (int kind = 0; kind < BLIND_COUNT; kind++)
			blind[kind] += part.summary->blind_streams[kind];
	}
	report.findings = findings;
	report.finding_count = collect_findings(command, findings, ALERT_GROUPS_MAX);
	err = report.run ? junit_text(&report, &out) : 0;
	fwrite(out.data, 1, out.size, stdout);
	buffer_done(&out);
	free(findings);
	return err;
}

static int print(const struct check_command *command)
{
	switch (command->format) {
	case FORMAT_JSON:
		return print_json(command);
	case FORMAT_JUNIT:
		return print_junit(command);
	case FORMAT_TEXT:
		break;
	}
	return print_text(command);
}

static void check_done(struct check_command *command)
{
	for (size_t i = 0; i < command->recorded_count; i++) {
		struct recorded *recorded = &command->recorded[i];

		pipeline_free(recorded->pipeline);
		playback_close(&recorded->playback);
		buffer_done(&recorded->out.ledger);
		buffer_done(&recorded->out.events);
		buffer_done(&recorded->out.alerts);
	}
	check_lines_free(command->lines);
	for (size_t i = 0; i < command->text_count; i++)
		buffer_done(&command->texts[i]);
	free(command->recorded);
	free(command->texts);
	buffer_done(&command->broken);
	policy_free(command->policy);
}

int cmd_check(int argc, char **argv)
{
	struct check_command command = {0};
	int status = parse(argc, argv, &command);

	if (status)
		return status - 1;
	if (command.policy_path && policy_file_read(command.policy_path, &command.policy))
		return EXIT_USAGE;
	status = take_files(&command);
	if (!status) {
		int err = print(&command);

		status = exit_status(&command);
		if (!err && (fflush(stdout) || ferror(stdout)))
			err = errno ? -errno : -EIO;
		if (err) {
			fprintf(stderr, "nightclerk: cannot write what was found: %s\n", strerror(-err));
			status = UNREADABLE;
		}
	}
	check_done(&command);
	return status;
}
