/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The temporary name is made with O_EXCL: what somebody put there is removed and
 * never written to. rename(2) replaces a symbolic link, it does not follow it.
 */
#include "metrics_file.h"
#include "beneath.h"
#include "output.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *metrics_file_wrong_name(const char *path)
{
	struct bytes name = bytes_of_string(path);

	if (name.size >= PATH_MAX - sizeof(".tmp"))
		return "takes a shorter path";
	if (!bytes_ends_with(name, BYTES(".prom")) || bytes_ends_with(name, BYTES("/.prom")))
		return "takes a file whose name ends in .prom: node_exporter reads no other";
	return NULL;
}

static int write_all(int fd, struct bytes text)
{
	while (text.size) {
		ssize_t n = write(fd, text.data, text.size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		bytes_take(&text, (size_t)n);
	}
	return 0;
}

static int write_beside(int directory, const char *name, const char *beside, struct bytes text)
{
	const int flags = O_WRONLY | O_CREAT | O_EXCL;
	int fd = beneath_open(directory, beside, flags, 0600), err;

	if (fd == -EEXIST && unlinkat(directory, beside, 0) == 0)
		fd = beneath_open(directory, beside, flags, 0600);
	if (fd < 0)
		return fd;
	err = write_all(fd, text);
	if (!err && fchmod(fd, 0644))
		err = -errno;
	if (close(fd) && !err)
		err = -errno;
	if (!err && renameat(directory, beside, directory, name))
		err = -errno;
	if (err)
		unlinkat(directory, beside, 0);
	return err;
}

int metrics_file_write(const char *path, struct bytes text, char *reason)
{
	char parent[PATH_MAX], name[PATH_MAX], beside[PATH_MAX + 4];
	int directory, err;

	*reason = 0;
	snprintf(parent, sizeof(parent), "%s", path); /* dirname(3) and basename(3) write into what they are given */
	snprintf(name, sizeof(name), "%s", path);
	snprintf(beside, sizeof(beside), "%s.tmp", basename(name));
	directory = beneath_open_directory(dirname(parent));
	err = directory < 0 ? directory : write_beside(directory, basename(name), beside, text);
	if (directory >= 0)
		close(directory);
	if (err)
		snprintf(reason, METRICS_FILE_REASON_MAX, "cannot write the metrics to %s: %s; %s", path, strerror(-err),
			 output_remedy(-err));
	return err;
}
