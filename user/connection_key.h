/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What both ends of one connection agree on, by either end's events: network
 * namespace, both endpoints, both first sequence numbers. See wire_event.h.
 */
#ifndef NIGHTCLERK_CONNECTION_KEY_H
#define NIGHTCLERK_CONNECTION_KEY_H

#include "../bpf/wire_event.h"
#include <stdint.h>

enum connection_side { SIDE_CLIENT, SIDE_SERVER };

/* No hidden padding, and all of it is set: it may be hashed and compared as bytes. */
struct connection_key {
	uint32_t netns;
	uint32_t client_base_seq;
	uint32_t server_base_seq;
	uint16_t client_port;
	uint16_t server_port;
	uint8_t client_address[WIRE_ADDRESS_BYTES];
	uint8_t server_address[WIRE_ADDRESS_BYTES];
};

static_assert(sizeof(struct connection_key) == 48, "no hidden padding: it is hashed as bytes");

/*
 * Which end an event of a flow is of. A flow whose role the kernel did not see
 * (joined late) counts as the client unless its own port is the lower one, as
 * servers' ports are.
 */
enum connection_side connection_side_of(const struct wire_event *event);
void connection_key_of(const struct wire_event *event, enum connection_side side, struct connection_key *ret_key);

#endif
