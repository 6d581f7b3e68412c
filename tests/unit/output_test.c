/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output files: whole lines whatever others do to the file, refusals that name
 * cause and remedy, and the mark of a run that is still on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "limits.h"
#include "output.h"

static const struct output_owner self = {(uid_t)-1, (gid_t)-1};

struct place {
	char directory[64];
	char path[128];
};

static int make_place(void **state)
{
	struct place *place = calloc(1, sizeof(*place));

	if (!place)
		return -1;
	snprintf(place->directory, sizeof(place->directory), "/tmp/nightclerk-output-XXXXXX");
	if (!mkdtemp(place->directory))
		return -1;
	snprintf(place->path, sizeof(place->path), "%s/ledger", place->directory);
	*state = place;
	return 0;
}

static int drop_place(void **state)
{
	struct place *place = *state;
	char running[160];

	snprintf(running, sizeof(running), "%s.running", place->path);
	unlink(running);
	unlink(place->path);
	rmdir(place->directory);
	free(place);
	return 0;
}

static struct output *open_at(const char *path)
{
	char reason[OUTPUT_REASON_MAX] = "";
	struct output *output = NULL;

	assert_int_equal(output_open(path, false, &self, &output, reason), 0);
	assert_string_equal(reason, "");
	return output;
}

static void holds(const char *path, const char *expected)
{
	char text[1024] = "";
	FILE *file = fopen(path, "rb");

	assert_non_null(file);
	assert_int_equal(fread(text, 1, sizeof(text) - 1, file), strlen(expected));
	fclose(file);
	assert_string_equal(text, expected);
}

static void put(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static void appends_to_what_is_there_and_is_private(void **state)
{
	struct place *place = *state;
	const char *notice = NULL;
	struct output *output;
	struct stat stat_of;

	put(place->path, "earlier\n", 0);
	output = open_at(place->path);
	assert_int_equal(output_write(output, BYTES("one\n"), &notice), 0);
	assert_int_equal(output_write(output, BYTES("two\n"), &notice), 0);
	assert_null(notice);
	assert_int_equal(output_close(output), 0);
	holds(place->path, "earlier\none\ntwo\n");
	unlink(place->path);
	output_close(open_at(place->path));
	assert_int_equal(stat(place->path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
}

static void starts_a_line_of_its_own_after_half_a_line(void **state)
{
	struct place *place = *state;
	struct output *output;

	put(place->path, "half", 0);
	output = open_at(place->path);
	assert_int_equal(output_write(output, BYTES("one\n"), NULL), 0);
	assert_int_equal(output_close(output), 0);
	holds(place->path, "half\none\n");
}

static void names_foreign_lines_once(void **state)
{
	struct place *place = *state;
	struct output *output = open_at(place->path);
	const char *notice = NULL;

	output_write(output, BYTES("one\n"), &notice);
	put(place->path, "foreign", O_APPEND);
	assert_null(notice);
	assert_int_equal(output_write(output, BYTES("two\n"), &notice), 0);
	assert_string_equal(notice, "holds lines that this run did not write, continuing after them");
	notice = NULL;
	put(place->path, "more\n", O_APPEND);
	output_write(output, BYTES("three\n"), &notice);
	assert_null(notice);
	output_close(output);
	holds(place->path, "one\nforeign\ntwo\nmore\nthree\n");
}

static void goes_on_after_a_truncation(void **state)
{
	struct place *place = *state;
	struct output *output = open_at(place->path);
	const char *notice = NULL;

	output_write(output, BYTES("one\n"), &notice);
	assert_int_equal(truncate(place->path, 0), 0);
	assert_int_equal(output_write(output, BYTES("two\n"), &notice), 0);
	assert_string_equal(notice, "was truncated by somebody else, continuing at its new end");
	output_close(output);
	holds(place->path, "two\n");
}

static void keeps_what_a_full_disk_refuses(void **state)
{
	char reason[OUTPUT_REASON_MAX];
	struct output *output = NULL;

	(void)state;
	assert_int_equal(output_open("/dev/full", false, &self, &output, reason), 0);
	assert_int_equal(output_write(output, BYTES("one\n"), NULL), -ENOSPC);
	assert_int_equal(output_unwritten(output), 4);
	assert_int_equal(output_write(output, BYTES("two\n"), NULL), -ENOSPC);
	assert_int_equal(output_unwritten(output), 8);
	assert_int_equal(output_close(output), -ENOSPC);
}

static void refuses(const char *path, int err, const char *expected)
{
	char reason[OUTPUT_REASON_MAX];
	struct output *output = NULL;

	assert_int_equal(output_open(path, true, &self, &output, reason), err);
	assert_null(output);
	assert_string_equal(reason, expected);
}

static void says_why_a_file_cannot_be_opened_and_what_to_do(void **state)
{
	struct place *place = *state;
	char reason[512], path[256];

	snprintf(path, sizeof(path), "%s/no/ledger", place->directory);
	snprintf(reason, sizeof(reason),
		 "cannot open %s: No such file or directory; its directory does not exist: create it", path);
	refuses(path, -ENOENT, reason);
	assert_int_equal(symlink("/dev/null", place->path), 0);
	snprintf(reason, sizeof(reason),
		 "cannot open %s: Too many levels of symbolic links; it is a symbolic link: give the real path", place->path);
	refuses(place->path, -ELOOP, reason);
	refuses("fd:99", -EBADF, "cannot open fd:99: Bad file descriptor; choose another place");
	refuses("fd:", -EBADF, "cannot open fd:: Bad file descriptor; choose another place");
}

static void writes_to_a_descriptor_and_leaves_it_open(void **state)
{
	char reason[OUTPUT_REASON_MAX], name[16], text[8] = "";
	struct output *output = NULL;
	int pipe_fds[2];

	(void)state;
	assert_int_equal(pipe(pipe_fds), 0);
	snprintf(name, sizeof(name), "fd:%d", pipe_fds[1]);
	assert_int_equal(output_open(name, true, &self, &output, reason), 0);
	assert_int_equal(output_write(output, BYTES("one\n"), NULL), 0);
	output_close(output);
	assert_int_equal(write(pipe_fds[1], "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], text, sizeof(text)), 5);
	assert_string_equal(text, "one\nx");
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

/* A pipe of the test, its writing end as output "fd:N". */
static struct output *open_pipe(int pipe_fds[2])
{
	char reason[OUTPUT_REASON_MAX], name[16];
	struct output *output = NULL;

	assert_int_equal(pipe(pipe_fds), 0);
	snprintf(name, sizeof(name), "fd:%d", pipe_fds[1]);
	assert_int_equal(output_open(name, true, &self, &output, reason), 0);
	output_never_wait(output);
	return output;
}

static size_t drain(int fd, size_t most)
{
	static char text[65536];
	size_t size = 0;
	ssize_t n;

	while (size < most && (n = read(fd, text, most - size < sizeof(text) ? most - size : sizeof(text))) > 0)
		size += (size_t)n;
	return size;
}

static void a_reader_that_stands_still_loses_no_line(void **state)
{
	static const uint8_t lines[200000];
	const struct bytes batch = {lines, sizeof(lines)};
	int pipe_fds[2];
	struct output *output = open_pipe(pipe_fds);
	size_t room = (size_t)fcntl(pipe_fds[1], F_GETPIPE_SZ);

	(void)state;
	assert_int_equal(output_write(output, batch, NULL), -EAGAIN);
	assert_int_equal(output_unwritten(output), sizeof(lines) - room);
	assert_int_equal(output_write(output, batch, NULL), -EAGAIN);
	assert_int_equal(drain(pipe_fds[0], room), room);
	assert_int_equal(output_write(output, (struct bytes){0}, NULL), -EAGAIN);
	assert_int_equal(output_unwritten(output), 2 * sizeof(lines) - 2 * room);
	assert_int_equal(output_lost(output), 0);
	assert_int_equal(fcntl(pipe_fds[1], F_GETFL) & O_NONBLOCK, 0); /* whoever shares it waits as before */
	close(pipe_fds[0]);
	assert_int_equal(output_close(output), -EPIPE);
	close(pipe_fds[1]);
}

static void what_is_too_much_for_a_reader_is_counted(void **state)
{
	enum { BATCH = LIMIT_UNWRITTEN_BYTES / 4 };
	const struct bytes batch = {calloc(1, BATCH), BATCH};
	int pipe_fds[2];
	struct output *output = open_pipe(pipe_fds);

	(void)state;
	assert_non_null(batch.data);
	for (int i = 0; i < 6; i++)
		assert_int_equal(output_write(output, batch, NULL), -EAGAIN);
	assert_int_equal(output_lost(output), 2 * BATCH);
	close(pipe_fds[0]);
	assert_int_equal(output_close(output), -EPIPE);
	close(pipe_fds[1]);
	free((void *)batch.data);
}

static void lines_lost_on_the_way_show_at_the_end(void **state)
{
	const struct bytes too_much = {calloc(1, LIMIT_UNWRITTEN_BYTES), LIMIT_UNWRITTEN_BYTES};
	int pipe_fds[2];
	struct output *output = open_pipe(pipe_fds);

	(void)state;
	assert_non_null(too_much.data);
	assert_int_equal(output_write(output, (struct bytes){too_much.data, 65536 + 1}, NULL), -EAGAIN);
	assert_int_equal(output_write(output, too_much, NULL), -EAGAIN);
	assert_int_equal(drain(pipe_fds[0], 65536), 65536);
	assert_int_equal(output_close(output), -ENOBUFS);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	free((void *)too_much.data);
}

static void a_pipe_is_told_when_its_reader_is_gone(void **state)
{
	struct place *place = *state;
	char reason[512];
	struct output *output;
	int reader;

	assert_int_equal(mkfifo(place->path, 0600), 0);
	snprintf(reason, sizeof(reason),
		 "cannot open %s: No such device or address; nobody reads this pipe: start its reader first", place->path);
	refuses(place->path, -ENXIO, reason);
	reader = open(place->path, O_RDONLY | O_NONBLOCK);
	output = open_at(place->path);
	assert_int_equal(output_write(output, BYTES("one\n"), NULL), 0);
	close(reader);
	assert_int_equal(output_write(output, BYTES("two\n"), NULL), -EPIPE);
	assert_int_equal(output_close(output), -EPIPE);
}

static void what_was_made_for_nothing_is_removed(void **state)
{
	struct place *place = *state;

	output_abandon(open_at(place->path));
	assert_int_equal(access(place->path, F_OK), -1);
	put(place->path, "earlier\n", 0);
	output_abandon(open_at(place->path));
	holds(place->path, "earlier\n");
}

static void a_file_becomes_private(void **state)
{
	struct place *place = *state;
	char reason[OUTPUT_REASON_MAX] = "", expected[256];
	struct output *output;
	struct stat stat_of;
	int pipe_fds[2];

	put(place->path, "earlier\n", 0);
	assert_int_equal(chmod(place->path, 0644), 0);
	output = open_at(place->path);
	assert_int_equal(output_make_private(output, reason), 0);
	assert_int_equal(stat(place->path, &stat_of), 0);
	assert_int_equal(stat_of.st_mode & 0777, 0600);
	output_close(output);
	output = open_pipe(pipe_fds);
	assert_int_equal(output_make_private(output, reason), -EINVAL);
	snprintf(expected, sizeof(expected), "fd:%d is no regular file: choose another place", pipe_fds[1]);
	assert_string_equal(reason, expected);
	output_close(output);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
}

static void running_path(const struct place *place, const char *run_id, char path[192])
{
	snprintf(path, 192, "%s%s%s.running", place->path, run_id ? "." : "", run_id ? run_id : "");
}

static bool mark(struct output *output, const char *run_id)
{
	bool unclean = false;

	assert_int_equal(output_mark_running(output, run_id, &unclean), 0);
	return unclean;
}

static void a_run_marks_its_file_until_its_end(void **state)
{
	struct place *place = *state;
	struct output *output = open_at(place->path);
	char running[192], text[64];

	running_path(place, NULL, running);
	assert_false(mark(output, "0123456789abcdef"));
	snprintf(text, sizeof(text), "%ld 0123456789abcdef\n", (long)getpid());
	holds(running, text);
	output_close(output);
	assert_int_equal(access(running, F_OK), -1);
}

/* Nobody holds its mark: whether its pid is somebody's here does not matter. */
static void a_run_that_ended_unclean_is_known_by_its_mark(void **state)
{
	struct place *place = *state;
	struct output *output;
	char first[192], beside[192], text[64];

	running_path(place, NULL, first);
	running_path(place, "fedcba9876543210", beside);
	snprintf(text, sizeof(text), "%ld fedcba9876543210\n", (long)getppid());
	for (int which = 1; which <= 3; which++) {
		if (which & 1)
			put(first, text, 0);
		if (which & 2)
			put(beside, text, 0);
		output = open_at(place->path);
		assert_true(mark(output, "0123456789abcdef"));
		output_close(output);
		output = open_at(place->path);
		assert_false(mark(output, "0123456789abcdef")); /* said once */
		output_close(output);
		assert_int_equal(access(first, F_OK), -1);
		assert_int_equal(access(beside, F_OK), -1);
	}
}

static void runs_beside_each_other_have_a_mark_each(void **state)
{
	struct place *place = *state;
	struct output *one = open_at(place->path), *two = open_at(place->path);
	char first[192], second[192], text[64];

	running_path(place, NULL, first);
	running_path(place, "2222222222222222", second);
	assert_false(mark(one, "1111111111111111"));
	assert_false(mark(two, "2222222222222222"));
	assert_int_equal(access(first, F_OK), 0);
	assert_int_equal(access(second, F_OK), 0);
	output_close(one); /* leaves the other's alone */
	assert_int_equal(access(first, F_OK), -1);
	snprintf(text, sizeof(text), "%ld 2222222222222222\n", (long)getpid());
	holds(second, text);
	one = open_at(place->path);
	assert_false(mark(one, "3333333333333333"));
	output_close(two);
	assert_int_equal(access(second, F_OK), -1);
	assert_int_equal(access(first, F_OK), 0);
	output_close(one);
}

/* A run that is just starting has made its mark and not locked it yet; another file's mark is not ours. */
static void a_mark_without_a_word_is_left_alone(void **state)
{
	struct place *place = *state;
	struct output *output = open_at(place->path);
	char beside[192], other[192];

	running_path(place, "fedcba9876543210", beside);
	put(beside, "", 0);
	snprintf(other, sizeof(other), "%s2.fedcba9876543210.running", place->path);
	put(other, "1 fedcba9876543210\n", 0);
	assert_false(mark(output, "0123456789abcdef"));
	output_close(output);
	assert_int_equal(unlink(beside), 0);
	assert_int_equal(unlink(other), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, drop_place)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(appends_to_what_is_there_and_is_private),
		TEST(starts_a_line_of_its_own_after_half_a_line),
		TEST(names_foreign_lines_once),
		TEST(goes_on_after_a_truncation),
		cmocka_unit_test(keeps_what_a_full_disk_refuses),
		TEST(says_why_a_file_cannot_be_opened_and_what_to_do),
		cmocka_unit_test(writes_to_a_descriptor_and_leaves_it_open),
		cmocka_unit_test(a_reader_that_stands_still_loses_no_line),
		cmocka_unit_test(what_is_too_much_for_a_reader_is_counted),
		cmocka_unit_test(lines_lost_on_the_way_show_at_the_end),
		TEST(a_pipe_is_told_when_its_reader_is_gone),
		TEST(what_was_made_for_nothing_is_removed),
		TEST(a_file_becomes_private),
		TEST(a_run_marks_its_file_until_its_end),
		TEST(a_run_that_ended_unclean_is_known_by_its_mark),
		TEST(runs_beside_each_other_have_a_mark_each),
		TEST(a_mark_without_a_word_is_left_alone),
	};

	signal(SIGPIPE, SIG_IGN); /* as session.c does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
