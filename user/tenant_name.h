/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whose calls these are: the path of a cgroup, or a uid -> the name of a
 * tenant, which is also the name of a directory.
 *
 * A name has 1 to TENANT_NAME_BYTES bytes of A-Z a-z 0-9 _ . @ : + ~ -, begins
 * with a letter, a digit or "_", and is the same whenever it is asked for. Two cgroups
 * with one name are one tenant, so a tenant that makes cgroups below its own
 * can neither multiply nor take the name of another:
 *
 *  - the outermost container on the path is the tenant, with all below it. Its name is the engine's and the
 *    first 12 digits of its id, as the engines print them: "docker-0123456789ab"; in a pod "k8s-UID-0123456789ab";
 *  - else the outermost unit of systemd that only slices hold: "nginx.service", "user-1000+session-3.scope";
 *  - else the whole path, "+" for each inner "/": "/sandboxes/7" is "sandboxes+7".
 *
 * A container that is not where its engine puts it has what holds it in its
 * name: "user@1000.service+podman-0123456789ab". What does not fit, or has
 * other bytes, is replaced and cut, and "~" with 16 hex digits of a SHA-256
 * of the path follows.
 *
 * Layouts: systemd (CGROUP_DELEGATION), Docker and containerd with runc's systemd and cgroupfs drivers, Podman,
 * CRI-O, Kubernetes (kubelet's cgroup manager), LXC. No daemon is asked.
 */
#ifndef NIGHTCLERK_TENANT_NAME_H
#define NIGHTCLERK_TENANT_NAME_H

#include "bytes.h"

#define TENANT_NAME_BYTES 64
#define TENANT_NAME_OTHERS "others" /* no cgroup and no uid has this name */

struct tenant_name {
	char text[TENANT_NAME_BYTES + 1];
};

/* path below the mount of cgroup v2, "/" for its root: any bytes. 0, or -ENOMEM (libcrypto failed). */
int tenant_name_of_cgroup(struct bytes path, struct tenant_name *ret_name);
/* A cgroup whose path could not be found: "cgroup-ID". */
void tenant_name_of_cgroup_id(uint64_t id, struct tenant_name *ret_name);
/* "uid-1000" */
void tenant_name_of_uid(uint32_t uid, struct tenant_name *ret_name);
/*
 * Who can make more tenants like it, as far as its name tells: "user-1000" of "user-1000+session-3.scope" and of
 * "user@1000.service+podman-0123456789ab", "sandboxes" of "sandboxes+7", "cgroup" of all whose path could not be found
 * (they were gone too soon); of any other name, all of it.
 */
void tenant_name_of_holder(const struct tenant_name *name, struct tenant_name *ret_holder);

#endif
