/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files in places that others may have prepared, by openat2(2) (Linux 5.6):
 * the kernel itself refuses every symbolic link on the way and every step out
 * of the directory, so nothing can be swapped between a look and its use.
 */
#ifndef NIGHTCLERK_BENEATH_H
#define NIGHTCLERK_BENEATH_H

#include <stdint.h>
#include <sys/types.h>

/*
 * A directory by its path, in which no part may be a symbolic link. The descriptor, or -errno
 * (-ELOOP: a symbolic link; -ENOTDIR: no directory).
 */
int beneath_open_directory(const char *path);

/*
 * name beneath directory: no symbolic link, no "..", no device that would wait or become our terminal. flags and
 * mode as for open(2); close-on-exec. The descriptor, or -errno (-EXDEV: it leads out of the directory).
 */
int beneath_open(int directory, const char *name, int flags, mode_t mode);

/* When an open file was made, since 1970. 0, or -errno (-ENODATA: its file system does not keep that). */
int beneath_born(int fd, int64_t *ret_wall_ns);

#endif
