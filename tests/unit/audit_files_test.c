/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of audit's tenants, as the monitor opens them: owners and modes, what
 * others may have put in their place, a collector that asks for what it must not
 * have, and directories that come and go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "audit_place.h"
#include "audit_place_build.h"
#include "rate.h"

#define SECOND 1000000000ULL

static char news[AUDIT_FILES_NEWS_MAX];

/* The answer, closed if it is a descriptor: 0 or -errno. */
static int ask(struct audit_files *files, struct audit_files_request request, uint64_t now_ns)
{
	int fd = audit_files_open(files, &request, now_ns, news);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static int write_to(struct audit_files *files, const char *tenant, const char *line, uint64_t now_ns)
{
	struct audit_files_request request = ledger_of(tenant);
	int fd = audit_files_open(files, &request, now_ns, news);

	if (fd < 0)
		return fd;
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	close(fd);
	return 0;
}

static int rotate(struct audit_files *files, const char *tenant, uint64_t now_ns)
{
	struct audit_files_request request = ledger_of(tenant);
	int fd = audit_files_rotate(files, &request, now_ns, 0, news);

	if (fd >= 0)
		close(fd);
	return fd < 0 ? fd : 0;
}

static void has_mode(const char *path, mode_t mode, gid_t group)
{
	struct stat stat;

	assert_int_equal(lstat(path, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, mode);
	assert_int_equal(stat.st_gid, group);
	assert_int_equal(stat.st_uid, geteuid());
}

/* ---- what is made ---- */

static void everything_is_made_and_is_private(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct audit_files_request request = ledger_of("docker-0123");

	has_mode(place->directory, 0711, getegid());
	assert_int_equal(ask(files, request, 0), 0);
	request.file = AUDIT_EVENTS;
	assert_int_equal(ask(files, request, 0), 0);
	assert_string_equal(news, "");
	has_mode(in(place, "audit/docker-0123"), 0700, getegid());
	has_mode(in(place, "audit/docker-0123/call_ledger.jsonl"), 0600, getegid());
	has_mode(in(place, "audit/docker-0123/events.jsonl"), 0600, getegid());
	audit_files_free(files);
}

static void a_descriptor_appends_and_reads_nothing(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct audit_files_request request = ledger_of("a");
	char byte;
	int fd;

	assert_int_equal(write_to(files, "a", "earlier\n", 0), 0);
	fd = audit_files_open(files, &request, 0, news);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, 0), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(pwrite(fd, "later\n", 6, 0), 6);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	holds(in(place, "audit/a/call_ledger.jsonl"), "earlier\nlater\n");
	audit_files_free(files);
}

static void a_user_with_a_group_of_his_own_may_read_his(void **state)
{
	struct place *place = *state;
	struct audit_files *files;
	struct audit_files_request daemon = {BYTES("uid-1"), AUDIT_LEDGER, 1}; /* daemon:daemon */
	struct audit_files_request nobody = {BYTES("uid-65534"), AUDIT_LEDGER, 65534}; /* nobody:nogroup */

	if (geteuid() != 0)
		skip();
	files = files_at(place->directory, 0, 2, 4);
	assert_int_equal(ask(files, daemon, 0), 0);
	assert_int_equal(ask(files, nobody, 0), 0);
	has_mode(in(place, "audit/uid-1"), 0750, 1);
	has_mode(in(place, "audit/uid-1/call_ledger.jsonl"), 0640, 1);
	has_mode(in(place, "audit/uid-65534"), 0700, 0);
	has_mode(in(place, "audit/uid-65534/call_ledger.jsonl"), 0600, 0);
	audit_files_free(files);
}

static void modes_that_are_too_wide_are_set_right(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(mkdir(in(place, "audit/a"), 0777), 0);
	assert_int_equal(chmod(in(place, "audit/a"), 0777), 0);
	put(in(place, "audit/a/call_ledger.jsonl"), "earlier\n", 0666);
	assert_int_equal(write_to(files, "a", "later\n", 0), 0);
	has_mode(in(place, "audit/a"), 0700, getegid());
	has_mode(in(place, "audit/a/call_ledger.jsonl"), 0600, getegid());
	holds(in(place, "audit/a/call_ledger.jsonl"), "earlier\nlater\n");
	audit_files_free(files);
}

/* ---- what a collector must not have ---- */

static void only_a_tenant_s_name_is_a_name(void **state)
{
	static const char *const good[] = {"a", "_", "0", "docker-0123456789ab", "user@1000.service+podman-0123456789ab",
					   "user-1000+session-3.scope", "A~0123456789abcdef", "a..b", "k8s-1:2"};
	static const char *const bad[] = {"", ".", "..", ".a", "-a", "@a", "+a", "~a", ":a", "../../etc", "a/b", "/etc", "a/..",
					  "a b", "a\nb", "a\x1b[2J", "caf\xc3\xa9", "a\\b", "a%2fb", "\xff"};
	char long_name[4097];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(audit_files_is_name(bytes_of_string(good[i])));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(audit_files_is_name(bytes_of_string(bad[i])));
	assert_false(audit_files_is_name(BYTES("a\0b")));
	memset(long_name, 'a', sizeof(long_name));
	assert_true(audit_files_is_name((struct bytes){(uint8_t *)long_name, 64}));
	assert_false(audit_files_is_name((struct bytes){(uint8_t *)long_name, 65}));
	assert_false(audit_files_is_name((struct bytes){(uint8_t *)long_name, 4096}));
}

static void a_hostile_request_makes_nothing_and_is_said_once(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct audit_files_request wrong = ledger_of("a");

	assert_int_equal(ask(files, ledger_of("../../etc"), 0), -EINVAL);
	assert_string_equal(news, "the collector asked for a file that no tenant has (Invalid argument), refused; if that was not "
				  "a new version of nightclerk, look at what it watched");
	assert_int_equal(ask(files, ledger_of("../b"), 0), -EINVAL);
	assert_string_equal(news, "");
	wrong.file = (enum audit_file)7;
	assert_int_equal(ask(files, wrong, 0), -EINVAL);
	assert_int_equal(audit_files_refused(files), 3);
	assert_int_equal(audit_files_failed(files), 0);
	assert_false(is_there(in(place, "b")));
	assert_int_equal(rmdir(place->directory), 0); /* it is empty */
	audit_files_free(files);
}

static void no_user_is_shown_what_is_another_s(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct audit_files_request request = {BYTES("uid-1"), AUDIT_LEDGER, 2};

	assert_int_equal(ask(files, request, 0), -EPERM);
	request.tenant = BYTES("docker-0123");
	assert_int_equal(ask(files, request, 0), -EPERM);
	assert_int_equal(rmdir(place->directory), 0);
	audit_files_free(files);
}

static void tenants_are_counted(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 1);

	assert_int_equal(ask(files, ledger_of("a"), 0), 0);
	assert_int_equal(ask(files, ledger_of("others"), 0), 0); /* one more than max_tenants: those beyond share it */
	assert_int_equal(ask(files, ledger_of("b"), SECOND), -EBUSY);
	assert_string_equal(news, "the collector asks for more files than 1 tenants need; the rest wait: raise --max-tenants if "
				  "there are so many");
	assert_false(is_there(in(place, "audit/b")));
	assert_int_equal(ask(files, ledger_of("a"), SECOND), 0);
	audit_files_forget(files, BYTES("a"));
	audit_files_forget(files, BYTES("nobody"));
	assert_int_equal(ask(files, ledger_of("b"), 2 * SECOND), 0);
	audit_files_forget_all(files);
	assert_int_equal(ask(files, ledger_of("c"), 2 * SECOND), 0);
	audit_files_free(files);
}

static void openings_are_rationed(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 1);
	int opened = 0;

	while (opened < 1000 && ask(files, ledger_of("a"), SECOND) == 0)
		opened++;
	assert_int_equal(opened, 64 + 4 * 2 * 1);
	assert_int_equal(ask(files, ledger_of("a"), SECOND + SECOND / 64), 0);
	assert_int_equal(ask(files, ledger_of("a"), SECOND + SECOND / 64), -EBUSY);
	audit_files_free(files);
}

static void new_tenants_are_rationed(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 1);
	char name[16];
	int made = 0;

	for (; made < 100; made++) {
		snprintf(name, sizeof(name), "t%d", made);
		if (ask(files, ledger_of(name), SECOND))
			break;
		audit_files_forget(files, bytes_of_string(name));
	}
	assert_int_equal(made, 3);
	audit_files_free(files);
}

/* ---- what others put in the way ---- */

static void refused_until_removed(struct place *place, struct audit_files *files, const char *obstacle, int err,
				  const char *why)
{
	char expected[AUDIT_FILES_NEWS_MAX];

	assert_int_equal(ask(files, ledger_of("a"), 0), err);
	snprintf(expected, sizeof(expected), "cannot open %s/a/call_ledger.jsonl: %s; its lines wait in memory", place->directory,
		 why);
	assert_string_equal(news, expected);
	assert_int_equal(ask(files, ledger_of("a"), 0), err);
	assert_string_equal(news, "");
	assert_int_equal(remove(obstacle), 0);
	assert_int_equal(write_to(files, "a", "line\n", 0), 0);
	snprintf(expected, sizeof(expected), "%s/a/call_ledger.jsonl can be opened again", place->directory);
	assert_string_equal(news, expected);
	assert_int_equal(audit_files_failed(files), 2);
	audit_files_free(files);
	holds(in(place, "audit/a/call_ledger.jsonl"), "line\n");
}

#define SYMBOLIC_LINK "Too many levels of symbolic links; it is a symbolic link: give the real path"

static void a_symbolic_link_is_no_file(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	put(in(place, "victim"), "mine\n", 0600);
	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(symlink("../../victim", in(place, "audit/a/call_ledger.jsonl")), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -ELOOP, SYMBOLIC_LINK);
	holds(in(place, "victim"), "mine\n");
}

static void a_dangling_symbolic_link_makes_no_file(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(symlink(in(place, "victim"), in(place, "audit/a/call_ledger.jsonl")), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -ELOOP, SYMBOLIC_LINK);
	assert_false(is_there(in(place, "victim")));
}

static void a_symbolic_link_is_no_tenant(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(mkdir(in(place, "victim"), 0700), 0);
	assert_int_equal(symlink("../victim", in(place, "audit/a")), 0);
	refused_until_removed(place, files, in(place, "audit/a"), -ELOOP, SYMBOLIC_LINK);
	assert_int_equal(rmdir(in(place, "victim")), 0); /* it is empty */
}

static void a_symbolic_link_is_no_directory_nor_its_parent(void **state)
{
	struct place *place = *state;
	struct audit_files_options options = {.keep = 1, .max_tenants = 1};
	struct audit_files *files = NULL;
	char path[PATH_MAX];

	assert_int_equal(mkdir(in(place, "real"), 0755), 0);
	assert_int_equal(mkdir(in(place, "real/audit"), 0700), 0);
	assert_int_equal(symlink("real", in(place, "link")), 0);
	assert_int_equal(symlink("real/audit", in(place, "audit")), 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s", in(place, i ? "link/audit" : "audit"));
		options.directory = path;
		assert_int_equal(audit_files_new(&options, &files, news), -ELOOP);
		assert_non_null(strstr(news, SYMBOLIC_LINK));
	}
	assert_null(files);
}

static void a_fifo_is_no_file_and_nobody_waits(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(mkfifo(in(place, "audit/a/call_ledger.jsonl"), 0600), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EPERM, "it is no regular file: remove it");
}

static void a_fifo_with_a_reader_gets_nothing(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	char byte;
	int reader;

	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(mkfifo(in(place, "audit/a/call_ledger.jsonl"), 0600), 0);
	reader = open(in(place, "audit/a/call_ledger.jsonl"), O_RDONLY | O_NONBLOCK);
	assert_true(reader >= 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EPERM, "it is no regular file: remove it");
	assert_int_equal(read(reader, &byte, 1), 0);
	close(reader);
}

static void a_socket_is_no_file(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	snprintf(address.sun_path, sizeof(address.sun_path), "%.90s", in(place, "audit/a/call_ledger.jsonl"));
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EPERM, "it is no regular file: remove it");
}

static void a_directory_is_no_file(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(mkdir(in(place, "audit/a/call_ledger.jsonl"), 0700), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EISDIR,
			      "Is a directory; it is a directory: give a file");
}

static void a_file_is_no_tenant(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	put(in(place, "audit/a"), "", 0600);
	refused_until_removed(place, files, in(place, "audit/a"), -ENOTDIR,
			      "Not a directory; a part of its path is no directory: give the real path");
}

static void a_second_hard_link_is_refused(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	put(in(place, "passwd"), "root:x:0:0\n", 0644);
	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	assert_int_equal(link(in(place, "passwd"), in(place, "audit/a/call_ledger.jsonl")), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EPERM,
			      "it has a second hard link: remove one of the two");
	holds(in(place, "passwd"), "root:x:0:0\n");
	has_mode(in(place, "passwd"), 0644, getegid());
}

static void what_belongs_to_another_is_refused(void **state)
{
	struct place *place = *state;
	struct audit_files *files;

	if (geteuid() != 0)
		skip();
	files = files_at(place->directory, 0, 2, 4);
	assert_int_equal(mkdir(in(place, "audit/a"), 0700), 0);
	put(in(place, "audit/a/call_ledger.jsonl"), "forged\n", 0600);
	assert_int_equal(chown(in(place, "audit/a/call_ledger.jsonl"), 1, 1), 0);
	refused_until_removed(place, files, in(place, "audit/a/call_ledger.jsonl"), -EPERM,
			      "it belongs to somebody else: remove it, or chown it to root");
	files = files_at(place->directory, 0, 2, 4);
	assert_int_equal(mkdir(in(place, "audit/b"), 0700), 0);
	assert_int_equal(chown(in(place, "audit/b"), 1, 1), 0);
	assert_int_equal(ask(files, ledger_of("b"), 0), -EPERM);
	assert_non_null(strstr(news, "the tenant's directory belongs to somebody else"));
	audit_files_free(files);
}

static void a_directory_that_others_write_to_is_refused(void **state)
{
	struct place *place = *state;
	struct audit_files_options options = {.directory = place->directory, .keep = 1, .max_tenants = 1};
	struct audit_files *files = NULL;

	assert_int_equal(mkdir(place->directory, 0777), 0);
	assert_int_equal(chmod(place->directory, 01777), 0);
	assert_int_equal(audit_files_new(&options, &files, news), -EPERM);
	assert_non_null(strstr(news, "others may write to the directory: chmod go-w, or give another"));
	if (geteuid() == 0) {
		assert_int_equal(chmod(place->directory, 0755), 0);
		assert_int_equal(chown(place->directory, 1, 1), 0);
		assert_int_equal(audit_files_new(&options, &files, news), -EPERM);
		assert_non_null(strstr(news, "the directory belongs to somebody else: chown it to root, or give another"));
	}
	assert_null(files);
}

/* ---- what comes and goes ---- */

static void a_tenant_s_directory_that_is_swapped_for_a_link_gets_nothing(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	struct audit_files_request request = ledger_of("a");
	int fd = audit_files_open(files, &request, 0, news);

	assert_int_equal(mkdir(in(place, "victim"), 0700), 0);
	assert_int_equal(rename(in(place, "audit/a"), in(place, "moved")), 0);
	assert_int_equal(symlink("../victim", in(place, "audit/a")), 0);
	assert_int_equal(write(fd, "line\n", 5), 5);
	close(fd);
	assert_int_equal(ask(files, request, 0), -ELOOP);
	assert_int_equal(rotate(files, "a", 0), -ELOOP);
	holds(in(place, "moved/call_ledger.jsonl"), "line\n");
	assert_int_equal(rmdir(in(place, "victim")), 0);
	audit_files_free(files);
}

static void a_directory_that_vanished_is_made_again_and_that_is_said(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);
	char expected[AUDIT_FILES_NEWS_MAX];

	assert_int_equal(write_to(files, "a", "one\n", 0), 0);
	assert_int_equal(rename(place->directory, in(place, "moved")), 0);
	assert_int_equal(write_to(files, "a", "two\n", 0), 0);
	snprintf(expected, sizeof(expected), "%s was gone and has been made again; what it held is not there any more",
		 place->directory);
	assert_string_equal(news, expected);
	assert_int_equal(write_to(files, "a", "three\n", 0), 0);
	assert_string_equal(news, "");
	holds(in(place, "moved/a/call_ledger.jsonl"), "one\n");
	holds(in(place, "audit/a/call_ledger.jsonl"), "two\nthree\n");
	audit_files_free(files);
}

static void a_parent_that_vanished_is_said_once_for_all(void **state)
{
	struct place *place = *state;
	struct audit_files *files;
	char path[PATH_MAX];

	assert_int_equal(mkdir(in(place, "parent"), 0755), 0);
	snprintf(path, sizeof(path), "%s", in(place, "parent/audit/"));
	files = files_at(path, 0, 2, 4);
	assert_int_equal(rmdir(in(place, "parent/audit")), 0);
	assert_int_equal(rmdir(in(place, "parent")), 0);
	assert_int_equal(ask(files, ledger_of("a"), 0), -ENOENT);
	assert_non_null(strstr(news, "its directory does not exist: create it; its lines wait in memory"));
	assert_int_equal(ask(files, ledger_of("b"), 0), -ENOENT);
	assert_string_equal(news, "");
	assert_int_equal(mkdir(in(place, "parent"), 0755), 0);
	assert_int_equal(ask(files, ledger_of("b"), 0), 0);
	assert_non_null(strstr(news, "was gone and has been made again"));
	assert_int_equal(ask(files, ledger_of("a"), 0), 0);
	assert_string_equal(news, "");
	audit_files_free(files);
}

static void the_half_line_of_a_dead_collector_is_ended(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 0, 2, 4);

	assert_int_equal(write_to(files, "a", "whole\nhal", 0), 0);
	assert_int_equal(write_to(files, "a", "f\n", 0), 0); /* it lives, and goes on */
	assert_int_equal(write_to(files, "a", "cut", 0), 0);
	audit_files_forget_all(files);
	assert_int_equal(write_to(files, "a", "next\n", 0), 0);
	holds(in(place, "audit/a/call_ledger.jsonl"), "whole\nhalf\ncut\nnext\n");
	audit_files_free(files);
}

/* ---- rotation ---- */

static void files_move_up_and_the_oldest_goes(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 4, 2, 4);

	for (int i = 0; i < 4; i++) {
		const char line[] = {(char)('0' + i), '2', '3', '\n', 0};

		assert_int_equal(write_to(files, "a", line, 0), 0);
		assert_int_equal(rotate(files, "a", 0), 0);
		assert_string_equal(news, "");
	}
	holds(in(place, "audit/a/call_ledger.jsonl"), "");
	holds(in(place, "audit/a/call_ledger.jsonl.1"), "323\n");
	holds(in(place, "audit/a/call_ledger.jsonl.2"), "223\n");
	assert_false(is_there(in(place, "audit/a/call_ledger.jsonl.3")));
	has_mode(in(place, "audit/a/call_ledger.jsonl.1"), 0600, getegid());
	audit_files_free(files);
}

static void what_a_larger_keep_left_is_removed(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 4, 1, 4);

	assert_int_equal(write_to(files, "a", "new\n", 0), 0);
	put(in(place, "audit/a/call_ledger.jsonl.1"), "old 1\n", 0600);
	put(in(place, "audit/a/call_ledger.jsonl.2"), "old 2\n", 0600);
	put(in(place, "audit/a/call_ledger.jsonl.3"), "old 3\n", 0600);
	assert_int_equal(rotate(files, "a", 0), 0);
	holds(in(place, "audit/a/call_ledger.jsonl.1"), "new\n");
	assert_false(is_there(in(place, "audit/a/call_ledger.jsonl.2")));
	assert_false(is_there(in(place, "audit/a/call_ledger.jsonl.3")));
	audit_files_free(files);
}

static void a_file_that_is_not_due_stays(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 5, 2, 4);

	assert_int_equal(write_to(files, "a", "123\n", 0), 0);
	assert_int_equal(rotate(files, "a", 0), -EAGAIN);
	assert_string_equal(news, "");
	assert_int_equal(audit_files_failed(files), 0);
	holds(in(place, "audit/a/call_ledger.jsonl"), "123\n");
	assert_int_equal(unlink(in(place, "audit/a/call_ledger.jsonl")), 0);
	assert_int_equal(rotate(files, "a", 0), 0); /* there is none: a new one */
	assert_false(is_there(in(place, "audit/a/call_ledger.jsonl.1")));
	audit_files_free(files);
}

static void a_rotation_that_fails_loses_nothing(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 4, 1, 4);

	assert_int_equal(write_to(files, "a", "123\n", 0), 0);
	assert_int_equal(mkdir(in(place, "audit/a/call_ledger.jsonl.1"), 0700), 0);
	assert_int_equal(rotate(files, "a", 0), -EISDIR);
	assert_non_null(strstr(news, "Is a directory"));
	holds(in(place, "audit/a/call_ledger.jsonl"), "123\n");
	assert_int_equal(write_to(files, "a", "456\n", 0), 0);
	assert_int_equal(rmdir(in(place, "audit/a/call_ledger.jsonl.1")), 0);
	assert_int_equal(rotate(files, "a", 0), 0);
	holds(in(place, "audit/a/call_ledger.jsonl.1"), "123\n456\n");
	audit_files_free(files);
}

/* ---- the pure parts ---- */

static void a_rate_gives_its_burst_and_then_one_an_interval(void **state)
{
	struct rate rate = {.interval_ns = 10, .burst = 3};

	(void)state;
	for (int i = 0; i < 3; i++)
		assert_true(rate_take(&rate, 100));
	assert_false(rate_take(&rate, 100));
	assert_false(rate_take(&rate, 109));
	assert_true(rate_take(&rate, 110));
	assert_false(rate_take(&rate, 110));
	for (int i = 0; i < 3; i++)
		assert_true(rate_take(&rate, 1000));
	assert_false(rate_take(&rate, 1000));
}

static void rotation_goes_by_size_or_age_and_never_of_nothing(void **state)
{
	const struct rotation_limits none = {0}, size = {.bytes = 100}, age = {.age_ns = 100}, both = {100, 100};

	(void)state;
	assert_false(rotation_is_due(&none, UINT64_MAX, UINT64_MAX));
	assert_false(rotation_is_due(&size, 99, UINT64_MAX));
	assert_true(rotation_is_due(&size, 100, 0));
	assert_false(rotation_is_due(&age, UINT64_MAX, 99));
	assert_true(rotation_is_due(&age, 1, 100));
	assert_false(rotation_is_due(&age, 0, UINT64_MAX));
	assert_false(rotation_is_due(&both, 99, 99));
	assert_true(rotation_is_due(&both, 99, 100));
}

static void refusals_are_asked_again_after_longer_and_longer(void **state)
{
	struct rotation_pause pause = {0};
	uint64_t now = 0;

	(void)state;
	assert_true(rotation_may_ask(&pause, now));
	for (uint64_t length = 1; length <= 64; length *= 2) {
		uint64_t seconds = length < 60 ? length : 60;

		rotation_refused(&pause, now);
		assert_false(rotation_may_ask(&pause, now + seconds * SECOND - 1));
		now += seconds * SECOND;
		assert_true(rotation_may_ask(&pause, now));
	}
}

#define at_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, drop_place)

static int place_state(const char *path, uid_t user, const char **ret_why)
{
	*ret_why = NULL;
	return audit_place_state(path, user, getegid(), ret_why);
}

static void a_state_directory_is_made_and_given_to_its_account_alone(void **state)
{
	const char *path = in(*state, "stores"), *why;
	struct stat stat;
	int fd;

	if (geteuid() != 0)
		skip();
	fd = place_state(path, 65534, &why);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_uid, 65534);
	assert_int_equal(stat.st_mode & 07777, 0700);
	assert_int_equal(fchmod(fd, 0777), 0);
	close(fd);
	fd = place_state(path, 65534, &why);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &stat), 0);
	assert_int_equal(stat.st_mode & 07777, 0700);
	close(fd);
	assert_int_equal(place_state(path, 65533, &why), -EPERM);
	assert_string_equal(why, "it belongs to somebody else than the collector's account: chown it, or give another");
}

static void a_state_directory_is_no_link_and_lies_where_nobody_can_swap_it(void **state)
{
	const char *why;

	assert_int_equal(mkdir(in(*state, "real"), 0700), 0);
	assert_int_equal(symlink("real", in(*state, "link")), 0);
	assert_int_equal(place_state(in(*state, "link"), geteuid(), &why), -ELOOP);
	assert_int_equal(place_state(in(*state, "link/stores"), geteuid(), &why), -ELOOP);
	assert_int_equal(place_state(in(*state, "none/stores"), geteuid(), &why), -ENOENT);
	assert_int_equal(chmod(in(*state, "real"), 0777), 0);
	assert_int_equal(place_state(in(*state, "real/stores"), geteuid(), &why), -EPERM);
	assert_string_equal(why, "others may write to the directory it is in: chmod go-w that, or give another");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		at_a_place(a_state_directory_is_made_and_given_to_its_account_alone),
		at_a_place(a_state_directory_is_no_link_and_lies_where_nobody_can_swap_it),
		at_a_place(everything_is_made_and_is_private),
		at_a_place(a_descriptor_appends_and_reads_nothing),
		at_a_place(a_user_with_a_group_of_his_own_may_read_his),
		at_a_place(modes_that_are_too_wide_are_set_right),
		cmocka_unit_test(only_a_tenant_s_name_is_a_name),
		at_a_place(a_hostile_request_makes_nothing_and_is_said_once),
		at_a_place(no_user_is_shown_what_is_another_s),
		at_a_place(tenants_are_counted),
		at_a_place(openings_are_rationed),
		at_a_place(new_tenants_are_rationed),
		at_a_place(a_symbolic_link_is_no_file),
		at_a_place(a_dangling_symbolic_link_makes_no_file),
		at_a_place(a_symbolic_link_is_no_tenant),
		at_a_place(a_symbolic_link_is_no_directory_nor_its_parent),
		at_a_place(a_fifo_is_no_file_and_nobody_waits),
		at_a_place(a_fifo_with_a_reader_gets_nothing),
		at_a_place(a_socket_is_no_file),
		at_a_place(a_directory_is_no_file),
		at_a_place(a_file_is_no_tenant),
		at_a_place(a_second_hard_link_is_refused),
		at_a_place(what_belongs_to_another_is_refused),
		at_a_place(a_directory_that_others_write_to_is_refused),
		at_a_place(a_tenant_s_directory_that_is_swapped_for_a_link_gets_nothing),
		at_a_place(a_directory_that_vanished_is_made_again_and_that_is_said),
		at_a_place(a_parent_that_vanished_is_said_once_for_all),
		at_a_place(the_half_line_of_a_dead_collector_is_ended),
		at_a_place(files_move_up_and_the_oldest_goes),
		at_a_place(what_a_larger_keep_left_is_removed),
		at_a_place(a_file_that_is_not_due_stays),
		at_a_place(a_rotation_that_fails_loses_nothing),
		cmocka_unit_test(a_rate_gives_its_burst_and_then_one_an_interval),
		cmocka_unit_test(rotation_goes_by_size_or_age_and_never_of_nothing),
		cmocka_unit_test(refusals_are_asked_again_after_longer_and_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
