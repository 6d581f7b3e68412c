/* SPDX-License-Identifier: BSD-2-Clause */
#include "thread.h"

#include <signal.h>
#include <time.h>

int thread_start(pthread_t *ret_thread, void *(*run)(void *argument), void *argument)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	err = pthread_create(ret_thread, NULL, run, argument);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

void thread_condition_init(pthread_cond_t *condition)
{
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(condition, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

struct timespec thread_until(uint64_t monotonic_ns)
{
	return (struct timespec){(time_t)(monotonic_ns / 1000000000), (long)(monotonic_ns % 1000000000)};
}
