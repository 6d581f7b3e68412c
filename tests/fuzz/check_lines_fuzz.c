/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Ledger and events lines from anywhere, judged. Beyond what the sanitizers
 * find: every line is taken or named, and the gate says 0, 10 or 11, and never 0
 * when a line was not taken.
 */
#include "check_lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct check_overrides overrides = {0};
	struct check_lines *check = check_lines_new(&overrides, NULL);
	struct bytes text = {data, size};
	char sentence[4096];
	bool broken = false;
	int status;

	if (!check)
		return 0;
	while (text.size) {
		broken |= check_lines_add(check, bytes_take(&text, bytes_find(text, '\n'))) != NULL;
		bytes_take(&text, 1);
	}
	if (check_lines_judge(check))
		abort();
	status = check_lines_exit_status(check);
	if (status != 0 && status != 10 && status != 11)
		abort();
	if (broken && status == 0 && !check_lines_options(check)->allow_incomplete)
		abort();
	check_lines_sentence(check, sentence, sizeof(sentence));
	check_lines_free(check);
	return 0;
}
