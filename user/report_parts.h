/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by report.c and report_text.c alone. */
#ifndef NIGHTCLERK_REPORT_PARTS_H
#define NIGHTCLERK_REPORT_PARTS_H

#include "report.h"

#define REPORT_NAME_MAX 256

enum report_by { REPORT_BY_MODEL, REPORT_BY_PROCESS, REPORT_BY_PATH, REPORT_BY_DAY, REPORT_BY_COUNT };

struct report_sums {
	uint64_t calls, attempts, billed;
	uint64_t input, output, cached, wasted; /* tokens */
	uint64_t duplicates, pending, abandoned, blind, hole_bytes;
	uint64_t priced; /* billed attempts with a price */
	double cost, wasted_cost;
};

struct report_group {
	char name[REPORT_NAME_MAX]; /* "" = there is none */
	struct report_sums sums;
};

const struct report_sums *report_total(const struct report *report);
uint64_t report_hole_bytes(const struct report *report);
uint64_t report_unclean_runs(const struct report *report);
bool report_has_prices(const struct report *report);
/* By name. The caller frees *ret_groups. 0 or -ENOMEM. */
int report_groups(const struct report *report, enum report_by by, const struct report_group ***ret_groups, size_t *ret_count);

#endif
