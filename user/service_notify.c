/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is told need not be there; a service runs on either way. */
#include "service_notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int service_notify(const char *state)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	int fd, err = 0;

	if (length == 0)
		return 0;
	if ((*path != '/' && *path != '@') || length > sizeof(address.sun_path))
		return -EINVAL;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0'; /* an abstract one, unix(7) */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)) < 0)
		err = -errno;
	close(fd);
	return err;
}
