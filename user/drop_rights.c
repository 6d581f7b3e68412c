/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The order matters: groups while there is CAP_SETGID, the bounding set while
 * there is CAP_SETPCAP, the user last of the ids; the filter comes at the very
 * end, since it forbids all of it.
 */
#include "drop_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sched.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define KEEP_MAX 16

/* ---- the account ---- */

static const struct passwd *by_number(const char *text)
{
	unsigned long uid;
	char *end;

	if (*text < '0' || *text > '9')
		return NULL;
	uid = strtoul(text, &end, 10);
	return *end || uid >= (uid_t)-1 ? NULL : getpwuid((uid_t)uid);
}

int drop_rights_find(const char *user, struct unprivileged *ret_account, char *reason)
{
	const struct passwd *entry = getpwnam(user ? user : DROP_RIGHTS_USER);

	if (!entry)
		entry = user ? by_number(user) : getpwnam("nobody");
	if (!entry) {
		snprintf(reason, DROP_RIGHTS_REASON_MAX, "no user called %.64s: make one (useradd --system %s) or give --user",
			 user ? user : DROP_RIGHTS_USER " or nobody", DROP_RIGHTS_USER);
		return -ENOENT;
	}
	if (entry->pw_uid == 0) {
		snprintf(reason, DROP_RIGHTS_REASON_MAX,
			 "user %.64s is root: the bytes of others are read without rights, give another account", entry->pw_name);
		return -EINVAL;
	}
	*ret_account = (struct unprivileged){.uid = entry->pw_uid, .gid = entry->pw_gid};
	snprintf(ret_account->name, sizeof(ret_account->name), "%s", entry->pw_name);
	return 0;
}

/* ---- descriptors ---- */

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

int drop_rights_close_all_but(const int *keep, size_t count)
{
	int sorted[KEEP_MAX];
	unsigned int from = STDERR_FILENO + 1;

	if (count > KEEP_MAX)
		return -EINVAL;
	if (count)
		memcpy(sorted, keep, count * sizeof(*keep));
	qsort(sorted, count, sizeof(*sorted), by_value);
	for (size_t i = 0; i <= count; i++) {
		unsigned int to = i < count ? (unsigned int)sorted[i] : UINT_MAX;

		if (i < count && sorted[i] < (int)from)
			continue; /* a standard one, or -1 */
		if (to > from && syscall(SYS_close_range, from, i < count ? to - 1 : to, 0))
			return -errno; /* close_range(2): since 5.9 */
		from = to + 1;
	}
	return 0;
}

/* ---- the filter ---- */

struct giving {
	const struct unprivileged *account;
	int stores_fd; /* -1 = none */
};

/* Nothing that opens, connects, starts or sends a signal to another. */
static const int allowed[] = {
	/* what was handed over: the monitor's socket, outputs, standard error */
	SCMP_SYS(read), SCMP_SYS(write), SCMP_SYS(writev), SCMP_SYS(pread64), SCMP_SYS(recvmsg), SCMP_SYS(sendmsg), SCMP_SYS(close),
	SCMP_SYS(fstat), SCMP_SYS(lseek), SCMP_SYS(fsync), SCMP_SYS(fdatasync),
	/* waiting, time */
	SCMP_SYS(poll), SCMP_SYS(ppoll), SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday),
	SCMP_SYS(time), SCMP_SYS(nanosleep), SCMP_SYS(clock_nanosleep), SCMP_SYS(restart_syscall), SCMP_SYS(sched_yield),
	/* memory; mmap and mprotect: see allow_memory() */
	SCMP_SYS(brk), SCMP_SYS(munmap), SCMP_SYS(mremap), SCMP_SYS(madvise), SCMP_SYS(futex),
	/* about itself */
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(getuid), SCMP_SYS(geteuid), SCMP_SYS(getrusage), SCMP_SYS(sysinfo), SCMP_SYS(uname),
	SCMP_SYS(getrandom),
	/* the end */
	SCMP_SYS(rt_sigreturn), SCMP_SYS(rt_sigprocmask), SCMP_SYS(rt_sigaction), SCMP_SYS(exit), SCMP_SYS(exit_group),
};

/*
 * And where it keeps stores: SQLite's files by name (os_unix.c, in WAL mode), those that store.c and store_salt.c make
 * whole under another name first, and a thread (pthread_create(3): its arena asks how many processors there are).
 */
static const int allowed_to_stores[] = {
	SCMP_SYS(open), SCMP_SYS(openat), SCMP_SYS(access), SCMP_SYS(faccessat), SCMP_SYS(faccessat2), SCMP_SYS(stat), SCMP_SYS(lstat),
	SCMP_SYS(newfstatat), SCMP_SYS(statx), SCMP_SYS(readlink), SCMP_SYS(readlinkat), SCMP_SYS(getcwd), SCMP_SYS(unlink),
	SCMP_SYS(unlinkat), SCMP_SYS(link), SCMP_SYS(linkat), SCMP_SYS(rename), SCMP_SYS(renameat), SCMP_SYS(renameat2),
	SCMP_SYS(pwrite64), SCMP_SYS(ftruncate), SCMP_SYS(fchmod), SCMP_SYS(set_robust_list), SCMP_SYS(rseq),
	SCMP_SYS(sched_getaffinity),
};

/* A call that this architecture does not have needs no rule. */
static int allow(scmp_filter_ctx filter, int number)
{
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, number, 0);

	return err == -EDOM ? 0 : err;
}

/* Memory is data: what was written is never executed. */
static int allow_memory(scmp_filter_ctx filter)
{
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mmap), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));

	return err ? err : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(mprotect), 1, SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0));
}

/* abort(3) ends us, fstat(3) of glibc 2.33 and later is newfstatat, statx is of an open file, and F_GETFL and F_SETFL change no descriptor of others. */
static int allow_narrowly(scmp_filter_ctx filter)
{
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(tgkill), 1, SCMP_A0(SCMP_CMP_EQ, (scmp_datum_t)getpid()));

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(newfstatat), 1, SCMP_A3(SCMP_CMP_EQ, AT_EMPTY_PATH));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(statx), 1, SCMP_A2(SCMP_CMP_EQ, AT_EMPTY_PATH));
	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETFL));
	return err ? err : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_SETFL));
}

/* A thread, never a process: clone3(2) hides its flags from a filter, and the C library takes clone(2) where there is none. */
static int allow_threads(scmp_filter_ctx filter)
{
	const scmp_datum_t thread = CLONE_VM | CLONE_THREAD;
	int err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1, SCMP_A0(SCMP_CMP_MASKED_EQ, thread, thread));

	if (!err)
		err = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	return err ? err : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(prctl), 1, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
}

static int allow_stores(scmp_filter_ctx filter)
{
	int err = allow_threads(filter);

	for (size_t i = 0; i < sizeof(allowed_to_stores) / sizeof(allowed_to_stores[0]) && !err; i++)
		err = allow(filter, allowed_to_stores[i]);
	if (!err) /* locks of a file */
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_SETLK));
	return err ? err : seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(fcntl), 1, SCMP_A1(SCMP_CMP_EQ, F_GETLK));
}

static int load_filter(const struct giving *giving)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	int err = filter ? seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) : -ENOMEM;

	for (size_t i = 0; i < sizeof(allowed) / sizeof(allowed[0]) && !err; i++)
		err = allow(filter, allowed[i]);
	if (!err)
		err = allow_memory(filter);
	if (!err)
		err = allow_narrowly(filter);
	if (!err && giving->stores_fd >= 0)
		err = allow_stores(filter);
	if (!err)
		err = seccomp_load(filter);
	if (filter)
		seccomp_release(filter);
	return err;
}

/* ---- all of it ---- */

/* What is above it has no name any more, for whoever takes this process over, too: without CAP_SYS_CHROOT nobody leaves. */
static int change_root(const struct giving *giving)
{
	if (giving->stores_fd < 0)
		return 0;
	if (fchdir(giving->stores_fd) || chroot("."))
		return -errno;
	close(giving->stores_fd);
	return 0;
}

static int leave_groups(const struct giving *giving)
{
	(void)giving;
	return setgroups(0, NULL) ? -errno : 0;
}

static int empty_bounding_set(const struct giving *giving)
{
	(void)giving;
	for (cap_value_t cap = 0; CAP_IS_SUPPORTED(cap); cap++)
		if (cap_drop_bound(cap))
			return -errno;
	return 0;
}

static int change_group(const struct giving *giving)
{
	return setresgid(giving->account->gid, giving->account->gid, giving->account->gid) ? -errno : 0;
}

static int change_user(const struct giving *giving)
{
	return setresuid(giving->account->uid, giving->account->uid, giving->account->uid) ? -errno : 0;
}

static int empty_capabilities(const struct giving *giving)
{
	cap_t none = cap_init();
	int err = none && cap_set_proc(none) == 0 ? 0 : -errno;

	(void)giving;
	if (none)
		cap_free(none);
	return err;
}

static int forbid_new_ones(const struct giving *giving)
{
	(void)giving;
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ? -errno : 0;
}

static int forbid_looking_in(const struct giving *giving)
{
	(void)giving;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) ? -errno : 0;
}

int drop_rights(const struct unprivileged *account, int stores_fd, char *reason)
{
	static const struct {
		const char *what;
		int (*take)(const struct giving *giving);
	} steps[] = {
		{"make the stores' directory its root", change_root},
		{"leave its groups", leave_groups},
		{"empty its bounding set", empty_bounding_set},
		{"change its group", change_group},
		{"change its user", change_user},
		{"empty its capabilities", empty_capabilities},
		{"set no_new_privs", forbid_new_ones},
		{"forbid ptrace", forbid_looking_in},
		{"load its seccomp filter", load_filter},
	};
	const struct giving giving = {account, stores_fd};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		int err = steps[i].take(&giving);

		if (!err)
			continue;
		snprintf(reason, DROP_RIGHTS_REASON_MAX,
			 "the collector cannot %s: %s; it starts as root, on a kernel with CONFIG_SECCOMP_FILTER", steps[i].what,
			 strerror(-err));
		return err;
	}
	return 0;
}
