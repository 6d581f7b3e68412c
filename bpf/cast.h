/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Shared by the probe and user space: what stands in a call until the function's number is known. */
#ifndef NIGHTCLERK_CAST_H
#define NIGHTCLERK_CAST_H

#define RDONLY_CAST_PLACEHOLDER 0x4e430001 /* no helper has so high a number */

#endif
