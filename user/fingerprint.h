/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A call -> what it is the same as.
 *
 * fingerprint = SHA-256 over length-prefixed fields: the word "exact", server
 * (netns inode unless class is llm, destination port, host with loopback
 * spellings folded to "loopback"), method, path, sorted query, SHA-256 of the canonical body,
 * tenant headers (Stripe-Account, OpenAI-Organization, OpenAI-Project,
 * anthropic-workspace, X-Amz-Target, Mcp-Method, Mcp-Name, X-HTTP-Method-Override and its kin).
 * prompt fingerprint, of model calls = the word "prompt", the same server fields,
 * method, path and query but for what says how the answer is brought, model key
 * (model_key.h), tenant headers.
 * key scope = the same server fields, method, path, principal, key.
 * Principal (who calls) is beside the fingerprint, never in it.
 */
#ifndef NIGHTCLERK_FINGERPRINT_H
#define NIGHTCLERK_FINGERPRINT_H

#include "call.h"

struct fingerprinter; /* holds the hash state and the salt */

struct fingerprinter *fingerprinter_new(const uint8_t salt[32]); /* NULL when out of memory */
void fingerprinter_free(struct fingerprinter *fingerprinter);	/* accepts NULL */

struct secret_rules;
/* More secrets in targets, for secret.h. Borrowed; NULL = none. */
void fingerprinter_set_secrets(struct fingerprinter *fingerprinter, const struct secret_rules *rules);
const struct secret_rules *fingerprinter_secrets(const struct fingerprinter *fingerprinter);

/*
 * Fills idem*, principal*, fingerprint, prompt_fingerprint, key_scope and
 * retry_hint. 0 or -ENOMEM; has_fingerprint is false then, and where there is no
 * head or no call->sha, and has_prompt_fingerprint where there is no model_key.
 *
 * canonical_text: the text that attempts are compared by (canonical.h, less
 * what classify_comparable_text() takes out). Its hash enters the fingerprint where
 * call->canon is CANONICAL_JSON, without the member that held the key; for
 * every other kind call->sha does. is_whole: nothing was taken out of it, so call->sha
 * is its hash; false does no harm. call->class must be known.
 *
 * retry_hint always, and idem where the key was not a plain slice of the head,
 * are lent: valid until the next fingerprint_call().
 */
int fingerprint_call(struct fingerprinter *fingerprinter, struct call *call,
		     struct bytes canonical_text, bool is_whole);

/* call->key_scope alone, of a call whose principal and key are known. 0 or -ENOMEM. */
int fingerprint_key_scope(struct fingerprinter *fingerprinter, struct call *call);

/*
 * The id of a call: the first 16 bytes of SHA-256 over boot id, netns inode,
 * client and server endpoint and the raw 32-bit sequence number of the
 * request's first byte. The same through every door, recording and import.
 */
int call_id(struct fingerprinter *fingerprinter, const uint8_t boot_id[16], const struct call *call,
	    uint32_t seq, uint8_t ret_id[CALL_ID_BYTES]);

/*
 * "~" and 16 hex digits of the salted hash of a secret, for ledger and events.
 * text holds 18 bytes. All zeros when libcrypto failed.
 */
void secret_text(struct fingerprinter *fingerprinter, struct bytes secret, char text[18]);

#endif
