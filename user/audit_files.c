/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every request starts at the path again and keeps no directory open: one that
 * was removed, replaced or mounted over is then simply what is found. Nothing
 * is trusted because it was right a moment ago: each look is at a descriptor.
 */
#include "audit_files.h"
#include "audit_place.h"
#include "beneath.h"
#include "output.h"
#include "rate.h"
#include "tenant_name.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#define OPENS_PER_SECOND 64
#define OPENS_MIN 64
#define NEW_TENANTS_PER_SECOND 20

static const char *const file_names[AUDIT_FILE_COUNT] = {
	[AUDIT_LEDGER] = "call_ledger.jsonl",
	[AUDIT_EVENTS] = "events.jsonl",
};

struct tenant_files {
	char name[TENANT_NAME_BYTES + 1];
	bool given[AUDIT_FILE_COUNT];	       /* to the collector that lives */
	uint64_t opened_ns[AUDIT_FILE_COUNT];  /* the present file, where its file system knows no birth */
	int said[AUDIT_FILE_COUNT];	       /* the failure that was said; 0 = it works */
	UT_hash_handle hh;
};

struct audit_files {
	struct audit_files_options options;
	struct tenant_files *tenants;
	struct rate opens;
	struct rate new_tenants;
	uint64_t refused;
	uint64_t failed;
	int disk_said;	   /* a failure of the whole file system */
	bool refusal_said; /* of a request that no sound collector makes: once in its life */
};

/* ---- what a collector may ask ---- */

static bool is_name_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("._@:+~-", c));
}

bool audit_files_is_name(struct bytes name)
{
	if (name.size == 0 || name.size > TENANT_NAME_BYTES || strchr(".@:+~-", name.data[0]))
		return false;
	for (size_t i = 0; i < name.size; i++)
		if (!is_name_byte(name.data[i]))
			return false;
	return true;
}

/* A user's files are shared with him: the name must be his, or one tenant could be shown another's. */
static int check_request(const struct audit_files_request *request)
{
	struct tenant_name own;

	if (!audit_files_is_name(request->tenant) || (unsigned int)request->file >= AUDIT_FILE_COUNT)
		return -EINVAL;
	if (request->user == AUDIT_FILES_NO_USER)
		return 0;
	tenant_name_of_uid(request->user, &own);
	return bytes_equal(request->tenant, bytes_of_string(own.text)) ? 0 : -EPERM;
}

static struct tenant_files *find(struct audit_files *files, struct bytes name)
{
	struct tenant_files *tenant;

	HASH_FIND(hh, files->tenants, name.data, name.size, tenant);
	return tenant;
}

static int add(struct audit_files *files, struct bytes name, uint64_t now_ns, struct tenant_files **ret_tenant)
{
	struct tenant_files *tenant;

	if (HASH_COUNT(files->tenants) > files->options.max_tenants || !rate_take(&files->new_tenants, now_ns))
		return -EBUSY;
	tenant = calloc(1, sizeof(*tenant));
	if (!tenant)
		return -ENOMEM;
	memcpy(tenant->name, name.data, name.size);
	HASH_ADD_KEYPTR(hh, files->tenants, tenant->name, name.size, tenant);
	if (!tenant->hh.tbl) {
		free(tenant);
		return -ENOMEM;
	}
	*ret_tenant = tenant;
	return 0;
}

static int admit(struct audit_files *files, const struct audit_files_request *request, uint64_t now_ns,
		 struct tenant_files **ret_tenant)
{
	int err = check_request(request);

	if (err)
		return err;
	if (!rate_take(&files->opens, now_ns))
		return -EBUSY;
	*ret_tenant = find(files, request->tenant);
	return *ret_tenant ? 0 : add(files, request->tenant, now_ns, ret_tenant);
}

static int refuse(struct audit_files *files, int err, char *news)
{
	files->refused++;
	if (files->refusal_said)
		return err;
	files->refusal_said = true;
	if (err == -EBUSY)
		snprintf(news, AUDIT_FILES_NEWS_MAX, "the collector asks for more files than %zu tenants need; the rest wait: "
			 "raise --max-tenants if there are so many", files->options.max_tenants);
	else
		snprintf(news, AUDIT_FILES_NEWS_MAX, "the collector asked for a file that no tenant has (%s), refused; if that "
			 "was not a new version of nightclerk, look at what it watched", strerror(-err));
	return err;
}

/* ---- what people are told ---- */

/* What one file's trouble shares with all others is said once for all. */
static bool is_of_the_disk(int err)
{
	return err == -ENOSPC || err == -EDQUOT || err == -EROFS || err == -EIO || err == -ENOENT;
}

static void say_failure(struct audit_files *files, struct tenant_files *tenant, enum audit_file file, int err,
			const char *why, char *news)
{
	int *said = is_of_the_disk(err) ? &files->disk_said : &tenant->said[file];

	files->failed++;
	if (*said == err)
		return;
	*said = err;
	snprintf(news, AUDIT_FILES_NEWS_MAX, "cannot open %s/%s/%s: %s%s%s; its lines wait in memory", files->options.directory,
		 tenant->name, file_names[file], why ? why : strerror(-err), why ? "" : "; ", why ? "" : output_remedy(-err));
}

static void say_success(struct audit_files *files, struct tenant_files *tenant, enum audit_file file, bool made, char *news)
{
	if (made)
		snprintf(news, AUDIT_FILES_NEWS_MAX, "%s was gone and has been made again; what it held is not there any more",
			 files->options.directory);
	else if (files->disk_said || tenant->said[file])
		snprintf(news, AUDIT_FILES_NEWS_MAX, "%s/%s/%s can be opened again", files->options.directory, tenant->name,
			 file_names[file]);
	files->disk_said = 0;
	tenant->said[file] = 0;
}

/* ---- opening and setting aside ---- */

/* The tenant's directory. */
static int enter(struct audit_files *files, const struct audit_files_request *request, const struct tenant_files *tenant,
		 gid_t *ret_group, bool *ret_made, const char **ret_why)
{
	int directory = audit_place_directory(files->options.directory, ret_made, ret_why), fd;

	if (directory < 0)
		return directory;
	*ret_group = request->user == AUDIT_FILES_NO_USER ? AUDIT_PLACE_NOBODY : audit_place_group(request->user);
	fd = audit_place_tenant(directory, tenant->name, *ret_group, ret_why);
	close(directory);
	return fd;
}

/*
 * A collector that lives may stand inside a line which its disk did not take,
 * and goes on with it: only the half lines of a dead one are ended.
 */
static int open_in(int place, struct tenant_files *tenant, enum audit_file file, gid_t group, const char **ret_why)
{
	int fd = audit_place_file(place, file_names[file], group, ret_why);
	int err = fd >= 0 && !tenant->given[file] ? audit_place_end_line(place, file_names[file], fd) : 0;

	if (!err)
		return fd;
	close(fd);
	return err;
}

/* Neither as large nor as old as the limits say: -EAGAIN. None there: 0, and a new one is opened. */
static int check_due(const struct audit_files *files, int place, const struct tenant_files *tenant, enum audit_file file,
		     uint64_t now_ns, int64_t wall_ns)
{
	int fd = beneath_open(place, file_names[file], O_RDONLY, 0);
	uint64_t age_ns = now_ns - tenant->opened_ns[file];
	int64_t born_ns;
	struct stat stat;
	int err = 0;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (fstat(fd, &stat))
		err = -errno;
	if (beneath_born(fd, &born_ns) == 0)
		age_ns = wall_ns > born_ns ? (uint64_t)(wall_ns - born_ns) : 0;
	if (!err && !rotation_is_due(&files->options.limits, (uint64_t)stat.st_size, age_ns))
		err = -EAGAIN;
	close(fd);
	return err;
}

static int set_aside(const struct audit_files *files, int place, struct tenant_files *tenant, enum audit_file file,
		     uint64_t now_ns, int64_t wall_ns)
{
	int err = check_due(files, place, tenant, file, now_ns, wall_ns);

	if (!err)
		err = audit_place_shift(place, file_names[file], files->options.keep);
	if (!err)
		tenant->opened_ns[file] = 0;
	return err;
}

static int serve(struct audit_files *files, const struct audit_files_request *request, bool rotate, uint64_t now_ns,
		 int64_t wall_ns, char *news)
{
	enum audit_file file = request->file;
	struct tenant_files *tenant = NULL;
	const char *why = NULL;
	gid_t group = AUDIT_PLACE_NOBODY;
	bool made = false;
	int fd, place, err;

	*news = 0;
	err = admit(files, request, now_ns, &tenant);
	if (err)
		return refuse(files, err, news);
	place = enter(files, request, tenant, &group, &made, &why);
	fd = place;
	if (place >= 0) {
		err = rotate ? set_aside(files, place, tenant, file, now_ns, wall_ns) : 0;
		fd = err ? err : open_in(place, tenant, file, group, &why);
		close(place);
	}
	if (fd == -EAGAIN)
		return fd;
	if (fd < 0) {
		say_failure(files, tenant, file, fd, why, news);
		return fd;
	}
	say_success(files, tenant, file, made, news);
	tenant->given[file] = true;
	if (!tenant->opened_ns[file])
		tenant->opened_ns[file] = now_ns;
	return fd;
}

int audit_files_open(struct audit_files *files, const struct audit_files_request *request, uint64_t now_ns, char *news)
{
	return serve(files, request, false, now_ns, 0, news);
}

int audit_files_rotate(struct audit_files *files, const struct audit_files_request *request, uint64_t now_ns,
		       int64_t wall_ns, char *news)
{
	return serve(files, request, true, now_ns, wall_ns, news);
}

/* ---- life ---- */

int audit_files_new(const struct audit_files_options *options, struct audit_files **ret_files, char *news)
{
	struct audit_files *files = calloc(1, sizeof(*files));
	const char *why = NULL;
	bool made = false;
	int fd = files ? audit_place_directory(options->directory, &made, &why) : -ENOMEM;

	*news = 0;
	if (fd < 0) {
		snprintf(news, AUDIT_FILES_NEWS_MAX, "cannot use %s: %s%s%s", options->directory, why ? why : strerror(-fd),
			 why ? "" : "; ", why ? "" : output_remedy(-fd));
		free(files);
		return fd;
	}
	close(fd);
	files->options = *options;
	if (files->options.keep < 1)
		files->options.keep = 1;
	if (files->options.keep > AUDIT_PLACE_KEEP_MAX)
		files->options.keep = AUDIT_PLACE_KEEP_MAX;
	audit_files_forget_all(files);
	*ret_files = files;
	return 0;
}

void audit_files_free(struct audit_files *files)
{
	if (files)
		audit_files_forget_all(files);
	free(files);
}

static void drop(struct audit_files *files, struct tenant_files *tenant)
{
	HASH_DEL(files->tenants, tenant);
	free(tenant);
}

void audit_files_forget(struct audit_files *files, struct bytes name)
{
	struct tenant_files *tenant = find(files, name);

	if (tenant)
		drop(files, tenant);
}

/* A new collector opens every file at once, and may. */
void audit_files_forget_all(struct audit_files *files)
{
	struct tenant_files *tenant, *next;

	HASH_ITER (hh, files->tenants, tenant, next)
		drop(files, tenant);
	files->opens = (struct rate){.interval_ns = 1000000000 / OPENS_PER_SECOND,
				     .burst = OPENS_MIN + 4 * AUDIT_FILE_COUNT * files->options.max_tenants};
	files->new_tenants = (struct rate){.interval_ns = 1000000000 / NEW_TENANTS_PER_SECOND,
					   .burst = 2 + files->options.max_tenants};
	files->refusal_said = false;
}

uint64_t audit_files_refused(const struct audit_files *files)
{
	return files->refused;
}

uint64_t audit_files_failed(const struct audit_files *files)
{
	return files->failed;
}
