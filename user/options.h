/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the user asked for. All defaults in one place: judge_options_defaults().
 */
#ifndef NIGHTCLERK_OPTIONS_H
#define NIGHTCLERK_OPTIONS_H

#include "finding.h"

/* Kinds of streams that cannot be read. All but the last make a run undecidable. */
enum blind_kind {
	BLIND_TLS,
	BLIND_H2,
	BLIND_WEBSOCKET,
	BLIND_CONNECT,
	BLIND_MPTCP,
	BLIND_JOINED_LATE,
	BLIND_KTLS,
	BLIND_NETNS, /* in a network namespace that is not looked into: not even its bytes were counted */
	BLIND_OTHER,
	BLIND_COUNT,
};
/* "tls", "h2", "websocket", "connect", "mptcp", "joined_late", "ktls", "netns", "other" */
const char *blind_kind_name(enum blind_kind kind);

#define SCHEMA_VERSION_MAX 63

/* Everything that the judging stages may depend on: it travels in a recording. */
struct judge_options {
	enum severity fail_on;	    /* medium */
	bool strict;		    /* false */
	bool allow_incomplete;	    /* false */
	unsigned int allow_blind;   /* bit per enum blind_kind */
	size_t max_findings_per_call; /* LIMIT_FINDINGS_PER_CALL */
	bool across_processes;	    /* `run`: true */
	uint64_t window_s, window_across_s, fresh_s; /* finding_options, in seconds; `audit` sets them, else 0 */
	char schema_version[SCHEMA_VERSION_MAX + 1]; /* "v1": part of every model call's key (model_key.h) */
};

void judge_options_defaults(struct judge_options *options);
/* As a JSON object, for the recording's header; size bytes at text, NUL included. 0 or -ENOSPC. */
int judge_options_to_json(const struct judge_options *options, char *text, size_t size);
/* 0, or -EINVAL on text that is not such an object. Missing members keep their value. */
int judge_options_of_json(const char *text, struct judge_options *options);
/* Letters, digits and . _ - + : / @, at least one, at most SCHEMA_VERSION_MAX. 0 or -EINVAL. */
int schema_version_parse(struct bytes text, char ret_version[SCHEMA_VERSION_MAX + 1]);
/* "tls,h2,..." -> bits; 0 or -EINVAL. */
int blind_kinds_parse(const char *text, unsigned int *ret_kinds);

#endif
