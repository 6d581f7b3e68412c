/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why the probe could not be loaded or attached: the missing thing and the
 * remedy, in one line. What libbpf says is kept, not printed: a line of it may
 * end up there.
 */
#include "capture_private.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>

#define REPORT_MAX 256

/*
 * libbpf's print function takes no context: hence the one static of the file.
 * The first warning is the telling one.
 */
static char first_report[REPORT_MAX];

static int keep_report(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level == LIBBPF_WARN && !first_report[0])
		vsnprintf(first_report, sizeof(first_report), format, arguments);
	return 0;
}

void capture_reason_begin(void)
{
	first_report[0] = '\0';
	libbpf_set_print(keep_report);
}

void capture_reason_say(char *reason, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, CAPTURE_REASON_MAX, format, arguments);
	va_end(arguments);
	for (char *end = reason; *end; end++)
		if (*end == '\n')
			*end = end[1] ? ' ' : '\0';
}

bool capture_missing_capabilities(char *names)
{
	static const struct {
		cap_value_t value;
		const char *name;
	} wanted[] = {{CAP_BPF, "CAP_BPF"}, {CAP_PERFMON, "CAP_PERFMON"}};
	cap_flag_value_t admin = CAP_CLEAR;
	cap_t own = cap_get_proc();
	size_t used = 0;

	names[0] = '\0';
	if (own)
		cap_get_flag(own, CAP_SYS_ADMIN, CAP_EFFECTIVE, &admin);
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]) && admin != CAP_SET; i++) {
		cap_flag_value_t has = CAP_CLEAR;

		if (own)
			cap_get_flag(own, wanted[i].value, CAP_EFFECTIVE, &has);
		if (has != CAP_SET)
			used += (size_t)snprintf(names + used, CAPTURE_CAPABILITIES_MAX - used, "%s%s",
						 used ? " and " : "", wanted[i].name);
	}
	cap_free(own);
	return used != 0;
}

/* Has a file a line that begins so, or a word of it? */
static bool file_has(const char *path, const char *text)
{
	FILE *file = fopen(path, "re");
	char line[256];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return found;
}

/* Debian's kernels have that level: only CAP_SYS_ADMIN may use perf_event_open(2), not CAP_PERFMON. */
static bool perf_wants_admin(void)
{
	FILE *file = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	cap_flag_value_t admin = CAP_CLEAR;
	cap_t own = cap_get_proc();
	int level = 0;

	if (file && fscanf(file, "%d", &level) != 1)
		level = 0;
	if (file)
		fclose(file);
	if (own)
		cap_get_flag(own, CAP_SYS_ADMIN, CAP_EFFECTIVE, &admin);
	cap_free(own);
	return level > 2 && admin != CAP_SET;
}

/* What the whole machine or the surroundings forbid. */
static bool say_forbidden(int error, char *reason)
{
	char missing[CAPTURE_CAPABILITIES_MAX];

	if (file_has("/sys/kernel/security/lockdown", "[confidentiality]")) {
		capture_reason_say(reason, "the kernel is locked down, and does not let its memory be read: boot "
					   "without lockdown=confidentiality (integrity is fine)");
		return true;
	}
	if (error != -EPERM && error != -EACCES && error != -ENOSYS)
		return false;
	if (capture_missing_capabilities(missing)) {
		capture_reason_say(reason, "needs %s: run as root or with sudo", missing);
		return true;
	}
	if (error == -EACCES)
		return false;
	if (file_has("/proc/self/status", "Seccomp:\t2"))
		capture_reason_say(reason, "a seccomp filter forbids bpf(2) or perf_event_open(2): let the "
					   "container's profile allow them");
	else
		capture_reason_say(reason, "bpf(2) is refused in spite of CAP_BPF and CAP_PERFMON: a security "
					   "module, or a capability of another user namespace");
	return true;
}

void capture_reason_load(enum capture_door door, int error, char *reason)
{
	if (say_forbidden(error, reason))
		return;
	switch (error) {
	case -ENOMEM:
		capture_reason_say(reason, "not enough memory for the probe's tables: raise the memory limit or "
					   "RLIMIT_MEMLOCK");
		break;
	case -EACCES:
		capture_reason_say(reason, "the kernel's verifier refused the probe (a defect of nightclerk): %s",
				   first_report);
		break;
	case -ESRCH:
	case -ENOENT:
		capture_reason_say(reason,
				   "the %s door needs a kernel tracepoint that this kernel does not have: %s",
				   capture_door_name(door), first_report);
		break;
	case -EINVAL:
		if (libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL) == 0) {
			capture_reason_say(reason, "this kernel is too old: the probe needs Linux 5.10 or later");
			break;
		}
		/* fall through */
	default:
		capture_reason_say(reason, "cannot load the probe (%s door): %s: %s", capture_door_name(door),
				   strerror(-error), first_report);
	}
}

void capture_reason_attach(enum capture_door door, int error, char *reason)
{
	char missing[CAPTURE_CAPABILITIES_MAX];
	bool refused = error == -EPERM || error == -EACCES;

	if (refused && perf_wants_admin() && !capture_missing_capabilities(missing)) {
		capture_reason_say(reason, "kernel.perf_event_paranoid is above 2, which takes CAP_SYS_ADMIN: run as "
					   "root or with sudo, or set it to 2");
		return;
	}
	if (say_forbidden(error, reason))
		return;
	if (error == -EACCES)
		capture_reason_say(reason, "not allowed to attach the probe (%s door): mount tracefs at "
					   "/sys/kernel/tracing, writable", capture_door_name(door));
	else if (error == -ENOENT && door == CAPTURE_DOOR_KPROBE)
		capture_reason_say(reason,
				   "the kprobe door needs CONFIG_KPROBES and tracefs at /sys/kernel/tracing");
	else
		capture_reason_say(reason, "cannot attach the probe (%s door): %s: %s", capture_door_name(door),
				   strerror(-error), first_report);
}
