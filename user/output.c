/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One write(2) per batch with O_APPEND: lines of two nightclerks never mix
 * inside a line. The size of the file is compared with what we left behind
 * before each write: that is how a foreign hand shows.
 */
#include "output.h"
#include "limits.h"
#include "output_mark.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define READER_PATIENCE_MS 2000 /* at the end: this long without a byte taken, and the rest is given up */

struct output {
	int fd;
	int next_fd; /* takes over between two lines; -1 = none */
	char *path;
	struct output_mark *mark; /* NULL = none */
	struct output_owner owner;
	struct buffer unwritten;
	size_t written;	     /* of unwritten: gone already */
	uint64_t lost_bytes; /* lines for which there was no room in unwritten */
	off_t left_size;     /* size of the file after our last write; -1 = not a regular file */
	bool noticed;
	bool reader_stands_still; /* it was waited for in vain */
	bool shared_fd; /* not ours to close */
	bool made;	/* it was not there before */
	bool is_socket;
	bool never_waits;
	bool asks_first; /* never_waits, and the descriptor itself would wait: poll(2) says how it stands */
};

const char *output_remedy(int err)
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
	case ENXIO:
		return "nobody reads this pipe: start its reader first";
	case EISDIR:
		return "it is a directory: give a file";
	case ENOTDIR:
		return "a part of its path is no directory: give the real path";
	case ENAMETOOLONG:
		return "its name is too long: give a shorter one";
	case EMFILE:
	case ENFILE:
		return "too many files are open: raise the limit (ulimit -n)";
	case ENOSPC:
	case EDQUOT:
		return "the disk is full: make room";
	case ENOSYS: /* of Linux 5.6; see beneath.h */
		return "openat2(2) is refused here: let the filter of the service or container allow it "
		       "(RestrictSUIDSGID=yes of a unit takes it away)";
	default:
		return "choose another place";
	}
}

static bool is_special(const char *path)
{
	return strcmp(path, "-") == 0 || strncmp(path, "fd:", 3) == 0;
}

/* Of "-" or "fd:N"; -1: not a number. */
static int special_fd(const char *path)
{
	char *end;
	long fd;

	if (strcmp(path, "-") == 0)
		return STDOUT_FILENO;
	fd = strtol(path + 3, &end, 10);
	return path[3] < '0' || path[3] > '9' || *end || fd > 1 << 20 ? -1 : (int)fd;
}

static int open_special(const char *path, struct output *output)
{
	output->shared_fd = true;
	output->fd = special_fd(path);
	if (output->fd < 0 || fcntl(output->fd, F_GETFL) < 0)
		return -EBADF;
	if (strcmp(path, "-") != 0)
		fcntl(output->fd, F_SETFD, FD_CLOEXEC);
	return 0;
}

const char *output_wrong_name(const char *path, bool special)
{
	int flags;

	if (!*path)
		return "takes the name of a file";
	if (!is_special(path))
		return NULL;
	if (!special)
		return "takes a file: for one that is called so, put ./ before its name";
	flags = fcntl(special_fd(path), F_GETFL);
	if (flags < 0)
		return "takes a descriptor that is open when nightclerk starts: fd:3 and 3>FILE";
	return (flags & O_ACCMODE) == O_RDONLY ? "takes a descriptor that can be written to" : NULL;
}

static bool find(const struct output_place *place, struct stat *ret_stat)
{
	if (!place->path)
		return false;
	if (place->special && is_special(place->path))
		return fstat(special_fd(place->path), ret_stat) == 0;
	return stat(place->path, ret_stat) == 0;
}

int output_places_differ(const struct output_place *places, size_t count, char *reason)
{
	struct stat one, other;

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++) {
			if (!find(&places[i], &one) || !find(&places[j], &other) || S_ISCHR(one.st_mode))
				continue;
			if (one.st_dev != other.st_dev || one.st_ino != other.st_ino)
				continue;
			snprintf(reason, OUTPUT_REASON_MAX, "%s and %s are one file, %s: give each its own",
				 places[i].option, places[j].option, places[j].path);
			return -EINVAL;
		}
	return 0;
}

/* S_IFREG, S_IFIFO, ...; 0 where that is not known. */
static mode_t kind_of(int fd)
{
	struct stat stat;

	return fstat(fd, &stat) ? 0 : stat.st_mode & S_IFMT;
}

static off_t size_of(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat) || !S_ISREG(stat.st_mode))
		return -1;
	return stat.st_size;
}

/*
 * For writing alone: a pipe that we held open for reading too would never tell
 * us that its reader is gone. Without O_NONBLOCK opening it would wait for one.
 * A regular file is read as well, for the byte that our first line follows.
 */
static int open_path(struct output *output)
{
	const int flags = O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;
	char again[32];
	int fd;

	output->fd = output_owner_open(&output->owner, output->path, O_RDWR | O_CREAT | O_EXCL | flags);
	output->made = output->fd >= 0;
	if (output->fd == -EEXIST)
		output->fd = output_owner_open(&output->owner, output->path, O_WRONLY | flags);
	if (output->fd < 0)
		return output->fd;
	if (!output->made && kind_of(output->fd) == S_IFREG) {
		snprintf(again, sizeof(again), "/proc/self/fd/%d", output->fd);
		fd = output_owner_open(&output->owner, again, O_RDWR | O_APPEND | O_CLOEXEC);
		if (fd >= 0) {
			close(output->fd);
			output->fd = fd;
		}
	}
	fcntl(output->fd, F_SETFL, O_APPEND);
	return 0;
}

static void use_fd(struct output *output, int fd)
{
	output->fd = fd;
	output->left_size = size_of(fd);
	output->is_socket = kind_of(fd) == S_IFSOCK;
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
	output->fd = -1;
	output->next_fd = -1;
	if (special && is_special(path))
		err = open_special(path, output);
	else
		err = open_path(output);
	if (err) {
		snprintf(reason, OUTPUT_REASON_MAX, "cannot open %s: %s; %s", path, strerror(-err), output_remedy(-err));
		free(output->path);
		free(output);
		return err;
	}
	output->left_size = output->shared_fd ? -1 : size_of(output->fd);
	output->is_socket = kind_of(output->fd) == S_IFSOCK;
	*ret_output = output;
	return 0;
}

int output_adopt(int fd, const char *name, struct output **ret_output)
{
	struct output *output = calloc(1, sizeof(*output));

	if (!output || !(output->path = strdup(name))) {
		free(output);
		if (fd >= 0)
			close(fd);
		return -ENOMEM;
	}
	output->owner = (struct output_owner){(uid_t)-1, (gid_t)-1};
	output->next_fd = -1;
	use_fd(output, fd);
	*ret_output = output;
	return 0;
}

/*
 * O_NONBLOCK belongs to the open file, which we may share with whoever gave us
 * the descriptor: a pipe or a terminal is opened once more, for us alone.
 */
static void open_for_us_alone(struct output *output)
{
	char again[32];
	int fd;

	snprintf(again, sizeof(again), "/proc/self/fd/%d", output->fd);
	fd = open(again, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	output->asks_first = fd < 0;
	if (fd < 0)
		return;
	output->fd = fd;
	output->shared_fd = false;
}

void output_never_wait(struct output *output)
{
	mode_t kind = kind_of(output->fd);

	output->never_waits = kind != S_IFREG;
	if (!output->never_waits || output->is_socket)
		return;
	if (output->shared_fd)
		open_for_us_alone(output);
	else
		fcntl(output->fd, F_SETFL, O_APPEND | O_NONBLOCK);
}

int output_make_private(struct output *output, char *reason)
{
	struct stat stat;
	int err = fstat(output->fd, &stat) ? -errno : 0;

	if (!err && S_ISCHR(stat.st_mode)) /* /dev/null */
		return 0;
	if (!err && !S_ISREG(stat.st_mode))
		err = -EINVAL;
	if (!err && stat.st_mode & 077)
		err = output_owner_chmod(&output->owner, output->fd, 0600);
	if (err == -EINVAL)
		snprintf(reason, OUTPUT_REASON_MAX, "%s is no regular file: choose another place", output->path);
	else if (err)
		snprintf(reason, OUTPUT_REASON_MAX, "others can read %s, and that cannot be changed: %s; choose another place",
			 output->path, strerror(-err));
	return err;
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
	snprintf(reason, OUTPUT_REASON_MAX, "cannot empty %s: %s; %s", output->path, strerror(-err), output_remedy(-err));
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
				      : "holds lines that this run did not write, continuing after them";
	output->noticed = true;
	output->left_size = size;
	return ends_mid_line(output->fd, size) ? buffer_append_byte(&output->unwritten, '\n') : 0;
}

static ssize_t write_some(const struct output *output)
{
	const uint8_t *from = output->unwritten.data + output->written;
	size_t size = output->unwritten.size - output->written;
	struct pollfd room = {.fd = output->fd, .events = POLLOUT};

	if (output->next_fd >= 0) /* the end of the line that was begun here, and no more */
		size = bytes_find((struct bytes){from, size}, '\n') + 1;
	if (output->is_socket)
		return send(output->fd, from, size, MSG_NOSIGNAL | (output->never_waits ? MSG_DONTWAIT : 0));
	if (output->asks_first) {
		if (poll(&room, 1, 0) <= 0) {
			errno = EAGAIN;
			return -1;
		}
		size = size < PIPE_BUF ? size : PIPE_BUF; /* so much a pipe that says so takes at once */
	}
	return write(output->fd, from, size);
}

/* What is written of unwritten and belongs to the line that is not: see forget_written(). */
static size_t begun(const struct output *output)
{
	const uint8_t *data = output->unwritten.data;
	const uint8_t *end = output->written ? memrchr(data, '\n', output->written) : NULL;

	return output->written - (end ? (size_t)(end - data) + 1 : 0);
}

static void take_over(struct output *output)
{
	if (!output->shared_fd && output->fd >= 0)
		close(output->fd);
	use_fd(output, output->next_fd);
	output->next_fd = -1;
	output->shared_fd = false;
	output->noticed = false;
}

/* A full disk has room again at some time; of anything else nobody knows. */
static bool may_recover(int err)
{
	return err == ENOSPC || err == EDQUOT || err == EAGAIN || err == ENOMEM;
}

static int flush(struct output *output)
{
	while (output->written < output->unwritten.size) {
		ssize_t n;

		if (output->next_fd >= 0 && begun(output) == 0)
			take_over(output);
		n = write_some(output);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && output->next_fd >= 0 && !may_recover(errno)) {
			output->written -= begun(output);
			continue;
		}
		if (n < 0)
			return errno == ENOMEM ? -EIO : -errno; /* -ENOMEM is for lines that were not taken */
		if (n == 0)
			return -EIO;
		output->written += (size_t)n;
		if (output->left_size >= 0)
			output->left_size += n;
	}
	buffer_clear(&output->unwritten);
	output->written = 0;
	if (output->next_fd >= 0)
		take_over(output);
	return 0;
}

bool output_is_removed(const struct output *output)
{
	struct stat stat;

	return fstat(output->fd, &stat) == 0 && stat.st_nlink == 0;
}

uint64_t output_size(const struct output *output)
{
	return output->left_size > 0 ? (uint64_t)output->left_size : 0;
}

int output_switch(struct output *output, int fd)
{
	if (output->next_fd >= 0)
		close(output->next_fd);
	output->next_fd = fd;
	if (output_is_removed(output))
		output->written -= begun(output);
	return flush(output);
}

/*
 * What is written is cut off once it is the larger part, so that each byte is
 * moved once. A line that is not whole yet stays whole here.
 */
static void forget_written(struct output *output)
{
	struct buffer *unwritten = &output->unwritten;
	size_t whole_lines;

	if (output->written < unwritten->size / 2)
		return;
	whole_lines = output->written - begun(output);
	unwritten->size -= whole_lines;
	memmove(unwritten->data, unwritten->data + whole_lines, unwritten->size);
	output->written -= whole_lines;
}

int output_write(struct output *output, struct bytes lines, const char **ret_notice)
{
	int err = 0, flushed;

	if (lines.size == 0 && output_unwritten(output) == 0)
		return 0;
	if (output_unwritten(output) == 0)
		err = look_for_others(output, ret_notice);
	if (err)
		return err;
	if (output_unwritten(output) && output_unwritten(output) + lines.size > LIMIT_UNWRITTEN_BYTES)
		flush(output);
	if (output_unwritten(output) && output_unwritten(output) + lines.size > LIMIT_UNWRITTEN_BYTES)
		output->lost_bytes += lines.size;
	else
		err = buffer_append(&output->unwritten, lines);
	flushed = flush(output);
	if (flushed)
		forget_written(output);
	return err ? err : flushed;
}

size_t output_unwritten(const struct output *output)
{
	return output->unwritten.size - output->written;
}

uint64_t output_lost(const struct output *output)
{
	return output->lost_bytes;
}

int output_flush(struct output *output)
{
	struct pollfd room = {.fd = output->fd, .events = POLLOUT};
	int err;

	while ((err = flush(output)) == -EAGAIN && !output->reader_stands_still)
		output->reader_stands_still = poll(&room, 1, READER_PATIENCE_MS) <= 0;
	return err;
}

int output_fd(const struct output *output)
{
	return output->fd;
}

const char *output_path(const struct output *output)
{
	return output->path;
}

int output_mark_running(struct output *output, const char *run_id, bool *ret_unclean)
{
	if (output->left_size < 0) /* a pipe or a terminal has no neighbour */
		return 0;
	return output_mark_new(output->path, &output->owner, run_id, &output->mark, ret_unclean);
}

static void free_output(struct output *output)
{
	buffer_done(&output->unwritten);
	free(output->path);
	free(output);
}

int output_close(struct output *output)
{
	int err;

	if (!output)
		return 0;
	err = output_flush(output);
	if (err && output->next_fd >= 0) { /* now or never */
		output->written -= begun(output);
		err = output_flush(output);
	}
	if (!err && output->lost_bytes)
		err = -ENOBUFS;
	if (output->left_size >= 0 && fsync(output->fd) && !err)
		err = -errno;
	if (!output->shared_fd && output->fd >= 0 && close(output->fd) && !err)
		err = -errno;
	output_mark_free(output->mark);
	free_output(output);
	return err;
}

void output_abandon(struct output *output)
{
	struct stat ours, named;

	if (!output)
		return;
	if (output->made && fstat(output->fd, &ours) == 0 && lstat(output->path, &named) == 0 &&
	    ours.st_dev == named.st_dev && ours.st_ino == named.st_ino && ours.st_size == 0)
		output_owner_unlink(&output->owner, output->path);
	if (!output->shared_fd)
		close(output->fd);
	free_output(output);
}
