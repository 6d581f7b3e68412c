/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The observer's side of `mark` and `sync`: no caller holds it up, whatever it
 * does or does not say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "control.h"

#define MS 1000000ULL

static bool admitted;
static struct control *control;

static bool admits(void *context, pid_t pid)
{
	assert_ptr_equal(context, &admitted);
	assert_int_equal(pid, getpid());
	return admitted;
}

static int start(void **state)
{
	(void)state;
	admitted = true;
	return control_open(admits, &admitted, &control);
}

static int done(void **state)
{
	(void)state;
	control_close(control);
	return 0;
}

/* Our socket among those of the network namespace. */
static void find_name(char *name, size_t size)
{
	FILE *file = fopen("/proc/net/unix", "re");
	char line[512], prefix[64];

	assert_non_null(file);
	snprintf(prefix, sizeof(prefix), "@nightclerk-%ld-", (long)getpid());
	while (fgets(line, sizeof(line), file)) {
		const char *at = strstr(line, prefix);

		if (!at)
			continue;
		snprintf(name, size, "%.*s", (int)strcspn(at + 1, "\n"), at + 1);
		fclose(file);
		return;
	}
	fail_msg("the observer does not listen");
}

static int knock(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	char name[sizeof(address.sun_path)];

	assert_true(fd >= 0);
	find_name(name, sizeof(name) - 1);
	memcpy(address.sun_path + 1, name, strlen(name));
	assert_int_equal(connect(fd, (struct sockaddr *)&address,
				 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))), 0);
	return fd;
}

static void say(int fd, const char *words)
{
	assert_int_equal(send(fd, words, strlen(words), MSG_NOSIGNAL), strlen(words));
}

static bool wants_a_look(void)
{
	struct pollfd fd = {.fd = control_fd(control), .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void hears(int fd, const char *expected)
{
	char word[16] = "";

	assert_int_equal(recv(fd, word, sizeof(word) - 1, MSG_DONTWAIT), strlen(expected));
	assert_string_equal(word, expected);
	assert_int_equal(recv(fd, word, sizeof(word), MSG_DONTWAIT), 0);
	close(fd);
}

static void hears_nothing_yet(int fd)
{
	char byte;

	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN);
}

static void no_request(uint64_t now_ns)
{
	struct control_request request;

	assert_int_equal(control_next(control, now_ns, &request), 0);
}

static void a_silent_caller_is_not_waited_for(void **state)
{
	struct control_request request;
	int silent = knock(), other = knock();

	(void)state;
	assert_true(wants_a_look());
	no_request(0);
	assert_false(wants_a_look());
	say(other, "mark a label");
	assert_true(wants_a_look());
	assert_int_equal(control_next(control, 1, &request), 1);
	assert_int_equal(request.verb, CONTROL_MARK);
	assert_int_equal(request.pid, getpid());
	assert_int_equal(request.label.size, 7);
	assert_memory_equal(request.label.data, "a label", 7);
	hears_nothing_yet(other);
	control_answer(&request, CONTROL_DONE);
	hears(other, "ok");
	no_request(1000 * MS - 1);
	say(silent, "sync");
	assert_int_equal(control_next(control, 1000 * MS, &request), 1);
	assert_int_equal(request.verb, CONTROL_SYNC);
	control_answer(&request, CONTROL_UNWRITTEN);
	hears(silent, "unwritten");
}

static void who_stays_silent_is_turned_away(void **state)
{
	int silent = knock();

	(void)state;
	no_request(5);
	no_request(1000 * MS + 4);
	hears_nothing_yet(silent);
	no_request(1000 * MS + 5);
	hears(silent, "no");
}

static void many_silent_callers_make_room_for_one_who_speaks(void **state)
{
	struct control_request request;
	int silent[16], other;

	(void)state;
	for (int i = 0; i < 16; i++) { /* so many wait in the queue of the socket, too */
		silent[i] = knock();
		no_request(0);
	}
	other = knock();
	say(other, "sync");
	assert_int_equal(control_next(control, 0, &request), 1);
	control_answer(&request, CONTROL_BUSY);
	hears(other, "busy");
	hears(silent[0], "no");
	for (int i = 1; i < 16; i++) {
		hears_nothing_yet(silent[i]);
		close(silent[i]);
	}
	no_request(0);
}

static void who_is_not_admitted_is_refused_before_a_word(void **state)
{
	int stranger;

	(void)state;
	admitted = false;
	stranger = knock();
	no_request(0);
	hears(stranger, "no");
	stranger = knock();
	say(stranger, "sync");
	no_request(0);
	hears(stranger, "no");
	assert_int_equal(control_refused(control), 2);
}

static void what_is_no_request_is_refused(void **state)
{
	static const char *const words[] = {"", "sync ", "Sync", "mark", "marks x", "\x01"};
	char long_label[5 + CONTROL_LABEL_MAX + 2] = "mark ";
	int fd;

	(void)state;
	for (size_t i = 1; i < sizeof(words) / sizeof(words[0]); i++) {
		fd = knock();
		say(fd, words[i]);
		no_request(0);
		hears(fd, "no");
	}
	memset(long_label + 5, 'x', CONTROL_LABEL_MAX + 1);
	fd = knock();
	say(fd, long_label);
	no_request(0);
	hears(fd, "no");
	close(knock()); /* gone before it said anything */
	no_request(0);
	assert_int_equal(control_refused(control), 0);
}

/* A knock that cannot be answered would make the descriptor readable for ever. */
static void without_a_free_descriptor_the_knock_waits(void **state)
{
	struct control_request request;
	struct rlimit limit;
	int filler[8], count = 0, caller = knock();

	(void)state;
	say(caller, "sync");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	filler[0] = dup(0);
	limit.rlim_cur = (rlim_t)filler[0] + 4;
	close(filler[0]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	while (count < 8 && (filler[count] = dup(0)) >= 0)
		count++;
	assert_int_equal(count, 4);
	assert_int_equal(control_next(control, 0, &request), -EMFILE);
	assert_false(wants_a_look());
	while (count)
		close(filler[--count]);
	no_request(100 * MS - 1);
	assert_int_equal(control_next(control, 100 * MS, &request), 1);
	assert_int_equal(request.verb, CONTROL_SYNC);
	control_answer(&request, CONTROL_DONE);
	hears(caller, "ok");
}

static void who_waits_at_the_end_is_refused(void **state)
{
	int silent = knock();

	(void)state;
	no_request(0);
	control_close(control);
	control = NULL;
	hears(silent, "no");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, done)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_silent_caller_is_not_waited_for),
		TEST(who_stays_silent_is_turned_away),
		TEST(many_silent_callers_make_room_for_one_who_speaks),
		TEST(who_is_not_admitted_is_refused_before_a_word),
		TEST(what_is_no_request_is_refused),
		TEST(without_a_free_descriptor_the_knock_waits),
		TEST(who_waits_at_the_end_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
