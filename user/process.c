/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * /proc/PID/stat (proc_pid_stat(5)): field 4 is the parent, field 22 the start
 * in clock ticks since boot. The name in field 2 may hold anything but ends at
 * the last ")".
 */
#include "process.h"
#include "ascii.h"
#include "clock.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define INIT_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO */
#define START_AFTER_PARENT 18	       /* fields from the parent to the start */

/* -ESRCH for a process that has exited and waits for its parent to notice. */
static int read_stat(uint32_t pid, uint32_t *ret_parent, uint64_t *ret_start_ns)
{
	unsigned long long start_ticks = 0;
	long ticks = sysconf(_SC_CLK_TCK);
	char path[64], text[1024], *at;
	FILE *file;
	size_t n;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return -errno;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	at = strrchr(text, ')');
	if (!at || ticks <= 0 || at[1] != ' ' || at[2] == '\0')
		return -EIO;
	if (at[2] == 'Z' || at[2] == 'X')
		return -ESRCH;
	at += 4; /* ") S " */
	*ret_parent = (uint32_t)strtoul(at, &at, 10);
	for (int i = 1; i < START_AFTER_PARENT; i++)
		strtoll(at, &at, 10);
	start_ticks = strtoull(at, &at, 10);
	*ret_start_ns = start_ticks * (1000000000ULL / (unsigned long)ticks);
	return 0;
}

size_t process_and_ancestors(uint32_t pid, struct store_process *processes, size_t max)
{
	size_t count = 0;
	uint32_t parent;

	while (count < max && pid > 0) {
		processes[count].pid = pid;
		if (read_stat(pid, &parent, &processes[count].start_ns))
			break;
		count++;
		pid = parent;
	}
	return count;
}

void process_kill_children(void)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;

	while (directory && (entry = readdir(directory))) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10), parent;
		uint64_t start_ns;

		if (pid && read_stat(pid, &parent, &start_ns) == 0 && parent == (uint32_t)getpid())
			kill((pid_t)pid, SIGKILL);
	}
	if (directory)
		closedir(directory);
}

bool process_is_gone(uint32_t pid, uint64_t start_ns)
{
	struct stat own;
	uint64_t found_ns;
	uint32_t parent;
	int err;

	if (stat("/proc/self/ns/pid", &own) || own.st_ino != INIT_PID_NAMESPACE || pid == 0)
		return false;
	if (kill((pid_t)pid, 0) && errno == ESRCH)
		return true;
	err = read_stat(pid, &parent, &found_ns);
	if (err)
		return err == -ESRCH;
	return found_ns / 10000000 != start_ns / 10000000;
}

void process_boot_id(uint8_t boot_id[16])
{
	char text[64] = "";
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	size_t digits = 0;

	memset(boot_id, 0, 16);
	if (!file)
		return;
	if (!fgets(text, sizeof(text), file))
		text[0] = '\0';
	fclose(file);
	for (const char *c = text; *c && digits < 32; c++) {
		int value = ascii_hex_value((uint8_t)*c);

		if (value < 0)
			continue;
		boot_id[digits / 2] = (uint8_t)(boot_id[digits / 2] << 4 | value);
		digits++;
	}
}

void process_world(struct store_world *ret_world)
{
	uint8_t boot_id[16];

	process_boot_id(boot_id);
	ret_world->now_ns = clock_wall_ns();
	ret_world->is_gone = process_is_gone;
	hex_of(boot_id, sizeof(boot_id), ret_world->boot);
}
