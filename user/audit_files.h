/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of the tenants, as the privileged monitor of `audit` opens and
 * rotates them for a collector that it does not trust:
 *
 *   DIRECTORY/TENANT/call_ledger.jsonl, .1 (the last one set aside) ... .KEEP
 *   DIRECTORY/TENANT/events.jsonl,      .1 ... .KEEP
 *
 * No part of DIRECTORY may be a symbolic link, it must belong to us, and nobody else may write to it. Each
 * tenant's directory is 0700 and its files 0600, ours; where the tenant is a user with a group of his own
 * (the group has his name), that group may read them: 0750 and 0640. What is there already under these
 * names: of another owner, not a regular file, or with a second hard link: refused, since a stranger may hold it
 * open; ours with another mode or group: set right.
 *
 * A descriptor that is given away can append and nothing else: who has it cannot read what was written earlier.
 *
 * What a collector that went wrong can do is bounded: names are looked at again, a user's name must be that
 * user's, tenants, openings and new directories are limited, and a file is only set aside when the monitor's own
 * limits say so.
 */
#ifndef NIGHTCLERK_AUDIT_FILES_H
#define NIGHTCLERK_AUDIT_FILES_H

#include "bytes.h"
#include "rotation.h"

#include <sys/types.h>

#define AUDIT_FILES_NEWS_MAX 512
#define AUDIT_FILES_NO_USER ((uid_t)-1)

enum audit_file { AUDIT_LEDGER, AUDIT_EVENTS, AUDIT_FILE_COUNT };

struct audit_files_options {
	const char *directory;		/* borrowed */
	struct rotation_limits limits;
	unsigned int keep;		/* files set aside of each kind; at least 1 is */
	size_t max_tenants;
};

struct audit_files_request {
	struct bytes tenant; /* as the collector sent it: any bytes */
	enum audit_file file;
	uid_t user; /* who the tenant is, AUDIT_FILES_NO_USER: a cgroup */
};

struct audit_files;

/*
 * Makes the directory if its parent is there. 0, or -errno with one line in news (AUDIT_FILES_NEWS_MAX bytes) that
 * names cause and remedy.
 */
int audit_files_new(const struct audit_files_options *options, struct audit_files **ret_files, char *news);
void audit_files_free(struct audit_files *files); /* accepts NULL */

/*
 * A descriptor for appending, which the caller owns, or -errno. news (AUDIT_FILES_NEWS_MAX bytes) is one line for
 * people where there is something to say, else empty: a failure is said once, until it works again; that is said,
 * too, and that the directory was made again. A half line that a dead collector left is ended with LF.
 * now_ns: CLOCK_MONOTONIC; wall_ns: since 1970.
 *
 * -EINVAL: no name that a sound collector sends; -EPERM: that user has another name, or the file is not
 * ours; -EBUSY: too many tenants, or too many at once: ask later.
 */
int audit_files_open(struct audit_files *files, const struct audit_files_request *request, uint64_t now_ns, char *news);
/*
 * The file becomes .1, .1 becomes .2 ..., the oldest goes; a new one is opened as above. -EAGAIN: it is neither as
 * large nor as old as the limits say, and stays.
 */
int audit_files_rotate(struct audit_files *files, const struct audit_files_request *request, uint64_t now_ns,
		       int64_t wall_ns, char *news);
/* A tenant is gone: room for another. */
void audit_files_forget(struct audit_files *files, struct bytes tenant);
/* The collector is gone, and with it every descriptor that was given. */
void audit_files_forget_all(struct audit_files *files);

/* Requests that no sound collector makes, and opens and rotations that failed. For the metrics. */
uint64_t audit_files_refused(const struct audit_files *files);
uint64_t audit_files_failed(const struct audit_files *files);

/* Is it a tenant's name: 1 to 64 of A-Z a-z 0-9 . _ @ : + ~ - and the first a letter, a digit or "_"? */
bool audit_files_is_name(struct bytes name);

#endif
