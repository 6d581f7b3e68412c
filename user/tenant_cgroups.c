/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cgroup ids -> the tenant that they are of, and their paths. A host that runs
 * for weeks makes more cgroups than are worth remembering: those used longest
 * ago go, and are told again when they come back, or named by their number.
 */
#include "tenants_private.h"

#include <errno.h>

static void forget(struct tenant_cgroups *cgroups, struct tenant_cgroup *cgroup)
{
	HASH_DEL(cgroups->table, cgroup);
	cgroups->path_bytes -= cgroup->path.size;
	buffer_done(&cgroup->path);
	free(cgroup);
}

/* uthash keeps them in the order in which they were added. */
static int add(struct tenant_cgroups *cgroups, struct tenant_cgroup *cgroup)
{
	HASH_ADD(hh, cgroups->table, id, sizeof(cgroup->id), cgroup);
	if (!cgroup->hh.tbl)
		return -ENOMEM;
	cgroups->path_bytes += cgroup->path.size;
	while (HASH_COUNT(cgroups->table) > LIMIT_CGROUPS ||
	       (cgroups->path_bytes > LIMIT_CGROUP_PATHS_BYTES && cgroups->table != cgroup))
		forget(cgroups, cgroups->table);
	return 0;
}

int tenant_cgroups_learn(struct tenant_cgroups *cgroups, uint64_t id, struct bytes path)
{
	struct tenant_cgroup *cgroup = calloc(1, sizeof(*cgroup)), *old;
	int err;

	if (!cgroup)
		return -ENOMEM;
	cgroup->id = id;
	err = tenant_name_of_cgroup(path, &cgroup->name);
	if (!err)
		err = buffer_append(&cgroup->path, path);
	HASH_FIND(hh, cgroups->table, &id, sizeof(id), old);
	if (!err && old)
		forget(cgroups, old);
	if (!err)
		err = add(cgroups, cgroup);
	if (err) {
		buffer_done(&cgroup->path);
		free(cgroup);
	}
	return err;
}

const struct tenant_cgroup *tenant_cgroups_find(const struct tenant_cgroups *cgroups, uint64_t id)
{
	struct tenant_cgroup *cgroup;

	HASH_FIND(hh, cgroups->table, &id, sizeof(id), cgroup);
	return cgroup;
}

void tenant_cgroups_touch(struct tenant_cgroups *cgroups, uint64_t id)
{
	struct tenant_cgroup *cgroup;

	HASH_FIND(hh, cgroups->table, &id, sizeof(id), cgroup);
	if (!cgroup || !cgroup->hh.next) /* the last already */
		return;
	HASH_DEL(cgroups->table, cgroup);
	HASH_ADD(hh, cgroups->table, id, sizeof(cgroup->id), cgroup);
	if (cgroup->hh.tbl)
		return;
	cgroups->path_bytes -= cgroup->path.size;
	buffer_done(&cgroup->path);
	free(cgroup);
}

void tenant_cgroups_done(struct tenant_cgroups *cgroups)
{
	while (cgroups->table)
		forget(cgroups, cgroups->table);
}
