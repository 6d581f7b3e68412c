/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pipe is large, so that a command that prints much need not wait for us:
 * we look every few milliseconds.
 */
#include "command_output.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define PIPE_BYTES (1024 * 1024)

int command_output_open(struct command_output *output, const char *path, int ret_stdio[3], char *reason)
{
	struct output_owner owner = output_owner_of_environment();
	int ends[2], err = path ? output_open(path, false, &owner, &output->file, reason) : 0;

	output->path = path;
	if (err)
		return err;
	if (pipe2(ends, O_CLOEXEC)) {
		snprintf(reason, OUTPUT_REASON_MAX, "no pipe for the command's output: %s", strerror(errno));
		return -errno;
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	output->fd = ends[0];
	ret_stdio[1] = ends[1];
	ret_stdio[2] = isatty(STDERR_FILENO) ? ends[1] : 0;
	return 0;
}

void command_output_started(const int stdio[3])
{
	for (int fd = 0; fd < 2; fd++) /* 2 is 1's */
		if (stdio[fd] > 0)
			close(stdio[fd]);
}

size_t command_output_take(struct command_output *output, uint8_t *bytes, size_t size)
{
	ssize_t n = output->fd < 0 ? 0 : read(output->fd, bytes, size);
	int err;

	if (n <= 0)
		return 0;
	err = output->file ? output_write(output->file, (struct bytes){bytes, (size_t)n}, NULL) : 0;
	if (err && !output->failed) {
		output->failed = true;
		fprintf(stderr, "nightclerk: cannot write %s: %s; it is tried again, continuing\n", output->path, strerror(-err));
	}
	return (size_t)n;
}

void command_output_close(struct command_output *output)
{
	int err = output_close(output->file);

	if (err)
		fprintf(stderr, "nightclerk: %s is not whole: %s\n", output->path, strerror(-err));
	output->file = NULL;
	if (output->fd >= 0)
		close(output->fd);
	output->fd = -1;
}
