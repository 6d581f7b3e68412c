/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What confine.bpf.c and user/confine.c both know.
 */
#ifndef NIGHTCLERK_CONFINE_TABLE_H
#define NIGHTCLERK_CONFINE_TABLE_H

#include "wire_event.h"

#define CONFINE_OWN_ADDRESSES 4096

struct confine_address {
	__u8 byte[WIRE_ADDRESS_BYTES];
};

#endif
