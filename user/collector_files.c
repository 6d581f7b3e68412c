/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor opens, the collector writes. A file that cannot be opened or
 * written keeps its lines in memory (output.h) until it can be again.
 */
#include "collector_parts.h"
#include "limits.h"

#include <errno.h>
#include <stdio.h>

#define RETRY_NS (1000 * 1000 * 1000ULL)

static const char *const file_names[MONITOR_FILE_COUNT] = {"call_ledger.jsonl", "events.jsonl"};

static void complain(const struct book *book, enum monitor_file file, const char *what, int err)
{
	fprintf(stderr, "nightclerk: cannot %s %s/%s: %s; lines are kept in memory and tried again, continuing\n", what, book->name,
		file_names[file], strerror(-err));
}

/* The file, opened now or anew; what waits for an old one goes there first. */
static void open_file(struct collector *collector, struct book *book, enum monitor_file file, uint64_t now_ns)
{
	struct book_file *at = &book->files[file];
	char path[MONITOR_NAME_MAX + 32];
	int fd, err;

	if (now_ns < at->retry_ns || (at->output && output_unwritten(at->output)))
		return;
	err = collector_ask_file(collector, MONITOR_OPEN, book, file, &fd);
	snprintf(path, sizeof(path), "%s/%s", book->name, file_names[file]);
	if (!err && at->output)
		output_switch(at->output, fd);
	else if (!err)
		err = output_adopt(fd, path, &at->output);
	at->retry_ns = err ? now_ns + RETRY_NS : 0;
	at->reopen = err != 0;
	if (err && err != -ECONNRESET && !at->said)
		complain(book, file, "open", err);
	at->said = err != 0;
}

static struct buffer *lines_of(struct book *book, enum monitor_file file)
{
	return file == MONITOR_LEDGER ? &book->out->ledger : &book->out->events;
}

/* There is no file yet: the lines stay where they are, as long as there is room. */
static void keep_waiting(struct book_file *at, struct buffer *lines)
{
	if (lines->size <= LIMIT_UNWRITTEN_BYTES)
		return;
	at->lost_bytes += lines->size;
	buffer_clear(lines);
}

static void write_file(struct collector *collector, struct book *book, enum monitor_file file, uint64_t now_ns)
{
	struct book_file *at = &book->files[file];
	struct buffer *lines = lines_of(book, file);
	const char *notice = NULL;
	uint64_t lost;
	int err;

	if (at->reopen || (!at->output && lines->size))
		open_file(collector, book, file, now_ns);
	if (!at->output) {
		keep_waiting(at, lines);
		return;
	}
	lost = output_lost(at->output);
	err = output_write(at->output, buffer_bytes(lines), &notice);
	if (err != -ENOMEM)
		buffer_clear(lines);
	if (notice)
		fprintf(stderr, "nightclerk: %s %s\n", output_path(at->output), notice);
	if (err && !at->said)
		complain(book, file, "write", err);
	if (!err && at->said)
		fprintf(stderr, "nightclerk: %s can be written again\n", output_path(at->output));
	if (lost == 0 && output_lost(at->output))
		fprintf(stderr, "nightclerk: %s takes nothing and too much waits for it: lines are lost from here, continuing\n",
			output_path(at->output));
	at->said = err != 0;
}

void collector_write(struct collector *collector, struct book *book, uint64_t now_ns)
{
	for (int file = 0; file < MONITOR_FILE_COUNT; file++)
		write_file(collector, book, (enum monitor_file)file, now_ns);
}

bool collector_is_written(const struct book *book)
{
	for (int file = 0; file < MONITOR_FILE_COUNT; file++)
		if (book->files[file].output && output_unwritten(book->files[file].output))
			return false;
	return book->out->ledger.size == 0 && book->out->events.size == 0;
}

uint64_t collector_flush(struct book *book)
{
	uint64_t missing = book->out->ledger.size + book->out->events.size;

	for (int file = 0; file < MONITOR_FILE_COUNT; file++) {
		struct output *output = book->files[file].output;

		missing += book->files[file].lost_bytes;
		if (!output)
			continue;
		output_flush(output);
		missing += output_unwritten(output) + output_lost(output);
	}
	return missing;
}

void collector_close(struct book *book)
{
	uint64_t missing = collector_flush(book);

	for (int file = 0; file < MONITOR_FILE_COUNT; file++) {
		output_close(book->files[file].output);
		book->files[file].output = NULL;
	}
	if (missing)
		fprintf(stderr, "nightclerk: the files of %s are not whole, %llu bytes are missing\n", book->name,
			(unsigned long long)missing);
}
