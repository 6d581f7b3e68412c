/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * vsnprintf() straight into the buffer's spare room, a second time when the
 * room was too small for the text.
 */
#include "say.h"

#include <errno.h>
#include <stdarg.h>

int say(struct buffer *out, const char *format, ...)
{
	int err = buffer_reserve(out, 128);

	for (int round = 0; !err && round < 2; round++) {
		size_t room = out->capacity - out->size;
		va_list arguments;
		int size;

		va_start(arguments, format);
		size = vsnprintf((char *)out->data + out->size, room, format, arguments);
		va_end(arguments);
		if (size < 0)
			return -ENOMEM;
		if ((size_t)size < room) {
			out->size += (size_t)size;
			return 0;
		}
		err = buffer_reserve(out, (size_t)size + 1);
	}
	return err;
}
