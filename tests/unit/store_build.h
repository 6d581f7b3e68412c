/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A store in a directory of its own, bookings in short form, and questions in
 * SQL. Time starts at second 1000; attempt n begins at second 1000 + n.
 */
#ifndef NIGHTCLERK_STORE_BUILD_H
#define NIGHTCLERK_STORE_BUILD_H

#include "store_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <linux/limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define NOBODY_ELSE {(uid_t)-1, (gid_t)-1}
#define THE_SUM "SELECT status, COUNT(*), SUM(prompt_tokens+output_tokens) FROM calls GROUP BY status"
#define CALL_ROW "SELECT status, reason, attempts, billed, wasted_tokens, prompt_tokens, output_tokens FROM calls"
#define FIXTURE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_start, fixture_end)

struct fixture {
	char directory[64];
	char path[128];
	struct store *store;
	struct store_run run;
	struct buffer bookings;
	struct store_world world;
	struct store_process process; /* pid 0 = the caller is nobody in particular */
	int64_t ttl_ns;
	char answer[8192]; /* of ask() */
	char result_text[256];
	struct past_attempt past[4];
	size_t past_count;
};

static inline const char *in_directory(struct fixture *f, const char *name, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/%s", f->directory, name);
	return path;
}

static inline void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static inline long file_bytes(const char *path)
{
	struct stat stat_of;

	assert_int_equal(stat(path, &stat_of), 0);
	return (long)stat_of.st_size;
}

static inline void reopen(struct fixture *f)
{
	struct store_options options = {.path = f->path, .owner = NOBODY_ELSE, .create = true};
	char reason[STORE_REASON_MAX] = "";

	store_close(f->store);
	f->store = NULL;
	if (store_open(&options, &f->store, reason))
		fail_msg("%s", reason);
}

static inline int fixture_start(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	snprintf(f->directory, sizeof(f->directory), "/tmp/nightclerk-store-XXXXXX");
	if (!mkdtemp(f->directory))
		return -1;
	snprintf(f->path, sizeof(f->path), "%s/calls.db", f->directory);
	snprintf(f->run.id, sizeof(f->run.id), "00c0ffee00c0ffee");
	snprintf(f->run.schema_version, sizeof(f->run.schema_version), "v1");
	f->run.lease_ns = 900 * SECOND;
	f->world.now_ns = 1000 * SECOND;
	hex_of(f->run.boot_id, sizeof(f->run.boot_id), f->world.boot);
	reopen(f);
	*state = f;
	return 0;
}

static inline int fixture_end(void **state)
{
	struct fixture *f = *state;
	DIR *directory = opendir(f->directory);
	struct dirent *entry;
	char path[PATH_MAX];

	store_close(f->store);
	bookings_clear(&f->bookings);
	buffer_done(&f->bookings);
	while (directory && (entry = readdir(directory)))
		unlink(in_directory(f, entry->d_name, path));
	if (directory)
		closedir(directory);
	rmdir(f->directory);
	free(f);
	return 0;
}

/* The rows of the answer, columns joined by |, rows by LF; like the shell, through a connection of its own. */
static inline const char *ask(struct fixture *f, const char *sql)
{
	sqlite3_stmt *statement = NULL;
	size_t n = 0;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(f->path, &db), SQLITE_OK);
	sqlite3_busy_timeout(db, 60000); /* a writer sweeps when it starts */
	if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	f->answer[0] = '\0';
	while (sqlite3_step(statement) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(statement); i++) {
			const char *text = (const char *)sqlite3_column_text(statement, i);

			n += (size_t)snprintf(f->answer + n, sizeof(f->answer) - n, "%s%s", i ? "|" : n ? "\n" : "", text ? text : "");
		}
	}
	if (sqlite3_finalize(statement) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
	return f->answer;
}

/* ---- bookings ---- */

static inline struct booked_attempt attempt_of(unsigned int n, unsigned int key)
{
	struct booked_attempt attempt = {
		.has_key = key != 0,
		.at_ns = (1000 + n) * SECOND,
		.sent_ns = (1000 + n) * SECOND,
		.comm = "agent",
		.server = "127.0.0.1:8080",
		.model = "a-model",
		.path = "/v1/chat/completions",
		.usage = {-1, -1, -1, -1, -1, false, false},
		.facts = {.first_ns = (1000 + n) * SECOND, .tgid = 1000 + n, .process_start_ns = 70000000},
	};

	memcpy(attempt.facts.id, &n, sizeof(n));
	memcpy(attempt.key.byte, &key, sizeof(key));
	return attempt;
}

static inline void add_attempt(struct fixture *f, const struct booked_attempt *attempt)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_ATTEMPT;
	booking.attempt = *attempt;
	assert_int_equal(buffer_append(&f->bookings, (struct bytes){(const uint8_t *)&booking, sizeof(booking)}), 0);
}

static inline void add_open(struct fixture *f, unsigned int n, unsigned int key)
{
	struct booked_attempt attempt = attempt_of(n, key);

	add_attempt(f, &attempt);
}

/* input, output: -1 = not reported; both -1: no usage at all. */
static inline void add_ended(struct fixture *f, unsigned int n, unsigned int key, enum attempt_outcome outcome,
			     unsigned int status, int64_t input, int64_t output)
{
	struct booked_attempt attempt = attempt_of(n, key);

	attempt.outcome = outcome;
	attempt.over = true;
	attempt.facts.status = (uint16_t)status;
	attempt.response_complete = outcome == OUTCOME_ANSWERED || outcome == OUTCOME_STATUS;
	attempt.usage.input_tokens = input;
	attempt.usage.output_tokens = output;
	attempt.usage.seen = input >= 0 || output >= 0;
	attempt.usage.final = outcome == OUTCOME_ANSWERED;
	attempt.billed = status == 200 && attempt.usage.seen;
	add_attempt(f, &attempt);
}

static inline void add_finding(struct fixture *f, unsigned int n, const char *finding, const char *severity, bool alone)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_FINDING;
	booking.finding = (struct booked_finding){
		.finding = finding, .severity = severity, .alone = alone, .attempt = n, .attempts = n, .at_ns = (1000 + n) * SECOND};
	memcpy(booking.finding.id, &n, sizeof(n));
	assert_int_equal(buffer_append(&f->bookings, (struct bytes){(const uint8_t *)&booking, sizeof(booking)}), 0);
}

/* Attempt n is the one that a gateway made of attempt parent. */
static inline void add_hop(struct fixture *f, unsigned int n, unsigned int parent)
{
	struct booking booking;

	memset(&booking, 0, sizeof(booking));
	booking.kind = BOOKING_HOP;
	memcpy(booking.hop.id, &n, sizeof(n));
	memcpy(booking.hop.parent, &parent, sizeof(parent));
	booking.hop.at_ns = (1000 + n) * SECOND;
	assert_int_equal(buffer_append(&f->bookings, (struct bytes){(const uint8_t *)&booking, sizeof(booking)}), 0);
}

static inline void book_all(struct fixture *f)
{
	uint64_t rows;

	if (store_book(f->store, &f->run, &f->bookings, &rows))
		fail_msg("%s", store_reason(f->store));
	assert_int_equal(f->bookings.size, 0);
}

static inline void book_open(struct fixture *f, unsigned int n, unsigned int key)
{
	add_open(f, n, key);
	book_all(f);
}

static inline void book_ended(struct fixture *f, unsigned int n, unsigned int key, enum attempt_outcome outcome,
			      unsigned int status, int64_t input, int64_t output)
{
	add_ended(f, n, key, outcome, status, input, output);
	book_all(f);
}

/* ---- claims ---- */

/* Of the key that bookings call number n. Valid until the next call. */
static inline const char *key_text(unsigned int n)
{
	static char text[STORE_KEY_TEXT];
	struct digest digest = {{0}};

	memcpy(digest.byte, &n, sizeof(n));
	hex_of(digest.byte, DIGEST_BYTES, text);
	return text;
}

static inline struct store_claim claim_of(struct fixture *f, const char *key, int64_t lease_seconds)
{
	return (struct store_claim){
		.key = key,
		.owner = "reserve",
		.schema_version = "v1",
		.world = &f->world,
		.lease_ns = lease_seconds * SECOND,
		.ttl_ns = f->ttl_ns,
		.process = {f->process},
		.process_count = f->process.pid ? 1 : 0,
	};
}

/* result_text is the kept result then, or "(none)". */
static inline enum store_answer reserve(struct fixture *f, const char *key, int64_t lease_seconds)
{
	struct store_claim claim = claim_of(f, key, lease_seconds);
	struct buffer result = {0};
	enum store_answer answer;
	bool has_result;

	if (store_reserve(f->store, &claim, &answer, &result, &has_result))
		fail_msg("%s", store_reason(f->store));
	snprintf(f->result_text, sizeof(f->result_text), "%.*s", has_result ? (int)result.size : 6,
		 has_result ? (const char *)result.data : "(none)");
	buffer_done(&result);
	return answer;
}

static inline bool commit(struct fixture *f, const char *key, const char *result)
{
	struct store_claim claim = claim_of(f, key, 0);
	bool first;

	if (store_commit(f->store, &claim, bytes_of_string(result), true, &first))
		fail_msg("%s", store_reason(f->store));
	return first;
}

#endif
