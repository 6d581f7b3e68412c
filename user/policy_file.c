/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One byte more than a policy may have is read, so that the parser sees that a
 * file is too large.
 */
#include "policy_file.h"
#include "file_text.h"

#include <errno.h>

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
	int err = file_text_read(path, POLICY_BYTES_MAX, &text);

	if (err)
		fprintf(stderr, "nightclerk: cannot read the policy %s: %s\n", path, strerror(-err));
	else
		err = policy_file_parse(path, buffer_bytes(&text), ret_policy);
	buffer_done(&text);
	return err;
}
