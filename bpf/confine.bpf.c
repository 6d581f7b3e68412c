/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * `run --confine`: what the processes of one cgroup connect to, and where they
 * send UDP to, must be on loopback; else they get EPERM and the lifecycle ring
 * a WIRE_CONNECT with WIRE_REFUSED. The cgroup is the scope: these programs see
 * no other process, and every network namespace.
 *
 * The ring has no reader any more once nightclerk was killed. It then fills up,
 * and the refusals go on.
 */
#include "address.bpf.h"
#include "identity.bpf.h"

#include "confine_table.h"

#define IPPROTO_UDP 17

enum answer { REFUSE, ALLOW }; /* of a cgroup program: 0 is EPERM */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* The network namespace that own_addresses is of. */
const volatile __u32 own_netns;

/* Addresses of this machine: the kernel routes them over lo. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CONFINE_OWN_ADDRESSES);
	__type(key, struct confine_address);
	__type(value, u8);
} own_addresses SEC(".maps");

static __always_inline u32 current_netns(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, nsproxy, net_ns, ns.inum);
}

/* 0.0.0.0, its v4-mapped form and ::. The kernel takes them as 127.0.0.1 and ::1. */
static __always_inline bool address_is_any(const u8 address[WIRE_ADDRESS_BYTES])
{
	const u32 *words = (const u32 *)address;

	return !words[0] && !words[1] && (!words[2] || words[2] == bpf_htonl(0xffff)) && !words[3];
}

static __always_inline bool is_own(const struct confine_address *address)
{
	return bpf_map_lookup_elem(&own_addresses, address) && current_netns() == own_netns;
}

static __noinline int say_refused(struct bpf_sock_addr *context,
				  const struct confine_address *address)
{
	struct wire_event *event;

	if (!address)
		return 0;
	event = lifecycle_reserve(WIRE_CONNECT);
	if (!event)
		return 0;
	current_identity(event, false);
	event->flags = WIRE_IN_TREE | WIRE_CLIENT | WIRE_REFUSED;
	if (context->protocol == IPPROTO_UDP)
		event->flags |= WIRE_DATAGRAM;
	event->netns = current_netns();
	event->remote_port = bpf_ntohs(context->user_port);
	__builtin_memcpy(event->remote_address, address->byte, WIRE_ADDRESS_BYTES);
	lifecycle_submit(event, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline int judge(struct bpf_sock_addr *context,
				 const struct confine_address *address)
{
	if (address_is_loopback(address->byte) || address_is_any(address->byte) || is_own(address))
		return ALLOW;
	say_refused(context, address);
	return REFUSE;
}

static __always_inline int judge_ipv4(struct bpf_sock_addr *context)
{
	struct confine_address address;

	address_map_ipv4(address.byte, context->user_ip4);
	return judge(context, &address);
}

/* A v4-mapped destination of an IPv6 socket comes here too. */
static __always_inline int judge_ipv6(struct bpf_sock_addr *context)
{
	struct confine_address address;
	u32 *words = (u32 *)address.byte;

	words[0] = context->user_ip6[0];
	words[1] = context->user_ip6[1];
	words[2] = context->user_ip6[2];
	words[3] = context->user_ip6[3];
	return judge(context, &address);
}

SEC("cgroup/connect4")
int connect_ipv4(struct bpf_sock_addr *context)
{
	return judge_ipv4(context);
}

SEC("cgroup/connect6")
int connect_ipv6(struct bpf_sock_addr *context)
{
	return judge_ipv6(context);
}

/* UDP only, and only where the call names a destination: else connect() was asked. */
SEC("cgroup/sendmsg4")
int send_ipv4(struct bpf_sock_addr *context)
{
	return judge_ipv4(context);
}

SEC("cgroup/sendmsg6")
int send_ipv6(struct bpf_sock_addr *context)
{
	return judge_ipv6(context);
}
