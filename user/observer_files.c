/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a run: opened at the start, emptied or marked when it begins,
 * written at the end of each turn, whole or said not to be.
 */
#include "observer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static void write_lines(struct observer *observer, struct output *output, struct buffer *lines)
{
	const char *notice = NULL;
	int err;

	if (!output) {
		buffer_clear(lines);
		return;
	}
	err = output_write(output, buffer_bytes(lines), &notice);
	if (err != -ENOMEM)
		buffer_clear(lines);
	if (notice)
		fprintf(stderr, "nightclerk: %s %s\n", output_path(output), notice);
	if (err && err != -EAGAIN && !observer->write_failed) {
		observer->write_failed = true;
		fprintf(stderr, "nightclerk: cannot write %s: %s; lines are kept in memory and tried again, continuing\n",
			output_path(output), strerror(-err));
	}
	if (output_lost(output) && !observer->lines_lost) {
		observer->lines_lost = true;
		fprintf(stderr, "nightclerk: %s takes nothing and too much waits for it: lines are lost from here, continuing\n",
			output_path(output));
	}
}

/* The last try to write what waits. */
static void close_output(struct output *output)
{
	char *path = output ? strdup(output_path(output)) : NULL;
	uint64_t missing;
	int err;

	if (!output)
		return;
	output_flush(output);
	missing = output_unwritten(output) + output_lost(output);
	err = output_close(output);
	if (err)
		fprintf(stderr, "nightclerk: %s is not whole, %llu bytes are missing: %s\n", path ? path : "an output",
			(unsigned long long)missing, err == -EAGAIN || err == -ENOBUFS ? "it was not read" : strerror(-err));
	free(path);
}

void observer_write_out(struct observer *observer)
{
	write_lines(observer, observer->ledger, &observer->out.ledger);
	write_lines(observer, observer->events, &observer->out.events);
	write_lines(observer, observer->junit, &observer->out.junit);
	observer_write_store(observer);
}

/* Bytes that could not be written all the same. */
uint64_t observer_wait_for_readers(struct observer *observer)
{
	struct output *outputs[] = {observer->ledger, observer->events, observer->junit};
	uint64_t missing = 0;

	for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++) {
		if (!outputs[i])
			continue;
		output_flush(outputs[i]);
		missing += output_unwritten(outputs[i]) + output_lost(outputs[i]);
	}
	return missing;
}

static bool is_short(const struct output *output)
{
	return output && (output_unwritten(output) || output_lost(output));
}

bool observer_is_short(const struct observer *observer)
{
	return is_short(observer->ledger) || is_short(observer->events) || is_short(observer->junit);
}

int observer_keep_files_apart(const struct observer_options *options, char *reason)
{
	struct output_place places[5 + STORE_FILES] = {
		{"--ledger", options->ledger, false}, {"--events", options->events, true},
		{"--junit", options->junit, false},   {"--record", options->recording, false},
		{"--output", options->output, false},
	};
	struct store_files files;

	if (options->db)
		store_files_of(options->db, &files);
	for (size_t i = 0; options->db && i < STORE_FILES; i++)
		places[5 + i] = (struct output_place){"--db", files.path[i], false};
	return output_places_differ(places, sizeof(places) / sizeof(places[0]), reason);
}

int observer_open_files(struct observer *observer, char *reason)
{
	const struct observer_options *options = &observer->options;
	const struct {
		const char *path;
		struct output **output;
		bool special;
	} files[] = {
		{options->ledger, &observer->ledger, false},
		{options->events, &observer->events, true},
		{options->junit, &observer->junit, false},
		{options->recording, &observer->recording_file, false},
	};
	int err = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && !err; i++) {
		if (!files[i].path)
			continue;
		err = output_open(files[i].path, files[i].special, &options->owner, files[i].output, reason);
		if (!err)
			output_never_wait(*files[i].output);
	}
	if (!err)
		err = observer_keep_files_apart(options, reason);
	if (err || !options->recording)
		return err;
	/* What passes while the canary is awaited is part of it. */
	err = recording_writer_new(NULL, &observer->facts, &observer->recording);
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot begin a recording: %s", strerror(-err));
	return err;
}

static int begin_recording(struct observer *observer, char *reason)
{
	const char *path = observer->options.recording;
	int fd, err = output_make_private(observer->recording_file, reason);
	FILE *file;

	if (!err)
		err = output_truncate(observer->recording_file, reason);
	if (err)
		return err;
	fprintf(stderr, "nightclerk: %s will hold request and response bodies as they were sent, secrets included\n", path);
	fd = fcntl(output_fd(observer->recording_file), F_DUPFD_CLOEXEC, 0);
	file = fd < 0 ? NULL : fdopen(fd, "ab");
	err = file ? recording_writer_start(observer->recording, file) : -errno;
	if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "cannot write %s: %s; choose another place for the recording", path,
			 strerror(-err));
	if (!file && fd >= 0)
		close(fd);
	return err;
}

static void mark_running(struct observer *observer)
{
	const char *path = observer->options.ledger;
	bool unclean = false;
	int err = output_mark_running(observer->ledger, observer->facts.run_id, &unclean);

	if (err)
		fprintf(stderr, "nightclerk: cannot mark %s as in use: %s, continuing\n", path, strerror(-err));
	if (unclean)
		fprintf(stderr, "nightclerk: the last run that wrote %s ended unclean: its last lines may be missing\n", path);
}

int observer_begin(struct observer *observer, char *reason)
{
	int err = 0;

	observer->begun = true;
	if (observer->recording_file && observer->recording)
		err = begin_recording(observer, reason);
	if (!err && observer->junit)
		err = output_truncate(observer->junit, reason);
	if (!err && observer->ledger && observer->options.append_mark)
		mark_running(observer);
	return err;
}

void observer_close_files(struct observer *observer)
{
	void (*close_one)(struct output *output) = observer->begun ? close_output : output_abandon;

	close_one(observer->ledger);
	close_one(observer->events);
	close_one(observer->junit);
	close_one(observer->recording_file);
}
