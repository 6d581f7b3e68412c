/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One write(2) per batch with O_APPEND: lines of two nightclerks never mix
 * inside a line. The size of the file is compared with what we left behind
 * before each write: that is how a foreign hand shows.
 */
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

struct output {
	int fd;
	char *path;
	char *running_path;
	struct output_owner owner;
	struct buffer unwritten;
	off_t left_size; /* size of the file after our last write; -1 = not a regular file */
	bool noticed;
	bool shared_fd; /* not ours to close */
};

struct output_owner output_owner_of_environment(void)
{
	struct output_owner owner = {(uid_t)-1, (gid_t)-1};
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");

	if (geteuid() != 0 || !uid || !gid)
		return owner;
	owner.uid = (uid_t)strtoul(uid, NULL, 10);
	owner.gid = (gid_t)strtoul(gid, NULL, 10);
	return owner;
}

/* open(2) with the rights of owner: the file system ids alone, so that nothing else of us changes. */
static int open_as(const struct output_owner *owner, const char *path, int flags, mode_t mode)
{
	bool switched = owner->uid != (uid_t)-1;
	int fd, err;

	if (switched) {
		setfsgid(owner->gid);
		setfsuid(owner->uid);
	}
	fd = open(path, flags, mode);
	err = errno;
	if (switched) {
		setfsuid(geteuid());
		setfsgid(getegid());
	}
	errno = err;
	return fd;
}

static const char *remedy_of(int err)
{
	switch (err) {
	case ELOOP:
		return "it is a symbolic link: give the real path";
	case ENOENT:
		return "its directory does not exist: create it";
	case EACCES:
	case EPERM:
		return "no permission: choose a place that you may write to";
	case EROFS:
		return "the file system is read-only: choose another place";
	case EISDIR:
		return "it is a directory: give a file";
	default:
		return "choose another place";
	}
}

static int open_special(const char *path, struct output *output)
{
	char *end;
	long fd;

	output->shared_fd = true;
	if (strcmp(path, "-") == 0) {
		output->fd = STDOUT_FILENO;
		return 0;
	}
	fd = strtol(path + 3, &end, 10);
	if (path[3] == '\0' || *end || fd < 0 || fd > 1 << 20 || fcntl((int)fd, F_GETFL) < 0)
		return -EBADF;
	output->fd = (int)fd;
	fcntl(output->fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

static off_t size_of(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return -1;
	return stat.st_size;
}

/* Does the file end inside a line? */
static bool ends_mid_line(int fd, off_t size)
{
	char last;

	return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

int output_open(const char *path, bool special, const struct output_owner *owner, struct output **ret_output, char *reason)
{
	struct output *output = calloc(1, sizeof(*output));
	int err = 0;

	if (!output || !(output->path = strdup(path))) {
		free(output);
		snprintf(reason, OUTPUT_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	output->owner = *owner;
	if (special && (strcmp(path, "-") == 0 || strncmp(path, "fd:", 3) == 0)) {
		err = open_special(path, output);
	} else {
		output->fd = open_as(owner, path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
		if (output->fd < 0 && (errno == ENXIO || errno == EINVAL))
			output->fd = open_as(owner, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
		if (output->fd < 0)
			err = -errno;
	}
	if (err) {
		snprintf(reason, OUTPUT_REASON_MAX, "cannot open %s: %s; %s", path, strerror(-err), remedy_of(-err));
		free(output->path);
		free(output);
		return err;
	}
	output->left_size = output->shared_fd ? -1 : size_of(output->fd);
	*ret_output = output;
	return 0;
}

int output_truncate(struct output *output, char *reason)
{
	int err;

	if (output->left_size < 0)
		return 0;
	if (ftruncate(output->fd, 0) == 0) {
		output->left_size = 0;
		return 0;
	}
	err = -errno;
	snprintf(reason, OUTPUT_REASON_MAX, "cannot empty %s: %s; %s", output->path, strerror(-err), remedy_of(-err));
	return err;
}

/* The file is not as we left it: says so once, and starts a new line where the other hand left half a one. */
static int look_for_others(struct output *output, const char **ret_notice)
{
	off_t size = size_of(output->fd);

	if (output->left_size < 0 || size == output->left_size)
		return ends_mid_line(output->fd, size) ? buffer_append_byte(&output->unwritten, '\n') : 0;
	if (!output->noticed && ret_notice)
		*ret_notice = size < output->left_size
				      ? "was truncated by somebody else, continuing at its new end"
				      : "holds lines that nightclerk did not write, continuing after them";
	output->noticed = true;
	output->left_size = size;
	return ends_mid_line(output->fd, size) ? buffer_append_byte(&output->unwritten, '\n') : 0;
}

static int flush(struct output *output)
{
	while (output->unwritten.size) {
		ssize_t n = write(output->fd, output->unwritten.data, output->unwritten.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ENOMEM ? -EIO : -errno; /* -ENOMEM is for lines that were not taken */
		if (n == 0)
			return -EIO;
		memmove(output->unwritten.data, output->unwritten.data + n, output->unwritten.size - (size_t)n);
		output->unwritten.size -= (size_t)n;
		if (output->left_size >= 0)
			output->left_size += n;
	}
	return 0;
}

int output_write(struct output *output, struct bytes lines, const char **ret_notice)
{
	int err = 0;

	if (lines.size == 0 && output->unwritten.size == 0)
		return 0;
	if (output->unwritten.size == 0)
		err = look_for_others(output, ret_notice);
	if (!err)
		err = buffer_append(&output->unwritten, lines);
	return err ? err : flush(output);
}

size_t output_unwritten(const struct output *output)
{
	return output->unwritten.size;
}

const char *output_path(const struct output *output)
{
	return output->path;
}

int output_mark_running(struct output *output, const char *run_id, bool *ret_unclean)
{
	char text[64] = "";
	char *path;
	int fd, n;

	if (output->left_size < 0) /* a pipe or a terminal has no neighbour */
		return 0;
	if (asprintf(&path, "%s.running", output->path) < 0)
		return -ENOMEM;
	output->running_path = path;
	fd = open_as(&output->owner, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	n = (int)read(fd, text, sizeof(text) - 1);
	if (n > 0) {
		long pid = strtol(text, NULL, 10);

		*ret_unclean = pid <= 0 || (kill((pid_t)pid, 0) && errno == ESRCH);
	}
	n = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), run_id);
	if (ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n)
		n = -1;
	close(fd);
	return n < 0 ? -EIO : 0;
}

int output_close(struct output *output)
{
	int err;

	if (!output)
		return 0;
	err = flush(output);
	if (output->left_size >= 0 && fsync(output->fd) && !err)
		err = -errno;
	if (!output->shared_fd && close(output->fd) && !err)
		err = -errno;
	if (output->running_path)
		unlink(output->running_path);
	buffer_done(&output->unwritten);
	free(output->running_path);
	free(output->path);
	free(output);
	return err;
}
