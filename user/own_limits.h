/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The limits that the kernel puts on our own process (setrlimit(2)), looked at
 * before the probes are loaded: what fails on the way has many other causes.
 */
#ifndef NIGHTCLERK_OWN_LIMITS_H
#define NIGHTCLERK_OWN_LIMITS_H

#include <stddef.h>

#define OWN_LIMITS_REASON_MAX 256

/*
 * Raises the soft limits of open files and of address space as far as is needed
 * and allowed. ring_bytes: the data ring, 0 = its default. 0, or -errno with one
 * line in reason.
 */
int own_limits_prepare(size_t ring_bytes, char *reason);

#endif
