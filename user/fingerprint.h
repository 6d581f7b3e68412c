/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call -> what it is the same as.
 *
 * fingerprint = SHA-256 over length-prefixed fields: the word "exact", server
 * (netns inode unless class is llm, destination port, host with loopback
 * spellings folded to "loopback"), method, path, sorted query, canonical body,
 * tenant headers (Stripe-Account, OpenAI-Organization, OpenAI-Project,
 * anthropic-workspace, X-Amz-Target, Mcp-Method, Mcp-Name, X-HTTP-Method-Override).
 * key scope = the same server fields, method, path, principal, key.
 * Principal (who calls) is beside the fingerprint, never in it.
 */
#ifndef NIGHTCLERK_FINGERPRINT_H
#define NIGHTCLERK_FINGERPRINT_H

#include "call.h"

struct fingerprinter; /* holds the hash state and the salt */

struct fingerprinter *fingerprinter_new(const uint8_t salt[32]); /* NULL when out of memory */
void fingerprinter_free(struct fingerprinter *fingerprinter);	/* accepts NULL */

/*
 * canonical_text: what call->sha is the hash of. Fills idem*, principal*,
 * fingerprint, key_scope and retry_hint. 0 or -ENOMEM.
 */
int fingerprint_call(struct fingerprinter *fingerprinter, struct call *call, struct bytes canonical_text);

/*
 * The id of a call: the first 16 bytes of SHA-256 over boot id, netns inode,
 * client and server endpoint and the raw 32-bit sequence number of the
 * request's first byte. The same through every door, recording and import.
 */
int call_id(struct fingerprinter *fingerprinter, const uint8_t boot_id[16], const struct call *call, uint32_t seq,
	    uint8_t ret_id[CALL_ID_BYTES]);

/*
 * Idempotency-Key (draft-ietf-httpapi-idempotency-key-header-07 section 2.1)
 * and its other carriers: OWS off, one pair of quotes off, \" and \\ undone;
 * a list or two lines is IDEM_INVALID.
 */
int idempotency_key(struct call *call);

/*
 * "~" and 16 hex digits of the salted hash of a secret, for ledger and events
 * (ledger.md, Secrets). text holds 18 bytes.
 */
void secret_text(struct fingerprinter *fingerprinter, struct bytes secret, char text[18]);

#endif
