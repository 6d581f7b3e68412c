/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of audit's own options. */
#include "audit_options.h"
#include "command_table.h"

#include <string.h>

const char *audit_take_option(int id, const char *value, struct audit_line *line, bool *ret_taken)
{
	*ret_taken = true;
	switch (id) {
	case OPTION_CONFIG:
		line->config = value;
		return NULL;
	case OPTION_CHECK_CONFIG:
		line->config = value;
		line->check_config = true;
		return NULL;
	case OPTION_DIRECTORY:
		line->directory = value;
		return *value ? NULL : "takes a directory";
	case OPTION_NETNS_ONLY:
		line->netns_only = true;
		return NULL;
	default:
		*ret_taken = false;
		return NULL;
	}
}

const char *audit_refuses(const char *name)
{
	if (strcmp(name, "record") == 0)
		return "is refused in audit: it would keep the bodies and the secrets of everybody on this host; "
		       "`nightclerk watch --record` keeps those of one process";
	if (strcmp(name, "keep-results") == 0)
		return "is refused in audit: it would keep the answers that everybody on this host got; "
		       "`nightclerk run --keep-results` keeps those of one command";
	return NULL;
}
