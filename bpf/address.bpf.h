/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Addresses as wire events hold them: 16 bytes, IPv4 v4-mapped.
 */
#ifndef NIGHTCLERK_ADDRESS_BPF_H
#define NIGHTCLERK_ADDRESS_BPF_H

#include "vmlinux.h"

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "wire_event.h"

static __always_inline void address_map_ipv4(u8 address[WIRE_ADDRESS_BYTES], u32 ipv4)
{
	u32 *words = (u32 *)address;

	words[0] = 0;
	words[1] = 0;
	words[2] = bpf_htonl(0xffff);
	words[3] = ipv4;
}

/* 127/8, its v4-mapped form, ::1. */
static __always_inline bool address_is_loopback(const u8 address[WIRE_ADDRESS_BYTES])
{
	const u32 *words = (const u32 *)address;

	if (words[0] || words[1])
		return false;
	if (words[2] == bpf_htonl(0xffff))
		return address[12] == 127;
	return !words[2] && words[3] == bpf_htonl(1);
}

#endif
