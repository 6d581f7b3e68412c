/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What only `audit` is told: by its command line, and by a file with the same
 * names (config_file.h), which the command line outranks.
 */
#ifndef NIGHTCLERK_AUDIT_OPTIONS_H
#define NIGHTCLERK_AUDIT_OPTIONS_H

#include "rotation.h"
#include "tenants.h"

#include <stdbool.h>

#define AUDIT_KEEP 5
#define AUDIT_ROTATE_BYTES (256ULL << 20)
#define AUDIT_DIRECTORY "/var/log/nightclerk"

struct audit_line {
	const char *config; /* file; NULL = none */
	bool check_config;  /* only look at it */
	const char *directory; /* NULL = AUDIT_DIRECTORY */
	const char *policy;    /* file; NULL = none */
	bool netns_only;       /* only the caller's network namespace */
	enum tenant_split split;
	size_t tenants_max;    /* 0 = LIMIT_TENANTS */
	struct rotation_limits rotation;
	unsigned int keep;     /* 0 = AUDIT_KEEP */
	const char *metrics;   /* file; NULL = none */
	char *texts;	       /* owned: what came out of the file */
};

/* Takes one option of audit's own. NULL, with *ret_taken false where it is none; or the sentence that says what it wants. */
const char *audit_take_option(int id, const char *value, struct audit_line *line, bool *ret_taken);
/* Why audit does not have that option ("record"); NULL = nothing is known of it. */
const char *audit_refuses(const char *name);

#endif
