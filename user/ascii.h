/* SPDX-License-Identifier: BSD-2-Clause */
/* What a byte is in ASCII, whatever the locale. */
#ifndef NIGHTCLERK_ASCII_H
#define NIGHTCLERK_ASCII_H

#include <stdbool.h>
#include <stdint.h>

static inline uint8_t ascii_lower(uint8_t c)
{
	return c >= 'A' && c <= 'Z' ? (uint8_t)(c | 0x20) : c;
}

/* Of a digit in either case, or -1. */
static inline int ascii_hex_value(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* SP and HT: OWS, RFC 9110 section 5.6.3. */
static inline bool ascii_is_ows(uint8_t c)
{
	return c == ' ' || c == '\t';
}

/* What may stand between the values of JSON: RFC 8259 section 2. */
static inline bool ascii_is_json_space(uint8_t c)
{
	return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* tchar: RFC 9110 section 5.6.2. */
extern const bool ascii_tokens[256];

static inline bool ascii_is_token(uint8_t c)
{
	return ascii_tokens[c];
}

#endif
