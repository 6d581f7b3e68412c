/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One byte more than a policy may have is read, so that the parser sees that a
 * file is too large.
 */
#include "policy_file.h"

#include <errno.h>

static int read_file(const char *path, struct buffer *text)
{
	FILE *file = fopen(path, "rbe");
	size_t got;
	int err;

	if (!file)
		return -errno;
	err = buffer_reserve(text, POLICY_BYTES_MAX + 1);
	if (!err) {
		errno = 0;
		got = fread(text->data, 1, POLICY_BYTES_MAX + 1, file);
		text->size = got;
		if (ferror(file))
			err = errno ? -errno : -EIO;
	}
	fclose(file);
	return err;
}

int policy_file_parse(const char *name, struct bytes text, struct policy **ret_policy)
{
	struct policy_error error;
	int err = policy_parse(text, ret_policy, &error);

	if (err == -EINVAL)
		fprintf(stderr, "nightclerk: %s:%u:%u: %s\n", name, error.line, error.column, error.text);
	else if (err)
		fprintf(stderr, "nightclerk: %s: %s\n", name, strerror(-err));
	return err;
}

int policy_file_read(const char *path, struct policy **ret_policy)
{
	struct buffer text = {0};
	int err = read_file(path, &text);

	if (err)
		fprintf(stderr, "nightclerk: cannot read the policy %s: %s\n", path, strerror(-err));
	else
		err = policy_file_parse(path, buffer_bytes(&text), ret_policy);
	buffer_done(&text);
	return err;
}
