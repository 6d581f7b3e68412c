/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The policy of a command line or of a recording: reads the file, says on
 * stderr what is wrong with it ("nightclerk: policy.json:3:9: ...").
 */
#ifndef NIGHTCLERK_POLICY_FILE_H
#define NIGHTCLERK_POLICY_FILE_H

#include "policy.h"

/* 0; -errno when it cannot be read; -EINVAL when it is no policy. */
int policy_file_read(const char *path, struct policy **ret_policy);
/* The same for text that comes from somewhere else; name is what messages call it. */
int policy_file_parse(const char *name, struct bytes text, struct policy **ret_policy);

#endif
