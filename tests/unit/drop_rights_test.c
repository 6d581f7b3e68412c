/* SPDX-License-Identifier: BSD-2-Clause */
/* What a child has left after it gave its rights away, and what becomes of it when it wants them back. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "drop_rights.h"
#include "stores.h"

#define ENDED_WELL 42

static struct unprivileged nobody(void)
{
	struct unprivileged account;
	char reason[DROP_RIGHTS_REASON_MAX];

	assert_int_equal(drop_rights_find("nobody", &account, reason), 0);
	return account;
}

/* How a child ends that drops its rights, but for files below stores_fd, and then does that. */
static int status_with(int stores_fd, void (*act)(void))
{
	struct unprivileged account = nobody();
	char reason[DROP_RIGHTS_REASON_MAX];
	struct rlimit no_core = {0};
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &no_core);
		if (drop_rights(&account, stores_fd, reason))
			_exit(1);
		act();
		_exit(ENDED_WELL);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static int status_after(void (*act)(void))
{
	return status_with(-1, act);
}

/* A field of /proc/PID/status of a child that has dropped its rights and waits. */
static void read_status(char *ret_text, size_t size)
{
	struct unprivileged account = nobody();
	char reason[DROP_RIGHTS_REASON_MAX], path[64], byte;
	int ready[2], hold[2];
	FILE *file;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(hold), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(hold[1]);
		if (drop_rights(&account, -1, reason) || write(ready[1], "r", 1) != 1 || read(hold[0], &byte, 1) != 0)
			_exit(1);
		_exit(ENDED_WELL);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "r");
	assert_non_null(file);
	ret_text[fread(ret_text, 1, size - 1, file)] = '\0';
	fclose(file);
	close(hold[0]);
	close(hold[1]);
	close(ready[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void needs_root(void)
{
	if (geteuid() != 0)
		skip();
}

static void a_child_has_nothing_left(void **state)
{
	struct unprivileged account = nobody();
	char text[8192], ids[96];

	(void)state;
	needs_root();
	read_status(text, sizeof(text));
	snprintf(ids, sizeof(ids), "Uid:\t%u\t%u\t%u\t%u\n", account.uid, account.uid, account.uid, account.uid);
	assert_non_null(strstr(text, ids));
	snprintf(ids, sizeof(ids), "Gid:\t%u\t%u\t%u\t%u\n", account.gid, account.gid, account.gid, account.gid);
	assert_non_null(strstr(text, ids));
	assert_non_null(strstr(text, "Groups:\t \n"));
	assert_non_null(strstr(text, "CapInh:\t0000000000000000\n"));
	assert_non_null(strstr(text, "CapPrm:\t0000000000000000\n"));
	assert_non_null(strstr(text, "CapEff:\t0000000000000000\n"));
	assert_non_null(strstr(text, "CapBnd:\t0000000000000000\n"));
	assert_non_null(strstr(text, "CapAmb:\t0000000000000000\n"));
	assert_non_null(strstr(text, "NoNewPrivs:\t1\n"));
	assert_non_null(strstr(text, "Seccomp:\t2\n"));
}

static void open_a_file(void)
{
	open("/etc/passwd", O_RDONLY);
}

static void open_a_socket(void)
{
	socket(AF_INET, SOCK_STREAM, 0);
}

static void signal_its_parent(void)
{
	kill(getppid(), 0);
}

static void start_a_child(void)
{
	fork();
}

static void start_a_program(void)
{
	execl("/bin/true", "true", NULL);
}

static void become_root(void)
{
	setuid(0);
}

static void execute_what_it_wrote(void)
{
	void *memory = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)memory;
}

static void be_looked_into(void)
{
	prctl(PR_SET_DUMPABLE, 1);
}

static void what_is_not_listed_kills_it(void **state)
{
	static void (*const acts[])(void) = {open_a_file,   open_a_socket, signal_its_parent,	   start_a_child,
					     start_a_program, become_root,   execute_what_it_wrote, be_looked_into};

	(void)state;
	needs_root();
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		int status = status_after(acts[i]);

		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	}
}

static void work(void)
{
	struct timespec now, moment = {.tv_nsec = 1000};
	uint8_t *memory = malloc(64 << 20); /* by mmap(2) */

	if (!memory)
		_exit(1);
	memset(memory, 1, 4096);
	memory = realloc(memory, 128 << 20);
	free(memory);
	malloc_trim(0);
	clock_gettime(CLOCK_MONOTONIC, &now);
	nanosleep(&moment, NULL);
	if (fprintf(stderr, "%s", "") < 0)
		_exit(1);
}

static void what_a_collector_does_is_listed(void **state)
{
	int status;

	(void)state;
	needs_root();
	status = status_after(work);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ENDED_WELL);
}

/* ---- with a directory for stores ---- */

static int open_directory(char *ret_path)
{
	static const char template[] = "/tmp/nightclerk-rights-XXXXXX";
	struct unprivileged account = nobody();
	int fd;

	memcpy(ret_path, template, sizeof(template));
	assert_non_null(mkdtemp(ret_path));
	assert_int_equal(chown(ret_path, account.uid, account.gid), 0);
	fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void remove_directory(const char *path, int fd)
{
	static const char *const names[] = {"t.db", "t.db-wal", "t.db-shm", ".salt"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlinkat(fd, names[i], 0);
	close(fd);
	assert_int_equal(rmdir(path), 0);
}

static void find_only_its_own(void)
{
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != ENOENT)
		_exit(1);
	if (open("../../../../etc/passwd", O_RDONLY) >= 0 || errno != ENOENT)
		_exit(2);
	if (open("/proc/self/maps", O_RDONLY) >= 0 || errno != ENOENT)
		_exit(3);
}

static void write_stores(void)
{
	const struct stores_options options = {.directory = ""};
	const struct store_run run = {.id = "00c0ffee00c0ffee", .lease_ns = STORE_LEASE_NS, .schema_version = "v1"};
	struct booking booking = {.kind = BOOKING_BLIND, .blind = {.pid = 1, .comm = "t", .kind = "tls", .at_ns = 1}};
	struct output_owner self = {(uid_t)-1, (gid_t)-1};
	struct buffer bookings = {0};
	char reason[STORE_REASON_MAX];
	struct stores *stores;
	struct stored *stored;
	uint8_t salt[32];

	if (store_salt("/", &self, salt, reason) || stores_new(&options, &stores))
		_exit(1);
	stored = stores_add(stores, "t", &run);
	if (!stored || buffer_append(&bookings, (struct bytes){(const uint8_t *)&booking, sizeof(booking)}))
		_exit(2);
	stores_put(stores, stored, &bookings);
	stores_settle(stores, 60000);
	if (stores_notice(stores, stored, reason))
		fprintf(stderr, "%s\n", reason);
	if (stores_counts(stores, stored).rows != 1)
		_exit(3);
	stores_leave(stores, stored);
	stores_free(stores);
}

static void expect_of_stores(void (*act)(void), bool dies)
{
	char path[64];
	int status, fd = open_directory(path);

	store_warm_up();
	status = status_with(fd, act);
	remove_directory(path, fd);
	if (dies) {
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), SIGSYS);
	} else {
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), ENDED_WELL);
	}
}

static void stores_are_written_and_nothing_else_is_found(void **state)
{
	(void)state;
	needs_root();
	expect_of_stores(write_stores, false);
	expect_of_stores(find_only_its_own, false);
}

static void change_its_root(void)
{
	if (chroot("."))
		_exit(1);
}

static void with_stores_the_rest_kills_it_all_the_same(void **state)
{
	static void (*const acts[])(void) = {open_a_socket, signal_its_parent,	   start_a_child,  start_a_program,
					     become_root,   execute_what_it_wrote, be_looked_into, change_its_root};

	(void)state;
	needs_root();
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++)
		expect_of_stores(acts[i], true);
}

static void abort_is_seen_as_one(void **state)
{
	int status;

	(void)state;
	needs_root();
	status = status_after(abort);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void keeps_only_the_descriptors_it_is_given(void **state)
{
	int fds[5], status;
	pid_t pid;

	(void)state;
	for (int i = 0; i < 5; i++)
		fds[i] = open("/dev/null", O_RDONLY);
	pid = fork();
	if (pid == 0) {
		int keep[] = {fds[3], -1, fds[1]}; /* in any order */

		if (drop_rights_close_all_but(keep, 3))
			_exit(1);
		for (int i = 0; i < 5; i++)
			if ((fcntl(fds[i], F_GETFD) >= 0) != (i == 1 || i == 3))
				_exit(2 + i);
		_exit(fcntl(STDERR_FILENO, F_GETFD) >= 0 ? ENDED_WELL : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	for (int i = 0; i < 5; i++)
		close(fds[i]);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), ENDED_WELL);
}

static void an_account_is_found_by_name_and_number_and_is_not_root(void **state)
{
	struct unprivileged by_name = nobody(), account;
	char reason[DROP_RIGHTS_REASON_MAX], number[16];

	(void)state;
	assert_string_equal(by_name.name, "nobody");
	assert_true(by_name.uid != 0);
	snprintf(number, sizeof(number), "%u", by_name.uid);
	assert_int_equal(drop_rights_find(number, &account, reason), 0);
	assert_int_equal(account.uid, by_name.uid);
	assert_int_equal(account.gid, by_name.gid);
	assert_int_equal(drop_rights_find("root", &account, reason), -EINVAL);
	assert_int_equal(drop_rights_find("0", &account, reason), -EINVAL);
	assert_int_equal(drop_rights_find("no-such-user", &account, reason), -ENOENT);
	assert_string_equal(reason, "no user called no-such-user: make one (useradd --system nightclerk) or give --user");
	assert_int_equal(drop_rights_find(NULL, &account, reason), 0);
	assert_true(strcmp(account.name, "nightclerk") == 0 || strcmp(account.name, "nobody") == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_child_has_nothing_left),
		cmocka_unit_test(what_is_not_listed_kills_it),
		cmocka_unit_test(what_a_collector_does_is_listed),
		cmocka_unit_test(stores_are_written_and_nothing_else_is_found),
		cmocka_unit_test(with_stores_the_rest_kills_it_all_the_same),
		cmocka_unit_test(abort_is_seen_as_one),
		cmocka_unit_test(keeps_only_the_descriptors_it_is_given),
		cmocka_unit_test(an_account_is_found_by_name_and_number_and_is_not_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
