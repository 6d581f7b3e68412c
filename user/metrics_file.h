/* SPDX-License-Identifier: BSD-2-Clause */
/* A metrics file in node_exporter's textfile directory: read whole or not at all. */
#ifndef NIGHTCLERK_METRICS_FILE_H
#define NIGHTCLERK_METRICS_FILE_H

#include "bytes.h"

#define METRICS_FILE_REASON_MAX 512

/* The end of a sentence that begins with the option, or NULL: node_exporter reads what ends in ".prom" alone. */
const char *metrics_file_wrong_name(const char *path);

/*
 * text becomes the content of path, 0644: written beside it (path + ".tmp") and renamed, so that a reader sees the
 * old text or the new one. Not fsynced: after a power cut the next write makes it anew. No part of its directory may
 * be a symbolic link. 0, or -errno with one line in reason; the old file stays.
 */
int metrics_file_write(const char *path, struct bytes text, char *reason);

#endif
