/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loads the probe through one of its doors, attaches it, and moves its records
 * into the sequencer.
 */
#include "capture_private.h"
#include "../bpf/flow_table.h"
#include "../bpf/share_table.h"
#include "capture.skel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_RING_BYTES (64UL * 1024 * 1024)
#define FRONT_RING_BYTES (4UL * 1024 * 1024) /* what a core's cache can keep: bpf/tables.bpf.h */
#define DATA_SLICE_BYTES (256UL * 1024)
#define LIFECYCLE_RING_BYTES (16UL * 1024 * 1024) /* 100,000 events: a storm of 10,000 connections lives 1 s unread */
#define MUTED_BYTES (WIRE_MUTED_SLOTS * sizeof(uint64_t))
#define INITIAL_PID_NAMESPACE 0xEFFFFFFCU /* PROC_PID_INIT_INO, include/linux/proc_ns.h */

const char *capture_door_name(enum capture_door door)
{
	switch (door) {
	case CAPTURE_DOOR_KPROBE:
		return "kprobe";
	case CAPTURE_DOOR_TRACEPOINT:
		return "tracepoint";
	default:
		return "auto";
	}
}

/* ---- iterators ---- */

/* A link is made while the privileges are there; running it needs none. */
int capture_iterator_run(const struct bpf_link *link)
{
	char ignored[512];
	int fd = bpf_iter_create(bpf_link__fd(link));
	ssize_t n;

	if (fd < 0)
		return -errno;
	do {
		n = read(fd, ignored, sizeof(ignored));
	} while (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)));
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

static int iterator_link(const struct bpf_program *program, struct bpf_link **ret_link)
{
	LIBBPF_OPTS(bpf_iter_attach_opts, options);
	struct bpf_link *link = bpf_program__attach_iter(program, &options);

	if (!link)
		return errno ? -errno : -EINVAL;
	*ret_link = link;
	return 0;
}

/* ---- numbers of processes ---- */

static uint32_t inode_of(const char *path)
{
	struct stat status;

	return stat(path, &status) ? 0 : (uint32_t)status.st_ino;
}

/* The kernel side knows a process by its number in the initial pid namespace. */
int capture_resolve_tgid(const struct capture *capture, uint32_t tgid, uint32_t *ret_tgid)
{
	struct capture_bpf__bss *bss = capture->skeleton->bss;
	int error;

	if (!capture->own_pid_namespace || !tgid) {
		*ret_tgid = tgid;
		return 0;
	}
	bss->resolve_pid = tgid;
	bss->resolve_pid_namespace = capture->pid_namespace;
	bss->resolved_tgid = 0;
	error = capture_iterator_run(capture->resolve_link);
	if (error)
		return error;
	if (!bss->resolved_tgid)
		return -ESRCH;
	*ret_tgid = bss->resolved_tgid;
	return 0;
}

int capture_add_process(struct capture *capture, uint32_t tgid)
{
	struct tree_entry entry = {.ns_tgid = tgid};
	uint32_t key;
	int error = capture_resolve_tgid(capture, tgid, &key);

	if (error)
		return error;
	return bpf_map_update_elem(capture->tree_fd, &key, &entry, BPF_ANY);
}

int capture_set_canary(struct capture *capture, uint32_t client_tgid, uint32_t server_tgid)
{
	uint32_t client, server;
	int error = capture_resolve_tgid(capture, client_tgid, &client);

	if (!error)
		error = capture_resolve_tgid(capture, server_tgid, &server);
	if (error)
		return error;
	capture->skeleton->bss->canary_tgids[1] = server;
	capture->skeleton->bss->canary_tgids[0] = client;
	return 0;
}

/* ---- pages ---- */

/* The probe looks for a page that is in a pipe of ours. Where it does not find it, sends of pages are holes. */
static int find_pages(struct capture *capture)
{
	struct capture_bpf__bss *bss = capture->skeleton->bss;
	uint64_t mark[PAGES_MARK_WORDS], seed;
	LIBBPF_OPTS(bpf_test_run_opts, run);
	int ends[2], error = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed) || pipe2(ends, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	for (uint32_t i = 0; i < PAGES_MARK_WORDS; i++)
		mark[i] = pages_mark(seed, i);
	if (write(ends[1], mark, sizeof(mark)) != sizeof(mark))
		error = -errno;
	explicit_bzero(mark, sizeof(mark)); /* the pipe's page is to be the only one that has it */
	bss->pages_seed = seed;
	bss->pages_pipe = (uint32_t)ends[0];
	if (!error)
		error = bpf_prog_test_run_opts(
			bpf_program__fd(capture->skeleton->progs.run_find_pages), &run);
	close(ends[0]);
	close(ends[1]);
	return error;
}

bool capture_reads_pages(const struct capture *capture)
{
	return capture->skeleton->bss->pages_memory != 0;
}

/* ---- open ---- */

static enum scope_mode scope_mode(enum capture_scope scope)
{
	switch (scope) {
	case CAPTURE_TREE:
		return SCOPE_TREE;
	case CAPTURE_PID:
		return SCOPE_PID;
	case CAPTURE_CGROUP:
		return SCOPE_CGROUP;
	case CAPTURE_UID:
		return SCOPE_UID;
	case CAPTURE_COMM:
		return SCOPE_COMM;
	case CAPTURE_PORT:
		return SCOPE_PORT;
	case CAPTURE_ALL:
		break;
	}
	return SCOPE_ALL;
}

/* Whose sockets may be older than the probe. */
static bool scope_is_of_processes(enum capture_scope scope)
{
	return scope == CAPTURE_PID || scope == CAPTURE_CGROUP || scope == CAPTURE_UID ||
	       scope == CAPTURE_COMM;
}

static void set_options(struct capture *capture, const struct capture_options *options)
{
	struct capture_bpf__rodata *rodata = capture->skeleton->rodata;

	rodata->scope_mode = scope_mode(options->scope);
	rodata->scope_host_wide = options->host_wide;
	rodata->scope_netns = inode_of("/proc/self/ns/net");
	rodata->scope_cgroup = options->cgroup_id;
	rodata->scope_uid = options->uid;
	rodata->scope_port = options->port;
	memcpy((char *)rodata->scope_comm, options->comm, sizeof(options->comm));
	rodata->share_by = (uint32_t)options->fair;
	rodata->data_ring_quarter = capture->data_ring_bytes / 4;
	rodata->front_ring_full = capture->front_ring_bytes / 8;
}

static void choose_programs(struct capture *capture, const struct capture_options *options)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, capture->skeleton->obj) {
		const char *name = bpf_program__name(program);
		const char *door = capture_door_name(capture->door);
		bool of_door = !strncmp(name, door, strlen(door)) || capture_is_copy(name);

		bpf_program__set_autoattach(program, of_door);
		bpf_program__set_autoload(program, of_door);
	}
	if (capture->door == CAPTURE_DOOR_KPROBE && !capture_event_of_send_end())
		bpf_program__set_autoload(capture->skeleton->progs.kprobe_send_end, false);
	bpf_program__set_autoload(capture->skeleton->progs.run_refresh, true);
	bpf_program__set_autoload(capture->skeleton->progs.run_find_pages, true);
	bpf_program__set_autoload(capture->skeleton->progs.iter_resolve,
				  capture->own_pid_namespace);
	bpf_program__set_autoload(capture->skeleton->progs.iter_sockets,
				  scope_is_of_processes(options->scope));
	bpf_program__set_autoload(capture->skeleton->progs.iter_ports, options->scope != CAPTURE_TREE);
}

static int set_ring_size(struct bpf_map *map, size_t bytes)
{
	return bpf_map__set_max_entries(map, (uint32_t)bytes);
}

static int set_ring_sizes(struct capture *capture, const struct capture_options *options)
{
	size_t lifecycle = options->lifecycle_ring_bytes ? options->lifecycle_ring_bytes
							 : LIFECYCLE_RING_BYTES;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int error;

	capture->data_ring_bytes =
		options->data_ring_bytes ? options->data_ring_bytes : DATA_RING_BYTES;
	if (capture->data_ring_bytes % page ||
	    (capture->data_ring_bytes & (capture->data_ring_bytes - 1)) || lifecycle % page ||
	    (lifecycle & (lifecycle - 1)) || capture->data_ring_bytes > UINT32_MAX)
		return -EINVAL;
	capture->lifecycle_ring_bytes = lifecycle;
	if (capture->data_ring_bytes > FRONT_RING_BYTES)
		capture->front_ring_bytes = FRONT_RING_BYTES;
	error = set_ring_size(capture->skeleton->maps.data_ring, capture->data_ring_bytes);
	if (!error)
		error = set_ring_size(capture->skeleton->maps.lifecycle_ring, lifecycle);
	if (!error)
		error = set_ring_size(capture->skeleton->maps.front_ring,
				      capture->front_ring_bytes ? capture->front_ring_bytes : page);
	if (!error && options->fair == CAPTURE_FAIR_NONE)
		error = bpf_map__set_max_entries(capture->skeleton->maps.shares, 1);
	return error;
}

static int take_record(struct capture *capture, const void *data, size_t size, enum share_ring ring)
{
	const struct wire_event *event = data;
	struct wire_event unshared;
	int error;

	if (size < sizeof(*event) || event->version != WIRE_EVENT_VERSION ||
	    event->captured_bytes > size - sizeof(*event)) {
		capture->error = -EPROTO;
		return -EPROTO;
	}
	if (capture->shares && event->flow) {
		capture_shares_consume(capture, event, ring, size);
		unshared = *event;
		unshared.share = 0;
		event = &unshared;
	}
	error = sequencer_push(
		capture->sequencer, event,
		(struct bytes){(const uint8_t *)data + sizeof(*event), event->captured_bytes});
	if (error)
		capture->error = error; /* this one is lost; its stream will show the gap */
	else
		capture->drained++;
	return 0;
}

static int take_lifecycle(void *context, const void *data, size_t size)
{
	return take_record(context, data, size, SHARE_LIFECYCLE);
}

static int take_data(void *context, const void *data, size_t size)
{
	return take_record(context, data, size, SHARE_DATA);
}

/*
 * Edge-triggered: what was submitted without a wake-up must not call for a
 * drain, or the collector would run for a handful of records at a time.
 */
static int watch_ring(int epoll_fd, int ring_fd)
{
	struct epoll_event readable = {.events = EPOLLIN | EPOLLET};

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, ring_fd, &readable) ? -errno : 0;
}

static int open_ring(struct capture *capture, const struct bpf_map *map, size_t bytes, struct ring *ring)
{
	int fd = bpf_map__fd(map), error = ring_open(fd, bytes, ring);

	return error ? error : watch_ring(capture->epoll_fd, fd);
}

static int map_rings(struct capture *capture)
{
	const struct capture_bpf *skeleton = capture->skeleton;
	void *muted;
	int error;

	capture->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (capture->epoll_fd < 0)
		return -errno;
	error = open_ring(capture, skeleton->maps.data_ring, capture->data_ring_bytes, &capture->data);
	if (!error && capture->front_ring_bytes)
		error = open_ring(capture, skeleton->maps.front_ring, capture->front_ring_bytes, &capture->front);
	if (!error)
		error = open_ring(capture, skeleton->maps.lifecycle_ring, capture->lifecycle_ring_bytes,
				  &capture->lifecycle);
	if (error)
		return error;
	muted = mmap(NULL, MUTED_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
		     bpf_map__fd(capture->skeleton->maps.muted), 0);
	if (muted == MAP_FAILED)
		return -errno;
	capture->muted = muted;
	return 0;
}

static int prepare_processes(struct capture *capture, const struct capture_options *options)
{
	struct capture_bpf *skeleton = capture->skeleton;
	uint32_t own;
	int error = 0;

	if (capture->own_pid_namespace)
		error = iterator_link(skeleton->progs.iter_resolve, &capture->resolve_link);
	if (!error)
		error = capture_resolve_tgid(capture, (uint32_t)getpid(), &own);
	if (error)
		return error;
	skeleton->bss->own_tgid = own;
	return options->scope == CAPTURE_PID ? capture_add_process(capture, options->pid) : 0;
}

static int attach_return(struct capture *capture, const struct bpf_program *program,
			 const char *function)
{
	return capture_event_attach(&capture->events[capture->event_count++], program, function);
}

static int attach_entry(struct capture *capture, const struct bpf_program *program,
			const char *function)
{
	struct bpf_link *link = bpf_program__attach_kprobe(program, false, function);

	if (!link)
		return errno ? -errno : -EINVAL;
	capture->entry_links[capture->entry_count++] = link;
	return 0;
}

/* sendfile and splice: before 6.5 by a function of their own, which is not there later. */
static int attach_pages(struct capture *capture)
{
	static const char function[] = "do_tcp_sendpages";
	int error = attach_return(capture, capture->skeleton->progs.kprobe_send_return, function);

	if (error == -ENOENT || error == -EINVAL) {
		capture->event_count--;
		return 0;
	}
	return error ? error : attach_entry(capture, capture->skeleton->progs.kprobe_pages_start, function);
}

/* The end of a send first: a start without an end would stay open. */
static int attach_sends(struct capture *capture)
{
	static const char *const waits[] = {"sk_stream_wait_memory", "sk_stream_wait_connect"};
	const struct capture_bpf *skeleton = capture->skeleton;
	int error = 0;

	capture_event_remove_leftovers();
	if (!bpf_program__autoload(skeleton->progs.kprobe_send_end))
		error = attach_return(capture, skeleton->progs.kprobe_send_return,
				      "tcp_sendmsg_locked");
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]) && !error; i++) {
		error = attach_return(capture, skeleton->progs.kprobe_send_wake, waits[i]);
		if (!error)
			error = attach_entry(capture, skeleton->progs.kprobe_send_sleep, waits[i]);
	}
	return error ? error : attach_pages(capture);
}

static int attach_programs(struct capture *capture)
{
	int error = capture->door == CAPTURE_DOOR_KPROBE ? attach_sends(capture) : 0;

	if (!error)
		error = capture_bpf__attach(capture->skeleton);
	if (!error)
		capture->skeleton->bss->copies_attached = true;
	return error;
}

static int iterate(const struct bpf_program *program)
{
	struct bpf_link *link = NULL;
	int error = iterator_link(program, &link);

	if (error)
		return error;
	error = capture_iterator_run(link);
	bpf_link__destroy(link);
	return error;
}

/* After the state events are on, so that no socket falls between. A tree begins with the probe. */
static int find_sockets(struct capture *capture, enum capture_scope scope)
{
	int error = 0;

	if (scope != CAPTURE_TREE)
		error = iterate(capture->skeleton->progs.iter_ports);
	if (!error && scope_is_of_processes(scope))
		error = iterate(capture->skeleton->progs.iter_sockets);
	return error;
}

static void keep_descriptors(struct capture *capture)
{
	const struct capture_bpf *skeleton = capture->skeleton;

	capture->object = skeleton->obj;
	capture->tree_fd = bpf_map__fd(skeleton->maps.tree);
	capture->flows_fd = bpf_map__fd(skeleton->maps.flows);
	capture->counters_fd = bpf_map__fd(skeleton->maps.counters);
	capture->copies_fd = bpf_map__fd(skeleton->maps.copies);
}

static int open_door(struct capture *capture, const struct capture_options *options, char *reason)
{
	int error;

	capture_reason_begin();
	capture->skeleton = capture_bpf__open();
	if (!capture->skeleton) {
		error = errno ? -errno : -ENOMEM;
		capture_reason_load(capture->door, error, reason);
		return error;
	}
	error = set_ring_sizes(capture, options);
	if (error) {
		capture_reason_say(reason, "ring sizes must be powers of two and at least a page");
		return error;
	}
	set_options(capture, options);
	choose_programs(capture, options);
	error = capture_put_casts(capture->skeleton->obj);
	if (!error)
		error = capture_bpf__load(capture->skeleton);
	if (error) {
		capture_reason_load(capture->door, error, reason);
		return error;
	}
	keep_descriptors(capture);
	error = prepare_processes(capture, options);
	if (error == -ESRCH) {
		capture_reason_say(reason, "there is no process %u", options->pid);
		return error;
	}
	if (!error)
		error = find_pages(capture);
	if (!error)
		error = attach_programs(capture);
	if (!error)
		error = find_sockets(capture, options->scope);
	if (!error)
		error = map_rings(capture);
	if (!error)
		error = capture_shares_map(capture, options->fair, bpf_map__fd(capture->skeleton->maps.shares));
	if (error)
		capture_reason_attach(capture->door, error, reason);
	return error;
}

static int capture_try(const struct capture_options *options, enum capture_door door,
		       struct capture **ret_capture, char *reason)
{
	struct capture *capture = calloc(1, sizeof(*capture));
	int error;

	if (!capture) {
		capture_reason_say(reason, "out of memory");
		return -ENOMEM;
	}
	capture->door = door;
	capture->epoll_fd = -1;
	capture->pid_namespace = inode_of("/proc/self/ns/pid");
	capture->own_pid_namespace =
		capture->pid_namespace && capture->pid_namespace != INITIAL_PID_NAMESPACE;
	error = open_door(capture, options, reason);
	if (error) {
		capture_close(capture);
		return error;
	}
	*ret_capture = capture;
	return 0;
}

int capture_open(const struct capture_options *options, struct capture **ret_capture, char *reason)
{
	char other[CAPTURE_REASON_MAX];
	int error, kprobe_error = 0;

	reason[0] = '\0';
	if (access("/sys/kernel/btf/vmlinux", R_OK)) {
		capture_reason_say(reason,
		    "kernel has no BTF (/sys/kernel/btf/vmlinux): it needs CONFIG_DEBUG_INFO_BTF");
		return -ENOSYS;
	}
	if (!options->host_wide && !inode_of("/proc/self/ns/net")) {
		capture_reason_say(reason, "cannot read /proc/self/ns/net: mount proc");
		return -ENOENT;
	}
	if (options->door != CAPTURE_DOOR_AUTO)
		return capture_try(options, options->door, ret_capture, reason);
	/* the kprobe door first, where there are kprobes: it cannot lose a call to preemption */
	if (access("/sys/bus/event_source/devices/kprobe/type", F_OK)) {
		capture_reason_say(other, "this kernel has no kprobes");
	} else {
		kprobe_error = capture_try(options, CAPTURE_DOOR_KPROBE, ret_capture, other);
		if (!kprobe_error)
			return 0;
	}
	error = capture_try(options, CAPTURE_DOOR_TRACEPOINT, ret_capture, reason);
	if (!error)
		return 0;
	/*
	 * What keeps out of the door that is there says more than that the other is
	 * not; without CAP_SYS_ADMIN libbpf cannot even look for that (in modules).
	 */
	if (kprobe_error == -EPERM || kprobe_error == -EACCES ||
	    (kprobe_error && (error == -ESRCH || error == -ENOENT))) {
		memcpy(reason, other, sizeof(other));
		return kprobe_error;
	}
	if (error != -EPERM && strlen(reason) + strlen(other) + 8 < CAPTURE_REASON_MAX) {
		size_t used = strlen(reason);

		snprintf(reason + used, CAPTURE_REASON_MAX - used, "; %s", other);
	}
	return error;
}

void capture_close(struct capture *capture)
{
	if (!capture)
		return;
	ring_close(&capture->data);
	ring_close(&capture->front);
	ring_close(&capture->lifecycle);
	if (capture->epoll_fd >= 0)
		close(capture->epoll_fd);
	capture_shares_unmap(capture);
	if (capture->muted)
		munmap(capture->muted, MUTED_BYTES);
	bpf_link__destroy(capture->resolve_link);
	for (size_t i = 0; i < capture->entry_count; i++)
		bpf_link__destroy(capture->entry_links[i]);
	for (size_t i = 0; i < capture->event_count; i++)
		capture_event_detach(&capture->events[i]);
	capture_bpf__destroy(capture->skeleton);
	free(capture);
}

enum capture_door capture_door(const struct capture *capture)
{
	return capture->door;
}

/* ---- rings ---- */

int capture_fd(const struct capture *capture)
{
	return capture->epoll_fd;
}

static int read_ring(struct capture *capture, struct ring *ring, unsigned long end, ring_take *take)
{
	int error = ring_read(ring, end, take, capture);

	if (error || !ring_is_read_up_to(ring, end))
		capture->emptied = false;
	return error;
}

/*
 * What overflowed into the data ring takes a while to read. The front ring is
 * kept empty meanwhile, or all that is sent would overflow, and go on to.
 */
static int read_data(struct capture *capture, unsigned long end)
{
	unsigned long at = *capture->data.consumed, slice;
	int error = 0;

	if (capture->front.size)
		error = read_ring(capture, &capture->front, ring_end(&capture->front), take_data);
	while (!error && (long)(end - at) > 0) {
		slice = end - at < DATA_SLICE_BYTES ? end : at + DATA_SLICE_BYTES;
		error = read_ring(capture, &capture->data, slice, take_data);
		if (error || !ring_is_read_up_to(&capture->data, slice))
			break;
		at = *capture->data.consumed;
		if (capture->front.size)
			error = ring_read(&capture->front, ring_end(&capture->front), take_data, capture);
	}
	return error;
}

/* The end of the lifecycle ring last: by then it holds the OPEN of whatever the others hold. */
int capture_drain(struct capture *capture, struct sequencer *sequencer)
{
	unsigned long data_end, lifecycle_end;
	struct epoll_event woken[3];
	int error;

	capture_shares_settle(capture);
	epoll_wait(capture->epoll_fd, woken, 3, 0); /* answered by what follows */
	capture->sequencer = sequencer;
	capture->drained = 0;
	capture->error = 0;
	capture->emptied = true;
	data_end = ring_end(&capture->data);
	error = read_data(capture, data_end);
	lifecycle_end = ring_end(&capture->lifecycle);
	if (!error)
		error = read_ring(capture, &capture->lifecycle, lifecycle_end, take_lifecycle);
	capture->sequencer = NULL;
	if (capture->error)
		return capture->error;
	return error ? error : capture->drained;
}

uint64_t capture_settled(struct capture *capture, uint64_t now_ns)
{
	if (capture->emptied && now_ns > capture->settled_ns)
		capture->settled_ns = now_ns;
	return now_ns < capture->settled_ns ? now_ns : capture->settled_ns;
}

size_t capture_ring_fill(const struct capture *capture)
{
	return ring_fill(&capture->data);
}

size_t capture_ring_size(const struct capture *capture)
{
	return capture->data_ring_bytes;
}

size_t capture_ring_peak(const struct capture *capture)
{
	return capture->rights ? capture->rights_ring_peak : capture->skeleton->bss->data_ring_peak;
}

void capture_without_rights(struct capture *capture, const struct capture_rights *rights)
{
	struct bpf_map *map;
	size_t size;

	capture->rights = rights;
	capture_shares_take_over(capture);
	/* The probe's own variables: who can write them says what is in scope. */
	bpf_object__for_each_map (map, capture->object) {
		const void *variables = bpf_map__initial_value(map, &size);

		if (variables && bpf_map__type(map) == BPF_MAP_TYPE_ARRAY)
			munmap((void *)variables, (size + (size_t)sysconf(_SC_PAGESIZE) - 1) & ~((size_t)sysconf(_SC_PAGESIZE) - 1));
	}
	capture->skeleton = NULL;
}

void capture_mute(struct capture *capture, uint64_t flow)
{
	atomic_store_explicit(&capture->muted[wire_muted_slot(flow)], flow, memory_order_relaxed);
}

int capture_refresh_flow(struct capture *capture, uint64_t key)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	capture->skeleton->bss->refresh_sk = key;
	return bpf_prog_test_run_opts(bpf_program__fd(capture->skeleton->progs.run_refresh), &run);
}

int capture_lifecycle_ring(const struct capture *capture)
{
	return bpf_map__fd(capture->skeleton->maps.lifecycle_ring);
}

int capture_counter_map(const struct capture *capture)
{
	return capture->counters_fd;
}
