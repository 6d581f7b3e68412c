/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `nightclerk doctor`: what this kernel and this account allow, what cannot be
 * seen here, and the remedy for each. Every check fills one line; the verdict
 * is that of the door that `run` would take.
 */
#include "command_line.h"
#include "commands.h"
#include "json_text.h"
#include "observer.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/utsname.h>
#include <unistd.h>

enum state { STATE_OK, STATE_NOTE, STATE_BAD };

struct check {
	const char *name;
	enum state state;
	char found[192];
	char remedy[OUTPUT_REASON_MAX]; /* "" = nothing to do */
};

#define CHECKS_MAX 24

struct examination {
	struct check checks[CHECKS_MAX];
	size_t count;
	bool trusted;
};

static struct check *add(struct examination *examination, const char *name, enum state state, const char *found,
			 const char *remedy)
{
	struct check *check = &examination->checks[examination->count];

	if (examination->count + 1 < CHECKS_MAX)
		examination->count++;
	check->name = name;
	check->state = state;
	snprintf(check->found, sizeof(check->found), "%s", found);
	snprintf(check->remedy, sizeof(check->remedy), "%s", remedy);
	return check;
}

/* The first line of a small file, without its end; "" where it cannot be read. */
static void read_line(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "re");

	text[0] = '\0';
	if (!file)
		return;
	if (!fgets(text, (int)size, file))
		text[0] = '\0';
	text[strcspn(text, "\n")] = '\0';
	fclose(file);
}

static void look_at_kernel(struct examination *examination)
{
	struct utsname kernel;
	char line[256], mode[64];

	if (uname(&kernel))
		return;
	add(examination, "kernel", STATE_NOTE, kernel.release, "");
	read_line("/sys/kernel/debug/sched/preempt", line, sizeof(line));
	if (strchr(line, '(')) {
		snprintf(mode, sizeof(mode), "%.*s", (int)strcspn(strchr(line, '(') + 1, ")"), strchr(line, '(') + 1);
		add(examination, "preemption", STATE_NOTE, mode, "");
	} else {
		add(examination, "preemption", STATE_NOTE,
		    strstr(kernel.version, "PREEMPT_DYNAMIC") ? "dynamic, the mode in force cannot be read"
		    : strstr(kernel.version, "PREEMPT")	      ? "full"
							      : "none or voluntary",
		    "");
	}
	if (access("/sys/kernel/btf/vmlinux", R_OK) == 0)
		add(examination, "BTF", STATE_OK, "/sys/kernel/btf/vmlinux", "");
	else
		add(examination, "BTF", STATE_BAD, "not there", "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y");
	read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	if (strstr(line, "[confidentiality]"))
		add(examination, "lockdown", STATE_BAD, "confidentiality",
		    "boot without lockdown=confidentiality: it forbids reading kernel memory");
}

static void look_at_capabilities(struct examination *examination)
{
	char missing[CAPTURE_CAPABILITIES_MAX];

	if (capture_missing_capabilities(missing)) {
		char found[96];

		snprintf(found, sizeof(found), "%s missing", missing);
		add(examination, "capabilities", STATE_BAD, found, "run as root, or with sudo");
	} else {
		add(examination, "capabilities", STATE_OK, "CAP_BPF and CAP_PERFMON", "");
	}
}

/* Loads that door and sends the canary through it. */
static enum state try_door(enum capture_door door, char *found, size_t size, char *remedy)
{
	struct observer_options options = {
		.capture = {.scope = CAPTURE_TREE, .door = door},
		.canary = true,
		.owner = {(uid_t)-1, (gid_t)-1},
		.scope = "doctor",
	};
	struct observer *observer = NULL;
	struct counters counters = {0};
	char reason[OUTPUT_REASON_MAX] = "";
	enum state state = STATE_OK;
	int err;

	judge_options_defaults(&options.pipeline.judge);
	err = observer_open(&options, &observer, reason);
	remedy[0] = '\0';
	if (err) {
		snprintf(found, size, err == -ENODATA ? "loads, does not fire" : "does not load");
		snprintf(remedy, OUTPUT_REASON_MAX, "%s", reason);
		return STATE_BAD;
	}
	err = capture_counters(observer_capture(observer), &counters);
	if (err) {
		snprintf(found, size, "%s: loads and fires, but its counters cannot be read: %s",
			 capture_door_name(capture_door(observer_capture(observer))), strerror(-err));
		snprintf(remedy, OUTPUT_REASON_MAX, "calls could be lost without a trace: run as root");
		state = STATE_BAD;
	} else if (counters.recursion_misses) {
		snprintf(found, size, "%s: loads and fires, but the kernel skipped it %llu times",
			 capture_door_name(capture_door(observer_capture(observer))),
			 (unsigned long long)counters.recursion_misses);
		snprintf(remedy, OUTPUT_REASON_MAX, "calls can be lost on this kernel: use a kernel with kprobes");
		state = STATE_BAD;
	} else {
		snprintf(found, size, "%s: loads and fires, ring of %zu MiB",
			 capture_door_name(capture_door(observer_capture(observer))),
			 capture_ring_size(observer_capture(observer)) >> 20);
	}
	observer_close(observer);
	return state;
}

static void look_at_doors(struct examination *examination)
{
	static const struct {
		enum capture_door door;
		const char *name;
	} doors[] = {
		{CAPTURE_DOOR_KPROBE, "door kprobe"},
		{CAPTURE_DOOR_TRACEPOINT, "door tracepoint"},
		{CAPTURE_DOOR_AUTO, "door of run"},
	};
	char found[160], remedy[OUTPUT_REASON_MAX];

	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
		enum state state = try_door(doors[i].door, found, sizeof(found), remedy);

		if (doors[i].door == CAPTURE_DOOR_AUTO)
			examination->trusted = state == STATE_OK;
		else if (state == STATE_BAD)
			state = STATE_NOTE;
		add(examination, doors[i].name, state, found, remedy);
	}
}

/* True on every machine, so that a green gate is not read as more than it is. */
static void look_at_limits(struct examination *examination)
{
	add(examination, "TLS, HTTP/2", STATE_NOTE, "counted, not read",
	    "point the client's base URL at a local plaintext gateway");
	add(examination, "Unix sockets, stdio", STATE_NOTE, "not seen", "use HTTP over loopback where it matters");
	add(examination, "other hosts", STATE_NOTE, "not read, connections are reported",
	    "point the client's base URL at a local plaintext gateway");
	add(examination, "other network namespaces", STATE_NOTE, "not seen, unless all of the host is watched",
	    "run nightclerk in the namespace of the calls");
	add(examination, "HTTP/3 (UDP), SCTP", STATE_NOTE, "not seen", "use HTTP/1.1 over TCP where it matters");
	add(examination, "VMs (Kata, Firecracker)", STATE_NOTE, "a guest's own loopback is not seen",
	    "run nightclerk inside the guest");
	add(examination, "gVisor", STATE_NOTE, "its loopback is its own, and no eBPF runs in it",
	    "run what is to be watched outside of the sandbox");
}

static void print_text(const struct examination *examination)
{
	static const char *const words[] = {"ok", "note", "BAD"};

	for (size_t i = 0; i < examination->count; i++) {
		const struct check *check = &examination->checks[i];

		printf("%-5s %-32s %s\n", words[check->state], check->name, check->found);
		if (check->remedy[0])
			printf("      %-32s -> %s\n", "", check->remedy);
	}
	printf("%s\n", examination->trusted ? "The gate can be trusted here." : "The gate cannot be trusted here.");
}

static int print_json(const struct examination *examination)
{
	static const char *const words[] = {"ok", "note", "bad"};
	struct buffer out = {0};
	struct json_writer json;

	json_writer_init(&json, &out);
	json_object_open(&json);
	json_key(&json, "trusted");
	json_boolean(&json, examination->trusted);
	json_key(&json, "checks");
	json_array_open(&json);
	for (size_t i = 0; i < examination->count; i++) {
		const struct check *check = &examination->checks[i];

		json_object_open(&json);
		json_key(&json, "name");
		json_text(&json, check->name);
		json_key(&json, "state");
		json_text(&json, words[check->state]);
		json_key(&json, "found");
		json_text(&json, check->found);
		json_key(&json, "remedy");
		json_text(&json, check->remedy[0] ? check->remedy : NULL);
		json_object_close(&json);
	}
	json_array_close(&json);
	json_object_close(&json);
	if (json_writer_error(&json) == 0)
		printf("%.*s\n", (int)out.size, (const char *)out.data);
	buffer_done(&out);
	return json_writer_error(&json);
}

/* 0 = go on, else the exit status + 1. */
static int parse(int argc, char **argv, bool *ret_json)
{
	struct option longs[COMMAND_OPTIONS_MAX];
	int id;

	command_long_options(COMMAND_LINE_DOCTOR, longs);
	optind = 1;
	opterr = 0;
	while ((id = getopt_long(argc, argv, ":h", longs, NULL)) != -1) {
		if (id == OPTION_HELP || id == 'h') {
			command_help(COMMAND_LINE_DOCTOR);
			return 1;
		}
		if (id == ':' || id == '?') {
			command_line_complain_of_option("doctor", id, argv[optind - 1]);
			return EXIT_USAGE + 1;
		}
		*ret_json = true;
	}
	if (optind == argc)
		return 0;
	fprintf(stderr, "nightclerk doctor: takes --json or nothing; see nightclerk doctor --help\n");
	return EXIT_USAGE + 1;
}

int cmd_doctor(int argc, char **argv)
{
	struct examination examination = {0};
	bool json = false;
	int status = parse(argc, argv, &json);

	if (status)
		return status - 1;
	look_at_kernel(&examination);
	look_at_capabilities(&examination);
	look_at_doors(&examination);
	look_at_limits(&examination);
	if (json)
		print_json(&examination);
	else
		print_text(&examination);
	return examination.trusted ? 0 : 1;
}
