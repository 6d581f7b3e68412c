/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes as /proc shows them: who asks, and who is gone.
 */
#ifndef NIGHTCLERK_PROCESS_H
#define NIGHTCLERK_PROCESS_H

#include "store.h"

/* That process first, then its ancestors, as far as they can be seen. How many. */
size_t process_and_ancestors(uint32_t pid, struct store_process *processes, size_t max);
/* Sends SIGKILL to every child of this process. */
void process_kill_children(void);
/*
 * True when no process has that pid and start any more. Pids are those of the
 * host: from inside a pid namespace nobody is known to be gone.
 */
bool process_is_gone(uint32_t pid, uint64_t start_ns);
/* The id of this boot, 16 bytes; zeros where it cannot be read. */
void process_boot_id(uint8_t boot_id[16]);
/* Now, this boot, and process_is_gone(). */
void process_world(struct store_world *ret_world);

#endif
