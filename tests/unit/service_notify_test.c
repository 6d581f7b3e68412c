/* SPDX-License-Identifier: BSD-2-Clause */
/* The service manager is told what it should be, wherever its socket is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "service_notify.h"

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, path, strlen(path));
	if (*path == '@')
		address.sun_path[0] = '\0';
	assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path))), 0);
	return fd;
}

static void is_heard_at(const char *path)
{
	int fd = listen_at(path);
	char text[64] = "";

	setenv("NOTIFY_SOCKET", path, 1);
	assert_int_equal(service_notify("READY=1"), 0);
	assert_int_equal(recv(fd, text, sizeof(text) - 1, MSG_DONTWAIT), 7);
	assert_string_equal(text, "READY=1");
	close(fd);
}

static void is_heard_at_a_path_and_at_an_abstract_name(void **state)
{
	char path[] = "/tmp/nightclerk-notify-XXXXXX", name[64];

	(void)state;
	assert_non_null(mkdtemp(path));
	snprintf(name, sizeof(name), "%s/s", path);
	is_heard_at(name);
	unlink(name);
	rmdir(path);
	snprintf(name, sizeof(name), "@nightclerk-notify-%d", (int)getpid());
	is_heard_at(name);
}

static void nobody_need_listen(void **state)
{
	(void)state;
	unsetenv("NOTIFY_SOCKET");
	assert_int_equal(service_notify("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "", 1);
	assert_int_equal(service_notify("READY=1"), 0);
	setenv("NOTIFY_SOCKET", "relative", 1);
	assert_int_equal(service_notify("READY=1"), -EINVAL);
	setenv("NOTIFY_SOCKET", "/nonexistent/s", 1);
	assert_int_equal(service_notify("READY=1"), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_heard_at_a_path_and_at_an_abstract_name),
		cmocka_unit_test(nobody_need_listen),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
