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
 * Each appends the printable form, as bytes that still need escaping, at most
 * LIMIT_PATH_BYTES of it, then "...". 0 or -ENOMEM.
 *
 * Path: a segment bot* that another one follows; the three segments after
 * "services". At any depth: a proxy may have put something in front.
 */
int secret_mask_path(struct fingerprinter *fingerprinter, struct bytes path, struct buffer *out);
/*
 * Query: the values of key, api_key, access_token, token, sig, signature,
 * X-Amz-Signature, X-Amz-Credential, X-Amz-Security-Token, code, password;
 * names compare percent-decoded and without case.
 */
int secret_mask_query(struct fingerprinter *fingerprinter, struct bytes query, struct buffer *out);

/* An authority without its userinfo. */
struct bytes secret_strip_userinfo(struct bytes authority);

#endif
