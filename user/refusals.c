/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A process that may not leave loopback tries again, and so do its children: the
 * events hold every try, these lines say who wanted to go where.
 */
#include "refusals.h"

#include <errno.h>

#include "limits.h"
#include "say.h"

#define HASH_NONFATAL_OOM 1 /* a failed insertion leaves hh.tbl NULL */
#include <uthash.h>

#define PORT_DOMAIN 53
#define COMM_TEXT_MAX (4 * WIRE_COMM_BYTES) /* \xNN for every byte */

/* Zeroed before it is filled: it is hashed as bytes. */
struct refusal_key {
	char comm[WIRE_COMM_BYTES + 1];
	bool datagram;
	struct endpoint server;
};

struct refusal {
	struct refusal_key key;
	uint32_t tgid; /* of the first try */
	uint64_t count;
	UT_hash_handle hh;
};

static struct refusal *add(struct refusals *refusals, const struct refusal_key *key, uint32_t tgid)
{
	struct refusal *refusal = calloc(1, sizeof(*refusal));

	if (!refusal)
		return NULL;
	refusal->key = *key;
	refusal->tgid = tgid;
	HASH_ADD(hh, refusals->first, key, sizeof(refusal->key), refusal);
	if (!refusal->hh.tbl) {
		free(refusal);
		return NULL;
	}
	return refusal;
}

int refusals_note(struct refusals *refusals, const struct connection_name *connection,
		  bool datagram)
{
	struct refusal *refusal;
	struct refusal_key key;

	memset(&key, 0, sizeof(key));
	/* What a process was called before may stand behind the NUL. */
	snprintf(key.comm, sizeof(key.comm), "%s", connection->process.comm);
	key.datagram = datagram;
	memcpy(key.server.address, connection->server.address, sizeof(key.server.address));
	key.server.port = connection->server.port;
	HASH_FIND(hh, refusals->first, &key, sizeof(key), refusal);
	if (!refusal && HASH_COUNT(refusals->first) >= LIMIT_REFUSALS) {
		refusals->more++;
		return 0;
	}
	if (!refusal)
		refusal = add(refusals, &key, connection->process.tgid);
	if (!refusal)
		return -ENOMEM;
	refusal->count++;
	return 0;
}

void refusals_done(struct refusals *refusals)
{
	struct refusal *refusal, *next;

	HASH_ITER (hh, refusals->first, refusal, next) {
		HASH_DEL(refusals->first, refusal);
		free(refusal);
	}
	*refusals = (struct refusals){0};
}

const struct refusal *refusals_next(const struct refusals *refusals, const struct refusal *previous)
{
	return previous ? previous->hh.next : refusals->first;
}

static int say_comm(const struct refusal *refusal, struct buffer *out)
{
	return text_harmless(bytes_of_string(refusal->key.comm), COMM_TEXT_MAX, out);
}

int refusal_name(const struct refusal *refusal, struct buffer *out)
{
	char server[ENDPOINT_TEXT_MAX];
	int err = say_comm(refusal, out);

	endpoint_text(&refusal->key.server, server);
	return err ? err : say(out, " to %s%s", server, refusal->key.datagram ? "/udp" : "");
}

int refusal_text(const struct refusal *refusal, struct buffer *out)
{
	const struct refusal_key *key = &refusal->key;
	char server[ENDPOINT_TEXT_MAX];
	int err = say_comm(refusal, out);

	endpoint_text(&key->server, server);
	if (!err)
		err = say(out, " (pid %u) tried to ", refusal->tgid);
	if (!err && key->datagram)
		err = say(out, "reach %s over UDP%s", server,
			  key->server.port == PORT_DOMAIN ? " (to look up a name)" : "");
	else if (!err)
		err = say(out, "connect to %s", server);
	if (!err)
		err = say(out, " and was refused");
	if (!err && refusal->count > 1)
		err = say(out, ", %llu times", (unsigned long long)refusal->count);
	return err;
}

static int refusal_line(const struct refusal *refusal, const struct alert_style *style,
			struct buffer *out)
{
	int err = say(out, "nightclerk: %sHIGH%s off_loopback: ", style->colour ? "\x1b[31m" : "",
		      style->colour ? "\x1b[0m" : "");

	if (!err)
		err = refusal_text(refusal, out);
	return err ? err : say(out, "; next: %s\n", finding_next_step(FINDING_OFF_LOOPBACK));
}

int refusals_lines(const struct refusals *refusals, const struct alert_style *style,
		   struct buffer *out)
{
	const struct refusal *refusal = NULL;
	size_t start = out->size;
	int err = 0;

	while (!err && (refusal = refusals_next(refusals, refusal)))
		err = refusal_line(refusal, style, out);
	if (!err && refusals->more)
		err = say(
			out,
			"nightclerk: and %llu more tries to leave loopback were refused; the events hold them\n",
			(unsigned long long)refusals->more);
	if (err)
		out->size = start;
	return err;
}
