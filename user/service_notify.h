/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tells the service manager how a service stands: sd_notify(3)'s protocol, one
 * datagram to the socket that $NOTIFY_SOCKET names.
 */
#ifndef NIGHTCLERK_SERVICE_NOTIFY_H
#define NIGHTCLERK_SERVICE_NOTIFY_H

/* state: "READY=1", lines with LF between them. 0, also where nobody listens; -errno. */
int service_notify(const char *state);

#endif
