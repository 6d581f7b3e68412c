/* SPDX-License-Identifier: BSD-2-Clause */
#include "file_text.h"

#include <errno.h>
#include <stdio.h>

int file_text_read(const char *path, size_t max, struct buffer *text)
{
	FILE *file = fopen(path, "rbe");
	int err;

	if (!file)
		return -errno;
	err = buffer_reserve(text, max + 1);
	if (!err) {
		errno = 0;
		text->size += fread(text->data + text->size, 1, max + 1, file);
		if (ferror(file))
			err = errno ? -errno : -EIO;
	}
	fclose(file);
	return err;
}
