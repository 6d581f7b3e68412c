/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `run --confine`: what the command and its descendants connect to, and where
 * they send UDP to, must be on loopback. Anything else gets EPERM from the
 * kernel, and comes through the probe's lifecycle ring as a WIRE_CONNECT with
 * WIRE_REFUSED. Loopback is 127/8, ::1, the v4-mapped forms, 0.0.0.0 and ::,
 * and the addresses that this machine has at the start, link-local ones aside,
 * in the network namespace that nightclerk is in.
 *
 * The hooks belong to a cgroup and not to us: where nightclerk is killed, the
 * command stays confined. At the end of a run the cgroup goes; what the command
 * left running stays in it, confined, until it ends. Then the next start of
 * nightclerk removes it (cgroup_sweep()).
 *
 * Not a sandbox: a process with the right to write to another cgroup.procs can
 * leave, and sockets that were made outside (inherited, or sent over a Unix
 * socket) and raw or packet sockets are not asked. What listens on loopback may
 * pass things on: a resolver, a proxy.
 */
#ifndef NIGHTCLERK_CONFINE_H
#define NIGHTCLERK_CONFINE_H

#include "capture.h"

#include <sys/types.h>

#define CONFINE_REASON_MAX CAPTURE_REASON_MAX

struct confine;

/*
 * Makes a cgroup with the hooks on it and moves that process in. 0, or -errno
 * with one line in reason (CONFINE_REASON_MAX bytes); nothing is left then.
 */
int confine_open(const struct capture *capture, pid_t pid, struct confine **ret_confine,
		 char *reason);
/* The directory of the cgroup. */
const char *confine_path(const struct confine *confine);
/*
 * Removes the hooks and the cgroup if nobody lives in it any more, else leaves
 * both. 0, -EBUSY where they were left, or -errno. Frees. Accepts NULL.
 */
int confine_close(struct confine *confine);

#endif
