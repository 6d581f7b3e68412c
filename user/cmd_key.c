/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk key`: what the wire will call a request that is still to be sent.
 */
#include "asked.h"
#include "commands.h"

int cmd_key(int argc, char **argv)
{
	struct asking asking;
	int status = asking_start(COMMAND_LINE_KEY, argc, argv, &asking);

	if (status == 0)
		printf("%s\n", asking.key);
	asking_done(&asking);
	return status ? status - 1 : 0;
}
