/* SPDX-License-Identifier: BSD-2-Clause */
/* short_processes COUNT: that many processes, one after the other; every hundredth runs a program. Each has ended before the next begins. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static int one(bool runs_a_program)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0) {
		if (runs_a_program)
			execl("/bin/true", "true", NULL);
		_exit(runs_a_program);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
		perror("short_processes");
		return -1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	unsigned long count = argc == 2 ? strtoul(argv[1], NULL, 10) : 0;

	for (unsigned long i = 0; i < count; i++)
		if (one(i % 100 == 0))
			return 1;
	return count ? 0 : 2;
}
