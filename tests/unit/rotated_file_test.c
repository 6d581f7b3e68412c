/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A tenant's file as the collector writes it: no line is cut, lost or doubled by
 * a change of files, whatever the disk does and whoever is slow to open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "audit_place_build.h"
#include "output.h"
#include "rotated_file.h"

#define SECOND 1000000000ULL

/* A monitor in the same process. */
struct monitor {
	struct audit_files *files;
	int refuse; /* -errno instead of an answer; 0 = it answers */
	unsigned int opens, rotations;
};

static int answer(void *context, bool rotate)
{
	struct audit_files_request request = ledger_of("a");
	struct monitor *monitor = context;
	char news[AUDIT_FILES_NEWS_MAX];

	*(rotate ? &monitor->rotations : &monitor->opens) += 1;
	if (monitor->refuse)
		return monitor->refuse;
	return rotate ? audit_files_rotate(monitor->files, &request, SECOND, 0, news)
		      : audit_files_open(monitor->files, &request, SECOND, news);
}

static struct rotated_file *file_of(struct monitor *monitor, uint64_t bytes, uint64_t age_ns)
{
	const struct rotation_limits limits = {bytes, age_ns};
	const struct rotated_file_source source = {answer, monitor};
	struct rotated_file *file = rotated_file_new("a/call_ledger.jsonl", &limits, &source);

	assert_non_null(file);
	return file;
}

static int add(struct rotated_file *file, const char *line, uint64_t now_ns)
{
	return rotated_file_write(file, bytes_of_string(line), now_ns, 0, NULL);
}

/* ---- one file ---- */

static void lines_wait_until_somebody_opens(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 0, 2, 4), .refuse = -ENOSPC};
	struct rotated_file *file = file_of(&monitor, 0, 0);

	assert_int_equal(add(file, "one\n", SECOND), -EBADF);
	assert_int_equal(add(file, "two\n", SECOND), -EBADF);
	assert_int_equal(rotated_file_unwritten(file), 8);
	assert_int_equal(monitor.opens, 1); /* it is not asked for with every line */
	monitor.refuse = 0;
	assert_int_equal(add(file, "", 2 * SECOND), 0);
	assert_int_equal(monitor.opens, 2);
	assert_int_equal(rotated_file_unwritten(file), 0);
	assert_int_equal(rotated_file_close(file), 0);
	holds(in(place, "audit/a/call_ledger.jsonl"), "one\ntwo\n");
	audit_files_free(monitor.files);
}

static void one_that_was_never_opened_says_so_at_its_end(void **state)
{
	struct monitor monitor = {.refuse = -EROFS};
	struct rotated_file *file = file_of(&monitor, 0, 0);

	(void)state;
	assert_int_equal(add(file, "one\n", SECOND), -EBADF);
	assert_int_equal(rotated_file_close(file), -EBADF);
	assert_int_equal(rotated_file_close(NULL), 0);
}

static void it_is_set_aside_at_its_size(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 8, 2, 4)};
	struct rotated_file *file = file_of(&monitor, 8, 0);

	assert_int_equal(add(file, "one\n", SECOND), 0);
	assert_int_equal(monitor.rotations, 0);
	assert_int_equal(add(file, "two\n", SECOND), 0);
	assert_int_equal(monitor.rotations, 1);
	assert_int_equal(rotated_file_rotations(file), 1);
	assert_int_equal(add(file, "three\n", SECOND), 0);
	assert_int_equal(rotated_file_close(file), 0);
	holds(in(place, "audit/a/call_ledger.jsonl.1"), "one\ntwo\n");
	holds(in(place, "audit/a/call_ledger.jsonl"), "three\n");
	audit_files_free(monitor.files);
}

static void a_monitor_that_does_not_find_it_due_is_left_alone_for_a_while(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 1000, 2, 4)};
	struct rotated_file *file = file_of(&monitor, 4, 0);

	for (uint64_t i = 0; i < 100; i++)
		assert_int_equal(add(file, "one\n", SECOND), 0);
	assert_int_equal(monitor.rotations, 1);
	assert_int_equal(add(file, "one\n", 2 * SECOND), 0);
	assert_int_equal(monitor.rotations, 2);
	assert_int_equal(rotated_file_rotations(file), 0);
	assert_int_equal(rotated_file_close(file), 0);
	audit_files_free(monitor.files);
}

static void it_is_set_aside_at_its_age_and_a_clock_that_jumps_makes_none_older(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 1, 2, 4)};
	struct rotated_file *file = file_of(&monitor, 0, 10 * SECOND);

	assert_int_equal(rotated_file_write(file, BYTES("one\n"), SECOND, 0, NULL), 0);
	assert_int_equal(rotated_file_write(file, BYTES("two\n"), 2 * SECOND, INT64_MAX, NULL), 0);
	assert_int_equal(monitor.rotations, 0);
	assert_int_equal(rotated_file_write(file, BYTES("three\n"), 11 * SECOND, 0, NULL), 0);
	assert_int_equal(monitor.rotations, 1);
	assert_int_equal(rotated_file_write(file, BYTES(""), 100 * SECOND, 0, NULL), 0); /* an empty one stays */
	assert_int_equal(monitor.rotations, 1);
	assert_int_equal(rotated_file_close(file), 0);
	holds(in(place, "audit/a/call_ledger.jsonl.1"), "one\ntwo\nthree\n");
	audit_files_free(monitor.files);
}

static void logrotate_moves_it_and_says_reopen(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 0, 2, 4)};
	struct rotated_file *file = file_of(&monitor, 0, 0);

	assert_int_equal(add(file, "one\n", SECOND), 0);
	assert_int_equal(rename(in(place, "audit/a/call_ledger.jsonl"), in(place, "moved")), 0);
	assert_int_equal(add(file, "two\n", SECOND), 0);
	rotated_file_reopen(file);
	assert_int_equal(add(file, "three\n", SECOND), 0);
	rotated_file_reopen(file); /* nobody moved it this time */
	assert_int_equal(add(file, "four\n", SECOND), 0);
	assert_int_equal(rotated_file_close(file), 0);
	holds(in(place, "moved"), "one\ntwo\n");
	holds(in(place, "audit/a/call_ledger.jsonl"), "three\nfour\n");
	audit_files_free(monitor.files);
}

static void one_that_was_removed_is_opened_anew(void **state)
{
	struct place *place = *state;
	struct monitor monitor = {.files = files_at(place->directory, 0, 2, 4)};
	struct rotated_file *file = file_of(&monitor, 0, 0);

	assert_int_equal(add(file, "one\n", SECOND), 0);
	assert_int_equal(unlink(in(place, "audit/a/call_ledger.jsonl")), 0);
	assert_int_equal(rmdir(in(place, "audit/a")), 0);
	assert_int_equal(rmdir(place->directory), 0);
	assert_int_equal(add(file, "two\n", SECOND), 0);
	assert_int_equal(rotated_file_close(file), 0);
	holds(in(place, "audit/a/call_ledger.jsonl"), "two\n");
	audit_files_free(monitor.files);
}

/* ---- inside a line ---- */

static char *long_line(size_t size)
{
	char *line = malloc(size + 1);

	assert_non_null(line);
	memset(line, 'x', size - 1);
	line[size - 1] = '\n';
	line[size] = 0;
	return line;
}

/* What a pipe holds now, counted: all bytes, and line feeds. */
static size_t drain(int fd, size_t *lines)
{
	char text[4096];
	size_t all = 0;
	ssize_t n;

	while ((n = read(fd, text, sizeof(text))) > 0) {
		all += (size_t)n;
		for (ssize_t i = 0; i < n; i++)
			*lines += text[i] == '\n';
	}
	return all;
}

static void a_line_that_was_begun_is_finished_where_it_was_begun(void **state)
{
	struct place *place = *state;
	struct output *output;
	char *line = long_line(100000);
	size_t all, lines = 0;
	int ends[2], fd;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(output_adopt(ends[1], "old", &output), 0);
	assert_int_equal(output_write(output, bytes_of_string(line), NULL), -EAGAIN);
	assert_int_equal(output_write(output, BYTES("next\n"), NULL), -EAGAIN);
	fd = open(in(place, "new"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	assert_int_equal(output_switch(output, fd), -EAGAIN);
	holds(in(place, "new"), "");
	all = drain(ends[0], &lines);
	assert_true(all < 100000 && lines == 0);
	assert_int_equal(output_write(output, BYTES("last\n"), NULL), 0);
	all += drain(ends[0], &lines);
	assert_int_equal(all, 100000);
	assert_int_equal(lines, 1);
	holds(in(place, "new"), "next\nlast\n");
	assert_int_equal(output_close(output), 0);
	close(ends[0]);
	free(line);
}

static void a_line_that_cannot_be_finished_is_whole_in_the_new_file(void **state)
{
	struct place *place = *state;
	char *line = long_line(100000);
	struct output *output;
	struct stat stat;
	int ends[2], fd;

	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(output_adopt(ends[1], "old", &output), 0);
	assert_int_equal(output_write(output, BYTES("first\n"), NULL), 0);
	assert_int_equal(output_write(output, bytes_of_string(line), NULL), -EAGAIN);
	close(ends[0]);
	fd = open(in(place, "new"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	assert_int_equal(output_switch(output, fd), 0);
	assert_int_equal(lstat(in(place, "new"), &stat), 0);
	assert_int_equal(stat.st_size, 100000);
	assert_int_equal(output_write(output, BYTES("next\n"), NULL), 0);
	assert_int_equal(output_close(output), 0);
	assert_int_equal(lstat(in(place, "new"), &stat), 0);
	assert_int_equal(stat.st_size, 100005);
	free(line);
}

static void at_the_end_a_line_is_not_left_behind_a_slow_reader(void **state)
{
	struct place *place = *state;
	char *line = long_line(100000);
	struct output *output;
	struct stat stat;
	int ends[2], fd;

	assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
	assert_int_equal(output_adopt(ends[1], "old", &output), 0);
	assert_int_equal(output_write(output, bytes_of_string(line), NULL), -EAGAIN);
	fd = open(in(place, "new"), O_WRONLY | O_APPEND | O_CREAT, 0600);
	assert_int_equal(output_switch(output, fd), -EAGAIN);
	assert_int_equal(output_close(output), 0);
	assert_int_equal(lstat(in(place, "new"), &stat), 0);
	assert_int_equal(stat.st_size, 100000);
	close(ends[0]);
	free(line);
}

/* A file of "N padding" lines: their numbers must go on from *next, each line whole. */
static void count_lines(const char *path, unsigned int *next)
{
	FILE *file = fopen(path, "rb");
	char line[256];

	assert_non_null(file);
	while (fgets(line, sizeof(line), file)) {
		char expected[256];

		snprintf(expected, sizeof(expected), "%u %099d\n", *next, 0);
		assert_string_equal(line, expected);
		*next += 1;
	}
	fclose(file);
}

static void count_all(const struct place *place, const char *directory, unsigned int expected)
{
	unsigned int next = 0;
	char name[128];

	for (unsigned int i = 1000; i > 0; i--) {
		snprintf(name, sizeof(name), "%s/a/call_ledger.jsonl.%u", directory, i);
		if (is_there(in(place, name)))
			count_lines(in(place, name), &next);
	}
	snprintf(name, sizeof(name), "%s/a/call_ledger.jsonl", directory);
	count_lines(in(place, name), &next);
	assert_int_equal(next, expected);
}

static int add_numbered(struct rotated_file *file, unsigned int number, uint64_t now_ns)
{
	char line[256];

	snprintf(line, sizeof(line), "%u %099d\n", number, 0);
	return add(file, line, now_ns);
}

/* ---- a disk that is full and has room again ---- */

/* In a mount namespace of its own: 64 KiB of disk. 0 or the number of the step that went wrong. */
static int fill_and_make_room(const struct place *place)
{
	struct monitor monitor = {0};
	struct rotated_file *file;
	unsigned int number = 0;
	char directory[PATH_MAX];

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
	    mkdir(in(place, "disk"), 0755) || mount("none", in(place, "disk"), "tmpfs", 0, "size=64k,mode=755"))
		return 1;
	snprintf(directory, sizeof(directory), "%s", in(place, "disk/audit"));
	monitor.files = files_at(directory, 0, 2, 4);
	file = file_of(&monitor, 0, 0);
	while (add_numbered(file, number, SECOND) == 0) /* until it is full, in the middle of a line */
		number++;
	for (number++; number < 2000; number++) /* what follows waits */
		if (add_numbered(file, number, SECOND) != -ENOSPC)
			return 2;
	rotated_file_reopen(file); /* logrotate, while it is full: the descriptor is new, the file is not */
	if (add(file, "", SECOND) != -ENOSPC || rotated_file_unwritten(file) == 0)
		return 3;
	if (mount("none", in(place, "disk"), "tmpfs", MS_REMOUNT, "size=1m"))
		return 4;
	if (add(file, "", SECOND) || rotated_file_unwritten(file) || rotated_file_lost(file) || rotated_file_close(file))
		return 5;
	count_all(place, "disk/audit", 2000);
	audit_files_free(monitor.files);
	return 0;
}

static void expect_child(pid_t pid)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_true(WIFEXITED(status));
}

static void a_full_disk_that_has_room_again_has_lost_nothing(void **state)
{
	pid_t pid;

	if (geteuid() != 0)
		skip();
	pid = fork();
	if (pid == 0)
		_exit(fill_and_make_room(*state));
	expect_child(pid);
}

/* ---- two processes ---- */

#define LINES 20000

/* Asks over a socket: 'o' or 'r'; a descriptor comes back, or -errno. */
static int ask_over(void *context, bool rotate)
{
	int fd = *(int *)context, result = 0;
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec part = {&result, sizeof(result)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};

	if (send(fd, rotate ? "r" : "o", 1, MSG_NOSIGNAL) != 1 || recvmsg(fd, &message, 0) <= 0)
		return -EPIPE;
	if (!result)
		memcpy(&result, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(result));
	return result;
}

static int write_lines(int fd)
{
	const struct rotation_limits limits = {.bytes = 30000};
	const struct rotated_file_source source = {ask_over, &fd};
	struct rotated_file *file = rotated_file_new("a", &limits, &source);

	for (unsigned int i = 0; i < LINES; i++)
		if (add_numbered(file, i, SECOND * i))
			return 1;
	return rotated_file_close(file) ? 2 : 0;
}

static void give(int fd, int given)
{
	int result = given < 0 ? given : 0;
	char control[CMSG_SPACE(sizeof(int))] = "";
	struct iovec part = {&result, sizeof(result)};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	if (given >= 0) {
		message.msg_control = control;
		message.msg_controllen = sizeof(control);
		*CMSG_FIRSTHDR(&message) = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &given, sizeof(given));
	}
	assert_int_equal(sendmsg(fd, &message, MSG_NOSIGNAL), sizeof(result));
}

static void rotation_under_a_writer_in_another_process_loses_and_doubles_nothing(void **state)
{
	struct place *place = *state;
	struct audit_files *files = files_at(place->directory, 30000, 1000, 4);
	struct audit_files_request request = ledger_of("a");
	char question, news[AUDIT_FILES_NEWS_MAX];
	unsigned int rotations = 0;
	int ends[2];
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	pid = fork();
	if (pid == 0) {
		close(ends[0]);
		_exit(write_lines(ends[1]));
	}
	close(ends[1]);
	for (uint64_t now = SECOND; recv(ends[0], &question, 1, 0) == 1; now += SECOND) {
		int fd = question == 'r' ? audit_files_rotate(files, &request, now, 0, news)
					 : audit_files_open(files, &request, now, news);

		rotations += question == 'r' && fd >= 0;
		give(ends[0], fd);
		if (fd >= 0)
			close(fd);
	}
	close(ends[0]);
	expect_child(pid);
	assert_in_range(rotations, 60, 80); /* 20000 lines of some 105 bytes */
	count_all(place, "audit", LINES);
	audit_files_free(files);
}

#define at_a_place(test) cmocka_unit_test_setup_teardown(test, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		at_a_place(lines_wait_until_somebody_opens),
		cmocka_unit_test(one_that_was_never_opened_says_so_at_its_end),
		at_a_place(it_is_set_aside_at_its_size),
		at_a_place(a_monitor_that_does_not_find_it_due_is_left_alone_for_a_while),
		at_a_place(it_is_set_aside_at_its_age_and_a_clock_that_jumps_makes_none_older),
		at_a_place(logrotate_moves_it_and_says_reopen),
		at_a_place(one_that_was_removed_is_opened_anew),
		at_a_place(a_line_that_was_begun_is_finished_where_it_was_begun),
		at_a_place(a_line_that_cannot_be_finished_is_whole_in_the_new_file),
		at_a_place(at_the_end_a_line_is_not_left_behind_a_slow_reader),
		at_a_place(a_full_disk_that_has_room_again_has_lost_nothing),
		at_a_place(rotation_under_a_writer_in_another_process_loses_and_doubles_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
