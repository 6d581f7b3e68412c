/* SPDX-License-Identifier: BSD-2-Clause */
/* The values of audit's own options. */
#include "audit_options.h"
#include "command_table.h"
#include "duration.h"
#include "metrics_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define TENANTS_MAX 4096
#define KEEP_MAX 999

static const char *take_split(const char *value, struct audit_line *line)
{
	static const char *const names[] = {
		[TENANT_SPLIT_NONE] = "none", [TENANT_SPLIT_CGROUP] = "cgroup", [TENANT_SPLIT_UID] = "uid"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(value, names[i]) == 0) {
			line->split = (enum tenant_split)i;
			return NULL;
		}
	return "takes cgroup, uid or none";
}

static int parse_count(const char *value, unsigned long max, unsigned long *ret_count)
{
	char *end;

	errno = 0;
	*ret_count = strtoul(value, &end, 10);
	return errno || end == value || *end || *value == '-' || *ret_count < 1 || *ret_count > max ? -EINVAL : 0;
}

static const char *take_tenants_max(const char *value, struct audit_line *line)
{
	unsigned long count;

	if (parse_count(value, TENANTS_MAX, &count))
		return "takes a number, 1 to 4096";
	line->tenants_max = count;
	return NULL;
}

static const char *take_keep(const char *value, struct audit_line *line)
{
	unsigned long count;

	if (parse_count(value, KEEP_MAX, &count))
		return "takes a number, 1 to 999";
	line->keep = (unsigned int)count;
	return NULL;
}

/* "64M"; 0 = never */
static const char *take_size(const char *value, struct audit_line *line)
{
	static const char wanted[] = "takes bytes, with K, M or G: 64M; at least 4096, 0 = never";
	unsigned long long bytes;
	unsigned int shift;
	char *end;

	errno = 0;
	bytes = strtoull(value, &end, 10);
	shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
	if (errno || *value < '0' || *value > '9' || end[shift != 0] || bytes > 1ULL << 40 >> shift)
		return wanted;
	bytes <<= shift;
	if (bytes && bytes < 4096)
		return wanted;
	line->rotation.bytes = bytes;
	return NULL;
}

static const char *take_age(const char *value, struct audit_line *line)
{
	int64_t age_ns;

	if (duration_parse(value, &age_ns))
		return DURATION_WANTED;
	line->rotation.age_ns = (uint64_t)age_ns;
	return NULL;
}

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
	case OPTION_SPLIT:
		return take_split(value, line);
	case OPTION_MAX_TENANTS:
		return take_tenants_max(value, line);
	case OPTION_ROTATE_SIZE:
		return take_size(value, line);
	case OPTION_ROTATE_AGE:
		return take_age(value, line);
	case OPTION_KEEP:
		return take_keep(value, line);
	case OPTION_METRICS:
		line->metrics = value;
		return metrics_file_wrong_name(value);
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
