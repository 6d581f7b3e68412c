/* SPDX-License-Identifier: BSD-2-Clause */
/* A directory of a test's own, and what is in it: for the tests of audit's files. */
#ifndef NIGHTCLERK_TESTS_AUDIT_PLACE_BUILD_H
#define NIGHTCLERK_TESTS_AUDIT_PLACE_BUILD_H

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_files.h"

struct place {
	char top[64];
	char directory[80]; /* of all tenants; not made */
};

static inline int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place)
		return -1;
	snprintf(place->top, sizeof(place->top), "/tmp/nightclerk-audit-XXXXXX");
	if (!mkdtemp(place->top))
		return -1;
	snprintf(place->directory, sizeof(place->directory), "%s/audit", place->top);
	*state = place;
	return 0;
}

static inline int remove_one(const char *path, const struct stat *stat, int kind, struct FTW *where)
{
	(void)stat;
	(void)kind;
	(void)where;
	return remove(path);
}

static inline int drop_place(void **state)
{
	struct place *place = *state;

	nftw(place->top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(place);
	return 0;
}

/* A path beneath top, in one of a few buffers that take turns. */
static inline const char *in(const struct place *place, const char *name)
{
	static char text[4][PATH_MAX];
	static unsigned int turn;
	char *path = text[turn++ % 4];

	snprintf(path, PATH_MAX, "%s/%s", place->top, name);
	return path;
}

static inline void put(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND, mode);

	assert_true(fd >= 0);
	assert_int_equal(fchmod(fd, mode), 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static inline void holds(const char *path, const char *expected)
{
	char text[4096] = "";
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
	fclose(file);
	assert_string_equal(text, expected);
}

static inline bool is_there(const char *path)
{
	struct stat stat;

	return lstat(path, &stat) == 0;
}

static inline struct audit_files *files_at(const char *directory, uint64_t bytes, unsigned int keep, size_t max_tenants)
{
	const struct audit_files_options options = {
		.directory = directory, .limits = {.bytes = bytes}, .keep = keep, .max_tenants = max_tenants,
	};
	char news[AUDIT_FILES_NEWS_MAX];
	struct audit_files *files = NULL;

	assert_int_equal(audit_files_new(&options, &files, news), 0);
	assert_string_equal(news, "");
	return files;
}

static inline struct audit_files_request ledger_of(const char *tenant)
{
	return (struct audit_files_request){bytes_of_string(tenant), AUDIT_LEDGER, AUDIT_FILES_NO_USER};
}

#endif
