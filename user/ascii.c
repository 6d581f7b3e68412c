/* SPDX-License-Identifier: BSD-2-Clause */
#include "ascii.h"

const bool ascii_tokens[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true,
	['!'] = true, ['#'] = true, ['$'] = true, ['%'] = true, ['&'] = true,
	['\''] = true, ['*'] = true, ['+'] = true, ['-'] = true, ['.'] = true,
	['^'] = true, ['_'] = true, ['`'] = true, ['|'] = true, ['~'] = true,
};
