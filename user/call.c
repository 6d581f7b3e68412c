/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The words for what a call holds, as ledger and events print them. Calls are
 * made elsewhere.
 */
#include "call.h"

#include <arpa/inet.h>

static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

/* Decimal digits and a NUL at text; returns where the NUL is. By hand: this runs for every call. */
static char *put_decimal(char *text, unsigned int value)
{
	char digits[10];
	size_t first = sizeof(digits);

	do
		digits[--first] = (char)('0' + value % 10); /* by a constant: no division */
	while (value /= 10);
	while (first < sizeof(digits))
		*text++ = digits[first++];
	*text = 0;
	return text;
}

void endpoint_text(const struct endpoint *endpoint, char text[ENDPOINT_TEXT_MAX])
{
	const uint8_t *address = endpoint->address;
	char v6[INET6_ADDRSTRLEN];

	if (memcmp(address, v4_mapped, sizeof(v4_mapped)) == 0) {
		for (int i = 12; i < 16; i++) {
			text = put_decimal(text, address[i]);
			*text++ = i < 15 ? '.' : ':';
		}
		put_decimal(text, endpoint->port);
	} else if (inet_ntop(AF_INET6, address, v6, sizeof(v6))) {
		snprintf(text, ENDPOINT_TEXT_MAX, "[%s]:%u", v6, endpoint->port);
	} else {
		text[0] = 0;
	}
}

const char *call_class_name(enum call_class class)
{
	switch (class) {
	case CLASS_MUTATING:
		return "mutating";
	case CLASS_READ:
		return "read";
	case CLASS_LLM:
		return "llm";
	case CLASS_AUTH:
		return "auth";
	case CLASS_TELEMETRY:
		return "telemetry";
	}
	return NULL;
}

const char *call_ended_name(enum call_ended ended)
{
	switch (ended) {
	case CALL_ENDED_NONE:
		return "none";
	case CALL_ENDED_LENGTH:
		return "length";
	case CALL_ENDED_CHUNKED:
		return "chunked";
	case CALL_ENDED_CLOSE:
		return "close";
	case CALL_ENDED_RESET:
		return "reset";
	case CALL_ENDED_CUT:
		return "cut";
	}
	return NULL;
}

const char *call_delivered_name(enum call_delivered delivered)
{
	switch (delivered) {
	case DELIVERED_UNKNOWN:
		return "unknown";
	case DELIVERED_ALL:
		return "all";
	case DELIVERED_PART:
		return "part";
	case DELIVERED_NONE:
		return "none";
	}
	return NULL;
}
