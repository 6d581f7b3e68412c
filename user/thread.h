/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that write while the others go on, and how long somebody waits for them. */
#ifndef NIGHTCLERK_THREAD_H
#define NIGHTCLERK_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* Signals are for the thread that has a descriptor for them: this one takes none. 0 or -errno. */
int thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument);

/* A condition whose pthread_cond_timedwait(3) goes by CLOCK_MONOTONIC ... */
void thread_condition_init(pthread_cond_t *condition);
/* ... until that time, in nanoseconds of clock_monotonic_ns(). */
struct timespec thread_until(uint64_t monotonic_ns);

#endif
