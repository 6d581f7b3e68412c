/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One number and one letter; dates by strptime(3), in UTC.
 */
#include "duration.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>

#define LONGEST_SECONDS (10 * 366 * 86400.0)

int duration_parse(const char *text, int64_t *ret_ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text)
		return -EINVAL;
	seconds *= *end == 'm' ? 60 : *end == 'h' ? 3600 : *end == 'd' ? 86400 : 1;
	if (*end == 's' || *end == 'm' || *end == 'h' || *end == 'd')
		end++;
	if (*end || !(seconds > 0 && seconds <= LONGEST_SECONDS))
		return -EINVAL;
	*ret_ns = (int64_t)(seconds * 1e9);
	return 0;
}

int since_parse(const char *text, int64_t now_ns, int64_t *ret_ns)
{
	static const char *const formats[] = {"%Y-%m-%d", "%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%MZ"};
	int64_t span_ns;

	if (duration_parse(text, &span_ns) == 0) {
		*ret_ns = now_ns - span_ns;
		return 0;
	}
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		struct tm when = {0};
		const char *end = strptime(text, formats[i], &when);

		if (!end || *end)
			continue;
		*ret_ns = (int64_t)timegm(&when) * 1000000000LL;
		return 0;
	}
	return -EINVAL;
}
