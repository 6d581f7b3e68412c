/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The monitor opens, the collector writes. What cannot be written waits in
 * memory (rotated_file.h) until it can be.
 */
#include "collector_parts.h"
#include "clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const file_names[AUDIT_FILE_COUNT] = {"call_ledger.jsonl", "events.jsonl"};

static int ask(void *context, bool rotate)
{
	const struct book_file *at = context;
	int fd, err = collector_ask_file(at->collector, rotate ? MONITOR_ROTATE : MONITOR_OPEN, at->tenant, at->kind, &fd);

	return err ? err : fd;
}

static int begin_file(struct collector *collector, struct book *book, enum audit_file kind)
{
	struct book_file *at = &book->files[kind];
	const struct rotated_file_source source = {ask, at};
	char name[TENANT_NAME_BYTES + 32];

	at->collector = collector;
	at->tenant = book->tenant;
	at->kind = kind;
	snprintf(name, sizeof(name), "%s/%s", tenant_name(book->tenant), file_names[kind]);
	at->file = rotated_file_new(name, &collector->options->rotation, &source);
	return at->file ? 0 : -ENOMEM;
}

static struct buffer *lines_of(struct book *book, enum audit_file kind)
{
	struct pipeline_output *out = tenant_output(book->tenant);

	return kind == AUDIT_LEDGER ? &out->ledger : &out->events;
}

static void say_how_it_went(struct book_file *at, int err, bool lost_before, const char *notice)
{
	const char *tenant = tenant_name(at->tenant), *name = file_names[at->kind];

	if (notice)
		fprintf(stderr, "nightclerk: %s/%s %s\n", tenant, name, notice);
	if (err && !at->said)
		fprintf(stderr, "nightclerk: cannot write %s/%s: %s; lines are kept in memory and tried again, continuing\n", tenant, name,
			strerror(-err));
	if (!err && at->said)
		fprintf(stderr, "nightclerk: %s/%s can be written again\n", tenant, name);
	if (!lost_before && rotated_file_lost(at->file))
		fprintf(stderr, "nightclerk: %s/%s takes nothing and too much waits for it: lines are lost from here, continuing\n", tenant,
			name);
	at->said = err != 0;
}

static void write_file(struct collector *collector, struct book *book, enum audit_file kind, uint64_t now_ns)
{
	struct book_file *at = &book->files[kind];
	struct buffer *lines = lines_of(book, kind);
	const char *notice = NULL;
	bool lost_before;
	int err;

	if (!at->file && (lines->size == 0 || begin_file(collector, book, kind)))
		return; /* where there is no memory, the lines stay where they are */
	lost_before = rotated_file_lost(at->file) != 0;
	err = rotated_file_write(at->file, buffer_bytes(lines), now_ns, clock_wall_ns(), &notice);
	if (err != -ENOMEM)
		buffer_clear(lines);
	say_how_it_went(at, err, lost_before, notice);
}

static bool is_written(struct book *book)
{
	for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++) {
		const struct rotated_file *file = book->files[kind].file;

		if (lines_of(book, (enum audit_file)kind)->size || (file && rotated_file_unwritten(file)))
			return false;
	}
	return true;
}

/* ---- all of them ---- */

/* A book for each tenant that came since: tenants are told in the order of their birth, and so are the books. False: out of memory. */
static bool find_new(struct collector *collector)
{
	struct book **at = &collector->books;

	for (struct tenant *tenant = tenants_next(collector->tenants, NULL); tenant; tenant = tenants_next(collector->tenants, tenant)) {
		if (!*at) {
			*at = calloc(1, sizeof(**at));
			if (!*at)
				return false;
			(*at)->tenant = tenant;
		}
		at = &(*at)->next;
	}
	return true;
}

static uint64_t missing_of(struct book *book)
{
	uint64_t missing = 0;

	for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++) {
		const struct rotated_file *file = book->files[kind].file;

		missing += lines_of(book, (enum audit_file)kind)->size;
		missing += file ? rotated_file_unwritten(file) + rotated_file_lost(file) : 0;
	}
	return missing;
}

/* With its tenant, who has ended. */
static void close_book(struct collector *collector, struct book *book)
{
	uint64_t missing = missing_of(book);

	if (missing)
		fprintf(stderr, "nightclerk: the files of %s are not whole, %llu bytes are missing\n", tenant_name(book->tenant),
			(unsigned long long)missing);
	for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++)
		rotated_file_close(book->files[kind].file);
	collector_say_closed(collector, book->tenant);
	collector_leave_store(collector, book->tenant);
	tenants_forget(collector->tenants, book->tenant);
	free(book);
}

bool collector_write(struct collector *collector, uint64_t now_ns)
{
	bool written = find_new(collector);
	struct book **at = &collector->books, *book;

	while ((book = *at)) {
		collector_store(collector, book->tenant);
		for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++)
			if (lines_of(book, (enum audit_file)kind)->size)
				write_file(collector, book, (enum audit_file)kind, now_ns);
		written &= is_written(book);
		if (tenant_ended(book->tenant) && is_written(book)) {
			*at = book->next;
			close_book(collector, book);
		} else {
			at = &book->next;
		}
	}
	return written;
}

void collector_reopen(struct collector *collector)
{
	for (struct book *book = collector->books; book; book = book->next)
		for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++)
			if (book->files[kind].file)
				rotated_file_reopen(book->files[kind].file);
	if (collector->stores)
		stores_reopen(collector->stores);
	collector_look_at_files(collector, clock_monotonic_ns());
}

void collector_look_at_files(struct collector *collector, uint64_t now_ns)
{
	for (struct book *book = collector->books; book; book = book->next)
		for (int kind = 0; kind < AUDIT_FILE_COUNT; kind++)
			if (book->files[kind].file)
				write_file(collector, book, (enum audit_file)kind, now_ns);
}

uint64_t collector_flush(struct collector *collector)
{
	uint64_t missing = 0;

	for (struct book *book = collector->books; book; book = book->next)
		missing += missing_of(book);
	return missing;
}

void collector_close(struct collector *collector)
{
	struct book *book;

	while ((book = collector->books)) {
		collector->books = book->next;
		close_book(collector, book);
	}
}
