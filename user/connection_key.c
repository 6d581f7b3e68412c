/* SPDX-License-Identifier: BSD-2-Clause */
/* The server's events name the ends the other way round. */
#include "connection_key.h"

#include <stdbool.h>
#include <string.h>

enum connection_side connection_side_of(const struct wire_event *event)
{
	if (event->flags & WIRE_CLIENT)
		return SIDE_CLIENT;
	if (event->flags & WIRE_SERVER)
		return SIDE_SERVER;
	return event->local_port < event->remote_port ? SIDE_SERVER : SIDE_CLIENT;
}

void connection_key_of(const struct wire_event *event, enum connection_side side, struct connection_key *ret_key)
{
	bool client = side == SIDE_CLIENT;

	ret_key->netns = event->netns;
	ret_key->client_port = client ? event->local_port : event->remote_port;
	ret_key->server_port = client ? event->remote_port : event->local_port;
	memcpy(ret_key->client_address, client ? event->local_address : event->remote_address, WIRE_ADDRESS_BYTES);
	memcpy(ret_key->server_address, client ? event->remote_address : event->local_address, WIRE_ADDRESS_BYTES);
	ret_key->client_base_seq = client ? event->send_base_seq : event->receive_base_seq;
	ret_key->server_base_seq = client ? event->receive_base_seq : event->send_base_seq;
}
