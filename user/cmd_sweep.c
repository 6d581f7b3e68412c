/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk sweep`: what was left pending, and what is old.
 */
#include "asked.h"
#include "commands.h"

int cmd_sweep(int argc, char **argv)
{
	struct store_swept swept = {0};
	struct asking asking;
	int status = asking_start(COMMAND_LINE_SWEEP, argc, argv, &asking);

	if (status)
		status--;
	else if ((status = asking_open(&asking, false, 1)) == 0) {
		if (store_sweep(asking.store, &asking.world, asking.line.ttl_ns, &swept))
			status = asking_failed(&asking, 1);
		else
			printf("%llu abandoned, %llu removed\n", (unsigned long long)swept.abandoned,
			       (unsigned long long)swept.removed);
	}
	asking_done(&asking);
	return status;
}
