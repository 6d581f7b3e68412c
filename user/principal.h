/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who calls, as a salted hash: the part of a credential that stays the same
 * when it is signed or issued again.
 *
 * Authorization: the access key id of AWS Signature Version 4; the user of
 * Basic; issuer and subject of a Bearer token that is a readable JWT; the
 * whole credential of everything else. Without Authorization: x-api-key,
 * api-key, x-goog-api-key, the first of them that is there. Cookies and
 * Proxy-Authorization say nothing about it.
 */
#ifndef NIGHTCLERK_PRINCIPAL_H
#define NIGHTCLERK_PRINCIPAL_H

#include "call.h"

/* Fills has_principal, principal_is_bearer and principal. 0 or -ENOMEM. */
int principal_of(struct digest_state *hash, struct bytes salt, struct call *call);

#endif
