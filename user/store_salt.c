/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The salt lives beside the store, not in it: whoever is given a copy of the
 * store cannot try out whose credentials are behind a hash.
 */
#include "store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#define SALT_BYTES 32

/* 0, -ENOENT, or -EBADMSG for a file that is no salt. */
static int read_salt(const char *path, const struct output_owner *owner, uint8_t salt[32])
{
	uint8_t bytes[SALT_BYTES + 1];
	int fd = output_owner_open(owner, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* it may be a FIFO */
	ssize_t n;

	if (fd < 0)
		return fd;
	n = read(fd, bytes, sizeof(bytes));
	close(fd);
	if (n != SALT_BYTES)
		return n < 0 ? -EIO : -EBADMSG;
	memcpy(salt, bytes, SALT_BYTES);
	return 0;
}

/* Whole or not at all: of several that start at once, one makes it and all read the same. */
static int make_salt(const char *path, const struct output_owner *owner)
{
	uint8_t salt[SALT_BYTES];
	char *made;
	int fd, err = 0;

	if (getrandom(salt, sizeof(salt), 0) != sizeof(salt))
		return -EIO;
	if (asprintf(&made, "%s.%ld", path, (long)getpid()) < 0)
		return -ENOMEM;
	fd = output_owner_open(owner, made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0) {
		free(made);
		return fd;
	}
	if (write(fd, salt, sizeof(salt)) != sizeof(salt) || fsync(fd))
		err = -errno;
	close(fd);
	if (!err && link(made, path) && errno != EEXIST)
		err = -errno;
	output_owner_unlink(owner, made);
	free(made);
	return err;
}

int store_salt(const char *path, const struct output_owner *owner, uint8_t salt[32], char *reason)
{
	char *file;
	int err;

	if (asprintf(&file, "%s.salt", path) < 0) {
		snprintf(reason, STORE_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	err = read_salt(file, owner, salt);
	if (err == -ENOENT) {
		err = make_salt(file, owner);
		if (!err)
			err = read_salt(file, owner, salt);
	}
	if (err == -EBADMSG)
		snprintf(reason, STORE_REASON_MAX,
			 "%s does not hold the 32 bytes of a salt; remove it: principals of earlier runs then match no more", file);
	else if (err)
		snprintf(reason, STORE_REASON_MAX, "cannot use %s: %s; %s", file, strerror(-err), output_remedy(-err));
	free(file);
	return err;
}

/* The file, the log and the shared memory of WAL mode, the rollback journal, the salt. */
void store_files_of(const char *path, struct store_files *ret_files)
{
	static const char *const suffixes[STORE_FILES] = {"", "-wal", "-shm", "-journal", ".salt"};

	for (size_t i = 0; i < STORE_FILES; i++) {
		int n = snprintf(ret_files->path[i], sizeof(ret_files->path[i]), "%s%s", path, suffixes[i]);

		if (n < 0 || (size_t)n >= sizeof(ret_files->path[i]))
			ret_files->path[i][0] = '\0';
	}
}
