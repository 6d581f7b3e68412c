/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread that writes bookings into the store, so that capture never waits for
 * a disk or for somebody else's lock. What cannot be written now is kept and
 * tried again; what is still unwritten at the end is counted as lost.
 */
#ifndef NIGHTCLERK_STORE_WRITER_H
#define NIGHTCLERK_STORE_WRITER_H

#include "recording.h"
#include "store.h"

struct store_writer;

struct store_writer_options {
	struct store *store; /* taken over; NULL: there is none, everything is lost */
	struct store_run run;
	int64_t ttl_ns; /* of store_sweep(), which is done at the start and every hour */
};

struct store_counts {
	uint64_t rows; /* written; a row that was written twice counts twice */
	uint64_t lost;
	char reason[STORE_REASON_MAX]; /* of the last failure; "" = none */
};

/* What a run says of itself to the store. */
void store_run_of(const struct run_facts *facts, const struct judge_options *judge, int64_t lease_ns,
		  struct store_run *ret_run);

/* 0 or -errno; options->store is closed then. */
int store_writer_new(const struct store_writer_options *options, struct store_writer **ret_writer);
/* Takes over what the bookings hold and empties them. patient: waits for room where there is none, else drops. */
void store_writer_put(struct store_writer *writer, struct buffer *bookings, bool patient);
/* True once after the first failure, with a line for people that says what happens now (STORE_REASON_MAX bytes). */
bool store_writer_notice(struct store_writer *writer, char *text);
/* Rows, up to now. */
uint64_t store_writer_lost(struct store_writer *writer);
/* Everything that was put is written, or lost. */
bool store_writer_is_idle(struct store_writer *writer);
/* Waits until everything is written, at most wait_ms; what is not written by then is lost. */
void store_writer_settle(struct store_writer *writer, int wait_ms, struct store_counts *ret_counts);
/* Settles without waiting, ends the thread, closes the store. Accepts NULL. */
void store_writer_free(struct store_writer *writer);

#endif
