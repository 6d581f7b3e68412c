/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Secrets in targets: what of a path or a query may be printed. A value that
 * is secret becomes secret_text(): "~" and 16 hex digits of a salted hash, so
 * equal secrets stay recognisable within one run.
 */
#ifndef NIGHTCLERK_SECRET_H
#define NIGHTCLERK_SECRET_H

#include "fingerprint.h"

/*
 * What a policy adds. Names are percent-decoded and in lower case. A path glob
 * (glob.h) says how a path begins, or with a leading "**" how any part of it
 * between two slashes does; the segments in it that hold a "*" are secret.
 */
#define SECRET_GLOB_SEGMENTS_MAX 32

struct secret_rules {
	const struct bytes *query_names;
	size_t query_name_count;
	const struct bytes *paths;
	size_t path_count;
	bool masked_before; /* what looks like secret_text() is one, and stays: targets come from a ledger */
};

/*
 * Each appends the printable form, as bytes that still need escaping, at most
 * LIMIT_PATH_BYTES of it, then "...". 0 or -ENOMEM.
 *
 * Path: a segment bot* that another one follows; the three segments after
 * "services". At any depth: a proxy may have put something in front. And what
 * fingerprinter_set_secrets() added.
 */
int secret_mask_path(struct fingerprinter *fingerprinter, struct bytes path, struct buffer *out);
/*
 * Query: the values of key, api_key, access_token, token, sig, signature,
 * X-Amz-Signature, X-Amz-Credential, X-Amz-Security-Token, code, password;
 * names compare percent-decoded and without case.
 */
int secret_mask_query(struct fingerprinter *fingerprinter, struct bytes query, struct buffer *out);
/* Both: "/v1/charges?limit=1". */
int secret_mask_target(struct fingerprinter *fingerprinter, struct bytes path, bool has_query, struct bytes query,
		       struct buffer *out);

/* An authority without its userinfo. */
struct bytes secret_strip_userinfo(struct bytes authority);

#endif
