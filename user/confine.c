/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attached the old way (bpf_prog_attach), because a bpf_link would end with us:
 * a confinement that opens when the watchman is killed is none. With
 * BPF_F_ALLOW_MULTI no program further down can replace ours, and where we are
 * confined ourselves, both say no.
 */
#include "confine.h"
#include "cgroup.h"
#include "../bpf/confine_table.h"
#include "confine.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ENDING_MS 100 /* for processes that are on their way out when the command has ended */

struct confine {
	struct confine_bpf *skeleton;
	struct cgroup_directory cgroup;
};

static_assert(CGROUP_REASON_MAX <= CONFINE_REASON_MAX, "one reason, two files");

const char *confine_path(const struct confine *confine)
{
	return confine->cgroup.path;
}

/* ---- addresses of this machine ---- */

/* False for what is none, and for link-local ones, which another machine may have as well. */
static bool address_of(const struct sockaddr *socket_address, struct confine_address *ret_address)
{
	static const struct confine_address mapped = {{[10] = 0xff, [11] = 0xff}};

	if (socket_address && socket_address->sa_family == AF_INET) {
		const struct sockaddr_in *ipv4 = (const struct sockaddr_in *)socket_address;

		*ret_address = mapped;
		memcpy(ret_address->byte + 12, &ipv4->sin_addr, 4);
		return true;
	}
	if (socket_address && socket_address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *ipv6 = (const struct sockaddr_in6 *)socket_address;

		memcpy(ret_address->byte, &ipv6->sin6_addr, sizeof(ret_address->byte));
		return !IN6_IS_ADDR_LINKLOCAL(&ipv6->sin6_addr);
	}
	return false;
}

static int fill_own_addresses(const struct confine *confine)
{
	int map_fd = bpf_map__fd(confine->skeleton->maps.own_addresses);
	struct ifaddrs *list;
	int err = 0;

	if (getifaddrs(&list))
		return -errno;
	for (const struct ifaddrs *entry = list; !err && entry; entry = entry->ifa_next) {
		struct confine_address address;
		uint8_t yes = 1;

		if (address_of(entry->ifa_addr, &address))
			err = bpf_map_update_elem(map_fd, &address, &yes, BPF_ANY);
	}
	freeifaddrs(list);
	/* The table is full: the rest counts as off loopback, and is seen to be refused. */
	return err == -E2BIG ? 0 : err;
}

/* ---- hooks ---- */

static int load(struct confine *confine, const struct capture *capture)
{
	struct confine_bpf *skeleton = confine_bpf__open();
	struct stat netns;
	int err;

	if (!skeleton)
		return errno ? -errno : -ENOMEM;
	confine->skeleton = skeleton;
	if (stat("/proc/self/ns/net", &netns) == 0)
		skeleton->rodata->own_netns = (uint32_t)netns.st_ino;
	err = bpf_map__reuse_fd(skeleton->maps.lifecycle_ring, capture_lifecycle_ring(capture));
	if (!err)
		err = bpf_map__reuse_fd(skeleton->maps.counters, capture_counter_map(capture));
	if (!err)
		err = confine_bpf__load(skeleton);
	return err ? err : fill_own_addresses(confine);
}

struct hook {
	const struct bpf_program *program;
	enum bpf_attach_type type;
};

#define HOOK_COUNT 4

static void list_hooks(const struct confine *confine, struct hook hooks[HOOK_COUNT])
{
	const struct confine_bpf *skeleton = confine->skeleton;

	hooks[0] = (struct hook){skeleton->progs.connect_ipv4, BPF_CGROUP_INET4_CONNECT};
	hooks[1] = (struct hook){skeleton->progs.connect_ipv6, BPF_CGROUP_INET6_CONNECT};
	hooks[2] = (struct hook){skeleton->progs.send_ipv4, BPF_CGROUP_UDP4_SENDMSG};
	hooks[3] = (struct hook){skeleton->progs.send_ipv6, BPF_CGROUP_UDP6_SENDMSG};
}

static int attach(const struct confine *confine)
{
	struct hook hooks[HOOK_COUNT];
	int err = 0;

	list_hooks(confine, hooks);
	for (size_t i = 0; !err && i < HOOK_COUNT; i++)
		err = bpf_prog_attach(bpf_program__fd(hooks[i].program), confine->cgroup.fd,
				      hooks[i].type, BPF_F_ALLOW_MULTI);
	return err;
}

/* Removing the cgroup detaches too, but only once the last of its sockets is gone. */
static void detach(const struct confine *confine)
{
	struct hook hooks[HOOK_COUNT];

	list_hooks(confine, hooks);
	for (size_t i = 0; i < HOOK_COUNT; i++)
		bpf_prog_detach2(bpf_program__fd(hooks[i].program), confine->cgroup.fd,
				 hooks[i].type);
}

/* ---- life ---- */

static void say_hook_error(const char *what, int err, char *reason)
{
	static const char remedy[] = "run as root, where no cgroup above forbids programs below it";

	if (err == -EPERM)
		snprintf(reason, CONFINE_REASON_MAX,
			 "--confine: not allowed to %s: needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN: %s",
			 what, remedy);
	else if (err == -EACCES)
		snprintf(reason, CONFINE_REASON_MAX,
			 "--confine: the kernel's verifier refused the hooks: a defect of nightclerk");
	else
		snprintf(reason, CONFINE_REASON_MAX,
			 "--confine: cannot %s: %s: needs CONFIG_CGROUP_BPF", what, strerror(-err));
}

int confine_open(const struct capture *capture, pid_t pid, struct confine **ret_confine,
		 char *reason)
{
	struct confine *confine = calloc(1, sizeof(*confine));
	char cause[CGROUP_REASON_MAX];
	int err;

	if (!confine) {
		snprintf(reason, CONFINE_REASON_MAX, "out of memory");
		return -ENOMEM;
	}
	confine->cgroup.fd = -1;
	err = load(confine, capture);
	if (err)
		say_hook_error("load the hooks", err, reason);
	if (!err) {
		err = cgroup_make(&confine->cgroup, cause);
		if (err)
			snprintf(reason, CONFINE_REASON_MAX, "--confine: %.480s", cause);
	}
	if (!err) {
		err = attach(confine);
		if (err)
			say_hook_error("attach the hooks", err, reason);
	}
	if (!err) {
		err = cgroup_enter(&confine->cgroup, pid);
		if (err)
			snprintf(reason, CONFINE_REASON_MAX,
				 "--confine: cannot move the command into %.300s: %s",
				 confine->cgroup.path, strerror(-err));
	}
	if (err)
		confine_close(confine);
	else
		*ret_confine = confine;
	return err;
}

int confine_close(struct confine *confine)
{
	int err = 0;

	if (!confine)
		return 0;
	if (confine->cgroup.fd >= 0) {
		err = cgroup_await_empty(&confine->cgroup, ENDING_MS);
		if (err) {
			cgroup_close(&confine->cgroup);
		} else {
			detach(confine);
			err = cgroup_remove(&confine->cgroup);
		}
	}
	confine_bpf__destroy(confine->skeleton);
	free(confine);
	return err;
}
