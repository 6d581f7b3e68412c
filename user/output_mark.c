/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A mark is written to once it is locked: who finds an empty one that nobody
 * holds yet leaves it alone, since its run is just starting.
 */
#include "output_mark.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUFFIX ".running"
#define TRIES 8 /* each is lost to another run that starts in the same moment */

struct output_mark {
	struct output_owner owner;
	char *path;
	int fd; /* with the lock */
};

/* 1: locked and still there; 0: somebody else holds it; -ESTALE: it was removed meanwhile; -errno. */
static int lock(int fd, off_t *ret_size)
{
	struct stat stat;

	if (flock(fd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? 0 : -errno;
	if (fstat(fd, &stat))
		return -errno;
	*ret_size = stat.st_size;
	return stat.st_nlink ? 1 : -ESTALE;
}

static int write_who(int fd, const char *run_id)
{
	char text[64];
	int n = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), run_id);

	return ftruncate(fd, 0) || pwrite(fd, text, (size_t)n, 0) != n ? -EIO : 0;
}

/* 1: mark->path is ours; 0: it is another's; -errno. */
static int take(struct output_mark *mark, const char *run_id, bool *ret_unclean)
{
	int result = -ESTALE;

	for (int i = 0; i < TRIES && result == -ESTALE; i++) {
		off_t size = 0;

		mark->fd = output_owner_open(&mark->owner, mark->path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC);
		if (mark->fd < 0)
			return mark->fd;
		result = lock(mark->fd, &size);
		if (result == 1)
			break;
		close(mark->fd);
		mark->fd = -1;
	}
	if (result == 1) {
		struct stat stat;

		*ret_unclean |= fstat(mark->fd, &stat) == 0 && stat.st_size > 0;
		result = write_who(mark->fd, run_id) ? -EIO : 1;
	}
	return result;
}

/* The mark of a run beside the first one: is its run gone? */
static void look_at(const struct output_owner *owner, const char *path, bool *ret_unclean)
{
	int fd = output_owner_open(owner, path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	off_t size = 0;

	if (fd < 0)
		return;
	if (lock(fd, &size) == 1 && size > 0) {
		*ret_unclean = true;
		output_owner_unlink(owner, path);
	}
	close(fd);
}

static bool is_beside(const char *name, const char *base)
{
	size_t length = strlen(name), base_length = strlen(base);

	return length > base_length + strlen(SUFFIX) && strncmp(name, base, base_length) == 0 &&
	       name[base_length] == '.' && strcmp(name + length - strlen(SUFFIX), SUFFIX) == 0;
}

static int look_beside(const char *path, const struct output_owner *owner, bool *ret_unclean)
{
	char *for_directory = strdup(path), *for_base = strdup(path);
	const char *directory = for_directory ? dirname(for_directory) : NULL;
	const char *base = for_base ? basename(for_base) : NULL;
	int fd = directory && base ? output_owner_open(owner, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -ENOMEM;
	DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	while (entries && (entry = readdir(entries))) {
		char *beside;

		if (!is_beside(entry->d_name, base) || asprintf(&beside, "%s/%s", directory, entry->d_name) < 0)
			continue;
		look_at(owner, beside, ret_unclean);
		free(beside);
	}
	if (entries)
		closedir(entries);
	free(for_directory);
	free(for_base);
	return fd < 0 ? fd : 0;
}

static int name_and_take(struct output_mark *mark, const char *path, const char *run_id, bool *ret_unclean)
{
	int result;

	if (asprintf(&mark->path, "%s" SUFFIX, path) < 0)
		return -ENOMEM;
	result = take(mark, run_id, ret_unclean);
	if (result)
		return result;
	free(mark->path);
	if (asprintf(&mark->path, "%s.%s" SUFFIX, path, run_id) < 0)
		return -ENOMEM;
	return take(mark, run_id, ret_unclean);
}

int output_mark_new(const char *path, const struct output_owner *owner, const char *run_id,
		    struct output_mark **ret_mark, bool *ret_unclean)
{
	struct output_mark *mark = calloc(1, sizeof(*mark));
	int result;

	if (!mark)
		return -ENOMEM;
	*mark = (struct output_mark){.owner = *owner, .fd = -1};
	look_beside(path, owner, ret_unclean); /* a directory that cannot be read has no mark that we could name */
	result = name_and_take(mark, path, run_id, ret_unclean);
	if (result == 1) {
		*ret_mark = mark;
		return 0;
	}
	if (mark->fd >= 0)
		close(mark->fd);
	free(mark->path);
	free(mark);
	return result ? result : -EBUSY;
}

void output_mark_free(struct output_mark *mark)
{
	if (!mark)
		return;
	output_owner_unlink(&mark->owner, mark->path);
	close(mark->fd);
	free(mark->path);
	free(mark);
}
